"""cbor.json: every accept and every refusal of WIRE.md section 2, and the order in which reasons are found."""

from family import Family
from model_cbor import enc


def family():
    f = Family("cbor", "WIRE.md section 2: accepted bytes with their walk, refused bytes with the first reason met.")

    def yes(name, data, payload=False, **expect):
        f.accept(name, {"payload": payload, "hex": data if isinstance(data, str) else data.hex()}, **expect)

    def no(name, data, reason, payload=False):
        f.refuse(name, {"payload": payload, "hex": data if isinstance(data, str) else data.hex()}, reason)

    accepted(yes)
    refused(no)
    order(no)
    large(f)
    return f


def accepted(yes):
    for number in (0, 1, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**53 - 1, 2**53, 2**63 - 1):
        yes(f"uint_{number}", enc(number), tokens=[["int", str(number)]])
    for number in (-1, -24, -25, -256, -257, -65536, -65537, -(2**32), -(2**32) - 1, -(2**63)):
        yes(f"negative_{-number}", enc(number), tokens=[["int", str(number)]])
    for length in (0, 1, 23, 24, 255, 256):
        yes(f"bytes_{length}", enc(bytes(range(256))[:length] if length < 257 else b""))
        yes(f"text_{length}", enc("a" * length))
    yes("text_two_byte_letters", enc("üß"))
    yes("text_three_byte_letters", enc("水"))
    yes("text_four_byte_letters", enc("𐅑"))
    yes("text_with_nul", enc("a\x00b"))
    yes("text_highest_scalar", "64f48fbfbf")
    yes("text_just_below_surrogates", "63ed9fbf")
    yes("text_just_above_surrogates", "63ee8080")
    yes("array_empty", "80", items=1, depth=1)
    yes("array_three", enc([1, 2, 3]), items=4, depth=1)
    yes("array_24", enc(list(range(24))), items=25, depth=1)
    yes("array_nested", enc([1, [2, 3], [4, [5]]]), depth=3)
    yes("map_empty", "a0", items=1, depth=1)
    yes("map_text_keys", enc({"b": 1, "a": 2}), items=5)
    yes("map_length_before_letters", enc({"z": 0, "aa": 1}))
    yes("map_integer_keys", enc({0: 0, 23: 1, 24: 2, 256: 3, -1: 4, -25: 5}))
    yes("map_integers_before_text", enc({10: 1, -1: 2, "": 3, "a": 4}))
    yes("map_24_pairs", enc({n: n for n in range(24)}))
    yes("map_in_map", enc({"a": {"b": {"c": []}}}), depth=4)
    yes("map_empty_text_key", enc({"": 0}))
    yes("map_key_longer_than_23", enc({"k" * 24: 0, "k" * 23: 1}))
    for name, bits in (
        ("zero", "0000000000000000"),
        ("negative_zero", "8000000000000000"),
        ("one", "3ff0000000000000"),
        ("one_and_a_half", "3ff8000000000000"),
        ("smallest", "0000000000000001"),
        ("largest", "7fefffffffffffff"),
        ("most_negative", "ffefffffffffffff"),
        ("whole_number_is_not_shortened", "4059000000000000"),
    ):
        yes(f"float_{name}", "fb" + bits, tokens=[["float", bits]])
    for name, data in (("false", "f4"), ("true", "f5"), ("null", "f6")):
        yes(f"{name}_in_payload", data, payload=True, tokens=[[name]])
    yes("simple_nested_in_payload", enc({"a": [True, False, None]}), payload=True)
    yes("payload_without_simple", enc({"a": 1}), payload=True)
    yes("depth_64", "81" * 63 + "80", depth=64)
    yes("depth_64_maps", "a100" * 63 + "a0", depth=64)
    yes("depth_64_around_a_value", "81" * 64 + "00", depth=64)


def refused(no):
    for name, data in (
        ("nothing", ""),
        ("head_of_uint8", "18"),
        ("head_of_uint16", "1901"),
        ("head_of_uint32", "1a000100"),
        ("head_of_uint64", "1b00000001000000"),
        ("bytes", "44010203"),
        ("bytes_none", "41"),
        ("text", "6261"),
        ("length_far_beyond", "5b7fffffffffffffff"),
        ("length_beyond_64_bit_memory", "7bffffffffffffffff00"),
        ("array", "820a"),
        ("array_none", "81"),
        ("array_count_far_beyond", "9bffffffffffffffff"),
        ("map_before_key", "a1"),
        ("map_after_key", "a10a"),
        ("map_second_pair", "a20a0a"),
        ("map_count_far_beyond", "bbffffffffffffffff"),
        ("nested", "8181"),
        ("head_of_float", "fb3ff00000000000"),
        ("head_of_half_float", "f93c"),
        ("head_of_single_float", "fa3f8000"),
        ("head_of_tag", "d9d9"),
        ("head_of_simple", "f8"),
    ):
        no(f"truncated_{name}", data, "truncated")
    for major in range(8):
        for info in (28, 29, 30):
            no(f"reserved_head_{major}_{info}", bytes([major << 5 | info]), "reserved_head")
    for major, name in enumerate(("uint", "negative", "bytes", "text", "array", "map", "tag", "break")):
        no(f"indefinite_{name}", bytes([major << 5 | 31]), "indefinite")
    no("indefinite_bytes_whole", "5f4101ff", "indefinite")
    no("indefinite_array_whole", "9f01ff", "indefinite")
    no("indefinite_map_whole", "bf0001ff", "indefinite")
    no("indefinite_break_in_array", "81ff", "indefinite")
    no("indefinite_break_as_value", "a100ff", "indefinite")
    no("indefinite_break_as_key", "a1ff00", "indefinite")
    for major, name in enumerate(("uint", "negative", "bytes", "text", "array", "map", "tag")):
        for info, data in ((24, "17"), (25, "00ff"), (26, "0000ffff"), (27, "00000000ffffffff")):
            no(f"long_head_{name}_{info}", bytes([major << 5 | info]) + bytes.fromhex(data), "long_head")
    no("long_head_as_key", "a1180100", "long_head")
    no("long_head_as_value", "a1001801", "long_head")
    no("long_head_in_array", "811800", "long_head")
    for name, data in (
        ("date", "c000"),
        ("epoch", "c11a514b67b0"),
        ("bignum", "c249010000000000000000"),
        ("self_described", "d9d9f700"),
        ("as_key", "a1c10000"),
        ("as_value", "a100c100"),
        ("highest", "dbffffffffffffffff00"),
    ):
        no(f"tag_{name}", data, "tag")
    for name, data in (("false", "f4"), ("true", "f5"), ("null", "f6"), ("in_array", "81f6"), ("as_value", "a100f5")):
        no(f"simple_{name}_outside_payload", data, "simple")
    for name, data in (
        ("undefined", "f7"),
        ("0", "e0"),
        ("19", "f3"),
        ("two_bytes_0", "f800"),
        ("two_bytes_false", "f814"),
        ("two_bytes_null", "f816"),
        ("two_bytes_24", "f818"),
        ("two_bytes_32", "f820"),
        ("two_bytes_255", "f8ff"),
    ):
        no(f"simple_{name}_in_payload", data, "simple", payload=True)
        no(f"simple_{name}", data, "simple")
    for name, data in (
        ("half_one", "f93c00"),
        ("half_zero", "f90000"),
        ("half_infinity", "f97c00"),
        ("half_nan", "f97e00"),
        ("single_one", "fa3f800000"),
        ("single_nan", "fa7fc00000"),
        ("double_infinity", "fb7ff0000000000000"),
        ("double_minus_infinity", "fbfff0000000000000"),
        ("double_nan", "fb7ff8000000000000"),
        ("double_signalling_nan", "fb7ff0000000000001"),
        ("in_array", "81f93c00"),
        ("half_as_key", "a1f93c0000"),
    ):
        no(f"float_{name}", data, "float")
    for name, data in (
        ("above", "1b8000000000000000"),
        ("highest", "1bffffffffffffffff"),
        ("below", "3b8000000000000000"),
        ("lowest", "3bffffffffffffffff"),
        ("as_key", "a11b800000000000000000"),
        ("as_value", "a1003b8000000000000000"),
    ):
        no(f"integer_range_{name}", data, "integer_range")
    no("too_deep_arrays", "81" * 64 + "80", "too_deep")
    no("too_deep_maps", "a100" * 64 + "a0", "too_deep")
    no("too_deep_mixed", "81a100" * 32 + "80", "too_deep")
    no("too_deep_empty_array_of_5000", "81" * 5000 + "80", "too_deep")
    for name, data in (
        ("lone_continuation", "6180"),
        ("cut_letter", "61c3"),
        ("overlong_slash", "62c0af"),
        ("overlong_nul", "62c080"),
        ("surrogate", "63eda080"),
        ("surrogate_last", "63edbfbf"),
        ("above_the_last_scalar", "64f4908080"),
        ("ff", "61ff"),
        ("as_key", "a161ff00"),
        ("as_value", "a10061ff"),
        ("second_in_array", "8261616180"),
    ):
        no(f"bad_text_{name}", data, "bad_text")
    for name, data in (
        ("bytes", "a1410000"),
        ("array", "a18000"),
        ("map", "a1a000"),
        ("float", "a1fb3ff000000000000000"),
    ):
        no(f"bad_key_{name}", data, "bad_key")
    for name, data in (("false", "a1f400"), ("null", "a1f600")):
        no(f"bad_key_{name}_in_payload", data, "bad_key", payload=True)
    no("bad_key_second", "a200004100", "bad_key")
    for name, data in (
        ("letters", "a2616200616100"),
        ("length_first", "a262616100616200"),
        ("numbers", "a202000100"),
        ("text_before_integer", "a26161000000"),
        ("negative_before_positive", "a220000000"),
        ("third", "a3000001000000"),
        ("in_nested_map", "81a202000100"),
    ):
        no(f"key_order_{name}", data, "key_order")
    for name, data in (
        ("text", "a2616100616100"),
        ("integer", "a200000001"),
        ("negative", "a220002000"),
        ("empty_text", "a260006000"),
        ("third", "a3000001000100"),
        ("in_nested_map", "81a261610061610a"),
    ):
        no(f"duplicate_key_{name}", data, "duplicate_key")
    for name, data in (
        ("uint", "0000"),
        ("break", "00ff"),
        ("after_map", "a000"),
        ("after_array", "8000"),
        ("after_text", "616161"),
        ("anything_is_trailing", "00f4"),
    ):
        no(f"trailing_{name}", data, "trailing")


def order(no):
    """Inputs that break several rules: the first one met answers."""
    no("order_truncated_head_before_long_head", "1900", "truncated")
    no("order_reserved_before_end_of_input", "81fc", "reserved_head")
    no("order_indefinite_before_tag", "df", "indefinite")
    no("order_long_head_before_tag", "d80100", "long_head")
    no("order_long_head_before_truncated_contents", "580501", "long_head")
    no("order_long_head_before_bad_key", "a1580000", "long_head")
    no("order_tag_before_bad_key", "a1c000", "tag")
    no("order_float_before_bad_key", "a1f9000000", "float")
    no("order_nan_key_before_bad_key", "a1fb7ff800000000000000", "float")
    no("order_simple_before_bad_key", "a1f400", "simple")
    no("order_undefined_before_bad_key_in_payload", "a1f700", "simple", payload=True)
    no("order_range_before_order", "a201001b800000000000000000", "integer_range")
    no("order_bad_key_before_its_contents", "a1450102", "bad_key")
    no("order_bad_key_before_its_depth", "81" * 63 + "a18000", "bad_key")
    no("order_array_key_at_level_65_is_bad_key", "81" * 63 + "a1a000", "bad_key")
    no("order_too_deep_before_truncated", "81" * 64 + "81", "too_deep")
    no("order_too_deep_before_what_is_inside", "81" * 64 + "81c0", "too_deep")
    no("order_truncated_text_before_bad_text", "62ff", "truncated")
    no("order_bad_text_key_before_key_order", "a2616200" + "61ff00", "bad_text")
    no("order_truncated_key_before_key_order", "a26162006261", "truncated")
    no("order_key_order_before_its_value", "a26162006161c0", "key_order")
    no("order_duplicate_before_its_value", "a26161006161ff", "duplicate_key")
    no("order_duplicate_before_its_missing_value", "a26161006161", "duplicate_key")
    no("order_first_value_before_second_key", "a20a1801" + "0a00", "long_head")
    no("order_first_of_two_in_array", "82c0f4", "tag")
    no("order_first_of_two_in_array_other_way", "82f4c0", "simple")
    no("order_inner_before_trailing", "81f400", "simple")
    no("order_contents_before_an_array_count_beyond", "9a00010000c0", "tag")
    no("order_contents_before_a_map_count_beyond", "ba000100000000c0", "tag")
    no("order_duplicate_is_judged_by_neighbours", "a3000001000000", "key_order")


def large(f):
    """The item count; written as parts, each so many times."""

    def parts(*pairs):
        return {"payload": False, "parts": [{"hex": data, "times": times} for data, times in pairs]}

    f.accept("items_131072", parts(("9a0001ffff", 1), ("00", 131071)), items=131072)
    f.accept("items_131072_in_a_map", parts(("a100", 1), ("9a0001fffd", 1), ("00", 131069)), items=131072)
    for length in (65535, 65536):
        head = enc(b"\x00" * length)[: 3 if length < 65536 else 5].hex()
        f.accept(f"bytes_{length}", {"payload": False, "parts": [{"hex": head, "times": 1}, {"hex": "00", "times": length}]}, items=1)
    f.refuse("too_many_items_131073", parts(("9a00020000", 1), ("00", 131072)), "too_many_items")
    f.refuse("too_many_items_nested", parts(("82", 1), ("9a0001ffff", 1), ("00", 131071), ("80", 1)), "too_many_items")
    f.refuse("order_too_many_before_truncated_contents", parts(("9a00020000", 1), ("00", 131071), ("4501", 1)), "too_many_items")
    f.refuse("order_too_many_before_bad_text", parts(("9a00020000", 1), ("00", 131071), ("61ff", 1)), "too_many_items")
    f.refuse("order_too_many_before_too_deep", parts(("9a00020000", 1), ("00", 131008), ("81", 64), ("80", 1)), "too_many_items")
    f.refuse("order_head_before_too_many", parts(("9a00020000", 1), ("00", 131071), ("1800", 1)), "long_head")
    f.refuse("order_tag_before_too_many", parts(("9a00020000", 1), ("00", 131071), ("c000", 1)), "tag")
    f.refuse("order_bad_key_before_too_many", parts(("9a00020000", 1), ("00", 131070), ("a1", 1), ("4000", 1)), "bad_key")
    f.refuse("order_too_many_as_key", parts(("9a00020000", 1), ("00", 131070), ("a1", 1), ("0000", 1)), "too_many_items")
    f.refuse("order_truncated_at_the_last_item", parts(("9a00020000", 1), ("00", 131071)), "truncated")
    f.refuse("trailing_after_item_131072", parts(("9a0001ffff", 1), ("00", 131072)), "trailing")
