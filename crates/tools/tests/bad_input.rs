//! Every file tool with every kind of bad input: a typed error that names the fix,
//! soon, bounded, and with nothing changed.
#![cfg(feature = "builtin")]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::{
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, symlink},
        net::UnixListener,
    },
    path::Path,
    process::Command,
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use turnbuckle_errors::ErrorCode::{
    self, EditNoMatch, InvalidArgument, PathOutsideWorkspace, ToolFailed,
};
use turnbuckle_tools::{
    Tool, ToolContext, ToolError, ToolOutput,
    builtin::{self, Workspace},
};

const FILE_TOOLS: [&str; 5] = ["Read", "Write", "Edit", "Glob", "Grep"];
/// The longest error, in bytes.
const BOUNDED: usize = 16 * 1024;
/// Far longer than anything here takes on a busy machine, far shorter than a hang.
const PATIENCE: Duration = Duration::from_secs(120);

struct Stage {
    folder: TempDir,
    tools: Vec<Arc<dyn Tool>>,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("base");
        fs::create_dir_all(root.join("dir")).unwrap();
        fs::write(root.join("a.txt"), "text\n").unwrap();
        fs::write(folder.path().join("outside"), "text\n").unwrap();
        let tools = builtin::tools(&Workspace::open(&root).unwrap());
        Self { folder, tools }
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("base")
    }

    fn tool(&self, name: &str) -> &dyn Tool {
        &**self.tools.iter().find(|tool| tool.spec().name == name).unwrap()
    }

    async fn call(&self, name: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let run = async { self.tool(name).run(input, &ToolContext::default()).await };
        let result = tokio::time::timeout(PATIENCE, run).await.unwrap();
        if let Err(error) = &result {
            assert!(error.text.len() < BOUNDED, "{name}: {} bytes", error.text.len());
        }
        result
    }

    /// What is in the workspace: names, kinds, sizes, contents.
    fn state(&self) -> Vec<(String, u32, u64, Vec<u8>)> {
        let mut state = Vec::new();
        let mut folders = vec![self.root()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                let content =
                    if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                let name = path.to_string_lossy().into_owned();
                state.push((name, metadata.mode(), metadata.len(), content));
                if metadata.is_dir() {
                    folders.push(path);
                }
            }
        }
        state.sort();
        state
    }
}

/// A call that works, with this path.
fn valid(tool: &str, path: &str) -> Map<String, Value> {
    let input = match tool {
        "Read" => json!({ "path": path }),
        "Write" => json!({"path": path, "content": "new\n"}),
        "Edit" => json!({"path": path, "old_string": "text", "new_string": "new"}),
        "Glob" | "Grep" => json!({"path": path, "pattern": "t"}),
        _ => Value::Null,
    };
    input.as_object().unwrap().clone()
}

fn with(tool: &str, name: &str, value: Value) -> Value {
    let path = if tool == "Glob" { "dir" } else { "a.txt" };
    let mut input = valid(tool, path);
    input.insert(name.to_owned(), value);
    Value::Object(input)
}

/// The arguments of a tool by its schema: name, type, and whether it is required.
fn arguments(tool: &dyn Tool) -> Vec<(String, String, bool)> {
    let schema = &tool.spec().input_schema;
    let required: Vec<&str> =
        schema["required"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let properties = schema["properties"].as_object().unwrap();
    let kind = |schema: &Value| schema["type"].as_str().unwrap().to_owned();
    properties
        .iter()
        .map(|(name, schema)| (name.clone(), kind(schema), required.contains(&name.as_str())))
        .collect()
}

#[tokio::test]
async fn missing_extra_and_wrongly_typed_arguments_are_named() {
    let stage = Stage::new();
    let before = stage.state();
    let mut rows = 0;
    for name in FILE_TOOLS {
        let mut bad = vec![
            (with(name, "unknown", json!(1)), "there is no argument `unknown`".to_owned()),
            (json!([]), "must be one JSON object".to_owned()),
            (json!("a.txt"), "must be one JSON object".to_owned()),
            (Value::Null, "must be one JSON object".to_owned()),
            (json!({}), "is missing".to_owned()),
            (with(name, &"x".repeat(10_000_000), json!(1)), "there is no argument `xxx".to_owned()),
        ];
        for (argument, kind, required) in arguments(stage.tool(name)) {
            let wrong: &[Value] = match kind.as_str() {
                "string" => &[json!(1), json!(["a.txt"]), json!({}), json!(true)],
                "integer" => &[json!("1"), json!(-1), json!(1.5), json!(1e300), json!([1])],
                _ => &[json!("true"), json!(1), json!([])],
            };
            for value in wrong {
                bad.push((with(name, &argument, value.clone()), format!("`{argument}` must be a")));
            }
            if required {
                let mut input = with(name, &argument, Value::Null);
                bad.push((input.clone(), format!("`{argument}` must be a")));
                input.as_object_mut().unwrap().remove(&argument);
                bad.push((input, format!("`{argument}` is missing")));
            }
        }
        for (input, why) in bad {
            let error = stage.call(name, input).await.unwrap_err();
            assert_eq!(error.code, InvalidArgument, "{error}");
            assert!(error.text.contains(&why), "{why}: {error}");
            assert!(error.text.contains("; the arguments are `"), "the fix: {error}");
            rows += 1;
        }
    }
    assert_eq!(stage.state(), before);
    println!("counted: {rows} bad inputs of file tools");
}

#[tokio::test]
async fn empty_huge_and_nul_holding_arguments_work_or_are_refused_with_the_fix() {
    let stage = Stage::new();
    let huge = "x".repeat(10_000_000);
    let nul = "te\0xt".to_owned();
    let mut rows = 0;
    for (name, argument, empty, nul_code, huge_code) in [
        ("Read", "path", Some(InvalidArgument), Some(InvalidArgument), Some(InvalidArgument)),
        ("Write", "path", Some(InvalidArgument), Some(InvalidArgument), Some(InvalidArgument)),
        ("Write", "content", None, Some(InvalidArgument), None),
        ("Edit", "path", Some(InvalidArgument), Some(InvalidArgument), Some(InvalidArgument)),
        ("Edit", "old_string", Some(InvalidArgument), Some(InvalidArgument), Some(EditNoMatch)),
        ("Edit", "new_string", None, Some(InvalidArgument), None),
        ("Glob", "path", Some(InvalidArgument), Some(InvalidArgument), Some(InvalidArgument)),
        ("Glob", "pattern", Some(InvalidArgument), Some(InvalidArgument), Some(InvalidArgument)),
        ("Grep", "path", Some(InvalidArgument), Some(InvalidArgument), Some(InvalidArgument)),
        ("Grep", "pattern", Some(InvalidArgument), Some(InvalidArgument), Some(InvalidArgument)),
        ("Grep", "include", Some(InvalidArgument), Some(InvalidArgument), Some(InvalidArgument)),
        (
            "Grep",
            "output_mode",
            Some(InvalidArgument),
            Some(InvalidArgument),
            Some(InvalidArgument),
        ),
    ] {
        for (value, code) in [("", empty), (&nul, nul_code), (&huge, huge_code)] {
            fs::write(stage.root().join("a.txt"), "text\n").unwrap();
            stage.call("Read", json!({"path": "a.txt"})).await.unwrap();
            let before = stage.state();
            let result = stage.call(name, with(name, argument, json!(value))).await;
            let label = format!("{name} {argument} of {} bytes", value.len());
            assert_eq!(result.as_ref().err().map(|error| error.code), code, "{label}: {result:?}");
            if let Err(error) = result {
                assert!(error.text.contains(argument), "{label}: {error}");
                assert!(error.text.contains("; ") || error.text.contains("\nRead"), "{error}");
                assert_eq!(stage.state(), before, "{label}");
            }
            rows += 1;
        }
    }
    println!("counted: {rows} bad inputs of file tools");
}

/// What one path does to Read, Write, Edit, Glob and Grep.
struct Row {
    path: String,
    codes: [Option<ErrorCode>; 5],
    /// What the errors of Read, Write and Edit say.
    fix: &'static str,
}

fn make(program: &str, path: &Path, args: &[&str]) -> bool {
    let made = Command::new(program).arg(path).args(args).output();
    made.is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn strange_paths_are_refused_with_the_fix_and_never_hang() {
    let stage = Stage::new();
    let root = stage.root();
    let outside = stage.folder.path().join("outside");
    symlink(&outside, root.join("leak")).unwrap();
    symlink(stage.folder.path(), root.join("way out")).unwrap();
    symlink("../nowhere", root.join("dangling")).unwrap();
    symlink("loop b", root.join("loop a")).unwrap();
    symlink("loop a", root.join("loop b")).unwrap();
    symlink("/dev/zero", root.join("zero")).unwrap();
    symlink(std::ffi::OsStr::from_bytes(b"gr\xfcn"), root.join("foreign")).unwrap();
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"gr\xfcn")), "text\n").unwrap();
    assert!(make("mkfifo", &root.join("pipe"), &[]));
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    let device = make("mknod", &root.join("device"), &["c", "1", "5"]);
    let all = |code| [Some(code); 5];
    let row = |path: &str, codes, fix| Row { path: path.to_owned(), codes, fix };
    let mut rows = vec![
        row(outside.to_str().unwrap(), all(PathOutsideWorkspace), "use a path inside it"),
        row("..", all(PathOutsideWorkspace), "use a path inside it"),
        row("../outside", all(PathOutsideWorkspace), "use a path inside it"),
        row("dir/../../outside", all(PathOutsideWorkspace), "use a path inside it"),
        row("leak", all(PathOutsideWorkspace), "use a path inside it"),
        row("way out/outside", all(PathOutsideWorkspace), "use a path inside it"),
        row("dangling", all(PathOutsideWorkspace), "use a path inside it"),
        row("zero", all(PathOutsideWorkspace), "use a path inside it"),
        row("/dev/zero", all(PathOutsideWorkspace), "use a path inside it"),
        row("loop a", all(InvalidArgument), "in a circle; name the file itself"),
        row("pipe", all(InvalidArgument), "name a regular file"),
        row("socket", all(InvalidArgument), "name a regular file"),
        row("foreign", all(InvalidArgument), "rename the file it points to"),
        row("a.txt/below", all(InvalidArgument), "correct the path"),
        row(&"n".repeat(4096), all(InvalidArgument), "shorten it"),
        row(&"d/".repeat(2048), all(InvalidArgument), "shorten it"),
        Row {
            path: "dir".to_owned(),
            codes: [
                Some(InvalidArgument),
                Some(InvalidArgument),
                Some(InvalidArgument),
                None,
                None,
            ],
            fix: "name a file in it",
        },
        // A name of its own where case matters: near names are named.
        Row {
            path: "A.TXT".to_owned(),
            codes: [Some(ToolFailed), None, Some(ToolFailed), Some(ToolFailed), Some(ToolFailed)],
            fix: "near names there: `a.txt`",
        },
    ];
    if device {
        rows.push(row("device", all(InvalidArgument), "name a regular file"));
    } else {
        eprintln!("skipped: only root can make a device");
    }
    if fs::metadata(root.join("A.TXT")).is_ok() {
        eprintln!("skipped: here case makes no other name");
        rows.retain(|row| row.path != "A.TXT");
    }
    let mut count = 0;
    for Row { path, codes, fix } in rows {
        for (name, code) in FILE_TOOLS.into_iter().zip(codes) {
            let before = stage.state();
            let result = stage.call(name, Value::Object(valid(name, &path))).await;
            let short: String = path.chars().take(40).collect();
            let label = format!("{name} {short}");
            assert_eq!(result.as_ref().err().map(|error| error.code), code, "{label}: {result:?}");
            if let Err(error) = result {
                assert!(error.text.contains(fix), "{label}: {error}");
                assert_eq!(stage.state(), before, "{label}");
            } else if name == "Write" {
                fs::remove_file(root.join(&path)).unwrap();
            }
            count += 1;
        }
    }
    assert_eq!(fs::read_to_string(outside).unwrap(), "text\n");
    println!("counted: {count} bad inputs of file tools");
}

#[tokio::test]
async fn a_file_that_changes_or_disappears_after_the_read_is_told_so() {
    let stage = Stage::new();
    let path = stage.root().join("a.txt");
    let edit = || stage.call("Edit", Value::Object(valid("Edit", "a.txt")));
    let write = || stage.call("Write", Value::Object(valid("Write", "a.txt")));
    let read = || stage.call("Read", json!({"path": "a.txt"}));

    read().await.unwrap();
    fs::write(&path, "other\n").unwrap();
    let error = edit().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EditStale, "{error}");
    assert!(error.text.contains("     1\tother\n") && error.text.contains("Read it again"));
    let error = write().await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EditStale, "{error}");
    assert!(error.text.contains("-text\n+other\n"), "{error}");

    fs::remove_file(&path).unwrap();
    let error = edit().await.unwrap_err();
    assert_eq!(error.code, ToolFailed, "{error}");
    assert!(error.text.contains("it was removed or renamed since you saw it"), "{error}");
    let text = write().await.unwrap().text;
    assert_eq!(text, "created `a.txt` (1 line, 4 bytes; it was gone since you saw it)");

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(edit().await.unwrap_err().code, InvalidArgument);
    fs::remove_dir(&path).unwrap();
    assert!(make("mkfifo", &path, &[]));
    assert_eq!(edit().await.unwrap_err().code, InvalidArgument);
    assert_eq!(write().await.unwrap_err().code, InvalidArgument);
    // A touched file is the same file.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "text\n").unwrap();
    read().await.unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    let text = edit().await.unwrap().text;
    assert_eq!(text, "edited `a.txt`: replaced 1 place, at line 1");
}
