"""Naive reader and writer of WIRE.md section 6.1, the event seal."""

import hashlib
import struct

import aead
import model_wire as wire
from constants import K
from model_cbor import Refused, enc, walk

# What a ciphertext is bound to, and what its nonce is made of beside the entropy; `check.py --sabotage` leaves one out at a time.
BOUND = ["realm", "topic", "publisher", "epoch", "seq", "published_at", "key_id"]
MIXED = ["epoch", "seq", "published_at"]
FLIPPED = ("ct", "nonce", "period_key", *BOUND)
BITS = 53  # of a number


def prk_of(period_key):
    if len(period_key) != K.seal_period_key_bytes:
        raise Refused("malformed")
    return aead.hkdf_extract(K.seal_kdf_hash, K.seal_key_label, period_key)


def info_of(publisher):
    return enc([K.seal_key_label.decode(), publisher])


def subkey(period_key, publisher):
    return aead.hkdf_expand(K.seal_kdf_hash, prk_of(period_key), info_of(publisher), K.seal_subkey_bytes)


def bound(place, name):
    return place.get("epoch", K.seal_no_epoch) if name == "epoch" else place[name]


def aad_of(place):
    return enc([K.seal_aad_label.decode()] + [bound(place, name) for name in BOUND])


def nonce_of(entropy, place):
    if len(entropy) != K.seal_entropy_bytes:
        raise Refused("malformed")
    numbers = b"".join(struct.pack(">Q", bound(place, name)) for name in MIXED)
    return hashlib.new(K.seal_nonce_hash, entropy + numbers).digest()[: K.seal_nonce_bytes]


def sealed_with(place, period_key, nonce, plain):
    return aead.seal(subkey(period_key, place["publisher"]), nonce, aad_of(place), plain)


def opened(place, period_key, nonce, ct):
    plain = aead.open_(subkey(period_key, place["publisher"]), nonce, aad_of(place), ct, K.seal_tag_bytes)
    if plain is None:
        raise Refused("tag_invalid")
    return plain


def payload_of(fields, plain):
    """What was sealed, when it could have stood as `payload` beside these fields."""
    try:
        _, reader = walk(plain, "always")
    except Refused:
        raise Refused("tag_invalid") from None
    if reader.deepest + 1 > K.max_depth or reader.items + 2 * len(fields) > K.max_items:
        raise Refused("tag_invalid")
    return plain


def seal_body(fields, period_key, key_id, entropy):
    """The fields of a publication with its payload, given as bytes, sealed."""
    plain = fields["payload"]
    place = {**fields, "key_id": key_id}
    nonce = nonce_of(entropy, place)
    body = {"ct": sealed_with(place, period_key, nonce, plain), "nonce": nonce, "key_id": key_id, "scheme": K.seal_scheme}
    return {**{name: value for name, value in fields.items() if name != "payload"}, "sealed": body}


def read(entry):
    """The entry with bytes for hex."""
    names = ("period_key", "key_id", "entropy", "realm", "publisher", "plain", "nonce", "ct", "hex")
    return {name: bytes.fromhex(value) if name in names else value for name, value in entry.items()}


def flips(value):
    """`value` with one bit changed: each bit of bytes, the lower seven of each letter, the bits of a number."""
    if type(value) is int:
        return [value ^ 1 << bit for bit in range(BITS)]
    if type(value) is str:
        data = value.encode("ascii")
        return [(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]).decode() for at in range(len(data)) for bit in range(7)]
    return [value[:at] + bytes([value[at] ^ 1 << bit]) + value[at + 1 :] for at in range(len(value)) for bit in range(8)]


def open_entry(given):
    return opened(given, given["period_key"], given["nonce"], given["ct"])


def family(entry):
    given = read(entry)
    if given["kind"] == "seal":
        nonce = nonce_of(given["entropy"], given)
        ct = sealed_with(given, given["period_key"], nonce, given["plain"])
        return {"aad": aad_of(given).hex(), "nonce": nonce.hex(), "ct": ct.hex()}
    if given["kind"] == "open" and "flip" in given:
        name = given["flip"]
        open_entry(given)  # before any bit is changed it opens
        for changed in flips(given[name]):
            try:
                return {"plain": open_entry({**given, name: changed}).hex()}
            except Refused:
                pass
        raise Refused("tag_invalid")
    if given["kind"] == "open":
        return {"plain": open_entry(given).hex()}
    value, _ = walk(given["hex"])
    fields = wire.verify_publication(value, wire.read_tbs(value["tbs"], "payload")["published_at"])[0]
    sealed = fields["sealed"]
    if sealed["scheme"] != K.seal_scheme:
        raise Refused("tag_invalid")
    place = {**fields, "key_id": sealed["key_id"]}
    plain = opened(place, given["period_key"], sealed["nonce"], sealed["ct"])
    if "entropy" in given:
        assert nonce_of(given["entropy"], place) == sealed["nonce"]
    return {"key_id": sealed["key_id"].hex(), "payload": payload_of(fields, plain).hex()}
