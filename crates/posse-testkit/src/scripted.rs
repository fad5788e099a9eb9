//! A scripted model in this process, and adapters that call it.

use std::error::Error;
use std::sync::Arc;

use posse_model::{
    Anthropic, ApiVersion, Auth, Connection, Endpoint, Governor, OpenAi, RetryPolicy,
};
use posse_port::clock::Clock;
use posse_scripted::{Script, Server, ServerOptions};

use crate::clock::TestClock;

/// An error while setting up a test.
pub type SetupError = Box<dyn Error + Send + Sync>;

/// Starts a server that plays `script`, on the machine's clock.
pub fn play(script: &str) -> Result<Server, SetupError> {
    Ok(Server::start(ServerOptions::playing(Script::parse(
        script,
    )?))?)
}

/// Starts a server that plays `script`, on a given clock.
pub fn play_on(clock: &TestClock, script: &str) -> Result<Server, SetupError> {
    let options = ServerOptions::playing(Script::parse(script)?);
    Ok(Server::start(ServerOptions {
        pace: Arc::new(clock.clone()),
        ..options
    })?)
}

/// An Anthropic adapter for the server at `url`.
pub fn anthropic(
    url: &str,
    clock: Arc<dyn Clock>,
    policy: RetryPolicy,
) -> Result<Anthropic, SetupError> {
    let endpoint = Endpoint {
        base_url: url.to_owned(),
        auth: Auth::ApiKey("test".to_owned().into()),
    };
    Ok(Anthropic::new(
        Connection::new(&endpoint, Governor::new(clock, policy))?,
        ApiVersion::V2026,
    ))
}

/// An OpenAI adapter for the server at `url`.
pub fn openai(url: &str, clock: Arc<dyn Clock>, policy: RetryPolicy) -> Result<OpenAi, SetupError> {
    let endpoint = Endpoint {
        base_url: format!("{url}/v1"),
        auth: Auth::Bearer("test".to_owned().into()),
    };
    let governor = Governor::new(clock, policy);
    Ok(OpenAi::new(Connection::new(&endpoint, governor)?))
}
