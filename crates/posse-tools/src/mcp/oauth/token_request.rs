//! Requests for tokens.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::CONTENT_TYPE;
use serde::Deserialize;
use serde_json::Value;

use super::client::{OAuthClient, encode};
use super::fault::SignInError;
use super::secret::Secret;
use super::web::{refusal, safe, send};
use crate::mcp::http_clients::HttpClients;

const WHAT: &str = "the request for a token";

/// A token that was given.
pub(super) struct GivenToken {
    pub(super) access: Secret,
    pub(super) refresh: Option<Secret>,
    /// How long it is good for, if that is said.
    pub(super) lasts: Option<Duration>,
    /// What it permits, if that is not what was asked for.
    pub(super) scopes: Option<Vec<String>>,
}

impl GivenToken {
    /// Returns when it ends, in seconds since 1970.
    pub(super) fn ends(&self, now: SystemTime) -> Option<u64> {
        self.lasts.map(|lasts| seconds(now) + lasts.as_secs())
    }
}

/// Returns a time in seconds since 1970.
pub(super) fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Value,
    refresh_token: Option<String>,
    scope: Option<String>,
}

/// Asks for a token.
pub(super) async fn request_token(
    clients: &HttpClients,
    endpoint: &str,
    client: &OAuthClient,
    mut form: Vec<(&'static str, String)>,
) -> Result<GivenToken, SignInError> {
    let url = safe(endpoint)?;
    let answer = send(clients, &url, |it| {
        let request = client.sign(&mut form, it.post(url.clone()));
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        request.body(encode(&form))
    });
    let answer = answer.await?;
    if !answer.status.is_success() {
        return Err(refusal(WHAT, &answer));
    }
    // The body is not told: it may have a token in it.
    let unusable = |why: &str| SignInError::Answer {
        what: WHAT,
        why: why.to_owned(),
    };
    let given: TokenAnswer =
        serde_json::from_slice(&answer.body).map_err(|_| unusable("it has no token"))?;
    if !given.token_type.eq_ignore_ascii_case("bearer") {
        return Err(unusable("its token is not for bearers"));
    }
    let lasts = match &given.expires_in {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    Ok(GivenToken {
        access: given.access_token.into(),
        refresh: given.refresh_token.map(Secret::from),
        lasts: lasts.map(Duration::from_secs),
        scopes: given
            .scope
            .map(|text| text.split_whitespace().map(str::to_owned).collect()),
    })
}
