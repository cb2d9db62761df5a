//! A station with a node that says anything at all: after a timeout nothing is due, every table keeps its bound, and the trace is the same
//! wherever the bytes are cut.
//!
//! Input: a byte with the number of cuts, the cuts, and steps (`words.rs`).

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::sim::{START, entropy, fake_signer};
use tidings::{Instant, Now, Seed, Station, StationConfig, StationLimits};
use tidings_fuzz::hostile::{Play, Under};
use tidings_fuzz::words;

fuzz_target!(|data: &[u8]| {
    let Some((&count, rest)) = data.split_first() else {
        return;
    };
    let (cuts, steps) = rest.split_at(usize::from(count % 8).min(rest.len()));
    assert_eq!(
        play(&[], steps),
        play(cuts, steps),
        "the cut of the bytes shows"
    );
});

fn station() -> Station {
    let mut limits = StationLimits::default();
    limits.links = 4;
    limits.subscribed_realms = 2;
    limits.topics = 3;
    limits.subscriptions_per_link = 4;
    limits.filters_per_link = 2;
    limits.ring_items = 8;
    limits.publication_bytes = 2048;
    limits.ring_bytes = 4096;
    limits.dedup_entries = 64;
    limits.publish_window = 8;
    limits.publishers = 4;
    limits.answers = 16;
    limits.ones_per_link = 2;
    let config = StationConfig::new(fake_signer(6))
        .allow_local(true)
        .limits(limits);
    let config = config.build().expect("limits of this file");
    let now = Now::new(Instant::ORIGIN, START);
    Station::new(config, Seed::new([3; 32]), entropy(4), now)
}

fn play(cuts: &[u8], data: &[u8]) -> String {
    let mut play = Play::new(Under::Station(Box::new(station())), cuts);
    play.connect();
    words::steps(data, |kind, bytes, raw| {
        if !words::common(&mut play, kind, bytes, raw) {
            // Frames a station sends are as unexpected here as anything.
            words::station(&mut play, kind, bytes);
        }
        play.drain();
    });
    play.wait(2_000_000, 0);
    play.trace()
}
