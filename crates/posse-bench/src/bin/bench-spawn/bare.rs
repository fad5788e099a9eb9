//! The leaf work with nothing around it: posse's requests repeated by the same HTTP client; the
//! same commands, started in the same way; the same rows. Streams are read, but nothing is decided,
//! counted, shown or assembled.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use posse_protocol::{ReplyFacts, StopReason, Usage};
use posse_testkit::bare;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::record::{self, Request};
use crate::rows::{Id, Row, Writer, new_id};
use crate::{Failed, cpu_ms};

/// The shell's prologue, as in the Bash tool.
const BASH: &str = r#"[ -z "$2" ] || { echo 0 >"$2"; } 2>/dev/null
command -v bash >/dev/null 2>&1 && exec bash -c "$1"; exec sh -c "$1""#;

/// The requests and entries of one agent.
struct Part {
    /// Its path, by which the script knows it.
    path: String,
    bodies: [String; 2],
    /// Its prompt, its first reply and the results of that, as in its second request.
    entries: [Vec<u8>; 3],
    calls: Vec<String>,
}

impl Part {
    fn of(requests: &[&Request]) -> Result<Self, Failed> {
        let [first, second] = requests else {
            return Err("an agent has not made two requests".into());
        };
        let whole: Value = serde_json::from_str(&second.body)?;
        let message = |at: usize| whole["messages"][at].to_string().into_bytes();
        let blocks = whole["messages"][1]["content"]
            .as_array()
            .ok_or("the first reply has no content")?;
        let calls = blocks
            .iter()
            .filter_map(|block| block["id"].as_str().map(str::to_owned))
            .collect();
        Ok(Self {
            path: first.path().to_owned(),
            bodies: [first.body.clone(), second.body.clone()],
            entries: [message(0), message(1), message(2)],
            calls,
        })
    }
}

/// Shared state.
struct World {
    http: reqwest::Client,
    url: String,
    writer: Writer,
    facts: String,
}

pub(crate) async fn run(url: &str, directory: &Path) -> Result<Value, Failed> {
    let requests = record::all(url).await?;
    let session = requests
        .last()
        .ok_or("there was no session")?
        .session()
        .to_owned();
    let mut agents: BTreeMap<&str, Vec<&Request>> = BTreeMap::new();
    for request in requests
        .iter()
        .filter(|request| request.session() == session)
    {
        agents.entry(request.agent()).or_default().push(request);
    }
    let main = Part::of(&agents.remove(session.as_str()).unwrap_or_default())?;
    let parts = agents
        .values()
        .map(|requests| Part::of(requests))
        .collect::<Result<Vec<_>, _>>()?;
    let world = Arc::new(World {
        http: posse_model::http_client(url)?,
        url: format!("{url}/v1/messages"),
        writer: Writer::start(directory, parts.first().map_or(Vec::new(), preamble))?,
        facts: serde_json::to_string(&facts())?,
    });
    // Warm-up, as for posse: a connection, a shell, statements.
    let warm = parts.first().ok_or("there were no sub-agents")?;
    world
        .writer
        .commit(world.writer.main(), prompt(warm, None))
        .await?;
    world.leaf(warm, new_id()).await?;

    let id = new_id();
    let (cpu, clock) = (cpu_ms()?, Instant::now());
    world.lead(&main, id, parts).await?;
    Ok(json!({"cpu_ms": cpu_ms()? - cpu, "wall_s": clock.elapsed().as_secs_f64()}))
}

impl World {
    async fn lead(self: &Arc<Self>, main: &Part, id: Id, parts: Vec<Part>) -> Result<(), Failed> {
        self.writer.commit(id, prompt(main, None)).await?;
        self.ask(main, 0).await?;
        self.writer
            .commit(
                id,
                self.reply(1, main.entries[1].clone(), 0, &main.calls, "Agent"),
            )
            .await?;
        let mut running = JoinSet::new();
        for (part, ordinal) in parts.into_iter().zip(0..) {
            let world = Arc::clone(self);
            running.spawn(async move {
                let content = world.leaf(&part, new_id()).await?;
                world
                    .writer
                    .commit(
                        id,
                        vec![Row::Done {
                            seq: 1,
                            ordinal,
                            content,
                        }],
                    )
                    .await
            });
        }
        while let Some(done) = running.join_next().await {
            done??;
        }
        self.writer.commit(id, vec![results(main)]).await?;
        let text = self.ask(main, 1).await?;
        self.writer
            .commit(id, self.reply(3, text.into_bytes(), 1, &[], ""))
            .await
    }

    async fn leaf(&self, part: &Part, id: Id) -> Result<String, Failed> {
        self.writer
            .commit(id, prompt(part, Some(self.writer.main())))
            .await?;
        self.ask(part, 0).await?;
        self.writer
            .commit(
                id,
                self.reply(1, part.entries[1].clone(), 0, &part.calls, "Bash"),
            )
            .await?;
        shell("echo hello").await?;
        self.writer.commit(id, vec![results(part)]).await?;
        let text = self.ask(part, 1).await?;
        let mut last = self.reply(3, text.clone().into_bytes(), 1, &[], "");
        last.push(Row::Ended {
            text: json!({"run": uuid::Uuid::now_v7(), "text": &text}).to_string(),
        });
        self.writer.commit(id, last).await?;
        Ok(json!([{"type": "text", "text": text}]).to_string())
    }

    async fn ask(&self, Part { path, bodies, .. }: &Part, nth: usize) -> Result<String, Failed> {
        let request = self
            .http
            .post(&self.url)
            .header("content-type", "application/json");
        let request = request
            .header("anthropic-version", "2026-10-21")
            .header("x-api-key", "test");
        bare::read(
            request
                .header("x-posse-agent", path)
                .body(bodies[nth].clone()),
        )
        .await
    }

    fn reply(
        &self,
        seq: i64,
        bytes: Vec<u8>,
        nth: i64,
        calls: &[String],
        tool: &'static str,
    ) -> Vec<Row> {
        let facts = Some(self.facts.clone());
        let mut rows = vec![
            Row::Entry {
                seq,
                kind: 2,
                bytes,
                facts,
            },
            Row::Charge { nth },
        ];
        rows.extend((!calls.is_empty()).then(|| Row::Calls {
            seq,
            ids: calls.to_vec(),
            tool,
        }));
        rows
    }
}

fn prompt(part: &Part, parent: Option<Id>) -> Vec<Row> {
    let bytes = part.entries[0].clone();
    vec![
        Row::Agent { parent },
        Row::Entry {
            seq: 0,
            kind: 1,
            bytes,
            facts: None,
        },
    ]
}

fn results(part: &Part) -> Row {
    Row::Entry {
        seq: 2,
        kind: 3,
        bytes: part.entries[2].clone(),
        facts: None,
    }
}

fn preamble(part: &Part) -> Vec<u8> {
    let messages = part.bodies[0]
        .find("\"messages\"")
        .unwrap_or(part.bodies[0].len());
    part.bodies[0].as_bytes()[..messages].to_vec()
}

fn facts() -> ReplyFacts {
    let usage = Usage {
        input: 12,
        cache_read: 3400,
        cache_write_5m: 80,
        output: 77,
        ..Usage::default()
    };
    let (id, model) = ("msg_0123456789".into(), "claude-opus-5".into());
    ReplyFacts {
        id,
        model,
        stop: Some(StopReason::EndTurn),
        usage,
        missed: None,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a bare program starts its own commands"
)]
async fn shell(command: &str) -> Result<(), Failed> {
    let mut setsid = tokio::process::Command::new("setsid");
    setsid
        .args(["sh", "-c", BASH, "sh", command])
        .env("POSSE_CALL", "bare")
        .env("GIT_TERMINAL_PROMPT", "0");
    let output = setsid
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .await?;
    if output.stdout == b"hello\n" {
        Ok(())
    } else {
        Err("the command said something else".into())
    }
}
