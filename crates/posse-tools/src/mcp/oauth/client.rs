//! Who posse is to an authorization server: a client that the entry names, or one that registers itself.

use posse_port::servers::SignInEntry;
use reqwest::RequestBuilder;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::discovery::AuthorizationServer;
use super::fault::SignInError;
use super::secret::Secret;
use super::web::{refusal, safe, send};
use crate::mcp::http_clients::HttpClients;

const REGISTERING: &str = "posse as a client";

/// How a client shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientMethod {
    /// It does not.
    None,
    /// By a header.
    ClientSecretBasic,
    /// By fields of the form.
    ClientSecretPost,
}

impl ClientMethod {
    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
        }
    }

    fn read(text: &str) -> Result<Self, SignInError> {
        let all = [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost];
        let found = all.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| SignInError::ClientMethod(text.to_owned()))
    }

    /// Returns the first of `preferred` that the server takes.
    fn choose(issuer: &AuthorizationServer, preferred: [Self; 3]) -> Result<Self, SignInError> {
        let Some(taken) = &issuer.token_endpoint_auth_methods_supported else {
            return Ok(preferred[0]);
        };
        let is_taken = |it: &Self| taken.iter().any(|taken| taken == it.as_str());
        let found = preferred.into_iter().find(is_taken);
        found.ok_or_else(|| SignInError::ClientMethod(taken.join(", ")))
    }
}

/// A client of an authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OAuthClient {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Secret>,
    pub(super) method: ClientMethod,
    /// Where the browser comes back to.
    pub(super) redirect: String,
}

impl OAuthClient {
    /// Adds who it is to a form, or to the request.
    pub(super) fn sign(
        &self,
        form: &mut Vec<(&'static str, String)>,
        request: RequestBuilder,
    ) -> RequestBuilder {
        let secret = self.secret.as_ref().map(Secret::expose);
        if let (ClientMethod::ClientSecretBasic, Some(secret)) = (self.method, secret) {
            let encoded = |text: &str| encode(&[("", text.to_owned())])[1..].to_owned();
            return request.basic_auth(encoded(&self.id), Some(encoded(secret)));
        }
        form.push(("client_id", self.id.clone()));
        if let (ClientMethod::ClientSecretPost, Some(secret)) = (self.method, secret) {
            form.push(("client_secret", secret.to_owned()));
        }
        request
    }
}

/// Returns a form as it is sent.
pub(super) fn encode(form: &[(&str, String)]) -> String {
    let mut url = reqwest::Url::parse("http://localhost").ok();
    if let Some(url) = &mut url {
        url.query_pairs_mut().extend_pairs(form);
    }
    let query = url.and_then(|url| url.query().map(str::to_owned));
    query.unwrap_or_default()
}

/// Returns the client that posse is. `known` is the one of the last time.
pub(super) async fn client(
    clients: &HttpClients,
    issuer: &AuthorizationServer,
    entry: &SignInEntry,
    redirect: &str,
    known: Option<OAuthClient>,
    scopes: &[String],
) -> Result<OAuthClient, SignInError> {
    // A document describes a client to those who read such documents.
    let is_document = |id: &String| id.starts_with("https://");
    let reads_documents = issuer.client_id_metadata_document_supported;
    let named = entry.client_id.clone();
    if let Some(id) = named.filter(|id| reads_documents || !is_document(id)) {
        let secret = entry.client_secret.clone();
        let method = match secret {
            None => ClientMethod::None,
            Some(_) => ClientMethod::choose(
                issuer,
                [
                    ClientMethod::ClientSecretBasic,
                    ClientMethod::ClientSecretPost,
                    ClientMethod::None,
                ],
            )?,
        };
        return Ok(OAuthClient {
            id,
            secret: secret.map(Secret::from),
            method,
            redirect: redirect.to_owned(),
        });
    }
    match (known, &issuer.registration_endpoint) {
        (Some(known), _) if known.redirect == redirect => Ok(known),
        (_, Some(endpoint)) => register(clients, issuer, endpoint, redirect, scopes).await,
        (_, None) => Err(SignInError::NoRegistration(issuer.issuer.clone())),
    }
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

/// Makes posse known to an authorization server.
async fn register(
    clients: &HttpClients,
    issuer: &AuthorizationServer,
    endpoint: &str,
    redirect: &str,
    scopes: &[String],
) -> Result<OAuthClient, SignInError> {
    let url = safe(endpoint)?;
    let wanted = ClientMethod::choose(
        issuer,
        [
            ClientMethod::None,
            ClientMethod::ClientSecretBasic,
            ClientMethod::ClientSecretPost,
        ],
    )?;
    let supported = issuer.grant_types_supported.as_deref();
    let refreshes = supported.is_none_or(|all| all.iter().any(|it| it == "refresh_token"));
    let grants = match refreshes {
        true => &["authorization_code", "refresh_token"][..],
        false => &["authorization_code"],
    };
    let mut about = json!({
        "client_name": "posse", "redirect_uris": [redirect], "grant_types": grants,
        "response_types": ["code"], "token_endpoint_auth_method": wanted.as_str(),
        "application_type": "native",
    });
    if !scopes.is_empty() {
        about["scope"] = json!(scopes.join(" "));
    }
    let answer = send(clients, &url, |client| {
        let request = client.post(url.clone());
        let request = request.header(CONTENT_TYPE, "application/json");
        request.body(about.to_string())
    });
    let answer = answer.await?;
    if !answer.status.is_success() {
        return Err(refusal(REGISTERING, &answer));
    }
    let registered: Registered =
        serde_json::from_slice(&answer.body).map_err(|error| SignInError::Answer {
            what: REGISTERING,
            why: error.to_string(),
        })?;
    let method = registered.token_endpoint_auth_method.as_deref();
    Ok(OAuthClient {
        id: registered.client_id,
        secret: registered.client_secret.map(Secret::from),
        method: method.map_or(Ok(wanted), ClientMethod::read)?,
        redirect: redirect.to_owned(),
    })
}
