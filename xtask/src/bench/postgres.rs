//! What PostgreSQL carries of posse, beside the same rows written by plain statements on the same server.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Map, Value, json};

use super::program::Bench;
use super::spawn::number;
use super::{Bar, Effort, Figure, Found, OF_SPEED, median};

/// How many agents write at once, how many tasks they claim in quick and full runs, what share of the bare speed is
/// wanted, and how far it may be missed. One agent alone reaches a third of what is wanted, sixteen reach half.
const SIZES: [(&str, [&str; 2], f64, f64); 3] = [
    ("1", ["400", "2000"], 0.6, 0.8),
    ("16", ["1600", "16000"], 0.7, 0.75),
    ("256", ["2560", "25600"], 0.8, OF_SPEED),
];
const STEPS: [&str; 3] = ["steps_ratio.1", "steps_ratio.16", "steps_ratio.256"];
const CLAIMS: [&str; 3] = ["claims_ratio.1", "claims_ratio.16", "claims_ratio.256"];
/// The lease of the host that is killed, and how much later its agents are somebody's again.
const LEASE_MS: &str = "2000";
const TAKEN_S: f64 = 3.0;

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let quick = effort == Effort::Quick;
    let bench = Bench::new(binaries, "bench-postgres")?;
    let server = Server::start(&bench, &["serve"])?;
    let mut notes = Vec::new();
    let carried = Carried::measure(&bench, &server, effort, &mut notes)?;
    let mut figures = vec![Figure::printed(
        "turns_per_s",
        carried.turns,
        Bar::Least(0.0),
    )];
    for (keys, ratios) in [(STEPS, &carried.steps), (CLAIMS, &carried.claims)] {
        for ((key, value), (_, _, least, margin)) in keys.into_iter().zip(ratios).zip(SIZES) {
            figures.push(Figure::ratio(key, *value, Bar::Least(least), margin));
        }
    }
    figures.extend(waking(binaries, &bench, &server, quick, &mut notes)?);

    let (agents, seconds, counted) = if quick {
        ("1000", "4", "most")
    } else {
        ("10000", "65", "connections")
    };
    let idle = bench.run(&["idle", agents, seconds, &server.url])?;
    notes.push(format!("idle: {idle}"));
    figures.push(Figure::exact(
        "connections_10k_idle",
        number(&idle, counted)?,
        Bar::Most(20.0),
    ));

    let mut longest: f64 = 0.0;
    for _ in 0..if quick { 1 } else { 5 } {
        let found = bench.run(&["takeover", "100", LEASE_MS, &server.url])?;
        notes.push(format!("taken over: {found}"));
        longest = longest.max(number(&found, "taken_s")?);
    }
    figures.push(Figure::printed("takeover_s", longest, Bar::Most(TAKEN_S)));
    drop(server);

    if !quick {
        let server = Server::start(&bench, &["serve", "--slow"])?;
        notes.push("with 1 ms more for each sync:".into());
        let late = Carried::measure(&bench, &server, effort, &mut notes)?;
        notes.push(json!({"sync_1ms_later": late.line()}).to_string());
    }
    Ok(Found {
        figures,
        truths: Vec::new(),
        notes,
    })
}

/// How much is carried.
struct Carried {
    turns: f64,
    /// Shares of the bare speed, for each of [`SIZES`].
    steps: Vec<f64>,
    claims: Vec<f64>,
}

impl Carried {
    fn measure(
        bench: &Bench,
        server: &Server,
        effort: Effort,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let quick = effort == Effort::Quick;
        let (rounds, seconds) = if quick { (1, "1") } else { (5, "4") };
        let (mut steps, mut claims) = (Vec::new(), Vec::new());
        for (agents, tasks, _, _) in SIZES {
            let tasks = tasks[usize::from(!quick)];
            let mut sides = |what: &str, much: &str, realms: &str, rounds: u32| {
                ratio(bench, server, [what, agents, much, realms], rounds, notes)
            };
            steps.push(sides("steps", seconds, "each", rounds)?);
            claims.push(sides("claims", tasks, "one", rounds)?);
            if !quick && agents != "1" {
                sides("steps", seconds, "one", 1)?;
                sides("claims", tasks, "each", 1)?;
            }
        }
        let turn = |_| -> Result<f64> {
            let found = bench.run(&["turns", "256", seconds, &server.url])?;
            notes.push(format!("256 agents, turns: {found}"));
            number(&found, "per_s")
        };
        let turns = median((0..rounds).map(turn).collect::<Result<_>>()?);
        Ok(Self {
            turns,
            steps,
            claims,
        })
    }

    fn line(&self) -> Value {
        let sizes = |ratios: &[f64]| -> Map<String, Value> {
            let rounded = ratios
                .iter()
                .map(|ratio| json!((ratio * 1000.0).round() / 1000.0));
            SIZES
                .iter()
                .map(|(agents, _, _, _)| (*agents).to_owned())
                .zip(rounded)
                .collect()
        };
        let (steps, claims) = (sizes(&self.steps), sizes(&self.claims));
        json!({"turns_per_s": self.turns, "steps_ratio": steps, "claims_ratio": claims})
    }
}

/// How fast posse is, as a share of the bare speed: the sides take turns.
fn ratio(
    bench: &Bench,
    server: &Server,
    [what, agents, much, realms]: [&str; 4],
    rounds: u32,
    notes: &mut Vec<String>,
) -> Result<f64> {
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let side = |side| bench.run(&[what, side, agents, much, realms, &server.url]);
        let (ours, bare) = (side("posse")?, side("bare")?);
        ratios.push(number(&ours, "per_s")? / number(&bare, "per_s")?);
        let live = if realms == "one" {
            "one realm"
        } else {
            "a realm each"
        };
        notes.push(format!(
            "{agents} agents, {live}, {what}: posse {ours}, bare {bare}"
        ));
    }
    Ok(median(ratios))
}

/// How soon a message to an agent of another process wakes that process.
fn waking(
    binaries: &Path,
    bench: &Bench,
    server: &Server,
    quick: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<Figure>> {
    let work = Bench::new(binaries, "store-work")?;
    let across = |count: &str| work.run(&["across", &server.url, count]);
    let alone = across(if quick { "1000" } else { "10000" })?;
    notes.push(format!(
        "woken in another process, commit included: {alone}"
    ));
    if !quick {
        let beside = std::thread::scope(|scope| {
            let load =
                scope.spawn(|| bench.run(&["steps", "posse", "64", "20", "each", &server.url]));
            let beside = across("1000");
            let load = load.join().map_err(|_| anyhow!("the load failed"))??;
            notes.push(format!("64 agents that write meanwhile: {load}"));
            beside
        })?;
        notes.push(format!("woken while they write: {beside}"));
    }
    ensure!(
        number(&alone, "missed")? == 0.0,
        "a wake was missed: {alone}"
    );
    let figure = |key, part, most| -> Result<Figure> {
        Ok(Figure::printed(key, number(&alone, part)?, Bar::Most(most)))
    };
    Ok(vec![
        figure("wake_p50_ms", "p50_ms", 20.0)?,
        figure("wake_p99_ms", "p99_ms", 20.0)?,
    ])
}

/// A server of one's own; it ends when this is dropped.
pub(super) struct Server {
    child: Child,
    pub(super) url: String,
}

impl Server {
    pub(super) fn start(bench: &Bench, arguments: &[&str]) -> Result<Self> {
        let mut child = Command::new(&bench.program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("stdout is piped")?).read_line(&mut line)?;
        ensure!(line.starts_with("postgres://"), "the server did not start");
        Ok(Self {
            child,
            url: line.trim().to_owned(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}
