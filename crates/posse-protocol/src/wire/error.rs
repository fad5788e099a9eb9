//! Why a line cannot be read or written.

use std::fmt;

use super::version::{VERSION, Version};

/// Why a line cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// It is longer than this many bytes.
    TooLong(usize),
    /// It is not UTF-8.
    NotUtf8,
    /// It is not a message of the protocol.
    Malformed(String),
    /// The other side speaks a version that this posse cannot read.
    Version(Version),
    /// A message of a type that this posse does not know, or from a newer version and not readable
    /// by this one.
    Unknown(String),
    /// A prompt with something else than text and images.
    NotAPrompt,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(longest) => write!(f, "a line longer than {longest} bytes"),
            Self::NotUtf8 => f.write_str("a line that is not UTF-8"),
            Self::Malformed(why) => write!(f, "not a message: {why}"),
            Self::Version(theirs) => {
                let update = if theirs.major > VERSION.major {
                    "posse"
                } else {
                    "the other side"
                };
                write!(
                    f,
                    "this posse speaks version {} of the protocol; the other side speaks {}: update {update}",
                    VERSION.major, theirs.major
                )
            }
            Self::Unknown(kind) => write!(
                f,
                "version {VERSION} of the protocol has no message `{}`",
                kind.escape_debug()
            ),
            Self::NotAPrompt => f.write_str("a prompt can hold text and images only"),
        }
    }
}

impl std::error::Error for WireError {}

impl From<serde_json::Error> for WireError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// A line of a client that cannot be handled, and the id by which that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLine {
    /// The id that the client gave it.
    pub id: Option<String>,
    /// Why.
    pub error: WireError,
}
