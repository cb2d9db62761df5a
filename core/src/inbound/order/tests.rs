use alloc::vec::Vec;

use super::*;
use crate::time::Duration;

pub(in crate::inbound) mod model;
mod property;

type Growing = Order<u32, Vec<Option<Slot<u32>>>>;

fn order() -> Growing {
    Order::growing(OrderConfig::default())
}

fn slot_bytes(order: &Growing) -> usize {
    let rare = order.aside.get();
    rare.map_or(0, |rare| rare.queue.slot_bytes())
}

fn with(change: impl FnOnce(&mut OrderConfig)) -> Growing {
    let mut config = OrderConfig::default();
    change(&mut config);
    Order::growing(config)
}

/// Joined where the numbering is known to start at 1.
fn at_one() -> Growing {
    let mut order = order();
    assert!(order.begin(9, true));
    order
}

fn ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn drain<S>(order: &mut Order<u32, S>) -> Vec<(u64, u64, &'static str)>
where
    S: AsRef<[Option<Slot<u32>>]> + AsMut<[Option<Slot<u32>>]>,
{
    let next = || order.poll();
    core::iter::from_fn(next)
        .map(|release| match release {
            Release::Fact {
                seq, late: false, ..
            } => (seq, seq, "fact"),
            Release::Fact {
                seq, late: true, ..
            } => (seq, seq, "late"),
            Release::Skipped { first, last, .. } => (first, last, "skipped"),
        })
        .collect()
}

fn offer(order: &mut Growing, now: u64, seq: u64) -> Vec<(u64, u64, &'static str)> {
    assert_eq!(order.offer(ms(now), seq, false, 0), Admit::Taken);
    drain(order)
}

#[test]
fn runs_leave_in_seq_order() {
    let mut order = at_one();
    assert_eq!(offer(&mut order, 0, 1), [(1, 1, "fact")]);
    assert_eq!(offer(&mut order, 1, 4), []);
    assert_eq!(offer(&mut order, 2, 3), []);
    assert_eq!(
        offer(&mut order, 3, 2),
        [(2, 2, "fact"), (3, 3, "fact"), (4, 4, "fact")]
    );
    assert_eq!(order.poll_timeout(), None);
}

#[test]
fn a_missing_seq_is_waited_for_from_the_first_fact_behind_the_gap_exactly() {
    let mut order = at_one();
    offer(&mut order, 0, 1);
    offer(&mut order, 10, 5);
    offer(&mut order, 40, 3);
    // 2 is behind nothing but 5, which came first; 4 as well, and it does not start again when 3 leaves.
    assert_eq!(order.poll_timeout(), Some(ms(260)));
    order.handle_timeout(Instant::from_micros(259_999));
    assert_eq!(drain(&mut order), []);
    order.handle_timeout(ms(260));
    assert_eq!(
        drain(&mut order),
        [
            (2, 2, "skipped"),
            (3, 3, "fact"),
            (4, 4, "skipped"),
            (5, 5, "fact")
        ]
    );
}

#[test]
fn one_old_fact_does_not_drag_younger_ones_out() {
    let mut order = at_one();
    offer(&mut order, 0, 1);
    offer(&mut order, 10, 3);
    offer(&mut order, 100, 5);
    order.handle_timeout(ms(260));
    assert_eq!(drain(&mut order), [(2, 2, "skipped"), (3, 3, "fact")]);
    assert_eq!(order.poll_timeout(), Some(ms(350)));
    order.handle_timeout(ms(350));
    assert_eq!(drain(&mut order), [(4, 4, "skipped"), (5, 5, "fact")]);
}

#[test]
fn one_gap_is_one_skipped_range_at_its_place() {
    let mut order = at_one();
    offer(&mut order, 0, 1);
    offer(&mut order, 1, 900);
    order.handle_timeout(ms(251));
    assert_eq!(drain(&mut order), [(2, 899, "skipped"), (900, 900, "fact")]);
    assert_eq!(order.skips(), 1);
}

#[test]
fn at_max_held_facts_the_head_gap_is_skipped_early() {
    let mut order = with(|config| config.max_held = 3);
    assert!(order.begin(9, true));
    assert_eq!(offer(&mut order, 0, 3), []);
    assert_eq!(offer(&mut order, 0, 5), []);
    assert_eq!(
        offer(&mut order, 0, 4),
        [
            (1, 2, "skipped"),
            (3, 3, "fact"),
            (4, 4, "fact"),
            (5, 5, "fact")
        ]
    );
    assert_eq!(offer(&mut order, 0, 7), []);
    assert_eq!(offer(&mut order, 0, 9), []);
    // One head gap, not all of them.
    assert_eq!(
        offer(&mut order, 0, 11),
        [(6, 6, "skipped"), (7, 7, "fact")]
    );
    assert_eq!(order.held(), 2);
}

#[test]
fn a_skipped_seq_that_arrives_later_is_late() {
    let mut order = at_one();
    offer(&mut order, 0, 4);
    order.handle_timeout(ms(250));
    assert_eq!(drain(&mut order), [(1, 3, "skipped"), (4, 4, "fact")]);
    assert_eq!(offer(&mut order, 300, 2), [(2, 2, "late")]);
    assert_eq!(order.late(), 1);
    assert_eq!(order.offer(ms(301), 2, false, 0), Admit::Conflict(0));
    assert_eq!(offer(&mut order, 302, 3), [(3, 3, "late")]);
}

#[test]
fn a_stream_that_starts_at_one_misses_what_is_missing_from_there() {
    let mut order = at_one();
    offer(&mut order, 7, 5);
    assert_eq!(order.poll_timeout(), Some(ms(257)));
    order.handle_timeout(ms(257));
    assert_eq!(drain(&mut order), [(1, 4, "skipped"), (5, 5, "fact")]);
}

#[test]
fn any_other_first_fact_is_held_and_the_order_starts_at_the_lowest() {
    let mut order = order();
    assert_eq!(offer(&mut order, 0, 7), []);
    assert_eq!(order.edge(), None);
    assert_eq!(offer(&mut order, 100, 5), []);
    assert_eq!(offer(&mut order, 101, 6), []);
    assert_eq!(offer(&mut order, 102, 9), []);
    assert_eq!(order.poll_timeout(), Some(ms(250)));
    order.handle_timeout(ms(250));
    assert_eq!(
        drain(&mut order),
        [(5, 5, "fact"), (6, 6, "fact"), (7, 7, "fact")]
    );
    // No skip for starting; what is behind the next gap waits its own time.
    assert_eq!((order.skips(), order.poll_timeout()), (0, Some(ms(352))));
    // Below the start nothing is known, so nothing there is a conflict.
    assert_eq!(offer(&mut order, 251, 3), [(3, 3, "late")]);
}

#[test]
fn seq_1_starts_at_once() {
    let mut order = order();
    assert_eq!(offer(&mut order, 0, 3), []);
    assert_eq!(offer(&mut order, 1, 1), [(1, 1, "fact")]);
    assert_eq!(order.edge(), Some(1));
}

#[test]
fn a_seq_known_to_be_delivered_conflicts_and_so_does_a_held_one() {
    let mut order = at_one();
    offer(&mut order, 0, 1);
    offer(&mut order, 0, 3);
    assert_eq!(order.offer(ms(1), 1, false, 8), Admit::Conflict(8));
    assert_eq!(order.offer(ms(1), 3, false, 8), Admit::Conflict(8));
    assert_eq!(order.offer(ms(1), 3, true, 8), Admit::Conflict(8));
    assert_eq!(drain(&mut order), []);
    assert_eq!(
        order.poll_timeout(),
        Some(ms(250)),
        "the held one keeps its time"
    );
}

#[test]
fn where_the_entry_was_reused_early_a_copy_is_a_duplicate() {
    let mut order = at_one();
    offer(&mut order, 0, 2);
    order.handle_timeout(ms(250));
    drain(&mut order);
    assert_eq!(order.offer(ms(251), 2, true, 8), Admit::Duplicate(8));
    // A skipped one was never delivered, so it is no copy.
    assert_eq!(order.offer(ms(251), 1, true, 8), Admit::Taken);
}

#[test]
fn what_comes_from_before_the_start_is_no_copy_of_something_forgotten() {
    let mut order = order();
    assert_eq!(order.offer(ms(0), 5, false, 0), Admit::Taken);
    order.handle_timeout(ms(250));
    assert_eq!(drain(&mut order), [(5, 5, "fact")]);
    // Number 5 was forgotten early, so a copy is possible up to there; numbers below were never here.
    assert_eq!(order.offer(ms(300), 3, true, 0), Admit::Taken);
    assert_eq!(drain(&mut order), [(3, 3, "late")]);
    assert!(matches!(
        order.offer(ms(301), 3, true, 0),
        Admit::Duplicate(_)
    ));
    assert!(matches!(
        order.offer(ms(302), 5, true, 0),
        Admit::Duplicate(_)
    ));
}

#[test]
fn what_comes_from_before_the_start_is_taken_however_many_holes_came_after_it() {
    let mut order = order();
    assert_eq!(order.offer(ms(0), 5, false, 0), Admit::Taken);
    order.handle_timeout(ms(250));
    for hole in 1..=20 {
        let at = 300 * hole;
        assert_eq!(order.offer(ms(at), 5 + 2 * hole, false, 0), Admit::Taken);
        order.handle_timeout(ms(at + 250));
        drain(&mut order);
    }
    assert!(order.floor() > 5, "the ranges reach no further");
    for seq in [2, 1, 4] {
        assert_eq!(order.offer(ms(9_000), seq, true, 0), Admit::Taken, "{seq}");
        assert_eq!(drain(&mut order), [(seq, seq, "late")]);
    }
    for seq in [1, 2, 4, 5] {
        let again = order.offer(ms(9_001), seq, true, 0);
        assert!(matches!(again, Admit::Duplicate(_)), "{seq}");
    }
}

#[test]
fn a_closed_place_is_passed_over_without_a_skip() {
    let mut order = at_one();
    assert!(order.close(ms(0), 1));
    assert_eq!(order.edge(), Some(1));
    offer(&mut order, 1, 4);
    assert!(order.close(ms(2), 3));
    assert_eq!(drain(&mut order), []);
    assert!(order.close(ms(3), 2));
    assert_eq!(drain(&mut order), [(4, 4, "fact")]);
    assert_eq!((order.skips(), order.poll_timeout()), (0, None));
}

#[test]
fn a_closed_place_splits_a_gap_and_counts_as_a_fact_behind_one() {
    let mut order = at_one();
    assert!(order.close(ms(5), 3));
    assert_eq!(order.poll_timeout(), Some(ms(255)));
    offer(&mut order, 6, 6);
    order.handle_timeout(ms(255));
    assert_eq!(drain(&mut order), [(1, 2, "skipped")]);
    order.handle_timeout(ms(256));
    assert_eq!(drain(&mut order), [(4, 5, "skipped"), (6, 6, "fact")]);
}

#[test]
fn a_copy_of_a_closed_place_gets_another_chance() {
    let mut order = at_one();
    assert!(order.close(ms(0), 2));
    assert_eq!(order.offer(ms(1), 2, false, 0), Admit::Taken);
    assert_eq!(offer(&mut order, 2, 1), [(1, 1, "fact"), (2, 2, "fact")]);
    assert!(order.close(ms(3), 3));
    assert_eq!(offer(&mut order, 4, 3), [(3, 3, "late")]);
}

#[test]
fn as_arrives_leaves_at_once_and_reports_the_same_gaps() {
    let mut order = with(|config| config.as_arrives = true);
    assert!(order.begin(9, true));
    assert_eq!(offer(&mut order, 0, 3), [(3, 3, "fact")]);
    assert_eq!(offer(&mut order, 1, 2), [(2, 2, "fact")]);
    assert_eq!(
        (order.edge(), order.poll_timeout()),
        (Some(0), Some(ms(250)))
    );
    assert_eq!(order.offer(ms(2), 3, true, 8), Admit::Conflict(8));
    order.handle_timeout(ms(250));
    assert_eq!(drain(&mut order), [(1, 1, "skipped")]);
    assert_eq!((order.edge(), order.poll_timeout()), (Some(3), None));
    assert_eq!(offer(&mut order, 251, 1), [(1, 1, "late")]);
}

#[test]
fn br_27_sparse_numbers_are_ordered_within_the_timeout_and_never_skipped() {
    let mut order = with(|config| config.sparse = true);
    let mut out = offer(&mut order, 0, 1000);
    out.extend(offer(&mut order, 5, 21_000));
    out.extend(offer(&mut order, 20, 6000));
    assert_eq!(out, []);
    order.handle_timeout(ms(250));
    assert_eq!(drain(&mut order), [(1000, 1000, "fact")]);
    order.handle_timeout(ms(255));
    assert_eq!(
        drain(&mut order),
        [(6000, 6000, "fact"), (21_000, 21_000, "fact")]
    );
    assert_eq!(order.skips(), 0);
    assert_eq!(offer(&mut order, 300, 7000), [(7000, 7000, "late")]);
}

#[test]
fn br_34_hostile_numbers_cost_nothing() {
    let mut order = order();
    assert_eq!(offer(&mut order, 0, 0), [(0, 0, "fact")]);
    assert_eq!(offer(&mut order, 1, u64::MAX), []);
    assert_eq!(offer(&mut order, 2, u64::MAX - 1), []);
    assert_eq!(offer(&mut order, 3, 1), [(1, 1, "fact")]);
    assert_eq!(order.offer(ms(4), 0, false, 0), Admit::Conflict(0));
    order.handle_timeout(ms(251));
    let (top, next) = (u64::MAX, u64::MAX - 1);
    assert_eq!(
        drain(&mut order),
        [
            (2, top - 2, "skipped"),
            (next, next, "fact"),
            (top, top, "fact")
        ]
    );
    assert_eq!(order.offer(ms(300), top, false, 0), Admit::Conflict(0));
    assert_eq!(
        offer(&mut order, 301, 1 << 60),
        [(1 << 60, 1 << 60, "late")]
    );
    assert!(order.close(ms(302), top));
    assert!(!order.give_up(ms(303), top));
    assert_eq!(order.edge(), Some(top));
}

#[test]
fn br_55_early_is_a_no_op_a_step_back_is_clamped_and_the_end_of_time_saturates() {
    let mut order = at_one();
    offer(&mut order, 100, 2);
    order.handle_timeout(ms(349));
    assert_eq!(order.poll_timeout(), Some(ms(350)));
    order.handle_timeout(ms(20));
    offer(&mut order, 20, 4);
    // The step back arrived at 349, as far as this order knows.
    order.handle_timeout(ms(350));
    assert_eq!(drain(&mut order), [(1, 1, "skipped"), (2, 2, "fact")]);
    assert_eq!(order.poll_timeout(), Some(ms(599)));
    let end = Instant::from_micros(u64::MAX);
    order.handle_timeout(end);
    drain(&mut order);
    assert_eq!(order.offer(end, 9, false, 0), Admit::Taken);
    assert_eq!(order.poll_timeout(), Some(end));
    order.handle_timeout(end);
    assert_eq!(drain(&mut order), [(5, 8, "skipped"), (9, 9, "fact")]);
    assert_eq!(order.poll_timeout(), None);
}

#[test]
fn a_fact_that_finds_no_room_changes_nothing_and_can_be_given_up() {
    let mut order = Order::new([const { [const { None }; 1] }; 2], OrderConfig::default());
    assert_eq!(order.offer(ms(0), 1, false, 1), Admit::Taken);
    assert_eq!(order.offer(ms(0), 2, false, 2), Admit::Taken);
    assert!(!order.has_room());
    assert_eq!(order.offer(ms(0), 3, false, 3), Admit::Busy(3));
    assert_eq!(order.edge(), Some(2));
    assert!(order.give_up(ms(0), 3));
    assert!(order.give_up(ms(0), 4));
    assert!(order.poll().is_some() && order.poll().is_some());
    // Its place is behind what was decided and before what comes next.
    assert_eq!(order.offer(ms(0), 5, false, 5), Admit::Taken);
    assert_eq!(
        order.poll(),
        Some(Release::Skipped {
            epoch: 0,
            first: 3,
            last: 4
        })
    );
    assert_eq!(
        order.poll(),
        Some(Release::Fact {
            epoch: 0,
            seq: 5,
            late: false,
            item: 5
        })
    );
    assert_eq!(order.offer(ms(0), 3, false, 3), Admit::Taken);
    assert_eq!(
        order.poll(),
        Some(Release::Fact {
            epoch: 0,
            seq: 3,
            late: true,
            item: 3
        })
    );
}

/// Facts that leave on arrival, over three slots and the one beside them.
fn arriving_with_room_for_4() -> Order<u32, [Option<Slot<u32>>; 3]> {
    let as_arrives = true;
    let config = OrderConfig {
        as_arrives,
        ..OrderConfig::default()
    };
    let mut order = Order::new([const { [const { None }; 3] }; 2], config);
    assert!(order.begin(9, true));
    for seq in [5, 3] {
        assert_eq!(order.offer(ms(0), seq, false, seq as u32), Admit::Taken);
    }
    assert_eq!(order.offer(ms(0), 2, false, 2), Admit::Busy(2));
    order
}

#[test]
fn no_skipped_covers_what_was_delivered_between_two_that_were_given_up() {
    let mut order = arriving_with_room_for_4();
    for seq in [2, 4, 6] {
        assert!(order.give_up(ms(0), seq));
    }
    assert_eq!(
        drain(&mut order),
        [
            (5, 5, "fact"),
            (3, 3, "fact"),
            (1, 2, "skipped"),
            (4, 4, "skipped"),
            (6, 6, "skipped")
        ]
    );
    // Nor does the gap behind it, which a timeout gives up.
    let mut order = arriving_with_room_for_4();
    assert!(order.give_up(ms(0), 2));
    order.handle_timeout(ms(250));
    assert_eq!(
        drain(&mut order),
        [
            (5, 5, "fact"),
            (3, 3, "fact"),
            (1, 2, "skipped"),
            (4, 4, "skipped")
        ]
    );
}

#[test]
fn a_closed_place_is_in_no_skipped_and_without_room_it_is_refused() {
    let mut order = Order::new([const { [const { None }; 2] }; 2], OrderConfig::default());
    for seq in 1..=3 {
        assert_eq!(order.offer(ms(0), seq, false, 0), Admit::Taken);
    }
    assert!(!order.close(ms(0), 5), "no room to remember it");
    assert_eq!((order.edge(), order.held(), order.skips()), (Some(3), 0, 0));
    assert!(order.close(ms(0), 4), "the next one needs none");
    assert!(order.give_up(ms(0), 5));
    assert!(!order.close(ms(0), 6), "the range before it would grow");
    assert_eq!(order.edge(), Some(5));
    assert!(order.poll().is_some());
    assert!(order.close(ms(0), 6), "one slot carries that range now");
    assert!(order.give_up(ms(0), 7));
    assert!(order.close(ms(0), 7), "it is decided");
    assert_eq!(
        drain(&mut order),
        [
            (2, 2, "fact"),
            (3, 3, "fact"),
            (5, 5, "skipped"),
            (7, 7, "skipped")
        ]
    );
}

#[test]
fn what_waits_keeps_its_epoch_and_where_too_many_wait_none_begins_and_none_is_passed_on() {
    let mut order = order();
    let fact = |epoch, seq| Release::Fact {
        epoch,
        seq,
        late: false,
        item: seq as u32,
    };
    for epoch in 1..=8 {
        assert!(order.begin(epoch, true));
        assert_eq!(order.offer(ms(0), 1, false, 1), Admit::Taken);
        // Of one that waits already as many as may come.
        assert_eq!(order.pass(1, 7, 7), Ok(()));
    }
    assert!(!order.has_epochs() && !order.begin(9, true) && !order.begin(1, true));
    assert_eq!(order.pass(9, 5, 5), Err(5));
    assert_eq!((order.edge(), order.pass(8, 6, 6)), (Some(1), Ok(())));
    for epoch in 1..=8 {
        assert_eq!(order.front().map(|front| front.epoch), Some(epoch));
        assert_eq!(order.poll(), Some(fact(epoch, 1)));
        assert_eq!(order.poll(), Some(fact(1, 7)));
        // The first one goes on to wait.
        assert_eq!(order.has_epochs(), epoch > 1);
    }
    assert!(order.begin(9, true));
    assert_eq!(order.offer(ms(0), 1, false, 1), Admit::Taken);
    assert_eq!(order.pass(8, 5, 5), Ok(()));
    assert!(order.begin(8, true));
    let rest: Vec<_> = core::iter::from_fn(|| order.poll()).collect();
    assert_eq!(rest, [fact(8, 6), fact(9, 1), fact(8, 5)]);
    assert!(order.is_idle() && order.has_epochs());
}

#[test]
fn every_range_is_told_before_its_fact_however_many_wait() {
    let config = OrderConfig::default();
    let all = (1..=4).flat_map(|n| [(2 * n - 1, 2 * n - 1, "skipped"), (2 * n, 2 * n, "fact")]);
    let all: Vec<_> = all.collect();
    let mut fixed = Order::new([const { [const { None }; 3] }; 2], config);
    let mut growing = at_one();
    assert!(fixed.begin(9, true));
    for seq in [2, 4, 6, 8] {
        assert_eq!(fixed.offer(ms(0), seq, false, 0), Admit::Taken);
        assert_eq!(growing.offer(ms(0), seq, false, 0), Admit::Taken);
    }
    fixed.handle_timeout(ms(250));
    growing.handle_timeout(ms(250));
    assert_eq!(drain(&mut fixed), all);
    assert_eq!(drain(&mut growing), all);
}

#[test]
fn busy_is_cured_by_handing_out_whatever_is_held() {
    for as_arrives in [false, true] {
        let config = OrderConfig {
            as_arrives,
            ..OrderConfig::default()
        };
        let mut order = Order::new([const { [const { None }; 3] }; 2], config);
        for seq in (2..40).step_by(2) {
            let admit = order.offer(ms(0), seq, false, 0);
            assert_eq!(admit, Admit::Taken, "{seq} {as_arrives}");
            drain(&mut order);
            assert!(order.has_room());
        }
    }
}

#[test]
fn the_front_can_be_opened_in_place_and_comes_after_its_skip() {
    let mut order = at_one();
    assert_eq!(order.offer(ms(0), 2, false, 5), Admit::Taken);
    assert!(order.front().is_none());
    order.handle_timeout(ms(250));
    assert!(order.front().is_none(), "the skip comes first");
    assert!(matches!(order.poll(), Some(Release::Skipped { .. })));
    *order.front().unwrap().item = 6;
    assert_eq!(
        order.poll(),
        Some(Release::Fact {
            epoch: 9,
            seq: 2,
            late: false,
            item: 6
        })
    );
}

#[test]
fn a_drained_publisher_in_order_allocates_nothing_and_a_burst_is_given_back() {
    let mut order = order();
    for seq in 1..100 {
        offer(&mut order, seq, seq);
    }
    assert_eq!(slot_bytes(&order), 0);
    for seq in 101..400 {
        offer(&mut order, 500, seq);
    }
    assert!(slot_bytes(&order) > 0);
    assert_eq!(offer(&mut order, 501, 100).len(), 300);
    assert_eq!(slot_bytes(&order), 0);
}

#[test]
fn a_window_in_any_order_leaves_in_order_and_its_deadline_is_that_of_the_first_of_the_held() {
    let mut order = at_one();
    let mut random = 1_u64;
    let (mut now, mut done) = (0, 0);
    for window in 0..50 {
        let mut seqs: Vec<u64> = (1..=64).map(|nth| window * 64 + nth).collect();
        for left in (1..64).rev() {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            seqs.swap(left, (random >> 33) as usize % (left + 1));
        }
        let mut held: Vec<(u64, u64)> = Vec::new();
        for seq in seqs {
            now += 1;
            held.push((seq, now));
            for (out, _, kind) in offer(&mut order, now, seq) {
                done += 1;
                assert_eq!((out, kind), (done, "fact"));
                held.retain(|held| held.0 != out);
            }
            let first = held.iter().map(|held| held.1).min();
            assert_eq!(order.poll_timeout(), first.map(|at| ms(at + 250)));
        }
    }
    assert_eq!((done, order.skips(), order.held()), (3200, 0, 0));
}

#[test]
fn what_is_beyond_the_window_waits_as_exactly() {
    let mut order = at_one();
    for (now, seq) in [(1, 3), (2, 60), (3, 5), (4, 64), (5, 65), (6, 1000), (7, 4)] {
        assert_eq!(offer(&mut order, now, seq), []);
        assert_eq!(order.poll_timeout(), Some(ms(251)));
    }
    let skipped = [(1, 2, "skipped"), (3, 3, "fact"), (4, 4, "fact")];
    order.handle_timeout(ms(251));
    assert_eq!(drain(&mut order)[..3], skipped);
    assert_eq!(order.poll_timeout(), Some(ms(252)));
    order.handle_timeout(ms(256));
    assert_eq!(
        drain(&mut order),
        [
            (6, 59, "skipped"),
            (60, 60, "fact"),
            (61, 63, "skipped"),
            (64, 64, "fact"),
            (65, 65, "fact"),
            (66, 999, "skipped"),
            (1000, 1000, "fact")
        ]
    );
}
