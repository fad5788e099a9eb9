//! Tables for people: no row is wider than the terminal, and the least important columns are
//! dropped first.

use posse_tui::text;

use super::transcript::fitted;

/// Maximum width of a column other than the last.
const WIDEST: usize = 28;
/// Width that the last column should have before another one is dropped for it.
const ROOM: usize = 20;

/// A column.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    /// Aligned to the right, for numbers.
    right: bool,
    /// 0 for a column that is always shown; the higher, the earlier it is dropped.
    spare: u8,
}

/// Returns a column that is always shown.
pub(crate) const fn needed(title: &'static str) -> Column {
    Column {
        title,
        right: false,
        spare: 0,
    }
}

/// Returns a column that a narrow terminal omits; the highest number is dropped first.
pub(crate) const fn spare(title: &'static str, spare: u8) -> Column {
    Column {
        title,
        right: false,
        spare,
    }
}

impl Column {
    /// Returns the column aligned to the right.
    pub(crate) const fn right(self) -> Self {
        Self {
            right: true,
            ..self
        }
    }
}

/// Returns a title row and a row for each of `rows`. The last column gets the rest of the width.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> String {
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = rows
                .iter()
                .filter_map(|row| row.get(at))
                .map(|cell| text::columns(cell));
            cells
                .chain([column.title.len()])
                .max()
                .unwrap_or_default()
                .min(WIDEST)
        })
        .collect();
    let shown = shown(columns, &widths, width);
    let line = |cells: &[&str]| {
        let mut line = String::new();
        for at in &shown {
            let cell = cells.get(*at).copied().unwrap_or_default();
            if *at + 1 == columns.len() {
                let room = width.map_or(usize::MAX, |width| {
                    width.saturating_sub(text::columns(&line))
                });
                line.push_str(&fitted(cell, room));
                break;
            }
            let cell = fitted(cell, widths[*at]);
            let blank = " ".repeat(widths[*at].saturating_sub(text::columns(&cell)));
            let (before, after) = if columns[*at].right {
                (blank, String::new())
            } else {
                (String::new(), blank)
            };
            line.push_str(&format!("{before}{cell}{after}  "));
        }
        format!("{}\n", fitted(line.trim_end(), width.unwrap_or(usize::MAX)))
    };
    let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
    let rows = rows
        .iter()
        .map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    [line(&titles)].into_iter().chain(rows).collect()
}

/// Returns the columns that fit.
fn shown(columns: &[Column], widths: &[usize], width: Option<usize>) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let Some(width) = width else { return shown };
    let last = columns.len().saturating_sub(1);
    loop {
        let taken: usize = shown
            .iter()
            .filter(|at| **at != last)
            .map(|at| widths[*at] + 2)
            .sum();
        let wanted = taken + widths.get(last).map_or(0, |width| (*width).min(ROOM));
        let least = shown
            .iter()
            .copied()
            .filter(|at| columns[*at].spare > 0)
            .max_by_key(|at| columns[*at].spare);
        match least {
            Some(least) if wanted > width => shown.retain(|at| *at != least),
            _ => return shown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        needed("ID").right(),
        spare("STATE", 1),
        spare("OWNER", 2),
        needed("SUBJECT"),
    ];

    #[test]
    fn what_is_least_needed_goes_first() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["1", "pending", "", "short"]),
            row([
                "12",
                "in_progress",
                "alice",
                "a subject that is much longer than the others 漢字",
            ]),
        ];
        assert_eq!(
            table(&COLUMNS, &rows[..1], None),
            "ID  STATE    OWNER  SUBJECT\n 1  pending         short\n"
        );
        let narrow = |width| table(&COLUMNS, &rows, Some(width));
        assert!(narrow(60).starts_with("ID  STATE        OWNER  SUBJECT\n"));
        assert!(
            narrow(40).starts_with("ID  STATE        SUBJECT\n"),
            "{}",
            narrow(40)
        );
        assert!(narrow(30).starts_with("ID  SUBJECT\n"));
        for width in 1..80 {
            assert!(
                narrow(width)
                    .lines()
                    .all(|line| text::columns(line) <= width),
                "{}",
                narrow(width)
            );
        }
    }
}
