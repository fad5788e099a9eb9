//! A turn without sending: a model that encodes like the real one and answers at once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use posse_model::RetryPolicy;
use posse_port::BoxFuture;
use posse_port::clock::{Clock, SystemClock};
use posse_port::model::{
    Body, Call, Encoded, Failure, Model, ModelChoice, Names, Preamble, RateLimits, Reply, Request,
};
use posse_protocol::{ContentBlock, Message, StopReason, ToolSpec, Usage};
use posse_testkit::scripted;
use serde_json::{Value, json};

use crate::ours::{memory_kb, runtime, start, turn};
use crate::{Failed, cpu_ms};

/// A model that encodes like another and answers at once.
pub(crate) struct AtOnce<M>(pub(crate) M);

impl<M> Names for AtOnce<M> {}

impl<M: Model> Model for AtOnce<M> {
    fn dialect(&self) -> &'static str {
        self.0.dialect()
    }

    fn preamble(&self, preamble: &Preamble) -> Encoded {
        self.0.preamble(preamble)
    }

    fn choice(&self, preamble: &Encoded) -> Option<ModelChoice> {
        self.0.choice(preamble)
    }

    fn with_choice(&self, preamble: &Encoded, choice: &ModelChoice) -> Option<Encoded> {
        self.0.with_choice(preamble, choice)
    }

    fn without_thinking(&self, reply: &Encoded) -> Encoded {
        self.0.without_thinking(reply)
    }

    fn with_definitions_as_text(&self, entry: &Encoded, tools: &[ToolSpec]) -> Encoded {
        self.0.with_definitions_as_text(entry, tools)
    }

    fn entry(&self, message: &Message) -> Encoded {
        self.0.entry(message)
    }

    fn encode_head(&self, content: &[ContentBlock]) -> Encoded {
        self.0.encode_head(content)
    }

    fn encode_tail(&self, content: &[ContentBlock]) -> Encoded {
        self.0.encode_tail(content)
    }

    fn body(&self, request: &Request<'_>) -> Body {
        self.0.body(request)
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Failure>> {
        assert!(!call.body.parts().is_empty());
        Box::pin(std::future::ready(Ok(Reply {
            id: "msg".into(),
            model: "claude-opus-5".into(),
            content: vec![ContentBlock::text(
                "An answer of a sentence or two. ".repeat(15),
            )],
            stop: StopReason::EndTurn,
            usage: Usage {
                input: 10,
                output: 10,
                ..Usage::default()
            },
            wasted: Vec::new(),
            cache_miss: None,
            limits: RateLimits::default(),
            attempts: 1,
        })))
    }
}

/// Measures the cost of idle agents that are alive and have had a turn.
pub(crate) async fn idle(directory: &Path, agents: u32, seconds: u64) -> Result<Value, Failed> {
    let clock = Arc::new(SystemClock::default());
    let waiting: Arc<SystemClock> = Arc::clone(&clock);
    let model = AtOnce(scripted::anthropic(
        "http://127.0.0.1:1",
        clock,
        RetryPolicy::default(),
    )?);
    let runtime = runtime(Arc::new(model), directory)?;
    turn(&mut start(&runtime, directory), "warm up".into()).await?;
    let before = memory_kb()?;
    let mut alive = Vec::new();
    for _ in 0..agents {
        let mut agent = start(&runtime, directory);
        turn(&mut agent, "A question of a sentence or two.".into()).await?;
        alive.push(agent);
    }
    let memory = memory_kb()? - before;
    let cpu = cpu_ms()?;
    waiting.sleep(Duration::from_secs(seconds)).await;
    Ok(json!({
        "agents": alive.len(),
        "seconds": seconds,
        "cpu_ms": cpu_ms()? - cpu,
        "watches": watches()?,
        "bytes_per_agent": memory * 1024.0 / f64::from(agents),
    }))
}

/// Returns the number of files and directories that this process watches.
fn watches() -> Result<usize, Failed> {
    let mut watches = 0;
    for file in std::fs::read_dir("/proc/self/fdinfo")? {
        // The directory's own handle is gone by the time it is read.
        let text = std::fs::read_to_string(file?.path()).unwrap_or_default();
        watches += text
            .lines()
            .filter(|line| line.starts_with("inotify "))
            .count();
    }
    Ok(watches)
}

/// Grows a history by turns of a kilobyte, then measures turns at that size.
pub(crate) async fn growth(directory: &Path, kilobytes: u32) -> Result<Value, Failed> {
    const MEASURED: u32 = 400;
    let clock = Arc::new(SystemClock::default());
    let model = AtOnce(scripted::anthropic(
        "http://127.0.0.1:1",
        clock,
        RetryPolicy::default(),
    )?);
    let runtime = runtime(Arc::new(model), directory)?;
    let mut agent = start(&runtime, directory);
    let prompt = || "A question of a sentence or two. ".repeat(15);
    for _ in 0..kilobytes {
        turn(&mut agent, prompt()).await?;
    }
    // Small histories would grow much during measurement, so only a few turns are measured on each
    // of many.
    let rounds = MEASURED.div_ceil(kilobytes.clamp(10, MEASURED));
    let mut spent = 0.0;
    let mut measured = 0;
    for _ in 0..rounds {
        if rounds > 1 {
            agent = start(&runtime, directory);
            for _ in 0..kilobytes {
                turn(&mut agent, prompt()).await?;
            }
        }
        let before = cpu_ms()?;
        for _ in 0..MEASURED / rounds {
            turn(&mut agent, prompt()).await?;
            measured += 1;
        }
        spent += cpu_ms()? - before;
    }
    Ok(json!({"cpu_ms_per_turn": spent / f64::from(measured)}))
}
