//! What puts facts in order: our machines behind an index of publishers, as the client keeps them.
//!
//! Decides: how a machine is offered a fact and drained. Leaves to others: which facts (`order`). Believes: mono. Bounded by: the publishers
//! it is told of.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use tidings::inbound::lane::{self, Lane, LaneConfig, LaneItem, Offer};
use tidings::inbound::order::{Admit, Order, OrderConfig, Release, Slot};
use tidings::table::{Numbers, TableKey};
use tidings::{Instant, NodeId, Now, Seed, WallMs};

/// How long a missing number is waited for.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(250);
/// The epoch of all facts: one that began long before, as a node that joins later hears it.
const EPOCH: u64 = 1_780_000_000_000_000;

/// What was handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Facts.
    pub(crate) facts: u64,
    /// Of their items, so that what came out can be told from what did not.
    pub(crate) sum: u64,
    /// Ranges given up.
    pub(crate) skipped: u64,
}

impl Taken {
    /// One fact more.
    #[inline]
    pub(crate) fn fact(&mut self, item: u64) {
        self.facts += 1;
        self.sum = self.sum.wrapping_add(item);
    }
}

/// What puts facts in order by publisher.
pub(crate) trait Ordering: fmt::Debug {
    /// A publisher there is.
    fn meet(&mut self, publisher: &NodeId);

    /// One fact, everything that is due, and everything that can be handed out after it.
    fn offer(&mut self, now: Instant, publisher: &NodeId, seq: u64, item: u64, taken: &mut Taken);
}

/// One publisher's machine.
pub(crate) trait Machine: fmt::Debug {
    /// One that waits for number 1.
    fn new() -> Self;

    /// A fact, and what can be handed out after it.
    fn offer(&mut self, now: Instant, seq: u64, item: u64, taken: &mut Taken);

    /// Acts on what is due.
    fn timeout(&mut self, now: Instant, taken: &mut Taken);

    /// When something is due.
    fn due(&self) -> Option<Instant>;
}

/// The order of one epoch.
pub(crate) type PlainOrder = Order<u64, Vec<Option<Slot<u64>>>>;
/// What the client has for each publisher and topic.
pub(crate) type PlainLane = Lane<u64, Vec<Option<lane::Slot<u64>>>>;

impl Machine for PlainOrder {
    fn new() -> Self {
        let mut order = Self::growing(OrderConfig::default());
        assert!(order.begin(EPOCH, true), "a new order");
        order
    }

    #[inline]
    fn offer(&mut self, now: Instant, seq: u64, item: u64, taken: &mut Taken) {
        let admit = self.offer(now, seq, false, item);
        assert!(matches!(admit, Admit::Taken), "a new fact, and room");
        while let Some(release) = self.poll() {
            note(release, taken);
        }
    }

    fn timeout(&mut self, now: Instant, taken: &mut Taken) {
        self.handle_timeout(now);
        while let Some(release) = self.poll() {
            note(release, taken);
        }
    }

    #[inline]
    fn due(&self) -> Option<Instant> {
        self.poll_timeout()
    }
}

#[inline]
fn note(release: Release<u64>, taken: &mut Taken) {
    match release {
        Release::Fact { item, .. } => taken.fact(item),
        _ => taken.skipped += 1,
    }
}

impl Machine for PlainLane {
    fn new() -> Self {
        Self::growing(LaneConfig {
            order_timeout: TIMEOUT,
            ..LaneConfig::default()
        })
    }

    #[inline]
    fn offer(&mut self, now: Instant, seq: u64, item: u64, taken: &mut Taken) {
        let offer = Offer {
            epoch: EPOCH,
            seq,
            until: WallMs::new(EPOCH / 1000),
            replayed: false,
            anycast: false,
            copy_possible: false,
        };
        let admit = self.offer(at(now), offer, item);
        assert!(matches!(admit, Admit::Taken), "a new fact, and room");
        while let Some(item) = self.poll() {
            note_lane(&item, taken);
        }
    }

    fn timeout(&mut self, now: Instant, taken: &mut Taken) {
        self.handle_timeout(at(now));
        while let Some(item) = self.poll() {
            note_lane(&item, taken);
        }
    }

    #[inline]
    fn due(&self) -> Option<Instant> {
        self.poll_timeout()
    }
}

fn at(mono: Instant) -> Now {
    Now::new(mono, WallMs::new(EPOCH / 1000))
}

#[inline]
fn note_lane(item: &LaneItem<u64>, taken: &mut Taken) {
    match item {
        LaneItem::Fact { item, .. } => taken.fact(*item),
        _ => taken.skipped += 1,
    }
}

/// What a fact in order touches of a machine is one line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Place<M> {
    machine: M,
    armed: Option<Instant>,
    publisher: NodeId,
}

/// Machines by publisher, and their deadlines in an index, as the client keeps its lanes.
#[derive(Debug)]
pub(crate) struct Places<M> {
    index: Numbers,
    places: Vec<Place<M>>,
    deadlines: BTreeSet<(Instant, u32)>,
}

impl<M: Machine> Places<M> {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            index: Numbers::new(1 << 20, &mut Seed::new([8; 32]).fork("order")),
            places: Vec::new(),
            deadlines: BTreeSet::new(),
        }
    }

    /// The earliest deadline.
    #[inline(never)]
    fn pass(&mut self, now: Instant, taken: &mut Taken) {
        let Some((_, at)) = self.deadlines.pop_first() else {
            return;
        };
        let place = &mut self.places[at as usize];
        place.armed = None;
        place.machine.timeout(now, taken);
        let due = place.machine.due();
        self.arm(at, due);
    }

    /// A deadline that moved back stays where it is and is looked at early.
    #[inline]
    fn arm(&mut self, at: u32, due: Option<Instant>) {
        if let Some(due) = due {
            self.arm_at(at, due);
        }
    }

    fn arm_at(&mut self, at: u32, due: Instant) {
        let armed = &mut self.places[at as usize].armed;
        if armed.is_none_or(|armed| due < armed) {
            if let Some(armed) = armed.replace(due) {
                self.deadlines.remove(&(armed, at));
            }
            self.deadlines.insert((due, at));
        }
    }
}

impl<M: Machine> Default for Places<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> Ordering for Places<M> {
    fn meet(&mut self, publisher: &NodeId) {
        let number = self.places.len() as u32;
        self.places.push(Place {
            machine: M::new(),
            publisher: *publisher,
            armed: None,
        });
        let places = &self.places;
        self.index.insert(publisher.prefix(), number, |number| {
            places[number as usize].publisher.prefix()
        });
    }

    #[inline]
    fn offer(&mut self, now: Instant, publisher: &NodeId, seq: u64, item: u64, taken: &mut Taken) {
        while self.deadlines.first().is_some_and(|(at, _)| *at <= now) {
            self.pass(now, taken);
        }
        let places = &self.places;
        let is_it = |number: u32| places[number as usize].publisher == *publisher;
        let at = self.index.find(publisher.prefix(), is_it);
        let at = at.expect("a publisher it has met");
        let machine = &mut self.places[at as usize].machine;
        machine.offer(now, seq, item, taken);
        let due = machine.due();
        self.arm(at, due);
    }
}
