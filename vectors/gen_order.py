"""order.json: traces of one lane. All but the random ones were worked out by hand as well."""

from cast import EPOCH, NOW
from family import Family
from gen_flow import Dice
from model import judge
from model_flow import Order

E1, E2, E3 = EPOCH, EPOCH + 60_000_000, EPOCH + 120_000_000  # all within five minutes of the acceptance
TOP = 2**53 - 1


def fact(epoch, seq, late=False):
    return {"fact": [epoch, seq], "late": late}


def facts(epoch, first, last, late=False):
    return [fact(epoch, seq, late) for seq in range(first, last + 1)]


def skipped(epoch, first, last):
    return {"skipped": [epoch, first, last]}


def restarted(epoch, greater):
    return {"restarted": {"epoch": epoch, "greater": greater}}


def conflict(epoch, seq):
    return {"conflict": [epoch, seq, seq, 1]}


def family():
    f = Family("order", "One lane (one publisher and topic in one subscription); `out` and `deadline_ms` after each step.")

    def trace(name, *steps, mode="ordered", buffer=1024, sparse=False, accepted=NOW):
        """Steps are (at, epoch, seq), ("time", at) or ("close", at, epoch, seq), then what comes out and the deadline."""
        given, wanted = [], []
        for what, out, deadline in steps:
            if what[0] == "time":
                given.append({"timeout": what[1]})
            elif what[0] == "close":
                given.append({"at_ms": what[1], "wall_ms": NOW + what[1], "close": {"epoch": what[2], "seq": what[3]}})
            else:
                given.append({"at_ms": what[0], "wall_ms": NOW + what[0], "offer": {"epoch": what[1], "seq": what[2]}})
            wanted.append((out, deadline))
        inputs = {"config": config(mode, buffer, sparse, accepted), "steps": given}
        for step, (out, deadline) in zip(judge("order", inputs)["steps"], wanted):
            assert (step["out"], step["deadline_ms"]) == (out, deadline), f"{name}: {step} is not {out} {deadline}"
        f.accept(name, inputs)

    cases(trace)
    ordered(trace)
    epochs(trace)
    as_arrives(trace)
    latest_only(trace)
    for number in range(24):
        f.accept(f"random_{number}", random_trace(number))
    return f


def config(mode, buffer, sparse, accepted):
    return {"mode": mode, "timeout_ms": 250, "buffer": buffer, "accepted_wall_ms": accepted, "sparse": sparse}


def cases(trace):
    trace(
        "br_25_ordered",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [], 251),
        ((3, E1, 2), [fact(E1, 2), fact(E1, 3)], None),
    )
    trace(
        "br_25_latest_only",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [fact(E1, 3)], None),
        ((3, E1, 2), [], None),
        mode="latest_only",
    )
    trace(
        "br_25_as_arrives",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [fact(E1, 3)], 251),
        ((3, E1, 2), [fact(E1, 2)], None),
        mode="as_arrives",
    )
    trace(
        "br_26_late_copy_after_a_skip",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [], 251),
        (("time", 250), [], 251),
        (("time", 251), [skipped(E1, 2, 2), fact(E1, 3)], None),
        ((300, E1, 2), [fact(E1, 2, True)], None),
    )
    trace(
        "br_27_numbered_by_epoch_and_counter",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((5, E1, 2), [fact(E1, 2)], None),
        ((20, E1, 3), [fact(E1, 3)], None),
    )
    trace(
        "br_27_sparse",
        ((0, E1, 1000), [], 250),
        ((5, E1, 6000), [], 250),
        ((20, E1, 21000), [], 250),
        (("time", 250), [fact(E1, 1000)], 255),
        (("time", 255), [fact(E1, 6000)], 270),
        (("time", 270), [fact(E1, 21000)], None),
        sparse=True,
    )
    trace(
        "sparse_is_reordered_within_the_timeout",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 30), [], 251),
        ((2, E1, 20), [], 251),
        ((3, E1, 10), [], 251),
        (("time", 251), [fact(E1, 10), fact(E1, 20), fact(E1, 30)], None),
        ((300, E1, 15), [fact(E1, 15, True)], None),
        sparse=True,
    )
    trace(
        "br_28_restart_is_heard_at_once",
        ((0, E1, 5_000_000), [], 250),
        (("time", 250), [fact(E1, 5_000_000)], None),
        ((300, E2, 1), [restarted(E2, True), fact(E2, 1)], None),
        ((301, E2, 2), [fact(E2, 2)], None),
    )
    trace(
        "br_28_while_the_old_tail_is_held",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((10, E1, 3), [], 260),
        ((20, E2, 1), [restarted(E2, True), fact(E2, 1)], 260),
        ((30, E2, 2), [fact(E2, 2)], 260),
        (("time", 260), [skipped(E1, 2, 2), fact(E1, 3, True)], None),
    )
    for mode, hold in (("as_arrives", 250), ("latest_only", None)):
        trace(
            f"br_28_{mode}",
            ((0, E1, 5_000_000), [fact(E1, 5_000_000)], hold),
            (("time", 250), [], None),
            ((300, E2, 1), [restarted(E2, True), fact(E2, 1)], None),
            ((301, E2, 2), [fact(E2, 2)], None),
            mode=mode,
        )
    trace(
        "br_34_hostile_numbers",
        ((0, E1, TOP), [], 250),
        ((1, E1, TOP - 1), [], 250),
        ((2, E1, 1), [fact(E1, 1)], 250),
        (("time", 250), [skipped(E1, 2, TOP - 2), fact(E1, TOP - 1), fact(E1, TOP)], None),
        ((300, E1, 2**52), [fact(E1, 2**52, True)], None),
        ((301, E1, 2), [fact(E1, 2, True)], None),
        ((2000, E1, 1), [conflict(E1, 1)], None),
        ((4000, E1, 2**52), [conflict(E1, 2**52)], None),
    )
    trace(
        "br_34_hostile_numbers_as_arrives",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, TOP), [fact(E1, TOP)], 251),
        ((2, E1, 2**40), [fact(E1, 2**40)], 251),
        (("time", 251), [skipped(E1, 2, 2**40 - 1), skipped(E1, 2**40 + 1, TOP - 1)], None),
        ((300, E1, 3), [fact(E1, 3, True)], None),
        mode="as_arrives",
    )


def ordered(trace):
    trace("in_order", *(((n, E1, n), [fact(E1, n)], None) for n in range(1, 6)))
    trace(
        "first_above_1_is_held_and_the_lowest_starts",
        ((0, E1, 7), [], 250),
        ((100, E1, 6), [], 250),
        ((110, E1, 9), [], 250),
        (("time", 250), [fact(E1, 6), fact(E1, 7)], 360),
        (("time", 360), [skipped(E1, 8, 8), fact(E1, 9)], None),
        ((400, E1, 5), [fact(E1, 5, True)], None),
        ((401, E1, 10), [fact(E1, 10)], None),
    )
    trace(
        "number_1_starts_at_once",
        ((0, E1, 2), [], 250),
        ((5, E1, 4), [], 250),
        ((10, E1, 1), [fact(E1, 1), fact(E1, 2)], 255),
        ((20, E1, 3), [fact(E1, 3), fact(E1, 4)], None),
    )
    late = NOW + 300_000
    trace(
        "begun_five_minutes_after_the_acceptance_may_be_joined_in_the_middle",
        ((400_000, late * 1000, 3), [], 400_250),
        (("time", 400_250), [fact(late * 1000, 3)], None),
    )
    trace(
        "begun_later_starts_at_1",
        ((400_000, late * 1000 + 1, 3), [], 400_250),
        ((400_100, late * 1000 + 1, 1), [fact(late * 1000 + 1, 1)], 400_250),
        (("time", 400_250), [skipped(late * 1000 + 1, 2, 2), fact(late * 1000 + 1, 3)], None),
    )
    trace(
        "begun_later_and_its_start_missed",
        ((400_000, late * 1000 + 1, 3), [], 400_250),
        (("time", 400_250), [skipped(late * 1000 + 1, 1, 2), fact(late * 1000 + 1, 3)], None),
        ((400_300, late * 1000 + 1, 1), [fact(late * 1000 + 1, 1, True)], None),
    )
    trace(
        "each_gap_counts_from_the_first_fact_behind_it",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((10, E1, 3), [], 260),
        ((100, E1, 5), [], 260),
        ((200, E1, 8), [], 260),
        (("time", 260), [skipped(E1, 2, 2), fact(E1, 3)], 350),
        (("time", 350), [skipped(E1, 4, 4), fact(E1, 5)], 450),
        ((400, E1, 7), [], 450),
        (("time", 450), [skipped(E1, 6, 6), fact(E1, 7), fact(E1, 8)], None),
    )
    trace(
        "an_old_fact_far_behind_dates_every_gap_before_it",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((10, E1, 9), [], 260),
        ((200, E1, 4), [], 260),
        ((250, E1, 6), [], 260),
        (("time", 260), [skipped(E1, 2, 3), fact(E1, 4), skipped(E1, 5, 5), fact(E1, 6), skipped(E1, 7, 8), fact(E1, 9)], None),
    )
    trace(
        "filled_in_time",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 4), [], 251),
        ((100, E1, 2), [fact(E1, 2)], 251),
        ((250, E1, 3), [fact(E1, 3), fact(E1, 4)], None),
    )
    trace(
        "called_late_is_the_same",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((10, E1, 3), [], 260),
        ((20, E1, 5), [], 260),
        (("time", 5000), [skipped(E1, 2, 2), fact(E1, 3), skipped(E1, 4, 4), fact(E1, 5)], None),
    )
    trace(
        "called_early_is_nothing",
        (("time", 0), [], None),
        ((10, E1, 2), [], 260),
        (("time", 100), [], 260),
        (("time", 259), [], 260),
        (("time", 260), [fact(E1, 2)], None),
        (("time", 10_000), [], None),
    )
    trace(
        "buffer_full_skips_the_head_gap",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [], 251),
        ((2, E1, 5), [], 251),
        ((3, E1, 6), [], 251),
        ((4, E1, 8), [skipped(E1, 2, 2), fact(E1, 3)], 252),
        ((5, E1, 10), [skipped(E1, 4, 4), fact(E1, 5), fact(E1, 6)], 254),
        buffer=4,
    )
    trace(
        "buffer_full_ends_the_hold",
        ((0, E1, 9), [], 250),
        ((1, E1, 8), [], 250),
        ((2, E1, 7), [fact(E1, 7), fact(E1, 8), fact(E1, 9)], None),
        ((3, E1, 10), [fact(E1, 10)], None),
        buffer=3,
    )
    trace(
        "late_in_any_order_and_once",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 6), [], 251),
        (("time", 251), [skipped(E1, 2, 5), fact(E1, 6)], None),
        ((300, E1, 4), [fact(E1, 4, True)], None),
        ((301, E1, 2), [fact(E1, 2, True)], None),
        ((302, E1, 5), [fact(E1, 5, True)], None),
        ((303, E1, 3), [fact(E1, 3, True)], None),
        ((304, E1, 7), [fact(E1, 7)], None),
    )
    trace(
        "conflict_with_what_was_delivered",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 2), [fact(E1, 2)], None),
        ((2, E1, 2), [conflict(E1, 2)], None),
        ((3, E1, 3), [fact(E1, 3)], None),
    )
    trace(
        "conflict_with_what_is_held",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [], 251),
        ((9, E1, 3), [conflict(E1, 3)], 251),
        ((20, E1, 2), [fact(E1, 2), fact(E1, 3)], None),
    )
    trace(
        "conflict_with_what_was_late",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [], 251),
        (("time", 251), [skipped(E1, 2, 2), fact(E1, 3)], None),
        ((300, E1, 2), [fact(E1, 2, True)], None),
        ((2000, E1, 2), [conflict(E1, 2)], None),
    )
    trace(
        "conflict_in_the_hold",
        ((0, E1, 5), [], 250),
        ((9, E1, 5), [conflict(E1, 5)], 250),
        (("time", 250), [fact(E1, 5)], None),
    )
    trace(
        "a_closed_place_lets_the_run_behind_it_go",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [], 251),
        (("close", 50, E1, 2), [fact(E1, 3)], None),
        ((60, E1, 4), [fact(E1, 4)], None),
    )
    trace(
        "a_closed_place_at_the_front",
        ((0, E1, 1), [fact(E1, 1)], None),
        (("close", 50, E1, 2), [], None),
        ((60, E1, 3), [fact(E1, 3)], None),
    )


def epochs(trace):
    trace(
        "older_epoch_runs_out_late_and_in_order",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((10, E2, 1), [restarted(E2, True), fact(E2, 1)], None),
        ((20, E1, 3), [], 270),
        ((30, E1, 2), [fact(E1, 2, True), fact(E1, 3, True)], None),
        ((40, E2, 2), [fact(E2, 2)], None),
        ((50, E1, 4), [fact(E1, 4, True)], None),
    )
    trace(
        "two_epochs_never_flip",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E2, 1), [restarted(E2, True), fact(E2, 1)], None),
        *(((2 * n, E1, n), [fact(E1, n, True)], None) if k == 0 else ((2 * n + 1, E2, n), [fact(E2, n)], None) for n in range(2, 6) for k in (0, 1)),
    )
    trace(
        "each_epoch_has_its_own_holes",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((10, E1, 3), [], 260),
        ((20, E2, 1), [restarted(E2, True), fact(E2, 1)], 260),
        ((30, E2, 4), [], 260),
        (("time", 260), [skipped(E1, 2, 2), fact(E1, 3, True)], 280),
        (("time", 280), [skipped(E2, 2, 3), fact(E2, 4)], None),
        ((300, E1, 2), [fact(E1, 2, True)], None),
        ((301, E2, 2), [fact(E2, 2, True)], None),
    )
    trace(
        "a_lower_epoch_is_heard_later",
        ((0, E2, 1), [fact(E2, 1)], None),
        ((10, E1, 1), [restarted(E1, False), fact(E1, 1, True)], None),
        ((20, E1, 2), [fact(E1, 2, True)], None),
        ((30, E2, 2), [fact(E2, 2)], None),
    )
    trace(
        "the_new_epoch_may_be_joined_in_the_middle",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((10, E2, 5), [restarted(E2, True)], 260),
        (("time", 260), [fact(E2, 5)], None),
    )
    trace(
        "a_third_epoch_replaces_the_one_heard_longest_ago",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((5, E1, 4), [], 255),
        ((10, E2, 1), [restarted(E2, True), fact(E2, 1)], 255),
        ((20, E3, 1), [skipped(E1, 2, 3), fact(E1, 4, True), restarted(E3, True), fact(E3, 1)], None),
        ((30, E2, 2), [fact(E2, 2, True)], None),
        ((40, E3, 2), [fact(E3, 2)], None),
    )
    steps = [((0, E1, 1), [fact(E1, 1)], None), ((5, E2, 1), [restarted(E2, True), fact(E2, 1)], None)]
    for n in range(2, 8):
        steps.append(((n * 10_000 - 9_996, E1, n), [fact(E1, n, True)], None))
        steps.append(((n * 10_000 - 9_995, E2, n), [fact(E2, n)], None))
    at = 60_100
    trace(
        "two_counters_after_a_minute_of_both",
        *steps,
        ((at, E1, 8), [fact(E1, 8, True), {"two_counters": True}], None),
        ((at + 1, E2, 8), [fact(E2, 8)], None),
        ((at + 70_000, E1, 9), [fact(E1, 9, True)], None),
        ((at + 70_001, E2, 9), [fact(E2, 9)], None),
    )


def as_arrives(trace):
    trace(
        "as_arrives_skips_and_late",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 4), [fact(E1, 4)], 251),
        ((50, E1, 6), [fact(E1, 6)], 251),
        (("time", 251), [skipped(E1, 2, 3)], 300),
        ((260, E1, 5), [fact(E1, 5)], None),
        ((270, E1, 3), [fact(E1, 3, True)], None),
        ((280, E1, 7), [fact(E1, 7)], None),
        mode="as_arrives",
    )
    trace(
        "as_arrives_one_of_the_middle_comes",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 5), [fact(E1, 5)], 251),
        ((9, E1, 3), [fact(E1, 3)], 251),
        (("time", 251), [skipped(E1, 2, 2), skipped(E1, 4, 4)], None),
        mode="as_arrives",
    )
    trace(
        "as_arrives_starts_at_the_lowest_of_the_first_facts",
        ((0, E1, 7), [fact(E1, 7)], 250),
        ((100, E1, 5), [fact(E1, 5)], 250),
        (("time", 250), [skipped(E1, 6, 6)], None),
        ((300, E1, 4), [fact(E1, 4, True)], None),
        ((301, E1, 6), [fact(E1, 6, True)], None),
        ((302, E1, 8), [fact(E1, 8)], None),
        mode="as_arrives",
    )
    trace(
        "as_arrives_buffer_full_skips_the_head_gap",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 3), [fact(E1, 3)], 251),
        ((2, E1, 5), [fact(E1, 5)], 251),
        ((3, E1, 7), [fact(E1, 7), skipped(E1, 2, 2)], 252),
        ((4, E1, 4), [fact(E1, 4)], 253),
        mode="as_arrives",
        buffer=3,
    )
    trace(
        "as_arrives_conflict",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E1, 2), [fact(E1, 2)], None),
        ((2, E1, 1), [conflict(E1, 1)], None),
        mode="as_arrives",
    )
    trace(
        "as_arrives_two_epochs",
        ((0, E1, 1), [fact(E1, 1)], None),
        ((1, E2, 1), [restarted(E2, True), fact(E2, 1)], None),
        ((2, E1, 2), [fact(E1, 2, True)], None),
        ((3, E2, 2), [fact(E2, 2)], None),
        mode="as_arrives",
    )


def latest_only(trace):
    trace(
        "latest_only_newer_alone",
        ((0, E1, 5), [fact(E1, 5)], None),
        ((1, E1, 4), [], None),
        ((2, E1, 50), [fact(E1, 50)], None),
        ((3, E1, 49), [], None),
        ((4, E2, 1), [restarted(E2, True), fact(E2, 1)], None),
        ((5, E1, 51), [], None),
        ((6, E2, 2), [fact(E2, 2)], None),
        ((7, E2, 2), [conflict(E2, 2)], None),
        mode="latest_only",
    )
    trace(
        "latest_only_a_lower_epoch_takes_over",
        ((0, E2, 1), [fact(E2, 1)], None),
        ((1000, E1, 1), [], None),
        ((2000, E1, 2), [], None),
        ((3000, E1, 3), [], None),
        ((4000, E1, 4), [], None),
        ((9999, E1, 5), [], None),
        ((10_000, E1, 6), [restarted(E1, False), fact(E1, 6)], None),
        ((10_001, E1, 7), [fact(E1, 7)], None),
        mode="latest_only",
    )
    trace(
        "latest_only_the_third_fact_takes_over",
        ((0, E2, 1), [fact(E2, 1)], None),
        ((11_000, E1, 5), [], None),
        ((12_000, E1, 6), [], None),
        ((13_000, E1, 7), [restarted(E1, False), fact(E1, 7)], None),
        mode="latest_only",
    )
    trace(
        "latest_only_two_facts_are_not_enough",
        ((0, E2, 1), [fact(E2, 1)], None),
        ((20_000, E1, 1), [], None),
        ((30_000, E1, 2), [], None),
        ((40_000, E2, 2), [fact(E2, 2)], None),
        mode="latest_only",
    )


def random_trace(number):
    """Two epochs, loss and reordering; time is called at every deadline."""
    dice = Dice(number)
    mode = ("ordered", "ordered", "as_arrives")[number % 3]
    given = config(mode, (1024, 6)[number % 4 == 3], number % 8 == 5, NOW)
    offers = []
    for epoch, start in ((E1, 0), (E2, 400 + dice.below(400))):
        at = start
        for seq in range(1, 26):
            at += 1 + dice.below(60)
            if seq > 1 and dice.below(100) < 12:
                continue
            offers.append([at + (dice.below(400) if seq > 1 and dice.below(100) < 35 else 0), epoch, seq])
    offers.sort()
    lane, steps, now = Order(given), [], -1
    for at, epoch, seq in offers:
        at = max(at, now + 1)
        while lane.deadline() is not None and lane.deadline() <= at:
            steps.append({"timeout": lane.deadline()})
            now = lane.deadline()
            lane.step(steps[-1])
            at = max(at, now + 1)
        steps.append({"at_ms": at, "wall_ms": NOW + at, "offer": {"epoch": epoch, "seq": seq}})
        lane.step(steps[-1])
        now = at
    while lane.deadline() is not None:
        steps.append({"timeout": lane.deadline()})
        lane.step(steps[-1])
    return {"config": given, "steps": steps}
