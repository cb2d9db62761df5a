use super::*;

#[test]
fn the_first_publication_begins_epoch_1() {
    assert_eq!(Guess::new(false).epoch_of(77, &[]), 1);
}

#[test]
fn a_jump_over_10000_from_next_in_either_direction_is_a_restart_and_exactly_10000_is_not() {
    let mut guess = Guess::new(false);
    guess.commit(1);
    let edge = 49_999;
    let epoch_of = |seq| guess.epoch_of(seq, &[(1, Some(edge))]);
    assert_eq!((epoch_of(60_000), epoch_of(60_001)), (1, 2));
    assert_eq!((epoch_of(40_000), epoch_of(39_999)), (1, 2));
}

#[test]
fn while_the_first_facts_are_held_nothing_is_a_restart() {
    let mut guess = Guess::new(false);
    guess.commit(1);
    assert_eq!(guess.epoch_of(u64::MAX, &[(1, None)]), 1);
}

#[test]
fn an_old_straggler_does_not_flip_the_epoch_back() {
    let mut guess = Guess::new(false);
    guess.commit(2);
    let known = [(2, Some(5)), (1, Some(5_000_000))];
    assert_eq!(guess.epoch_of(5_000_002, &known), 1);
    assert_eq!(guess.epoch_of(6, &known), 2);
    assert_eq!(guess.epoch_of(100_000, &known), 3);
}

#[test]
fn made_up_epochs_only_grow_and_stay_below_the_clocks() {
    let mut guess = Guess::new(false);
    guess.commit(5);
    guess.commit(3);
    guess.commit(1_700_000_000_000_000);
    assert_eq!(guess.epoch_of(1, &[(1_700_000_000_000_000, Some(0))]), 6);
    guess.commit(CLOCKS - 1);
    assert_eq!(guess.epoch_of(1, &[]), CLOCKS - 1);
}

#[test]
fn br_27_a_sparse_source_never_restarts_by_distance() {
    let mut guess = Guess::new(true);
    assert_eq!(guess.epoch_of(1_700_000_000_000_000, &[]), 1);
    guess.commit(1);
    assert_eq!(guess.epoch_of(u64::MAX, &[(1, Some(3))]), 1);
}
