//! The token for the requests to a server. It is refreshed before it ends, by one process at a time.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_port::clock::Clock;
use tokio_util::task::TaskTracker;

use super::credentials::{CredentialFile, CredentialFiles, Credentials, FileVersion};
use super::fault::SignInError;
use super::secret::Secret;
use super::token_request::{request_token, seconds};
use super::web::safe;
use crate::mcp::http_clients::HttpClients;

/// How long before its end a token is refreshed, in seconds.
const EARLY: u64 = 60;

/// A token.
pub(in crate::mcp) type Token = Arc<Secret>;

/// Gives the token for a server.
#[derive(Clone)]
pub(in crate::mcp) struct TokenSource {
    kept: Arc<KeptToken>,
    /// Refreshes that have begun: they are ended whoever waits, since a token that was replaced is
    /// good for nothing.
    refreshes: TaskTracker,
}

struct KeptToken {
    file: CredentialFile,
    clients: Arc<HttpClients>,
    clock: Arc<dyn Clock>,
    known: Mutex<LastRead>,
}

#[derive(Default)]
struct LastRead {
    version: Option<FileVersion>,
    credentials: Option<Arc<Credentials>>,
    /// A refresh token that was refused.
    refused: Option<Secret>,
}

impl TokenSource {
    pub(in crate::mcp) fn new(
        files: &CredentialFiles,
        url: &str,
        clients: Arc<HttpClients>,
        clock: Arc<dyn Clock>,
        refreshes: TaskTracker,
    ) -> Self {
        Self {
            kept: Arc::new(KeptToken {
                file: files.file(url),
                clients,
                clock,
                known: Mutex::default(),
            }),
            refreshes,
        }
    }

    /// Returns the token, if somebody has signed in. One that ends soon is refreshed, if that can be.
    pub(in crate::mcp) async fn token(&self) -> Option<Token> {
        let credentials = self.kept.credentials()?;
        let token = Arc::new(credentials.access_token.clone());
        let now = seconds(self.kept.clock.wall());
        if credentials.ends.is_none_or(|ends| now + EARLY < ends) {
            return Some(token);
        }
        // Whether it is still good is the server's word.
        Some(self.renewed(&token).await.unwrap_or(token))
    }

    /// Returns another token than one that the server has refused; none if there is none to be had.
    pub(in crate::mcp) async fn renewed(&self, refused: &Token) -> Option<Token> {
        let kept = Arc::clone(&self.kept);
        let refused = Arc::clone(refused);
        let renewal = self
            .refreshes
            .spawn(async move { kept.renew(&refused).await });
        renewal.await.ok().flatten().map(Arc::new)
    }

    /// Takes note that the server wants more to be permitted. Returns false if it is permitted already.
    pub(in crate::mcp) async fn want(&self, scopes: &[String]) -> bool {
        let Some(credentials) = self.kept.credentials() else {
            return true;
        };
        if !scopes.is_empty() && scopes.iter().all(|it| credentials.scopes.contains(it)) {
            return false;
        }
        // It can be asked for later, too: the server says so again.
        let _ = self.kept.want(scopes).await;
        true
    }
}

impl KeptToken {
    fn known(&self) -> MutexGuard<'_, LastRead> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is kept. Somebody else may have changed it.
    fn credentials(&self) -> Option<Arc<Credentials>> {
        let version = self.file.version();
        let mut known = self.known();
        if known.version != version {
            known.credentials = self.file.read().map(Arc::new);
            known.version = version;
        }
        known.credentials.clone()
    }

    async fn renew(&self, refused: &Secret) -> Option<Secret> {
        let lock = self.file.lock(&*self.clock).await.ok()?;
        let mut credentials = self.file.read()?;
        if credentials.access_token != *refused {
            // Somebody else has been faster.
            return Some(credentials.access_token);
        }
        let refresh = credentials.refresh_token.clone()?;
        if self.known().refused.as_ref() == Some(&refresh) {
            return None;
        }
        let form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh.expose().to_owned()),
            ("resource", credentials.resource.clone()),
        ];
        let endpoint = &credentials.token_endpoint;
        let given = request_token(&self.clients, endpoint, &credentials.client, form).await;
        let given = match given {
            Ok(given) => given,
            Err(error) => {
                // What is kept stays as it is: only a person replaces it.
                if let SignInError::Refused { .. } = error {
                    self.known().refused = Some(refresh);
                }
                return None;
            }
        };
        credentials.ends = given.ends(self.clock.wall());
        credentials.access_token = given.access;
        credentials.refresh_token = given.refresh.or(credentials.refresh_token);
        if let Some(scopes) = given.scopes {
            credentials.scopes = scopes;
        }
        // If it cannot be kept, it is good for as long as this process lives.
        if self.file.write(&credentials, &lock).is_err() {
            let version = self.file.version();
            let mut known = self.known();
            known.version = version;
            known.credentials = Some(Arc::new(credentials.clone()));
        }
        Some(credentials.access_token)
    }

    async fn want(&self, scopes: &[String]) -> io::Result<()> {
        let lock = self.file.lock(&*self.clock).await?;
        let Some(mut credentials) = self.file.read() else {
            return Ok(());
        };
        for scope in scopes {
            let all = [&credentials.scopes, &credentials.wanted];
            if !all.iter().any(|it| it.contains(scope)) {
                credentials.wanted.push(scope.clone());
            }
        }
        self.file.write(&credentials, &lock)
    }
}

/// Returns true if a token may be sent to an address.
pub(in crate::mcp) fn takes_tokens(url: &str) -> bool {
    safe(url).is_ok()
}
