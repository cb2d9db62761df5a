//! A lane's own notices, until they are handed out.
//!
//! Decides: which notices of one epoch become one when few places are left. Leaves to others: what they say. Believes: no clock.
//! Bounded by: six, of which two are kept for what cannot be refused.

use super::clash::Clash;

/// Places that only the end of an episode may take.
const RESERVED: usize = 2;
const PLACES: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    Conflict {
        epoch: u64,
        first: u64,
        last: u64,
        count: u64,
    },
    Restarted {
        epoch: u64,
        greater: bool,
    },
    Resynced {
        epoch: u64,
    },
    TwoCounters {
        epoch: u64,
    },
}

/// Notices with their rank among all that the lane decided.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notes {
    notes: [Option<(u64, Note)>; PLACES],
    len: usize,
}

impl Notes {
    /// Places a command may fill.
    pub(super) fn free(&self) -> usize {
        (PLACES - RESERVED).saturating_sub(self.len)
    }

    pub(super) fn push(&mut self, place: u64, note: Note) {
        debug_assert!(
            self.len < PLACES,
            "commands look for room, episodes have theirs"
        );
        if let Some(free) = self.notes.get_mut(self.len) {
            *free = Some((place, note));
            self.len += 1;
        }
    }

    /// An episode ended. With only the reserved places left it joins one of the same epoch that still waits.
    pub(super) fn push_clash(&mut self, place: u64, clash: Clash) {
        if self.free() == 0 {
            for (_, note) in self.notes.iter_mut().flatten() {
                if let Note::Conflict {
                    epoch,
                    first,
                    last,
                    count,
                } = note
                    && *epoch == clash.epoch
                {
                    *first = clash.first.min(*first);
                    *last = clash.last.max(*last);
                    *count = count.saturating_add(clash.count);
                    return;
                }
            }
        }
        let Clash {
            epoch,
            first,
            last,
            count,
            ..
        } = clash;
        self.push(
            place,
            Note::Conflict {
                epoch,
                first,
                last,
                count,
            },
        );
    }

    pub(super) fn front_place(&self) -> Option<u64> {
        self.notes[0].map(|(place, _)| place)
    }

    pub(super) fn pop(&mut self) -> Option<Note> {
        let (_, note) = self.notes[0].take()?;
        self.notes.rotate_left(1);
        self.len -= 1;
        Some(note)
    }
}
