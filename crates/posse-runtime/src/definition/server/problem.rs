//! What can be wrong with an entry.

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerProblem {
    /// A name that tools could not have.
    #[error("`{0}` cannot be the name of a server: use letters, digits, `_` and `-`")]
    Name(String),
    /// A key that means nothing.
    #[error("`{key}` is not known and ignored{}", closest.as_ref().map_or_else(String::new, |it| format!(" (did you mean `{it}`?)")))]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that may be meant.
        closest: Option<String>,
    },
    /// A key that means something to other programs only.
    #[error("`{0}` is not used by posse")]
    NotUsed(&'static str),
    /// A value that is wrong, without which the entry still says what to start.
    #[error("`{key}` must be {expected}; it is ignored")]
    Ignored {
        /// The key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A value that is wrong.
    #[error("`{key}` must be {expected}")]
    Expected {
        /// The key.
        key: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A key that must be there.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// An address without its kind.
    #[error("`url` needs a `type`: add `\"type\": \"http\"`")]
    UrlWithoutType,
    /// A transport that posse does not speak.
    #[error(
        "`{0}` is not supported; many servers have streamable HTTP as well: try `\"type\": \"http\"` \
         with the address that their documentation gives for it"
    )]
    NotSpoken(String),
    /// A kind of transport that does not exist.
    #[error("`{0}` is not a kind of server; there are stdio and http")]
    UnknownKind(String),
}

impl ServerProblem {
    /// Returns true if the server is there all the same.
    pub fn is_note(&self) -> bool {
        matches!(
            self,
            Self::UnknownKey { .. } | Self::NotUsed(_) | Self::Ignored { .. }
        )
    }
}
