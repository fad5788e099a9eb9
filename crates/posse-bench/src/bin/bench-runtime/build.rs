//! Assembling a request from the pieces of a history, as the runtime does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posse_model::{Anthropic, RetryPolicy};
use posse_port::BoxFuture;
use posse_port::clock::SystemClock;
use posse_port::model::{
    Body, Call, Encoded, Failure, Model, ModelChoice, Names, Preamble, Reply, Request,
};
use posse_protocol::{ContentBlock, Message, ToolSpec};
use posse_testkit::scripted;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::Failed;
use crate::instant::AtOnce;
use crate::ours::{runtime, start, turn};

/// Repetitions for each request, as one is too short to measure.
const TIMES: u32 = 2_000;
/// Number of measured turns. A history occasionally joins its last entries; this many turns cover
/// that.
const TURNS: u32 = 32;

pub(crate) async fn run(directory: &Path, kilobytes: u32) -> Result<Value, Failed> {
    let clock = Arc::new(SystemClock::default());
    let inner = scripted::anthropic("http://127.0.0.1:1", clock, RetryPolicy::default())?;
    let model = Arc::new(Timed {
        inner: AtOnce(inner),
        measured: 0.into(),
        nanos: 0.into(),
    });
    let runtime = runtime(model.clone(), directory)?;
    let mut agent = start(&runtime, directory);
    // Few large turns: only the size counts, and that all joining has happened.
    let (each, turns) = if kilobytes < 100 {
        (kilobytes.div_ceil(5), 5)
    } else {
        (kilobytes / 100, 100)
    };
    for _ in 0..turns {
        turn(
            &mut agent,
            "A question of a sentence. ".repeat(each as usize * 40),
        )
        .await?;
    }
    model.measured.store(1, Ordering::Relaxed);
    for _ in 0..TURNS {
        turn(&mut agent, "And?".into()).await?;
    }
    let nanos = model.nanos.load(Ordering::Relaxed) as f64;
    Ok(json!({"build_us": nanos / 1e3 / f64::from(TURNS) / f64::from(TIMES)}))
}

/// Measures the time of joining pieces.
struct Timed {
    inner: AtOnce<Anthropic>,
    measured: AtomicU64,
    nanos: AtomicU64,
}

impl Names for Timed {}

impl Model for Timed {
    fn dialect(&self) -> &'static str {
        self.inner.dialect()
    }

    fn preamble(&self, preamble: &Preamble) -> Encoded {
        self.inner.preamble(preamble)
    }

    fn choice(&self, preamble: &Encoded) -> Option<ModelChoice> {
        self.inner.choice(preamble)
    }

    fn with_choice(&self, preamble: &Encoded, choice: &ModelChoice) -> Option<Encoded> {
        self.inner.with_choice(preamble, choice)
    }

    fn without_thinking(&self, reply: &Encoded) -> Encoded {
        self.inner.without_thinking(reply)
    }

    fn with_definitions_as_text(&self, entry: &Encoded, tools: &[ToolSpec]) -> Encoded {
        self.inner.with_definitions_as_text(entry, tools)
    }

    fn entry(&self, message: &Message) -> Encoded {
        self.inner.entry(message)
    }

    fn encode_head(&self, content: &[ContentBlock]) -> Encoded {
        self.inner.encode_head(content)
    }

    fn encode_tail(&self, content: &[ContentBlock]) -> Encoded {
        self.inner.encode_tail(content)
    }

    fn body(&self, request: &Request<'_>) -> Body {
        if self.measured.load(Ordering::Relaxed) > 0 {
            let before = cpu_nanos();
            for _ in 0..TIMES {
                std::hint::black_box(self.inner.body(request));
            }
            self.nanos
                .fetch_add(cpu_nanos().saturating_sub(before), Ordering::Relaxed);
        }
        self.inner.body(request)
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Failure>> {
        self.inner.call(call)
    }
}

/// Returns the processor time of this thread.
fn cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
