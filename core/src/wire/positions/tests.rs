use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::{RunId, WallMs};

fn lane(publisher: u8, topic: &str, epoch: u64, seq: u64) -> LanePosition {
    LanePosition {
        publisher: NodeId::new([publisher; 32]),
        topic: topic.into(),
        epoch,
        seq,
        untold: Vec::new(),
    }
}

fn station(id: u8, offset: u64) -> StationPosition {
    StationPosition {
        station: NodeId::new([id; 32]),
        mesh: [7; 32],
        from: WallMs::new(offset),
        position: Position {
            run: RunId::new([id; 8]),
            offset,
        },
    }
}

#[test]
fn doubles_are_merged_the_further_one_stays() {
    let positions = Positions::new(
        vec![
            lane(2, "a", 1, 3),
            lane(1, "b", 1, 1),
            lane(2, "a", 1, 9),
            lane(1, "a", 2, 1),
        ],
        vec![station(2, 1), station(1, 1), station(2, 5)],
    );
    let lanes = [lane(1, "a", 2, 1), lane(1, "b", 1, 1), lane(2, "a", 1, 9)];
    assert_eq!(positions.lanes(), lanes);
    assert_eq!(positions.stations(), [station(1, 1), station(2, 5)]);
}

#[test]
fn what_is_not_sorted_is_refused() {
    let unsorted = Positions {
        lanes: vec![lane(2, "a", 1, 1), lane(1, "a", 1, 1)],
        stations: Vec::new(),
    };
    assert_eq!(
        Positions::decode(&unsorted.encode()),
        Err(PositionsFault::BadField)
    );
    let doubled = Positions {
        lanes: Vec::new(),
        stations: vec![station(1, 1), station(1, 2)],
    };
    assert_eq!(
        Positions::decode(&doubled.encode()),
        Err(PositionsFault::BadField)
    );
}

proptest! {
    #[test]
    fn positions_come_back_as_they_were_written(
        lanes in prop::collection::vec((any::<u8>(), "[a-c]{1,3}", 1u64..1 << 53, 40u64..1 << 53), 0..20),
        untold in prop::collection::vec(1u64..40, 0..20),
        stations in prop::collection::vec((any::<u8>(), 0u64..1 << 53), 0..5),
    ) {
        let mut ranges = crate::inbound::order::Untold::new(0);
        untold.iter().for_each(|seq| ranges.insert(*seq, *seq));
        let lanes = lanes.iter().map(|(p, topic, epoch, seq)| LanePosition {
            untold: ranges.as_slice().to_vec(),
            ..lane(*p, topic, *epoch, *seq)
        });
        let stations = stations.iter().map(|(id, offset)| station(*id, *offset));
        let positions = Positions::new(lanes.collect(), stations.collect());
        prop_assert_eq!(Positions::decode(&positions.encode()), Ok(positions));
    }

    #[test]
    fn any_bytes_are_judged_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..80), at in any::<prop::sample::Index>(),
    ) {
        if let Ok(positions) = Positions::decode(&bytes) {
            prop_assert_eq!(positions.encode(), bytes.clone());
        }
        let mut good = Positions::new(vec![lane(1, "a", 1, 1)], vec![station(1, 1)]).encode();
        let at = at.index(good.len());
        good[at] ^= bytes.first().copied().unwrap_or(1);
        if let Ok(positions) = Positions::decode(&good) {
            prop_assert_eq!(positions.encode(), good);
        }
    }
}
