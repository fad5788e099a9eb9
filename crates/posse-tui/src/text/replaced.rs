//! The change that a replacement of text makes, where the file around it is not known.

use posse_protocol::{DiffLine, FileDiff, Hunk, LineChange};

/// Returns the change from one text to another. Lines that both begin or end with are kept.
pub fn replaced(path: &str, old: &str, new: &str) -> FileDiff {
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
            old_start: 1,
            new_start: 1,
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
        let change = replaced("a.rs", "one\ntwo\nthree", "one\n2\n2.5\nthree");
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
        assert_eq!(replaced("a", "x", "").hunks[0].lines.len(), 1);
    }
}
