//! Turns commands of front ends and other agents into inputs.

use std::sync::Arc;

use posse_permission::{Policy, RuleList, Source};
use posse_protocol::{Command, EventKind};

use crate::agent::actor::work::Work;
use crate::agent::actor::{
    Actor, lead, listing, memory_note, model, person_shell, server_words, skills,
};
use crate::agent::step::{Input, prompts};
use crate::live::registry::By;
use crate::live::stop;

/// Takes a command: it waits behind a skill that is being prepared, or is handled. Returns the input
/// that the machine has to decide about, if any.
pub(super) fn receive(actor: &mut Actor, command: Command, work: &mut Work) -> Option<Input> {
    let is_prepared = server_words::names_resources(actor, &command);
    let held = work.skills.hold(command, is_prepared, || {
        prompts::next_id(&mut actor.machine)
    });
    match held {
        Ok(input) => input,
        Err(command) => on_command(actor, command, work),
    }
}

/// Handles a command. Returns the input that the machine has to decide about, if any.
pub(super) fn on_command(actor: &mut Actor, command: Command, work: &mut Work) -> Option<Input> {
    match command {
        Command::Prompt(blocks) => Some(Input::Prompt(blocks)),
        Command::Skill {
            name,
            arguments,
            words,
        } => skills::call_skill(actor, &name, arguments, words, work),
        Command::Continue => Some(Input::Continue),
        Command::Interrupt => {
            work.skills.stop();
            work.hooks.stop();
            work.person_shells.cancel();
            Some(Input::Interrupt)
        }
        Command::ChangePrompt { prompt, change } => {
            let unchanged = prompts::change(&mut actor.machine, prompt, change).err();
            if unchanged.is_some_and(|change| !work.skills.change(prompt, change)) {
                actor.warn(format!(
                    "prompt {prompt} cannot be changed so, or waits no more"
                ));
            }
            None
        }
        Command::Shell(command) => {
            if !person_shell::start(actor, command, work) {
                actor.warn("there is no shell here".to_owned());
            }
            None
        }
        Command::List { what, part } => {
            listing::list(actor, what, part);
            None
        }
        Command::Note { text, scope } => {
            memory_note::add(actor, &text, scope);
            None
        }
        Command::Aside { question } => {
            let (tokens, cancel) = (
                actor.setup.limits.max_tokens,
                actor.stop.token.child_token(),
            );
            let lifecycle = Arc::clone(&actor.lifecycle);
            let asking = lifecycle.ask(actor.identity.agent, question, tokens, cancel);
            let sink = actor.sink.clone();
            // On a task of its own: the model answers while the agent works or rests.
            actor.supervisor.start_errand(async move {
                let aside = asking.await;
                sink.emit(EventKind::Aside(Box::new(aside))).await;
            });
            None
        }
        Command::SetMode(mode) => Some(Input::SetMode(mode)),
        Command::SetModel { model, effort } => {
            let set = model::set_model(actor, model.as_deref(), effort.as_deref());
            set.unwrap_or_else(|refusal| {
                actor.warn(format!("the model stays: {refusal}"));
                None
            })
        }
        Command::AddRules { allow, ask, deny } => {
            add_rules(actor, &RuleList { deny, ask, allow });
            None
        }
        // Handled by the actor itself, which waits for the store.
        Command::Answer { .. } => None,
        Command::Compact { keep } => Some(Input::Compact { keep }),
        Command::StopRun(task) => {
            let (registry, sink) = (Arc::clone(&actor.registry), actor.sink.clone());
            // On a task of its own: stopping waits, and the actor must stay responsive.
            actor.supervisor.start_errand(async move {
                if stop::stop(&registry, task, By::Person).await.is_none() {
                    let what = format!("{task} cannot be stopped: no run has that id");
                    sink.emit(EventKind::Warning(what)).await;
                }
            });
            None
        }
        Command::StopRuns => {
            // The ends of the stopped runs must not begin a new run.
            actor.machine.mute();
            let (registry, root) = (Arc::clone(&actor.registry), actor.session.root);
            actor
                .supervisor
                .start_errand(async move { stop::stop_all(&registry, root, By::Person).await });
            None
        }
        Command::Detach => {
            actor.registry.detach_all(actor.session.root);
            None
        }
        Command::Team { name, plan, words } => Some(lead::make_team(actor, name, &plan, words)),
        Command::To { agent, command } => {
            if let Err(error) = actor.registry.tell(agent, *command) {
                actor.warn(format!("{agent} was not told: {error}"));
            }
            None
        }
    }
}

/// Adds rules to the session; an invalid one adds nothing and is reported.
pub(super) fn add_rules(actor: &Actor, rules: &RuleList) {
    let workspace = &actor.session.setup.workspace;
    let source = Source {
        name: "this session".into(),
        root: workspace.cwd.clone(),
        cwd: workspace.cwd.clone(),
        home: workspace.home.clone(),
    };
    let mut policy = Policy::default();
    match policy.add(&source, rules) {
        Ok(()) => actor.session.rights.add_for_session(Arc::new(policy)),
        Err(error) => actor.warn(format!("{error}")),
    }
}

/// Returns the next command that waited behind a skill, if its turn has come.
pub(super) fn next_held(actor: &mut Actor, work: &mut Work) -> Option<Input> {
    if !actor.machine.is_idle() {
        return None;
    }
    match work.skills.take()? {
        Command::Prompt(words) => server_words::bring_resources(actor, words, work),
        command => on_command(actor, command, work),
    }
}
