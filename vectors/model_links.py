"""Naive liveness and redial: a clock that is wound up and read, and a generator written down from its definition.

Each machine takes the steps of a trace and answers what came out of each. `README.md` says what the traces assume.
"""

import hashlib

from constants import K
from model_cbor import enc


def probe_bytes():
    """A probe's frame on the wire: its length and its body."""
    return 4 + len(enc({"version": K.version, "frame_type": "ping", "nonce": bytes(K.probe_bytes)}))


class Liveness:
    """One end of a link that came up at 0."""

    def __init__(self, config):
        self.every = config["probe_every_ms"]
        self.now = 0
        self.reads = True
        self.clock = {"left": self.every}  # None while a probe waits to be written
        self.probe = None  # the number of the one that is not answered
        self.waits = None  # bytes up to its last one
        self.early = False
        self.slept = False
        self.row = 0
        self.unwritten = 0
        self.stuck_since = None
        self.ended = None
        self.counts = {"probes": 0, "missed": 0, "stray": 0}

    def step(self, step):
        if self.clock is not None and self.reads:
            self.clock["left"] -= step["at_ms"] - self.now
        self.now = step["at_ms"]
        out = []
        if self.ended is None:
            for name in ("queue", "write", "pong", "reads", "slept", "timeout"):
                if name in step:
                    getattr(self, name if name not in ("reads", "slept") else "on_" + name)(step[name], out)
        return {"out": out, "deadline_ms": self.deadline()}

    def deadline(self):
        if self.ended is not None:
            return None
        times = []
        if self.clock is not None and self.reads:
            times.append(self.now + max(self.clock["left"], 0))
        if self.stuck_since is not None:
            times.append(self.stuck_since + K.stuck_intervals * self.every)
        return min(times) if times else None

    def look(self):
        if self.unwritten > 0 and self.stuck_since is None:
            self.stuck_since = self.now

    def ask(self, out):
        self.counts["probes"] += 1
        self.probe, self.clock, self.early = self.counts["probes"], None, False
        self.unwritten += probe_bytes()
        self.waits = self.unwritten
        self.look()
        out.append("probe")

    def queue(self, count, out):
        self.unwritten += count

    def write(self, count, out):
        count = self.unwritten if count == "all" else min(count, self.unwritten)
        self.unwritten -= count
        if count > 0:
            self.stuck_since = None
        self.look()
        if self.waits is None:
            return
        self.waits -= count
        if self.waits <= 0:
            self.waits = None
            self.clock = {"left": K.slept_answer_ms if self.slept else self.every}
            if self.early:
                self.settle()

    def settle(self):
        self.probe, self.row = None, 0
        if self.slept:
            self.slept, self.clock = False, {"left": self.every}

    def pong(self, number, out):
        good = number == self.probe and not (self.waits is not None and self.early)
        if not good:
            self.counts["stray"] += 1
        elif self.waits is None:
            self.settle()
        else:
            self.early = True
        out.append("answered" if good else "stray")

    def on_reads(self, reads, out):
        self.reads = reads
        self.look()

    def on_slept(self, _, out):
        self.slept = True
        if self.waits is None:
            self.ask(out)
        elif self.stuck_since is None:
            self.stuck_since = self.now

    def timeout(self, _, out):
        self.look()
        if self.stuck_since is not None and self.now - self.stuck_since >= K.stuck_intervals * self.every:
            self.end("write_stalled", out)
        elif self.reads and self.clock is not None and self.clock["left"] <= 0:
            if self.probe is not None:
                self.row += 1
                self.counts["missed"] += 1
                if self.slept or self.row == K.probe_misses:
                    return self.end("liveness_lost", out)
            self.ask(out)

    def end(self, reason, out):
        self.ended = reason
        out.append(reason)

    def counters(self):
        return self.counts


class Xoshiro:
    """xoshiro256++ from 32 bytes, four words with the lowest byte first."""

    def __init__(self, seed):
        self.s = [int.from_bytes(seed[n : n + 8], "little") for n in range(0, 32, 8)]

    def next(self):
        s, mask = self.s, 2**64 - 1
        rotate = lambda x, k: (x << k | x >> (64 - k)) & mask
        result = (rotate((s[0] + s[3]) & mask, 23) + s[0]) & mask
        shifted = s[1] << 17 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= shifted
        s[3] = rotate(s[3], 45)
        return result

    def between(self, low, high):
        return low + (self.next() * (high - low + 1) >> 64)


class Backoff:
    """The waits before one station is dialled again."""

    def __init__(self, config):
        label = "%s %d" % (K.redial_label, config["station"])
        self.jitter = Xoshiro(hashlib.sha256(bytes.fromhex(config["seed"]) + label.encode()).digest())
        self.last = K.redial_least_ms
        self.waits = []

    def step(self, step):
        if step["lived_ms"] >= self.last:
            self.last = K.redial_least_ms
        least = K.redial_away_ms if step["away"] else K.redial_least_ms
        wait = self.jitter.between(least, max(self.last, least) * K.redial_growth)
        self.last = min(wait, K.redial_most_ms)
        self.waits.append(self.last)
        return {"out": self.last}

    def counters(self):
        return {"waits": len(self.waits), "longest": max(self.waits)}
