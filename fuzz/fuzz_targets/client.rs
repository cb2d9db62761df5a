//! A node with links to three stations that say anything at all, one of which keeps the rules besides. Whatever they say: what is
//! delivered was signed, wanted and not delivered before; nothing that was taken goes missing in silence; after a timeout nothing is due
//! and nothing wakes without end; what is paused can be drained; every table keeps its bound; and the trace is the same wherever the bytes
//! are cut, each stream's the same for every drain habit.
//!
//! In guarded scripts publishers are looked up and groups are joined, and whoever is asked says anything as well: who is not admitted is not
//! delivered, what is sealed is opened under a key that was given and is not over, and nothing under a group is published in the clear.
//!
//! Input: a byte with the number of cuts, whether habits are compared and whether the script is guarded, the cuts, and steps (`words.rs`);
//! kinds a station does not use are the application's calls.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::sim::{entropy, fake_signer};
use tidings::{
    Client, ClientConfig, ClientLimits, Duration, Instant, Mode, Now, OnFull, Publish, Refusal,
    Seed, Sources, Subscribe,
};
use tidings_fuzz::accounts::Reader;
use tidings_fuzz::asks::{Bounds, ORG};
use tidings_fuzz::hostile::{Habit, LINKS, Play, Scene, Under, compare};
use tidings_fuzz::said::{node, realm};
use tidings_fuzz::{keys, words};

fuzz_target!(|data: &[u8]| compare(data, play));

/// Tight: streams that fill, and readers that pause their links.
fn limits(scene: Scene) -> ClientLimits {
    let Scene { tight, guarded, .. } = scene;
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
    // What a peer asked for and was not handed out pauses its link: a lazy driver reads on later, and not before others.
    limits.answers = if tight { 64 } else { 1024 };
    if tight && guarded {
        limits.held_bytes = 4 * MAX_FRAME as usize;
        limits.groups = 2;
        limits.group_periods = 3;
        limits.group_pulls = 3;
        limits.group_publishers = 2;
        let sources = &mut limits.sources;
        sources.max_publishers = 3;
        sources.held_per_key = 2;
        sources.lookups_per_window = 4;
        sources.cache_ttl_ms = 20_000;
        sources.refresh_margin_ms = 2_000;
        sources.refusal_ttl_ms = 1_500;
    }
    limits
}

/// Of tight guarded scripts: some publications fill the memory for those that wait.
const MAX_FRAME: u32 = 1024;

fn client(scene: Scene, limits: ClientLimits) -> Client {
    let mut config = ClientConfig::new(fake_signer(5))
        .allow_local(true)
        .station(None)
        .station(None)
        .station(None);
    if scene.tight && scene.guarded {
        config = config.max_frame(MAX_FRAME);
    }
    let config = config.limits(limits).build().expect("limits of this file");
    let now = Now::new(Instant::ORIGIN, tidings::sim::START);
    Client::new(config, Seed::new([3; 32]), entropy(4), now)
}

fn play<'a>(habit: Habit<'a>, data: &[u8], scene: Scene) -> Play<'a> {
    let limits = limits(scene);
    let asked = Bounds {
        lookups: limits.sources.max_publishers,
        keys: limits.groups * (limits.group_pulls + 1),
        cache_ttl_ms: limits.sources.cache_ttl_ms,
        refusal_ttl_ms: limits.sources.refusal_ttl_ms,
    };
    let under = Under::Client(Box::new(client(scene, limits)));
    let mut play = Play::new(under, habit, scene, asked);
    if scene.guarded {
        play.join(0, None);
        subscribe(&mut play, 0, 8, 0);
    } else {
        subscribe(&mut play, 0, 0, 0);
    }
    play.wait(0, 0);
    for at in 0..LINKS {
        play.connect(at);
    }
    words::steps(data, |kind, bytes, raw| {
        if !words::common(&mut play, kind, bytes, raw) {
            match kind {
                0xf0.. if scene.guarded => guarded(&mut play, kind, bytes),
                0xf0.. => local(&mut play, bytes),
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
fn local(play: &mut Play<'_>, [a, b, c]: [u8; 3]) {
    match a % 4 {
        0 => subscribe(play, b, 0, 0),
        1 => play.unsubscribe(usize::from(b % 4)),
        _ => {
            let topic = words::TOPICS[usize::from(b % 4)];
            let request = lasting(Publish::new(realm(), topic, &c).expect("a number"), c);
            let now = play.now();
            if let Some(client) = play.under.client() {
                let taken = client.publish(now, request).is_ok();
                play.say(format_args!("published: {taken}"));
            }
        }
    }
}

/// The application calls in a guarded script, or answers.
fn guarded(play: &mut Play<'_>, kind: u8, [a, b, c]: [u8; 3]) {
    let groups = keys::PREFIXES.len();
    match kind {
        0xf9 => subscribe(play, b, a, c),
        0xfa => play.unsubscribe(usize::from(b % 8)),
        0xfb => publish(play, a, b, c),
        0xfc | 0xfd => play.answer(a, b, c),
        0xfe => play.join(usize::from(b) % groups, (a & 1 == 1).then_some(c)),
        _ if a % 4 == 0 => play.leave(usize::from(b) % groups),
        _ => play.answer(a, b, c),
    }
}

fn lasting(request: Publish, c: u8) -> Publish {
    match c & 1 {
        1 => request.ttl(Duration::from_secs(u64::from(c))),
        _ => request,
    }
}

/// What is published says how many were before it.
fn publish(play: &mut Play<'_>, a: u8, b: u8, c: u8) {
    let topic = words::GUARDED[usize::from(b % 4)];
    let payload = tidings::wire::to_payload(&play.books.made.len()).expect("a number");
    let group = usize::from(a % 4).checked_sub(1);
    let named = group.and_then(|group| play.asks.group(group));
    let mut request = lasting(Publish::raw(realm(), topic, payload.clone()), c);
    if let Some(id) = named {
        request = request.group(id);
    }
    if b & 32 != 0 {
        request = request.one();
    }
    let (now, covering) = (play.now(), play.books.trust.covering(topic));
    let Some(client) = play.under.client() else {
        return;
    };
    let published = client
        .publish(now, request)
        .map_err(|refused| refused.reason);
    match (&published, named, covering) {
        (Err(reason), None, Some(_)) => assert!(matches!(reason, Refusal::GroupHeld { .. })),
        (Ok(_), None, Some(_)) => panic!("in the clear, where a group was joined"),
        (Ok(_), Some(_), None) => panic!("sealed where no group was joined"),
        _ => {}
    }
    if published.is_ok() {
        let group = group.filter(|_| named.is_some());
        play.books.made.insert(payload, group);
    }
    play.say(format_args!("published: {published:?}"));
}

/// `which`: filter, mode and the first publisher alone; `guard`: of a guarded script, whose facts and which group.
fn subscribe(play: &mut Play<'_>, which: u8, guard: u8, c: u8) {
    let (now, scene) = (play.now(), play.scene);
    let mut from = (which & 1 == 1).then_some(node(10));
    let mut source = None;
    let mut filters = ["a/b", "a/*", "**", "d"];
    let mut group = None;
    if scene.guarded {
        filters = ["a/b", "a/b/**", "**", "a/c"];
        source = match guard % 8 {
            0..=2 => Some(String::new()),
            3 | 4 => Some(ORG.to_owned()),
            5 => Some("other".to_owned()),
            _ => None,
        };
        from = from.filter(|_| source.is_none());
        group = usize::from(guard / 8 % 4).checked_sub(1);
    }
    let sources = match (&source, from) {
        (Some(name), _) if name.is_empty() => Sources::Members,
        (Some(name), _) => Sources::Org(name.clone()),
        (None, Some(one)) => Sources::Nodes(vec![one]),
        (None, None) => Sources::Open,
    };
    let filter = filters[usize::from(which >> 1 & 3)];
    let mode = [Mode::Ordered, Mode::LatestOnly, Mode::AsArrives][usize::from(which >> 3) % 3];
    let full = [OnFull::Lag, OnFull::Disconnect, OnFull::Pause][usize::from(which >> 5) % 3];
    let on_full = if scene.tight { full } else { OnFull::Lag };
    let mut request = Subscribe::new(realm(), filter, sources)
        .mode(mode)
        .on_full(on_full);
    if c & 1 == 1 {
        request = request.committing();
    }
    let named = group.and_then(|group| play.asks.group(group));
    if let Some(id) = named {
        request = request.group(id);
    }
    if let Some(Ok(id)) = play
        .under
        .client()
        .map(|client| client.subscribe(now, request))
    {
        let mut reader = Reader::new(filter, from, mode);
        reader.source = source;
        reader.group = group.filter(|_| named.is_some());
        play.reads(id, reader);
    }
}
