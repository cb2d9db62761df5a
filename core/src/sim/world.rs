//! A run: the hosts of a plan, its acts in their time, and what every stream said.
//!
//! Decides: the order of acts at one moment (that of the plan), when the calm is over. Leaves to others: what an act does (`acts`), what
//! really happened (`truth`), whether the streams say so (`check`). Believes: the true time. Bounded by: the plan, and three minutes of calm.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::afar::Afar;
use super::hash::Hash;
use super::keys::Keys;
use super::lookups::Lookups;
use super::more::More;
use super::net::{Kind, Net};
use super::plan::{Fault, Op, Plan, Wanted};
use super::report::Tally;
use super::secrets::Secrets;
use super::trace::{Name, Trace};
use super::truth::Truth;
use super::{Habit, Options};
use crate::notice::Notice;
use crate::{Delivery, Duration, Instant, LinkState, NodeId, PublisherId, SubscriptionId};

/// What a stream said, and when it was read.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Fact { number: u32, late: bool },
    Notice(Notice),
}

/// One subscription of one run of a client.
#[derive(Debug)]
pub(super) struct Sub {
    pub(super) wanted: Wanted,
    pub(super) life: usize,
    pub(super) wire: usize,
    pub(super) id: SubscriptionId,
    pub(super) born: Instant,
    /// Its place among all that happened, and that of its end.
    pub(super) order: (u64, u64),
    pub(super) hash: Hash,
    /// When it ended, and whether its stream could be read to its end.
    pub(super) ended: Option<(Instant, End)>,
    pub(super) stalled_until: Instant,
    pub(super) was_stalled: bool,
    pub(super) told: Vec<(Instant, Told)>,
    pub(super) superseded: u64,
    /// What its publishers are looked up by, if they are.
    pub(super) looked_up: Option<crate::Source>,
    pub(super) unread: bool,
    /// The last fact it was given, where it commits.
    pub(super) last: Option<Delivery>,
    /// What it goes on from.
    pub(super) after: Option<Earlier>,
}

/// What a subscription committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Earlier {
    pub(super) sub: usize,
    /// Everything before that place in its stream counts as done.
    pub(super) place: usize,
    pub(super) at: Instant,
}

/// How a subscription ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its client was killed.
    Crash,
    /// It was asked for.
    Unsubscribed,
    /// It was too slow.
    Lagged,
}

/// Something a run does later: an act of the plan, its undoing, the next publication of a burst.
#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    Act(usize),
    Publish {
        burst: usize,
        node: usize,
        left: u16,
    },
    Heal {
        node: usize,
        station: usize,
    },
    StartStation(usize),
    StartNode(usize),
    Wake(usize),
    EndTwin(usize),
    Read(usize),
}

/// A node while the run lasts.
#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) client: usize,
    pub(super) life: usize,
    pub(super) runs: u8,
    pub(super) up: bool,
    /// The last epoch, as a driver persists it.
    pub(super) last_epoch: u64,
    /// The plan's node whose key it has.
    pub(super) plan: usize,
    pub(super) last_ticket: Option<crate::Ticket>,
    /// The group it has joined in this run, where there is one.
    pub(super) group: Option<crate::GroupId>,
}

/// A station while the run lasts.
#[derive(Debug)]
pub(super) struct StationState {
    pub(super) run: usize,
    pub(super) runs: u8,
    pub(super) up: bool,
}

/// A run.
#[derive(Debug)]
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) more: More,
    pub(super) options: Options,
    pub(super) keys: Keys,
    pub(super) net: Net,
    pub(super) truth: Truth,
    pub(super) nodes: Vec<NodeState>,
    pub(super) stations: Vec<StationState>,
    pub(super) subs: Vec<Sub>,
    /// The current subscription of each slot.
    pub(super) slots: Vec<Option<usize>>,
    /// What each slot committed last, as an application keeps it.
    pub(super) kept: Vec<Option<(Earlier, Vec<u8>)>>,
    /// Who publishes a burst at a node, in which of its runs, and what was made of it.
    pub(super) publishers: BTreeMap<(usize, usize), (usize, PublisherId, Vec<usize>)>,
    pub(super) by_stream: BTreeMap<(usize, SubscriptionId), usize>,
    jobs: alloc::collections::BinaryHeap<Reverse<(Instant, u32, usize)>>,
    job_list: Vec<Job>,
    pub(super) bursts: Vec<super::plan::Burst>,
    pub(super) calm: bool,
    /// Nobody publishes any more.
    resting: bool,
    pub(super) tally: Tally,
    pub(super) trace: Trace,
    pub(super) hash: Hash,
    /// The facts that were not live for somebody whom they reached: in which run of a client, and which.
    pub(super) stale: BTreeSet<(usize, u32)>,
    /// When faults were at work.
    pub(super) troubles: Vec<(Instant, Instant)>,
    /// What was found wrong while it ran.
    pub(super) wrong: Vec<(&'static str, alloc::string::String)>,
    pub(super) steps: u32,
}

impl World {
    pub(super) fn new(mut plan: Plan, options: Options) -> Self {
        let more = More::draw(&plan);
        plan.acts.extend_from_slice(&more.acts);
        plan.calm = plan.calm.max(more.calm);
        let mut net = Net::seeded(plan.seed.to_be_bytes());
        net.secrets = Secrets::draw(&plan);
        net.lookups = Lookups::draw(&plan);
        let afar = Afar::draw(&plan, net.secrets.on, net.lookups.on, &more.commits);
        plan.acts.extend_from_slice(&afar.acts);
        plan.calm = plan.calm.max(afar.calm);
        if let Some((node, by)) = afar.skew {
            plan.nodes.iter_mut().for_each(|plan| plan.skew = 0);
            plan.nodes[node].skew = by;
            net.secrets.allow_for_skew();
            net.lookups.allow_for_skew();
        }
        let keys = Keys::new(options.real_keys, plan.nodes.len(), plan.stations.len());
        net.lookups.name(&keys, plan.nodes.len());
        net.watch(plan.topics.clone(), keys.profile());
        net.saboteur.plant(options.sabotage);
        if let Habit::Small { cut, .. } = options.habit {
            net.cut_reads(cut);
        }
        let mut world = Self {
            truth: Truth::default(),
            net,
            nodes: Vec::new(),
            stations: Vec::new(),
            subs: Vec::new(),
            slots: alloc::vec![None; plan.slots],
            kept: alloc::vec![None; plan.slots],
            publishers: BTreeMap::new(),
            more,
            by_stream: BTreeMap::new(),
            jobs: alloc::collections::BinaryHeap::new(),
            job_list: Vec::new(),
            bursts: Vec::new(),
            calm: false,
            resting: false,
            tally: Tally::default(),
            trace: Trace::new(options.trace),
            hash: Hash::default(),
            stale: BTreeSet::new(),
            troubles: Vec::new(),
            wrong: Vec::new(),
            steps: 0,
            keys,
            options,
            plan,
        };
        world.populate();
        world
    }

    pub(super) fn node_of(&self, sub: usize) -> usize {
        self.truth.lives[self.subs[sub].life].node
    }

    pub(super) fn count(&mut self, fault: Fault) {
        self.tally.fault(fault, 1);
        let now = self.net.truth();
        self.troubles.push((now, now));
    }

    pub(super) fn later(&mut self, at: Instant, job: Job) {
        let number = self.job_list.len();
        self.job_list.push(job);
        self.jobs.push(Reverse((at, number as u32, number)));
    }

    pub(super) fn in_time(&mut self, time: Duration, job: Job) {
        if let Some((_, until)) = self.troubles.last_mut()
            && !matches!(job, Job::Publish { .. })
        {
            *until = (*until).max(self.net.truth().saturating_add(time));
        }
        self.later(self.net.truth().saturating_add(time), job);
    }

    /// Runs it to its end.
    pub(super) fn run(&mut self) {
        let calm = self.plan.calm;
        self.run_until(calm);
        self.inspect(false);
        self.begin_calm();
        let second = Duration::from_secs(1);
        let patience = calm.saturating_add(Duration::from_secs(150));
        while !self.is_whole() && self.is_running() {
            if self.net.truth() >= patience {
                self.wrong(
                    "liveness",
                    alloc::format!(
                        "not every link came back after the faults ended: {}",
                        self.missing()
                    ),
                );
                break;
            }
            self.run_until(self.net.truth().saturating_add(second));
        }
        self.run_until(self.net.truth().saturating_add(second * 3));
        if self.plan.last_words {
            self.last_words();
        }
        self.resting = true;
        self.run_until(self.net.truth().saturating_add(second * 14));
        self.finish();
        self.inspect(true);
    }

    fn is_running(&self) -> bool {
        self.net.stuck.is_none() && self.wrong.is_empty()
    }

    pub(super) fn wrong(&mut self, rule: &'static str, how: alloc::string::String) {
        self.wrong.push((rule, how));
    }

    fn run_until(&mut self, end: Instant) {
        while self.is_running() {
            let job = self.jobs.peek().map(|Reverse((at, ..))| *at);
            let next = job.filter(|at| *at <= end).unwrap_or(end);
            let moved = self.net.step(next);
            self.observe();
            if moved {
                continue;
            }
            if job.is_none_or(|at| at > end) {
                break;
            }
            if let Some(Reverse((_, _, number))) = self.jobs.pop() {
                self.work(self.job_list[number]);
                self.observe();
            }
        }
        if let Some((host, how)) = self.net.stuck {
            self.wrong(
                "deadlines",
                alloc::format!("{}: {how}", Name::host(host, self.stations.len())),
            );
        }
    }

    /// Whether every link of every node is up.
    fn is_whole(&mut self) -> bool {
        self.missing() == ""
    }

    fn missing(&self) -> alloc::string::String {
        for (node, state) in self.nodes.iter().enumerate() {
            let host = self.net.client_host(state.client);
            let Some(Kind::Client(client)) = &self.net.hosts[host].kind else {
                continue;
            };
            let status = client.status();
            if let Some(link) = status.links.iter().find(|link| link.state != LinkState::Up) {
                return alloc::format!("{}: {link:?}", Name::Node(node));
            }
            if self.net.is_deceived(host) {
                return alloc::format!("{}: a link that is no more", Name::Node(node));
            }
        }
        alloc::string::String::new()
    }

    /// Keeps what only a status knows.
    fn finish(&mut self) {
        for index in 0..self.subs.len() {
            self.subs[index].stalled_until = Instant::ORIGIN;
            self.read_now(index);
            let sub = &self.subs[index];
            let host = self.truth.lives[sub.life].host;
            if self.truth.current[host] != sub.life {
                continue;
            }
            if let Some(Kind::Client(client)) = &self.net.hosts[host].kind
                && let Some(status) = client.subscription(sub.id)
            {
                self.subs[index].superseded = status.superseded;
            }
        }
    }

    /// Whose id that is.
    pub(super) fn key_of(&self, id: &NodeId) -> Option<u8> {
        self.keys.key_of(id)
    }

    pub(super) fn work(&mut self, job: Job) {
        match job {
            Job::Act(act) => {
                let op: Op = self.plan.acts[act].op;
                self.act(op);
            }
            Job::Publish { .. } if self.resting => {}
            Job::Publish { burst, node, left } => self.publish_next(burst, node, left),
            _ if self.calm => {}
            Job::Heal { node, station } => self.heal(node, station),
            Job::StartStation(station) => self.restart_station(station),
            Job::StartNode(node) => self.start_node(node),
            Job::Wake(host) => self.net.wake(host),
            Job::EndTwin(node) => self.crash_node(node, true),
            Job::Read(sub) => {
                self.subs[sub].stalled_until = Instant::ORIGIN;
                self.read_now(sub);
            }
        }
    }
}
