//! A node whose only station says anything at all. Whatever it says: what is delivered was signed, wanted and not delivered before; after
//! a timeout nothing is due; every table keeps its bound; and the trace is the same wherever the bytes are cut.
//!
//! Input: a byte with the number of cuts, the cuts, and steps (`words.rs`); kinds the station does not use are the application's calls.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::crypto::Signer;
use tidings::sim::{entropy, fake_signer};
use tidings::{
    Client, ClientConfig, ClientLimits, Duration, Instant, Mode, Now, OnFull, Publish, Seed,
    Sources, Subscribe,
};
use tidings_fuzz::hostile::{Play, Under, realm};
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

fn client() -> Client {
    let mut limits = ClientLimits::default();
    limits.subscriptions = 4;
    limits.lanes = 6;
    limits.resting_lanes = 4;
    limits.dedup_entries = 64;
    limits.queue_capacity = 8;
    limits.order_max_buffer = 8;
    limits.publish_window = 4;
    limits.tickets = 8;
    limits.publishers = 4;
    let config = ClientConfig::new(fake_signer(5))
        .allow_local(true)
        .station(None);
    let config = config.limits(limits).build().expect("limits of this file");
    let now = Now::new(Instant::ORIGIN, tidings::sim::START);
    Client::new(config, Seed::new([3; 32]), entropy(4), now)
}

fn play(cuts: &[u8], data: &[u8]) -> String {
    let mut play = Play::new(Under::Client(Box::new(client())), cuts);
    subscribe(&mut play, 0);
    play.wait(0, 0);
    play.connect();
    words::steps(data, |kind, bytes, raw| {
        if !words::common(&mut play, kind, bytes, raw) {
            match kind {
                0xf0.. => local(&mut play, bytes),
                _ => words::station(&mut play, kind, bytes),
            }
        }
        play.drain();
    });
    play.wait(2_000_000, 0);
    play.trace()
}

/// The application calls.
fn local(play: &mut Play<'_>, [a, b, c]: [u8; 3]) {
    let now = play.now();
    match a % 4 {
        0 => subscribe(play, b),
        1 => {
            let reader = play.reader(usize::from(b % 4));
            if let (Some(reader), Some(client)) = (reader, play.under.client()) {
                let _known = client.unsubscribe(now, reader);
            }
        }
        _ => {
            let topic = words::TOPICS[usize::from(b % 4)];
            let mut request = Publish::new(realm(), topic, &c).expect("a number");
            if c & 1 == 1 {
                request = request.ttl(Duration::from_secs(u64::from(c)));
            }
            if let Some(client) = play.under.client() {
                let taken = client.publish(now, request).is_ok();
                play.say(format_args!("published: {taken}"));
            }
        }
    }
}

fn subscribe(play: &mut Play<'_>, which: u8) {
    let now = play.now();
    let one = tidings::NodeId::of_key(
        tidings::sim::FAKE_PROFILE.name(),
        &fake_signer(10).public_key(),
    );
    let from = (which & 1 == 1).then_some(one);
    let sources = from.map_or(Sources::Open, |one| Sources::Nodes(vec![one]));
    let filter = ["a/b", "a/*", "**", "d"][usize::from(which >> 1 & 3)];
    let mode = [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives][usize::from(which >> 3) % 3];
    let on_full = [OnFull::Lag, OnFull::Disconnect, OnFull::Pause][usize::from(which >> 5) % 3];
    let request = Subscribe::new(realm(), filter, sources)
        .mode(mode)
        .on_full(on_full);
    if let Some(Ok(id)) = play
        .under
        .client()
        .map(|client| client.subscribe(now, request))
    {
        play.reads(id, from);
    }
}
