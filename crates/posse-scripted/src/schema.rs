//! The closed schemas of requests: whatever is not in them is refused, in the words of the real
//! API.

use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};

use crate::api_error::ApiRefusal;

/// A closed schema, compiled when it is first needed.
pub(crate) struct Schema(LazyLock<Result<Validator, SchemaError>>);

/// Why a schema of ours cannot be used.
#[derive(Debug, thiserror::Error)]
enum SchemaError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Schema(#[from] ValidationError<'static>),
}

/// `POST /v1/messages`.
pub(crate) static MESSAGES: Schema = Schema(LazyLock::new(|| compile(STABLE, messages)));
/// The same with beta features.
pub(crate) static MESSAGES_BETA: Schema = Schema(LazyLock::new(|| compile(BETA, messages)));
/// `POST /v1/messages/count_tokens`.
pub(crate) static COUNT_TOKENS: Schema = Schema(LazyLock::new(|| compile(STABLE, count_tokens)));
/// The same with beta features.
pub(crate) static COUNT_TOKENS_BETA: Schema = Schema(LazyLock::new(|| compile(BETA, count_tokens)));
/// `POST /v1/chat/completions`.
pub(crate) static CHAT: Schema = Schema(LazyLock::new(|| compile(CHAT_REQUEST, messages)));

/// Returns true if the API knows a beta of this name.
pub(crate) fn is_beta(name: &str) -> bool {
    static KNOWN: LazyLock<Vec<String>> = LazyLock::new(|| {
        let schema: Value = serde_json::from_str(BETA).unwrap_or_default();
        let known = &schema["properties"]["betas"]["items"]["anyOf"][1]["enum"];
        known
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    });
    OTHER_BETAS.contains(&name) || KNOWN.iter().any(|known| known == name)
}

/// Betas that clients use although the published list lacks them.
const OTHER_BETAS: &[&str] = &[
    "claude-code-20250219",
    "effort-2025-11-24",
    "fine-grained-tool-streaming-2025-05-14",
    "oauth-2025-04-20",
    "prompt-caching-scope-2026-01-05",
];

const STABLE: &str = include_str!("../schemas/anthropic_request.json");
const BETA: &str = include_str!("../schemas/anthropic_request_beta.json");
const CHAT_REQUEST: &str = include_str!("../schemas/openai_request.json");

/// Streaming and plain requests differ in one field; betas are named in a header, not in the
/// body.
fn messages(schema: &mut Value) {
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.shift_remove("betas");
    }
    schema["properties"]["stream"] = json!({"type": "boolean"});
    require(schema, |name| name != "stream");
}

/// Removes fields about generating, since nothing is generated.
fn count_tokens(schema: &mut Value) {
    let generating = [
        "betas",
        "max_tokens",
        "stream",
        "stop_sequences",
        "metadata",
        "service_tier",
        "diagnostics",
    ];
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !generating.contains(&name.as_str()));
    }
    require(schema, |name| !generating.contains(&name));
}

fn require(schema: &mut Value, keep: impl Fn(&str) -> bool) {
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| name.as_str().is_some_and(&keep));
    }
}

fn compile(text: &str, adapt: fn(&mut Value)) -> Result<Validator, SchemaError> {
    let mut schema = serde_json::from_str(text)?;
    adapt(&mut schema);
    Ok(jsonschema::draft202012::new(&schema)?)
}

impl Schema {
    /// Refuses an invalid request, with the most relevant error.
    pub(crate) fn check(&self, request: &Value) -> Result<(), ApiRefusal> {
        let validator = self
            .0
            .as_ref()
            .map_err(|error| ApiRefusal::invalid(error.to_string()))?;
        if validator.is_valid(request) {
            return Ok(());
        }
        let mut errors: Vec<String> = validator
            .iter_errors(request)
            .map(|error| tell(&error))
            .collect();
        // The real API names an extra field first.
        errors.sort_by_key(|error| !error.ends_with(EXTRA));
        let worst = errors.into_iter().next();
        Err(ApiRefusal::invalid(
            worst.unwrap_or_else(|| "the request is not valid".to_owned()),
        ))
    }
}

const EXTRA: &str = "Extra inputs are not permitted";

/// Returns an error in the API's words: the path with dots, then what is wrong there.
fn tell(error: &ValidationError<'_>) -> String {
    let path = error
        .instance_path()
        .to_string()
        .trim_start_matches('/')
        .replace('/', ".");
    let at = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            format!(
                "{}: {EXTRA}",
                at(unexpected.first().map_or("?", String::as_str))
            )
        }
        Kind::Required { property } => {
            format!("{}: Field required", at(property.as_str().unwrap_or("?")))
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => closest(context)
            .unwrap_or_else(|| format!("{path}: Input does not match any allowed form")),
        _ => format!("{path}: {error}"),
    }
}

/// Returns the error of the form that was meant: the one whose tag fits, or that matches most.
fn closest(forms: &[Vec<ValidationError<'static>>]) -> Option<String> {
    let is_tag = |error: &ValidationError<'_>| {
        let path = error.instance_path().to_string();
        let names_tag = path.ends_with("/type") || path.ends_with("/role");
        names_tag && matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. })
    };
    let is_shape = |error: &ValidationError<'_>| matches!(error.kind(), Kind::Type { .. });
    let best = forms
        .iter()
        .filter(|errors| !errors.is_empty())
        .min_by_key(|errors| {
            (
                errors.iter().any(is_tag),
                errors.iter().all(is_shape),
                errors.len(),
            )
        })?;
    let mut told: Vec<String> = best.iter().map(|error| tell(error)).collect();
    told.sort_by_key(|error| !error.ends_with(EXTRA));
    told.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_as_the_api_tells_them() {
        let request = |extra: &str, block: Value| {
            let mut request = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [block]}]});
            if !extra.is_empty() {
                request[extra] = json!(1);
            }
            MESSAGES.check(&request).map_err(|refusal| refusal.message)
        };
        let text = json!({"type": "text", "text": "x"});
        assert_eq!(request("", text.clone()), Ok(()));
        assert_eq!(
            request("temperature", text),
            Err("temperature: Extra inputs are not permitted".into())
        );
        assert_eq!(
            request("", json!({"type": "text", "text": "x", "colour": 1})),
            Err("messages.0.content.0.colour: Extra inputs are not permitted".into())
        );
        assert_eq!(
            request("", json!({"type": "tool_result", "content": "x"})),
            Err("messages.0.content.0.tool_use_id: Field required".into())
        );
        let unknown = request("", json!({"type": "video", "url": "x"})).unwrap_err();
        assert!(unknown.starts_with("messages.0.content.0"), "{unknown}");
    }
}
