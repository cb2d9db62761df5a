"""seal.json: WIRE.md section 6.1."""

import aead
import model_seal as seal
from cast import ALICE, BOB, EPOCH, NOW, OTHER, REALM, TOPIC, obj, tbs_of
from constants import K
from family import Family
from gen_objects import nest
from model_cbor import enc
from model_wire import realm_id

PERIOD = bytes(range(32))
PERIOD_ID = b"\xa1\xb2\xc3\xd4\xe5\xf6\x07\x18"
NEXT_PERIOD, NEXT_ID = b"\x42" * 32, b"\x02" * 8
ENTROPY = bytes(range(100, 132))
PAYLOAD = enc({"order": 7, "total": 12.5})
PLACE = {
    "realm": REALM,
    "topic": TOPIC,
    "publisher": ALICE.id,
    "epoch": EPOCH,
    "seq": 1,
    "published_at": NOW,
    "key_id": PERIOD_ID,
}


def without(fields, name):
    return {key: value for key, value in fields.items() if key != name}


def entry(kind, **given):
    return {"kind": kind, **{name: value.hex() if type(value) is bytes else value for name, value in given.items()}}


def family():
    f = Family("seal", "WIRE.md section 6.1: payloads sealed, ciphertexts opened, sealed publications.")
    sealing(f)
    opening(f)
    moved(f)
    otherwise_sealed(f)
    events(f)
    return f


def sealing(f):
    def yes(name, plain=PAYLOAD, period=PERIOD, entropy=ENTROPY, **change):
        place = {key: value for key, value in {**PLACE, **change}.items() if value is not None}
        f.accept(name, entry("seal", period_key=period, entropy=entropy, **place, plain=plain))

    top = 2**53 - 1
    yes("seal")
    yes("seal_by_another_publisher", publisher=BOB.id)
    yes("seal_in_another_period", period=NEXT_PERIOD, key_id=NEXT_ID)
    yes("seal_under_another_key_of_the_same_id", period=NEXT_PERIOD)
    yes("seal_with_other_entropy", entropy=bytes(32))
    yes("seal_in_another_realm", realm=realm_id(b"io.other"))
    for name, change in (
        ("without_epoch", {"epoch": None}),
        ("epoch_1", {"epoch": 1}),
        ("epoch_highest", {"epoch": top}),
        ("seq_2", {"seq": 2}),
        ("seq_highest", {"seq": top}),
        ("published_at_0", {"published_at": 0}),
        ("published_at_highest", {"published_at": top}),
        ("topic_of_one_byte", {"topic": "a"}),
        ("topic_of_23_bytes", {"topic": "a" * 23}),
        ("topic_of_24_bytes", {"topic": "a" * 24}),
        ("topic_of_256_bytes", {"topic": "a" * 256}),
        ("topic_of_512_bytes", {"topic": "a" * 512}),
        ("topic_of_many_bytes_a_letter", {"topic": "水/é"}),
    ):
        yes(f"seal_{name}", **change)
    for length in (0, 1, 15, 16, 17, 47, 48, 63, 64, 65, 127, 128, 129, 256, 300, 1000):
        yes(f"seal_{length}_bytes", plain=bytes(at % 251 for at in range(length)))


def given(period=PERIOD, plain=PAYLOAD, **change):
    """An event that opens."""
    place = {**PLACE, **change}
    nonce = seal.nonce_of(ENTROPY, place)
    return {"period_key": period, **place, "nonce": nonce, "ct": seal.sealed_with(place, period, nonce, plain)}


def opening(f):
    good = given()
    f.accept("open", entry("open", **good), plain=PAYLOAD.hex())
    f.accept("open_no_bytes", entry("open", **given(plain=b"")), plain="")
    f.accept("open_what_is_no_cbor", entry("open", **given(plain=b"\xff" * 40)), plain="ff" * 40)
    f.accept("open_without_epoch", entry("open", **without(good, "epoch")) | clear_of_epoch(), plain=PAYLOAD.hex())
    for name in seal.FLIPPED:
        f.refuse(f"each_bit_of_{name}", entry("open", **good, flip=name), "tag_invalid")
    whole = good["ct"]
    for name, ct in (
        *((f"of_{length}_bytes", whole[:length]) for length in (0, 1, 15, 16)),
        ("of_16_zeros", bytes(16)),
        ("without_its_last_byte", whole[:-1]),
        ("without_its_first_byte", whole[1:]),
        ("with_one_byte_more", whole + b"\x00"),
        ("with_one_byte_in_front", b"\x00" + whole),
        ("without_its_tag", whole[:-16]),
        ("with_its_tag_in_front", whole[-16:] + whole[:-16]),
        ("with_the_tag_of_another", whole[:-16] + given(seq=2)["ct"][-16:]),
        ("with_a_tag_of_zeros", whole[:-16] + bytes(16)),
        ("of_another_event", given(seq=2)["ct"]),
    ):
        f.refuse(f"ct_{name}", entry("open", **{**good, "ct": ct}), "tag_invalid")


def clear_of_epoch():
    place = without(PLACE, "epoch")
    nonce = seal.nonce_of(ENTROPY, place)
    return {"ct": seal.sealed_with(place, PERIOD, nonce, PAYLOAD).hex(), "nonce": nonce.hex()}


def moved(f):
    """What was sealed for one place, at another."""
    good = given()
    for name, change in (
        ("realm", {"realm": realm_id(b"io.other")}),
        ("topic", {"topic": TOPIC[:-1] + "2"}),
        ("longer_topic", {"topic": TOPIC + "1"}),
        ("publisher", {"publisher": BOB.id}),
        ("epoch", {"epoch": EPOCH + 1}),
        ("seq", {"seq": 2}),
        ("published_at", {"published_at": NOW + 1}),
        ("key_id", {"key_id": NEXT_ID}),
        ("nonce", {"nonce": bytes(12)}),
        ("period", {"period_key": NEXT_PERIOD, "key_id": NEXT_ID}),
        ("period_key", {"period_key": NEXT_PERIOD}),
        ("epoch_for_seq", {"epoch": 1, "seq": EPOCH}),
        ("seq_for_published_at", {"seq": NOW, "published_at": 1}),
        ("realm_for_publisher", {"realm": ALICE.id, "publisher": REALM}),
    ):
        f.refuse(f"moved_{name}", entry("open", **{**good, **change}), "tag_invalid")
    f.refuse("moved_away_from_its_epoch", entry("open", **without(good, "epoch")), "tag_invalid")
    f.refuse("moved_to_an_epoch", entry("open", **good) | clear_of_epoch(), "tag_invalid")


def otherwise_sealed(f):
    """Sealed by a rule that is not ours; the first shows that ours opens."""
    nonce = seal.nonce_of(ENTROPY, PLACE)
    key, aad = seal.subkey(PERIOD, ALICE.id), seal.aad_of(PLACE)
    expand, extract, label = aead.hkdf_expand, aead.hkdf_extract, K.seal_key_label
    values = [PLACE[name] for name in seal.BOUND]

    def by(key=key, aad=aad, nonce=nonce):
        ct = aead.seal(key, nonce, aad, PAYLOAD)
        return entry("open", period_key=PERIOD, **PLACE, nonce=nonce, ct=ct)

    f.accept("sealed_by_the_rule", by(), plain=PAYLOAD.hex())
    info = seal.info_of(ALICE.id)
    for name, other in (
        ("the_period_key_itself", PERIOD),
        ("the_extracted_key", extract("sha384", label, PERIOD)[:32]),
        ("no_salt", expand("sha384", extract("sha384", b"", PERIOD), info, 32)),
        ("no_info", expand("sha384", extract("sha384", label, PERIOD), b"", 32)),
        ("a_bare_publisher_as_info", expand("sha384", extract("sha384", label, PERIOD), ALICE.id, 32)),
        ("the_label_of_another_scheme", scheme_1_subkey()),
        ("sha256", expand("sha256", extract("sha256", label, PERIOD), info, 32)),
        ("sha512", expand("sha512", extract("sha512", label, PERIOD), info, 32)),
        ("the_realm_for_the_publisher", seal.subkey(PERIOD, REALM)),
    ):
        f.refuse(f"subkey_from_{name}", by(key=other), "tag_invalid")
    for at, name in enumerate(seal.BOUND):
        shorter = [K.seal_aad_label.decode()] + values[:at] + values[at + 1 :]
        f.refuse(f"aad_without_{name}", by(aad=enc(shorter)), "tag_invalid")
    for name, other in (
        ("of_no_bytes", b""),
        ("without_label", enc(values)),
        ("with_the_label_of_keys", enc([label.decode()] + values)),
        ("with_the_label_of_another_scheme", enc(["MACULA-E2E-EVENT-AAD-V1"] + values)),
        ("with_label_as_bytes", enc([K.seal_aad_label] + values)),
        ("with_topic_as_bytes", enc([K.seal_aad_label.decode()] + [TOPIC.encode() if one == TOPIC else one for one in values])),
        ("as_a_map", enc({"label": K.seal_aad_label.decode(), **PLACE})),
        ("joined_without_lengths", K.seal_aad_label + b"".join(one if type(one) is bytes else str(one).encode() for one in values)),
    ):
        f.refuse(f"aad_{name}", by(aad=other), "tag_invalid")


def scheme_1_subkey():
    label = b"MACULA-E2E-EVENT-V1"
    return aead.hkdf_expand("sha384", aead.hkdf_extract("sha384", label, PERIOD), enc([label.decode(), ALICE.id]), 32)


def event(who=ALICE, plain=PAYLOAD, period=PERIOD, key_id=PERIOD_ID, change=None, moved=None, **fields):
    """A signed publication whose payload is `plain`; `change` and `moved` alter what is sealed and what is beside it before it is signed."""
    tbs = seal.seal_body({**tbs_of(who, **fields), "payload": plain}, period, key_id, ENTROPY)
    tbs = {**tbs, **(moved or {}), "sealed": {**tbs["sealed"], **(change or {})}}
    return obj(who, enc(tbs), K.publication_label)


def events(f):
    def yes(name, value, period=PERIOD, plain=PAYLOAD, **more):
        f.accept(name, entry("event", period_key=period, hex=enc(value), **more), payload=plain.hex())

    def no(name, value, period=PERIOD):
        f.refuse(name, entry("event", period_key=period, hex=enc(value)), "tag_invalid")

    yes("event", event(), entropy=ENTROPY)
    yes("event_by_another_publisher", event(BOB), entropy=ENTROPY)
    yes("event_in_another_period", event(period=NEXT_PERIOD, key_id=NEXT_ID), NEXT_PERIOD, entropy=ENTROPY)
    yes("event_with_every_optional_field", event(one=1, ttl_ms=1000), entropy=ENTROPY)
    yes("event_without_epoch", event(epoch=None), entropy=ENTROPY)
    for name, plain in (
        ("null", enc(None)),
        ("of_simple_values", enc({"a": True, "b": False, "c": None})),
        ("of_text", enc("hello")),
        ("of_1000_bytes", enc(b"\x09" * 1000)),
        ("of_63_levels", enc(nest(63))),
        ("with_integer_keys", enc({1: "a", -1: "b"})),
    ):
        yes(f"event_payload_{name}", event(plain=plain), plain=plain, entropy=ENTROPY)
    yes("event_ttl_changed_before_it_was_signed", event(moved={"ttl_ms": 5}))
    yes("event_one_changed_before_it_was_signed", event(moved={"one": 1}))
    for name, plain in (
        ("of_no_bytes", b""),
        ("of_64_levels", enc(nest(64))),
        ("truncated", PAYLOAD[:-1]),
        ("with_a_byte_more", PAYLOAD + b"\x00"),
        ("of_two_values", b"\x01\x02"),
        ("with_a_long_head", b"\x18\x01"),
        ("with_a_tag", b"\xc1\x00"),
        ("undefined", b"\xf7"),
        ("half_float", b"\xf9\x3c\x00"),
        ("not_utf8", b"\x61\xff"),
        ("out_of_order", b"\xa2\x61b\x01\x61a\x01"),
        ("indefinite", b"\x9f\xff"),
        ("and_another_key", b"\x01" + enc("publisher") + enc(BOB.id)),
    ):
        no(f"event_payload_{name}", event(plain=plain))
    no("event_under_the_key_of_another_period", event(), NEXT_PERIOD)
    no("event_of_a_key_nobody_gave_out", event(period=bytes(32)))
    no("event_ct_of_zeros", event(change={"ct": bytes(16)}))
    no("event_ct_is_the_payload", event(change={"ct": PAYLOAD}))
    no("event_ct_of_another", event(change={"ct": sealed_of(event(seq=2))["ct"]}))
    no("event_scheme_1", event(change={"scheme": 1}))
    for name, change in (
        ("topic", {"topic": TOPIC[:-1] + "2"}),
        ("realm", {"realm": realm_id(b"io.other")}),
        ("epoch", {"epoch": EPOCH + 1}),
        ("seq", {"seq": 2}),
        ("published_at", {"published_at": NOW + 1}),
    ):
        no(f"event_{name}_changed_before_it_was_signed", event(moved=change))
    no("event_key_id_changed_before_it_was_signed", event(change={"key_id": NEXT_ID}))
    no("event_nonce_changed_before_it_was_signed", event(change={"nonce": bytes(12)}))
    stolen = obj(OTHER, enc({**tbs_of(OTHER, payload=None), "sealed": sealed_of(event())}), K.publication_label)
    no("event_stolen_and_signed_by_another", stolen)


def sealed_of(value):
    return seal.wire.read_tbs(value["tbs"], "payload")["sealed"]
