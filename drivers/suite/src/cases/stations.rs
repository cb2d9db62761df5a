//! Stations that go and come back.
//!
//! Decides: what is demanded. Leaves to others: how a driver does it. Believes: nothing but what
//! comes out. Bounded by: the kit's patience.

use tidings::code::GapReason;
use tidings::{Item, Notice, Outcome, Refusal};

use crate::Driver;
use crate::kit::{Kit, PATIENCE, host, number, numbered, open, until};

/// While one of two stations carries on, nothing is lost and nothing is said.
pub fn killing_one_of_two_stations_loses_nothing<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let (one, two) = (kit.station(1), kit.station(2));
    let reader = kit.node(3, &[&one, &two]);
    let writer = kit.node(4, &[&one, &two]);
    let mut facts = kit.subscribe(&reader, open("kill/one"), 2);
    for n in 0..50 {
        kit.routed(&writer, numbered("kill/one", n));
    }
    driver.kill_station(one);
    for n in 50..100 {
        kit.routed(&writer, numbered("kill/one", n));
    }
    kit.numbers(&mut facts, 0, 100);
    kit.quiet(&mut facts);
}

/// `Interrupted` when the last one goes; the end of the interruption when it is back, before the
/// facts that follow.
pub fn the_last_station_gone_interrupts_and_its_return_ends_the_interruption<D: Driver>(
    driver: &D,
) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let at = host(&driver.station_address(&station));
    let (reader, writer) = (kit.node(2, &[&station]), kit.node(3, &[&station]));
    let mut facts = kit.subscribe(&reader, open("last/station"), 1);
    kit.routed(&writer, numbered("last/station", 0));
    kit.numbers(&mut facts, 0, 1);
    driver.kill_station(station);
    let notice = kit.notice(&mut facts);
    assert!(matches!(notice, Notice::Interrupted { .. }), "{notice:?}");
    let _station = driver
        .start_station(kit.settings_at(1, &at))
        .expect("the station starts again");
    assert!(
        driver.carried(&mut facts, 1, PATIENCE),
        "the station carries it again"
    );
    // The writer may not even have noticed yet that its first link is gone.
    until("the writer connects again", || {
        match driver.publish(&writer, numbered("last/station", 1)) {
            Ok(outcome) => {
                assert!(matches!(outcome, Outcome::Routed { .. }), "{outcome:?}");
                true
            }
            Err(reason) => {
                assert_eq!(reason, Refusal::NoStation);
                false
            }
        }
    });
    let notice = kit.notice(&mut facts);
    match notice {
        Notice::Gap {
            from,
            to,
            reason: GapReason::Lost | GapReason::Expired,
            ..
        } => assert!(from <= to),
        Notice::Resumed { .. } => {}
        other => panic!("the end of the interruption, not {other:?}"),
    }
    kit.numbers(&mut facts, 1, 2);
}

/// A station that says goodbye interrupts as well.
pub fn a_taken_down_station_is_a_notice<D: Driver>(driver: &D) {
    let kit = Kit::new(driver);
    let station = kit.station(1);
    let reader = kit.node(2, &[&station]);
    let mut facts = kit.subscribe(&reader, open("taken/down"), 1);
    driver.close_station(station);
    let notice = kit.notice(&mut facts);
    assert!(matches!(notice, Notice::Interrupted { .. }), "{notice:?}");
}

/// Numbers of the facts among what comes until nothing does.
pub(crate) fn rest<D: Driver>(
    kit: &Kit<'_, D>,
    facts: &mut D::Subscription,
) -> (Vec<u64>, Vec<Notice>) {
    let (mut heard, mut notices) = (Vec::new(), Vec::new());
    while let Some(item) = kit.driver.next(facts, crate::kit::QUIET) {
        match item {
            Item::Fact(fact) => heard.push(number(&fact)),
            Item::Notice(notice) => notices.push(*notice),
            other => panic!("a fact or a notice, not {other:?}"),
        }
    }
    (heard, notices)
}
