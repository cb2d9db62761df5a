//! Who may come in: connections of one address, and of all.
//!
//! Decides: whether a connection that was accepted is kept, before a byte of it is read or anything is signed for it. Leaves to others:
//! closing it, and how long a handshake may take (`patience`). Believes: the instants it is handed, for how often it says something.
//! Bounded by: one entry for each address that has something open, and no more of those than links and handshakes; four lines of reports
//! per 10 s.
//!
//! An address is a host's IPv4 address, or the first 64 bits of its IPv6 address, which a host may fill as it likes. A connection has its
//! place from [`enter`](Doors::enter) until its [`Guest`] is dropped; a handshake that came to nothing takes one for a second at least, so
//! that whoever repeats a stranger's first message does not have it signed for more often than that.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings::code::HandshakeRefusal;
use tidings::wire::{Frame, Hello};
use tidings::{ConfigError, Instant};

/// After a report of a reason, further ones are counted for so long, and reported together.
const WINDOW: Duration = Duration::from_secs(10);
/// How long a handshake that came to nothing takes a place at least, from its beginning.
const LINGER: Duration = Duration::from_secs(1);

/// How many connections a station has at a time. With them go [`tidings::StationLimits::links`], which bounds connections of every kind,
/// those that shake hands included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoorLimits {
    /// Handshakes of TLS under way, those that failed in the second since they began included. Default 1024.
    pub handshakes: usize,
    /// Those of one address, which thereby fails no more often in a second. Default 64, at most `handshakes`.
    pub handshakes_per_address: usize,
    /// Connections of one address, those that shake hands included: who has many nodes behind one address raises it. Default 1024, at
    /// least `handshakes_per_address`; where `StationLimits::links` is less, that counts.
    pub links_per_address: usize,
    /// Whether the addresses of this host (`127.0.0.0/8`, `::1`) have bounds of their own like any other. Default no: `handshakes` and
    /// `StationLimits::links` alone bound them, as what runs here is the host's own, or stands for many as a proxy does.
    pub bound_loopback: bool,
}

impl Default for DoorLimits {
    fn default() -> Self {
        Self {
            handshakes: 1024,
            handshakes_per_address: 64,
            links_per_address: 1024,
            bound_loopback: false,
        }
    }
}

impl DoorLimits {
    /// Checks them against each other.
    ///
    /// # Errors
    /// The first that contradicts another or itself.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refuse = |setting, must| Err(ConfigError { setting, must });
        if self.handshakes == 0 {
            return refuse("doors.handshakes", "at least 1");
        }
        if !(1..=self.handshakes).contains(&self.handshakes_per_address) {
            return refuse("doors.handshakes_per_address", "1 to `doors.handshakes`");
        }
        if self.links_per_address < self.handshakes_per_address {
            let must = "at least `doors.handshakes_per_address`";
            return refuse("doors.links_per_address", must);
        }
        Ok(())
    }
}

/// Which bound a connection was beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Crowd {
    /// [`DoorLimits::handshakes_per_address`].
    AddressHandshakes,
    /// [`DoorLimits::links_per_address`].
    AddressLinks,
    /// [`DoorLimits::handshakes`].
    Handshakes,
    /// [`tidings::StationLimits::links`].
    Links,
}

impl Crowd {
    /// Every bound, in the order of their names.
    pub const ALL: &'static [Self] = &[
        Self::AddressHandshakes,
        Self::AddressLinks,
        Self::Handshakes,
        Self::Links,
    ];

    /// Its text, for programs and logs.
    pub const fn text(self) -> &'static str {
        match self {
            Self::AddressHandshakes => "address_handshakes",
            Self::AddressLinks => "address_links",
            Self::Handshakes => "handshakes",
            Self::Links => "links",
        }
    }
}

impl fmt::Display for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddressHandshakes => "one address has too many handshakes under way",
            Self::AddressLinks => "one address has too many connections",
            Self::Handshakes => "too many handshakes are under way",
            Self::Links => "there are too many connections",
        })
    }
}

/// Connections that were turned away, worth a line in a log: the first at once, then a count per bound and 10 s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnedAway {
    /// Beyond which bound.
    pub crowd: Crowd,
    /// How many since the last report of this bound, this one included.
    pub count: u64,
    /// Where the last of them came from.
    pub last: IpAddr,
}

impl fmt::Display for TurnedAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { crowd, count, last } = self;
        write!(f, "turned away {count}, the last from {last}: {crowd}")
    }
}

/// Who is inside, and how many were turned away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoorStatus {
    /// Connections of every kind.
    pub open: usize,
    /// Those that shake hands.
    pub handshakes: usize,
    /// Addresses they come from.
    pub addresses: usize,
    refused: [u64; Crowd::ALL.len()],
}

impl DoorStatus {
    /// How many were turned away because of this bound so far.
    pub fn refused(&self, crowd: Crowd) -> u64 {
        self.refused.get(crowd as usize).copied().unwrap_or(0)
    }
}

/// A station's doors. Cloning gives another handle of the same.
#[derive(Clone, Debug)]
pub struct Doors(Arc<Mutex<Inside>>);

impl Doors {
    /// With these bounds, which were checked, and so many connections in all.
    pub fn new(limits: DoorLimits, links: usize) -> Self {
        Self(Arc::new(Mutex::new(Inside {
            limits,
            links,
            status: DoorStatus::default(),
            hosts: BTreeMap::new(),
            lingering: BTreeMap::new(),
            failed: 0,
            lines: [None; Crowd::ALL.len()],
        })))
    }

    /// A connection came from there, which shakes hands with TLS first or does not. Whoever gets no place is closed at once: it has cost
    /// nothing yet.
    ///
    /// # Errors
    /// The bound it is beyond, which is counted.
    pub fn enter(&self, from: IpAddr, shaking: bool, now: Instant) -> Result<Guest, Crowd> {
        let host = Host::of(from);
        let mut inside = lock(&self.0);
        inside.free(now);
        inside.enter(host, from, shaking)?;
        Ok(Guest {
            inside: Arc::clone(&self.0),
            host,
            shaking,
            lingers: now.saturating_add(LINGER),
        })
    }

    /// Tells whoever got no place that the station is full, where there is no TLS to be signed for first. `to` is a socket that was just accepted and
    /// does not block: it has room for so few bytes, or is gone.
    pub fn turn_away(mut to: impl Write) {
        let mut refusal = Vec::new();
        Frame::Hello(Hello::Refused(HandshakeRefusal::Full)).encode_framed(&mut refusal);
        to.write_all(&refusal).ok();
    }

    /// Who is inside, and how many were turned away.
    pub fn status(&self) -> DoorStatus {
        let inside = lock(&self.0);
        let mut status = inside.status;
        status.handshakes -= inside.lingering.len();
        status.addresses = inside.hosts.values().filter(|open| open.all > 0).count();
        status
    }

    /// What is worth a line in a log, if anything is. Ask as often as you like, until it answers `None`.
    pub fn report(&self, now: Instant) -> Option<TurnedAway> {
        let mut inside = lock(&self.0);
        let mut lines = Crowd::ALL.iter().zip(inside.lines.iter_mut().flatten());
        lines.find_map(|(_, line)| line.report(now))
    }
}

/// A connection's place inside. Its drop is the connection's end, so it is kept where the socket is.
#[derive(Debug)]
#[must_use = "the place is given up with it"]
pub struct Guest {
    inside: Arc<Mutex<Inside>>,
    host: Host,
    shaking: bool,
    /// Until when its handshake takes a place if it comes to nothing.
    lingers: Instant,
}

impl Guest {
    /// Its handshake is over.
    pub fn shaken(&mut self) {
        if std::mem::take(&mut self.shaking) {
            lock(&self.inside).shaken(self.host);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut inside = lock(&self.inside);
        if self.shaking {
            inside.failed(self.host, self.lingers);
        }
        inside.leave(self.host);
    }
}

/// Whoever is counted as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Host {
    /// Of this host.
    Loopback(IpAddr),
    V4(u32),
    /// The first 64 bits.
    V6(u64),
}

impl Host {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            here if here.is_loopback() => Self::Loopback(here),
            IpAddr::V4(v4) => Self::V4(v4.to_bits()),
            IpAddr::V6(v6) => Self::V6((v6.to_bits() >> 64) as u64),
        }
    }
}

/// What one address has open.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    all: usize,
    shaking: usize,
}

/// What is to be said of one bound.
#[derive(Clone, Copy, Debug)]
struct Line {
    next: TurnedAway,
    until: Option<Instant>,
}

impl Line {
    fn report(&mut self, now: Instant) -> Option<TurnedAway> {
        if self.next.count == 0 || self.until.is_some_and(|until| now < until) {
            return None;
        }
        self.until = Some(now.saturating_add(WINDOW));
        let said = self.next;
        self.next.count = 0;
        Some(said)
    }
}

#[derive(Debug)]
struct Inside {
    limits: DoorLimits,
    links: usize,
    status: DoorStatus,
    hosts: BTreeMap<Host, Open>,
    /// Places of handshakes that failed, by when they are free; numbered, as several may be at once.
    lingering: BTreeMap<(Instant, u64), Host>,
    failed: u64,
    lines: [Option<Line>; Crowd::ALL.len()],
}

impl Inside {
    fn enter(&mut self, host: Host, from: IpAddr, shaking: bool) -> Result<(), Crowd> {
        if let Some(crowd) = self.crowd(host, shaking) {
            self.count(crowd, from);
            return Err(crowd);
        }
        let open = self.hosts.entry(host).or_default();
        open.all += 1;
        open.shaking += usize::from(shaking);
        self.status.open += 1;
        self.status.handshakes += usize::from(shaking);
        Ok(())
    }

    /// Which bound one more is beyond: those of its address first, which say more.
    fn crowd(&self, host: Host, shaking: bool) -> Option<Crowd> {
        let limits = &self.limits;
        let open = self.hosts.get(&host).filter(|_| self.is_bounded(host));
        let open = open.copied().unwrap_or_default();
        if open.all >= limits.links_per_address {
            Some(Crowd::AddressLinks)
        } else if shaking && open.shaking >= limits.handshakes_per_address {
            Some(Crowd::AddressHandshakes)
        } else if self.status.open >= self.links {
            Some(Crowd::Links)
        } else if shaking && self.status.handshakes >= limits.handshakes {
            Some(Crowd::Handshakes)
        } else {
            None
        }
    }

    fn count(&mut self, crowd: Crowd, last: IpAddr) {
        let at = crowd as usize;
        if let Some(refused) = self.status.refused.get_mut(at) {
            *refused = refused.saturating_add(1);
        }
        if let Some(line) = self.lines.get_mut(at) {
            let first = TurnedAway {
                crowd,
                count: 0,
                last,
            };
            let line = line.get_or_insert(Line {
                next: first,
                until: None,
            });
            line.next.last = last;
            line.next.count = line.next.count.saturating_add(1);
        }
    }

    /// Whether an address has bounds of its own.
    fn is_bounded(&self, host: Host) -> bool {
        self.limits.bound_loopback || !matches!(host, Host::Loopback(_))
    }

    fn shaken(&mut self, host: Host) {
        self.status.handshakes -= 1;
        self.less(host, |open| open.shaking -= 1);
    }

    /// A handshake came to nothing.
    fn failed(&mut self, host: Host, lingers: Instant) {
        if self.is_bounded(host) {
            self.failed = self.failed.wrapping_add(1);
            self.lingering.insert((lingers, self.failed), host);
        } else {
            self.shaken(host);
        }
    }

    /// Gives back the places that lingered for long enough.
    fn free(&mut self, now: Instant) {
        while let Some(first) = self.lingering.first_entry()
            && first.key().0 <= now
        {
            let host = first.remove();
            self.shaken(host);
        }
    }

    fn leave(&mut self, host: Host) {
        self.status.open -= 1;
        self.less(host, |open| open.all -= 1);
    }

    fn less(&mut self, host: Host, less: impl FnOnce(&mut Open)) {
        if let Some(open) = self.hosts.get_mut(&host) {
            less(open);
            if (open.all, open.shaking) == (0, 0) {
                self.hosts.remove(&host);
            }
        }
    }
}

/// Nothing under this lock panics half-way.
fn lock(inside: &Mutex<Inside>) -> MutexGuard<'_, Inside> {
    inside.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
