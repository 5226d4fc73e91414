//! What the CI machine runs, so that a green desk is a green build.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::{
    course::{Course, Outcome},
    test,
    workspace::Workspace,
};

/// The options of `ci`: none.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(workspace: &Workspace, _: &Args) -> Result<ExitCode> {
    let mut course = Course::default();
    test::all_parts(workspace, &test::Args::with_corpus(), &mut course);
    course.part("release", || {
        let cargo = workspace.cargo(&["build", "--release", "--locked", "-p", "turnbuckle"]);
        Ok(Outcome::check(&workspace.run("release", cargo)?))
    });
    course.part("demo", || {
        let mut demo = Command::new(workspace.target().join("release/turnbuckle"));
        demo.arg("demo").current_dir(workspace.root());
        Ok(Outcome::check(&workspace.run("demo", demo)?))
    });
    Ok(course.finish())
}
