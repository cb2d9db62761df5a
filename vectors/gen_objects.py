"""ids.json, objects.json and publications.json: WIRE.md sections 4, 5 and 6."""

import hashlib

import ed25519
from cast import ALICE, BOB, EPOCH, NOW, OTHER, STATION, TOPIC, obj, publication, tbs_of
from constants import K
from family import Family
from model_cbor import enc
from model_wire import LABELS, id_of, label_of, signed_bytes

# Keys that are no keys, and points used to build signatures that only a lax verifier takes.
P = ed25519.P
TORSION = next(  # a point of order 8
    point
    for point in (ed25519.times(ed25519.L, p) for p in (ed25519.from_y(y, 0) for y in range(2, 50)) if p)
    if not ed25519.same(ed25519.times(4, point), ed25519.IDENTITY)
)
SMALL = sorted({ed25519.encode(ed25519.times(n, TORSION)) for n in range(8)})
HIGH_Y = next(  # y written as y + p, on the curve and not of small order
    (y + P).to_bytes(32, "little")
    for y in range(2, 19)
    if ed25519.from_y(y, 0) and not ed25519.small_order(ed25519.from_y(y, 0))
)
OFF_CURVE = next(y.to_bytes(32, "little") for y in range(2, 50) if not ed25519.from_y(y, 0))
BAD_KEYS = [(f"small_order_{n}", key) for n, key in enumerate(SMALL)] + [
    ("y_is_p", P.to_bytes(32, "little")),
    ("y_is_p_plus_1", (P + 1).to_bytes(32, "little")),
    ("y_above_p", HIGH_Y),
    ("all_ones", b"\xff" * 32),
    ("minus_zero", (1 | 1 << 255).to_bytes(32, "little")),
    ("minus_zero_of_minus_one", (P - 1 | 1 << 255).to_bytes(32, "little")),
    ("off_the_curve", OFF_CURVE),
]


def ids():
    f = Family("ids", "WIRE.md section 4: realm ids, node ids, key ids, ids as text, the exporter's label and context.")
    for name in ("io.example", "io.macula", "a", "IO.Example", " io.example", "日本", "x" * 255):
        f.accept(f"realm_{name if len(name) < 20 else '255_bytes'}", {"kind": "realm", "name_hex": name.encode().hex()})
    f.refuse("realm_of_no_bytes", {"kind": "realm", "name_hex": ""}, "bad_length")
    f.refuse("realm_of_256_bytes", {"kind": "realm", "name_hex": "78" * 256}, "bad_length")
    for number, who in enumerate((ALICE, BOB, STATION, OTHER), 1):
        f.accept(f"node_{number}", {"kind": "node", "key": who.key.hex()})
        f.accept(f"key_{number}", {"kind": "key", "key": who.key.hex()})
    for name, key in BAD_KEYS:
        f.refuse(f"key_{name}", {"kind": "node", "key": key.hex()}, "bad_key_form")
    f.refuse("key_of_31_bytes", {"kind": "node", "key": ALICE.key[:31].hex()}, "bad_key_form")
    f.refuse("key_of_33_bytes", {"kind": "node", "key": ALICE.key.hex() + "00"}, "bad_key_form")
    f.accept("text", {"kind": "text", "text": ALICE.id.hex()})
    for name, text in (
        ("upper_case", ALICE.id.hex().upper()),
        ("63_digits", ALICE.id.hex()[:63]),
        ("65_digits", ALICE.id.hex() + "0"),
        ("no_digits", ""),
        ("0x_in_front", "0x" + ALICE.id.hex()[2:]),
        ("not_a_digit", "g" + ALICE.id.hex()[1:]),
        ("newline_at_the_end", ALICE.id.hex()[:63] + "\n"),
    ):
        f.refuse(f"text_{name}", {"kind": "text", "text": text}, "bad_text_form")
    f.accept("exporter", {"kind": "exporter", "dialler": ALICE.id.hex(), "answerer": STATION.id.hex()})
    return f


def scalar(who):
    return ed25519.secret(who.seed)[0]


def high_s(signature):
    return signature[:32] + (int.from_bytes(signature[32:], "little") + ed25519.L).to_bytes(32, "little")


def small_r(who, message):
    """R is the identity and s solves the equation for it: only the order of R is wrong."""
    r = ed25519.encode(ed25519.IDENTITY)
    return r + (ed25519.number(r, who.key, message) * scalar(who) % ed25519.L).to_bytes(32, "little")


def mixed_key():
    """A key with a part of order 8: not of small order, so a good key."""
    return ed25519.encode(ed25519.add(ed25519.times(scalar(ALICE), ed25519.BASE), TORSION))


def mixed_signature(message, divisible):
    """A signature under the mixed key that the equation without a cofactor takes exactly when 8 divides the hash."""
    key = mixed_key()
    for r in range(1, 500):
        commitment = ed25519.encode(ed25519.times(r, ed25519.BASE))
        k = ed25519.number(commitment, key, message)
        if (k % 8 == 0) == divisible:
            return commitment + ((r + k * scalar(ALICE)) % ed25519.L).to_bytes(32, "little")
    raise AssertionError


def objects():
    f = Family("objects", "WIRE.md section 5: signed objects under each label, with the bytes that are signed.")

    def given(value, purpose="publication"):
        return {"purpose": purpose, "hex": enc(value).hex()}

    tbs = enc({"alg": "Ed25519", "n": 1})
    for purpose in LABELS:
        f.accept(f"label_{purpose}", given(obj(ALICE, tbs, label_of(purpose)), purpose))
    for purpose in LABELS:
        other = "record" if purpose != "record" else "grant"
        f.refuse(f"label_of_{other}_for_{purpose}", given(obj(ALICE, tbs, label_of(other)), purpose), "signature_invalid")
    label = K.record_label

    def make(tbs_, who=ALICE, **change):
        return given(obj(who, tbs_, label, **change), "record")

    f.accept("tbs_of_alg_alone", make(enc({"alg": "Ed25519"})))
    f.accept("tbs_with_every_kind", make(enc({"alg": "Ed25519", "a": [1, -1, "t", b"b", 0.5, {"k": {}}]})))
    f.accept("tbs_of_1000_bytes", make(enc({"alg": "Ed25519", "b": b"\x07" * 1000})))
    # Shape.
    good = obj(ALICE, tbs, label)
    for name in good:
        f.refuse(f"without_{name}", given({k: v for k, v in good.items() if k != name}, "record"), "malformed")
        for kind, value in (("text", "x"), ("number", 1), ("array", []), ("map", {})):
            f.refuse(f"{name}_is_{kind}", given({**good, name: value}, "record"), "malformed")
    f.refuse("with_another_key", given({**good, "x": b""}, "record"), "malformed")
    f.refuse("with_an_integer_key", given({**good, 1: b""}, "record"), "malformed")
    f.refuse("empty_map", given({}, "record"), "malformed")
    f.refuse("array_of_three", given([good["key"], good["tbs"], good["signature"]], "record"), "malformed")
    # The key's form.
    for name, key in BAD_KEYS:
        f.refuse(f"key_{name}", make(tbs, key=key), "bad_key_form")
    f.refuse("key_of_31_bytes", make(tbs, key=ALICE.key[:31]), "bad_key_form")
    f.refuse("key_of_33_bytes", make(tbs, key=ALICE.key + b"\x00"), "bad_key_form")
    f.refuse("key_of_no_bytes", make(tbs, key=b""), "bad_key_form")
    # The signature.
    for length in (0, 63, 65):
        f.refuse(f"signature_of_{length}_bytes", make(tbs, signature=(good["signature"] + b"\x00")[:length]), "malformed")
    signed = signed_bytes(label, ALICE.key, tbs)
    f.refuse("signature_by_another_key", make(tbs, key=BOB.key), "signature_invalid")
    f.refuse("signature_over_other_tbs", make(enc({"alg": "Ed25519", "n": 2}), signature=good["signature"]), "signature_invalid")
    f.refuse("signature_with_s_above_l", make(tbs, signature=high_s(good["signature"])), "signature_invalid")
    f.refuse("signature_with_r_of_small_order", make(tbs, signature=small_r(ALICE, signed)), "signature_invalid")
    f.refuse("signature_of_zeros", make(tbs, signature=bytes(64)), "signature_invalid")
    f.refuse("signature_over_tbs_alone", make(tbs, signature=ALICE.sign(tbs)), "signature_invalid")
    f.refuse("signature_without_key_hash", make(tbs, signature=ALICE.sign(label + b"\x00" + tbs)), "signature_invalid")
    f.refuse("signature_without_the_zero", make(tbs, signature=ALICE.sign(signed.replace(b"\x00", b"", 1))), "signature_invalid")
    hashed = label + b"\x00" + hashlib.sha256(ALICE.key).digest() + tbs
    f.refuse("signature_with_sha256_of_the_key", make(tbs, signature=ALICE.sign(hashed)), "signature_invalid")
    mixed = signed_bytes(label, mixed_key(), tbs)
    f.accept("mixed_order_key", make(tbs, key=mixed_key(), signature=mixed_signature(mixed, True)))
    f.refuse(
        "mixed_order_key_needs_a_cofactor",
        make(tbs, key=mixed_key(), signature=mixed_signature(mixed, False)),
        "signature_invalid",
    )
    # tbs, then alg.
    for name, data in (
        ("empty", b""),
        ("array", enc([])),
        ("trailing_byte", tbs + b"\x00"),
        ("truncated", tbs[:-1]),
        ("keys_out_of_order", bytes.fromhex("a2") + enc("n") + enc(1) + enc("alg") + enc("Ed25519") + b"\x00"),
        ("duplicate_key", bytes.fromhex("a2") + (enc("alg") + enc("Ed25519")) * 2),
        ("long_head", b"\xa2" + enc("alg") + enc("Ed25519") + enc("n") + b"\x18\x01"),
        ("null_inside", enc({"alg": "Ed25519", "n": None})),
        ("true_in_a_payload", enc({"alg": "Ed25519", "payload": True})),
        ("without_alg", enc({"n": 1})),
        ("alg_is_bytes", enc({"alg": b"Ed25519"})),
        ("alg_is_a_number", enc({"alg": 1})),
        ("integer_key", enc({1: 1, "alg": "Ed25519"})),
    ):
        f.refuse(f"tbs_{name}", make(data), "malformed")
    for name, alg in (("lower_case", "ed25519"), ("another", "ML-DSA-87"), ("empty", ""), ("longer", "Ed25519ph")):
        f.refuse(f"alg_{name}", make(enc({"alg": alg})), "alg_mismatch")
    # Order of checks.
    f.refuse("order_shape_before_key", make(tbs, key=b"", x=b""), "malformed")
    f.refuse("order_key_before_signature_length", make(tbs, key=SMALL[0], signature=b""), "bad_key_form")
    f.refuse("order_signature_before_tbs", make(b"", signature=good["signature"]), "signature_invalid")
    f.refuse("order_signature_before_alg", make(enc({"alg": "x"}), signature=good["signature"]), "signature_invalid")
    f.refuse("order_tbs_before_alg", make(enc({"alg": "x"}) + b"\x00"), "malformed")
    return f


def publications():
    f = Family("publications", "WIRE.md section 6: whole publications, judged alone at the wall time `now` (ms).")

    def yes(name, value, now=NOW, **expect):
        f.accept(name, {"now": now, "hex": enc(value).hex()}, **expect)

    def no(name, value, reason, now=NOW):
        f.refuse(name, {"now": now, "hex": enc(value).hex()}, reason)

    yes("plain", publication(), expires_at=NOW + 900_000)
    yes("by_another_key", publication(BOB), publisher=BOB.id.hex())
    accepted_fields(yes)
    malformed_fields(no)
    for name, alg in (("lower_case", "ed25519"), ("another", "ML-DSA-87"), ("empty", "")):
        no(f"alg_{name}", publication(alg=alg), "alg_mismatch")
    no("publisher_is_another_node", publication(publisher=BOB.id), "key_id_mismatch")
    no("publisher_is_the_key_id", publication(publisher=id_of(K.key_id_label, ALICE.key)), "key_id_mismatch")
    no("publisher_is_the_key", publication(publisher=ALICE.key), "key_id_mismatch")
    no("publisher_under_another_profile", publication(publisher=id_of(K.node_id_label, ALICE.key, "x")), "key_id_mismatch")
    signatures(no)
    freshness(yes, no)
    order(no)
    yes("br_40_ok_at_seq_1", publication(payload="ok", seq=1), seq=1)
    yes("br_40_ok_at_seq_2", publication(payload="ok", seq=2), seq=2)
    hashes = {one["expect"]["publication_hash"] for one in f.entries if one["name"].startswith("br_40")}
    assert len(hashes) == 2
    return f


def sealed(**change):
    out = {"ct": b"\x05" * 16, "nonce": b"\x06" * 12, "key_id": b"\x07" * 8, "scheme": 2, **change}
    return {name: value for name, value in out.items() if value is not None}


def accepted_fields(yes):
    top = 2**53 - 1
    for name, fields in (
        ("seq_highest", {"seq": top}),
        ("seq_2", {"seq": 2}),
        ("without_epoch", {"epoch": None}),
        ("epoch_1", {"epoch": 1}),
        ("epoch_highest", {"epoch": top}),
        ("one", {"one": 1}),
        ("realm_of_zeros", {"realm": bytes(32)}),
        ("topic_of_one_byte", {"topic": "a"}),
        ("topic_of_512_bytes", {"topic": "a" * 512}),
        ("topic_of_16_segments", {"topic": "/".join("abcdefghijklmnop")}),
        ("topic_of_the_system", {"topic": "_call/" + ALICE.id.hex()}),
        ("topic_of_many_bytes_a_letter", {"topic": "水" * 170 + "ab"}),
        ("ttl_0", {"ttl_ms": 0}),
        ("ttl_highest", {"ttl_ms": 3_600_000}),
        ("payload_null", {"payload": None}),
        ("payload_0", {"payload": 0}),
        ("payload_bytes", {"payload": b"\x00\x01"}),
        ("payload_text", {"payload": "hello"}),
        ("payload_float", {"payload": -0.0}),
        ("payload_with_simple_values", {"payload": {"a": True, "b": False, "c": None, "d": [None, [True]]}}),
        ("payload_with_integer_keys", {"payload": {1: "a", -1: "b", "c": 2**63 - 1, "d": -(2**63)}}),
        ("payload_of_63_levels", {"payload": nest(63)}),
        ("payload_of_1000_bytes", {"payload": b"\x09" * 1000}),
        ("sealed_scheme_2", {"payload": None, "sealed": sealed()}),
        ("sealed_scheme_1", {"payload": None, "sealed": sealed(scheme=1)}),
        ("sealed_longer", {"payload": None, "sealed": sealed(ct=b"\x05" * 300)}),
        ("every_optional_field", {"one": 1, "ttl_ms": 1000}),
    ):
        value = publication(**fields)
        if name == "payload_null":
            value = obj(ALICE, enc({**tbs_of(), "payload": None}), K.publication_label)
        yes(name, value)


def nest(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value


def malformed_fields(no):
    top = 2**53
    wrong = {
        "alg": (("bytes", b"Ed25519"), ("number", 1)),
        "one": (("0", 0), ("2", 2), ("text", "1"), ("negative", -1)),
        "seq": (("0", 0), ("2_53", top), ("2_63_1", 2**63 - 1), ("negative", -1), ("text", "1"), ("float", 1.0), ("bytes", b"\x01")),
        "epoch": (("0", 0), ("2_53", top), ("negative", -1), ("text", "1")),
        "realm": (("31_bytes", bytes(31)), ("33_bytes", bytes(33)), ("text", "a" * 32), ("empty", b"")),
        "topic": (
            ("empty", ""),
            ("513_bytes", "a" * 513),
            ("17_segments", "/".join("abcdefghijklmnopq")),
            ("empty_segment", "a//b"),
            ("slash_in_front", "/a"),
            ("slash_at_the_end", "a/"),
            ("star", "a/*"),
            ("star_inside", "a*b"),
            ("bytes", b"a/b"),
            ("number", 1),
        ),
        "ttl_ms": (("3600001", 3_600_001), ("negative", -1), ("2_53", top), ("text", "1")),
        "publisher": (("31_bytes", bytes(31)), ("33_bytes", bytes(33)), ("text", "a" * 32)),
        "published_at": (("2_53", top), ("negative", -1), ("float", float(NOW)), ("text", "now")),
    }
    for field, values in wrong.items():
        for name, value in values:
            no(f"{field}_{name}", publication(**{field: value}), "malformed")
    for field in ("alg", "seq", "realm", "topic", "publisher", "published_at", "payload"):
        no(f"without_{field}", publication(**{field: None}), "malformed")
    both = obj(ALICE, enc({**tbs_of(), "sealed": sealed()}), K.publication_label)
    no("payload_and_sealed", both, "malformed")
    for name, value in (("frame_type", "event"), ("Seq", 1), ("x", 0), ("ttl", 5)):
        no(f"unknown_field_{name}", publication(**{name: value}), "malformed")
    for field in ("one", "epoch", "ttl_ms", "sealed", "topic"):
        data = {**tbs_of(), field: None}
        no(f"{field}_null", obj(ALICE, enc(data), K.publication_label), "malformed")
    for name, change in (
        ("ct_of_15_bytes", {"ct": b"\x05" * 15}),
        ("ct_is_text", {"ct": "a" * 16}),
        ("nonce_of_11_bytes", {"nonce": bytes(11)}),
        ("nonce_of_13_bytes", {"nonce": bytes(13)}),
        ("key_id_of_7_bytes", {"key_id": bytes(7)}),
        ("key_id_of_9_bytes", {"key_id": bytes(9)}),
        ("scheme_0", {"scheme": 0}),
        ("scheme_3", {"scheme": 3}),
        ("scheme_text", {"scheme": "1"}),
        ("without_ct", {"ct": None}),
        ("without_nonce", {"nonce": None}),
        ("without_key_id", {"key_id": None}),
        ("without_scheme", {"scheme": None}),
        ("with_kem_ct", {"kem_ct": bytes(32)}),
    ):
        no(f"sealed_{name}", publication(payload=None, sealed=sealed(**change)), "malformed")
    no("sealed_is_bytes", publication(payload=None, sealed=b"\x05" * 16), "malformed")
    no("payload_of_64_levels", publication(payload=nest(64)), "malformed")

    def raw(data):
        return obj(ALICE, data, K.publication_label)

    good = enc(tbs_of())
    for name, data in (
        ("empty", b""),
        ("trailing_byte", good + b"\x00"),
        ("truncated", good[:-1]),
        ("array", enc([])),
        ("integer_key", enc({**tbs_of(), 1: 1})),
        ("true_outside_the_payload", enc({**tbs_of(), "one": True})),
        ("long_head", good.replace(enc("seq") + b"\x01", enc("seq") + b"\x18\x01")),
        ("half_float_payload", enc(tbs_of(payload=0)).replace(enc("payload") + b"\x00", enc("payload") + b"\xf9\x3c\x00")),
        ("undefined_payload", enc(tbs_of(payload=0)).replace(enc("payload") + b"\x00", enc("payload") + b"\xf7")),
        ("tagged_payload", enc(tbs_of(payload=0)).replace(enc("payload") + b"\x00", enc("payload") + b"\xc1\x00")),
        ("topic_not_utf8", enc(tbs_of(topic="ab")).replace(enc("ab"), b"\x62a\xff")),
        ("keys_out_of_order", good[:1] + enc("seq") + b"\x01" + good[1:].replace(enc("seq") + b"\x01", b"", 1)),
    ):
        no(f"tbs_{name}", raw(data), "malformed")
    value = publication()
    for name in ("key", "tbs", "signature"):
        no(f"object_without_{name}", {k: v for k, v in value.items() if k != name}, "malformed")
        no(f"object_{name}_is_text", {**value, name: "x"}, "malformed")
    no("object_with_another_key", {**value, "v": 1}, "malformed")
    for length in (0, 63, 65):
        no(f"signature_of_{length}_bytes", {**value, "signature": (value["signature"] + b"\x00")[:length]}, "malformed")
    for name, key in BAD_KEYS:
        no(f"key_{name}", {**value, "key": key}, "bad_key_form")
    no("key_of_31_bytes", {**value, "key": value["key"][:31]}, "bad_key_form")
    no("key_of_33_bytes", {**value, "key": value["key"] + b"\x00"}, "bad_key_form")


def signatures(no):
    value = publication()
    tbs, signature = value["tbs"], value["signature"]
    signed = signed_bytes(K.publication_label, ALICE.key, tbs)
    for name, wrong in (
        ("first_bit", bytes([signature[0] ^ 1]) + signature[1:]),
        ("last_bit", signature[:-1] + bytes([signature[-1] ^ 1])),
        ("zeros", bytes(64)),
        ("s_above_l", high_s(signature)),
        ("r_of_small_order", small_r(ALICE, signed)),
        ("by_another_key", BOB.sign(signed)),
        ("of_another_label", ALICE.sign(signed_bytes(K.record_label, ALICE.key, tbs))),
        ("of_tbs_alone", ALICE.sign(tbs)),
        ("of_another_seq", publication(seq=2)["signature"]),
    ):
        no(f"signature_{name}", {**value, "signature": wrong}, "signature_invalid")
    for field, new in (
        ("seq", 2),
        ("epoch", EPOCH + 1),
        ("realm", bytes(32)),
        ("topic", TOPIC[:-1] + "2"),
        ("published_at", NOW + 1),
        ("ttl_ms", 5),
        ("one", 1),
        ("payload", {"order": 8, "total": 12.5}),
    ):
        no(f"signature_before_{field}_was_changed", {**value, "tbs": enc(tbs_of(**{field: new}))}, "signature_invalid")


def freshness(yes, no):
    skew, ttl = 300_000, 600_000
    for name, published in (("now_and_skew_less_1", NOW + skew - 1), ("now_and_skew", NOW + skew)):
        yes(f"br_54_published_{name}", publication(published_at=published))
    no("br_54_published_now_and_skew_and_1", publication(published_at=NOW + skew + 1), "not_yet_valid")
    for name, published in (("now_less_life_and_1", NOW - ttl - skew + 1), ("now_less_life", NOW - ttl - skew)):
        yes(f"br_54_published_{name}", publication(published_at=published))
    no("br_54_published_now_less_life_less_1", publication(published_at=NOW - ttl - skew - 1), "expired")
    no("br_54_published_0", publication(published_at=0), "expired")
    no("br_54_published_2_53_less_1", publication(published_at=2**53 - 1), "not_yet_valid")
    no("br_54_published_2_64_less_1", publication(published_at=2**64 - 1), "malformed")
    for ttl in (0, 1, 60_000, 3_600_000):
        value = publication(ttl_ms=ttl)
        yes(f"ttl_{ttl}_last_moment", value, now=NOW + ttl + skew, expires_at=NOW + ttl + skew)
        no(f"ttl_{ttl}_over", value, "expired", now=NOW + ttl + skew + 1)
    yes("now_0", publication(published_at=skew), now=0)
    no("now_0_too_early", publication(published_at=skew + 1), "not_yet_valid", now=0)
    no("now_is_the_highest_number", publication(), "expired", now=2**53 - 1)
    yes("published_at_0_at_0", publication(published_at=0), now=0, expires_at=900_000)


def order(no):
    """Objects that break several rules: the first check answers."""
    value = publication(alg="x", publisher=BOB.id, published_at=0)
    no("order_shape_before_key", {**value, "key": SMALL[0], "x": 1}, "malformed")
    no("order_key_before_signature_length", {**value, "key": SMALL[0], "signature": b""}, "bad_key_form")
    no("order_key_before_tbs", {**value, "key": SMALL[0], "tbs": b""}, "bad_key_form")
    no("order_tbs_before_alg", publication(alg="x", seq=0), "malformed")
    no("order_alg_before_publisher", value, "alg_mismatch")
    no("order_publisher_before_signature", {**publication(publisher=BOB.id), "signature": bytes(64)}, "key_id_mismatch")
    no("order_key_swapped_is_a_wrong_publisher", {**publication(), "key": BOB.key}, "key_id_mismatch")
    no("order_signature_before_expired", {**publication(published_at=0), "signature": bytes(64)}, "signature_invalid")
    no("order_signature_before_too_early", {**publication(published_at=2**53 - 1), "signature": bytes(64)}, "signature_invalid")
