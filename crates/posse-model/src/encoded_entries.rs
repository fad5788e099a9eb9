//! Stringing finished pieces together, with cache marks spliced in at their stored offsets.

use bytes::Bytes;
use posse_port::model::{Body, BreakpointPosition, CacheBreakpoint, Encoded, Request, Ttl};

const MARK_5M: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
const MARK_1H: &[u8] = br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

/// A rope being made.
pub(crate) struct Rope(Vec<Bytes>);

impl Rope {
    pub(crate) fn for_request(request: &Request<'_>) -> Self {
        Self(Vec::with_capacity(
            4 + 2 * request.entries.len() + 3 * request.marks.len(),
        ))
    }

    pub(crate) fn fixed(&mut self, bytes: &'static [u8]) {
        self.0.push(Bytes::from_static(bytes));
    }

    pub(crate) fn own(&mut self, text: String) {
        self.0.push(text.into());
    }

    /// Adds a piece, with its mark if one stands at `place`.
    pub(crate) fn encoded(
        &mut self,
        encoded: &Encoded,
        place: BreakpointPosition,
        marks: &[CacheBreakpoint],
    ) {
        let mark = marks.iter().find(|mark| mark.place == place);
        let (Some(mark), Some(at)) = (mark, encoded.mark_at) else {
            self.0.push(encoded.bytes.clone());
            return;
        };
        self.0.push(encoded.bytes.slice(..at));
        self.fixed(match mark.ttl {
            Ttl::FiveMinutes => MARK_5M,
            Ttl::OneHour => MARK_1H,
        });
        self.0.push(encoded.bytes.slice(at..));
    }

    /// Adds the entries, with commas between them.
    pub(crate) fn entries(&mut self, request: &Request<'_>) {
        for (index, entry) in request.entries.iter().enumerate() {
            if index > 0 {
                self.fixed(b",");
            }
            self.encoded(entry, BreakpointPosition::Entry(index), request.marks);
        }
    }

    pub(crate) fn finish(self) -> Body {
        self.0.into_iter().collect()
    }
}
