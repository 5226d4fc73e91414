//! The characters a token is made of, and where it may begin.

/// A set of bytes that a secret, or the rest of one, consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// `0-9a-fA-F`.
    Hex,
    /// `A-Z0-9`.
    Upper,
    /// `A-Za-z0-9`.
    Alnum,
    /// `A-Za-z0-9_`.
    Word,
    /// `A-Za-z0-9_-`, the URL-safe base64.
    Dash,
    /// `A-Za-z0-9_.-` and `*`, with which servers shorten a key they echo.
    Dotted,
    /// `A-Za-z0-9+/=` and `_-%`, every base64.
    Base64,
    /// What a bearer token is made of (RFC 6750).
    Bearer,
    /// The path of a URL, without `?` and `#`.
    Path,
    /// The value of a query parameter, up to `&`, `#` or the end of the URL.
    Query,
    /// A value without quotes, up to white space, quote, comma or bracket.
    Value,
    /// The contents of a quoted value whose closing quote has not come.
    Quoted,
    /// The rest of a PEM block.
    Pem,
}

impl Run {
    /// Whether `byte` can go on with it.
    pub(super) fn has(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Dash => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'*')
            }
            Self::Base64 => {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-' | b'%')
            }
            Self::Bearer => {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'.' | b'_' | b'~' | b'+' | b'/' | b'=' | b'-' | b'*')
            }
            Self::Path => {
                byte.is_ascii_alphanumeric()
                    || matches!(byte, b'/' | b'_' | b'-' | b'.' | b'%' | b'~' | b'@')
            }
            Self::Query => !ends_url(byte) && !matches!(byte, b'&' | b'#' | b';'),
            Self::Value => {
                !byte.is_ascii_whitespace()
                    && byte != 0
                    && !matches!(byte, b'"' | b'\'' | b'`' | b',' | b';' | b'&' | b'\\')
                    && !matches!(byte, b'(' | b')' | b'{' | b'}' | b'<' | b'>')
            }
            Self::Quoted => !matches!(byte, b'"' | b'\n' | 0),
            Self::Pem => {
                byte.is_ascii_alphanumeric()
                    || byte.is_ascii_whitespace()
                    || matches!(byte, b'+' | b'/' | b'=' | b'\\' | b':' | b',' | b'-')
            }
        }
    }
}

/// What cannot stand in a URL inside a text.
pub(super) fn ends_url(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || byte == 0
        || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'|' | b'{' | b'}' | b')')
}

/// Text as bytes that may be asked beyond its ends: there it is `0`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'t>(pub(super) &'t [u8]);

impl<'t> Text<'t> {
    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn at(self, index: usize) -> u8 {
        self.0.get(index).copied().unwrap_or(0)
    }

    /// The byte before `index`.
    pub(super) fn before(self, index: usize) -> u8 {
        index.checked_sub(1).map_or(0, |index| self.at(index))
    }

    pub(super) fn slice(self, start: usize, end: usize) -> &'t [u8] {
        self.0.get(start..end.min(self.len())).unwrap_or_default()
    }

    /// Where the run that begins at `start` ends.
    pub(super) fn run(self, start: usize, run: Run) -> usize {
        let rest = self.0.get(start..).unwrap_or_default();
        start + rest.iter().position(|byte| !run.has(*byte)).unwrap_or(rest.len())
    }

    /// As [`Text::run`], but looks at `most` bytes only.
    pub(super) fn run_within(self, start: usize, run: Run, most: usize) -> usize {
        let rest = self.slice(start, start.saturating_add(most));
        start + rest.iter().position(|byte| !run.has(*byte)).unwrap_or(rest.len())
    }

    /// Where the bytes before `end` for which `is` holds begin, at most `most` back.
    pub(super) fn back(self, end: usize, most: usize, is: impl Fn(u8) -> bool) -> usize {
        let floor = end.saturating_sub(most);
        let before = self.slice(floor, end);
        floor + before.iter().rposition(|byte| !is(*byte)).map_or(0, |last| last + 1)
    }

    /// The first index from `start` that is no space or tab, at most `most` on.
    pub(super) fn skip_blanks(self, start: usize, most: usize) -> usize {
        let rest = self.slice(start, start.saturating_add(most));
        start + rest.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(rest.len())
    }

    /// Whether `literal` stands at `start`, in any case.
    pub(super) fn is_at(self, start: usize, literal: &str) -> bool {
        self.slice(start, start.saturating_add(literal.len()))
            .eq_ignore_ascii_case(literal.as_bytes())
    }

    /// Whether a token can begin at `start`: no letter, digit or underscore goes
    /// before it, except as the end of an escape (`%3D`, `\n`, `\u0022`, `[31m`).
    pub(super) fn begins(self, start: usize) -> bool {
        let before = self.before(start);
        if !(before.is_ascii_alphanumeric() || before == b'_') {
            return true;
        }
        let back = |count: usize| start.checked_sub(count).map_or(0, |index| self.at(index));
        let hex = |count: usize| (1..=count).all(|index| back(index).is_ascii_hexdigit());
        (matches!(before, b'n' | b'r' | b't') && back(2) == b'\\')
            || (back(3) == b'%' && hex(2))
            || (back(5) == b'u' && back(6) == b'\\' && hex(4))
            || (before == b'm' && self.ends_colour(start - 1))
    }

    /// Whether a terminal colour (`[31m`) ends at `end`, its escape character gone.
    fn ends_colour(self, end: usize) -> bool {
        let digits = self.back(end, 12, |byte| byte.is_ascii_digit() || byte == b';');
        digits < end && self.before(digits) == b'['
    }
}

/// What a value is made of, seen once.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mix {
    pub(super) digit: bool,
    pub(super) lower: bool,
    pub(super) upper: bool,
    pub(super) space: bool,
    pub(super) star: bool,
    /// A character that neither words nor code names have.
    pub(super) symbol: bool,
    /// An upper-case letter after a lower-case one.
    pub(super) camel: bool,
    /// A dot with something on both sides.
    pub(super) inner_dot: bool,
}

impl Mix {
    pub(super) fn of(value: &[u8]) -> Self {
        let mut mix = Self::default();
        let mut before = 0_u8;
        for (index, &byte) in value.iter().enumerate() {
            match byte {
                b'0'..=b'9' => mix.digit = true,
                b'a'..=b'z' => mix.lower = true,
                b'A'..=b'Z' => {
                    mix.camel |= before.is_ascii_lowercase();
                    mix.upper = true;
                }
                b'.' => mix.inner_dot |= index > 0 && index + 1 < value.len(),
                b'*' => mix.star = true,
                b'_' | b'-' | b'/' | b':' => {}
                b' ' | b'\t' | b'\n' | b'\r' => mix.space = true,
                _ => mix.symbol = true,
            }
            before = byte;
        }
        mix
    }

    pub(super) fn letter(self) -> bool {
        self.lower || self.upper
    }
}
