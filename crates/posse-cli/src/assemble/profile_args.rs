//! Flags that programs made for Claude Code pass, such as its SDKs. What posse does not do is told.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use posse_port::model::{Effort, Thinking};
use posse_protocol::PermissionMode;
use posse_runtime::definition::output_schema::{OutputSchema, SchemaError};

/// The heading of flags that few people type.
pub(crate) const PROGRAMS: &str = "For programs";

/// How a new session's model works and what it answers, and flags that are accepted only.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ProfileArgs {
    /// Reasoning effort of a new session
    #[arg(long, value_name = "LEVEL", value_parser = efforts(), help_heading = PROGRAMS, hide_short_help = true)]
    pub(crate) effort: Option<Effort>,
    /// Thinking of a new session's model: adaptive or disabled
    #[arg(long, value_name = "KIND", value_parser = thinking(), help_heading = PROGRAMS, hide_short_help = true)]
    thinking: Option<Thinking>,
    /// Maximum number of tokens that a new session's model may think; 0 for none
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "thinking",
        help_heading = PROGRAMS, hide_short_help = true
    )]
    max_thinking_tokens: Option<u32>,
    /// JSON Schema that the answer must match; the result has it as `structured_output`
    #[arg(long, value_name = "SCHEMA", value_parser = schema, help_heading = PROGRAMS, hide_short_help = true)]
    pub(crate) json_schema: Option<OutputSchema>,
    /// Who is asked for approval: stdio, with --input-format stream-json
    #[arg(long, value_name = "TOOL", value_parser = ["stdio"], help_heading = PROGRAMS, hide_short_help = true)]
    pub(crate) permission_prompt_tool: Option<String>,
    /// The same as --permission-mode bypassPermissions
    #[arg(long, conflicts_with = "permission_mode", help_heading = PROGRAMS, hide_short_help = true)]
    dangerously_skip_permissions: bool,
    /// Let the program choose bypassPermissions later
    #[arg(long, help_heading = PROGRAMS, hide_short_help = true)]
    pub(crate) allow_dangerously_skip_permissions: bool,
    /// Accepted; posse retries with the session's model and does not change it
    #[arg(long, value_name = "MODEL", help_heading = PROGRAMS, hide_short_help = true)]
    fallback_model: Option<String>,
}

impl ProfileArgs {
    /// Returns the thinking of a new session's model.
    pub(crate) fn thinking(&self) -> Thinking {
        match (self.thinking, self.max_thinking_tokens) {
            (Some(thinking), _) => thinking,
            (None, Some(0)) => Thinking::Off,
            (None, Some(tokens)) => Thinking::Budget(tokens),
            (None, None) => Thinking::Default,
        }
    }

    /// Returns the mode that the flags ask for.
    pub(crate) fn mode(&self) -> Option<PermissionMode> {
        self.dangerously_skip_permissions
            .then_some(PermissionMode::BypassPermissions)
    }

    /// Returns what a flag asks for and posse does not do, a line each.
    pub(crate) fn unsupported(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(model) = &self.fallback_model {
            lines.push(format!(
                "--fallback-model {model} is not used: posse retries with the session's model"
            ));
        }
        lines
    }
}

/// Parses a level of effort.
fn efforts() -> impl TypedValueParser<Value = Effort> {
    let named = |word: &str| Effort::ALL.into_iter().find(|it| it.as_str() == word);
    PossibleValuesParser::new(Effort::ALL.map(Effort::as_str))
        .map(move |word| named(&word).unwrap_or(Effort::High))
}

/// Parses a kind of thinking.
fn thinking() -> impl TypedValueParser<Value = Thinking> {
    PossibleValuesParser::new(["adaptive", "disabled"]).map(|word| match word.as_str() {
        "disabled" => Thinking::Off,
        _ => Thinking::Adaptive,
    })
}

/// Why a text is not a schema.
#[derive(Debug, thiserror::Error)]
enum SchemaArgError {
    #[error("it is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Parses a schema.
fn schema(text: &str) -> Result<OutputSchema, SchemaArgError> {
    Ok(OutputSchema::new(&serde_json::from_str(text)?)?)
}
