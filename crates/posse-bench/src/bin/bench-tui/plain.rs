//! The text in a terminal's bytes: all but control characters and escape sequences.

/// Text so far, and what the next byte belongs to.
#[derive(Default)]
pub(crate) struct PlainText {
    pub(crate) text: Vec<u8>,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// In a control sequence, up to its final byte.
    Sequence,
    /// In a string such as a title, up to its terminator.
    String,
}

impl PlainText {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = match (&self.state, byte) {
                (_, 0x1b) => State::Escape,
                (State::Text, _) => {
                    if !byte.is_ascii_control() {
                        self.text.push(*byte);
                    }
                    State::Text
                }
                (State::Escape, b'[') => State::Sequence,
                (State::Escape, b']' | b'P' | b'_' | b'^') => State::String,
                (State::Escape, _) | (State::Sequence, 0x40..=0x7e) | (State::String, 0x07) => {
                    State::Text
                }
                (State::Sequence, _) => State::Sequence,
                (State::String, _) => State::String,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_left_out_wherever_a_read_ends() {
        let bytes =
            "\x1b[?2026h\r\x1b[5Cа\x1b[0;1;36mb\x1b[0m\x1b]0;title\x07c\x1b]8;;\x1b\\d".as_bytes();
        for cut in 0..bytes.len() {
            let mut plain = PlainText::default();
            plain.push(&bytes[..cut]);
            plain.push(&bytes[cut..]);
            assert_eq!(String::from_utf8(plain.text).unwrap(), "аbcd");
        }
    }
}
