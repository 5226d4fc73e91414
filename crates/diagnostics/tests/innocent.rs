//! Text without secrets comes through byte for byte: the files in `innocent/`.

use std::{fs, path::Path};

use turnbuckle_diagnostics::{Redactor, SecretString};
use turnbuckle_errors::Redact as _;

/// Every file, by name.
#[expect(clippy::unwrap_used, reason = "a test that cannot read its corpus has failed")]
fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/innocent");
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()))
        .collect();
    files.sort();
    assert!(files.len() >= 9, "only {} files", files.len());
    files
}

#[test]
fn every_line_of_the_corpus_stays_as_it_is() {
    let redactor = Redactor::new([SecretString::from("correct-horse-battery")]);
    let mut changed = Vec::new();
    for (name, text) in corpus() {
        for line in text.lines() {
            let masked = redactor.redact(line);
            if masked != line {
                changed.push(format!("{name}\n  was {line}\n  is  {masked}"));
            }
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn every_file_of_the_corpus_stays_as_it_is() {
    for (name, text) in corpus() {
        assert_eq!(Redactor::default().redact(&text), text, "{name}");
        // As `SafeText` asks for it: on one line.
        let line = text.replace('\n', " ");
        assert_eq!(Redactor::default().redact(&line), line, "{name}");
    }
}

#[test]
fn the_corpus_comes_through_a_stream_as_it_is() {
    for (name, text) in corpus() {
        for size in [1, 7, 64, 4096] {
            let mut stream = Redactor::default().stream();
            let mut shown = String::new();
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(size) {
                shown += &stream.feed(&piece.iter().collect::<String>());
            }
            shown += &stream.finish();
            assert_eq!(shown, text, "{name} in pieces of {size}");
        }
    }
}
