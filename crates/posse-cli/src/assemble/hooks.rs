//! The hooks of a run: those of settings, agent types and skills, what keeps them from running, and
//! what runs them.

use std::collections::BTreeSet;
use std::sync::Arc;

use posse_port::hooks::HookRunner;
use posse_runtime::definition::skill::Skill;
use posse_runtime::hook::{Hook, HookAction, HookSet, HookState};
use posse_tools::{SystemHooks, SystemProcesses};

use crate::config::hook_programs::ProgramSearch;
use crate::config::settings::hooks::SettingsHooks;
use crate::config::unsupported::MissingGuard;
use crate::definitions::DefinitionSet;

/// Returns what runs hooks. What a repository declares runs in the sandbox of `processes`; without one
/// it is not held. Functions of the program that drives posse are asked by `callbacks`.
pub(crate) fn runner(
    processes: SystemProcesses,
    callbacks: Option<Arc<dyn HookRunner>>,
) -> Arc<dyn HookRunner> {
    // Headers name variables; what is no text cannot stand in one.
    let environment = std::env::vars_os().filter_map(|(name, value)| {
        let value = value.into_string().ok()?;
        Some((name.into_string().ok()?, value))
    });
    Arc::new(SystemHooks::new(
        processes,
        environment.collect(),
        callbacks,
    ))
}

/// Returns all hooks that are declared here, whichever agents they are for.
pub(crate) fn declared(
    settings: &SettingsHooks,
    agents: &DefinitionSet,
    skills: &DefinitionSet<Skill>,
) -> HookSet {
    let of_agents = agents.known.iter().flat_map(|it| &it.definition.hooks);
    let of_skills = skills.known.iter().flat_map(|it| &it.definition.hooks);
    let others = of_agents.chain(of_skills).cloned();
    settings.set().with(&HookSet::new(others))
}

/// Returns why a hook that may run does not; none if nothing is known to keep it from that.
pub(crate) fn hindrance(hook: &Hook, search: &ProgramSearch) -> Option<String> {
    match (&hook.state, &hook.action) {
        (HookState::Waits { .. }, _) => None,
        (HookState::Active, HookAction::Unsupported { why, .. }) => Some((*why).to_owned()),
        (HookState::Active, _) => search.missing(hook).map(|why| why.to_string()),
    }
}

/// Returns what is said of hooks whose programs are missing.
pub(crate) fn missing_programs(hooks: &HookSet, search: &ProgramSearch) -> Vec<String> {
    let missing = hooks.all().filter_map(|hook| {
        let is_active = hook.state == HookState::Active;
        let why = search.missing(hook).filter(|_| is_active)?;
        Some(format!(
            "{}: this {} hook cannot run: {why}",
            hook.origin, hook.event
        ))
    });
    missing.collect()
}

/// Returns the files with hooks that would have guarded calls, and do not run. One whose failure
/// counts as a refusal guards all the same.
pub(crate) fn missing_guards(hooks: &HookSet, search: &ProgramSearch) -> Vec<MissingGuard> {
    let mut missing: Vec<MissingGuard> = Vec::new();
    let guards = hooks.all().filter(|hook| hook.event.guards());
    for hook in guards.filter(|hook| !hook.blocks_on_failure()) {
        if hindrance(hook, search).is_none() {
            continue;
        }
        let (path, event) = (&hook.origin.file, hook.event.as_str());
        match missing.iter_mut().find(|known| known.path == *path) {
            Some(known) => {
                known.events.insert(event);
            }
            None => missing.push(MissingGuard {
                path: path.clone(),
                events: BTreeSet::from([event]),
            }),
        }
    }
    missing
}
