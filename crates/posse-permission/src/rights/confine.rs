//! Where a command runs, and what it may change there: a command that nobody was asked about can
//! change no more than the mode lets file tools change unasked.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use posse_port::confinement::{Confinement, NetworkAccess, Tier, Where};
use posse_port::tool::{Intent, Subject, Workspace};
use posse_protocol::{PermissionMode, SandboxRefusal, Suggestion};

use crate::mirror::RulePaths as _;
use crate::shell::{CommandRules, Line};
use crate::suggest::{added, suggest, suggest_edits, suggest_outside};
use crate::{Policy, Rights};

/// Who has agreed to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Nobody was asked; a rule may allow it.
    Rules,
    /// A person.
    Person,
    /// A person, after the sandbox had refused this.
    Again(SandboxRefusal),
}

impl Rights {
    /// Returns where a call's commands run, as long as the rules and modes along the chain stay as
    /// they are.
    pub fn place(&self, subject: &Subject, consent: &Consent) -> Where {
        let policy = self.policy();
        let workspace = self.workspace();
        let line = Line::of(subject, workspace);
        let has_person = consent != &Consent::Rules;
        let wants_outside = matches!(subject, Subject::Runs { outside: true, .. });
        let is_outside_ruled = line
            .as_ref()
            .is_some_and(|line| line.outside_allowed(&policy));
        let links = self.links_in(workspace);
        let is_planning = links.iter().any(|(mode, _)| *mode == PermissionMode::Plan);
        let may_leave = !is_planning && !policy.is_kept_inside;
        if may_leave && (is_outside_ruled || wants_outside && has_person) {
            return Where::Outside;
        }
        let agreed = has_person || line.is_some_and(|line| is_ruled(&line, &policy));
        let none = SandboxRefusal::default();
        let wider = match consent {
            Consent::Again(refusal) if !is_planning => refusal,
            _ => &none,
        };
        let writable = |(mode, roots): (PermissionMode, Cow<'_, [PathBuf]>)| {
            let mut bounds = bounds(mode, agreed, &roots, workspace);
            if policy.forbids_edits(!has_person) {
                bounds.write.clear();
            } else if mode != PermissionMode::Plan {
                bounds.write.extend(wider.write.iter().cloned());
                let is_free = workspace.notes.as_ref().is_none_or(|notes| !notes.only);
                let editable = policy.editable_paths(workspace).into_iter();
                bounds.write.extend(editable.filter(|_| is_free));
            }
            // A rule about a host holds only where each is asked for.
            bounds.network = match bounds.network {
                _ if policy.rules_hosts() => NetworkAccess::Hosts,
                _ if wider.network => NetworkAccess::All,
                network => network,
            };
            bounds
        };
        let links = links.into_iter().map(writable);
        let bounds = links.reduce(|one, two| one.meet(&two));
        Where::Within {
            bounds: Arc::new(bounds.unwrap_or_default()),
            // A yes to what was refused is about that alone.
            unasked: consent != &Consent::Person,
            opened: [wider.write.as_slice(), &wider.read].concat(),
        }
    }

    /// Returns how strongly a call's command is held where it runs; none if it runs none.
    pub fn tier(&self, subject: &Subject, consent: &Consent) -> Option<Tier> {
        match subject {
            Subject::Runs { tier, .. } => Some(tier.held_in(&self.place(subject, consent))),
            _ => None,
        }
    }

    /// Returns what of a refusal a person can lift: rules about hosts hold whatever they say.
    pub fn liftable(&self, mut refused: SandboxRefusal) -> Option<SandboxRefusal> {
        refused.network &= !self.policy().rules_hosts();
        Some(refused).filter(|refused| *refused != SandboxRefusal::default())
    }

    /// Returns the rules that a person may accept so that the sandbox does not refuse this again,
    /// from narrow to wide.
    pub fn wider_suggestions(
        &self,
        tool: &str,
        intent: &Intent,
        refused: &SandboxRefusal,
    ) -> Vec<Suggestion> {
        let (policy, workspace) = (self.policy(), self.workspace());
        let Some(line) = Line::of(&intent.subject, workspace) else {
            return Vec::new();
        };
        let is_inside = refused.write.iter().all(|path| workspace.holds(path));
        let mut found = match refused {
            _ if refused.network || !refused.read.is_empty() => Vec::new(),
            _ if is_inside => suggest(&policy, workspace, tool, intent),
            _ => Vec::from_iter(suggest_edits(&refused.write)),
        };
        found.retain(|suggestion| {
            let wider = added(&policy, workspace, suggestion);
            wider.is_some_and(|wider| !is_inside || is_ruled(&line, &wider))
        });
        found.extend(suggest_outside(&policy, workspace, &intent.subject));
        found
    }
}

/// Returns true if a rule allows the command. To only read it needs none.
fn is_ruled(line: &Line<'_>, policy: &Policy) -> bool {
    !line.only_reads(policy) && line.allowed(policy, CommandRules::Inside).is_ok()
}

/// Returns what a command may touch in this mode.
fn bounds(
    mode: PermissionMode,
    agreed: bool,
    roots: &[PathBuf],
    workspace: &Workspace,
) -> Confinement {
    let notes = workspace.notes.as_ref();
    let only_notes = notes.is_some_and(|notes| notes.only);
    let notes = notes.map(|notes| notes.directory.clone());
    let bounded = |write: Vec<PathBuf>| Confinement {
        write,
        network: NetworkAccess::Hosts,
        ..Confinement::default()
    };
    match mode {
        PermissionMode::Plan => bounded(Vec::new()),
        _ if only_notes => bounded(notes.into_iter().collect()),
        PermissionMode::BypassPermissions => Confinement {
            write: vec!["/".into()],
            network: NetworkAccess::All,
            ..Confinement::default()
        },
        PermissionMode::Default | PermissionMode::DontAsk if !agreed => {
            bounded(notes.into_iter().collect())
        }
        PermissionMode::Default | PermissionMode::DontAsk | PermissionMode::AcceptEdits => {
            bounded(roots.iter().cloned().chain(notes).collect())
        }
    }
}

#[cfg(test)]
mod tests;
