"""Who may speak, as traces: verdicts and their ends, lookups and their windows, facts that wait."""

from itertools import permutations

from cast import NOW
from family import Family
from gen_flow import Dice
from model import judge

LIMITS = {
    "max_publishers": 8,
    "held_per_key": 3,
    "lookups_per_window": 8,
    "window_ms": 1000,
    "cache_ttl_ms": 300_000,
    "refresh_margin_ms": 30_000,
    "refusal_ttl_ms": 10_000,
    "lookup_timeout_ms": 5000,
}
LONG = NOW + 10**9


class Trace:
    """Steps by hand, each with what has to come of it."""

    def __init__(self, family, **limits):
        self.family, self.config = family, {**LIMITS, **limits}
        self.steps, self.wanted, self.facts = [], [], 0

    def take(self, at, given, *wanted, wall=None):
        self.steps.append({"at_ms": at, **({} if wall is None else {"wall_ms": NOW + wall}), **given})
        self.wanted.append(list(wanted))
        return self

    def fact(self, at, publisher, *wanted, link="one", realm="a", source="members", wall=None):
        self.facts += 1
        given = {"fact": self.facts - 1, "realm": realm, "source": source, "publisher": publisher, "link": link}
        return self.take(at, given, *wanted, wall=wall)

    def admit(self, at, lookup, *wanted, until=LONG, wall=None):
        return self.take(at, {"answer": lookup, "admit_until_ms": until}, *wanted, wall=wall)

    def refuse(self, at, lookup, reason, *wanted):
        return self.take(at, {"answer": lookup, "refuse": reason}, *wanted)

    def unknown(self, at, lookup, *wanted):
        return self.take(at, {"answer": lookup, "unknown": True}, *wanted)

    def tick(self, at, *wanted):
        return self.take(at, {"timeout": True}, *wanted)

    def end(self, name):
        inputs = {"config": self.config, "steps": self.steps}
        told = judge("sources", inputs)["steps"]
        for step, wanted in zip(told, self.wanted):
            assert step["out"] == wanted, f"{name}: {step} is not {wanted}"
        self.family.accept(name, inputs)


def ask(number, known=False):
    return {"ask": number, "known": known}


def wait(number):
    return {"wait": number}


def settled(number, *facts, **found):
    return {"settled": number, **found, "facts": list(facts)}


def family():
    f = Family("sources", "Publishers that are looked up: what becomes of each fact, which lookups begin, and what they settle.")
    ok = {"admit": True}

    Trace(f).fact(0, 1, ask(0)).fact(1, 1, wait(0)).fact(2, 1, wait(0)).fact(3, 1, {"drop": "hold_full"}).admit(9, 0, settled(0, 0, 1, 2, **ok)).fact(10, 1, "admit").admit(11, 0, "too_late").end("one_lookup_and_the_others_wait_in_the_order_they_came")
    Trace(f).fact(0, 1, ask(0)).fact(0, 1, wait(0), ).fact(0, 1, wait(0)).take(1, {"leave": 1}).fact(1, 1, wait(0)).fact(1, 1, {"drop": "hold_full"}).admit(9, 0, settled(0, 0, 2, 3, **ok)).end("one_that_leaves_makes_room_behind_the_others")
    Trace(f).fact(0, 1, ask(0)).take(1, {"leave": 0}).tick(4999).tick(5000, settled(0, drop="unanswered")).end("a_lookup_nobody_waits_for_goes_on")
    for source, realm in (("org:acme", "a"), ("members", "b"), ("org:other", "a")):
        Trace(f).fact(0, 1, ask(0)).admit(1, 0, settled(0, 0, **ok)).fact(2, 1, ask(1), source=source, realm=realm).refuse(3, 1, "not_delegated", settled(1, 1, refuse="not_delegated")).fact(4, 1, "admit").end(f"its_own_verdict_{source.replace(':', '_')}_{realm}")

    # The end of a verdict.
    for name, at, wall in (("both", 300_000, 300_000), ("mono", 300_000, 0), ("wall", 2, 300_000)):
        Trace(f, refresh_margin_ms=0).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok)).fact(1, 1, "admit").fact(at - 1, 1, "admit", wall=max(wall - 1, 0)).fact(at, 1, ask(1, known=True), wall=wall).end(f"over_by_{name}")
    Trace(f, refresh_margin_ms=0).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok)).fact(1, 1, ask(1, known=True), wall=300_000).fact(2, 1, wait(1), wall=2).tick(5001, settled(1, 1, 2, drop="unanswered")).fact(5002, 1, ask(2, known=True)).end("what_was_over_stays_over")
    Trace(f).fact(0, 1, ask(0)).admit(10, 0, settled(0, 0, **ok), until=NOW + 50).fact(49, 1, "admit").fact(50, 1, ask(1, known=True)).end("never_beyond_its_record")
    Trace(f).fact(0, 1, ask(0)).admit(10, 0, settled(0, 0, refuse="expired"), until=NOW + 10).fact(11, 1, {"refuse": "expired"}).end("a_record_that_is_over")
    Trace(f).fact(0, 1, ask(0)).admit(10, 0, settled(0, 0, **ok), until=NOW + 11).fact(11, 1, ask(1, known=True)).end("a_record_with_a_moment_left")
    use = Trace(f).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok))
    for at in range(10_000, 270_000, 10_000):
        use.fact(at, 1, "admit")
    use.fact(270_000, 1, "admit", ask(1, known=True)).unknown(270_001, 1, settled(1, drop="undecided_source"))
    use.fact(275_000, 1, "admit").fact(275_001, 1, "admit", ask(2, known=True)).tick(280_001, settled(2, drop="unanswered"))
    use.fact(285_000, 1, "admit").fact(295_001, 1, "admit", ask(3, known=True)).unknown(299_998, 3, settled(3, drop="undecided_source"))
    use.fact(299_999, 1, "admit").fact(300_000, 1, ask(4, known=True)).refuse(300_001, 4, "withdrawn", settled(4, 33, refuse="withdrawn")).fact(300_002, 1, {"refuse": "withdrawn"})
    use.end("not_extended_by_use_and_a_failed_refresh_leaves_it")

    # Refreshing.
    near = lambda **limits: Trace(f, **limits).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok)).fact(269_999, 1, "admit").fact(270_000, 1, "admit", ask(1, known=True)).fact(270_001, 1, "admit")
    near().refuse(270_002, 1, "withdrawn", settled(1, refuse="withdrawn")).fact(270_003, 1, {"refuse": "withdrawn"}).end("a_refresh_that_refuses_replaces_it_at_once")
    near().admit(270_002, 1, settled(1, **ok)).fact(540_001, 1, "admit").fact(540_002, 1, "admit", ask(2, known=True)).end("a_refresh_that_admits_begins_another_life")
    near(lookup_timeout_ms=40_000).fact(300_000, 1, wait(1)).fact(300_001, 1, wait(1)).admit(300_002, 1, settled(1, 4, 5, **ok)).end("a_fact_waits_for_a_refresh_that_outlasts_the_verdict")
    spent = Trace(f, lookups_per_window=2).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok)).fact(1000, 2, ask(1)).admit(1000, 1, settled(1, 1, **ok))
    spent.fact(275_000, 3, ask(2)).fact(275_000, 1, "admit", ask(3, known=True)).fact(275_001, 2, "admit").fact(275_999, 2, "admit").fact(276_000, 2, "admit", ask(4, known=True)).end("a_refresh_without_a_lookup_left_costs_nothing")
    Trace(f, refresh_margin_ms=0).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok)).fact(299_999, 1, "admit").fact(300_000, 1, ask(1, known=True)).end("no_margin_no_refresh")
    for name, at, wall in (("mono", 270_000, 0), ("wall", 5000, 270_000)):
        Trace(f).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok)).fact(at, 1, "admit", ask(1, known=True), wall=wall).end(f"near_its_end_by_{name}")

    # Refusals.
    kept = Trace(f).fact(0, 1, ask(0)).refuse(5, 0, "not_found", settled(0, 0, refuse="not_found"))
    for at in range(1000, 10_000, 1000):
        kept.fact(at, 1, {"refuse": "not_found"})
    kept.fact(10_004, 1, {"refuse": "not_found"}).fact(10_005, 1, ask(1)).end("a_refusal_is_not_refreshed_by_what_it_refuses")
    Trace(f, refusal_ttl_ms=0).fact(0, 1, ask(0)).refuse(1, 0, "not_found", settled(0, 0, refuse="not_found")).fact(1, 1, ask(1)).end("a_refusal_that_is_not_kept")
    Trace(f).fact(0, 1, ask(0)).refuse(5, 0, "not_found", settled(0, 0, refuse="not_found")).fact(6, 1, ask(1), wall=10_005).end("a_refusal_is_over_by_the_wall_too")
    few = Trace(f, lookups_per_window=64)
    for at, publisher in enumerate((1, 2, 3)):
        few.fact(at, publisher, ask(at)).refuse(at, at, "wrong_realm", settled(at, at, refuse="wrong_realm"))
    few.fact(3, 2, {"refuse": "wrong_realm"}).fact(3, 3, {"refuse": "wrong_realm"}).fact(3, 1, ask(3)).end("refusals_take_a_quarter_and_the_oldest_goes")
    few = Trace(f, max_publishers=9, lookups_per_window=64)
    for at, publisher in enumerate((1, 2, 3)):
        few.fact(at, publisher, ask(at)).refuse(at, at, "malformed", settled(at, at, refuse="malformed"))
    few.fact(3, 1, {"refuse": "malformed"}).end("a_quarter_is_rounded_up")
    Trace(f).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok), until=NOW + 10).fact(10, 1, ask(1, known=True)).refuse(11, 1, "withdrawn", settled(1, 1, refuse="withdrawn")).fact(10_011, 1, ask(2)).end("who_was_refused_is_a_stranger_again")

    # What could not be found out.
    Trace(f).fact(0, 1, ask(0)).fact(1, 1, wait(0)).unknown(2, 0, settled(0, 0, 1, drop="undecided_source")).fact(2, 1, ask(1)).tick(5001).tick(5002, settled(1, 2, drop="unanswered")).fact(5002, 1, ask(2)).end("nothing_is_remembered_of_what_could_not_be_found_out")
    Trace(f).fact(0, 1, ask(0)).fact(1, 2, ask(1)).fact(2, 3, {"drop": "lookups_full"}).fact(1000, 3, ask(2)).tick(5001, settled(0, 0, drop="unanswered"), settled(1, 1, drop="unanswered")).admit(5002, 2, settled(2, 3, **ok)).admit(5002, 0, "too_late").end("each_lookup_has_its_deadline")

    # Fact, answer and timer of one tick, in every order: what comes at the deadline comes too late, whether the timer was there or not.
    for at in (4999, 5000):
        for order in permutations("fat"):
            t = Trace(f).fact(0, 1, ask(0))
            waits, late, again = [0], at == 5000, 1
            for one in order:
                if one == "f":
                    if 0 in waits:
                        t.fact(at, 1, wait(0))
                        waits.append(1)
                    elif late:
                        t.fact(at, 1, ask(1))
                        again = 2
                    else:
                        t.fact(at, 1, "admit")
                elif one == "a" and late:
                    t.admit(at, 0, "too_late")
                elif one == "a":
                    t.admit(at, 0, settled(0, *waits, **ok))
                    waits = []
                elif late:
                    t.tick(at, settled(0, *waits, drop="unanswered"))
                    waits = []
                else:
                    t.tick(at)
            t.fact(at + 1, 1, "admit" if not late else wait(1) if again == 2 else ask(1)).end(f"one_tick_{''.join(order)}_{at}")

    # Windows.
    for whole, strangers, share in ((8, 4, 2), (7, 4, 2), (2, 1, 1), (1, 1, 1), (13, 7, 4)):
        w = Trace(f, lookups_per_window=whole, max_publishers=64, refusal_ttl_ms=0)
        lookups = 0
        for publisher in range(strangers + 2):
            # Two of each link until its share is spent, then another.
            link = publisher // share
            good = publisher < strangers
            w.fact(5, publisher, ask(lookups) if good else {"drop": "lookups_full"}, link=f"link {link}")
            if good:
                lookups += 1
                if publisher % share == share - 1:
                    w.fact(5, 1000 + publisher, {"drop": "lookups_full"}, link=f"link {link}")
        w.fact(5, 500, ask(lookups), realm="b", link="link 0")
        w.fact(1004, 600, {"drop": "lookups_full"}, link="link 0").fact(1005, 600, ask(lookups + 1), link="link 0")
        w.end(f"strangers_of_{whole}")
    known = Trace(f, lookups_per_window=4, refresh_margin_ms=0)
    for n in range(6):
        known.fact(n * 1000, n, ask(n)).admit(n * 1000, n, settled(n, n, **ok), until=NOW + 7000)
    for n in range(4):
        known.fact(7000, n, ask(6 + n, known=True))
    known.fact(7000, 4, {"drop": "lookups_full"}).fact(7000, 9, {"drop": "lookups_full"}).end("whoever_was_admitted_may_take_all_of_it")
    half = Trace(f, lookups_per_window=4, refresh_margin_ms=0)
    for n in range(4):
        half.fact(n * 1000, n, ask(n)).admit(n * 1000, n, settled(n, n, **ok), until=NOW + 7000)
    half.fact(7000, 7, ask(4), link="x").fact(7000, 8, ask(5), link="y").fact(7000, 9, {"drop": "lookups_full"}, link="z")
    half.fact(7000, 0, ask(6, known=True)).fact(7000, 1, ask(7, known=True)).fact(7000, 2, {"drop": "lookups_full"}).end("half_is_kept_for_whoever_was_admitted")
    for name, at, stranger in (("remembered", 307_998, False), ("forgotten", 307_999, True)):
        m = Trace(f, lookups_per_window=2).fact(0, 1, ask(0)).admit(0, 0, settled(0, 0, **ok), until=NOW + 7999).fact(8000, 1, ask(1, known=True)).unknown(8001, 1, settled(1, 1, drop="undecided_source"))
        m.fact(at, 2, ask(2))
        m.fact(at, 1, *([{"drop": "lookups_full"}] if stranger else [ask(3, known=True)])).end(f"as_admitted_{name}")

    # Places.
    full = Trace(f, max_publishers=2, lookups_per_window=64)
    full.fact(0, 1, ask(0)).fact(1, 2, ask(1)).fact(2, 3, {"drop": "verdicts_full"}).admit(3, 0, settled(0, 0, **ok)).admit(4, 1, settled(1, 1, **ok), until=NOW + 100).fact(99, 3, {"drop": "verdicts_full"})
    full.fact(100, 3, ask(2)).fact(100, 4, {"drop": "verdicts_full"}).fact(100, 1, "admit").refuse(101, 2, "not_found", settled(2, 4, refuse="not_found")).fact(102, 4, ask(3)).fact(103, 2, {"drop": "verdicts_full"}).end("an_admitted_verdict_is_never_evicted_for_a_stranger")
    oldest = Trace(f, max_publishers=3, lookups_per_window=64, refresh_margin_ms=0)
    for n in (0, 1, 2):
        oldest.fact(n, n, ask(n), link=n)
    oldest.admit(10, 2, settled(2, 2, **ok), until=NOW + 100).admit(11, 0, settled(0, 0, **ok), until=NOW + 100).admit(12, 1, settled(1, 1, **ok), until=NOW + 100)
    oldest.fact(100, 7, ask(3)).fact(100, 0, ask(4, known=True)).fact(100, 8, ask(5)).fact(100, 9, {"drop": "verdicts_full"}).fact(100, 2, {"drop": "verdicts_full"}).end("of_those_that_are_over_the_one_answered_longest_ago_goes")

    for number in range(12):
        f.accept(f"random_{number}", random_trace(number))
    return f


def random_trace(number):
    """Small limits and times, so that everything is met."""
    dice = Dice(700 + number)
    config = {
        "max_publishers": 2 + dice.below(5),
        "held_per_key": 1 + dice.below(3),
        "lookups_per_window": 2 + dice.below(8),
        "window_ms": 20 + dice.below(60),
        "cache_ttl_ms": 200 + dice.below(300),
        "refresh_margin_ms": dice.below(100),
        "refusal_ttl_ms": dice.below(200),
        "lookup_timeout_ms": 30 + dice.below(60),
    }
    at, shift, facts, steps, asked = 0, 0, 0, [], 0
    for _ in range(120):
        at += dice.below(4) if dice.below(3) else dice.below(50)
        if dice.below(30) == 0:
            shift += dice.below(200) - 100
        step = {"at_ms": at, "wall_ms": NOW + at + shift}
        what = dice.below(20)
        if what < 11:
            step |= {"fact": facts, "realm": "ab"[dice.below(4) == 0], "source": ("members", "org:acme")[dice.below(4) == 0], "publisher": dice.below(6), "link": "xyz"[dice.below(3)]}
            facts += 1
        elif what < 17 and asked:
            step["answer"] = max(0, asked - 1 - dice.below(3))
            found = dice.below(6)
            if found < 4:
                step["admit_until_ms"] = NOW + at + shift + dice.below(600)
            elif found == 4:
                step["refuse"] = ("not_found", "withdrawn")[dice.below(2)]
            else:
                step["unknown"] = True
        elif what == 17 and facts:
            step["leave"] = max(0, facts - 1 - dice.below(4))
        else:
            step["timeout"] = True
        steps.append(step)
        told = judge("sources", {"config": config, "steps": steps})["steps"][-1]["out"]
        asked += sum(type(one) is dict and "ask" in one for one in told)
    return {"config": config, "steps": steps}
