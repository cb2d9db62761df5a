//! Whose raw key may be at the other end.
//!
//! Decides: that a key is well formed, is the pinned one where one is pinned, and signed this
//! handshake. Leaves to others: what a node may do (the core). Believes: no clock. Bounded by: one
//! key and one signature per handshake.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme};
use tidings::NodeId;

use crate::{TlsFault, key};

/// Judges the raw key of the other side, in either role.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    /// The one node that may be there; anybody with a key when `None`.
    pub(crate) pin: Option<NodeId>,
}

impl Verifier {
    fn judge(&self, carried: &[u8], more: &[CertificateDer<'_>]) -> Result<(), Error> {
        if !more.is_empty() {
            return Err(TlsFault::BadKeyForm.into());
        }
        let key = key::decode(carried)?;
        match self.pin {
            Some(pin) if pin != key.node_id() => Err(TlsFault::WrongStation.into()),
            _ => Ok(()),
        }
    }

    /// As strict as every other signature of tidings.
    fn signed(
        message: &[u8],
        carried: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = key::decode(carried)?;
        let good = match <&[u8; 64]>::try_from(signed.signature()) {
            Ok(signature) if signed.scheme == SignatureScheme::ED25519 => {
                key.verify_parts(&[message], signature)
            }
            _ => false,
        };
        match good {
            true => Ok(HandshakeSignatureValid::assertion()),
            false => Err(TlsFault::ProofInvalid.into()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge(end_entity, intermediates)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::signed(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.judge(end_entity, intermediates)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::signed(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
