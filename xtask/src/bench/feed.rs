//! What the feed promises in numbers: nothing lost, how soon a reader has a row, and what a step pays for it.

use std::path::Path;

use anyhow::Result;

use super::postgres::Server;
use super::program::Bench;
use super::spawn::number;
use super::{Bar, Effort, Figure, Found, OF_SPEED, attach, median};

/// How far the share of a step may miss its bar: both sides write in turns of 60 ms, so that a busy machine slows them
/// alike.
const OF_STEP: f64 = 0.25;

/// Time that a bare reader counts with at least. One in another process can have a row before its writer has the answer
/// to the commit, from which time is taken.
const SHORTEST_MS: f64 = 0.05;

/// A reader, where it is, and what is wanted of it.
struct Reading {
    /// The time of 99 of 100 rows, the same as a multiple of a bare reader's, and that of half of the rows.
    keys: [&'static str; 3],
    distance: &'static str,
    on_server: bool,
    most_ms: f64,
}

const READINGS: [Reading; 3] = [
    Reading {
        keys: [
            "inproc_p99_ms",
            "inproc_ratio_vs_bare",
            "inproc_median_ratio",
        ],
        distance: "within",
        on_server: false,
        most_ms: 5.0,
    },
    Reading {
        keys: [
            "process_p99_ms",
            "process_ratio_vs_bare",
            "process_median_ratio",
        ],
        distance: "across",
        on_server: false,
        most_ms: 15.0,
    },
    Reading {
        keys: [
            "postgres_p99_ms",
            "postgres_ratio_vs_bare",
            "postgres_median_ratio",
        ],
        distance: "across",
        on_server: true,
        most_ms: 25.0,
    },
];

/// Number of sub-agents that wait for a person.
const WAITING: usize = 1000;

/// How much is measured.
struct Amount {
    /// Steps of each agent while readers follow.
    steps: &'static str,
    rounds: u32,
    /// Rows of a round.
    rows: &'static str,
    /// Seconds of steps with the feed and without it.
    seconds: &'static str,
    /// Seconds during which agents wait for a person.
    waiting: &'static str,
}

pub(super) fn run(binaries: &Path, effort: Effort) -> Result<Found> {
    let amount = match effort {
        Effort::Quick => Amount {
            steps: "40",
            rounds: 3,
            rows: "600",
            seconds: "2.5",
            waiting: "5",
        },
        Effort::Full => Amount {
            steps: "2000",
            rounds: 5,
            rows: "3000",
            seconds: "30",
            waiting: "60",
        },
    };
    let bench = Bench::new(binaries, "bench-feed")?;
    let server = Server::start(&Bench::new(binaries, "bench-postgres")?, &["serve"])?;
    let mut notes = Vec::new();
    let (mut lost, mut doubled) = (0.0, 0.0);
    for store in ["DIR", &server.url] {
        let found = bench.run(&["follow", amount.steps, store])?;
        notes.push(format!("8 readers behind 4 writers: {found}"));
        lost += number(&found, "lost")?;
        doubled += number(&found, "doubled")?;
    }
    let mut figures = vec![
        Figure::exact("feed_lost", lost, Bar::Most(0.0)),
        Figure::exact("feed_doubled", doubled, Bar::Most(0.0)),
    ];
    for reading in READINGS {
        let store = if reading.on_server {
            &server.url
        } else {
            "DIR"
        };
        figures.extend(reading.measure(&bench, store, &amount, &mut notes)?);
    }
    for (key, store, most) in [
        ("step_ratio_sqlite", "DIR", 1.10),
        ("step_ratio_postgres", &server.url, 1.25),
    ] {
        let found = bench.run(&["steps", amount.seconds, store])?;
        notes.push(format!("{key}: {found}"));
        let ratio = number(&found, "ratio")?;
        figures.push(Figure::ratio(key, ratio, Bar::Most(most), OF_STEP));
    }
    let found = bench.run(&["list", "50", "DIR"])?;
    notes.push(format!("a list of 1,000 agents, 10 changed: {found}"));
    figures.push(Figure::printed(
        "list_1000_cpu_ms",
        number(&found, "changed_cpu_ms")?,
        Bar::Most(2.0),
    ));
    let waiting = WAITING.to_string();
    let arguments = ["waiting", "URL", "DIR", &waiting, amount.waiting];
    let found = Bench::new(binaries, "bench-spawn")?.asking(binaries, &asking(), &arguments)?;
    notes.push(format!("{WAITING} that wait for a person, twice: {found}"));
    let printed = |key, part, most| -> Result<Figure> {
        Ok(Figure::printed(key, number(&found, part)?, Bar::Most(most)))
    };
    figures.push(printed("waiting_kb_each", "kb_each", 25.0)?);
    figures.push(printed("waiting_cpu_ms_per_min", "cpu_ms_per_min", 0.0)?);
    figures.extend(attach::measure(binaries, &bench, effort, &mut notes)?);
    Ok(Found {
        figures,
        truths: Vec::new(),
        notes,
    })
}

/// Returns a script whose main agent starts sub-agents that each want to run a command.
fn asking() -> String {
    let start = r#"{ tool = "Agent", input = { description = "Ask", prompt = "Ask.", run_in_background = true } }"#;
    let all = vec![start; WAITING].join(", ");
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main$", turn = 1 }}
reply = [{all}]
[[rule]]
when.agent = "re:^/main$"
reply = [{{ text = "They ask." }}]
[[rule]]
reply = [{{ tool = "Bash", input = {{ command = "touch made" }} }}]
"#
    )
}

impl Reading {
    /// Measures posse's reader and a bare one by turns.
    fn measure(
        &self,
        bench: &Bench,
        store: &str,
        amount: &Amount,
        notes: &mut Vec<String>,
    ) -> Result<[Figure; 3]> {
        let (mut times, mut ratios, mut medians) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..amount.rounds {
            let side = |side| bench.run(&["latency", self.distance, side, amount.rows, store]);
            let (ours, bare) = (side("posse")?, side("bare")?);
            let engine = if self.on_server {
                "PostgreSQL"
            } else {
                "SQLite"
            };
            notes.push(format!(
                "{engine}, a reader {} its writer's process: posse {ours}, bare {bare}",
                self.distance
            ));
            let ratio = |key: &str| -> Result<f64> {
                Ok(number(&ours, key)? / number(&bare, key)?.max(SHORTEST_MS))
            };
            times.push(number(&ours, "p99_ms")?);
            ratios.push(ratio("p99_ms")?);
            medians.push(ratio("p50_ms")?);
        }
        let [time, ratio, of_half] = self.keys;
        Ok([
            Figure::printed(time, median(times), Bar::Most(self.most_ms)),
            // A few rows decide it, and they are those that the machine was busy with something else for.
            Figure::printed(ratio, median(ratios), Bar::Most(2.0)),
            Figure::ratio(of_half, median(medians), Bar::Most(2.0), OF_SPEED),
        ])
    }
}
