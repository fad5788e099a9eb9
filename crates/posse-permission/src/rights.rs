//! An agent's rights, as a chain up to those of the session: no agent may do what one above it
//! may not, even if that one's mode changes later.

mod confine;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use posse_protocol::{PermissionMode, Suggestion};

pub use self::confine::Consent;
use super::decide::judge;
use super::path::is_beneath;
use super::suggest::{added, suggest};
use super::{Policy, Verdict};
use posse_port::tool::{Intent, Workspace};

/// An agent's rights. Clones share them: a new mode applies at once, to all agents below as well.
#[derive(Clone, Debug)]
pub struct Rights(Arc<RightsLink>);

/// One link of the chain.
#[derive(Debug)]
struct RightsLink {
    /// `None` if it is that of the agent above.
    mode: Mutex<Option<PermissionMode>>,
    policy: Arc<Policy>,
    workspace: Arc<Workspace>,
    /// Additional rules of skills that are in use.
    granted: Mutex<Vec<Arc<Policy>>>,
    /// Those of the agents above, as of when the agent was started.
    inherited: Vec<Arc<Policy>>,
    /// Rules that a person has added while the session runs; the same for all its agents.
    added: Arc<Mutex<Vec<Arc<Policy>>>>,
    above: Option<Rights>,
}

/// The error for an agent that would work where the one that starts it may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cwd} is outside the allowed directories: {roots}", cwd = .cwd.display(), roots = list(.roots))]
pub struct Outside {
    /// Where it would work.
    pub cwd: PathBuf,
    /// Where it could work.
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
    /// Returns the rights of a session.
    pub fn root(mode: PermissionMode, policy: Arc<Policy>, workspace: Arc<Workspace>) -> Self {
        let (mode, granted, inherited) = (Mutex::new(Some(mode)), Mutex::default(), Vec::new());
        Self(Arc::new(RightsLink {
            mode,
            policy,
            workspace,
            granted,
            inherited,
            added: Arc::default(),
            above: None,
        }))
    }

    /// Returns the rights of an agent that this one starts. Without a mode it shares this one's,
    /// even if that changes. Roots outside this one's are left out; in a worktree they are mapped
    /// to it.
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
            inherited: self.granted_rules(),
            added: Arc::clone(&self.0.added),
            above: Some(self.clone()),
        })))
    }

    /// Sets the mode, from the next verdict on.
    pub fn set_mode(&self, mode: PermissionMode) {
        *self.0.mode.lock().unwrap_or_else(PoisonError::into_inner) = Some(mode);
    }

    /// Returns the strictest mode along the chain, for people. A verdict considers every one.
    pub fn mode(&self) -> PermissionMode {
        let mode = self
            .chain()
            .map(Self::own_mode)
            .min_by_key(|mode| mode.strictness());
        mode.unwrap_or_default()
    }

    /// Returns the strictest mode of the agents above.
    pub fn mode_above(&self) -> PermissionMode {
        self.0
            .above
            .as_ref()
            .map_or_else(|| self.mode(), Self::mode)
    }

    /// Adds rules for the rest of the session, to all its agents at once.
    pub fn add_for_session(&self, rules: Arc<Policy>) {
        let mut added = self.0.added.lock().unwrap_or_else(PoisonError::into_inner);
        if !added.iter().any(|known| known.says_the_same(&rules)) {
            added.push(rules);
        }
    }

    /// Returns the rules, with those added to the session, those granted to this agent, and to
    /// those above before they started it: these were the user's decision as well.
    pub fn policy(&self) -> Arc<Policy> {
        let mut granted = self.granted_rules();
        let added = self.0.added.lock().unwrap_or_else(PoisonError::into_inner);
        granted.extend(added.iter().cloned());
        if granted.is_empty() {
            Arc::clone(&self.0.policy)
        } else {
            Arc::new(self.0.policy.with(&granted))
        }
    }

    /// Adds rules until [`Rights::withdraw`]; agents that are started meanwhile keep them.
    /// Duplicates are ignored, since a skill may be loaded often.
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

    /// Removes all granted rules.
    pub fn withdraw(&self) {
        self.0
            .granted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Returns the granted and the inherited rules.
    fn granted_rules(&self) -> Vec<Arc<Policy>> {
        let granted = self
            .0
            .granted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        granted.iter().chain(&self.0.inherited).cloned().collect()
    }

    /// Returns where it works.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.0.workspace
    }

    /// Returns the verdict on a call of `tool`: the strictest one along the chain.
    pub fn verdict(&self, tool: &str, intent: &Intent) -> Verdict {
        // All agents of a session share the rules, except for granted ones. These count for the
        // links above, too: otherwise nothing could be granted.
        self.verdict_under(&self.policy(), (tool, intent), false)
    }

    /// Returns the verdict on a call that a hook of the user's has agreed to: a person is asked
    /// only if a rule says so, and what is denied stays denied.
    pub fn verdict_agreed(&self, tool: &str, intent: &Intent) -> Verdict {
        self.verdict_under(&self.policy(), (tool, intent), true)
    }

    /// Returns the rules that a person may accept instead of being asked about such a call again,
    /// from narrow to wide; none if the call is not asked about, or no rule could cover it soundly.
    pub fn suggestions(&self, tool: &str, intent: &Intent) -> Vec<Suggestion> {
        let policy = self.policy();
        if !matches!(
            self.verdict_under(&policy, (tool, intent), false),
            Verdict::Ask(_)
        ) {
            return Vec::new();
        }
        let mut suggestions = suggest(&policy, &self.0.workspace, tool, intent);
        // A rule that does not settle the question is no help, for example beside an ask rule.
        suggestions.retain(|suggestion| {
            let wider = added(&policy, &self.0.workspace, suggestion);
            wider.is_some_and(|policy| {
                self.verdict_under(&policy, (tool, intent), false) == Verdict::Allow
            })
        });
        suggestions
    }

    /// Returns the verdict under these rules.
    fn verdict_under(&self, policy: &Policy, call: (&str, &Intent), agreed: bool) -> Verdict {
        let mut strictest = Verdict::Allow;
        for (at, (mode, roots)) in self.links_in(&self.0.workspace).into_iter().enumerate() {
            let verdict = if at == 0 {
                judge(policy, mode, &self.0.workspace, call, agreed)
            } else {
                // The mode and roots of the link above, but this agent's place: that decides what
                // a command's paths mean, and an agent may always read its own output and write
                // its own notes.
                let workspace = Workspace {
                    roots: roots.to_vec(),
                    ..Workspace::clone(&self.0.workspace)
                };
                above(judge(policy, mode, &workspace, call, agreed))
            };
            if weight(&verdict) > weight(&strictest) {
                strictest = verdict;
            }
            if matches!(strictest, Verdict::Deny(_)) {
                break;
            }
        }
        strictest
    }

    /// Returns the modes and roots along the chain, mapped to where an agent works, the agent's own
    /// first. Most agents have those of their parent: equal ones are given once.
    pub(super) fn links_in(&self, below: &Workspace) -> Vec<(PermissionMode, Cow<'_, [PathBuf]>)> {
        let mut links: Vec<(PermissionMode, Cow<'_, [PathBuf]>)> = Vec::new();
        for rights in self.chain() {
            let link = (rights.own_mode(), rights.roots_in(below));
            if !links.contains(&link) {
                links.push(link);
            }
        }
        links
    }

    /// Returns the agent's roots, mapped to where an agent below it works.
    fn roots_in(&self, below: &Workspace) -> Cow<'_, [PathBuf]> {
        let roots = self.0.workspace.roots.as_slice();
        below
            .mirror
            .as_ref()
            .map_or(Cow::Borrowed(roots), |mirror| {
                Cow::Owned(mirror.reflected(roots))
            })
    }

    /// Returns the agent and those above it.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |rights| rights.0.above.as_ref())
    }

    /// Returns the agent's mode: the first that is set, from here upwards.
    fn own_mode(&self) -> PermissionMode {
        let set = |rights: &Self| *rights.0.mode.lock().unwrap_or_else(PoisonError::into_inner);
        self.chain().find_map(set).unwrap_or_default()
    }
}

/// Returns how strict a verdict is.
fn weight(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}

/// Adds to a reason that the limit comes from an agent above.
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
