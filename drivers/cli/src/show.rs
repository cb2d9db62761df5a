//! How the items of a stream look.
//!
//! Decides: one line per item. Leaves to others: what is missing. Believes: the wall times in notices, shown in UTC, and the host's date,
//! for how long an interruption was. Bounded by: one item at a time.
//!
//! Without `--json`: a text as it is (on a terminal, control characters are shown instead of sent), anything else as one line of JSON;
//! notices go to standard error. A text that holds line breaks spans lines: `--json` and `--raw` are exact.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use tidings::code::UnopenedReason;
use tidings::{Delivery, Notice, Numbering, WallMs};

use crate::args::SubArgs;
use crate::exit::say;
use crate::human::{self, clock, count, printable};
use crate::payload;

/// The form of this run.
#[derive(Debug)]
pub(crate) struct Show {
    json: bool,
    raw: bool,
    terminal: bool,
    stations: Vec<String>,
    /// Since when no station carries it.
    interrupted: Option<WallMs>,
    /// Reasons for which it was said what to do.
    advised: BTreeSet<&'static str>,
}

impl Show {
    pub(crate) fn new(args: &SubArgs, terminal: bool) -> Self {
        Self {
            json: args.json,
            raw: args.raw,
            terminal,
            stations: args.node.stations.clone(),
            interrupted: None,
            advised: BTreeSet::new(),
        }
    }

    /// Appends a fact.
    pub(crate) fn fact(&self, out: &mut Vec<u8>, fact: &Delivery) {
        if self.raw {
            payload::write_raw(out, fact.payload());
        } else if self.json {
            write_fact(out, fact);
        } else {
            payload::write_line(out, fact.payload(), self.terminal);
        }
    }

    /// Appends a notice, or says it where people read.
    pub(crate) fn notice(&mut self, out: &mut Vec<u8>, notice: &Notice) {
        if self.json {
            out.extend_from_slice(self.notice_json(notice).as_bytes());
            out.push(b'\n');
        } else {
            let line = self.notice_line(notice, human::now());
            say(format_args!("{}", printable(&line)));
        }
    }

    fn station(&self, index: u16) -> String {
        self.stations
            .get(usize::from(index))
            .cloned()
            .unwrap_or_else(|| format!("station {index}"))
    }

    /// The line begins with the notice's text, which `tidings explain` knows. `now` is the host's date.
    fn notice_line(&mut self, notice: &Notice, now: u64) -> String {
        let code = notice.code();
        match notice {
            Notice::Conflict {
                of,
                first,
                last,
                count: many,
            } => {
                let (many, of) = (count(*many), numbering(of));
                format!("{code}: {many} not delivered, {of} {first} to {last} twice")
            }
            Notice::Dropped {
                reason,
                count: many,
                publishers,
                from,
                to,
            } => {
                let (many, window) = (count(*many), window(*from, *to, now));
                let why = means(reason.text(), reason.explain().means);
                format!("{code} {window}: {many} of {publishers} publishers ({why})")
            }
            Notice::Ended { reason } => {
                format!("{code} ({})", means(reason.text(), reason.explain().means))
            }
            Notice::Unopened {
                of, seq, reason, ..
            } => {
                let explained = reason.explain();
                let why = means(reason.text(), explained.means);
                // What to do is said once.
                let advice = match self.advised.insert(reason.text()) {
                    true => format!(". {}", advice(*reason, explained.advice)),
                    false => String::new(),
                };
                let (seq, of) = (count(*seq), numbering(of));
                format!("{code}: {seq} of {of} ({why}){advice}")
            }
            Notice::Gap {
                from,
                to,
                reason,
                count: many,
            } => {
                self.interrupted = None;
                let many = many.map_or_else(
                    || "some".to_owned(),
                    |many| format!("up to {}", count(many)),
                );
                let window = window(*from, *to, now);
                let why = means(reason.text(), reason.explain().means);
                format!("{code} {window}: {many} may be missing ({why})")
            }
            Notice::Interrupted { from, reason } => {
                self.interrupted = Some(*from);
                let at = clock(from.as_millis(), now);
                let why = means(reason.text(), reason.explain().means);
                format!("{code} at {at} UTC ({why})")
            }
            Notice::Lagged {
                missed,
                notices,
                from,
                to,
                ..
            } => {
                let (missed, notices) = (count(*missed), count(*notices));
                let window = window(*from, *to, now);
                format!("{code} {window}: {missed} facts and {notices} notices given up")
            }
            Notice::Restarted { of, greater } => {
                let which = if *greater {
                    "a new numbering"
                } else {
                    "an older numbering"
                };
                format!("{code}: {which}, {}", numbering(of))
            }
            Notice::Resumed { recovered } => {
                let after = self.interrupted.take().map_or_else(String::new, |from| {
                    let lasted = now.saturating_sub(from.as_millis());
                    format!(" after {}", human::span(Duration::from_millis(lasted)))
                });
                format!("{code}{after}: {} recovered", count(*recovered))
            }
            Notice::Resynced { of } => {
                format!("{code}: earlier numbers unknown, {}", numbering(of))
            }
            Notice::Skipped { of, first, last } if first == last => {
                let of = numbering(of);
                format!("{code}: number {first} did not come in time, {of}")
            }
            Notice::Skipped { of, first, last } => {
                let of = numbering(of);
                format!("{code}: numbers {first} to {last} did not come in time, {of}")
            }
            Notice::SubscriptionRefused { station, reason } => {
                let why = means(reason.text(), reason.explain().means);
                format!("{code} by {} ({why})", self.station(station.0))
            }
            Notice::TwoCounters { of } => {
                let of = numbering(of);
                format!("{code}: two processes publish with one key, {of}")
            }
            Notice::Warning { table, fill } => format!("{code}: {table} is {fill} % full"),
            _ => format!("{code}: see tidings explain"),
        }
    }

    fn notice_json(&self, notice: &Notice) -> String {
        let mut object = serde_json::json!({ "notice": notice.code().text() });
        let mut put = |key: &str, value: serde_json::Value| {
            object[key] = value;
        };
        let put_window =
            |from: WallMs, to: WallMs, put: &mut dyn FnMut(&str, serde_json::Value)| {
                put("from", from.as_millis().into());
                put("to", to.as_millis().into());
            };
        match notice {
            Notice::Conflict {
                of,
                first,
                last,
                count,
            } => {
                put_numbering(of, &mut put);
                put("first", (*first).into());
                put("last", (*last).into());
                put("count", (*count).into());
            }
            Notice::Dropped {
                reason,
                count,
                publishers,
                from,
                to,
            } => {
                put("reason", reason.text().into());
                put("count", (*count).into());
                put("publishers", (*publishers).into());
                put_window(*from, *to, &mut put);
            }
            Notice::Ended { reason } => put("reason", reason.text().into()),
            Notice::Gap {
                from,
                to,
                reason,
                count,
            } => {
                put("reason", reason.text().into());
                put_window(*from, *to, &mut put);
                if let Some(count) = count {
                    put("count", (*count).into());
                }
            }
            Notice::Interrupted { from, reason } => {
                put("reason", reason.text().into());
                put("from", from.as_millis().into());
            }
            Notice::Lagged {
                missed,
                notices,
                first,
                from,
                to,
            } => {
                put("missed", (*missed).into());
                put("notices", (*notices).into());
                if let Some(first) = first {
                    put_numbering(&first.0, &mut put);
                    put("first", first.1.into());
                }
                put_window(*from, *to, &mut put);
            }
            Notice::Restarted { of, greater } => {
                put_numbering(of, &mut put);
                put("greater", (*greater).into());
            }
            Notice::Resumed { recovered } => put("recovered", (*recovered).into()),
            Notice::Resynced { of } | Notice::TwoCounters { of } => put_numbering(of, &mut put),
            Notice::Skipped { of, first, last } => {
                put_numbering(of, &mut put);
                put("first", (*first).into());
                put("last", (*last).into());
            }
            Notice::SubscriptionRefused { station, reason } => {
                put("station", self.station(station.0).into());
                put("reason", reason.text().into());
            }
            Notice::Unopened {
                of,
                seq,
                seal_key_id,
                reason,
            } => {
                put_numbering(of, &mut put);
                put("seq", (*seq).into());
                put("seal_key_id", key_id(seal_key_id).into());
                put("reason", reason.text().into());
            }
            Notice::Warning { table, fill } => {
                put("table", (*table).into());
                put("fill", (*fill).into());
            }
            _ => {}
        }
        object.to_string()
    }
}

fn key_id(id: &[u8; 8]) -> String {
    format!("{:016x}", u64::from_be_bytes(*id))
}

/// What this command can do about a fact that was not opened.
fn advice(reason: UnopenedReason, otherwise: &'static str) -> &'static str {
    match reason {
        UnopenedReason::NoGroup => "name its keys with --keys FILE",
        UnopenedReason::UnknownPeriod => {
            "see whether its publisher has the same keys file and the same time"
        }
        _ => otherwise,
    }
}

fn put_numbering(of: &Numbering, put: &mut impl FnMut(&str, serde_json::Value)) {
    put("publisher", of.publisher.to_string().into());
    put("topic", of.topic.as_str().into());
    put("epoch", of.epoch.into());
}

fn numbering(of: &Numbering) -> String {
    let mut text = format!("{} of ", of.topic);
    // Eight digits tell publishers apart on a screen; `--json` has all of them.
    text.extend(of.publisher.to_string().chars().take(8));
    text.push('…');
    text
}

/// A code's text and what it means, without its remarks.
fn means(text: &str, means: &str) -> String {
    let short = means.split(';').next().unwrap_or_default();
    format!("{text}: {short}")
}

/// `03:12:07–03:12:48 UTC, 41.2 s`; `until 03:12:48 UTC` where nobody knows when it began.
fn window(from: WallMs, to: WallMs, now: u64) -> String {
    let (from, to) = (from.as_millis(), to.as_millis());
    if from == 0 {
        return format!("until {} UTC", clock(to, now));
    }
    let lasted = human::span(Duration::from_millis(to.saturating_sub(from)));
    format!("{}–{} UTC, {lasted}", clock(from, now), clock(to, now))
}

fn write_fact(out: &mut Vec<u8>, fact: &Delivery) {
    let mut head = String::with_capacity(160);
    out.extend_from_slice(b"{\"topic\":");
    payload::write_text(out, fact.topic());
    write!(head, ",\"publisher\":\"{}\",\"epoch\":", fact.publisher()).unwrap_or_default();
    match fact.epoch() {
        Some(epoch) => write!(head, "{epoch}").unwrap_or_default(),
        None => head.push_str("null"),
    }
    let (seq, at, late) = (fact.seq(), fact.published_at().as_millis(), fact.late());
    write!(
        head,
        ",\"seq\":{seq},\"published_at\":{at},\"late\":{late},"
    )
    .unwrap_or_default();
    if let Some(id) = fact.seal_key_id() {
        let id = key_id(&id);
        write!(head, "\"sealed\":true,\"seal_key_id\":\"{id}\",").unwrap_or_default();
    }
    head.push_str("\"payload\":");
    out.extend_from_slice(head.as_bytes());
    payload::write_json(out, fact.payload());
    out.write_all(b"}\n").unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings::code::{CloseReason, GapReason};

    const NOON: u64 = 1_796_040_000_000;

    fn show() -> Show {
        Show {
            json: false,
            raw: false,
            terminal: false,
            stations: Vec::new(),
            interrupted: None,
            advised: BTreeSet::new(),
        }
    }

    #[test]
    fn an_interruption_and_its_end_are_said_with_times() {
        let mut show = show();
        let interrupted = Notice::Interrupted {
            from: WallMs::new(NOON),
            reason: CloseReason::Io,
        };
        assert_eq!(
            show.notice_line(&interrupted, NOON + 3000),
            "interrupted at 12:00:00 UTC (io: the transport ended without a goodbye)"
        );
        let resumed = Notice::Resumed { recovered: 20_512 };
        assert_eq!(
            show.notice_line(&resumed, NOON + 41_000),
            "resumed after 41.0 s: 20,512 recovered"
        );
        // Of an earlier run, which this one did not see end.
        assert_eq!(
            show.notice_line(&resumed, NOON + 41_000),
            "resumed: 20,512 recovered"
        );
    }

    #[test]
    fn a_gap_is_said_with_its_window_and_bound() {
        let gap = |count| Notice::Gap {
            from: WallMs::new(NOON),
            to: WallMs::new(NOON + 41_200),
            reason: GapReason::Expired,
            count,
        };
        let why = "(expired: the station's ring no longer holds what is missing)";
        assert_eq!(
            show().notice_line(&gap(Some(20_512)), NOON + 50_000),
            format!("gap 12:00:00–12:00:41 UTC, 41.2 s: up to 20,512 may be missing {why}")
        );
        assert_eq!(
            show().notice_line(&gap(None), NOON + 50_000),
            format!("gap 12:00:00–12:00:41 UTC, 41.2 s: some may be missing {why}")
        );
        // Read on another day, after a weekend.
        assert!(
            show()
                .notice_line(&gap(None), NOON + 3 * 86_400_000)
                .contains("2026-11-30 12:00:00–2026-11-30 12:00:41 UTC")
        );
    }

    #[test]
    fn a_window_whose_beginning_nobody_knows_has_an_end_alone() {
        let dropped = Notice::Dropped {
            reason: tidings::code::DropReason::BytesFull,
            count: 3,
            publishers: 1,
            from: WallMs::new(0),
            to: WallMs::new(NOON),
        };
        let line = show().notice_line(&dropped, NOON + 3000);
        assert!(
            line.starts_with("dropped until 12:00:00 UTC: 3 of"),
            "{line}"
        );
    }

    #[test]
    fn a_gap_in_json_has_codes_and_milliseconds() {
        let gap = Notice::Gap {
            from: WallMs::new(NOON),
            to: WallMs::new(NOON + 41_200),
            reason: GapReason::StationSkipped,
            count: Some(3),
        };
        let object: serde_json::Value = serde_json::from_str(&show().notice_json(&gap)).unwrap();
        let expected = serde_json::json!({
            "notice": "gap", "from": NOON, "to": NOON + 41_200, "reason": "station_skipped", "count": 3
        });
        assert_eq!(object, expected);
    }
}
