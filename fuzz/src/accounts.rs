//! The ledger of a whole machine under hostile peers: what was handed to it and taken, and what came out or was reported instead.
//!
//! A client: each genuine, fresh publication of an accepted subscription that was taken for the first time is delivered to every reader
//! that wants it, or lies inside a `Skipped`, or is one of those that `Dropped`, `Lagged`, `Conflict` and the count of superseded facts
//! tell of. A station: each publication it answered `routed` is written to every subscription that was accepted when it came, once and in
//! the order of its offsets, or is counted in a `skipped`.

use std::collections::{BTreeMap, BTreeSet};

use tidings::code::OutcomeCode;
use tidings::topic;
use tidings::wire::{Frame, Route};
use tidings::{Item, Mode, NodeId, Notice, PublicationHash, WallMs};

use crate::hostile::LINKS;

/// A genuine publication.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub hash: PublicationHash,
    pub publisher: NodeId,
    pub topic: &'static str,
    pub epoch: Option<u64>,
    pub seq: u64,
    pub one: bool,
    /// The first and the last wall time at which it is taken.
    pub from: WallMs,
    pub until: WallMs,
}

/// One local subscription, what it should get and what it was handed.
#[derive(Debug)]
pub struct Reader {
    pub filter: &'static str,
    /// Whose facts it wants, if not everybody's.
    pub from: Option<NodeId>,
    pub mode: Mode,
    pub expected: Vec<Sent>,
    pub seen: BTreeSet<PublicationHash>,
    /// (publisher, topic, epoch, first, last)
    pub skipped: Vec<(NodeId, String, u64, u64, u64)>,
    /// Publications that notices count without naming them.
    pub counted: u64,
    pub ended: bool,
    /// The application gave it up; its last items may still be to come.
    pub left: bool,
}

impl Reader {
    pub fn new(filter: &'static str, from: Option<NodeId>, mode: Mode) -> Self {
        Self {
            filter,
            from,
            mode,
            expected: Vec::new(),
            seen: BTreeSet::new(),
            skipped: Vec::new(),
            counted: 0,
            ended: false,
            left: false,
        }
    }

    fn is_there(&self) -> bool {
        !self.ended && !self.left
    }

    fn wants(&self, sent: &Sent) -> bool {
        self.is_there()
            && topic::matches(self.filter, sent.topic)
            && self.from.is_none_or(|from| from == sent.publisher)
    }

    fn was_skipped(&self, sent: &Sent) -> bool {
        self.skipped
            .iter()
            .any(|(publisher, topic, epoch, first, last)| {
                *publisher == sent.publisher
                    && topic == sent.topic
                    && sent.epoch.is_none_or(|sent| sent == *epoch)
                    && (*first..=*last).contains(&sent.seq)
            })
    }
}

/// A subscription on a link, at a client as at a station.
#[derive(Debug, Default)]
struct Wired {
    filter: String,
    accepted: bool,
    /// At a station: what has to be written to it, and what was.
    expected: Vec<PublicationHash>,
    got: BTreeSet<PublicationHash>,
    offset: u64,
    skipped: u64,
}

/// A publish that waits for its answer: what it was, and the subscriptions that were accepted when it came.
#[derive(Debug)]
struct Asked {
    hash: PublicationHash,
    holders: Vec<(usize, u64)>,
}

#[derive(Debug, Default)]
pub struct Books {
    pub readers: Vec<Reader>,
    genuine: BTreeMap<PublicationHash, Sent>,
    /// By the bytes of the whole object.
    objects: BTreeMap<Vec<u8>, PublicationHash>,
    /// What a machine took at any time.
    known: BTreeSet<PublicationHash>,
    /// The latest wall the machine was told.
    pub latest: WallMs,
    wired: [BTreeMap<u64, Wired>; LINKS],
    /// Subscriptions that a peer refused before they were handed out, as who guesses their ids may: they end there.
    refused: BTreeSet<(usize, u64)>,
    asked: BTreeMap<(usize, u64), Asked>,
}

impl Books {
    pub fn signed(&mut self, object: &[u8], sent: Sent) {
        self.genuine.insert(sent.hash, sent);
        self.objects.insert(object.to_vec(), sent.hash);
    }

    fn sent(&self, object: &[u8]) -> Option<Sent> {
        Some(self.genuine[self.objects.get(object)?])
    }

    fn is_read(&self, filter: &str) -> bool {
        let mut readers = self.readers.iter();
        readers.any(|reader| reader.filter == filter && reader.is_there())
    }

    /// The application gives a reader up. What nobody reads any more is withdrawn from then on, written or not.
    pub fn leaves(&mut self, index: usize) {
        self.readers[index].left = true;
        let filter = self.readers[index].filter;
        if !self.is_read(filter) {
            for wired in &mut self.wired {
                wired.retain(|_, wired| wired.filter != filter);
            }
        }
    }

    /// The machine took this frame of a peer.
    pub fn took(&mut self, at: usize, frame: &Frame<'_>, wall: WallMs) {
        match frame {
            // To a client.
            Frame::Subscribed(subscribed) => {
                if let Some(wired) = self.wired[at].get_mut(&subscribed.id) {
                    wired.accepted = true;
                }
            }
            Frame::Refused(refused) => {
                if self.wired[at].remove(&refused.id).is_none() {
                    self.refused.insert((at, refused.id));
                }
            }
            Frame::Event(event) => {
                if let Some(sent) = self.sent(event.publication) {
                    let wired = self.wired[at].get(&event.id);
                    let held = wired.is_some_and(|wired| {
                        wired.accepted
                            && topic::matches(&wired.filter, sent.topic)
                            && self.is_read(&wired.filter)
                    });
                    self.came(sent, held && (sent.from..=sent.until).contains(&wall));
                }
            }
            // To a station.
            Frame::Unsubscribe(id) => {
                self.wired[at].remove(id);
            }
            Frame::Subscribe(subscribe) => {
                let filter = subscribe.filter.to_owned();
                let fresh = Wired {
                    filter,
                    ..Wired::default()
                };
                self.wired[at].entry(subscribe.id).or_insert(fresh);
            }
            Frame::Publish(publish) if publish.route == Route::All => {
                if let Some(sent) = self.sent(publish.publication)
                    && self.known.insert(sent.hash)
                {
                    let all = self.wired.iter().enumerate();
                    let holders = all.flat_map(|(at, wired)| {
                        let holds = |wired: &Wired| {
                            wired.accepted && topic::matches(&wired.filter, sent.topic)
                        };
                        wired
                            .iter()
                            .filter(move |(_, wired)| holds(wired))
                            .map(move |(id, _)| (at, *id))
                    });
                    let holders = holders.collect();
                    let hash = sent.hash;
                    self.asked
                        .entry((at, publish.id))
                        .or_insert(Asked { hash, holders });
                }
            }
            _ => {}
        }
    }

    /// A client took an event for the first time.
    fn came(&mut self, sent: Sent, is_due: bool) {
        // Anycast is for the subscription it names alone, and promises less.
        if !self.known.insert(sent.hash) || !is_due || sent.one || topic::is_system(sent.topic) {
            return;
        }
        for reader in &mut self.readers {
            if reader.wants(&sent) {
                reader.expected.push(sent);
            }
        }
    }

    /// The machine wrote this frame.
    pub fn wrote(&mut self, at: usize, frame: &Frame<'_>) {
        match frame {
            // A client.
            Frame::Subscribe(subscribe) if self.refused.remove(&(at, subscribe.id)) => {}
            Frame::Subscribe(subscribe) => {
                let filter = subscribe.filter.to_owned();
                let wired = Wired {
                    filter,
                    ..Wired::default()
                };
                let before = self.wired[at].insert(subscribe.id, wired);
                assert!(before.is_none(), "an id is used once on a link");
            }
            Frame::Unsubscribe(id) => {
                // It may cross the station's own word that this one has ended.
                self.wired[at].remove(id);
            }
            // A station.
            Frame::Subscribed(subscribed) => {
                if let Some(wired) = self.wired[at].get_mut(&subscribed.id) {
                    assert!(!wired.accepted, "accepted once");
                    wired.accepted = true;
                    wired.offset = match subscribed.resume {
                        tidings::wire::ResumeOutcome::Resumed { .. } => 0,
                        _ => subscribed.position.offset,
                    };
                }
            }
            Frame::Refused(refused) => {
                self.wired[at].remove(&refused.id);
            }
            Frame::Event(event) => {
                let sent = self.sent(event.publication);
                let Some(wired) = self.wired[at].get_mut(&event.id) else {
                    return; // it was unsubscribed while this was on its way
                };
                assert!(
                    wired.accepted,
                    "an event before its subscription was accepted"
                );
                let Some(sent) = sent else {
                    return; // the station's own
                };
                assert!(
                    topic::matches(&wired.filter, sent.topic),
                    "not what was subscribed"
                );
                if !sent.one {
                    assert!(wired.offset < event.offset, "offsets only grow");
                    wired.offset = event.offset;
                }
                assert!(wired.got.insert(sent.hash), "written twice");
            }
            Frame::Skipped(skipped) => {
                if let Some(wired) = self.wired[at].get_mut(&skipped.id) {
                    wired.skipped += skipped.count;
                }
            }
            Frame::Published(published) => {
                let asked = self.asked.remove(&(at, published.id));
                if let Some(asked) = asked
                    && published.outcome == OutcomeCode::Routed
                {
                    for (at, id) in asked.holders {
                        if let Some(wired) = self.wired[at].get_mut(&id) {
                            wired.expected.push(asked.hash);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// A link ended, and its subscriptions with it.
    pub fn ended(&mut self, at: usize) {
        self.wired[at].clear();
        self.refused.retain(|(link, _)| *link != at);
        self.asked.retain(|(link, _), _| *link != at);
    }

    pub fn item(&mut self, index: usize, item: &Item) {
        let reader = &mut self.readers[index];
        assert!(!reader.ended, "nothing comes after the end");
        match item {
            Item::Fact(fact) => {
                let hash = fact.hash();
                assert!(self.genuine.contains_key(&hash), "nobody signed it");
                // A wall that was set back over the end of its life may bring it again: nothing remembers it any more.
                let was_over = self.latest > self.genuine[&hash].until;
                assert!(reader.seen.insert(hash) || was_over, "delivered twice");
                assert!(
                    reader.from.is_none_or(|from| from == fact.publisher()),
                    "not wanted"
                );
                assert!(topic::matches(reader.filter, fact.topic()), "not wanted");
            }
            Item::Notice(notice) => match &**notice {
                Notice::Skipped { of, first, last } => {
                    assert!(reader.mode != Mode::LatestOnly, "nothing is waited for");
                    let range = (of.publisher, of.topic.clone(), of.epoch, *first, *last);
                    reader.skipped.push(range);
                }
                Notice::Dropped { count, .. } | Notice::Conflict { count, .. } => {
                    reader.counted += count;
                }
                Notice::Lagged { missed, .. } => reader.counted += missed,
                Notice::Unopened { .. } => reader.counted += 1,
                Notice::Ended { .. } => reader.ended = true,
                _ => {}
            },
            _ => {}
        }
    }

    /// `superseded`: what the status counts; `None` where the subscription is gone.
    pub fn balance_reader(&self, index: usize, superseded: Option<u64>) {
        let reader = &self.readers[index];
        let Some(superseded) = superseded.filter(|_| !reader.ended) else {
            return;
        };
        let silent: Vec<&Sent> = reader
            .expected
            .iter()
            .filter(|sent| !reader.seen.contains(&sent.hash) && !reader.was_skipped(sent))
            .collect();
        assert!(
            silent.len() as u64 <= reader.counted + superseded,
            "reader {index}: {} counted, {superseded} superseded, and missing in silence among {silent:?}",
            reader.counted
        );
    }

    pub fn balance_routes(&self) {
        for (at, wired) in self.wired.iter().enumerate() {
            for (id, wired) in wired {
                let missing: Vec<_> = wired
                    .expected
                    .iter()
                    .filter(|hash| !wired.got.contains(hash))
                    .collect();
                assert!(
                    missing.len() as u64 <= wired.skipped,
                    "link {at}, subscription {id}: {} skipped, and missing in silence among {missing:?}",
                    wired.skipped
                );
            }
        }
    }
}
