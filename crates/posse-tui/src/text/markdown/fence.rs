//! Fenced code at the top level, read line by line so that each line can be printed at once.

use ratatui_core::text::Line;

use crate::text::code::code_line;

/// An open code fence.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    language: String,
}

impl Fence {
    /// Parses the line that opens a fence.
    pub(super) fn open(line: &str) -> Self {
        let text = line.trim_start_matches(' ');
        let mark = if text.starts_with('~') { '~' } else { '`' };
        let info = text.trim_start_matches(mark);
        let language = info.split_whitespace().next().unwrap_or_default();
        Self {
            mark,
            length: text.len() - info.len(),
            indent: line.len() - text.len(),
            language: language.to_owned(),
        }
    }

    /// Returns true if the line ends the code.
    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        let rest = text.trim_start_matches(self.mark);
        line.len() - text.len() < 4
            && text.len() - rest.len() >= self.length
            && rest.trim_matches([' ', '\t', '\n']).is_empty()
    }

    /// Renders a line of the code.
    pub(super) fn line(&self, line: &str) -> Line<'static> {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let blanks = line.len() - line.trim_start_matches(' ').len();
        code_line(&line[blanks.min(self.indent)..], &self.language)
    }
}
