//! The model API that the examples talk with.

use std::env;
use std::error::Error;
use std::sync::Arc;

use posse_model::{Anthropic, ApiVersion, Auth, Connection, Endpoint, Governor, RetryPolicy};
use posse_port::clock::SystemClock;

/// Returns the model API that the environment names.
pub(crate) fn from_environment() -> Result<Anthropic, Box<dyn Error>> {
    let key = env::var("ANTHROPIC_API_KEY").map_err(|_| "set ANTHROPIC_API_KEY")?;
    let base_url = env::var("ANTHROPIC_BASE_URL");
    let endpoint = Endpoint {
        base_url: base_url.unwrap_or_else(|_| "https://api.anthropic.com".into()),
        auth: Auth::ApiKey(key.into()),
    };
    let clock = Arc::new(SystemClock::default());
    let governor = Governor::new(clock, RetryPolicy::default());
    let connection = Connection::new(&endpoint, governor)?;
    Ok(Anthropic::new(connection, ApiVersion::default()))
}
