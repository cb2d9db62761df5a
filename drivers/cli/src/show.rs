//! How the items of a stream look.
//!
//! Decides: one line per item. Leaves to others: what is missing. Believes: the wall times in notices, shown in UTC. Bounded by: one
//! item at a time.
//!
//! Without `--json`: a text as it is (on a terminal, control characters are shown instead of sent), anything else as one line of JSON;
//! notices go to standard error. A text that holds line breaks spans lines: `--json` and `--raw` are exact.

use std::fmt::Write as _;
use std::io::Write as _;

use tidings::{Delivery, Notice, Numbering, WallMs};

use crate::args::SubArgs;
use crate::exit::say;
use crate::human::{count, printable, utc};
use crate::payload;

/// The form of this run.
#[derive(Debug)]
pub(crate) struct Show {
    json: bool,
    raw: bool,
    terminal: bool,
    stations: Vec<String>,
}

impl Show {
    pub(crate) fn new(args: &SubArgs, terminal: bool) -> Self {
        Self {
            json: args.json,
            raw: args.raw,
            terminal,
            stations: args.node.stations.clone(),
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
    pub(crate) fn notice(&self, out: &mut Vec<u8>, notice: &Notice) {
        if self.json {
            out.extend_from_slice(self.notice_json(notice).as_bytes());
            out.push(b'\n');
        } else {
            say(format_args!("{}", printable(&self.notice_line(notice))));
        }
    }

    fn station(&self, index: u16) -> String {
        self.stations
            .get(usize::from(index))
            .cloned()
            .unwrap_or_else(|| format!("station {index}"))
    }

    fn notice_line(&self, notice: &Notice) -> String {
        let code = notice.code();
        let rest = match notice {
            Notice::Conflict {
                of,
                first,
                last,
                count: many,
            } => {
                format!(
                    "{} not delivered, {} {first} to {last} twice",
                    count(*many),
                    numbering(of)
                )
            }
            Notice::Dropped {
                reason,
                count: many,
                publishers,
                from,
                to,
            } => {
                let window = window(*from, *to);
                format!(
                    "{} of {publishers} publishers, {reason}, {window}",
                    count(*many)
                )
            }
            Notice::Ended { reason } => format!("{reason}"),
            Notice::Unopened {
                of, seq, reason, ..
            } => {
                format!("{} of {}, {reason}", count(*seq), numbering(of))
            }
            Notice::Gap {
                from,
                to,
                reason,
                count: many,
            } => {
                let many = many.map_or_else(|| "some".to_owned(), count);
                format!("{many} may be missing, {reason}, {}", window(*from, *to))
            }
            Notice::Interrupted { from, reason } => {
                format!(
                    "no station carries it since {}, {reason}",
                    utc(from.as_millis())
                )
            }
            Notice::Lagged {
                missed,
                notices,
                from,
                to,
                ..
            } => {
                let (missed, notices) = (count(*missed), count(*notices));
                format!(
                    "{missed} facts and {notices} notices given up, {}",
                    window(*from, *to)
                )
            }
            Notice::Restarted { of, greater } => {
                let which = if *greater {
                    "a new numbering"
                } else {
                    "an older numbering"
                };
                format!("{which}, {}", numbering(of))
            }
            Notice::Resumed { recovered } => format!("all of it, {} recovered", count(*recovered)),
            Notice::Resynced { of } => format!("earlier numbers unknown, {}", numbering(of)),
            Notice::Skipped { of, first, last } if first == last => {
                format!("number {first} did not come in time, {}", numbering(of))
            }
            Notice::Skipped { of, first, last } => {
                format!(
                    "numbers {first} to {last} did not come in time, {}",
                    numbering(of)
                )
            }
            Notice::SubscriptionRefused { station, reason } => {
                format!("{reason} by {}", self.station(station.0))
            }
            Notice::TwoCounters { of } => {
                format!("two processes publish with one key, {}", numbering(of))
            }
            Notice::Warning { table, fill } => format!("{table} is {fill} % full"),
            _ => "see tidings explain".to_owned(),
        };
        format!("{code}: {rest}")
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
                let id: String = seal_key_id
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                put("seal_key_id", id.into());
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

fn window(from: WallMs, to: WallMs) -> String {
    format!("{} to {}", utc(from.as_millis()), utc(to.as_millis()))
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
        ",\"seq\":{seq},\"published_at\":{at},\"late\":{late},\"payload\":"
    )
    .unwrap_or_default();
    out.extend_from_slice(head.as_bytes());
    payload::write_json(out, fact.payload());
    out.write_all(b"}\n").unwrap_or_default();
}
