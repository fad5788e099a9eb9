//! Time from a durable commit until a reader has its row.
//!
//! It begins when the writer has the answer to its commit. Commits follow each other at fixed gaps,
//! whether the reader keeps up or not.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use posse_port::store::Store;
use posse_testkit::place::Place;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::reader::{Report, Side, bare_sqlite, through_posse};
use crate::words::Agent;
use crate::{Failed, now};

/// Milliseconds between two commits, 3 on average. Some follow at once, as those of a team do.
const GAPS_MS: [u64; 8] = [4, 0, 3, 1, 5, 2, 6, 3];
/// Rows at the beginning that do not count.
const WARM_UP: usize = 20;
/// A row that is later than this was found without a hint.
const MISSED: Duration = Duration::from_secs(1);
/// Time that a reader may take for a row at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distance {
    /// In the writer's process.
    Within,
    /// In another process.
    Across,
}

impl FromStr for Distance {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "within" => Ok(Self::Within),
            "across" => Ok(Self::Across),
            _ => Err(format!("a reader is within or across, not `{word}`")),
        }
    }
}

pub(crate) async fn run(
    place: &Place,
    distance: Distance,
    side: Side,
    rows: usize,
) -> Result<Value, Failed> {
    let store = place.open()?;
    let mut agent = Agent::born(&*store).await?;
    let count = rows + WARM_UP;
    let reader = match distance {
        Distance::Within => Reader::within(place, side, &store, count)?,
        Distance::Across => Reader::across(place, side, count)?,
    };
    let mut durable = Vec::with_capacity(count);
    let mut next = Instant::now();
    for gap in GAPS_MS.into_iter().cycle().take(count) {
        next = next.max(Instant::now()) + Duration::from_millis(gap);
        sleep_until(next).await;
        store.commit(agent.step()).await?;
        durable.push(now());
        reader.wake();
    }
    let read = tokio::task::spawn_blocking(move || reader.finish(count)).await??;
    let mut waits = Vec::with_capacity(rows);
    for (seq, at) in read.into_iter().skip(WARM_UP) {
        let durable = durable.get(seq as usize).ok_or("a row that nobody wrote")?;
        waits.push(at.saturating_sub(*durable));
    }
    Ok(summary(waits))
}

fn summary(mut waits: Vec<Duration>) -> Value {
    waits.sort();
    let at = |part: f64| {
        let place = (waits.len().saturating_sub(1) as f64 * part) as usize;
        let wait = waits.get(place).map(Duration::as_secs_f64);
        wait.map_or(f64::NAN, |seconds| (seconds * 1e6).round() / 1e3)
    };
    let missed = waits.iter().filter(|wait| **wait > MISSED).count();
    json!({"rows": waits.len(), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0), "missed": missed})
}

/// A reader that follows, on a thread or in a process.
struct Reader {
    reports: mpsc::Receiver<Report>,
    /// Wakes a bare reader of this process.
    bell: Option<mpsc::Sender<()>>,
    thread: JoinHandle<Result<(), Failed>>,
    _process: Option<Process>,
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Reader {
    /// Starts a reader on its own thread, so that the writer does not delay it.
    fn within(
        place: &Place,
        side: Side,
        store: &Arc<dyn Store>,
        rows: usize,
    ) -> Result<Self, Failed> {
        let (told, reports) = mpsc::channel();
        let (bell, rings) = mpsc::channel();
        let (store, path) = (Arc::clone(store), place.file()?.to_owned());
        let thread = std::thread::spawn(move || {
            let mut tell = |report: Report| -> Result<(), Failed> { Ok(told.send(report)?) };
            match side {
                Side::Posse => tokio::runtime::Builder::new_current_thread()
                    .build()?
                    .block_on(through_posse(&*store, rows, &mut tell)),
                Side::Bare => bare_sqlite(&path, rows, || Ok(rings.recv()?), &mut tell),
            }
        });
        Self {
            reports,
            bell: (side == Side::Bare).then_some(bell),
            thread,
            _process: None,
        }
        .ready()
    }

    /// Starts a reader in another process.
    #[expect(clippy::disallowed_methods, reason = "it measures processes")]
    fn across(place: &Place, side: Side, rows: usize) -> Result<Self, Failed> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["read", &side.to_string(), &rows.to_string()])
            .arg(place)
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(process.stdout.take().ok_or("no output")?);
        let (told, reports) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            for line in output.lines() {
                told.send(line?.parse()?)?;
            }
            Ok(())
        });
        Self {
            reports,
            bell: None,
            thread,
            _process: Some(Process(process)),
        }
        .ready()
    }

    /// Waits until it follows.
    fn ready(self) -> Result<Self, Failed> {
        match self.reports.recv_timeout(PATIENCE)? {
            Report::Ready => Ok(self),
            Report::Row { .. } => Err("a row before the first commit".into()),
        }
    }

    /// Tells a reader that has no other wake of a commit.
    fn wake(&self) {
        if let Some(bell) = &self.bell {
            // A reader that is gone shows in what it has not read.
            let _ = bell.send(());
        }
    }

    /// Returns when it had each row.
    fn finish(self, count: usize) -> Result<Vec<(u64, Duration)>, Failed> {
        let mut read = Vec::with_capacity(count);
        while read.len() < count {
            if let Report::Row { seq, at } = self.reports.recv_timeout(PATIENCE)? {
                read.push((seq, at));
            }
        }
        self.thread.join().map_err(|_| "the reader failed")??;
        Ok(read)
    }
}
