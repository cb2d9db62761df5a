"""Whether a publisher may speak: verdicts, lookups, and facts that wait for one. Lists, looked through from their front."""

from constants import K


class Publisher:
    """What is known of one (realm, source, publisher)."""

    def __init__(self, key):
        self.key = key
        self.verdict = None  # "admitted", "before", "refused"
        self.ends = None  # (monotonic, wall)
        self.known_until = None
        self.reason = None
        self.answered = 0  # when, counted
        self.lookup = None
        self.rests_until = 0


class Sources:
    def __init__(self, config):
        self.limits = config
        self.publishers, self.windows = [], {}
        self.lookups = []  # publisher and facts that wait, of each lookup there ever was
        self.deadlines = []
        self.answers = 0
        self.counts = {"admitted": 0, "refused": 0, "dropped": 0, "lookups": 0}

    def step(self, step):
        self.now = step["at_ms"]
        self.wall = step.get("wall_ms", 1_790_000_000_000 + self.now)
        out = []
        if "fact" in step:
            self.fact(step, out)
        elif "answer" in step:
            self.answer(step, out)
        elif "leave" in step:
            for lookup in self.lookups:
                if lookup["open"] and step["leave"] in lookup["facts"]:
                    lookup["facts"].remove(step["leave"])
        else:
            for number, lookup in enumerate(self.lookups):
                if lookup["open"] and lookup["deadline"] <= self.now:
                    self.settle(number, "unanswered", out)
        due = [lookup["deadline"] for lookup in self.lookups if lookup["open"]]
        return {"out": out, "deadline_ms": min(due) if due else None}

    def is_over(self, one):
        return self.now >= one.ends[0] or self.wall >= one.ends[1]

    def find(self, key):
        return next((one for one in self.publishers if one.key == key), None)

    def fact(self, step, out):
        key = (step["realm"], step["source"], step["publisher"])
        one = self.find(key)
        if one and one.verdict == "refused" and not self.is_over(one):
            self.counts["refused"] += 1
            return out.append({"refuse": one.reason})
        if one and one.verdict == "admitted" and not self.is_over(one):
            self.counts["admitted"] += 1
            out.append("admit")
            margin = self.limits["refresh_margin_ms"]
            soon = one.ends[0] - self.now <= margin or one.ends[1] - self.wall <= margin
            if margin and soon and one.lookup is None and one.rests_until <= self.now and self.window(step, True):
                self.look_up(one, [], True, out)
            return None
        if one and one.verdict == "admitted":
            # Seen to be over, it stays over.
            one.verdict, one.known_until = "before", one.ends[0] + self.limits["cache_ttl_ms"]
        if one and one.lookup is not None:
            facts = self.lookups[one.lookup]["facts"]
            if len(facts) >= self.limits["held_per_key"]:
                return self.drop("hold_full", out)
            facts.append(step["fact"])
            return out.append({"wait": one.lookup})
        known = bool(one) and one.verdict == "before" and self.now < one.known_until
        gone = None
        if not one or one.verdict != "before":
            if sum(other.verdict != "refused" for other in self.publishers) >= self.limits["max_publishers"]:
                once = sorted((other for other in self.publishers if other.verdict in ("admitted", "before")), key=lambda other: other.answered)
                gone = next((other for other in once if other.lookup is None and (other.verdict == "before" or self.is_over(other))), None)
                if gone is None:
                    return self.drop("verdicts_full", out)
        if not self.window(step, known):
            return self.drop("lookups_full", out)
        if gone:
            self.publishers.remove(gone)
        if one and one.verdict == "refused":
            self.publishers.remove(one)
            one = None
        if not one:
            one = Publisher(key)
            self.publishers.append(one)
        self.look_up(one, [step["fact"]], known, out)

    def drop(self, reason, out):
        self.counts["dropped"] += 1
        out.append({"drop": reason})

    def look_up(self, one, facts, known, out):
        one.lookup = len(self.lookups)
        self.counts["lookups"] += 1
        self.lookups.append({"one": one, "facts": facts, "open": True, "deadline": self.now + self.limits["lookup_timeout_ms"]})
        out.append({"ask": one.lookup, "known": known})

    def window(self, step, known):
        """Whether the realm has a lookup left, which it then has not."""
        window = self.windows.get(step["realm"])
        if window is None or self.now >= window["began"] + self.limits["window_ms"]:
            window = self.windows[step["realm"]] = {"began": self.now, "taken": []}
        taken, whole = window["taken"], self.limits["lookups_per_window"]
        strangers = [link for link in taken if link is not None]
        kept = whole // K.sources_kept_share
        of_strangers = whole - kept
        of_link = -(-of_strangers // K.sources_link_share)
        if len(taken) >= whole or not known and (len(strangers) >= of_strangers or strangers.count(step["link"]) >= of_link):
            return False
        taken.append(None if known else step["link"])
        return True

    def answer(self, step, out):
        number = step["answer"]
        if not self.lookups[number]["open"] or self.lookups[number]["deadline"] <= self.now:
            return out.append("too_late")
        if "admit_until_ms" in step:
            until = step["admit_until_ms"]
            self.settle(number, ("admit", until) if until > self.wall else ("refuse", "expired"), out)
        elif "refuse" in step:
            self.settle(number, ("refuse", step["refuse"]), out)
        else:
            self.settle(number, "undecided_source", out)

    def settle(self, number, found, out):
        lookup = self.lookups[number]
        one, facts = lookup["one"], lookup["facts"]
        lookup["open"], one.lookup = False, None
        one.rests_until = self.now + self.limits["lookup_timeout_ms"]
        if type(found) is str:
            if one.verdict is None:
                self.publishers.remove(one)
            self.counts["dropped"] += len(facts)
            return out.append({"settled": number, "drop": found, "facts": facts})
        self.answers += 1
        one.answered = self.answers
        if found[0] == "admit":
            lasts = min(self.limits["cache_ttl_ms"], found[1] - self.wall)
            one.verdict, one.ends = "admitted", (self.now + lasts, self.wall + lasts)
            self.counts["admitted"] += len(facts)
            return out.append({"settled": number, "admit": True, "facts": facts})
        self.publishers.remove(one)
        lasts, most = self.limits["refusal_ttl_ms"], -(-self.limits["max_publishers"] // K.sources_refusals_share)
        if lasts:
            refused = sorted((other for other in self.publishers if other.verdict == "refused"), key=lambda other: other.answered)
            if len(refused) >= most:
                self.publishers.remove(refused[0])
            one.verdict, one.reason, one.ends = "refused", found[1], (self.now + lasts, self.wall + lasts)
            self.publishers.append(one)
        self.counts["refused"] += len(facts)
        out.append({"settled": number, "refuse": found[1], "facts": facts})

    def counters(self):
        return self.counts
