//! What the runs came to.

use std::collections::BTreeMap;

use crate::{
    check::{Broken, Findings},
    script::Script,
};

/// Runs, checks, and what was broken.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    pub(crate) findings: Findings,
    /// What was counted besides, by name.
    pub(crate) counted: BTreeMap<&'static str, u64>,
    /// The first runs that broke a promise.
    pub(crate) failed: Vec<Failed>,
    pub(crate) failures: u64,
}

/// A run that broke promises.
#[derive(Debug)]
pub(crate) struct Failed {
    /// The seed that gives this run alone.
    pub(crate) seed: Option<u64>,
    pub(crate) script: Script,
    pub(crate) broken: Vec<Broken>,
}

/// Failed runs that are told; one is usually enough to find the fault.
const TOLD: usize = 3;

impl Tally {
    /// Notes a run, whose findings are in already.
    pub(crate) fn played(&mut self, script: &Script) {
        self.played_by(None, script);
    }

    /// Notes a run of this seed.
    pub(crate) fn played_by(&mut self, seed: Option<u64>, script: &Script) {
        self.runs += 1;
        let broken = std::mem::take(&mut self.findings.broken);
        if broken.is_empty() {
            return;
        }
        self.failures += 1;
        if self.failed.len() < TOLD {
            self.failed.push(Failed { seed, script: script.clone(), broken });
        }
    }

    pub(crate) fn count(&mut self, what: &'static str, times: u64) {
        *self.counted.entry(what).or_default() += times;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.failures += other.failures;
        self.findings.add(other.findings);
        for (what, times) in other.counted {
            self.count(what, times);
        }
        self.failed.extend(other.failed);
        self.failed.truncate(TOLD);
    }
}
