//! Worktrees that hooks of the user make and remove instead of git.

use std::io;
use std::path::{Path, PathBuf};

use posse_permission::Rights;
use posse_port::Ports;
use posse_port::worktree::{Made, Worktree};
use posse_protocol::AgentId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::hook_host::HookHost;
use crate::agent::step::HookRequest;
use crate::hook::{HookEvent, Merged};
use crate::live::session::Session;

/// Why hooks have made no worktree.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotMade {
    #[error("the WorktreeCreate hook failed: {0}")]
    Failed(String),
    #[error("the WorktreeCreate hook gave no path")]
    NoPath,
    #[error("the WorktreeCreate hook gave the path {}, which is no directory", .0.display())]
    NoDirectory(PathBuf),
    #[error("the WorktreeCreate hook gave the path {}: {}", .0.display(), .1)]
    NotThere(PathBuf, io::Error),
    #[error(
        "the WorktreeCreate hook gave the path {}, where no agent may work: it holds the workspace, \
         the user's home or posse's, or lies elsewhere and is the repository's choice", .0.display()
    )]
    TooMuch(PathBuf),
}

/// Whose worktree it is, and what is known of its hooks.
pub(crate) struct WorktreeHooks<'a> {
    pub(crate) ports: &'a Ports,
    pub(crate) session: &'a Session,
    /// Rights of the agent that the hooks run for.
    pub(crate) rights: &'a Rights,
    /// The agent that works in it.
    pub(crate) agent: AgentId,
}

impl WorktreeHooks<'_> {
    /// Lets hooks make a worktree for an agent whose parent works in `from`. Returns none if there
    /// are no such hooks.
    pub(crate) async fn make(
        &self,
        from: &Path,
        cancel: CancellationToken,
    ) -> Option<Result<Made, NotMade>> {
        let own = json!({ "name": format!("agent-{}", self.agent) });
        let said = self.run(HookEvent::WorktreeCreate, own, cancel).await?;
        Some(made(&said, from).and_then(|made| self.admitted(made)))
    }

    /// Returns a worktree that an agent may work in: it holds nothing that agents are kept from, and
    /// if a repository has a say in where it is, it is where the session works anyway.
    fn admitted(&self, made: Made) -> Result<Made, NotMade> {
        let path = &made.worktree.path;
        let workspace = self.rights.workspace();
        let kept = [&workspace.cwd, &workspace.spill].into_iter();
        let mut kept = kept.chain(&workspace.home).chain(&workspace.roots);
        let hooks = self.session.setup.spawning.hooks.now();
        let hooks = hooks.matching(HookEvent::WorktreeCreate, "").hooks;
        let is_theirs = hooks.iter().any(|hook| hook.origin.of_repository);
        let is_within = workspace.roots.iter().any(|root| path.starts_with(root));
        match kept.any(|inner| inner.starts_with(path)) || is_theirs && !is_within {
            true => Err(NotMade::TooMuch(path.clone())),
            false => Ok(made),
        }
    }

    /// Returns true if hooks remove the worktrees that hooks have made.
    pub(crate) fn can_remove(&self) -> bool {
        let hooks = self.session.setup.spawning.hooks.now();
        hooks.has(HookEvent::WorktreeRemove)
    }

    /// Lets hooks remove a worktree that a hook has made. Returns what is kept.
    pub(crate) async fn remove(
        &self,
        worktree: &Worktree,
        cancel: CancellationToken,
    ) -> Option<String> {
        let own = json!({ "worktree_path": worktree.path });
        let ran = self.run(HookEvent::WorktreeRemove, own, cancel).await;
        let why = match ran {
            Some(_) => "its WorktreeRemove hook left it there",
            None => BY_HOOK,
        };
        worktree.path.exists().then(|| why.to_owned())
    }

    /// Runs the hooks of an event; none if there are none.
    async fn run(&self, event: HookEvent, own: Value, cancel: CancellationToken) -> Option<Merged> {
        let hooks = self.session.setup.spawning.hooks.now();
        let hooks = hooks.matching(event, "").hooks;
        if hooks.is_empty() {
            return None;
        }
        let posse = json!({ "agent": self.agent });
        // Not in the worktree, which is not there yet, or will not be there any more.
        let host = HookHost {
            directory: self.session.setup.workspace.cwd.clone(),
            ..HookHost::new(self.ports, self.session, self.rights, posse)
        };
        let request = HookRequest::of_event(event, hooks, "", own);
        let said = host.run(request, cancel.clone()).await;
        // There is nothing beside which they could run.
        for one in said.beside {
            host.run_beside(one, cancel.clone()).await;
        }
        Some(said.merged)
    }
}

/// Why a worktree of a hook stays.
const BY_HOOK: &str = "a hook made it";

/// Returns what hooks have made.
fn made(said: &Merged, from: &Path) -> Result<Made, NotMade> {
    if let Some(why) = said.ends_run.as_deref().or(said.denied()) {
        return Err(NotMade::Failed(why.to_owned()));
    }
    let path = said.more.worktree.as_ref().ok_or(NotMade::NoPath)?;
    let path = from.join(path);
    let path = match path.canonicalize() {
        Ok(path) if path.is_dir() => path,
        Ok(path) => return Err(NotMade::NoDirectory(path)),
        Err(error) => return Err(NotMade::NotThere(path, error)),
    };
    let worktree = Worktree {
        path,
        origin: checkout(from),
        branch: String::new(),
        base: "a hook".into(),
        carried: None,
        by_hook: true,
    };
    Ok(Made {
        worktree,
        base: "what a WorktreeCreate hook of the user made".into(),
        missing: None,
        carried: None,
    })
}

/// Returns the top of the checkout that a directory is in; the directory itself if it is in none
/// that is known.
fn checkout(directory: &Path) -> PathBuf {
    let marked = |top: &&Path| {
        [".git", ".hg", ".jj", ".svn"]
            .iter()
            .any(|it| top.join(it).exists())
    };
    let top = directory.ancestors().find(marked);
    top.unwrap_or(directory).to_owned()
}
