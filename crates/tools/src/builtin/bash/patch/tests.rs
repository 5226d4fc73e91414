use super::*;

/// Commands that apply a patch, and what is named of them.
const PATCHES: &[(&str, &str)] = &[
    ("patch -p1 < fix.diff", "patch -p1"),
    ("patch", "patch"),
    ("/usr/bin/patch -p0 -i fix.diff", "/usr/bin/patch -p0 -i fix.diff"),
    ("\\patch -p1", "\\patch -p1"),
    ("'patch' -p1", "'patch' -p1"),
    ("\"pat\"ch -p1", "\"pat\"ch -p1"),
    ("LC_ALL=C patch -p1 < a", "LC_ALL=C patch -p1"),
    ("git apply fix.patch", "git apply fix.patch"),
    ("git -C sub/dir apply ../fix.patch", "git -C sub/dir apply ../fix.patch"),
    ("git -c core.autocrlf=false apply x", "git -c core.autocrlf=false apply x"),
    (
        "git -C \"$dir\" -c a=b --no-pager apply -R x",
        "git -C \"$dir\" -c a=b --no-pager apply -R x",
    ),
    ("git --git-dir=.git --work-tree . apply x", "git --git-dir=.git --work-tree . apply x"),
    ("git apply --stat --apply x", "git apply --stat --apply x"),
    ("git apply --3way - < x", "git apply --3way -"),
    ("git am < 0001.patch", "git am"),
    ("git -C a am --3way 0001.patch", "git -C a am --3way 0001.patch"),
    ("apply_patch '*** Begin Patch'", "apply_patch '*** Begin Patch'"),
    ("apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF", "apply_patch"),
    ("patch -p1 <<EOF\n--- a\n+++ b\nEOF", "patch -p1"),
    ("git apply <<'EOF' --index\n--- a\nEOF\n", "git apply"),
    ("env A=1 B=2 patch -p1", "env A=1 B=2 patch -p1"),
    ("env -i -u HOME A=1 git apply x", "env -i -u HOME A=1 git apply x"),
    ("sudo patch -p1", "sudo patch -p1"),
    ("sudo -u bob -E A=1 patch -p1", "sudo -u bob -E A=1 patch -p1"),
    ("command patch -p1", "command patch -p1"),
    ("nice -n 5 timeout -k 1 30 patch -p1", "nice -n 5 timeout -k 1 30 patch -p1"),
    ("time patch -p1 < x", "time patch -p1"),
    ("nohup patch -p1 &", "nohup patch -p1"),
    ("ls *.diff | xargs -n1 patch -p1 -i", "xargs -n1 patch -p1 -i"),
    ("ls | xargs -I {} git apply {}", "xargs -I {} git apply {}"),
    ("cd a && patch -p1 < x", "patch -p1"),
    ("cd a; (cd b && git apply x)", "git apply x"),
    ("cat x | patch -p1 | tail -3", "patch -p1"),
    ("git diff HEAD~1 | git apply -R", "git apply -R"),
    ("curl -s https://e.org/x.diff | git apply", "git apply"),
    ("bash -c 'patch -p1 < x'", "patch -p1"),
    ("bash -lc \"cd a && git apply x\"", "git apply x"),
    ("bash -euo pipefail -c 'git apply x'", "git apply x"),
    ("sudo sh -c \"bash -c 'patch -p1'\"", "patch -p1"),
    ("bash <<'EOF'\ncd a\npatch -p1 < x\nEOF", "patch -p1"),
    ("bash <<< 'git apply x'", "git apply x"),
    ("eval 'patch -p1 < x'", "patch -p1"),
    ("if patch -p1 < x; then echo ok; fi", "patch -p1"),
    ("for f in *.diff; do patch -p1 < $f; done", "patch -p1"),
    ("while read f; do git apply \"$f\"; done < list", "git apply \"$f\""),
    ("! patch -p1 < x", "patch -p1"),
    ("out=$(git apply x 2>&1)", "git apply x"),
    ("echo \"$(patch -p1 < x)\"", "patch -p1"),
    ("find . -exec ls {} + -exec git apply {} +", "find . -exec ls {} + -exec git apply {} +"),
    (
        "find . -name '*.diff' -exec patch -p1 -i {} \\;",
        "find . -name '*.diff' -exec patch -p1 -i {} \\;",
    ),
    ("true || git am x", "git am x"),
    ("patch \\\n  -p1 \\\n  < x", "patch \\ -p1"),
];

/// Commands that only look as if.
const OTHERS: &[&str] = &[
    "",
    "echo patch",
    "echo 'patch -p1 < x'",
    "echo git apply x",
    "printf '%s\\n' apply_patch",
    "# patch -p1 < x",
    "ls # git apply x",
    "git log --grep apply",
    "git log -- patch",
    "git stash apply",
    "git stash apply stash@{0}",
    "git diff > patch",
    "git format-patch -1",
    "git show patch",
    "git help apply",
    "git --help apply",
    "git checkout apply",
    "git branch am",
    "git commit -m 'git apply x'",
    "git commit -am 'patch'",
    "git apply --check x",
    "git apply --stat x",
    "git apply --numstat x",
    "git apply --summary x",
    "git -C a apply --check ../x",
    "git am --abort",
    "git am --skip",
    "git am --show-current-patch=diff",
    "grep -r apply_patch",
    "grep -rn 'git apply' . | head",
    "rg patch src",
    "patch --version",
    "patch --help",
    "patch -v",
    "patch -p1 --dry-run < x",
    "patch -p1 < x --dry-run",
    "patch <<EOF --dry-run\nx\nEOF",
    "apply_patch --help",
    "command -v patch",
    "which patch",
    "man patch",
    "type apply_patch",
    "apt-get install patch",
    "npm version patch",
    "kubectl patch pod p -p '{}'",
    "cat > fix.patch <<'EOF'\npatch -p1\ngit apply x\nEOF",
    "cat <<EOF | tee notes\ngit apply x\nEOF",
    "cat fix.patch | head",
    "bash -c 'echo patch'",
    "bash patch.sh",
    "bash -c \"git apply --check x\"",
    "env | grep patch",
    "sudo -u patch ls",
    "xargs -I patch echo patch",
    "case patch in patch) echo yes;; esac",
    "[ -f patch ] && rm patch",
    "patch_all() { echo patch; }; patch_all",
    "python3 patch.py",
    "./patches/apply",
    "sed -i 's/patch/x/' f",
    "cd patch && ls",
    "alias p=patch",
];

#[test]
fn commands_that_apply_a_patch_are_found_through_what_stands_before_them() {
    for (command, short) in PATCHES {
        assert_eq!(patch_command(command).as_deref(), Some(*short), "{command}");
    }
}

#[test]
fn commands_that_only_look_like_a_patch_are_not_found() {
    for command in OTHERS {
        assert_eq!(patch_command(command), None, "{command}");
    }
}

#[test]
fn broken_and_deep_commands_are_searched_as_far_as_they_parse() {
    assert_eq!(patch_command("patch -p1 < x; if then ((").as_deref(), Some("patch -p1"));
    let deep = "( ".repeat(5000) + "patch" + &" )".repeat(5000);
    assert_eq!(patch_command(&deep).as_deref(), Some("patch"));
    let nested = (0..20).fold("patch".to_owned(), |inner, _| format!("eval {inner}"));
    assert_eq!(patch_command(&nested), None, "deeper than shells are followed");
}

#[test]
fn what_is_named_is_one_short_line() {
    let found = patch_command(&format!("patch\t-p1   {}", "x".repeat(500))).unwrap();
    assert_eq!(found.chars().count(), SHORT + 1);
    assert!(found.starts_with("patch -p1 xxx"), "{found}");
}

#[test]
fn commands_made_to_be_slow_are_searched_in_linear_time() {
    // Each of these took minutes, or would never end, if it were not linear.
    for command in [
        "( a;".repeat(30_000),
        "( ".repeat(30_000) + &"a;".repeat(30_000),
        "find -exec ".repeat(10_000),
        "find -exec a ; ".repeat(8_000),
        "command ".repeat(15_000),
        "eval ".repeat(25_000),
        "sudo env ".repeat(14_000),
    ] {
        assert_eq!(patch_command(&command), None);
    }
}
