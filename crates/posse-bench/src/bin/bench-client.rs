//! A client to measure: posse's adapter, or a bare program that reads and parses the same streams.
//!
//! `bench-client posse|bare URL TEXT STREAMS` prints `{"completed": N, "cpu_ms": X}`.

#![expect(
    clippy::print_stdout,
    reason = "a measuring program prints what it measured"
)]

use std::error::Error;
use std::sync::Arc;

use posse_model::RetryPolicy;
use posse_port::clock::SystemClock;
use posse_port::model::{Attribution, Call, Model, Preamble, Request, Standing, Thinking};
use posse_protocol::Message;
use posse_testkit::{bare, scripted};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, url, text, streams] = &arguments[..] else {
        return Err("bench-client posse|bare URL TEXT STREAMS".into());
    };
    let streams: u32 = streams.parse()?;
    let completed = match kind.as_str() {
        "posse" => ours(url, text, streams).await?,
        _ => bare(url, text, streams).await?,
    };
    println!(
        "{}",
        serde_json::json!({"completed": completed, "cpu_ms": cpu_ms()?})
    );
    Ok(())
}

/// Returns the processor time of this process's one thread so far.
fn cpu_ms() -> Result<f64, Failed> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(text.split(' ').next().unwrap_or_default().parse::<f64>()? / 1e6)
}

async fn ours(url: &str, text: &str, streams: u32) -> Result<u32, Failed> {
    let clock = Arc::new(SystemClock::default());
    let model = Arc::new(scripted::anthropic(url, clock, RetryPolicy::default())?);
    let mut running = JoinSet::new();
    for _ in 0..streams {
        let (model, text) = (Arc::clone(&model), text.to_owned());
        running.spawn(async move {
            let preamble = model.preamble(&Preamble {
                model: "claude-opus-5".into(),
                tools: Vec::new(),
                system: Vec::new(),
                thinking: Thinking::Default,
                effort: None,
            });
            let entries = [model.entry(&Message::user(text))];
            let body = model.body(&Request {
                preamble: &preamble,
                loaded: &[],
                entries: &entries,
                marks: &[],
                max_tokens: 4096,
                previous: None,
            });
            let (attribution, cancel) = (Attribution::default(), CancellationToken::new());
            let call = Call {
                body,
                model: "claude-opus-5",
                standing: &Standing::default(),
                attribution: &attribution,
                cancel: &cancel,
                on: &mut |_| {},
            };
            model
                .call(call)
                .await
                .is_ok_and(|reply| reply.attempts == 1 && !reply.content.is_empty())
        });
    }
    count(running).await
}

async fn bare(url: &str, text: &str, streams: u32) -> Result<u32, Failed> {
    let http = posse_model::http_client(url)?;
    let body = serde_json::json!({
        "model": "claude-opus-5", "max_tokens": 4096, "stream": true,
        "messages": [{"role": "user", "content": text}],
    });
    let (url, body) = (format!("{url}/v1/messages"), body.to_string());
    let mut running = JoinSet::new();
    for _ in 0..streams {
        let request = http
            .post(&url)
            .header("content-type", "application/json")
            .header("anthropic-version", "2026-10-21")
            .header("x-api-key", "test")
            .body(body.clone());
        running.spawn(async move { bare::read(request).await.is_ok_and(|text| !text.is_empty()) });
    }
    count(running).await
}

async fn count(mut running: JoinSet<bool>) -> Result<u32, Failed> {
    let mut completed = 0;
    while let Some(done) = running.join_next().await {
        completed += u32::from(done?);
    }
    Ok(completed)
}
