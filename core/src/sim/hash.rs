//! A hash of a trace: quick, the same everywhere, and no secret.
//!
//! Decides: how words are mixed. Leaves to others: which words a trace has. Believes: no clock. Bounded by: two words.

/// Two lanes that are mixed with every word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hash([u64; 2]);

impl Default for Hash {
    fn default() -> Self {
        Self([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344])
    }
}

impl Hash {
    pub(super) fn word(&mut self, word: u64) {
        let [a, b] = &mut self.0;
        *a = (*a ^ word)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
        *b = (*b)
            .wrapping_add(word ^ *a)
            .wrapping_mul(0xd6e8_feb8_6659_fd93);
        *b ^= *b >> 32;
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
        self.word(bytes.len() as u64);
    }

    pub(super) fn value(&self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}
