//! Addresses as people write them.
//!
//! Decides: which addresses plain TCP may use: loopback alone, because nothing on the wire is
//! encrypted and an unpinned station is anybody; that TLS names the station's key; which two name
//! the same station. Leaves to others: connecting. Believes: no clock. Bounded by: one look-up of a
//! name at a time and station, as long as the operating system takes for it.
//!
//! A station's name is looked up at each dial, so that a node starts before its names mean anything,
//! and finds a station that has moved.

use core::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::thread;

use tidings::NodeId;
use tidings_tls::{Session, Tls, TlsFault};

/// A station's address: `tls://NODE_ID@HOST:PORT`; on this host also `tcp://HOST:PORT`, or
/// `tcp://NODE_ID@HOST:PORT` to accept no other station there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationAddress {
    /// As it was given.
    text: String,
    /// The name of its host, and the port, where it is to be looked up.
    name: Option<(String, u16)>,
    /// Addresses in the order to try them, for plain TCP loopback alone. Of a name, those it had when it was last looked up.
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
    /// It names a station that was named already: one station counts once, however it is reached.
    NamedTwice {
        /// The address as given.
        address: String,
        /// The one before it.
        before: String,
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
            Self::NamedTwice { address, before } => write!(
                f,
                "{address} is the station that {before} names: one station counts once, however it is reached; \
                 leave one of the two out, or write a name that has both addresses, which are then tried in turn"
            ),
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

    /// Reads `text`. A name for plain TCP is looked up at once as well, which blocks: where it leads elsewhere it is refused before
    /// anything runs.
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
        let (host, port) = split(text, host_port)?;
        let (name, sockets) = match number(host) {
            Some(ip) => (None, vec![SocketAddr::new(ip, port)]),
            None if secure => (Some((host.to_owned(), port)), Vec::new()),
            None => (Some((host.to_owned(), port)), look_up(host, port)),
        };
        on_this_host(text, &sockets, secure)?;
        Ok(Self {
            text: text.to_owned(),
            name,
            sockets,
            pin,
            secure,
        })
    }

    /// Whether it names its host, so that [`look_up`](Self::look_up) comes before each dial.
    pub fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// Looks its name up on a thread of its own, which ends with that, and hands `tell` the addresses there; or in a word why there are
    /// none. Where there is no thread to be had, `tell` is dropped.
    pub fn look_up(
        &self,
        tell: impl FnOnce(Result<Vec<SocketAddr>, &'static str>) + Send + 'static,
    ) {
        let this = self.clone();
        let thread = thread::Builder::new().name("tidings-names".to_owned());
        // The operating system may take half a minute for it, and cannot be told to stop.
        thread.spawn(move || tell(this.found())).ok();
    }

    fn found(&self) -> Result<Vec<SocketAddr>, &'static str> {
        let sockets = match &self.name {
            Some((host, port)) => look_up(host, *port),
            None => self.sockets.clone(),
        };
        match on_this_host(&self.text, &sockets, self.secure) {
            Ok(()) if sockets.is_empty() => Err("unknown_host"),
            Ok(()) => Ok(sockets),
            Err(_) => Err("not_loopback"),
        }
    }

    /// That none of `before` names the same station: by its key, or where one of the two names none, by its place.
    ///
    /// # Errors
    /// [`AddressError::NamedTwice`].
    pub fn is_none_of(&self, before: &[Self]) -> Result<(), AddressError> {
        let same = |other: &&Self| match (self.pin, other.pin) {
            (Some(one), Some(other)) => one == other,
            _ => {
                let same_name = self.name.is_some() && self.name == other.name;
                same_name || self.sockets.iter().any(|one| other.sockets.contains(one))
            }
        };
        match before.iter().find(same) {
            None => Ok(()),
            Some(before) => Err(AddressError::NamedTwice {
                address: self.text.clone(),
                before: before.text.clone(),
            }),
        }
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
        let (host, port) = split(text, host_port)?;
        let sockets = match number(host) {
            Some(ip) => vec![SocketAddr::new(ip, port)],
            None => look_up(host, port),
        };
        on_this_host(text, &sockets, secure)?;
        match sockets.first() {
            Some(socket) => Ok(Self {
                socket: *socket,
                secure,
            }),
            None => Err(AddressError::UnknownHost { address: address() }),
        }
    }
}

/// Host and port.
fn split<'t>(text: &str, host_port: &'t str) -> Result<(&'t str, u16), AddressError> {
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
    if host.is_empty() {
        return Err(AddressError::UnknownHost { address: address() });
    }
    match port.parse::<u16>() {
        Ok(port) => Ok((host, port)),
        Err(_) => Err(AddressError::BadPort { address: address() }),
    }
}

/// A host that is written as a number.
fn number(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

/// What a name means now; nothing where it means nothing.
fn look_up(host: &str, port: u16) -> Vec<SocketAddr> {
    let found = (host, port).to_socket_addrs();
    found.map(Iterator::collect).unwrap_or_default()
}

/// Where there is no TLS, every address is one of this host: a name must not lead out on a bad day.
fn on_this_host(text: &str, sockets: &[SocketAddr], secure: bool) -> Result<(), AddressError> {
    let away = |socket: &&SocketAddr| !secure && !socket.ip().to_canonical().is_loopback();
    match sockets.iter().find(away) {
        Some(away) => Err(AddressError::NotLoopback {
            address: text.to_owned(),
            resolved: away.ip(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

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
    fn a_name_is_looked_up_when_it_is_dialled_and_one_that_means_nothing_may_come_to() {
        let id = NodeId::new([7; 32]);
        let look_up = |text: &str| {
            let (tell, told) = std::sync::mpsc::channel();
            let address = StationAddress::parse(text).unwrap();
            assert!(address.is_named(), "{text}");
            address.look_up(move |found| tell.send(found).unwrap());
            told.recv().unwrap()
        };
        // `.invalid` belongs to nobody (RFC 6761).
        let nowhere = Err("unknown_host");
        assert_eq!(
            look_up(&format!("tls://{id}@nowhere.invalid:7400")),
            nowhere
        );
        assert_eq!(look_up("tcp://nowhere.invalid:7400"), nowhere);
        let here = look_up("tcp://localhost:7400").unwrap();
        assert!(
            here.iter().all(|socket| socket.ip().is_loopback()),
            "{here:?}"
        );
        assert!(!here.is_empty() && here.iter().all(|socket| socket.port() == 7400));
        // A name that leads elsewhere by then is not followed.
        let mut moved = StationAddress::parse("tcp://localhost:7400").unwrap();
        (moved.name, moved.sockets) = (None, vec!["192.0.2.1:7400".parse().unwrap()]);
        assert_eq!(moved.found(), Err("not_loopback"));
    }

    #[test]
    fn one_station_is_named_once_by_its_key_or_by_its_place() {
        let [one, other] = [7, 8].map(|part| NodeId::new([part; 32]));
        let twice = |before: &str, address: &str| {
            let [before, address] =
                [before, address].map(|text| StationAddress::parse(text).unwrap());
            let refused = address.is_none_of(slice::from_ref(&before));
            assert_eq!(
                refused.is_err(),
                before.is_none_of(slice::from_ref(&address)).is_err()
            );
            if let Err(refused) = &refused {
                let said = refused.to_string();
                assert!(
                    said.contains(&before.text) && said.contains(&address.text),
                    "{said}"
                );
            }
            refused.is_err()
        };
        let tls = |id: NodeId, place: &str| format!("tls://{id}@{place}");
        assert!(twice(
            &tls(one, "192.0.2.1:7400"),
            &tls(one, "192.0.2.1:7400")
        ));
        assert!(twice(
            &tls(one, "192.0.2.1:7400"),
            &tls(one, "198.51.100.1:9")
        ));
        assert!(twice(
            &tls(one, "a.example:7400"),
            &format!("tcp://{one}@127.0.0.1:1")
        ));
        // Which of two keys answers at one place shows when it is dialled: while a station changes its key both are named.
        assert!(!twice(
            &tls(one, "192.0.2.1:7400"),
            &tls(other, "192.0.2.1:7400")
        ));
        assert!(!twice(
            &tls(one, "192.0.2.1:7400"),
            &tls(other, "192.0.2.2:7400")
        ));
        assert!(twice("tcp://127.0.0.1:7400", "tcp://127.0.0.1:7400/"));
        assert!(twice(
            "tcp://127.0.0.1:7400",
            &format!("tcp://{one}@127.0.0.1:7400")
        ));
        assert!(twice(
            "tcp://nowhere.invalid:7400",
            "tcp://nowhere.invalid:7400"
        ));
        assert!(!twice(
            "tcp://nowhere.invalid:7400",
            "tcp://nowhere.invalid:7401"
        ));
        assert!(!twice("tcp://127.0.0.1:7400", "tcp://127.0.0.1:7401"));
        assert!(!twice("tcp://127.0.0.1:7400", "tcp://127.0.0.2:7400"));
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
