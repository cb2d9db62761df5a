//! The other end of a link: it shakes hands as it must, takes what the machine writes apart into frames, and may keep the rules besides.

use tidings::code::OutcomeCode;
use tidings::crypto::Signer;
use tidings::link::{Link, LinkSettings, Step};
use tidings::pump::{LinkIo, Machine};
use tidings::sim::{FAKE_PROFILE, fake_signer};
use tidings::wire::{
    Event, Frame, MAX_MAX_FRAME, Phase, Position, Published, Refused, ResumeOutcome, Role, Skipped,
    Split, Subscribed, next_frame,
};
use tidings::{Binding, Intake, LinkId, Now};

/// Marks the names of streams: anycast events of an id, and answers to a publish.
pub const ONES: u64 = 1 << 61;
const ANSWERS: u64 = 1 << 60;

/// One link: the driver's half, and the peer.
#[derive(Debug)]
pub struct Wire {
    pub io: LinkIo,
    /// Counts the connections of a play.
    pub connection: u32,
    pub peer: Box<Link>,
    /// What the machine wrote after the handshake and is not a whole frame yet.
    written: Vec<u8>,
    pub intake: Intake,
    /// What the honest peer answers at the next wait, framed.
    pub replies: Vec<u8>,
    /// It was fed whole frames only, and took them.
    pub clean: bool,
}

impl Wire {
    /// `is_station`: the peer is one, and was dialled. `at` names its key.
    pub fn new(id: LinkId, connection: u32, at: usize, is_station: bool, now: Now) -> Self {
        let role = if is_station {
            Role::Station
        } else {
            Role::Node
        };
        let settings = LinkSettings {
            allow_local: true,
            ..LinkSettings::new(FAKE_PROFILE, fake_signer(key_of(at)).public_key(), role)
        };
        let peer = if is_station {
            Link::accept(now.mono, settings, Binding::Local, [7; 32])
        } else {
            Link::dial(now.mono, settings, None, Binding::Local, [7; 32])
        };
        Self {
            io: LinkIo::new(id),
            connection,
            peer: Box::new(peer.expect("settings of this file")),
            written: Vec::new(),
            intake: Intake::Open,
            replies: Vec::new(),
            clean: true,
        }
    }

    /// Takes all the machine has to write.
    pub fn take_written(&mut self, machine: &mut dyn Machine, now: Now) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.io.fill(machine) {
            let mut slices: [&[u8]; 8] = [&[]; 8];
            let count = self.io.chunks(&mut slices);
            let taken = slices[..count].concat();
            self.io.wrote(machine, now, taken.len());
            bytes.extend_from_slice(&taken);
        }
        self.written.extend_from_slice(&bytes);
        bytes
    }

    /// Goes on with the handshake, and shows every frame that comes after it.
    pub fn read_written(
        &mut self,
        now: Now,
        at: usize,
        mut shown: impl FnMut(&Frame<'_>, &mut Vec<u8>),
    ) {
        let written = core::mem::take(&mut self.written);
        let mut rest = &written[..];
        while let Ok(Split::Frame { body, taken }) = next_frame(rest, MAX_MAX_FRAME) {
            if self.peer.is_up() {
                let frame =
                    Frame::decode(body, Phase::Established).expect("a machine writes frames");
                shown(&frame, &mut self.replies);
            } else {
                let signer = fake_signer(key_of(at));
                match self.peer.handle_frame(now, body, &signer) {
                    Ok(Step::Verified(_)) => self.peer.admit(&signer).expect("it waits for this"),
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
            rest = &rest[taken..];
        }
        self.written = rest.to_vec();
    }
}

/// Under which name a frame of a station has its place in the order of one stream.
pub fn stream_of(frame: &Frame<'_>) -> Option<u64> {
    match frame {
        // Anycast goes before the rings.
        Frame::Event(Event { id, offset: 0, .. }) => Some(id | ONES),
        Frame::Event(Event { id, .. })
        | Frame::Skipped(Skipped { id, .. })
        | Frame::Subscribed(Subscribed { id, .. })
        | Frame::Refused(Refused { id, .. }) => Some(*id),
        // Ids of publishes are counted apart.
        Frame::Published(Published { id, .. }) => Some(id | ANSWERS),
        _ => None,
    }
}

/// The seed of the key of this link's peer.
pub fn key_of(at: usize) -> u64 {
    1 + at as u64
}

/// What a peer that keeps the rules answers.
pub fn honest(frame: &Frame<'_>, is_station: bool, replies: &mut Vec<u8>) {
    let reply = match frame {
        Frame::Ping(nonce) => Frame::Pong(nonce),
        Frame::Subscribe(subscribe) if is_station => Frame::Subscribed(Subscribed {
            id: subscribe.id,
            resume: subscribe.resume.map_or(ResumeOutcome::None, |position| {
                ResumeOutcome::Expired {
                    oldest: position.offset,
                }
            }),
            position: Position {
                run: tidings::RunId::new([9; 8]),
                offset: 0,
            },
        }),
        Frame::Publish(publish) if is_station => Frame::Published(Published {
            id: publish.id,
            limit: None,
            reason: None,
            outcome: OutcomeCode::Routed,
            subscribers: 1,
        }),
        _ => return,
    };
    reply.encode_framed(replies);
}
