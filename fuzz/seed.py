#!/usr/bin/env python3
"""Fills FOLDER/TARGET from vectors/ and from the inputs that once found something. Names are hashes, so running it twice adds nothing."""

import hashlib
import json
import pathlib
import sys

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


def keyring():
    # Answers are of one prefix, which the target knows.
    for entry in entries("keys"):
        if entry["kind"] == "answer":
            yield b"\0" + bytes.fromhex(entry["cbor"])
    # Joined, given its keys, asked for another, opened, sealed; then time.
    given, want, opens, seals, tick = b"\x03\x00\x01\x00", b"\x10\x05\x01\x00", b"\x01\x00\x01\x00", b"\x02\x00\x01\x00", b"\x07\x00\x90\x00"
    yield b"\x01" + given + opens + seals + want + tick * 3 + seals + given + opens
    yield b"\x01" + given + want + b"\x04\x05\x01\x00" + b"\x01\x05\x01\x00" + b"\x07\x00\x01\x7f" + opens
    yield b"\x01" + b"\x85\x03\x01\x00" * 4 + b"\x06\x00\x01\x00" + given + tick * 8 + opens


def positions():
    for entry in entries("positions"):
        yield bytes.fromhex(entry["hex"])


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


# Scripts of the order target (fuzz/src/script.rs): who is an epoch from 1 to 5, or 0 for a publication without one.
WAITS = [0, 0, 0, 0, 1, 5, 100, 249, 250, 251, 500, 1_000, 9_999, 10_001, 60_000, 600_001]
HIGHEST = 240  # the number byte of 2^53 - 1


def fact(seq, who=1, after=0, flags=0):
    return bytes([flags, who, seq if seq >= HIGHEST else seq - 1, WAITS.index(after)])


def command(kind, after=0):
    kinds = {"replay": 11, "replay_end": 12, "drain": 14, "tick": 15}
    return bytes([kinds[kind], 0, 0, WAITS.index(after)])


SCRIPTS = [
    # br_25: copies of one publisher over links of different speed
    [fact(1), fact(3, after=1), fact(2, after=5)],
    # br_26: a late fact after a skip, and again
    [fact(1), fact(3, after=1), command("tick", 250), fact(2, after=100), fact(2, after=1)],
    # br_27: numbers that are not contiguous, without an epoch
    [bytes([0, 0, number, 5]) for number in (0, 201, 203, 239)],
    # br_28: a publisher begins again
    [fact(40), fact(39), fact(1, who=2, after=5), fact(2, who=2), command("tick", 250)],
    # br_34: hostile numbers
    [fact(1), fact(HIGHEST), fact(HIGHEST + 1), fact(2), fact(1), command("tick", 251)],
    # two counters for more than a minute, then a third
    [fact(n, who=1 + n % 2, after=10_001) for n in range(1, 18)] + [fact(1, who=3)],
    # a replay holds the clock of the gaps
    [fact(1), fact(5), command("replay", 100), fact(2, flags=16), command("replay_end", 500), fact(4)],
    # closed places, busy lanes, anycast, copies whose entry was reused early
    [fact(2), bytes([9, 1, 0, 0]), bytes([10, 1, 9, 4]), fact(3, flags=0xE0), fact(2, flags=0x20), command("drain")],
]


def order():
    for script in SCRIPTS:
        for flags in range(64):
            yield bytes([flags, 23, 15]) + b"".join(script)
        yield bytes([8, 1, 1]) + b"".join(script)


# Scripts of the sources target: eight bytes of bounds, then kind and three bytes.
FACT, ANSWER, LEAVE, WALL, TIME, DUE, SWEEP = 0, 7, 11, 12, 13, 14, 15
BOUNDS = [bytes([3, 2, 7, 100, 40, 10, 30, 20]), bytes([0, 0, 0, 1, 1, 0, 0, 1]), bytes([11, 3, 11, 255, 255, 255, 255, 255])]


def sources():
    who = [(FACT, key, key) for key in range(8)]
    admitted = [(ANSWER, n, 0, 40) for n in range(8)]
    for bounds in BOUNDS:
        yield bounds + words(*who, *who, *admitted, *who, (TIME, 200, 0), *who, (TIME, 200, 2), *who, *admitted, (DUE,))
        yield bounds + words(*who, *((ANSWER, n, 4 + n % 4) for n in range(8)), *who, (TIME, 100, 2), *who, (SWEEP,), *who)
        yield bounds + words((FACT, 1), (FACT, 1), (LEAVE, 0), (FACT, 1), (ANSWER, 0, 1, 2), (WALL, 0, 200, 3), (FACT, 1), (WALL, 1, 200, 3), (FACT, 1), (DUE,))
        yield bounds + words(*(step for n in range(24) for step in ((FACT, n, n % 5), (ANSWER, 0, n % 8, n), (TIME, 9 * n % 250, n % 4))))


# Scripts of the client and station targets (fuzz/src/words.rs): kind and three bytes. The upper half of the kind names the link.
WAIT, CUT, CONNECT, SUBSCRIBE, PUBLISH, EVENT, SUBSCRIBED = 2, (3, 0), (3, 99), 6, 8, 9, 11
LOCAL_SUBSCRIBE, LOCAL_PUBLISH = (0xF9, 0), (0xF9, 2)


def words(*steps):
    return b"".join(bytes([*step, 0, 0, 0])[:4] for step in steps)


# Guarded ones: what the application calls and what it is asked. An answer says which question, counted from the last, what, and for how long.
ASKED, JOIN, LEAVE_GROUP, GUARDED_SUBSCRIBE, GUARDED_PUBLISH = 0xFC, 0xFE, (0xFF, 0), 0xF9, 0xFB
ADMIT, REFUSE, NO_ANSWER, WRONG = 0, 4, 6, 7  # of sources
KEYS, OTHER_SECRET, BROKEN, OTHER_PERIOD, DENIED = 0, 3, 4, 5, 6  # of keys
SEALED, TIMES = 10, range(8)  # at which time its key was, see words.rs


def sealed(seq, when=0, group=0, topic=0, key=0, other=0, old=0, wire=0):
    return SEALED, wire + 5 * (group + 3 * when + 24 * old), topic + 4 * other + 64 * key, seq


def guarded():
    # An id that was not used ends the link.
    carried, all_carried = [(SUBSCRIBED, 0)], [(SUBSCRIBED, n) for n in range(4)]
    clear = [(EVENT, 0, 64 * key, seq) for seq in range(3) for key in range(4)]
    everybody = [(GUARDED_SUBSCRIBE, source + 8 * group, filter * 2) for source, group, filter in ((0, 1, 0), (3, 0, 2), (5, 1, 1), (6, 2, 3), (7, 0, 2))]
    for head in (b"\x10", b"\x12\1\5", b"\x18", b"\x40", b"\x42\1\5", b"\x48"):
        # Who is admitted, refused, not known, late, twice, never.
        yield head + words(*carried, *clear, *((ASKED, n, n % 8, 99) for n in range(8)), *clear, (WAIT, 3), *clear)
        for answer in (ADMIT, REFUSE, NO_ANSWER, WRONG):
            yield head + words(*carried, (EVENT, 0, 0, 0), (ASKED, 0, answer, 9), (ASKED, 0, ADMIT, 9), (EVENT, 0, 0, 1), (WAIT, 5), (EVENT, 0, 0, 2), (ASKED, 0, answer, 9), (WAIT, 6))
        yield head + words(*everybody, *all_carried, *clear, *((ASKED, n, n % 7, 20 * n) for n in range(12)), (WAIT, 2, 4), *clear, (WAIT, 5), *clear)
        yield head + words((GUARDED_SUBSCRIBE, 0, 64), *carried, *clear, (WAIT, 4), *clear[:4], CUT, (ASKED, 0, ADMIT, 200), (WAIT, 6), CONNECT, *carried, *clear)
        # Keys that are here, come late, are others, or do not come.
        opener = (GUARDED_SUBSCRIBE, 7 + 8, 0)
        for answer in (KEYS, OTHER_SECRET, BROKEN, OTHER_PERIOD, DENIED, WRONG):
            facts = [sealed(n, when, old=n % 2) for n, when in enumerate(TIMES)]
            yield head + words(opener, (SUBSCRIBED, 0), *facts, (ASKED, 0, answer, 2), *facts, *((ASKED, n, answer, n) for n in range(6)), (WAIT, 4), (ASKED, 0, KEYS), *facts, (WAIT, 5))
        yield head + words(opener, (SUBSCRIBED, 0), (ASKED, 0, KEYS, 1), *(sealed(n, n % 3, n % 3, n % 3, other=n % 2, old=n // 4 % 2) for n in range(20)), (WAIT, 2), (WAIT, 6, 5), *(sealed(n) for n in range(4)), (WAIT, 7))
        yield head + words((JOIN, 1, 1, 7), (JOIN, 0, 2), *((GUARDED_SUBSCRIBE, 6 + 8 * (1 + n), 2 * (0, 3, 1)[n]) for n in range(3)), *all_carried[:3], *((ASKED, n, KEYS, 2) for n in range(3)), *(sealed(n, 0, n % 3, n % 3, wire=n % 3) for n in range(9)), *((EVENT, n, n, 3) for n in range(4)), (*LEAVE_GROUP, 0), *(sealed(9 + n, 0, n % 3, n % 3) for n in range(6)), (WAIT, 4))
        # Clear facts where seals are required, and what is published there.
        yield head + words(opener, (SUBSCRIBED, 0), (EVENT, 0, 0, 0), (ASKED, 0, KEYS, 2), (EVENT, 0, 0, 1), sealed(2), (EVENT, 0, 0, 1), (*LEAVE_GROUP, 0), (EVENT, 0, 0, 3), (JOIN, 0, 0), (EVENT, 0, 0, 4), (WAIT, 5))
        for wall in (0, 4, 5):
            yield head + words((GUARDED_PUBLISH, 1, 0), (ASKED, 0, KEYS, 1), *((GUARDED_PUBLISH, n, n // 2) for n in range(8)), (WAIT, 4, wall), (GUARDED_PUBLISH, 1, 0), (GUARDED_PUBLISH, 1, 32), (15, 1, 0, 0), (WAIT, 6), (GUARDED_PUBLISH, 1, 0), (WAIT, 7))


def client():
    yield from guarded()
    carried = [(SUBSCRIBED, 0)]
    events = [(EVENT, 0, 0, seq) for seq in (0, 2, 1, 1, 5)] + [(EVENT, 0, 4, 1), (EVENT, 0, 8, 3)]
    for cuts in (b"\0", b"\2\1\5", b"\x08"):
        yield cuts + words(*carried, *events, (WAIT, 2))
        yield cuts + words(*carried, *events, CUT, (WAIT, 3), CONNECT, *carried, *events[:2], (WAIT, 6))
        for which in (1, 8, 16, 32, 64, 2 + 64):
            yield cuts + words((*LOCAL_SUBSCRIBE, which), *carried, (SUBSCRIBED, 1), *events, (EVENT, 1, 0, 3), (WAIT, 2))
        yield cuts + words((*LOCAL_PUBLISH, 0, 2), (*LOCAL_PUBLISH, 1, 3), (15, 1, 0, 0), (15, 2, 0, 1), (WAIT, 4))
        for other in (0x10, 0x20):
            across = [(kind | (other if n % 2 else 0), *rest) for n, (kind, *rest) in enumerate(events)]
            yield cuts + words(*carried, (SUBSCRIBED | other, 0), *across, (WAIT, 2), CUT, *across, (WAIT, 6), CONNECT, *across, (WAIT, 7))
        yield cuts + words(*carried, *((EVENT, 0, 0, seq) for seq in range(24)), (14, 0, 9, 3), (13, 0, 5, 5), (WAIT, 7))


def station():
    facts = [(PUBLISH, 10 + n, 0, seq) for n, seq in enumerate((0, 1, 3, 3, 9))]
    again = [(PUBLISH, 20 + n, 0, seq) for n, seq in enumerate((0, 10, 2))]
    for cuts in (b"\0", b"\2\1\5", b"\x08"):
        yield cuts + words((SUBSCRIBE, 1, 0), *facts, (WAIT, 3))
        yield cuts + words((SUBSCRIBE, 1, 1), (SUBSCRIBE, 2, 2), *facts, (7, 0), (7, 1), (WAIT, 6), *again)
        yield cuts + words((SUBSCRIBE, 1, 0), *facts, CUT, (WAIT, 6), CONNECT, (SUBSCRIBE, 1, 0, 1), *facts, (WAIT, 7))
        for other in (0x10, 0x20):
            yield cuts + words((SUBSCRIBE | other, 1, 1), *facts, (WAIT, 3), (7 | other, 0), *again, (SUBSCRIBE | other, 2, 0), (WAIT, 2, 4), (PUBLISH, 30, 0, 17))
        yield cuts + words((SUBSCRIBE, 1, 0), *((PUBLISH, 10 + n, 32, n) for n in range(8)), (WAIT, 3))
        yield cuts + words((SUBSCRIBE, 1, 5), (PUBLISH, 2, 64, 1), (PUBLISH, 3, 16, 1), (SUBSCRIBE, 1, 0), (WAIT, 1))
    for entry in entries("frames"):
        data = bytes.fromhex(entry["hex"])
        if entry["kind"] == "body" and entry["phase"] == "open" and len(data) < 256:
            yield b"\0" + bytes([0, len(data), 0, 0]) + data


def seal():
    for length in (0, 1, 16, 255):
        for fill in (0, 1, 0xAB):
            yield bytes([fill]) * (130 + length)


def main():
    into = pathlib.Path(sys.argv[1])
    for target in (cbor, client, frame, keyring, order, positions, publication, seal, sources, station, topic):
        name = target.__name__
        folder = into / name
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
