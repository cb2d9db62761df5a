"""resume.json: a station with one realm, and subscriptions that come back. All but the random traces were worked out by hand as well."""

from family import Family
from gen_flow import Dice, TOP
from model import judge

LINGER, SKEW, TTL = 120_000, 300_000, 600_000
BYTES = 450
LONG = 3_600_000


def resume():
    about = "Positions at a station with one realm: `out` is what a subscription was told, and what a reader read."
    f = Family("resume", about)

    def trace(name, items, steps, budget=1_000_000):
        """Steps are (at_ms, input, what comes out)."""
        given = [{"at_ms": at, **step} for at, step, _ in steps]
        inputs = {"config": {"items": items, "bytes": budget}, "steps": given}
        for step, (_, _, out) in zip(judge("resume", inputs)["steps"], steps):
            assert step["out"] == out, f"{name}: {step} is not {out}"
        f.accept(name, inputs)

    def publish(times, topic="a/b", at=0, **more):
        return [(at, {"publish": {"topic": topic, "bytes": BYTES, **more}}, [])] * times

    def told(run, offset, **more):
        return [{"position": {"run": run, "offset": offset}, "outcome": "none", **more}]

    def new(name, offset, filter_="a/b", at=0, run=0):
        return (at, {"subscribe": name, "filter": filter_}, told(run, offset))

    def asks(name, run, after, filter_="a/b", at=0):
        return (at, {"subscribe": name, "filter": filter_, "resume": {"run": run, "offset": after}})

    def resumed(name, after, live, count, run=0, **more):
        return (*asks(name, run, after, **more), told(run, live, outcome="resumed", count=count))

    def expired(name, after, live, oldest, run=0, asked=0, **more):
        return (*asks(name, asked, after, **more), told(run, live, outcome="expired", oldest=oldest))

    def leaves(name, at=0):
        return (at, {"unsubscribe": name}, [])

    def reads(name, *out, at=0):
        return (at, {"read": name}, list(out))

    def events(first, last):
        return [{"event": offset} for offset in range(first, last + 1)]

    def lost(count, first_at=0, last_at=0):
        return {"skipped": count, "first_at_ms": first_at, "last_at_ms": last_at}

    # The edges of one ring.
    for n in (1, 2, 3, 5, 8):
        begin = [new("r", 0), *publish(n + 4)]
        trace(f"a_lag_of_exactly_{n}", n, [*begin, resumed("s", 4, n + 4, n), reads("s", *events(5, n + 4)), reads("r", lost(4), *events(5, n + 4))])
        trace(f"a_lag_of_{n}_and_one_more", n, [*begin, expired("s", 3, n + 4, 5), reads("s"), *publish(1), reads("s", *events(n + 5, n + 5))])
    ten = [new("r", 0), *publish(10), reads("r", lost(7), *events(8, 10))]
    for after, count in ((10, 0), (9, 1), (7, 3)):
        out = [reads("s", *events(after + 1, 10)), *publish(1), reads("s", *events(11, 11))]
        trace(f"br_44_resume_after_{after}", 3, [*ten, resumed("s", after, 10, count), *out])
    for after in (6, 0, 11, 99, TOP):
        trace(f"br_44_resume_after_{after}", 3, [*ten, expired("s", after, 10, 8), reads("s"), *publish(1), reads("s", *events(11, 11))])
    trace("br_44_no_loop", 3, [*ten, expired("s", 2, 10, 8), leaves("s"), resumed("s", 10, 10, 0), leaves("s"), resumed("s", 7, 10, 3), reads("s", *events(8, 10))])

    # Runs.
    trace("a_position_of_another_run", 3, [new("r", 0), *publish(2), expired("s", 1, 2, 1, asked=7), expired("t", 2, 2, 1, asked=1)])
    restart = (1, {"restart": True}, [])
    trace("a_station_that_began_anew", 3, [new("r", 0), *publish(2), restart, expired("r", 2, 0, 1, at=2, run=1), *publish(3, at=2), reads("r", *events(1, 3), at=2)])
    trace(
        "a_realm_that_ended_begins_another_run",
        3,
        [new("r", 0), leaves("r"), resumed("r", 0, 0, 0, at=LINGER - 1), leaves("r", at=LINGER - 1), expired("r", 0, 0, 1, at=2 * LINGER - 1, run=1)],
    )

    # Recordings.
    trace("a_position_from_before_the_recording", 8, [new("r", 0), *publish(2), new("w", 2, "a/*"), *publish(1), expired("s", 1, 3, 3, filter_="a/*"), resumed("t", 2, 3, 1, filter_="a/*"), reads("t", *events(3, 3)), resumed("u", 0, 3, 3)])
    trace("recorded_while_nobody_holds_it", 8, [new("r", 0, "a/*"), leaves("r"), *publish(2, at=5), *publish(1, "a/new", LINGER - 1), resumed("r", 0, 3, 3, filter_="a/*", at=LINGER - 1), reads("r", *events(1, 3), at=LINGER - 1)])
    trace("not_recorded_any_more", 8, [new("r", 0, "a/*"), new("k", 0, "x"), leaves("r"), *publish(1, at=LINGER), expired("r", 0, 1, 2, filter_="a/*", at=LINGER)])
    trace("nothing_was_admitted_since_and_the_recording_ended", 8, [new("r", 0), new("k", 0, "x"), *publish(3), leaves("r"), expired("r", 3, 4, 5, at=LINGER), leaves("r", at=LINGER), resumed("r", 4, 4, 0, at=LINGER + 1)])
    trace("the_two_minutes_begin_anew", 8, [new("r", 0), new("k", 0, "x"), leaves("r"), resumed("r", 0, 0, 0, at=LINGER - 1), leaves("r", at=LINGER), *publish(1, at=LINGER + 1), resumed("r", 0, 1, 1, at=2 * LINGER - 1)])
    trace("the_last_of_two_holders_counts", 8, [new("r", 0), new("s", 0), leaves("r"), leaves("s", at=LINGER), *publish(1, at=LINGER), resumed("r", 0, 1, 1, at=2 * LINGER - 1)])

    # Several topics.
    mixed = [new("r", 0, "a/**"), *publish(1, "a/c"), *publish(1, "a/b"), *publish(1, "a/d/e"), *publish(1, "a/b"), leaves("r")]
    trace("several_topics_oldest_first", 8, [*mixed, resumed("r", 1, 4, 3, filter_="a/**"), *publish(1, "a/x"), *publish(1, "a/b"), reads("r", *events(2, 6))])
    trace("one_ring_that_gave_up_is_enough", 2, [*mixed, *publish(1), expired("r", 1, 5, 3, filter_="a/**"), leaves("r"), resumed("r", 2, 5, 3, filter_="a/**"), reads("r", *events(3, 5))])
    trace("what_another_filter_lost_is_not_missed", 2, [new("q", 0, "a/quiet"), new("r", 0), *publish(20), leaves("q"), resumed("q", 0, 20, 0, filter_="a/quiet")])
    trace("br_46_a_quiet_topic", 2, [new("q", 0, "a/quiet"), new("r", 0), *publish(1, "a/quiet"), *publish(20), leaves("q"), resumed("q", 1, 21, 0, filter_="a/quiet"), resumed("p", 0, 21, 1, filter_="a/quiet")])
    trace("two_readers_of_one_topic", 3, [new("r", 0), new("s", 0, "a/*"), *publish(5), reads("r", lost(2), *events(3, 5)), reads("s", lost(2), *events(3, 5))])

    # Life.
    end = 1000 + SKEW
    for at, out in ((end, [resumed("s", 0, 3, 3, at=end), reads("s", *events(1, 3), at=end)]), (end + 1, [expired("s", 0, 3, 2, at=end + 1), resumed("t", 1, 3, 2, at=end + 1)])):
        trace(f"the_oldest_lives_until_{end}_at_{at}", 8, [new("r", 0), *publish(1, ttl_ms=1000), *publish(2, ttl_ms=LONG), *out])
        middle = [new("r", 0), *publish(1, ttl_ms=LONG), *publish(1, ttl_ms=1000), *publish(1, ttl_ms=LONG)]
        if at > end:
            out = [expired("s", 1, 3, 3, at=at), resumed("t", 2, 3, 1, at=at)]
        trace(f"one_in_the_middle_lives_until_{end}_at_{at}", 8, [*middle, *out])
    trace("the_default_life", 8, [new("r", 0), *publish(1), resumed("s", 0, 1, 1, at=TTL + SKEW), expired("t", 0, 1, 2, at=TTL + SKEW + 1), resumed("u", 1, 1, 0, at=TTL + SKEW + 1)])
    trace("a_level_reader_misses_nothing_when_the_ring_empties", 8, [new("r", 0), *publish(3), reads("r", *events(1, 3)), reads("r", at=TTL + SKEW + 1), leaves("r", at=TTL + SKEW + 1), resumed("r", 3, 3, 0, at=TTL + SKEW + 2)])
    trace("a_slow_reader_is_told_what_expired", 8, [new("r", 0), *publish(2, ttl_ms=0), *publish(1, at=7, ttl_ms=LONG), reads("r", lost(2), *events(3, 3), at=SKEW + 1)])

    # Bytes.
    large = [new("r", 0, "a/**"), *publish(1, "a/small"), *publish(6, "a/large")]
    trace("the_largest_ring_gives_up_its_oldest", 99, [*large, expired("s", 2, 7, 4, filter_="a/**"), resumed("t", 3, 7, 4, filter_="a/**"), reads("t", *events(4, 7))], budget=5 * BYTES)
    trace("and_no_other", 99, [*large, new("k", 7, "a/small"), reads("r", *events(1, 1), lost(2), *events(4, 7))], budget=5 * BYTES)
    trace("bytes_exactly", 99, [new("r", 0), *publish(5), resumed("s", 0, 5, 5)], budget=5 * BYTES)
    trace("one_byte_less", 99, [new("r", 0), *publish(5), expired("s", 0, 5, 2), resumed("t", 1, 5, 4)], budget=5 * BYTES - 1)

    # From a replay into what is live.
    trace("more_comes_while_it_replays", 5, [new("r", 0), *publish(5), leaves("r"), resumed("r", 1, 5, 4), *publish(1), reads("r", *events(2, 6))])
    trace("overtaken_while_it_replays", 5, [new("r", 0), *publish(5), leaves("r"), resumed("r", 0, 5, 5), *publish(3, at=9), reads("r", lost(3), *events(4, 8), at=9)])
    trace("an_expired_one_reads_only_what_is_live", 5, [new("r", 0), *publish(9), leaves("r"), expired("r", 2, 9, 5), *publish(1), reads("r", *events(10, 10))])
    for number in range(8):
        f.accept(f"random_{number}", random_resume(number))
    return f


def random_resume(number):
    dice = Dice(500 + number)
    topics, filters = ("a/b", "a/c/d", "x"), ("a/b", "a/*", "a/**", "x")
    at, held, steps = 0, set(), []
    for _ in range(70):
        what = dice.below(12)
        wait = (0, 1, 1000, 40_000, 70_000, 119_999)[dice.below(6)] if dice.below(3) == 0 else 0
        at = min(at + wait, 1_700_000)
        if what < 6:
            ttl = {"ttl_ms": 1000} if dice.below(4) == 0 else {}
            steps.append({"at_ms": at, "publish": {"topic": topics[dice.below(3)], "bytes": BYTES, **ttl}})
            continue
        name = "rst"[dice.below(3)]
        if name not in held:
            held.add(name)
            more = {"resume": {"run": dice.below(2), "offset": dice.below(20)}} if dice.below(4) else {}
            steps.append({"at_ms": at, "subscribe": name, "filter": filters[dice.below(4)], **more})
        elif what < 10:
            steps.append({"at_ms": at, "read": name})
        else:
            held.remove(name)
            steps.append({"at_ms": at, "unsubscribe": name})
    steps += [{"at_ms": at, "read": name} for name in sorted(held)]
    return {"config": {"items": 2 + dice.below(4), "bytes": 1_000_000}, "steps": steps}
