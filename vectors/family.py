"""One family of vectors while it is written: every entry is judged by the model before it is taken."""

import json
from pathlib import Path

from model import judge

HERE = Path(__file__).resolve().parent


class Family:
    def __init__(self, name, about):
        self.name, self.about, self.entries, self.names = name, about, [], set()

    def take(self, name, inputs, outcome):
        assert name not in self.names, f"{self.name}: {name} stands twice"
        self.names.add(name)
        self.entries.append({"name": name, **inputs, **outcome})

    def accept(self, name, inputs, /, **expect):
        """An entry that is accepted; what is given in `expect` was worked out by hand and must agree."""
        outcome = judge(self.name, inputs)
        assert "expect" in outcome, f"{self.name}: {name}: {outcome}"
        for key, value in expect.items():
            assert outcome["expect"][key] == value, f"{self.name}: {name}: {key}: {outcome['expect'][key]} is not {value}"
        self.take(name, inputs, outcome)

    def refuse(self, name, inputs, reason, /, **more):
        """An entry that is refused for `reason`, which was worked out by hand."""
        outcome = judge(self.name, inputs)
        wanted = {"refuse": reason, **more}
        assert {key: outcome.get(key) for key in wanted} == wanted, f"{self.name}: {name}: {outcome} is not {wanted}"
        self.take(name, inputs, outcome)

    def text(self):
        accepted = sum("expect" in entry for entry in self.entries)
        head = {"family": self.name, "about": self.about, "accepted": accepted, "refused": len(self.entries) - accepted}
        lines = [" %s: %s," % (json.dumps(key), json.dumps(value, ensure_ascii=False)) for key, value in head.items()]
        entries = ",\n".join(pretty(entry, 2) for entry in self.entries)
        return "{\n" + "\n".join(lines) + '\n "entries": [\n' + entries + "\n ]\n}\n"

    def write(self):
        path = HERE / (self.name + ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(self.text(), encoding="utf-8")


def pretty(value, depth):
    """JSON with one space per level, and what fits kept on one line."""
    pad = " " * depth
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + depth <= 120 and depth > 2 or not isinstance(value, (dict, list)) or not value:
        return pad + flat
    if isinstance(value, list):
        return pad + "[\n" + ",\n".join(pretty(one, depth + 1) for one in value) + "\n" + pad + "]"
    rows = []
    for key, one in value.items():
        rows.append(pad + " " + json.dumps(key) + ": " + pretty(one, depth + 1).lstrip(" "))
    return pad + "{\n" + ",\n".join(rows) + "\n" + pad + "}"
