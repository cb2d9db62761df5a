//! What ends a link.
//!
//! Decides: the fine reasons kept here and the coarse code told to the other side. Leaves to others: closing. Believes: no clock.
//! Bounded by: one `Copy` value.

use core::fmt;

use crate::code::{CloseReason, HandshakeRefusal};
use crate::wire::FrameFault;
use crate::wire::cbor::CborFault;

/// Writes the type: what carries no code of its own stands in one table.
macro_rules! link_error {
    ($($variant:ident, $text:literal, $means:literal, $advice:literal;)+) => {
        /// Why a link cannot go on. It is fatal for that link alone, and the link repeats it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum LinkError {
            $(#[doc = $means] #[doc = ""] #[doc = concat!("Do: ", $advice, ".")] $variant,)+
            /// A body that breaks the CBOR rule: the other implementation is wrong.
            Cbor(CborFault),
            /// This side refused the other: see the refusal.
            Refused(HandshakeRefusal),
            /// The station refused this side: see the refusal.
            RefusedByStation(HandshakeRefusal),
        }

        impl LinkError {
            /// Every one that carries no code of its own.
            pub const PLAIN: &'static [Self] = &[$(Self::$variant,)+];

            /// Its text, as in WIRE.md section 3 where it stands there; `goodbye.detail` carries it.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Cbor(fault) => fault.text(),
                    Self::Refused(refusal) => refusal.text(),
                    Self::RefusedByStation(_) => "refused_by_station",
                }
            }

            /// What it means, and what to do about it.
            pub const fn explain(self) -> [&'static str; 2] {
                match self {
                    $(Self::$variant => [$means, $advice],)+
                    Self::Cbor(_) => [
                        "a body that breaks the CBOR rule of the wire",
                        "report it: the other implementation is wrong",
                    ],
                    Self::Refused(_) => ["this side refused the other", "see the refusal"],
                    Self::RefusedByStation(_) => ["the station refused this side", "see the refusal"],
                }
            }
        }
    };
}

link_error! {
    BadField, "bad_field", "a field of the wrong kind, shape or range", "report it: the other implementation is wrong";
    BadKeyForm, "bad_key_form", "a key that is not canonical or of small order", "have the other side make a new key";
    BadVersion, "bad_version", "a frame of another version than 1", "update the older side";
    FrameTimeout, "frame_timeout", "a frame that was not whole 30 s after its first byte", "dial again";
    FrameTooLarge, "frame_too_large", "a frame longer than this side announced", "report it: the other implementation is wrong";
    HandshakeTimeout, "handshake_timeout", "the handshake took longer than 30 s", "check the address, dial again";
    IdReused, "id_reused", "a subscribe or publish whose id is not above all before it", "report it: the other implementation is wrong";
    KeyMismatch, "key_mismatch", "the key of the handshake is not the one the transport proved: the other side has two identities", "give it one";
    LivenessLost, "liveness_lost", "two probes in a row were not answered, or one after this side slept", "dial again";
    LocalNotAllowed, "local_not_allowed", "a link without channel binding where the configuration allows none", "use TLS, or allow local links";
    MissingField, "missing_field", "a frame without its required keys", "report it: the other implementation is wrong";
    NoFrameType, "no_frame_type", "a frame without a textual `frame_type`", "report it: the other implementation is wrong";
    NotAMap, "not_a_map", "a body that is no map", "report it: the other implementation is wrong";
    OwnLink, "own_link", "both ends have one identity", "check the address, or give each its own key";
    ProfileMismatch, "profile_mismatch", "the other side has another signature profile", "use one on both sides";
    ProofInvalid, "proof_invalid", "a proof that does not verify: someone stands between the two, or the bindings differ", "check the address, and what is on the way";
    SignerFailed, "signer_failed", "this side's signer could not sign", "look after the key's home";
    UnexpectedFrame, "unexpected_frame", "a frame that may not come now", "report it: the other implementation is wrong";
    UnknownField, "unknown_field", "a key the frame does not have", "report it: the other implementation is newer without saying so, or wrong";
    UnknownId, "unknown_id", "an answer or event for an id this side never gave out", "report it: the other implementation is wrong";
    UnsupportedVersion, "unsupported_version", "no common version of the wire", "update the older side";
    WriteStalled, "write_stalled", "bytes waited for three probe intervals and the transport took none of them: the other side does not read", "look after the other side";
    WrongStation, "wrong_station", "the station is not the one that was dialled", "check the address and the expected id";
}

impl LinkError {
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
