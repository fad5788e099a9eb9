//! Lines: a message is a JSON object on a line of its own.

use serde::Serialize;

use super::error::WireError;

/// Maximum length of a line, in bytes.
pub const LONGEST: usize = 32 << 20;

/// Writes a message as a line, with the line break.
pub(super) fn encode(message: &impl Serialize) -> Result<String, WireError> {
    encode_up_to(LONGEST, message)
}

fn encode_up_to(longest: usize, message: &impl Serialize) -> Result<String, WireError> {
    let mut line = serde_json::to_string(message)?;
    // JSON that is kept as a model wrote it may be broken into lines. A line break stands only
    // between its tokens: in a string it is escaped.
    if line.contains(['\n', '\r']) {
        line = line.replace(['\n', '\r'], " ");
    }
    if line.len() > longest {
        return Err(WireError::TooLong(longest));
    }
    line.push('\n');
    Ok(line)
}

/// Puts lines together from bytes as they arrive. Keeps no more than one line of at most [`LONGEST`]
/// bytes; of a longer one it skips the rest and goes on with the next.
#[derive(Debug)]
pub struct Lines {
    longest: usize,
    /// The beginning of a line.
    begun: Vec<u8>,
    /// The line is too long; the rest of it is skipped.
    is_skipping: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self::up_to(LONGEST)
    }
}

impl Lines {
    /// Lines of at most `longest` bytes.
    pub fn up_to(longest: usize) -> Self {
        Self {
            longest,
            begun: Vec::new(),
            is_skipping: false,
        }
    }

    /// Takes more bytes. Returns the lines that they complete, without their line breaks.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<String, WireError>> {
        let mut lines = Vec::new();
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let is_whole = pieces.peek().is_some();
            if self.is_skipping {
                self.is_skipping = !is_whole;
                continue;
            }
            if self.begun.len() + piece.len() > self.longest {
                self.begun = Vec::new();
                self.is_skipping = !is_whole;
                lines.push(Err(WireError::TooLong(self.longest)));
                continue;
            }
            self.begun.extend_from_slice(piece);
            if is_whole {
                let line = String::from_utf8(std::mem::take(&mut self.begun));
                lines.push(line.map_err(|_| WireError::NotUtf8));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves WR-05 (part: writing)
    #[test]
    fn a_message_that_nobody_could_read_is_not_written() {
        let written = encode_up_to(4, &"ab").unwrap();
        assert_eq!(written, "\"ab\"\n");
        let read = Lines::up_to(4).push(written.as_bytes());
        assert_eq!(read, [Ok("\"ab\"".to_owned())]);
        assert_eq!(encode_up_to(4, &"abc"), Err(WireError::TooLong(4)));
    }
}
