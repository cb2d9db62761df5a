//! What a node reports of itself, by name: first at once, then a count per window.
//!
//! Decides: when a report is due. Leaves to others: writing it down. Believes: mono. Bounded by: one window and one report per code and
//! [`WINDOW`]; nothing here allocates.

use crate::action::StationRef;
use crate::code::DiagnosticCode;
use crate::time::{Duration, Instant};

/// After a report of a code, further ones are counted for so long, and reported together.
pub const WINDOW: Duration = Duration::from_secs(10);

const CODES: usize = DiagnosticCode::ALL.len();

/// One thing worth a line in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What happened (WIRE.md 10.14).
    pub code: DiagnosticCode,
    /// How often since the last report of this code, this time included.
    pub count: u64,
    /// At which of the configured stations, the last time.
    pub station: Option<StationRef>,
    /// Why, the last time: a text of a closed set, or empty.
    pub reason: &'static str,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    until: Option<Instant>,
    count: u64,
    station: Option<StationRef>,
    reason: &'static str,
}

/// The windows of all codes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Diagnostics {
    windows: [Window; CODES],
    totals: [u64; CODES],
}

impl Diagnostics {
    /// It happened. Answers what is to be reported now: the first of its code, or the first after its window.
    pub fn record(
        &mut self,
        now: Instant,
        code: DiagnosticCode,
        station: Option<StationRef>,
        reason: &'static str,
    ) -> Option<Diagnostic> {
        let at = place(code)?;
        let total = self.totals.get_mut(at)?;
        *total = total.saturating_add(1);
        let window = self.windows.get_mut(at)?;
        window.count = window.count.saturating_add(1);
        (window.station, window.reason) = (station, reason);
        match window.until {
            Some(until) if now < until => None,
            _ => Some(window.report(now, code)),
        }
    }

    /// Reports one code whose window is over, the first in the order of the table. Call until `None`.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Diagnostic> {
        let mut all = DiagnosticCode::ALL.iter().zip(&mut self.windows);
        all.find_map(|(code, window)| {
            window.until.take_if(|until| *until <= now)?;
            (window.count > 0).then(|| window.report(now, *code))
        })
    }

    /// When a window that counted something is over.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let counting = self.windows.iter().filter(|window| window.count > 0);
        counting.filter_map(|window| window.until).min()
    }

    /// How often it happened in all.
    pub fn total(&self, code: DiagnosticCode) -> u64 {
        place(code).map_or(0, |at| self.totals[at])
    }
}

impl Window {
    fn report(&mut self, now: Instant, code: DiagnosticCode) -> Diagnostic {
        self.until = Some(now.saturating_add(WINDOW));
        Diagnostic {
            code,
            count: core::mem::take(&mut self.count),
            station: self.station,
            reason: self.reason,
        }
    }
}

fn place(code: DiagnosticCode) -> Option<usize> {
    DiagnosticCode::ALL.iter().position(|one| *one == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn the_first_is_reported_at_once_and_the_others_of_its_window_together() {
        let mut all = Diagnostics::default();
        let code = DiagnosticCode::LinkDown;
        let first = all.record(at(5), code, Some(StationRef(1)), "io");
        assert_eq!(first.map(|one| (one.count, one.reason)), Some((1, "io")));
        assert_eq!(all.poll_timeout(), None);
        for millis in [6, 7, 10_004] {
            assert_eq!(all.record(at(millis), code, None, "draining"), None);
        }
        let other = all.record(at(9000), DiagnosticCode::ClockJumped, None, "");
        assert_eq!(other.map(|one| one.count), Some(1));
        assert_eq!(all.poll_timeout(), Some(at(10_005)));
        assert_eq!(all.handle_timeout(at(10_004)), None);
        let swept = all
            .handle_timeout(at(10_005))
            .expect("what the window counted");
        assert_eq!(
            (swept.count, swept.reason, swept.station),
            (3, "draining", None)
        );
        assert_eq!(all.handle_timeout(at(10_005)), None);
        // The window that began with the sweep counts on; without a sweep the next one reports itself.
        assert_eq!(all.record(at(20_004), code, None, "io"), None);
        let next = all.record(at(20_005), code, None, "io");
        assert_eq!(next.map(|one| one.count), Some(2));
        assert_eq!(all.total(code), 6);
        assert_eq!(all.total(DiagnosticCode::FactsDropped), 0);
    }

    #[test]
    fn every_code_has_its_window() {
        let mut all = Diagnostics::default();
        for code in DiagnosticCode::ALL {
            assert!(all.record(at(0), *code, None, "").is_some());
            assert!(all.record(at(1), *code, None, "").is_none());
        }
        let swept = core::iter::from_fn(|| all.handle_timeout(at(10_000)));
        assert_eq!(swept.count(), DiagnosticCode::ALL.len());
        assert_eq!(all.poll_timeout(), None);
    }
}
