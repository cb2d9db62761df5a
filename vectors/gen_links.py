"""Liveness and redial of one link, as traces."""

from family import Family
from gen_flow import Dice
from model import judge


def liveness():
    f = Family("liveness", "The probes of one end of a link that came up at 0; `out` and the next deadline after each step.")

    def trace(name, *steps, every=30_000):
        """Steps are (at, input, what comes out)."""
        inputs = {"config": {"probe_every_ms": every}, "steps": [{"at_ms": at, **given} for at, given, _ in steps]}
        for step, (*_, out) in zip(judge("liveness", inputs)["steps"], steps):
            assert step["out"] == out, f"{name}: {step} is not {out}"
        f.accept(name, inputs)

    tick, written = {"timeout": True}, {"write": "all"}

    def asked(at):
        return [(at, tick, ["probe"]), (at, written, [])]

    trace("nothing_for_one_interval", (29_999, tick, []), *asked(30_000))
    trace("answered_each_time", *(one for n in range(1, 5) for one in [*asked(n * 30_000), (n * 30_000 + 20, {"pong": n}, ["answered"])]))
    trace("two_in_a_row", *asked(30_000), *asked(60_000), (89_999, tick, []), (90_000, tick, ["liveness_lost"]), (99_000, tick, []))
    trace(
        "one_and_then_an_answer",
        *asked(30_000),
        *asked(60_000),
        (60_001, {"pong": 2}, ["answered"]),
        *asked(90_000),
        *asked(120_000),
        (149_999, tick, []),
        (150_000, tick, ["liveness_lost"]),
    )
    trace(
        "only_the_outstanding_one",
        *asked(30_000),
        (30_001, {"pong": 2}, ["stray"]),
        (30_002, {"pong": 0}, ["stray"]),
        (30_003, {"pong": "foreign"}, ["stray"]),
        *asked(60_000),
        (60_001, {"pong": 1}, ["stray"]),
        (90_000, tick, ["liveness_lost"]),
    )
    trace("an_answer_counts_once", *asked(30_000), (30_001, {"pong": 1}, ["answered"]), (30_002, {"pong": 1}, ["stray"]), (60_000, tick, ["probe"]))
    trace(
        "the_clock_starts_with_the_last_byte",
        (10, {"queue": 1000}, []),
        (20, {"write": 400}, []),
        (30_000, tick, ["probe"]),
        (40_000, {"write": 652}, []),
        (75_000, tick, []),
        (75_001, {"write": 1}, []),
        (105_000, tick, []),
        (105_001, tick, ["probe"]),
    )
    trace("what_is_queued_behind_a_probe_does_not_matter", (30_000, tick, ["probe"]), (30_000, {"queue": 500}, []), (31_000, {"write": 53}, []), (61_000, tick, ["probe"]))
    trace(
        "it_stands_still_while_nothing_is_read",
        *asked(30_000),
        (40_000, {"reads": False}, []),
        (400_000, tick, []),
        (400_000, {"reads": True}, []),
        (419_999, tick, []),
        *asked(420_000),
        (420_001, {"pong": 2}, ["answered"]),
    )
    trace("written_while_nothing_is_read", (30_000, tick, ["probe"]), (30_001, {"reads": False}, []), (30_002, written, []), (99_000, {"reads": True}, []), (129_000, tick, ["probe"]))
    trace("slept_and_answered", (1000, {"slept": True}, ["probe"]), (1000, written, []), (1040, {"pong": 1}, ["answered"]), (31_039, tick, []), *asked(31_040))
    trace("slept_and_not_answered", (1000, {"slept": True}, ["probe"]), (1000, written, []), (5999, tick, []), (6000, tick, ["liveness_lost"]))
    trace("slept_with_a_probe_out", *asked(30_000), (30_010, {"slept": True}, ["probe"]), (30_010, written, []), (30_020, {"pong": 1}, ["stray"]), (30_030, {"pong": 2}, ["answered"]))
    trace("slept_with_a_probe_unwritten", (30_000, tick, ["probe"]), (30_010, {"slept": True}, []), (30_020, written, []), (35_019, tick, []), (35_020, tick, ["liveness_lost"]))
    trace("an_answer_before_the_write_is_told", (30_000, tick, ["probe"]), (30_001, {"pong": 1}, ["answered"]), (30_002, {"pong": 1}, ["stray"]), (30_003, written, []), (60_003, tick, ["probe"]))
    trace("nothing_is_taken", (500, {"queue": 9000}, []), (600, {"reads": True}, []), (30_000, tick, ["probe"]), (90_599, tick, []), (90_600, tick, ["write_stalled"]))
    trace(
        "something_is_taken",
        (500, {"queue": 9000}, []),
        (600, {"reads": False}, []),
        (90_000, {"write": 1}, []),
        (150_000, {"write": 0}, []),
        (179_999, tick, []),
        (180_000, tick, ["write_stalled"]),
    )
    trace("another_interval", (1999, tick, []), (2000, tick, ["probe"]), (2000, written, []), (4000, tick, ["probe"]), (4000, written, []), (6000, tick, ["liveness_lost"]), every=2000)
    trace("nothing_is_taken_of_another_interval", (2000, tick, ["probe"]), (7999, tick, []), (8000, tick, ["write_stalled"]), every=2000)
    for number in range(8):
        f.accept(f"random_{number}", random_liveness(number))
    return f


def random_liveness(number):
    """Time moves in small steps while something waits, so that links end in every way."""
    dice = Dice(300 + number)
    at, steps = 0, []
    for _ in range(80):
        what = dice.below(9)
        if what < 4:
            at += dice.below(16_000) if dice.below(5) else dice.below(40_000)
            steps.append({"at_ms": at, "timeout": True})
        elif what < 6:
            steps.append({"at_ms": at, "write": dice.below(60) if dice.below(4) == 0 else "all"})
        elif what < 7:
            steps.append({"at_ms": at, "queue": dice.below(200)})
        elif dice.below(24) == 0:
            steps.append({"at_ms": at, "slept": True})
        elif dice.below(3) == 0:
            steps.append({"at_ms": at, "reads": dice.below(3) > 0})
        else:
            steps.append({"at_ms": at, "pong": 1 + dice.below(5)})
    return {"config": {"probe_every_ms": 30_000}, "steps": steps}


def backoff():
    f = Family("backoff", "The waits before one station is dialled again, in ms, from the node's seed and the station's place in its list.")

    def trace(name, seed, station, *steps):
        given = [{"lived_ms": lived, "away": away} for lived, away in steps]
        f.accept(name, {"config": {"seed": seed, "station": station}, "steps": given})

    down, away = (0, False), (0, True)
    for number, seed in enumerate(("00" * 32, "03" * 32, "ff" * 32)):
        for station in (0, 1):
            trace(f"a_station_that_is_not_there_{number}_{station}", seed, station, *[down] * 24)
    trace("a_station_that_asks_for_others", "05" * 32, 0, *[away] * 12)
    trace("a_life_as_long_as_the_wait_is_a_new_beginning", "06" * 32, 0, *[down] * 8, (30_000, False), down, down, (60_000, False), (60_000, False))
    trace("a_life_shorter_than_the_wait_is_not", "07" * 32, 0, *[down] * 6, *[(249, False)] * 12)
    trace("others_first_and_then_as_usual", "08" * 32, 1, (90_000, True), down, down, (400_000, True), (400_000, False))
    # The life that is just long enough, whatever the wait was.
    lives = [down] * 5
    for _ in range(6):
        given = {"config": {"seed": "09" * 32, "station": 0}, "steps": [{"lived_ms": lived, "away": far} for lived, far in lives]}
        last = judge("backoff", given)["steps"][-1]["out"]
        lives += [(last - 1, False), down, down] if len(lives) % 2 else [(last, False), down]
    trace("exactly_as_long_as_the_wait", "09" * 32, 0, *lives)
    return f
