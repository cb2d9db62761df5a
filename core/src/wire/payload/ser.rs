//! Writing.
//!
//! Decides: the order of keys, by sorting what was written. Leaves to others: the heads (`cbor::Writer`). Believes: no clock. Bounded by: the
//! two bounds of a payload, kept while writing.

use alloc::vec::Vec;
use core::fmt::Display;
use core::ops::Range;

use serde::{Serialize, Serializer, ser};

use super::{MAX_PAYLOAD_DEPTH, MAX_PAYLOAD_ITEMS, PayloadError};
use crate::wire::cbor::Writer;
use crate::wire::cbor::major;

pub(super) fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, PayloadError> {
    let mut to = To {
        out: Vec::new(),
        depth: 0,
        items: 0,
    };
    value.serialize(&mut to)?;
    Ok(to.out)
}

impl ser::Error for PayloadError {
    fn custom<T: Display>(_: T) -> Self {
        Self::Custom
    }
}

struct To {
    out: Vec<u8>,
    depth: usize,
    items: u32,
}

impl To {
    /// Counts one item and lends the writer for it.
    fn item(&mut self) -> Result<Writer<'_, Vec<u8>>, PayloadError> {
        self.items += 1;
        if self.items > MAX_PAYLOAD_ITEMS {
            return Err(PayloadError::TooManyItems);
        }
        Ok(Writer::new(&mut self.out))
    }

    fn enter(&mut self) -> Result<(), PayloadError> {
        self.depth += 1;
        if self.depth > MAX_PAYLOAD_DEPTH {
            return Err(PayloadError::TooDeep);
        }
        Ok(())
    }

    fn array(&mut self, len: Option<usize>) -> Result<Array<'_>, PayloadError> {
        let expected = len.unwrap_or(0);
        let start = self.out.len();
        self.enter()?;
        self.item()?.array(expected);
        let contents = self.out.len();
        Ok(Array {
            to: self,
            start,
            contents,
            expected,
            count: 0,
            variant: false,
        })
    }

    fn map(&mut self, len: Option<usize>) -> Result<Map<'_>, PayloadError> {
        let expected = len.unwrap_or(0);
        let start = self.out.len();
        self.enter()?;
        self.item()?.map(expected);
        Ok(Map {
            to: self,
            start,
            expected,
            entries: Vec::with_capacity(expected.min(64)),
            variant: false,
        })
    }

    /// The head and key of `{ variant: … }`.
    fn variant(&mut self, variant: &str) -> Result<(), PayloadError> {
        self.enter()?;
        self.item()?.map(1);
        self.item()?.text(variant);
        Ok(())
    }
}

impl<'a> Serializer for &'a mut To {
    type Ok = ();
    type Error = PayloadError;
    type SerializeSeq = Array<'a>;
    type SerializeTuple = Array<'a>;
    type SerializeTupleStruct = Array<'a>;
    type SerializeTupleVariant = Array<'a>;
    type SerializeMap = Map<'a>;
    type SerializeStruct = Map<'a>;
    type SerializeStructVariant = Map<'a>;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, value: bool) -> Result<(), PayloadError> {
        self.item()?.bool(value);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result<(), PayloadError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), PayloadError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), PayloadError> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), PayloadError> {
        self.item()?.integer(value);
        Ok(())
    }

    fn serialize_i128(self, value: i128) -> Result<(), PayloadError> {
        self.serialize_i64(i64::try_from(value).map_err(|_| PayloadError::IntegerRange)?)
    }

    fn serialize_u8(self, value: u8) -> Result<(), PayloadError> {
        self.serialize_i64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), PayloadError> {
        self.serialize_i64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), PayloadError> {
        self.serialize_i64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), PayloadError> {
        self.serialize_i64(i64::try_from(value).map_err(|_| PayloadError::IntegerRange)?)
    }

    fn serialize_u128(self, value: u128) -> Result<(), PayloadError> {
        self.serialize_i64(i64::try_from(value).map_err(|_| PayloadError::IntegerRange)?)
    }

    fn serialize_f32(self, value: f32) -> Result<(), PayloadError> {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result<(), PayloadError> {
        if !value.is_finite() {
            return Err(PayloadError::Float);
        }
        self.item()?.float(value);
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), PayloadError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), PayloadError> {
        self.item()?.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), PayloadError> {
        self.item()?.bytes(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), PayloadError> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), PayloadError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), PayloadError> {
        self.item()?.null();
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), PayloadError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), PayloadError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), PayloadError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), PayloadError> {
        self.variant(variant)?;
        value.serialize(&mut *self)?;
        self.depth -= 1;
        Ok(())
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Array<'a>, PayloadError> {
        self.array(len)
    }

    fn serialize_tuple(self, len: usize) -> Result<Array<'a>, PayloadError> {
        self.array(Some(len))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        len: usize,
    ) -> Result<Array<'a>, PayloadError> {
        self.array(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Array<'a>, PayloadError> {
        self.variant(variant)?;
        let mut array = self.array(Some(len))?;
        array.variant = true;
        Ok(array)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Map<'a>, PayloadError> {
        self.map(len)
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Map<'a>, PayloadError> {
        self.map(Some(len))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Map<'a>, PayloadError> {
        self.variant(variant)?;
        let mut map = self.map(Some(len))?;
        map.variant = true;
        Ok(map)
    }
}

/// An array being written, its head a guess until the end.
pub(super) struct Array<'a> {
    to: &'a mut To,
    start: usize,
    contents: usize,
    expected: usize,
    count: usize,
    /// Whether a variant's map closes with it.
    variant: bool,
}

impl Array<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), PayloadError> {
        self.count += 1;
        value.serialize(&mut *self.to)
    }

    fn close(self) {
        if self.count != self.expected {
            let mut head = Vec::new();
            Writer::new(&mut head).array(self.count);
            self.to.out.splice(self.start..self.contents, head);
        }
        self.to.depth -= 1 + usize::from(self.variant);
    }
}

/// A map being written: entries in the order they came, sorted at the end.
pub(super) struct Map<'a> {
    to: &'a mut To,
    start: usize,
    expected: usize,
    entries: Vec<Entry>,
    variant: bool,
}

struct Entry {
    key: Range<usize>,
    end: usize,
}

impl Map<'_> {
    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), PayloadError> {
        let start = self.to.out.len();
        key.serialize(&mut *self.to)?;
        let end = self.to.out.len();
        let kind = self.to.out.get(start).map(|first| first >> 5);
        if !matches!(kind, Some(major::UNSIGNED | major::NEGATIVE | major::TEXT)) {
            return Err(PayloadError::KeyKind);
        }
        self.entries.push(Entry {
            key: start..end,
            end,
        });
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), PayloadError> {
        value.serialize(&mut *self.to)?;
        let end = self.to.out.len();
        match self.entries.last_mut() {
            Some(entry) => entry.end = end,
            None => return Err(PayloadError::Custom),
        }
        Ok(())
    }

    fn close(mut self) -> Result<(), PayloadError> {
        let Self {
            to,
            start,
            expected,
            entries,
            variant,
        } = &mut self;
        to.depth -= 1 + usize::from(*variant);
        let out = &to.out;
        let key = |entry: &Entry| out.get(entry.key.clone()).unwrap_or_default();
        let sorted = entries.is_sorted_by(|a, b| key(a) < key(b));
        if sorted && entries.len() == *expected {
            return Ok(());
        }
        entries.sort_by(|a, b| key(a).cmp(key(b)));
        if !entries.is_sorted_by(|a, b| key(a) < key(b)) {
            return Err(PayloadError::DuplicateKey);
        }
        let mut map = Vec::with_capacity(out.len() - *start + 8);
        let mut w = Writer::new(&mut map);
        w.map(entries.len());
        for entry in &*entries {
            w.raw(out.get(entry.key.start..entry.end).unwrap_or_default());
        }
        to.out.truncate(*start);
        to.out.append(&mut map);
        Ok(())
    }
}

macro_rules! arrays {
    ($($trait:ident: $method:ident;)*) => {$(
        impl ser::$trait for Array<'_> {
            type Ok = ();
            type Error = PayloadError;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), PayloadError> {
                self.push(value)
            }

            fn end(self) -> Result<(), PayloadError> {
                self.close();
                Ok(())
            }
        }
    )*};
}

arrays! {
    SerializeSeq: serialize_element;
    SerializeTuple: serialize_element;
    SerializeTupleStruct: serialize_field;
    SerializeTupleVariant: serialize_field;
}

macro_rules! structs {
    ($($trait:ident;)*) => {$(
        impl ser::$trait for Map<'_> {
            type Ok = ();
            type Error = PayloadError;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), PayloadError> {
                self.key(key)?;
                self.value(value)
            }

            fn end(self) -> Result<(), PayloadError> {
                self.close()
            }
        }
    )*};
}

structs! {
    SerializeStruct;
    SerializeStructVariant;
}

impl ser::SerializeMap for Map<'_> {
    type Ok = ();
    type Error = PayloadError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), PayloadError> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), PayloadError> {
        self.value(value)
    }

    fn end(self) -> Result<(), PayloadError> {
        self.close()
    }
}
