use std::{
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink, net::UnixListener},
};

use super::*;
use crate::builtin::fixture::Fixture;

fn resolved(fixture: &Fixture, path: &str) -> String {
    fixture.workspace.resolve(path).unwrap().path
}

fn refusal(fixture: &Fixture, path: &str) -> ToolError {
    let place = fixture.workspace.resolve(path);
    place.and_then(|place| place.require_file()).unwrap_err()
}

#[test]
fn opening_says_what_is_wrong_with_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Workspace::open(folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, WorkspaceError::Missing { .. }), "{missing}");
    assert!(missing.to_string().ends_with("does not exist; create the folder or name another"));
    fs::write(folder.path().join("file"), "").unwrap();
    for path in ["file", "file/below"] {
        let file = Workspace::open(folder.path().join(path)).unwrap_err();
        assert!(matches!(file, WorkspaceError::NotADirectory { .. }), "{file}");
    }
    let denied = WorkspaceError::new(folder.path(), io::ErrorKind::PermissionDenied.into());
    assert!(matches!(denied, WorkspaceError::Unreadable { .. }), "{denied}");
    assert!(denied.to_string().contains("read and search permission"), "{denied}");
}

#[test]
fn all_spellings_of_a_file_have_one_canonical_path() {
    let fixture = Fixture::new();
    fixture.put("dir/a", "");
    let root = fixture.workspace.path().to_path_buf();
    symlink("dir/a", root.join("relative")).unwrap();
    symlink(root.join("dir/a"), root.join("absolute")).unwrap();
    symlink(root.join("absolute"), root.join("chain")).unwrap();
    symlink("dir", root.join("folder")).unwrap();
    symlink("../relative", root.join("dir/up")).unwrap();
    symlink(&root, fixture.folder.path().join("other-root")).unwrap();
    let absolute = root.join("dir/a").to_str().unwrap().to_owned();
    let other = fixture.folder.path().join("other-root/dir/a").to_str().unwrap().to_owned();
    let above = format!("{}/../base/dir/a", root.display());
    for path in [
        "dir/a",
        "./dir/a",
        "dir//a",
        "dir/./a",
        "dir/../dir/a",
        "folder/a",
        "folder/../dir/a",
        "relative",
        "absolute",
        "chain",
        "dir/up",
        "../base/dir/a",
        &absolute,
        &other,
        &above,
    ] {
        assert_eq!(resolved(&fixture, path), "dir/a", "{path}");
    }
    for path in [".", "./", "dir/..", root.to_str().unwrap()] {
        assert_eq!(resolved(&fixture, path), ".", "{path}");
    }
}

#[test]
fn a_root_that_was_opened_through_a_link_takes_both_spellings() {
    let fixture = Fixture::new();
    fixture.put("a", "");
    let link = fixture.folder.path().join("link");
    symlink(fixture.workspace.path(), &link).unwrap();
    let workspace = Workspace::open(&link).unwrap();
    for path in [link.join("new"), fixture.workspace.path().join("new")] {
        assert_eq!(workspace.resolve(path.to_str().unwrap()).unwrap().path, "new");
    }
}

#[test]
fn paths_that_lead_out_are_refused_whether_or_not_something_is_there() {
    let fixture = Fixture::new();
    let root = fixture.workspace.path().to_path_buf();
    fs::write(fixture.folder.path().join("secret"), "").unwrap();
    fs::create_dir(fixture.folder.path().join("base-beside")).unwrap();
    symlink("/etc/passwd", root.join("out")).unwrap();
    symlink("../secret", root.join("up")).unwrap();
    symlink("/", root.join("slash")).unwrap();
    symlink("/nowhere/at/all", root.join("dangling")).unwrap();
    let beside = format!("{}-beside/x", root.display());
    for path in [
        "/etc/passwd",
        "/",
        "..",
        "../secret",
        "../none",
        "../../../../etc/passwd",
        "out",
        "up",
        "slash/etc/passwd",
        "dangling",
        "/proc/self/cwd/../../etc/passwd",
        &beside,
    ] {
        let error = fixture.workspace.resolve(path).unwrap_err();
        assert_eq!(error.code, ErrorCode::PathOutsideWorkspace, "{path}: {error}");
        assert!(error.text.contains("use a path inside it"), "{error}");
    }
}

#[test]
fn a_new_file_has_a_place_also_behind_a_dangling_link() {
    let fixture = Fixture::new();
    symlink("dir/new", fixture.path("link")).unwrap();
    for path in ["dir/new", "link", "./dir/x/../new"] {
        let place = fixture.workspace.resolve(path).unwrap();
        assert_eq!(place.path, "dir/new", "{path}");
        assert!(place.metadata.is_none());
    }
    assert_eq!(fixture.workspace.resolve("dir/new").unwrap().split(), ("dir", "new"));
    assert_eq!(fixture.workspace.resolve("new").unwrap().split(), (".", "new"));
}

#[test]
fn what_is_no_regular_file_is_named() {
    let fixture = Fixture::new();
    fixture.put("dir/a", "");
    let made = std::process::Command::new("mkfifo").arg(fixture.path("pipe")).status().unwrap();
    assert!(made.success());
    let _socket = UnixListener::bind(fixture.path("socket")).unwrap();
    for (path, what) in [
        (".", "a directory"),
        ("dir", "a directory"),
        ("pipe", "a named pipe (FIFO)"),
        ("socket", "a socket"),
        ("dir/a/b", "goes through a file as if it were a directory"),
    ] {
        let error = refusal(&fixture, path);
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{path}");
        assert!(error.text.contains(what), "{path}: {error}");
    }
    let dev = Workspace::open("/dev").unwrap();
    let error = dev.resolve("null").unwrap().require_file().unwrap_err();
    assert!(error.text.contains("a device"), "{error}");
}

#[test]
fn paths_that_no_file_can_have_are_refused() {
    let fixture = Fixture::new();
    symlink("loop", fixture.path("loop")).unwrap();
    symlink("../base/climb", fixture.path("climb")).unwrap();
    symlink(std::ffi::OsStr::from_bytes(b"\xff"), fixture.path("bytes")).unwrap();
    let long_name = "x".repeat(MAX_NAME + 1);
    let long_path = "x/".repeat(MAX_PATH);
    for (path, why) in [
        ("", "is empty"),
        ("a\0b", "NUL"),
        (&long_name, "a name of 256 bytes"),
        (&long_path, "8190 bytes long"),
        ("loop", "more than 40 links"),
        ("climb", "more than 40 links"),
        ("bytes", "not UTF-8"),
    ] {
        let error = refusal(&fixture, path);
        assert_eq!(error.code, ErrorCode::InvalidArgument, "{error}");
        assert!(error.text.contains(why), "{error}");
    }
}

#[test]
fn debug_names_the_folder() {
    let fixture = Fixture::new();
    let text = format!("{:?}", fixture.workspace);
    assert!(text.contains(fixture.workspace.path().to_str().unwrap()), "{text}");
}

#[test]
fn where_case_tells_nothing_a_file_has_the_name_that_is_listed() {
    let listed = |names: &[&str], name: &str| {
        as_listed(names.iter().map(|name| (*name).to_owned()), name.to_owned())
    };
    assert_eq!(listed(&["b", "Main.rs"], "MAIN.RS"), "Main.rs");
    assert_eq!(listed(&["Main.rs", "main.rs"], "main.rs"), "main.rs");
    assert_eq!(listed(&["Ärger"], "äRGER"), "Ärger");
    assert_eq!(listed(&["b"], "a"), "a");
    assert_eq!(in_other_case("Main.rs"), "MAIN.RS");
    assert_eq!(in_other_case("MAIN.RS"), "main.rs");
    // Two names of one file, where case does tell.
    let fixture = Fixture::new();
    fixture.put("dir/name", "");
    if fs::hard_link(fixture.path("dir/name"), fixture.path("dir/NAME")).is_ok() {
        assert_eq!(resolved(&fixture, "dir/NAME"), "dir/NAME");
    } else {
        eprintln!("here case tells nothing");
        assert_eq!(resolved(&fixture, "DIR/NAME"), "dir/name");
    }
    assert_eq!(resolved(&fixture, "dir/name"), "dir/name");
}
