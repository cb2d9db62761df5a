//! What ends a link.
//!
//! Decides: the fine reasons kept here and the coarse code told to the other side. Leaves to others: closing. Believes: no clock.
//! Bounded by: one `Copy` value.

use core::fmt;

use crate::code::{CloseReason, HandshakeRefusal};
use crate::wire::FrameFault;
use crate::wire::cbor::CborFault;

/// Why a link cannot go on. It is fatal for that link alone, and the link repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LinkError {
    /// A field of the wrong kind, shape or range: the other implementation is wrong.
    BadField,
    /// A key that is not canonical or of small order: the other side makes a new key.
    BadKeyForm,
    /// A frame of another version than 1: update the older side.
    BadVersion,
    /// A body that breaks the CBOR rule: the other implementation is wrong.
    Cbor(CborFault),
    /// A frame that was not whole 30 s after its first byte: dial again.
    FrameTimeout,
    /// A frame longer than this side announced: the other implementation is wrong.
    FrameTooLarge,
    /// The handshake took longer than 30 s: check the address, dial again.
    HandshakeTimeout,
    /// A subscribe or publish whose id is not above all before it: the other implementation is wrong.
    IdReused,
    /// The key of the handshake is not the one the transport proved: the other side has two identities, and should have one.
    KeyMismatch,
    /// Two probes in a row were not answered, or one after this side slept: dial again.
    LivenessLost,
    /// A link without channel binding where the configuration allows none: use TLS, or allow local links.
    LocalNotAllowed,
    /// A frame without its required keys: the other implementation is wrong.
    MissingField,
    /// A frame without a textual `frame_type`: the other implementation is wrong.
    NoFrameType,
    /// A body that is no map: the other implementation is wrong.
    NotAMap,
    /// Both ends have one identity: check the address, or give each its own key.
    OwnLink,
    /// The other side has another signature profile: use one on both sides.
    ProfileMismatch,
    /// A proof that does not verify: someone stands between the two, or the bindings differ.
    ProofInvalid,
    /// This side refused the other: see the refusal.
    Refused(HandshakeRefusal),
    /// The station refused this side: see the refusal.
    RefusedByStation(HandshakeRefusal),
    /// This side's signer could not sign: look after the key's home.
    SignerFailed,
    /// A frame that may not come now: the other implementation is wrong.
    UnexpectedFrame,
    /// A key the frame does not have: the other implementation is newer without saying so, or wrong.
    UnknownField,
    /// An answer or event for an id this side never gave out: the other implementation is wrong.
    UnknownId,
    /// No common version of the wire: update the older side.
    UnsupportedVersion,
    /// Bytes waited for three probe intervals and the transport took none of them: the other side does not read.
    WriteStalled,
    /// The station is not the one that was dialled: check the address and the expected id.
    WrongStation,
}

impl LinkError {
    /// Its text, as in WIRE.md section 3 where it stands there; `goodbye.detail` carries it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::BadField => "bad_field",
            Self::BadKeyForm => "bad_key_form",
            Self::BadVersion => "bad_version",
            Self::Cbor(fault) => fault.text(),
            Self::FrameTimeout => "frame_timeout",
            Self::FrameTooLarge => "frame_too_large",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::IdReused => "id_reused",
            Self::KeyMismatch => "key_mismatch",
            Self::LivenessLost => "liveness_lost",
            Self::LocalNotAllowed => "local_not_allowed",
            Self::MissingField => "missing_field",
            Self::NoFrameType => "no_frame_type",
            Self::NotAMap => "not_a_map",
            Self::OwnLink => "own_link",
            Self::ProfileMismatch => "profile_mismatch",
            Self::ProofInvalid => "proof_invalid",
            Self::Refused(refusal) => refusal.text(),
            Self::RefusedByStation(_) => "refused_by_station",
            Self::SignerFailed => "signer_failed",
            Self::UnexpectedFrame => "unexpected_frame",
            Self::UnknownField => "unknown_field",
            Self::UnknownId => "unknown_id",
            Self::UnsupportedVersion => "unsupported_version",
            Self::WriteStalled => "write_stalled",
            Self::WrongStation => "wrong_station",
        }
    }

    /// The coarse reason of table 10.1.
    pub const fn code(self) -> CloseReason {
        match self {
            Self::HandshakeTimeout => CloseReason::HandshakeTimeout,
            Self::LivenessLost => CloseReason::LivenessLost,
            Self::WriteStalled => CloseReason::SlowReader,
            Self::BadKeyForm
            | Self::KeyMismatch
            | Self::LocalNotAllowed
            | Self::OwnLink
            | Self::ProfileMismatch
            | Self::ProofInvalid
            | Self::Refused(_)
            | Self::RefusedByStation(_)
            | Self::SignerFailed
            | Self::UnsupportedVersion
            | Self::WrongStation => CloseReason::Refused,
            _ => CloseReason::ProtocolError,
        }
    }

    /// What the answerer of a handshake tells the dialler when this ended it (table 10.2).
    pub const fn refusal(self) -> HandshakeRefusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::UnsupportedVersion => HandshakeRefusal::UnsupportedVersion,
            _ => HandshakeRefusal::NotAccepted,
        }
    }
}

impl From<CborFault> for LinkError {
    fn from(fault: CborFault) -> Self {
        Self::Cbor(fault)
    }
}

impl From<FrameFault> for LinkError {
    fn from(_: FrameFault) -> Self {
        Self::FrameTooLarge
    }
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RefusedByStation(refusal) => write!(f, "refused by the station: {refusal}"),
            Self::Refused(refusal) => write!(f, "refused by this side: {refusal}"),
            other => f.write_str(other.text()),
        }
    }
}

impl core::error::Error for LinkError {}
