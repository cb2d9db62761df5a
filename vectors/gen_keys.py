"""keys.json: WIRE.md section 6.2."""

from cast import NOW
from constants import K
from family import Family
from model_cbor import enc

R = 900_000
PREFIX = "io.example/acme/shop"


def period(n, **change):
    """The n-th period of a group that began at NOW."""
    issued_at = NOW + n * R
    base = {"id": bytes([n % 256] * 8), "key": bytes([0xA0 + n % 16] * 32), "issued_at": issued_at, "publish_until": issued_at + R, "accept_until": issued_at + R + 3_900_000}
    return {**base, **change}


def between(issued_at, publish_until, **change):
    return period(0, issued_at=issued_at, publish_until=publish_until, accept_until=publish_until + 3_900_000, **change)


def answer_of(periods, policy="required", prefix=PREFIX, **more):
    return enc({"epochs": periods, "policy": policy, "prefix": prefix, **more})


def id_of(n):
    return period(n)["id"].hex()


def family():
    f = Family("keys", "WIRE.md section 6.2: questions about keys, their answers, when they are asked, and what a member does as time goes by.")
    questions(f)
    answers(f)
    times(f)
    schedules(f)
    return f


def questions(f):
    for name, which in (("current", "current"), ("by_id", "0101010101010101")):
        f.accept(f"question_{name}", {"kind": "question", "which": which, "prefix": PREFIX})
    f.accept("question_of_another_prefix", {"kind": "question", "which": "current", "prefix": "io.example/_realm"})


def answers(f):
    def given(periods, which="current", now=NOW, prefix=PREFIX, **more):
        cbor = periods if type(periods) is bytes else answer_of(periods, **more)
        return {"kind": "answer", "which": which, "prefix": prefix, "now": now, "cbor": cbor.hex()}

    def yes(name, *args, **more):
        f.accept(f"answer_{name}", given(*args, **more))

    def no(name, reason, *args, **more):
        f.refuse(f"answer_{name}", given(*args, **more), reason)

    yes("one", [period(0)])
    yes("and_the_next", [period(0), period(1)])
    for policy in K.keys_policies.split():
        yes(f"policy_{policy}", [period(0)], policy=policy)
    yes("other_keys_are_read_past", [{**period(0), "note": None}], note=True)
    yes("five_minutes_before_it_begins", [period(0)], now=NOW - 300_000)
    no("earlier", "not_now", [period(0)], now=NOW - 300_001)
    yes("five_minutes_after_its_end", [period(0)], now=NOW + R + 299_999)
    no("later", "not_now", [period(0)], now=NOW + R + 300_000)
    no("the_next_alone_covers_the_present", "not_now", [period(0), period(1)], now=NOW + R + 300_000)
    for name, rotation, good in (("shortest", 60_000, True), ("too_short", 59_999, False), ("longest", 86_400_000, True), ("too_long", 86_400_001, False), ("of_no_time", 0, False), ("upside_down", -1, False)):
        one = [between(NOW, NOW + rotation)]
        yes(f"rotation_{name}", one) if good else no(f"rotation_{name}", "rotation", one)
    for by in (-1, 1, 60_000):
        no(f"accepted_{by}_ms_longer", "acceptance", [period(0, accept_until=NOW + R + 3_900_000 + by)])
    no("the_second_accepted_longer", "acceptance", [period(0), period(1, accept_until=NOW + 2 * R + 3_900_001)])
    no("of_no_period", "count", [])
    no("of_three", "count", [period(0), period(1), period(2)])
    no("with_a_hole", "not_contiguous", [period(0), period(2)])
    no("out_of_order", "not_contiguous", [period(1), period(0)])
    no("of_one_id_twice", "not_contiguous", [period(0), period(1, id=period(0)["id"])])
    yes("by_id", [period(0)], which=id_of(0))
    yes("by_id_of_the_past", [period(0)], which=id_of(0), now=NOW + R + 4_200_000)
    no("by_id_when_over", "not_now", [period(0)], which=id_of(0), now=NOW + R + 4_200_001)
    yes("by_id_ahead", [period(0)], which=id_of(0), now=NOW - 600_000)
    no("by_id_too_far_ahead", "not_now", [period(0)], which=id_of(0), now=NOW - 600_001)
    no("by_id_with_the_next", "count", [period(0), period(1)], which=id_of(0))
    no("by_another_id", "not_asked", [period(1)], which=id_of(0))
    no("of_another_prefix", "malformed", [period(0)], prefix="io.example/acme/shops")
    no("of_another_policy", "malformed", [period(0)], policy="perhaps")
    no("that_is_no_map", "malformed", enc([1]))
    no("that_is_no_cbor", "malformed", b"\x41")
    no("with_trailing_bytes", "malformed", answer_of([period(0)]) + b"\x00")
    no("whose_periods_are_no_list", "malformed", answer_of({}))
    no("whose_period_is_no_map", "malformed", answer_of([1]))
    for field, value in (("id", bytes(7)), ("id", "01234567"), ("key", bytes(31)), ("key", bytes(33)), ("issued_at", -1), ("publish_until", 2**53), ("accept_until", "soon")):
        shown = value.hex() if type(value) is bytes else value
        no(f"of_{field}_{shown}", "malformed", [period(0, **{field: value})])
    for field in period(0):
        no(f"without_{field}", "malformed", [{name: value for name, value in period(0).items() if name != field}])
    for left_out in ("epochs", "policy", "prefix"):
        rest = {name: value for name, value in {"epochs": [period(0)], "policy": "off", "prefix": PREFIX}.items() if name != left_out}
        no(f"that_lacks_{left_out}", "malformed", enc(rest))
    no("that_is_malformed_behind_the_second", "malformed", [period(0), period(1), 1])


def times(f):
    def when(name, draw, at, issued_at=NOW, rotation=R):
        f.accept(f"when_{name}", {"kind": "when", "issued_at": issued_at, "publish_until": issued_at + rotation, "draw": "%016x" % draw}, at=at)

    when("at_first", 0, NOW + 600_000)
    when("in_the_middle", 1 << 63, NOW + 750_000)
    when("at_last", 2**64 - 1, NOW + 899_999)
    when("of_a_short_rotation", 2**64 - 1, NOW + 59_999, rotation=60_000)
    when("of_an_odd_rotation", 0, NOW + 100_001 - 33_333, rotation=100_001)
    for rotation in (60_000, R, 86_400_000):
        f.accept(f"backoff_of_{rotation}", {"kind": "backoff", "rotation": rotation, "failures": 20})


def schedules(f):
    def trace(name, steps, pulls=8, wall=0):
        """Steps are (at, input); the wall is ahead by what stands third."""
        member = {"seed": "05" * 32, "label": "keyring", "drawn": 2, "pulls": pulls}
        given = [{"at_ms": at, "wall_ms": NOW + at + (more[0] if more else wall), **step} for at, step, *more in steps]
        f.accept(f"schedule_{name}", {"kind": "schedule", "member": member, "steps": given})

    def give(*numbers, which="current", policy="preferred"):
        return {"give": {"which": which, "prefix": PREFIX, "cbor": answer_of([period(n) for n in numbers], policy).hex()}}

    def refuse(reason, which="current"):
        return {"refuse": {"which": which, "reason": reason}}

    def want(n, by=1):
        return {"want": {"id": id_of(n), "by": by}}

    def opens(n, by=1):
        return {"open": {"id": id_of(n), "by": by}}

    join, seal, tick, leave, renew = ({name: True} for name in ("join", "seal", "timeout", "leave", "renew"))
    over = R + 3_900_000 + 300_000
    trace("of_a_day_like_others", [(0, join), (1, seal), (5, give(0)), (6, seal), (6, opens(0)), (R - 1, tick), (R - 1, give(0, 1)), (R - 1, seal), (R, seal), (R + 9, opens(0))])
    trace("of_an_end", [(0, join), (0, give(0)), (over, opens(0)), (over + 1, opens(0)), (over + 2, opens(0))])
    trace("of_a_wall_that_is_ahead", [(0, join), (0, give(0)), (1, tick, over), (1, opens(0), over + 1), (2, opens(0)), (40_000, tick), (40_000, give(0)), (40_001, opens(0))])
    trace("of_a_wall_that_was_set_back", [(0, join), (0, give(0)), (over, opens(0), -over), (over + 1, opens(0), -over)])
    trace("of_no_rest_for_a_wall_that_stands", [(0, join), (0, give(0)), (R, seal, -R), (R + 1, seal, -R)])
    trace("of_failures", [(0, join)] + [step for n, at in enumerate((0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 811, 1111)) for step in ((at * 1000, refuse("not_a_member")), (at * 1000, seal), (at * 1000 + 1000 * min(2**n, 300), tick))])
    trace("of_silence", [(0, join), (14_999, tick), (15_000, give(0)), (15_001, seal), (16_000, tick), (16_001, give(0)), (16_002, seal)])
    trace("of_missed_keys", [(0, join), (0, give(2), 2 * R), (1, want(0), 2 * R), (1, want(0, 2), 2 * R), (2, opens(0), 2 * R), (3, give(0, which=id_of(0)), 2 * R), (4, opens(0), 2 * R)])
    trace("of_unknown_keys", [(0, join), (0, give(0)), (1, want(9)), (2, refuse("unknown_period", id_of(9))), (3, opens(9)), (4, want(9, 2)), (3_900_001, want(9, 3)), (3_900_002, want(9, 3))])
    trace("of_expired_keys", [(0, join), (0, give(0)), (1, want(9)), (2, refuse("period_expired", id_of(9))), (3, opens(9)), (4, want(9, 2))])
    trace("of_keys_refused", [(0, join), (0, give(0))] + [step for at in (1, 2, 3, 4) for step in ((at, want(9)), (at, refuse("membership_unknown", id_of(9))), (at, opens(9)))] + [(5, renew), (6, opens(9, 2))])
    trace("of_a_share", [(0, join), (0, give(0))] + [(n, want(10 + n)) for n in range(1, 6)] + [(7, opens(14)), (8, want(20, 2)), (R, want(30)), (R + 1, want(31))])
    trace("of_a_full_memory", [(0, join), (0, give(0))] + [(n, want(10 + n, n)) for n in range(1, 5)] + [(15_005, want(20, 9)), (R + 5, want(21, 9))], pulls=2)
    trace("of_first_answers", [(0, join), (1, want(0)), (1, opens(0)), (1, opens(9)), (2, give(0)), (2, opens(0)), (2, opens(9)), (3, refuse("no_distributor", id_of(9))), (4, opens(9))])
    trace("of_a_first_refusal", [(0, join), (1, opens(0)), (2, refuse("not_authorized")), (2, opens(0)), (3, seal), (4, renew), (5, give(0)), (5, opens(0)), (6, renew)])
    trace("of_policies", [(0, join), (0, give(0, policy="required")), (R - 1, tick), (R - 1, give(0, 1, policy="off")), (2 * R - 1, tick), (2 * R - 1, give(1, 2, policy="preferred"))])
    trace("of_bad_answers", [(0, join), (0, give(0, 1, 2)), (0, seal), (1000, tick), (1000, give(3)), (1001, seal), (3000, tick), (3000, give(0)), (3001, want(9)), (3002, give(1, which=id_of(9))), (3003, opens(9))])
    trace("of_a_trailing_clock", [(0, join), (0, give(0))] + [step for at in range(R - 1, R + 120_000, 15_000) for step in ((at, tick), (at, give(0)), (at, seal))])
    trace("of_leaving", [(0, join), (0, give(0)), (1, want(9)), (2, leave), (3, opens(0)), (3, seal), (3, give(0, which=id_of(9))), (4, join), (5, give(0)), (5, opens(0))])
    for at in (15_000, 15_001):
        for order in ("ekt", "etk", "ket", "kte", "tek", "tke"):
            acts = {"e": want(0, 2), "k": give(0, which=id_of(0)), "t": tick}
            trace(f"of_one_tick_{order}_{at}", [(0, join), (0, give(2), 2 * R), (1, want(0), 2 * R)] + [(at, acts[one], 2 * R) for one in order] + [(at, opens(0), 2 * R)])
