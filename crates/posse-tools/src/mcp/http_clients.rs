//! The clients of servers over HTTP.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use crate::address::is_local;
use crate::answer::root_cause;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How many redirects within a server are followed.
const MOST_REDIRECTS: usize = 5;

/// The clients of servers over HTTP. Built with the first of them, since loading certificates takes
/// time: one for servers of this machine, which need no proxy, and one for others.
#[derive(Debug, Default)]
pub(super) struct HttpClients([OnceLock<Result<Client, ClientFault>>; 2]);

/// Why there is no client.
#[derive(Clone, Debug, thiserror::Error)]
#[error("there is no client for it: {0}")]
pub(super) struct ClientFault(String);

impl HttpClients {
    /// Returns the client for a server.
    pub(super) fn client(&self, url: &Url) -> Result<Client, ClientFault> {
        let is_local = is_local(url);
        let [local, other] = &self.0;
        let client = if is_local { local } else { other };
        let build = || build(is_local).map_err(|error| ClientFault(root_cause(&error)));
        client.get_or_init(build).clone()
    }
}

fn build(is_local: bool) -> Result<Client, reqwest::Error> {
    // Fails only when a provider is installed already, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .http1_only()
        .redirect(Policy::custom(|attempt| {
            // A redirect elsewhere would take the headers along, and others lose the message.
            let keeps_body = matches!(attempt.status().as_u16(), 307 | 308);
            let first = attempt.previous().first();
            let is_same = first.is_some_and(|it| it.origin() == attempt.url().origin());
            if keeps_body && is_same && attempt.previous().len() <= MOST_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }))
        .connect_timeout(CONNECT)
        .user_agent(concat!("posse/", env!("CARGO_PKG_VERSION")));
    if is_local {
        builder.no_proxy().build()
    } else {
        builder.build()
    }
}
