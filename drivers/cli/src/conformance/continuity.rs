//! Traces of the continuity of one subscription.
//!
//! Decides: nothing. Leaves to others: the machine, the core's. Believes: the times of each step; a wall that is not given follows the
//! monotonic clock. Bounded by: the trace.

use serde_json::{Map, Value, json};
use tidings::code::CloseReason;
use tidings::inbound::continuity::{Accepted, Continuity, Resume, Skip, Slot, Told};
use tidings::wire::Position;
use tidings::{Instant, NodeId, Now, RunId, WallMs};

use super::flow::{compare, number, steps};
use super::{Broken, Judged, text};

/// Where the wall of a trace begins.
const START: u64 = 1_790_000_000_000;

/// What a trace calls a station, a mesh, a link or a run, in so many bytes.
fn named<const N: usize>(name: &str) -> Result<[u8; N], Broken> {
    let mut bytes = [0; N];
    let place = bytes.get_mut(..name.len());
    let place = place.ok_or_else(|| format!("has a name that is too long: {name}"))?;
    place.copy_from_slice(name.as_bytes());
    Ok(bytes)
}

fn moment(given: &Value, at: &str, wall: &str) -> Result<Now, Broken> {
    let at = number(given, at)?;
    let wall = given[wall].as_u64().unwrap_or(START + at);
    Ok(Now::new(Instant::from_millis(at), WallMs::new(wall)))
}

fn position(given: &Value) -> Result<Position, Broken> {
    Ok(Position {
        run: RunId::new(named(text(given, "run")?)?),
        offset: number(given, "offset")?,
    })
}

fn station(name: &str) -> Result<NodeId, Broken> {
    named(name).map(NodeId::new)
}

fn told(told: Told) -> Value {
    match told {
        Told::Gap {
            from,
            to,
            reason,
            count,
        } => {
            let mut gap = Map::new();
            gap.insert("from".into(), json!(from.as_millis()));
            gap.insert("to".into(), json!(to.as_millis()));
            gap.insert("reason".into(), json!(reason.text()));
            if let Some(count) = count {
                gap.insert("count".into(), json!(count));
            }
            json!({ "gap": gap })
        }
        Told::Interrupted { from, reason } => {
            json!({ "interrupted": { "from": from.as_millis(), "reason": reason.text() } })
        }
        Told::Resumed { recovered } => json!({ "resumed": recovered }),
        other => json!(format!("{other:?}")),
    }
}

type Machine = Continuity<[u8; 4], Vec<Slot<[u8; 4]>>>;

fn step(
    machine: &mut Machine,
    now: Now,
    what: &str,
    given: &Value,
) -> Result<Option<Value>, Broken> {
    let link = || named(text(given, "link")?);
    let brought = match what {
        "accept" => {
            let resume = match text(given, "resume")? {
                "none" => Resume::None,
                "expired" => Resume::Expired,
                _ => Resume::Resumed {
                    count: number(given, "count")?,
                },
            };
            let accepted = Accepted {
                link: link()?,
                station: station(text(given, "station")?)?,
                mesh: named(text(given, "mesh")?)?,
                since: moment(given, "since_ms", "since_wall_ms")?,
                resume,
                position: position(given)?,
            };
            machine.handle_accepted(now, accepted)
        }
        "ask" => {
            let of = station(given.as_str().unwrap_or_default())?;
            let kept = machine.position_of(&of).map(|position| {
                let run = String::from_utf8_lossy(position.run.as_bytes());
                json!({ "run": run.trim_end_matches('\0'), "offset": position.offset })
            });
            return Ok(Some(json!({ "resume": kept })));
        }
        "earlier" => {
            let level = WallMs::new(number(given, "level_wall_ms")?);
            let of = station(text(given, "station")?)?;
            if !machine.import(
                now,
                of,
                named(text(given, "mesh")?)?,
                position(given)?,
                level,
            ) {
                return Err("has no slot for an earlier run".into());
            }
            None
        }
        "end" => {
            let reason = CloseReason::from_text(text(given, "reason")?);
            let reason = reason.ok_or_else(|| "ends a link for no known reason".to_owned())?;
            machine.handle_ended(now, link()?, reason)
        }
        "event" => {
            let _moved = machine.handle_event(link()?, number(given, "offset")?);
            None
        }
        "progress" => {
            let said = match given.get("said_ms") {
                Some(_) => Some(moment(given, "said_ms", "said_wall_ms")?),
                None => None,
            };
            let (offset, behind) = (number(given, "offset")?, number(given, "behind_ms")?);
            let _moved = machine.handle_progress(now, link()?, offset, behind, said);
            None
        }
        "skipped" => {
            let peer = match given.get("peer") {
                Some(_) => Some(station(text(given, "peer")?)?),
                None => None,
            };
            let skip = Skip {
                from: number(given, "from")?,
                to: number(given, "to")?,
                count: number(given, "count")?,
                peer,
            };
            machine.handle_skipped(now, link()?, &skip)
        }
        "timeout" => machine.handle_timeout(now),
        other => return Err(format!("has a step named {other}")),
    };
    Ok(brought.map(told))
}

pub(super) fn judge(entry: &Value) -> Result<Judged, Broken> {
    let slots = number(&entry["config"], "slots")? as usize;
    let mut machine = Continuity::new(vec![None; slots]);
    let mut counts = [("interrupted", 0), ("resumed", 0), ("gap", 0)];
    for (place, given) in steps(entry)?.iter().enumerate() {
        let now = moment(given, "at_ms", "wall_ms")?;
        let known = ["at_ms", "wall_ms", "out", "deadline_ms"];
        let keys = given.as_object().into_iter().flatten();
        let mut what = keys.filter(|(key, _)| !known.contains(&key.as_str()));
        let Some((what, value)) = what.next() else {
            return Err(format!("has a step in which nothing happens: {place}"));
        };
        let out: Vec<Value> = step(&mut machine, now, what, value)?.into_iter().collect();
        for (kind, count) in &mut counts {
            *count += out.iter().filter(|one| one.get(*kind).is_some()).count();
        }
        compare(place, given, "out", &json!(out))?;
        let deadline = machine.poll_timeout().map(|at| at.as_micros() / 1000);
        compare(place, given, "deadline_ms", &json!(deadline))?;
    }
    let counts = counts.map(|(kind, count)| (kind.to_owned(), json!(count)));
    Ok(Ok(Value::Object(counts.into_iter().collect())))
}
