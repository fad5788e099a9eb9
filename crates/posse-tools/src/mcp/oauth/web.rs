//! Requests to authorization servers, which are small and take a short time.

use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fault::SignInError;
use crate::address::is_local;
use crate::answer::{clip, root_cause};
use crate::mcp::http_clients::HttpClients;

/// How long a request may take.
pub(super) const LIMIT: Duration = Duration::from_secs(20);
/// How much of an answer is read.
const MOST: usize = 256 << 10;
/// How much is told of a refusal.
const TOLD: usize = 300;

/// Returns an address that secrets may be sent to.
pub(super) fn safe(address: &str) -> Result<Url, SignInError> {
    let url = Url::parse(address).ok().filter(Url::has_host);
    let url = url.ok_or_else(|| SignInError::Address(address.to_owned()))?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_local(&url) => Ok(url),
        "http" => Err(SignInError::Unsafe(address.to_owned())),
        _ => Err(SignInError::Address(address.to_owned())),
    }
}

/// An answer.
pub(super) struct WebAnswer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

/// Sends a request that `build` makes of a client.
pub(super) async fn send(
    clients: &HttpClients,
    url: &Url,
    build: impl FnOnce(reqwest::Client) -> RequestBuilder,
) -> Result<WebAnswer, SignInError> {
    let fault = |why: String| SignInError::Unreachable {
        url: url.to_string(),
        why,
    };
    let broken = |error: reqwest::Error| fault(root_cause(&error));
    let client = clients.client(url);
    let client = client.map_err(|error| fault(error.to_string()))?;
    let request = build(client).header(ACCEPT, "application/json");
    let mut answer = request.timeout(LIMIT).send().await.map_err(broken)?;
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(broken)? {
        body.extend_from_slice(&piece);
        if body.len() > MOST {
            return Err(fault("its answer is too long".into()));
        }
    }
    Ok(WebAnswer {
        status: answer.status(),
        body,
    })
}

/// Reads a document. There is none if the answer is something else: some servers have a page for
/// every address.
pub(super) async fn document<T: DeserializeOwned>(
    clients: &HttpClients,
    url: &Url,
) -> Result<Option<T>, SignInError> {
    let answer = send(clients, url, |client| client.get(url.clone())).await?;
    let is_there = answer.status.is_success();
    let document = is_there.then(|| serde_json::from_slice(&answer.body).ok());
    Ok(document.flatten())
}

/// Reads why a request was refused. An authorization server that is in trouble has not refused it.
pub(super) fn refusal(what: &'static str, answer: &WebAnswer) -> SignInError {
    let status = answer.status;
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let words = [&body["error"], &body["error_description"]];
    let words: Vec<&str> = words.into_iter().filter_map(Value::as_str).collect();
    let why = match words[..] {
        [] => format!("HTTP {status}"),
        _ => clip(&words.join(": "), TOLD).to_owned(),
    };
    let passes = ["temporarily_unavailable", "slow_down", "server_error"];
    let is_refused = status.is_client_error()
        && !matches!(status.as_u16(), 408 | 429)
        && body["error"]
            .as_str()
            .is_none_or(|it| !passes.contains(&it));
    match is_refused {
        true => SignInError::Refused { what, why },
        false => SignInError::Answer { what, why },
    }
}
