//! A call whose arguments come in pieces, each with its place: Vertex AI sends them
//! so where `streamFunctionCallArguments` asked for it.

use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::wire::{FunctionCall, PartialArg};
use crate::{
    MAX_ANSWER_BYTES, TooLarge,
    halves::{self, Mender},
    loose::Object,
};

/// How deep arguments may be nested.
const MAX_DEPTH: usize = 100;

/// The call so far.
#[derive(Debug)]
pub(super) struct CallInPieces {
    index: u64,
    id: String,
    name: String,
    signature: Option<Box<RawValue>>,
    arguments: Value,
    /// Half a character that a piece ended in, and the place of that piece.
    half: (Mender, String),
    /// A piece had no place to go.
    broken: bool,
    bytes: usize,
}

impl CallInPieces {
    /// Begins with what the first response told, `arguments` in text.
    pub(super) fn new(
        index: u64,
        call: &FunctionCall<'_>,
        arguments: &str,
        signature: Option<&RawValue>,
    ) -> Self {
        let begun = match arguments {
            "" => Some(Value::Object(Map::new())),
            text => serde_json::from_str(text).ok().filter(Value::is_object),
        };
        Self {
            index,
            id: call.id.0.clone().into_owned(),
            name: call.name.0.clone().into_owned(),
            signature: signature.map(ToOwned::to_owned),
            broken: begun.is_none(),
            arguments: begun.unwrap_or_default(),
            half: Default::default(),
            bytes: arguments.len(),
        }
    }

    pub(super) const fn index(&self) -> u64 {
        self.index
    }

    /// Puts pieces where they belong. `marked` says whether lone halves are marked.
    pub(super) fn take(
        &mut self,
        pieces: &[Object<PartialArg<'_>>],
        marked: bool,
    ) -> Result<(), TooLarge> {
        for Object(piece) in pieces {
            let path = &*piece.json_path.0;
            self.bytes = self.bytes.saturating_add(path.len()).saturating_add(64);
            let put = match piece.string_value {
                Some(text) => self.text(path, text, marked),
                None => self.set(piece),
            };
            self.broken |= put.is_none();
            if self.bytes > MAX_ANSWER_BYTES {
                return Err(TooLarge);
            }
        }
        Ok(())
    }

    /// The arguments as JSON, whole or visibly not.
    pub(super) fn arguments(&self, whole: bool) -> String {
        let mut json = self.arguments.to_string();
        if !whole || self.broken {
            json.pop();
        }
        json
    }

    /// The call as one part, and whether it tells more than its name and arguments.
    pub(super) fn as_part(&self) -> Option<(String, bool)> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Whole<'a> {
            function_call: Call<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            thought_signature: Option<&'a RawValue>,
        }
        #[derive(Serialize)]
        struct Call<'a> {
            #[serde(skip_serializing_if = "str::is_empty")]
            id: &'a str,
            name: &'a str,
            args: &'a Value,
        }
        let Self { id, name, arguments: args, .. } = self;
        let whole = Whole {
            function_call: Call { id, name, args },
            thought_signature: self.signature.as_deref(),
        };
        let tells_more = self.signature.is_some() || !id.is_empty();
        serde_json::to_string(&whole).ok().filter(|_| !self.broken).map(|json| (json, tells_more))
    }

    fn text(&mut self, path: &str, text: &RawValue, marked: bool) -> Option<()> {
        let mut spare = None;
        let (text, _, marks): (String, _, _) = halves::read(text.get(), &mut spare)?;
        self.bytes = self.bytes.saturating_add(text.len());
        if self.half.1 != path {
            self.rest();
        }
        let text = self.half.0.mend(text.into(), marked || marks);
        if self.half.0.holds() {
            path.clone_into(&mut self.half.1);
        }
        self.append(path, &text)
    }

    /// Half a character at the end of a text stays alone.
    pub(super) fn rest(&mut self) {
        let (rest, path) = (self.half.0.rest(), std::mem::take(&mut self.half.1));
        if !rest.is_empty() {
            self.broken |= self.append(&path, rest).is_none();
        }
    }

    fn append(&mut self, path: &str, text: &str) -> Option<()> {
        match place(&mut self.arguments, path)? {
            Value::String(before) => before.push_str(text),
            empty @ Value::Null => *empty = Value::String(text.to_owned()),
            _ => return None,
        }
        Some(())
    }

    /// A number, a truth value or `null`. A piece without any only ends a text.
    fn set(&mut self, piece: &PartialArg<'_>) -> Option<()> {
        let value = match piece.number_value.or(piece.bool_value) {
            Some(value) => serde_json::from_str(value.get()).ok()?,
            None if piece.null_value.is_some() => Value::Null,
            None => return Some(()),
        };
        *place(&mut self.arguments, &piece.json_path.0)? = value;
        Some(())
    }
}

/// The place that a path such as `$.items[0].name` names; what leads to it is made.
fn place<'v>(root: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut rest = path.strip_prefix('$')?;
    let mut at = root;
    for _ in 0..MAX_DEPTH {
        if rest.is_empty() {
            return Some(at);
        }
        let (step, after) = step(rest)?;
        rest = after;
        at = match step {
            Step::Name(name) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                at.as_object_mut()?.entry(name).or_insert(Value::Null)
            }
            Step::Item(n) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let list = at.as_array_mut()?;
                if n == list.len() {
                    list.push(Value::Null);
                }
                list.get_mut(n)?
            }
        };
    }
    None
}

enum Step<'p> {
    Name(&'p str),
    Item(usize),
}

fn step(path: &str) -> Option<(Step<'_>, &str)> {
    if let Some(rest) = path.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end)?;
        return (!name.is_empty()).then_some((Step::Name(name), after));
    }
    let rest = path.strip_prefix('[')?;
    for quote in ['\'', '"'] {
        if let Some(quoted) = rest.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote)?;
            return Some((Step::Name(name), after.strip_prefix(']')?));
        }
    }
    let (number, after) = rest.split_once(']')?;
    Some((Step::Item(number.parse().ok()?), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(pieces: &str) -> String {
        let pieces: Vec<Object<PartialArg<'_>>> = serde_json::from_str(pieces).unwrap();
        let mut call = CallInPieces::new(0, &FunctionCall::default(), "", None);
        call.take(&pieces, false).unwrap();
        call.arguments(true)
    }

    #[test]
    fn pieces_go_where_their_path_leads() {
        for (pieces, whole) in [
            ("[]", "{}"),
            (
                r#"[{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a","stringValue":"é\n"}]"#,
                r#"{"a":"xé\n"}"#,
            ),
            (
                r#"[{"jsonPath":"$.a[0].b","numberValue":1.5},{"jsonPath":"$.a[1]","boolValue":false}]"#,
                r#"{"a":[{"b":1.5},false]}"#,
            ),
            (
                r#"[{"jsonPath":"$['a.b'][\"c]\"]","nullValue":"NULL_VALUE"}]"#,
                r#"{"a.b":{"c]":null}}"#,
            ),
            (r#"[{"jsonPath":"$.a","stringValue":"x"},{"jsonPath":"$.a"},7,null]"#, r#"{"a":"x"}"#),
        ] {
            assert_eq!(built(pieces), whole, "{pieces}");
        }
    }

    #[test]
    fn a_piece_without_a_place_breaks_the_call() {
        let deep = format!("$.a{}", "[0]".repeat(200));
        for path in ["", "a", "$a", "$.", "$.a[1]", "$.a[99999999999]", "$.a[-1]", "$.a[x", &deep] {
            let pieces = serde_json::json!([{"jsonPath": path, "stringValue": "x"}]).to_string();
            let json = built(&pieces);
            assert!(serde_json::from_str::<Value>(&json).is_err(), "{path}: {json}");
        }
        // A text where a list is, and the other way round.
        for second in ["$.a", "$.a.b"] {
            let pieces = serde_json::json!([
                {"jsonPath": "$.a[0]", "stringValue": "x"}, {"jsonPath": second, "stringValue": "y"},
            ]);
            assert!(serde_json::from_str::<Value>(&built(&pieces.to_string())).is_err());
        }
    }
}
