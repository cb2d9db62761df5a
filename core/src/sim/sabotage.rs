//! Bugs that can be planted between the machines and whoever watches them, one per checker.
//!
//! Decides: where a planted bug shows. Leaves to others: catching it. Believes: nothing. Bounded by: one bug per run.

use alloc::vec::Vec;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use super::world::Earlier;
use crate::code::SourceRefusal;
use crate::inbound::sources::SourceAnswer;
use crate::keyring::ACCEPT_MS;
use crate::notice::{Item, Notice, Numbering};
use crate::wire::SKEW_MS;
use crate::{MemoryReport, WallMs};

/// A bug to be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sabotage {
    /// A fact that was to be delivered is not.
    DropFact,
    /// A fact is delivered twice.
    DeliverTwice,
    /// Two facts change places.
    SwapTwo,
    /// A notice is kept back.
    SwallowNotice,
    /// A notice is told that has no cause.
    InventNotice,
    /// The window of a notice begins late.
    NarrowWindow,
    /// The window of a notice begins early.
    WidenWindow,
    /// A publication is settled twice.
    SettleTwice,
    /// A publication is not settled.
    SettleNever,
    /// Something is kept for each publication.
    Leak,
    /// A deadline does not move on.
    StandingDeadline,
    /// Deadlines come without need.
    BusyDeadlines,
    /// Something depends on what no seed knows.
    Unseeded,
    /// A station loses an event on its way to a link.
    DropEvent,
    /// What is delivered depends on how often was asked.
    CountPolls,
    /// The first commit is kept in place of the last.
    StaleCommit,
    /// More is committed than the application did.
    EagerCommit,
    /// The last epoch is not there in the next run.
    ForgetEpoch,
    /// A fact that could not be opened is told twice.
    UnopenedTwice,
    /// One is not told.
    SwallowUnopened,
    /// Keys open for long after they should.
    OpenLate,
    /// Whose publisher was revoked is taken for admitted.
    AdmitRevoked,
    /// A commit passes over what was dropped before that is told.
    CommitUntold,
}

impl Sabotage {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::DropFact,
        Self::DeliverTwice,
        Self::SwapTwo,
        Self::SwallowNotice,
        Self::InventNotice,
        Self::NarrowWindow,
        Self::WidenWindow,
        Self::SettleTwice,
        Self::SettleNever,
        Self::Leak,
        Self::StandingDeadline,
        Self::BusyDeadlines,
        Self::Unseeded,
        Self::DropEvent,
        Self::CountPolls,
        Self::StaleCommit,
        Self::EagerCommit,
        Self::ForgetEpoch,
        Self::UnopenedTwice,
        Self::SwallowUnopened,
        Self::OpenLate,
        Self::AdmitRevoked,
        Self::CommitUntold,
    ];
}

/// What no seed knows: how many bytes were sent in this process so far.
static UNSEEDED: AtomicU64 = AtomicU64::new(0);

/// The opportunity at which a bug shows that shows once.
const ONCE_AT: u32 = 9;

/// Who plants them.
#[derive(Debug, Default)]
pub(super) struct Saboteur {
    bug: Option<Sabotage>,
    seen: u32,
    held: Option<(usize, Item)>,
    leaked: usize,
    polls: Cell<u32>,
}

impl Saboteur {
    pub(super) fn plant(&mut self, bug: Option<Sabotage>) {
        self.bug = bug;
    }

    fn is(&self, bug: Sabotage) -> bool {
        self.bug == Some(bug)
    }

    /// Whether this is the opportunity to show a bug that shows once.
    fn strikes(&mut self, bug: Sabotage) -> bool {
        if !self.is(bug) {
            return false;
        }
        self.seen += 1;
        self.seen == ONCE_AT
    }

    /// What the reader of a stream gets in place of an item, in this order.
    pub(super) fn item(&mut self, stream: usize, item: Item) -> [Option<Item>; 2] {
        match item {
            Item::Fact(fact) => self.fact(stream, fact),
            Item::Notice(notice) => self.notice(*notice),
        }
    }

    fn fact(&mut self, stream: usize, fact: crate::Delivery) -> [Option<Item>; 2] {
        let bug = |saboteur: &mut Self, bug| !fact.anycast() && saboteur.strikes(bug);
        if bug(self, Sabotage::DropFact) {
            return [None, None];
        }
        if bug(self, Sabotage::DeliverTwice) {
            return [Some(Item::Fact(fact.clone())), Some(Item::Fact(fact))];
        }
        if bug(self, Sabotage::InventNotice) {
            let of = Numbering {
                publisher: fact.publisher(),
                topic: fact.topic().into(),
                epoch: fact.epoch().unwrap_or(0),
            };
            let (first, last) = (fact.seq() + 1, fact.seq() + 1);
            let invented = notice(Notice::Skipped { of, first, last });
            return [Some(Item::Fact(fact)), Some(invented)];
        }
        if self.held.as_ref().is_some_and(|(held, _)| *held == stream)
            && let Some((_, held)) = self.held.take()
        {
            return [Some(Item::Fact(fact)), Some(held)];
        }
        if bug(self, Sabotage::SwapTwo) {
            self.held = Some((stream, Item::Fact(fact)));
            return [None, None];
        }
        if self.is(Sabotage::CountPolls) && self.polls.get() % 61 == 60 {
            self.polls.set(0);
            return [None, None];
        }
        [Some(Item::Fact(fact)), None]
    }

    fn notice(&mut self, told: Notice) -> [Option<Item>; 2] {
        if matches!(told, Notice::Unopened { .. }) {
            if self.strikes(Sabotage::UnopenedTwice) {
                return [Some(notice(told.clone())), Some(notice(told))];
            }
            if self.is(Sabotage::SwallowUnopened) {
                return [None, None];
            }
        }
        let changed = match told {
            Notice::Gap {
                from,
                to,
                reason,
                count,
            } if self.is(Sabotage::NarrowWindow) => {
                let from = WallMs::new(from.as_millis().midpoint(to.as_millis()) + 5);
                Notice::Gap {
                    from,
                    to,
                    reason,
                    count,
                }
            }
            Notice::Gap {
                from,
                to,
                reason,
                count,
            } if self.is(Sabotage::WidenWindow) => {
                let from = from.saturating_sub(500);
                Notice::Gap {
                    from,
                    to,
                    reason,
                    count,
                }
            }
            Notice::Gap { .. } | Notice::Skipped { .. } if self.is(Sabotage::SwallowNotice) => {
                return [None, None];
            }
            told => told,
        };
        [Some(notice(changed)), None]
    }

    /// Somebody asked a stream for an item.
    pub(super) fn polled(&self) {
        self.polls.set(self.polls.get() + 1);
    }

    /// How often an outcome is told.
    pub(super) fn settles(&mut self) -> usize {
        if self.strikes(Sabotage::SettleTwice) {
            return 2;
        }
        usize::from(!self.strikes(Sabotage::SettleNever))
    }

    /// What is kept of two commits of one subscription.
    pub(super) fn committed(
        &self,
        before: Option<(Earlier, Vec<u8>)>,
        now: (Earlier, Vec<u8>),
    ) -> (Earlier, Vec<u8>) {
        match before.filter(|(of, _)| of.sub == now.0.sub) {
            Some((_, bytes)) if self.is(Sabotage::StaleCommit) => (now.0, bytes),
            Some((of, _)) if self.is(Sabotage::EagerCommit) => (of, now.1),
            _ => now,
        }
    }

    /// Whether a commit is made though something has to be told first.
    pub(super) fn commits_untold(&self) -> bool {
        self.is(Sabotage::CommitUntold)
    }

    /// What a new run is told of the epochs before it.
    pub(super) fn last_epoch(&self, epoch: u64) -> u64 {
        match self.is(Sabotage::ForgetEpoch) {
            true => 0,
            false => epoch,
        }
    }

    /// Until when a key may open that does so until then.
    pub(super) fn opens_until(&self, until: WallMs) -> WallMs {
        match self.is(Sabotage::OpenLate) {
            true => until.saturating_sub(ACCEPT_MS + SKEW_MS),
            false => until,
        }
    }

    /// What a node is told of a publisher, of whom that was found out.
    pub(super) fn verdict(&self, found: SourceAnswer) -> SourceAnswer {
        match found {
            SourceAnswer::Refuse(SourceRefusal::Withdrawn) if self.is(Sabotage::AdmitRevoked) => {
                SourceAnswer::Admit {
                    until: WallMs::new(u64::MAX),
                }
            }
            found => found,
        }
    }

    /// Whether a deadline that was worked off is still there.
    pub(super) fn deadline_stands(&mut self) -> bool {
        self.strikes(Sabotage::StandingDeadline)
    }

    /// Whether every machine wants to be woken in a moment.
    pub(super) fn is_busy(&self) -> bool {
        self.is(Sabotage::BusyDeadlines)
    }

    /// Whether this event is lost.
    pub(super) fn drops_event(&mut self) -> bool {
        self.strikes(Sabotage::DropEvent)
    }

    /// Microseconds that come from nowhere.
    pub(super) fn unseeded(&self) -> u64 {
        if !self.is(Sabotage::Unseeded) {
            return 0;
        }
        UNSEEDED.fetch_add(1, Ordering::Relaxed) % 1009
    }

    /// What a report of memory looks like.
    pub(super) fn report(&mut self, mut report: MemoryReport) -> MemoryReport {
        if self.is(Sabotage::Leak) {
            self.leaked += 1;
            if let Some(line) = report.lines.iter_mut().find(|line| line.name == "tickets") {
                line.used += self.leaked;
            }
        }
        report
    }
}

fn notice(notice: Notice) -> Item {
    Item::Notice(alloc::boxed::Box::new(notice))
}
