//! What is wrong with a text that should be a rule.

/// Why a text is not a rule.
#[expect(missing_docs, reason = "each message says what its variant means")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleProblem {
    #[error("it contains invisible characters")]
    Invisible,
    #[error("the parenthesis is not closed at the end")]
    Unclosed,
    #[error("the parentheses are empty; omit them")]
    EmptyParentheses,
    #[error("it does not name a tool")]
    NoTool,
    #[error("a rule cannot allow everything; use a permission mode")]
    AllowsEverything,
    #[error("a rule that begins with `*` would allow any program; name the program")]
    AnyProgram,
    #[error("Outside(…) is only for the list of what is allowed")]
    OnlyAllows,
    #[error("it needs `domain:` and a host, such as `domain:docs.rs`")]
    NoDomain,
    #[error(
        "it needs a host, such as `docs.rs`, `*.docs.rs` or `db.example:5432`, or one of @crates, \
         @npm, @pypi and @github"
    )]
    NoHost,
    #[error("use Read(…) and Edit(…) for paths, for {0} too")]
    PathsOf(String),
    #[error("{0} takes no specifier")]
    NoSpecifier(String),
    #[error("there is no tool `{0}`")]
    UnknownTool(String),
    #[error("a server's tools are named mcp__server, mcp__server__* or mcp__server__tool")]
    ServerTool,
    #[error("an allow rule must name the server in full")]
    OpenServer,
    #[error("the home directory is unknown")]
    NoHome,
    #[error("`..` is not supported; write //absolute or /from/the/root")]
    Above,
    #[error("it does not name a path")]
    NoPath,
    #[error("a pattern cannot begin with `!`; add a rule to the opposite list")]
    Negated,
    /// What the matcher says of a pattern.
    #[error("{0}")]
    Pattern(String),
}
