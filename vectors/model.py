"""The naive models behind the vectors: one function per family, each from an entry's inputs to its outcome.

An outcome is {"expect": …} or {"refuse": reason, …}. Plain lists and linear search throughout; speed is nobody's concern here.
"""

import ed25519
import model_continuity
import model_flow
import model_keys
import model_resume
import model_frames as frames
import model_links
import model_outcomes
import model_seal
import model_sources
import model_wire as wire
from constants import K
from model_cbor import Refused, walk


def input_bytes(entry):
    """`hex`, or `parts` repeated and joined."""
    if "hex" in entry:
        return bytes.fromhex(entry["hex"])
    return b"".join(bytes.fromhex(part["hex"]) * part["times"] for part in entry["parts"])


def as_json(value):
    """A decoded value with byte strings as hex; for maps with text keys only."""
    if type(value) is bytes:
        return value.hex()
    if type(value) is list:
        return [as_json(one) for one in value]
    if type(value) is dict:
        return {key: as_json(one) for key, one in value.items()}
    return value


def cbor(entry):
    _, reader = walk(input_bytes(entry), "always" if entry["payload"] else "never")
    out = {"items": reader.items, "depth": reader.deepest}
    if "hex" in entry:
        out["tokens"] = reader.tokens
    return out


def ids(entry):
    kind = entry["kind"]
    if kind == "realm":
        return wire.realm_id(bytes.fromhex(entry["name_hex"])).hex()
    if kind == "text":
        return wire.id_from_text(entry["text"]).hex()
    if kind == "exporter":
        context = bytes.fromhex(entry["dialler"]) + bytes.fromhex(entry["answerer"])
        return {"label": K.exporter_label, "context": context.hex(), "bytes": 32}
    key = bytes.fromhex(entry["key"])
    if not ed25519.good_key(key):
        raise Refused("bad_key_form")
    return (wire.node_id(key) if kind == "node" else wire.key_id(key)).hex()


def objects(entry):
    value, _ = walk(bytes.fromhex(entry["hex"]))
    label = wire.label_of(entry["purpose"])
    wire.verify_object(value, label)
    key, tbs, signature = wire.object_shape(value)
    out = {"key": key.hex(), "tbs": tbs.hex(), "signature": signature.hex(), "label": label.decode()}
    out["signed"] = wire.signed_bytes(label, key, tbs).hex()
    return out


def publications(entry):
    value, _ = walk(bytes.fromhex(entry["hex"]))
    fields, digest, expires_at = wire.verify_publication(value, entry["now"])
    key, tbs, _ = wire.object_shape(value)
    out = {"publication_hash": digest.hex(), "expires_at": expires_at}
    out["signed"] = wire.signed_bytes(K.publication_label, key, tbs).hex()
    for name in ("publisher", "realm", "topic", "epoch", "seq", "published_at", "ttl_ms", "one"):
        if name in fields:
            out[name] = as_json(fields[name])
    if "sealed" in fields:
        out["sealed"] = as_json(fields["sealed"])
    return out


def ed25519_family(entry):
    key, message, signature = (bytes.fromhex(entry[name]) for name in ("key", "message", "signature"))
    if not ed25519.good_key(key):
        raise Refused("bad_key_form")
    if not ed25519.verify(key, message, signature):
        raise Refused("signature_invalid")
    if "seed" in entry:
        assert ed25519.public_key(bytes.fromhex(entry["seed"])) == key
        assert ed25519.sign(bytes.fromhex(entry["seed"]), message) == signature
    return True


def topics(entry):
    kind = entry["kind"]
    if kind == "topic":
        return {"segments": len(wire.check_topic(bytes.fromhex(entry["hex"])))}
    if kind == "filter":
        segments = wire.check_filter(bytes.fromhex(entry["hex"]))
        return {"segments": len(segments), "exact": not any(b"*" in one for one in segments)}
    if kind == "match":
        return wire.matches(entry["filter"].encode(), entry["topic"].encode())
    if kind == "parse":
        return wire.parse_name(entry["text"])
    return wire.build_name(entry["parts"])


def read_frames(entry):
    if entry["kind"] == "stream":
        most = entry["max_frame"] if entry["handshake_ended"] else K.handshake_frame_max
        found, left = frames.split_stream(bytes.fromhex(entry["hex"]), most)
        return {"frames": [one.hex() for one in found], "left": left}
    phase = "open" if entry["phase"] == "open" else tuple(entry["phase"].split("|"))
    kind, fields = frames.read_frame(bytes.fromhex(entry["hex"]), phase)
    if fields is None:
        return {"frame_type": kind, "known": False}
    out = {"frame_type": kind, "known": True, "fields": {}}
    for name, value in fields.items():
        if name == "publication":
            try:
                value = dict(zip(("key", "tbs", "signature"), wire.object_shape(value)))
            except Refused:
                value = "malformed"
        out["fields"][name] = as_json(value)
    return out


def links(entry):
    return frames.link_walk(entry["steps"])


def handshake(entry):
    local = entry["local"]
    given = {name: bytes.fromhex(entry[name]) for name in ("opener", "challenge", "connect", "hello") if name in entry}
    own, binding = bytes.fromhex(local["id"]), bytes.fromhex(local["binding"])
    if entry["checks"] == "dialler":
        named = local["named"] and bytes.fromhex(local["named"])
        return frames.dialler_reads(given, own, named, binding, local.get("proved"))
    return frames.answerer_reads(given, own, local, binding)


def positions(entry):
    return as_json(frames.read_positions(bytes.fromhex(entry["hex"])))


def codes(entry):
    title, field, rows = frames.closed_sets()[entry["section"]]
    for number, text, means, do in rows:
        if text == entry["text"]:
            local = "local only" in means
            return {"set": title, "field": field, "number": number, "means": means, "do": do, "local": local}
    raise Refused("not_in_the_table")


TRACES = {"dedup": model_flow.Dedup, "order": model_flow.Order, "guess": model_flow.Guess, "ring": model_flow.Ring, "resume": model_resume.Resume, "liveness": model_links.Liveness, "backoff": model_links.Backoff, "outcomes": model_outcomes.Outcomes, "continuity": model_continuity.Continuity, "sources": model_sources.Sources}

FAMILIES = {
    "cbor": cbor,
    "ids": ids,
    "objects": objects,
    "publications": publications,
    "seal": model_seal.family,
    "keys": model_keys.family,
    "topics": topics,
    "frames": read_frames,
    "links": links,
    "handshake": handshake,
    "positions": positions,
    "codes": codes,
    **TRACES,
    "rfc/rfc8032": ed25519_family,
    "rfc/rfc8949": cbor,
}


def judge(family, entry):
    """The outcome of one entry."""
    if family in TRACES:
        return model_flow.run(TRACES[family], entry)
    try:
        return {"expect": FAMILIES[family](entry)}
    except Refused as refused:
        more = {key: value for key, value in refused.more.items() if key in ("segment", "at", "told", "refusal", "step")}
        return {"refuse": refused.reason, **more}
