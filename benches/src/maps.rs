//! The standard library's maps doing the same work: what goals 8 and 9 are measured beside.
//!
//! Decides: the same order and the same memory, as one would write them without our machines. Leaves to others: conflicts, late facts,
//! notices, shares, other lives than one. Believes: mono. Bounded by: nothing.
#![allow(
    clippy::disallowed_types,
    reason = "hash maps are what is measured against"
)]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tidings::{Instant, NodeId, PublicationHash};

use crate::goals::machines::{Ordering, TIMEOUT, Taken};

/// What is handed out.
#[derive(Debug)]
enum Out {
    Fact { seq: u64, item: u64 },
    Skipped { first: u64, last: u64 },
}

#[derive(Debug, Default)]
struct Place {
    edge: u64,
    held: BTreeMap<u64, (Instant, u64)>,
    ready: VecDeque<Out>,
    armed: Option<Instant>,
}

impl Place {
    fn offer(&mut self, now: Instant, seq: u64, item: u64) {
        if seq == self.edge + 1 {
            self.edge = seq;
            self.ready.push_back(Out::Fact { seq, item });
            self.release();
        } else if seq > self.edge {
            // As ours: the earliest arrival among what is held from this number on.
            let above = self.held.range(seq..).next();
            let since = above.map_or(now, |(_, &(since, _))| since);
            self.held.insert(seq, (since, item));
        }
    }

    /// What waits for nothing is ready.
    fn release(&mut self) {
        while let Some(first) = self.held.first_entry() {
            let seq = *first.key();
            if seq != self.edge + 1 {
                return;
            }
            self.edge = seq;
            let item = first.remove().1;
            self.ready.push_back(Out::Fact { seq, item });
        }
    }

    /// Gives up what was waited for long enough.
    fn timeout(&mut self, now: Instant) {
        while self.due().is_some_and(|due| due <= now) {
            if let Some((&seq, _)) = self.held.first_key_value() {
                let (first, last) = (self.edge + 1, seq - 1);
                self.edge = last;
                self.ready.push_back(Out::Skipped { first, last });
            }
            self.release();
        }
    }

    fn poll(&mut self) -> Option<Out> {
        self.ready.pop_front()
    }

    fn drain(&mut self, taken: &mut Taken) {
        while let Some(out) = self.poll() {
            match out {
                Out::Fact { seq, item } => {
                    debug_assert!(seq <= self.edge);
                    taken.fact(item);
                }
                Out::Skipped { first, last } => {
                    debug_assert!(first <= last);
                    taken.skipped += 1;
                }
            }
        }
    }

    /// When the gap at the head ends.
    fn due(&self) -> Option<Instant> {
        let (_, (since, _)) = self.held.first_key_value()?;
        Some(since.saturating_add(TIMEOUT))
    }
}

/// Publishers in a hash map, what waits behind a gap in an ordered one.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    places: HashMap<[u8; 32], Place>,
    deadlines: BTreeSet<(Instant, [u8; 32])>,
}

impl Ordering for Maps {
    fn meet(&mut self, publisher: &NodeId) {
        self.places.entry(*publisher.as_bytes()).or_default();
    }

    #[inline]
    fn offer(&mut self, now: Instant, publisher: &NodeId, seq: u64, item: u64, taken: &mut Taken) {
        while self.deadlines.first().is_some_and(|(at, _)| *at <= now) {
            self.pass(now, taken);
        }
        let key = publisher.as_bytes();
        let place = self.places.get_mut(key).expect("a publisher it has met");
        place.offer(now, seq, item);
        place.drain(taken);
        if let Some(at) = place.due()
            && place.armed.is_none_or(|armed| at < armed)
        {
            if let Some(armed) = place.armed.replace(at) {
                self.deadlines.remove(&(armed, *key));
            }
            self.deadlines.insert((at, *key));
        }
    }
}

impl Maps {
    /// The earliest deadline: gives the gap up if it was waited for long enough.
    fn pass(&mut self, now: Instant, taken: &mut Taken) {
        let Some((_, key)) = self.deadlines.pop_first() else {
            return;
        };
        let place = self.places.get_mut(&key).expect("a publisher it has met");
        place.armed = None;
        place.timeout(now);
        place.drain(taken);
        if let Some(at) = place.due() {
            place.armed = Some(at);
            self.deadlines.insert((at, key));
        }
    }
}

/// Which publications were here before: a set, and a queue of what ends next. All live equally long.
#[derive(Debug)]
pub(crate) struct Seen {
    life: Duration,
    known: HashSet<[u8; 48]>,
    ends: VecDeque<(Instant, [u8; 48])>,
}

impl Seen {
    /// Remembers each publication for so long.
    pub(crate) fn new(life: Duration) -> Self {
        Self {
            life,
            known: HashSet::new(),
            ends: VecDeque::new(),
        }
    }

    /// Whether it was here before.
    #[inline]
    pub(crate) fn check(&self, id: &PublicationHash) -> bool {
        self.known.contains(id.as_bytes())
    }

    /// Remembers one and forgets those whose life is over.
    #[inline]
    pub(crate) fn commit(&mut self, now: Instant, id: &PublicationHash) {
        while let Some((end, oldest)) = self.ends.front()
            && *end < now
        {
            self.known.remove(oldest);
            self.ends.pop_front();
        }
        if self.known.insert(*id.as_bytes()) {
            let end = now.saturating_add(self.life);
            self.ends.push_back((end, *id.as_bytes()));
        }
    }

    /// How many it remembers.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}
