//! Goals 6 and 7: sealing and opening beside the bare AEAD, and publishing sealed beside what it cannot do without.

use std::hint::black_box;

use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use tidings::crypto::{PeriodKey, Profile, Seal, Signer, Subkey, SubkeyCache, SubkeySlot};
use tidings::wire::cbor::SliceSink;
use tidings::wire::{Body, Draft, Publication};
use tidings::{NodeId, PublicationHash, Seed};

use crate::harness::{Group, each};
use crate::line::Line;
use crate::world::{Key, TOPIC, after, key, key_hash, payload, realm, signed_parts, view};

/// Seals of one sample, and sealed publications of one.
const SEALS: usize = 2048;
const PUBLISHED: usize = 128;
const KIB: usize = 1024;
const TAG: usize = 16;

/// See the module's text.
pub(crate) struct Sealing {
    signer: Key,
    hash: [u8; 48],
    payload: [u8; 256],
    period: PeriodKey,
    subkey: Subkey,
    bare: ChaCha20Poly1305,
    last: Vec<u8>,
}

impl Sealing {
    pub(crate) fn new() -> Self {
        let signer = key(6);
        let period = PeriodKey::new(*b"period 1", [3; 32]);
        Self {
            hash: key_hash(&signer),
            subkey: Subkey::derive(&period, &signer.node_id()),
            signer,
            payload: payload(9),
            period,
            bare: ChaCha20Poly1305::new(&[5; 32].into()),
            last: Vec::with_capacity(1024),
        }
    }

    fn draft(&self) -> Draft<'_> {
        Draft {
            realm: realm(),
            topic: TOPIC,
            publisher: self.signer.node_id(),
            epoch: Some(after(0).wall.as_millis() * 1000),
            seq: 1,
            published_at: after(0).wall,
            ttl_ms: None,
            one: false,
            body: Body::Payload(&self.payload),
        }
    }

    fn aad(&self) -> Vec<u8> {
        let mut buffer = [0; 1024];
        let mut sink = SliceSink::new(&mut buffer);
        self.draft().place(*self.period.id()).encode_aad(&mut sink);
        let written = sink.finish().expect("room");
        buffer[..written].to_vec()
    }

    /// Ours and the bare AEAD, sealing and opening.
    fn seals(&self) -> [f64; 4] {
        let draft = self.draft();
        let place = draft.place(*self.period.id());
        let aad = self.aad();
        let mut text = [7; KIB];
        let mut entropy = [0; 32];
        let seal = each(SEALS, || {
            for n in 0..SEALS {
                entropy[0] = n as u8;
                black_box(self.subkey.seal(&place, &entropy, &mut text)).expect("short enough");
            }
        });
        let bare_seal = each(SEALS, || {
            for n in 0..SEALS {
                let nonce = [n as u8; 12];
                let sealed =
                    self.bare
                        .encrypt_inout_detached(&nonce.into(), &aad, (&mut text[..]).into());
                black_box(sealed).expect("short enough");
            }
        });
        let mut sealed = [7; KIB + TAG];
        let (nonce, tag) = self
            .subkey
            .seal(&place, &entropy, &mut sealed[..KIB])
            .expect("short enough");
        sealed[KIB..].copy_from_slice(&tag);
        let mut buffer = [0; KIB + TAG];
        let open = each(SEALS, || {
            for _ in 0..SEALS {
                buffer.copy_from_slice(black_box(&sealed));
                let opened = self.subkey.open(&place, &nonce, &mut buffer);
                assert!(opened.is_ok());
            }
        });
        assert_eq!(buffer[..KIB], [7; KIB]);
        let mut other = [7; KIB];
        let nonce = [9; 12].into();
        let tag = self
            .bare
            .encrypt_inout_detached(&nonce, &aad, (&mut other[..]).into());
        let tag = tag.expect("short enough");
        let bare_open = each(SEALS, || {
            for _ in 0..SEALS {
                buffer[..KIB].copy_from_slice(black_box(&other));
                let text = (&mut buffer[..KIB]).into();
                let opened = self.bare.decrypt_inout_detached(&nonce, &aad, text, &tag);
                assert!(opened.is_ok());
            }
        });
        [seal, bare_seal, open, bare_open]
    }

    /// A sealed publication, and its signature, its hash and the AEAD one after the other.
    fn published(&mut self) -> [f64; 2] {
        let mut out = std::mem::take(&mut self.last);
        let mut draft = self.draft();
        let whole = each(PUBLISHED, || {
            for n in 0..PUBLISHED {
                draft.seq = 1 + n as u64;
                out.clear();
                let seal = Seal {
                    key_id: *self.period.id(),
                    subkey: &self.subkey,
                    entropy: [n as u8; 32],
                };
                let signed = draft.sign_sealed(&self.signer, &seal, &mut out);
                signed.expect("a key in memory");
            }
        });
        let (aad, tbs) = (self.aad(), view(&out).tbs);
        let mut text = self.payload;
        let parts = each(PUBLISHED, || {
            for n in 0..PUBLISHED {
                let nonce = [n as u8; 12];
                let text = (&mut text[..]).into();
                let sealed = self.bare.encrypt_inout_detached(&nonce.into(), &aad, text);
                black_box(sealed).expect("short enough");
                black_box(PublicationHash::of_tbs(black_box(tbs)));
                let parts = signed_parts(&self.hash, tbs);
                black_box(self.signer.sign(&parts)).expect("a key in memory");
            }
        });
        self.last = out;
        [whole, parts]
    }
}

impl Group for Sealing {
    fn series(&self) -> &'static [&'static str] {
        &[
            "seal 1 KiB",
            "bare seal 1 KiB",
            "open 1 KiB",
            "bare open 1 KiB",
            "publish sealed",
            "its parts",
        ]
    }

    fn round(&mut self) -> Vec<f64> {
        let [seal, bare_seal, open, bare_open] = self.seals();
        let [whole, parts] = self.published();
        vec![seal, bare_seal, open, bare_open, whole, parts]
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let &[seal, bare_seal, open, bare_open, whole, parts] = least else {
            unreachable!("one figure for each sample");
        };
        let opened = Publication::open(&self.last, Profile::ED25519);
        assert!(opened.is_ok_and(|(publication, _)| publication.seq == PUBLISHED as u64));
        vec![
            Line::ratio(
                6,
                "encode, seal and sign, beside signature, hash and AEAD",
                [whole, parts],
                1.05,
            ),
            Line::ratio(
                7,
                "seal 1 KiB, beside the bare AEAD",
                [seal, bare_seal],
                1.1,
            ),
            Line::ratio(
                7,
                "open 1 KiB, beside the bare AEAD",
                [open, bare_open],
                1.1,
            ),
        ]
    }
}

/// HKDF calls of a cache of subkeys, and its bytes.
pub(crate) fn kept() -> Vec<Line> {
    const PUBLISHERS: u8 = 20;
    let periods = [*b"period 1", *b"period 2", *b"period 3"];
    let mut slots = Vec::new();
    slots.resize_with(64, || SubkeySlot::EMPTY);
    let mut cache = SubkeyCache::new(slots, &mut Seed::new([1; 32]).fork("subkeys"));
    for _ in 0..50 {
        for (n, id) in periods.into_iter().enumerate() {
            let period = PeriodKey::new(id, [n as u8; 32]);
            for publisher in 0..PUBLISHERS {
                black_box(cache.subkey(&period, &NodeId::new([publisher; 32])));
            }
        }
    }
    let pairs = periods.len() as f64 * f64::from(PUBLISHERS);
    let each = cache.derivations() as f64 / pairs;
    let bytes = size_of::<SubkeySlot>() as f64;
    vec![
        Line::count(
            7,
            "HKDF calls for each publisher and key period",
            (each, "calls"),
            1.0,
        ),
        Line::count(10, "bytes for each subkey that is kept", (bytes, "B"), 64.0),
    ]
}
