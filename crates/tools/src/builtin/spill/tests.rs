use serde_json::json;

use super::*;
use crate::builtin::fixture::Fixture;

/// The path that a result names.
fn named(text: &str) -> &str {
    let (before, _) = text.split_once("` has ").expect("a file is named");
    before.rsplit('`').next().unwrap()
}

#[tokio::test]
async fn what_is_left_out_of_a_result_can_be_read() {
    let fixture = Fixture::new();
    let text = fixture.text("Bash", json!({"command": "seq 1 100000; echo oops >&2"})).await;
    assert!(text.contains(" bytes left out here) …\n"));
    let path = named(&text);
    assert!(
        text.ends_with(&format!("(of stdout `{path}` has all of it; Read it with an offset)\n"))
    );
    let whole: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(std::fs::read_to_string(path).unwrap(), whole);
    let read = fixture.text("Read", json!({"path": path, "offset": 50_000, "limit": 1})).await;
    assert!(read.starts_with(" 50000\t50000\n"), "{read}");
    assert_eq!(fixture.names(), [""; 0], "the workspace stays as it was");
}

#[tokio::test]
async fn a_result_of_many_short_lines_is_kept_as_well() {
    let fixture = Fixture::new();
    let text = fixture.text("Bash", json!({"command": "seq 1 5000 >&2"})).await;
    assert!(text.contains("(of stderr `"), "{text}");
    assert_eq!(std::fs::read_to_string(named(&text)).unwrap().lines().count(), 5000);
    let text = fixture.text("Bash", json!({"command": "seq 1 3000"})).await;
    assert!(!text.contains("` has "), "{text}");
}

#[tokio::test]
async fn the_files_go_with_the_session_and_nobody_else_may_look() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let text = fixture.text("Bash", json!({"command": "seq 1 5000"})).await;
    let folder = Path::new(named(&text)).parent().unwrap().to_path_buf();
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700);
    drop(fixture);
    assert!(!folder.exists());
}

#[tokio::test]
async fn only_the_newest_files_are_kept_and_no_path_leads_out() {
    let outputs = Arc::new(Outputs::default());
    let mut kept = Vec::new();
    for _ in 0..=KEPT_FILES {
        let mut spill = Spill::new(Arc::clone(&outputs));
        spill.push(b"text").await;
        kept.push(spill.keep().await.unwrap());
    }
    let exists = |text: &String| Path::new(named(text)).exists();
    let there: Vec<bool> = kept.iter().map(exists).collect();
    assert_eq!(there.iter().position(|there| *there), Some(1), "{there:?}");
    let path = named(&kept[1]);
    assert!(outputs.holding(path).is_some());
    assert!(outputs.holding("/etc/passwd").is_none() && outputs.holding("output-1.txt").is_none());
    let outside = format!("{}/../../etc/passwd", Path::new(path).parent().unwrap().display());
    assert!(outputs.holding(&outside).unwrap().resolve(&outside).is_err());
}

#[tokio::test]
async fn a_flood_is_kept_up_to_its_bound() {
    let mut spill = Spill::new(Arc::default());
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..65 {
        spill.push(&piece).await;
    }
    // The folder goes with the outputs, which are held here.
    let outputs = Arc::clone(&spill.outputs);
    let text = spill.keep().await.unwrap();
    assert!(text.ends_with("has its first 64 MiB"), "{text}");
    assert_eq!(std::fs::metadata(named(&text)).unwrap().len(), LARGEST as u64);
    drop(outputs);
}
