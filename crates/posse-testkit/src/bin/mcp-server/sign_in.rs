//! An authorization server beside the server (`--sign-in`): it signs everybody in, and counts.
//!
//! A refresh token is good for one refresh, as at the strictest of the real ones.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::options::Options;

/// How long a token is good for, in seconds.
const LASTS: u64 = 3600;

/// What was given to whom.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<Given>);

#[derive(Default)]
struct Given {
    /// How many texts were made.
    made: usize,
    /// Challenges by the codes that were given for them.
    codes: HashMap<String, String>,
    access: HashSet<String>,
    refresh: HashSet<String>,
}

/// An answer: its status, more headers and its body.
pub(crate) type SignInReply = (&'static str, String, Value);

impl SignIns {
    fn given(&self) -> MutexGuard<'_, Given> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a request has a token that was given.
    pub(crate) fn knows(&self, authorization: Option<&String>) -> bool {
        let token = authorization.and_then(|it| it.strip_prefix("Bearer "));
        token.is_some_and(|token| self.given().access.contains(token))
    }

    /// Answers a request that is not for the server; none if it is.
    pub(crate) fn reply(
        &self,
        options: &Options,
        origin: &str,
        target: &str,
        body: &[u8],
    ) -> Option<SignInReply> {
        let url = Url::parse(&format!("{origin}{target}")).ok()?;
        let reply = match url.path() {
            "/.well-known/oauth-protected-resource/mcp" => ok(json!({
                "resource": format!("{origin}/mcp"), "authorization_servers": [origin],
                "scopes_supported": ["tools"],
            })),
            "/.well-known/oauth-authorization-server" => ok(json!({
                "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": true,
            })),
            "/register" => {
                let about: Value = serde_json::from_slice(body).unwrap_or_default();
                let made = json!({
                    "client_id": "client", "redirect_uris": about["redirect_uris"],
                    "token_endpoint_auth_method": "none",
                });
                ("201 Created", String::new(), made)
            }
            "/authorize" => self.authorize(origin, &url),
            "/token" => self.token(options, body),
            _ => return None,
        };
        Some(reply)
    }

    fn authorize(&self, origin: &str, url: &Url) -> SignInReply {
        let asked: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let text = |name: &str| asked.get(name).cloned().unwrap_or_default();
        let Ok(mut back) = Url::parse(&text("redirect_uri")) else {
            return refused("invalid_request");
        };
        let mut given = self.given();
        let code = given.make("code");
        given.codes.insert(code.clone(), text("code_challenge"));
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &text("state"))
            .append_pair("iss", origin);
        ("302 Found", format!("Location: {back}\r\n"), json!({}))
    }

    fn token(&self, options: &Options, body: &[u8]) -> SignInReply {
        let form = String::from_utf8_lossy(body).into_owned();
        let form = Url::parse(&format!("http://localhost/?{form}"));
        let form: HashMap<String, String> = match &form {
            Ok(url) => url.query_pairs().into_owned().collect(),
            Err(_) => return refused("invalid_request"),
        };
        let text = |name: &str| form.get(name).cloned().unwrap_or_default();
        let mut given = self.given();
        let lasts = match text("grant_type").as_str() {
            "authorization_code" => {
                let verifier = Sha256::digest(text("code_verifier").as_bytes());
                let challenge = given.codes.remove(&text("code"));
                if challenge != Some(URL_SAFE_NO_PAD.encode(verifier)) {
                    return refused("invalid_grant");
                }
                options.first_lasts.unwrap_or(LASTS)
            }
            "refresh_token" if options.has("--refuse-refresh") => return refused("invalid_grant"),
            "refresh_token" if !given.refresh.remove(&text("refresh_token")) => {
                return refused("invalid_grant");
            }
            "refresh_token" => LASTS,
            _ => return refused("unsupported_grant_type"),
        };
        let (access, refresh) = (given.make("access"), given.make("refresh"));
        given.access.insert(access.clone());
        given.refresh.insert(refresh.clone());
        ok(json!({
            "access_token": access, "token_type": "Bearer", "expires_in": lasts,
            "refresh_token": refresh,
        }))
    }
}

impl Given {
    fn make(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("secret-{kind}-{}", self.made)
    }
}

fn ok(body: Value) -> SignInReply {
    ("200 OK", String::new(), body)
}

fn refused(error: &str) -> SignInReply {
    ("400 Bad Request", String::new(), json!({ "error": error }))
}
