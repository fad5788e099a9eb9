//! Authentication and API version.

use http::HeaderMap;
use serde_json::Value;

use crate::api_error::ApiRefusal;
use crate::schema::{self, Schema};

/// What the headers determine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) betas: Vec<String>,
    /// The version that still has sampling parameters.
    pub(crate) old_version: bool,
}

/// Fields that exist only with a beta. Any of the named ones enables the field.
const BETA_FIELDS: &[(&str, &[&str])] = &[
    (
        "thinking/block_binding",
        &["thinking-binding-controls-2026-08-01"],
    ),
    ("output_config/task_budget", &["task-budgets-2026-03-13"]),
    (
        "context_management",
        &["context-management-2025-06-27", "compact-2026-01-12"],
    ),
    ("compaction", &["compact-2026-09-04"]),
    (
        "fallbacks",
        &[
            "server-side-fallback-2026-06-01",
            "server-side-fallback-2026-07-01",
        ],
    ),
    (
        "fallback_credit_token",
        &["fallback-credit-2026-06-01", "fallback-credit-2026-07-01"],
    ),
    (
        "mcp_servers",
        &[
            "mcp-client-2025-04-04",
            "mcp-client-2025-11-20",
            "mcp-client-2026-09-15",
        ],
    ),
    ("thread", &["message-threads-2026-08-12"]),
];

/// Checks authentication, version and betas.
pub(crate) fn check(headers: &HeaderMap) -> Result<Asked, ApiRefusal> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    };
    let bearer = text("authorization").strip_prefix("Bearer ").unwrap_or("");
    if text("x-api-key").is_empty() && bearer.is_empty() {
        return Err(ApiRefusal::new(401, "x-api-key header is required"));
    }
    let old_version = match text("anthropic-version") {
        "2023-06-01" => true,
        "2026-10-21" => false,
        "" => return Err(ApiRefusal::invalid("anthropic-version: header is required")),
        other => {
            return Err(ApiRefusal::invalid(format!(
                "anthropic-version: \"{other}\" is not a valid version for this API"
            )));
        }
    };
    let betas: Vec<String> = headers
        .get_all("anthropic-beta")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(|beta| beta.trim().to_owned())
        .filter(|beta| !beta.is_empty())
        .collect();
    if let Some(unknown) = betas.iter().find(|beta| !schema::is_beta(beta)) {
        return Err(ApiRefusal::invalid(format!(
            "Unexpected value(s) `{unknown}` for the `anthropic-beta` header."
        )));
    }
    Ok(Asked { betas, old_version })
}

impl Asked {
    /// Returns true if a beta is named.
    pub(crate) fn has(&self, beta: &str) -> bool {
        self.betas.iter().any(|named| named == beta)
    }

    /// Checks a body against the closed schema, and refuses fields of betas that were not named.
    pub(crate) fn check_fields(
        &self,
        body: &Value,
        stable: &Schema,
        beta: &Schema,
    ) -> Result<(), ApiRefusal> {
        for (field, betas) in BETA_FIELDS {
            let given = body
                .pointer(&format!("/{field}"))
                .is_some_and(|value| !value.is_null());
            if given && !betas.iter().any(|beta| self.has(beta)) {
                let field = field.replace('/', ".");
                return Err(ApiRefusal::invalid(format!(
                    "{field}: Extra inputs are not permitted"
                )));
            }
        }
        let schema = if self.betas.is_empty() { stable } else { beta };
        schema.check(body)
    }
}
