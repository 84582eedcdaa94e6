//! Parses scalars in the notations of fio and related tools: keys, numbers and option values.

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A key. It is borrowed from the input if it contains no escapes.
pub(super) struct Key<'de>(pub(super) Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// A number in any notation. Negative and missing numbers become 0.
#[derive(Clone, Copy, Default)]
pub(super) struct Number(f64, u64);

impl Number {
    pub(super) fn float(self) -> f64 {
        self.0
    }
    pub(super) fn whole(self) -> u64 {
        self.1
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number(value as f64, value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number(
                    value.max(0) as f64,
                    u64::try_from(value).unwrap_or(0),
                ))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                let value = if value.is_finite() {
                    value.max(0.0)
                } else {
                    0.0
                };
                Ok(Number(value, value as u64))
            }
            fn visit_unit<E>(self) -> Result<Number, E> {
                Ok(Number::default())
            }
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}

/// Value of an option. fio prints strings, but other tools may convert them to numbers.
pub(super) struct OptionValue(pub(super) String);

impl<'de> Deserialize<'de> for OptionValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OptionVisitor;
        impl Visitor<'_> for OptionVisitor {
            type Value = OptionValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the value of an option as text")
            }
            fn visit_str<E>(self, text: &str) -> Result<OptionValue, E> {
                Ok(OptionValue(text.to_owned()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<OptionValue, E> {
                Ok(OptionValue(value.to_string()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<OptionValue, E> {
                Ok(OptionValue(value.to_string()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<OptionValue, E> {
                Ok(OptionValue(value.to_string()))
            }
            fn visit_bool<E>(self, value: bool) -> Result<OptionValue, E> {
                Ok(OptionValue(u8::from(value).to_string()))
            }
            fn visit_unit<E>(self) -> Result<OptionValue, E> {
                Ok(OptionValue(String::new()))
            }
        }
        deserializer.deserialize_any(OptionVisitor)
    }
}
