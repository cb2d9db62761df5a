//! A node with links to three stations that say anything at all, one of which keeps the rules besides. Whatever they say: what is
//! delivered was signed, wanted and not delivered before; nothing that was taken goes missing in silence; after a timeout nothing is due
//! and nothing wakes without end; what is paused can be drained; every table keeps its bound; and the trace is the same wherever the bytes
//! are cut, each stream's the same for every drain habit.
//!
//! Input: a byte with the number of cuts and whether habits are compared, the cuts, and steps (`words.rs`); kinds a station does not use
//! are the application's calls.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::sim::{entropy, fake_signer};
use tidings::{
    Client, ClientConfig, ClientLimits, Duration, Instant, Mode, Now, OnFull, Publish, Seed,
    Sources, Subscribe,
};
use tidings_fuzz::accounts::Reader;
use tidings_fuzz::hostile::{Habit, LINKS, Play, Under, compare};
use tidings_fuzz::said::{node, realm};
use tidings_fuzz::words;

fuzz_target!(|data: &[u8]| compare(data, play));

/// `tight`: streams that fill, and readers that pause their links.
fn client(tight: bool) -> Client {
    let mut limits = ClientLimits::default();
    // A subscription that ended keeps its place until its reader took `Ended`, and the places say who is offered a fact first.
    limits.subscriptions = if tight { 4 } else { 256 };
    limits.lanes = if tight { 6 } else { 4096 };
    limits.resting_lanes = if tight { 4 } else { 4096 };
    limits.dedup_entries = 64;
    limits.queue_capacity = if tight { 8 } else { 1024 };
    limits.order_max_buffer = 8;
    limits.publish_window = 4;
    limits.tickets = 8;
    limits.publishers = 4;
    let config = ClientConfig::new(fake_signer(5))
        .allow_local(true)
        .station(None)
        .station(None)
        .station(None);
    let config = config.limits(limits).build().expect("limits of this file");
    let now = Now::new(Instant::ORIGIN, tidings::sim::START);
    Client::new(config, Seed::new([3; 32]), entropy(4), now)
}

fn play<'a>(habit: Habit<'a>, data: &[u8], tight: bool) -> Play<'a> {
    let mut play = Play::new(Under::Client(Box::new(client(tight))), habit);
    play.anycast = tight;
    subscribe(&mut play, 0, tight);
    play.wait(0, 0);
    for at in 0..LINKS {
        play.connect(at);
    }
    words::steps(data, |kind, bytes, raw| {
        if !words::common(&mut play, kind, bytes, raw) {
            match kind {
                0xf0.. => local(&mut play, bytes, tight),
                _ => words::station(&mut play, kind, bytes),
            }
        }
        play.settle();
    });
    play.wait(2_000_000, 0);
    play.balance();
    play
}

/// The application calls.
fn local(play: &mut Play<'_>, [a, b, c]: [u8; 3], tight: bool) {
    let now = play.now();
    match a % 4 {
        0 => subscribe(play, b, tight),
        1 => play.unsubscribe(usize::from(b % 4)),
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

fn subscribe(play: &mut Play<'_>, which: u8, tight: bool) {
    let now = play.now();
    let from = (which & 1 == 1).then_some(node(10));
    let sources = from.map_or(Sources::Open, |one| Sources::Nodes(vec![one]));
    let filter = ["a/b", "a/*", "**", "d"][usize::from(which >> 1 & 3)];
    let mode = [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives][usize::from(which >> 3) % 3];
    let full = [OnFull::Lag, OnFull::Disconnect, OnFull::Pause][usize::from(which >> 5) % 3];
    let on_full = if tight { full } else { OnFull::Lag };
    let request = Subscribe::new(realm(), filter, sources)
        .mode(mode)
        .on_full(on_full);
    if let Some(Ok(id)) = play
        .under
        .client()
        .map(|client| client.subscribe(now, request))
    {
        play.reads(id, Reader::new(filter, from, mode));
    }
}
