"""The fixed keys, ids and builders the generators share."""

import ed25519
from constants import K
from model_cbor import enc
from model_wire import node_id, realm_id, signed_bytes

NOW = 1_790_000_000_000  # Unix ms; every time in the vectors is near it
EPOCH = NOW * 1000  # µs


class Who:
    def __init__(self, number):
        self.seed = bytes([number]) * 32
        self.key = ed25519.public_key(self.seed)
        self.id = node_id(self.key)

    def sign(self, message):
        return ed25519.sign(self.seed, message)


ALICE, BOB, STATION, OTHER = Who(1), Who(2), Who(3), Who(4)
REALM = realm_id(b"io.example")
TOPIC = "io.example/acme/shop/orders/placed_v1"


def obj(who, tbs, label, **change):
    """A signed object over the bytes `tbs`."""
    out = {"key": who.key, "tbs": tbs, "signature": who.sign(signed_bytes(label, who.key, tbs))}
    out.update(change)
    return {name: value for name, value in out.items() if value is not None}


def tbs_of(who=ALICE, **change):
    """The fields of a publication; None takes a field away."""
    fields = {
        "alg": K.alg,
        "seq": 1,
        "epoch": EPOCH,
        "realm": REALM,
        "topic": TOPIC,
        "payload": {"order": 7, "total": 12.5},
        "publisher": who.id,
        "published_at": NOW,
    }
    fields.update(change)
    return {name: value for name, value in fields.items() if value is not None}


def publication(who=ALICE, **change):
    return obj(who, enc(tbs_of(who, **change)), K.publication_label)


def frame(kind, **fields):
    return {"version": 1, "frame_type": kind, **fields}
