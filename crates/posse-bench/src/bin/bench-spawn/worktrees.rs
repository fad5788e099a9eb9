//! Sub-agents with their own worktrees, and the time of git to make as many.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::time::Instant;

use posse_port::worktree::{Base, Dirty, Wanted, Worktrees as _};
use posse_protocol::{AgentId, PermissionMode};
use posse_tools::GitWorktrees;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Failed;
use crate::record::{self, millis};
use posse_testkit::test_runtime::TestRuntime;

/// Number of files in a directory.
const IN_DIRECTORY: u32 = 100;

/// Makes a repository of `files` files of about a KiB each, packed like an older one.
pub(crate) fn prepare(repository: &Path, files: u32) -> Result<Value, Failed> {
    std::fs::create_dir_all(repository)?;
    for number in 0..files {
        let directory = repository.join(format!("part{}", number / IN_DIRECTORY));
        std::fs::create_dir_all(&directory)?;
        let text =
            format!("This is line one of file {number}, and others are like it.\n").repeat(17);
        std::fs::write(directory.join(format!("file{number}.txt")), text)?;
    }
    git(repository, ["init", "-q", "-b", "main"])?;
    git(repository, ["config", "user.name", "bench"])?;
    git(repository, ["config", "user.email", "bench@localhost"])?;
    git(repository, ["config", "gc.auto", "0"])?;
    git(repository, ["add", "-A"])?;
    git(repository, ["commit", "-q", "-m", "All of it"])?;
    git(repository, ["repack", "-a", "-d", "-q"])?;
    Ok(json!({"files": files}))
}

/// Measures git making `count` worktrees at once, each from the common start to its own end.
pub(crate) fn plain(repository: &Path, directory: &Path, count: usize) -> Result<Value, Failed> {
    let start = Barrier::new(count);
    let one = |number: usize| {
        let (branch, place) = (
            format!("plain/{number}"),
            directory.join(format!("plain-{number}")),
        );
        start.wait();
        let clock = Instant::now();
        let add = |how: &str| {
            let words = ["worktree", "add", "-q", how, &branch].map(OsStr::new);
            git(repository, words.into_iter().chain([place.as_os_str()]))
        };
        let mut made = add("-b");
        // git fails if it sees another's half-written worktree; the caller tries again.
        while made
            .as_ref()
            .is_err_and(|why| why.to_string().contains("/commondir: "))
        {
            made = add("-B");
        }
        made.map(|_| clock.elapsed().as_secs_f64() * 1e3)
    };
    let times: Result<Vec<f64>, Failed> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..count)
            .map(|number| scope.spawn(move || one(number)))
            .collect();
        all.into_iter()
            .map(|one| one.join().map_err(|_| "a thread panicked")?)
            .collect()
    });
    let times = sorted(times?);
    for number in 0..count {
        std::fs::remove_dir_all(directory.join(format!("plain-{number}")))?;
    }
    git(repository, ["worktree", "prune"])?;
    for number in 0..count {
        git(
            repository,
            ["branch", "-q", "-D", &format!("plain/{number}")],
        )?;
    }
    Ok(json!({"ms": times}))
}

/// Measures posse making as many, without agents.
pub(crate) async fn made(
    repository: &Path,
    directory: &Path,
    count: usize,
) -> Result<Value, Failed> {
    let worktrees = GitWorktrees::new(directory.join("worktrees"));
    let (clock, mut making) = (Instant::now(), JoinSet::new());
    for _ in 0..count {
        let (base, dirty) = (Base::Head, Dirty::Tell);
        let made = worktrees.make(Wanted {
            agent: AgentId::from(uuid::Uuid::now_v7()),
            from: repository.to_owned(),
            base,
            dirty,
        });
        making.spawn(async move { (made.await, clock.elapsed().as_secs_f64() * 1e3) });
    }
    let (mut times, mut all) = (Vec::new(), Vec::new());
    while let Some(made) = making.join_next().await {
        let (made, time) = made?;
        times.push(time);
        all.push(made?.worktree);
    }
    let clock = Instant::now();
    for worktree in &all {
        if let Some(kept) = worktrees.release(worktree).await {
            return Err(format!("a worktree that nobody touched was kept: {kept}").into());
        }
    }
    let released = clock.elapsed().as_secs_f64() * 1e3 / count as f64;
    Ok(json!({"ms": sorted(times), "released_ms_each": released}))
}

/// Measures from the starter's reply to the first request of each of `count` sub-agents.
pub(crate) async fn shared(
    url: &str,
    repository: &Path,
    directory: &Path,
    count: usize,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::within(url, directory, repository, count)?;
    let mut session = test_runtime.session_in(PermissionMode::BypassPermissions);
    session.say("go").await?;
    session.end().await?;
    Ok(json!({"ms": first_requests(url, &session.id(), count).await?}))
}

/// The same with a worktree for each. Every second one makes a file in it, and all wait until every
/// one has started.
pub(crate) async fn isolated(
    url: &str,
    repository: &Path,
    directory: &Path,
    count: usize,
) -> Result<Value, Failed> {
    let test_runtime = TestRuntime::within(url, directory, repository, count)?;
    let mut session = test_runtime.session_in(PermissionMode::BypassPermissions);
    session.say("go").await?;
    // The request that starts them, and two of each.
    record::wait_for(url, 2 * count + 1).await?;
    let mut wrong = wrong_at_work(repository, count)?;
    session.end().await?;
    test_runtime.runtime.shut_down().await;
    wrong.extend(wrong_at_the_end(repository, count)?);
    let times = first_requests(url, &session.id(), count).await?;
    let worktrees = GitWorktrees::new(test_runtime.worktrees());
    for found in worktrees.list()? {
        worktrees.discard(&found)?;
    }
    Ok(json!({"ms": times, "wrong": wrong}))
}

async fn first_requests(url: &str, session: &str, count: usize) -> Result<Vec<f64>, Failed> {
    let requests = record::of_session(url, session).await?;
    let told = requests.first().ok_or("there was no request")?.ended()?;
    let mut seen = BTreeSet::new();
    let below = requests.iter().filter(|request| !request.is_main());
    let first = below.filter(|request| seen.insert(request.agent().to_owned()));
    let times: Vec<f64> = first.map(|request| millis(told, request.at_us)).collect();
    if times.len() != count {
        let last = requests.last().map_or("", |request| request.body.as_str());
        return Err(format!("{} sub-agents instead of {count}: {last}", times.len()).into());
    }
    Ok(sorted(times))
}

/// Lists defects while all are at work.
fn wrong_at_work(repository: &Path, count: usize) -> Result<Vec<String>, Failed> {
    let head = git(repository, ["rev-parse", "HEAD"])?;
    let all = checkouts(repository)?;
    let mut wrong = Vec::new();
    let branches: BTreeSet<&str> = all
        .iter()
        .filter_map(|it| it.branch.strip_prefix("refs/heads/posse/"))
        .collect();
    if (all.len(), branches.len()) != (count, count) {
        wrong.push(format!(
            "{} worktrees with {} branches of their own",
            all.len(),
            branches.len()
        ));
    }
    for it in all.iter().filter(|it| it.head != head.trim() || !it.locked) {
        wrong.push(format!(
            "{} is at {}, locked: {}",
            it.path.display(),
            it.head,
            it.locked
        ));
    }
    Ok(wrong)
}

/// Lists defects after all have ended.
fn wrong_at_the_end(repository: &Path, count: usize) -> Result<Vec<String>, Failed> {
    let all = checkouts(repository)?;
    let mut wrong = Vec::new();
    if all.len() != count / 2 {
        wrong.push(format!("{} worktrees are there at the end", all.len()));
    }
    for it in all
        .iter()
        .filter(|it| !it.path.join("made.txt").is_file() || it.locked)
    {
        wrong.push(format!(
            "{} has nothing in it, or is still locked",
            it.path.display()
        ));
    }
    let branches = git(repository, ["for-each-ref", "refs/heads/posse/"])?
        .lines()
        .count();
    if branches != all.len() {
        wrong.push(format!("{branches} branches are there at the end"));
    }
    Ok(wrong)
}

/// A checkout as listed by git.
#[derive(Default)]
struct Checkout {
    path: PathBuf,
    head: String,
    branch: String,
    locked: bool,
}

/// Returns all checkouts but the main one.
fn checkouts(repository: &Path) -> Result<Vec<Checkout>, Failed> {
    let mut all: Vec<Checkout> = Vec::new();
    for line in git(repository, ["worktree", "list", "--porcelain"])?.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        if key == "worktree" {
            all.push(Checkout {
                path: value.into(),
                ..Checkout::default()
            });
        }
        let Some(last) = all.last_mut() else { continue };
        match key {
            "HEAD" => last.head = value.to_owned(),
            "branch" => last.branch = value.to_owned(),
            "locked" => last.locked = true,
            _ => {}
        }
    }
    Ok(all.split_off(1))
}

fn sorted(mut times: Vec<f64>) -> Vec<f64> {
    times.sort_by(f64::total_cmp);
    times
}

#[expect(
    clippy::disallowed_methods,
    reason = "what git does by itself is what is compared with"
)]
fn git<S: AsRef<OsStr>>(
    repository: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> Result<String, Failed> {
    let output = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args(arguments)
        .output()?;
    if !output.status.success() {
        return Err(format!("git: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
