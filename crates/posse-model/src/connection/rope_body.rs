//! A body made of many parts, with known length. Large parts are not copied, small ones are
//! joined.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use posse_port::model::Body;

/// Small parts are joined up to this size, so that a long history does not need as many writes.
const JOIN_BELOW: usize = 16 << 10;

/// The rest of a [`Body`] that is not sent yet.
pub(super) struct RopeBody {
    parts: VecDeque<Bytes>,
    left: u64,
}

impl RopeBody {
    /// Returns a request's body.
    pub(super) fn wrap(body: &Body) -> reqwest::Body {
        reqwest::Body::wrap(Self {
            parts: body.parts().iter().cloned().collect(),
            left: body.len() as u64,
        })
    }

    /// Returns the next part, joined with small ones after it.
    fn next(&mut self) -> Option<Bytes> {
        let first = self.parts.pop_front()?;
        let mut size = first.len();
        let small = self.parts.iter().take_while(|next| {
            let joins = size + next.len() <= JOIN_BELOW;
            size += if joins { next.len() } else { 0 };
            joins
        });
        let count = small.count();
        if count == 0 {
            return Some(first);
        }
        // Not larger than needed: with many agents, many of them wait in as many connections.
        let mut joined = Vec::with_capacity(size);
        joined.extend_from_slice(&first);
        self.parts
            .drain(..count)
            .for_each(|next| joined.extend_from_slice(&next));
        Some(joined.into())
    }
}

impl http_body::Body for RopeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.next();
        self.left -= next.as_ref().map_or(0, Bytes::len) as u64;
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        // With an exact size hyper sends a content length; otherwise the body would be chunked.
        SizeHint::with_exact(self.left)
    }
}
