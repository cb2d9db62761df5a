//! What arriving events allocate, once tables and queues have found their size.
//!
//! At most one allocation for a new fact: its own copy of the publication's bytes, which its readers share, and whoever checks its signature
//! elsewhere. Nothing for a copy, nothing for a refusal.

use allocation_counter::measure;
use tidings::code::ObjectFault;
use tidings::crypto::Signer;
use tidings::pump::{LinkIo, Machine};
use tidings::sim::{START, entropy, fake_signer};
use tidings::wire::{Body, Draft, Via, event_head};
use tidings::{
    Action, Answer, Binding, Client, ClientConfig, Instant, Intake, Item, LinkEvent, Mode, NodeId,
    Now, RealmId, Seed, Sources, Station, StationConfig, StationRef, Subscribe, SubscriptionId,
    Verification,
};

const TOPIC: &str = "weather/acme/app/days/measured_v1";
/// More than a life's worth of events, so that as many memories end as begin.
const SETTLED: u64 = 700;
const COUNTED: u64 = 500;

fn realm() -> RealmId {
    RealmId::of_name("weather")
}

/// An event each second.
fn second(n: u64) -> Now {
    Now::new(
        Instant::from_millis(n * 1000),
        START.saturating_add(n * 1000),
    )
}

/// The n-th publication of one publisher.
fn object(publisher: u64, seq: u64) -> Vec<u8> {
    let signer = fake_signer(publisher);
    let draft = Draft {
        realm: realm(),
        topic: TOPIC,
        publisher: NodeId::of_key(signer.profile().name(), &signer.public_key()),
        epoch: Some(START.as_millis() * 1000),
        seq,
        published_at: second(seq).wall,
        ttl_ms: Some(1),
        one: false,
        body: Body::Payload(b"\x58\x20................................"),
    };
    let mut object = Vec::new();
    draft.sign(&signer, &mut object).expect("a key in memory");
    object
}

/// A node with one link that is up, and some subscriptions.
struct World {
    client: Client,
    io: LinkIo,
    subscriptions: Vec<SubscriptionId>,
    offset: u64,
}

impl World {
    fn new(modes: &[Mode], sources: &Sources) -> Self {
        Self::verifying(Verification::Here, modes, sources)
    }

    fn verifying(verification: Verification, modes: &[Mode], sources: &Sources) -> Self {
        Self::pair(verification, modes, sources).0
    }

    /// The same, with its station.
    fn pair(
        verification: Verification,
        modes: &[Mode],
        sources: &Sources,
    ) -> (Self, Station, LinkIo) {
        let now = second(0);
        let station = StationConfig::new(fake_signer(100)).allow_local(true);
        let station = station.build().expect("a valid configuration");
        let mut station = Station::new(station, Seed::new([1; 32]), entropy(1), now);
        let config = ClientConfig::new(fake_signer(101))
            .allow_local(true)
            .verification(verification)
            .station(Some(station.id()));
        let config = config.build().expect("a valid configuration");
        let mut client = Client::new(config, Seed::new([2; 32]), entropy(2), now);
        assert!(matches!(client.poll_action(), Some(Action::Dial { .. })));
        let up = |dialled| LinkEvent::Up {
            dialled,
            binding: Binding::Local,
        };
        let here = client.handle_link(now, up(Some(StationRef(0))));
        let there = station.handle_link(now, up(None));
        let mut here = LinkIo::new(here.expect("it asked for it"));
        let mut there = LinkIo::new(there.expect("room"));
        let subscribe = |mode: &Mode| {
            let request = Subscribe::new(realm(), TOPIC, sources.clone());
            let made = client.subscribe(now, request.mode(*mode));
            made.expect("room")
        };
        let subscriptions = modes.iter().map(subscribe).collect();
        for _ in 0..8 {
            carry(now, (&mut here, &mut client), (&mut there, &mut station));
            carry(now, (&mut there, &mut station), (&mut here, &mut client));
        }
        let world = Self {
            client,
            io: here,
            subscriptions,
            offset: 0,
        };
        (world, station, there)
    }

    /// An event arrives and its readers take what there is. Answers how many allocations that took, and how many facts came.
    fn event(&mut self, now: Now, object: &[u8]) -> (u64, usize) {
        self.offset += 1;
        let mut frame = Vec::new();
        event_head(&mut frame, 1, Via::Direct, self.offset, object.len());
        frame.extend_from_slice(object);
        self.io.input().extend_from_slice(&frame);
        let mut facts = 0;
        let info = measure(|| {
            let intake = self.io.handle_read(&mut self.client, now);
            assert!(matches!(intake, Ok(Intake::Open)));
            while let Some(action) = self.client.poll_action() {
                if let Action::Ask { ask, .. } = action {
                    let told = self.client.answer(now, ask, Answer::Verified(true));
                    assert!(told.is_ok(), "an open question");
                }
            }
            for subscription in &self.subscriptions {
                while let Some(item) = self.client.poll_item(*subscription) {
                    assert!(matches!(item, Item::Fact(_)), "{item:?}");
                    facts += 1;
                }
            }
        });
        (info.count_total, facts)
    }

    fn faults(&self, fault: ObjectFault) -> u64 {
        self.client.status().faults.of(fault)
    }
}

fn carry(now: Now, from: (&mut LinkIo, &mut dyn Machine), to: (&mut LinkIo, &mut dyn Machine)) {
    while from.0.fill(from.1) {
        let mut slices: [&[u8]; 8] = [&[]; 8];
        let count = from.0.chunks(&mut slices);
        let mut bytes = 0;
        for slice in &slices[..count] {
            bytes += slice.len();
            to.0.input().extend_from_slice(slice);
        }
        from.0.wrote(from.1, now, bytes);
        let intake = to.0.handle_read(to.1, now);
        assert!(matches!(intake, Ok(Intake::Open)));
    }
}

/// Runs a life's worth of events past these readers, then asserts what each further one takes.
fn new_facts_take(modes: &[Mode], allocations: u64) {
    for verification in [Verification::Here, Verification::Asked] {
        new_facts_verified(verification, modes, allocations);
    }
}

fn new_facts_verified(verification: Verification, modes: &[Mode], allocations: u64) {
    let mut world = World::verifying(verification, modes, &Sources::Open);
    for seq in 1..=SETTLED + COUNTED {
        let (taken, facts) = world.event(second(seq), &object(1, seq));
        assert_eq!(facts, modes.len());
        // Not fewer: then nothing was counted.
        assert!(seq <= SETTLED || taken == allocations, "{taken} at {seq}");
    }
}

#[test]
fn a_new_fact_takes_one_allocation() {
    new_facts_take(&[Mode::Ordered], 1);
    new_facts_take(&[Mode::LatestOnly], 1);
    new_facts_take(&[Mode::AsArrives], 1);
}

#[test]
fn readers_beyond_the_first_take_no_more() {
    new_facts_take(&[Mode::Ordered, Mode::Ordered], 1);
    new_facts_take(&[Mode::Ordered; 16], 1);
}

#[test]
fn a_fact_that_waits_for_another_takes_one_allocation() {
    let mut world = World::new(&[Mode::Ordered], &Sources::Open);
    for pair in 1..=(SETTLED + COUNTED) / 2 {
        let (first, second_) = (pair * 2 - 1, pair * 2);
        let now = second(first);
        let (later, none) = world.event(now, &object(1, second_));
        let (earlier, both) = world.event(now, &object(1, first));
        // The very first of a stream that began before is waited for, too.
        assert_eq!((none, both), (0, 2));
        assert!(second_ <= SETTLED || later <= 1 && earlier <= 1);
    }
}

#[test]
fn a_copy_takes_no_allocation() {
    let mut world = World::new(&[Mode::Ordered, Mode::LatestOnly], &Sources::Open);
    for seq in 1..=COUNTED {
        let fact = object(1, seq);
        world.event(second(seq), &fact);
        // The same bytes; the same publication under another signature.
        assert_eq!(world.event(second(seq), &fact), (0, 0));
        let mut resigned = fact.clone();
        resigned
            .iter_mut()
            .rev()
            .take(64)
            .for_each(|byte| *byte = 7);
        assert_eq!(world.event(second(seq), &resigned), (0, 0));
    }
    assert_eq!(world.faults(ObjectFault::Duplicate), 2 * COUNTED);
}

#[test]
fn a_refusal_takes_no_allocation() {
    let signer = fake_signer(1);
    let known = NodeId::of_key(signer.profile().name(), &signer.public_key());
    let sources = Sources::Nodes(vec![known]);
    let mut world = World::new(&[Mode::Ordered], &sources);
    for seq in 1..=COUNTED {
        let now = second(seq);
        world.event(now, &object(1, seq));
        // Forged, from somebody else, too old, and not a publication at all.
        let mut forged = object(1, seq + 1);
        forged.iter_mut().rev().take(64).for_each(|byte| *byte = 7);
        assert_eq!(world.event(now, &forged), (0, 0));
        assert_eq!(world.event(now, &object(2, seq)), (0, 0));
        let later = second(seq + 2000);
        assert_eq!(world.event(later, &object(1, seq)), (0, 0));
        assert_eq!(world.event(now, b"\xa0"), (0, 0));
    }
    for (fault, count) in [
        (ObjectFault::SignatureInvalid, COUNTED),
        (ObjectFault::SourceRefused, COUNTED),
        (ObjectFault::Expired, COUNTED),
        (ObjectFault::Malformed, COUNTED),
        (ObjectFault::Duplicate, 0),
    ] {
        assert_eq!(world.faults(fault), count, "{fault:?}");
    }
}

#[test]
fn an_idle_link_with_an_idle_subscription_takes_no_allocation() {
    let (mut world, mut station, mut there) =
        World::pair(Verification::Here, &[Mode::Ordered], &Sources::Open);
    for turn in 1..=200 {
        let now = second(turn * 10);
        let info = measure(|| {
            let _done = world.client.handle_timeout(now);
            let _done = station.handle_timeout(now);
            for _ in 0..2 {
                let here = (&mut world.io, &mut world.client as &mut dyn Machine);
                carry(now, here, (&mut there, &mut station));
                let here = (&mut world.io, &mut world.client as &mut dyn Machine);
                carry(now, (&mut there, &mut station), here);
            }
            while world.client.poll_action().is_some() {}
            while station.poll_action().is_some() {}
        });
        // The first probe finds the room its frame takes.
        assert!(
            turn <= 6 || info.count_total == 0,
            "{} at {turn}",
            info.count_total
        );
    }
    let probes = station.status().links[0].probes;
    assert_eq!((probes.sent, probes.missed), (66, 0));
}
