//! The text of a reply while it arrives: lines as they are for a pipe, Markdown for a terminal.

use posse_tui::terminal::styled_text;
use posse_tui::text::MarkdownStream;

use crate::output::{columns, tame};

/// A text that arrives in pieces. Each method returns what can be printed.
pub(super) enum ArrivingText {
    /// The last line, as it is.
    Lines(String),
    /// What is not printed of a Markdown text.
    Markdown(MarkdownStream),
}

impl ArrivingText {
    /// Adds a piece.
    pub(super) fn push(&mut self, text: &str) -> String {
        match self {
            Self::Lines(line) => {
                line.push_str(text);
                let end = line.rfind('\n').map_or(0, |end| end + 1);
                let rest = line.split_off(end);
                tame(&std::mem::replace(line, rest))
            }
            Self::Markdown(stream) => {
                stream.push(text);
                styled_text(&stream.take_closed(columns()))
            }
        }
    }

    /// Something else is printed: a line ends there, a paragraph does not.
    pub(super) fn interrupt(&mut self) -> String {
        match self {
            Self::Lines(_) => self.end(),
            Self::Markdown(_) => String::new(),
        }
    }

    /// Ends the text.
    pub(super) fn end(&mut self) -> String {
        match self {
            Self::Lines(line) if line.is_empty() => String::new(),
            Self::Lines(line) => format!("{}\n", tame(&std::mem::take(line))),
            Self::Markdown(stream) => styled_text(&stream.finish(columns())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mut text: ArrivingText) -> Vec<String> {
        vec![
            text.push("**a** b"),
            text.push("\nc"),
            text.interrupt(),
            text.push(" d\n\ne"),
            text.end(),
            text.end(),
        ]
    }

    #[test]
    fn a_pipe_gets_lines_and_a_terminal_paragraphs() {
        assert_eq!(
            shown(ArrivingText::Lines(String::new())),
            ["", "**a** b\n", "c\n", " d\n\n", "e\n", ""]
        );
        assert_eq!(
            shown(ArrivingText::Markdown(MarkdownStream::default())),
            ["", "", "", "\x1b[0;1ma\x1b[0m b c d\n", "\ne\n", ""]
        );
    }
}
