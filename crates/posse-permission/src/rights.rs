//! What an agent may do, as a chain up to the session's own rights: no agent may do what one above it
//! may not, also when that one's mode changes later.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use posse_protocol::PermissionMode;

use super::path::is_beneath;
use super::{Policy, Verdict, decide};
use posse_port::tool::{Intent, Workspace};

/// An agent's rights. Clones share: a mode that is set holds at once, for all agents below as well.
#[derive(Clone, Debug)]
pub struct Rights(Arc<RightsLink>);

#[derive(Debug)]
struct RightsLink {
    /// None while it is that of the agent above.
    mode: Mutex<Option<PermissionMode>>,
    policy: Arc<Policy>,
    workspace: Arc<Workspace>,
    /// What skills that are followed allow and forbid besides.
    granted: Mutex<Vec<Arc<Policy>>>,
    /// The same of those above it, as it was when the agent was started.
    inherited: Vec<Arc<Policy>>,
    above: Option<Rights>,
}

/// An agent was to work where the one that starts it may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cwd} is outside the allowed directories: {roots}", cwd = .cwd.display(), roots = list(.roots))]
pub struct Outside {
    /// Where.
    pub cwd: PathBuf,
    /// Where it might have.
    pub roots: Vec<PathBuf>,
}

fn list(roots: &[PathBuf]) -> String {
    roots
        .iter()
        .map(|root| root.display().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

impl Rights {
    /// The rights of a session.
    pub fn root(mode: PermissionMode, policy: Arc<Policy>, workspace: Arc<Workspace>) -> Self {
        let (mode, granted, inherited) = (Mutex::new(Some(mode)), Mutex::default(), Vec::new());
        Self(Arc::new(RightsLink {
            mode,
            policy,
            workspace,
            granted,
            inherited,
            above: None,
        }))
    }

    /// The rights of an agent that this one starts. Without a mode it has this one's, whatever that
    /// becomes. Roots that do not lie in this one's are left out; in a worktree, this one's are taken as they
    /// lie there.
    pub fn child(
        &self,
        mode: Option<PermissionMode>,
        mut workspace: Workspace,
    ) -> Result<Self, Outside> {
        let roots = self.roots_in(&workspace).into_owned();
        workspace.roots.retain(|root| is_beneath(root, &roots));
        if !is_beneath(&workspace.cwd, &workspace.roots) {
            return Err(Outside {
                cwd: workspace.cwd,
                roots,
            });
        }
        Ok(Self(Arc::new(RightsLink {
            mode: Mutex::new(mode),
            policy: Arc::clone(&self.0.policy),
            workspace: Arc::new(workspace),
            granted: Mutex::default(),
            inherited: self.rules_besides(),
            above: Some(self.clone()),
        })))
    }

    /// Another mode, from the next verdict on.
    pub fn set_mode(&self, mode: PermissionMode) {
        *self.0.mode.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
    }

    /// The strictest mode along the chain. For people: a verdict asks every one of them.
    pub fn mode(&self) -> PermissionMode {
        let mode = self
            .chain()
            .map(Self::own_mode)
            .min_by_key(|mode| strictness(*mode));
        mode.unwrap_or_default()
    }

    /// The strictest mode of those above it.
    pub fn mode_above(&self) -> PermissionMode {
        self.0
            .above
            .as_ref()
            .map_or_else(|| self.mode(), Self::mode)
    }

    /// The rules, with what was granted to this agent, and to those above it before they started it: that was
    /// the user's word as well.
    pub fn policy(&self) -> Arc<Policy> {
        let granted = self.rules_besides();
        if granted.is_empty() {
            Arc::clone(&self.0.policy)
        } else {
            Arc::new(self.0.policy.with(&granted))
        }
    }

    /// More rules, until [`Rights::withdraw`]; those that it starts meanwhile keep them. The same are not
    /// taken twice: a skill may be loaded often.
    pub fn grant(&self, rules: Arc<Policy>) {
        let mut granted = self
            .0
            .granted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !granted.iter().any(|known| known.says_the_same(&rules)) {
            granted.push(rules);
        }
    }

    /// Takes back all that was granted.
    pub fn withdraw(&self) {
        self.0
            .granted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn rules_besides(&self) -> Vec<Arc<Policy>> {
        let granted = self
            .0
            .granted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        granted.iter().chain(&self.0.inherited).cloned().collect()
    }

    /// Where it works.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.0.workspace
    }

    /// What becomes of a call of `tool` by this agent: the strictest of what it and those above it may do.
    pub fn verdict(&self, tool: &str, intent: &Intent) -> Verdict {
        // All agents of a session have the same rules but for what is granted, and that holds also for those
        // above: else nobody could be granted anything.
        let policy = &*self.policy();
        let mut judged: Vec<(PermissionMode, Cow<'_, [PathBuf]>)> = Vec::new();
        let mut strictest = Verdict::Allow;
        for rights in self.chain() {
            let mode = rights.own_mode();
            let roots = rights.roots_in(&self.0.workspace);
            let alike =
                |known: &(PermissionMode, Cow<'_, [PathBuf]>)| known.0 == mode && known.1 == roots;
            if judged.iter().any(alike) {
                continue;
            }
            let verdict = if judged.is_empty() {
                decide(policy, mode, &self.0.workspace, tool, intent)
            } else {
                // Another's mode, rules and roots; but what is done is done here. What a command's paths mean
                // depends on that, and an agent may always read its own output and write its own notes.
                let workspace = Workspace {
                    roots: roots.to_vec(),
                    ..Workspace::clone(&self.0.workspace)
                };
                above(decide(policy, mode, &workspace, tool, intent))
            };
            judged.push((mode, roots));
            if weight(&verdict) > weight(&strictest) {
                strictest = verdict;
            }
            if matches!(strictest, Verdict::Deny(_)) {
                break;
            }
        }
        strictest
    }

    /// The agent's roots, as they lie where an agent below it works.
    fn roots_in(&self, below: &Workspace) -> Cow<'_, [PathBuf]> {
        let roots = self.0.workspace.roots.as_slice();
        below
            .mirror
            .as_ref()
            .map_or(Cow::Borrowed(roots), |mirror| {
                Cow::Owned(mirror.reflected(roots))
            })
    }

    /// The agent, and those above it.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rights| rights.0.above.as_ref())
    }

    /// The agent's own mode: the first that was set, from here upwards.
    fn own_mode(&self) -> PermissionMode {
        let set = |rights: &Self| *rights.0.mode.lock().unwrap_or_else(PoisonError::into_inner);
        self.chain().find_map(set).unwrap_or_default()
    }
}

fn strictness(mode: PermissionMode) -> usize {
    PermissionMode::ALL
        .iter()
        .position(|other| *other == mode)
        .unwrap_or_default()
}

fn weight(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

/// Says whose right is missing.
fn above(verdict: Verdict) -> Verdict {
    let held = |why| format!("{why} (this limit comes from an agent above this one)");
    match verdict {
        Verdict::Allow => Verdict::Allow,
        Verdict::Ask(why) => Verdict::Ask(held(why)),
        Verdict::Deny(why) => Verdict::Deny(held(why)),
    }
}

#[cfg(test)]
mod tests;
