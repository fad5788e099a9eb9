//! The requests that the scripted model has seen, with their times.

use posse_protocol::Usage;
use serde::Deserialize;

use crate::Failed;

/// One request.
#[derive(Deserialize)]
pub(crate) struct Request {
    number: u64,
    /// When it arrived, and when the reply had been sent, in microseconds of the server's clock.
    pub(crate) at_us: u64,
    pub(crate) ended_us: Option<u64>,
    pub(crate) body: String,
    pub(crate) status: u16,
    /// Its billed usage, once the reply has begun.
    pub(crate) usage: Option<Usage>,
    headers: Vec<(String, String)>,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub(crate) fn agent(&self) -> &str {
        self.header("x-posse-agent-id")
    }

    pub(crate) fn path(&self) -> &str {
        self.header("x-posse-agent")
    }

    pub(crate) fn session(&self) -> &str {
        self.header("x-posse-session-id")
    }

    pub(crate) fn is_main(&self) -> bool {
        self.agent() == self.session()
    }

    /// When the reply had been sent.
    pub(crate) fn ended(&self) -> Result<u64, Failed> {
        self.ended_us
            .ok_or_else(|| "a reply is open that should not be".into())
    }
}

/// Returns all requests of a session, in order.
pub(crate) async fn of_session(url: &str, session: &str) -> Result<Vec<Request>, Failed> {
    since(url, session, &mut 0).await
}

/// The same from request number `next` on, which advances past the last request.
pub(crate) async fn since(
    url: &str,
    session: &str,
    next: &mut u64,
) -> Result<Vec<Request>, Failed> {
    let mut all = get(&format!("{url}/_scripted/requests?since={next}")).await?;
    *next = all.last().map_or(*next, |last| last.number + 1);
    all.retain(|request| request.session() == session);
    if let Some(refused) = all.iter().find(|request| request.status != 200) {
        return Err(format!("a request was refused: {}", refused.body).into());
    }
    Ok(all)
}

/// All requests.
pub(crate) async fn all(url: &str) -> Result<Vec<Request>, Failed> {
    get(&format!("{url}/_scripted/requests")).await
}

/// Waits until `count` requests have been made.
pub(crate) async fn wait_for(url: &str, count: usize) -> Result<(), Failed> {
    // Requests no records, which would be large.
    get(&format!(
        "{url}/_scripted/wait?count={count}&since={}",
        u64::MAX
    ))
    .await
    .map(drop)
}

async fn get(url: &str) -> Result<Vec<Request>, Failed> {
    let answer = posse_model::http_client(url)?
        .get(url)
        .send()
        .await?
        .error_for_status()?;
    Ok(serde_json::from_slice(&answer.bytes().await?)?)
}

/// Advances the server's clock.
pub(crate) async fn wait(url: &str, seconds: u64) -> Result<(), Failed> {
    let at = format!("{url}/_scripted/clock");
    let ahead = serde_json::json!({"advance_ms": seconds * 1000}).to_string();
    posse_model::http_client(url)?
        .post(at)
        .body(ahead)
        .send()
        .await?
        .error_for_status()?;
    Ok(())
}

/// Converts the difference of two times in microseconds to milliseconds.
pub(crate) fn millis(from: u64, to: u64) -> f64 {
    (to as f64 - from as f64) / 1e3
}
