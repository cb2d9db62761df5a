//! Goal 7, its second half: the AEAD we ship with, beside ring's.

use std::hint::black_box;

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use ring::aead;
use tidings_benches::harness::{Group, each};
use tidings_benches::line::Line;

const COUNT: usize = 4096;
const LEN: usize = 256;
const KEY: [u8; 32] = [7; 32];
const NONCE: [u8; 12] = [9; 12];
/// As long as what a sealed publication authenticates beside its payload.
const AAD: [u8; 128] = [3; 128];

pub struct Aead {
    ours: chacha20poly1305::ChaCha20Poly1305,
    theirs: aead::LessSafeKey,
    texts: [[u8; LEN]; 2],
}

impl Aead {
    pub fn new() -> Self {
        let key = aead::UnboundKey::new(&aead::CHACHA20_POLY1305, &KEY).expect("32 bytes");
        Self {
            ours: chacha20poly1305::ChaCha20Poly1305::new(&KEY.into()),
            theirs: aead::LessSafeKey::new(key),
            texts: [[5; LEN]; 2],
        }
    }

    fn seal_ours(&mut self) -> [u8; 16] {
        let text = &mut self.texts[0][..];
        let sealed = self
            .ours
            .encrypt_inout_detached(&NONCE.into(), &AAD, text.into());
        sealed.expect("short enough").into()
    }

    fn seal_theirs(&mut self) -> [u8; 16] {
        let nonce = aead::Nonce::assume_unique_for_key(NONCE);
        let text = &mut self.texts[1];
        let sealed = self
            .theirs
            .seal_in_place_separate_tag(nonce, aead::Aad::from(AAD), text);
        let tag = sealed.expect("short enough");
        tag.as_ref().try_into().expect("16 bytes")
    }
}

impl Group for Aead {
    fn series(&self) -> &'static [&'static str] {
        &["chacha20poly1305", "ring"]
    }

    fn round(&mut self) -> Vec<f64> {
        let ours = each(COUNT, || {
            for _ in 0..COUNT {
                black_box(self.seal_ours());
            }
        });
        let theirs = each(COUNT, || {
            for _ in 0..COUNT {
                black_box(self.seal_theirs());
            }
        });
        vec![ours, theirs]
    }

    fn lines(&mut self, least: &[f64]) -> Vec<Line> {
        self.texts = [[5; LEN]; 2];
        assert_eq!(self.seal_ours(), self.seal_theirs());
        assert_eq!(self.texts[0], self.texts[1]);
        let &[ours, theirs] = least else {
            unreachable!("one figure for each sample");
        };
        let what = "bare ChaCha20-Poly1305 of 256 bytes, beside ring's";
        vec![Line::ratio(7, what, [ours, theirs], 2.0)]
    }
}
