//! A stream of events whose events have a bound.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::http_fault::HttpFault;

/// A body that fails if one of its events is too long.
pub(super) struct EventBody {
    body: reqwest::Body,
    most: usize,
    /// The length of the event so far.
    length: usize,
    /// True at the beginning of a line.
    at_start: bool,
}

impl EventBody {
    pub(super) fn new(body: reqwest::Body, most: usize) -> Self {
        Self {
            body,
            most,
            length: 0,
            at_start: true,
        }
    }

    /// Counts a piece. Returns false if an event is too long.
    fn count(&mut self, piece: &[u8]) -> bool {
        for &byte in piece {
            match byte {
                // An empty line ends an event.
                b'\n' if self.at_start => self.length = 0,
                b'\r' => {}
                _ => {
                    self.at_start = byte == b'\n';
                    self.length += 1;
                }
            }
            if self.length > self.most {
                return false;
            }
        }
        true
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = HttpFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpFault>>> {
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        let fits = frame.data_ref().is_none_or(|piece| self.count(piece));
        Poll::Ready(Some(if fits {
            Ok(frame)
        } else {
            Err(HttpFault::TooLong)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_one_by_one() {
        let mut body = EventBody::new(reqwest::Body::default(), 10);
        for _ in 0..3 {
            assert!(body.count(b"data: "));
            assert!(body.count(b"ab\r\n\r\n"));
        }
        assert!(body.count(b"data: a\n"));
        assert!(!body.count(b"data: b\n\n"));
    }
}
