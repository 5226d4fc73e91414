//! The matrix as one page of HTML that needs nothing else, and as NDJSON.

use serde_json::{Value, json};
use turnbuckle_faults::catalogue;

use super::row::Row;

/// What the page shows in its head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) faults: usize,
    pub(super) variants: usize,
    pub(super) cells: usize,
    pub(super) failed: usize,
    pub(super) seconds: f64,
    pub(super) seed: u64,
}

impl Sums {
    pub(super) fn of(rows: &[Row], seconds: f64, seed: u64) -> Self {
        Self {
            faults: catalogue::all().len(),
            variants: catalogue::variants().len(),
            cells: rows.len(),
            failed: rows.iter().filter(|row| !row.holds()).count(),
            seconds,
            seed,
        }
    }

    /// As a person reads them.
    pub(super) fn line(self) -> String {
        let Self { faults, variants, cells, seconds, .. } = self;
        format!("{faults} faults, {variants} variants, {cells} cells, {seconds:.1} s")
    }

    /// As the last line of the NDJSON.
    pub(super) fn json(self) -> Value {
        json!({
            "type": "sum", "faults": self.faults, "variants": self.variants, "cells": self.cells,
            "passed": self.cells - self.failed.min(self.cells), "failed": self.failed,
            "seconds": (self.seconds * 10.0).round() / 10.0, "seed": self.seed,
        })
    }
}

/// One cell; with its logs only where they are to be looked at.
pub(super) fn cell(row: &Row, with_logs: bool) -> Value {
    let mut cell = json!({
        "type": "cell",
        "dialect": row.cell.dialect().name(),
        "fault": row.cell.entry.name,
        "variantOf": row.cell.entry.variant_of,
        "when": row.cell.when.to_string(),
        "phase": row.phase,
        "attempts": row.attempts,
        "outcome": row.outcome,
        "code": row.code,
        "ms": row.ms,
        "holds": row.holds(),
        "complaints": row.complaints,
        "path": row.path,
    });
    if let (true, Some(fields)) = (with_logs, cell.as_object_mut()) {
        fields.insert("events".to_owned(), json!(row.logs.events));
        fields.insert("requests".to_owned(), json!(row.logs.requests));
    }
    cell
}

/// The page. Everything it shows stands in it.
pub(super) fn html(sums: Sums, cells: &[Value], sentences: &Value) -> String {
    let data = json!({"sums": sums.json(), "cells": cells, "sentences": sentences}).to_string();
    // Nothing within the data can end the element that it stands in.
    let data = data.replace('<', "\\u003c");
    TEMPLATE.replace("{{data}}", &data)
}

const TEMPLATE: &str = include_str!("page/matrix.html");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_and_no_data_ends_its_element() {
        let sums = Sums { faults: 1, variants: 2, cells: 3, failed: 1, seconds: 0.54, seed: 7 };
        let cells = [json!({"complaints": ["</script><b>"]})];
        let page = html(sums, &cells, &json!({}));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("</script>").count(), TEMPLATE.matches("</script>").count());
        assert!(page.contains(r#""passed":2,"failed":1,"seconds":0.5,"seed":7"#), "{page}");
        assert!(!page.contains("{{"));
    }
}
