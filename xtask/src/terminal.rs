//! Printing. A reader that went away (`| head`) is no error.

use std::{
    fmt::Display,
    io::{self, Write as _},
};

/// One line on standard output.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// The beginning of a line on standard output, shown at once.
pub(crate) fn begin(text: impl Display) {
    let mut out = io::stdout().lock();
    let _ = write!(out, "{text}");
    let _ = out.flush();
}

/// One line on standard error.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Rows with aligned columns, the first row being the head. The last column is
/// not padded.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["fault", "ok"], ["é", "yes"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows), "fault  ok\né      yes");
    }
}
