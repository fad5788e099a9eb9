//! Output file of an agent's run: readable while it runs, limited in size, and never a reason for
//! the run to fail. No file stays open between two writes, however many agents there are.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::prompt::Tail;
use rustix::fs::OFlags;

/// Maximum size of a file.
const MOST_BYTES: u64 = 64 << 20;
/// Room for the line that says that the output was cut.
const CUT_LINE: u64 = 100;

/// Output of a run.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    most: u64,
    /// True if nothing more is written: the file is full, or a write failed.
    closed: bool,
}

impl Output {
    /// Returns output that goes to `path`. Existing content stays: a revived run appends to it.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            most: MOST_BYTES - CUT_LINE,
            closed: false,
        }
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends `text`. A failure is returned once; later texts are dropped silently. Blocks as
    /// briefly as a write to the page cache does.
    pub(crate) fn append(&mut self, text: &str) -> io::Result<()> {
        if self.closed || text.is_empty() {
            return Ok(());
        }
        let written = self.write(text);
        self.closed = written.as_ref().map_or(true, |full| *full);
        written.map(drop)
    }

    /// Writes what fits. Returns true if the file is full.
    fn write(&self, text: &str) -> io::Result<bool> {
        let mut file = self.open()?;
        let length = file.metadata()?.len();
        let Some(left) = self.most.checked_sub(length) else {
            // Only the line about the cut goes past the limit, so it has been written.
            return Ok(true);
        };
        let fits = text.floor_char_boundary(usize::try_from(left).unwrap_or(usize::MAX));
        file.write_all(&text.as_bytes()[..fits])?;
        if fits == text.len() {
            return Ok(false);
        }
        let at = length + fits as u64;
        file.write_all(format!("\n[posse cut the output here, at byte {at}]\n").as_bytes())?;
        Ok(true)
    }

    /// Opens the file, and creates it with its directory if it is missing.
    fn open(&self) -> io::Result<File> {
        let open = || {
            opening()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&self.path)
        };
        let file = match open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(directory) = self.path.parent() {
                    // Readable by the user only: what agents write concerns nobody else.
                    DirBuilder::new()
                        .recursive(true)
                        .mode(0o700)
                        .create(directory)?;
                }
                open()?
            }
            opened => opened?,
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a plain file"));
        }
        Ok(file)
    }
}

/// Returns the last `bytes` bytes of the file at `path`, beginning and ending between characters. A
/// file that does not exist yet is empty.
pub(crate) fn tail(path: &Path, bytes: usize) -> io::Result<Tail> {
    let mut file = match opening().read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Tail {
                text: String::new(),
                before: 0,
            });
        }
        opened => opened?,
    };
    let facts = file.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut before = facts.len().saturating_sub(bytes as u64);
    file.seek(SeekFrom::Start(before))?;
    // Limited: what is written meanwhile is for the next look.
    let mut read = Vec::new();
    file.take(bytes as u64).read_to_end(&mut read)?;
    let mut kept = read.as_slice();
    if before > 0 {
        // A character of UTF-8 has at most three continuation bytes.
        let halves = kept
            .iter()
            .take(3)
            .take_while(|byte| *byte & 0xc0 == 0x80)
            .count();
        kept = &kept[halves..];
        before += halves as u64;
    }
    if let Some(half) = unfinished(kept) {
        kept = &kept[..half];
    }
    Ok(Tail {
        text: String::from_utf8_lossy(kept).into_owned(),
        before,
    })
}

/// Returns where an incomplete last character begins.
fn unfinished(bytes: &[u8]) -> Option<usize> {
    let start = bytes.len().saturating_sub(3);
    (start..bytes.len()).find(|at| {
        let broken = std::str::from_utf8(&bytes[*at..]).err();
        broken.is_some_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
    })
}

/// Returns options that do not follow a link in place of the file, and do not wait for a pipe.
fn opening() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    // proves BG-18 (part: continues)
    #[test]
    fn is_private_and_continues() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("session/agent.output");
        assert_eq!(
            tail(&path, 10).unwrap(),
            Tail {
                text: String::new(),
                before: 0
            }
        );
        let mut output = Output::new(path.clone());
        output.append("one\n").unwrap();
        output.append("two\n").unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        Output::new(path.clone()).append("three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(
            tail(&path, 8).unwrap(),
            Tail {
                text: "o\nthree\n".into(),
                before: 6
            }
        );
    }

    // proves BG-15 (part: agents)
    #[test]
    fn is_cut_and_says_where() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut output = Output::new(path.clone());
        assert!(output.most <= 64 << 20, "64 MiB at most");
        output.most = 10;
        output.append("12345678").unwrap();
        output.append("9ü").unwrap();
        let expected = "123456789\n[posse cut the output here, at byte 9]\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        output.append("more").unwrap();
        // Nor does a process that goes on with it.
        let mut again = Output {
            most: 10,
            ..Output::new(path.clone())
        };
        again.append("more").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn what_fits_exactly_is_not_cut() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut output = Output {
            most: 4,
            ..Output::new(path.clone())
        };
        output.append("1234").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1234");
        output.append("5").unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "1234\n[posse cut the output here, at byte 4]\n"
        );
    }

    #[test]
    fn a_failure_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (
            directory.path().join("target"),
            directory.path().join("link"),
        );
        std::fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        for path in [
            link.clone(),
            directory.path().to_owned(),
            target.join("beneath-a-file"),
        ] {
            let mut output = Output::new(path.clone());
            assert!(output.append("text").is_err(), "{}", path.display());
            assert!(output.append("text").is_ok(), "{}", path.display());
        }
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine");
        assert!(tail(&link, 10).is_err() && tail(directory.path(), 10).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_tail_is_an_end_of_the_text(text in "[aü€😀]{0,12}", bytes in 0_usize..20, cut in 0_usize..4) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("a");
            // The last character may not be whole yet.
            let written = &text.as_bytes()[..text.len().saturating_sub(cut)];
            std::fs::write(&path, written).unwrap();
            let given = tail(&path, bytes).unwrap();
            let whole = &text[..text.floor_char_boundary(written.len())];
            let from = whole.len().min(text.ceil_char_boundary(written.len().saturating_sub(bytes)));
            prop_assert_eq!(&given.text, &whole[from..]);
            prop_assert!(given.before as usize >= from || given.text.is_empty());
            prop_assert!(given.text.len() <= bytes);
        }
    }
}
