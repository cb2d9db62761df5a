//! Tickets, memory, deadlines: what has to come to an end, stay small, and keep still.
//!
//! Decides: what is too much, too often, or never over. Leaves to others: streams. Believes: the true time. Bounded by: the run.

use alloc::format;

use super::Findings;
use crate::sim::plan::Op;
use crate::sim::world::World;
use crate::{Duration, Instant, MemoryReport, Outcome};

/// How long a publication may stay unsettled.
const PATIENCE: Duration = Duration::from_secs(5);

impl World {
    /// Each publication is settled once, in time, and as it went.
    pub(super) fn check_tickets(&self, found: &mut Findings) {
        for (number, made) in self.truth.made.iter().enumerate() {
            let life = &self.truth.lives[made.life];
            let times = made.settled.len();
            if times > 1 || (times == 0 && life.ended.is_none()) {
                found.add("tickets", || format!("#{number} was settled {times} times"));
                continue;
            }
            let Some((at, outcome)) = made.settled.first().copied() else {
                continue;
            };
            let late = at > made.at.saturating_add(PATIENCE + Duration::from_millis(1));
            if late && !self.sleeps() {
                found.add("tickets", || {
                    format!("#{number} was settled after more than 5 s")
                });
            }
            let admitted = || {
                let mut runs = self.truth.runs.iter();
                runs.any(|run| {
                    run.admitted
                        .iter()
                        .any(|(other, _)| *other as usize == number)
                })
            };
            let right = match outcome {
                Outcome::Cancelled => made.cancelled,
                Outcome::Routed { .. } | Outcome::NoSubscriber => admitted(),
                Outcome::Unknown => self.is_troubled(made.at, made.at.saturating_add(PATIENCE)),
                Outcome::Refused(_) => true,
            };
            if !right {
                found.add("tickets", || {
                    format!("#{number} was settled {outcome:?} without a cause")
                });
            }
        }
    }

    fn sleeps(&self) -> bool {
        self.plan
            .acts
            .iter()
            .any(|act| matches!(act.op, Op::SleepNode { .. }))
    }

    /// Whether a fault was at work between these two.
    fn is_troubled(&self, from: Instant, to: Instant) -> bool {
        let margin = Duration::from_secs(3);
        self.troubles
            .iter()
            .any(|(began, ended)| *began <= to && ended.saturating_add(margin) >= from)
            || from <= self.plan.calm && to >= self.plan.calm
    }

    /// What a machine keeps is within its bounds, and at rest nothing is kept of what is over.
    pub(in crate::sim) fn check_memory(
        &mut self,
        host: usize,
        report: &MemoryReport,
        at_rest: bool,
    ) {
        let stations = self.stations.len();
        let most = match host.checked_sub(stations) {
            Some(node) => self.client_limits(node).worst_case_bytes(),
            None => self.station_limits(host).worst_case_bytes(0),
        };
        let bytes = report.bytes();
        if bytes > most {
            self.wrong(
                "memory",
                format!("host {host} keeps {bytes} bytes, at most {most} are allowed"),
            );
        }
        for line in &report.lines {
            if line.used > line.capacity {
                self.wrong(
                    "memory",
                    format!(
                        "host {host}: {} holds {} of {}",
                        line.name, line.used, line.capacity
                    ),
                );
            }
            let idle = matches!(
                line.name,
                "tickets" | "verifications" | "held_bytes" | "read_bytes"
            );
            if at_rest && idle && line.used > 0 {
                self.wrong(
                    "memory",
                    format!("host {host} at rest: {} holds {}", line.name, line.used),
                );
            }
        }
    }

    /// Nobody is woken for nothing.
    pub(super) fn check_wakeups(&self, found: &mut Findings) {
        let seconds = self.net.truth().as_micros() / 1_000_000;
        for (index, host) in self.net.hosts.iter().enumerate() {
            let most = 200 + 8 * seconds + 4 * host.inputs;
            let wakeups = host.wakeups;
            if wakeups > most {
                found.add("deadlines", || {
                    format!(
                        "host {index} was woken {wakeups} times in {seconds} s, with {} inputs",
                        host.inputs
                    )
                });
            }
        }
    }
}
