"""Naive keys of a sealed group: WIRE.md section 6.2. Lists, linear search, everything worked out anew at each step."""

import hashlib

from constants import K
from model_cbor import Refused, enc, walk
from model_links import Xoshiro

TIMES = ("issued_at", "publish_until", "accept_until")


def question(entry):
    which = "current" if entry["which"] == "current" else bytes.fromhex(entry["which"])
    return {"cbor": enc({"epoch": which, "prefix": entry["prefix"]}).hex()}


def well_formed(value, prefix):
    """The answer as policy and periods, if it is one."""
    if type(value) is not dict or value.get("prefix") != prefix or value.get("policy") not in K.keys_policies.split():
        raise Refused("malformed")
    if type(value.get("epochs")) is not list:
        raise Refused("malformed")
    for period in value["epochs"]:
        if type(period) is not dict:
            raise Refused("malformed")
        for name, length in (("id", K.keys_id_bytes), ("key", K.keys_secret_bytes)):
            if type(period.get(name)) is not bytes or len(period[name]) != length:
                raise Refused("malformed")
        for name in TIMES:
            if type(period.get(name)) is not int or not 0 <= period[name] < K.number_high + 1:
                raise Refused("malformed")
    return value["policy"], value["epochs"]


def check(which, periods, now):
    """The rules of an answer, in their order."""
    most = K.keys_most if which == "current" else 1
    if not 1 <= len(periods) <= most:
        raise Refused("count")
    for period in periods:
        if not K.keys_rotation_low <= period["publish_until"] - period["issued_at"] <= K.keys_rotation_high:
            raise Refused("rotation")
        if period["accept_until"] != period["publish_until"] + K.keys_accept_ms:
            raise Refused("acceptance")
    first, rest = periods[0], periods[1:]
    for other in rest:
        if other["issued_at"] != first["publish_until"] or other["id"] == first["id"]:
            raise Refused("not_contiguous")
    if which == "current":
        good = first["issued_at"] <= now + K.skew_ms and now < first["publish_until"] + K.skew_ms
    else:
        if first["id"] != bytes.fromhex(which):
            raise Refused("not_asked")
        ahead = (first["publish_until"] - first["issued_at"]) // K.keys_window
        good = first["issued_at"] <= now + K.skew_ms + ahead and now <= first["accept_until"] + K.skew_ms
    if not good:
        raise Refused("not_now")


def answer(entry):
    try:
        value, _ = walk(bytes.fromhex(entry["cbor"]), "always")
    except Refused:
        raise Refused("malformed") from None
    policy, periods = well_formed(value, entry["prefix"])
    check(entry["which"], periods, entry["now"])
    return {"policy": policy, "ids": [period["id"].hex() for period in periods]}


def repull(issued_at, publish_until, draw):
    window = (publish_until - issued_at) // K.keys_window
    return publish_until - window + (window * draw >> 64)


def when(entry):
    return {"at": repull(entry["issued_at"], entry["publish_until"], int(entry["draw"], 16))}


def waits(failures, rotation):
    return min(K.keys_backoff_ms << (failures - 1), max(rotation // K.keys_window, K.keys_backoff_ms))


def backoff(entry):
    return {"waits": [waits(n, entry["rotation"]) for n in range(1, entry["failures"] + 1)]}


class Keyring:
    """The keys of one group as a member holds them."""

    def __init__(self, config):
        self.draws = Xoshiro(hashlib.sha256(bytes.fromhex(config["seed"]) + config["label"].encode()).digest())
        for _ in range(config["drawn"]):
            self.draws.next()
        self.room = config["pulls"]
        self.periods, self.pulls, self.asks = [], [], []
        self.policy, self.rotation = None, K.keys_backoff_usual_ms * K.keys_window
        self.joined, self.current, self.next = False, None, None
        self.not_before, self.failures, self.failed = 0, 0, None

    def live(self):
        return [one for one in self.periods if not one["over"]]

    def newest(self):
        return max(self.live(), key=lambda one: one["issued_at"], default=None)

    def left(self, one, until):
        """When, by the monotonic clock, that much of the wall's time has gone by since it was taken."""
        return one["taken"][0] + max(until - one["taken"][1], 0)

    def last(self, one):
        return one["accept_until"] + K.skew_ms

    def act(self):
        for one in self.live():
            one["over"] = self.wall > self.last(one) or self.mono >= self.left(one, self.last(one) + 1)
        for pull in self.pulls:
            if pull["state"] == "asked" and pull["until"] <= self.mono:
                pull.update(state="failed", reason="no_distributor")
        if self.current is not None and self.current <= self.mono:
            self.fail("no_distributor")
        newest = self.newest()
        stale = self.joined and self.policy and not self.failed and self.mono >= self.not_before and (newest is None or newest["publish_until"] <= self.wall)
        if stale or self.next is not None and self.next <= self.mono:
            self.pull()

    def pull(self):
        if self.current is None:
            self.current, self.next = self.mono + K.keys_patience_ms, None
            self.asks.append("current")

    def fail(self, reason):
        self.asks = [ask for ask in self.asks if ask != "current"]
        self.current, self.failed = None, reason
        self.failures += 1
        self.next = self.mono + waits(self.failures, self.rotation)

    def known(self, of):
        own = [pull for pull in self.pulls if pull["id"] == of]
        for good in (lambda pull: pull["state"] == "asked", lambda pull: pull["state"] == "denied" and pull["until"] > self.mono, lambda pull: pull["state"] == "failed"):
            for pull in own:
                if good(pull):
                    return pull
        return None

    def ask(self, of, by):
        own = [pull["counts"] for pull in self.pulls if pull["by"] == by and pull["counts"] > self.mono]
        if len(own) >= K.keys_per_publisher:
            return False
        if len(self.pulls) >= self.room:
            spare = [pull for pull in self.pulls if pull["state"] != "asked" and pull["counts"] <= self.mono]
            if not spare:
                return False
            kept = lambda pull: max(pull["until"], pull["counts"]) if pull["state"] == "denied" else pull["counts"]
            self.pulls.remove(min(spare, key=kept))
        counts = own[0] if own else self.mono + self.rotation
        self.pulls.append({"id": of, "by": by, "counts": counts, "state": "asked", "until": self.mono + K.keys_patience_ms})
        self.asks.append(of)
        return True

    def find(self, of):
        return next((one for one in self.periods if one["id"].hex() == of), None)

    def want(self, given):
        known = self.known(given["id"])
        if self.find(given["id"]) is None and self.joined and self.policy and (known is None or known["state"] == "failed"):
            self.ask(given["id"], given["by"])
        return "wanted"

    def open(self, given):
        held = self.find(given["id"])
        if held is not None:
            return "period_expired" if held["over"] else "held"
        if not self.joined:
            return "no_group"
        if self.policy is None:
            return "waiting" if self.current is not None else self.failed
        known = self.known(given["id"])
        if known is not None:
            return "waiting" if known["state"] == "asked" else known["reason"]
        return "waiting" if self.ask(given["id"], given["by"]) else "unknown_period"

    def seal(self, _):
        good = [one for one in self.live() if one["issued_at"] <= self.wall < one["publish_until"] and self.mono < self.left(one, one["publish_until"])]
        if good:
            return max(good, key=lambda one: one["issued_at"])["id"].hex()
        if not self.joined:
            return "no_group"
        if self.current is None and not self.failed and self.mono >= self.not_before:
            self.pull()
        return "pending" if self.current is not None else self.failed or "no_distributor"

    def is_asked(self, which):
        if which == "current":
            return self.current is not None
        return any(pull["id"] == which and pull["state"] == "asked" for pull in self.pulls)

    def settle(self, which, **state):
        self.asks = [ask for ask in self.asks if ask != which]
        next(pull for pull in self.pulls if pull["id"] == which and pull["state"] == "asked").update(state)

    def give(self, given):
        which = given["which"]
        if not self.is_asked(which):
            return "not_asked"
        policy, periods = well_formed(walk(bytes.fromhex(given["cbor"]), "always")[0], given["prefix"])
        try:
            check(which, periods, self.wall)
        except Refused as refused:
            self.refuse({"which": which, "reason": "no_distributor"})
            return refused.reason
        for period in periods:
            held = self.find(period["id"].hex())
            if held is not None and not held["over"]:
                continue
            if held is not None:
                self.periods.remove(held)
            self.periods.append({**period, "over": False, "taken": (self.mono, self.wall)})
        order = K.keys_policies.split()
        self.policy = max(policy, self.policy or policy, key=order.index)
        if which != "current":
            self.settle(which, state="given")
            return "given"
        self.asks = [ask for ask in self.asks if ask != "current"]
        self.rotation = periods[0]["publish_until"] - periods[0]["issued_at"]
        self.current, self.failures, self.failed = None, 0, None
        self.not_before = self.mono + self.rotation // K.keys_shortest_part
        newest = self.newest()
        draw = self.draws.next()
        at = repull(newest["issued_at"], newest["publish_until"], draw)
        self.next = max(self.mono + max(at - self.wall, 0), self.not_before)
        return "given"

    def refuse(self, given):
        which, reason = given["which"], given["reason"]
        if not self.is_asked(which):
            return "not_asked"
        if which == "current":
            self.fail(reason)
        elif reason in ("unknown_period", "period_expired"):
            self.settle(which, state="denied", reason=reason, until=self.mono + K.keys_remembered_ms)
        else:
            self.settle(which, state="failed", reason=reason)
        return "refused"

    def join(self, _):
        if not self.joined:
            self.joined = True
            self.pull()
        return "joined"

    def renew(self, _):
        for pull in self.pulls:
            if pull["state"] == "failed":
                pull["state"] = "given"
        if self.failed:
            self.failures = 0
            self.pull()
        return "renewed"

    def leave(self, _):
        self.periods, self.pulls, self.asks, self.policy, self.joined = [], [], [], None, False
        self.current = self.next = self.failed = None
        self.failures = 0
        return "left"

    def timeout(self, _):
        return "passed"

    def due(self):
        times = [time for time in (self.current, self.next) if time is not None]
        times += [self.left(one, self.last(one) + 1) for one in self.live()]
        if self.joined and self.policy and not self.failed and self.current is None and not self.live():
            times.append(self.not_before)
        times += [pull["until"] for pull in self.pulls if pull["state"] == "asked"]
        return min(times, default=None)

    def step(self, step):
        self.mono, self.wall = step["at_ms"], step["wall_ms"]
        self.act()
        name = next(name for name in ("want", "open", "seal", "give", "refuse", "join", "renew", "leave", "timeout") if name in step)
        told = getattr(self, name)(step[name])
        asks, self.asks = sorted(self.asks), []
        return {"told": told, "asks": asks, "due_ms": self.due(), "policy": self.policy, "held": len(self.live())}


def schedule(entry):
    keyring = Keyring(entry["member"])
    return {"out": [keyring.step(step) for step in entry["steps"]]}


KINDS = {"question": question, "answer": answer, "when": when, "backoff": backoff, "schedule": schedule}


def family(entry):
    return KINDS[entry["kind"]](entry)
