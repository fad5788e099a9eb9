//! What `git diff --numstat --patch -z` says.

use posse_protocol::{DiffLine, FileDiff, Hunk, LineChange};

use super::{ChangedFile, WorktreeDiff};
use crate::preview::short;

/// Number of files that are told by name.
const MOST_FILES: usize = 1_000;
/// Number of lines of all files together.
const MOST_LINES: usize = 20_000;

/// What is noted of a file that is gone.
const DELETED: &str = "deleted";

/// How much of a file differs. None if it is not compared by lines.
pub(super) struct FileNumbers<'a> {
    pub(super) added: Option<u64>,
    pub(super) removed: Option<u64>,
    path: &'a [u8],
}

/// Returns how much of each file differs, and what follows.
pub(super) fn numbers(printed: &[u8]) -> (Vec<FileNumbers<'_>>, &[u8]) {
    let mut files = Vec::new();
    let mut rest = printed;
    while let Some(end) = memchr::memchr(0, rest) {
        let (record, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        let mut fields = record.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            // An empty one stands before the lines.
            break;
        };
        files.push(FileNumbers {
            added: number(added),
            removed: number(removed),
            path,
        });
    }
    (files, rest)
}

fn number(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Returns all that is said. The lines may end anywhere: what is missing then is counted.
pub(super) fn parse(printed: &[u8]) -> WorktreeDiff {
    let (numbers, patch) = numbers(printed);
    let mut files: Vec<ChangedFile> = numbers.iter().take(MOST_FILES).map(without_lines).collect();
    let mut lines = PatchLines {
        rest: patch,
        room: MOST_LINES,
    };
    // The files have the same order twice. One that is another kind of file now has two parts.
    let (mut header, mut number): (&[u8], usize) = (b"", 0);
    while let Some(line) = lines.next() {
        if line.starts_with(b"diff --git ") {
            number += usize::from(line != header);
            header = line;
            continue;
        }
        let Some(file) = number.checked_sub(1).and_then(|at| files.get_mut(at)) else {
            continue;
        };
        if line.starts_with(b"@@ ") {
            file.change.hunks.extend(lines.hunk(line));
        } else {
            note(file, line);
        }
    }
    for file in &mut files {
        let shown = file.change.hunks.iter().flat_map(|hunk| &hunk.lines);
        let shown = shown.filter(|line| line.change != LineChange::Kept).count() as u64;
        let all = file.change.added + file.change.removed;
        file.change.left_out = all.saturating_sub(shown);
    }
    WorktreeDiff {
        left_out: (numbers.len() - files.len()) as u64,
        files,
    }
}

fn without_lines(numbers: &FileNumbers<'_>) -> ChangedFile {
    let is_text = numbers.added.is_some();
    ChangedFile {
        change: FileDiff {
            path: String::from_utf8_lossy(numbers.path).into_owned(),
            is_new: false,
            added: numbers.added.unwrap_or(0),
            removed: numbers.removed.unwrap_or(0),
            hunks: Vec::new(),
            left_out: 0,
        },
        note: (!is_text).then(|| "not text, or too long to compare".to_owned()),
    }
}

/// Notes what a line before the first change of a file says.
fn note(file: &mut ChangedFile, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    let add = |note: &mut Option<String>, words: String| {
        *note = Some(match note.take() {
            Some(before) => format!("{before}; {words}"),
            None => words,
        });
    };
    if line.starts_with("deleted file mode") {
        add(&mut file.note, DELETED.to_owned());
    } else if let Some(mode) = line.strip_prefix("new file mode ") {
        if file.note.as_deref() == Some(DELETED) {
            file.note = Some("another kind of file now".to_owned());
            return;
        }
        file.change.is_new = true;
        match mode {
            "100644" => {}
            "100755" => add(&mut file.note, "executable".to_owned()),
            "120000" => add(&mut file.note, "a symbolic link".to_owned()),
            mode => add(&mut file.note, format!("mode {mode}")),
        }
    } else if let Some(mode) = line.strip_prefix("new mode ") {
        add(&mut file.note, format!("mode {mode}"));
    }
}

/// The lines of a patch, up to a bound.
struct PatchLines<'a> {
    rest: &'a [u8],
    room: usize,
}

impl<'a> PatchLines<'a> {
    /// Returns the next whole line.
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', self.rest)?;
        let (line, rest) = (&self.rest[..end], &self.rest[end + 1..]);
        self.rest = rest;
        Some(line)
    }

    /// Returns the hunk that this line begins: as many lines as it says, if they are there and have
    /// room.
    fn hunk(&mut self, header: &[u8]) -> Option<Hunk> {
        let header = std::str::from_utf8(header.get(3..)?.split(|byte| *byte == b'@').next()?);
        let mut sides = header.ok()?.split_whitespace();
        let (old_start, mut old) = side(sides.next()?.strip_prefix('-')?)?;
        let (new_start, mut new) = side(sides.next()?.strip_prefix('+')?)?;
        let mut lines: Vec<DiffLine> = Vec::new();
        while old > 0 || new > 0 || self.rest.starts_with(b"\\") {
            let Some(line) = self.next() else { break };
            let (mark, text) = line.split_first().unwrap_or((&b' ', b""));
            let change = match mark {
                b'-' => LineChange::Removed,
                b'+' => LineChange::Added,
                b'\\' => {
                    if let Some(last) = lines.last_mut() {
                        last.is_open = true;
                    }
                    continue;
                }
                _ => LineChange::Kept,
            };
            old = old.saturating_sub(u64::from(change != LineChange::Added));
            new = new.saturating_sub(u64::from(change != LineChange::Removed));
            if let Some(room) = self.room.checked_sub(1) {
                self.room = room;
                let text = short(&String::from_utf8_lossy(text));
                lines.push(DiffLine {
                    change,
                    text,
                    is_open: false,
                });
            }
        }
        (!lines.is_empty()).then_some(Hunk {
            old_start,
            new_start,
            lines,
        })
    }
}

/// Returns where a side of a hunk begins and how many lines it has. One without lines is named by
/// the line before it.
fn side(text: &str) -> Option<(u64, u64)> {
    let (start, count) = match text.split_once(',') {
        Some((start, count)) => (start.parse().ok()?, count.parse().ok()?),
        None => (text.parse().ok()?, 1),
    };
    let start: u64 = start;
    Some((start.saturating_add(u64::from(count == 0)), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "2\t1\ta b.rs\x00-\t-\tpicture\x000\t1\told\x001\t1\tlink\x000\t0\trun\x001\t0\tn\x00\x00\
        diff --git a/a b.rs b/a b.rs\nindex 1..2 100644\n--- a/a b.rs\n+++ b/a b.rs\n\
        @@ -1,3 +1,3 @@ fn a()\n one\n---- two\n++++ 2\n three\n@@ -9,0 +10 @@\n+end\n\
        \\ No newline at end of file\n\
        diff --git a/picture b/picture\nindex 1..2 100644\nBinary files a/picture and b/picture differ\n\
        diff --git a/old b/old\ndeleted file mode 100644\nindex 1..0\n--- a/old\n+++ /dev/null\n\
        @@ -1 +0,0 @@\n-gone\n\
        diff --git a/link b/link\ndeleted file mode 120000\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n\
        -a\n\\ No newline at end of file\n\
        diff --git a/link b/link\nnew file mode 100644\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+b\n\
        diff --git a/run b/run\nold mode 100644\nnew mode 100755\n\
        diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+#!\n";

    fn told(diff: &WorktreeDiff) -> Vec<String> {
        let told = |file: &ChangedFile| {
            let note = file.note.as_deref().unwrap_or("-");
            format!("{note}: {}", file.change)
        };
        diff.files.iter().map(told).collect()
    }

    #[test]
    fn every_kind_of_change_is_read() {
        let diff = parse(PRINTED.as_bytes());
        let expected = [
            "-: --- a b.rs\n+++ a b.rs\n@@ -1,3 +1,3 @@\n one\n---- two\n++++ 2\n three\n\
             @@ -9,0 +10 @@\n+end\n\\ No newline at end of file\n",
            "not text, or too long to compare: --- picture\n+++ picture\n",
            "deleted: --- old\n+++ old\n@@ -1 +0,0 @@\n-gone\n",
            "another kind of file now: --- link\n+++ link\n@@ -1 +0,0 @@\n-a\n\\ No newline at end of file\n\
             @@ -0,0 +1 @@\n+b\n",
            "mode 100755: --- run\n+++ run\n",
            "executable: --- /dev/null\n+++ n\n@@ -0,0 +1 @@\n+#!\n",
        ];
        assert_eq!(told(&diff), expected);
        assert_eq!(diff.left_out, 0);
    }

    #[test]
    fn what_is_cut_off_is_counted() {
        let whole = parse(PRINTED.as_bytes());
        for end in 0..PRINTED.len() {
            let cut = parse(&PRINTED.as_bytes()[..end]);
            for (file, whole) in cut.files.iter().zip(&whole.files) {
                let change = &file.change;
                let shown = change.hunks.iter().flat_map(|hunk| &hunk.lines);
                let shown = shown.filter(|line| line.change != LineChange::Kept).count();
                let all = whole.change.added + whole.change.removed;
                assert_eq!(shown as u64 + change.left_out, all, "{end}");
            }
        }
        let lines = "+x\n".repeat(MOST_LINES + 5);
        let count = MOST_LINES + 5;
        let long = format!(
            "{count}\t0\ta\x001\t0\tb\x00\x00diff --git a/a b/a\n@@ -0,0 +1,{count} @@\n{lines}\
            diff --git a/b b/b\n@@ -0,0 +1 @@\n+y\n"
        );
        let long = parse(long.as_bytes());
        assert_eq!(long.files[0].change.hunks[0].lines.len(), MOST_LINES);
        let left_out: Vec<u64> = long.files.iter().map(|it| it.change.left_out).collect();
        assert_eq!(left_out, [5, 1]);
        let many: String = (0..MOST_FILES + 3)
            .map(|at| format!("1\t0\t{at}\x00"))
            .collect();
        let many = parse(many.as_bytes());
        assert_eq!((many.files.len(), many.left_out), (MOST_FILES, 3));
    }
}
