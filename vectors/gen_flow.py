"""dedup.json, guess.json and ring.json: traces of steps with times. All but the random ones were worked out by hand as well."""

from cast import NOW, publication
from family import Family
from model import judge
from model_wire import verify_publication

TTL, SKEW, TOP = 600_000, 300_000, 2**53 - 1
# An ended entry may take its place so much longer.
GRACE = 16_000


# Dedup.


def dedup():
    f = Family("dedup", "The memory of publications seen, on both clocks; `out` is what became of each offer.")

    def trace(name, capacity, *steps):
        """Steps are (at_ms, wall_ms, offer or hash to forget, outcome)."""
        given = []
        for at, wall, what, _ in steps:
            given.append({"at_ms": at, "wall_ms": wall, **({"forget": what} if isinstance(what, str) else {"offer": what})})
        inputs = {"config": {"capacity": capacity}, "steps": given}
        got = [step["out"] for step in judge("dedup", inputs)["steps"]]
        assert got == [wanted for *_, wanted in steps], f"{name}: {got}"
        f.accept(name, inputs)

    def fact(name, expires_at, publisher="p", **more):
        return {"hash": name, "publisher": publisher, "expires_at": expires_at, **more}

    end = NOW + TTL + SKEW
    one = fact("a", end)
    trace("first_and_copy", 4, (0, NOW, one, "new"), (1, NOW + 1, one, "duplicate"), (2, NOW + 2, fact("b", end), "new"))
    trace(
        "br_37_same_bytes_for_hours",
        4,
        (0, NOW, one, "new"),
        *((s * 1000, NOW + s * 1000, one, out) for s, out in ((60, "duplicate"), (599, "duplicate"), (899, "duplicate"))),
        (900_000, end, one, "duplicate"),
        (900_001, end + 1, one, "expired"),
        (901_000, NOW + 901_000, one, "expired"),
        (21_600_000, NOW + 21_600_000, one, "expired"),
    )
    forged = [(n, NOW, fact(f"f{n}", end, verifies=False), "unverified") for n in range(20)]
    trace(
        "br_39_forged_copy_poisons_nothing",
        4,
        (0, NOW, fact("a", end, verifies=False), "unverified"),
        (0, NOW, one, "new"),
        *forged,
        (30, NOW, one, "duplicate"),
    )
    trace("forged_copy_of_what_is_known_is_a_duplicate", 4, (0, NOW, one, "new"), (1, NOW, fact("a", end, verifies=False), "duplicate"))
    hashes = [verify_publication(publication(payload="ok", seq=seq), NOW)[1].hex() for seq in (1, 2)]
    trace(
        "br_40_same_text_twice",
        4,
        *((n, NOW, fact(digest, end), "new") for n, digest in enumerate(hashes)),
        (5, NOW, fact(hashes[0], end), "duplicate"),
    )
    trace("expired_on_arrival", 4, (0, NOW, fact("a", NOW - 1), "expired"), (1, NOW, fact("a", NOW), "new"), (2, NOW, fact("a", NOW), "duplicate"))
    hour = 3_600_000
    # Three others fill the rest of four places, so that a fourth publisher finds room exactly when `a` is over.
    fill = [(0, NOW, fact(f"f{n}", NOW + 9 * hour, f"f{n}"), "new") for n in range(3)]
    other = fact("b", NOW + 9 * hour, "s")
    trace(
        "wall_steps_forward_and_back",
        4,
        (0, NOW, one, "new"),
        *fill,
        (1000, NOW + hour, one, "expired"),
        (1000, NOW + hour, other, "full"),
        (2000, NOW + 2000, one, "duplicate"),
        (899_000, NOW + 899_000, one, "duplicate"),
        (899_500, NOW + 899_500, other, "full"),
        (GRACE + 900_001, end + GRACE + 1, other, "new"),
    )
    trace(
        "wall_steps_back",
        4,
        (0, NOW, one, "new"),
        *fill,
        (950_000, NOW + 1000, one, "duplicate"),
        (1_849_000, NOW + 900_000, one, "duplicate"),
        (1_849_001, NOW + 900_000, other, "full"),
        (1_849_002, NOW + 900_001, one, "expired"),
        (GRACE + 1_849_002, NOW + GRACE + 900_001, other, "new"),
    )
    trace(
        "mono_stood_still_while_suspended",
        4,
        (0, NOW, one, "new"),
        *fill,
        (10, NOW + 2 * hour, one, "expired"),
        (20, NOW + 2 * hour, other, "full"),
        (30, NOW + 30, one, "duplicate"),
        (899_999, NOW + 3 * hour, other, "full"),
        (GRACE + 900_010, NOW + 3 * hour, other, "new"),
    )
    trace(
        "full",
        4,
        *((n, NOW, fact(f"h{n}", end, f"p{n}"), "new") for n in range(4)),
        (5, NOW, fact("h5", end, "p5"), "full"),
        (6, NOW, fact("h0", end, "p0"), "duplicate"),
        (900_001, end + 1, fact("h0", end, "p0"), "expired"),
        (GRACE + 900_001, end + GRACE + 1, fact("h5", end + 2 * GRACE, "p5"), "new"),
    )
    trace(
        "over_half_full_nobody_holds_more_than_a_quarter",
        12,
        *((n, NOW, fact(f"p{n}", end, "p"), "new") for n in range(6)),
        (6, NOW, fact("q0", end, "q"), "new"),
        (7, NOW, fact("p6", end, "p"), "full"),
        (8, NOW, fact("q1", end, "q"), "new"),
        (9, NOW, fact("q2", end, "q"), "new"),
        (10, NOW, fact("q3", end, "q"), "full"),
        (11, NOW, fact("r0", end, "r"), "new"),
        (12, NOW, fact("p0", end, "p"), "duplicate"),
    )
    # On as many topics, each numbering under a tag of its own.
    many = [(n, NOW, fact(f"p{n}", end, "p", tag=n), "new" if n < 7 else "full") for n in range(12)]
    trace(
        "one_publisher_under_many_tags_is_held_to_its_quarter",
        12,
        *many,
        *((n, NOW, fact(f"q{n}", end, "q", tag=n), "new" if n < 15 else "full") for n in range(12, 17)),
        (17, NOW, fact("p", end, "p", tag=99), "full"),
        (18, NOW, fact("r0", end, "r", tag=0), "new"),
        (19, NOW, fact("r1", end, "r", tag=0), "new"),
        (20, NOW, fact("s0", end, "s", tag=14), "full"),
        (21, NOW, fact("p6", end, "p", tag=6), "duplicate"),
    )
    for capacity, quarter in ((1, 1), (2, 1), (3, 1), (5, 2), (8, 2)):
        half = capacity // 2 + 1
        most = [(n, NOW, fact(f"p{n}", end, "p"), "new") for n in range(half)]
        rest = [(n, NOW, fact(f"q{n}", end, "q"), "new" if n - half < quarter else "full") for n in range(half, capacity)]
        trace(
            f"no_quarter_is_less_than_one_of_{capacity}",
            capacity,
            *most,
            (half, NOW, fact("p", end, "p"), "full"),
            *rest,
        )
    trace(
        "forgotten_gets_another_chance",
        4,
        (0, NOW, one, "new"),
        (1, NOW, one, "duplicate"),
        (2, NOW, "a", "forgotten"),
        (3, NOW, "a", "absent"),
        (4, NOW, one, "new"),
        (5, NOW, one, "duplicate"),
    )
    return f


class Dice:
    """A small generator of its own, so that the traces never change with a library."""

    def __init__(self, seed):
        self.state = seed * 2 + 1

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


# Guess.


def guess():
    f = Family("guess", "Publications without an epoch; `out` counts the numberings heard from one publisher, from 0.")

    def trace(name, *steps):
        """Steps are (at, seq, numbering)."""
        inputs = {"config": {"timeout_ms": 250}, "steps": [{"at_ms": at, "offer": {"seq": seq}} for at, seq, _ in steps]}
        got = [step["out"] for step in judge("guess", inputs)["steps"]]
        assert got == [wanted for *_, wanted in steps], f"{name}: {got}"
        f.accept(name, inputs)

    trace("one_after_the_other", *((n * 1000, n + 1, 0) for n in range(5)))
    trace("seeded_from_a_clock", *((n * 1000, NOW * 1000 + n, 0) for n in range(5)))
    trace("forward_by_exactly_10000", (0, 1, 0), (1000, 2, 0), (2000, 10_003, 0))
    trace("forward_by_10001", (0, 1, 0), (1000, 2, 0), (2000, 10_004, 1))
    trace("back_by_exactly_10000", (0, 20_000, 0), (1000, 20_001, 0), (2000, 10_002, 0))
    trace("back_by_10001", (0, 20_000, 0), (1000, 20_001, 0), (2000, 10_001, 1), (3000, 10_002, 1))
    trace("restart_at_1", (0, 5_000_000, 0), (1000, 5_000_001, 0), (2000, 1, 1), (3000, 2, 1))
    trace("restarts_again", (0, 5_000_000, 0), (1000, 1, 1), (2000, 9_000_000, 2), (3000, 9_000_001, 2))
    trace("no_restart_among_the_first_facts", (0, 5, 0), (249, 50_000, 0))
    trace("a_restart_right_after_them", (0, 5, 0), (250, 50_000, 1))
    trace("the_highest_number", (0, 1, 0), (1000, TOP, 1), (2000, TOP - 9_999, 1), (3000, 5_000_000, 2))
    trace("no_hold_after_number_1", (0, 1, 0), (10, 50_000, 1), (20, 2, 0))
    trace("two_counters_never_flip", (0, 5, 0), (1000, 1_000_000, 1), (2000, 6, 0), (3000, 1_000_001, 1), (4000, 7, 0))
    trace("near_both_belongs_to_the_later", (0, 20_000, 0), (1000, 5_000, 1), (2000, 12_000, 1))
    trace("the_one_heard_longest_ago_goes", (0, 1, 0), (1000, 5_000_000, 1), (2000, 2, 0), (3000, 9_000_000, 2), (4000, 3, 0), (5000, 5_000_001, 3))
    return f


# Ring.


def ring():
    f = Family("ring", "One ring with absolute positions from 1 and its readers; `out`, the oldest and the newest after each step.")

    def trace(name, items, steps, bytes_=1_000_000):
        """Steps are (input, what comes out)."""
        inputs = {"config": {"items": items, "bytes": bytes_}, "steps": [step for step, _ in steps]}
        for step, (_, out) in zip(judge("ring", inputs)["steps"], steps):
            assert step["out"] == out, f"{name}: {step} is not {out}"
        f.accept(name, inputs)

    def push(first, last, size=10):
        return [({"push": size}, [{"pushed": n}]) for n in range(first, last + 1)]

    def items(first, last):
        return [{"item": n} for n in range(first, last + 1)]

    join = ({"reader": "r"}, [])
    close = ({"close": True}, [])
    for n in (1, 2, 3, 5, 8):
        trace(f"br_15_exactly_{n}", n, [join, *push(1, n), close, ({"read": "r"}, items(1, n) + [{"end": True}])])
        out = [{"lag": 1}] + items(2, n + 1) + [{"end": True}]
        trace(f"br_15_{n}_and_one_more", n, [join, *push(1, n + 1), close, ({"read": "r"}, out)])
        out = [{"lag": 7}] + items(8, n + 7)
        trace(f"br_15_{n}_and_seven_more", n, [join, *push(1, n + 7), ({"read": "r"}, out), ({"read": "r"}, [])])
    ten = push(1, 10)
    for after, out, then in (
        (10, {"resumed": 0}, []),
        (9, {"resumed": 1}, items(10, 10)),
        (8, {"resumed": 2}, items(9, 10)),
        (7, {"resumed": 3}, items(8, 10)),
        (6, {"expired": 8}, None),
        (0, {"expired": 8}, None),
        (11, {"expired": 8}, None),
        (99, {"expired": 8}, None),
        (TOP, {"expired": 8}, None),
    ):
        steps = [*ten, ({"resume": "r", "after": after}, [out])]
        if then is not None:
            steps += [({"read": "r"}, then), *push(11, 11), ({"read": "r"}, items(11, 11))]
        trace(f"br_44_resume_after_{after}", 3, steps)
    trace(
        "br_44_no_loop",
        3,
        [*ten, ({"resume": "r", "after": 2}, [{"expired": 8}]), ({"resume": "r", "after": 7}, [{"resumed": 3}]), ({"read": "r"}, items(8, 10))],
    )
    trace("resume_of_an_empty_ring", 3, [({"resume": "r", "after": 0}, [{"resumed": 0}]), *push(1, 1), ({"read": "r"}, items(1, 1))])
    trace("resume_of_an_empty_ring_from_the_future", 3, [({"resume": "r", "after": 1}, [{"expired": 1}])])
    trace("a_reader_that_joins_sees_what_comes", 3, [*push(1, 2), join, ({"read": "r"}, []), *push(3, 3), ({"read": "r"}, items(3, 3))])
    trace(
        "readers_do_not_slow_each_other",
        2,
        [
            ({"reader": "slow"}, []),
            ({"reader": "fast"}, []),
            *push(1, 1),
            ({"read": "fast"}, items(1, 1)),
            *push(2, 2),
            ({"read": "fast"}, items(2, 2)),
            *push(3, 3),
            ({"read": "fast"}, items(3, 3)),
            ({"read": "slow"}, [{"lag": 1}, *items(2, 3)]),
        ],
    )
    trace(
        "lag_is_counted_when_it_is_read",
        3,
        [join, *push(1, 4), ({"read": "r", "most": 1}, [{"lag": 1}, {"item": 2}]), *push(5, 9), ({"read": "r"}, [{"lag": 4}, *items(7, 9)])],
    )
    trace("a_lag_alone", 2, [join, *push(1, 3), ({"read": "r", "most": 0}, [{"lag": 1}]), ({"read": "r"}, items(2, 3))])
    trace("reading_in_pieces", 4, [join, *push(1, 4), *(({"read": "r", "most": 1}, items(n, n)) for n in range(1, 5)), ({"read": "r", "most": 1}, [])])
    trace("bytes_exactly", 99, [join, *push(1, 3, 100), ({"read": "r"}, items(1, 3))], bytes_=300)
    trace("one_byte_over", 99, [join, *push(1, 2, 100), ({"push": 101}, [{"pushed": 3}]), ({"read": "r"}, [{"lag": 1}, *items(2, 3)])], bytes_=300)
    trace("a_large_one_pushes_many_out", 99, [join, *push(1, 5, 50), ({"push": 280}, [{"pushed": 6}]), ({"read": "r"}, [{"lag": 5}, *items(6, 6)])], bytes_=300)
    trace(
        "given_up_raises_the_floor",
        5,
        [
            join,
            *push(1, 5),
            ({"give_up": 2}, []),
            ({"resume": "s", "after": 1}, [{"expired": 3}]),
            ({"resume": "s", "after": 2}, [{"resumed": 3}]),
            ({"read": "s"}, items(3, 5)),
            ({"read": "r"}, [{"lag": 2}, *items(3, 5)]),
        ],
    )
    trace(
        "all_given_up",
        5,
        [
            join,
            *push(1, 4),
            ({"give_up": 4}, []),
            ({"resume": "s", "after": 3}, [{"expired": 5}]),
            ({"resume": "s", "after": 4}, [{"resumed": 0}]),
            ({"read": "r"}, [{"lag": 4}]),
            *push(5, 5),
            ({"read": "r"}, items(5, 5)),
            ({"read": "s"}, items(5, 5)),
        ],
    )
    trace("closed_and_empty", 2, [join, close, ({"read": "r"}, [{"end": True}])])
    for number in range(6):
        f.accept(f"random_{number}", random_ring(number))
    return f


def random_ring(number):
    dice = Dice(100 + number)
    given = {"items": 1 + dice.below(7), "bytes": 300}
    steps = [{"reader": "a"}, {"reader": "b"}]
    for _ in range(60):
        what = dice.below(10)
        if what < 6:
            steps.append({"push": 1 + dice.below(90)})
        elif what < 8:
            steps.append({"read": "a", "most": dice.below(5)})
        elif what < 9:
            steps.append({"read": "b"})
        else:
            steps.append({"resume": "b", "after": dice.below(30)})
    return {"config": given, "steps": steps + [{"close": True}, {"read": "a"}, {"read": "b"}]}
