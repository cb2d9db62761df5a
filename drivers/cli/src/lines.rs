//! Standard input or a file, in chunks of whole lines.
//!
//! Decides: where lines end. Leaves to others: what they mean. Believes: no clock. Bounded by: four chunks of about 64 KiB on their
//! way, and one line of at most [`MAX_LINE`] bytes; a longer one ends the reading.
//!
//! Reading blocks, so it has a thread of its own; a chunk is handed on as soon as a read gave a whole line, so that typed lines are
//! not held back.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tokio::sync::mpsc;

use crate::exit::Failure;

/// The longest line taken, in bytes: more than any station takes as one publication.
pub(crate) const MAX_LINE: usize = 2 << 20;

const CHUNK: usize = 64 << 10;

/// Why reading ended early, after all whole lines before it.
#[derive(Debug)]
pub(crate) enum ReadError {
    Io(io::Error),
    LineTooLong,
}

/// Whole lines, each with its line end but perhaps the last of all.
pub(crate) type Chunks = mpsc::Receiver<Result<Vec<u8>, ReadError>>;

/// Opens `path`, `-` being standard input.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let shown = path.display();
    let refuse = |why: &str| {
        Failure::usage(format!(
            "cannot read {shown}: {why}. name a file, or - for standard input"
        ))
    };
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refuse("no such file"),
        _ => refuse(&error.to_string()),
    })?;
    if file.metadata().is_ok_and(|meta| meta.is_dir()) {
        return Err(refuse("it is a folder"));
    }
    Ok(Box::new(file))
}

/// Starts reading.
pub(crate) fn chunks(input: Box<dyn Read + Send>) -> Chunks {
    let (sender, receiver) = mpsc::channel(4);
    // Not a task of the runtime: a read of a terminal may never come back.
    std::thread::spawn(move || read(input, &sender));
    receiver
}

fn read(mut input: Box<dyn Read + Send>, sender: &mpsc::Sender<Result<Vec<u8>, ReadError>>) {
    let mut rest: Vec<u8> = Vec::new();
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = match input.read(&mut buffer) {
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                sender
                    .blocking_send(Err(ReadError::Io(error)))
                    .unwrap_or_default();
                return;
            }
        };
        if read.is_empty() {
            if !rest.is_empty() {
                sender.blocking_send(Ok(rest)).unwrap_or_default();
            }
            return;
        }
        match read.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => {
                rest.extend_from_slice(&read[..=end]);
                let whole = std::mem::replace(&mut rest, read[end + 1..].to_vec());
                if sender.blocking_send(Ok(whole)).is_err() {
                    return;
                }
            }
            None => rest.extend_from_slice(read),
        }
        if rest.len() > MAX_LINE {
            sender
                .blocking_send(Err(ReadError::LineTooLong))
                .unwrap_or_default();
            return;
        }
    }
}

/// The lines of one chunk, without their ends (`\n` or `\r\n`).
pub(crate) fn split(chunk: &[u8]) -> impl Iterator<Item = &[u8]> {
    chunk.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Slow(Vec<u8>);

    impl Read for Slow {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            out[0] = self.0.remove(0);
            Ok(1)
        }
    }

    fn lines(input: Box<dyn Read + Send>) -> Vec<Vec<u8>> {
        let mut chunks = chunks(input);
        let mut lines = Vec::new();
        while let Some(Ok(chunk)) = chunks.blocking_recv() {
            lines.extend(split(&chunk).map(<[u8]>::to_vec));
        }
        lines
    }

    #[test]
    fn lines_do_not_depend_on_how_reads_are_cut() {
        let text = b"one\n\ntwo\r\nthree".to_vec();
        let wanted: [&[u8]; 4] = [b"one", b"", b"two", b"three"];
        assert_eq!(lines(Box::new(io::Cursor::new(text.clone()))), wanted);
        assert_eq!(lines(Box::new(Slow(text))), wanted);
    }

    #[test]
    fn a_line_without_end_is_given_up_not_kept() {
        let mut chunks = chunks(Box::new(io::repeat(b'x')));
        assert!(matches!(
            chunks.blocking_recv(),
            Some(Err(ReadError::LineTooLong))
        ));
        assert!(chunks.blocking_recv().is_none());
    }
}
