//! Addresses as people write them.
//!
//! Decides: which addresses plain TCP may use: loopback alone, because nothing on the wire is
//! encrypted and an unpinned station is anybody; and that TLS names the station's key. Leaves to
//! others: connecting. Believes: no clock. Bounded by: one resolution per address, when it is named;
//! what it gave is what is used.

use core::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use tidings::NodeId;
use tidings_tls::{Session, Tls, TlsFault};

/// A station's address: `tls://NODE_ID@HOST:PORT`; on this host also `tcp://HOST:PORT`, or
/// `tcp://NODE_ID@HOST:PORT` to accept no other station there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationAddress {
    /// Addresses in the order to try them, for plain TCP loopback alone. Never empty.
    pub sockets: Vec<SocketAddr>,
    /// The station expected there; always there with TLS.
    pub pin: Option<NodeId>,
    /// Whether TLS is spoken there.
    pub secure: bool,
}

/// What a station is to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// The address, for plain TCP one of loopback.
    pub socket: SocketAddr,
    /// Whether TLS is spoken there.
    pub secure: bool,
}

/// What is wrong with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressError {
    /// What stands before the `@` is not a node id.
    BadNodeId {
        /// The address as given.
        address: String,
    },
    /// The port is not a number from 0 to 65,535.
    BadPort {
        /// The address as given.
        address: String,
    },
    /// TLS is for one station, known by its key, and none is named.
    MissingNodeId {
        /// The address as given.
        address: String,
    },
    /// There is no port.
    MissingPort {
        /// The address as given.
        address: String,
    },
    /// It is not on this host, and plain TCP is not for networks.
    NotLoopback {
        /// The address as given.
        address: String,
        /// What it means here.
        resolved: IpAddr,
    },
    /// The host's name means nothing here.
    UnknownHost {
        /// The address as given.
        address: String,
    },
    /// The part before `://` is missing or names no transport of this driver.
    UnknownScheme {
        /// The address as given.
        address: String,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadNodeId { address } => write!(
                f,
                "bad node id in {address}: 64 hex digits stand before the @; the station prints its own when it starts"
            ),
            Self::BadPort { address } => {
                write!(
                    f,
                    "bad port in {address}: a number from 0 to 65535 stands after the last colon"
                )
            }
            Self::MissingNodeId { address } => write!(
                f,
                "no node id in {address}: tls is for one station, known by its key; write tls://NODE_ID@HOST:PORT; \
                 the station prints its own when it starts"
            ),
            Self::MissingPort { address } => {
                write!(f, "no port in {address}: add one, such as :7400")
            }
            Self::NotLoopback { address, resolved } => write!(
                f,
                "{address} is {resolved}, which is not this host: plain TCP is neither encrypted nor bound to the station's key, \
                 so it is for loopback alone; write tls:// there, and tls://NODE_ID@HOST:PORT where it is dialled"
            ),
            Self::UnknownHost { address } => {
                write!(
                    f,
                    "unknown host in {address}: its name does not resolve here; check it, or write its number"
                )
            }
            Self::UnknownScheme { address } => {
                write!(
                    f,
                    "unknown scheme in {address}: write tls://NODE_ID@HOST:PORT, or tcp://127.0.0.1:7400 on this host"
                )
            }
        }
    }
}

impl core::error::Error for AddressError {}

impl StationAddress {
    /// The dialling side of a new channel to it; none where it is reached without.
    ///
    /// # Errors
    /// Who is reached over TLS is named, and there is `tls`: `WrongStation` where that is not so. Those of [`Tls::dial`].
    pub fn session(&self, tls: Option<&Tls>) -> Result<Option<Session>, TlsFault> {
        if !self.secure {
            return Ok(None);
        }
        match (tls, self.pin) {
            (Some(tls), Some(pin)) => tls.dial(pin).map(Some),
            _ => Err(TlsFault::WrongStation),
        }
    }

    /// Reads and resolves `text`. A name blocks while it is looked up; numbers do not.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong and what to write instead.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let address = || text.to_owned();
        let (secure, rest) = match text.split_once("://") {
            Some(("tcp", rest)) => (false, rest),
            Some(("tls", rest)) => (true, rest),
            _ => return Err(AddressError::UnknownScheme { address: address() }),
        };
        let (pin, host_port) = match rest.rsplit_once('@') {
            None if secure => return Err(AddressError::MissingNodeId { address: address() }),
            None => (None, rest),
            Some((id, rest)) => match id.parse() {
                Ok(id) => (Some(id), rest),
                Err(_) => return Err(AddressError::BadNodeId { address: address() }),
            },
        };
        Ok(Self {
            sockets: resolve(text, host_port, secure)?,
            pin,
            secure,
        })
    }
}

impl ListenAddress {
    /// Reads and resolves `text`: `tls://HOST:PORT`, which is what `HOST:PORT` means, or `tcp://HOST:PORT`.
    ///
    /// # Errors
    /// [`AddressError`] says what is wrong and what to write instead.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let address = || text.to_owned();
        let (secure, host_port) = match text.split_once("://") {
            Some(("tcp", rest)) => (false, rest),
            Some(("tls", rest)) => (true, rest),
            None => (true, text),
            Some(_) => return Err(AddressError::UnknownScheme { address: address() }),
        };
        let sockets = resolve(text, host_port, secure)?;
        match sockets.first() {
            Some(socket) => Ok(Self {
                socket: *socket,
                secure,
            }),
            None => Err(AddressError::UnknownHost { address: address() }),
        }
    }
}

/// The addresses of a host; where there is no TLS, only those of this host.
fn resolve(text: &str, host_port: &str, secure: bool) -> Result<Vec<SocketAddr>, AddressError> {
    let address = || text.to_owned();
    let host_port = host_port.strip_suffix('/').unwrap_or(host_port);
    // The last colon of `[::1]` belongs to the address.
    let (host, port) = match host_port.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => return Err(AddressError::MissingPort { address: address() }),
    };
    if port.is_empty() {
        return Err(AddressError::MissingPort { address: address() });
    }
    let Ok(port) = port.parse::<u16>() else {
        return Err(AddressError::BadPort { address: address() });
    };
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let sockets: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) if host.is_empty() => Vec::new(),
        Err(_) => (host, port)
            .to_socket_addrs()
            .map(Iterator::collect)
            .unwrap_or_default(),
    };
    if sockets.is_empty() {
        return Err(AddressError::UnknownHost { address: address() });
    }
    // One address elsewhere is enough: a name must not lead out on a bad day.
    match sockets
        .iter()
        .find(|socket| !secure && !socket.ip().to_canonical().is_loopback())
    {
        Some(away) => Err(AddressError::NotLoopback {
            address: address(),
            resolved: away.ip(),
        }),
        None => Ok(sockets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> AddressError {
        StationAddress::parse(text).unwrap_err()
    }

    #[test]
    fn loopback_numbers_are_taken_as_they_are() {
        let four = StationAddress::parse("tcp://127.0.0.1:7400").unwrap();
        assert_eq!(four.sockets, ["127.0.0.1:7400".parse().unwrap()]);
        assert_eq!(four.pin, None);
        let six = StationAddress::parse("tcp://[::1]:7400/").unwrap();
        assert_eq!(six.sockets, ["[::1]:7400".parse().unwrap()]);
        for text in ["127.0.0.1:0", "tcp://127.0.0.1:0", "tls://127.0.0.1:0"] {
            let listen = ListenAddress::parse(text).unwrap();
            assert_eq!(listen.socket, "127.0.0.1:0".parse().unwrap());
            assert_eq!(listen.secure, !text.starts_with("tcp"));
        }
    }

    #[test]
    fn a_node_id_before_the_at_pins() {
        let id = NodeId::new([7; 32]);
        let pinned = StationAddress::parse(&format!("tcp://{id}@127.0.0.1:7400")).unwrap();
        assert_eq!(pinned.pin, Some(id));
    }

    #[test]
    fn each_mistake_has_its_own_answer() {
        assert!(matches!(
            refused("127.0.0.1:7400"),
            AddressError::UnknownScheme { .. }
        ));
        assert!(matches!(
            refused("https://127.0.0.1:7400"),
            AddressError::UnknownScheme { .. }
        ));
        assert!(matches!(
            refused("tcp://12@127.0.0.1:1"),
            AddressError::BadNodeId { .. }
        ));
        assert!(matches!(
            refused("tcp://127.0.0.1"),
            AddressError::MissingPort { .. }
        ));
        assert!(matches!(
            refused("tcp://127.0.0.1:"),
            AddressError::MissingPort { .. }
        ));
        assert!(matches!(
            refused("tcp://[::1]"),
            AddressError::MissingPort { .. }
        ));
        assert!(matches!(
            refused("tcp://127.0.0.1:65536"),
            AddressError::BadPort { .. }
        ));
        assert!(matches!(
            refused("tcp://:7400"),
            AddressError::UnknownHost { .. }
        ));
        assert!(matches!(
            ListenAddress::parse("udp://127.0.0.1:1"),
            Err(AddressError::UnknownScheme { .. })
        ));
    }

    #[test]
    fn tls_goes_anywhere_and_names_its_station() {
        let id = NodeId::new([7; 32]);
        let away = StationAddress::parse(&format!("tls://{id}@192.0.2.1:7400")).unwrap();
        assert_eq!(away.sockets, ["192.0.2.1:7400".parse().unwrap()]);
        assert_eq!((away.pin, away.secure), (Some(id), true));
        for text in ["tls://192.0.2.1:7400", "tls://127.0.0.1:7400"] {
            assert!(matches!(refused(text), AddressError::MissingNodeId { .. }));
        }
        assert!(matches!(
            refused("tls://12@192.0.2.1:7400"),
            AddressError::BadNodeId { .. }
        ));
        assert!(matches!(
            ListenAddress::parse("tcp://0.0.0.0:7400"),
            Err(AddressError::NotLoopback { .. })
        ));
        assert!(ListenAddress::parse("tls://0.0.0.0:7400").is_ok());
    }

    #[test]
    fn plain_tcp_stays_on_this_host() {
        for away in [
            "192.0.2.1",
            "0.0.0.0",
            "[2001:db8::1]",
            "[::]",
            "[::ffff:192.0.2.1]",
        ] {
            let refused = refused(&format!("tcp://{away}:7400"));
            assert!(
                matches!(refused, AddressError::NotLoopback { .. }),
                "{away}"
            );
        }
        assert!(StationAddress::parse("tcp://[::ffff:127.0.0.1]:7400").is_ok());
    }

    #[test]
    fn every_answer_says_what_to_write() {
        for text in [
            "x",
            "tcp://a@127.0.0.1:1",
            "tcp://127.0.0.1",
            "tcp://192.0.2.1:1",
            "tls://192.0.2.1:1",
        ] {
            let said = refused(text).to_string();
            assert!(
                said.contains(text) && said.len() > text.len() + 30,
                "{said}"
            );
        }
    }
}
