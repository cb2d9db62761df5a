"""Naive continuity of one subscription: a list of stations, searched from the start at each step.

`README.md` says what the traces assume.
"""

from constants import K

START = 1_790_000_000_000


def wall_of(step, key="at_ms", wall="wall_ms"):
    return step.get(wall, START + step[key])


class Continuity:
    def __init__(self, config):
        self.slots = config["slots"]
        self.stations = []  # one dict for each that carries or whose position is kept
        self.since = None  # (at, wall) of the interruption that is not over
        self.recovered = 0
        self.deadline = None
        self.best = None  # how far the subscription was read by those that ended in this period
        self.counts = {"interrupted": 0, "resumed": 0, "gap": 0}

    def step(self, step):
        self.at, self.wall = step["at_ms"], wall_of(step)
        (what,) = [key for key in step if key not in ("at_ms", "wall_ms")]
        out = getattr(self, what)(step[what]) or []
        for one in out:
            for kind in self.counts:
                self.counts[kind] += kind in one
        return {"out": out, "deadline_ms": self.due()}

    def counters(self):
        return self.counts

    # What is known of the stations.

    def on(self, link):
        return next((one for one in self.stations if one["link"] == link), None)

    def live(self):
        return [one for one in self.stations if one["link"] is not None]

    def waited(self):
        """Meshes without which an interruption is not over."""
        return [one for one in self.owing() if one["in_period"]]

    def owing(self):
        return [one for one in self.stations if one["link"] is None and one["owes"] and not one["told"]]

    def next_lost(self):
        """The mesh that is given up next while others carry and nothing is interrupted, and when."""
        if self.since or not self.live():
            return None
        last = {}
        for one in self.owing():
            last[one["mesh"]] = max(one["ended"], last.get(one["mesh"], 0))
        return min(((ended + K.continuity_linger_ms, mesh) for mesh, ended in last.items()), default=None)

    def due(self):
        lost = self.next_lost()
        return lost[0] if lost else self.deadline

    def whole_again(self, mesh):
        return min((one["whole_since"] for one in self.live() if one["mesh"] == mesh), default=None)

    def kept(self, station):
        dead = [one for one in self.stations if one["link"] is None and one["station"] == station]
        return max(dead, key=lambda one: one["level"][0], default=None)

    def shown(self, then):
        """A moment of the past on the wall of now, the earlier where the clocks disagree."""
        return min(then[1], self.wall - (self.at - then[0]))

    def window(self, since, reason):
        gap = {"from": self.shown(since), "to": self.wall, "reason": reason}
        return [{"gap": gap}]

    def over(self):
        self.since, self.deadline, self.best, self.recovered = None, None, None, 0
        for one in self.stations:
            if one["link"] is None:
                one["in_period"] = False

    # What happens.

    def ask(self, station):
        one = self.kept(station)
        return [{"resume": one and {"run": one["run"], "offset": one["offset"]}}]

    def accept(self, given):
        if self.on(given["link"]):
            return None
        asked = (given["since_ms"], wall_of(given, "since_ms", "since_wall_ms"))
        before = self.kept(given["station"])
        if before is None and len(self.stations) >= self.slots:
            dead = [one for one in self.stations if one["link"] is None]
            if not dead:
                return None
            self.stations.remove(min(dead, key=lambda one: one["level"][0]))
        mates = [one for one in self.stations if one["mesh"] == given["mesh"]]
        owed = min((one["level"] for one in mates if one["owes"]), default=None)
        goes_on = (
            given["resume"] == "resumed" and before is not None and given["run"] == before["run"] and given["offset"] >= before["offset"]
        )
        if goes_on:
            was_waited = any(one["mesh"] == given["mesh"] for one in self.waited())
            before.update(link=given["link"], mesh=given["mesh"], in_period=True, told=False, lagging=False, floor=before["level"])
            before["replay"] = {"until": given["offset"], "left": given["count"], "asked": asked, "told": False}
            self.replayed(before, before["offset"])
            for one in mates:
                one["owes"] = False
            if self.since and was_waited:
                self.recovered += given["count"]
            return self.resumed()
        if before is not None:
            self.stations.remove(before)
        self.stations.append(
            {
                "station": given["station"],
                "mesh": given["mesh"],
                "link": given["link"],
                "run": given["run"],
                "offset": given["offset"],
                "level": asked,
                "floor": asked,
                "lagging": False,
                "whole_since": self.at,
                "replay": None,
                "owes": False,
                "told": False,
                "in_period": True,
            }
        )
        own = before is not None and given["resume"] != "none"
        if not self.since and not (own and owed):
            return None
        for one in mates:
            one["owes"] = False
        since = min(one for one in (self.since, owed) if one)
        self.over_if_open()
        return self.window(since, "expired" if own else "lost")

    def over_if_open(self):
        if self.since:
            self.over()

    def resumed(self):
        if not self.since:
            return None
        waited = self.waited()
        if waited:
            if self.deadline is None:
                last = max(one["ended"] for one in waited)
                self.deadline = max(last + K.continuity_linger_ms, self.at + K.continuity_grace_ms)
            return None
        recovered = self.recovered
        self.over()
        for one in self.live():
            if one["replay"]:
                one["replay"]["told"] = True
        return [{"resumed": recovered}]

    def replayed(self, one, offset):
        """Ends a replay that has come."""
        replay = one["replay"]
        if replay and (replay["left"] == 0 or offset >= replay["until"]):
            one["offset"] = max(one["offset"], replay["until"])
            one["level"] = replay["asked"]
            one["replay"] = None

    def event(self, given):
        one = self.on(given["link"])
        if one:
            one["offset"] = max(one["offset"], given["offset"])
            if one["replay"] and given["offset"] > 0:
                if given["offset"] <= one["replay"]["until"]:
                    one["replay"]["left"] = max(0, one["replay"]["left"] - 1)
                self.replayed(one, given["offset"])

    def progress(self, given):
        one = self.on(given["link"])
        if one:
            one["offset"] = max(one["offset"], given["offset"])
            self.replayed(one, given["offset"])
            if not one["replay"]:
                said = (self.at, self.wall)
                if "said_ms" in given:
                    said = min(said, (given["said_ms"], wall_of(given, "said_ms", "said_wall_ms")))
                level = (said[0] - given["behind_ms"], said[1] - given["behind_ms"])
                one["level"] = max(one["floor"], level)
                one["lagging"] = given["behind_ms"] > 0

    def end(self, given):
        one = self.on(given["link"])
        if one is None:
            return None
        told = one["replay"] is not None and one["replay"]["told"]
        broken = one["lagging"] or one["replay"] is not None
        hole = one["level"][0] if broken else self.at
        one.update(link=None, replay=None, ended=self.at)
        mates = [mate for mate in self.stations if mate["mesh"] == one["mesh"] and mate is not one]
        carrying = [mate for mate in mates if mate["link"] is not None]
        one["owes"] = not any(mate["whole_since"] <= hole for mate in carrying)
        if not carrying:
            one["level"] = max([one["level"]] + [mate["level"] for mate in mates if mate["in_period"]])
        self.best = max(self.best, one["level"]) if self.best else one["level"]
        if self.since:
            if not self.live():
                self.deadline = None
            return None
        if not self.live():
            self.since = self.best
        elif told and one["owes"]:
            self.since = one["level"]
            self.deadline = self.at + K.continuity_linger_ms
        else:
            return None
        self.recovered = 0
        return [{"interrupted": {"from": self.shown(self.since), "reason": given["reason"]}}]

    def skipped(self, given):
        one = self.on(given["link"])
        if one is None:
            return None
        begin, end = self.at - given["from"], self.at - given["to"]
        one["whole_since"] = max(one["whole_since"], end)
        if one["replay"]:
            one["replay"]["left"] = max(0, one["replay"]["left"] - given["count"])
        for other in self.live():
            stands_in = other["station"] == given["peer"] if "peer" in given else other["mesh"] == one["mesh"]
            if other is not one and stands_in and other["whole_since"] <= begin:
                return None
        reason = "peer_interrupted" if "peer" in given else "station_skipped"
        gap = {"from": self.wall - given["from"], "to": self.wall - given["to"], "reason": reason}
        if given["count"] > 0:
            gap["count"] = given["count"]
        return [{"gap": gap}]

    def timeout(self, _):
        due = self.due()
        if due is None or due > self.at:
            return None
        lost = self.next_lost()
        gone = [one for one in self.owing() if one["mesh"] == lost[1]] if lost else self.waited()
        since = min([one["level"] for one in gone] + ([self.since] if self.since else []))
        ends = [self.whole_again(one["mesh"]) for one in gone]
        end = max((self.at if again is None else again for again in ends), default=self.at)
        for one, again in zip(gone, ends):
            one["owes"] = one["told"] = again is None
            if again is None:
                one["level"] = (self.at, self.wall)
        if not lost:
            self.over()
        begin = self.shown(since)
        return [{"gap": {"from": begin, "to": max(begin, self.wall - (self.at - end)), "reason": "lost"}}]

    def earlier(self, given):
        """What an earlier run had read; the name of the step is `earlier`."""
        ago = max(0, self.wall - given["level_wall_ms"])
        level = (max(0, self.at - ago), self.wall - ago)
        self.stations.append(
            {
                "station": given["station"],
                "mesh": given["mesh"],
                "link": None,
                "run": given["run"],
                "offset": given["offset"],
                "level": level,
                "floor": level,
                "lagging": False,
                "whole_since": 0,
                "replay": None,
                "owes": True,
                "told": False,
                "in_period": True,
                "ended": self.at,
            }
        )
        self.since = max(self.since, level) if self.since else level
        return None
