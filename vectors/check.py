#!/usr/bin/env python3
"""Runs every vector against the naive models, then what must hold for all of them. Exit status 1 when anything is amiss.

`--sabotage` changes one constant, input or check of the models at a time, and wants at least one vector to notice each.
"""

import json
import sys
from pathlib import Path

import properties
import sabotage
from model import FAMILIES, judge

HERE = Path(__file__).resolve().parent
OUTCOME = ("expect", "refuse", "segment", "at", "told", "refusal", "step")
RESULT = ("out", "deadline_ms", "oldest", "newest")  # of a step of a trace


def load(name):
    return json.loads((HERE / (name + ".json")).read_text(encoding="utf-8"))


def outcome_of(entry):
    """The part of an entry that is its outcome; the rest is its input."""
    if "refuse" in entry:
        return {key: entry[key] for key in OUTCOME if key in entry}
    out = {"expect": entry["expect"]}
    if "config" in entry:
        out["steps"] = entry["steps"]
    return out


def inputs_of(entry):
    given = {key: value for key, value in entry.items() if key == "steps" or key not in outcome_of(entry) and key != "name"}
    if "config" in entry:
        given["steps"] = [{key: value for key, value in step.items() if key not in RESULT} for step in entry["steps"]]
    return given


def agrees(name, entry):
    return json.loads(json.dumps(judge(name, inputs_of(entry)))) == outcome_of(entry)


def check(name, family):
    """(accepted, refused, names of entries that failed) of one family."""
    accepted = sum("expect" in entry for entry in family["entries"])
    refused = sum("refuse" in entry for entry in family["entries"])
    failed = [entry["name"] for entry in family["entries"] if not agrees(name, entry)]
    if (accepted, refused) != (family["accepted"], family["refused"]) or accepted + refused != len(family["entries"]):
        failed.append("the declared counts")
    if len({entry["name"] for entry in family["entries"]}) != len(family["entries"]):
        failed.append("a name that stands twice")
    return accepted, refused, failed


def main():
    families = {name: load(name) for name in FAMILIES}
    on_disk = {str(path.relative_to(HERE))[:-5] for path in HERE.rglob("*.json")}
    bad = on_disk != set(families)
    if bad:
        print("files without a family, or families without a file:", sorted(on_disk ^ set(families)))
    if "--sabotage" in sys.argv[1:]:
        return sabotage.survivors(families, agrees) or bad
    print("%-16s %8s %8s %8s" % ("family", "accepted", "refused", "failed"))
    for name, family in families.items():
        accepted, refused, failed = check(name, family)
        print("%-16s %8d %8d %8d" % (name, accepted, refused, len(failed)))
        for one in failed:
            bad = True
            print("    failed:", one)
    print("%-52s %8s %8s" % ("property", "tried", "failed"))
    for text, tried, failed in properties.all_of(families):
        print("%-52s %8d %8d" % (text, tried, len(failed)))
        for one in failed[:20]:
            print("    failed:", one)
        bad = bad or bool(failed) or tried == 0
    return bad


if __name__ == "__main__":
    sys.exit(main())
