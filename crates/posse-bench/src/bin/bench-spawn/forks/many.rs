//! A thousand forks at once: memory, disk, and time, compared with a bare program that sends the
//! same bytes.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use posse_port::BoxFuture;
use posse_port::model::{
    Body, Call, Encoded, Failure, Model, ModelChoice, Names, Preamble, Reply, Request,
};
use posse_protocol::{ContentBlock, Message, ToolSpec};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::grow;
use crate::memory::{forget_peak, peak_kb, resident_kb};
use crate::{Failed, disk};
use posse_testkit::test_runtime::{self, TestRuntime};

pub(crate) async fn run(
    url: &str,
    sink: &str,
    directory: &Path,
    count: usize,
    kilobytes: u64,
) -> Result<Value, Failed> {
    let two = Arc::new(Two {
        parent: test_runtime::model(url)?,
        forks: test_runtime::model(sink)?,
        seen: Mutex::default(),
    });
    let work = directory.join("work");
    std::fs::create_dir_all(&work)?;
    let test_runtime = TestRuntime::asking(two.clone(), directory, &work, count + 100)?;
    // Warm-up: everything is done once before it counts.
    let mut warm = test_runtime.session();
    warm.say("split 1.").await?;
    warm.end().await?;
    let mut session = test_runtime.session();
    grow(&mut session, kilobytes).await?;
    let database = test_runtime.home().join("posse.db");
    let stored = || -> Result<u64, Failed> {
        disk::checkpoint(&test_runtime.home())?;
        Ok(std::fs::metadata(&database)?.len())
    };
    let before = stored()?;
    *two.seen() = Seen::default();
    forget_peak()?;
    let resident = resident_kb()?;
    session.say(&format!("split {count}.")).await?;
    session.end().await?;
    let peak = peak_kb()?;
    let growth = stored()? - before;
    test_runtime.runtime.shut_down().await;
    let Seen {
        asked,
        answered,
        calls,
        body,
    } = std::mem::take(&mut *two.seen());
    if calls != count {
        return Err(format!("{calls} requests of forks instead of {count}").into());
    }
    let bytes = body.len() * count;
    let (asked, answered) = (
        asked.ok_or("nobody asked")?,
        answered.ok_or("nobody was answered")?,
    );
    let ours = answered.saturating_duration_since(asked);
    let plain = bare(sink, body, count).await?;
    Ok(json!({
        "forks": count,
        "rss_mb": (peak - resident) / 1024.0,
        "store_kb_each": growth as f64 / 1024.0 / count as f64,
        "sent_mb": bytes as f64 / 1e6,
        "seconds": ours.as_secs_f64(),
        "bare_seconds": plain.as_secs_f64(),
        "ratio": ours.as_secs_f64() / plain.as_secs_f64(),
    }))
}

/// Two models in one: a script answers the parent, a sink answers the forks.
struct Two {
    parent: Arc<dyn Model>,
    forks: Arc<dyn Model>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Times of the parent's first reply and of the last fork's reply.
    asked: Option<Instant>,
    answered: Option<Instant>,
    calls: usize,
    /// One for all: they differ only in a number.
    body: Body,
}

impl Two {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Names for Two {}

impl Model for Two {
    fn dialect(&self) -> &'static str {
        self.parent.dialect()
    }

    fn preamble(&self, preamble: &Preamble) -> Encoded {
        self.parent.preamble(preamble)
    }

    fn choice(&self, preamble: &Encoded) -> Option<ModelChoice> {
        self.parent.choice(preamble)
    }

    fn with_choice(&self, preamble: &Encoded, choice: &ModelChoice) -> Option<Encoded> {
        self.parent.with_choice(preamble, choice)
    }

    fn without_thinking(&self, reply: &Encoded) -> Encoded {
        self.parent.without_thinking(reply)
    }

    fn with_definitions_as_text(&self, entry: &Encoded, tools: &[ToolSpec]) -> Encoded {
        self.parent.with_definitions_as_text(entry, tools)
    }

    fn entry(&self, message: &Message) -> Encoded {
        self.parent.entry(message)
    }

    fn encode_head(&self, content: &[ContentBlock]) -> Encoded {
        self.parent.encode_head(content)
    }

    fn encode_tail(&self, content: &[ContentBlock]) -> Encoded {
        self.parent.encode_tail(content)
    }

    fn body(&self, request: &Request<'_>) -> Body {
        self.parent.body(request)
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Failure>> {
        let is_main = call.attribution.path == "/main";
        let body = call.body.clone();
        Box::pin(async move {
            let reply = if is_main { &self.parent } else { &self.forks }
                .call(call)
                .await;
            let mut seen = self.seen();
            if is_main {
                seen.asked.get_or_insert_with(Instant::now);
            } else {
                seen.answered = Some(Instant::now());
                seen.calls += 1;
                seen.body = body;
            }
            drop(seen);
            reply
        })
    }
}

/// Measures the time to send the body `count` times at once, each on its own connection, and to
/// receive the replies.
async fn bare(url: &str, body: Body, count: usize) -> Result<Duration, Failed> {
    let address = url.trim_start_matches("http://").to_owned();
    let start = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..count {
        let (address, body) = (address.clone(), body.clone());
        running.spawn(async move {
            let mut stream = TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            let head = format!(
                "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
                 anthropic-version: 2026-10-21\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await?;
            for part in body.parts() {
                stream.write_all(part).await?;
            }
            let mut reply = Vec::new();
            while !reply.windows(12).any(|window| window == b"message_stop") {
                if stream.read_buf(&mut reply).await? == 0 {
                    return Err("the sink has hung up".into());
                }
            }
            Ok::<_, Failed>(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(start.elapsed())
}
