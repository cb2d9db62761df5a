//! `continuity`.

use serde_json::{Map, Value as Json, json};
use tidings::code::CloseReason;
use tidings::inbound::continuity::{Accepted, Continuity, Resume, Skip, Slot, Told};
use tidings::wire::Position;
use tidings::{Instant, NodeId, Now, RunId, WallMs};

use super::{compare, steps, text, time, uint};

const START: u64 = 1_790_000_000_000;

/// What a trace calls a station, a mesh, a link or a run, in so many bytes.
fn named<const N: usize>(name: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// A time that is told beside the step's.
fn moment(given: &Json, at: &str, wall: &str) -> Now {
    let at = uint(given, at);
    let wall = given[wall].as_u64().unwrap_or(START + at);
    Now::new(Instant::from_millis(at), WallMs::new(wall))
}

fn position(given: &Json) -> Position {
    Position {
        run: RunId::new(named(text(given, "run"))),
        offset: uint(given, "offset"),
    }
}

fn told(told: Told) -> Json {
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
        other => panic!("{other:?}"),
    }
}

type Machine = Continuity<[u8; 4], Vec<Slot<[u8; 4]>>>;

fn step(machine: &mut Machine, now: Now, what: &str, given: &Json) -> Option<Json> {
    let link = || named(text(given, "link"));
    let brought = match what {
        "accept" => {
            let resume = match text(given, "resume") {
                "none" => Resume::None,
                "expired" => Resume::Expired,
                _ => Resume::Resumed {
                    count: given["count"].as_u64().unwrap_or(0),
                },
            };
            let accepted = Accepted {
                link: link(),
                station: NodeId::new(named(text(given, "station"))),
                mesh: named(text(given, "mesh")),
                since: moment(given, "since_ms", "since_wall_ms"),
                resume,
                position: position(given),
            };
            machine.handle_accepted(now, accepted)
        }
        "ask" => {
            let station = NodeId::new(named(given.as_str().expect("a station")));
            let kept = machine.position_of(&station).map(|position| {
                let run = position.run.as_bytes().iter().take_while(|byte| **byte > 0);
                let run = String::from_utf8(run.copied().collect()).expect("a name");
                json!({ "run": run, "offset": position.offset })
            });
            return Some(json!({ "resume": kept }));
        }
        "earlier" => {
            let level = WallMs::new(uint(given, "level_wall_ms"));
            let station = NodeId::new(named(text(given, "station")));
            let mesh = named(text(given, "mesh"));
            assert!(machine.import(now, station, mesh, position(given), level));
            None
        }
        "end" => {
            let reason = CloseReason::from_text(text(given, "reason")).expect("a reason");
            machine.handle_ended(now, link(), reason)
        }
        "event" => {
            let carries = machine.carrier(link()).is_some();
            let moved = machine.handle_event(link(), uint(given, "offset"));
            assert_eq!(moved.is_some(), carries);
            None
        }
        "progress" => {
            let said = given.get("said_ms");
            let said = said.map(|_| moment(given, "said_ms", "said_wall_ms"));
            let (offset, behind) = (uint(given, "offset"), uint(given, "behind_ms"));
            let _moved = machine.handle_progress(now, link(), offset, behind, said);
            None
        }
        "skipped" => {
            let peer = given.get("peer");
            let skip = Skip {
                from: uint(given, "from"),
                to: uint(given, "to"),
                count: uint(given, "count"),
                peer: peer.map(|_| NodeId::new(named(text(given, "peer")))),
            };
            machine.handle_skipped(now, link(), &skip)
        }
        "timeout" => machine.handle_timeout(now),
        other => panic!("a step named {other}"),
    };
    brought.map(told)
}

pub(crate) fn feed(entry: &Json) -> Result<Json, String> {
    let slots = uint(&entry["config"], "slots") as usize;
    let mut machine = Continuity::new(vec![None; slots]);
    let mut counts = [("interrupted", 0), ("resumed", 0), ("gap", 0)];
    for (number, given) in steps(entry).iter().enumerate() {
        let now = time(given, "at_ms");
        let keys = given.as_object().expect("a step").iter();
        let known = ["at_ms", "wall_ms", "out", "deadline_ms"];
        let mut what = keys.filter(|(key, _)| !known.contains(&key.as_str()));
        let (what, value) = what.next().expect("something happens");
        let out: Vec<Json> = step(&mut machine, now, what, value).into_iter().collect();
        for (kind, count) in &mut counts {
            *count += out.iter().filter(|one| one.get(*kind).is_some()).count();
        }
        compare(number, given, "out", &json!(out))?;
        let deadline = machine.poll_timeout().map(|at| at.as_micros() / 1000);
        compare(number, given, "deadline_ms", &json!(deadline))?;
    }
    let counts = counts.map(|(kind, count)| (kind.to_owned(), json!(count)));
    Ok(Json::Object(counts.into_iter().collect()))
}
