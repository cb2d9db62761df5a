//! `order` and `guess`: one lane, its items and its deadline after each step.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tidings::inbound::episode::{LONGEST, QUIET};
use tidings::inbound::lane::{Admit, Lane, LaneConfig, LaneItem, Offer, Slot};
use tidings::{Instant, Mode, WallMs, soonest};

use super::{compare, ms, steps, text, time, uint};

type TestLane = Lane<usize, Vec<Option<Slot<usize>>>>;

fn offer(epoch: u64, seq: u64, wall: WallMs) -> Offer {
    Offer {
        epoch,
        seq,
        until: wall.saturating_add(900_000),
        replayed: false,
        anycast: false,
        copy_possible: false,
    }
}

/// Conflicts under way, by epoch: when the first and the latest of each episode came, and how many.
#[derive(Default)]
struct Episodes {
    open: BTreeMap<u64, (Instant, Instant)>,
    conflicts: u64,
    told: u64,
}

impl Episodes {
    fn note(&mut self, epoch: u64, at: Instant) {
        self.conflicts += 1;
        self.open.entry(epoch).or_insert((at, at)).1 = at;
    }

    fn next_end(&self) -> Option<Instant> {
        let ends = |&(began, latest): &(Instant, Instant)| {
            latest
                .saturating_add(QUIET)
                .min(began.saturating_add(LONGEST))
        };
        self.open.values().map(ends).min()
    }
}

pub(crate) fn feed(entry: &Json) -> Result<Json, String> {
    let config = &entry["config"];
    let mut lane = TestLane::growing(LaneConfig {
        mode: match text(config, "mode") {
            "as_arrives" => Mode::AsArrives,
            "latest_only" => Mode::LatestOnly,
            "ordered" => Mode::Ordered,
            other => return Err(format!("mode {other}")),
        },
        order_timeout: ms(uint(config, "timeout_ms")),
        order_max_buffer: uint(config, "buffer") as usize,
        accepted_wall: WallMs::new(uint(config, "accepted_wall_ms")),
        sparse: config["sparse"] == true,
        forgotten: false,
    });
    let mut episodes = Episodes::default();
    let (mut facts, mut skipped) = (0, 0);
    for (number, step) in steps(entry).iter().enumerate() {
        let mut conflict = None;
        let now = if step.get("timeout").is_some() {
            let now = time(step, "timeout");
            lane.handle_timeout(now);
            now
        } else if step.get("close").is_some() {
            let (now, place) = (time(step, "at_ms"), &step["close"]);
            if !lane.close(now, uint(place, "epoch"), uint(place, "seq")) {
                return Err(format!("step {number}: could not close"));
            }
            now
        } else {
            let (now, fact) = (time(step, "at_ms"), &step["offer"]);
            let (epoch, seq) = (uint(fact, "epoch"), uint(fact, "seq"));
            match lane.offer(now, offer(epoch, seq, now.wall), number) {
                Admit::Taken | Admit::Superseded(_) => {}
                Admit::Conflict(_) => conflict = Some((epoch, seq)),
                other => return Err(format!("step {number}: {other:?}")),
            }
            now
        };
        let mut out = Vec::new();
        while let Some(item) = lane.poll() {
            match item {
                LaneItem::Fact {
                    epoch, seq, late, ..
                } => {
                    facts += 1;
                    out.push(json!({ "fact": [epoch, seq], "late": late }));
                }
                LaneItem::Skipped { epoch, first, last } => {
                    skipped += last - first + 1;
                    out.push(json!({ "skipped": [epoch, first, last] }));
                }
                LaneItem::Restarted { epoch, greater } => {
                    out.push(json!({ "restarted": { "epoch": epoch, "greater": greater } }));
                }
                LaneItem::TwoCounters { .. } => out.push(json!({ "two_counters": true })),
                // Its facts stand in the trace one by one.
                LaneItem::Conflict { epoch, count, .. } => {
                    episodes.open.remove(&epoch);
                    episodes.told += count;
                }
                other => return Err(format!("step {number}: {other:?}")),
            }
        }
        if let Some((epoch, seq)) = conflict {
            episodes.note(epoch, now.mono);
            out.push(json!({ "conflict": [epoch, seq, seq, 1] }));
        }
        compare(number, step, "out", &json!(out))?;
        let wanted = step["deadline_ms"].as_u64().map(Instant::from_millis);
        let wanted = soonest(wanted, episodes.next_end());
        if lane.poll_timeout() != wanted {
            let told = lane.poll_timeout();
            return Err(format!(
                "step {number}: deadline is {told:?}, wanted {wanted:?}"
            ));
        }
    }
    let stats = lane.stats();
    let end = tidings::Now::new(Instant::from_millis(1 << 40), WallMs::new(1 << 45));
    lane.handle_timeout(end);
    while let Some(item) = lane.poll() {
        if let LaneItem::Conflict { count, .. } = item {
            episodes.told += count;
        }
    }
    if episodes.told != episodes.conflicts {
        return Err(format!(
            "{} of {} conflicts were told",
            episodes.told, episodes.conflicts
        ));
    }
    Ok(json!({
        "facts": facts,
        "late": stats.late,
        "skipped": skipped,
        "superseded": stats.superseded,
        "conflicts": stats.conflicts,
    }))
}

/// Publications without an epoch, through a whole lane: which numbering each was taken for.
pub(crate) fn guess(entry: &Json) -> Result<Json, String> {
    let mut lane = TestLane::growing(LaneConfig {
        order_timeout: ms(uint(&entry["config"], "timeout_ms")),
        ..LaneConfig::default()
    });
    let mut numberings = vec![None; steps(entry).len()];
    let mut read = |lane: &mut TestLane| {
        while let Some(item) = lane.poll() {
            if let LaneItem::Fact { epoch, item, .. } = item {
                numberings[item] = Some(epoch - 1);
            }
        }
    };
    for (number, step) in steps(entry).iter().enumerate() {
        let now = time(step, "at_ms");
        match lane.offer(now, offer(0, uint(&step["offer"], "seq"), now.wall), number) {
            Admit::Taken => read(&mut lane),
            other => return Err(format!("step {number}: {other:?}")),
        }
    }
    let end = tidings::Now::new(Instant::from_millis(1 << 40), WallMs::new(1 << 45));
    lane.handle_timeout(end);
    read(&mut lane);
    for (number, step) in steps(entry).iter().enumerate() {
        compare(number, step, "out", &json!(numberings[number]))?;
    }
    let highest = numberings.iter().flatten().max().copied();
    Ok(json!({ "numberings": highest.map_or(0, |highest| highest + 1) }))
}
