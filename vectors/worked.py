"""Section 12 of WIRE.md: one frame, one publication, one handshake and one seal, byte by byte, written between two markers."""

import hashlib
from pathlib import Path

import gen_seal
import model_seal
from cast import ALICE, BOB, NOW, OTHER, STATION, frame, publication
from constants import K
from gen_frames import GOOD
from gen_handshake import BINDING, Talk
from model_cbor import enc, head, walk
from model_wire import signed_bytes

WIRE = Path(__file__).resolve().parent / "WIRE.md"
BEGIN, END = "<!-- begin worked -->\n", "<!-- end worked -->\n"
WIDTH = 46  # column at which what the bytes mean begins


def row(data, text, depth=0):
    """Lines of at most 16 bytes; the meaning stands beside the first."""
    pad = "  " * depth
    pieces = [data[at : at + 16] for at in range(0, len(data), 16)] or [b""]
    first = pad + pieces[0].hex()
    gap = max(WIDTH - len(first), 2)
    return [(first + " " * gap + text).rstrip()] + [pad + piece.hex() for piece in pieces[1:]]


def item(value, depth, note=""):
    """The lines of one CBOR value."""
    note = f": {note}" if note else ""
    if isinstance(value, dict):
        lines = row(head(5, len(value)), f"map of {len(value)}{note}", depth)
        for key in sorted(value, key=enc):
            lines += row(enc(key), f'"{key}"', depth + 1)
            lines += item(value[key], depth + 1)
        return lines
    if isinstance(value, list):
        lines = row(head(4, len(value)), f"array of {len(value)}{note}", depth)
        return lines + [line for one in value for line in item(one, depth + 1)]
    if isinstance(value, bytes):
        lines = row(head(2, len(value)), f"{len(value)} bytes{note}", depth)
        return lines + (row(value, "", depth) if value else [])
    if isinstance(value, str):
        data = value.encode()
        if len(data) < 16:
            return row(enc(value), f'"{value}"{note}', depth)
        return row(head(3, len(data)), f"text of {len(data)} bytes{note}", depth) + row(data, f'"{value}"', depth)
    return row(enc(value), f"{value}{note}", depth)


def block(*lines):
    return ["", "```hex", *lines, "```", ""]


def parts(pairs):
    return [line for name, data in pairs for line in row(data, name)]


def sha384(data):
    return hashlib.sha384(data).digest()


def the_cast():
    lines = ["### 12.1 The keys", "", "Each secret seed is one byte, thirty-two times. Times are near 1,790,000,000,000 (Unix ms).", ""]
    lines += ["| | seed | key | node id |", "|---|---|---|---|"]
    for name, who in (("publisher, dialler", ALICE), ("another node", BOB), ("station, answerer", STATION), ("another station", OTHER)):
        lines.append(f"| {name} | `{who.seed[:1].hex()}` × 32 | `{who.key.hex()}` | `{who.id.hex()}` |")
    lines += ["", "The dialler's node id is SHA-256 of"]
    lines += block(*parts([("label", K.node_id_label), ("", b"\x00"), ("length of the profile", bytes([7])), ("profile", b"ed25519"), ("key", ALICE.key)]))
    lines += ["and the realm `io.example` has the id SHA-256(`io.example`) ="]
    return lines + block(*row(GOOD["subscribe"]["realm"], "realm"))


def the_frame():
    body = enc(frame("subscribe", **GOOD["subscribe"]))
    lines = ["### 12.2 A frame", "", "`subscribe`, the entry `subscribe` of `frames.json`, with its length in front:"]
    return lines + block(*row(len(body).to_bytes(4, "big"), f"length {len(body)}"), *item(frame("subscribe", **GOOD["subscribe"]), 0))


def the_publication():
    value = publication()
    tbs, signature = value["tbs"], value["signature"]
    fields = walk(tbs, "payload")[0]
    signed = signed_bytes(K.publication_label, ALICE.key, tbs)
    lines = ["### 12.3 A publication", "", f"The entry `plain` of `publications.json`. Its `tbs` is {len(tbs)} bytes:"]
    lines += block(*item(fields, 0))
    lines += [f"What is signed is {len(signed)} bytes:"]
    lines += block(
        *parts([("label", K.publication_label), ("", b"\x00"), ("SHA-384(key)", sha384(ALICE.key))]),
        *row(tbs, f"tbs, {len(tbs)} bytes"),
    )
    lines += ["The signature:"] + block(*row(signature[:32], "R"), *row(signature[32:], "s"))
    lines += ["The publication's hash, SHA-384(tbs):"] + block(*row(sha384(tbs), ""))
    lines += [f"`expires_at` = {NOW:,} + 600,000 + 300,000 = {NOW + 900_000:,}.", ""]
    lines += ["The object as it stands in a `publish` or an `event`:"]
    return lines + block(*item(value, 0))


def the_handshake():
    talk = Talk()
    lines = ["### 12.4 A handshake", "", "The entries `dialler_plain` and `answerer_plain` of `handshake.json`. The binding is"]
    lines += block(*row(BINDING, "binding"))
    fields = {
        "opener": frame("opener", first=1, last=1),
        "challenge": frame("challenge", **talk.challenge_fields),
        "connect": None,
        "hello": None,
    }
    fields["connect"], fields["hello"] = walk(talk.connect)[0], walk(talk.hello)[0]

    def one(name, who):
        data = getattr(talk, name)
        text = [f"`{name}`, from the {who}:"]
        return text + block(*row(len(data).to_bytes(4, "big"), f"length {len(data)}"), *item(fields[name], 0))

    lines += one("opener", "dialler") + one("challenge", "answerer")
    sent, asked = talk.connect_fields, talk.challenge_fields
    common = [("", b"\x00"), ("binding", BINDING), ("h(opener)", sha384(talk.opener)), ("h(challenge)", sha384(talk.challenge))]
    over = [
        ("label", K.connect_label),
        *common,
        ("dialler id", ALICE.id),
        ("answerer id", STATION.id),
        ("role: node", b"\x00"),
        ("dialler capabilities", sent["capabilities"].to_bytes(8, "big")),
        ("dialler max_frame", sent["max_frame"].to_bytes(4, "big")),
        ("dialler nonce", sent["nonce"]),
        ("answerer nonce", asked["nonce"]),
    ]
    assert b"".join(data for _, data in over) == talk.connect_signed()
    lines += [f"The dialler signs {len(talk.connect_signed())} bytes:"] + block(*parts(over))
    lines += one("connect", "dialler")
    over = [
        ("label", K.hello_label),
        *common,
        ("h(connect)", sha384(talk.connect)),
        ("answerer id", STATION.id),
        ("dialler id", ALICE.id),
        ("role: node", b"\x00"),
        ("answerer capabilities", asked["capabilities"].to_bytes(8, "big")),
        ("answerer max_frame", asked["max_frame"].to_bytes(4, "big")),
        ("answerer nonce", asked["nonce"]),
        ("dialler nonce", sent["nonce"]),
    ]
    assert b"".join(data for _, data in over) == talk.hello_signed()
    lines += [f"The answerer signs {len(talk.hello_signed())} bytes:"] + block(*parts(over))
    return lines + one("hello", "answerer")


def the_seal():
    place, key = gen_seal.PLACE, gen_seal.PERIOD
    publication = gen_seal.event()
    fields = walk(publication["tbs"])[0]
    sealed = fields["sealed"]
    info, aad = model_seal.info_of(ALICE.id), model_seal.aad_of(place)
    lines = ["### 12.5 A sealed publication", "", "The entries `seal` and `event` of `seal.json`. The key period and its key:"]
    lines += block(*parts([("id", gen_seal.PERIOD_ID), ("key", key)]))
    lines += ["The publisher's subkey in that period:"]
    lines += block(
        *parts([("salt", K.seal_key_label), ("extracted", model_seal.prk_of(key)), ("info", info), ("subkey", model_seal.subkey(key, ALICE.id))])
    )
    lines += ["The nonce is the first 12 bytes of SHA-256 of"]
    numbers = [(name, place[name].to_bytes(8, "big")) for name in ("epoch", "seq", "published_at")]
    lines += block(*parts([("entropy", gen_seal.ENTROPY), *numbers])) + ["which are"] + block(*row(sealed["nonce"], "nonce"))
    lines += [f"The associated data is {len(aad)} bytes:"]
    lines += block(*item(walk(aad)[0], 0))
    lines += ["The payload, and what it is sealed to:"]
    lines += block(*parts([("payload", gen_seal.PAYLOAD), ("ciphertext", sealed["ct"][:-16]), ("tag", sealed["ct"][-16:])]))
    lines += [f"The `tbs` that is signed is {len(publication['tbs'])} bytes:"]
    return lines + block(*item(fields, 0))


def write():
    text = WIRE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    assert found, "WIRE.md has lost its markers"
    lines = [""] + the_cast() + the_frame() + the_publication() + the_handshake() + the_seal()
    worked = "\n".join(lines).rstrip("\n") + "\n\n"
    WIRE.write_text(before + BEGIN + worked + END + after, encoding="utf-8")
