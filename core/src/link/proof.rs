//! What the two proofs of a handshake sign (WIRE.md section 8).
//!
//! Decides: the layout. Leaves to others: when it is signed. Believes: no clock. Bounded by: fixed sizes.

use sha2::{Digest, Sha384};

use crate::NodeId;
use crate::crypto::{PublicKey, SEPARATOR, SignError, Signer};
use crate::wire::cbor::Sink;
use crate::wire::object::{CONNECT_PROOF_LABEL, HELLO_PROOF_LABEL};
use crate::wire::{Frame, Role};

/// SHA-384 of a frame's body as sent.
pub(super) type BodyHash = [u8; 48];

pub(super) fn hash_body(body: &[u8]) -> BodyHash {
    Sha384::digest(body).into()
}

pub(super) fn hash_frame(frame: &Frame<'_>) -> BodyHash {
    struct Hashing(Sha384);
    impl Sink for Hashing {
        fn put(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
    }
    let mut sink = Hashing(Sha384::new());
    frame.encode(&mut sink);
    sink.0.finalize().into()
}

/// One side as the proofs name it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) id: NodeId,
    pub(super) capabilities: u64,
    pub(super) max_frame: u32,
    pub(super) nonce: [u8; 32],
}

/// Everything both proofs sign but the last frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transcript {
    pub(super) binding: [u8; 32],
    pub(super) opener: BodyHash,
    pub(super) challenge: BodyHash,
    pub(super) role: Role,
    pub(super) dialler: Side,
    pub(super) answerer: Side,
}

impl Transcript {
    fn role(&self) -> [u8; 1] {
        [u8::from(self.role == Role::Station)]
    }

    /// Hands the connect proof's parts to `with`.
    fn connect<R>(&self, with: impl FnOnce(&[&[u8]]) -> R) -> R {
        with(&[
            CONNECT_PROOF_LABEL.as_bytes(),
            SEPARATOR,
            &self.binding,
            &self.opener,
            &self.challenge,
            self.dialler.id.as_bytes(),
            self.answerer.id.as_bytes(),
            &self.role(),
            &self.dialler.capabilities.to_be_bytes(),
            &self.dialler.max_frame.to_be_bytes(),
            &self.dialler.nonce,
            &self.answerer.nonce,
        ])
    }

    /// Hands the hello proof's parts to `with`.
    fn hello<R>(&self, connect: &BodyHash, with: impl FnOnce(&[&[u8]]) -> R) -> R {
        with(&[
            HELLO_PROOF_LABEL.as_bytes(),
            SEPARATOR,
            &self.binding,
            &self.opener,
            &self.challenge,
            connect,
            self.answerer.id.as_bytes(),
            self.dialler.id.as_bytes(),
            &self.role(),
            &self.answerer.capabilities.to_be_bytes(),
            &self.answerer.max_frame.to_be_bytes(),
            &self.answerer.nonce,
            &self.dialler.nonce,
        ])
    }

    pub(super) fn sign_connect(&self, signer: &dyn Signer) -> Result<[u8; 64], SignError> {
        self.connect(|parts| signer.sign(parts))
    }

    pub(super) fn sign_hello(
        &self,
        connect: &BodyHash,
        signer: &dyn Signer,
    ) -> Result<[u8; 64], SignError> {
        self.hello(connect, |parts| signer.sign(parts))
    }

    pub(super) fn verify_connect(&self, key: &PublicKey, proof: &[u8; 64]) -> bool {
        self.connect(|parts| key.verify_parts(parts, proof))
    }

    pub(super) fn verify_hello(
        &self,
        connect: &BodyHash,
        key: &PublicKey,
        proof: &[u8; 64],
    ) -> bool {
        self.hello(connect, |parts| key.verify_parts(parts, proof))
    }
}
