//! A life of forks: turns, gaps, a killed process, a compaction. Nothing they had sent is paid for
//! again.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use posse_protocol::{Command, EventKind, Outcome, RunChange, Usage};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use super::grow;
use crate::{Failed, record};
use posse_testkit::test_runtime::{AgentRecord, TestRuntime};

/// Number of forks, and of those that are woken.
const FORKS: usize = 16;
const WOKEN: usize = 4;
/// Within the lifetime of a cached prefix.
const GAP_S: u64 = 240;

pub(crate) async fn run(url: &str, directory: &Path, kilobytes: u64) -> Result<Value, Failed> {
    let mut worker = Worker::start(url, directory, None)?;
    let session = worker.line().await?;
    worker.tell(&format!("grow {kilobytes}")).await?;
    worker.tell(&format!("split {FORKS}.")).await?;
    worker.tell("wake all to work.").await?;
    record::wait(url, GAP_S).await?;
    worker.tell("wake all to look.").await?;
    let before = record::all(url).await?.len();
    worker.say("wake all to work.").await?;
    // In the middle of their work, with calls open on either side.
    record::wait_for(url, before + 2 + 5 * WOKEN).await?;
    worker.kill().await?;

    let mut worker = Worker::start(url, directory, Some(&session))?;
    worker.line().await?;
    worker.tell("continue").await?;
    record::wait(url, GAP_S).await?;
    worker.tell("wake all to look.").await?;
    worker.tell("compact").await?;
    worker.tell("wake all to look.").await?;
    worker.kill().await?;
    found(url).await
}

/// Counts what each fork has paid for again, of what it had sent before.
async fn found(url: &str) -> Result<Value, Failed> {
    let requests = record::all(url).await?;
    let mut sent: BTreeMap<&str, Vec<Usage>> = BTreeMap::new();
    for request in requests.iter().filter(|request| !request.is_main()) {
        // A request without an answer was not billed.
        sent.entry(request.agent())
            .or_default()
            .extend(request.usage);
    }
    let again = |pair: &[Usage]| pair[0].prompt().saturating_sub(pair[1].cache_read);
    let rewrites: u64 = sent
        .values()
        .flat_map(|own| own.windows(2).map(again))
        .sum();
    let compacted = requests
        .iter()
        .any(|it| it.is_main() && it.body.contains("SUMMARY of it all"));
    let calls: Vec<usize> = sent.values().map(Vec::len).collect();
    let lived = calls.iter().filter(|calls| **calls > 40).count();
    if (sent.len(), lived, compacted) != (FORKS, WOKEN, true) {
        return Err(format!("forks made {calls:?} requests; compacted: {compacted}").into());
    }
    Ok(json!({"forks": sent.len(), "requests": calls.iter().sum::<usize>(), "rewrites": rewrites}))
}

/// A process that holds a session and executes commands.
struct Worker {
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    #[expect(
        clippy::disallowed_methods,
        reason = "it measures a process that is killed"
    )]
    fn start(url: &str, directory: &Path, session: Option<&str>) -> Result<Self, Failed> {
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        command
            .args(["forks", "worker", url])
            .arg(directory)
            .args(session);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let orders = child.stdin.take().ok_or("no way in")?;
        let lines = BufReader::new(child.stdout.take().ok_or("no way out")?).lines();
        Ok(Self {
            child,
            orders,
            lines,
        })
    }

    async fn line(&mut self) -> Result<String, Failed> {
        self.lines
            .next_line()
            .await?
            .ok_or_else(|| "the worker has ended".into())
    }

    async fn say(&mut self, order: &str) -> Result<(), Failed> {
        Ok(self
            .orders
            .write_all(format!("{order}\n").as_bytes())
            .await?)
    }

    /// Sends a command and waits until it is done.
    async fn tell(&mut self, order: &str) -> Result<(), Failed> {
        self.say(order).await?;
        self.line()
            .await
            .map(drop)
            .map_err(|error| format!("{order}: {error}").into())
    }

    async fn kill(&mut self) -> Result<(), Failed> {
        Ok(self.child.kill().await?)
    }
}

/// The worker's side.
pub(crate) async fn work(
    url: &str,
    directory: &Path,
    resumed: Option<&str>,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::new(url, directory, FORKS + 10)?;
    let mut session = match resumed {
        Some(id) => test_runtime.resumed(id).await?,
        None => test_runtime.session(),
    };
    say(&session.id())?;
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    while let Some(order) = orders.next_line().await? {
        match order.split_once(' ') {
            Some(("grow", kilobytes)) => grow(&mut session, kilobytes.parse()?).await?,
            Some(("wake", _)) => {
                session.say(&order).await?;
                ended(&mut session, WOKEN).await?;
            }
            Some(_) => {
                session.say(&order).await?;
                session.end().await?;
            }
            None if order == "compact" => {
                session
                    .0
                    .handle
                    .send(Command::Compact { keep: None })
                    .await?;
                session.end().await?;
            }
            // Continues what was interrupted.
            None => {
                session.0.handle.send(Command::Continue).await?;
                ended(&mut session, 0).await?;
            }
        }
        say("done")?;
    }
    Ok(Value::Null)
}

/// Waits until `count` forks have ended, and the main agent has been told of all of them.
async fn ended(session: &mut AgentRecord, count: usize) -> Result<(), Failed> {
    let mut ends = 0;
    loop {
        match session.event().await?.kind {
            EventKind::Run(news) => ends += usize::from(matches!(news.what, RunChange::Ended(_))),
            EventKind::Ended(end) if end.outcome != Outcome::Completed => {
                return Err(format!("{:?}", end.outcome).into());
            }
            EventKind::Ended(end) if end.live == 0 && ends >= count => return Ok(()),
            _ => {}
        }
    }
}

fn say(line: &str) -> Result<(), Failed> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
