"""Ed25519 (RFC 8032) with big integers and hashlib alone: signing, and verification in the strict form of WIRE.md section 4.

Slow, and not in constant time: it is here to write and to judge vectors, and for nothing else.
"""

import hashlib
from functools import lru_cache

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
IDENTITY = (0, 1, 1, 0)

# What a strict verifier does not leave out. `check.py --sabotage` leaves out one at a time.
CHECKS = {"y below p", "key not of small order", "s below l", "r not of small order", "no cofactor"}


def add(a, b):
    ax, ay, az, at = a
    bx, by, bz, bt = b
    e = (ay - ax) * (by - bx) % P
    f = (ay + ax) * (by + bx) % P
    g = 2 * at * bt * D % P
    h = 2 * az * bz % P
    i, j, k, m = f - e, h - g, h + g, f + e
    return i * j % P, k * m % P, j * k % P, i * m % P


def double(a):
    x, y, z, _ = a
    e = x * x % P
    f = y * y % P
    g = 2 * z * z % P
    h = e + f
    i = h - (x + y) * (x + y)
    j = e - f
    k = g + j
    return i * k % P, h * j % P, j * k % P, i * h % P


def times(n, point):
    out = IDENTITY
    for bit in bin(n)[2:]:
        out = double(out)
        if bit == "1":
            out = add(out, point)
    return out


def negative(a):
    return (-a[0]) % P, a[1], a[2], (-a[3]) % P


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def from_y(y, sign):
    """The point with this y and this sign of x, or None."""
    if y >= P and "y below p" in CHECKS:
        return None
    y %= P
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P != 0:
        x = x * ROOT % P
    if (x * x - square) % P != 0:
        return None
    if x == 0 and sign == 1:
        return None
    if x % 2 != sign:
        x = (P - x) % P
    return x, y, 1, x * y % P


BASE = from_y(4 * pow(5, P - 2, P) % P, 0)


def encode(point):
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def decode(data):
    """The point with this canonical encoding, or None."""
    number = int.from_bytes(data, "little")
    return from_y(number & (2**255 - 1), number >> 255)


def small_order(point):
    return same(times(8, point), IDENTITY)


def number(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % L


def secret(seed):
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little")
    return scalar & ((1 << 254) - 8) | 1 << 254, digest[32:]


@lru_cache(maxsize=None)
def public_key(seed):
    return encode(times(secret(seed)[0], BASE))


@lru_cache(maxsize=None)
def sign(seed, message):
    scalar, prefix = secret(seed)
    key = public_key(seed)
    r = number(prefix, message)
    commitment = encode(times(r, BASE))
    s = (r + number(commitment, key, message) * scalar) % L
    return commitment + s.to_bytes(32, "little")


@lru_cache(maxsize=None)
def good_key(key):
    """Whether these 32 bytes are the canonical encoding of a point that is not of small order."""
    if len(key) != 32:
        return False
    point = decode(key)
    return point is not None and not (small_order(point) and "key not of small order" in CHECKS)


def both(a, first, b, second):
    """a · first + b · second."""
    sums = [IDENTITY, first, second, add(first, second)]
    out = IDENTITY
    for at in range(max(a.bit_length(), b.bit_length()) - 1, -1, -1):
        out = double(out)
        choice = (a >> at & 1) | (b >> at & 1) << 1
        if choice:
            out = add(out, sums[choice])
    return out


@lru_cache(maxsize=None)
def verify(key, message, signature):
    """Strict: s < L, R not of small order, the bytes of R compared as they are, no cofactor."""
    if len(signature) != 64 or not good_key(key):
        return False
    commitment, s = signature[:32], int.from_bytes(signature[32:], "little")
    if s >= L and "s below l" in CHECKS:
        return False
    point = decode(commitment)
    if point is None or small_order(point) and "r not of small order" in CHECKS:
        return False
    result = both(s, BASE, number(commitment, key, message), negative(decode(key)))
    if "no cofactor" in CHECKS:
        return encode(result) == commitment
    return same(times(8, result), times(8, point))


def forget():
    """Empties the memories of answers given."""
    good_key.cache_clear()
    verify.cache_clear()
