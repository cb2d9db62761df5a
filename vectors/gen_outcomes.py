"""outcomes.json: links, answers, time, and what becomes of each publication. All but the random ones were worked out by hand as well."""

from family import Family
from gen_flow import Dice
from model import TRACES, judge

ROUTED, NOBODY, FULL, DRAINING = ("routed", [2]), ("no_subscriber", []), ("refused", ["dedup_full"]), ("refused", ["draining"])


def family():
    f = Family("outcomes", "What a node writes to which link and what it settles, at each step; times are of one clock.")

    def trace(name, *steps, replication=2, window=2, tickets=8):
        """Steps are (input, what comes out), or (at, input, what comes out)."""
        at, given = 0, []
        for *when, what, _ in steps:
            at = when[0] if when else at
            given.append({"at_ms": at, **what})
        inputs = {"config": {"replication": replication, "window": window, "tickets": tickets}, "steps": given}
        for step, (*_, out) in zip(judge("outcomes", inputs)["steps"], steps):
            assert step["out"] == out, f"{name}: {step} is not {out}"
        f.accept(name, inputs)

    def up(*stations):
        return [({"up": station}, []) for station in stations]

    def answer(station, ticket, outcome):
        return {"answer": [station, ticket], "outcome": outcome[0], "with": outcome[1]}

    def took(ticket, *places, seq=None):
        return [{"ticket": ticket}, *wrote(ticket, *places, seq=seq)]

    def wrote(ticket, *places, seq=None):
        return [{"write": [station, ticket, seq or ticket]} for station in places]

    def settled(ticket, *outcome):
        return [{"settle": [ticket, *outcome]}]

    publish, one = {"publish": "all"}, {"publish": "one"}
    blocked, nowhere, time = [{"refused": "would_block"}], [{"refused": "no_station"}], {"time": True}
    first = [*up(0, 1), (publish, took(1, 0, 1))]

    trace("settled_when_both_answered", *first, (answer(0, 1, NOBODY), []), (answer(1, 1, ROUTED), settled(1, "routed", 2)), (9000, time, []))
    best = [FULL, NOBODY, ("routed", [1]), ROUTED]
    for low in range(4):
        for high in range(low, 4):
            for told in ((low, high), (high, low)) if low != high else ((low, low),):
                wanted = settled(1, best[high][0], *best[high][1])
                trace(f"of_answers_{told[0]}_{told[1]}", *first, (answer(0, 1, best[told[0]]), []), (answer(1, 1, best[told[1]]), wanted))
    trace("of_two_refusals_the_first", *first, (answer(1, 1, DRAINING), []), (answer(0, 1, FULL), settled(1, "refused", "draining")))
    trace("nobody_answers", *first, (4999, time, []), (5000, time, settled(1, "unknown")), (5001, answer(0, 1, ROUTED), []))
    for name, outcome in (("routed", ROUTED), ("nobody", NOBODY), ("full", FULL)):
        trace(f"one_answers_{name}", *first, (answer(1, 1, outcome), []), (4999, time, []), (5000, time, settled(1, outcome[0], *outcome[1])))
    trace("no_link_no_number", (publish, nowhere), (one, nowhere), *first)
    trace("as_many_as_are_up", *up(0), (publish, took(1, 0)), *up(1), (publish, took(2, 0, 1)), replication=3)
    trace("the_fewest_unanswered", *up(0, 1, 2), (publish, took(1, 0, 1)), (publish, took(2, 0, 2)), (answer(0, 1, ROUTED), []), (publish, took(3, 0, 1)))
    trace(
        "a_full_window_is_counted_only_where_it_is",
        *up(0),
        (publish, took(1, 0)),
        (publish, took(2, 0)),
        (publish, blocked),
        (one, blocked),
        *up(1),
        (publish, blocked),
        (one, took(3, 1, seq=1)),
        *up(2),
        (publish, took(4, 1, 2, seq=3)),
        ({"down": 0}, wrote(1, 2)),
        (publish, blocked),
        (answer(2, 4, NOBODY), wrote(2, 2)),
        (publish, blocked),
        (answer(1, 3, ROUTED), settled(3, "routed", 2)),
        (publish, blocked),
        (one, took(5, 1, seq=2)),
    )
    trace("as_many_tickets_as_there_are", *up(0), (publish, took(1, 0)), (publish, took(2, 0)), (publish, blocked), (answer(0, 1, FULL), settled(1, "refused", "dedup_full")), (publish, took(3, 0)), window=9, tickets=2)
    trace("a_stations_refusal_burns_a_number", *up(0), (publish, took(1, 0)), (answer(0, 1, FULL), settled(1, "refused", "dedup_full")), (publish, took(2, 0)))
    trace("a_late_answer_frees_the_window", *up(0), (publish, took(1, 0)), (5000, publish, [*blocked, *settled(1, "unknown")]), (answer(0, 1, ROUTED), []), (publish, took(2, 0)), window=1)
    trace(
        "another_link_while_time_lasts",
        *first,
        (1000, {"up": 2}, []),
        (2000, {"down": 0}, wrote(1, 2)),
        (3000, {"down": 1}, []),
        (4999, {"up": 3}, wrote(1, 3)),
        (answer(2, 1, NOBODY), []),
        (answer(3, 1, ("routed", [1])), settled(1, "routed", 1)),
    )
    trace("no_link_after_its_time", *up(0), (publish, took(1, 0)), ({"down": 0}, []), (5000, {"up": 1}, settled(1, "unknown")))
    trace("taken_by_one_the_lost_one_is_not_waited_for", *first, ({"down": 0}, []), (answer(1, 1, NOBODY), settled(1, "no_subscriber")), ({"up": 2}, []))
    trace("answered_by_one_and_then_the_other_ends", *first, (answer(1, 1, ROUTED), []), ({"down": 0}, settled(1, "routed", 2)))
    trace("refused_by_one_another_is_waited_for", *first, ({"down": 0}, []), (answer(1, 1, FULL), []), ({"up": 2}, wrote(1, 2)), (answer(2, 1, ROUTED), settled(1, "routed", 2)))
    trace("refused_by_one_and_no_other_comes", *first, ({"down": 0}, []), (answer(1, 1, FULL), []), (5000, time, settled(1, "refused", "dedup_full")))
    trace(
        "an_answer_makes_room_for_what_lost_its_link",
        *up(0, 1),
        (publish, took(1, 0)),
        (publish, took(2, 1)),
        ({"down": 0}, []),
        (answer(1, 2, ROUTED), [*wrote(1, 1), *settled(2, "routed", 2)]),
        replication=1,
        window=1,
    )
    trace("one_is_not_tried_again", *up(0, 1), (one, took(1, 0)), ({"down": 0}, settled(1, "unknown")), (one, took(2, 1)), (answer(1, 2, ROUTED), settled(2, "routed", 2)))
    trace("one_has_numbers_of_its_own", *up(0), (publish, took(1, 0)), (one, took(2, 0, seq=1)), (publish, took(3, 0, seq=2)), window=3)
    stalled = [*up(0), ({"stall": 0}, [])]
    cancelled = settled(1, "cancelled")
    trace("cancelled", *first, ({"cancel": 1}, cancelled), (answer(0, 1, ROUTED), []), ({"cancel": 1}, [{"refused": "dead_handle"}]), ({"down": 1}, []))
    trace("cancelled_before_it_was_written", *stalled, (publish, [{"ticket": 1}]), (publish, blocked), ({"cancel": 1}, cancelled), (publish, [{"ticket": 2}]), ({"flow": 0}, wrote(2, 0)), window=1)
    trace("over_before_it_was_written", *stalled, (publish, [{"ticket": 1}]), (5000, publish, [{"ticket": 2}, *settled(1, "unknown")]), ({"flow": 0}, wrote(2, 0)), window=1)
    trace("lost_before_it_was_written", *stalled, (publish, [{"ticket": 1}]), ({"down": 0}, []), ({"up": 1}, wrote(1, 1)))
    for number in range(24):
        f.accept(f"random_{number}", random(number))
    return f


def random(number):
    """Steps that make sense when they are drawn; the model that is asked what does is the one that judges them."""
    dice = Dice(700 + number)
    config = {"replication": 1 + dice.below(3), "window": 1 + dice.below(3), "tickets": 3 + dice.below(5)}
    model, at, fresh, steps = TRACES["outcomes"](config), 0, 0, []
    outcomes = (ROUTED, NOBODY, FULL, DRAINING, ("routed", [1]))
    while len(steps) < 40:
        at += (0, 0, 1, 7, 400, 1500)[dice.below(6)]
        links = sorted(model.links)
        written = [(station, ticket) for station in links for ticket in model.links[station]["open"] if ticket not in model.links[station]["waiting"]]
        what = dice.below(20)
        station = links[dice.below(len(links))] if links else None
        if what < 8:
            step = {"publish": "one" if dice.below(5) == 0 else "all"}
        elif what < 14 and written:
            to = written[dice.below(len(written))]
            outcome = outcomes[dice.below(len(outcomes))]
            step = {"answer": list(to), "outcome": outcome[0], "with": outcome[1]}
        elif what < 16 and fresh < 12:
            step = {"up": fresh}
            fresh += 1
        elif what == 16 and station is not None:
            step = {"down": station}
        elif what == 17 and station is not None:
            step = {"flow" if model.links[station]["stalled"] else "stall": station}
        elif what == 18 and model.seq:
            step = {"cancel": 1 + dice.below(len(model.seq))}
        else:
            step = {"time": True}
        steps.append({"at_ms": at, **step})
        model.step(steps[-1])
    return {"config": config, "steps": steps}
