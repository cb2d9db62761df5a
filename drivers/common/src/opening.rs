//! A connection that is not a link yet: it connects, and shakes hands with TLS, or takes leave.
//!
//! Decides: how long each of that may take. Leaves to others: waiting for the socket or [`deadline`](Opening::deadline), whichever comes
//! first, and calling [`step`](Opening::step) then (the drivers). Believes: the `Now` it is handed. Bounded by: `patience::CONNECT`, then
//! `patience::SECURE`, however slowly bytes come, then `patience::CLOSE_LINK`.

use bytes::BytesMut;
use tidings::{Binding, Instant, Now};
use tidings_tls::TlsFault;

use crate::{Socket, Wire, dial_failure, not_now, patience};

/// A socket on its way to a link.
#[derive(Debug)]
pub struct Opening<S> {
    wire: Wire<S>,
    /// What came before there was a link.
    early: BytesMut,
    connected: bool,
    until: Instant,
    /// TLS cannot go on: the other side is told.
    fault: Option<TlsFault>,
}

impl<S: Socket> Opening<S> {
    /// For a socket that was just accepted or dialled.
    pub fn new(wire: Wire<S>, now: Now) -> Self {
        Self {
            wire,
            early: BytesMut::new(),
            connected: false,
            until: now.mono.saturating_add(patience::CONNECT),
            fault: None,
        }
    }

    /// Goes as far as the socket allows. What a link is bound to, once there can be one; or in a word why there will be none.
    ///
    /// # Errors
    /// It is over: a text of [`dial_failure`] or [`TlsFault`].
    pub fn step(&mut self, now: Now) -> Result<Option<Binding>, &'static str> {
        if !self.connected {
            match self.wire.socket().is_connected() {
                Err(error) => return Err(dial_failure(&error)),
                Ok(false) if now.mono >= self.until => return Err("connect_timeout"),
                Ok(false) => return Ok(None),
                Ok(true) => {
                    self.connected = true;
                    self.until = now.mono.saturating_add(patience::SECURE);
                }
            }
        }
        if self.fault.is_none() {
            match self.wire.shake(&mut self.early) {
                Ok(None) if now.mono >= self.until => self.fail(now, TlsFault::HandshakeTimeout),
                Ok(opened) => return Ok(opened),
                Err(fault) => self.fail(now, fault),
            }
        }
        match self.wire.leave() {
            Err(error) if not_now(&error) && now.mono < self.until => Ok(None),
            Ok(()) | Err(_) => Err(self.fault.unwrap_or(TlsFault::Io).text()),
        }
    }

    fn fail(&mut self, now: Now, fault: TlsFault) {
        self.fault = Some(fault);
        self.until = now.mono.saturating_add(patience::CLOSE_LINK);
    }

    /// When it is to be looked at though nothing happens.
    pub fn deadline(&self) -> Instant {
        self.until
    }

    /// Why TLS could not go on.
    pub fn fault(&self) -> Option<TlsFault> {
        self.fault
    }

    /// Its connection, to wait for.
    pub fn wire(&mut self) -> &mut Wire<S> {
        &mut self.wire
    }

    /// What a link is made of: its connection, and what came for it already.
    pub fn into_parts(self) -> (Wire<S>, BytesMut) {
        (self.wire, self.early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tests::{Pipe, ends};
    use tidings::WallMs;

    fn second(n: u64) -> Now {
        Now::new(Instant::from_millis(n * 1000), WallMs::new(0))
    }

    #[test]
    fn connecting_and_shaking_hands_have_ten_seconds_each_and_leaving_one() {
        let (mut here, _there) = ends();
        here.connected = false;
        let (dialling, _) = crate::wire::tests::sessions();
        let mut opening = Opening::new(Wire::new(here, Some(dialling), None), second(0));
        assert_eq!(opening.step(second(0)), Ok(None));
        assert_eq!(opening.deadline(), second(10).mono);
        assert_eq!(opening.step(second(9)), Ok(None));
        opening.wire().socket().connected = true;
        assert_eq!(opening.step(second(9)), Ok(None));
        assert_eq!(opening.deadline(), second(19).mono);
        assert_eq!(opening.step(second(18)), Ok(None));
        assert_eq!(opening.step(second(19)), Ok(None));
        assert_eq!(opening.fault(), Some(TlsFault::HandshakeTimeout));
        assert_eq!(opening.deadline(), second(20).mono);
        let over = Err(TlsFault::HandshakeTimeout.text());
        assert_eq!(opening.step(second(20)), over);
    }

    #[test]
    fn what_never_connects_is_given_up() {
        let (mut here, _there) = ends();
        here.connected = false;
        let mut opening: Opening<Pipe> = Opening::new(Wire::new(here, None, None), second(0));
        let almost = Now::new(Instant::from_millis(9_999), WallMs::new(0));
        assert_eq!(opening.step(almost), Ok(None));
        assert_eq!(opening.step(second(10)), Err("connect_timeout"));
    }

    #[test]
    fn bytes_that_trickle_in_do_not_make_it_last_longer() {
        let (here, mut there) = ends();
        let (_, answering) = crate::wire::tests::sessions();
        let mut opening = Opening::new(Wire::new(here, Some(answering), None), second(0));
        for n in 0..10 {
            there.say(&[0x16, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3][n..=n]);
            assert_eq!(opening.step(second(n as u64)), Ok(None), "{n}");
        }
        assert_eq!(opening.step(second(10)), Ok(None));
        assert_eq!(opening.fault(), Some(TlsFault::HandshakeTimeout));
    }
}
