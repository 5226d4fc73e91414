//! The whole corpus of recorded answers, where there is one:
//! `TURNBUCKLE_CORPUS=DIR cargo test -p turnbuckle-providers --all-features -- --ignored`.

#![cfg(all(feature = "adapter", feature = "test-support"))]

use std::path::Path;

use turnbuckle_providers::conformance;

#[test]
#[ignore = "needs a corpus; its folder comes in TURNBUCKLE_CORPUS"]
fn the_recorded_answers_read_as_their_rows_expect() {
    let dir = std::env::var_os("TURNBUCKLE_CORPUS").expect("TURNBUCKLE_CORPUS names the corpus");
    for protocol in conformance::PROTOCOLS {
        let report = conformance::run(Path::new(&dir), protocol, 1).unwrap();
        for miss in &report.misses {
            println!("{} (lenient: {:?})", miss.file, miss.lenient);
            for difference in &miss.differences {
                println!("    {difference}");
            }
        }
        println!(
            "{protocol}: {} rows, {} matched; binding: {} of {}; {} truncations",
            report.rows,
            report.matched,
            report.binding_matched,
            report.binding_rows,
            report.truncations
        );
        assert!(report.rows > 0);
        assert!(report.binding_percent() >= 95.0, "{protocol}: {:.1} %", report.binding_percent());
    }
}
