//! Piped input that is no text.

use std::fmt;

/// What is done with piped input that is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryInput {
    Refused,
    /// It is sent, with replacement characters.
    Replaced,
}

/// Beginnings of files that are no text.
const KINDS: [(&[u8], &str); 9] = [
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF file"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
];

/// What was found in input that is no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BinaryFound {
    kind: Option<&'static str>,
    byte: u8,
    at: usize,
}

impl fmt::Display for BinaryFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, byte, at } = self;
        if let Some(kind) = kind {
            return write!(f, "it is {kind}");
        }
        let what = if *byte == 0 {
            ""
        } else {
            ", which is not UTF-8"
        };
        write!(f, "byte {} is 0x{byte:02x}{what}", at + 1)
    }
}

/// Returns the first sign that input is no text.
pub(super) fn found(input: &[u8]) -> Option<BinaryFound> {
    let wrong = std::str::from_utf8(input)
        .err()
        .map(|error| error.valid_up_to());
    let zero = input.iter().position(|byte| *byte == 0);
    let at = wrong.into_iter().chain(zero).min()?;
    let kind = KINDS.iter().find(|(begins, _)| input.starts_with(begins));
    Some(BinaryFound {
        kind: kind.map(|(_, kind)| *kind),
        byte: input.get(at).copied().unwrap_or_default(),
        at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_named() {
        let check = |input: &[u8], said: Option<&str>| {
            assert_eq!(found(input).map(|found| found.to_string()).as_deref(), said);
        };
        check("café\n".as_bytes(), None);
        check(b"caf\xe9", Some("byte 4 is 0xe9, which is not UTF-8"));
        check(b"a\0b\xff", Some("byte 2 is 0x00"));
        check(b"\x89PNG\r\n\x1a\n\0", Some("it is a PNG image"));
        check(b"PK but text", None);
    }
}
