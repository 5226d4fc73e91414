//! A script and the files it includes, as one row of steps.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    SHIPPED, ShippedScript,
    error::{At, ScriptError},
    field::Source,
    near::nearest,
    parse::{self, Item, Parsed},
    step::Step,
};

/// A script with more steps is a mistake, e.g. of files that include others twice.
const MOST_STEPS: usize = 10_000;

/// What a script says: all steps in one row, and the settings of the outermost
/// file.
pub(super) struct Loaded {
    pub(super) steps: Vec<Step>,
    pub(super) outermost: Parsed,
}

/// Reads a script that is no file.
pub(super) fn text(text: &str) -> Result<Loaded, ScriptError> {
    Loading::default().outermost(&Source { text, file: None })
}

/// Reads a file and all that it includes.
pub(super) fn file(path: &Path) -> Result<Loaded, ScriptError> {
    let text = read(path, &At::default())?;
    let mut loading = Loading::default();
    loading.enter(path);
    loading.outermost(&Source { text: &text, file: Some(path) })
}

pub(super) fn shipped(name: &str, at: At) -> Result<&'static ShippedScript, ScriptError> {
    SHIPPED.iter().find(|shipped| shipped.name == name).ok_or_else(|| {
        let known: Vec<_> = SHIPPED.iter().map(|shipped| shipped.name).collect();
        let nearest = nearest(name, &known);
        ScriptError::UnknownScript { at, name: name.to_owned(), nearest, known }
    })
}

#[derive(Default)]
struct Loading {
    steps: Vec<Step>,
    /// The files that are being read, each within the one before it: as
    /// written, and as it is known to the system.
    open: Vec<(PathBuf, PathBuf)>,
}

impl Loading {
    fn outermost(mut self, source: &Source<'_>) -> Result<Loaded, ScriptError> {
        let mut outermost = parse::script(source)?;
        let items = std::mem::take(&mut outermost.items);
        self.take(items, source.file)?;
        if self.steps.is_empty() {
            return Err(ScriptError::NoSteps { at: source.whole() });
        }
        Ok(Loaded { steps: self.steps, outermost })
    }

    fn take(&mut self, items: Vec<Item>, file: Option<&Path>) -> Result<(), ScriptError> {
        for item in items {
            match item {
                Item::Step(step) if self.steps.len() >= MOST_STEPS => {
                    let at = step.lines.of("behaviour");
                    return Err(ScriptError::TooManySteps { at, most: MOST_STEPS });
                }
                Item::Step(step) => self.steps.push(*step),
                Item::Include { at, name } => self.include(at, &name, file)?,
            }
        }
        Ok(())
    }

    fn include(&mut self, at: At, name: &str, from: Option<&Path>) -> Result<(), ScriptError> {
        if !name.contains(['/', '\\', '.']) {
            let shipped = shipped(name, at)?;
            return self.lend(&Source { text: shipped.source, file: Some(Path::new(name)) });
        }
        let Some(folder) = from.map(|file| file.parent().unwrap_or(Path::new(""))) else {
            return Err(ScriptError::NoFolder { at, name: name.to_owned() });
        };
        let path = folder.join(name);
        let known = known(&path);
        if let Some(first) = self.open.iter().position(|(_, open)| *open == known) {
            let circle = self.open.iter().skip(first).map(|(path, _)| path.clone());
            let cycle = circle.chain([path]).collect();
            return Err(ScriptError::Cycle { at, cycle });
        }
        let text = read(&path, &at)?;
        self.enter(&path);
        self.lend(&Source { text: &text, file: Some(&path) })?;
        self.open.pop();
        Ok(())
    }

    /// Takes the steps of an included file, which is to hold nothing else.
    fn lend(&mut self, source: &Source<'_>) -> Result<(), ScriptError> {
        let parsed = parse::script(source)?;
        match parsed.settings.into_iter().next() {
            Some((key, at)) => Err(ScriptError::OnlySteps { at, key }),
            None => self.take(parsed.items, source.file),
        }
    }

    fn enter(&mut self, path: &Path) {
        self.open.push((path.to_owned(), known(path)));
    }
}

/// The one name of a file, whatever way led to it.
fn known(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn read(path: &Path, at: &At) -> Result<String, ScriptError> {
    fs::read_to_string(path).map_err(|source| ScriptError::Read {
        at: at.clone(),
        path: path.to_owned(),
        source,
    })
}
