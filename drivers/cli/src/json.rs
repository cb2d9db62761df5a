//! JSON in which every key of a map stands once.
//!
//! Decides: that a double key is refused; JSON readers keep the last one and drop the others in silence. Leaves to others: the rest of
//! JSON, and what the wire carries. Believes: no clock. Bounded by: the reader's own 128 levels.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A JSON value of one line.
///
/// # Errors
/// What makes it none.
pub(crate) fn read(line: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(line).map(|Strict(value)| value)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!(
                    "the key {key:?} stands twice"
                )));
            }
            let Strict(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_key_is_refused_at_any_depth() {
        for line in [
            r#"{"a":1,"a":1}"#,
            r#"[{"b":{"a":1,"c":2,"a":3}}]"#,
            r#"{"a":1,"\u0061":2}"#,
        ] {
            let said = read(line).unwrap_err().to_string();
            assert!(said.contains("\"a\" stands twice"), "{line}: {said}");
        }
    }

    #[test]
    fn all_else_is_read_as_ever() {
        for line in [
            "null",
            "true",
            "-1",
            "18446744073709551615",
            "1.5e3",
            "-0.0",
            r#""\ud83d\ude00\n""#,
            r#"{"b":[1,{"a":{}}],"a":{"b":null}}"#,
            "[]",
        ] {
            let plain: Value = serde_json::from_str(line).unwrap();
            assert_eq!(read(line).unwrap(), plain, "{line}");
        }
        for line in ["", "{", "1 2", "1e400", "\"\\ud800\"", "{1:2}"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
