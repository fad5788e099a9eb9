//! Limits of an account that a person has set.

/// What an account may do, for each of its models. Limits that the provider tells apply as well:
/// the lower one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountLimits {
    /// Requests per minute.
    pub requests: Option<u64>,
    /// Uncached input tokens per minute.
    pub input_tokens: Option<u64>,
    /// Output tokens per minute.
    pub output_tokens: Option<u64>,
    /// Tokens per minute, input and output together.
    pub tokens: Option<u64>,
    /// Requests at once.
    pub concurrent: Option<usize>,
}
