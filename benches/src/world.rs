//! A node on one link in memory, and publications signed with real keys for it to receive.

use bytes::BytesMut;
use tidings::crypto::{Profile, SecretKey, Signer};
use tidings::pump::{LinkIo, Machine};
use tidings::wire::{Body, Draft, Publication, Via, event_head};
use tidings::{
    Action, Answer, Binding, Client, ClientConfig, ClientLimits, Entropy, Instant, Intake, Item,
    LinkEvent, Now, RealmId, Seed, Sources, Station, StationConfig, StationRef, Subscribe,
    SubscriptionId, Turn, Verification, WallMs,
};

pub(crate) const TOPIC: &str = "bench/acme/app/readings/taken_v1";
/// Publications in one read of a link.
pub(crate) const PER_READ: usize = 32;
/// The wire subscription of the first subscription on a link.
const WIRE_ID: u64 = 1;
const START: WallMs = WallMs::new(1_790_000_000_000);
/// Publishers the events come from in turn.
const PUBLISHERS: u8 = 16;

pub(crate) fn realm() -> RealmId {
    RealmId::of_name("bench")
}

pub(crate) fn key(n: u8) -> SecretKey {
    SecretKey::from_seed([n; 32])
}

/// 256 bytes of payload: one byte string.
pub(crate) fn payload(fill: u8) -> [u8; 256] {
    let mut payload = [fill; 256];
    payload[..2].copy_from_slice(&[0x58, 0xfe]);
    payload
}

/// Both clocks after so many seconds.
pub(crate) fn after(seconds: u64) -> Now {
    let millis = seconds * 1000;
    Now::new(Instant::from_millis(millis), START.saturating_add(millis))
}

/// Signs one publication after another, each publisher's in order.
pub(crate) struct Facts {
    keys: Vec<SecretKey>,
    made: u64,
}

impl Facts {
    pub(crate) fn new() -> Self {
        Self {
            keys: (100..100 + PUBLISHERS).map(key).collect(),
            made: 0,
        }
    }

    pub(crate) fn next(&mut self, now: Now) -> Vec<u8> {
        let turn = self.made / self.keys.len() as u64;
        let signer = &self.keys[self.made as usize % self.keys.len()];
        self.made += 1;
        let payload = payload(self.made as u8);
        let draft = Draft {
            realm: realm(),
            topic: TOPIC,
            publisher: signer.node_id(),
            epoch: Some(START.as_millis() * 1000),
            seq: turn + 1,
            published_at: now.wall,
            ttl_ms: Some(1),
            one: false,
            body: Body::Payload(&payload),
        };
        let mut object = Vec::new();
        draft.sign(signer, &mut object).expect("a key in memory");
        object
    }

    pub(crate) fn many(&mut self, now: Now, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.next(now)).collect()
    }
}

/// The same publication under a signature nobody made: another object with the same hash.
pub(crate) fn resigned(object: &[u8]) -> Vec<u8> {
    let mut object = object.to_vec();
    let end = object.len();
    object[end - 64..].fill(0x55);
    object
}

/// What a reader was handed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) facts: usize,
    pub(crate) notices: usize,
}

/// A client with one subscription on one link that is up.
pub(crate) struct Reader {
    pub(crate) client: Client,
    io: LinkIo,
    subscription: SubscriptionId,
    offset: u64,
    pub(crate) taken: Taken,
}

impl Reader {
    /// With the default bounds.
    pub(crate) fn new(verification: Verification) -> Self {
        Self::with(verification, ClientLimits::default())
    }

    /// With these bounds.
    pub(crate) fn with(verification: Verification, limits: ClientLimits) -> Self {
        let now = after(0);
        let (mut station, ends) = station();
        let config = ClientConfig::new(key(2))
            .allow_local(true)
            .station(Some(station.id()))
            .verification(verification)
            .limits(limits);
        let config = config.build().expect("a valid configuration");
        let mut client = Client::new(config, Seed::new([2; 32]), Entropy::from_os([2; 32]), now);
        let dialled = Some(StationRef(0));
        assert!(matches!(client.poll_action(), Some(Action::Dial { .. })));
        let binding = Binding::Local;
        let up = LinkEvent::Up { dialled, binding };
        let here = client.handle_link(now, up).expect("it asked for it");
        let mut ends = (LinkIo::new(here), ends);
        let request = Subscribe::new(realm(), "bench/acme/**", Sources::Open);
        let subscription = client.subscribe(now, request).expect("room");
        for _ in 0..8 {
            carry(now, (&mut ends.0, &mut client), (&mut ends.1, &mut station));
            carry(now, (&mut ends.1, &mut station), (&mut ends.0, &mut client));
        }
        let status = client.subscription(subscription).expect("it lives");
        assert_eq!(status.carriers, 1, "the station has accepted");
        let mut reader = Self {
            client,
            io: ends.0,
            subscription,
            offset: 0,
            taken: Taken::default(),
        };
        reader.drain(now);
        reader.taken = Taken::default();
        reader
    }

    /// Event frames as one read each brings them.
    pub(crate) fn reads<T: AsRef<[u8]>>(&mut self, objects: &[T]) -> Vec<BytesMut> {
        let reads = objects.chunks(PER_READ);
        let reads = reads.map(|objects| {
            let mut read = Vec::new();
            for object in objects {
                self.offset += 1;
                let object = object.as_ref();
                event_head(&mut read, WIRE_ID, Via::Direct, self.offset, object.len());
                read.extend_from_slice(object);
            }
            BytesMut::from(&read[..])
        });
        reads.collect()
    }

    /// One read, and everything there is to do and to take after it.
    pub(crate) fn read(&mut self, now: Now, read: &mut BytesMut) {
        let intake = self.client.handle_input(now, self.io.link(), read);
        assert!(matches!(intake, Ok(Intake::Open)), "a link that stays up");
        self.drain(now);
    }

    fn drain(&mut self, now: Now) {
        while let Some(action) = self.client.poll_action() {
            if let Action::Ask { ask, .. } = action {
                let told = self.client.answer(now, ask, Answer::Verified(true));
                assert!(told.is_ok(), "an open question");
            }
        }
        while let Some(item) = self.client.poll_item(self.subscription) {
            match item {
                Item::Fact(_) => self.taken.facts += 1,
                _ => self.taken.notices += 1,
            }
        }
    }

    /// Nothing comes until so many seconds after the start; what is due is done when it is.
    pub(crate) fn idle(&mut self, until: u64) {
        let end = after(until);
        while let Some(at) = self.client.poll_timeout().filter(|at| *at <= end.mono) {
            let millis = at.as_micros().div_ceil(1000);
            let now = Now::new(at, START.saturating_add(millis));
            while self.client.handle_timeout(now) == Turn::More {}
            self.drain(now);
        }
    }

    /// Fills its tables to where they stay: as many end as come.
    pub(crate) fn settle(&mut self, facts: &mut Facts) -> u64 {
        const SECONDS: u64 = 340;
        for second in 0..SECONDS {
            let now = after(second);
            let objects = facts.many(now, PER_READ);
            for mut read in self.reads(&objects) {
                self.read(now, &mut read);
            }
        }
        let all = Taken {
            facts: SECONDS as usize * PER_READ,
            notices: 0,
        };
        assert_eq!(self.taken, all);
        self.taken = Taken::default();
        SECONDS
    }
}

fn station() -> (Station, LinkIo) {
    let now = after(0);
    let config = StationConfig::new(key(1)).allow_local(true);
    let config = config.build().expect("a valid configuration");
    let mut station = Station::new(config, Seed::new([1; 32]), Entropy::from_os([1; 32]), now);
    let up = LinkEvent::Up {
        dialled: None,
        binding: Binding::Local,
    };
    let link = station.handle_link(now, up).expect("room");
    (station, LinkIo::new(link))
}

fn carry(now: Now, from: (&mut LinkIo, &mut dyn Machine), to: (&mut LinkIo, &mut dyn Machine)) {
    while from.0.fill(from.1) {
        let mut slices: [&[u8]; 8] = [&[]; 8];
        let count = from.0.chunks(&mut slices);
        let bytes = slices[..count].concat();
        from.0.wrote(from.1, now, bytes.len());
        to.0.input().extend_from_slice(&bytes);
        let intake = to.0.handle_read(to.1, now);
        assert!(matches!(intake, Ok(Intake::Open)));
    }
}

/// A view of an object this crate has signed.
pub(crate) fn view(object: &[u8]) -> Publication<'_> {
    Publication::parse(object, Profile::ED25519).expect("its own object")
}

/// What a signer signs for a publication, in parts.
pub(crate) fn signed_parts<'a>(hash: &'a [u8; 48], tbs: &'a [u8]) -> [&'a [u8]; 4] {
    let label = tidings::wire::object::PUBLICATION_LABEL;
    [label.as_bytes(), &[0], hash, tbs]
}

/// SHA-384 of a signer's key, as its signatures bind to.
pub(crate) fn key_hash(signer: &SecretKey) -> [u8; 48] {
    use sha2::Digest;
    sha2::Sha384::digest(signer.public_key()).into()
}
