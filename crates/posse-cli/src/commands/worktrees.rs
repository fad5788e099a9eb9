//! `posse worktrees`.

mod clean;
mod list;

use std::io;
use std::process::ExitCode;

use posse_tools::{Found, GitWorktrees};
use serde_json::{Value, json};

use crate::assemble::repository;

/// List and remove git worktrees of agents.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct WorktreesCommand {
    #[command(subcommand)]
    command: WorktreesSubcommand,
}

#[derive(clap::Subcommand)]
enum WorktreesSubcommand {
    List(list::ListWorktrees),
    Clean(clean::CleanWorktrees),
}

impl WorktreesCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let worktrees = crate::assemble::own_worktrees::own_worktrees()?;
        match self.command {
            WorktreesSubcommand::List(command) => command.run(&worktrees),
            WorktreesSubcommand::Clean(command) => command.run(&worktrees),
        }
    }
}

/// Returns all worktrees, newest last: ids begin with the time.
fn all(worktrees: &GitWorktrees) -> io::Result<Vec<Found>> {
    let mut found = worktrees.list()?;
    found.sort_by_key(|found| found.agent);
    Ok(found)
}

/// Returns a worktree's state in one word.
fn state(found: &Found) -> &'static str {
    match (found.live, &found.keeps) {
        (true, _) => "live",
        (false, Some(_)) => "kept",
        (false, None) => "left",
    }
}

/// Returns a worktree for programs.
fn object(found: &Found) -> Value {
    json!({
        "agent_id": found.agent, "state": state(found), "keeps": found.keeps,
        "repository": repository::of(found).map(|it| it.to_string_lossy().into_owned()),
        "branch": found.branch, "base": found.base, "path": found.path.to_string_lossy(),
    })
}

#[cfg(test)]
pub(crate) mod made {
    //! Hand-made worktrees.

    use super::*;

    pub(crate) fn found(id: u32, live: bool, keeps: Option<&str>) -> Found {
        let agent = format!("0197f0aa-0000-7000-8000-{id:012}");
        Found {
            path: format!("/home/me/.posse/worktrees/app-1a2b3c4d/{agent}").into(),
            origin: Some("/work/app".into()),
            branch: Some(format!("posse/{agent}")),
            base: Some("3f2a91c0".into()),
            agent: agent.parse().unwrap(),
            live,
            keeps: keeps.map(str::to_owned),
        }
    }
}
