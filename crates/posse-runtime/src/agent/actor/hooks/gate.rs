//! Hooks that a person's command has to pass before it begins a run.

use std::sync::Arc;

use posse_port::store::Charge;
use posse_protocol::Command;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::Actor;
use crate::agent::actor::hook_work::GateRan;
use crate::agent::actor::hooks::{host, judge, now, on_instructions, text_of};
use crate::agent::actor::work::Work;
use crate::agent::hook_host::{HookHost, HookRun};
use crate::agent::step::{HookRequest, PROMPTS};
use crate::definition::instructions::Instruction;
use crate::definition::tool_name::OF_SERVERS;
use crate::hook::{HookBook, HookEvent, HookSet, Preparation, Veto};
use crate::live::skill_hooks::SkillHooks;
use crate::prompt;

/// Holds back a command that begins a run while its hooks decide. Returns any other.
pub(in crate::agent::actor) fn gate(
    actor: &mut Actor,
    command: Command,
    work: &mut Work,
) -> Option<Command> {
    let begins = matches!(
        command,
        Command::Prompt(_) | Command::Skill { .. } | Command::Team { .. } | Command::Continue
    );
    if !actor.role.is_main() || !begins {
        return Some(command);
    }
    if !std::mem::replace(&mut work.hooks.greeted, true) {
        // Hooks of an earlier process have set them, which may be gone or different by now.
        let workspace = actor.session.rights.workspace();
        for directory in [workspace.variables(), workspace.repository_variables()] {
            let _ = std::fs::remove_dir_all(directory);
        }
        let files = actor.session.setup.spawning.instructions.as_ref();
        let files = files.map(|files| Arc::clone(&files.at_start));
        let files: Vec<&Instruction> = files
            .iter()
            .flat_map(|it| it.iter().map(|f| &**f))
            .collect();
        on_instructions(actor, &files, "session_start", work);
    }
    let is_first = work.hooks.gate.is_empty() && work.hooks.held.is_empty();
    if is_first && !is_gated(actor, &command, work) {
        work.hooks.started = true;
        actor.session.next_prompt();
        return Some(command);
    }
    if work.hooks.held.len() >= PROMPTS {
        actor.warn("too many prompts are waiting; this one was not accepted".into());
        return None;
    }
    work.hooks.held.push_back(command);
    next_gated(actor, work);
    None
}

/// Returns true if a command has hooks that decide about it.
fn is_gated(actor: &Actor, command: &Command, work: &Work) -> bool {
    if !work.hooks.started && waits_for_servers(actor) {
        return true;
    }
    let hooks = now(actor, work);
    let starts =
        !work.hooks.started && (hooks.has(HookEvent::SessionStart) || preparation(actor).is_some());
    let prompts = match command {
        Command::Prompt(_) | Command::Team { .. } => hooks.has(HookEvent::UserPromptSubmit),
        Command::Skill { .. } => {
            hooks.has(HookEvent::UserPromptSubmit) || hooks.has(HookEvent::UserPromptExpansion)
        }
        _ => false,
    };
    starts || prompts
}

/// Returns true if servers are still being connected which a first call waits for.
fn waits_for_servers(actor: &Actor) -> bool {
    let servers = actor.advertised.servers.as_ref();
    servers.is_some_and(|servers| servers.set.is_waited_for(&*actor.ports.clock))
}

/// Runs the hooks of the next command that waits.
pub(super) fn next_gated(actor: &mut Actor, work: &mut Work) {
    if !work.hooks.gate.is_empty() {
        return;
    }
    let Some(command) = work.hooks.held.pop_front() else {
        return;
    };
    actor.session.next_prompt();
    let hooks = now(actor, work);
    let prompts = [HookEvent::UserPromptSubmit, HookEvent::UserPromptExpansion];
    let of_prompts = hooks.all().filter(|hook| prompts.contains(&hook.event));
    let host = HookHost {
        judge: judge(actor, of_prompts),
        ..host(actor, work)
    };
    let start = (!std::mem::replace(&mut work.hooks.started, true)).then(|| start_source(actor));
    let of_skills = work.hooks.of_skills.clone();
    let trigger = preparation(actor).map(Preparation::as_str);
    let book = Arc::clone(&actor.session.setup.spawning.hooks);
    if start.is_some() && trigger.is_some() && !hooks.has(HookEvent::Setup) {
        actor.warn(prompt::hook::NO_SETUP.into());
    }
    let servers = actor.advertised.servers.clone().filter(|_| start.is_some());
    let clock = Arc::clone(&actor.ports.clock);
    work.hooks.gate.start((), move |cancel| async move {
        if let Some(servers) = servers {
            tokio::select! {
                biased;
                () = servers.set.first_wait(&*clock) => {}
                () = cancel.cancelled() => {}
            }
        }
        let mut gate = PromptGate {
            host,
            book,
            hooks,
            of_skills,
            told: Vec::new(),
            beside: Vec::new(),
            charges: Vec::new(),
            refused: None,
        };
        if let Some(source) = start {
            // No prompt is worked on yet.
            let before = HookHost {
                prompt: None,
                ..gate.host.clone()
            };
            let after = std::mem::replace(&mut gate.host, before);
            if let Some(trigger) = trigger {
                let own = json!({ "trigger": trigger });
                gate.pass(HookEvent::Setup, trigger, own, &cancel).await;
            }
            let own = json!({ "source": source });
            gate.pass(HookEvent::SessionStart, source, own, &cancel)
                .await;
            gate.host = after;
        }
        let (name, arguments, text) = words(&command);
        if let Some(name) = name {
            let own = json!({
                "expansion_type": match name.starts_with(OF_SERVERS) {
                    true => "mcp_prompt",
                    false => "slash_command",
                },
                "command_name": name,
                "command_args": arguments,
                "prompt": text,
            });
            gate.pass(HookEvent::UserPromptExpansion, name, own, &cancel)
                .await;
        }
        if !matches!(command, Command::Continue) {
            let own = json!({ "prompt": text });
            gate.pass(HookEvent::UserPromptSubmit, "", own, &cancel)
                .await;
        }
        GateRan {
            command,
            told: gate.told,
            refused: gate.refused,
            stopped: cancel.is_cancelled(),
            beside: gate.beside,
            charges: gate.charges,
        }
    });
}

/// Hooks that a command has to pass.
struct PromptGate {
    host: HookHost,
    book: Arc<HookBook>,
    hooks: Arc<HookSet>,
    of_skills: Option<Arc<SkillHooks>>,
    /// What the model is told.
    told: Vec<String>,
    beside: Vec<HookRun>,
    charges: Vec<Charge>,
    /// Why it may not pass.
    refused: Option<String>,
}

impl PromptGate {
    /// Runs the hooks of an event, unless an earlier one has refused.
    async fn pass(
        &mut self,
        event: HookEvent,
        about: &str,
        own: Value,
        cancel: &CancellationToken,
    ) {
        let hooks = self.hooks.matching(event, about).hooks;
        if hooks.is_empty() || self.refused.is_some() {
            return;
        }
        let of_skills = self.of_skills.iter();
        of_skills.for_each(|known| known.ran(&hooks));
        let request = HookRequest::of_event(event, hooks, about, own);
        let ran = self.host.run(request, cancel.clone()).await;
        self.beside.extend(ran.beside);
        self.charges.extend(ran.charges);
        let said = ran.merged;
        self.book.watch(&said.more.watch);
        let texts = said.contexts.iter();
        self.told
            .extend(texts.map(|text| prompt::hook::context(event, "", text)));
        if let Some(prompt) = &said.more.first_prompt {
            self.told.push(prompt.clone());
        }
        let refusal = said.ends_run.clone();
        let denied = said.denied().map(str::to_owned);
        self.refused = refusal
            .or(denied.filter(|_| event.veto() == Veto::Prevents))
            .map(|why| prompt::hook::refused_prompt(event, &why));
    }
}

/// Returns what the workspace is to be prepared for.
fn preparation(actor: &Actor) -> Option<Preparation> {
    actor.session.setup.spawning.hooks.prepares()
}

/// Returns where a session comes from.
fn start_source(actor: &Actor) -> &'static str {
    match actor.birth.is_some() {
        true if actor.prefix.history.encoded_entries().is_empty() => "startup",
        true => "fork",
        false => "resume",
    }
}

/// Returns the skill, its arguments and the text of a command.
fn words(command: &Command) -> (Option<&str>, &str, String) {
    match command {
        Command::Prompt(words) | Command::Team { words, .. } => (None, "", text_of(words)),
        Command::Skill {
            name,
            arguments,
            words,
        } => (Some(name), arguments, text_of(words)),
        _ => (None, "", String::new()),
    }
}
