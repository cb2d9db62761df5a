"""topics.json, positions.json and codes.json: WIRE.md sections 7, 11 and 10."""

from cast import ALICE, BOB, EPOCH, OTHER, STATION
from family import Family
from model_cbor import enc
from model_frames import closed_sets


def topics():
    f = Family("topics", "WIRE.md section 7: topics, filters, matching, and names parsed and built.")
    both = (
        ("one_byte", "a"),
        ("512_bytes", "a" * 512),
        ("16_segments", "/".join("abcdefghijklmnop")),
        ("512_bytes_in_16_segments", "/".join(["a" * 31] * 15 + ["a" * 32])),
        ("system", "_call/x"),
        ("underscore_alone", "_"),
        ("underscore_later", "a/_b"),
        ("upper_case_and_spaces", "A b/C"),
        ("dots", "./.."),
        ("nul", "a\x00b"),
        ("letters_of_three_bytes", "水" * 170),
        ("a_name", "io.example/acme/shop/orders/placed_v1"),
    )
    for name, text in both:
        for kind in ("topic", "filter"):
            f.accept(f"{kind}_{name}", {"kind": kind, "hex": text.encode().hex()})
    for name, text in (
        ("star", "*"),
        ("star_first", "*/b"),
        ("star_last", "a/*"),
        ("star_everywhere", "*/*/*"),
        ("rest", "**"),
        ("rest_last", "a/**"),
        ("star_and_rest", "*/**"),
        ("16_segments_of_stars", "/".join(["*"] * 16)),
    ):
        f.accept(f"filter_{name}", {"kind": "filter", "hex": text.encode().hex()}, exact=False)
        f.refuse(f"topic_{name}", {"kind": "topic", "hex": text.encode().hex()}, "wildcard")
    refused = (
        ("empty", "", "empty"),
        ("513_bytes", "a" * 513, "too_long"),
        ("letters_of_513_bytes", "水" * 171, "too_long"),
        ("17_segments", "/".join("abcdefghijklmnopq"), "too_many_segments"),
        ("slash", "/", "empty_segment"),
        ("slash_in_front", "/a", "empty_segment"),
        ("slash_at_the_end", "a/", "empty_segment"),
        ("two_slashes", "a//b", "empty_segment"),
        ("star_inside", "a*b", "wildcard"),
        ("star_at_the_end_of_a_segment", "a/b*", "wildcard"),
        ("three_stars", "a/***", "wildcard"),
        ("rest_in_front", "**/a", "wildcard"),
        ("rest_inside", "a/**/b", "wildcard"),
        ("rest_twice", "**/**", "wildcard"),
        ("order_too_long_before_segments", "/" * 513, "too_long"),
        ("order_segments_before_empty_segment", "/" * 16, "too_many_segments"),
        ("order_empty_segment_before_wildcard", "a*//b", "empty_segment"),
    )
    for name, text, reason in refused:
        for kind in ("topic", "filter"):
            f.refuse(f"{kind}_{name}", {"kind": kind, "hex": text.encode().hex()}, reason)
    matching(f)
    parsing(f)
    building(f)
    return f


def matching(f):
    for filter_, topic, wanted in (
        ("a", "a", True),
        ("a", "b", False),
        ("a", "A", False),
        ("a/b", "a", False),
        ("a", "a/b", False),
        ("*", "a", True),
        ("*", "a/b", False),
        ("*/b", "a/b", True),
        ("a/*", "a/b", True),
        ("a/*", "a", False),
        ("a/*", "a/b/c", False),
        ("a/*/c", "a/b/c", True),
        ("a/*/c", "a/b/d", False),
        ("**", "a", True),
        ("**", "a/b/c", True),
        ("a/**", "a", False),
        ("a/**", "a/b", True),
        ("a/**", "a/b/c/d", True),
        ("a/**", "b/b", False),
        ("a/*/**", "a/b", False),
        ("a/*/**", "a/b/c", True),
        ("*/**", "a", False),
        ("*/**", "a/b", True),
        ("*", "_a", False),
        ("**", "_a/b", False),
        ("*/b", "_a/b", False),
        ("*/**", "_a/b", False),
        ("_a", "_a", True),
        ("_a/*", "_a/b", True),
        ("_a/**", "_a/b/c", True),
        ("a/*", "a/_b", True),
        ("a/**", "a/_b/_c", True),
        ("ab", "abc", False),
        ("水/*", "水/x", True),
    ):
        inputs = {"kind": "match", "filter": filter_, "topic": topic}
        f.accept(f"match_{filter_}_with_{topic}", inputs)
        assert f.entries[-1]["expect"] is wanted, (filter_, topic)


def parsing(f):
    def yes(name, text, /, **expect):
        f.accept(f"parse_{name}", {"kind": "parse", "text": text}, **expect)

    def no(name, text, reason, segment=None):
        f.refuse(f"parse_{name}", {"kind": "parse", "text": text}, reason, segment=segment)

    yes("app", "io.example/acme/shop/orders/placed_v1", tier="app", org="acme", app="shop", name="placed", version=1)
    yes("org", "io.example/acme/_org/orders/placed_v12", tier="org", org="acme", version=12)
    yes("realm", "io.example/_realm/_realm/orders/placed_v1", tier="realm", realm="io.example")
    yes("name_that_ends_in_v", "r/o/a/d/event_v_v1", name="event_v")
    yes("name_with_an_older_version", "r/o/a/d/event_v2_v1", name="event_v2", version=1)
    yes("version_highest", "r/o/a/d/n_v4294967295", version=4_294_967_295)
    yes("digits_first", "1/2/3/4/5_v6", name="5")
    yes("all_letters", "a.b_c-d/0.-_/a_/z--/n.m_v1")
    yes("512_bytes", "r/o/a/d/" + "n" * 501 + "_v1")
    for count, text in ((1, ""), (1, "a"), (4, "r/o/a/n_v1"), (6, "r/o/a/d/n_v1/x")):
        no(f"structure_{count}_{'of' if text else 'empty'}", text, "structure")
    no("too_long", "r/o/a/d/" + "n" * 502 + "_v1", "too_long")
    for name, last in (
        ("none", "n"),
        ("no_digits", "n_v"),
        ("leading_zero", "n_v01"),
        ("zero", "n_v0"),
        ("above", "n_v4294967296"),
        ("far_above", "n_v99999999999999999999"),
        ("capital", "n_V1"),
        ("something_after", "n_v1x"),
        ("newline_after", "n_v1\n"),
        ("sign", "n_v+1"),
        ("without_underscore", "nv1"),
        ("other_digits", "n_v\u0661"),
        ("empty_segment", ""),
    ):
        no(f"version_{name}", "r/o/a/d/" + last, "version", "name")
    no("tier_realm_in_org_alone", "r/_realm/a/d/n_v1", "tier", "app")
    no("tier_realm_in_org_with_org", "r/_realm/_org/d/n_v1", "tier", "app")
    no("tier_realm_in_app_alone", "r/o/_realm/d/n_v1", "tier", "org")
    no("tier_org_in_org", "r/_org/a/d/n_v1", "tier", "org")
    no("tier_org_twice", "r/_org/_org/d/n_v1", "tier", "org")
    good = ["r", "o", "a", "d", "n_v1"]
    for at, slot in enumerate(("realm", "org", "app", "domain", "name")):
        for name, text in (
            ("empty", ""),
            ("capital", "Ab"),
            ("underscore_first", "_a"),
            ("dot_first", ".a"),
            ("minus_first", "-a"),
            ("star", "a*"),
            ("space", "a b"),
            ("letter_outside_ascii", "ä"),
            ("newline", "a\n"),
        ):
            segments = list(good)
            segments[at] = text + "_v1" if slot == "name" else text
            no(f"segment_{slot}_{name}", "/".join(segments), "segment", slot)
    no("segment_realm_reserved", "_realm/o/a/d/n_v1", "segment", "realm")
    no("segment_realm_org", "_org/o/a/d/n_v1", "segment", "realm")
    no("segment_domain_reserved", "r/o/a/_realm/n_v1", "segment", "domain")
    no("segment_name_reserved", "r/o/a/d/_org_v1", "segment", "name")
    no("order_structure_before_too_long", "a" * 600, "structure")
    no("order_too_long_before_version", "r/o/a/d/" + "n" * 600, "too_long")
    no("order_version_before_tier", "r/_realm/a/d/n", "version", "name")
    no("order_tier_before_segment", "R/_realm/a/d/n_v1", "tier", "app")
    no("order_first_segment_first", "r/O/A/D/N_v1", "segment", "org")


def building(f):
    base = {"tier": "app", "realm": "io.example", "org": "acme", "app": "shop", "domain": "orders", "name": "placed", "version": 1}

    def parts(tier="app", **change):
        out = {**base, "tier": tier, **change}
        if tier != "app":
            out.pop("app")
        if tier == "realm":
            out.pop("org")
        return {"kind": "build", "parts": out}

    for name, inputs, text in (
        ("app", parts(), "io.example/acme/shop/orders/placed_v1"),
        ("org", parts("org"), "io.example/acme/_org/orders/placed_v1"),
        ("realm", parts("realm"), "io.example/_realm/_realm/orders/placed_v1"),
        ("name_that_ends_in_v", parts(name="event_v"), "io.example/acme/shop/orders/event_v_v1"),
        ("version_highest", parts(version=4_294_967_295), "io.example/acme/shop/orders/placed_v4294967295"),
    ):
        f.accept(f"build_{name}", inputs)
        assert f.entries[-1]["expect"] == text
        f.accept(f"build_{name}_parses", {"kind": "parse", "text": text})
    f.accept("build_512_bytes", parts(name="n" * 481))
    f.refuse("build_513_bytes", parts(name="n" * 482), "too_long")
    for slot in ("realm", "org", "app", "domain", "name"):
        for name, text in (("empty", ""), ("capital", "A"), ("slash", "a/b"), ("star", "*"), ("underscore_first", "_x")):
            f.refuse(f"build_{slot}_{name}", parts(**{slot: text}), "segment", segment=slot)
    f.refuse("build_org_tier_org_capital", parts("org", org="A"), "segment", segment="org")
    f.refuse("build_realm_tier_domain_empty", parts("realm", domain=""), "segment", segment="domain")


def positions():
    f = Family("positions", "WIRE.md section 11: committed positions.")
    lane = {"seq": 5, "epoch": EPOCH, "topic": "a/b", "untold": [], "publisher": min(ALICE.id, BOB.id)}
    second = {**lane, "publisher": max(ALICE.id, BOB.id)}
    place = {"run": bytes(range(8)), "offset": 9}
    station = {"from": EPOCH // 1000, "mesh": bytes(range(32)), "station": min(STATION.id, OTHER.id), "position": place}
    other = {**station, "station": max(STATION.id, OTHER.id)}
    body = {"lanes": [lane], "stations": [station], "version": 1}

    def yes(name, **change):
        f.accept(name, {"hex": enc({**body, **change}).hex()})

    def no(name, reason, data=None, **change):
        value = {**body, **change}
        f.refuse(name, {"hex": (enc(value) if data is None else data).hex()}, reason)

    yes("one_of_each")
    yes("empty", lanes=[], stations=[])
    yes("sorted_by_publisher", lanes=[lane, second])
    yes("sorted_by_topic", lanes=[lane, {**lane, "topic": "a/c"}])
    yes("sorted_by_topic_bytes", lanes=[{**lane, "topic": "aa"}, {**lane, "topic": "b"}])
    yes("sorted_by_epoch", lanes=[lane, {**lane, "epoch": EPOCH + 1}])
    yes("two_stations", stations=[station, other])
    yes("highest_numbers", lanes=[{**lane, "seq": 2**53 - 1, "epoch": 2**53 - 1}])
    full = [number for single in range(1, 32, 2) for number in (single, single)]
    yes("joined_in_the_middle", lanes=[{**lane, "untold": [1, 4]}])
    yes("joined_and_some_came", lanes=[{**lane, "seq": 9, "untold": [1, 2, 4, 4, 6, 8]}])
    yes("untold_to_the_edge", lanes=[{**lane, "untold": [1, 5]}])
    yes("untold_as_many_as_there_may_be", lanes=[{**lane, "seq": 99, "untold": full}])
    yes("untold_the_highest", lanes=[{**lane, "seq": 2**53 - 1, "untold": [2**53 - 1, 2**53 - 1]}])
    no("lanes_out_of_order", "bad_field", lanes=[second, lane])
    no("lanes_topics_out_of_order", "bad_field", lanes=[{**lane, "topic": "b"}, {**lane, "topic": "aa"}])
    no("lanes_epochs_out_of_order", "bad_field", lanes=[{**lane, "epoch": EPOCH + 1}, lane])
    no("lanes_twice", "bad_field", lanes=[lane, {**lane, "seq": 6}])
    no("stations_out_of_order", "bad_field", stations=[other, station])
    no("stations_twice", "bad_field", stations=[station, station])
    for name, change in (
        ("seq_negative", {"seq": -1}),
        ("seq_2_53", {"seq": 2**53}),
        ("epoch_0", {"epoch": 0}),
        ("epoch_text", {"epoch": "1"}),
        ("untold_a_map", {"untold": {}}),
        ("untold_a_number", {"untold": 1}),
        ("untold_text", {"untold": ["1", "4"]}),
        ("untold_ranges_nested", {"untold": [[1, 4]]}),
        ("untold_half_a_range", {"untold": [1]}),
        ("untold_a_range_and_a_half", {"untold": [1, 1, 3]}),
        ("untold_0", {"untold": [0, 4]}),
        ("untold_2_53", {"seq": 2**53 - 1, "untold": [1, 2**53]}),
        ("untold_above_the_edge", {"untold": [1, 6]}),
        ("untold_upside_down", {"untold": [4, 1]}),
        ("untold_falls", {"untold": [4, 4, 1, 1]}),
        ("untold_overlaps", {"untold": [1, 2, 2, 4]}),
        ("untold_touches", {"untold": [1, 2, 3, 4]}),
        ("untold_one_too_many", {"seq": 99, "untold": [*full, 90, 90]}),
        ("topic_empty", {"topic": ""}),
        ("topic_with_a_star", {"topic": "a/*"}),
        ("topic_bytes", {"topic": b"a"}),
        ("publisher_short", {"publisher": bytes(31)}),
        ("with_more", {"x": 1}),
    ):
        no(f"lane_{name}", "bad_field", lanes=[{**lane, **change}])
    for key in lane:
        no(f"lane_without_{key}", "bad_field", lanes=[{k: v for k, v in lane.items() if k != key}])
    for name, change in (
        ("short", {"station": bytes(31)}),
        ("run_short", {"position": {"run": bytes(7), "offset": 1}}),
        ("offset_2_53", {"position": {"run": bytes(8), "offset": 2**53}}),
        ("position_empty", {"position": {}}),
        ("from_negative", {"from": -1}),
        ("from_2_53", {"from": 2**53}),
        ("from_text", {"from": "1"}),
        ("mesh_short", {"mesh": bytes(31)}),
        ("mesh_text", {"mesh": "m"}),
        ("with_more", {"x": 1}),
    ):
        no(f"station_{name}", "bad_field", stations=[{**station, **change}])
    for key in station:
        no(f"station_without_{key}", "bad_field", stations=[{k: v for k, v in station.items() if k != key}])
    no("lanes_a_map", "bad_field", lanes={})
    no("stations_text", "bad_field", stations="x")
    no("lane_a_number", "bad_field", lanes=[1])
    for key in ("lanes", "stations", "version"):
        no(f"without_{key}", "missing_field", enc({k: v for k, v in body.items() if k != key}))
    no("with_more", "unknown_field", x=1)
    no("integer_key", "bad_field", enc({**body, 1: 1}))
    for name, version in (("0", 0), ("2", 2), ("text", "1")):
        no(f"version_{name}", "bad_version", version=version)
    good = enc(body)
    no("not_a_map", "not_a_map", enc([body]))
    no("no_bytes", "truncated", b"")
    no("cut", "truncated", good[:-1])
    no("trailing_byte", "trailing", good + b"\x00")
    no("null", "simple", enc({**body, "lanes": None}))
    no("order_version_before_fields", "bad_version", version=2, lanes=1)
    no("order_unknown_before_missing", "unknown_field", enc({"version": 1, "zz": 1}))
    return f


def codes():
    f = Family("codes", "WIRE.md section 10: every row of every table, and for each table a text that is not in it.")
    for section, (_, _, rows) in closed_sets().items():
        for number, text, _, _ in rows:
            f.accept(f"{section}_{text}", {"section": section, "text": text}, number=number)
        for text in ("", "other", rows[0][1].upper(), rows[0][1] + " "):
            f.refuse(f"{section}_not_{text.strip() or 'empty'}{'_with_a_space' if text.endswith(' ') else ''}", {"section": section, "text": text}, "not_in_the_table")
    return f
