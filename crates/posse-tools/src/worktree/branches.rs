//! Branches of agents whose worktrees are gone.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use posse_protocol::AgentId;

use crate::git::{Git, GitError};

use super::{GitWorktrees, WorktreeError};

/// Where git has them.
const BRANCHES: &str = "refs/heads/posse/";
/// Age of an agent from which its branch counts: before, its worktree may be about to be made.
const SETTLED: Duration = Duration::from_secs(3600);

/// The branch of an agent that has no worktree any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBranch {
    /// Whose it is.
    pub agent: AgentId,
    /// A directory of the repository.
    pub repository: PathBuf,
    /// Its name, with `posse/`.
    pub name: String,
    /// The commit that it is at.
    pub commit: String,
    /// What would be lost with it.
    pub keeps: Option<String>,
}

impl FoundBranch {
    /// Returns the branches of agents in the repository around a checkout that no worktree has, with
    /// what would be lost by removing them. Blocks.
    pub fn all(worktrees: &GitWorktrees, checkout: &Path) -> Result<Vec<Self>, WorktreeError> {
        worktrees.must_be_allowed(checkout)?;
        let format = "--format=%(refname) %(objectname) %(worktreepath)";
        let told = Git::look(checkout).words(["for-each-ref", format, BRANCHES]);
        let told = told.line()?;
        let free = told.lines().filter_map(|line| {
            let mut words = line.splitn(3, ' ');
            let (name, commit) = (words.next()?, words.next()?);
            let agent: AgentId = name.strip_prefix(BRANCHES)?.parse().ok()?;
            let has_worktree = words.next().is_some_and(|path| !path.is_empty());
            (!has_worktree && is_settled(agent)).then_some((agent, commit))
        });
        let found = free.map(|(agent, commit)| {
            Ok(Self {
                agent,
                repository: checkout.to_owned(),
                name: format!("posse/{agent}"),
                commit: commit.to_owned(),
                keeps: keeps(checkout, commit)?,
            })
        });
        found.collect()
    }

    /// Removes a branch, unless it is at another commit than it was or something would be lost.
    /// Blocks.
    pub fn remove(&self, worktrees: &GitWorktrees) -> Result<(), WorktreeError> {
        worktrees.must_be_allowed(&self.repository)?;
        if let Some(keeps) = keeps(&self.repository, &self.commit)? {
            return Err(WorktreeError::BranchKeeps(keeps));
        }
        let reference = format!("refs/heads/{}", self.name);
        let removed = Git::change(&self.repository)
            .words(["update-ref", "-d"])
            .words([&reference, &self.commit]);
        removed.run()?;
        Ok(())
    }
}

/// Returns true if an agent was made long enough ago: its ID begins with the time.
fn is_settled(agent: AgentId) -> bool {
    let Some(made) = agent.uuid().get_timestamp() else {
        return true;
    };
    let (seconds, _) = made.to_unix();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.is_ok_and(|now| now.saturating_sub(Duration::from_secs(seconds)) > SETTLED)
}

/// Returns what would be lost with a branch at this commit: the commits that no other branch, tag or
/// checkout has.
fn keeps(checkout: &Path, commit: &str) -> Result<Option<String>, GitError> {
    let others = ["--exclude=posse/*", "--branches", "--remotes", "--tags"];
    let own = Git::look(checkout)
        .words(["rev-list", "--count", commit, "--not", "HEAD"])
        .words(others)
        .line()?;
    Ok(match own.as_str() {
        "0" => None,
        "1" => Some("1 commit that no other branch has".to_owned()),
        count => Some(format!("{count} commits that no other branch has")),
    })
}
