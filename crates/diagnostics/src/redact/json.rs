//! JSON values, for logs.

use serde_json::Value;
use turnbuckle_errors::Redact as _;

use super::{
    MASK, Redactor,
    names::{Strength, is_placeholder, strength},
};

impl Redactor {
    /// Masks the secrets of a JSON value in place: strings and numbers by the
    /// name they stand under, and every string, names too, by its text.
    ///
    /// ```
    /// let mut value = serde_json::json!({"apiKey": "abc", "model": "m", "port": 1});
    /// turnbuckle_diagnostics::Redactor::default().redact_json(&mut value);
    /// assert_eq!(value, serde_json::json!({"apiKey": "[redacted]", "model": "m", "port": 1}));
    /// ```
    pub fn redact_json(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let old = std::mem::take(fields);
                for (name, mut value) in old {
                    self.by_name(strength(name.as_bytes()), &mut value);
                    fields.insert(self.redact(&name).into_owned(), value);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::String(text) => *text = self.redact(text).into_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn by_name(&self, strength: Option<Strength>, value: &mut Value) {
        let secret = match (strength, &*value) {
            (Some(Strength::Header | Strength::Strong), Value::String(text)) => {
                !is_placeholder(text.as_bytes())
            }
            (Some(Strength::Header | Strength::Strong), Value::Number(_)) => true,
            (Some(Strength::Weak), Value::String(text)) => {
                text.len() >= 8 && !text.contains(' ') && !is_placeholder(text.as_bytes())
            }
            (Some(Strength::Header | Strength::Strong), Value::Array(items)) => {
                items.iter().any(|item| item.is_string() || item.is_number())
            }
            _ => false,
        };
        match value {
            Value::Array(items) if secret => {
                items.iter_mut().for_each(|item| self.by_name(strength, item));
            }
            value if secret => *value = Value::from(MASK),
            value => self.redact_json(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_go_by_their_name_and_by_their_text() {
        let mut value = json!({
            "client_secret": "x", "password": 1234, "token": "hello", "max_tokens": 5,
            "Authorization": ["Bearer a", "Basic b"],
            "nested": [{"note": "Bearer abcdefgh.12345"}, null, true],
        });
        Redactor::default().redact_json(&mut value);
        let expected = json!({
            "client_secret": MASK, "password": MASK, "token": "hello", "max_tokens": 5,
            "Authorization": [MASK, MASK],
            "nested": [{"note": "Bearer [redacted]"}, null, true],
        });
        assert_eq!(value, expected);
    }
}
