//! Goal 6: writing and signing a publication, beside the signature alone.

use std::hint::black_box;

use tidings::crypto::{Profile, Signer};
use tidings::wire::{Body, Draft};

use crate::harness::{Group, each};
use crate::line::Line;
use crate::world::{Key, TOPIC, after, key, key_hash, payload, realm, signed_parts, view};

const COUNT: usize = 256;

pub(crate) struct Publish {
    signer: Key,
    hash: [u8; 48],
    payload: [u8; 256],
    seq: u64,
    last: Vec<u8>,
}

impl Publish {
    pub(crate) fn new() -> Self {
        let signer = key(4);
        Self {
            hash: key_hash(&signer),
            signer,
            payload: payload(9),
            seq: 0,
            last: Vec::with_capacity(1024),
        }
    }

    /// Writes and signs so many publications, one after the other.
    pub(crate) fn sign_next(&mut self, count: usize) {
        let mut draft = Draft {
            realm: realm(),
            topic: TOPIC,
            publisher: self.signer.node_id(),
            epoch: Some(after(0).wall.as_millis() * 1000),
            seq: self.seq,
            published_at: after(0).wall,
            ttl_ms: None,
            one: false,
            body: Body::Payload(&self.payload),
        };
        for _ in 0..count {
            draft.seq += 1;
            self.last.clear();
            let signed = black_box(&draft).sign(&self.signer, &mut self.last);
            signed.expect("a key in memory");
        }
        self.seq = draft.seq;
    }
}

impl Group for Publish {
    fn series(&self) -> &'static [&'static str] {
        &["encode and sign", "sign"]
    }

    fn round(&mut self) -> Vec<f64> {
        let publish = each(COUNT, || self.sign_next(COUNT));
        let tbs = view(&self.last).tbs;
        let sign = each(COUNT, || {
            for _ in 0..COUNT {
                let parts = signed_parts(&self.hash, black_box(tbs));
                black_box(self.signer.sign(&parts)).expect("a key in memory");
            }
        });
        vec![publish, sign]
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        let &[publish, sign] = least else {
            unreachable!("one figure for each sample");
        };
        let opened = tidings::wire::Publication::open(&self.last, Profile::ED25519);
        assert!(opened.is_ok_and(|(publication, _)| publication.seq == self.seq));
        vec![Line::ratio(
            6,
            "encode and sign, beside the signature",
            [publish, sign],
            1.03,
        )]
    }
}
