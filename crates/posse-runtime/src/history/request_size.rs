//! How large a request is.

use posse_port::model::Piece;

/// More than a request has around its pieces, in bytes.
const AROUND: usize = 1024;

/// How large requests are, as far as it was paid for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paid {
    /// Tokens of the last request and its reply.
    pub(crate) tokens: u64,
    /// Bytes of the last request.
    pub(crate) bytes: usize,
    /// Whether any call was made.
    pub(crate) begun: bool,
}

impl Paid {
    /// What is known of the first request of a fork.
    pub(crate) fn of_parent(self) -> Self {
        Self {
            begun: false,
            ..self
        }
    }

    /// The most tokens that a request of this size can be: no token is shorter than a byte.
    pub(crate) fn input(&self, size: usize) -> u64 {
        self.tokens
            .saturating_add(size.saturating_sub(self.bytes) as u64)
    }
}

/// More than the size of a request of these pieces, in bytes.
pub(crate) fn size<'a>(preamble: &Piece, pieces: impl IntoIterator<Item = &'a Piece>) -> usize {
    preamble.bytes.len()
        + pieces
            .into_iter()
            .map(|piece| piece.bytes.len())
            .sum::<usize>()
        + AROUND
}
