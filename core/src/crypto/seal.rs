//! The event seal, scheme 2 (WIRE.md section 6.1).
//!
//! Decides: how a payload is made unreadable and read again. Leaves to others: whose key is trusted, which one is due, and keeping subkeys
//! (`subkeys.rs`). Believes: no clock. Bounded by: the caller's buffer; a subkey is 32 bytes, and nothing here allocates.
//!
//! ChaCha20-Poly1305 under a subkey of its own for each publisher, so that members who share a period's key never share a nonce. What a
//! ciphertext stands beside is its associated data: put anywhere else it does not open.

use core::fmt;

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::aead::consts::{U12, U16};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use hkdf::Hkdf;
use sha2::Sha384;
use sha2::block_api::compress256;
use zeroize::Zeroize;

use super::SignError;
use crate::topic::MAX_TOPIC_BYTES;
use crate::wire::cbor::{Sink, SliceSink, Writer};
use crate::{NodeId, RealmId, WallMs};

/// The number this scheme has in `sealed`.
pub const SEAL_SCHEME: u8 = 2;

/// Bytes by which a ciphertext is longer than what it seals.
pub const SEAL_TAG: usize = 16;

/// Derives subkeys.
const KEY_LABEL: &str = "TIDINGS-EVENT-KEY-V1";

/// Begins the associated data.
const AAD_LABEL: &str = "TIDINGS-EVENT-AAD-V1";

/// The longest of the labels that derive subkeys.
const LONGEST_LABEL: usize = KEY_LABEL.len();

/// The longest associated data: array, label, realm, topic, publisher, three numbers, key id.
pub(super) const MAX_AAD: usize =
    1 + 1 + AAD_LABEL.len() + 34 + 3 + MAX_TOPIC_BYTES + 34 + 3 * 9 + 9;

/// The key of one key period of a group. Wiped when dropped; `Debug` shows its id alone.
pub struct PeriodKey {
    id: [u8; 8],
    secret: [u8; 32],
}

impl PeriodKey {
    /// The key that `sealed` names by `id`. The caller wipes its own copy of the secret.
    pub fn new(id: [u8; 8], secret: [u8; 32]) -> Self {
        let secret = zeroize::Zeroizing::new(secret);
        Self {
            id,
            secret: *secret,
        }
    }

    /// What `sealed` names it by.
    pub const fn id(&self) -> &[u8; 8] {
        &self.id
    }

    /// None: the place of one.
    pub(crate) const EMPTY: Self = Self {
        id: [0; 8],
        secret: [0; 32],
    };

    /// Copies it to where it stays: a move would leave a copy behind.
    pub(crate) fn set(&mut self, other: &Self) {
        self.id = other.id;
        self.secret.copy_from_slice(&other.secret);
    }

    /// For whoever writes it down sealed.
    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// Wipes the secret; the id stays.
    pub(crate) fn wipe(&mut self) {
        self.secret.zeroize();
    }

    #[cfg(test)]
    pub(crate) fn is_wiped(&self) -> bool {
        self.secret == [0; 32]
    }

    /// Whether both are one key under one id. Looks at all of it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let pairs = self.secret.iter().zip(&other.secret);
        self.id == other.id && pairs.fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
    }
}

impl Drop for PeriodKey {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl fmt::Debug for PeriodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PeriodKey(")?;
        self.id
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

/// Where a sealed payload belongs: all that its ciphertext is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// In which realm.
    pub realm: RealmId,
    /// On which topic, at most 512 bytes.
    pub topic: &'a str,
    /// Who signs it.
    pub publisher: NodeId,
    /// When the numbering began, in wall microseconds.
    pub epoch: Option<u64>,
    /// Its number.
    pub seq: u64,
    /// When it was signed.
    pub published_at: WallMs,
    /// Of which key period.
    pub key_id: [u8; 8],
}

impl Place<'_> {
    /// Appends the associated data.
    pub fn encode_aad<S: Sink + ?Sized>(&self, out: &mut S) {
        let w = &mut Writer::new(out);
        w.array(8).text(AAD_LABEL).bytes(self.realm.as_bytes());
        w.text(self.topic).bytes(self.publisher.as_bytes());
        w.unsigned(self.epoch_number()).unsigned(self.seq);
        w.unsigned(self.published_at.as_millis());
        w.bytes(&self.key_id);
    }

    /// No epoch is 0, which none has.
    fn epoch_number(&self) -> u64 {
        self.epoch.unwrap_or(0)
    }

    /// Fresh bytes alone would do; with the numbers mixed in, a machine that was put back to an earlier state, and draws the same bytes
    /// again, still makes another nonce for another publication.
    ///
    /// The 56 bytes that are hashed, and SHA-256's padding of as many.
    fn nonce_blocks(&self, entropy: &[u8; 32]) -> [[u8; 64]; 2] {
        let mut blocks = [[0; 64]; 2];
        let [text, end] = &mut blocks;
        text[..32].copy_from_slice(entropy);
        let published_at = self.published_at.as_millis();
        let numbers = [self.epoch_number(), self.seq, published_at];
        for (place, number) in text[32..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        text[56] = 0x80;
        end[56..].copy_from_slice(&(56 * u64::from(u8::BITS)).to_be_bytes());
        blocks
    }
}

/// The first bytes of the hash of these blocks.
fn nonce(blocks: &[[u8; 64]; 2]) -> [u8; 12] {
    let mut state = SHA256_START;
    compress256(&mut state, blocks);
    let mut nonce = [0; 12];
    for (place, word) in nonce.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    nonce
}

/// The words SHA-256 begins with (FIPS 180-4, 5.3.3).
const SHA256_START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// What one publisher's payloads are sealed under in one key period. Wiped when dropped; shows only its name.
pub struct Subkey([u8; 32]);

impl Subkey {
    pub(super) const EMPTY: Self = Self([0; 32]);

    /// Derives it: one HKDF. [`SubkeyCache`](super::SubkeyCache) keeps it, so that this is done once.
    pub fn derive(period: &PeriodKey, publisher: &NodeId) -> Self {
        let mut subkey = Self::EMPTY;
        subkey.set(period, publisher);
        subkey
    }

    /// Derives it where it stands: a move would leave a copy behind.
    pub(super) fn set(&mut self, period: &PeriodKey, publisher: &NodeId) {
        derive(KEY_LABEL, &period.secret, publisher, &mut self.0);
        wipe_stack();
    }

    /// Seals `text` where it stands and answers the nonce and the tag, for `sealed`. `entropy` is 32 bytes just drawn, used for nothing
    /// else; `place.publisher` is whose subkey this is.
    ///
    /// # Errors
    /// [`SealError::TooLong`]; `text` is as it was.
    pub fn seal(
        &self,
        place: &Place<'_>,
        entropy: &[u8; 32],
        text: &mut [u8],
    ) -> Result<([u8; 12], [u8; SEAL_TAG]), SealError> {
        // What is written in small pieces is read in large ones later: not at once, or the processor waits.
        let blocks = place.nonce_blocks(entropy);
        let mut buffer = [0; MAX_AAD];
        let aad = aad(place, &mut buffer).ok_or(SealError::TooLong)?;
        let nonce = nonce(&blocks);
        let sealed = self
            .cipher()
            .encrypt_inout_detached(&nonce.into(), aad, text.into());
        match sealed {
            Ok(tag) => Ok((nonce, tag.into())),
            Err(_) => Err(SealError::TooLong),
        }
    }

    /// Opens `ct`, a ciphertext with its tag behind it, where it stands, and answers the part that is plain now.
    ///
    /// # Errors
    /// [`OpenError::TagInvalid`] unless exactly these bytes were sealed under this subkey for this place; `ct` is as it was.
    pub fn open<'t>(
        &self,
        place: &Place<'_>,
        nonce: &[u8; 12],
        ct: &'t mut [u8],
    ) -> Result<&'t mut [u8], OpenError> {
        let mut buffer = [0; MAX_AAD];
        let aad = aad(place, &mut buffer).ok_or(OpenError::TagInvalid)?;
        open_detached(&self.cipher(), nonce, aad, ct)
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new((&self.0).into())
    }

    pub(super) fn wipe(&mut self) {
        self.0.zeroize();
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for Subkey {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl fmt::Debug for Subkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subkey")
    }
}

/// What seals the payload of a [`Draft`](crate::wire::Draft).
pub struct Seal<'a> {
    /// The id of the period's key.
    pub key_id: [u8; 8],
    /// The publisher's subkey in that period.
    pub subkey: &'a Subkey,
    /// 32 bytes just drawn, used for nothing else.
    pub entropy: [u8; 32],
}

impl fmt::Debug for Seal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

/// Why nothing was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealError {
    /// The signer could not sign: try again, or look after the key's home.
    Signer,
    /// The topic or the payload is longer than a publication holds: send less.
    TooLong,
}

impl From<SignError> for SealError {
    fn from(_: SignError) -> Self {
        Self::Signer
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signer => "the signer could not sign",
            Self::TooLong => "the topic or the payload is too long to be sealed",
        })
    }
}

impl core::error::Error for SealError {}

/// Why a body was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// It is in the clear: read it as it stands.
    NotSealed,
    /// It is sealed under another scheme than this build opens: build with that scheme.
    OtherScheme,
    /// It does not open under this key at this place, or what it holds is no payload: `tag_invalid`.
    TagInvalid,
    /// The buffer is shorter than the ciphertext: bring one of this many bytes.
    TooSmall {
        /// Bytes of the ciphertext.
        needed: usize,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSealed => "the body is not sealed",
            Self::OtherScheme => "the body is sealed under another scheme",
            Self::TagInvalid => "the ciphertext does not open",
            Self::TooSmall { needed } => {
                return write!(f, "the buffer is too small, {needed} bytes are needed");
            }
        })
    }
}

impl core::error::Error for OpenError {}

/// Opens `ct`, a ciphertext with its tag behind it, where it stands.
#[inline]
pub(super) fn open_detached<'t>(
    cipher: &impl AeadInOut<NonceSize = U12, TagSize = U16>,
    nonce: &[u8; 12],
    aad: &[u8],
    ct: &'t mut [u8],
) -> Result<&'t mut [u8], OpenError> {
    let (text, tag) = ct.split_last_chunk_mut().ok_or(OpenError::TagInvalid)?;
    let tag: &[u8; SEAL_TAG] = tag;
    let opened = cipher.decrypt_inout_detached(nonce.into(), aad, (&mut *text).into(), tag.into());
    match opened {
        Ok(()) => Ok(text),
        Err(_) => Err(OpenError::TagInvalid),
    }
}

/// The associated data of a place whose topic is not too long.
fn aad<'b>(place: &Place<'_>, buffer: &'b mut [u8; MAX_AAD]) -> Option<&'b [u8]> {
    if place.topic.len() > MAX_TOPIC_BYTES {
        return None;
    }
    let mut sink = SliceSink::new(buffer);
    place.encode_aad(&mut sink);
    let len = sink.finish().ok()?;
    buffer.get(..len)
}

/// HKDF-SHA-384: the label is the salt, and stands in the info beside the publisher.
#[inline(never)]
fn derive(label: &str, secret: &[u8; 32], publisher: &NodeId, out: &mut [u8; 32]) {
    let mut info = [0; 2 + LONGEST_LABEL + 34];
    let mut sink = SliceSink::new(&mut info);
    Writer::new(&mut sink)
        .array(2)
        .text(label)
        .bytes(publisher.as_bytes());
    let len = sink.finish().expect("a label is short");
    let (mut prk, hkdf) = Hkdf::<Sha384>::extract(Some(label.as_bytes()), secret);
    hkdf.expand(&info[..len], out)
        .expect("32 bytes are less than a block");
    prk.zeroize();
}

/// The same under the label of another scheme, which is no longer.
#[cfg(feature = "aes-gcm")]
pub(super) fn derive_under(
    label: &str,
    period: &PeriodKey,
    publisher: &NodeId,
    out: &mut [u8; 32],
) {
    derive(label, &period.secret, publisher, out);
    wipe_stack();
}

/// Overwrites the stack that deriving used: hash states wipe nothing themselves, and they held the period's key.
#[inline(never)]
fn wipe_stack() {
    [0u64; 512].zeroize();
}

#[cfg(test)]
mod tests;
