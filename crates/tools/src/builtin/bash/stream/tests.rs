use super::{
    super::output::{fit, render},
    *,
};

fn shown(collector: Collector) -> String {
    let (mut stdout, mut stderr) = (collector.finish(), HeadTail::default());
    fit(&mut stdout, &mut stderr);
    render(&stdout, &stderr)
}

/// One stream rendered, pushed in chunks of `chunk` bytes.
fn rendered(bytes: &[u8], chunk: usize) -> String {
    let mut collector = Collector::default();
    bytes.chunks(chunk).for_each(|chunk| collector.push(chunk));
    shown(collector)
}

/// What a collector holds, in bytes.
fn held(collector: &Collector) -> usize {
    let segment =
        |segment: &Segment| segment.bytes.capacity() + segment.cuts.capacity() * size_of::<Cut>();
    collector.head.as_ref().map_or(0, segment)
        + segment(&collector.older)
        + segment(&collector.newer)
}

/// Far less than a flood, whatever its lines are like.
const BOUND: usize = 8 * SEGMENT;

#[test]
fn two_hundred_megabytes_are_swallowed_in_bounded_memory() {
    let line = b"short line\n";
    let piece = line.repeat(65_536 / line.len());
    let mut collector = Collector::default();
    let mut pushed = 0;
    while pushed < 200_000_000 {
        collector.push(&piece);
        pushed += piece.len();
        assert!(held(&collector) < BOUND);
    }
    collector.push(b"\x1b[31mthe end\x1b[0m");
    // Text is made of what is held only.
    let text = shown(collector);
    assert!(text.len() < 97 * 1024, "{}", text.len());
    assert!(text.starts_with("[stdout]\nshort line\n"));
    assert!(text.contains("short line\nthe end\n(to see"), "the tail is there");
    let shown = text.matches("short line\n").count();
    let omitted = pushed / line.len() - shown;
    let remark = format!("… ({omitted} lines, {} bytes left out here) …", omitted * line.len());
    assert!(text.contains(&remark), "{remark}");
}

#[test]
fn floods_without_line_breaks_and_of_empty_lines_are_bounded() {
    for (piece, told) in [
        (vec![b'x'; 65_536], "more bytes of this line"),
        (vec![b'\n'; 65_536], " bytes left out here"),
        (vec![b'\r'; 65_536], ""),
        (b"\x1b[0m".repeat(16_384), "more bytes of this line"),
        ("\u{1f600}\r".repeat(13_107).into_bytes(), " bytes left out here"),
        ([vec![b'x'; 32_768], vec![b'\n']].concat(), " bytes left out here"),
    ] {
        let mut collector = Collector::default();
        for _ in 0..200 {
            collector.push(&piece);
            assert!(held(&collector) < BOUND, "{}", held(&collector));
        }
        let text = shown(collector);
        assert!(text.len() < 97 * 1024, "{}", text.len());
        assert!(text.contains(told), "{}", text.chars().take(200).collect::<String>());
        assert!(!text.contains('\u{fffd}'), "a character was cut");
    }
}

#[test]
fn any_chunking_of_a_flood_gives_the_same_text() {
    let lines: String = (0..60_000)
        .map(|number| match number % 5 {
            0 => format!("\x1b[1;3{}mcolour {number}\x1b[0m\r\n", number % 8),
            1 => format!("{number}%\r"),
            2 => format!("gr\u{fc}n \u{1f600} {number}\n"),
            3 => "\r\n".to_owned(),
            _ => format!("{number}\n"),
        })
        .collect();
    let long = format!("{lines}{}\r\n{lines}", "\u{1f600}\x1b[0m".repeat(10_000));
    let whole = rendered(long.as_bytes(), long.len());
    assert!(whole.contains("bytes left out here") && !whole.contains(['\u{1b}', '\u{fffd}', '\r']));
    assert!(whole.starts_with("[stdout]\ncolour 0\n1%\ngr\u{fc}n \u{1f600} 2\n\n4\ncolour 5\n"));
    for chunk in [1, 2, 3, 1000, 4096, 16_000, 16_001, 65_536] {
        assert!(rendered(long.as_bytes(), chunk) == whole, "chunks of {chunk}");
    }
}

#[test]
fn every_line_of_a_dropped_boundary_is_whole() {
    // Lines whose breaks fall on every side of a segment's end.
    for shift in 0..12 {
        let lines = format!("{}\r\n{}", "x".repeat(shift), "0123456789\r\n".repeat(100_000));
        let text = rendered(lines.as_bytes(), 4096);
        let odd: Vec<&str> = text.lines().skip(2).filter(|line| *line != "0123456789").collect();
        assert_eq!(odd.len(), 2, "{odd:?}");
        assert!(odd[0].contains("left out here") && odd[1].starts_with("(to see"), "{odd:?}");
    }
}

#[test]
fn an_escape_that_is_split_by_the_cut_of_a_line_is_not_shown() {
    for shift in 0..8 {
        let begin = "y".repeat(shift);
        // Few characters in many bytes, so that the cut falls among the escapes.
        let line = format!("{begin}{}{}\nnext\n", "\x1b[38;5;200m".repeat(2000), "z".repeat(50));
        let text = rendered(line.as_bytes(), 4096);
        let more = line.len() - "\nnext\n".len() - LINE_BYTES;
        let expected = format!("[stdout]\n{begin} … ({more} more bytes of this line)\nnext\n");
        assert_eq!(text, expected);
    }
}

#[test]
fn a_long_line_keeps_its_begin_wherever_it_stands() {
    let line = format!("begin {}\n", "x".repeat(1_000_000));
    let lines = format!("{}{line}end\n", "short\n".repeat(200_000));
    let text = rendered(lines.as_bytes(), 65_536);
    assert!(text.contains("short\nbegin xxx"), "{}", text.len());
    assert!(text.contains("more characters of this line)"));
    assert!(
        text.contains(&format!("({} more bytes of this line)\nend\n", line.len() - 1 - LINE_BYTES))
    );
}
