use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::*;
use tidings::crypto::SecretKey;
use tidings_tls::{NodeKey, Tls};

/// One direction.
#[derive(Debug, Default)]
struct Way {
    bytes: VecDeque<u8>,
    ended: bool,
}

/// One end of a connection in memory, with a network's moods.
#[derive(Debug)]
pub(crate) struct Pipe {
    incoming: Rc<RefCell<Way>>,
    outgoing: Rc<RefCell<Way>>,
    pub(crate) connected: bool,
    /// Bytes it takes before it would block.
    pub(crate) room: usize,
    /// Every other call is broken off by a signal.
    pub(crate) signals: bool,
    calls: u32,
    /// Reads that reached the socket.
    pub(crate) reads: u32,
}

pub(crate) fn ends() -> (Pipe, Pipe) {
    let ways = [Rc::default(), Rc::default()];
    let end = |incoming: &Rc<RefCell<Way>>, outgoing: &Rc<RefCell<Way>>| Pipe {
        incoming: Rc::clone(incoming),
        outgoing: Rc::clone(outgoing),
        connected: true,
        room: usize::MAX,
        signals: false,
        calls: 0,
        reads: 0,
    };
    (end(&ways[0], &ways[1]), end(&ways[1], &ways[0]))
}

/// The two sides of a channel between two keys.
pub(crate) fn sessions() -> (Session, Session) {
    let tls = |part| Tls::new(&NodeKey::new(SecretKey::from_seed([part; 32]))).unwrap();
    let (node, station) = (tls(2), tls(1));
    (node.dial(station.id()).unwrap(), station.answer().unwrap())
}

impl Pipe {
    /// Sends as the bare socket it is.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.outgoing.borrow_mut().bytes.extend(bytes);
    }

    /// Everything that came.
    pub(crate) fn hear(&mut self) -> Vec<u8> {
        self.incoming.borrow_mut().bytes.drain(..).collect()
    }

    /// Whether the other side sends nothing more.
    pub(crate) fn has_ended(&self) -> bool {
        self.incoming.borrow().ended
    }

    fn broken_off(&mut self) -> io::Result<()> {
        self.calls += 1;
        match self.signals && self.calls % 2 == 1 {
            true => Err(ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }
}

impl Socket for Pipe {
    fn try_read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.broken_off()?;
        self.reads += 1;
        let mut way = self.incoming.borrow_mut();
        let count = way.bytes.len().min(into.len());
        if count == 0 && !way.ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        for (place, byte) in into.iter_mut().zip(way.bytes.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }

    fn try_write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.broken_off()?;
        let offered: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).collect();
        let count = offered.len().min(self.room);
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.room -= count;
        self.outgoing.borrow_mut().bytes.extend(&offered[..count]);
        Ok(count)
    }

    fn shut(&mut self) -> io::Result<()> {
        self.outgoing.borrow_mut().ended = true;
        Ok(())
    }

    fn is_connected(&mut self) -> io::Result<bool> {
        Ok(self.connected)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.outgoing.borrow_mut().ended = true;
    }
}

/// Two wires, and what came before each was a link's.
fn wires() -> [(Wire<Pipe>, BytesMut); 2] {
    let ((near, far), (dialling, answering)) = (ends(), sessions());
    [(near, dialling), (far, answering)].map(|(pipe, session)| {
        let wire = Wire::new(pipe, Some(session), None);
        (wire, BytesMut::new())
    })
}

#[test]
fn a_handshake_goes_on_behind_every_signal() {
    let [(mut near, mut early), (mut far, mut later)] = wires();
    (near.socket.signals, far.socket.signals) = (true, true);
    let mut opened = [None; 2];
    for _ in 0..4 {
        opened = [
            near.shake(&mut early).unwrap(),
            far.shake(&mut later).unwrap(),
        ];
    }
    // Each of them read and wrote until it would have blocked, and not until it was broken off.
    assert!(matches!(opened[0], Some(Binding::Proved { .. })));
    assert!(matches!(opened[1], Some(Binding::Proved { .. })));
}

#[test]
fn whoever_does_not_take_the_handshake_is_not_read() {
    let [(mut near, mut early), (mut far, mut later)] = wires();
    assert_eq!(near.shake(&mut early), Ok(None));
    far.socket.room = 100;
    assert_eq!(far.shake(&mut later), Ok(None));
    assert!(far.owes());
    let reads = far.socket.reads;
    near.socket.say(&[0; 100_000]);
    for _ in 0..100 {
        assert_eq!(far.shake(&mut later), Ok(None));
    }
    assert_eq!((far.socket.reads, later.len()), (reads, 0));
    // The dialler has its channel before its last words are gone, and is as patient.
    let [(mut near, mut early), (mut far, mut later)] = wires();
    near.shake(&mut early).unwrap();
    far.shake(&mut later).unwrap();
    near.socket.room = 0;
    assert_eq!(near.shake(&mut early), Ok(None));
    let reads = near.socket.reads;
    far.socket.say(&[0; 100_000]);
    assert_eq!(near.shake(&mut early), Ok(None));
    assert_eq!((near.socket.reads, early.len()), (reads, 0));
    near.socket.room = usize::MAX;
    assert!(matches!(near.shake(&mut early), Ok(Some(_))));
}

#[test]
fn a_station_that_closes_before_it_says_anything_is_told_apart_from_one_that_breaks_off() {
    let [(mut near, mut early), (far, _)] = wires();
    assert_eq!(near.shake(&mut early), Ok(None));
    drop(far);
    assert_eq!(near.shake(&mut early), Err(TlsFault::Closed));
    let [(mut near, mut early), (mut far, mut later)] = wires();
    assert_eq!(near.shake(&mut early), Ok(None));
    far.socket.room = 100;
    assert_eq!(far.shake(&mut later), Ok(None));
    assert_eq!(near.shake(&mut early), Ok(None));
    drop(far);
    assert_eq!(near.shake(&mut early), Err(TlsFault::Io));
    // A station does not say of who left that it is full.
    let doors = crate::Doors::new(crate::DoorLimits::default(), 1);
    let guest = doors.enter([192, 0, 2, 1].into(), true, tidings::Instant::ORIGIN);
    let ((near, far), (_, answering)) = (ends(), sessions());
    let mut answers = Wire::new(near, Some(answering), guest.ok());
    drop(far);
    assert_eq!(answers.shake(&mut BytesMut::new()), Err(TlsFault::Io));
}

#[test]
fn whoever_goes_on_talking_after_a_refusal_is_left_however_often_that_is_asked() {
    let (near, mut far) = ends();
    let mut wire = Wire::new(near, None, None);
    let mut calls = 0;
    let end = loop {
        far.say(b"and another thing");
        calls += 1;
        match wire.leave() {
            Err(error) if not_now(&error) => {}
            end => break end.unwrap_err().kind(),
        }
    };
    assert_eq!(end, ErrorKind::ConnectionAborted);
    assert!(far.has_ended());
    assert!(calls <= 64 && wire.socket.reads == 64, "{calls}");
    // One that goes is no trouble.
    let (near, mut far) = ends();
    let mut wire = Wire::new(near, None, None);
    far.say(b"well then");
    far.shut().unwrap();
    assert!(wire.leave().is_ok());
}

#[test]
fn a_plain_read_has_room_for_what_comes_and_takes_little_where_little_does() {
    let (near, mut far) = ends();
    let (mut wire, mut into) = (Wire::new(near, None, None), BytesMut::new());
    far.say(&vec![7; 1_000_000]);
    let mut came = Vec::new();
    loop {
        match wire.read(&mut into) {
            Ok(read) => came.push(read.bytes),
            Err(error) => {
                assert!(not_now(&error));
                break;
            }
        }
        assert!(into.iter().all(|byte| *byte == 7));
        assert_eq!(into.len(), *came.last().unwrap());
        into.clear();
    }
    assert_eq!(came[..5], [4096, 8192, 16_384, 32_768, MOST_READ]);
    assert_eq!(came.iter().sum::<usize>(), 1_000_000);
    assert!(into.is_empty(), "nothing of a read that would block");
    for _ in 0..5 {
        far.say(b"a word");
        wire.read(&mut into).unwrap();
    }
    assert_eq!((wire.room, into.len()), (LEAST_READ, 30));
    // A frame that began has its place beside what comes, and one longer than a read is read as fast as any.
    far.say(&[7; 3 * MOST_READ]);
    let [begun, longer, more] = [50_000, MOST_READ - 1, 5 * MOST_READ];
    for (begun, room) in [
        (begun, MOST_READ - begun),
        (longer, MOST_READ),
        (more, MOST_READ),
    ] {
        into.resize(begun, 0);
        wire.room = MOST_READ;
        assert_eq!(wire.read(&mut into).unwrap().bytes, room);
    }
    far.shut().unwrap();
    drop(far);
    let last = std::iter::from_fn(|| wire.read(&mut into).ok()).find(|read| read.ended);
    assert_eq!(last.unwrap().bytes, 0);
}
