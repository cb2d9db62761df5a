"""A naive station with one realm: a list of everything it admitted, searched from the beginning each time.

What is gone, by the items of a ring, the bytes of all rings or a publication's life, is marked. A position is covered when nothing after it
that its filter wants is marked.
"""

from constants import K
from model_wire import matches


def covers(filter_, topic):
    return matches(filter_.encode(), topic.encode())


class Resume:
    def __init__(self, config):
        self.items, self.bytes = config["items"], config["bytes"]
        self.at = 0
        self.runs = 0  # how many there were
        self.run = None
        self.readers = {}  # name → filter, what waits for it
        self.counts = {"resumed": 0, "expired": 0, "replayed": 0, "skipped": 0}
        self.begin()

    def begin(self):
        """A realm that is there for nobody."""
        self.run = None
        self.offset = 0
        self.admitted = []
        self.interests = []

    def step(self, step):
        self.at = step["at_ms"]
        self.end_recordings()
        if "publish" in step:
            return {"out": self.publish(**step["publish"])}
        if "subscribe" in step:
            return {"out": [self.subscribe(step["subscribe"], step["filter"], step.get("resume"))]}
        if "unsubscribe" in step:
            return {"out": self.unsubscribe(step["unsubscribe"])}
        if "read" in step:
            return {"out": self.read(step["read"])}
        if "restart" in step:
            self.readers = {}
            self.begin()
        return {"out": []}

    def counters(self):
        return self.counts

    # Who wants what.

    def end_recordings(self):
        ended = [one for one in self.interests if one["ends"] is not None and one["ends"] <= self.at]
        for one in ended:
            self.interests.remove(one)
            self.offset += K.resume_end_takes
        if ended and not self.interests:
            self.begin()
        for one in self.admitted:
            one["gone"] = one["gone"] or not self.wanted(one["topic"])

    def wanted(self, topic):
        return any(covers(one["filter"], topic) for one in self.interests)

    def subscribe(self, name, filter_, resume):
        if self.run is None:
            self.run = self.runs
            self.runs += 1
        interest = next((one for one in self.interests if one["filter"] == filter_), None)
        if interest is None:
            interest = {"filter": filter_, "floor": self.offset, "holders": 0}
            self.interests.append(interest)
        interest["holders"] += 1
        interest["ends"] = None
        reader = {"filter": filter_, "pending": []}
        self.readers[name] = reader
        out = {"position": {"run": self.run, "offset": self.offset}, "outcome": "none"}
        if resume is None:
            return out
        matching = [one for one in self.admitted if covers(filter_, one["topic"])]
        covered = max([interest["floor"]] + [one["offset"] for one in matching if self.lost(one)])
        if resume["run"] != self.run or not covered <= resume["offset"] <= self.offset:
            self.counts["expired"] += 1
            return {**out, "outcome": "expired", "oldest": covered + K.resume_oldest}
        reader["pending"] = [one for one in matching if one["offset"] > resume["offset"]]
        self.counts["resumed"] += 1
        self.counts["replayed"] += len(reader["pending"])
        return {**out, "outcome": "resumed", "count": len(reader["pending"])}

    def unsubscribe(self, name):
        filter_ = self.readers.pop(name)["filter"]
        interest = next(one for one in self.interests if one["filter"] == filter_)
        interest["holders"] -= 1
        if interest["holders"] == 0:
            interest["ends"] = self.at + K.resume_linger_ms
        return []

    # What is there.

    def expired(self, one):
        return one["at"] + one["ttl_ms"] + K.skew_ms < self.at

    def lost(self, one):
        return one["gone"] or self.expired(one)

    def here(self, topic):
        return [one for one in self.admitted if one["topic"] == topic and not one["gone"]]

    def publish(self, topic, bytes, ttl_ms=None):
        if not self.wanted(topic):
            return []
        here = self.here(topic)
        while here and self.expired(here[0]):
            here.pop(0)["gone"] = True
        self.offset += 1
        one = {"offset": self.offset, "topic": topic, "bytes": bytes, "at": self.at, "gone": False}
        one["ttl_ms"] = K.ttl_default_ms if ttl_ms is None else ttl_ms
        self.admitted.append(one)
        if len(here) + 1 > self.items:
            here[0]["gone"] = True
        while sum(other["bytes"] for other in self.admitted if not other["gone"]) > self.bytes:
            topics = sorted({other["topic"] for other in self.admitted})
            sizes = {topic: sum(other["bytes"] for other in self.here(topic)) for topic in topics}
            largest = max(topics, key=lambda topic: sizes[topic])
            assert list(sizes.values()).count(sizes[largest]) == 1, "no rule says which of two goes first"
            self.here(largest)[0]["gone"] = True
        for reader in self.readers.values():
            if covers(reader["filter"], topic):
                reader["pending"].append(one)
        return []

    def read(self, name):
        """Everything that waits, oldest first; what of a topic is lost at once, where the first of it would have come."""
        out, pending = [], self.readers[name]["pending"]
        while pending:
            first = pending[0]
            if not self.lost(first):
                out.append({"event": pending.pop(0)["offset"]})
                continue
            lost = []
            for one in [one for one in pending if one["topic"] == first["topic"]]:
                if not self.lost(one):
                    break
                lost.append(one)
                pending.remove(one)
            self.counts["skipped"] += len(lost)
            out.append({"skipped": len(lost), "first_at_ms": lost[0]["at"], "last_at_ms": lost[-1]["at"]})
        return out
