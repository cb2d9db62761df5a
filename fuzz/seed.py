#!/usr/bin/env python3
"""Fills fuzz/corpus/TARGET from vectors/ and from the inputs that once found something. Names are hashes, so running it twice adds nothing."""

import hashlib
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
VECTORS = HERE.parent / "vectors"
LONGEST = 4096  # what fuzz/run mutates; longer cases are the vector runner's
PHASES = ["open", "opener", "challenge", "connect", "hello"]  # in the order of the frame target

# What a target found: each is an ordinary test as well.
FOUND = {
    "cbor": ["89bbffff98018600020089"],  # a map of more than 2^63 entries whose first key is no key
}


def entries(family):
    return json.loads((VECTORS / f"{family}.json").read_text())["entries"]


def cbor():
    for entry in entries("cbor"):
        if "hex" in entry:
            yield bytes([entry["payload"]]) + bytes.fromhex(entry["hex"])


def frame():
    def stream(phase, bodies, cuts=b""):
        framed = b"".join(len(body).to_bytes(4, "big") + body for body in bodies)
        return bytes([PHASES.index(phase), len(cuts)]) + cuts + framed

    for entry in entries("frames"):
        data = bytes.fromhex(entry["hex"])
        if entry["kind"] == "stream":
            yield bytes([0, 0]) + data
            yield bytes([0, 2, 1, 3]) + data
        else:
            for phase in entry["phase"].split("|"):
                yield stream(phase, [data])
    for entry in entries("links"):
        bodies = [bytes.fromhex(step["hex"]) for step in entry["steps"] if "hex" in step]
        yield stream("open", bodies, bytes([7]))


def publication():
    for entry in entries("publications"):
        yield b"\0" + bytes.fromhex(entry["hex"])
    for entry in entries("cbor"):
        if "expect" in entry and "hex" in entry:
            for mode in (2, 13):
                yield bytes([mode]) + bytes.fromhex(entry["hex"])


def topic():
    for entry in entries("topics"):
        if "hex" in entry:
            yield bytes.fromhex(entry["hex"])
        elif "filter" in entry:
            yield f"{entry['filter']}\n{entry['topic']}".encode()
        elif "text" in entry:
            yield entry["text"].encode()


def main():
    for target in (cbor, frame, publication, topic):
        name = target.__name__
        folder = HERE / "corpus" / name
        folder.mkdir(parents=True, exist_ok=True)
        found = [bytes.fromhex(text) for text in FOUND.get(name, [])]
        seeds = {data for data in [*target(), *found] if len(data) <= LONGEST}
        if not seeds:
            raise SystemExit(f"no seeds for {name}")
        for data in seeds:
            path = folder / hashlib.sha256(data).hexdigest()[:20]
            if not path.exists():
                path.write_bytes(data)
        print(f"{name}: {len(seeds)} seeds")


if __name__ == "__main__":
    main()
