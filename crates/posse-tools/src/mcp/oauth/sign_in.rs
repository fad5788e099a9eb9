//! A person signs in to a server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use posse_port::clock::Clock;
use posse_port::servers::SignInEntry;
use reqwest::Url;

use super::callback::{Callback, CallbackPort};
use super::client::{OAuthClient, client};
use super::credentials::{CredentialFile, CredentialFiles, Credentials};
use super::discovery::{AuthorizationServer, Discovered, discover};
use super::fault::SignInError;
use super::proof::{challenge, secret_text};
use super::token_request::request_token;
use super::web::safe;
use crate::mcp::http_clients::HttpClients;

const WHAT: &str = "the sign-in";
const OFFLINE: &str = "offline_access";

/// Signs people in to servers, and keeps what they are given in a directory.
pub struct McpSignIns {
    files: CredentialFiles,
    clients: HttpClients,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for McpSignIns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("McpSignIns").field(&self.files).finish()
    }
}

/// A sign-in that waits for the person.
#[derive(Debug)]
pub struct PendingSignIn {
    address: Url,
    port: CallbackPort,
    state: String,
    verifier: String,
    issuer: AuthorizationServer,
    resource: String,
    client: OAuthClient,
    scopes: Vec<String>,
    url: String,
}

/// What has come back from the authorization server, and is what was waited for.
pub struct SignInAnswer {
    code: String,
}

impl fmt::Debug for SignInAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SignInAnswer(…)")
    }
}

/// A sign-in that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIn {
    /// Who has signed the person in.
    pub issuer: String,
    /// What is permitted, if it is known.
    pub scopes: Vec<String>,
    /// True if it lasts without another one.
    pub is_lasting: bool,
}

impl McpSignIns {
    /// Returns what keeps credentials in `directory`, which need not be there.
    pub fn new(directory: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            files: CredentialFiles::new(directory),
            clients: HttpClients::default(),
            clock,
        }
    }

    fn file(&self, url: &str) -> CredentialFile {
        self.files.file(url)
    }

    /// Begins a sign-in to the server at `url`.
    pub async fn begin(
        &self,
        url: &str,
        entry: &SignInEntry,
    ) -> Result<PendingSignIn, SignInError> {
        let server = safe(url)?;
        let known = self.file(url).read();
        let last = known.as_ref().map(|it| it.issuer.as_str());
        let found = discover(&self.clients, &server, entry, last).await?;
        // What one authorization server has given means nothing to another.
        let known = known.filter(|it| it.issuer == found.issuer.issuer);
        let scopes = scopes(&found, entry, known.as_ref());
        let last = known.as_ref().and_then(|it| {
            let redirect = Url::parse(&it.client.redirect).ok()?;
            redirect.port()
        });
        let port = CallbackPort::open(entry.callback_port, last).await?;
        let Discovered {
            issuer, resource, ..
        } = found;
        let known = known.map(|it| it.client);
        let client = client(
            &self.clients,
            &issuer,
            entry,
            &port.redirect,
            known,
            &scopes,
        );
        let client = client.await?;
        let (state, verifier) = (secret_text(), secret_text());
        let mut address = safe(&issuer.authorization_endpoint)?;
        {
            let mut query = address.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", &port.redirect)
                .append_pair("code_challenge", &challenge(&verifier))
                .append_pair("code_challenge_method", "S256")
                .append_pair("state", &state)
                .append_pair("resource", &resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
            if scopes.iter().any(|it| it == OFFLINE) {
                query.append_pair("prompt", "consent");
            }
        }
        Ok(PendingSignIn {
            address,
            port,
            state,
            verifier,
            issuer,
            resource,
            client,
            scopes,
            url: url.to_owned(),
        })
    }

    /// Ends a sign-in: has the answer changed into a token, and keeps it.
    pub async fn finish(
        &self,
        pending: PendingSignIn,
        answer: SignInAnswer,
    ) -> Result<SignedIn, SignInError> {
        let form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", answer.code),
            ("redirect_uri", pending.port.redirect),
            ("code_verifier", pending.verifier),
            ("resource", pending.resource.clone()),
        ];
        let endpoint = pending.issuer.token_endpoint;
        let given = request_token(&self.clients, &endpoint, &pending.client, form).await?;
        let file = self.file(&pending.url);
        let credentials = Credentials {
            url: pending.url,
            issuer: pending.issuer.issuer,
            token_endpoint: endpoint,
            resource: pending.resource,
            client: pending.client,
            ends: given.ends(self.clock.wall()),
            access_token: given.access,
            refresh_token: given.refresh,
            scopes: given.scopes.unwrap_or(pending.scopes),
            wanted: Vec::new(),
        };
        let lock = file.lock(&*self.clock).await.map_err(SignInError::Keep)?;
        let written = file.write(&credentials, &lock);
        written.map_err(SignInError::Keep)?;
        Ok(SignedIn {
            is_lasting: credentials.refresh_token.is_some() || credentials.ends.is_none(),
            issuer: credentials.issuer,
            scopes: credentials.scopes,
        })
    }

    /// Forgets the sign-in to a server. Returns false if there was none.
    pub async fn forget(&self, url: &str) -> Result<bool, SignInError> {
        let file = self.file(url);
        let lock = file.lock(&*self.clock).await.map_err(SignInError::Keep)?;
        file.remove(&lock).map_err(SignInError::Keep)
    }
}

/// Returns what is asked for: what the entry says; else what the server wants, with what was permitted
/// the last time and what was too little since.
fn scopes(found: &Discovered, entry: &SignInEntry, known: Option<&Credentials>) -> Vec<String> {
    if let Some(scopes) = &entry.scopes {
        return scopes.clone();
    }
    let known = known
        .into_iter()
        .flat_map(|it| it.scopes.iter().chain(&it.wanted));
    let mut scopes: Vec<String> = Vec::new();
    for scope in found.scopes.iter().chain(known) {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    let offline = found.issuer.scopes_supported.as_deref().unwrap_or_default();
    let has_offline = offline.iter().any(|it| it == OFFLINE);
    if has_offline && !scopes.is_empty() && !scopes.iter().any(|it| it == OFFLINE) {
        scopes.push(OFFLINE.to_owned());
    }
    scopes
}

impl PendingSignIn {
    /// Returns where the person signs in.
    pub fn address(&self) -> &str {
        self.address.as_str()
    }

    /// Waits for the person's browser to come back.
    pub async fn wait(&self) -> Result<SignInAnswer, SignInError> {
        let callback = self.port.wait(&self.state).await;
        let callback = callback.map_err(|source| SignInError::Port { port: 0, source })?;
        self.answer(callback)
    }

    /// Reads what a person has pasted: the address that the browser was sent to, or the code in it.
    pub fn pasted(&self, text: &str) -> Result<SignInAnswer, SignInError> {
        let text = text.trim();
        match Url::parse(text) {
            Ok(url) => self.answer(Callback::read(&url)),
            // Nobody but the authorization server has it, and it is of use only with the verifier.
            Err(_) if !text.is_empty() && !text.contains(char::is_whitespace) => Ok(SignInAnswer {
                code: text.to_owned(),
            }),
            Err(_) => Err(SignInError::Callback(
                "paste the whole address, or its code",
            )),
        }
    }

    fn answer(&self, callback: Callback) -> Result<SignInAnswer, SignInError> {
        if callback.state.as_deref() != Some(&*self.state) {
            return Err(SignInError::Callback("its state is another one"));
        }
        // Compared letter by letter, before anything else of it is believed.
        let advertised = self.issuer.authorization_response_iss_parameter_supported;
        match &callback.issuer {
            Some(issuer) if *issuer != self.issuer.issuer => {
                return Err(SignInError::Callback("it comes from somebody else"));
            }
            None if advertised => {
                return Err(SignInError::Callback("it does not say from whom it comes"));
            }
            _ => {}
        }
        match (callback.code, callback.error) {
            (_, Some(error)) => {
                let description = callback.error_description;
                let why = description.map_or_else(|| error.clone(), |it| format!("{error}: {it}"));
                Err(SignInError::Refused { what: WHAT, why })
            }
            (Some(code), None) => Ok(SignInAnswer { code }),
            (None, None) => Err(SignInError::Callback("it has no code")),
        }
    }
}
