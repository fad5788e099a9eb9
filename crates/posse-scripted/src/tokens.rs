//! A tokenizer that anybody can check with a pencil: four bytes are a token, and a block costs three more.

/// Tokens of a text.
pub(crate) fn of_bytes(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// Tokens of a block whose JSON is so many bytes long.
pub(crate) fn of_block(bytes: usize) -> u64 {
    3 + of_bytes(bytes)
}
