//! Why a secure channel did not come about, in words.
//!
//! Decides: which of TLS's many reasons are told apart. Leaves to others: closing the connection.
//! Believes: no clock. Bounded by: one `Copy` value; one counter for each.

use std::fmt;
use std::sync::Arc;

use rustls::{
    AlertDescription, CertificateError, Error, InvalidMessage, OtherError, PeerIncompatible,
};

/// Why there is no secure channel. Its text is for programs and logs, its `Display` for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TlsFault {
    /// The other side's key is no canonical Ed25519 key, or one of small order: it makes a new key.
    BadKeyForm,
    /// The station closed the connection before it said anything: it is full, or turns this address away. Try again later.
    Closed,
    /// It took too long: check the address, try again.
    HandshakeTimeout,
    /// The connection ended before the channel was there: try again.
    Io,
    /// The other side shows a certificate, or nothing, instead of a raw public key: it is no tidings
    /// node.
    NoRawKey,
    /// What came is not TLS: check whether the other side is meant to be reached by `tcp://`.
    NotTls,
    /// The other side did not sign with the key it showed: someone stands between the two, or holds
    /// a key that is not theirs.
    ProofInvalid,
    /// The other side breaks the rules of TLS: report it.
    Protocol,
    /// The other side refused this one and does not say more: see its log.
    Refused,
    /// This side's signer could not sign: look after the key's home.
    SignerFailed,
    /// No version or cipher in common: update the older side.
    UnsupportedVersion,
    /// The other side speaks another protocol than `tidings/1`: check the address and the port.
    WrongAlpn,
    /// The station is not the one that was dialled: check the address and the expected id.
    WrongStation,
}

impl TlsFault {
    /// Every fault, in the order of their names.
    pub const ALL: &'static [Self] = &[
        Self::BadKeyForm,
        Self::Closed,
        Self::HandshakeTimeout,
        Self::Io,
        Self::NoRawKey,
        Self::NotTls,
        Self::ProofInvalid,
        Self::Protocol,
        Self::Refused,
        Self::SignerFailed,
        Self::UnsupportedVersion,
        Self::WrongAlpn,
        Self::WrongStation,
    ];

    /// Its text. Where a [`tidings::LinkError`] says the same of the handshake above, so does this.
    pub const fn text(self) -> &'static str {
        match self {
            Self::BadKeyForm => "bad_key_form",
            Self::Closed => "closed",
            Self::HandshakeTimeout => "handshake_timeout",
            Self::Io => "io",
            Self::NoRawKey => "no_raw_key",
            Self::NotTls => "not_tls",
            Self::ProofInvalid => "proof_invalid",
            Self::Protocol => "protocol_error",
            Self::Refused => "refused",
            Self::SignerFailed => "signer_failed",
            Self::UnsupportedVersion => "unsupported_version",
            Self::WrongAlpn => "wrong_alpn",
            Self::WrongStation => "wrong_station",
        }
    }

    /// The fault with this text.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|fault| fault.text() == text)
    }

    /// What rustls's error means here.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(CertificateError::Other(other)) | Error::Other(other) => {
                other.0.downcast_ref().copied().unwrap_or(Self::Protocol)
            }
            Error::InvalidCertificate(CertificateError::BadSignature) => Self::ProofInvalid,
            Error::InvalidCertificate(_) => Self::BadKeyForm,
            Error::NoCertificatesPresented
            | Error::PeerIncompatible(
                PeerIncompatible::IncorrectCertificateTypeExtension
                | PeerIncompatible::UnsolicitedCertificateTypeExtension
                | PeerIncompatible::NoSignatureSchemesInCommon
                | PeerIncompatible::NoCertificateRequestSignatureSchemesInCommon,
            ) => Self::NoRawKey,
            Error::PeerIncompatible(_) => Self::UnsupportedVersion,
            Error::NoApplicationProtocol
            | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => Self::WrongAlpn,
            Error::AlertReceived(AlertDescription::ProtocolVersion) => Self::UnsupportedVersion,
            Error::AlertReceived(
                AlertDescription::UnsupportedCertificate | AlertDescription::CertificateRequired,
            ) => Self::NoRawKey,
            Error::AlertReceived(_) => Self::Refused,
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType
                | InvalidMessage::UnknownProtocolVersion
                | InvalidMessage::MessageTooLarge
                | InvalidMessage::InvalidEmptyPayload,
            ) => Self::NotTls,
            _ => Self::Protocol,
        }
    }
}

impl From<TlsFault> for Error {
    fn from(fault: TlsFault) -> Self {
        let other = OtherError(Arc::new(fault));
        match fault {
            TlsFault::SignerFailed => Self::Other(other),
            _ => Self::InvalidCertificate(CertificateError::Other(other)),
        }
    }
}

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadKeyForm => "the other side's key is not a well-formed ed25519 key",
            Self::Closed => "the station closed the connection before the handshake",
            Self::HandshakeTimeout => "the tls handshake took too long",
            Self::Io => "the connection ended before the tls handshake was over",
            Self::NoRawKey => "the other side shows no raw public key, so it is no tidings node",
            Self::NotTls => "what answers there does not speak tls",
            Self::ProofInvalid => "the other side does not hold the key it shows",
            Self::Protocol => "the other side breaks the rules of tls",
            Self::Refused => "the other side refused this one",
            Self::SignerFailed => "this side's signer could not sign",
            Self::UnsupportedVersion => "the two sides have no version or cipher of tls in common",
            Self::WrongAlpn => "the other side does not speak tidings/1",
            Self::WrongStation => "the station there has another key than the one that was named",
        })
    }
}

impl core::error::Error for TlsFault {}

/// How often each fault was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsFaults {
    counts: [u64; TlsFault::ALL.len()],
}

impl TlsFaults {
    /// Once more.
    pub fn count(&mut self, fault: TlsFault) {
        if let Some(count) = self.counts.get_mut(fault as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// How often.
    pub fn of(&self, fault: TlsFault) -> u64 {
        self.counts.get(fault as usize).copied().unwrap_or(0)
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Those that were seen, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (TlsFault, u64)> {
        let all = TlsFault::ALL.iter().copied().zip(self.counts);
        all.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_place_its_text_and_its_words() {
        let mut faults = TlsFaults::default();
        for (at, fault) in TlsFault::ALL.iter().enumerate() {
            assert_eq!(*fault as usize, at);
            assert_eq!(TlsFault::from_text(fault.text()), Some(*fault));
            assert!(fault.to_string().len() > 15);
            faults.count(*fault);
        }
        faults.count(TlsFault::Io);
        assert_eq!(faults.of(TlsFault::Io), 2);
        assert_eq!(faults.total(), TlsFault::ALL.len() as u64 + 1);
        assert_eq!(faults.iter().count(), TlsFault::ALL.len());
        assert_eq!(TlsFault::from_text("fine"), None);
    }

    #[test]
    fn a_fault_survives_its_way_through_rustls() {
        for fault in [
            TlsFault::BadKeyForm,
            TlsFault::ProofInvalid,
            TlsFault::SignerFailed,
            TlsFault::WrongStation,
        ] {
            assert_eq!(TlsFault::of(&fault.into()), fault);
        }
    }
}
