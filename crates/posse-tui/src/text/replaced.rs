//! The change that a replacement of text makes, where the file around it is not known.

use posse_protocol::{DiffLine, FileDiff, Hunk, LineChange};

/// Number of lines that the Edit tool shows before a change.
const AROUND: usize = 2;

/// Where a change is in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedPlace<'a> {
    /// The number of the line at which it begins.
    line: u64,
    /// What its first line has before it.
    before: &'a str,
    /// What its last line has after it.
    after: &'a str,
}

impl<'a> ChangedPlace<'a> {
    /// Returns the place of a new text in what the Edit tool answers: lines of the file after the
    /// change, each with its number and a tab before it.
    pub fn of(answer: &'a str, new: &str) -> Option<Self> {
        let (lines, at) = changed_lines(answer, new)?;
        let (line, first) = lines.get(at)?;
        let begin = first.find(new.split('\n').next()?)?;
        let (before, rest) = first.split_at(begin);
        let after = match new.rsplit_once('\n') {
            None => rest.get(new.len()..)?,
            Some((most, last)) => {
                let rows = most.split('\n').count();
                let shown = lines.get(at + rows).map(|(_, shown)| *shown);
                shown
                    .and_then(|shown| shown.strip_prefix(last))
                    .unwrap_or_default()
            }
        };
        Some(Self {
            line: *line,
            before,
            after,
        })
    }
}

/// Lines with their numbers, and the place of one among them.
type LinesAndPlace<'a> = (Vec<(u64, &'a str)>, usize);

/// Returns the lines of an answer, and the one at which the new text begins.
fn changed_lines<'a>(answer: &'a str, new: &str) -> Option<LinesAndPlace<'a>> {
    let lines: Vec<(u64, &str)> = answer
        .lines()
        .filter_map(|line| {
            let (number, text) = line.split_once('\t')?;
            Some((number.trim().parse().ok()?, text))
        })
        .collect();
    let new: Vec<&str> = new.split('\n').collect();
    let (first, rest) = new.split_first()?;
    let is_there = |at: &usize| {
        let shown = lines.get(*at..).unwrap_or_default();
        let follows = rest.iter().zip(shown.iter().skip(1));
        let mut follows = follows.map(|(new, (_, shown))| shown.starts_with(new));
        shown
            .first()
            .is_some_and(|(_, shown)| shown.contains(first))
            && follows.all(|same| same)
    };
    // A change near the beginning has fewer lines before it.
    let places = match lines.first()? {
        (1, _) => 0..=AROUND,
        _ => AROUND..=AROUND,
    };
    let at = places.into_iter().find(is_there)?;
    Some((lines, at))
}

/// Returns the change from one text to another, in whole lines if its place is known. Lines that both
/// begin or end with are kept.
pub fn replaced(path: &str, old: &str, new: &str, place: Option<ChangedPlace<'_>>) -> FileDiff {
    let ChangedPlace {
        line: start,
        before,
        after,
    } = place.unwrap_or_default();
    let whole = |text: &str| format!("{before}{text}{after}");
    let (old, new) = (whole(old), whole(new));
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = tail.take_while(same).count();
    let (gone, come) = (
        &old_rest[..old_rest.len() - tail],
        &new_rest[..new_rest.len() - tail],
    );
    let line = |change: LineChange| {
        move |text: &&str| DiffLine {
            change,
            text: (*text).to_owned(),
            is_open: false,
        }
    };
    let kept = line(LineChange::Kept);
    let mut lines: Vec<DiffLine> = old[..head].iter().map(kept).collect();
    lines.extend(gone.iter().map(line(LineChange::Removed)));
    lines.extend(come.iter().map(line(LineChange::Added)));
    lines.extend(old[old.len() - tail..].iter().map(kept));
    FileDiff {
        path: path.to_owned(),
        is_new: false,
        added: come.len() as u64,
        removed: gone.len() as u64,
        hunks: vec![Hunk {
            old_start: start,
            new_start: start,
            lines,
        }],
        left_out: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_changed() {
        let change = replaced("a.rs", "one\ntwo\nthree", "one\n2\n2.5\nthree", None);
        let lines: Vec<_> = change.hunks[0]
            .lines
            .iter()
            .map(|line| (line.change, line.text.as_str()))
            .collect();
        use LineChange::{Added, Kept, Removed};
        let expected = [
            (Kept, "one"),
            (Removed, "two"),
            (Added, "2"),
            (Added, "2.5"),
            (Kept, "three"),
        ];
        assert_eq!(lines, expected);
        assert_eq!((change.added, change.removed), (2, 1));
        assert_eq!(replaced("a", "x", "", None).hunks[0].lines.len(), 1);
    }

    #[test]
    fn the_place_of_a_change_is_found_in_the_answer() {
        let deep =
            "edited a.rs:\n     3\tl3\n     4\tl4\n     5\t  x = 1;\n     6\ty += 1\n     7\tl6\n";
        let place = |line, before, after| {
            Some(ChangedPlace {
                line,
                before,
                after,
            })
        };
        let found = ChangedPlace::of(deep, "x = 1;\ny");
        assert_eq!(found, place(5, "  ", " += 1"));
        assert_eq!(ChangedPlace::of(deep, "l4"), None);
        let early = "edited a.rs:\n     1\tone\n     2\ta 2 b\n     3\tthree\n";
        assert_eq!(ChangedPlace::of(early, "2"), place(2, "a ", " b"));
        assert_eq!(ChangedPlace::of(early, "one"), place(1, "", ""));
        let many = "edited a.rs: 3 occurrences replaced";
        assert_eq!(ChangedPlace::of(many, "2"), None);
    }

    #[test]
    fn a_change_within_a_line_is_shown_as_whole_lines() {
        let answer = "edited add.sh:\n     1\t#!/bin/sh\n     2\techo $(($1 + $2))\n";
        let place = ChangedPlace::of(answer, "$1 + $2");
        let change = replaced("add.sh", "$1 - $2", "$1 + $2", place);
        let lines: Vec<&str> = change.hunks[0]
            .lines
            .iter()
            .map(|line| line.text.as_str())
            .collect();
        assert_eq!(lines, ["echo $(($1 - $2))", "echo $(($1 + $2))"]);
        assert_eq!(change.hunks[0].new_start, 2);
    }
}
