//! What every secure channel of a node is made with.
//!
//! Decides: TLS 1.3 alone, raw keys on both sides, `tidings/1`, no resumption, no early data, no
//! server name. Leaves to others: one channel ([`Session`]). Believes: no clock. Bounded by: two
//! configurations per node.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, version};
use tidings::NodeId;
use tidings::crypto::{Profile, PublicKey, Signer};

use crate::key::encode;
use crate::session::Session;
use crate::verifier::Verifier;
use crate::{ALPN, NodeKey, TlsFault};

/// Why a key cannot be used for TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigFault {
    /// Its public half is not canonical or of small order: make a new key.
    BadKeyForm,
    /// It is of another profile than `ed25519`, which has no form in TLS.
    Profile,
    /// The provider of TLS's cryptography lacks what is needed: a broken build.
    Provider,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadKeyForm => "the signer's public key is not a well-formed ed25519 key",
            Self::Profile => "the signer's profile has no form in tls: it needs ed25519",
            Self::Provider => "the provider of tls's cryptography lacks tls 1.3",
        })
    }
}

impl core::error::Error for ConfigFault {}

/// A node's side of all its secure channels. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Tls {
    id: NodeId,
    dials: ClientConfig,
    answers: Arc<ServerConfig>,
}

impl Tls {
    /// For the node that `key` makes its holder.
    ///
    /// # Errors
    /// [`ConfigFault`].
    pub fn new(key: &NodeKey) -> Result<Self, ConfigFault> {
        if key.profile() != Profile::ED25519 {
            return Err(ConfigFault::Profile);
        }
        let public = Signer::public_key(key);
        let id = PublicKey::decode(Profile::ED25519, &public)
            .map_err(|_| ConfigFault::BadKeyForm)?
            .node_id();
        let carried = CertificateDer::from(encode(&public));
        let shown = Arc::new(CertifiedKey::new(vec![carried], Arc::new(key.clone())));
        let provider = Arc::new(provider());
        let anybody = Arc::new(Verifier { pin: None });

        let mut dials = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|_| ConfigFault::Provider)?
            .dangerous()
            .with_custom_certificate_verifier(anybody.clone())
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                shown.clone(),
            )));
        dials.alpn_protocols = vec![ALPN.to_vec()];
        dials.resumption = Resumption::disabled();
        dials.enable_sni = false;
        dials.enable_early_data = false;

        let mut answers = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .map_err(|_| ConfigFault::Provider)?
            .with_client_cert_verifier(anybody)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(shown)));
        answers.alpn_protocols = vec![ALPN.to_vec()];
        answers.session_storage = Arc::new(NoServerSessionStorage {});
        answers.send_tls13_tickets = 0;
        answers.max_early_data_size = 0;

        Ok(Self {
            id,
            dials,
            answers: Arc::new(answers),
        })
    }

    /// This side's id.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The dialling side of a new channel to `station`, and to no other.
    ///
    /// # Errors
    /// [`TlsFault`] when the operating system gives no randomness.
    pub fn dial(&self, station: NodeId) -> Result<Session, TlsFault> {
        let mut config = self.dials.clone();
        let pinned = Arc::new(Verifier { pin: Some(station) });
        config.dangerous().set_certificate_verifier(pinned);
        // Never sent, and no name is looked at: the key is what is checked.
        let nobody = ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let connection = ClientConnection::new(Arc::new(config), nobody);
        connection
            .map(|connection| Session::new(connection.into(), self.id))
            .map_err(|error| TlsFault::of(&error))
    }

    /// The answering side of a new channel, for any node that holds the key it shows.
    ///
    /// # Errors
    /// [`TlsFault`] when the operating system gives no randomness.
    pub fn answer(&self) -> Result<Session, TlsFault> {
        ServerConnection::new(Arc::clone(&self.answers))
            .map(|connection| Session::new(connection.into(), self.id))
            .map_err(|error| TlsFault::of(&error))
    }
}

/// The key exchanges and ciphers, best first.
fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![
            aws_lc_rs::kx_group::X25519MLKEM768,
            aws_lc_rs::kx_group::X25519,
        ],
        ..aws_lc_rs::default_provider()
    }
}
