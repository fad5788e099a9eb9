//! Joins encoded parts, with cache marks inserted at their stored offsets.

use bytes::Bytes;
use posse_port::model::{Body, BreakpointPosition, CacheBreakpoint, Encoded, Request, Ttl};

/// A cache mark for five minutes.
const MARK_5M: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
/// A cache mark for an hour.
const MARK_1H: &[u8] = br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

/// Bytes to insert into an encoded part.
pub(crate) struct Splice {
    /// Offset in the part.
    pub(crate) at: usize,
    /// The bytes.
    pub(crate) bytes: Bytes,
}

/// A body that is being assembled. Parts are shared, not copied.
pub(crate) struct Rope(Vec<Bytes>);

impl Rope {
    /// Returns an empty rope with space for a request.
    pub(crate) fn for_request(request: &Request<'_>) -> Self {
        Self(Vec::with_capacity(
            // The fixed parts, a comma per entry, three pieces of each part with a mark, and two for
            // what is loaded.
            6 + 2 * request.entries.len() + 3 * request.marks.len(),
        ))
    }

    /// Adds constant bytes.
    pub(crate) fn fixed(&mut self, bytes: &'static [u8]) {
        self.0.push(Bytes::from_static(bytes));
    }

    /// Adds a text.
    pub(crate) fn own(&mut self, text: String) {
        self.0.push(text.into());
    }

    /// Adds an encoded part, with a cache mark if one belongs there.
    pub(crate) fn encoded(
        &mut self,
        encoded: &Encoded,
        place: BreakpointPosition,
        marks: &[CacheBreakpoint],
    ) {
        self.spliced(encoded, place, marks, None);
    }

    /// Adds an encoded part, with a cache mark if one belongs there and with bytes that it gets for
    /// this request.
    pub(crate) fn spliced(
        &mut self,
        encoded: &Encoded,
        place: BreakpointPosition,
        marks: &[CacheBreakpoint],
        splice: Option<Splice>,
    ) {
        let mark = marks.iter().find(|mark| mark.place == place);
        let mark = mark.zip(encoded.mark_at).map(|(mark, at)| Splice {
            at,
            bytes: Bytes::from_static(match mark.ttl {
                Ttl::FiveMinutes => MARK_5M,
                Ttl::OneHour => MARK_1H,
            }),
        });
        let splices = match (mark, splice) {
            (Some(mark), Some(splice)) if splice.at < mark.at => [Some(splice), Some(mark)],
            splices => splices.into(),
        };
        let mut from = 0;
        for Splice { at, bytes } in splices.into_iter().flatten() {
            self.0.extend([encoded.bytes.slice(from..at), bytes]);
            from = at;
        }
        self.0.push(encoded.bytes.slice(from..));
    }

    /// Adds the entries, separated by commas.
    pub(crate) fn entries(&mut self, request: &Request<'_>) {
        for (index, entry) in request.entries.iter().enumerate() {
            if index > 0 {
                self.fixed(b",");
            }
            self.encoded(entry, BreakpointPosition::Entry(index), request.marks);
        }
    }

    /// Returns the body.
    pub(crate) fn finish(self) -> Body {
        self.0.into_iter().collect()
    }
}
