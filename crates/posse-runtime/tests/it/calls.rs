//! Making a call and seeing all of it.

use std::sync::Arc;
use std::time::Duration;

use posse_model::RetryPolicy;
use posse_port::clock::Clock;
use posse_port::model::{
    Attribution, Body, CacheBreakpoint, Call, Encoded, Failure, Model, ModelError, ModelEvent,
    Preamble, Reply, Request, Standing, Thinking,
};
use posse_protocol::{Message, RawJson, ToolSpec};
use posse_testkit::TestClock;
use tokio_util::sync::CancellationToken;

/// What happened during a call.
pub(crate) struct Run {
    pub(crate) result: Result<Reply, Failure>,
    /// What was waited between attempts, in seconds.
    pub(crate) waits: Vec<f64>,
    /// What attempts that were retried failed of.
    pub(crate) failures: Vec<&'static str>,
    /// How much of the reply attempts had received that were cut.
    pub(crate) received: Vec<u64>,
    /// Everything that was shown, retries as `|`.
    pub(crate) shown: String,
    /// How far the clock moved.
    pub(crate) elapsed: Duration,
}

/// No spread, so that waits are exact.
pub(crate) fn policy() -> RetryPolicy {
    RetryPolicy {
        random: || 1.0,
        ..RetryPolicy::default()
    }
}

pub(crate) fn preamble(system: &str, tools: &[&str]) -> Preamble {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    Preamble {
        model: "claude-opus-5".into(),
        tools: tools
            .iter()
            .map(|name| ToolSpec {
                name: (*name).into(),
                description: format!("Does {name}."),
                input_schema: RawJson::parse(schema).unwrap(),
            })
            .collect(),
        system: vec![system.into()],
        thinking: Thinking::Default,
        effort: None,
    }
}

/// A body of preamble and messages.
pub(crate) fn body(
    model: &dyn Model,
    preamble: &Preamble,
    messages: &[Message],
    marks: &[CacheBreakpoint],
) -> Body {
    let entries: Vec<Encoded> = messages
        .iter()
        .map(|message| model.entry(message))
        .collect();
    model.body(&Request {
        preamble: &model.preamble(preamble),
        loaded: &[],
        entries: &entries,
        marks,
        max_tokens: 1024,
        previous: None,
    })
}

pub(crate) fn kind(error: &ModelError) -> &'static str {
    match error {
        ModelError::Cancelled => "cancelled",
        ModelError::Api(_) => "api",
        ModelError::Connect { .. } => "connect",
        ModelError::Cut { .. } => "cut",
        ModelError::Stalled { .. } => "stalled",
        ModelError::Garbled { .. } => "garbled",
    }
}

/// Calls and records, on a clock that runs by itself but for stalls.
pub(crate) async fn call(model: &dyn Model, clock: &TestClock, body: Body) -> Run {
    let (attribution, cancel) = (Attribution::default(), CancellationToken::new());
    let (mut waits, mut failures, mut shown) = (Vec::new(), Vec::new(), String::new());
    let mut cut_at = Vec::new();
    let mut on = |event: ModelEvent<'_>| match event {
        ModelEvent::Text(text) => shown.push_str(text),
        ModelEvent::Retry { wait, error, .. } => {
            waits.push(wait.as_secs_f64());
            failures.push(kind(error));
            if let ModelError::Cut { received, .. } = error {
                cut_at.push(*received);
            }
            shown.push('|');
        }
        _ => {}
    };
    let before = Clock::now(clock);
    let result = {
        let call = Call {
            body,
            model: "claude-opus-5",
            standing: &Standing::default(),
            attribution: &attribution,
            cancel: &cancel,
            on: &mut on,
        };
        tokio::select! {
            result = model.call(call) => result,
            () = clock.run_sparing(&TIMEOUTS) => unreachable!("a clock runs for ever"),
        }
    };
    Run {
        result,
        waits,
        failures,
        received: cut_at,
        shown,
        elapsed: Clock::now(clock) - before,
    }
}

/// What nobody should wait for: they run out only where a test makes them.
pub(crate) const TIMEOUTS: [Duration; 4] = [
    Duration::from_secs(600),
    Duration::from_secs(45),
    Duration::from_secs(5),
    Duration::from_millis(20),
];

/// A call of one user text.
pub(crate) async fn ask(model: &dyn Model, clock: &TestClock, text: &str) -> Run {
    let body = body(
        model,
        &preamble("Be brief.", &[]),
        &[Message::user(text)],
        &[],
    );
    call(model, clock, body).await
}

/// A clock as the port wants it.
pub(crate) fn port(clock: &TestClock) -> Arc<dyn Clock> {
    Arc::new(clock.clone())
}
