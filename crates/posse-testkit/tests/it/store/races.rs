//! Processes that claim from one list at the same time.

#![expect(clippy::disallowed_methods, reason = "it is about processes")]
#![expect(clippy::print_stderr, reason = "the long form says what it counted")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use posse_testkit::place::Place;
use posse_testkit::postgres::Database;

use super::Directory;

const PROCESSES: usize = 4;
const AGENTS: &str = "16";
const WORKER: &str = env!("CARGO_BIN_EXE_store-work");

/// A process that claims; gone with its test.
struct Claimer {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Claimer {
    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }
}

impl Drop for Claimer {
    fn drop(&mut self) {
        // In peace it would first set free all it has claimed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Four processes claim `tasks` tasks of a file. Gives the longest that any waited for its turn, in milliseconds.
fn race_on_a_file(tasks: u64) -> f64 {
    let directory = Directory::new();
    race(&directory.place(), tasks).expect("who shares a file waits")
}

/// The same of any store, if it has turns.
fn race(place: &Place, tasks: u64) -> Option<f64> {
    let made = Command::new(WORKER)
        .arg("tasks")
        .arg(place)
        .arg(tasks.to_string())
        .status();
    assert!(made.unwrap().success());
    let found = tempfile::tempdir().unwrap();
    let file = |number: usize| found.path().join(format!("claimed-{number}"));
    let mut claimers: Vec<Claimer> = (0..PROCESSES)
        .map(|number| {
            let mut child = Command::new(WORKER)
                .arg("claim")
                .arg(place)
                .args([file(number).to_str().unwrap(), AGENTS])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            Claimer { child, lines }
        })
        .collect();
    for claimer in &mut claimers {
        assert_eq!(claimer.line(), "ready");
    }
    let begun = Instant::now();
    for claimer in &mut claimers {
        writeln!(claimer.child.stdin.as_mut().unwrap()).unwrap();
    }
    let mut longest: Option<f64> = None;
    let mut owners = vec![0_u8; tasks as usize + 1];
    for (number, claimer) in claimers.iter_mut().enumerate() {
        let found: Value = serde_json::from_str(&claimer.line()).unwrap();
        longest = found["longest_wait_ms"]
            .as_f64()
            .map(|wait| wait.max(longest.unwrap_or_default()));
        eprintln!("process {number}: {found}");
        for id in std::fs::read(file(number)).unwrap().chunks(8) {
            owners[u64::from_le_bytes(id.try_into().unwrap()) as usize] += 1;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let wrong = owners[1..].iter().filter(|owners| **owners != 1).count();
    assert_eq!(
        wrong, 0,
        "of {tasks} tasks so many have no owner, or several"
    );
    eprintln!(
        "{tasks} claims in {seconds:.1} s, {:.0}/s; longest wait {longest:?} ms",
        tasks as f64 / seconds
    );
    longest
}

// proves TK-04 (part: one winner; processes)
#[test]
fn of_twenty_thousand_claims_by_four_processes_each_wins_once() {
    let longest = race_on_a_file(20_000);
    // CI's machine does other things besides.
    assert!(longest < 2_000.0, "{longest} ms");
}

// proves TK-04 (part: one winner; processes; hosts)
#[test]
fn of_the_claims_by_four_processes_on_a_server_each_wins_once() {
    let database = Database::new().unwrap();
    race(&Place::Server(database.url().into()), 5_000);
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn of_a_million_claims_by_four_processes_each_wins_once() {
    let longest = race_on_a_file(1_000_000);
    assert!(
        longest < 100.0,
        "a process waited {longest} ms for its turn"
    );
}
