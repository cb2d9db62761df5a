//! Fact, answer and timer of one tick, in every order.

use tidings::Misuse;
use tidings::code::DropReason;

use crate::common::{ORDERS, at};
use crate::rig::{Rig, admitted, refused};

/// A fact waits, and at `tick` come another, the answer and the timer; answers what became of the answer.
fn play(rig: &mut Rig, order: [u8; 3], tick: u64, admits: bool) -> Result<(), Misuse> {
    rig.fact(0, 1);
    let ask = rig.one();
    let mut told = Ok(());
    for step in order {
        match step {
            0 => rig.fact(tick, 2),
            1 => {
                let answer = if admits { admitted() } else { refused() };
                told = rig.answer(at(tick), ask, answer);
            }
            _ => rig.node.time(at(tick)),
        }
    }
    told
}

fn refusals(rig: &Rig) -> u64 {
    let status = rig.node.client.subscription(rig.node.stream);
    status.expect("it is subscribed").source_refused
}

#[test]
fn an_answer_just_in_time_admits_both_in_every_order() {
    for order in ORDERS {
        let mut rig = Rig::new();
        assert_eq!(play(&mut rig, order, 4999, true), Ok(()), "{order:?}");
        assert_eq!(rig.later(9000), ["1", "2"], "{order:?}");
    }
}

#[test]
fn an_answer_just_in_time_refuses_both_in_every_order() {
    for order in ORDERS {
        let mut rig = Rig::new();
        assert_eq!(play(&mut rig, order, 4999, false), Ok(()), "{order:?}");
        assert_eq!(rig.later(9000), [""; 0], "{order:?}");
        assert_eq!(refusals(&rig), 2, "{order:?}");
    }
}

/// It is too late whether the timer was there or not: what waited is dropped, and what comes at that instant is asked for anew.
#[test]
fn an_answer_at_the_deadline_settles_nothing_in_any_order() {
    for order in ORDERS {
        for admits in [true, false] {
            let mut rig = Rig::new();
            let told = play(&mut rig, order, 5000, admits);
            assert_eq!(told, Err(Misuse::DeadHandle), "{order:?}");
            let anew = rig.one();
            rig.told(5001, anew, admitted());
            let wanted = ["2", "dropped unanswered 1"];
            assert_eq!(rig.later(9000), wanted, "{order:?}");
            assert_eq!(rig.dropped(DropReason::Unanswered), 1, "{order:?}");
            assert_eq!(refusals(&rig), 0, "{order:?}");
            assert_eq!(rig.counts().0, 0, "{order:?}");
        }
    }
}

/// Whoever slept past the deadline reads before its timers are looked at: what comes then does not join what is over.
#[test]
fn after_a_sleep_the_first_fact_is_looked_up_anew() {
    let mut rig = Rig::new();
    for seq in 1..=64 {
        rig.fact(0, seq);
    }
    let _asleep = rig.one();
    rig.fact(60_000, 65);
    let anew = rig.one();
    rig.told(60_001, anew, admitted());
    assert_eq!(rig.later(70_000), ["65", "dropped unanswered 64"]);
}
