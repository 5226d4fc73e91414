//! The speed of redaction against plain passes over the same needles, in one run.
//!
//! ```sh
//! cargo bench -p turnbuckle-diagnostics --features measure
//! ```

#![expect(clippy::print_stdout, reason = "what it prints is its result")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures the time of the machine")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use turnbuckle_diagnostics::{Redactor, SecretString};
use turnbuckle_errors::Redact as _;

/// Ordinary text, by what it is.
const TEXTS: &[(&str, &str)] = &[
    ("prose on keys", include_str!("../tests/innocent/prose.txt")),
    ("Rust source", include_str!("../src/redact/engine.rs")),
    ("logs on tokens", include_str!("../tests/innocent/logs_and_paths.txt")),
    ("lock files", include_str!("../tests/innocent/lock_files.txt")),
    ("a README", include_str!("../../../README.md")),
];

const SIZE: usize = 1 << 20;
const ROUNDS: usize = 40;

/// The best of several rounds for each, taken in turns, so that whatever else the
/// machine does disturbs all alike.
fn best<const N: usize>(mut runs: [&mut dyn FnMut() -> usize; N]) -> [Duration; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..ROUNDS {
        for (run, best) in runs.iter_mut().zip(&mut best) {
            let start = Instant::now();
            black_box(run());
            *best = start.elapsed().min(*best);
        }
    }
    best
}

fn main() {
    let secrets =
        ["correct-horse-battery-staple", "another-known-secret-0123456789", "p@ss/w0rd&more"];
    for (name, redactor) in [
        ("no known secret", Redactor::default()),
        ("three known secrets", Redactor::new(secrets.map(SecretString::from))),
    ] {
        println!("{name}");
        let known = || secrets.map(SecretString::from);
        let [build] = best([&mut || format!("{:?}", Redactor::new(known())).len()]);
        println!("  building one with three secrets: {build:?}");
        let (plain, same) = (redactor.plain_pass(false), redactor.plain_pass(true));
        for (what, text) in TEXTS {
            let text = text.repeat(SIZE / text.len());
            let [ours, plain, same] = best([
                &mut || redactor.redact(&text).len(),
                &mut || plain.count(&text),
                &mut || same.count(&text),
            ]);
            let speed = |time: Duration| text.len() as f64 / time.as_secs_f64() / 1e6;
            println!(
                "  {what:<16} {:6.0} MB/s; plain pass {:6.0} MB/s, ratio {:.2}; of our kind {:6.0} MB/s, ratio {:.2}",
                speed(ours),
                speed(plain),
                plain.as_secs_f64() / ours.as_secs_f64(),
                speed(same),
                same.as_secs_f64() / ours.as_secs_f64(),
            );
        }
    }
}
