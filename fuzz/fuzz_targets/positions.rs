//! Committed positions against their model: the same verdict with the same reason, the same lanes and stations, and what is accepted is
//! written again as the same bytes, in whatever order it was collected.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings::wire::Positions;
use tidings_fuzz::positions::{Committed, Lane, Station, read};

fuzz_target!(|data: &[u8]| {
    let decoded = Positions::decode(data);
    let said = decoded.as_ref().map(said).map_err(|fault| fault.text());
    assert_eq!(said, read(data));
    let Ok(positions) = decoded else {
        return;
    };
    assert_eq!(positions.encode(), data, "positions have one encoding");
    let (mut lanes, mut stations) = (positions.lanes().to_vec(), positions.stations().to_vec());
    // Doubles less far on, and everything the other way round.
    lanes.extend(positions.lanes().iter().map(|lane| {
        let mut lane = lane.clone();
        lane.seq /= 2;
        lane
    }));
    lanes.reverse();
    stations.reverse();
    assert_eq!(Positions::new(lanes, stations), positions);
});

fn said(positions: &Positions) -> Committed {
    let lane = |lane: &tidings::wire::LanePosition| -> Lane {
        (
            lane.publisher.as_bytes().to_vec(),
            lane.topic.to_string(),
            lane.epoch as i64,
            lane.seq as i64,
            lane.untold
                .iter()
                .map(|(first, last)| (*first as i64, *last as i64))
                .collect(),
        )
    };
    let station = |one: &tidings::wire::StationPosition| -> Station {
        (
            one.station.as_bytes().to_vec(),
            one.mesh.to_vec(),
            one.position.run.as_bytes().to_vec(),
            one.position.offset as i64,
            one.from.as_millis() as i64,
        )
    };
    Committed {
        lanes: positions.lanes().iter().map(lane).collect(),
        stations: positions.stations().iter().map(station).collect(),
    }
}
