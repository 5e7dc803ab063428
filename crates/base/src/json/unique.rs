//! A deserializer between JSON and what is made of it that refuses an object with a key twice, wherever the object is:
//! in a map, of which serde keeps the last, or in a part that nothing is made of.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

/// Keys up to which an object is searched one by one.
const FEW: usize = 16;

/// The keys of all objects that are open, the outermost first: one list, so that an object allocates nothing.
pub(super) type OpenKeys<'de> = RefCell<Vec<Cow<'de, str>>>;

/// A part of a deserialization (a deserializer, visitor, seed or access), whose objects are checked.
pub(super) struct Unique<'k, 'de, T> {
    pub inner: T,
    pub keys: &'k OpenKeys<'de>,
}

impl<'k, 'de, T> Unique<'k, 'de, T> {
    /// The part and the means to check another one.
    fn split<U>(self) -> (T, impl FnOnce(U) -> Unique<'k, 'de, U>) {
        let Self { inner, keys } = self;
        (inner, move |inner| Unique { inner, keys })
    }
}

/// The same for a key, which is added to [`OpenKeys`].
struct Key<'k, 'de, T> {
    inner: T,
    keys: &'k OpenKeys<'de>,
}

impl<'k, 'de, T> Key<'k, 'de, T> {
    fn split<U>(self) -> (T, impl FnOnce(U) -> Key<'k, 'de, U>) {
        let Self { inner, keys } = self;
        (inner, move |inner| Key { inner, keys })
    }

    fn push(&self, key: impl Into<Cow<'de, str>>) {
        self.keys.borrow_mut().push(key.into());
    }
}

/// Methods of a deserializer: name(arguments before the visitor).
macro_rules! deserializer {
    () => {
        deserializer! {
            deserialize_any() deserialize_bool()
            deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
            deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
            deserialize_f32() deserialize_f64() deserialize_char() deserialize_str() deserialize_string()
            deserialize_bytes() deserialize_byte_buf() deserialize_option() deserialize_unit()
            deserialize_seq() deserialize_map() deserialize_identifier()
            deserialize_unit_struct(name: &'static str)
            deserialize_newtype_struct(name: &'static str)
            deserialize_tuple(len: usize)
            deserialize_tuple_struct(name: &'static str, len: usize)
            deserialize_struct(name: &'static str, fields: &'static [&'static str])
            deserialize_enum(name: &'static str, variants: &'static [&'static str])
        }

        fn is_human_readable(&self) -> bool {
            self.inner.is_human_readable()
        }
    };
    ($($name:ident($($arg:ident: $of:ty),*))*) => {$(
        fn $name<V: Visitor<'de>>(self, $($arg: $of,)* visitor: V) -> Result<V::Value, D::Error> {
            let (inner, with) = self.split();
            inner.$name($($arg,)* with(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Unique<'_, 'de, D> {
    type Error = D::Error;

    deserializer! {}

    /// Passes over a value whose objects are checked as well.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, with) = self.split();
        inner.deserialize_any(with(IgnoredAny))?;
        visitor.visit_unit()
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Key<'_, 'de, D> {
    type Error = D::Error;

    deserializer! {}

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.deserialize_str(visitor)
    }
}

macro_rules! visitor {
    ($($name:ident: $of:ty),*) => {$(
        fn $name<E: Error>(self, value: $of) -> Result<V::Value, E> {
            self.inner.$name(value)
        }
    )*};
}

impl<'k, 'de, V: Visitor<'de>> Visitor<'de> for Unique<'k, 'de, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visitor! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
        visit_bytes: &[u8], visit_borrowed_bytes: &'de [u8], visit_byte_buf: Vec<u8>
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let (inner, with) = self.split();
        inner.visit_some(with(from))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let (inner, with) = self.split();
        inner.visit_newtype_struct(with(from))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, all: A) -> Result<V::Value, A::Error> {
        let (inner, with) = self.split();
        inner.visit_seq(with(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let keys: &'k OpenKeys<'de> = self.keys;
        let first = keys.borrow().len();
        self.inner.visit_map(Object { inner, keys, first, many: None })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<V::Value, A::Error> {
        let (inner, with) = self.split();
        inner.visit_enum(with(from))
    }
}

/// What a key is read as, written out: equal keys are equal in all of them.
macro_rules! key_visitor {
    ($($name:ident: $of:ty),*) => {$(
        fn $name<E: Error>(self, value: $of) -> Result<V::Value, E> {
            self.push(value.to_string());
            self.inner.$name(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Key<'_, 'de, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    key_visitor! {
        visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_str: &str, visit_string: String
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<V::Value, E> {
        self.push(value);
        self.inner.visit_borrowed_str(value)
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<V::Value, E> {
        self.push(String::from_utf8_lossy(value).into_owned());
        self.inner.visit_bytes(value)
    }

    fn visit_borrowed_bytes<E: Error>(self, value: &'de [u8]) -> Result<V::Value, E> {
        self.push(String::from_utf8_lossy(value));
        self.inner.visit_borrowed_bytes(value)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let (inner, with) = self.split();
        inner.visit_some(with(from))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        let (inner, with) = self.split();
        inner.visit_newtype_struct(with(from))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, from: A) -> Result<V::Value, A::Error> {
        let (inner, with) = self.split();
        inner.visit_enum(with(from))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Unique<'_, 'de, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let (inner, with) = self.split();
        inner.deserialize(with(from))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, 'de, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        let (inner, with) = self.split();
        inner.deserialize(with(from))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Unique<'_, 'de, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.inner.next_element_seed(Unique { inner: seed, keys: self.keys })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'k, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Unique<'k, 'de, A> {
    type Error = A::Error;
    type Variant = Unique<'k, 'de, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (inner, with) = self.split();
        let (value, variant) = inner.variant_seed(seed)?;
        Ok((value, with(variant)))
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Key<'_, 'de, A> {
    type Error = A::Error;
    type Variant = A::Variant;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, A::Variant), A::Error> {
        let (inner, with) = self.split();
        inner.variant_seed(with(seed))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Unique<'_, 'de, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let (inner, with) = self.split();
        inner.newtype_variant_seed(with(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, v: V) -> Result<V::Value, A::Error> {
        let (inner, with) = self.split();
        inner.tuple_variant(len, with(v))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        v: V,
    ) -> Result<V::Value, A::Error> {
        let (inner, with) = self.split();
        inner.struct_variant(fields, with(v))
    }
}

/// An object whose keys are compared.
struct Object<'k, 'de, A> {
    inner: A,
    keys: &'k OpenKeys<'de>,
    /// Where its own begin.
    first: usize,
    /// Its own once they are more than [`FEW`].
    many: Option<HashSet<Cow<'de, str>>>,
}

impl<A> Drop for Object<'_, '_, A> {
    fn drop(&mut self) {
        self.keys.borrow_mut().truncate(self.first);
    }
}

impl<'de, A: MapAccess<'de>> Object<'_, 'de, A> {
    /// Compares the key that was read last with those before it.
    fn check(&mut self) -> Result<(), A::Error> {
        let mut keys = self.keys.borrow_mut();
        let own = &keys[self.first..];
        let twice = |key: &str| A::Error::custom(format!("an object has the key `{key}` twice"));
        match (&mut self.many, own.split_last()) {
            (_, None) => {}
            (None, Some((key, others))) if others.contains(key) => return Err(twice(key)),
            (None, Some((_, others))) if others.len() < FEW => {}
            (None, _) => self.many = Some(keys.drain(self.first..).collect()),
            (Some(many), _) => {
                for key in keys.drain(self.first..) {
                    if let Some(first) = many.replace(key) {
                        return Err(twice(&first));
                    }
                }
            }
        }
        Ok(())
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Object<'_, 'de, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let key = self.inner.next_key_seed(Key { inner: seed, keys: self.keys })?;
        if key.is_some() {
            self.check()?;
        }
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(Unique { inner: seed, keys: self.keys })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}
