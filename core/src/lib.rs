//! tidings: a sans-IO publish/subscribe core.
//!
//! Publishers sign facts; nodes receive them over several links and relays at once; and each subscriber gets every publication once, in
//! its publisher's order or marked late, or a notice at its place that says what may be missing and why. Nothing unverified, unwanted or
//! unreadable is delivered.
//!
//! There is no socket in here, no clock, no thread and no entropy of its own: bytes and timestamps go in, actions come out. A driver adds
//! the network (`tidings-tokio` is one); this page is what a driver has to know, [`manual::driver`] goes through it step by step, and [`manual::threats`] says
//! what each attacker can and cannot do.
//!
//! # The loop
//!
//! One [`Client`] is a node, one [`Station`] is a relay. Whoever runs one does this, in any order that suits its event loop:
//!
//! ```text
//! flush   while there are bytes and the socket takes them, a bounded number per turn; report handle_written
//! act     while let Some(action) = poll_action()
//! arm     deadline = poll_timeout(); compare it with the clock before sleeping
//! wait    readable | writable | deadline | command
//! now     sample both clocks once
//! input   one of: handle_timeout, handle_input, handle_link, handle_dial_failed, a command
//! ```
//!
//! What each action asks of a driver stands at [`Action`]. Three things are easily got wrong. Every link that came up is reported down exactly
//! once, `LinkEvent::Down { link, reason: CloseReason::Io }` ([`code::CloseReason`]), whoever ended it: after `Close`, or when the transport ended
//! first. An error of `handle_input` needs nothing more: a `Close` for that link follows. A loop that looks at every link and stream in each
//! turn may pass over `Ready`; one that waits for readiness must not.
//!
//! [`pump`] is the part of this that needs no I/O. Here is a whole driver: a station and two nodes, joined by byte buffers.
//!
//! ```
//! use tidings::crypto::SecretKey;
//! use tidings::pump::{LinkIo, Machine};
//! use tidings::{
//!     Action, Binding, Client, ClientConfig, Entropy, Instant, Item, LinkEvent, Now, Publish, RealmId, Seed, Sources, Station,
//!     StationConfig, StationRef, Subscribe, WallMs,
//! };
//!
//! // Both clocks, sampled once per turn. A real driver reads them; this one moves them by hand.
//! let mut now = Now::new(Instant::ORIGIN, WallMs::new(1_790_000_000_000));
//! let key = |n| SecretKey::from_seed([n; 32]); // a real key is random
//! let (seed, entropy) = (|n| Seed::new([n; 32]), |n| Entropy::from_os([n; 32]));
//!
//! let config = StationConfig::new(key(1)).allow_local(true).build()?;
//! let mut station = Station::new(config, seed(1), entropy(1), now);
//! let mut nodes = Vec::new();
//! for n in [2, 3] {
//!     let config = ClientConfig::new(key(n)).allow_local(true).station(Some(station.id())).build()?;
//!     nodes.push(Client::new(config, seed(n), entropy(n), now));
//! }
//!
//! // Each node asks for its station to be dialled; the driver answers with a transport, here a pair of buffers.
//! let mut cables = Vec::new();
//! for node in &mut nodes {
//!     assert!(matches!(node.poll_action(), Some(Action::Dial { station: StationRef(0) })));
//!     let up = |dialled| LinkEvent::Up { dialled, binding: Binding::Local };
//!     let here = node.handle_link(now, up(Some(StationRef(0))))?;
//!     let there = station.handle_link(now, up(None))?;
//!     cables.push((LinkIo::new(here), LinkIo::new(there)));
//! }
//!
//! // Moves what one end has to write to the other end.
//! fn carry(now: Now, from: (&mut LinkIo, &mut dyn Machine), to: (&mut LinkIo, &mut dyn Machine)) {
//!     while from.0.fill(from.1) {
//!         let mut slices: [&[u8]; 8] = [&[]; 8];
//!         let count = from.0.chunks(&mut slices);
//!         let bytes = slices[..count].concat();
//!         from.0.wrote(from.1, now, bytes.len());
//!         to.0.input().extend_from_slice(&bytes);
//!         let _intake = to.0.handle_read(to.1, now).expect("a peer that keeps the rules");
//!     }
//! }
//!
//! let realm = RealmId::of_name("io.example");
//! let topic = "io.example/acme/shop/orders/placed_v1";
//! let stream = nodes[0].subscribe(now, Subscribe::new(realm, topic, Sources::Open))?;
//! for round in 0..20 {
//!     now = Now::new(Instant::from_millis(round * 20), now.wall.saturating_add(20));
//!     for (node, (here, there)) in nodes.iter_mut().zip(&mut cables) {
//!         carry(now, (here, node), (there, &mut station));
//!         carry(now, (there, &mut station), (here, node));
//!     }
//!     if round == 10 {
//!         nodes[1].publish(now, Publish::new(realm, topic, "a kettle")?)?;
//!     }
//!     // What is due, in this loop at every turn; a real one sleeps until `poll_timeout`.
//!     while nodes.iter_mut().any(|node| node.handle_timeout(now) == tidings::Turn::More) {}
//! }
//!
//! let Some(Item::Fact(delivery)) = nodes[0].poll_item(stream) else { panic!("the fact") };
//! assert_eq!(delivery.decode::<&str>()?, "a kettle");
//! assert_eq!(delivery.publisher(), nodes[1].id());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Four kinds of methods
//!
//! | kind | names | takes time | may refuse |
//! |---|---|---|---|
//! | getters | `status`, `memory`, `poll_timeout` | no | no |
//! | inputs | `handle_…` | [`Now`], or the one clock it believes | by [`Intake::Paused`], [`Intake::Later`], or with the error that ends a link |
//! | commands | `subscribe`, `publish`, `answer`, … | as above | yes: the argument comes back, and nothing was changed |
//! | outputs | `poll_…` | never, and they decide nothing | `None` |
//!
//! So outputs may be polled early, late or one at a time: the trace is the same. Three of them exist on the large machines. `poll_action`
//! hands out what is not data; [`Action::Ready`] names a link or a stream that has something, once, and again only after it was drained.
//! `poll_item` hands out the next item of one stream, when its reader has room. `poll_transmit` hands out bytes for one link.
//!
//! # Two clocks
//!
//! [`Now`] holds both. `mono` drives timers and never goes back (one that does is clamped). `wall` drives the life of publications and the
//! times people read; it may jump. After `handle_timeout(t)` and a drain, `poll_timeout()` is `None` or later than `t`.
//!
//! # Pressure
//!
//! [`Intake::Paused`] stops one link before anything is consumed, for a stream that asked for it ([`OnFull::Pause`]) or a peer that does not
//! read the answers it asked for. Draining what an earlier `Ready` named cures it; then the same buffer is handed in again. A slow reader
//! with any other policy never stops or slows anybody: its oldest items collapse into one [`Notice::Lagged`] that counts them.
//!
//! [`Intake::Later`] stops one link as well: a frame longer than 64 KiB has begun on it, and the frames of other links take all of
//! [`StationLimits::read_bytes`]. Its turn comes by itself; hand the same buffer in again after the deadline reported now.
//!
//! # The machines
//!
//! | machine | what it does | needs |
//! |---|---|---|
//! | [`Client`] | a node: a pool of links, subscriptions, publications | `alloc` |
//! | [`Station`] | a relay: who is subscribed, one ring per topic, each reader at its own pace | `alloc` |
//! | [`link::Link`] | the handshake of one link, and whether its frames come whole in time | nothing |
//! | [`inbound::dedup::Dedup`] | which publications were here before | slots |
//! | [`inbound::sources::Sources`] | whether a verified publisher may speak, and what is asked to find out | slots |
//! | [`inbound::lane::Lane`] | one publisher's facts in order, and what is missing | slots |
//! | [`inbound::stream::Stream`] | one reader's queue, and what it was too slow for | slots |
//! | [`ring::Ring`], [`table::Table`] | what the others stand on | slots |
//! | [`keyring::Keyring`] | the keys of one sealed group: which is due, asked for, over | slots |
//! | [`crypto::SubkeyCache`] | subkeys of sealed events, each derived once | slots |
//! | [`wire`], [`crypto`], [`topic`] | every byte that travels; keys, signatures and seals; names | nothing |
//!
//! The small ones own a storage of slots, an array as well as a box, and are blind to the payload. Each says in four lines what it decides,
//! what it leaves to others, which clock it believes and what bounds it.
//!
//! # Bounds
//!
//! Every table, queue and buffer has a capacity in [`ClientLimits`] or [`StationLimits`], a visible and counted outcome at it, and a line in
//! `memory()`.
//!
//! # Features
//!
//! `std` (default) implies `alloc`; `alloc` adds the large machines and growth; `fast` adds tables for faster signing; `sim` adds a simulated network
//! and a fake signature profile for tests; `aes-gcm` opens what is sealed under scheme 1. Features add, and never change what is there.
//!
//! # Build settings that matter
//!
//! Verification is nearly all of the cost. On x86-64 hosts with AVX-512 IFMA, building a binary with
//! `-C target-feature=+avx512ifma,+avx512vl` makes it 1.6 times faster. `codegen-units = 1` and thin LTO are worth having, too. Sealed
//! events open about three times faster with `--cfg poly1305_backend="soft"`, unless the whole binary is built for AVX2: found only when
//! it runs, that backend is not inlined.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "alloc")]
mod action;
#[cfg(feature = "alloc")]
mod arena;
#[cfg(feature = "alloc")]
mod client;
pub mod code;
#[cfg(feature = "alloc")]
mod counters;
pub mod crypto;
#[cfg(feature = "alloc")]
mod delivery;
#[cfg(feature = "alloc")]
pub mod diagnostic;
mod error;
#[cfg(feature = "alloc")]
mod filters;
mod id;
pub mod inbound;
pub mod keyring;
#[cfg(feature = "alloc")]
mod limits;
pub mod link;
#[cfg(all(doc, feature = "alloc"))]
pub mod manual;
#[cfg(feature = "alloc")]
mod notice;
mod numbers;
#[cfg(feature = "alloc")]
mod publishers;
#[cfg(feature = "alloc")]
pub mod pump;
#[cfg(feature = "alloc")]
mod refusal;
pub mod ring;
mod rng;
#[cfg(feature = "alloc")]
mod side;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(feature = "alloc")]
mod station;
mod storage;
pub mod table;
#[cfg(feature = "alloc")]
mod tags;
mod time;
pub mod topic;
pub mod wire;

#[cfg(feature = "alloc")]
pub use action::{
    Action, Answer, Intake, KeyPeriods, KeyQuestion, LinkEvent, Outcome, Question, Ready, Source,
    SourceQuestion, StationRef, Transmit, Turn, VerifyJob,
};
#[cfg(feature = "alloc")]
pub use client::{
    Client, ClientConfig, ClientStatus, Group, GroupStatus, LinkState, LinkStatus, Publish,
    RefusedInClear, SourceStatus, Sources, Subscribe, SubscriptionStatus, Token, ValidClientConfig,
    Verification,
};
#[cfg(feature = "alloc")]
pub use counters::FaultCounts;
#[cfg(feature = "alloc")]
pub use delivery::Delivery;
pub use error::LinkError;
pub use id::{
    AskId, BadHex, GroupId, KeyId, LinkId, NodeId, PublicationHash, PublisherId, RealmId, RunId,
    SubscriptionId, Ticket,
};
pub use inbound::lane::Mode;
pub use inbound::stream::OnFull;
#[cfg(feature = "alloc")]
pub use limits::{ClientLimits, MemoryLine, MemoryReport, StationLimits};
pub use link::Binding;
#[cfg(feature = "alloc")]
pub use notice::{Item, Notice, Numbering};
#[cfg(feature = "alloc")]
pub use refusal::{ConfigError, Misuse, Refusal, Refused};
pub use rng::{Entropy, Rng, Seed};
#[cfg(feature = "alloc")]
pub use station::{
    RingWarning, Station, StationConfig, StationLink, StationStatus, ValidStationConfig,
};
pub use time::{Duration, Instant, Now, WallMs, soonest};
