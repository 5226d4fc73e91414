//! What the CI machine runs, so that a green desk is a green build.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    bench,
    course::{Course, Outcome},
    crash, simulate, test,
    workspace::Workspace,
};

/// Ends of a process, enough to meet every kind; `test-crash` plays more.
const KILLS: u32 = 24;

/// Shares of `simulate` that take some seconds.
const DEPTH: u32 = 4;
const SCRIPTS: u64 = 10_000;

pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let mut course = Course::default();
    test::all_parts(workspace, &test::Args::with_corpus(), &mut course);
    course.part("release", || {
        let cargo = workspace.cargo(&["build", "--release", "--locked", "-p", "turnbuckle"]);
        Ok(Outcome::check(&workspace.run("release", cargo)?))
    });
    course.part("demo", || {
        // As the README tells a newcomer to.
        let cargo = workspace.cargo(&["run", "--release", "--locked", "--", "demo"]);
        Ok(Outcome::check(&workspace.run("demo", cargo)?))
    });
    course.part("crashes", || crash::part(workspace, KILLS));
    course.part("simulate", || simulate::part(workspace, DEPTH, SCRIPTS));
    course.part("bench", || bench::gates(workspace));
    Ok(course.finish())
}
