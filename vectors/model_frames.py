"""Naive readers of frames (WIRE.md sections 1, 3, 9), of the handshake (8) and of committed positions (11)."""

import hashlib
import re
from functools import lru_cache
from pathlib import Path

import ed25519
from constants import K
from model_cbor import Refused, walk
from model_wire import (
    check_filter,
    is_bytes,
    is_topic,
    is_uint,
    label_of,
    node_id,
)

HERE = Path(__file__).resolve().parent


# Section 10: the closed sets, as WIRE.md's own tables say them.


@lru_cache(maxsize=None)
def closed_sets():
    """section → (title, field or None, rows of number, text, means, do)."""
    out = {}
    section = None
    for line in (HERE / "WIRE.md").read_text().splitlines():
        found = re.match(r"### (10\.\d+) (.*)", line)
        if found:
            section, title = found.groups()
            field = re.search(r"\(`([a-z_.]+)`", title)
            title = re.sub(r" \(.*", "", title)
            out[section] = (title, field and field.group(1), [])
        elif line.startswith("## "):
            section = None
        row = re.match(r"\| (\d+) \| `([a-z_]+)` \| (.*) \| (.*) \|$", line)
        if section and row:
            number, text, means, do = row.groups()
            out[section][2].append((int(number), text, means, do))
    return out


def travels(section):
    """The texts of one table that may stand in a frame."""
    return {text for _, text, means, _ in closed_sets()[section][2] if "local only" not in means}


# Kinds of fields.


def uint(value):
    return is_uint(value)


def an_id(value):
    return is_uint(value, K.id_low)


def text(value):
    return type(value) is str


def bytes_of(name):
    return lambda value: is_bytes(value, getattr(K, name))


def one_of(section):
    return lambda value: type(value) is str and value in travels(section)


def choice(*texts):
    return lambda value: type(value) is str and value in texts


def is_position(value):
    return type(value) is dict and set(value) == {"run", "offset"} and is_bytes(value["run"], K.run_bytes) and uint(value["offset"])


def is_resume(value):
    if type(value) is not dict or "outcome" not in value or not one_of("10.6")(value["outcome"]):
        return False
    wanted = {"outcome"} | {"resumed": {"count"}, "expired": {"oldest"}}.get(value["outcome"], set())
    return set(value) == wanted and all(uint(value[name]) for name in wanted - {"outcome"})


def is_interest(value):
    if is_bytes(value, K.interest_bytes):
        return True
    if type(value) is not dict or set(value) != {"realm", "filter"}:
        return False
    if not is_bytes(value["realm"], K.id_bytes) or type(value["filter"]) is not str:
        return False
    try:
        check_filter(value["filter"].encode())
    except Refused:
        return False
    return True


def interests(value):
    return type(value) is list and all(is_interest(one) for one in value)


def a_version(value):
    return is_uint(value, 1, K.version_high)


def a_max_frame(value):
    return is_uint(value, K.max_frame_low, K.max_frame_high)


YES, NO = True, False  # required, or not

HANDSHAKE = {
    "opener": {"first": (YES, a_version), "last": (YES, a_version)},
    "challenge": {
        "key": (YES, bytes_of("key_bytes")),
        "mesh": (YES, bytes_of("mesh_bytes")),
        "nonce": (YES, bytes_of("nonce_bytes")),
        "profile": (YES, text),
        "wall_ms": (YES, uint),
        "max_frame": (YES, a_max_frame),
        "capabilities": (YES, uint),
    },
    "connect": {
        "key": (YES, bytes_of("key_bytes")),
        "role": (YES, choice("node", "station")),
        "nonce": (YES, bytes_of("nonce_bytes")),
        "proof": (YES, bytes_of("signature_bytes")),
        "profile": (YES, text),
        "max_frame": (YES, a_max_frame),
        "capabilities": (YES, uint),
    },
    "hello": {"proof": (NO, bytes_of("signature_bytes")), "refusal": (NO, one_of("10.2"))},
}

FRAMES = {
    "subscribe": {
        "id": (YES, an_id),
        "realm": (YES, bytes_of("id_bytes")),
        "filter": (YES, text),
        "resume": (NO, is_position),
        "options": (YES, lambda v: type(v) is dict and not v),
    },
    "subscribed": {"id": (YES, an_id), "resume": (YES, is_resume), "position": (YES, is_position)},
    "refused": {"id": (YES, an_id), "limit": (NO, uint), "reason": (YES, one_of("10.3"))},
    "unsubscribe": {"id": (YES, an_id)},
    "publish": {"id": (YES, an_id), "route": (YES, choice("all", "one")), "publication": (YES, lambda v: type(v) is dict)},
    "published": {
        "id": (YES, an_id),
        "limit": (NO, uint),
        "reason": (NO, one_of("10.4")),
        "outcome": (YES, one_of("10.5")),
        "subscribers": (YES, uint),
    },
    "event": {
        "id": (YES, an_id),
        "via": (YES, choice("direct", "mesh")),
        "offset": (YES, uint),
        "publication": (YES, lambda v: type(v) is dict),
    },
    "progress": {"id": (YES, an_id), "offset": (YES, uint), "behind_ms": (YES, uint)},
    "skipped": {
        "id": (YES, an_id),
        "to": (YES, uint),
        "from": (YES, uint),
        "peer": (NO, bytes_of("peer_bytes")),
        "count": (YES, uint),
        "reason": (YES, one_of("10.7")),
    },
    "ping": {"nonce": (YES, bytes_of("probe_bytes"))},
    "pong": {"nonce": (YES, bytes_of("probe_bytes"))},
    "goodbye": {
        "detail": (YES, lambda v: type(v) is str and len(v.encode()) <= K.detail_max),
        "reason": (YES, one_of("10.1")),
    },
    "interest": {"add": (YES, interests), "remove": (YES, interests), "to_version": (YES, uint), "from_version": (YES, uint)},
    "interest_wanted": {},
}


def tied(kind, body):
    """Whether what ties the keys of one frame to each other holds."""
    if kind == "opener":
        return body["first"] <= body["last"]
    if kind == "hello":
        return ("proof" in body) != ("refusal" in body)
    if kind == "published":
        refused = body["outcome"] == "refused"
        if ("reason" in body) != refused or "limit" in body and not refused:
            return False
        return body["subscribers"] == 0 or body["outcome"] == "routed"
    if kind == "skipped":
        return body["from"] >= body["to"] and ("peer" in body) == (body["reason"] == "peer_interrupted")
    return True


def read_frame(data, phase):
    """(frame type, fields) of a body; fields is None for a type that is read past.

    `phase` is `open`, or the handshake frames that may come next.
    """
    body, _ = walk(data)
    if type(body) is not dict:
        raise Refused("not_a_map")
    if any(type(key) is not str for key in body):
        raise Refused("bad_field")
    kind = body.get("frame_type")
    if type(kind) is not str:
        raise Refused("no_frame_type")
    if "version" not in body:
        raise Refused("missing_field")
    if type(body["version"]) is not int or body["version"] != K.version:
        raise Refused("bad_version")
    if phase == "open":
        if kind in HANDSHAKE:
            raise Refused("unexpected_frame")
        if kind not in FRAMES:
            return kind, None
        table = FRAMES[kind]
    else:
        if kind not in phase:
            raise Refused("unexpected_frame")
        table = HANDSHAKE[kind]
    fields = {}
    for name, value in body.items():
        if name in ("frame_type", "version"):
            continue
        if name not in table:
            raise Refused("unknown_field", field=name)
        if not table[name][1](value):
            raise Refused("bad_field", field=name)
        fields[name] = value
    for name, (required, _) in table.items():
        if required and name not in fields:
            raise Refused("missing_field", field=name)
    if not tied(kind, fields):
        raise Refused("bad_field")
    return kind, fields


def split_stream(data, max_frame):
    """The whole frames at the front of a stream, and how many bytes are left over."""
    frames = []
    while len(data) >= 4:
        length = int.from_bytes(data[:4], "big")
        if length > max_frame:
            raise Refused("frame_too_large")
        if len(data) < 4 + length:
            break
        frames.append(data[4 : 4 + length])
        data = data[4 + length :]
    return frames, len(data)


def link_walk(steps):
    """Section 3 on one link after the handshake: ids that rise, answers that were asked for, frames in time."""
    used = {"self": 0, "peer": 0}  # the highest id of each direction
    given = set()
    began = None
    for at, step in enumerate(steps):
        try:
            if "bytes" in step:
                complete, began = step["bytes"] == "end", step["at_ms"] if step["bytes"] == "begin" else began
                began = None if complete else began
                continue
            if "at_ms" in step:
                if began is not None and step["at_ms"] - began >= K.frame_timeout_ms:
                    raise Refused("frame_timeout")
                continue
            kind, fields = read_frame(bytes.fromhex(step["hex"]), "open")
            if kind in ("subscribe", "publish"):
                if fields["id"] <= used[step["from"]]:
                    raise Refused("id_reused")
                used[step["from"]] = fields["id"]
                if step["from"] == "self":
                    given.add((kind, fields["id"]))
            elif step["from"] == "peer" and kind in ("subscribed", "refused", "event", "progress", "skipped"):
                if ("subscribe", fields["id"]) not in given:
                    raise Refused("unknown_id")
            elif step["from"] == "peer" and kind == "published":
                if ("publish", fields["id"]) not in given:
                    raise Refused("unknown_id")
        except Refused as refused:
            raise Refused(refused.reason, step=at) from None
    return {"steps": len(steps)}


# Section 8: the handshake.


def transcript(data):
    return hashlib.new(K.transcript_hash, data).digest()


def role_byte(role):
    return bytes([("node", "station").index(role)])


def connect_signed(binding, opener, challenge, dialler, answerer, sent, challenged):
    """The bytes the dialler signs; `sent` and `challenged` are the fields of connect and challenge."""
    return (
        label_of("connect")
        + b"\x00"
        + binding
        + transcript(opener)
        + transcript(challenge)
        + dialler
        + answerer
        + role_byte(sent["role"])
        + sent["capabilities"].to_bytes(8, "big")
        + sent["max_frame"].to_bytes(4, "big")
        + sent["nonce"]
        + challenged["nonce"]
    )


def hello_signed(binding, opener, challenge, connect, dialler, answerer, sent, challenged):
    """The bytes the answerer signs."""
    return (
        label_of("hello")
        + b"\x00"
        + binding
        + transcript(opener)
        + transcript(challenge)
        + transcript(connect)
        + answerer
        + dialler
        + role_byte(sent["role"])
        + challenged["capabilities"].to_bytes(8, "big")
        + challenged["max_frame"].to_bytes(4, "big")
        + challenged["nonce"]
        + sent["nonce"]
    )


def at(frame, check):
    try:
        return check()
    except Refused as refused:
        raise Refused(refused.reason, at=frame, **{k: v for k, v in refused.more.items() if k != "field"}) from None


def peer_of(fields):
    if fields["profile"] != K.profile:
        raise Refused("profile_mismatch")
    if not ed25519.good_key(fields["key"]):
        raise Refused("bad_key_form")
    return node_id(fields["key"])


def dialler_reads(frames, own, named, binding, proved=None):
    """The dialler's checks on what the answerer sent it."""

    def challenge():
        kind, fields = read_frame(frames["challenge"], ("challenge", "hello"))
        if kind == "hello":
            if "refusal" in fields:
                raise Refused("refused_by_station", refusal=fields["refusal"])
            raise Refused("unexpected_frame")
        peer = peer_of(fields)
        if named is not None and peer != named:
            raise Refused("wrong_station")
        if peer == own:
            raise Refused("own_link")
        if proved is not None and peer.hex() != proved:
            raise Refused("key_mismatch")
        return fields, peer

    def hello():
        _, fields = read_frame(frames["hello"], ("hello",))
        if "refusal" in fields:
            raise Refused("refused_by_station", refusal=fields["refusal"])
        _, sent = read_frame(frames["connect"], ("connect",))
        signed = hello_signed(binding, frames["opener"], frames["challenge"], frames["connect"], own, peer, sent, challenged)
        if not ed25519.verify(challenged["key"], signed, fields["proof"]):
            raise Refused("proof_invalid")
        return signed

    challenged, peer = at("challenge", challenge)
    signed = at("hello", hello)
    return {
        "peer": peer.hex(),
        "mesh": challenged["mesh"].hex(),
        "wall_ms": challenged["wall_ms"],
        "max_frame": challenged["max_frame"],
        "capabilities": challenged["capabilities"],
        "hello_signed": signed.hex(),
    }


def answerer_reads(frames, own, limits, binding):
    """The answerer's checks on what the dialler sent it."""

    def opener():
        _, fields = read_frame(frames["opener"], ("opener",))
        if not fields["first"] <= K.version <= fields["last"]:
            raise Refused("unsupported_version", told="unsupported_version")

    def connect():
        _, sent = read_frame(frames["connect"], ("connect",))
        peer = peer_of(sent)
        if peer == own:
            raise Refused("own_link")
        if limits.get("proved", peer.hex()) != peer.hex():
            raise Refused("key_mismatch")
        _, challenged = read_frame(frames["challenge"], ("challenge",))
        signed = connect_signed(binding, frames["opener"], frames["challenge"], peer, own, sent, challenged)
        if not ed25519.verify(sent["key"], signed, sent["proof"]):
            raise Refused("proof_invalid")
        if limits["full"]:
            raise Refused("full", told="full")
        if limits["draining"]:
            raise Refused("draining", told="draining")
        if sent["role"] == "station" and peer.hex() not in limits["peers"]:
            raise Refused("not_a_peer")
        return sent, peer, signed

    try:
        at("opener", opener)
        sent, peer, signed = at("connect", connect)
    except Refused as refused:
        refused.more.setdefault("told", "not_accepted")
        raise
    return {
        "peer": peer.hex(),
        "role": sent["role"],
        "max_frame": sent["max_frame"],
        "capabilities": sent["capabilities"],
        "connect_signed": signed.hex(),
    }


# Section 11: committed positions.


def is_lane(value):
    return (
        type(value) is dict
        and set(value) == {"seq", "epoch", "topic", "untold", "publisher"}
        and is_uint(value["seq"])
        and is_untold(value["untold"], value["seq"])
        and is_uint(value["epoch"], K.epoch_low)
        and is_topic(value["topic"])
        and is_bytes(value["publisher"], K.id_bytes)
    )


def is_untold(value, seq):
    """Whether these are ranges up to `seq`, first and last by turns, which rise and do not touch."""
    if type(value) is not list or not all(is_uint(one, K.untold_low) for one in value):
        return False
    firsts, lasts = value[0::2], value[1::2]
    return (
        len(firsts) == len(lasts) <= K.untold_ranges
        and all(first <= last for first, last in zip(firsts, lasts))
        and all(next_one - last >= K.untold_apart for last, next_one in zip(lasts, firsts[1:]))
        and all(last <= seq for last in lasts)
    )


def is_station(value):
    return (
        type(value) is dict
        and set(value) == {"from", "mesh", "station", "position"}
        and is_uint(value["from"])
        and is_bytes(value["mesh"], K.mesh_bytes)
        and is_bytes(value["station"], K.id_bytes)
        and is_position(value["position"])
    )


def rises(keys):
    return all(one < other for one, other in zip(keys, keys[1:]))


def read_positions(data):
    body, _ = walk(data)
    if type(body) is not dict:
        raise Refused("not_a_map")
    if any(type(key) is not str for key in body):
        raise Refused("bad_field")
    if "version" not in body:
        raise Refused("missing_field")
    if type(body["version"]) is not int or body["version"] != K.version:
        raise Refused("bad_version")
    for name, value in body.items():
        if name == "version":
            continue
        if name == "lanes":
            good = type(value) is list and all(is_lane(one) for one in value)
            good = good and rises([(one["publisher"], one["topic"].encode(), one["epoch"]) for one in value])
        elif name == "stations":
            good = type(value) is list and all(is_station(one) for one in value)
            good = good and rises([one["station"] for one in value])
        else:
            raise Refused("unknown_field")
        if not good:
            raise Refused("bad_field")
    for name in ("lanes", "stations"):
        if name not in body:
            raise Refused("missing_field")
    return body
