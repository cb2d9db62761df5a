//! What a driver asks of a machine beside its links.
//!
//! Decides: nothing. Leaves to others: the machine. Believes: the `Now` it is handed. Bounded by: the machine.

use tidings::pump::Machine;
use tidings::{Answer, AskId, Client, GroupId, Now, Station, StationRef};

/// A machine that is run with sockets.
pub trait Run: Machine {
    /// Says goodbye and ends what there is to end.
    fn close(&mut self, now: Now);

    /// A dial came to nothing, for that reason. Who asks for none hears of none.
    fn dial_failed(&mut self, _now: Now, _station: StationRef, _reason: &'static str) {}

    /// A question was answered. Who asks none hears none.
    fn answered(&mut self, _now: Now, _ask: AskId, _answer: Answer) {}
}

impl Run for Client {
    fn close(&mut self, now: Now) {
        Self::close(self, now);
    }

    fn dial_failed(&mut self, now: Now, station: StationRef, reason: &'static str) {
        // It was dialled, or there would be no attempt to report.
        self.handle_dial_failed(now, station, reason).ok();
    }

    fn answered(&mut self, now: Now, ask: AskId, answer: Answer) {
        // One that is given too late is nobody's.
        self.answer(now, ask, answer).ok();
    }
}

impl Run for Station {
    fn close(&mut self, now: Now) {
        Self::close(self, now);
    }
}

/// Whether a publication that was refused for want of a group's keys may still be taken once their question is answered.
pub fn keys_pending(client: &Client, group: GroupId) -> bool {
    client.group(group).is_some_and(|status| status.pending)
}
