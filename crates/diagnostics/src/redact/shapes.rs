//! What makes the search stop, and the shapes that are no plain tokens: JWT, PEM
//! blocks, bearer and basic credentials, bot tokens, addresses with a user.

use std::{cell::OnceCell, sync::LazyLock};

use super::{
    fields,
    names::{QUERY_WORDS, WORDS},
    run::{Mix, Run, Text, ends_url},
    span::Span,
    tokens::{self, TOKENS, TWILIO, TWILIO_KEY, Token},
};

/// What was seen, and so what to judge it by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trigger {
    Token(&'static Token),
    /// A name, of so many bytes.
    Name(usize),
    Bearer,
    Basic,
    Jwt,
    Pem,
    Twilio,
    Telegram,
    Address,
}

/// Every literal that the search stops at.
pub(super) static TRIGGERS: LazyLock<Vec<(&'static str, Trigger)>> = LazyLock::new(|| {
    let tokens = TOKENS.iter().map(|token| (token.prefix, Trigger::Token(token)));
    let twilio = TWILIO.iter().map(|prefix| (*prefix, Trigger::Twilio));
    let names = WORDS.iter().map(|word| (*word, Trigger::Name(word.len())));
    let queries = QUERY_WORDS.iter().flat_map(|spellings| {
        let name = spellings.first().map_or(0, |plain| plain.len() - 1);
        spellings.iter().map(move |spelling| (*spelling, Trigger::Name(name)))
    });
    let others = [
        ("bearer", Trigger::Bearer),
        ("basic", Trigger::Basic),
        ("eyJ", Trigger::Jwt),
        ("-----BEGIN ", Trigger::Pem),
        ("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY", Trigger::Pem),
        (":AA", Trigger::Telegram),
        ("://", Trigger::Address),
    ];
    tokens.chain(twilio).chain(names).chain(queries).chain(others).collect()
});

/// A text with what was found out about it on the way.
#[derive(Debug)]
pub(super) struct Judge<'t> {
    text: Text<'t>,
    pem_ends: OnceCell<Vec<usize>>,
}

/// A user and password in front of a host are no longer than this.
const MOST_AUTHORITY: usize = 512;
/// A PEM block is no longer than this.
const MOST_PEM: usize = 64 * 1024;

impl<'t> Judge<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text: Text(text.as_bytes()), pem_ends: OnceCell::new() }
    }

    /// The secret at `start..end`, where `trigger` was seen, if it is one.
    pub(super) fn judge(&self, trigger: Trigger, start: usize, end: usize) -> Option<Span> {
        match trigger {
            Trigger::Token(token) => tokens::judge(self.text, token, start, end),
            Trigger::Name(length) => fields::judge(self.text, start, start + length),
            Trigger::Bearer => self.bearer(start, end),
            Trigger::Basic => self.basic(start, end),
            Trigger::Jwt => self.jwt(start),
            Trigger::Pem => self.pem(start, end),
            Trigger::Twilio => tokens::judge(self.text, &TWILIO_KEY, start, start + 2),
            Trigger::Telegram => self.telegram(start),
            Trigger::Address => self.address(start, end),
        }
    }

    /// Where the value after a scheme begins.
    fn after_blank(&self, start: usize, end: usize) -> Option<usize> {
        let value = match self.text.at(end) {
            b' ' | b'\t' => self.text.skip_blanks(end, 8),
            b'%' if self.text.is_at(end, "%20") => end + 3,
            _ => return None,
        };
        self.text.begins(start).then_some(value)
    }

    /// `Bearer …` outside a header. Prose says "bearer authentication" too.
    fn bearer(&self, start: usize, end: usize) -> Option<Span> {
        let start = self.after_blank(start, end)?;
        let stop = self.text.run(start, Run::Bearer);
        let stop = self.text.back(stop, stop - start, |byte| byte == b'.').max(start);
        let value = self.text.slice(start, stop);
        let mix = Mix::of(value.get(..256).unwrap_or(value));
        let secret = mix.digit || mix.inner_dot || mix.camel || mix.star || value.len() >= 32;
        let shouted = value.contains(&b'_') && !mix.lower && !mix.digit;
        (value.len() >= 8 && secret && !shouted).then(|| Span::open(start, stop, Run::Bearer))
    }

    /// `Basic …` outside a header: base64 of a text with a colon.
    fn basic(&self, start: usize, end: usize) -> Option<Span> {
        let start = self.after_blank(start, end)?;
        let stop = self.text.run(start, Run::Base64);
        let value = self.text.slice(start, stop);
        let judged = value.get(..256).unwrap_or(value);
        (value.len() >= 8 && decodes_to_pair(judged)).then(|| Span::open(start, stop, Run::Base64))
    }

    /// Two dots at least between three parts, the first a JSON object in base64.
    fn jwt(&self, start: usize) -> Option<Span> {
        let text = self.text;
        if text.slice(start, start + 3) != b"eyJ" || !text.begins(start) {
            return None;
        }
        if text.before(start) == b'-' && Run::Dash.has(text.before(start.saturating_sub(1))) {
            return None;
        }
        let head = text.run(start, Run::Dash);
        let body = text.run(head + 1, Run::Dash);
        if head - start < 10 || text.at(head) != b'.' || body - head < 9 {
            return None;
        }
        let mut end = body;
        for _ in 0..3 {
            if text.at(end) == b'.' && Run::Dash.has(text.at(end + 1)) {
                end = text.run(end + 1, Run::Dash);
            }
        }
        Some(Span::open(start, end, Run::Dash))
    }

    /// A block with a private key, its line breaks real or escaped. Certificates
    /// and public keys are meant to be seen.
    fn pem(&self, start: usize, end: usize) -> Option<Span> {
        let text = self.text;
        let dashes = text.slice(end, end + 64).windows(4).position(|four| four == b"----");
        let label_end = end + dashes.unwrap_or(0);
        let label = text.slice(start, label_end);
        if !label.windows(11).any(|word| word == b"PRIVATE KEY") {
            return None;
        }
        let ends = self.pem_ends.get_or_init(|| pem_ends(text));
        let next = ends.get(ends.partition_point(|at| *at < label_end));
        if let Some(&at) = next.filter(|at| **at - label_end <= MOST_PEM) {
            let label = at + b"-----END".len();
            let stop = text.slice(label, label + 64).windows(4).position(|four| four == b"----");
            let stop = label + stop.unwrap_or(0);
            let stop = stop + text.slice(stop, stop + 5).iter().filter(|b| **b == b'-').count();
            return Some(Span::closed(start, stop));
        }
        // Cut off: as far as it looks like base64 in lines.
        let body = text.slice(label_end, label_end + 5).iter().filter(|b| **b == b'-').count();
        let stop = text.run(label_end + body, Run::Pem);
        if stop < text.len() && stop - (label_end + body) < 16 {
            // A mention of the label.
            return None;
        }
        Some(Span::open(start, stop, Run::Pem))
    }

    /// Digits, a colon, 33 and more characters: `123456789:AA…`.
    fn telegram(&self, start: usize) -> Option<Span> {
        let text = self.text;
        let digits = text.back(start, 11, |byte| byte.is_ascii_digit());
        let known = text.begins(digits) || digits >= 3 && text.is_at(digits - 3, "bot");
        let stop = text.run(start + 1, Run::Dash);
        let fits = (8..=10).contains(&(start - digits)) && stop - start >= 33;
        (fits && known && text.at(start + 1) == b'A').then(|| Span::open(digits, stop, Run::Dash))
    }

    /// `scheme://user:password@host`. A user alone is masked if it could be a token.
    fn address(&self, start: usize, end: usize) -> Option<Span> {
        let text = self.text;
        let scheme = text.back(start, 32, |b| b.is_ascii_alphanumeric() || b"+.-".contains(&b));
        if start - scheme < 2 {
            return None;
        }
        let rest = text.slice(end, end + MOST_AUTHORITY);
        let url = rest.iter().position(|byte| ends_url(*byte)).unwrap_or(rest.len());
        let url = rest.get(..url).unwrap_or_default();
        let host = url.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(url.len());
        let authority = url.get(..host).unwrap_or_default();
        let at = match authority.iter().rposition(|byte| *byte == b'@') {
            Some(at) => at,
            // A password with a slash in it: then what should be the port is none.
            None if has_odd_port(authority) => url.iter().rposition(|byte| *byte == b'@')?,
            None => return None,
        };
        let user = url.get(..at).unwrap_or_default();
        let mix = Mix::of(user);
        let secret = user.contains(&b':') || (user.len() >= 16 && mix.digit && mix.letter());
        let empty = user == b":" || user.is_empty();
        let template = user.windows(2).any(|pair| pair == b":$" || pair == b":{" || pair == b":<");
        (secret && !empty && !template).then(|| Span::closed(end, end + at))
    }
}

/// Whether something after the colon is no port number.
fn has_odd_port(authority: &[u8]) -> bool {
    let colon = authority.iter().position(|byte| *byte == b':');
    let port = colon.and_then(|colon| authority.get(colon + 1..)).unwrap_or_default();
    !authority.starts_with(b"[") && port.iter().any(|byte| !byte.is_ascii_digit())
}

fn pem_ends(text: Text<'_>) -> Vec<usize> {
    let dashes = b"-----END";
    let ssh2 = b"---- END";
    let whole = text.0.windows(dashes.len()).enumerate();
    whole.filter(|(_, at)| at == dashes || at == ssh2).map(|(index, _)| index).collect()
}

/// Whether base64 decodes to something with a colon in it.
fn decodes_to_pair(value: &[u8]) -> bool {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    let (mut bits, mut held, mut colon) = (0_u32, 0_u32, false);
    for sextet in value.iter().map_while(|byte| digit(*byte)) {
        held = (held << 6 | u32::from(sextet)) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            let byte = held >> bits & 0xff;
            if byte < 0x20 || byte == 0x7f {
                return false;
            }
            colon |= byte == u32::from(b':');
        }
    }
    colon
}
