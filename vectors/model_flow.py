"""Naive dedup, order, guess and ring: plain lists, linear search, one step at a time.

Each machine takes the steps of a trace and answers what came out of each. `README.md` says what the traces assume.
"""

from constants import K


def run(machine, entry):
    """The steps of a trace with what each brought, and the counters at the end."""
    one = machine(entry["config"])
    steps = []
    for step in entry["steps"]:
        steps.append({**step, **one.step(step)})
    return {"steps": steps, "expect": one.counters()}


class Dedup:
    """Publications seen, kept until both clocks have passed their life."""

    def __init__(self, config):
        self.capacity = config["capacity"]
        self.entries = []  # (hash, publisher, expires_at, recorded at, left then)
        self.counts = {"new": 0, "duplicate": 0, "expired": 0, "unverified": 0, "full": 0}

    def step(self, step):
        at, wall = step["at_ms"], step["wall_ms"]
        self.entries = [one for one in self.entries if not (wall > one[2] and at - one[3] >= one[4])]
        if "forget" in step:
            before = len(self.entries)
            self.entries = [one for one in self.entries if one[0] != step["forget"]]
            return {"out": "forgotten" if len(self.entries) < before else "absent"}
        out = self.offer(step["offer"], at, wall)
        self.counts[out] += 1
        return {"out": out}

    def offer(self, offer, at, wall):
        if wall > offer["expires_at"]:
            return "expired"
        if any(one[0] == offer["hash"] for one in self.entries):
            return "duplicate"
        if not offer.get("verifies", True):
            return "unverified"
        used = len(self.entries) + 1
        own = sum(one[1] == offer["publisher"] for one in self.entries) + 1
        if used > self.capacity:
            return "full"
        quarter = -(-self.capacity // K.dedup_quarter)
        if len(self.entries) * K.dedup_half > self.capacity and own > quarter:
            return "full"
        self.entries.append((offer["hash"], offer["publisher"], offer["expires_at"], at, offer["expires_at"] - wall))
        return "new"

    def counters(self):
        return {**self.counts, "remembered": len(self.entries)}


def take(ranges, seq):
    """Takes one number out of a list of ranges; whether it was there."""
    for at, (first, last, *rest) in enumerate(ranges):
        if first <= seq <= last:
            parts = [[first, seq - 1, *rest], [seq + 1, last, *rest]]
            ranges[at : at + 1] = [part for part in parts if part[0] <= part[1]]
            return True
    return False


class Stream:
    """One epoch of a lane."""

    def __init__(self, epoch):
        self.epoch = epoch
        self.next = None  # until the order starts
        self.held = []  # (seq, arrived at)
        self.missing = []  # first, last: given up, or before the start
        self.heard = 0
        self.highest = 0
        self.rose = 0  # when a number above all before came

    def start(self, seq):
        self.next = seq
        if seq > 1:
            self.missing.append([1, seq - 1])


class Order:
    """One lane: one publisher and topic in one subscription."""

    def __init__(self, config):
        self.mode = config["mode"]
        self.timeout_ms = config["timeout_ms"]
        self.buffer = config["buffer"]
        self.accepted_wall_ms = config["accepted_wall_ms"]
        self.sparse = config["sparse"]
        self.streams = []
        self.both_since = None
        self.told_two_counters = False
        self.newest = None  # latest_only: epoch, seq
        self.newest_heard = 0
        self.lower = None  # latest_only: epoch, how many of its facts
        self.counts = {"facts": 0, "late": 0, "skipped": 0, "superseded": 0, "conflicts": 0}
        self.out = []

    def step(self, step):
        self.out = []
        if "timeout" in step:
            self.time(step["timeout"])
        elif "close" in step:
            self.close(step["close"])
        elif self.mode == "latest_only":
            self.latest(step["offer"]["epoch"], step["offer"]["seq"], step["at_ms"])
        else:
            self.offer(step["offer"]["epoch"], step["offer"]["seq"], step["at_ms"])
        deadline = self.deadline()
        if "timeout" in step:
            assert deadline is None or deadline > step["timeout"]
        return {"out": self.out, "deadline_ms": deadline}

    def counters(self):
        return self.counts

    # What comes out.

    def fact(self, epoch, seq, late):
        self.counts["facts"] += 1
        self.counts["late"] += late
        self.out.append({"fact": [epoch, seq], "late": late})

    def deliver(self, stream, seq, late=False):
        """Facts of every epoch but the greatest are late."""
        late = late or any(other.epoch > stream.epoch for other in self.streams)
        self.fact(stream.epoch, seq, late)

    def skip(self, stream, first, last):
        stream.missing.append([first, last])
        if not self.sparse:
            self.counts["skipped"] += last - first + 1
            self.out.append({"skipped": [stream.epoch, first, last]})

    def conflict(self, epoch, seq):
        self.counts["conflicts"] += 1
        self.out.append({"conflict": [epoch, seq, seq, 1]})

    # `ordered` and `as_arrives`.

    def offer(self, epoch, seq, at):
        stream = self.stream_of(epoch, at)
        stream.heard = at
        if seq > stream.highest:
            stream.highest, stream.rose = seq, at
        self.admit(stream, epoch, seq, at)
        self.two_counters()

    def admit(self, stream, epoch, seq, at):
        if any(seq == one for one, _ in stream.held):
            self.conflict(epoch, seq)
        elif stream.next is None or seq >= stream.next:
            if self.mode == "as_arrives":
                self.deliver(stream, seq)
            stream.held.append((seq, at))
            if stream.next is None and seq == 1:
                stream.start(1)
            self.drain(stream)
            if len(stream.held) >= self.buffer:
                self.give_up_the_head(stream)
        elif take(stream.missing, seq):
            self.deliver(stream, seq, late=True)
        else:
            self.conflict(epoch, seq)

    def stream_of(self, epoch, at):
        for stream in self.streams:
            if stream.epoch == epoch:
                return stream
        if self.streams:
            greater = all(epoch > stream.epoch for stream in self.streams)
            if len(self.streams) == K.order_epochs:
                oldest = min(self.streams, key=lambda stream: stream.heard)
                while oldest.held:
                    self.give_up_the_head(oldest)
                self.streams.remove(oldest)
            self.out.append({"restarted": {"epoch": epoch, "greater": greater}})
            self.both_since = at
        stream = Stream(epoch)
        self.streams.append(stream)
        if epoch > (self.accepted_wall_ms + K.order_join_ms) * 1000:
            stream.start(1)
        return stream

    def two_counters(self):
        if len(self.streams) == 2 and not self.told_two_counters:
            if all(stream.rose - self.both_since >= K.order_two_counters_ms for stream in self.streams):
                self.told_two_counters = True
                self.out.append({"two_counters": True})

    def drain(self, stream):
        """Delivers the run at the front; `as_arrives` did that when its facts came, and keeps their places."""
        while any(seq == stream.next for seq, _ in stream.held):
            stream.held = [one for one in stream.held if one[0] != stream.next]
            if self.mode != "as_arrives":
                self.deliver(stream, stream.next)
            stream.next += 1

    def give_up_the_head(self, stream):
        """Starts the order at the lowest held fact, or skips to it."""
        lowest = min(seq for seq, _ in stream.held)
        if stream.next is None:
            stream.start(lowest)
        else:
            self.skip(stream, stream.next, lowest - 1)
            stream.next = lowest
        self.drain(stream)

    def close(self, place):
        """A verified fact that was refused or dropped: its place is closed, nothing is delivered."""
        stream = next(one for one in self.streams if one.epoch == place["epoch"])
        if place["seq"] == stream.next:
            stream.next += 1
            self.drain(stream)
        else:
            take(stream.missing, place["seq"])

    # Time.

    def deadline_of(self, stream):
        times = [at for _, at in stream.held]
        return min(times) + self.timeout_ms if times else None

    def deadline(self):
        times = [self.deadline_of(stream) for stream in self.streams]
        return min((time for time in times if time is not None), default=None)

    def time(self, now):
        while self.deadline() is not None and self.deadline() <= now:
            due = [one for one in self.streams if self.deadline_of(one) == self.deadline()]
            self.give_up_the_head(min(due, key=lambda stream: stream.epoch))

    # `latest_only`.

    def latest(self, epoch, seq, at):
        if self.newest is None:
            return self.newer(epoch, seq, at)
        if epoch > self.newest[0]:
            self.out.append({"restarted": {"epoch": epoch, "greater": True}})
            return self.newer(epoch, seq, at)
        if epoch == self.newest[0]:
            if seq > self.newest[1]:
                return self.newer(epoch, seq, at)
            self.newest_heard = at
            if seq == self.newest[1]:
                return self.conflict(epoch, seq)
        else:
            self.lower = (epoch, 1 + (self.lower[1] if self.lower and self.lower[0] == epoch else 0))
            if self.lower[1] >= K.latest_takeover_facts and at - self.newest_heard >= K.latest_takeover_ms:
                self.out.append({"restarted": {"epoch": epoch, "greater": False}})
                return self.newer(epoch, seq, at)
        self.counts["superseded"] += 1

    def newer(self, epoch, seq, at):
        self.newest, self.newest_heard, self.lower = (epoch, seq), at, None
        self.fact(epoch, seq, False)


class Guess:
    """Publications without an epoch: which numbering of its publisher a number belongs to."""

    def __init__(self, config):
        self.timeout_ms = config["timeout_ms"]
        self.kept = []  # numbering, when it began, highest number, when it was heard last
        self.numberings = 0

    def step(self, step):
        seq, at = step["offer"]["seq"], step["at_ms"]
        one = self.find(seq, at)
        if one is None:
            if len(self.kept) == K.order_epochs:
                self.kept.remove(min(self.kept, key=lambda one: one["heard"]))
            one = {"numbering": self.numberings, "began": at, "starts_at_1": seq == 1, "highest": seq}
            self.kept.append(one)
            self.numberings += 1
        one["highest"], one["heard"] = max(one["highest"], seq), at
        one["starts_at_1"] = one["starts_at_1"] or seq == 1
        return {"out": one["numbering"]}

    def find(self, seq, at):
        """The latest numbering whose next number is near, or one that still hears its first facts."""
        latest_first = sorted(self.kept, key=lambda one: -one["numbering"])
        first_facts = [one for one in latest_first if at - one["began"] < self.timeout_ms and not one["starts_at_1"]]
        for one in latest_first:
            if one not in first_facts and abs(seq - (one["highest"] + 1)) <= K.guess_jump:
                return one
        return first_facts[0] if first_facts else None

    def counters(self):
        return {"numberings": self.numberings}


class Ring:
    """One ring with absolute positions, and its readers."""

    def __init__(self, config):
        self.items, self.bytes = config["items"], config["bytes"]
        self.held = []  # (position, bytes)
        self.newest = K.ring_first - 1
        self.readers = {}  # name → the next position
        self.closed = False
        self.counts = {"pushed": 0, "read": 0, "lagged": 0, "gave_up": 0}

    def oldest(self):
        return self.held[0][0] if self.held else self.newest + 1

    def give_up(self):
        self.held.pop(0)
        self.counts["gave_up"] += 1

    def step(self, step):
        if "push" in step:
            self.newest += 1
            self.counts["pushed"] += 1
            self.held.append((self.newest, step["push"]))
            while len(self.held) > self.items + K.ring_slack or sum(size for _, size in self.held) > self.bytes:
                self.give_up()
            out = [{"pushed": self.newest}]
        elif "give_up" in step:
            for _ in range(step["give_up"]):
                self.give_up()
            out = []
        elif "reader" in step:
            self.readers[step["reader"]] = self.newest + 1
            out = []
        elif "resume" in step:
            out = [self.resume(step["resume"], step["after"])]
        elif "close" in step:
            self.closed = True
            out = []
        else:
            out = self.read(step["read"], step.get("most"))
        return {"out": out, "oldest": self.oldest(), "newest": self.newest}

    def resume(self, name, after):
        if after > self.newest or after + 1 < self.oldest():
            return {"expired": self.oldest()}
        self.readers[name] = after + 1
        return {"resumed": self.newest - after}

    def read(self, name, most):
        """Everything up to the newest, or `most` items."""
        out = []
        lag = self.oldest() - self.readers[name]
        if lag > 0:
            out.append({"lag": lag})
            self.counts["lagged"] += lag
            self.readers[name] += lag
        while self.readers[name] <= self.newest and most != 0:
            out.append({"item": self.readers[name]})
            self.counts["read"] += 1
            self.readers[name] += 1
            most = None if most is None else most - 1
        if self.closed and self.readers[name] > self.newest:
            out.append({"end": True})
        return out

    def counters(self):
        return self.counts
