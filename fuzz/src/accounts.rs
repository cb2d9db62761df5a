//! The ledger of a whole machine under hostile peers: what was handed to it and taken, and what came out or was reported instead.
//!
//! A client: each genuine, fresh publication of an accepted subscription that was taken for the first time is delivered to every reader
//! that wants it, or lies inside a `Skipped`, or is told of as `Unopened`, or is one of those that `Dropped`, `Lagged`, `Conflict` and the
//! count of superseded facts tell of; or it was refused, which is counted: its publisher by the reader's source, or itself, being in the clear
//! (`trust.rs`). A station: each publication it answered `routed` is written to every subscription that was accepted when it came, once and in
//! the order of its offsets, or is counted in a `skipped`.

use std::collections::{BTreeMap, BTreeSet};

use tidings::code::OutcomeCode;
use tidings::sim::FAKE_PROFILE;
use tidings::topic;
use tidings::wire::{Body, Frame, Publication, Route};
use tidings::{Item, Mode, NodeId, Notice, Now, PublicationHash, WallMs};

use crate::hostile::LINKS;
use crate::keys;
use crate::said::Seal;
use crate::trust::Trust;

/// A genuine publication.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub hash: PublicationHash,
    pub publisher: NodeId,
    pub topic: &'static str,
    pub epoch: Option<u64>,
    pub seq: u64,
    pub one: bool,
    /// Its payload is this number.
    pub payload: u8,
    pub seal: Option<Seal>,
    /// The first and the last wall time at which it is taken.
    pub from: WallMs,
    pub until: WallMs,
}

impl Sent {
    /// What an `Unopened` names it by.
    fn name(&self) -> Option<Name> {
        let key_id = keys::id_of(self.seal?.period);
        Some((self.publisher, self.topic.to_owned(), self.seq, key_id))
    }
}

/// Publisher, topic, number, and the id of the key.
type Name = (NodeId, String, u64, [u8; 8]);

/// One local subscription, what it should get and what it was handed.
#[derive(Debug)]
pub struct Reader {
    pub filter: &'static str,
    /// Whose facts it wants, if not everybody's.
    pub from: Option<NodeId>,
    /// The source that is looked up, where members have no name.
    pub source: Option<String>,
    /// One of [`keys::PREFIXES`].
    pub group: Option<usize>,
    pub mode: Mode,
    /// With the time at which each was first taken, in µs.
    pub expected: Vec<(Sent, u64)>,
    pub seen: BTreeSet<PublicationHash>,
    /// (publisher, topic, epoch, first, last)
    pub skipped: Vec<(NodeId, String, u64, u64, u64)>,
    unopened: BTreeMap<Name, usize>,
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
            source: None,
            group: None,
            mode,
            expected: Vec::new(),
            seen: BTreeSet::new(),
            skipped: Vec::new(),
            unopened: BTreeMap::new(),
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
    pub trust: Trust,
    /// What comes out does so as soon as it is decided; and no table makes room.
    pub at_once: bool,
    pub roomy: bool,
    /// What the application published, by its payload, and for which group.
    pub made: BTreeMap<Vec<u8>, Option<usize>>,
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

    /// A frame is handed to the machine, which reads on there at once or, it may be, later.
    pub fn hands(&mut self, frame: &Frame<'_>, now: Now, at_once: bool) {
        if let Frame::Event(event) = frame
            && let Some(sent) = self.sent(event.publication)
        {
            self.trust.arrives(&sent, now, at_once);
        }
    }

    /// Whether somebody signed anything with the key of this node.
    pub fn is_publisher(&self, node: &NodeId) -> bool {
        let mut all = self.genuine.values();
        all.any(|sent| sent.publisher == *node)
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
    pub fn took(&mut self, at: usize, frame: &Frame<'_>, now: Now) {
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
                    let due = held && (sent.from..=sent.until).contains(&now.wall);
                    self.came(sent, due, now.mono.as_micros());
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
    fn came(&mut self, sent: Sent, is_due: bool, at: u64) {
        // Anycast is for the subscription it names alone, and promises less.
        if !self.known.insert(sent.hash) || !is_due || sent.one || topic::is_system(sent.topic) {
            return;
        }
        for reader in &mut self.readers {
            if reader.wants(&sent) {
                reader.expected.push((sent, at));
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
            Frame::Publish(publish) if !self.made.is_empty() => self.published(publish.publication),
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

    /// A client wrote a publication of its own: what was published for a group is sealed, under a key that was given for that time.
    fn published(&self, object: &[u8]) {
        let read = Publication::parse(object, FAKE_PROFILE).expect("its own");
        let Body::Sealed(sealed) = read.body else {
            let Body::Payload(payload) = read.body else {
                return;
            };
            assert_eq!(self.made.get(payload), Some(&None), "in the clear");
            return;
        };
        let period = u64::from_be_bytes(*sealed.key_id);
        let mut text = vec![0; sealed.ct.len()];
        let mut opens = |group: usize, subkey| {
            let text = read.unseal(&subkey, &mut text);
            text.is_ok_and(|text| self.made.get(text) == Some(&Some(group)))
        };
        let group = (0..keys::PREFIXES.len()).find(|group| {
            opens(*group, keys::subkey(*group, period, &read.publisher))
                || opens(*group, keys::wrong_subkey(*group, period, &read.publisher))
        });
        let group = group.expect("sealed for its group");
        let at = read.published_at.as_millis();
        self.trust.sealed(group, period, at);
    }

    /// A link ended, and its subscriptions with it.
    pub fn ended(&mut self, at: usize) {
        self.wired[at].clear();
        self.refused.retain(|(link, _)| *link != at);
        self.asked.retain(|(link, _), _| *link != at);
    }

    pub fn item(&mut self, index: usize, item: &Item, now: Now) {
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
                let sent = &self.genuine[&hash];
                self.trust.handed(reader, sent, fact, now, self.at_once);
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
                Notice::Unopened {
                    of,
                    seq,
                    seal_key_id,
                    reason,
                } => {
                    let name = (of.publisher, of.topic.clone(), *seq, *seal_key_id);
                    let named = |sent: &&Sent| sent.name().as_ref() == Some(&name);
                    let sent: Vec<&Sent> = self.genuine.values().filter(named).collect();
                    let exact =
                        (self.at_once && self.roomy).then_some((now, self.latest.as_millis()));
                    self.trust.unopened(reader, &sent, *reason, exact);
                    let told = reader.unopened.entry(name).or_default();
                    *told += 1;
                    let was_over = sent.iter().any(|sent| self.latest > sent.until);
                    assert!(*told <= sent.len() || was_over, "told twice");
                }
                Notice::Ended { .. } => reader.ended = true,
                _ => {}
            },
            _ => {}
        }
    }

    /// `status`: what was superseded and refused to this reader; `None` where the subscription is gone. `clear`: what was refused to all,
    /// being in the clear.
    pub fn balance_reader(&self, index: usize, status: Option<[u64; 2]>, clear: u64) {
        let reader = &self.readers[index];
        let Some([superseded, refused]) = status.filter(|_| !reader.ended) else {
            return;
        };
        let mut unopened = reader.unopened.clone();
        let mut silent: [Vec<&Sent>; 3] = Default::default();
        for (sent, at) in &reader.expected {
            if reader.seen.contains(&sent.hash) || reader.was_skipped(sent) {
                continue;
            }
            let told = sent.name().and_then(|name| unopened.get_mut(&name));
            if let Some(told) = told.filter(|told| **told > 0) {
                *told -= 1;
                continue;
            }
            let why = match self.trust.misses(reader, sent, *at) {
                [false, false] => 0,
                [true, false] => 1,
                [_, true] => 2,
            };
            silent[why].push(sent);
        }
        let (mut missing, mut told) = (0, reader.counted + superseded);
        for (why, more) in [0, refused, clear].into_iter().enumerate() {
            missing += silent[why].len() as u64;
            told += more;
            assert!(
                missing <= told,
                "reader {index}: {} counted, {superseded} superseded, {refused} and {clear} refused, and missing in silence among {silent:?}",
                reader.counted
            );
        }
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
