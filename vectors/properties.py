"""What must hold for the vectors as a whole; each property answers (text, how often tried, what failed)."""

import aead
from model import input_bytes, judge
from model_cbor import Refused, enc, walk
from model_frames import FRAMES

REASONS = {
    "cbor": """truncated reserved_head indefinite long_head tag simple float integer_range too_many_items too_deep bad_text
        bad_key key_order duplicate_key trailing""",
    "objects": "malformed bad_key_form signature_invalid alg_mismatch",
    "publications": "malformed bad_key_form alg_mismatch key_id_mismatch signature_invalid not_yet_valid expired",
    "seal": "tag_invalid",
    "topics": "empty too_long too_many_segments empty_segment wildcard structure version tier segment",
    "frames": """truncated trailing frame_too_large not_a_map no_frame_type bad_version unknown_field missing_field bad_field
        unexpected_frame""",
    "links": "id_reused unknown_id frame_timeout",
    "handshake": """key_mismatch profile_mismatch bad_key_form wrong_station own_link refused_by_station proof_invalid unsupported_version full
        draining not_a_peer unexpected_frame unknown_field missing_field bad_field""",
    "positions": "not_a_map bad_version unknown_field missing_field bad_field truncated trailing",
}


def refused(family, entry):
    return "refuse" in judge(family, entry)


def entries(families, name, *names):
    found = {entry["name"]: entry for entry in families[name]["entries"]}
    return [found[one] for one in names]


def inputs(entry, *names):
    return {name: entry[name] for name in names if name in entry}


def all_of(families):
    yield published_primitives()
    yield every_reason(families)
    yield every_frame(families)
    yield one_encoding(families)
    yield cut_or_longer(families)
    yield flipped_objects(families)
    yield flipped_handshakes(families)
    yield swapped_parts(families)
    yield swapped_fields(families)
    yield swapped_frames(families)


def published_primitives():
    """ChaCha20, Poly1305 and HKDF under our seal are those that were published."""
    found = list(aead.published())
    return "RFC 8439 and RFC 5869 come out", len(found), [name for name, got, wanted in found if got != wanted]


def every_reason(families):
    tried, failed = 0, []
    for name, reasons in REASONS.items():
        for reason in reasons.split():
            tried += 1
            wanted = 2 if name == "cbor" else 1
            if sum(entry.get("refuse") == reason for entry in families[name]["entries"]) < wanted:
                failed.append(f"{name}: {reason}")
    return "each reason has its entries", tried, failed


def every_frame(families):
    failed = []
    for kind in FRAMES:
        mine = [entry for entry in families["frames"]["entries"] if entry["name"].startswith(kind)]
        if not any("expect" in entry for entry in mine) or not any("refuse" in entry for entry in mine):
            failed.append(kind)
    return "each frame is accepted and refused", len(FRAMES), failed


def small(families):
    return [entry for entry in families["cbor"]["entries"] if "expect" in entry and "hex" in entry]


def one_encoding(families):
    """Writing what was read gives the same bytes."""
    failed, mine = [], small(families)
    for entry in mine:
        value, _ = walk(input_bytes(entry), "always" if entry["payload"] else "never")
        if enc(value) != input_bytes(entry):
            failed.append(entry["name"])
    return "what was read is written as it was", len(mine), failed


def cut_or_longer(families):
    tried, failed = 0, []
    for entry in small(families):
        data, simple = input_bytes(entry), "always" if entry["payload"] else "never"
        others = [(data[:end], "truncated") for end in range(len(data))] + [(data + b"\x00", "trailing")]
        for other, wanted in others:
            tried += 1
            try:
                walk(other, simple)
                failed.append(entry["name"])
            except Refused as one:
                if one.reason != wanted:
                    failed.append(f"{entry['name']}: {one.reason}")
    return "every cut is truncated, one byte more is trailing", tried, failed


def flipped_objects(families):
    """No byte of a publication can be changed."""
    tried, failed = 0, []
    for entry in entries(families, "publications", "plain", "every_optional_field", "sealed_scheme_2", "payload_with_simple_values"):
        data = bytes.fromhex(entry["hex"])
        for at in range(len(data)):
            wrong = data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
            tried += 1
            if not refused("publications", {"now": entry["now"], "hex": wrong.hex()}):
                failed.append(f"{entry['name']}: byte {at}")
    return "a changed byte of a publication is refused", tried, failed


SIDES = ("checks", "local", "opener", "challenge", "connect", "hello")


def flipped_handshakes(families):
    """No byte of any frame, of the binding or of the own id can be changed."""
    tried, failed = 0, []
    for entry in entries(families, "handshake", "dialler_plain", "answerer_plain"):
        for name in SIDES[2:] + ("id", "binding"):
            text = entry["local"][name] if name in entry["local"] else entry.get(name)
            if text is None:
                continue
            data = bytes.fromhex(text)
            for at in range(len(data)):
                wrong = (data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]).hex()
                given = inputs(entry, *SIDES)
                given.update({"local": {**entry["local"], name: wrong}} if name in entry["local"] else {name: wrong})
                tried += 1
                if not refused("handshake", given):
                    failed.append(f"{entry['name']}: {name}: byte {at}")
    return "a changed byte of a handshake is refused", tried, failed


PUBLICATIONS = ("plain", "by_another_key", "seq_highest", "without_epoch", "one", "ttl_0", "payload_text", "sealed_scheme_1", "sealed_scheme_2")


def swapped_parts(families):
    """Key, tbs and signature belong together."""
    tried, failed = 0, []
    chosen = entries(families, "publications", *PUBLICATIONS)
    objects = [walk(bytes.fromhex(entry["hex"]))[0] for entry in chosen]
    for one, entry in zip(objects, chosen):
        for other in objects:
            for part in ("key", "tbs", "signature"):
                if one[part] == other[part]:
                    continue
                tried += 1
                if not refused("publications", {"now": entry["now"], "hex": enc({**one, part: other[part]}).hex()}):
                    failed.append(f"{entry['name']}: {part}")
    return "swapped key, tbs or signature is refused", tried, failed


def swapped_fields(families):
    """No field of one publication can be put into another."""
    tried, failed = 0, []
    chosen = entries(families, "publications", *PUBLICATIONS)
    objects = [walk(bytes.fromhex(entry["hex"]))[0] for entry in chosen]
    read = [walk(one["tbs"], "payload")[0] for one in objects]
    for at, entry in enumerate(chosen):
        for other in read:
            for name in sorted(set(other) | set(read[at])):
                if read[at].get(name) == other.get(name) and (name in read[at]) == (name in other):
                    continue
                fields = {key: value for key, value in read[at].items() if key != name}
                if name in other:
                    fields[name] = other[name]
                tried += 1
                if not refused("publications", {"now": entry["now"], "hex": enc({**objects[at], "tbs": enc(fields)}).hex()}):
                    failed.append(f"{entry['name']}: {name}")
    return "a field of another publication is refused", tried, failed


def swapped_frames(families):
    """No frame of one handshake can be put into another."""
    tried, failed = 0, []
    found = {entry["name"]: entry for entry in families["handshake"]["entries"]}
    for side in ("dialler", "answerer"):
        chosen = [found[f"{side}_{name}"] for name in ("plain", "other_keys", "local_link", "versions_1_to_9", "smallest_frames", "equal_nonces")]
        for one in chosen:
            for other in chosen:
                for name in SIDES[2:]:
                    if one.get(name) == other.get(name):
                        continue
                    tried += 1
                    if not refused("handshake", {**inputs(one, *SIDES), name: other[name]}):
                        failed.append(f"{one['name']}: {name} of {other['name']}")
    return "a frame of another handshake is refused", tried, failed
