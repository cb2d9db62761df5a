//! Goal 5: reading and writing a publication under the strict rule, beside minicbor, which checks less.

use std::hint::black_box;

use minicbor::bytes::ByteSlice;
use minicbor::encode::write::Cursor;
use minicbor::{Decode, Encode, Encoder};
use tidings::crypto::{Profile, Signer};
use tidings::wire::cbor::SliceSink;
use tidings::wire::{Body, Draft};
use tidings::{NodeId, PublicationHash, RealmId};

use crate::harness::{Group, each};
use crate::line::Line;
use crate::world::{TOPIC, after, key, payload, realm, view};

const COUNT: usize = 4096;

/// The object as minicbor's derive reads it: numbers for keys, which is less work than our names.
#[derive(Decode, Encode)]
#[cbor(map)]
struct Outer<'a> {
    #[b(0)]
    key: &'a ByteSlice,
    #[b(1)]
    tbs: &'a ByteSlice,
    #[b(2)]
    signature: &'a ByteSlice,
}

#[derive(Decode, Encode)]
#[cbor(map)]
struct Inner<'a> {
    #[b(0)]
    alg: &'a str,
    #[n(1)]
    seq: u64,
    #[n(2)]
    epoch: Option<u64>,
    #[b(3)]
    realm: &'a ByteSlice,
    #[b(4)]
    topic: &'a str,
    #[n(5)]
    ttl_ms: Option<u32>,
    #[b(6)]
    payload: &'a ByteSlice,
    #[b(7)]
    publisher: &'a ByteSlice,
    #[n(8)]
    published_at: u64,
}

pub(crate) struct Codec {
    payload: [u8; 256],
    realm: RealmId,
    publisher: NodeId,
    object: Vec<u8>,
    derived: Vec<u8>,
}

impl Codec {
    pub(crate) fn new() -> Self {
        let signer = key(3);
        let mut codec = Self {
            payload: payload(7),
            realm: realm(),
            publisher: signer.node_id(),
            object: Vec::new(),
            derived: Vec::new(),
        };
        let mut object = Vec::new();
        let signed = codec.draft().sign(&signer, &mut object);
        signed.expect("a key in memory");
        codec.derived = codec.derived(&signer.public_key(), view(&object).signature);
        codec.object = object;
        codec
    }

    fn draft(&self) -> Draft<'_> {
        Draft {
            realm: self.realm,
            topic: TOPIC,
            publisher: self.publisher,
            epoch: Some(after(0).wall.as_millis() * 1000),
            seq: 1_000_000,
            published_at: after(0).wall,
            ttl_ms: Some(60_000),
            one: false,
            body: Body::Payload(&self.payload),
        }
    }

    /// The same fields under numbers.
    fn derived(&self, key: &[u8; 32], signature: &[u8; 64]) -> Vec<u8> {
        let draft = self.draft();
        let tbs = minicbor::to_vec(Inner {
            alg: Profile::ED25519.alg(),
            seq: draft.seq,
            epoch: draft.epoch,
            realm: self.realm.as_bytes()[..].into(),
            topic: TOPIC,
            ttl_ms: draft.ttl_ms,
            payload: self.payload[..].into(),
            publisher: self.publisher.as_bytes()[..].into(),
            published_at: draft.published_at.as_millis(),
        });
        let tbs = tbs.expect("a vector has room");
        let outer = minicbor::to_vec(Outer {
            key: key[..].into(),
            tbs: tbs[..].into(),
            signature: signature[..].into(),
        });
        outer.expect("a vector has room")
    }

    /// The same bytes as `Draft::encode_tbs`, by minicbor's encoder.
    fn by_minicbor(&self, out: &mut [u8]) -> usize {
        let draft = self.draft();
        let mut encoder = Encoder::new(Cursor::new(out));
        let written = (|| {
            let e = encoder.map(9)?;
            e.str("alg")?.str(Profile::ED25519.alg())?;
            e.str("seq")?.u64(draft.seq)?;
            e.str("epoch")?.u64(draft.epoch.unwrap_or(0))?;
            e.str("realm")?.bytes(self.realm.as_bytes())?;
            e.str("topic")?.str(TOPIC)?;
            e.str("ttl_ms")?.u32(draft.ttl_ms.unwrap_or(0))?;
            e.str("payload")?.bytes(&self.payload[2..])?;
            e.str("publisher")?.bytes(self.publisher.as_bytes())?;
            e.str("published_at")?.u64(draft.published_at.as_millis())?;
            Ok::<_, minicbor::encode::Error<_>>(())
        })();
        written.expect("a buffer with room");
        encoder.writer().position()
    }

    fn by_us(&self, out: &mut [u8]) -> usize {
        let mut sink = SliceSink::new(out);
        self.draft().encode_tbs(Profile::ED25519, &mut sink);
        sink.finish().expect("a buffer with room")
    }
}

impl Group for Codec {
    fn series(&self) -> &'static [&'static str] {
        &[
            "strict decode",
            "minicbor derive",
            "hash",
            "encode",
            "minicbor encode",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        let object = view(&self.object);
        let mut out = [0; 1024];
        let decode = each(COUNT, || {
            for _ in 0..COUNT {
                black_box(view(black_box(&self.object)));
            }
        });
        let derive = each(COUNT, || {
            for _ in 0..COUNT {
                let outer: Outer<'_> =
                    minicbor::decode(black_box(&self.derived)).expect("its own bytes");
                let inner: Inner<'_> = minicbor::decode(outer.tbs).expect("its own bytes");
                black_box((outer.key, outer.signature, inner));
            }
        });
        let hash = each(COUNT / 4, || {
            for _ in 0..COUNT / 4 {
                black_box(PublicationHash::of_tbs(black_box(object.tbs)));
            }
        });
        let encode = each(COUNT, || {
            for _ in 0..COUNT {
                black_box(black_box(&*self).by_us(black_box(&mut out)));
            }
        });
        let minicbor = each(COUNT, || {
            for _ in 0..COUNT {
                black_box(black_box(&*self).by_minicbor(black_box(&mut out)));
            }
        });
        vec![decode, derive, hash, encode, minicbor]
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let &[decode, derive, hash, encode, minicbor] = least else {
            unreachable!("one figure for each sample");
        };
        let (mut ours, mut theirs) = ([0; 1024], [0; 1024]);
        let lengths = [self.by_us(&mut ours), self.by_minicbor(&mut theirs)];
        assert_eq!(lengths[0], lengths[1]);
        assert_eq!(ours, theirs);
        assert_eq!(&ours[..lengths[0]], view(&self.object).tbs);
        vec![
            Line::ratio(
                5,
                "strict decode, beside minicbor's derive",
                [decode, derive],
                1.6,
            ),
            Line::ratio(5, "strict decode, beside the hash", [decode, hash], 0.12),
            Line::ratio(
                5,
                "encode, beside minicbor's encoder",
                [encode, minicbor],
                1.3,
            ),
        ]
    }
}
