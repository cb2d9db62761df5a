//! The simulator is held to its own rules: each checker sees the bug that was planted for it, a run depends on its seed alone, and a band of
//! seeds holds.

use tidings::sim::{Habit, Options, Outcomes, Sabotage, run, shrink};

/// Seeds within which a planted bug has to be seen.
const SEEDS: u64 = 200;

fn with(sabotage: Sabotage) -> Options {
    let mut options = Options::default();
    options.sabotage = Some(sabotage);
    options
}

/// The first seed at which one of these rules is found broken.
fn caught(sabotage: Sabotage, rules: &[&str]) -> u64 {
    let options = with(sabotage);
    let breaks = |outcome: &Outcomes| {
        outcome
            .broken
            .iter()
            .any(|broken| rules.contains(&broken.rule))
    };
    let first = (0..SEEDS).find(|seed| breaks(&run(*seed, &options)));
    first.unwrap_or_else(|| panic!("{sabotage:?} is not seen by {rules:?} within {SEEDS} seeds"))
}

#[test]
fn a_fact_that_is_dropped_is_missed_by_the_ledger() {
    caught(Sabotage::DropFact, &["ledger"]);
}

#[test]
fn a_fact_that_is_delivered_twice_is_seen() {
    caught(Sabotage::DeliverTwice, &["once"]);
}

#[test]
fn two_facts_that_changed_places_are_seen() {
    caught(Sabotage::SwapTwo, &["order"]);
}

#[test]
fn a_notice_that_is_kept_back_leaves_a_hole_in_the_ledger() {
    caught(Sabotage::SwallowNotice, &["ledger"]);
    caught(Sabotage::SwallowNotice, &["windows"]);
}

#[test]
fn a_notice_without_a_cause_is_seen() {
    caught(Sabotage::InventNotice, &["cause"]);
}

#[test]
fn a_sealed_fact_that_is_told_twice_or_not_at_all_is_seen() {
    caught(Sabotage::UnopenedTwice, &["unopened"]);
    caught(Sabotage::SwallowUnopened, &["ledger"]);
}

#[test]
fn what_is_opened_past_its_bound_is_seen() {
    caught(Sabotage::OpenLate, &["sealed"]);
}

#[test]
fn a_publisher_that_is_delivered_past_the_verdict_on_it_is_seen() {
    caught(Sabotage::AdmitRevoked, &["verdict"]);
}

#[test]
fn a_window_that_begins_late_leaves_a_loss_outside() {
    caught(Sabotage::NarrowWindow, &["ledger"]);
    caught(Sabotage::NarrowWindow, &["windows"]);
}

#[test]
fn a_window_wider_than_its_outage_is_seen() {
    caught(Sabotage::WidenWindow, &["windows"]);
}

#[test]
fn a_ticket_that_settles_twice_or_never_is_seen() {
    caught(Sabotage::SettleTwice, &["tickets"]);
    caught(Sabotage::SettleNever, &["tickets"]);
}

#[test]
fn what_is_kept_of_what_is_over_is_seen() {
    caught(Sabotage::Leak, &["memory"]);
}

#[test]
fn a_deadline_that_stands_still_is_seen() {
    caught(Sabotage::StandingDeadline, &["deadlines"]);
}

#[test]
fn deadlines_that_come_without_need_are_seen() {
    caught(Sabotage::BusyDeadlines, &["deadlines"]);
}

#[test]
fn an_event_that_its_station_loses_is_seen() {
    caught(Sabotage::DropEvent, &["station"]);
}

#[test]
fn a_commit_that_is_not_the_last_gives_again_what_was_committed() {
    caught(Sabotage::StaleCommit, &["commits"]);
}

#[test]
fn a_commit_of_more_than_was_read_is_missed_by_the_ledger() {
    caught(Sabotage::EagerCommit, &["ledger"]);
}

#[test]
fn a_commit_past_a_drop_that_nobody_was_told_of_is_missed_by_the_ledger() {
    caught(Sabotage::CommitUntold, &["ledger"]);
}

#[test]
fn an_epoch_from_before_the_last_run_is_seen() {
    caught(Sabotage::ForgetEpoch, &["epochs"]);
}

#[test]
fn what_no_seed_knows_shows_in_the_trace() {
    let options = with(Sabotage::Unseeded);
    let differs = |seed| run(seed, &options).trace != run(seed, &options).trace;
    assert!((0..SEEDS).any(differs));
}

#[test]
fn what_depends_on_how_often_was_asked_shows_in_another_habit() {
    let options = with(Sabotage::CountPolls);
    let mut lazily = options.clone();
    lazily.habit = Habit::Small { cut: 50, every: 3 };
    let differs = |seed| run(seed, &options).trace != run(seed, &lazily).trace;
    assert!((0..SEEDS).any(differs));
}

#[test]
fn a_seed_has_one_trace_however_it_is_drained_and_in_whichever_profile() {
    let options = Options::default();
    for seed in 0..20 {
        let first = run(seed, &options);
        assert_eq!(first.trace, run(seed, &options).trace, "seed {seed} again");
        let mut lazily = options.clone();
        lazily.habit = Habit::Small {
            cut: 5 + seed as usize * 7,
            every: 1 + seed as u32 % 4,
        };
        assert_eq!(
            first.streams,
            run(seed, &lazily).streams,
            "seed {seed} read lazily"
        );
        assert_eq!(
            first.trace,
            run(seed, &lazily).trace,
            "seed {seed} read lazily"
        );
        if seed < 4 {
            let mut real = options.clone();
            real.real_keys = true;
            assert_eq!(
                first.trace,
                run(seed, &real).trace,
                "seed {seed} with Ed25519"
            );
        }
    }
}

#[test]
fn a_band_of_seeds_holds() {
    for seed in 0..150 {
        let outcome = run(seed, &Options::default());
        assert!(
            outcome.broken.is_empty(),
            "seed {seed}: {:?}",
            outcome.broken
        );
    }
}

#[test]
fn a_trace_has_a_line_for_everything_and_changes_nothing() {
    let mut options = Options::default();
    options.trace = true;
    for seed in 0..60 {
        let outcome = run(seed, &options);
        assert_eq!(outcome.trace, run(seed, &Options::default()).trace);
        let lines = outcome.lines.iter();
        assert!(lines.clone().count() > 20);
        for line in lines {
            assert!(line.len() > 24 && !line.ends_with(' '), "{line:?}");
        }
        let counted = outcome.tally.lines();
        let absent = outcome.tally.absent();
        let zeros = counted.iter().filter(|(_, _, count)| *count == 0).count();
        assert!(absent.len() <= zeros && zeros < counted.len());
    }
}

#[test]
fn a_run_that_fails_is_shrunk_to_a_few_acts_that_still_fail() {
    let options = with(Sabotage::DeliverTwice);
    let seed = caught(Sabotage::DeliverTwice, &["once"]);
    let short = shrink(seed, &options, 200).expect("it fails");
    let left = short.outcome.acts - short.without.len();
    assert!(left <= 3, "{left} acts are left of {}", short.outcome.acts);
    assert!(
        short
            .outcome
            .broken
            .iter()
            .any(|broken| broken.rule == "once")
    );
    assert!(!short.outcome.lines.is_empty());
    assert!(
        shrink(seed, &Options::default(), 10).is_none(),
        "without the bug it holds"
    );
}
