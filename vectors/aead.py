"""ChaCha20-Poly1305 (RFC 8439) and HKDF (RFC 5869), naive: lists of words, big integers, nothing to install."""

import hashlib
import hmac
import struct

ROTATIONS = (16, 12, 8, 7)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def rotate(word, count):
    return (word << count | word >> 32 - count) & 0xFFFFFFFF


def quarter_round(state, a, b, c, d):
    for at, (x, y, z) in enumerate(((a, b, d), (c, d, b), (a, b, d), (c, d, b))):
        state[x] = state[x] + state[y] & 0xFFFFFFFF
        state[z] = rotate(state[z] ^ state[x], ROTATIONS[at])


def block(key, nonce, counter):
    """64 bytes of key stream."""
    first = list(struct.unpack("<16I", b"expand 32-byte k" + key + struct.pack("<I", counter) + nonce))
    state = list(first)
    for _ in range(10):
        for places in COLUMNS + DIAGONALS:
            quarter_round(state, *places)
    return struct.pack("<16I", *(one + other & 0xFFFFFFFF for one, other in zip(state, first)))


def chacha20(key, nonce, counter, data):
    stream = b"".join(block(key, nonce, counter + at) for at in range(-(-len(data) // 64)))
    return bytes(one ^ other for one, other in zip(data, stream))


def poly1305(key, message):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(message), 16):
        total = (total + int.from_bytes(message[at : at + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return (total + int.from_bytes(key[16:], "little") & 2**128 - 1).to_bytes(16, "little")


def tag(key, nonce, aad, ciphertext):
    pad = [bytes(-len(one) % 16) for one in (aad, ciphertext)]
    message = aad + pad[0] + ciphertext + pad[1] + struct.pack("<QQ", len(aad), len(ciphertext))
    return poly1305(block(key, nonce, 0)[:32], message)


def seal(key, nonce, aad, plain):
    """The ciphertext with its tag behind it."""
    ciphertext = chacha20(key, nonce, 1, plain)
    return ciphertext + tag(key, nonce, aad, ciphertext)


def open_(key, nonce, aad, sealed, tag_bytes):
    """What was sealed, or None."""
    if len(sealed) < tag_bytes:
        return None
    ciphertext, given = sealed[: len(sealed) - tag_bytes], sealed[len(sealed) - tag_bytes :]
    if given != tag(key, nonce, aad, ciphertext):
        return None
    return chacha20(key, nonce, 1, ciphertext)


def hkdf_extract(name, salt, secret):
    return hmac.new(salt or bytes(hashlib.new(name).digest_size), secret, name).digest()


def hkdf_expand(name, prk, info, length):
    out, last = b"", b""
    while len(out) < length:
        last = hmac.new(prk, last + info + bytes([len(out) // hashlib.new(name).digest_size + 1]), name).digest()
        out += last
    return out[:length]


# What was published of them: (what it is, what we compute, what must come out).

SUNSCREEN = (
    b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
)


def count(first, last):
    return bytes(range(first, last + 1))


def published():
    h = bytes.fromhex
    yield (
        "RFC 8439 2.3.2",
        block(count(0, 31), h("000000090000004a00000000"), 1),
        h(
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
            "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
        ),
    )
    yield (
        "RFC 8439 2.4.2",
        chacha20(count(0, 31), h("000000000000004a00000000"), 1, SUNSCREEN),
        h(
            "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
            "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
            "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
            "5af90bbf74a35be6b40b8eedf2785e42874d"
        ),
    )
    yield (
        "RFC 8439 2.5.2",
        poly1305(
            h("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"),
            b"Cryptographic Forum Research Group",
        ),
        h("a8061dc1305136c6c22b8baf0c0127a9"),
    )
    yield (
        "RFC 8439 2.6.2",
        block(count(0x80, 0x9F), h("000000000001020304050607"), 0)[:32],
        h("8ad5a08b905f81cc815040274ab29471a833b637e3fd0da508dbb8e2fdd1a646"),
    )
    key, nonce, aad = count(0x80, 0x9F), h("070000004041424344454647"), h("50515253c0c1c2c3c4c5c6c7")
    yield (
        "RFC 8439 2.8.2",
        seal(key, nonce, aad, SUNSCREEN),
        h(
            "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
            "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
            "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
            "3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691"
        ),
    )
    # A.3, tests 7 to 11: where the sum wraps.
    r = "0200000000000000000000000000000000000000000000000000000000000000"
    high = "02000000000000000000000000000000ffffffffffffffffffffffffffffffff"
    wide = "0100000000000000040000000000000000000000000000000000000000000000"
    long = "e33594d7505e43b900000000000000003394d7505e4379cd01000000000000000000000000000000000000000000000001000000000000000000000000000000"
    for number, key, message, wanted in (
        (7, r, "ff" * 16, "03" + "00" * 15),
        (8, high, "02" + "00" * 15, "03" + "00" * 15),
        (9, r, "fd" + "ff" * 15, "fa" + "ff" * 15),
        (10, wide, long, "14000000000000005500000000000000"),
        (11, wide, long[:96], "13" + "00" * 15),
    ):
        yield f"RFC 8439 A.3 {number}", poly1305(h(key), h(message)), h(wanted)
    for number, secret, salt, info, length, prk, out in (
        (
            1,
            b"\x0b" * 22,
            count(0, 0x0C),
            count(0xF0, 0xF9),
            42,
            "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ),
        (
            2,
            count(0, 0x4F),
            count(0x60, 0xAF),
            count(0xB0, 0xFF),
            82,
            "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
            "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
        ),
        (
            3,
            b"\x0b" * 22,
            b"",
            b"",
            42,
            "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        ),
    ):
        extracted = hkdf_extract("sha256", salt, secret)
        yield f"RFC 5869 A.{number} extract", extracted, h(prk)
        yield f"RFC 5869 A.{number} expand", hkdf_expand("sha256", extracted, info, length), h(out)
