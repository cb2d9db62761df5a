"""Naive readers of WIRE.md sections 1 and 3 to 11: ids, signed objects, publications, topics, names, frames, positions.

Each function answers with plain values or raises `Refused`.
"""

import hashlib

import ed25519
from constants import K
from model_cbor import Refused, walk

# Section 4: ids.


def realm_id(name):
    if not 1 <= len(name) <= K.realm_name_max:
        raise Refused("bad_length")
    return hashlib.sha256(name).digest()


def id_of(label, key, profile=None):
    name = (K.profile if profile is None else profile).encode()
    return hashlib.sha256(label + b"\x00" + bytes([len(name)]) + name + key).digest()


def node_id(key):
    return id_of(K.node_id_label, key)


def key_id(key):
    return id_of(K.key_id_label, key)


def id_from_text(text):
    if len(text) != 2 * K.id_bytes or any(c not in "0123456789abcdef" for c in text):
        raise Refused("bad_text_form")
    return bytes.fromhex(text)


# Section 5: signed objects.

LABELS = ("publication", "connect", "hello", "record", "request", "reply", "grant")


def label_of(purpose):
    return getattr(K, purpose + "_label")


def signed_bytes(label, key, tbs):
    return label + K.label_end + hashlib.new(K.object_hash, key).digest() + tbs


def object_shape(value):
    """key, tbs and signature of a map that has the shape of a signed object."""
    if type(value) is not dict or set(value) != {"key", "tbs", "signature"}:
        raise Refused("malformed")
    if any(type(value[name]) is not bytes for name in value):
        raise Refused("malformed")
    return value["key"], value["tbs"], value["signature"]


def check_key_and_length(key, signature):
    if len(key) != K.key_bytes or not ed25519.good_key(key):
        raise Refused("bad_key_form")
    if len(signature) != K.signature_bytes:
        raise Refused("malformed")


def check_alg(fields):
    if type(fields) is not dict or any(type(key) is not str for key in fields) or type(fields.get("alg")) is not str:
        raise Refused("malformed")
    if fields["alg"] != K.alg:
        raise Refused("alg_mismatch")


def read_tbs(tbs, simple):
    try:
        return walk(tbs, simple)[0]
    except Refused as refused:
        raise Refused("malformed", why=refused.reason) from None


def verify_object(value, label):
    key, tbs, signature = object_shape(value)
    check_key_and_length(key, signature)
    if not ed25519.verify(key, signed_bytes(label, key, tbs), signature):
        raise Refused("signature_invalid")
    fields = read_tbs(tbs, "never")
    check_alg(fields)
    return fields


# Section 6: publications.


def is_uint(value, low=0, high=None):
    return type(value) is int and low <= value <= (K.number_high if high is None else high)


def is_bytes(value, length):
    return type(value) is bytes and len(value) == length


def is_sealed(value):
    return (
        type(value) is dict
        and set(value) == {"ct", "nonce", "key_id", "scheme"}
        and type(value["ct"]) is bytes
        and len(value["ct"]) >= K.ct_min
        and is_bytes(value["nonce"], K.seal_nonce_bytes)
        and is_bytes(value["key_id"], K.seal_key_id_bytes)
        and type(value["scheme"]) is int
        and value["scheme"] in K.seal_schemes
    )


def is_topic(value):
    if type(value) is not str:
        return False
    try:
        check_topic(value.encode())
    except Refused:
        return False
    return True


PUBLICATION = {
    "alg": (True, lambda v: type(v) is str),
    "one": (False, lambda v: is_uint(v, 1, 1)),
    "seq": (True, lambda v: is_uint(v, K.seq_low)),
    "epoch": (False, lambda v: is_uint(v, K.epoch_low)),
    "realm": (True, lambda v: is_bytes(v, K.id_bytes)),
    "topic": (True, is_topic),
    "sealed": (False, is_sealed),
    "ttl_ms": (False, lambda v: is_uint(v, 0, K.ttl_max_ms)),
    "payload": (False, lambda v: True),
    "publisher": (True, lambda v: is_bytes(v, K.id_bytes)),
    "published_at": (True, lambda v: is_uint(v)),
}


def verify_publication(value, now):
    """All that is known of a publication that is good at the wall time `now`."""
    key, tbs, signature = object_shape(value)
    check_key_and_length(key, signature)
    fields = read_tbs(tbs, "payload")
    if type(fields) is not dict:
        raise Refused("malformed")
    for name in fields:
        if name not in PUBLICATION or not PUBLICATION[name][1](fields[name]):
            raise Refused("malformed")
    for name, (required, _) in PUBLICATION.items():
        if required and name not in fields:
            raise Refused("malformed")
    if ("payload" in fields) == ("sealed" in fields):
        raise Refused("malformed")
    check_alg(fields)
    if fields["publisher"] != node_id(key):
        raise Refused("key_id_mismatch")
    if not ed25519.verify(key, signed_bytes(K.publication_label, key, tbs), signature):
        raise Refused("signature_invalid")
    expires_at = fields["published_at"] + fields.get("ttl_ms", K.ttl_default_ms) + K.skew_ms
    if fields["published_at"] > now + K.skew_ms:
        raise Refused("not_yet_valid")
    if now > expires_at:
        raise Refused("expired")
    digest = hashlib.new(K.publication_hash, tbs).digest()
    return fields, digest, expires_at


# Section 7: topics, filters, names.


def check_segments(data, is_filter):
    if not data:
        raise Refused("empty")
    if len(data) > K.topic_max:
        raise Refused("too_long")
    segments = data.split(b"/")
    if len(segments) > K.topic_segments:
        raise Refused("too_many_segments")
    if any(not one for one in segments):
        raise Refused("empty_segment")
    for at, one in enumerate(segments):
        if b"*" not in one or is_filter and one == b"*":
            continue
        if is_filter and one == b"**" and at == len(segments) - 1:
            continue
        raise Refused("wildcard")
    return segments


def check_topic(data):
    return check_segments(data, False)


def check_filter(data):
    return check_segments(data, True)


def matches(filter_, topic):
    wanted, given = check_filter(filter_), check_topic(topic)
    if given[0].startswith(b"_") and wanted[0] in (b"*", b"**"):
        return False
    if wanted[-1] == b"**":
        if len(given) < len(wanted):
            return False
        wanted, given = wanted[:-1], given[: len(wanted) - 1]
    if len(wanted) != len(given):
        return False
    return all(want == b"*" or want == got for want, got in zip(wanted, given))


FIRST = "abcdefghijklmnopqrstuvwxyz0123456789"


def is_name_segment(text):
    return text != "" and text[0] in FIRST and all(c in FIRST + "._-" for c in text)


def tier_of(org, app):
    if (org == "_realm") != (app == "_realm"):
        raise Refused("tier", segment="app" if org == "_realm" else "org")
    if org == "_org":
        raise Refused("tier", segment="org")
    return "realm" if org == "_realm" else "org" if app == "_org" else "app"


def check_name_segments(tier, realm, org, app, domain, name):
    """The first segment, in this order, that breaks the rule."""
    for slot, text in (("realm", realm), ("org", org), ("app", app), ("domain", domain), ("name", name)):
        reserved = slot == "org" and tier == "realm" or slot == "app" and tier in ("realm", "org")
        if not reserved and not is_name_segment(text):
            raise Refused("segment", segment=slot)


def parse_name(text):
    segments = text.split("/")
    if len(segments) != K.name_segments:
        raise Refused("structure")
    if len(text.encode()) > K.topic_max:
        raise Refused("too_long")
    realm, org, app, domain, last = segments
    name, found, digits = last.rpartition("_v")
    if not found or not digits or any(c not in "0123456789" for c in digits):
        raise Refused("version", segment="name")
    if digits[0] == "0" or int(digits) > K.name_version_high:
        raise Refused("version", segment="name")
    tier = tier_of(org, app)
    check_name_segments(tier, realm, org, app, domain, name)
    out = {"tier": tier, "realm": realm, "domain": domain, "name": name, "version": int(digits)}
    if tier != "realm":
        out["org"] = org
    if tier == "app":
        out["app"] = app
    return out


def build_name(parts):
    tier = parts["tier"]
    org = "_realm" if tier == "realm" else parts["org"]
    app = {"realm": "_realm", "org": "_org"}.get(tier) or parts["app"]
    text = "/".join((parts["realm"], org, app, parts["domain"], "%s_v%d" % (parts["name"], parts["version"])))
    check_name_segments(tier, parts["realm"], org, app, parts["domain"], parts["name"])
    if len(text.encode()) > K.topic_max:
        raise Refused("too_long")
    return text
