//! A stream of frames in one phase of a link: the same frames wherever the stream is cut, CBOR faults before all others, and each frame
//! that is taken is written again as the same bytes, into a `Vec` and into a slice of exactly its length.
//!
//! Input: a byte for the phase, a byte with the number of cuts, the cuts, and the stream.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::LinkError;
use tidings::wire::{
    DEFAULT_MAX_FRAME, Frame, FrameFault, HANDSHAKE_CAP, Phase, Split, next_frame,
};
use tidings_fuzz::{cbor, cuts};

const PHASES: [Phase; 5] = [
    Phase::Established,
    Phase::Opener,
    Phase::Challenge,
    Phase::Connect,
    Phase::Hello,
];

fuzz_target!(|data: &[u8]| {
    let [phase, count, rest @ ..] = data else {
        return;
    };
    let phase = PHASES[usize::from(*phase) % PHASES.len()];
    let cap = if phase == Phase::Established {
        DEFAULT_MAX_FRAME
    } else {
        HANDSHAKE_CAP
    };
    let (recipe, stream) = rest.split_at(usize::from(*count).min(rest.len()));
    let whole = split(&[stream], cap);
    assert_eq!(whole, split(&cuts::pieces(stream, recipe), cap));
    for body in &whole.0 {
        decode(body, phase);
    }
});

/// The bodies of the whole frames, and how it ended: a refused length, or how many bytes are left over.
fn split(pieces: &[&[u8]], cap: u32) -> (Vec<Vec<u8>>, Result<usize, FrameFault>) {
    let mut buffered = Vec::new();
    let mut bodies = Vec::new();
    for piece in pieces {
        buffered.extend_from_slice(piece);
        loop {
            match next_frame(&buffered, cap) {
                Ok(Split::Frame { body, taken }) => {
                    assert_eq!(taken, body.len() + 4);
                    bodies.push(body.to_vec());
                    buffered.drain(..taken);
                }
                Ok(Split::More(missing)) => {
                    assert!(missing > 0 && missing <= cap as usize + 4);
                    break;
                }
                Err(fault) => return (bodies, Err(fault)),
            }
        }
    }
    (bodies, Ok(buffered.len()))
}

fn decode(body: &[u8], phase: Phase) {
    let decoded = Frame::decode(body, phase);
    if let Err(reason) = cbor::parse(body, false) {
        let Err(LinkError::Cbor(fault)) = decoded else {
            panic!("{reason} was not seen: {decoded:?}");
        };
        assert_eq!(fault.text(), reason);
        return;
    }
    let frame = match decoded {
        Ok(Frame::Unknown(_)) => {
            assert_eq!(phase, Phase::Established, "the handshake knows its frames");
            return;
        }
        Ok(frame) => frame,
        Err(LinkError::Cbor(fault)) => panic!("{fault} in bytes that keep the rule"),
        Err(_) => return,
    };
    let mut framed = Vec::new();
    frame.encode_framed(&mut framed);
    assert_eq!(framed[4..], *body, "a frame has one encoding");
    assert_eq!(frame.encoded_len(), body.len());
    let mut slice = vec![0; framed.len()];
    assert_eq!(frame.encode_framed_slice(&mut slice), Ok(framed.len()));
    assert_eq!(slice, framed);
    slice.pop();
    let short = frame
        .encode_framed_slice(&mut slice)
        .expect_err("one byte is missing");
    assert_eq!(short.needed, framed.len());
}
