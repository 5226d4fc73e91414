//! Which crate may know which. The drawing of the design, held against
//! `cargo metadata`, so that it cannot grow old.

use anyhow::Result;
use cargo_metadata::DependencyKind;

use crate::workspace::Workspace;

const ERRORS: &str = "turnbuckle-errors";
const DIAGNOSTICS: &str = "turnbuckle-diagnostics";
const PROVIDERS: &str = "turnbuckle-providers";
const TOOLS: &str = "turnbuckle-tools";
const RUNTIME: &str = "turnbuckle-runtime";
const FAULTS: &str = "turnbuckle-faults";
const LIBRARIES: &[&str] = &[ERRORS, DIAGNOSTICS, PROVIDERS, TOOLS, RUNTIME, FAULTS];

/// Each member, and the members that it may depend on. Nobody may depend on one
/// that is named in no list.
const ARROWS: &[(&str, &[&str])] = &[
    (ERRORS, &[]),
    (DIAGNOSTICS, &[ERRORS]),
    (PROVIDERS, &[ERRORS, DIAGNOSTICS]),
    (TOOLS, &[ERRORS, DIAGNOSTICS]),
    (RUNTIME, &[ERRORS, DIAGNOSTICS, PROVIDERS, TOOLS]),
    (FAULTS, &[]),
    ("turnbuckle", LIBRARIES),
    ("xtask", LIBRARIES),
];

/// What the runtime must be free of: it drives a provider and tools that its
/// host chose.
const ABSENT_FROM_RUNTIME: &[&str] = &["reqwest", "hyper", "rmcp", "tree-sitter"];

/// Everything that the drawing forbids and the workspace does.
pub(crate) fn complaints(workspace: &Workspace) -> Result<Vec<String>> {
    let arrows = arrows(workspace);
    let mut complaints: Vec<String> = arrows.iter().filter_map(Arrow::complaint).collect();
    for member in workspace.members() {
        if allowed(&member.name).is_none() {
            complaints.push(format!("{} is not in the drawing: add it to ARROWS", member.name));
        }
    }
    let tree = ["tree", "-p", RUNTIME, "-e", "normal", "--prefix", "none", "--locked"];
    let ran = workspace.run("tree", workspace.cargo(&tree))?;
    match ran.ok {
        true => complaints.extend(too_heavy(&ran.output)),
        false => complaints.push(ran.tail()),
    }
    Ok(complaints)
}

/// One member depends on another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Arrow {
    from: String,
    to: String,
    /// Only its tests do.
    dev: bool,
}

impl Arrow {
    fn complaint(&self) -> Option<String> {
        let Self { from, to, dev } = self;
        let seen_by_nobody = !LIBRARIES.contains(&to.as_str());
        // A test may use any library; what a user of the crate gets may not.
        let fits = match dev {
            true => !seen_by_nobody,
            false => allowed(from).is_some_and(|allowed| allowed.contains(&to.as_str())),
        };
        (!fits).then(|| format!("{from} depends on {to}, which the drawing forbids"))
    }
}

fn allowed(from: &str) -> Option<&'static [&'static str]> {
    ARROWS.iter().find(|(name, _)| *name == from).map(|(_, allowed)| *allowed)
}

fn arrows(workspace: &Workspace) -> Vec<Arrow> {
    let members = workspace.members();
    let is_ours = |name: &str| members.iter().any(|member| member.name == name);
    members
        .iter()
        .flat_map(|member| member.dependencies.iter().map(move |to| (member, to)))
        // A member that depends on itself wants a feature for its own tests.
        .filter(|(member, to)| is_ours(&to.name) && member.name != to.name)
        .map(|(member, to)| Arrow {
            from: member.name.to_string(),
            to: to.name.clone(),
            dev: to.kind == DependencyKind::Development,
        })
        .collect()
}

/// The crates in a `cargo tree` of the runtime that must not be there.
fn too_heavy(tree: &str) -> Vec<String> {
    let mut found: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| {
            let family =
                |absent: &&str| *name == *absent || name.starts_with(&format!("{absent}-"));
            ABSENT_FROM_RUNTIME.iter().any(family)
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|name| format!("{RUNTIME} brings {name} along")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: &str, to: &str) -> Arrow {
        Arrow { from: from.to_owned(), to: to.to_owned(), dev: false }
    }

    #[test]
    fn the_workspace_keeps_to_the_drawing() {
        let workspace = Workspace::find().unwrap();
        assert_eq!(complaints(&workspace).unwrap(), [""; 0]);
        assert!(arrows(&workspace).contains(&arrow(RUNTIME, TOOLS)), "arrows are seen at all");
    }

    #[test]
    fn a_forbidden_arrow_is_caught() {
        for (from, to) in [
            (ERRORS, DIAGNOSTICS),
            (PROVIDERS, TOOLS),
            (TOOLS, PROVIDERS),
            (PROVIDERS, RUNTIME),
            (FAULTS, ERRORS),
            (RUNTIME, "turnbuckle"),
            ("turnbuckle", "xtask"),
            ("a-new-crate", ERRORS),
        ] {
            let complaint = arrow(from, to).complaint();
            let expected = format!("{from} depends on {to}, which the drawing forbids");
            assert_eq!(complaint, Some(expected));
        }
        assert_eq!(arrow(RUNTIME, PROVIDERS).complaint(), None);
    }

    #[test]
    fn tests_may_use_any_library_but_no_program() {
        let dev = |from, to| Arrow { dev: true, ..arrow(from, to) }.complaint();
        assert_eq!(dev(PROVIDERS, FAULTS), None);
        assert!(dev(PROVIDERS, "turnbuckle").is_some());
    }

    #[test]
    fn a_heavy_crate_under_the_runtime_is_caught_by_its_family() {
        let tree = "turnbuckle-runtime v0.1.0\nserde v1.0.1\nhyper-util v0.1.0 (*)\nreqwest v0.13.5\nreqwest v0.13.5 (*)\nhyperloop v1.0.0";
        assert_eq!(
            too_heavy(tree),
            [
                "turnbuckle-runtime brings hyper-util along",
                "turnbuckle-runtime brings reqwest along"
            ]
        );
    }
}
