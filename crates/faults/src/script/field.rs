//! A walk over TOML that knows, for every complaint, the place it is about and
//! the names that would have been right.

use std::{ops::Range, path::Path, time::Duration};

use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use super::{
    error::{At, ScriptError, count},
    near::nearest,
};

/// The text of a script, to turn offsets into places.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) file: Option<&'a Path>,
}

impl<'a> Source<'a> {
    pub(super) fn at(&self, span: Range<usize>) -> At {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.chars().rev().take_while(|c| *c != '\n').count();
        At { line: Some(count(line)), column: Some(count(column)), ..self.whole() }
    }

    /// The script as such.
    pub(super) fn whole(&self) -> At {
        At { file: self.file.map(Into::into), ..At::default() }
    }

    /// The fields of a table in the order they were written.
    pub(super) fn fields(
        &'a self,
        table: &'a DeTable<'a>,
        allowed: &'static [&'static str],
    ) -> Result<Vec<Field<'a>>, ScriptError> {
        let mut fields = Vec::new();
        for (key, value) in in_order(table) {
            let name: &str = key.get_ref();
            let Some(known) = allowed.iter().find(|known| **known == name) else {
                return Err(ScriptError::UnknownKey {
                    at: self.at(key.span()),
                    key: name.to_owned(),
                    nearest: nearest(name, allowed),
                    allowed,
                });
            };
            fields.push(self.field(known, name, value));
        }
        Ok(fields)
    }

    fn field(
        &'a self,
        key: &'static str,
        name: &str,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Field<'a> {
        Field { source: self, key, name: name.to_owned(), value }
    }

    pub(super) fn missing(
        &self,
        table: &Place<'_>,
        key: &'static str,
        name: &'static str,
    ) -> ScriptError {
        ScriptError::MissingKey { at: self.at(table.span.clone()), key, table: name }
    }
}

/// A table and where it stands.
pub(super) struct Place<'a> {
    pub(super) table: &'a DeTable<'a>,
    pub(super) span: Range<usize>,
}

/// A key that is allowed at its place, and its value.
pub(super) struct Field<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) key: &'static str,
    pub(super) name: String,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Field<'a> {
    pub(super) fn at(&self) -> At {
        self.source.at(self.value.span())
    }

    pub(super) fn wrong(&self, wanted: &'static str) -> ScriptError {
        ScriptError::WrongType {
            at: self.at(),
            key: self.name.clone(),
            wanted,
            found: kind(self.value.get_ref()),
        }
    }

    fn out_of_range(&self, wanted: &'static str, found: &str) -> ScriptError {
        let found = found.to_owned();
        ScriptError::OutOfRange { at: self.at(), key: self.key, wanted, found }
    }

    pub(super) fn string(&self) -> Result<&'a str, ScriptError> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong("a string"))
    }

    pub(super) fn flag(&self) -> Result<bool, ScriptError> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub(super) fn table(&self) -> Result<Place<'a>, ScriptError> {
        place(self.value).ok_or_else(|| self.wrong("a table"))
    }

    pub(super) fn tables(&self) -> Result<Vec<Place<'a>>, ScriptError> {
        let wrong = || self.wrong("an array of tables: write its header in double brackets");
        let array = self.value.get_ref().as_array().ok_or_else(wrong)?;
        array.iter().map(|item| place(item).ok_or_else(wrong)).collect()
    }

    /// A table of strings whose keys are free, in the order they were written.
    pub(super) fn strings(&self) -> Result<Vec<(String, String)>, ScriptError> {
        let entries = in_order(self.table()?.table).into_iter();
        let read = |(name, value): (&Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
            let field = self.source.field(self.key, name.get_ref(), value);
            Ok((field.name.clone(), field.string()?.to_owned()))
        };
        entries.map(read).collect()
    }

    pub(super) fn word<T>(
        &self,
        allowed: &'static [&'static str],
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ScriptError> {
        let word = self.string()?;
        read(word).ok_or_else(|| ScriptError::UnknownWord {
            at: self.at(),
            key: self.key,
            word: word.to_owned(),
            nearest: nearest(word, allowed),
            allowed,
        })
    }

    pub(super) fn whole(&self, wanted: &'static str, least: u64) -> Result<u64, ScriptError> {
        let Some(number) = self.value.get_ref().as_integer() else {
            return Err(self.wrong(wanted));
        };
        let parsed = u64::from_str_radix(number.as_str(), number.radix());
        // TOML integers have 64 bits with sign; more could not be written back.
        let fits = parsed.ok().filter(|n| *n >= least && i64::try_from(*n).is_ok());
        fits.ok_or_else(|| self.out_of_range(wanted, number.as_str()))
    }

    pub(super) fn count(&self) -> Result<usize, ScriptError> {
        let count = self.whole("a whole number, 1 or more", 1)?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub(super) fn millis(&self) -> Result<Duration, ScriptError> {
        let wanted = "a whole number of milliseconds, 0 or more";
        Ok(Duration::from_millis(self.whole(wanted, 0)?))
    }

    /// A whole number that one of these holds.
    pub(super) fn status(
        &self,
        wanted: &'static str,
        good: impl Fn(u16) -> bool,
    ) -> Result<u16, ScriptError> {
        let number = self.whole(wanted, 0)?;
        let status = u16::try_from(number).ok().filter(|status| good(*status));
        status.ok_or_else(|| self.out_of_range(wanted, &number.to_string()))
    }

    pub(super) fn probability(&self) -> Result<f64, ScriptError> {
        let wanted = "a number from 0 to 1";
        let written = match self.value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(self.wrong(wanted)),
        };
        let number = written.parse().ok().filter(|number| (0.0..=1.0).contains(number));
        number.ok_or_else(|| self.out_of_range(wanted, written))
    }
}

fn place<'a>(value: &'a Spanned<DeValue<'a>>) -> Option<Place<'a>> {
    let span = value.span();
    value.get_ref().as_table().map(|table| Place { table, span })
}

/// The map is sorted by name; the spans know the order of writing.
pub(super) fn in_order<'a>(
    table: &'a DeTable<'a>,
) -> Vec<(&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
