use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::string::String;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Shape {
    Unit,
    Newtype(i64),
    Tuple(bool, String),
    Struct {
        long_name: f64,
        b: Option<u8>,
        a: char,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    zebra: i64,
    text: String,
    list: Vec<Shape>,
    by_text: BTreeMap<String, u32>,
    by_number: BTreeMap<i16, ()>,
    pair: (f32, u64),
    maybe: Option<Vec<bool>>,
    a: (),
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Unit),
        any::<i64>().prop_map(Shape::Newtype),
        (any::<bool>(), ".{0,9}").prop_map(|(flag, text)| Shape::Tuple(flag, text)),
        (-1e300f64..1e300, any::<Option<u8>>(), any::<char>())
            .prop_map(|(long_name, b, a)| Shape::Struct { long_name, b, a }),
    ]
}

fn everything() -> impl Strategy<Value = Everything> {
    (
        any::<i64>(),
        ".{0,30}",
        prop::collection::vec(shape(), 0..6),
        prop::collection::btree_map(".{0,30}", any::<u32>(), 0..6),
        prop::collection::btree_map(any::<i16>(), Just(()), 0..6),
        (-1e30f32..1e30, 0..1u64 << 63),
        prop::option::of(prop::collection::vec(any::<bool>(), 0..30)),
    )
        .prop_map(
            |(zebra, text, list, by_text, by_number, pair, maybe)| Everything {
                zebra,
                text,
                list,
                by_text,
                by_number,
                pair,
                maybe,
                a: (),
            },
        )
}

proptest! {
    #[test]
    fn a_value_comes_back_and_its_bytes_keep_the_rule(value in everything()) {
        let bytes = to_payload(&value).unwrap();
        prop_assert_eq!(check_payload(&bytes), Ok(()));
        prop_assert_eq!(from_payload::<Everything>(&bytes), Ok(value));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..60), value in everything(),
        at in any::<prop::sample::Index>(),
    ) {
        prop_assert!(from_payload::<Everything>(&bytes).is_err());
        let mut changed = to_payload(&value).unwrap();
        let at = at.index(changed.len());
        changed[at] ^= bytes.first().copied().unwrap_or(1) | 1;
        // What is still a value of the type is written back; integers may stand for floats.
        if let Ok(read) = from_payload::<Everything>(&changed) {
            prop_assert!(to_payload(&read).is_ok());
        }
    }
}

#[test]
fn the_form_is_the_deterministic_one() {
    #[derive(Serialize)]
    struct Order {
        total: f64,
        order: u32,
        #[serde(rename = "b")]
        bytes: Bytes,
    }
    let bytes = to_payload(&Order {
        total: 12.5,
        order: 7,
        bytes: Bytes(b"\x01"),
    })
    .unwrap();
    assert_eq!(
        bytes,
        b"\xa3\x61b\x41\x01\x65order\x07\x65total\xfb\x40\x29\0\0\0\0\0\0"
    );
    assert_eq!(to_payload(&()).unwrap(), b"\xf6");
    assert_eq!(to_payload(&Some(true)).unwrap(), b"\xf5");
    assert_eq!(to_payload(&None::<u8>).unwrap(), b"\xf6");
    assert_eq!(to_payload("ä").unwrap(), "\u{62}ä".as_bytes());
    assert_eq!(to_payload(&'x').unwrap(), b"\x61x");
    assert_eq!(to_payload(&1.0f32).unwrap(), b"\xfb\x3f\xf0\0\0\0\0\0\0");
    assert_eq!(to_payload(&Shape::Unit).unwrap(), b"\x64Unit");
    assert_eq!(
        to_payload(&Shape::Newtype(-1)).unwrap(),
        b"\xa1\x67Newtype\x20"
    );
}

/// A byte string for serde, as its users bring one.
struct Bytes(&'static [u8]);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

#[test]
fn keys_are_sorted_by_their_encoded_bytes() {
    let map: BTreeMap<&str, u8> = [("aa", 1), ("b", 2), ("", 3)].into();
    assert_eq!(
        to_payload(&map).unwrap(),
        b"\xa3\x60\x03\x61b\x02\x62aa\x01"
    );
    let map: BTreeMap<i64, u8> = [(-1, 1), (0, 2), (24, 3), (-25, 4)].into();
    assert_eq!(
        to_payload(&map).unwrap(),
        b"\xa4\x00\x02\x18\x18\x03\x20\x01\x38\x18\x04"
    );
}

#[test]
fn what_the_wire_cannot_carry_is_refused_with_its_reason() {
    assert_eq!(to_payload(&f64::NAN), Err(PayloadError::Float));
    assert_eq!(to_payload(&vec![f32::INFINITY]), Err(PayloadError::Float));
    assert_eq!(to_payload(&u64::MAX), Err(PayloadError::IntegerRange));
    assert_eq!(to_payload(&(1u64 << 63)), Err(PayloadError::IntegerRange));
    assert_eq!(to_payload(&i128::MIN), Err(PayloadError::IntegerRange));
    assert!(to_payload(&i64::MIN).is_ok() && to_payload(&(i64::MAX as u128)).is_ok());
    let by_flag: BTreeMap<bool, u8> = [(true, 1)].into();
    assert_eq!(to_payload(&by_flag), Err(PayloadError::KeyKind));
    let by_pair: BTreeMap<(u8, u8), u8> = [((1, 1), 1)].into();
    assert_eq!(to_payload(&by_pair), Err(PayloadError::KeyKind));

    struct Doubled;
    impl Serialize for Doubled {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([("a", 1), ("b", 2), ("a", 3)])
        }
    }
    assert_eq!(to_payload(&Doubled), Err(PayloadError::DuplicateKey));

    #[derive(Serialize)]
    struct Deep(Option<Vec<Self>>);
    let deep = |levels: usize| (1..levels).fold(Deep(Some(vec![])), |d, _| Deep(Some(vec![d])));
    assert_eq!(check_payload(&to_payload(&deep(63)).unwrap()), Ok(()));
    assert_eq!(to_payload(&deep(64)).err(), Some(PayloadError::TooDeep));

    let items = MAX_PAYLOAD_ITEMS as usize;
    let bytes = to_payload(&vec![0u8; items - 1]).unwrap();
    assert_eq!(check_payload(&bytes), Ok(()));
    assert_eq!(
        to_payload(&vec![0u8; items]).err(),
        Some(PayloadError::TooManyItems)
    );
}

#[test]
fn heads_guessed_wrong_are_set_right() {
    struct Unknown(usize);
    impl Serialize for Unknown {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeSeq;
            let mut seq = serializer.serialize_seq(None)?;
            (0..self.0).try_for_each(|at| seq.serialize_element(&(at % 20)))?;
            seq.end()
        }
    }
    for count in [0, 1, 23, 24, 300] {
        let bytes = to_payload(&Unknown(count)).unwrap();
        assert_eq!(check_payload(&bytes), Ok(()));
        assert_eq!(from_payload::<Vec<u8>>(&bytes).unwrap().len(), count);
    }
}

#[test]
fn text_and_bytes_are_borrowed() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Borrowed<'a> {
        text: &'a str,
        bytes: &'a [u8],
    }
    let bytes = b"\xa2\x64text\x62hi\x65bytes\x42\x01\x02".to_owned();
    let read: Borrowed<'_> = from_payload(&bytes).unwrap();
    assert_eq!(read.text, "hi");
    assert!(bytes.as_ptr_range().contains(&read.bytes.as_ptr()));
}

#[test]
fn a_value_of_another_type_is_refused_with_its_reason() {
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Strict {
        a: u8,
    }
    let strict = from_payload::<Strict>;
    assert_eq!(strict(b"\xa1\x61a\x01"), Ok(Strict { a: 1 }));
    assert_eq!(strict(b"\xa0"), Err(PayloadError::MissingField("a")));
    assert_eq!(strict(b"\xa1\x61b\x01"), Err(PayloadError::UnknownField));
    assert_eq!(
        strict(b"\xa1\x00\x01"),
        Err(PayloadError::InvalidType),
        "0 is no field name"
    );
    assert_eq!(strict(b"\xa1\x61a\x61x"), Err(PayloadError::InvalidType));
    assert_eq!(
        strict(b"\xa1\x61a\x19\x01\x00"),
        Err(PayloadError::InvalidValue)
    );
    assert_eq!(
        strict(b"\xa1\x61a\x18\x01"),
        Err(PayloadError::Cbor(CborFault::LongHead))
    );
    assert_eq!(
        from_payload::<(u8, u8)>(b"\x83\x01\x02\x03"),
        Err(PayloadError::InvalidLength)
    );
    assert_eq!(
        from_payload::<Shape>(b"\x64Oval"),
        Err(PayloadError::UnknownVariant)
    );
    assert_eq!(
        from_payload::<Shape>(b"\x67Newtype"),
        Err(PayloadError::InvalidType)
    );
    assert_eq!(
        from_payload::<Shape>(b"\xa1\x64Unit\xf6"),
        Err(PayloadError::InvalidType)
    );
}

#[test]
fn every_small_type_comes_back() {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Unit;
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Newtype(i8);
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Pair(u16, i32);
    type All = (Unit, Newtype, Pair, i8, u16, i64);
    let all: All = (
        Unit,
        Newtype(-128),
        Pair(u16::MAX, i32::MIN),
        -1,
        65_535,
        i64::MIN,
    );
    let bytes = to_payload(&all).unwrap();
    assert_eq!(from_payload::<All>(&bytes), Ok(all));
}

#[test]
fn a_type_that_refuses_a_value_says_so() {
    #[derive(Debug)]
    struct Refuses;
    impl Serialize for Refuses {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("never"))
        }
    }
    impl<'de> Deserialize<'de> for Refuses {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            assert!(
                !from.is_human_readable(),
                "ids and times take their binary form"
            );
            Err(serde::de::Error::custom("never"))
        }
    }
    assert_eq!(to_payload(&Refuses), Err(PayloadError::Custom));
    assert_eq!(
        from_payload::<Refuses>(b"\x00").err(),
        Some(PayloadError::Custom)
    );
}

#[test]
fn a_field_that_comes_twice_is_refused_by_name() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Renamed {
        #[serde(alias = "b")]
        a: u8,
    }
    assert_eq!(
        from_payload::<Renamed>(b"\xa1\x61b\x01"),
        Ok(Renamed { a: 1 })
    );
    assert_eq!(
        from_payload::<Renamed>(b"\xa2\x61a\x01\x61b\x02"),
        Err(PayloadError::DuplicateField("a"))
    );
}
