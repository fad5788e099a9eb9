//! The change of a file, as lines with numbers.

use posse_protocol::{DiffLine, FileDiff, Hunk, LineChange};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::tame::one_line;
use crate::theme::ColorRole;

/// Columns that a line number takes at least.
const NUMBER_COLUMNS: usize = 4;

/// Returns a number of lines for people: `1 line`, `2 lines`.
pub(crate) fn line_count(count: u64) -> String {
    match count {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

/// Returns the file that a change is about, and how many lines it adds and removes.
pub fn changed_file(change: &FileDiff) -> Line<'static> {
    let path = one_line(&change.path);
    let counts = match change.is_new {
        true => format!("  new, {}", line_count(change.added)),
        false => format!("  +{} −{}", change.added, change.removed),
    };
    Line::from(vec![
        Span::raw(path),
        Span::styled(counts, Style::new().dim()),
    ])
}

/// Returns at most `max_lines` lines that show a change, and one that says how many more there are.
///
/// Each line of the file is one line, however long it is. A hunk that begins at line 0 is somewhere
/// in the file, and has no numbers.
pub fn diff(change: &FileDiff, max_lines: usize) -> Vec<Line<'static>> {
    let columns = number_columns(change);
    let mut lines = Vec::new();
    let mut hidden = change.left_out;
    for (index, hunk) in change.hunks.iter().enumerate() {
        if index > 0 && lines.len() < max_lines {
            lines.push(gap(columns));
        }
        let is_placed = hunk.new_start > 0 || hunk.old_start > 0;
        for (number, line) in numbered(hunk) {
            let number = is_placed.then_some(number);
            if lines.len() < max_lines {
                lines.push(diff_line(line, number, columns));
            } else {
                hidden += 1;
            }
        }
    }
    if hidden > 0 {
        lines.push(more_lines(hidden));
    }
    lines
}

/// Returns only the lines that come and go.
pub(crate) fn changed_lines(change: &FileDiff) -> Vec<Line<'static>> {
    let columns = number_columns(change);
    let mut lines = Vec::new();
    for hunk in &change.hunks {
        let is_placed = hunk.new_start > 0 || hunk.old_start > 0;
        let changed = numbered(hunk).filter(|(_, line)| line.change != LineChange::Kept);
        lines.extend(changed.map(|(number, line)| {
            let number = is_placed.then_some(number);
            diff_line(line, number, columns)
        }));
    }
    lines
}

/// Returns the line between two places of a file.
pub(crate) fn gap(columns: usize) -> Line<'static> {
    let mark = format!("{:>columns$}", "⋮");
    Line::from(Span::styled(mark, Style::new().dim()))
}

/// Returns the line that says how many are not shown.
pub(crate) fn more_lines(count: u64) -> Line<'static> {
    let noun = if count == 1 { "line" } else { "lines" };
    let text = format!("… {count} more {noun}");
    Line::from(Span::styled(text, Style::new().dim()))
}

/// Returns the lines of a hunk, removed ones with their old number and others with their new one.
pub(crate) fn numbered(hunk: &Hunk) -> impl Iterator<Item = (u64, &DiffLine)> {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    hunk.lines.iter().map(move |line| {
        let number = match line.change {
            LineChange::Removed => old,
            LineChange::Kept | LineChange::Added => new,
        };
        if line.change != LineChange::Added {
            old = old.saturating_add(1);
        }
        if line.change != LineChange::Removed {
            new = new.saturating_add(1);
        }
        (number, line)
    })
}

/// Returns a line of a change. Its number takes this many columns.
pub(crate) fn diff_line(line: &DiffLine, number: Option<u64>, columns: usize) -> Line<'static> {
    let number = number.map(|number| number.to_string()).unwrap_or_default();
    let (mark, style) = match line.change {
        LineChange::Kept => (' ', Style::new().dim()),
        LineChange::Removed => ('-', ColorRole::Removed.style()),
        LineChange::Added => ('+', ColorRole::Added.style()),
    };
    let text = format!("{mark}{}", one_line(&line.text));
    let mut spans = vec![
        Span::styled(format!("{number:>columns$} "), Style::new().dim()),
        Span::styled(text, style),
    ];
    if line.is_open {
        spans.push(Span::styled(
            " (no newline at end of file)",
            Style::new().dim(),
        ));
    }
    Line::from(spans)
}

/// Returns the columns of the longest line number.
pub(crate) fn number_columns(change: &FileDiff) -> usize {
    let last = change.hunks.iter().map(|hunk| {
        let start = hunk.old_start.max(hunk.new_start);
        start.saturating_add(hunk.lines.len() as u64)
    });
    let digits = last.max().unwrap_or(0).to_string().len();
    digits.max(NUMBER_COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(change: LineChange, text: &str) -> DiffLine {
        let text = text.to_owned();
        let is_open = false;
        DiffLine {
            change,
            text,
            is_open,
        }
    }

    fn example() -> FileDiff {
        use LineChange::{Added, Kept, Removed};
        let first = vec![
            line(Kept, "fn main() {"),
            line(Removed, "    let n = 1;"),
            line(Added, "\tlet n = \u{1b}[2J;"),
            line(Added, "    let m = 3;"),
            line(Kept, "}"),
        ];
        let mut last = line(Added, "end");
        last.is_open = true;
        FileDiff {
            path: "a.rs".to_owned(),
            is_new: false,
            added: 3,
            removed: 1,
            hunks: vec![
                Hunk {
                    old_start: 40,
                    new_start: 40,
                    lines: first,
                },
                Hunk {
                    old_start: 90,
                    new_start: 91,
                    lines: vec![last],
                },
            ],
            left_out: 0,
        }
    }

    fn shown(change: &FileDiff, max_lines: usize) -> Vec<String> {
        let lines = diff(change, max_lines);
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn shows_numbers_and_marks() {
        let expected = [
            "  40  fn main() {",
            "  41 -    let n = 1;",
            "  41 +    let n = \\u{1b}[2J;",
            "  42 +    let m = 3;",
            "  43  }",
            "   ⋮",
            "  91 +end (no newline at end of file)",
        ];
        assert_eq!(shown(&example(), 100), expected);
        let lines = diff(&example(), 3);
        let colours: Vec<_> = lines[..3].iter().map(|line| line.spans[1].style).collect();
        let (removed, added) = (ColorRole::Removed.style(), ColorRole::Added.style());
        assert_eq!(colours, [Style::new().dim(), removed, added]);
    }

    #[test]
    fn lines_that_stay_can_be_left_out() {
        let lines = changed_lines(&example());
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let expected = [
            "  41 -    let n = 1;",
            "  41 +    let n = \\u{1b}[2J;",
            "  42 +    let m = 3;",
            "  91 +end (no newline at end of file)",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn says_how_many_lines_are_hidden() {
        let mut change = example();
        assert_eq!(shown(&change, 5)[5..], ["… 1 more line"]);
        change.left_out = 10;
        assert_eq!(shown(&change, 2)[2..], ["… 14 more lines"]);
        assert_eq!(shown(&change, 0), ["… 16 more lines"]);
    }
}
