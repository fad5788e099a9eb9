//! Servers that inputs are posted to.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use posse_port::hooks::{HookCall, HookFailure, HookReturn};
use posse_port::process::ProcessBoundary;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};

use super::{MOST_BYTES, MOST_REQUESTS, failed, over, text};
use crate::address::is_local;
use crate::answer::{clip, root_cause};

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How much of the body of a refusal is told.
const REFUSAL_BYTES: usize = 2000;

/// The servers of hooks.
pub(super) struct HookServers {
    /// Values for headers.
    environment: BTreeMap<String, String>,
    /// Built with the first request, since loading certificates takes time: one for servers of this
    /// machine, which need no proxy, and one for others.
    clients: [OnceLock<Result<Client, reqwest::Error>>; 2],
}

/// A request to a server.
#[derive(Clone, Copy)]
pub(super) struct HookRequest<'a> {
    pub(super) url: &'a str,
    pub(super) headers: &'a [(String, String)],
    /// Variables that the headers may name.
    pub(super) variables: &'a [String],
}

impl HookServers {
    /// Returns servers that are told these variables at most.
    pub(super) fn new(environment: BTreeMap<String, String>) -> Self {
        Self {
            environment,
            clients: Default::default(),
        }
    }

    /// Posts the input of a call.
    pub(super) async fn post(&self, request: HookRequest<'_>, call: &HookCall) -> HookReturn {
        tokio::select! {
            biased;
            failure = over(call) => failed(failure),
            said = self.exchange(request, call) => said.unwrap_or_else(failed),
        }
    }

    async fn exchange(
        &self,
        request: HookRequest<'_>,
        call: &HookCall,
    ) -> Result<HookReturn, HookFailure> {
        let url = Url::parse(request.url);
        let url = url.map_err(|error| not_run(format!("`{}`: {error}", request.url)))?;
        let headers = self.headers(request)?;
        admit(&url, call).await?;
        let client = self.client(&url)?;
        let sent = client.post(url).headers(headers).body(call.input.clone());
        let mut response = sent.send().await.map_err(|error| unreachable(&error))?;
        let status = response.status();
        let body = body(&mut response).await?;
        if status.is_success() {
            return Ok(HookReturn {
                output: text(body),
                code: Some(0),
                ..HookReturn::default()
            });
        }
        Ok(HookReturn {
            errors: clip(&text(body), REFUSAL_BYTES).to_owned(),
            ..failed(HookFailure::Refused(format!("HTTP {status}")))
        })
    }

    fn headers(&self, request: HookRequest<'_>) -> Result<HeaderMap, HookFailure> {
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, json)]);
        let value_of = |name: &str| {
            let listed = request.variables.iter().any(|it| it == name);
            let value = listed.then(|| self.environment.get(name)).flatten();
            value.map_or("", String::as_str)
        };
        for (name, value) in request.headers {
            let wrong = || not_run(format!("the header `{name}` cannot be sent"));
            let key = HeaderName::try_from(name).map_err(|_| wrong())?;
            let value = HeaderValue::try_from(expanded(value, value_of)).map_err(|_| wrong())?;
            headers.insert(key, value);
        }
        Ok(headers)
    }

    fn client(&self, url: &Url) -> Result<&Client, HookFailure> {
        let is_local = is_local(url);
        let [local, other] = &self.clients;
        let client = if is_local { local } else { other };
        let client = client.get_or_init(|| build(is_local));
        client.as_ref().map_err(|error| {
            not_run(format!(
                "the HTTP client did not start: {}",
                root_cause(error)
            ))
        })
    }
}

/// Waits until the host of a request is allowed.
async fn admit(url: &Url, call: &HookCall) -> Result<(), HookFailure> {
    let ProcessBoundary::Sandbox(bounds) = &call.boundary else {
        return Ok(());
    };
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']);
    let port = url.port_or_known_default().unwrap_or_default();
    let gate = Arc::clone(&bounds.hosts);
    let admitted = gate.admit(host, port).await;
    admitted.map_err(|refused| not_run(format!("{host}: {refused}")))
}

fn build(is_local: bool) -> Result<Client, reqwest::Error> {
    // Fails only when a provider is installed already, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(MOST_REQUESTS)
        .user_agent(concat!("posse/", env!("CARGO_PKG_VERSION")));
    // The others are reached by the proxies of the environment, as models are.
    if is_local {
        builder.no_proxy().build()
    } else {
        builder.build()
    }
}

/// Reads the body of a reply.
async fn body(response: &mut Response) -> Result<Vec<u8>, HookFailure> {
    let mut body = Vec::new();
    while let Some(piece) = response
        .chunk()
        .await
        .map_err(|error| unreachable(&error))?
    {
        body.extend_from_slice(&piece);
        if body.len() > MOST_BYTES {
            return Err(HookFailure::TooLong(MOST_BYTES));
        }
    }
    Ok(body)
}

fn unreachable(error: &reqwest::Error) -> HookFailure {
    not_run(format!("it cannot be reached: {}", root_cause(error)))
}

fn not_run(why: String) -> HookFailure {
    HookFailure::NotRun(why)
}

/// Returns a text with the values of what it names as `$NAME` or `${NAME}`.
fn expanded<'a>(text: &str, value_of: impl Fn(&str) -> &'a str) -> String {
    let mut parts = text.split('$');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let braced = part.strip_prefix('{').and_then(|it| it.split_once('}'));
        let (name, rest) = braced.unwrap_or_else(|| {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            part.split_at(end.unwrap_or(part.len()))
        });
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            whole.push('$');
            whole.push_str(part);
        } else {
            whole.push_str(value_of(name));
            whole.push_str(rest);
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_texts_become_values() {
        let check = |text, expected: &str| {
            let value = |name: &str| if name == "KEY" { "k" } else { "" };
            assert_eq!(expanded(text, value), expected, "{text}");
        };
        check("Bearer $KEY", "Bearer k");
        check("${KEY}S $KEY-$KEY", "kS k-k");
        check("$OTHER.${OTHER}", ".");
        check("$5 $ ${ $", "$5 $ ${ $");
    }
}
