#!/usr/bin/env python3
"""Runs every vector against the naive models. Exit status 1 when anything is amiss."""

import json
import sys
from pathlib import Path

from model import FAMILIES, judge

HERE = Path(__file__).resolve().parent
OUTCOME = ("expect", "refuse", "segment", "at", "told", "refusal", "step")


def load(name):
    return json.loads((HERE / (name + ".json")).read_text(encoding="utf-8"))


def outcome_of(entry):
    """The part of an entry that is its outcome; the rest is its input."""
    if "refuse" in entry:
        return {key: entry[key] for key in OUTCOME if key in entry}
    return {"expect": entry["expect"]}


def inputs_of(entry):
    outcome = outcome_of(entry)
    return {key: value for key, value in entry.items() if key not in outcome and key != "name"}


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
