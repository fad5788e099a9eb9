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
    /// change, each with its number and a tab before it. None if several are possible. What its lines
    /// have around it is left out if that is not certain.
    pub fn of(answer: &'a str, new: &str) -> Option<Self> {
        let lines: Vec<(u64, &str)> = answer
            .lines()
            .filter_map(|line| {
                let (number, text) = line.split_once('\t')?;
                Some((number.trim().parse().ok()?, text))
            })
            .collect();
        // A change near the beginning has fewer lines before it.
        let places = match lines.first()? {
            (1, _) => 0..=AROUND,
            _ => AROUND..=AROUND,
        };
        let mut found = places.filter_map(|at| Self::at(lines.get(at..)?, new));
        let place = found.next()?;
        found.next().is_none().then_some(place)
    }

    /// Returns the place, if the new text may begin in the first of these lines.
    fn at(lines: &[(u64, &'a str)], new: &str) -> Option<Self> {
        let (line, first) = *lines.first()?;
        let Some((head, rest)) = new.split_once('\n') else {
            let mut places = first.match_indices(new);
            let (begin, _) = places.next()?;
            let is_certain = places.next().is_none() && !new.is_empty();
            let (before, after) = match is_certain {
                true => (first.get(..begin)?, first.get(begin + new.len()..)?),
                false => ("", ""),
            };
            return Some(Self {
                line,
                before,
                after,
            });
        };
        let mut after = "";
        for (new, (_, shown)) in rest.split('\n').zip(&lines[1..]) {
            after = shown.strip_prefix(new)?;
        }
        Some(Self {
            line,
            before: first.strip_suffix(head)?,
            after,
        })
    }
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

    /// Returns what is shown of a change that the Edit tool has made in lines 3 to 7 of a file.
    fn shown(line: &str, old: &str, new: &str) -> (u64, Vec<String>) {
        let answer = format!("edited a.rs:\n     3\tl3\n     4\tl4\n     5\t{line}\n     6\tl6\n");
        let change = replaced("a.rs", old, new, ChangedPlace::of(&answer, new));
        let hunk = &change.hunks[0];
        let lines = hunk.lines.iter().map(|line| line.text.clone());
        (hunk.new_start, lines.collect())
    }

    #[test]
    fn a_line_is_not_made_whole_where_several_places_are_possible() {
        let lines = |lines: [&str; 2]| lines.map(str::to_owned).to_vec();
        assert_eq!(
            shown("let x = (bar);", "foo", ""),
            (5, vec!["foo".to_owned()])
        );
        assert_eq!(shown("a = a", "b", "a"), (5, lines(["b", "a"])));
        assert_eq!(shown("a = 1", "2", "1"), (5, lines(["a = 2", "a = 1"])));
        // The first line of several ends with what the new text begins with.
        let answer =
            "edited a.rs:\n     3\tl3\n     4\tl4\n     5\ta = a\n     6\tb;\n     7\tl7\n";
        let place = ChangedPlace::of(answer, "a\nb");
        let expected = ChangedPlace {
            line: 5,
            before: "a = ",
            after: ";",
        };
        assert_eq!(place, Some(expected));
        // Near the beginning of a file more than one line may be the one.
        let early = "edited a.rs:\n     1\tx = 1\n     2\ty = 1\n     3\tz\n";
        assert_eq!(ChangedPlace::of(early, "1"), None);
        assert_eq!(ChangedPlace::of(early, ""), None);
    }
}
