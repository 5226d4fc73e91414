//! Instructions and heap allocations for each piece of text, which no busy machine
//! can move.
//!
//! A client decodes a recorded body without sockets under callgrind, once short
//! and once long. What both have in common, the start of the process for one, is
//! taken off. The allocations are the calls of the system's allocator that
//! callgrind saw, so the program itself counts nothing.

use std::{
    fs,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    body,
    case::{Case, Dialect, Reader, Shape},
    processes::Program,
    report::Check,
};
use crate::terminal::say;

/// The pieces of text of the short and of the long answer.
const SHORT: usize = 4_000;
const LONG: usize = 20_000;

/// What a piece of text may cost in a dialect.
const fn gate(dialect: Dialect) -> Cost {
    match dialect {
        Dialect::Chat => Cost { instructions: 5_000.0, allocations: 1.0 },
        Dialect::Anthropic | Dialect::Responses | Dialect::Gemini => {
            Cost { instructions: 6_500.0, allocations: 1.0 }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    instructions: f64,
    allocations: f64,
}

/// Counts, prints, and holds our readers to their gates.
pub(super) fn count(program: &Program) -> Result<Vec<Check>> {
    say(format_args!(
        "for each piece of text, from answers of {SHORT} and {LONG} pieces in chunks of 16 KiB, without sockets\n"
    ));
    let mut checks = Vec::new();
    for dialect in Dialect::ALL {
        for reader in Reader::BOTH {
            let cost = cost(program, dialect, reader)?;
            say(format_args!(
                "{:<10} {:<5} {:>7.0} instructions  {:>5.2} allocations",
                dialect.name(),
                reader.name(),
                cost.instructions,
                cost.allocations
            ));
            if reader == Reader::Ours {
                checks.extend(held(dialect, cost));
            }
        }
    }
    Ok(checks)
}

/// Holds our readers to their gates, and says nothing.
pub(super) fn gates(program: &Program) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for dialect in Dialect::ALL {
        checks.extend(held(dialect, cost(program, dialect, Reader::Ours)?));
    }
    Ok(checks)
}

/// Whether valgrind is installed.
pub(super) fn can_count() -> bool {
    let mut valgrind = Command::new("valgrind");
    let quiet = valgrind.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn held(dialect: Dialect, cost: Cost) -> [Check; 2] {
    let gate = gate(dialect);
    // A second decimal is the chunks, and text that grows.
    let allocations = (cost.allocations * 10.0).round() / 10.0;
    [
        Check {
            what: format!("{}: instructions", dialect.name()),
            measured: format!("{:.0}", cost.instructions),
            target: format!("<= {}", gate.instructions),
            holds: cost.instructions <= gate.instructions,
            gate: true,
        },
        Check {
            what: format!("{}: allocations", dialect.name()),
            measured: format!("{allocations:.1}"),
            target: format!("<= {}", gate.allocations),
            holds: allocations <= gate.allocations,
            gate: true,
        },
    ]
}

fn cost(program: &Program, dialect: Dialect, reader: Reader) -> Result<Cost> {
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let count = |size: usize| {
        let case = Case { dialect, shape: Shape::Long, size };
        let (body, profile) = (folder.path().join("body"), folder.path().join("profile"));
        fs::write(&body, body::answer(case).bytes).context("cannot write the answer")?;
        let took = program.count(case, reader, &body, &profile)?;
        ensure!(
            took.text_bytes == body::expected(case).len(),
            "{case}: the text is not the one that was recorded"
        );
        let profile = fs::read_to_string(&profile).context("callgrind wrote no profile")?;
        Counted::read(&profile).context("the profile of callgrind has no total")
    };
    let (short, long) = (count(SHORT)?, count(LONG)?);
    Ok(Cost {
        instructions: each(short.instructions, long.instructions),
        allocations: each(short.allocations, long.allocations),
    })
}

#[expect(clippy::cast_precision_loss, reason = "the counts are far below 2^52")]
fn each(short: u64, long: u64) -> f64 {
    long.saturating_sub(short) as f64 / (LONG - SHORT) as f64
}

/// What callgrind counted in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) instructions: u64,
    allocations: u64,
}

impl Counted {
    /// Reads a profile that was written with whole names.
    pub(super) fn read(profile: &str) -> Option<Self> {
        const ALLOCATES: [&str; 5] =
            ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];
        let (mut instructions, mut allocations) = (None, 0);
        let mut called = "";
        for line in profile.lines() {
            if let Some(name) = line.strip_prefix("cfn=") {
                called = name;
            } else if let Some(calls) = line.strip_prefix("calls=")
                && ALLOCATES.contains(&called)
            {
                allocations += calls.split(' ').next()?.parse::<u64>().ok()?;
            } else if let Some(sum) =
                line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:"))
            {
                instructions = sum.trim().parse().ok();
            }
        }
        Some(Self { instructions: instructions?, allocations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
events: Ir
summary: 5000

fn=alloc::alloc
0 7
cob=libc.so.6
cfn=malloc
calls=40 0
0 900
cfn=free
calls=39 0
0 300
fn=grow
cfn=realloc
calls=2 0
0 90
cfn=malloc_usable_size
calls=5 0
0 5
totals: 5000
";

    #[test]
    fn what_callgrind_wrote_is_read() {
        let counted = Counted { instructions: 5000, allocations: 42 };
        assert_eq!(Counted::read(PROFILE), Some(counted));
        assert_eq!(Counted::read("events: Ir\n"), None);
    }

    #[test]
    fn a_gate_fails_above_itself_alone() {
        let holds = |instructions, allocations| {
            held(Dialect::Chat, Cost { instructions, allocations }).map(|check| check.holds)
        };
        assert_eq!(holds(5_000.0, 1.04), [true, true]);
        assert_eq!(holds(5_001.0, 1.06), [false, false]);
    }
}
