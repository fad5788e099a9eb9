//! Latency from a message to the wake of its recipient: in another process, in this one, and by the
//! sweep.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use posse_port::store::{MailFilter, Page, Step, Store, TakenMail, Wake};
use posse_protocol::{AgentId, EntryKind};
use posse_store::Timing;
use posse_testkit::place::Place;
use posse_testkit::store_contract::{entry, realm};
use serde_json::{Value, json};

use crate::words::{blank, doing, newborn, send};
use crate::{Failed, say};

/// A wake later than this did not come from the bell.
const MISSED: Duration = Duration::from_secs(1);

/// Sends `count` messages to an agent of another process, each after the previous one was heard.
pub(crate) async fn across(place: &Place, count: usize) -> Result<Value, Failed> {
    let store = place.open()?;
    let sender = newborn(&*store).await?;
    let mut listener = Listener::start(place, &["hear"])?;
    let mut waits = Vec::with_capacity(count);
    for _ in 0..count {
        let sent = now();
        tell(&*store, sender, listener.agent).await?;
        waits.push(listener.heard_at()?.saturating_sub(sent));
    }
    listener.end()?;
    Ok(summary(waits))
}

/// The same with a listener without a bell: its sweep wakes it.
pub(crate) async fn healed(place: &Place, sweep: Duration) -> Result<Value, Failed> {
    let store = place.open()?;
    let sender = newborn(&*store).await?;
    let sweep_ms = sweep.as_millis().to_string();
    let mut listener = Listener::start(place, &["hear", "--deaf", &sweep_ms])?;
    let mut longest = Duration::ZERO;
    for _ in 0..5 {
        let sent = now();
        tell(&*store, sender, listener.agent).await?;
        longest = longest.max(listener.heard_at()?.saturating_sub(sent));
    }
    listener.end()?;
    Ok(json!({"sweep_ms": sweep.as_secs_f64() * 1e3, "longest_ms": longest.as_secs_f64() * 1e3}))
}

/// Sends a message; fails if the inbox is full.
async fn tell(store: &dyn Store, sender: AgentId, to: AgentId) -> Result<(), Failed> {
    for result in store
        .commit(doing(sender, send(to, "How is it going?".into())))
        .await?
        .results
    {
        result?;
    }
    Ok(())
}

/// An agent that reports the time of its wake for each message.
pub(crate) async fn hear(place: &Place, deaf: Option<Duration>) -> Result<(), Failed> {
    let timing = match deaf {
        Some(sweep) => Timing {
            sweep,
            deaf: true,
            ..Timing::default()
        },
        None => Timing::default(),
    };
    let store = place.open_with(timing)?;
    let agent = newborn(&*store).await?;
    say(&agent.to_string())?;
    let (mut heard, mut taken) = (0, 0);
    loop {
        // The parent process ends this one.
        let wakes = store.woken().await?;
        let at = now();
        if !wakes.contains(&Wake::Mail(agent)) {
            continue;
        }
        let filter = MailFilter { waiting: true };
        for mail in store
            .mail(realm(), agent, filter, Page::after(heard, 1000))
            .await?
        {
            heard = mail.number;
            say(&at.as_nanos().to_string())?;
        }
        if heard >= taken + 100 {
            take(&*store, agent, taken..heard).await?;
            taken = heard;
        }
    }
}

/// Takes the messages of a range into one entry.
async fn take(
    store: &dyn Store,
    agent: AgentId,
    range: std::ops::Range<u64>,
) -> Result<(), Failed> {
    let seq = range.start / 100;
    let mail = range
        .map(|before| TakenMail {
            number: before + 1,
            entry: seq,
        })
        .collect();
    let entries = vec![entry(seq, EntryKind::Prompt, "so many messages")];
    store
        .commit(Step {
            mail,
            entries,
            ..blank(agent)
        })
        .await?;
    Ok(())
}

/// Measures from the time a message is durable to the wake of an agent of the same process. Nothing
/// is taken: an inbox has room for ten thousand.
pub(crate) async fn within(place: &Place, count: usize) -> Result<Value, Failed> {
    let store = place.open()?;
    let (sender, hearer) = (newborn(&*store).await?, newborn(&*store).await?);
    let (woken, wakes) = mpsc::channel();
    let listening = Arc::clone(&store);
    // On its own thread, so that the sender does not delay it.
    let listener = std::thread::spawn(move || -> Result<(), Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let mut heard = 0;
        for _ in 0..count {
            let at = runtime.block_on(async {
                loop {
                    listening.woken().await?;
                    let at = Instant::now();
                    let filter = MailFilter { waiting: true };
                    if let Some(mail) = listening
                        .mail(realm(), hearer, filter, Page::after(heard, 1))
                        .await?
                        .first()
                    {
                        heard = mail.number;
                        return Ok::<_, Failed>(at);
                    }
                }
            })?;
            woken.send(at)?;
        }
        Ok(())
    });
    let mut waits = Vec::with_capacity(count);
    for _ in 0..count {
        tell(&*store, sender, hearer).await?;
        let durable = Instant::now();
        waits.push(wakes.recv()?.saturating_duration_since(durable));
    }
    listener.join().map_err(|_| "the listener failed")??;
    Ok(summary(waits))
}

/// A listening process.
struct Listener {
    child: std::process::Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    agent: AgentId,
}

impl Listener {
    #[expect(clippy::disallowed_methods, reason = "it measures processes")]
    fn start(place: &Place, arguments: &[&str]) -> Result<Self, Failed> {
        let (first, rest) = arguments.split_first().ok_or("a listener needs words")?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg(first)
            .arg(place)
            .args(rest)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let agent = lines.next().ok_or("the listener said nothing")??.parse()?;
        Ok(Self {
            child,
            lines,
            agent,
        })
    }

    fn heard_at(&mut self) -> Result<Duration, Failed> {
        let line = self.lines.next().ok_or("the listener has ended")??;
        Ok(Duration::from_nanos(line.parse()?))
    }

    fn end(mut self) -> Result<(), Failed> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// The machine's clock, the same in all processes.
fn now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn summary(mut waits: Vec<Duration>) -> Value {
    waits.sort();
    let at = |part: f64| {
        let place = (waits.len().saturating_sub(1) as f64 * part) as usize;
        waits
            .get(place)
            .map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3)
    };
    let missed = waits.iter().filter(|wait| **wait > MISSED).count();
    json!({"count": waits.len(), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0), "missed": missed})
}
