"""One change of the models at a time; each must make at least one vector fail."""

import itertools

import ed25519
import model_frames
import model_seal
import model_wire
from constants import K

# Families that answer quickly stand first.
ORDER = ("ids", "positions", "topics", "links", "frames", "dedup", "order", "guess", "ring", "continuity", "sources", "resume", "liveness", "backoff", "outcomes", "codes", "keys", "seal", "handshake", "objects", "publications", "cbor")

# The inputs of traces that are constants of an implementation: family, key of `config`.
CONFIG = (
    ("dedup", "capacity"),
    ("order", "timeout_ms"),
    ("order", "buffer"),
    ("order", "accepted_wall_ms"),
    ("guess", "timeout_ms"),
    ("ring", "items"),
    ("ring", "bytes"),
    ("outcomes", "replication"),
    ("outcomes", "window"),
    ("outcomes", "tickets"),
    ("liveness", "probe_every_ms"),
    ("backoff", "station"),
    ("resume", "items"),
    ("resume", "bytes"),
    ("continuity", "slots"),
    ("sources", "max_publishers"),
    ("sources", "held_per_key"),
    ("sources", "lookups_per_window"),
    ("sources", "window_ms"),
    ("sources", "cache_ttl_ms"),
    ("sources", "refresh_margin_ms"),
    ("sources", "refusal_ttl_ms"),
    ("sources", "lookup_timeout_ms"),
)


def other_values(value):
    """What a constant is changed to."""
    if isinstance(value, int):
        return [value - 1, value + 1]
    if isinstance(value, bytes):
        return [value[:-1] + bytes([value[-1] ^ 1]), value + b"\x00", b"X" + value[1:]]
    if isinstance(value, tuple):
        return [value[:-1], value + (value[-1] + 1,)]
    if value.startswith("sha"):
        return ["sha512", "sha3_384"]
    return [value[:-1], value + "x", value.swapcase()]


def noticed(families, agrees, change=lambda name, entry: entry, names=ORDER):
    """The first vector that fails."""
    for name in names:
        for entry in families[name]["entries"]:
            try:
                good = agrees(name, change(name, entry))
            except Exception:  # a model that falls over has noticed as well
                good = False
            if not good:
                return f"{name}: {entry['name']}"
    return None


def changes(families, agrees):
    """(what was changed, the vector that noticed it or None)."""
    for constant in sorted(name for name in vars(K) if not name.startswith("_")):
        kept = getattr(K, constant)
        for value in other_values(kept):
            setattr(K, constant, value)
            try:
                yield f"{constant} = {value!r}", noticed(families, agrees)
            finally:
                setattr(K, constant, kept)
    for left_out in sorted(ed25519.CHECKS):
        ed25519.CHECKS.discard(left_out)
        ed25519.forget()
        yield f"ed25519 without: {left_out}", noticed(families, agrees, names=("ids", "objects", "publications", "handshake"))
        ed25519.CHECKS.add(left_out)
        ed25519.forget()
    for called, names in (("bound", model_seal.BOUND), ("mixed into the nonce", model_seal.MIXED)):
        for at, name in enumerate(list(names)):
            del names[at]
            yield f"seal: {name} not {called}", noticed(families, agrees, names=("seal",))
            names.insert(at, name)
    for family, key in CONFIG:
        for step in (-1, 1):

            def change(_, entry, key=key, step=step):
                return {**entry, "config": {**entry["config"], key: entry["config"][key] + step}}

            yield f"{family} {key} {step:+d}", noticed(families, agrees, change, (family,))


def tables():
    """(table, what it is called, families that must notice)."""
    yield model_wire.PUBLICATION, "publication", ("publications",)
    for kind, table in {**model_frames.FRAMES, **model_frames.HANDSHAKE}.items():
        yield table, kind, ("frames",)


def field_changes(families, agrees):
    """Each field of each table: its check left out, and whether it is required turned round; then the ties."""
    for table, called, names in tables():
        for field, (required, check) in sorted(table.items()):
            if (called, field) == ("publication", "alg"):  # judged once more as an object's
                continue
            if (called, field) != ("publication", "payload"):  # any value is good
                table[field] = (required, lambda value: True)
                yield f"{called}.{field} of any kind", noticed(families, agrees, names=names)
            table[field] = (not required, check)
            yield f"{called}.{field} {'optional' if required else 'required'}", noticed(families, agrees, names=names)
            table[field] = (required, check)
    kept = model_frames.tied
    for kind in ("opener", "hello", "published", "skipped"):
        model_frames.tied = lambda of, body, kind=kind: of == kind or kept(of, body)
        yield f"{kind} without its ties", noticed(families, agrees, names=("frames",))
    model_frames.tied = kept


def survivors(families, agrees):
    """Prints what noticed each change; true when something survived."""
    survived = []
    count = 0
    for what, by in itertools.chain(changes(families, agrees), field_changes(families, agrees)):
        count += 1
        print("%-64s %s" % (what[:64], by or "SURVIVED"))
        if by is None:
            survived.append(what)
    print(f"{count} changes, {len(survived)} survived")
    for what in survived:
        print("    survived:", what)
    return bool(survived)
