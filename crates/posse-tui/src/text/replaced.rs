//! The change that a replacement of text makes, where the file around it is not known.

use posse_protocol::{DiffLine, FileDiff, Hunk, LineChange};

/// Number of lines that the Edit tool shows before a change.
const AROUND: usize = 2;

/// Returns the number of the line at which a change begins, from what the Edit tool answers: lines of
/// the file after the change, each with its number and a tab before it.
pub fn changed_line(answer: &str, new: &str) -> Option<u64> {
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
    lines.get(at).map(|(number, _)| *number)
}

/// Returns the change from one text to another, which begins at line `start`; none if that is not
/// known. Lines that both begin or end with are kept.
pub fn replaced(path: &str, old: &str, new: &str, start: Option<u64>) -> FileDiff {
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
            old_start: start.unwrap_or_default(),
            new_start: start.unwrap_or_default(),
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
        let change = replaced("a.rs", "one\ntwo\nthree", "one\n2\n2.5\nthree", Some(7));
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
        assert_eq!(change.hunks[0].new_start, 7);
        assert_eq!(replaced("a", "x", "", None).hunks[0].lines.len(), 1);
    }

    #[test]
    fn the_line_of_a_change_is_found_in_the_answer() {
        let deep =
            "edited a.rs:\n     3\tl3\n     4\tl4\n     5\t  x = 1;\n     6\ty\n     7\tl6\n";
        assert_eq!(changed_line(deep, "x = 1;\ny"), Some(5));
        assert_eq!(changed_line(deep, "l4"), None);
        let early = "edited a.rs:\n     1\tone\n     2\t2\n     3\tthree\n";
        assert_eq!(changed_line(early, "2"), Some(2));
        assert_eq!(changed_line(early, "one"), Some(1));
        assert_eq!(
            changed_line("edited a.rs: 3 occurrences replaced", "2"),
            None
        );
    }
}
