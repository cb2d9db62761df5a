"""The CBOR rule (WIRE.md section 2) as one naive walk, and a writer that keeps it.

`walk` reads the bytes once from the front and raises `Refused` with the reason of the first thing that breaks the rule.
"""

import math
import struct

from constants import K


class Refused(Exception):
    """A refusal with its reason, and what else is told of it."""

    def __init__(self, reason, **more):
        super().__init__(reason)
        self.reason = reason
        self.more = more


class Walk:
    def __init__(self, data, simple):
        self.data = data
        self.simple = simple  # "never", "always", or "payload": under the top map's key `payload` alone
        self.at = 0
        self.items = 0
        self.deepest = 0
        self.tokens = []

    def head(self, allowed):
        if self.at >= len(self.data):
            raise Refused("truncated")
        first = self.data[self.at]
        major, info = first >> 5, first & 31
        width = {24: 1, 25: 2, 26: 4, 27: 8}.get(info, 0)
        end = self.at + 1 + width
        if end > len(self.data):
            raise Refused("truncated")
        if info in (28, 29, 30):
            raise Refused("reserved_head")
        if info == 31:
            raise Refused("indefinite")
        raw = self.data[self.at + 1 : end]
        argument = int.from_bytes(raw, "big") if width else info
        if major != 7 and width and argument < {1: 24, 2: 2**8, 4: 2**16, 8: 2**32}[width]:
            raise Refused("long_head")
        if major == 6:
            raise Refused("tag")
        if major == 7:
            if info < 25 and not (width == 0 and info in (20, 21, 22) and allowed):
                raise Refused("simple")
            if info in (25, 26) or info == 27 and not math.isfinite(struct.unpack(">d", raw)[0]):
                raise Refused("float")
        if major == 0 and argument > K.int_high or major == 1 and -1 - argument < K.int_low:
            raise Refused("integer_range")
        self.at = end
        return major, info, argument, raw

    def take(self, count):
        if count > len(self.data) - self.at:
            raise Refused("truncated")
        self.at += count
        return self.data[self.at - count : self.at]

    def item(self, outside, allowed, key=False):
        """One item that stands inside `outside` containers."""
        major, info, argument, raw = self.head(allowed)
        if key and major not in (0, 1, 3):
            raise Refused("bad_key")
        self.items += 1
        if self.items > K.max_items:
            raise Refused("too_many_items")
        if major in (4, 5):
            if outside + 1 > K.max_depth:
                raise Refused("too_deep")
            self.deepest = max(self.deepest, outside + 1)
        if major == 0:
            self.tokens.append(["int", str(argument)])
            return argument
        if major == 1:
            self.tokens.append(["int", str(-1 - argument)])
            return -1 - argument
        if major == 2:
            data = self.take(argument)
            self.tokens.append(["bytes", data.hex()])
            return data
        if major == 3:
            try:
                text = self.take(argument).decode("utf-8")
            except UnicodeDecodeError:
                raise Refused("bad_text") from None
            self.tokens.append(["text", text])
            return text
        if major == 4:
            self.tokens.append(["array", argument])
            out = []
            while len(out) < argument:
                out.append(self.item(outside + 1, allowed))
            return out
        if major == 5:
            self.tokens.append(["map", argument])
            out = {}
            before = None
            while len(out) < argument:
                start = self.at
                name = self.item(outside + 1, allowed, key=True)
                encoded = self.data[start : self.at]
                if before is not None and encoded == before:
                    raise Refused("duplicate_key")
                if before is not None and encoded < before:
                    raise Refused("key_order")
                before = encoded
                inside = allowed or self.simple == "payload" and outside == 0 and name == "payload"
                out[name] = self.item(outside + 1, inside)
            return out
        if info == 27:
            self.tokens.append(["float", raw.hex()])
            return struct.unpack(">d", raw)[0]
        self.tokens.append([{20: "false", 21: "true", 22: "null"}[info]])
        return {20: False, 21: True, 22: None}[info]


def walk(data, simple="never"):
    """The value of `data`, and the walk that read it."""
    reader = Walk(data, simple)
    value = reader.item(0, simple == "always")
    if reader.at != len(data):
        raise Refused("trailing")
    return value, reader


def head(major, argument):
    if argument < 24:
        return bytes([major << 5 | argument])
    for info, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << 8 * width:
            return bytes([major << 5 | info]) + argument.to_bytes(width, "big")
    raise ValueError(argument)


def enc(value):
    """The one encoding of a value."""
    if value is None or value is True or value is False:
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, (bytes, bytearray)):
        return head(2, len(value)) + bytes(value)
    if isinstance(value, str):
        data = value.encode()
        return head(3, len(data)) + data
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(enc(one) for one in value)
    if isinstance(value, dict):
        pairs = sorted((enc(key), enc(one)) for key, one in value.items())
        return head(5, len(pairs)) + b"".join(key + one for key, one in pairs)
    raise TypeError(value)
