//! No state lacks a deadline: a station that stops in the middle of anything is left after a while.

mod common;

use bytes::BytesMut;
use tidings::code::CloseReason;
use tidings::crypto::Signer;
use tidings::link::{Link, LinkSettings, Step};
use tidings::pump::LinkIo;
use tidings::sim::{START, entropy, fake_signer};
use tidings::wire::{Role, Split, next_frame};
use tidings::{
    Action, Binding, Client, ClientConfig, Duration, Instant, Intake, LinkEvent, LinkId, Now,
    OnFull, RealmId, Seed, Sources, StationRef, Subscribe, Turn,
};

/// A station made by hand: it does what it is told and nothing more.
struct Mute {
    client: Client,
    now: Now,
    io: LinkIo,
    there: Link,
    input: BytesMut,
}

impl Mute {
    fn new() -> Self {
        let now = Now::new(Instant::ORIGIN, START);
        let config = ClientConfig::new(fake_signer(1))
            .allow_local(true)
            .station(None);
        let config = config.build().expect("valid");
        let mut client = Client::new(config, Seed::new([1; 32]), entropy(1), now);
        assert!(matches!(
            client.poll_action(),
            Some(Action::Dial {
                station: StationRef(0)
            })
        ));
        let up = LinkEvent::Up {
            dialled: Some(StationRef(0)),
            binding: Binding::Local,
        };
        let link = client.handle_link(now, up).expect("dialled");
        let signer = fake_signer(2);
        let settings = LinkSettings {
            allow_local: true,
            ..LinkSettings::new(signer.profile(), signer.public_key(), Role::Station)
        };
        let there = Link::accept(now.mono, settings, Binding::Local, [7; 32]).expect("local");
        Self {
            client,
            now,
            io: LinkIo::new(link),
            there,
            input: BytesMut::new(),
        }
    }

    fn link(&self) -> LinkId {
        self.io.link()
    }

    fn wait(&mut self, time: Duration) {
        let mono = self.now.mono.saturating_add(time);
        let wall = self.now.wall.saturating_add(time.as_millis() as u64);
        self.now = Now::new(mono, wall);
        while self.client.handle_timeout(self.now) == Turn::More {}
        assert!(
            self.client
                .poll_timeout()
                .is_none_or(|at| at > self.now.mono)
        );
    }

    /// Moves bytes both ways, answering the handshake and nothing else.
    fn shake_hands(&mut self) {
        for _ in 0..4 {
            self.read_client();
            let mut out = Vec::new();
            while self.there.poll_transmit(&mut out) {}
            self.io.input().extend_from_slice(&out);
            let _intake = self
                .io
                .handle_read(&mut self.client, self.now)
                .expect("well formed");
        }
        assert!(self.there.is_up());
    }

    fn read_client(&mut self) {
        while self.io.fill(&mut self.client) {
            let mut slices: [&[u8]; 8] = [&[]; 8];
            let count = self.io.chunks(&mut slices);
            let bytes = slices[..count].concat();
            self.io.wrote(&mut self.client, self.now, bytes.len());
            self.input.extend_from_slice(&bytes);
        }
        while let Ok(Split::Frame { body, taken }) = next_frame(&self.input, 4096) {
            if !self.there.is_up() {
                let signer = fake_signer(2);
                let step = self
                    .there
                    .handle_frame(self.now, body, &signer)
                    .expect("a good client");
                if let Step::Verified(_) = step {
                    self.there.admit(&signer).expect("waits for it");
                }
            }
            let _frame = self.input.split_to(taken);
        }
    }

    /// The reason of the `Close` of its link, if there was one.
    fn closed(&mut self) -> Option<CloseReason> {
        let link = self.link();
        std::iter::from_fn(|| self.client.poll_action()).find_map(|action| match action {
            Action::Close {
                link: closed,
                reason,
            } if closed == link => Some(reason),
            _ => None,
        })
    }
}

#[test]
fn a_handshake_that_is_not_over_in_thirty_seconds_ends_the_link() {
    let mut mute = Mute::new();
    mute.read_client();
    mute.wait(Duration::from_millis(29_999));
    assert_eq!(mute.closed(), None);
    mute.wait(Duration::from_millis(1));
    assert_eq!(mute.closed(), Some(CloseReason::HandshakeTimeout));
}

#[test]
fn a_subscription_that_is_not_answered_in_thirty_seconds_ends_the_link() {
    let mut mute = Mute::new();
    mute.shake_hands();
    let realm = RealmId::of_name("weather");
    let request = Subscribe::new(realm, "weather/a", Sources::Open);
    mute.client
        .subscribe(mute.now, request)
        .expect("accepted here");
    mute.read_client();
    mute.wait(Duration::from_millis(29_999));
    assert_eq!(mute.closed(), None);
    mute.wait(Duration::from_millis(1));
    assert_eq!(mute.closed(), Some(CloseReason::LivenessLost));
}

/// An answer may wait behind what this node does not read: that time is not the station's, even when it is over at the deadline.
#[test]
fn the_thirty_seconds_of_a_subscription_stand_still_while_its_link_is_not_read() {
    let (publisher, now) = (common::signer(1), common::at(0));
    let config = ClientConfig::new(common::signer(2)).station(None);
    let mut client = common::client(config);
    let far = &mut common::Far::answer(&mut client, now, common::signer(101), StationRef(0));
    let request = Subscribe::new(common::realm(), common::TOPIC, Sources::Open);
    let request = request.on_full(OnFull::Pause).queue_capacity(1);
    let stream = client.subscribe(now, request).expect("accepted here");
    far.accept(&mut client, now, 1);
    let fact = common::Fact::numbered(1).sign(&publisher);
    let taken = far.event(&mut client, now, 1, 1, &fact);
    assert_eq!(taken, Ok(Intake::Paused));
    let now = common::at(1000);
    let request = Subscribe::new(common::realm(), "weather/a", Sources::Open);
    client.subscribe(now, request).expect("accepted here");
    common::move_to(&mut client, common::at(21_000));
    assert_eq!(common::items(&mut client, stream).len(), 1);
    let taken = far.append(&mut client, common::at(21_000), &[]);
    assert_eq!(taken, Ok(Intake::Open));
    common::move_to(&mut client, common::at(50_999));
    assert_eq!(common::closed(&mut client), []);
    common::move_to(&mut client, common::at(51_000));
    let ended = (far.id, CloseReason::LivenessLost);
    assert_eq!(common::closed(&mut client), [ended]);
}

#[test]
fn a_station_that_went_is_dialled_again_with_growing_waits_up_to_thirty_seconds() {
    let mut mute = Mute::new();
    let down = LinkEvent::Down {
        link: mute.link(),
        reason: CloseReason::Io,
    };
    mute.client.handle_link(mute.now, down).expect("it lives");
    let mut waits = Vec::new();
    for _ in 0..40 {
        let began = mute.now.mono;
        let mut dials = 0;
        // Between two dials what was counted of the failures is reported.
        while dials == 0 {
            let at = mute.client.poll_timeout().expect("it will be dialled");
            mute.wait(at.saturating_since(mute.now.mono));
            dials = std::iter::from_fn(|| mute.client.poll_action())
                .filter(|action| matches!(action, Action::Dial { .. }))
                .count();
        }
        assert_eq!(dials, 1);
        waits.push(mute.now.mono.saturating_since(began));
        mute.client
            .handle_dial_failed(mute.now, StationRef(0), "refused")
            .expect("it was dialled");
    }
    let (shortest, longest) = (Duration::from_millis(250), Duration::from_secs(30));
    assert!(
        waits.iter().all(|wait| (shortest..=longest).contains(wait)),
        "{waits:?}"
    );
    assert!(
        waits.iter().any(|wait| *wait > Duration::from_secs(5)),
        "{waits:?}"
    );
}
