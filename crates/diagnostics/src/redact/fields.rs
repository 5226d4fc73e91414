//! Values that a name gives away: headers, JSON and other fields, environment
//! assignments, query parameters, connection strings.
//!
//! Source code and prose are full of the same names, so the less a name and its
//! surroundings say, the more the value itself must look like a secret.

use super::{
    names::{Strength, is_placeholder, is_shouted, strength},
    run::{Mix, Run, Text},
    span::Span,
};

/// Names are no longer than this.
const MOST_NAME: usize = 64;
/// Blanks around a separator.
const MOST_BLANKS: usize = 8;
/// A value is judged by this much of it.
const MOST_JUDGED: usize = 256;
/// A closing quote is looked for this far.
const MOST_QUOTED: usize = 4096;

/// Schemes that may go before the value of an authorization header.
const SCHEMES: &[&str] =
    &["bearer", "basic", "token", "bot", "digest", "apikey", "api-key", "aws4-hmac-sha256", "key"];

/// What stands between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// `=` with nothing around it, or its escapes.
    Tight,
    /// `=` with blanks.
    Assign,
    Colon,
    /// Blanks after a `--flag`.
    Flag,
}

/// A name with its separator, up to where the value begins.
#[derive(Debug, Clone, Copy)]
struct Field<'t> {
    text: Text<'t>,
    name_start: usize,
    name: &'t [u8],
    strength: Strength,
    quoted_name: bool,
    separator: Separator,
    value: usize,
}

/// Judges the place where a word of `names::WORDS` ends at `end`.
pub(super) fn judge(text: Text<'_>, word_start: usize, end: usize) -> Option<Span> {
    let (quoted_name, separator, value) = separator(text, word_start, end)?;
    let name_start = text
        .back(end, MOST_NAME, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        .min(word_start);
    let mut name = text.slice(name_start, end);
    if name == b"key" || name == b"Key" {
        // "API key: …"
        if text.is_at(name_start.saturating_sub(4), "api ") && name_start >= 4 {
            name = b"api_key";
        }
    }
    let strength = strength(name)?;
    let field = Field { text, name_start, name, strength, quoted_name, separator, value };
    if field.is_called("cookie") {
        return field.cookie();
    }
    match field.opening_quote() {
        Some((start, quote, slashes)) => field.quoted(start, quote, slashes),
        None => field.bare(),
    }
}

/// What stands after a name that ends at `end`: whether a quote closed the name,
/// the separator, and where the value begins.
fn separator(text: Text<'_>, start: usize, end: usize) -> Option<(bool, Separator, usize)> {
    let mut at = end;
    while text.at(at) == b'\\' && matches!(text.at(at + 1), b'"' | b'\'' | b'\\') && at < end + 4 {
        at += 1;
    }
    let quoted_name = matches!(text.at(at), b'"' | b'\'' | b'`');
    let quoted_name = quoted_name || text.is_at(at, "%22");
    if quoted_name {
        at += if text.at(at) == b'%' { 3 } else { 1 };
        // `headers["Authorization"] = …`, and no link of Markdown.
        if text.at(at) == b']' {
            at += 1;
            if text.at(text.skip_blanks(at, MOST_BLANKS)) == b':' {
                return None;
            }
        }
    } else if at > end {
        return None;
    }
    let sign = text.skip_blanks(at, MOST_BLANKS);
    let (tight, width) = match text.at(sign) {
        b'=' if matches!(text.at(sign + 1), b'=' | b'~') => return None,
        b'=' if text.at(sign + 1) == b'>' => (false, 2),
        b'=' => (sign == at, 1),
        b':' if text.at(sign + 1) == b':' => return None,
        b':' if text.at(sign + 1) == b'=' => (false, 2),
        b':' => {
            let value = text.skip_blanks(sign + 1, MOST_BLANKS);
            return Some((quoted_name, Separator::Colon, value));
        }
        b'%' if text.is_at(sign, "%3d") => (true, 3),
        b'%' if text.is_at(sign, "%3a") => return Some((quoted_name, Separator::Colon, sign + 3)),
        b'\\' if text.is_at(sign, "\\u003d") => (true, 6),
        // `--token …`, and `PASSWORD '…'` as SQL has it.
        b'\'' if sign > at && !quoted_name => return Some((false, Separator::Flag, sign)),
        _ if sign > at && !quoted_name && is_flag(text, start) => {
            return Some((false, Separator::Flag, sign));
        }
        _ => return None,
    };
    let value = text.skip_blanks(sign + width, MOST_BLANKS);
    let tight = tight && value == sign + width;
    Some((quoted_name, if tight { Separator::Tight } else { Separator::Assign }, value))
}

fn is_flag(text: Text<'_>, word_start: usize) -> bool {
    let start =
        text.back(word_start, MOST_NAME, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    text.is_at(start, "--")
}

impl Field<'_> {
    /// Whether the parameter stands in a URL, where values have no quotes.
    fn in_query(&self) -> bool {
        let start = self.name_start;
        self.separator == Separator::Tight
            && !self.name.contains(&b'.')
            && (matches!(self.text.before(start), b'?' | b'&' | b'#' | b';')
                || start >= 3
                    && ["%3f", "%26", "%23"].iter().any(|sign| self.text.is_at(start - 3, sign))
                || start >= 6 && self.text.is_at(start - 6, "\\u0026"))
    }

    /// Where a quoted value begins, its quote, and the backslashes before it.
    fn opening_quote(&self) -> Option<(usize, u8, usize)> {
        let text = self.text;
        let mut at = self.value;
        if matches!(text.at(at), b'f' | b'b' | b'r' | b'u' | b'@') {
            at += usize::from(matches!(text.at(at + 1), b'"' | b'\''));
        }
        let first = at;
        while text.at(at) == b'\\' && at < first + 4 {
            at += 1;
        }
        let quote = text.at(at);
        matches!(quote, b'"' | b'\'' | b'`').then_some((at + 1, quote, at - first))
    }

    fn quoted(&self, start: usize, quote: u8, slashes: usize) -> Option<Span> {
        let text = self.text;
        let closing = closing_quote(text, start, quote, slashes);
        // A text that was cut off: the value ends with its line.
        let end = closing.unwrap_or_else(|| text.run_within(start, Run::Quoted, MOST_QUOTED));
        let value = text.slice(start, end.min(start + MOST_JUDGED));
        if is_placeholder(value) || is_placeholder(after_scheme(value)) {
            return None;
        }
        let mix = Mix::of(value);
        let secret = match self.strength {
            Strength::Header => true,
            _ if self.separator == Separator::Flag => {
                !mix.space && mix.digit && mix.letter() && value.len() >= 6
            }
            // The key lies in a file.
            Strength::Strong if is_place(value) && self.name.ends_with(b"key") => false,
            // A sentence under the name is a label or a complaint, unless this is data.
            Strength::Strong => self.quoted_name || (!mix.space && value.len() >= 3),
            Strength::Weak => {
                let dense = mix.digit && mix.letter() && value.len() >= 8;
                let mixed = mix.camel && value.len() >= 20;
                let data = self.quoted_name && value.len() >= 8 && self.is_called("secret");
                !mix.space && (dense || mixed || data) && !is_place(value)
            }
            Strength::Query => {
                is_shouted(self.name)
                    && mix.digit
                    && mix.letter()
                    && !mix.space
                    && value.len() >= 8
                    && !is_place(value)
            }
        };
        let run = closing.is_none().then_some(Run::Quoted);
        (secret && end > start).then_some(Span { start, end, run })
    }

    fn bare(&self) -> Option<Span> {
        let text = self.text;
        let start = self.value;
        if self.strength == Strength::Header {
            return self.header();
        }
        let in_query = self.in_query();
        let run = if in_query { Run::Query } else { Run::Value };
        let judged = text.run_within(start, run, MOST_JUDGED);
        let value = text.slice(start, judged);
        if is_placeholder(value) {
            return None;
        }
        let mix = Mix::of(value);
        let secret = if in_query {
            self.is_secret_in_query(value)
        } else if self.is_code(value, text.at(judged), mix) {
            false
        } else {
            self.is_secret(value, mix, text.at(judged))
        };
        let end = if secret { text.run(start, run) } else { start };
        // A full stop after the value ends the sentence.
        let end = text.back(end, 3, |byte| byte == b'.').max(start);
        (end > start).then(|| Span::open(start, end, run))
    }

    /// The value of a header that carries a key, its scheme included.
    fn header(&self) -> Option<Span> {
        let text = self.text;
        let value = text.skip_blanks(self.value + scheme(text, self.value), MOST_BLANKS);
        let end = match text.at(self.value) {
            b'D' | b'd' | b'A' if value > self.value => pairs_end(text, value),
            _ => text.run(value, Run::Value),
        };
        let judged = text.slice(value, end.min(value + MOST_JUDGED));
        // A variable or a type of that name: `'Authorization': auth,`.
        let next = text.at(end);
        let path = judged.iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.'));
        let here = self.quoted_name
            || self.separator == Separator::Assign
            || (!self.name.contains(&b'-') && matches!(next, b',' | b';' | b')' | b'>'));
        let code = matches!(next, b'(' | b'<')
            || judged.first().is_some_and(|first| matches!(first, b'*' | b'&' | b'['))
            || (value == self.value && path && here);
        let secret = self.separator != Separator::Flag && !is_placeholder(judged) && !code;
        secret.then(|| Span::open(self.value, end, Run::Value))
    }

    fn is_called(&self, word: &str) -> bool {
        self.name.to_ascii_lowercase().ends_with(word.as_bytes())
    }

    fn is_secret_in_query(&self, value: &[u8]) -> bool {
        match self.strength {
            Strength::Header | Strength::Strong => true,
            Strength::Weak => value.len() >= 3,
            // Pages that run code take it as a parameter.
            Strength::Query if self.is_called("code") => {
                value.len() >= 8 && value.iter().all(|byte| Run::Bearer.has(*byte) && *byte != b'+')
            }
            Strength::Query => value.len() >= 8,
        }
    }

    /// Whether a value that stands outside a URL without quotes is a secret.
    fn is_secret(&self, value: &[u8], mix: Mix, next: u8) -> bool {
        let dense = mix.digit && mix.letter();
        let ends = next == 0 || next.is_ascii_whitespace() || matches!(next, b'"' | b'\\' | b'\'');
        let named = is_shouted(self.name);
        match (self.separator, self.strength) {
            (Separator::Tight, Strength::Strong) if named => true,
            (Separator::Tight, Strength::Strong) => {
                let capital = self.name.first().is_some_and(u8::is_ascii_uppercase);
                let ends = ends || next == b'&';
                value.len() >= 3 && (dense || mix.symbol || ends || capital || value.len() >= 8)
            }
            (Separator::Tight, Strength::Weak) if named => {
                value.len() >= 4 && mix.letter() && !is_place(value)
            }
            (Separator::Tight, Strength::Weak) => value.len() >= 8 && dense && !is_place(value),
            (Separator::Tight, Strength::Query) => {
                let connection = self.name == b"sig" || self.name == b"Pwd";
                (named || connection) && value.len() >= 8 && dense && !is_place(value)
            }
            (Separator::Flag, Strength::Strong | Strength::Weak) => {
                value.len() >= 6 && dense && ends
            }
            (_, Strength::Strong) => value.len() >= 6 && (dense || mix.symbol) && ends,
            (_, Strength::Weak) => value.len() >= 16 && dense && ends && !is_place(value),
            (_, Strength::Query | Strength::Header) => false,
        }
    }

    /// Whether the value is an expression rather than a value: `token=t.token`,
    /// `password: &'a str`, `api_key=api_key,`, `secret = load(…)`.
    fn is_code(&self, value: &[u8], next: u8, mix: Mix) -> bool {
        let first = value.first().copied().unwrap_or(0);
        let path = value.iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b'$'));
        let index = value.iter().position(|byte| *byte == b'[').is_some_and(|bracket| {
            let before = value.get(..bracket).unwrap_or_default();
            bracket > 0 && before.iter().all(|b| b.is_ascii_alphabetic() || b"_.".contains(b))
        });
        let own_name = self.name.to_ascii_lowercase().ends_with(&value.to_ascii_lowercase());
        own_name
            || index
            || matches!(next, b'(' | b'<' | b'{')
            || matches!(first, b'&' | b'[' | b'!' | b'|' | b'?')
            || value.windows(2).any(|pair| pair == b"::" || pair == b"->" || pair == b"[\"")
            || (path && (matches!(next, b')' | b',' | b'}' | b'>') || mix.inner_dot))
            || (path && next == b';' && value.len() < 8 && !self.name.starts_with(b"P"))
    }

    /// `a=b; c=d` pairs, as long as they go on.
    fn cookie(&self) -> Option<Span> {
        let text = self.text;
        if self.separator == Separator::Flag {
            return None;
        }
        let start = self.opening_quote().map_or(self.value, |(start, ..)| start);
        let name = text.run_within(start, Run::Dash, MOST_NAME);
        if name == start || text.at(name) != b'=' || text.at(name + 1) == b'=' {
            return None;
        }
        let mut end = text.run(start, Run::Value);
        while text.at(end) == b';' && text.skip_blanks(end + 1, 2) < text.len() {
            end = text.run(text.skip_blanks(end + 1, 2), Run::Value);
        }
        Some(Span::open(start, end, Run::Value))
    }
}

/// How many bytes of a scheme (`Bearer`) stand at `start`, a blank after it.
fn scheme(text: Text<'_>, start: usize) -> usize {
    let found = SCHEMES.iter().find(|scheme| {
        text.is_at(start, scheme) && matches!(text.at(start + scheme.len()), b' ' | b'\t')
    });
    found.map_or(0, |scheme| scheme.len())
}

/// Where the `name=value` pairs of a digest or a signed request end, which commas
/// join.
fn pairs_end(text: Text<'_>, start: usize) -> usize {
    let name_end = |start| {
        Some(text.run_within(start, Run::Dash, MOST_NAME))
            .filter(|end| *end > start && text.at(*end) == b'=')
    };
    let mut end = text.run(start, Run::Value);
    let mut next = start;
    while let Some(name) = name_end(next) {
        let value = name + 1;
        end = match text.at(value) {
            b'"' => closing_quote(text, value + 1, b'"', 0).map_or(value, |closing| closing + 1),
            _ => text.run(value, Run::Value),
        };
        // `SignedHeaders=host;range`
        while text.at(end) == b';' {
            end = text.run(end + 1, Run::Value);
        }
        if text.at(end) != b',' {
            break;
        }
        next = text.skip_blanks(end + 1, MOST_BLANKS);
    }
    end
}

fn after_scheme(value: &[u8]) -> &[u8] {
    let text = Text(value);
    let start = text.skip_blanks(scheme(text, 0), MOST_BLANKS);
    value.get(start..).unwrap_or_default()
}

/// Whether a value is a path or an address.
fn is_place(value: &[u8]) -> bool {
    value.starts_with(b"/")
        || value.starts_with(b"./")
        || value.starts_with(b"~")
        || value.windows(3).any(|three| three == b"://")
}

/// The quote that closes a value: as many backslashes before it as before the
/// one that opened it.
fn closing_quote(text: Text<'_>, start: usize, quote: u8, slashes: usize) -> Option<usize> {
    let value = text.slice(start, start.saturating_add(MOST_QUOTED));
    let mut before = 0;
    for (index, &byte) in value.iter().enumerate() {
        match byte {
            b'\\' => before += 1,
            b'\n' => return None,
            byte if byte == quote && before == slashes => return Some(start + index - slashes),
            // An escaped quote inside a plain string, or the end of an outer one.
            byte if byte == quote && before < slashes => return Some(start + index - before),
            _ => before = 0,
        }
        if byte == quote {
            before = 0;
        }
    }
    None
}
