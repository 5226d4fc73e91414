//! What is asked for on the command line.

use anyhow::{Context as _, Result, bail};

use crate::{sabotage::Sabotage, script::Script};

/// What to play.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Arguments {
    /// Every sequence of at most so many attempts.
    pub(crate) depth: Option<usize>,
    /// So many runs by chance.
    pub(crate) random: Option<u64>,
    /// What the runs by chance are made from; by itself, the run to play again.
    pub(crate) seed: Option<u64>,
    /// This script alone.
    pub(crate) script: Option<Script>,
    /// A fault to plant, to see that it is found.
    pub(crate) plant: Option<Sabotage>,
}

impl Arguments {
    /// Reads `--depth N --random N --seed N --script TEXT --plant FAULT`.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut arguments = Self::default();
        let mut words = words.into_iter();
        while let Some(name) = words.next() {
            let value = words.next().with_context(|| format!("{name} needs a value"))?;
            let number = || -> Result<u64> {
                value.parse().with_context(|| format!("{name} takes a number, not {value}"))
            };
            match name.as_str() {
                "--depth" => arguments.depth = Some(usize::try_from(number()?)?),
                "--random" => arguments.random = Some(number()?),
                "--seed" => arguments.seed = Some(number()?),
                "--script" => arguments.script = Some(Script::parse(&value)?),
                "--plant" => {
                    let fault = Sabotage::named(&value);
                    let known = || Sabotage::ALL.iter().map(|fault| fault.name());
                    arguments.plant = Some(fault.with_context(|| {
                        format!("the faults are {}", known().collect::<Vec<_>>().join(", "))
                    })?);
                }
                _ => bail!("there is no option {name}"),
            }
        }
        Ok(arguments)
    }
}
