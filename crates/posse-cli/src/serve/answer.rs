//! What a call of a tool is answered with.

use serde_json::{Value, json};

use crate::error;

/// The answer to a call.
#[derive(Debug)]
pub(super) struct ToolAnswer {
    /// What a model reads, in parts.
    texts: Vec<String>,
    structured: Option<Value>,
    is_error: bool,
}

impl ToolAnswer {
    /// Returns an object, for programs and for models.
    pub(super) fn object(object: Value) -> Self {
        Self {
            texts: vec![object.to_string()],
            structured: Some(object),
            is_error: false,
        }
    }

    /// Returns texts for models, and an object that says the same to programs.
    pub(super) fn told(texts: Vec<String>, object: Value, is_error: bool) -> Self {
        Self {
            texts,
            structured: Some(object),
            is_error,
        }
    }

    /// Returns an error that the model reads.
    pub(super) fn error(what: String) -> Self {
        Self {
            texts: vec![what],
            structured: None,
            is_error: true,
        }
    }

    /// Returns the result of the request.
    pub(super) fn result(self) -> Value {
        let content = self.texts.iter();
        let content: Vec<Value> = content
            .map(|text| json!({ "type": "text", "text": text }))
            .collect();
        let mut result = json!({ "content": content, "isError": self.is_error });
        if let Some(structured) = self.structured {
            result["structuredContent"] = structured;
        }
        result
    }
}

impl From<anyhow::Error> for ToolAnswer {
    fn from(failure: anyhow::Error) -> Self {
        let what = posse_port::in_a_line(failure.as_ref());
        Self::error(match error::hint(&failure) {
            Some(hint) => format!("{what}\nhint: {hint}"),
            None => what,
        })
    }
}
