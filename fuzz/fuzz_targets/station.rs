//! A station with links from three nodes that say anything at all, one of which answers probes besides: what it answered `routed` reaches
//! every subscription that was accepted when it came, once, or is counted in a `skipped`; after a timeout nothing is due and nothing wakes
//! without end; what is paused can be drained; every table keeps its bound; and the trace is the same wherever the bytes are cut.
//!
//! Input: a byte with the number of cuts and whether habits are compared, the cuts, and steps (`words.rs`).

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::sim::{START, entropy, fake_signer};
use tidings::{Instant, Now, Publish, Seed, Station, StationConfig, StationLimits};
use tidings_fuzz::asks::Bounds;
use tidings_fuzz::hostile::{Habit, LINKS, Play, Scene, Under, compare};
use tidings_fuzz::said::realm;
use tidings_fuzz::words;

fuzz_target!(|data: &[u8]| compare(data, play));

/// `tight`: rings and answers that fill.
fn station(tight: bool) -> Station {
    let mut limits = StationLimits::default();
    limits.links = 4;
    limits.subscribed_realms = 2;
    limits.topics = 3;
    limits.subscriptions_per_link = 4;
    limits.filters_per_link = 2;
    limits.ring_items = if tight { 8 } else { 1024 };
    limits.publication_bytes = 2048;
    limits.ring_bytes = if tight { 4096 } else { 1 << 20 };
    limits.dedup_entries = 64;
    limits.publish_window = 8;
    limits.publishers = 4;
    limits.answers = if tight { 16 } else { 1024 };
    limits.ones_per_link = if tight { 2 } else { 1024 };
    let config = StationConfig::new(fake_signer(6))
        .allow_local(true)
        .limits(limits);
    let config = config.build().expect("limits of this file");
    let now = Now::new(Instant::ORIGIN, START);
    Station::new(config, Seed::new([3; 32]), entropy(4), now)
}

fn play<'a>(habit: Habit<'a>, data: &[u8], scene: Scene) -> Play<'a> {
    // A station asks nothing.
    let scene = Scene {
        guarded: false,
        answered: false,
        ..scene
    };
    let under = Under::Station(Box::new(station(scene.tight)));
    let mut play = Play::new(under, habit, scene, Bounds::default());
    play.anycast = true;
    for at in 0..LINKS {
        play.connect(at);
    }
    words::steps(data, |kind, bytes, raw| {
        if !words::common(&mut play, kind, bytes, raw) {
            match kind {
                0xf0.. => own(&mut play, bytes),
                // Frames a station sends are as unexpected here as anything.
                _ => words::station(&mut play, kind, bytes),
            }
        }
        play.settle();
    });
    play.wait(2_000_000, 0);
    play.balance();
    play
}

/// The station publishes a fact of its own.
fn own(play: &mut Play<'_>, [_, b, c]: [u8; 3]) {
    let now = play.now();
    let topic = words::TOPICS[usize::from(b % 4)];
    let request = Publish::new(realm(), topic, &c).expect("a number");
    let reached = play.under.station().map(|station| {
        station
            .publish(now, request)
            .map_err(|refused| refused.reason)
    });
    play.say(format_args!("published: {reached:?}"));
}
