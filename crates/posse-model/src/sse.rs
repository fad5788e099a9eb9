//! A decoder for server-sent events that accepts bytes in any split and holds at most one event.
//!
//! It is stricter than a browser, which would drop things: bytes that are not UTF-8, an event
//! without data, and an event over the size limit are errors, because a reply with a gap must not
//! pass for a complete one.

use memchr::memchr2;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event:` field; empty if there was none.
    pub name: &'a str,
    /// The `data:` lines, joined by newlines.
    pub data: &'a str,
}

/// Why a stream is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event grew past the limit.
    #[error("an event is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// Bytes that are not UTF-8.
    #[error("bytes that are not UTF-8")]
    NotUtf8,
    /// An event with a name and no data.
    #[error("an event `{name}` without data")]
    NoData {
        /// The event's name.
        name: String,
    },
}

/// Maximum size of an event. The largest one of a model API is a content block, which is far
/// smaller.
const LIMIT: usize = 16 << 20;

/// Decodes a stream, chunk by chunk.
#[derive(Debug, Default)]
pub struct Decoder {
    /// An incomplete line.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// The last line ended in `\r`, so that a `\n` right after it belongs to it.
    after_cr: bool,
    started: bool,
}

impl Decoder {
    /// Decodes the next bytes and passes each complete event to `each`, until that fails.
    pub fn feed<E: From<SseError>>(
        &mut self,
        mut chunk: &[u8],
        mut each: impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // The specification allows `\n`, `\r` and `\r\n`, even mixed.
        while let Some(end) = memchr2(b'\n', b'\r', chunk) {
            let skip = end == 0 && chunk[0] == b'\n' && self.after_cr;
            self.after_cr = chunk[end] == b'\r';
            if !skip {
                if self.line.is_empty() {
                    self.line(&chunk[..end], &mut each)?;
                } else {
                    self.hold(&chunk[..end])?;
                    let line = std::mem::take(&mut self.line);
                    self.line(&line, &mut each)?;
                    // Put back, so that its memory is reused for the next line.
                    self.line = line;
                    self.line.clear();
                }
            }
            chunk = &chunk[end + 1..];
        }
        if !chunk.is_empty() {
            self.after_cr = false;
            self.hold(chunk)?;
        }
        Ok(())
    }

    /// Returns the number of bytes held for an incomplete event.
    pub fn held(&self) -> usize {
        self.line.len() + self.data.len() + self.name.len()
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        self.bound(self.line.len() + bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Refuses an event that grows beyond the limit.
    fn bound(&self, more: usize) -> Result<(), SseError> {
        if self.data.len() + more > LIMIT {
            Err(SseError::TooLarge { limit: LIMIT })
        } else {
            Ok(())
        }
    }

    fn line<E: From<SseError>>(
        &mut self,
        line: &[u8],
        each: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Decoded line by line, because a chunk may end inside a character.
        let mut line = std::str::from_utf8(line).map_err(|_| SseError::NotUtf8)?;
        if !std::mem::replace(&mut self.started, true) {
            // The specification allows one byte order mark, at the very beginning.
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(each);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        // By the specification one space, and only one, does not belong to the value.
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => {
                self.bound(value.len())?;
                self.name.clear();
                self.name.push_str(value);
            }
            "data" => {
                self.bound(value.len() + 1)?;
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            // Comments (an empty field name), `id`, `retry`, and fields that are added later.
            _ => {}
        }
        Ok(())
    }

    fn dispatch<E: From<SseError>>(
        &mut self,
        each: &mut impl FnMut(Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let result = match (self.has_data, self.name.is_empty()) {
            (true, _) => each(Event {
                name: &self.name,
                data: &self.data,
            }),
            (false, false) => Err(SseError::NoData {
                name: self.name.clone(),
            }
            .into()),
            (false, true) => Ok(()),
        };
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Result<Vec<(String, String)>, SseError> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.feed(chunk, |event| {
                events.push((event.name.to_owned(), event.data.to_owned()));
                Ok::<_, SseError>(())
            })?;
        }
        Ok(events)
    }

    #[test]
    fn every_cut_and_every_line_ending_gives_the_same_events() {
        let text =
            "\u{feff}: hello\nevent: a\ndata: 1\ndata: é2\n\nid: 7\ndata:3\n\nevent: z\ndata\n\n";
        let expected = vec![
            ("a".to_owned(), "1\né2".to_owned()),
            (String::new(), "3".to_owned()),
            ("z".to_owned(), String::new()),
        ];
        for ending in ["\n", "\r\n", "\r"] {
            let bytes = text.replace('\n', ending).into_bytes();
            for cut in 0..=bytes.len() {
                assert_eq!(
                    decode(&[&bytes[..cut], &bytes[cut..]]).unwrap(),
                    expected,
                    "{ending:?} {cut}"
                );
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(
                decode(&single).unwrap(),
                expected,
                "{ending:?} byte by byte"
            );
        }
    }

    #[test]
    fn holes_are_errors() {
        assert_eq!(
            decode(&[b"event: x\n\n"]),
            Err(SseError::NoData { name: "x".into() })
        );
        assert_eq!(decode(&[b"data: \xff\n\n"]), Err(SseError::NotUtf8));
        let long = vec![b'x'; LIMIT + 1];
        assert_eq!(decode(&[&long]), Err(SseError::TooLarge { limit: LIMIT }));
        let many: Vec<&[u8]> =
            std::iter::repeat_n(b"data: yyyyyyyyyyyyyyyy\n" as &[u8], LIMIT / 16).collect();
        assert_eq!(decode(&many), Err(SseError::TooLarge { limit: LIMIT }));
    }
}
