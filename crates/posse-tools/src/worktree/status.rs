//! What `git status --porcelain=v2 -z` says.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// A checkout as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// The commit it is at; none before the first.
    pub(super) head: Option<String>,
    /// The branch it is on; none if it is on none.
    pub(super) branch: Option<String>,
    /// What differs from that commit, or is not in it.
    pub(super) entries: Vec<StatusEntry>,
}

/// One path that is not as committed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StatusEntry {
    pub(super) kind: ChangeKind,
    /// From the top of the checkout. Git writes directories with a slash at the end.
    pub(super) path: PathBuf,
}

/// In which way it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// Known to git. Whether the index differs from the commit, and the file from the index.
    Known {
        staged: bool,
        changed: bool,
        submodule: bool,
    },
    /// Not known to git.
    New,
    /// Not known, and git was told not to care.
    Ignored,
}

impl StatusEntry {
    /// Returns true if git has told of a whole directory.
    pub(super) fn is_directory(&self) -> bool {
        self.path.as_os_str().as_bytes().ends_with(b"/")
    }
}

/// Reads it. None if it is nothing that we know: then nothing may be concluded.
pub(super) fn parse(printed: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut records = printed
        .split(|byte| *byte == 0)
        .filter(|record| !record.is_empty());
    while let Some(record) = records.next() {
        let (kind, rest) = record.split_at_checked(2)?;
        match kind {
            b"# " => header(&mut status, std::str::from_utf8(rest).ok()?),
            b"? " => status.entries.push(StatusEntry {
                kind: ChangeKind::New,
                path: path(rest),
            }),
            b"! " => status.entries.push(StatusEntry {
                kind: ChangeKind::Ignored,
                path: path(rest),
            }),
            b"1 " => status.entries.push(known(rest, 7)?),
            b"u " => status.entries.push(known(rest, 9)?),
            b"2 " => {
                status.entries.push(known(rest, 8)?);
                records.next()?;
            }
            _ => return None,
        }
    }
    Some(status)
}

fn header(status: &mut Status, text: &str) {
    if let Some(head) = text.strip_prefix("branch.oid ") {
        status.head = (head != "(initial)").then(|| head.to_owned());
    } else if let Some(branch) = text.strip_prefix("branch.head ") {
        status.branch = (branch != "(detached)").then(|| branch.to_owned());
    }
}

/// `XY sub …`, with the path after so many fields.
fn known(rest: &[u8], fields: usize) -> Option<StatusEntry> {
    let mut parts = rest.splitn(fields + 1, |byte| *byte == b' ');
    let letters = parts.next()?;
    let submodule = parts.next()?.first()? == &b'S';
    let path = path(parts.nth(fields - 2)?);
    let [index, file] = letters else { return None };
    let kind = ChangeKind::Known {
        staged: *index != b'.',
        changed: *file != b'.',
        submodule,
    };
    Some(StatusEntry { kind, path })
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_read() {
        let printed = b"# branch.oid 3f2a\0# branch.head posse/x\0\
            1 .M N... 100644 100644 100644 aa bb a b.rs\0\
            1 A. S..U 160000 160000 160000 aa bb sub\0\
            2 R. N... 100644 100644 100644 aa bb R100 new\0old\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both\0\
            ? docs/\0! target/\0";
        let entry = |kind, path: &str| StatusEntry {
            kind,
            path: path.into(),
        };
        let known = |staged, changed, submodule| ChangeKind::Known {
            staged,
            changed,
            submodule,
        };
        let expected = Status {
            head: Some("3f2a".into()),
            branch: Some("posse/x".into()),
            entries: vec![
                entry(known(false, true, false), "a b.rs"),
                entry(known(true, false, true), "sub"),
                entry(known(true, false, false), "new"),
                entry(known(true, true, false), "both"),
                entry(ChangeKind::New, "docs/"),
                entry(ChangeKind::Ignored, "target/"),
            ],
        };
        assert_eq!(parse(printed), Some(expected));
        assert_eq!(
            parse(b"# branch.oid (initial)\0# branch.head (detached)\0"),
            Some(Status::default())
        );
        assert_eq!(parse(b"9 what is this\0"), None);
        assert_eq!(parse(b"1 .M\0"), None);
    }
}
