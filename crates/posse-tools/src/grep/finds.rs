//! Matches in one file, and the report about all files.

use std::io;

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};
use serde_json::{Value, json};

use super::{GrepInput, OutputMode};
use crate::answer::{clip, count};
use crate::walk::Enough;

/// Default number of lines that are shown.
const MOST_LINES: usize = 250;
/// Maximum size of the answer.
const MOST_BYTES: usize = 64 << 10;
/// Number of bytes shown of a line.
const LINE_BYTES: usize = 500;

/// The matches in a file.
pub(super) struct Finds {
    mode: OutputMode,
    numbers: bool,
    /// Number of lines that are wanted.
    most: usize,
    matches: usize,
    lines: Vec<FoundLine>,
    bytes: usize,
    binary: bool,
}

/// A line of the answer.
enum FoundLine {
    Found {
        mark: char,
        number: Option<u64>,
        text: String,
    },
    /// A gap between lines that are not adjacent.
    Gap,
}

impl Finds {
    pub(super) fn new(report: &Report) -> Self {
        let most = report
            .most
            .saturating_sub(report.lines.len())
            .saturating_add(1);
        let Report { mode, numbers, .. } = *report;
        Self {
            mode,
            numbers,
            most,
            matches: 0,
            lines: Vec::new(),
            bytes: 0,
            binary: false,
        }
    }

    /// Returns true if more would not be shown anyway.
    fn full(&self) -> bool {
        self.lines.len() > self.most || self.bytes > MOST_BYTES
    }

    fn push(&mut self, mark: char, first: Option<u64>, bytes: &[u8]) {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        for (line, number) in bytes.split(|byte| *byte == b'\n').zip(first.unwrap_or(0)..) {
            // One match may be as large as the file.
            if self.full() {
                break;
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            // One byte more than is shown, and the rest of a character that is cut.
            let text = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES + 5)]);
            let cut = if text.len() > LINE_BYTES { "…" } else { "" };
            let text = format!("{}{cut}", clip(&text, LINE_BYTES));
            self.bytes += text.len() + 1;
            self.lines.push(FoundLine::Found {
                mark,
                number: self.numbers.then_some(number),
                text,
            });
        }
    }
}

impl Sink for &mut Finds {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        match self.mode {
            OutputMode::Content => {
                self.push(':', found.line_number(), found.bytes());
                Ok(!self.full())
            }
            OutputMode::FilesWithMatches => Ok(false),
            OutputMode::Count => Ok(true),
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.push('-', context.line_number(), context.bytes());
        Ok(!self.full())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.lines.push(FoundLine::Gap);
        Ok(!self.full())
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// The answer of a search.
pub(super) struct Report {
    mode: OutputMode,
    numbers: bool,
    most: usize,
    lines: Vec<String>,
    /// The files of the lines.
    files: Vec<String>,
    bytes: usize,
    cut: bool,
}

impl Report {
    pub(super) fn new(input: &GrepInput) -> Self {
        Self {
            mode: input.output_mode.unwrap_or_default(),
            numbers: input.numbers.unwrap_or(true),
            most: input
                .head_limit
                .filter(|limit| *limit > 0)
                .unwrap_or(MOST_LINES),
            lines: Vec::new(),
            files: Vec::new(),
            bytes: 0,
            cut: false,
        }
    }

    /// Adds the matches of a file.
    pub(super) fn add(&mut self, path: &str, finds: Finds) -> Enough {
        if finds.matches == 0 || finds.binary {
            return Enough::No;
        }
        let before = self.lines.len();
        match self.mode {
            OutputMode::FilesWithMatches => self.push(path.to_owned()),
            OutputMode::Count => self.push(format!("{path}:{}", finds.matches)),
            OutputMode::Content => {
                for line in finds.lines {
                    let line = match line {
                        FoundLine::Gap => "--".to_owned(),
                        FoundLine::Found {
                            mark,
                            number: Some(number),
                            text,
                        } => {
                            format!("{path}{mark}{number}{mark}{text}")
                        }
                        FoundLine::Found {
                            mark,
                            number: None,
                            text,
                        } => format!("{path}{mark}{text}"),
                    };
                    self.push(line);
                }
            }
        }
        if self.lines.len() > before {
            self.files.push(path.to_owned());
        }
        if self.cut { Enough::Yes } else { Enough::No }
    }

    fn push(&mut self, line: String) {
        self.cut |= self.lines.len() >= self.most || self.bytes + line.len() > MOST_BYTES;
        if !self.cut {
            self.bytes += line.len() + 1;
            self.lines.push(line);
        }
    }

    /// Returns what was found, for hooks.
    pub(super) fn answer(&self) -> Value {
        let (mode, content) = match self.mode {
            OutputMode::Content => ("content", self.lines.join("\n")),
            OutputMode::FilesWithMatches => ("files_with_matches", String::new()),
            OutputMode::Count => ("count", self.lines.join("\n")),
        };
        json!({
            "mode": mode,
            "filenames": self.files,
            "numFiles": self.files.len(),
            "content": content,
        })
    }

    pub(super) fn told(mut self, unread: usize) -> String {
        if self.lines.is_empty() {
            self.lines.push("no match".into());
        }
        if self.cut {
            self.lines
                .push("(there is more; narrow the search, or raise head_limit)".into());
        }
        if unread > 0 {
            self.lines
                .push(format!("({} could not be searched)", count(unread, "file")));
        }
        self.lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(input: &GrepInput, bytes: &[u8]) -> Finds {
        let mut finds = Finds::new(&Report::new(input));
        finds.matches = 1;
        finds.push(':', Some(1), bytes);
        finds
    }

    #[test]
    fn of_one_match_no_more_is_held_than_is_told() {
        let content = Some(OutputMode::Content);
        let input = |limit| GrepInput {
            output_mode: content,
            head_limit: limit,
            ..GrepInput::default()
        };
        assert_eq!(
            pushed(&input(None), &b"a\n".repeat(3 << 20)).lines.len(),
            MOST_LINES + 2
        );
        let all = pushed(&input(Some(usize::MAX - 1)), &b"aaaa\n".repeat(1 << 20));
        assert!(all.lines.len() <= MOST_BYTES / 5 + 1, "{}", all.lines.len());
        let mut report = Report::new(&input(Some(usize::MAX)));
        assert_eq!(
            report.add("f", all),
            Enough::Yes,
            "it is said that there is more"
        );
        let long = pushed(&input(None), &"ä".repeat(1 << 20).into_bytes());
        let [FoundLine::Found { text, .. }] = &long.lines[..] else {
            panic!("one line")
        };
        assert_eq!(*text, "ä".repeat(250) + "…");
    }
}
