//! A process with a worktree, to be killed and disturbed by tests.
//!
//! - `life HOME REPO AGENT work|idle tell|carry`: makes a worktree, works in it if told to,
//!   releases it, reclaims it and releases it again; prints each finished part on a line of its
//!   own;
//! - `sweep HOME`: the clean-up of a new process; prints what it removed and what it kept.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use posse_port::worktree::{Base, Dirty, Wanted, Worktrees as _};
use posse_tools::GitWorktrees;

type Failed = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failed> {
    // One blocking thread, so that the n-th call is the same in each run.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["life", home, repository, agent, work, dirty] => {
            let dirty = if dirty == "carry" {
                Dirty::Carry
            } else {
                Dirty::Tell
            };
            let from = Path::new(repository).to_owned();
            let wanted = Wanted {
                agent: agent.parse()?,
                from,
                base: Base::Head,
                dirty,
            };
            life(home, wanted, work == "work").await
        }
        ["sweep", home] => {
            for swept in GitWorktrees::new(home.into()).sweep() {
                let end = if swept.removed { "removed" } else { "kept" };
                say(&format!(
                    "{end} {} {:?}",
                    swept.found.agent, swept.found.keeps
                ))?;
            }
            Ok(())
        }
        _ => Err("see the head of this program for its arguments".into()),
    }
}

async fn life(home: &str, wanted: Wanted, works: bool) -> Result<(), Failed> {
    let trees = GitWorktrees::new(home.into());
    let worktree = trees.make(wanted).await?.worktree;
    say("made")?;
    if works {
        fs::write(worktree.path.join("work.txt"), "work")?;
        say("worked")?;
    }
    say(&format!("kept {:?}", trees.release(&worktree).await))?;
    say(&format!("again {}", trees.reclaim(&worktree).await?))?;
    say(&format!("kept {:?}", trees.release(&worktree).await))
}

/// Prints a line; fails if the output is on a full disk.
fn say(line: &str) -> Result<(), Failed> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
