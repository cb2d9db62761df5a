//! The least a frame costs on a loopback TCP connection: one end writes 16 at a time, the other finds where each ends.
//!
//! Decides: the loops drivers are held against, one for each library. Leaves to others: what is in the frames. Believes: no clock.
//! Bounded by: the frames it is given.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

use mio::{Events, Interest, Poll, Token};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Frames in one write.
pub(super) const PER_WRITE: usize = 16;
/// Room of one read, as the drivers have it.
const READ: usize = 64 * 1024;

/// Who reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Library {
    Std,
    Tokio,
    Mio,
}

/// Whole frames, one behind the other.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) bytes: Vec<u8>,
    /// Where each write begins and, last, where the last one ends.
    writes: Vec<usize>,
    pub(super) count: usize,
}

impl Frames {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let mut finder = Finder::default();
        let (mut writes, mut count) = (vec![0], 0);
        finder.find(&bytes, |_, end| {
            count += 1;
            if count % PER_WRITE == 0 {
                writes.push(end);
            }
        });
        if count % PER_WRITE > 0 {
            writes.push(bytes.len());
        }
        Self {
            bytes,
            writes,
            count,
        }
    }

    /// What goes into each write.
    fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.writes
            .windows(2)
            .map(|ends| &self.bytes[ends[0]..ends[1]])
    }
}

/// Finds frames in a stream of reads.
#[derive(Debug, Default)]
pub(super) struct Finder {
    /// Bytes of a frame that began in an earlier read.
    begun: Vec<u8>,
}

impl Finder {
    /// Hands each whole frame's length, and where in `read` it ends, to `each`.
    pub(super) fn find(&mut self, read: &[u8], mut each: impl FnMut(usize, usize)) {
        let mut at = 0;
        // What began earlier is made whole with as much of this read as it takes.
        while !self.begun.is_empty() && at < read.len() {
            let whole = length(&self.begun).unwrap_or(4);
            let take = (whole - self.begun.len()).min(read.len() - at);
            self.begun.extend_from_slice(&read[at..at + take]);
            at += take;
            if length(&self.begun) == Some(self.begun.len()) {
                each(self.begun.len(), at);
                self.begun.clear();
            }
        }
        while let Some(whole) = length(&read[at..]).filter(|whole| at + whole <= read.len()) {
            at += whole;
            each(whole, at);
        }
        self.begun.extend_from_slice(&read[at..]);
    }
}

/// A frame's whole length, as its first four bytes say.
fn length(bytes: &[u8]) -> Option<usize> {
    let head: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    Some(4 + u32::from_be_bytes(head) as usize)
}

/// Writes all of them.
pub(super) fn write(library: Library, mut stream: TcpStream, frames: &Frames) -> io::Result<()> {
    match library {
        Library::Std => frames
            .chunks()
            .try_for_each(|chunk| stream.write_all(chunk)),
        Library::Tokio => runtime()?.block_on(async {
            stream.set_nonblocking(true)?;
            let mut stream = tokio::net::TcpStream::from_std(stream)?;
            for chunk in frames.chunks() {
                stream.write_all(chunk).await?;
            }
            Ok(())
        }),
        Library::Mio => {
            let (mut poll, mut stream) = polled(stream, Interest::WRITABLE)?;
            let mut events = Events::with_capacity(8);
            for chunk in frames.chunks() {
                let mut left = chunk;
                while !left.is_empty() {
                    match stream.write(left) {
                        Ok(count) => left = &left[count..],
                        Err(error) if error.kind() == ErrorKind::WouldBlock => {
                            poll.poll(&mut events, None)?
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            Ok(())
        }
    }
}

/// Reads until `each` says that was all.
pub(super) fn read(
    library: Library,
    mut stream: TcpStream,
    mut each: impl FnMut(&[u8]) -> bool,
) -> io::Result<()> {
    let mut room = vec![0; READ];
    match library {
        Library::Std => loop {
            let count = stream.read(&mut room)?;
            if count == 0 || each(&room[..count]) {
                return Ok(());
            }
        },
        Library::Tokio => runtime()?.block_on(async {
            stream.set_nonblocking(true)?;
            let mut stream = tokio::net::TcpStream::from_std(stream)?;
            loop {
                let count = stream.read(&mut room).await?;
                if count == 0 || each(&room[..count]) {
                    return Ok(());
                }
            }
        }),
        Library::Mio => {
            let (mut poll, mut stream) = polled(stream, Interest::READABLE)?;
            let mut events = Events::with_capacity(8);
            loop {
                match stream.read(&mut room) {
                    Ok(count) if count == 0 || each(&room[..count]) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        poll.poll(&mut events, None)?
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn polled(stream: TcpStream, interest: Interest) -> io::Result<(Poll, mio::net::TcpStream)> {
    stream.set_nonblocking(true)?;
    let poll = Poll::new()?;
    let mut stream = mio::net::TcpStream::from_std(stream);
    poll.registry().register(&mut stream, Token(0), interest)?;
    Ok((poll, stream))
}
