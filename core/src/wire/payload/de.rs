//! Reading, from bytes that were checked.
//!
//! Decides: which kinds a type may be read from. Leaves to others: the rule. Believes: no clock. Bounded by: the 63 levels of the bytes.

use core::fmt::Display;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

use super::PayloadError;
use crate::wire::cbor::{Reader, Value, major};

pub(super) fn from_checked<'de, T: de::Deserialize<'de>>(
    bytes: &'de [u8],
) -> Result<T, PayloadError> {
    T::deserialize(&mut Source(Reader::new(bytes)))
}

impl de::Error for PayloadError {
    fn custom<T: Display>(_: T) -> Self {
        Self::Custom
    }

    fn invalid_type(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Self::InvalidType
    }

    fn invalid_value(_: Unexpected<'_>, _: &dyn Expected) -> Self {
        Self::InvalidValue
    }

    fn invalid_length(_: usize, _: &dyn Expected) -> Self {
        Self::InvalidLength
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self::UnknownVariant
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::UnknownField
    }

    fn missing_field(field: &'static str) -> Self {
        Self::MissingField(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::DuplicateField(field)
    }
}

struct Source<'de>(Reader<'de>);

/// For bytes that were checked this cannot happen; it is an answer all the same.
const SHORT: PayloadError = PayloadError::InvalidLength;

impl<'de> Source<'de> {
    fn kind(&self) -> Option<u8> {
        self.0.rest().first().map(|first| first >> 5)
    }

    fn take_null(&mut self) -> bool {
        let mut ahead = self.0;
        let null = ahead.value() == Some(Value::Null);
        if null {
            self.0 = ahead;
        }
        null
    }
}

impl<'de> Deserializer<'de> for &mut Source<'de> {
    type Error = PayloadError;

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PayloadError> {
        match self.kind() {
            Some(major::ARRAY) => {
                let mut items = Items {
                    left: self.0.array().ok_or(SHORT)?,
                    from: self,
                };
                let value = visitor.visit_seq(&mut items)?;
                items.end(value)
            }
            Some(major::MAP) => {
                let mut items = Items {
                    left: self.0.map().ok_or(SHORT)?,
                    from: self,
                };
                let value = visitor.visit_map(&mut items)?;
                items.end(value)
            }
            _ => match self.0.value().ok_or(SHORT)? {
                Value::Unsigned(value) => visitor.visit_u64(value),
                Value::Negative(value) => visitor.visit_i64(value),
                Value::Bytes(value) => visitor.visit_borrowed_bytes(value),
                Value::Text(value) => visitor.visit_borrowed_str(value),
                Value::Float(value) => visitor.visit_f64(value),
                Value::Bool(value) => visitor.visit_bool(value),
                Value::Null => visitor.visit_unit(),
                Value::Array(_) | Value::Map(_) => Err(PayloadError::InvalidType),
            },
        }
    }

    /// A number that is finite as carried stays finite, or is none.
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PayloadError> {
        let mut ahead = self.0;
        match ahead.value() {
            Some(Value::Float(value)) if !(value as f32).is_finite() => {
                Err(PayloadError::InvalidValue)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PayloadError> {
        if self.take_null() {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, PayloadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PayloadError> {
        let unit = match self.kind() {
            Some(major::TEXT) => true,
            Some(major::MAP) if self.0.map() == Some(1) => false,
            _ => return Err(PayloadError::InvalidType),
        };
        visitor.visit_enum(Variant { from: self, unit })
    }

    /// Names are text: an integer key is never taken for the number of a field.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PayloadError> {
        let name = self.0.text().ok_or(PayloadError::InvalidType)?;
        visitor.visit_borrowed_str(name)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, PayloadError> {
        self.0.skip().ok_or(SHORT)?;
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct
    }
}

/// The items of an array, or the entries of a map.
struct Items<'a, 'de> {
    from: &'a mut Source<'de>,
    left: u64,
}

impl Items<'_, '_> {
    fn end<T>(self, value: T) -> Result<T, PayloadError> {
        if self.left > 0 {
            return Err(PayloadError::InvalidLength);
        }
        Ok(value)
    }

    /// The bytes were checked, so a count is no more than the bytes that are left.
    fn hint(&self) -> Option<usize> {
        usize::try_from(self.left).ok()
    }
}

impl<'de> SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = PayloadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, PayloadError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        seed.deserialize(&mut *self.from).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

impl<'de> MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = PayloadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, PayloadError> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        seed.deserialize(&mut *self.from).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, PayloadError> {
        seed.deserialize(&mut *self.from)
    }

    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

struct Variant<'a, 'de> {
    from: &'a mut Source<'de>,
    /// A bare name, without contents.
    unit: bool,
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = PayloadError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<(T::Value, Self), PayloadError> {
        let name = seed.deserialize(&mut *self.from)?;
        Ok((name, self))
    }
}

impl<'a, 'de> Variant<'a, 'de> {
    fn contents(self) -> Result<&'a mut Source<'de>, PayloadError> {
        if self.unit {
            return Err(PayloadError::InvalidType);
        }
        Ok(self.from)
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = PayloadError;

    fn unit_variant(self) -> Result<(), PayloadError> {
        if self.unit {
            Ok(())
        } else {
            Err(PayloadError::InvalidType)
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, PayloadError> {
        seed.deserialize(self.contents()?)
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, PayloadError> {
        self.contents()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, PayloadError> {
        self.contents()?.deserialize_any(visitor)
    }
}
