//! A lane's own notices, until they are handed out.
//!
//! Decides: nothing; the end of an episode cannot be refused, so each open one has a place kept. Leaves to others: what they say. Believes:
//! no clock. Bounded by: six.

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
    /// Places a command may fill while `open` episodes will need one each.
    pub(super) fn free(&self, open: usize) -> usize {
        PLACES.saturating_sub(self.len + open)
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
