//! A flood of publishers nobody has heard of.

use std::collections::BTreeSet;

use tidings::code::DropReason;

use crate::common::at;
use crate::rig::{Rig, admitted};

const STRANGERS: u64 = 100_000;

/// Keys cost nothing: each brings one fact, in its own name, with a signature that verifies.
#[test]
fn a_hundred_thousand_fresh_keys_cost_the_realms_window_and_nothing_else() {
    let mut rig = Rig::new();
    for member in 2..10 {
        rig.publisher(member);
        rig.admit(1000 * member, 1);
    }
    rig.words();
    let bytes = |rig: &Rig, name| {
        rig.node
            .client
            .memory()
            .line(name)
            .map_or(0, |line| line.bytes)
    };
    let start = 20_000;
    let (mut lookups, mut seconds) = (0, BTreeSet::new());
    let mut most = 0;
    for stranger in 0..STRANGERS {
        // Ten thousand in a second.
        let millis = start + stranger / 10;
        rig.publisher(1_000_000 + stranger);
        rig.fact(millis, 1);
        seconds.insert(stranger / 10_000);
        if stranger % 1000 == 0 {
            lookups += rig.asked().len();
            // Members are served as ever, in between.
            rig.publisher(2 + stranger / 1000 % 8);
            rig.fact(millis, 2 + stranger / 8000);
            let told = rig.words();
            assert!(
                told.contains(&(2 + stranger / 8000).to_string()),
                "{told:?}"
            );
            rig.node.time(at(millis));
            most = most
                .max(bytes(&rig, "sources") + bytes(&rig, "source_holds") + bytes(&rig, "lanes"));
        }
    }
    lookups += rig.asked().len();
    // One link's strangers: a quarter of each window of 64.
    assert_eq!(lookups, 16 * seconds.len());
    let dropped = rig.dropped(DropReason::LookupsFull) + rig.dropped(DropReason::Unanswered);
    assert_eq!(dropped + rig.counts().0 as u64, STRANGERS);
    assert!(most < 256 << 10, "{most} bytes");
    // Nothing is remembered of them either.
    assert!(bytes(&rig, "dedup") < 64 << 10);
    // And a member whose verdict is over still has the half that is kept.
    rig.publisher(2);
    rig.fact(400_000, 1000);
    for stranger in 0..100 {
        rig.publisher(5_000_000 + stranger);
        rig.fact(400_000, 1);
    }
    rig.publisher(3);
    rig.fact(400_000, 1000);
    let asked = rig.asked();
    assert_eq!(asked.len(), 1 + 16 + 1);
    rig.told(400_001, asked[17].ask, admitted());
    assert!(rig.later(400_400).contains(&"1000".to_string()));
}
