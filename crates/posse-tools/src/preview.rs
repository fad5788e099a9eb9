//! The change that a call would make to a file, for the person who is asked about it.

use std::io::Read as _;
use std::time::Duration;

use posse_port::tool::{ToolError, Workspace};
use posse_protocol::{DiffLine, Display, FileDiff, Hunk, LineChange};
use similar::{Algorithm, ChangeTag, TextDiff};

use crate::answer::{count, shown};
use crate::rooted_fs::{Access, RootedPath};

/// The largest file that is compared.
const MOST_BYTES: u64 = 1 << 20;
/// Number of bytes of a change that are shown.
const SHOWN_BYTES: usize = 64 << 10;
/// Number of bytes of a line that are shown.
const LINE_BYTES: usize = 2 << 10;
/// Number of lines shown around a change.
const AROUND: usize = 3;
/// Time after which a coarser comparison has to do.
const PATIENCE: Duration = Duration::from_millis(100);

/// Returns the change of a file to what `change` makes of its content, which is `None` if there is
/// no file; an error says why the call would fail.
pub(crate) fn of_change(
    path: &str,
    workspace: &Workspace,
    change: impl FnOnce(Option<&[u8]>) -> Result<Vec<u8>, ToolError>,
) -> Option<Display> {
    let place = RootedPath::find(path, Access::Write, workspace).ok()?;
    let name = shown(&place.named, workspace);
    let text = |text: String| Some(Display::Text { text });
    let too_long = |content: &[u8]| content.len() as u64 > MOST_BYTES;
    let old = match place.open().ok()? {
        Some((file, _)) => {
            let mut content = Vec::new();
            file.take(MOST_BYTES + 1).read_to_end(&mut content).ok()?;
            Some(content)
        }
        None => None,
    };
    if old.as_deref().is_some_and(too_long) {
        return text(format!("{name} is too long to show what changes in it"));
    }
    let new = match change(old.as_deref()) {
        Ok(new) => new,
        Err(why) => return text(format!("{name} would not change: {why}")),
    };
    let (from, to) = (old.as_deref().unwrap_or_default(), new.as_slice());
    match (std::str::from_utf8(from), std::str::from_utf8(to)) {
        _ if too_long(to) => text(format!(
            "{name} would have {}, which is too long to show",
            count(to.len(), "byte")
        )),
        (Ok(from), Ok(to)) => Some(Display::Diff(compare(name, old.is_none(), from, to))),
        _ => text(format!(
            "{name} is not text; it would have {} instead of {}",
            count(to.len(), "byte"),
            count(from.len(), "byte")
        )),
    }
}

/// Compares two contents of a file, line by line.
fn compare(path: String, is_new: bool, old: &str, new: &str) -> FileDiff {
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(PATIENCE)
        .diff_lines(old, new);
    let mut out = FileDiff {
        path,
        is_new,
        added: 0,
        removed: 0,
        hunks: Vec::new(),
        left_out: 0,
    };
    let mut room = SHOWN_BYTES;
    for group in diff.grouped_ops(AROUND) {
        let Some(first) = group.first() else {
            continue;
        };
        let line_number = |index: usize| index as u64 + 1;
        let mut hunk = Hunk {
            old_start: line_number(first.old_range().start),
            new_start: line_number(first.new_range().start),
            lines: Vec::new(),
        };
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = DiffLine {
                change: match change.tag() {
                    ChangeTag::Equal => LineChange::Kept,
                    ChangeTag::Delete => LineChange::Removed,
                    ChangeTag::Insert => LineChange::Added,
                },
                text: short(change.value().strip_suffix('\n').unwrap_or(change.value())),
                is_open: change.missing_newline(),
            };
            match line.change {
                LineChange::Kept => {}
                LineChange::Removed => out.removed += 1,
                LineChange::Added => out.added += 1,
            }
            // What follows a line that has no room is left out, too: a hunk has no gaps.
            match room.checked_sub(line.text.len() + 1) {
                Some(rest) if out.left_out == 0 => {
                    room = rest;
                    hunk.lines.push(line);
                }
                _ => out.left_out += 1,
            }
        }
        if !hunk.lines.is_empty() {
            out.hunks.push(hunk);
        }
    }
    out
}

/// Returns a line, or the beginning of a long one and how much of it is not shown.
pub(crate) fn short(line: &str) -> String {
    if line.len() <= LINE_BYTES {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(LINE_BYTES);
    let rest = count(line.len() - start, "byte");
    format!("{}… ({rest} of this line not shown)", &line[..start])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(old: &str, new: &str) -> String {
        compare("f".into(), false, old, new).to_string()
    }

    // proves QU-06 (part: the change)
    #[test]
    fn a_change_is_shown_with_what_stands_around_it() {
        let old: String = (1..=20).map(|n| format!("l{n}\n")).collect();
        let new = old.replace("l3\n", "x\ny\n").replace("l19\n", "");
        let expected = "--- f\n+++ f\n@@ -1,6 +1,7 @@\n l1\n l2\n-l3\n+x\n+y\n l4\n l5\n l6\n\
                        @@ -16,5 +17,4 @@\n l16\n l17\n l18\n-l19\n l20\n";
        assert_eq!(text(&old, &new), expected);
        assert_eq!(
            text("a", "a\n"),
            "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"
        );
        let created = compare("f".into(), true, "", "a\nb\n");
        assert_eq!(
            created.to_string(),
            "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
        assert_eq!((created.added, created.removed), (2, 0));
        assert_eq!(text("a\n", "a\n"), "--- f\n+++ f\n");
    }

    // proves QU-06 (part: its length)
    #[test]
    fn a_long_change_is_cut_and_says_so() {
        let new: String = (0..40_000).map(|n| format!("{n}\n")).collect();
        let diff = compare("f".into(), true, "", &new);
        let shown = diff.to_string();
        assert!(
            shown.len() < SHOWN_BYTES + LINE_BYTES * 10,
            "{}",
            shown.len()
        );
        let lines = diff.hunks.iter().map(|hunk| hunk.lines.len() as u64);
        assert_eq!(
            (diff.added, lines.sum::<u64>() + diff.left_out),
            (40_000, 40_000)
        );
        let last = format!("… {} more lines are not shown\n", diff.left_out);
        assert!(shown.ends_with(&last), "{shown}");
        let long = "ä".repeat(LINE_BYTES);
        let line = &compare("f".into(), true, "", &long).hunks[0].lines[0].text;
        assert!(
            line.ends_with("… (2048 bytes of this line not shown)"),
            "{line}"
        );
    }
}
