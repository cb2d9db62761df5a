"""continuity.json: what the readers of a subscription are told of its interruptions. All but the random traces were worked out by hand as well."""

from family import Family
from gen_flow import Dice
from model import judge
from model_continuity import START

MESH, OTHER = "m", "n"


def accept(at, link, resume="none", offset=0, run="r", station=None, mesh=MESH, since=None, **more):
    station = station or link[0]
    given = {"link": link, "station": station, "mesh": mesh, "since_ms": at if since is None else since, "resume": resume}
    return {"at_ms": at, "accept": {**given, **more, "run": run, "offset": offset}}


def end(at, link, reason="io"):
    return {"at_ms": at, "end": {"link": link, "reason": reason}}


def event(at, link, offset):
    return {"at_ms": at, "event": {"link": link, "offset": offset}}


def progress(at, link, offset, behind=0, **more):
    return {"at_ms": at, "progress": {"link": link, "offset": offset, "behind_ms": behind, **more}}


def skipped(at, link, begin, to, count=1, **more):
    return {"at_ms": at, "skipped": {"link": link, "from": begin, "to": to, "count": count, **more}}


def ask(at, station):
    return {"at_ms": at, "ask": station}


def timeout(at):
    return {"at_ms": at, "timeout": True}


def interrupted(at, reason="io"):
    return [{"interrupted": {"from": START + at, "reason": reason}}]


def gap(begin, to, reason, **more):
    return [{"gap": {"from": START + begin, "to": START + to, "reason": reason, **more}}]


def resumed(count):
    return [{"resumed": count}]


def kept(offset, run="r"):
    return [{"resume": {"run": run, "offset": offset}}]


def family():
    f = Family("continuity", "The continuity of one subscription: what its readers are told when its carriers come and go.")

    def trace(name, *steps, slots=6):
        """Steps are what happens, each followed by what is told of it, unless that is nothing."""
        given, wanted = [], []
        for step in steps:
            if isinstance(step, list):
                wanted[-1] = step
            else:
                given.append(step)
                wanted.append([])
        inputs = {"config": {"slots": slots}, "steps": given}
        for step, out in zip(judge("continuity", inputs)["steps"], wanted):
            assert step["out"] == out, f"{name}: {step} is not {out}"
        f.accept(name, inputs)

    trace("nothing_at_the_first_acceptance", accept(1000, "a1"), accept(5000, "b1"), event(6000, "a1", 1))
    trace("nothing_at_the_first_acceptance_however_it_answers", accept(1000, "a1", "expired"), accept(1500, "b1", "resumed", count=4))
    trace("a_link_that_was_not_accepted_is_no_news", accept(0, "a1"), end(10, "b1"), end(20, "a1"), interrupted(0), end(30, "a1"), end(31, "b1"))
    trace(
        "br_02_a_reconnect_is_told",
        accept(0, "a1"),
        event(10, "a1", 1),
        end(20, "a1"),
        interrupted(0),
        ask(25, "a"),
        kept(1),
        accept(26, "a2", "expired", 2, "s"),
        gap(0, 26, "expired"),
        event(30, "a2", 3),
        ask(31, "a"),
        [{"resume": None}],
    )
    trace("br_02_a_reconnect_with_replay", accept(0, "a1"), event(10, "a1", 1), end(20, "a1"), interrupted(0), accept(26, "a2", "resumed", 2, count=1), resumed(1))
    trace("six_hours", accept(0, "a1"), progress(10_000, "a1", 5), end(20_000, "a1"), interrupted(10_000), accept(21_600_000, "a2", "expired", 9, "s"), gap(10_000, 21_600_000, "expired"))
    trace("br_04_a_another_carries", accept(0, "a1"), accept(0, "b1"), end(10, "a1"), accept(20, "a2", "expired", 0, "s"))
    trace(
        "br_04_b_both_end",
        accept(0, "a1"),
        accept(0, "b1"),
        progress(4, "a1", 0),
        progress(6, "b1", 0),
        end(10, "a1"),
        end(12, "b1", "liveness_lost"),
        interrupted(6, "liveness_lost"),
        accept(21, "a2", "expired", 0, "s"),
        gap(6, 21, "expired"),
        accept(41, "b2", "expired", 0, "s"),
    )
    trace("the_furthest_of_a_mesh_counts", accept(0, "a1"), accept(0, "b1"), progress(8, "a1", 0), progress(6, "b1", 0), end(10, "a1"), end(12, "b1"), interrupted(8))
    trace("br_04_c_one_that_never_carried", accept(0, "a1"), end(10, "b1"))
    trace("from_is_the_acceptance_before_any_progress", accept(500, "a1", since=480), event(9000, "a1", 7), end(9999, "a1"), interrupted(480))
    trace("from_is_the_last_progress", accept(0, "a1"), progress(10_000, "a1", 3), progress(20_000, "a1", 3), event(29_000, "a1", 4), end(29_500, "a1"), interrupted(20_000))
    trace("from_is_less_what_it_was_behind", accept(0, "a1"), progress(10_000, "a1", 3, 700), end(10_500, "a1"), interrupted(9300))
    trace("from_is_not_before_the_acceptance", accept(5000, "a1"), progress(6000, "a1", 3, 60_000), end(7000, "a1"), interrupted(5000))
    trace(
        "a_progress_was_said_after_the_answered_probe_alone",
        accept(0, "a1"),
        progress(40_000, "a1", 3, said_ms=30_000),
        end(41_000, "a1"),
        interrupted(30_000),
        accept(42_000, "a2", "resumed", 3, count=0),
        resumed(0),
        progress(44_000, "a2", 3, 500, said_ms=43_000),
        end(45_000, "a2"),
        interrupted(42_500),
    )
    trace(
        "a_progress_read_after_a_suspend",
        accept(0, "a1"),
        progress(30_000, "a1", 3, said_ms=29_000),
        {"at_ms": 31_000, "wall_ms": START + 10_831_000, "progress": {"link": "a1", "offset": 3, "behind_ms": 0, "said_ms": 29_000}},
        {"at_ms": 36_000, "wall_ms": START + 10_836_000, "end": {"link": "a1", "reason": "liveness_lost"}},
        interrupted(29_000, "liveness_lost"),
    )
    trace(
        "the_wall_was_set_back",
        accept(0, "a1"),
        progress(10_000, "a1", 1),
        {"at_ms": 12_000, "wall_ms": START - 3_600_000, "end": {"link": "a1", "reason": "io"}},
        interrupted(-3_602_000),
        {**accept(13_000, "a2", "expired", 0, "s"), "wall_ms": START - 3_599_000},
        gap(-3_602_000, -3_599_000, "expired"),
    )
    trace(
        "the_wall_was_set_forward",
        accept(0, "a1"),
        progress(10_000, "a1", 1),
        {"at_ms": 12_000, "wall_ms": START + 3_600_000, "end": {"link": "a1", "reason": "io"}},
        interrupted(10_000),
    )
    trace("refused_later_by_all", accept(0, "a1"), end(10, "a1", "refused"), interrupted(0, "refused"), end(20, "a1"), accept(9000, "b1"), gap(0, 9000, "lost"))
    trace("only_the_first_acceptance_tells", accept(0, "a1"), end(10, "a1"), interrupted(0), accept(20, "b1"), gap(0, 20, "lost"), accept(21, "c1"), accept(30, "a2", "expired", 0, "s"))
    trace("one_that_dies_unanswered_changes_nothing", accept(0, "a1"), end(10, "a1"), interrupted(0), end(15, "a2"), end(16, "b1", "draining"), accept(20, "b2"), gap(0, 20, "lost"))
    trace("two_interruptions", accept(0, "a1"), end(10, "a1"), interrupted(0), accept(20, "a2", "resumed", 0, count=0), resumed(0), progress(30, "a2", 0), end(40, "a2"), interrupted(30))
    trace("a_second_acceptance_on_one_link", accept(0, "a1"), event(5, "a1", 8), accept(6, "a1", offset=3), end(10, "a1"), interrupted(0), ask(11, "a"), kept(8))

    # Replays.
    trace(
        "a_replay_that_comes",
        accept(0, "a1"),
        event(5, "a1", 3),
        progress(1000, "a1", 4),
        end(2000, "a1"),
        interrupted(1000),
        ask(2500, "a"),
        kept(4),
        accept(3000, "a2", "resumed", 9, count=2, since=2900),
        resumed(2),
        event(3001, "a2", 6),
        event(3002, "a2", 8),
        end(3500, "a2"),
        interrupted(2900),
        ask(3501, "a"),
        kept(9),
    )
    trace(
        "a_replay_known_to_be_over_by_progress",
        accept(0, "a1"),
        end(10, "a1"),
        interrupted(0),
        accept(20, "a2", "resumed", 9, count=3),
        resumed(3),
        event(21, "a2", 5),
        progress(22, "a2", 6, 5),
        progress(30, "a2", 9),
        end(40, "a2"),
        interrupted(30),
    )
    trace(
        "br_48_a_link_that_ends_before_its_replay_came",
        accept(0, "a1"),
        progress(1000, "a1", 4),
        end(2000, "a1"),
        interrupted(1000),
        accept(3000, "a2", "resumed", 9, count=3),
        resumed(3),
        event(3001, "a2", 5),
        progress(3002, "a2", 5, 1500),
        end(3003, "a2"),
        interrupted(1000),
        ask(3004, "a"),
        kept(5),
        accept(4000, "a3", "resumed", 11, count=4),
        resumed(4),
    )
    trace(
        "br_48_and_another_came_meanwhile",
        accept(0, "a1"),
        end(2000, "a1"),
        interrupted(0),
        accept(3000, "a2", "resumed", 9, count=3),
        resumed(3),
        accept(3500, "b1"),
        end(4000, "a2"),
        interrupted(0),
        accept(5000, "a3", "expired", 0, "s"),
        gap(0, 5000, "expired"),
    )
    trace(
        "a_broken_replay_that_a_mate_brings_as_well",
        accept(0, "a1"),
        accept(0, "b1"),
        end(2000, "a1"),
        end(2001, "b1"),
        interrupted(0),
        accept(3000, "a2", "resumed", 9, count=3),
        resumed(3),
        accept(3500, "b2", "resumed", 7, count=3),
        end(4000, "a2"),
        event(4001, "b2", 7),
    )
    trace("an_anycast_is_no_part_of_a_replay", accept(0, "a1"), end(10, "a1"), interrupted(0), accept(20, "a2", "resumed", 9, count=1), resumed(1), event(21, "a2", 0), end(30, "a2"), interrupted(0))
    trace("resumed_from_another_run_is_none", accept(0, "a1"), end(10, "a1"), interrupted(0), accept(20, "a2", "resumed", 9, "s", count=1), gap(0, 20, "expired"))
    trace("resumed_before_the_position_is_none", accept(0, "a1"), event(5, "a1", 7), end(10, "a1"), interrupted(0), accept(20, "a2", "resumed", 6, count=0), gap(0, 20, "expired"))
    trace("a_position_never_moves_back", accept(0, "a1"), event(5, "a1", 7), event(6, "a1", 4), progress(7, "a1", 5), end(10, "a1"), interrupted(7), ask(11, "a"), kept(7))

    # Several meshes.
    n = {"mesh": OTHER}
    trace("another_mesh_begins", accept(0, "a1"), accept(50, "x1", **n), end(100, "x1"), accept(200, "x2", "resumed", 0, count=0, **n))
    trace("a_mesh_comes_back_expired", accept(0, "a1"), accept(0, "x1", **n), progress(1000, "x1", 3), end(2000, "x1"), accept(3000, "x2", "expired", 0, "s", **n), gap(1000, 3000, "expired"))
    trace("a_mesh_comes_back_plainly", accept(0, "a1"), accept(0, "x1", **n), progress(1000, "x1", 3), end(2000, "x1"), accept(3000, "x2", "none", 0, "s", **n))
    trace("a_mesh_comes_back_with_its_mate", accept(0, "a1"), accept(0, "x1", **n), accept(0, "y1", **n), end(2000, "x1"), end(2500, "a1"), accept(3000, "x2", "expired", 0, "s", **n))
    both = (accept(0, "a1"), accept(0, "x1", **n), progress(900, "a1", 5), progress(1000, "x1", 3), end(1900, "a1"), end(2000, "x1"), interrupted(1000))
    trace("resumed_needs_every_mesh", *both, accept(3000, "x2", "resumed", 8, count=5, **n), accept(4000, "a2", "resumed", 9, count=4), resumed(9))
    trace(
        "resumed_counts_a_mesh_once",
        accept(0, "b1"),
        *both[:-2],
        end(2000, "x1"),
        end(2001, "b1"),
        interrupted(1000),
        accept(3000, "a2", "resumed", 8, count=5),
        accept(3001, "b2", "resumed", 8, count=5),
        accept(4000, "x2", "resumed", 9, count=4, **n),
        resumed(9),
    )
    trace("one_mesh_replays_and_one_cannot", *both, accept(3000, "x2", "resumed", 8, count=5, **n), accept(4000, "a2", "expired", 0, "s"), gap(900, 4000, "expired"))
    trace("each_mesh_that_cannot_replay_has_its_gap", *both, accept(3000, "x2", "expired", 0, "s", **n), gap(1000, 3000, "expired"), accept(4000, "a2", "expired", 0, "s"), gap(900, 4000, "expired"))
    trace("a_plain_acceptance_ends_it", *both, accept(3000, "z1", mesh="o"), gap(1000, 3000, "lost"), accept(4000, "a2", "resumed", 9, count=4))
    trace(
        "a_mesh_that_does_not_come_back",
        *both,
        accept(3000, "x2", "resumed", 8, count=5, **n),
        timeout(121_899),
        timeout(121_900),
        gap(900, 121_900, "lost"),
        accept(130_000, "a2", "expired", 0, "s"),
        gap(121_900, 130_000, "expired"),
    )
    alone = (accept(0, "a1"), accept(0, "x1", **n), progress(1000, "x1", 3), end(2000, "x1"))
    trace("a_mesh_is_lost_while_another_carries", *alone, timeout(121_999), timeout(122_000), gap(1000, 122_000, "lost"), timeout(500_000))
    trace("a_lost_mesh_that_cannot_replay_has_a_second_window", *alone, timeout(122_000), gap(1000, 122_000, "lost"), accept(130_000, "x2", "expired", 0, "s", **n), gap(122_000, 130_000, "expired"))
    trace("a_lost_mesh_that_replays_has_none", *alone, timeout(122_000), gap(1000, 122_000, "lost"), accept(130_000, "x2", "resumed", 9, count=2, **n), end(140_000, "x2"), timeout(260_000), gap(122_000, 260_000, "lost"))
    trace("a_mesh_that_came_back_in_time_is_not_lost", *alone, accept(121_000, "x2", "resumed", 9, count=0, **n), timeout(122_000), timeout(500_000))
    trace("the_holder_is_lost_whose_mate_accepted_plainly", *alone, accept(5000, "y1", **n), timeout(122_000), gap(1000, 5000, "lost"), accept(130_000, "x2", "expired", 0, "s", **n))
    trace("a_holder_that_came_back_beside_its_mate", *alone, accept(5000, "y1", **n), accept(6000, "x2", "resumed", 9, count=2, **n), timeout(500_000))
    trace("a_holder_that_lagged_is_lost", accept(0, "a1"), progress(10_000, "a1", 1, 4000), accept(8000, "b1"), end(10_500, "a1"), timeout(130_500), gap(6000, 8000, "lost"), timeout(500_000))
    trace("of_a_mesh_the_last_end_counts", *alone[:2], accept(10, "y1", **n), progress(900, "y1", 3, 895), end(1000, "y1"), end(2000, "x1"), timeout(121_000), timeout(122_000), gap(10, 122_000, "lost"))
    trace("two_meshes_are_lost_one_after_the_other", accept(0, "c1", mesh="o"), *alone, end(3000, "a1"), timeout(123_000), gap(1000, 123_000, "lost"), timeout(123_000), gap(0, 123_000, "lost"))
    trace("a_mesh_is_not_given_up_while_nobody_carries", *alone, end(3000, "a1"), interrupted(1000), timeout(500_000), accept(600_000, "a2", "expired", 0, "s"), gap(0, 600_000, "expired"), timeout(600_000), gap(1000, 600_000, "lost"))
    trace("a_broken_replay_is_given_up", accept(0, "a1"), accept(0, "x1", **n), end(10, "x1"), end(20, "a1"), interrupted(0), accept(30, "a2", "resumed", 9, count=9), accept(31, "x2", "resumed", 4, count=0, **n), resumed(9), end(40, "a2"), interrupted(0), timeout(120_039), timeout(120_040), gap(0, 120_040, "lost"))
    trace("a_broken_replay_whose_mate_accepted_before", accept(0, "a1"), end(20, "a1"), interrupted(0), accept(30, "a2", "resumed", 9, count=9), resumed(9), accept(35, "b1"), end(40, "a2"), interrupted(0), timeout(120_040), gap(0, 35, "lost"))
    trace("a_mesh_that_was_away_for_long", *both, accept(500_000, "x2", "resumed", 8, count=5, **n), timeout(529_999), timeout(530_000), gap(900, 530_000, "lost"))
    trace("nobody_is_waited_for_while_nobody_carries", *both, accept(3000, "x2", "resumed", 8, count=5, **n), end(3500, "x2"), timeout(500_000), accept(600_000, "x3", "expired", 0, "s", **n), gap(1000, 600_000, "expired"))
    trace(
        "a_mesh_lost_long_ago_is_not_waited_for_again",
        accept(0, "a1"),
        accept(0, "x1", **n),
        end(100, "x1"),
        end(200, "a1"),
        interrupted(0),
        accept(300, "a2", "expired", 0, "s"),
        gap(0, 300, "expired"),
        end(1000, "a2"),
        interrupted(300),
        accept(1100, "a3", "resumed", 0, "s", count=0),
        resumed(0),
        accept(2000, "x2", "expired", 0, "s", **n),
        gap(0, 2000, "expired"),
    )
    trace("br_48_between_meshes", *both, accept(3000, "a2", "resumed", 8, count=5), accept(3500, "x2", "resumed", 9, count=4, **n), resumed(9), end(3600, "a2"), interrupted(900), accept(3700, "a3", "resumed", 9, count=5), resumed(5))

    # Carriers that lag.
    trace("a_mate_that_came_too_late_for_one_that_lagged", accept(0, "a1"), progress(10_000, "a1", 1, 4000), accept(8000, "b1"), end(10_500, "a1"), accept(11_000, "a2", "expired", 0, "s"), gap(6000, 11_000, "expired"))
    trace("a_mate_that_came_in_time_for_one_that_lagged", accept(0, "a1"), accept(6000, "b1"), progress(10_000, "a1", 1, 4000), end(10_500, "a1"), accept(11_000, "a2", "expired", 0, "s"))
    trace("a_mate_that_came_late_for_one_that_was_level", accept(0, "a1"), progress(10_000, "a1", 1), accept(10_400, "b1"), end(10_500, "a1"), accept(11_000, "a2", "expired", 0, "s"))

    # Skipped.
    trace("skipped_is_a_gap", accept(0, "a1"), skipped(9000, "a1", 5000, 4000, 12), gap(4000, 5000, "station_skipped", count=12), skipped(9001, "a1", 3, 3, 0), gap(8998, 8998, "station_skipped"))
    trace("skipped_while_a_mate_carried", accept(0, "a1"), accept(4000, "b1"), skipped(9000, "a1", 5000, 4000))
    trace("skipped_while_a_mate_came_too_late", accept(0, "a1"), accept(4001, "b1"), skipped(9000, "a1", 5000, 4000), gap(4000, 5000, "station_skipped", count=1))
    trace("skipped_while_another_mesh_carried", accept(0, "a1"), accept(0, "x1", **n), skipped(9000, "a1", 5000, 4000), gap(4000, 5000, "station_skipped", count=1))
    trace("both_skip_the_same", accept(0, "a1"), accept(0, "b1"), skipped(9000, "a1", 5000, 4000), skipped(9001, "b1", 4500, 3000), gap(4501, 6001, "station_skipped", count=1), skipped(9002, "a1", 2000, 1000))
    trace("skipped_by_who_does_not_carry", accept(0, "a1"), skipped(9000, "b1", 5000, 4000))
    trace("a_peer_was_cut_off", accept(0, "a1"), accept(0, "b1"), skipped(9000, "a1", 5000, 4000, 0, peer="c"), gap(4000, 5000, "peer_interrupted"))
    trace("a_peer_was_cut_off_that_carried_itself", accept(0, "a1"), accept(0, "c1"), skipped(9000, "a1", 5000, 4000, 0, peer="c"))
    trace("a_peer_was_cut_off_that_carried_too_late", accept(0, "a1"), accept(4001, "c1"), skipped(9000, "a1", 5000, 4000, 0, peer="c"), gap(4000, 5000, "peer_interrupted"))
    trace("skipped_is_no_part_of_a_replay_any_more", accept(0, "a1"), end(10, "a1"), interrupted(0), accept(20, "a2", "resumed", 9, count=3), resumed(3), skipped(30, "a2", 25, 22, 2), gap(5, 8, "station_skipped", count=2), event(31, "a2", 5), end(40, "a2"), interrupted(20))

    # Slots, and an earlier run.
    trace("the_position_read_longest_ago_is_forgotten_first", accept(0, "a1"), end(10, "a1"), interrupted(0), accept(20, "b1"), gap(0, 20, "lost"), accept(30, "c1"), ask(31, "a"), [{"resume": None}], end(40, "b1"), end(41, "c1"), interrupted(30), ask(42, "b"), kept(0), slots=2)
    trace("no_place_while_all_carry", accept(0, "a1"), accept(1, "b1"), accept(2, "c1"), end(3, "a1"), end(4, "b1"), interrupted(1), slots=2)

    def earlier(at, station, offset, level, mesh=MESH):
        return {"at_ms": at, "earlier": {"station": station, "mesh": mesh, "run": "r", "offset": offset, "level_wall_ms": START + level}}

    trace("an_earlier_run_resumes", earlier(0, "a", 7, -5000), ask(0, "a"), kept(7), accept(20, "a1", "resumed", 9, count=2), resumed(2))
    trace("an_earlier_run_expired", earlier(0, "a", 7, -5000), accept(20, "a1", "expired", 9, "s"), gap(-5000, 20, "expired"), accept(30, "b1"))
    trace("an_earlier_run_and_another_station", earlier(0, "a", 7, -5000), earlier(0, "b", 4, -4000), accept(20, "c1"), gap(-5000, 20, "lost"))
    trace("an_earlier_run_of_two_meshes", earlier(0, "a", 7, -5000), earlier(0, "x", 4, -4000, OTHER), accept(20, "a1", "resumed", 9, count=1), accept(30, "x1", "expired", 4, "s", **n), gap(-4000, 30, "expired"))
    trace("an_earlier_run_from_the_future", earlier(0, "a", 7, 90_000), accept(20, "a1", "expired", 9, "s"), gap(0, 20, "expired"))
    for number in range(24):
        f.accept(f"random_{number}", random_trace(number))
    return f


def random_trace(number):
    dice = Dice(7000 + number)
    at, links, offsets = 0, {}, {}
    names = {"a": MESH, "b": MESH, "x": OTHER} if number % 2 else {"a": MESH, "b": MESH, "c": MESH}
    steps = []
    for fresh in range(60):
        at += dice.below(4000)
        station = "abcx"[dice.below(4)]
        if station not in names:
            continue
        link = links.get(station)
        what = dice.below(10)
        offset = offsets.get(station, 0)
        if link is None and what < 5:
            links[station] = f"{station}{fresh}"
            answer = ("none", "resumed", "resumed", "expired")[dice.below(4)]
            more = {"count": dice.below(4)} if answer == "resumed" else {}
            if answer != "resumed":
                offset, offsets[station] = 0, 0
            run = "r" if answer == "resumed" else f"r{fresh}"
            if answer == "resumed":
                run = offsets.get(station + "run", "r")
            offsets[station + "run"] = run
            offsets[station] = offset + dice.below(6)
            steps.append(ask(at, station))
            steps.append(accept(at, links[station], answer, offsets[station], run, mesh=names[station], since=max(0, at - dice.below(30)), **more))
        elif link is None:
            steps.append(timeout(at))
        elif what < 3:
            offsets[station] = offset + 1
            steps.append(event(at, link, offsets[station]))
        elif what < 5:
            steps.append(progress(at, link, offset, (0, 0, dice.below(5000))[dice.below(3)]))
        elif what < 6:
            to = dice.below(3000)
            peer = {"peer": "b"} if dice.below(3) == 0 else {}
            steps.append(skipped(at, link, to + dice.below(3000), to, dice.below(5), **peer))
        else:
            links.pop(station)
            steps.append(end(at, link, ("io", "liveness_lost", "refused")[dice.below(3)]))
    return {"config": {"slots": 6}, "steps": steps + [timeout(at + 130_000)]}
