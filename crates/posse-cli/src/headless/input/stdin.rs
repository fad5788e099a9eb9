//! Standard input: as part of the prompt, or as lines while the agent works.

use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;

use anyhow::Context;
use posse_protocol::ContentBlock;
use posse_runtime::definition::skill::arguments::Called;
use tokio::sync::mpsc;

use super::binary::{self, BinaryInput};
use crate::error::Advised;
use crate::output::{say, say_to_person};

/// Maximum length of a line and of a prompt, in bytes.
const LONGEST: usize = 32 << 20;
/// Number of lines that may wait.
const WAITING: usize = 4;

/// A line of input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StdinLine {
    Text(String),
    /// It is too long, or not UTF-8.
    Unreadable(&'static str),
}

/// The lines of standard input, of which the next one can be looked at.
pub(crate) struct StdinLines {
    /// A line that was looked at and not taken.
    first: Option<StdinLine>,
    rest: mpsc::Receiver<StdinLine>,
}

impl StdinLines {
    /// Begins to read standard input.
    pub(crate) fn start() -> Self {
        Self {
            first: None,
            rest: lines(),
        }
    }

    /// Returns the next line without taking it; `None` at the end of the input.
    pub(crate) async fn peek(&mut self) -> Option<&StdinLine> {
        if self.first.is_none() {
            self.first = self.rest.recv().await;
        }
        self.first.as_ref()
    }

    /// Takes the next line; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<StdinLine> {
        match self.first.take() {
            Some(line) => Some(line),
            None => self.rest.recv().await,
        }
    }
}

/// Returns the lines of standard input. The channel closes at its end. A program that writes
/// faster than the agent reads has to wait.
pub(crate) fn lines() -> mpsc::Receiver<StdinLine> {
    let (sender, receiver) = mpsc::channel(WAITING);
    // A separate thread, because a read that never returns must not keep the process from ending.
    std::thread::spawn(move || {
        let mut input = BufReader::new(io::stdin());
        while let Ok(Some(line)) = next_line(&mut input, LONGEST) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Reads a line of at most `longest` bytes.
fn next_line(input: &mut impl BufRead, longest: usize) -> io::Result<Option<StdinLine>> {
    let mut bytes = Vec::new();
    // One byte more than allowed distinguishes a line that is too long from one that just fits.
    let read = input
        .take(longest as u64 + 1)
        .read_until(b'\n', &mut bytes)?;
    if read == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if read > longest {
        // The rest is skipped without being stored, since it may be endless.
        input.skip_until(b'\n')?;
        return Ok(Some(StdinLine::Unreadable("a line longer than 32 MiB")));
    }
    Ok(Some(String::from_utf8(bytes).map_or(
        StdinLine::Unreadable("a line that is not UTF-8"),
        StdinLine::Text,
    )))
}

/// Returns the prompt: the argument, with standard input appended if it is a pipe or a file.
/// `None` if both are empty.
pub(crate) fn prompt(
    given: Option<&str>,
    ask_terminal: bool,
    binary: BinaryInput,
) -> anyhow::Result<Option<Vec<ContentBlock>>> {
    let given = given.filter(|text| *text != "-");
    let stdin = io::stdin();
    let read = if stdin.is_terminal() {
        if given.is_none() && ask_terminal {
            say_to_person("reading the prompt from the terminal; finish with Ctrl-D");
        }
        given.is_none() && ask_terminal
    } else {
        // Other devices, such as /dev/null, have nothing to read.
        let file = std::fs::File::from(
            stdin
                .as_fd()
                .try_clone_to_owned()
                .context("cannot use standard input")?,
        );
        file.metadata().is_ok_and(|about| {
            let kind = about.file_type();
            kind.is_file() || kind.is_fifo() || kind.is_socket()
        })
    };
    let mut piped = Vec::new();
    if read {
        stdin
            .lock()
            .take(LONGEST as u64 + 1)
            .read_to_end(&mut piped)
            .context("cannot read standard input")?;
        if piped.len() > LONGEST {
            anyhow::bail!(Advised {
                what: "standard input is longer than 32 MiB".into(),
                advice: "name the file in the prompt; the agent can read it in parts".into(),
            });
        }
    }
    if let Some(found) = binary::found(&piped) {
        if binary == BinaryInput::Refused {
            anyhow::bail!(Advised {
                what: format!("standard input is not text: {found}; nothing was sent"),
                advice: "name the file in the prompt, so that the agent can look at it; `posse -p --binary` \
                         sends it all the same"
                    .into(),
            });
        }
        say("standard input is not text: bytes that are not UTF-8 were replaced by \u{fffd}");
    }
    Ok(joined(given, &String::from_utf8_lossy(&piped)))
}

/// Joins the argument and standard input.
fn joined(given: Option<&str>, piped: &str) -> Option<Vec<ContentBlock>> {
    let given = given.filter(|text| !text.trim().is_empty());
    let texts = match (given, piped.trim().is_empty()) {
        (Some(given), true) => vec![given.to_owned()],
        // Input that is piped to a command is not one of its arguments.
        (Some(given), false) if Called::read(given).is_some() => {
            vec![given.to_owned(), piped.to_owned()]
        }
        (Some(given), false) => vec![format!("{given}\n\n{piped}")],
        (None, false) => vec![piped.to_owned()],
        (None, true) => return None,
    };
    Some(texts.into_iter().map(ContentBlock::text).collect())
}

/// Returns the given text, or standard input if it is `-`.
pub(crate) fn text(given: String) -> anyhow::Result<String> {
    use std::io::{IsTerminal, Read};

    use anyhow::Context;
    /// More than any text that can be stored.
    const LONGEST: u64 = 1 << 20;
    if given != "-" {
        return Ok(given);
    }
    if std::io::stdin().is_terminal() {
        crate::output::say_to_person("type the text; finish with Ctrl-D on a line of its own");
    }
    let mut text = String::new();
    std::io::stdin()
        .take(LONGEST)
        .read_to_string(&mut text)
        .context("cannot read the text from standard input")?;
    text.truncate(text.trim_end().len());
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_piped_follows_what_is_asked() {
        let check = |given, piped, expected: &[&str]| {
            let blocks: Vec<_> = expected.iter().copied().map(ContentBlock::text).collect();
            assert_eq!(joined(given, piped), Some(blocks));
        };
        check(Some("explain"), "line 1\n", &["explain\n\nline 1\n"]);
        check(Some("explain"), " \n", &["explain"]);
        check(None, "all", &["all"]);
        check(None, "/review all", &["/review all"]);
        check(
            Some("/review it"),
            "$(rm x)\n",
            &["/review it", "$(rm x)\n"],
        );
        assert_eq!(joined(Some(" "), ""), None);
    }

    #[test]
    fn a_line_has_a_longest_length_and_the_next_one_is_read() {
        let mut input: &[u8] = b"one\ntoo long\n\xff\nlast";
        let mut next = || next_line(&mut input, 4).unwrap();
        assert_eq!(next(), Some(StdinLine::Text("one".into())));
        assert!(matches!(next(), Some(StdinLine::Unreadable(why)) if why.contains("longer")));
        assert!(matches!(next(), Some(StdinLine::Unreadable(why)) if why.contains("UTF-8")));
        assert_eq!(next(), Some(StdinLine::Text("last".into())));
        assert_eq!(next(), None);
    }
}
