"""handshake.json: whole transcripts of WIRE.md section 8, accepted and refused, seen from either side."""

import ed25519
from cast import ALICE, BOB, NOW, OTHER, STATION, frame
from family import Family
from gen_objects import BAD_KEYS, high_s, small_r
from model_cbor import enc
from model_frames import connect_signed, hello_signed

BINDING = bytes(range(32))
# The base point and s = 1.
FITS = b"\x58" + b"\x66" * 31 + b"\x01" + bytes(31)


class Talk:
    """One handshake; what is changed here is changed before it is signed."""

    def __init__(self, dialler=ALICE, answerer=STATION, binding=BINDING, opener=None, challenge=None, connect=None, **signing):
        self.dialler, self.answerer, self.binding = dialler, answerer, binding
        self.signing = signing
        self.opener = enc(frame("opener", **{"first": 1, "last": 1, **(opener or {})}))
        self.challenge_fields = {
            "key": answerer.key,
            "mesh": answerer.id,
            "nonce": bytes([0xA5]) * 32,
            "profile": "ed25519",
            "wall_ms": NOW,
            "max_frame": 1_048_576,
            "capabilities": 0,
            **(challenge or {}),
        }
        self.challenge = enc(frame("challenge", **self.challenge_fields))
        self.connect_fields = {
            "key": dialler.key,
            "role": "node",
            "nonce": bytes([0x5A]) * 32,
            "profile": "ed25519",
            "max_frame": 65_536,
            "capabilities": 0,
            **(connect or {}),
        }
        proof = signing.get("connect_proof") or signing.get("connect_signer", dialler).sign(self.connect_signed())
        self.connect = enc(frame("connect", **{"proof": proof, **self.connect_fields}))
        proof = signing.get("hello_proof") or signing.get("hello_signer", answerer).sign(self.hello_signed())
        self.hello = enc(frame("hello", proof=proof))

    def sides(self, which):
        """What goes into one proof, with what `signing` changes."""
        out = {
            "binding": self.binding,
            "opener": self.opener,
            "challenge": self.challenge,
            "dialler": self.dialler.id,
            "answerer": self.answerer.id,
            "sent": self.connect_fields,
            "challenged": self.challenge_fields,
        }
        out.update(self.signing.get(which, {}))
        for name in ("sent", "challenged"):
            out[name] = {**out[name], **self.signing.get(f"{which}_{name}", {})}
        return out

    def connect_signed(self):
        return connect_signed(**self.sides("connect_over"))

    def hello_signed(self):
        return hello_signed(**{"connect": self.connect, **self.sides("hello_over")})

    def frames(self, **instead):
        out = {name: getattr(self, name) for name in ("opener", "challenge", "connect", "hello")}
        out.update(instead)
        return {name: data.hex() for name, data in out.items() if data is not None}


def dialler(talk, named=None, binding=None, own=None, proved=None, **instead):
    local = {"id": (own or talk.dialler).id.hex(), "named": named and named.hex(), "binding": (binding or talk.binding).hex()}
    if proved:
        local["proved"] = proved.id.hex()
    return {"checks": "dialler", "local": local, **talk.frames(**instead)}


def answerer(talk, binding=None, own=None, full=False, draining=False, peers=(), proved=None, **instead):
    local = {
        "id": (own or talk.answerer).id.hex(),
        "binding": (binding or talk.binding).hex(),
        "full": full,
        "draining": draining,
        "peers": [one.id.hex() for one in peers],
    }
    if proved:
        local["proved"] = proved.id.hex()
    return {"checks": "answerer", "local": local, **talk.frames(**{"hello": None, **instead})}


def refused(code):
    return enc(frame("hello", refusal=code))


def family():
    f = Family("handshake", "WIRE.md section 8: whole handshakes as one side (`checks`) sees them, with the bytes each proof signs.")
    accepted(f)
    from_the_dialler(f)
    from_the_answerer(f)
    order(f)
    return f


def accepted(f):
    for name, talk in (
        ("plain", Talk()),
        ("other_keys", Talk(BOB, OTHER)),
        ("local_link", Talk(binding=bytes(32))),
        ("versions_1_to_9", Talk(opener={"last": 9})),
        ("smallest_frames", Talk(challenge={"max_frame": 512}, connect={"max_frame": 512})),
        ("largest_frames", Talk(challenge={"max_frame": 0xFFFFFF}, connect={"max_frame": 0xFFFFFF})),
        ("capabilities_unknown", Talk(challenge={"capabilities": 2**53 - 1}, connect={"capabilities": 5})),
        ("equal_nonces", Talk(challenge={"nonce": bytes(32)}, connect={"nonce": bytes(32)})),
        ("mesh_of_its_own", Talk(challenge={"mesh": b"\x77" * 32})),
        ("clock_never_set", Talk(challenge={"wall_ms": 0})),
    ):
        f.accept(f"dialler_{name}", dialler(talk))
        f.accept(f"answerer_{name}", answerer(talk))
    station = Talk(BOB, STATION, connect={"role": "station"})
    f.accept("dialler_station", dialler(station))
    f.accept("answerer_station", answerer(station, peers=(ALICE, BOB)))
    f.accept("dialler_named", dialler(Talk(), named=STATION.id))
    f.accept("dialler_proved", dialler(Talk(), proved=STATION))
    f.accept("answerer_proved", answerer(Talk(), proved=ALICE))


def from_the_dialler(f):
    """What the dialler refuses."""

    def no(name, entry, reason, at, **more):
        f.refuse(f"dialler_{name}", entry, reason, at=at, **more)

    for code in ("unsupported_version", "not_accepted", "full", "draining"):
        no(f"refused_{code}_at_once", dialler(Talk(), challenge=refused(code)), "refused_by_station", "challenge", refusal=code)
        no(f"refused_{code}", dialler(Talk(), hello=refused(code)), "refused_by_station", "hello", refusal=code)
    talk = Talk()
    no("hello_with_a_proof_in_place_of_a_challenge", dialler(talk, challenge=talk.hello), "unexpected_frame", "challenge")
    no("opener_in_place_of_a_challenge", dialler(talk, challenge=talk.opener), "unexpected_frame", "challenge")
    no("challenge_in_place_of_hello", dialler(talk, hello=talk.challenge), "unexpected_frame", "hello")
    no("ping_in_place_of_hello", dialler(talk, hello=enc(frame("ping", nonce=bytes(16)))), "unexpected_frame", "hello")
    no("profile", dialler(Talk(challenge={"profile": "other"})), "profile_mismatch", "challenge")
    no("profile_capital", dialler(Talk(challenge={"profile": "Ed25519"})), "profile_mismatch", "challenge")
    for name, key in BAD_KEYS:
        no(f"key_{name}", dialler(Talk(challenge={"key": key})), "bad_key_form", "challenge")
    no("wrong_station", dialler(Talk(), named=OTHER.id), "wrong_station", "challenge")
    no("own_link", dialler(Talk(ALICE, ALICE)), "own_link", "challenge")
    no("proved_another", dialler(Talk(), proved=OTHER), "key_mismatch", "challenge")
    frames_broken(lambda name, entry, reason: no(name, entry, reason, "challenge"), "challenge", talk, dialler)
    no("hello_unknown_field", dialler(talk, hello=enc(frame("hello", proof=bytes(64), x=1))), "unknown_field", "hello")
    no("hello_empty", dialler(talk, hello=enc(frame("hello"))), "bad_field", "hello")
    no("hello_unknown_refusal", dialler(talk, hello=refused("because")), "bad_field", "hello")
    no("hello_proof_of_63_bytes", dialler(talk, hello=enc(frame("hello", proof=bytes(63)))), "bad_field", "hello")
    # The proof.
    no("binding_of_another_session", dialler(talk, binding=bytes(31) + b"\x01"), "proof_invalid", "hello")
    no("binding_missing", dialler(talk, binding=bytes(32)), "proof_invalid", "hello")
    no("local_proof_on_a_real_session", dialler(Talk(binding=bytes(32)), binding=BINDING), "proof_invalid", "hello")
    no("hello_by_another_key", dialler(Talk(hello_signer=OTHER)), "proof_invalid", "hello")
    no("hello_by_the_dialler", dialler(Talk(hello_signer=ALICE)), "proof_invalid", "hello")
    no("hello_proof_is_the_connect_proof", dialler(Talk(hello_proof=STATION.sign(talk.connect_signed()))), "proof_invalid", "hello")
    no("hello_proof_echoed", dialler(Talk(hello_proof=ALICE.sign(talk.connect_signed()))), "proof_invalid", "hello")
    for name, wrong in (("zeros", bytes(64)), ("s_above_l", None), ("r_of_small_order", None)):
        signed = talk.hello_signed()
        wrong = wrong or (high_s(STATION.sign(signed)) if name == "s_above_l" else small_r(STATION, signed))
        no(f"hello_proof_{name}", dialler(Talk(hello_proof=wrong)), "proof_invalid", "hello")
    other = Talk(connect={"nonce": b"\x5b" * 32})
    no("hello_of_another_handshake", dialler(talk, hello=other.hello), "proof_invalid", "hello")
    for name, signing in proofs("hello").items():
        no(f"hello_proof_over_{name}", dialler(Talk(**signing)), "proof_invalid", "hello")


def proofs(which):
    """One change for every part a proof covers."""
    nonces = {"nonce": bytes([0xA5]) * 32}, {"nonce": bytes([0x5A]) * 32}
    out = {
        "another_binding": {f"{which}_over": {"binding": b"\x01" + BINDING[1:]}},
        "another_opener": {f"{which}_over": {"opener": enc(frame("opener", first=1, last=2))}},
        "another_challenge": {f"{which}_over": {"challenge": Talk(challenge={"wall_ms": NOW + 1}).challenge}},
        "another_dialler": {f"{which}_over": {"dialler": BOB.id}},
        "another_answerer": {f"{which}_over": {"answerer": OTHER.id}},
        "swapped_ids": {f"{which}_over": {"dialler": STATION.id, "answerer": ALICE.id}},
        "another_role": {f"{which}_over_sent": {"role": "station"}},
        "other_capabilities": {f"{which}_over_{'sent' if which == 'connect' else 'challenged'}": {"capabilities": 1}},
        "another_max_frame": {f"{which}_over_{'sent' if which == 'connect' else 'challenged'}": {"max_frame": 4096}},
        "another_dialler_nonce": {f"{which}_over_sent": {"nonce": b"\x01" * 32}},
        "another_answerer_nonce": {f"{which}_over_challenged": {"nonce": b"\x01" * 32}},
        "swapped_nonces": {f"{which}_over_sent": nonces[0], f"{which}_over_challenged": nonces[1]},
    }
    if which == "hello":
        out["another_connect"] = {"hello_over": {"connect": Talk(connect={"capabilities": 1}).connect}}
    return out


def frames_broken(no, name, talk, side):
    """The frame itself is checked first, with exactly its keys."""
    data = getattr(talk, name)
    fields = {"opener": {"first": 1, "last": 1}, "challenge": talk.challenge_fields}.get(name)
    if name == "connect":
        fields = {"proof": bytes(64), **talk.connect_fields}
    no(f"{name}_truncated", side(talk, **{name: data[:-1]}), "truncated")
    no(f"{name}_trailing", side(talk, **{name: data + b"\x00"}), "trailing")
    no(f"{name}_not_a_map", side(talk, **{name: enc([1])}), "not_a_map")
    no(f"{name}_unknown_field", side(talk, **{name: enc(frame(name, **fields, x=1))}), "unknown_field")
    no(f"{name}_version_2", side(talk, **{name: enc({**frame(name, **fields), "version": 2})}), "bad_version")
    for key in fields:
        less = {one: value for one, value in fields.items() if one != key}
        no(f"{name}_without_{key}", side(talk, **{name: enc(frame(name, **less))}), "missing_field")
    for key, value in fields.items():
        wrong = value[:-1] if isinstance(value, bytes) else b"x" if isinstance(value, str) else -1
        no(f"{name}_wrong_{key}", side(talk, **{name: enc(frame(name, **{**fields, key: wrong}))}), "bad_field")


def from_the_answerer(f):
    """What the answerer refuses, and the coarse code it tells."""

    def no(name, entry, reason, at, told="not_accepted"):
        f.refuse(f"answerer_{name}", entry, reason, at=at, told=told)

    for first, last in ((2, 2), (2, 255), (255, 255)):
        talk = Talk(opener={"first": first, "last": last})
        no(f"versions_{first}_to_{last}", answerer(talk), "unsupported_version", "opener", "unsupported_version")
    talk = Talk()
    for name, fields in (("0_to_1", (0, 1)), ("1_to_256", (1, 256)), ("2_to_1", (2, 1)), ("0_to_0", (0, 0))):
        opener = enc(frame("opener", first=fields[0], last=fields[1]))
        no(f"versions_{name}", answerer(talk, opener=opener), "bad_field", "opener")
    frames_broken(lambda name, entry, reason: no(name, entry, reason, "opener"), "opener", talk, answerer)
    frames_broken(lambda name, entry, reason: no(name, entry, reason, "connect"), "connect", talk, answerer)
    no("connect_before_opener", answerer(talk, opener=talk.connect), "unexpected_frame", "opener")
    no("opener_twice", answerer(talk, connect=talk.opener), "unexpected_frame", "connect")
    no("publish_in_place_of_connect", answerer(talk, connect=enc(frame("unsubscribe", id=1))), "unexpected_frame", "connect")
    for value in ("peer", "Node", ""):
        no(f"role_{value or 'empty'}", answerer(talk, connect=role(talk, value)), "bad_field", "connect")
    no("max_frame_511", answerer(talk, connect=connect_with(talk, max_frame=511)), "bad_field", "connect")
    no("max_frame_above", answerer(talk, connect=connect_with(talk, max_frame=0x1000000)), "bad_field", "connect")
    no("profile", answerer(Talk(connect={"profile": "other"})), "profile_mismatch", "connect")
    for name, key in BAD_KEYS:
        no(f"key_{name}", answerer(Talk(connect={"key": key})), "bad_key_form", "connect")
    no("own_link", answerer(Talk(STATION, STATION)), "own_link", "connect")
    no("proved_another", answerer(Talk(), proved=OTHER), "key_mismatch", "connect")
    # The proof.
    no("binding_of_another_session", answerer(talk, binding=bytes(31) + b"\x01"), "proof_invalid", "connect")
    no("local_proof_on_a_real_session", answerer(Talk(binding=bytes(32)), binding=BINDING), "proof_invalid", "connect")
    no("connect_by_another_key", answerer(Talk(connect_signer=BOB)), "proof_invalid", "connect")
    no("connect_with_the_key_of_another", answerer(Talk(connect={"key": BOB.key})), "proof_invalid", "connect")
    no("connect_proof_under_the_hello_label", answerer(Talk(connect_proof=ALICE.sign(talk.hello_signed()))), "proof_invalid", "connect")
    for name, wrong in (
        ("zeros", bytes(64)),
        ("s_above_l", high_s(ALICE.sign(talk.connect_signed()))),
        ("r_of_small_order", small_r(ALICE, talk.connect_signed())),
    ):
        no(f"connect_proof_{name}", answerer(Talk(connect_proof=wrong)), "proof_invalid", "connect")
    # Under the neutral element (base point, 1) is a signature of everything, for whoever looks at it; what a station signed for the one
    # that dialled it, shown by that one to another station under the first one's key.
    no("key_neutral_and_a_proof_that_fits", answerer(Talk(connect={"key": ed25519.encode(ed25519.IDENTITY)}, connect_proof=FITS)), "bad_key_form", "connect")
    lent = BOB.sign(Talk(ALICE, BOB).hello_signed())
    no("connect_proof_is_a_hello_proof_made_elsewhere", answerer(Talk(BOB, STATION, connect_proof=lent)), "proof_invalid", "connect")
    other = Talk(challenge={"nonce": b"\xa6" * 32})
    no("connect_of_another_handshake", answerer(talk, connect=other.connect), "proof_invalid", "connect")
    no("connect_for_another_station", answerer(talk, connect=Talk(ALICE, OTHER).connect), "proof_invalid", "connect")
    for name, signing in proofs("connect").items():
        no(f"connect_proof_over_{name}", answerer(Talk(**signing)), "proof_invalid", "connect")
    # Its own limits.
    station = Talk(BOB, STATION, connect={"role": "station"})
    no("full", answerer(talk, full=True), "full", "connect", "full")
    no("draining", answerer(talk, draining=True), "draining", "connect", "draining")
    no("not_a_peer", answerer(station), "not_a_peer", "connect")
    no("not_this_peer", answerer(station, peers=(ALICE, OTHER)), "not_a_peer", "connect")


def connect_with(talk, **change):
    return enc(frame("connect", **{"proof": bytes(64), **talk.connect_fields, **change}))


def role(talk, value):
    return connect_with(talk, role=value)


def order(f):
    """Handshakes that break several checks: the first one answers."""
    bad = BAD_KEYS[0][1]
    talk = Talk(challenge={"profile": "other", "key": bad})
    f.refuse("order_dialler_profile_before_key", dialler(talk), "profile_mismatch", at="challenge")
    talk = Talk(challenge={"key": bad})
    f.refuse("order_dialler_key_before_wrong_station", dialler(talk, named=OTHER.id), "bad_key_form", at="challenge")
    f.refuse("order_dialler_wrong_station_before_own_link", dialler(Talk(ALICE, ALICE), named=STATION.id), "wrong_station", at="challenge")
    talk = Talk(connect={"profile": "other", "key": bad})
    f.refuse("order_answerer_profile_before_key", answerer(talk), "profile_mismatch", at="connect")
    f.refuse("order_dialler_own_link_before_proved", dialler(Talk(ALICE, ALICE), proved=OTHER), "own_link", at="challenge")
    f.refuse("order_answerer_proved_before_proof", answerer(Talk(connect_proof=bytes(64)), proved=OTHER), "key_mismatch", at="connect")
    talk = Talk(STATION, STATION, connect_proof=bytes(64))
    f.refuse("order_answerer_own_link_before_proof", answerer(talk), "own_link", at="connect")
    talk = Talk(BOB, STATION, connect={"role": "station"}, connect_proof=bytes(64))
    f.refuse("order_answerer_proof_before_full", answerer(talk, full=True), "proof_invalid", at="connect")
    talk = Talk(BOB, STATION, connect={"role": "station"})
    f.refuse("order_answerer_full_before_draining", answerer(talk, full=True, draining=True), "full", at="connect")
    f.refuse("order_answerer_draining_before_not_a_peer", answerer(talk, draining=True), "draining", at="connect")
    talk = Talk(opener={"first": 2, "last": 2}, connect={"profile": "other"})
    f.refuse("order_answerer_opener_before_connect", answerer(talk), "unsupported_version", at="opener")
