//! Where windows begin and end: by when something was said, and by who comes back.

use tidings::code::CloseReason;
use tidings::inbound::stream::OnFull;
use tidings::wire::{Frame, Phase, Progress};
use tidings::{Intake, LinkEvent, Now, SubscriptionId, Turn};

use super::common::{Fact, at, items, move_to, open, signer};
use super::{MESH, World};

const OTHER: [u8; 32] = [78; 32];

#[test]
fn a_window_begins_when_a_progress_was_said_which_is_a_round_trip_before_it_came() {
    let mut world = World::new(1);
    let stream = world.subscribed();
    for tens in 1..=2 {
        world.time(tens * 10_000);
        world.progress(0, 0);
    }
    world.time(29_900);
    while world.client.handle_timeout(at(30_000)) == Turn::More {}
    let far = world.stations[0].far.as_mut().expect("a link");
    far.answers = false;
    let wrote = far.read(&mut world.client, at(30_000));
    let wrote = wrote
        .iter()
        .find_map(|body| match Frame::decode(body, Phase::Established) {
            Ok(Frame::Ping(nonce)) => Some(*nonce),
            _ => None,
        });
    let nonce = wrote.expect("a probe");
    let taken = far.frame(&mut world.client, at(30_040), &Frame::Pong(&nonce));
    assert_eq!(taken, Ok(Intake::Open));
    world.time(40_000);
    world.progress(0, 0);
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), ["interrupted 39960 io"]);
}

/// A subscription whose station is at 30,000, when the first probe is due, and answers none from then on.
struct Slow {
    world: World,
    stream: SubscriptionId,
    id: u64,
    /// The last probe that was handed out, and its bytes that were not taken.
    nonce: [u8; 16],
    left: usize,
}

impl Slow {
    fn new() -> Self {
        let mut world = World::new(1);
        let stream = world.subscribed();
        for heard in [10_000, 20_000, 29_900] {
            world.time(heard);
            world.progress(0, 0);
        }
        let (id, nonce) = (world.id(0), [0; 16]);
        let mut slow = Self {
            world,
            stream,
            id,
            nonce,
            left: 0,
        };
        slow.probe(30_000);
        slow
    }

    fn time(&mut self, to: u64) {
        move_to(&mut self.world.client, at(to));
        while self.world.client.handle_timeout(at(to)) == Turn::More {}
        self.world.now = to;
    }

    /// A probe is due and is handed to the transport, which takes nothing of it.
    fn probe(&mut self, at: u64) {
        self.time(at);
        let link = self.far().id;
        let mut out = Vec::new();
        while self.world.client.poll_transmit(link, &mut out).is_some() {}
        match Frame::decode(&out[4..], Phase::Established) {
            Ok(Frame::Ping(nonce)) => (self.nonce, self.left) = (*nonce, out.len()),
            other => panic!("{other:?}"),
        }
    }

    /// The transport took it.
    fn takes(&mut self, now: u64) {
        let link = self.far().id;
        let left = core::mem::take(&mut self.left);
        self.world.client.handle_written(at(now), link, left);
    }

    fn far(&mut self) -> &mut super::Far {
        self.world.stations[0].far.as_mut().expect("a link")
    }

    fn hears(&mut self, now: u64, frame: &Frame<'_>) {
        self.time(now);
        let far = self.world.stations[0].far.as_mut().expect("a link");
        let taken = far.frame(&mut self.world.client, at(now), frame);
        assert_eq!(taken, Ok(Intake::Open));
    }

    fn progress(&mut self, now: u64) {
        let progress = Progress {
            id: self.id,
            offset: 0,
            behind_ms: 0,
        };
        self.hears(now, &Frame::Progress(progress));
    }

    fn pong(&mut self, now: u64) {
        let nonce = self.nonce;
        self.hears(now, &Frame::Pong(&nonce));
    }

    /// Where the window of a link that ends now begins.
    fn begins(mut self) -> String {
        self.world.down(0, CloseReason::Io);
        let words = self.world.words(self.stream);
        assert_eq!(words.len(), 1, "{words:?}");
        words[0].clone()
    }
}

/// What the station says comes ever later, and so does its answer.
#[test]
fn a_probe_that_is_not_answered_counts_on_when_the_next_one_is_asked() {
    let slow = || {
        let mut slow = Slow::new();
        slow.takes(30_000);
        [39_000, 48_000, 57_000]
            .into_iter()
            .for_each(|now| slow.progress(now));
        slow.probe(60_000);
        slow
    };
    for taken in [false, true] {
        let mut slow = slow();
        if taken {
            slow.takes(60_000);
        }
        slow.progress(61_000);
        assert_eq!(slow.begins(), "interrupted 30000 io");
    }
    // The answer to the second proves what was asked with it, and nothing of the first.
    let mut slow = slow();
    slow.takes(60_000);
    slow.pong(61_500);
    slow.progress(62_000);
    assert_eq!(slow.begins(), "interrupted 60500 io");
}

/// A transport takes its bytes piece by piece, or its driver tells of them late.
#[test]
fn a_probes_time_counts_from_when_it_was_handed_out() {
    let mut slow = Slow::new();
    slow.progress(39_000);
    assert_eq!(slow.begins(), "interrupted 30000 io");
    let mut slow = Slow::new();
    slow.progress(39_000);
    slow.progress(48_000);
    slow.takes(50_000);
    slow.progress(50_005);
    assert_eq!(slow.begins(), "interrupted 30000 io");
    let mut slow = Slow::new();
    slow.progress(39_000);
    slow.progress(48_000);
    slow.takes(50_000);
    slow.pong(50_010);
    slow.progress(50_020);
    assert_eq!(slow.begins(), "interrupted 30010 io");
}

/// A subscription that heard nothing for 15 s, and then a progress.
fn after_a_silence() -> (World, SubscriptionId) {
    let mut world = World::new(1);
    let stream = world.subscribed();
    world.time(10_000);
    world.progress(0, 0);
    world.time(25_000);
    world.progress(0, 0);
    (world, stream)
}

/// A reader gets something every 10 s. What comes after more than that was held up, who knows where and since when.
#[test]
fn what_comes_after_a_silence_may_have_been_said_at_its_beginning() {
    let (mut world, stream) = after_a_silence();
    world.time(26_000);
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), ["interrupted 10000 io"]);
}

#[test]
fn an_answered_probe_bounds_what_may_have_been_said_before_a_silence() {
    let (mut world, stream) = after_a_silence();
    // It asks at 30,000 and is answered at once.
    world.time(33_000);
    world.progress(0, 0);
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), ["interrupted 33000 io"]);
}

#[test]
fn what_waited_while_a_full_stream_paused_its_link_may_have_been_said_since() {
    let mut world = World::new(1);
    let request = open().on_full(OnFull::Pause).queue_capacity(1);
    let stream = world.client.subscribe(at(0), request).expect("a stream");
    world.accept(0);
    let (id, object) = (world.id(0), Fact::numbered(1).sign(&signer(7)));
    let far = world.stations[0].far.as_mut().expect("a link");
    let taken = far.event(&mut world.client, at(0), id, 1, &object);
    assert_eq!(taken, Ok(Intake::Paused));
    world.now = 5000;
    let far = world.stations[0].far.as_mut().expect("a link");
    let progress = Frame::Progress(Progress {
        id,
        offset: 1,
        behind_ms: 0,
    });
    let taken = far.frame(&mut world.client, at(5000), &progress);
    assert_eq!(taken, Ok(Intake::Paused));
    let first = items(&mut world.client, stream);
    assert_eq!(first.len(), 1);
    world.now = 9000;
    let far = world.stations[0].far.as_mut().expect("a link");
    let taken = far.raw(&mut world.client, at(9000), &[]);
    assert_eq!(taken, Ok(Intake::Open));
    world.down(0, CloseReason::Io);
    assert_eq!(world.words(stream), ["interrupted 0 io"]);
}

/// It slept for 3 s, too short to ask who is still there: its mono stood still, or ran on past what was due at 30,000.
#[test]
fn what_is_read_after_a_short_sleep_may_have_been_said_so_much_earlier() {
    // Past what was due it has asked a second ago as well, and has no answer yet.
    for (stood, last) in [(3000, 29_000), (0, 28_000)] {
        let awake = |ms: u64| Now::new(at(ms - stood).mono, at(ms).wall);
        for (read, said) in [(31_000, 28_000), (32_000, last)] {
            let mut world = World::new(1);
            let stream = world.subscribed();
            for heard in [9000, 18_000, 27_000] {
                world.time(heard);
                world.progress(0, 0);
            }
            world.time(28_000);
            let id = world.id(0);
            while world.client.handle_timeout(awake(31_000)) == Turn::More {}
            let progress = Frame::Progress(Progress {
                id,
                offset: 0,
                behind_ms: 0,
            });
            let far = world.stations[0].far.as_mut().expect("a link");
            let taken = far.frame(&mut world.client, awake(read), &progress);
            assert_eq!(taken, Ok(Intake::Open));
            let (link, reason) = (far.id, CloseReason::Io);
            let down = LinkEvent::Down { link, reason };
            let told = world.client.handle_link(awake(read + 1), down);
            assert!(told.is_ok());
            let wanted = format!("interrupted {said} io");
            assert_eq!(world.words(stream), [wanted], "mono stood for {stood}");
        }
    }
}

/// One of two meshes stays away while the other carries: no interruption says so.
#[test]
fn a_mesh_that_stays_away_for_two_minutes_is_a_gap_though_another_carries() {
    let mut world = World::of_meshes(&[MESH, OTHER]);
    let stream = world.subscribed();
    world.time(10_000);
    world.progress(1, 0);
    world.time(12_000);
    world.down(1, CloseReason::Io);
    world.time(131_500);
    assert!(world.words(stream).is_empty());
    world.time(132_000);
    assert_eq!(world.words(stream), ["gap 10000..132000 lost"]);
    // It comes back and cannot replay: the rest is a second window.
    world.up(1);
    let back = world.now;
    world.expired(1);
    let words = world.words(stream);
    assert_eq!(words, [format!("gap 132000..{back} expired")]);
}

#[test]
fn a_holder_whose_mate_accepted_plainly_leaves_a_gap_up_to_that() {
    let mut world = World::of_meshes(&[MESH, OTHER, OTHER]);
    let stream = world.subscribe();
    world.accept(0);
    world.accept(1);
    world.time(10_000);
    world.progress(1, 0);
    world.time(12_000);
    world.down(1, CloseReason::Io);
    world.time(15_000);
    world.accept(2);
    world.time(140_000);
    let words = world.words(stream);
    assert_eq!(words, ["gap 10000..15000 lost"]);
}
