//! Failures that people met, where they concern who may speak.

use tidings::code::ObjectFault;
use tidings::inbound::sources::SourceAnswer;

use crate::common::{Fact, at, id_of, signer};
use crate::rig::{Rig, admitted, refused, until};

/// What was good when it was published came after the rotation, and was lost. A verdict is the same here as a key: over by its own time, and asked
/// for again. What it said before counts no more, in either direction.
#[test]
fn br_56_a_fact_from_before_its_publishers_record_was_renewed_is_asked_about_and_not_lost() {
    for (answer, words) in [(admitted(), ["1", "2"].as_slice()), (refused(), &["1"])] {
        let mut rig = Rig::new();
        rig.fact(0, 1);
        let ask = rig.one();
        rig.told(0, ask, until(1000));
        let before = Fact {
            published_at: at(999).wall,
            ..Fact::numbered(2)
        };
        rig.node.fact(at(1001), 0, before);
        let ask = rig.one();
        rig.told(1002, ask, answer);
        assert_eq!(rig.later(3000), words);
    }
}

/// A second copy is a copy.
#[test]
fn br_58_a_second_copy_of_what_waits_is_no_other_fact() {
    let mut rig = Rig::with(2, |_| {});
    rig.node.seq(at(0), 0, 1);
    rig.node.seq(at(0), 1, 1);
    let ask = rig.one();
    assert_eq!(rig.counts().0, 1);
    rig.told(1, ask, admitted());
    assert_eq!(rig.words(), ["1"]);
    assert_eq!(rig.node.faults(ObjectFault::Duplicate), 1);
}

/// Having asked once does not end the asking, and who asks costs a bounded number of lookups.
#[test]
fn br_60_a_lookup_that_failed_is_tried_again_by_the_next_fact() {
    let mut rig = Rig::new();
    for seq in 1..=5 {
        rig.fact(seq * 6000, seq);
        assert_eq!(rig.asked().len(), 1);
        rig.node.time(at(seq * 6000 + 5000));
        assert_eq!(rig.counts(), (0, 0, 0));
    }
    rig.fact(36_000, 6);
    let ask = rig.one();
    rig.told(36_001, ask, admitted());
    let told = rig.later(36_300);
    assert_eq!(told.last().map(String::as_str), Some("6"));
}

/// A verdict is not kept alive by use.
#[test]
fn br_61_a_publisher_that_is_revoked_is_out_no_later_than_its_verdict() {
    let mut rig = Rig::new();
    let mut delivered = 0;
    for tick in 0..60 {
        let millis = tick * 10_000;
        rig.fact(millis, tick + 1);
        for one in rig.asked() {
            let revoked = millis >= 100_000;
            rig.told(
                millis,
                one.ask,
                if revoked { refused() } else { until(1 << 40) },
            );
        }
        let words = rig.words();
        assert!(
            millis < 300_000 || words.is_empty(),
            "at {millis}: {words:?}"
        );
        delivered += words.len();
    }
    assert_eq!(delivered, 28, "refreshed at 270 s, with the fact of then");
    // Where every refresh fails it is out at 300 s all the same.
    let mut rig = Rig::new();
    let mut last = 0;
    for tick in 0..60 {
        let millis = tick * 10_000;
        rig.fact(millis, tick + 1);
        for one in rig.asked() {
            let answer = if tick == 0 {
                admitted()
            } else {
                SourceAnswer::Unknown
            };
            rig.told(millis, one.ask, answer);
        }
        let facts = rig.words();
        if facts.iter().any(|word| word.parse::<u64>().is_ok()) {
            last = millis;
        }
    }
    assert_eq!(last, 290_000);
}

/// Who published is what the signature says.
#[test]
fn br_63_a_claimed_publisher_is_asked_for_only_when_the_signature_is_its_own() {
    let mut rig = Rig::new();
    rig.admit(0, 1);
    // In the name of 7, signed by 8.
    let honest = Fact::numbered(2).sign(&signer(8));
    let (own, claimed) = (id_of(&signer(8)), id_of(&signer(7)));
    let at_id = honest.windows(32).position(|bytes| bytes == own.as_bytes());
    let mut forged = honest.clone();
    let from = at_id.expect("the publisher is in it");
    forged[from..from + 32].copy_from_slice(claimed.as_bytes());
    rig.node.object(at(1), 0, &forged);
    assert_eq!(rig.asked(), []);
    assert_eq!(rig.words(), ["1"]);
    rig.node.object(at(2), 0, &honest);
    let asked = rig.asked();
    assert_eq!(asked[0].publisher, own);
}

/// Strangers that come and go leave memory where it was.
#[test]
fn br_66_ten_thousand_publishers_leave_nothing_behind() {
    let mut rig = Rig::with(1, |limits| limits.sources.lookups_per_window = 1 << 20);
    rig.admit(0, 1);
    rig.words();
    let before = rig.node.client.memory();
    for stranger in 0..10_000 {
        let millis = 10 + stranger * 5;
        rig.publisher(1000 + stranger);
        rig.fact(millis, 1);
        let asked = rig.asked();
        let answer = match stranger % 4 {
            0 => refused(),
            1 => SourceAnswer::Unknown,
            2 => until(millis + 50),
            _ => continue,
        };
        for one in asked {
            rig.told(millis, one.ask, answer);
        }
        rig.words();
    }
    rig.later(5_000_000);
    rig.later(10_000_000);
    let after = rig.node.client.memory();
    for name in ["sources", "source_holds", "held_bytes", "lanes", "dedup"] {
        let used = |memory: &tidings::MemoryReport| memory.line(name).map(|line| line.used);
        assert!(used(&after) <= used(&before), "{name}");
    }
    let bytes =
        |memory: &tidings::MemoryReport| memory.line("sources").map_or(0, |line| line.bytes);
    assert!(
        bytes(&after) <= bytes(&before) + 4096,
        "{} {}",
        bytes(&after),
        bytes(&before)
    );
}
