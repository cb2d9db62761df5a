"""Naive publish outcomes: lists of tickets, windows and links, walked through at every step.

A link is what its station has not answered, and what of that its socket has not taken. Each station's link comes up at most once.
"""

from constants import K


class Outcomes:
    def __init__(self, config):
        self.replication = config["replication"]
        self.window = config["window"]
        self.tickets = config["tickets"]
        self.links = {}  # station: {"open": tickets without an answer, "waiting": those of them not written, "stalled"}
        self.open = {}  # ticket: what is known of it, while it is not settled
        self.seq = {}  # ticket: its number
        self.used = {"all": 0, "one": 0}
        self.displaced = []  # tickets that lost a link, once for each
        self.counts = {"published": 0, "blocked": 0, "no_station": 0, "written": 0}
        self.out, self.settled = [], []

    def step(self, step):
        self.out, self.settled = [], []
        self.time(step["at_ms"])
        (what,) = (key for key in ("up", "down", "stall", "flow", "publish", "answer", "cancel", "time") if key in step)
        getattr(self, what)(step[what], step)
        for station in sorted(self.links):
            link = self.links[station]
            while link["waiting"] and not link["stalled"]:
                ticket = link["waiting"].pop(0)
                self.counts["written"] += 1
                self.out.append({"write": [station, ticket, self.seq[ticket]]})
        return {"out": self.out + [{"settle": one} for one in sorted(self.settled, key=lambda one: one[0])]}

    def counters(self):
        return {**self.counts, "open": len(self.open)}

    # Time and links.

    def time(self, at, _=None):
        self.now = at
        for ticket in list(self.open):
            if at >= self.open[ticket]["until"]:
                self.settle(ticket, self.open[ticket]["best"])
        self.place()

    def up(self, station, _):
        self.links[station] = {"open": [], "waiting": [], "stalled": False}
        self.place()

    def down(self, station, _):
        lost = [ticket for ticket in self.links.pop(station)["open"] if ticket in self.open]
        for ticket in lost:
            one = self.open[ticket]
            one["asked"].remove(station)
            if one["route"] == "all":
                one["wanting"] += 1
                self.displaced.append(ticket)
        self.place()
        for ticket in lost:
            self.look(ticket)

    def stall(self, station, _):
        self.links[station]["stalled"] = True

    def flow(self, station, _):
        self.links[station]["stalled"] = False

    # Publications.

    def with_room(self):
        """Stations whose links have room: fewest unanswered first, then in their order."""
        return [station for _, station in sorted((len(link["open"]), station) for station, link in self.links.items() if len(link["open"]) < self.window)]

    def publish(self, route, _):
        if not self.links:
            self.counts["no_station"] += 1
            self.out.append({"refused": "no_station"})
            return
        wanted = 1 if route == "one" else min(self.replication, len(self.links))
        room = self.with_room()
        if len(room) < wanted or len(self.open) >= self.tickets:
            self.counts["blocked"] += 1
            self.out.append({"refused": "would_block"})
            return
        self.counts["published"] += 1
        self.used[route] += 1
        ticket = self.counts["published"]
        self.seq[ticket] = self.used[route]
        self.open[ticket] = {"route": route, "asked": [], "had": [], "wanting": 0, "best": ["unknown"], "until": self.now + K.publish_patience_ms}
        self.out.append({"ticket": ticket})
        for station in room[:wanted]:
            self.hand(ticket, station)

    def hand(self, ticket, station):
        self.links[station]["open"].append(ticket)
        self.links[station]["waiting"].append(ticket)
        self.open[ticket]["asked"].append(station)
        self.open[ticket]["had"].append(station)

    def place(self):
        """What lost a link goes to one it has not had, the oldest first."""
        for ticket in list(self.displaced):
            if ticket not in self.open:
                self.displaced.remove(ticket)
                continue
            room = [station for station in self.with_room() if station not in self.open[ticket]["had"]]
            if room:
                self.displaced.remove(ticket)
                self.open[ticket]["wanting"] -= 1
                self.hand(ticket, room[0])

    def answer(self, to, step):
        station, ticket = to
        self.links[station]["open"].remove(ticket)
        if ticket in self.open:
            one = self.open[ticket]
            one["asked"].remove(station)
            one["best"] = max(one["best"], [step["outcome"], *step.get("with", [])], key=self.rank)
            self.look(ticket)
        self.place()

    def rank(self, outcome):
        return K.outcome_order.split().index(outcome[0]), outcome[1] if outcome[0] == "routed" else 0

    def look(self, ticket):
        """Settled when all that were asked have answered, unless no station took it and it waits for another link."""
        if ticket in self.open:
            one = self.open[ticket]
            taken = one["best"][0] in K.outcome_taken.split()
            if not one["asked"] and (taken or not one["wanting"]):
                self.settle(ticket, one["best"])

    def cancel(self, ticket, _):
        if ticket in self.open:
            self.settle(ticket, ["cancelled"])
            self.place()
        else:
            self.out.append({"refused": "dead_handle"})

    def settle(self, ticket, outcome):
        for station in self.open.pop(ticket)["asked"]:
            link = self.links[station]
            if ticket in link["waiting"]:  # never written, so never answered
                link["waiting"].remove(ticket)
                link["open"].remove(ticket)
        self.settled.append([ticket, *outcome])
