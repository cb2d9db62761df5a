"""frames.json and links.json: WIRE.md sections 1, 3 and 9."""

from cast import ALICE, REALM, STATION, TOPIC, frame, publication
from family import Family
from model_cbor import enc
from model_frames import FRAMES, HANDSHAKE, closed_sets, travels

TOP = 2**53 - 1
POSITION = {"run": bytes(range(8)), "offset": 41}
PUB = publication()
HASHED = bytes(range(16))

GOOD = {
    "subscribe": {"id": 1, "realm": REALM, "filter": TOPIC, "options": {}},
    "subscribed": {"id": 1, "resume": {"outcome": "none"}, "position": POSITION},
    "refused": {"id": 1, "reason": "bad_filter"},
    "unsubscribe": {"id": 1},
    "publish": {"id": 2, "route": "all", "publication": PUB},
    "published": {"id": 2, "outcome": "routed", "subscribers": 3},
    "event": {"id": 1, "via": "direct", "offset": 42, "publication": PUB},
    "progress": {"id": 1, "offset": 42, "behind_ms": 0},
    "skipped": {"id": 1, "to": 10, "from": 250, "count": 7, "reason": "overrun"},
    "ping": {"nonce": HASHED},
    "pong": {"nonce": HASHED},
    "goodbye": {"detail": "", "reason": "normal"},
    "interest": {"add": [HASHED], "remove": [], "to_version": 1, "from_version": 0},
    "interest_wanted": {},
}
OPENING = {
    "opener": {"last": 1, "first": 1},
    "challenge": {
        "key": STATION.key,
        "mesh": STATION.id,
        "nonce": b"\x21" * 32,
        "profile": "ed25519",
        "wall_ms": 1_790_000_000_000,
        "max_frame": 1_048_576,
        "capabilities": 0,
    },
    "connect": {
        "key": ALICE.key,
        "role": "node",
        "nonce": b"\x22" * 32,
        "proof": b"\x23" * 64,
        "profile": "ed25519",
        "max_frame": 1_048_576,
        "capabilities": 0,
    },
    "hello": {"proof": b"\x24" * 64},
}
VARIANTS = {
    "subscribe": (
        ("resume", {"resume": POSITION}),
        ("filter_one", {"filter": "a/*/c"}),
        ("filter_rest", {"filter": "a/**"}),
        ("filter_that_breaks_section_7", {"filter": "a//b"}),
        ("filter_empty", {"filter": ""}),
        ("id_highest", {"id": TOP}),
        ("offset_highest", {"resume": {"run": bytes(8), "offset": TOP}}),
    ),
    "subscribed": (
        ("resumed", {"resume": {"outcome": "resumed", "count": 0}}),
        ("resumed_many", {"resume": {"outcome": "resumed", "count": TOP}}),
        ("expired", {"resume": {"outcome": "expired", "oldest": 12}}),
    ),
    "refused": (("limit", {"limit": 1000, "reason": "too_many_realms"}),),
    "publish": (("route_one", {"route": "one"}),),
    "published": (
        ("no_subscriber", {"outcome": "no_subscriber", "subscribers": 0}),
        ("refused", {"outcome": "refused", "reason": "expired", "subscribers": 0}),
        ("refused_with_limit", {"outcome": "refused", "reason": "window_full", "limit": 256, "subscribers": 0}),
    ),
    "event": (("mesh", {"via": "mesh"}), ("offset_0", {"offset": 0})),
    "progress": (("behind", {"behind_ms": 1234}),),
    "skipped": (
        ("count_unknown", {"count": 0}),
        ("peer_interrupted", {"reason": "peer_interrupted", "peer": STATION.id}),
        ("ages_equal", {"from": 10, "to": 10}),
    ),
    "goodbye": (("detail_of_256_bytes", {"detail": "d" * 256, "reason": "protocol_error"}),),
    "interest": (
        ("empty", {"add": []}),
        ("filters", {"add": [{"realm": REALM, "filter": "a/**"}], "remove": [HASHED, {"realm": REALM, "filter": "a/*/c"}]}),
        ("later", {"to_version": 9, "from_version": 8}),
    ),
    "opener": (("to_255", {"last": 255}), ("beyond_ours", {"first": 2, "last": 9})),
    "challenge": (
        ("max_frame_lowest", {"max_frame": 512}),
        ("max_frame_highest", {"max_frame": 0xFFFFFF}),
        ("capabilities_unknown", {"capabilities": TOP}),
        ("another_profile", {"profile": "other"}),
    ),
    "connect": (("station", {"role": "station"}), ("max_frame_lowest", {"max_frame": 512})),
}


def wrong_values(name, good):
    """Values of the wrong kind, shape or range for one key."""
    out = [("text", "x"), ("number", 5), ("bytes", b"\x01"), ("array", [1]), ("map", {"x": 1}), ("negative", -1), ("float", 1.0)]
    if type(good) is int:
        out = [one for one in out if one[0] != "number"] + [("2_53", 2**53), ("2_63_1", 2**63 - 1)]
        if name in ("id", "first", "last"):
            out.append(("0", 0))
        if name in ("first", "last"):
            out.append(("256", 256))
        if name == "max_frame":
            out += [("511", 511), ("16777216", 0x1000000), ("0", 0)]
    elif type(good) is bytes:
        out = [one for one in out if one[0] != "bytes"]
        out += [("one_byte_short", good[:-1]), ("one_byte_long", good + b"\x00"), ("no_bytes", b"")]
    elif type(good) is str:
        if name in ("filter", "detail", "profile"):
            out = [one for one in out if one[0] != "text"]
        if name == "detail":
            out.append(("257_bytes", "d" * 257))
            out.append(("letters_of_258_bytes", "水" * 86))
    elif name == "publication":
        out = [one for one in out if one[0] != "map"]
    elif name in ("add", "remove"):
        out += [
            ("of_15_bytes", [HASHED[:15]]),
            ("of_17_bytes", [HASHED + b"\x00"]),
            ("of_text", ["a"]),
            ("of_a_map_without_filter", [{"realm": REALM}]),
            ("of_a_map_without_realm", [{"filter": "a/*"}]),
            ("of_a_map_with_more", [{"realm": REALM, "filter": "a/*", "x": 1}]),
            ("of_a_bad_filter", [{"realm": REALM, "filter": "a/**/b"}]),
            ("of_a_short_realm", [{"realm": REALM[:31], "filter": "a/*"}]),
            ("of_filter_bytes", [{"realm": REALM, "filter": b"a/*"}]),
            ("with_a_wrong_second", [HASHED, 1]),
        ]
    elif name in ("resume", "position") and "run" in good:
        out += position_faults()
    elif name == "resume":
        out += [
            ("empty", {}),
            ("unknown_outcome", {"outcome": "lost"}),
            ("none_with_count", {"outcome": "none", "count": 1}),
            ("none_with_oldest", {"outcome": "none", "oldest": 1}),
            ("resumed_without_count", {"outcome": "resumed"}),
            ("resumed_with_oldest", {"outcome": "resumed", "count": 1, "oldest": 1}),
            ("expired_without_oldest", {"outcome": "expired"}),
            ("expired_with_count", {"outcome": "expired", "oldest": 1, "count": 1}),
            ("count_2_53", {"outcome": "resumed", "count": 2**53}),
            ("with_another_key", {"outcome": "none", "x": 1}),
            ("without_outcome", {"count": 1}),
        ]
    return out


def position_faults():
    return [
        ("empty", {}),
        ("without_run", {"offset": 1}),
        ("without_offset", {"run": bytes(8)}),
        ("run_of_7", {"run": bytes(7), "offset": 1}),
        ("run_of_9", {"run": bytes(9), "offset": 1}),
        ("offset_2_53", {"run": bytes(8), "offset": 2**53}),
        ("offset_negative", {"run": bytes(8), "offset": -1}),
        ("with_another_key", {"run": bytes(8), "offset": 1, "x": 1}),
        ("with_an_integer_key", {"run": bytes(8), "offset": 1, 0: 1}),
    ]


def family():
    f = Family("frames", "WIRE.md sections 1, 3 and 9: bodies (kind `body`) and what comes off a stream (kind `stream`).")

    def put(phase, data):
        return {"kind": "body", "phase": phase, "hex": data.hex()}

    for phase_of, goods, table in ((lambda kind: "open", GOOD, FRAMES), (lambda kind: kind, OPENING, HANDSHAKE)):
        for kind, good in goods.items():
            phase = phase_of(kind)
            f.accept(kind, put(phase, enc(frame(kind, **good))), frame_type=kind)
            for name, change in VARIANTS.get(kind, ()):
                f.accept(f"{kind}_{name}", put(phase, enc(frame(kind, **{**good, **change}))))
            faults(f, put, phase, kind, good, table[kind])
    f.accept("hello_refused", put("hello", enc(frame("hello", refusal="full"))))
    f.accept("hello_in_place_of_a_challenge", put("challenge|hello", enc(frame("hello", refusal="unsupported_version"))))
    closed(f, put)
    ties(f, put)
    bodies(f, put)
    objects_inside(f, put)
    streams(f)
    return f


def faults(f, put, phase, kind, good, table):
    body = frame(kind, **good)
    every = {**good}
    if kind == "subscribe":
        every["resume"] = POSITION
    if kind == "skipped":
        every.update(reason="peer_interrupted", peer=STATION.id)
    if kind == "published":
        every.update(outcome="refused", reason="expired", limit=1, subscribers=0)
    if kind == "refused":
        every["limit"] = 1
    for name, value in every.items():
        for wrong, new in wrong_values(name, value):
            f.refuse(f"{kind}_{name}_{wrong}", put(phase, enc(frame(kind, **{**every, name: new}))), "bad_field")
    if kind == "published":
        for wrong, new in wrong_values("subscribers", 3):
            f.refuse(f"published_routed_subscribers_{wrong}", put(phase, enc(frame(kind, **{**good, "subscribers": new}))), "bad_field")
    for name, (required, _) in table.items():
        if required:
            less = {key: value for key, value in body.items() if key != name}
            f.refuse(f"{kind}_without_{name}", put(phase, enc(less)), "missing_field")
    f.refuse(f"{kind}_with_another_key", put(phase, enc({**body, "zz": 0})), "unknown_field")
    f.refuse(f"{kind}_with_a_near_key", put(phase, enc({**body, "capability": 0})), "unknown_field")
    f.refuse(f"{kind}_with_an_integer_key", put(phase, enc({**body, 1: 0})), "bad_field")
    f.refuse(f"{kind}_version_0", put(phase, enc({**body, "version": 0})), "bad_version")
    f.refuse(f"{kind}_version_2", put(phase, enc({**body, "version": 2})), "bad_version")
    f.refuse(f"{kind}_without_version", put(phase, enc({k: v for k, v in body.items() if k != "version"})), "missing_field")


FIELD_OF = {
    "10.1": ("open", "goodbye", lambda text: {"detail": "", "reason": text}),
    "10.2": ("hello", "hello", lambda text: {"refusal": text}),
    "10.3": ("open", "refused", lambda text: {"id": 1, "reason": text}),
    "10.4": ("open", "published", lambda text: {"id": 1, "reason": text, "outcome": "refused", "subscribers": 0}),
    "10.6": ("open", "subscribed", lambda text: {"id": 1, "position": POSITION, "resume": {"outcome": text, **extra(text)}}),
    "10.7": ("open", "skipped", lambda text: {"id": 1, "to": 0, "from": 0, "count": 1, "reason": text, **peer(text)}),
    "10.5": ("open", "published", lambda text: {"id": 1, "outcome": text, "subscribers": 0, **reason(text)}),
}


def extra(text):
    return {"resumed": {"count": 1}, "expired": {"oldest": 1}}.get(text, {})


def peer(text):
    return {"peer": STATION.id} if text == "peer_interrupted" else {}


def reason(text):
    return {"reason": "draining"} if text == "refused" else {}


def closed(f, put):
    """Every text of every table that travels, and what does not."""
    for section, (phase, kind, fields) in sorted(FIELD_OF.items()):
        for _, text, _, _ in closed_sets()[section][2]:
            body = put(phase, enc(frame(kind, **fields(text))))
            if text in travels(section):
                f.accept(f"closed_{section}_{text}", body)
            else:
                f.refuse(f"closed_{section}_{text}_is_local", body, "bad_field")
        for text in ("", "other", "Normal"):
            f.refuse(f"closed_{section}_not_{text or 'empty'}", put(phase, enc(frame(kind, **fields(text)))), "bad_field")
    f.refuse("published_local_reason", put("open", enc(frame("published", **FIELD_OF["10.4"][2]("unmatched")))), "bad_field")


def ties(f, put):
    """What ties keys to each other, judged last."""

    def no(name, kind, phase="open", **change):
        base = {**GOOD, **OPENING}[kind]
        fields = {key: value for key, value in {**base, **change}.items() if value is not None}
        f.refuse(f"tie_{name}", put(phase, enc(frame(kind, **fields))), "bad_field")

    no("skipped_from_below_to", "skipped", **{"from": 9, "to": 10})
    no("skipped_peer_without_its_reason", "skipped", peer=STATION.id)
    no("skipped_peer_interrupted_without_peer", "skipped", reason="peer_interrupted")
    no("published_reason_beside_routed", "published", reason="expired")
    no("published_refused_without_reason", "published", outcome="refused", subscribers=0)
    no("published_limit_without_reason", "published", limit=5)
    no("published_subscribers_beside_no_subscriber", "published", outcome="no_subscriber", subscribers=1)
    no("published_subscribers_beside_refused", "published", outcome="refused", reason="expired", subscribers=1)
    no("opener_first_above_last", "opener", "opener", first=2, last=1)
    no("hello_of_both", "hello", "hello", refusal="full")
    no("hello_of_neither", "hello", "hello", proof=None)
    body = frame("skipped", **{"id": 1, "from": 9, "to": 10, "count": 1})
    f.refuse("order_missing_before_tie", put("open", enc(body)), "missing_field")
    f.refuse("order_unknown_before_missing", put("open", enc({**body, "zz": 1})), "unknown_field")


def bodies(f, put):
    """The order of checks of a whole body, and types that are read past."""

    def no(name, data, reason, phase="open"):
        f.refuse(name, put(phase, data if isinstance(data, bytes) else enc(data)), reason)

    no("body_empty", b"", "truncated")
    for name, data in (("number", 1), ("array", [frame("ping", nonce=HASHED)]), ("text", "ping"), ("bytes", enc(b"\xa0"))):
        no(f"body_is_{name}", data, "not_a_map")
    no("body_is_an_empty_map", {}, "no_frame_type")
    no("frame_type_is_bytes", frame(b"ping", nonce=HASHED), "no_frame_type")
    no("frame_type_is_a_number", frame(1), "no_frame_type")
    no("frame_type_is_absent", {"version": 1, "nonce": HASHED}, "no_frame_type")
    for name, version in (("text", "1"), ("bytes", b"\x01"), ("float", 1.0), ("negative", -1), ("array", [1])):
        no(f"version_is_{name}", {**frame("ping", nonce=HASHED), "version": version}, "bad_version")
    ping = frame("ping", nonce=HASHED)
    no("trailing_byte", enc(ping) + b"\x00", "trailing")
    no("truncated", enc(ping)[:-1], "truncated")
    no("keys_out_of_order", b"\xa3" + enc("version") + enc(1) + enc("nonce") + enc(HASHED) + enc("frame_type") + enc("ping"), "key_order")
    no("duplicate_key", b"\xa3" + (enc("nonce") + enc(HASHED)) * 2 + enc("version") + enc(1), "duplicate_key")
    no("long_head", enc(ping).replace(enc("version") + b"\x01", enc("version") + b"\x18\x01"), "long_head")
    no("null_field", frame("ping", nonce=None), "simple")
    no("true_field", frame("ping", nonce=True), "simple")
    no("optional_is_never_null", frame("subscribe", **{**GOOD["subscribe"], "resume": None}), "simple")
    no("half_float", enc(ping).replace(enc("version") + b"\x01", enc("version") + b"\xf9\x3c\x00"), "float")
    no("bytes_as_key", {**ping, b"x": 1}, "bad_key")
    # The order of checks.
    no("order_rule_before_map", b"\x81\xf6", "simple")
    no("order_rule_of_the_last_key_before_the_first_field", {**frame("ping", a=1), "zzzzzzzzzzzzz": None}, "simple")
    no("order_map_before_type", [1], "not_a_map")
    no("order_integer_key_before_type", {1: 1}, "bad_field")
    no("order_integer_key_before_version", {**frame("ping"), "version": 2, 1: 1}, "bad_field")
    no("order_type_before_version", {"version": 2}, "no_frame_type")
    no("order_version_before_fields", {**frame("ping", x=1), "version": 2}, "bad_version")
    no("order_no_version_before_fields", {"frame_type": "ping", "x": 1}, "missing_field")
    no("order_fields_in_encoded_order_bad_first", frame("subscribe", id=0, zzz=1), "bad_field")
    no("order_fields_in_encoded_order_unknown_first", frame("subscribe", a=1, id=0), "unknown_field")
    no("order_unknown_before_missing_field", frame("ping", zzz=1), "unknown_field")
    no("order_bad_before_missing_field", frame("subscribe", id=0), "bad_field")
    # Types that are not known are read past; handshake types are not.
    for kind in ("put_record", "record_stored", "find_records", "records", "request", "reply", "relay_error"):
        f.accept(f"reserved_{kind}", put("open", enc(frame(kind, anything=[1, {"x": b""}]))), known=False)
    for kind in ("subscribe_v2", "", "Ping", "\u00e9"):
        f.accept(f"unknown_type_{kind or 'empty'}", put("open", enc(frame(kind, x=1))), known=False)
    f.accept("unknown_type_without_fields", put("open", enc(frame("x"))), known=False)
    no("unknown_type_version_2", {**frame("x"), "version": 2}, "bad_version")
    no("unknown_type_without_version", {"frame_type": "x"}, "missing_field")
    no("unknown_type_with_null", frame("x", y=None), "simple")
    for kind, good in OPENING.items():
        no(f"unexpected_{kind}_after_the_handshake", frame(kind, **good), "unexpected_frame")
        other = "opener" if kind != "opener" else "connect"
        no(f"unexpected_{kind}_for_{other}", frame(kind, **good), "unexpected_frame", other)
        no(f"unexpected_ping_for_{kind}", ping, "unexpected_frame", kind)
        no(f"unexpected_unknown_for_{kind}", frame("x"), "unexpected_frame", kind)
    no("order_unexpected_before_fields", frame("opener", x=1), "unexpected_frame")
    no("order_version_before_unexpected", {**frame("opener"), "version": 2}, "bad_version")


def objects_inside(f, put):
    """A fault inside a signed object leaves its frame accepted."""
    for kind in ("publish", "event"):
        for name, value in (
            ("empty_object", {}),
            ("object_without_tbs", {"key": b"", "signature": b""}),
            ("object_with_more", {**PUB, "x": 1}),
            ("object_with_text_key", {**PUB, "key": "k"}),
            ("object_with_integer_key", {**PUB, 1: 1}),
        ):
            body = enc(frame(kind, **{**GOOD[kind], "publication": value}))
            f.accept(f"{kind}_{name}", put("open", body))
        short = {"key": b"K", "tbs": b"T", "signature": b"S"}
        f.accept(f"{kind}_short_object", put("open", enc(frame(kind, **{**GOOD[kind], "publication": short}))))


def streams(f):
    ping = enc(frame("ping", nonce=HASHED))
    framed = len(ping).to_bytes(4, "big") + ping

    def put(data, max_frame, ended=True):
        return {"kind": "stream", "handshake_ended": ended, "max_frame": max_frame, "hex": data.hex()}

    f.accept("stream_empty", put(b"", 512), left=0)
    f.accept("stream_one", put(framed, 512), left=0)
    f.accept("stream_two_and_a_half", put(framed * 2 + framed[:20], 512), left=20)
    for cut in (1, 3, 4, 5):
        f.accept(f"stream_first_{cut}_bytes", put(framed[:cut], 512), left=cut, frames=[])
    f.accept("stream_length_0", put(bytes(4), 512), frames=[""])
    f.accept("stream_of_exactly_the_maximum", put((512).to_bytes(4, "big"), 512), left=4)
    f.accept("stream_handshake_of_4096", put((4096).to_bytes(4, "big"), 1_048_576, False), left=4)
    f.accept("stream_highest_maximum", put(b"\x00\xff\xff\xff", 0xFFFFFF), left=4)
    f.refuse("stream_one_above_the_maximum", put((513).to_bytes(4, "big"), 512), "frame_too_large")
    f.refuse("stream_handshake_of_4097", put((4097).to_bytes(4, "big"), 1_048_576, False), "frame_too_large")
    f.refuse("stream_above_the_highest_maximum", put(b"\x01\x00\x00\x00", 0xFFFFFF), "frame_too_large")
    f.refuse("stream_all_ones", put(b"\xff\xff\xff\xff", 0xFFFFFF), "frame_too_large")
    f.refuse("stream_second_too_large", put(framed + b"\x00\x00\x02\x01", 512), "frame_too_large")


def links():
    f = Family("links", "WIRE.md section 3: frames of one link after the handshake, in order, seen from one side (`self`).")

    def step(who, kind, **change):
        return {"from": who, "hex": enc(frame(kind, **{**GOOD[kind], **change})).hex()}

    sub, publ = step("self", "subscribe"), step("self", "publish")
    f.accept("one_rising_space", {"steps": [sub, publ, step("self", "subscribe", id=3), step("self", "publish", id=9)]})
    f.accept("one_space_per_direction", {"steps": [sub, step("peer", "subscribe"), step("peer", "publish"), publ]})
    f.accept("answers", {"steps": [sub, step("peer", "subscribed"), publ, step("peer", "published"), step("peer", "event")]})
    f.accept("event_after_unsubscribe", {"steps": [sub, step("self", "unsubscribe"), step("peer", "event"), step("peer", "progress")]})
    f.accept("unsubscribe_of_an_id_never_subscribed", {"steps": [step("peer", "unsubscribe", id=77)]})
    f.accept("unsubscribe_twice", {"steps": [sub, step("self", "unsubscribe"), step("self", "unsubscribe")]})
    f.accept("refused_after_subscribed", {"steps": [sub, step("peer", "subscribed"), step("peer", "refused")]})
    f.accept("ids_may_leave_gaps", {"steps": [step("peer", "subscribe", id=5), step("peer", "publish", id=2**53 - 1)]})

    def no(name, reason, *steps, last=None):
        f.refuse(name, {"steps": list(steps)}, reason, step=len(steps) - 1 if last is None else last)

    no("id_reused_subscribe", "id_reused", step("peer", "subscribe"), step("peer", "subscribe"))
    no("id_reused_publish", "id_reused", step("peer", "publish"), step("peer", "publish"))
    no("id_reused_across_kinds", "id_reused", step("peer", "subscribe", id=2), step("peer", "publish", id=2))
    no("id_falls", "id_reused", step("peer", "subscribe", id=5), step("peer", "publish", id=4))
    no("id_reused_after_unsubscribe", "id_reused", step("peer", "subscribe"), step("peer", "unsubscribe"), step("peer", "subscribe"))
    for kind in ("subscribed", "refused", "event", "progress", "skipped", "published"):
        no(f"unknown_id_{kind}", "unknown_id", step("peer", kind, id=1))
        no(f"unknown_id_{kind}_above", "unknown_id", sub, publ, step("peer", kind, id=3))
        no(f"unknown_id_{kind}_of_the_other_direction", "unknown_id", step("peer", "subscribe"), step("peer", "publish"), step("peer", kind, id=1))
    no("first_fault_answers", "not_a_map", {"from": "peer", "hex": "80"}, step("peer", "event"), last=0)

    def time(at_ms, what=None):
        return {"at_ms": at_ms, **({"bytes": what} if what else {})}

    f.accept("frame_whole_in_time", {"steps": [time(0, "begin"), time(29_999), time(29_999, "end"), time(60_000)]})
    f.accept("each_frame_its_own_time", {"steps": [time(0, "begin"), time(20_000, "end"), time(20_000, "begin"), time(40_000)]})
    no("frame_timeout", "frame_timeout", time(1000, "begin"), time(30_999), time(31_000), last=2)
    no("frame_timeout_however_many_bytes_came", "frame_timeout", time(0, "begin"), time(10, "more"), time(20_000, "more"), time(30_001))
    return f
