//! JSON fields that forgive: a missing, null or mistyped field reads as nothing.
//!
//! Texts borrow from the event. (`Option<Cow<str>>` would not: serde decodes what
//! stands inside an `Option` as owned, even with `borrow`.)

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::value::RawValue;

/// A text; empty if it is anything else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'a> Text<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text as it stands in the event, if it has no escapes and is not empty.
    pub(crate) fn borrowed(&self) -> Option<&'a str> {
        match self.0 {
            Cow::Borrowed(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

/// A count; `None` if it is no whole number that is at least 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// Whether a field says anything: not null, not false, not 0 and not empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Says(pub(crate) bool);

/// An object; its default if it is anything else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Object<T>(pub(crate) T);

/// A list; empty if it is anything else.
#[derive(Debug, Clone)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Writes the visitor methods that read every kind of value as `$nothing`, except
/// those kinds that the visitor reads itself.
macro_rules! nothing_for {
    ($nothing:expr; $($kind:ident)*) => {
        $(nothing_for!(@ $kind $nothing);)*
    };
    (@ bool $nothing:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> { Ok($nothing) }
    };
    (@ number $nothing:expr) => {
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> { Ok($nothing) }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> { Ok($nothing) }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> { Ok($nothing) }
    };
    (@ text $nothing:expr) => {
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> { Ok($nothing) }
    };
    (@ null $nothing:expr) => {
        fn visit_unit<E>(self) -> Result<Self::Value, E> { Ok($nothing) }
    };
    (@ list $nothing:expr) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
    };
    (@ object $nothing:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($nothing)
        }
    };
}
#[cfg_attr(
    not(any(feature = "openai-chat", feature = "gemini")),
    expect(unused_imports, reason = "the other dialects have no values of many kinds")
)]
pub(crate) use nothing_for;

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            nothing_for!(Text::default(); bool number null list object);
        }
        deserializer.deserialize_any(Read)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }

            fn visit_u64<E>(self, count: u64) -> Result<Count, E> {
                Ok(Count(Some(count)))
            }

            fn visit_i64<E>(self, count: i64) -> Result<Count, E> {
                Ok(Count(u64::try_from(count).ok()))
            }

            fn visit_f64<E>(self, count: f64) -> Result<Count, E> {
                // Seen from gateways in JavaScript and Python: counts such as `12.0`.
                let whole = count >= 0.0 && count.fract() == 0.0 && count < 9.0e15;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is whole, positive and small"
                )]
                Ok(Count(whole.then_some(count as u64)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Count, E> {
                Ok(Count(text.parse().ok()))
            }

            nothing_for!(Count(None); bool null list object);
        }
        deserializer.deserialize_any(Read)
    }
}

impl<'de> Deserialize<'de> for Says {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Says;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }

            fn visit_bool<E>(self, says: bool) -> Result<Says, E> {
                Ok(Says(says))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Says, E> {
                Ok(Says(number != 0))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Says, E> {
                Ok(Says(true))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Says, E> {
                Ok(Says(true))
            }

            fn visit_str<E>(self, text: &str) -> Result<Says, E> {
                Ok(Says(!text.is_empty()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Says, A::Error> {
                let mut says = false;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    says = true;
                }
                Ok(Says(says))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Says, A::Error> {
                let mut says = false;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    says = true;
                }
                Ok(Says(says))
            }

            nothing_for!(Says(false); null);
        }
        deserializer.deserialize_any(Read)
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Read<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }

            nothing_for!(Object(T::default()); bool number text null list);
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Read<T> {
            type Value = List<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(List)
            }

            nothing_for!(List::default(); bool number text null object);
        }
        deserializer.deserialize_any(Read(PhantomData))
    }
}

/// The fields of an object in their order, each value as it stands.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((name, value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    fields.push((name.0, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct All<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        count: Count,
        says: Says,
        object: Object<Inner>,
        list: List<Count>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Inner {
        x: Count,
    }

    #[test]
    fn a_field_of_any_other_kind_reads_as_nothing() {
        for odd in ["null", "true", "-1", "1.5", "[[1]]", r#"{"a":{"b":[1]}}"#, r#""t""#] {
            let json = format!(
                r#"{{"text":{odd},"count":{odd},"says":{odd},"object":{odd},"list":{odd},"more":1}}"#
            );
            let all: All<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(all.text.0, if odd == r#""t""# { "t" } else { "" }, "{odd}");
            assert_eq!((all.count.0, all.object.0.x.0), (None, None), "{odd}");
            assert_eq!(all.says.0, odd != "null", "{odd}");
            assert_eq!(all.list.0.len(), usize::from(odd.starts_with('[')), "{odd}");
        }
    }

    #[test]
    fn a_text_without_escapes_is_borrowed() {
        let json = r#"{"text":"plain é","count":12.0}"#;
        let all: All<'_> = serde_json::from_str(json).unwrap();
        assert!(matches!(all.text.0, Cow::Borrowed("plain é")));
        assert_eq!(all.count.0, Some(12));
        for empty in ["false", "0", r#""""#, "[]", "{}"] {
            assert_eq!(serde_json::from_str::<Says>(empty).unwrap(), Says(false), "{empty}");
        }
    }
}
