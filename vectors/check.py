#!/usr/bin/env python3
"""Runs every vector against the naive models. Exit status 1 when anything is amiss."""

import json
import sys
from pathlib import Path

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


def check(name, family):
    """(accepted, refused, names of entries that failed) of one family."""
    accepted = refused = 0
    failed = []
    for entry in family["entries"]:
        if "expect" in entry:
            accepted += 1
        else:
            refused += 1
        if json.loads(json.dumps(judge(name, inputs_of(entry)))) != outcome_of(entry):
            failed.append(entry["name"])
    if (accepted, refused) != (family["accepted"], family["refused"]):
        failed.append("the declared counts")
    return accepted, refused, failed


def main():
    bad = False
    print("%-16s %8s %8s %8s" % ("family", "accepted", "refused", "failed"))
    for name in FAMILIES:
        accepted, refused, failed = check(name, load(name))
        print("%-16s %8d %8d %8d" % (name, accepted, refused, len(failed)))
        for one in failed:
            bad = True
            print("    failed:", one)
    return bad


if __name__ == "__main__":
    sys.exit(main())
