//! Finds out who lets people sign in to a server, from what both of them publish (RFC 9728, RFC 8414).

use posse_port::servers::SignInEntry;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::json;

use super::challenge::Challenge;
use super::fault::SignInError;
use super::web::{document, safe};
use crate::answer::root_cause;
use crate::mcp::http_clients::HttpClients;

const OF_RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OF_ISSUER: &str = "/.well-known/oauth-authorization-server";
const OF_OPENID: &str = "/.well-known/openid-configuration";

/// What a server says of itself.
#[derive(Debug, Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// What an authorization server says of itself.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) grant_types_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// True if a client can be the address of a document.
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    /// True if it says in its answer who it is.
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

/// Who lets people sign in to a server.
pub(super) struct Discovered {
    pub(super) issuer: AuthorizationServer,
    /// What the server is called there.
    pub(super) resource: String,
    /// What is to be permitted, if anybody says so.
    pub(super) scopes: Vec<String>,
}

/// Finds out who lets people sign in to the server at `url`. `last` is who did the last time.
pub(super) async fn discover(
    clients: &HttpClients,
    url: &Url,
    entry: &SignInEntry,
    last: Option<&str>,
) -> Result<Discovered, SignInError> {
    let challenge = ask(clients, url).await?;
    let resource = resource(clients, url, challenge.as_ref()).await?;
    let issuers = resource.as_ref().map(|it| &it.authorization_servers[..]);
    let issuers = issuers.unwrap_or_default();
    let issuer = match &entry.metadata_url {
        Some(address) => {
            let url = safe(address)?;
            let found = document(clients, &url).await?;
            let found: Option<AuthorizationServer> = found;
            found.ok_or_else(|| SignInError::NoMetadata(address.clone()))?
        }
        None => {
            let same = issuers.iter().find(|it| Some(it.as_str()) == last);
            match same.or_else(|| issuers.first()) {
                Some(issuer) => authorization_server(clients, issuer).await?,
                // Servers of the first version with OAuth did it all themselves.
                None => {
                    let issuer = url.origin().ascii_serialization();
                    let found = authorization_server(clients, &issuer).await;
                    found.map_err(|error| match error {
                        SignInError::NoMetadata(_) if challenge.is_none() => SignInError::NotWanted,
                        error => error,
                    })?
                }
            }
        }
    };
    let methods = issuer.code_challenge_methods_supported.as_deref();
    if !methods.unwrap_or_default().iter().any(|it| it == "S256") {
        return Err(SignInError::NoProof(issuer.issuer));
    }
    let asked = challenge.map(|it| it.scopes).filter(|it| !it.is_empty());
    let (name, supported) = match resource {
        Some(it) => (it.resource, it.scopes_supported),
        None => (without_fragment(url), None),
    };
    Ok(Discovered {
        issuer,
        resource: name,
        scopes: asked.or(supported).unwrap_or_default(),
    })
}

/// Asks the server for something that needs somebody to have signed in. Returns what it wants; none if
/// it answers.
async fn ask(clients: &HttpClients, url: &Url) -> Result<Option<Challenge>, SignInError> {
    let fault = |why: String| SignInError::Unreachable {
        url: url.to_string(),
        why,
    };
    let client = clients.client(url);
    let client = client.map_err(|error| fault(error.to_string()))?;
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let request = client
        .post(url.clone())
        .header(ACCEPT, "application/json, text/event-stream")
        .header(CONTENT_TYPE, "application/json")
        .timeout(super::web::LIMIT)
        .body(request.to_string());
    let answer = request.send().await;
    // The body does not matter, and may be a stream without an end.
    let answer = answer.map_err(|error| fault(root_cause(&error)))?;
    let is_wanted = answer.status() == reqwest::StatusCode::UNAUTHORIZED;
    Ok(is_wanted.then(|| Challenge::of(answer.headers())))
}

/// Reads what the server says of itself, if it says anything.
async fn resource(
    clients: &HttpClients,
    url: &Url,
    challenge: Option<&Challenge>,
) -> Result<Option<ResourceMetadata>, SignInError> {
    let named = challenge.and_then(|it| it.resource_metadata.as_deref());
    let places = match named {
        Some(address) => vec![safe(address)?],
        None => {
            let path = url.path().trim_end_matches('/');
            let mut places = vec![at(url, &format!("{OF_RESOURCE}{path}"))];
            if !path.is_empty() {
                places.push(at(url, OF_RESOURCE));
            }
            places
        }
    };
    for place in places {
        let found: Option<ResourceMetadata> = document(clients, &place).await?;
        if let Some(found) = found {
            return match is_of(&found.resource, url) {
                true => Ok(Some(found)),
                false => Err(SignInError::Resource(found.resource)),
            };
        }
    }
    Ok(None)
}

/// Returns true if a server is what a resource's name says, or below it.
fn is_of(resource: &str, url: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let (above, path) = (resource.path().trim_end_matches('/'), url.path());
    let rest = path.strip_prefix(above);
    let is_below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == url.origin() && is_below
}

/// Reads what an authorization server says of itself.
async fn authorization_server(
    clients: &HttpClients,
    issuer: &str,
) -> Result<AuthorizationServer, SignInError> {
    let url = safe(issuer)?;
    for place in issuer_places(&url) {
        let found: Option<AuthorizationServer> = document(clients, &place).await?;
        if let Some(found) = found {
            // Others could publish addresses of their own in its name.
            let same = |text: &str| text.trim_end_matches('/').to_owned();
            if same(&found.issuer) != same(issuer) {
                return Err(SignInError::Issuer {
                    expected: issuer.to_owned(),
                    found: found.issuer,
                });
            }
            return Ok(found);
        }
    }
    Err(SignInError::NoMetadata(issuer.to_owned()))
}

/// Returns where an issuer may describe itself, in the order of the protocol.
fn issuer_places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        at(issuer, &format!("{OF_ISSUER}{path}")),
        at(issuer, &format!("{OF_OPENID}{path}")),
    ];
    if !path.is_empty() {
        places.push(at(issuer, &format!("{path}{OF_OPENID}")));
    }
    places
}

/// Returns an address at the same host.
fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn an_issuer_is_looked_for_in_the_order_of_the_protocol() {
        let check = |issuer: &str, expected: &[&str]| {
            let places = issuer_places(&url(issuer));
            let places: Vec<&str> = places.iter().map(Url::as_str).collect();
            assert_eq!(places, expected, "{issuer}");
        };
        check(
            "https://a.b/t/1",
            &[
                "https://a.b/.well-known/oauth-authorization-server/t/1",
                "https://a.b/.well-known/openid-configuration/t/1",
                "https://a.b/t/1/.well-known/openid-configuration",
            ],
        );
        let root = [
            "https://a.b/.well-known/oauth-authorization-server",
            "https://a.b/.well-known/openid-configuration",
        ];
        check("https://a.b", &root);
        check("https://a.b/?q", &root);
    }

    #[test]
    fn a_server_is_below_what_it_says_it_is() {
        let server = url("https://a.b/x/mcp");
        for resource in ["https://a.b", "https://a.b/x/", "https://a.b/x/mcp"] {
            assert!(is_of(resource, &server), "{resource}");
        }
        for other in ["https://a.b/x/m", "https://c.b/x/mcp", "http://a.b", "x"] {
            assert!(!is_of(other, &server), "{other}");
        }
    }

    #[test]
    fn secrets_are_sent_to_safe_addresses_only() {
        for good in ["https://a.b", "http://localhost:3/x", "http://127.0.0.1"] {
            safe(good).unwrap();
        }
        for bad in ["http://a.b", "ftp://a.b", "file:///etc/passwd", "x", ""] {
            safe(bad).unwrap_err();
        }
    }
}
