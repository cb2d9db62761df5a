"""rfc/: the Ed25519 tests of RFC 8032 section 7.1 and the examples of RFC 8949 appendix A."""

from family import Family

RFC8032 = (
    (
        "test_1",
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "test_2",
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "test_3",
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    (
        "test_sha_abc",
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
)


def rfc8032():
    f = Family("rfc/rfc8032", "RFC 8032 section 7.1, tests 1, 2, 3 and SHA(abc) of Ed25519; each also with a changed message and a changed signature.")
    for name, seed, key, message, signature in RFC8032:
        entry = {"seed": seed, "key": key, "message": message, "signature": signature}
        f.accept(name, entry)
        entry = {"key": key, "message": message + "00", "signature": signature}
        f.refuse(f"{name}_longer_message", entry, "signature_invalid")
        wrong = bytearray.fromhex(signature)
        wrong[31] ^= 0x80
        f.refuse(f"{name}_changed_signature", {"key": key, "message": message, "signature": wrong.hex()}, "signature_invalid")
    return f


# hex of the RFC, our reason or None, as a payload.
RFC8949 = (
    ("0", "00", None),
    ("1", "01", None),
    ("10", "0a", None),
    ("23", "17", None),
    ("24", "1818", None),
    ("25", "1819", None),
    ("100", "1864", None),
    ("1000", "1903e8", None),
    ("1000000", "1a000f4240", None),
    ("1000000000000", "1b000000e8d4a51000", None),
    ("18446744073709551615", "1bffffffffffffffff", "integer_range"),
    ("18446744073709551616", "c249010000000000000000", "tag"),
    ("-18446744073709551616", "3bffffffffffffffff", "integer_range"),
    ("-18446744073709551617", "c349010000000000000000", "tag"),
    ("-1", "20", None),
    ("-10", "29", None),
    ("-100", "3863", None),
    ("-1000", "3903e7", None),
    ("0.0", "f90000", "float"),
    ("-0.0", "f98000", "float"),
    ("1.0", "f93c00", "float"),
    ("1.1", "fb3ff199999999999a", None),
    ("1.5", "f93e00", "float"),
    ("65504.0", "f97bff", "float"),
    ("100000.0", "fa47c35000", "float"),
    ("3.4028234663852886e+38", "fa7f7fffff", "float"),
    ("1.0e+300", "fb7e37e43c8800759c", None),
    ("5.960464477539063e-8", "f90001", "float"),
    ("0.00006103515625", "f90400", "float"),
    ("-4.0", "f9c400", "float"),
    ("-4.1", "fbc010666666666666", None),
    ("Infinity half", "f97c00", "float"),
    ("NaN half", "f97e00", "float"),
    ("-Infinity half", "f9fc00", "float"),
    ("Infinity single", "fa7f800000", "float"),
    ("NaN single", "fa7fc00000", "float"),
    ("-Infinity single", "faff800000", "float"),
    ("Infinity double", "fb7ff0000000000000", "float"),
    ("NaN double", "fb7ff8000000000000", "float"),
    ("-Infinity double", "fbfff0000000000000", "float"),
    ("false", "f4", None),
    ("true", "f5", None),
    ("null", "f6", None),
    ("undefined", "f7", "simple"),
    ("simple(16)", "f0", "simple"),
    ("simple(255)", "f8ff", "simple"),
    ("0(date)", "c074323031332d30332d32315432303a30343a30305a", "tag"),
    ("1(1363896240)", "c11a514b67b0", "tag"),
    ("1(1363896240.5)", "c1fb41d452d9e8200000", "tag"),
    ("23(bytes)", "d74401020304", "tag"),
    ("24(bytes)", "d818456449455446", "tag"),
    ("32(uri)", "d82076687474703a2f2f7777772e6578616d706c652e636f6d", "tag"),
    ("h''", "40", None),
    ("h'01020304'", "4401020304", None),
    ("empty text", "60", None),
    ("a", "6161", None),
    ("IETF", "6449455446", None),
    ("quote and backslash", "62225c", None),
    ("u with diaeresis", "62c3bc", None),
    ("water", "63e6b0b4", None),
    ("acrophonic", "64f0908591", None),
    ("[]", "80", None),
    ("[1, 2, 3]", "83010203", None),
    ("[1, [2, 3], [4, 5]]", "8301820203820405", None),
    ("[1..25]", "98190102030405060708090a0b0c0d0e0f101112131415161718181819", None),
    ("{}", "a0", None),
    ("{1: 2, 3: 4}", "a201020304", None),
    ("{a: 1, b: [2, 3]}", "a26161016162820203", None),
    ("[a, {b: c}]", "826161a161626163", None),
    ("{a..e}", "a56161614161626142616361436164614461656145", None),
    ("(_ h'0102', h'030405')", "5f42010243030405ff", "indefinite"),
    ("(_ strea, ming)", "7f657374726561646d696e67ff", "indefinite"),
    ("[_ ]", "9fff", "indefinite"),
    ("[_ 1, [2, 3], [_ 4, 5]]", "9f018202039f0405ffff", "indefinite"),
    ("[_ 1, [2, 3], [4, 5]]", "9f01820203820405ff", "indefinite"),
    ("[1, [2, 3], [_ 4, 5]]", "83018202039f0405ff", "indefinite"),
    ("[1, [_ 2, 3], [4, 5]]", "83019f0203ff820405", "indefinite"),
    ("[_ 1..25]", "9f0102030405060708090a0b0c0d0e0f101112131415161718181819ff", "indefinite"),
    ("{_ a: 1, b: [_ 2, 3]}", "bf61610161629f0203ffff", "indefinite"),
    ("[a, {_ b: c}]", "826161bf61626163ff", "indefinite"),
    ("{_ Fun: true, Amt: -2}", "bf6346756ef563416d7421ff", "indefinite"),
)


def rfc8949():
    f = Family("rfc/rfc8949", "RFC 8949 appendix A under WIRE.md section 2, each read as a payload.")
    for name, data, reason in RFC8949:
        entry = {"payload": True, "hex": data}
        if reason is None:
            f.accept(name, entry)
        else:
            f.refuse(name, entry, reason)
    return f
