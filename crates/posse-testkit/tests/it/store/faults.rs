//! Processes that are killed, and disks that fail, at every write, sync and rename of each protocol;
//! and what the next process finds.

#![expect(clippy::disallowed_methods, reason = "it is about processes")]
#![expect(clippy::print_stderr, reason = "the long form says what it counted")]

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use posse_port::store::{MailFilter, Page, Store, TaskFilter};
use posse_protocol::{ListId, Mail, Task, TaskStatus};
use posse_store::Sqlite;
use posse_testkit::deed::{Deed, LEAD, MEMBER, STRAYS, TIMES, crew};
use posse_testkit::store_contract::{agent, realm, step, verify};

use super::Directory;

/// What writes, syncs or renames.
const CALLS: &[&str] = &[
    "write",
    "writev",
    "pwrite64",
    "pwritev",
    "fsync",
    "fdatasync",
    "ftruncate",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
];

const WORKER: &str = env!("CARGO_BIN_EXE_store-work");

/// A database that a deed can start from, to be copied.
struct Template {
    deed: Deed,
    directory: Directory,
}

impl Template {
    fn new(deed: Deed) -> Self {
        let directory = Directory::new();
        let database = directory.database();
        let status = Command::new(WORKER)
            .arg("prepare")
            .arg(&database)
            .arg(deed.as_str())
            .status()
            .unwrap();
        assert!(
            status.success() || (deed == Deed::TakeOver && status.signal().is_some()),
            "{status}"
        );
        Self { deed, directory }
    }

    /// A place of its own that looks the same.
    fn copy(&self) -> Directory {
        let copy = Directory::new();
        copy_all(
            self.directory.database().parent().unwrap(),
            copy.database().parent().unwrap(),
        );
        copy
    }

    fn run(&self, database: &Path, strace: &[&str]) -> Output {
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq"])
            .args(strace)
            .arg(WORKER)
            .arg("deed")
            .arg(database);
        command.arg(self.deed.as_str()).output().unwrap()
    }

    /// How often an undisturbed run makes each call: the most of any thread, since strace counts so.
    fn count(&self) -> BTreeMap<String, usize> {
        let place = self.copy();
        let log = place.0.join("strace.log");
        let trace = format!("trace={}", CALLS.join(","));
        let output = self.run(
            &place.database(),
            &["-o", log.to_str().unwrap(), "-e", &trace],
        );
        assert!(
            output.status.success(),
            "{:?}: {}",
            self.deed,
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(acknowledged(&output).len() as u64, TIMES);
        let text = std::fs::read_to_string(log).unwrap();
        let mut by_thread: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for (thread, rest) in text.lines().filter_map(|line| line.split_once(' ')) {
            if let Some((name, _)) = rest.trim_start().split_once('(') {
                *by_thread.entry((name, thread)).or_default() += 1;
            }
        }
        let mut most = BTreeMap::new();
        for ((name, _), count) in by_thread {
            let entry: &mut usize = most.entry(name.to_owned()).or_default();
            *entry = count.max(*entry);
        }
        most
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn acknowledged(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    // A last line without its end was not read by anybody.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .filter_map(|line| line.strip_prefix("ack "))
        .map(str::to_owned)
        .collect()
}

/// What must hold after any fault. Gives how long it took until somebody could go on.
async fn check(deed: Deed, database: &Path, acks: &[String], what: &str) -> Duration {
    let begun = Instant::now();
    let store = Sqlite::open(database).unwrap();
    let actor = if deed == Deed::Take { MEMBER } else { LEAD };
    let list = ListId {
        realm: realm(),
        team: Some(crew()),
    };
    // Whoever only looks sees at once that the dead do nothing any more.
    let tasks = store
        .tasks(list, TaskFilter::default(), Page::first(100))
        .await
        .unwrap();
    let taken = store
        .take(agent(actor))
        .await
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let took = begun.elapsed();
    assert_eq!(verify(&taken.transcript), Ok(()), "{what}");
    let mail = store
        .mail(
            realm(),
            agent(MEMBER),
            MailFilter::default(),
            Page::first(100),
        )
        .await
        .unwrap();
    let done = |count: usize| {
        assert!(
            count >= acks.len(),
            "{what}: {} of {} acknowledged are there",
            count,
            acks.len()
        );
        assert!(count as u64 <= TIMES, "{what}: {count} are there");
    };
    let texts = |count: usize| {
        (0..count)
            .map(|number| format!("message {number}"))
            .collect::<Vec<_>>()
    };
    let bodies = |mail: &[Mail]| {
        mail.iter()
            .map(|mail| mail.body.clone())
            .collect::<Vec<_>>()
    };
    let entries: Vec<String> = taken
        .transcript
        .entries
        .iter()
        .map(|stored| String::from_utf8(stored.entry.encoded.bytes.to_vec()).unwrap())
        .collect();
    match deed {
        Deed::Send => {
            done(mail.len());
            assert_eq!(
                bodies(&mail),
                texts(mail.len()),
                "{what}: in order, each once"
            );
        }
        Deed::Take => {
            let shown: Vec<Mail> = mail
                .iter()
                .filter(|mail| mail.shown_in.is_some())
                .cloned()
                .collect();
            done(shown.len());
            assert_eq!(mail.len() as u64, TIMES, "{what}");
            assert_eq!(
                (bodies(&shown), texts(shown.len())),
                (entries.clone(), entries),
                "{what}"
            );
        }
        Deed::Create => {
            done(tasks.len());
            let ids: Vec<u64> = tasks.iter().map(|task| task.id.0).collect();
            assert_eq!(ids, (1..=tasks.len() as u64).collect::<Vec<_>>(), "{what}");
        }
        Deed::Claim => {
            // Its claims died with it, at once, and are known to have been its.
            let lost: Vec<&Task> = tasks.iter().filter(|task| task.lost_by.is_some()).collect();
            done(lost.len());
            assert!(
                lost.iter()
                    .all(|task| task.lost_by.as_deref() == Some("team-lead")),
                "{what}: {lost:?}"
            );
            assert!(
                tasks.iter().all(|task| task.status == TaskStatus::Pending),
                "{what}: {tasks:?}"
            );
        }
        Deed::Update => {
            let changed = tasks
                .iter()
                .filter(|task| task.subject.starts_with("changed"))
                .count();
            done(changed);
            assert!(
                tasks.iter().all(|task| task.version <= 2),
                "{what}: {tasks:?}"
            );
        }
        Deed::Complete => {
            let completed = tasks
                .iter()
                .filter(|task| task.status == TaskStatus::Completed)
                .count();
            done(completed);
            let last = tasks.last().unwrap();
            assert_eq!(
                last.waits_for.len() as u64,
                TIMES - completed as u64,
                "{what}: {last:?}"
            );
        }
        Deed::Append => {
            done(entries.len());
            let wanted: Vec<String> = (0..entries.len())
                .map(|number| format!("entry {number}"))
                .collect();
            assert_eq!(entries, wanted, "{what}");
        }
        Deed::TakeOver => {
            for number in STRAYS {
                let epoch = store.take(agent(number)).await.unwrap().epoch.0;
                let said = acks
                    .iter()
                    .filter_map(|ack| ack.split_once(' '))
                    .find(|ack| ack.0 == number.to_string());
                let before = said.map_or(1, |(_, epoch)| epoch.parse().unwrap());
                assert!(
                    epoch > before,
                    "{what}: agent {number}: {epoch} after {before}"
                );
            }
        }
    }
    // And it goes on.
    store
        .commit(step(actor, taken.epoch.0))
        .await
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    took
}

/// Injects `fault` at every `stride`-th of `calls` in each deed.
fn each(calls: &[&str], fault: &str, stride: usize, judge: &dyn Fn(&Output, &str)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (mut injected, mut longest) = (0, Duration::ZERO);
    for deed in Deed::ALL {
        let template = Template::new(deed);
        let mut counts = template.count();
        counts.retain(|call, _| calls.contains(&call.as_str()));
        for (call, count) in &counts {
            for nth in (1..=*count).step_by(stride) {
                let what = format!("{deed:?}, {fault} at {call} {nth} of {count}");
                let place = template.copy();
                let (trace, inject) = (
                    format!("trace={call}"),
                    format!("inject={call}:{fault}:when={nth}"),
                );
                let output = template.run(
                    &place.database(),
                    &["-o", "/dev/null", "-e", &trace, "-e", &inject],
                );
                judge(&output, &what);
                let acks = acknowledged(&output);
                longest =
                    longest.max(runtime.block_on(check(deed, &place.database(), &acks, &what)));
                injected += 1;
            }
        }
        eprintln!("{deed:?}: {fault} at each of {counts:?}, every {stride}");
    }
    eprintln!("{injected} faults ({fault}); recovered in at most {longest:?}");
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

fn killed(stride: usize) {
    let (runs, hits) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let judge = |output: &Output, _: &str| {
        let killed = output.status.signal() == Some(9) || output.status.code() == Some(137);
        runs.set(runs.get() + 1);
        hits.set(hits.get() + usize::from(killed));
    };
    each(CALLS, "signal=KILL", stride, &judge);
    // A few calls are made only by threads that were quicker in the counted run.
    assert!(
        hits.get() * 10 >= runs.get() * 8,
        "{} of {} were killed",
        hits.get(),
        runs.get()
    );
}

fn failing_disk(stride: usize) {
    let judge = |output: &Output, what: &str| {
        let (said, told) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(!told.contains("panicked"), "{what}: {told}");
        // Whoever was refused was told, and could do it once there was space again. What fails twice is
        // the end of the process; then it said so.
        if output.status.success() {
            assert_eq!(acknowledged(output).len() as u64, TIMES, "{what}: {said}");
        } else {
            assert!(told.contains("Error"), "{what}: {told}");
        }
    };
    each(&["pwrite64", "ftruncate"], "error=ENOSPC", stride, &judge);
    each(
        &["pwrite64", "fsync", "fdatasync", "ftruncate", "rename"],
        "error=EIO",
        stride,
        &judge,
    );
}

// proves SM-05 (part: when it is written)
#[test]
fn killed_at_some_calls_each_protocol_loses_and_doubles_nothing() {
    killed(13);
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn killed_at_every_call_each_protocol_loses_and_doubles_nothing() {
    killed(1);
}

#[test]
fn a_disk_that_fails_now_and_then_refuses_and_recovers() {
    failing_disk(13);
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn a_disk_that_fails_at_every_call_refuses_and_recovers() {
    failing_disk(1);
}
