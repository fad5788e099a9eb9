//! What a declared team asks for, compared with what the session can give it.

use std::path::Path;

use posse_permission::{Verdict, decide};
use posse_port::in_a_line;
use posse_port::tool::{Intent, Subject, Workspace};
use posse_port::worktree::Base;
use posse_protocol::{TeamPlan, TeamRole};
use posse_runtime::definition::agent_type::Isolation;
use posse_tools::GitWorktrees;

use crate::config::settings::Settings;
use crate::definitions::DefinitionSet;
use crate::error::Advised;
use crate::output::tame;

/// Returns what a team asks for in vain: modes of roles that the session's mode caps, and checks
/// that nobody is there to approve.
pub(crate) fn capped(plan: &TeamPlan, settings: &Settings, workspace: &Workspace) -> Vec<String> {
    let mut told = Vec::new();
    for (name, role) in &plan.roles {
        if let Some(mode) = role.mode
            && mode.strictness() > settings.mode.strictness()
        {
            told.push(format!(
                "role {name}: `{mode}` is more than the session's mode allows, so that its members \
                 work in mode `{}`; --permission-mode {mode} allows it",
                settings.mode
            ));
        }
    }
    for (task, number) in plan.tasks.iter().zip(1..) {
        let Some(check) = &task.check else { continue };
        let intent = Intent {
            read_only: false,
            beside_others: false,
            subject: Subject::runs(check.clone()),
            waits: false,
            title: String::new(),
        };
        let verdict = decide(&settings.policy, settings.mode, workspace, "Bash", &intent);
        if let Verdict::Ask(why) | Verdict::Deny(why) = verdict {
            told.push(format!(
                "the check of task {number} needs approval: {}",
                tame(&why)
            ));
        }
    }
    told
}

/// Fails if a role cannot be started here: its members work in worktrees, and none can be made.
pub(super) fn startable(
    plan: &TeamPlan,
    types: &DefinitionSet,
    worktrees: &GitWorktrees,
    (cwd, base): (&Path, Base),
) -> Result<(), Advised> {
    let isolated = |role: &TeamRole| {
        let kind = role.agent.as_deref().and_then(|name| types.find(name));
        let by_type = |isolation| isolation == Some(Isolation::Worktree);
        role.worktree || kind.is_some_and(|kind| by_type(kind.definition.isolation))
    };
    let Some((name, _)) = plan.roles.iter().find(|(_, role)| isolated(role)) else {
        return Ok(());
    };
    worktrees.check(cwd, base).map_err(|error| Advised {
        what: format!(
            "the team cannot start: role {name} works in a worktree, and none can be made: {}",
            in_a_line(&error)
        ),
        advice: "commit something first (git commit), or remove `worktree` from the role".into(),
    })
}
