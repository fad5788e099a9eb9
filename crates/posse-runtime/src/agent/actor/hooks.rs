//! Hooks of an agent: started beside it, and heard as inputs. A person's prompt waits until its
//! hooks have let it pass.

use std::collections::VecDeque;
use std::sync::Arc;

use posse_port::BoxFuture;
use posse_port::store::Charge;
use posse_protocol::{Command, ContentBlock, EntryKind, Fault, FaultClass, Outcome};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::agent::actor::work::Work;
use crate::agent::actor::{Actor, command};
use crate::agent::hook_host::{BesideHook, HookHost, HooksSaid};
use crate::agent::hook_judge::{HookJudge, OwnPrefix};
use crate::agent::step::{CompactionRequest, Draft, HookRequest, Input, PROMPTS};
use crate::definition::instructions::Instruction;
use crate::hook::answer::{Answer, HookDecision};
use crate::hook::{Hook, HookEvent, HookSet, Merged, RunsBeside};
use crate::live::setup::Approver;
use crate::prompt;
use crate::supervise::Calls;

/// Hooks of an agent that run, and what waits for them.
pub(super) struct HookWork {
    /// Those that something waits for.
    pub(super) running: Calls<Uuid, HooksRan>,
    /// Those that nothing waits for.
    pub(super) beside: Calls<Uuid, RanBeside>,
    /// Commands that begin runs, and wait for the hooks of the first one.
    held: VecDeque<Command>,
    /// True while hooks of a command run.
    gating: bool,
    /// True once the hooks of the session's start were looked for.
    started: bool,
    /// True once hooks were told of the memory files that it begins with.
    greeted: bool,
    /// The prompt that is worked on.
    prompt: Option<Uuid>,
    /// What the last compaction was made for.
    compaction: &'static str,
    /// The hooks of settings as they were looked at last, and with them the agent's own.
    looked: Option<(Arc<HookSet>, Arc<HookSet>)>,
}

impl HookWork {
    pub(super) fn new() -> Self {
        Self {
            running: Calls::new(),
            beside: Calls::new(),
            held: VecDeque::new(),
            gating: false,
            started: false,
            greeted: false,
            prompt: None,
            compaction: "auto",
            looked: None,
        }
    }

    /// Returns true while something waits for hooks.
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.held.is_empty()
    }

    /// Ends all hooks that something waits for, and drops what waits.
    pub(super) fn stop(&mut self) {
        self.held.clear();
        self.running.cancel();
        self.beside.cancel();
    }
}

/// Hooks that have run.
pub(super) struct HooksRan {
    then: AfterHooks,
    beside: Vec<BesideHook>,
    /// What models have cost that they asked.
    charges: Vec<Charge>,
}

/// What hooks were run for.
enum AfterHooks {
    /// A step of the run that waits for them.
    Step { run: u64, said: Box<Merged> },
    /// Something that has happened: what they say is told with the next entry.
    Told { event: HookEvent, said: Box<Merged> },
    /// A command that begins a run, with what is told beside it; or why it does not.
    Command {
        command: Box<Command>,
        told: Vec<String>,
        refused: Option<String>,
    },
}

/// A hook that has run and that nothing waited for.
pub(super) struct RanBeside {
    event: HookEvent,
    rewakes: bool,
    answer: Answer,
}

/// Brings the machine's hooks up to date.
pub(super) fn look(actor: &mut Actor, work: &mut Work) {
    let now = actor.session.setup.spawning.hooks.now();
    let known = work.hooks.looked.as_ref();
    if known.is_some_and(|(looked, _)| Arc::ptr_eq(looked, &now)) {
        return;
    }
    let all = match own(actor) {
        Some(own) => Arc::new(now.with(&own)),
        None => Arc::clone(&now),
    };
    actor.machine.set_hooks(&all);
    work.hooks.looked = Some((now, all));
}

/// Returns the hooks of the agent's type.
fn own(actor: &Actor) -> Option<HookSet> {
    let kind = &actor.role.sub_agent()?.run.facts.agent_type;
    let definition = actor.session.definition(kind)?;
    let own = HookSet::new(definition.hooks.iter().cloned());
    (!own.is_empty()).then_some(own)
}

/// Returns true if the agent has any hooks.
pub(super) fn has_any(actor: &Actor, work: &Work) -> bool {
    !now(actor, work).is_empty()
}

/// Returns the hooks that hold for the agent now.
fn now(actor: &Actor, work: &Work) -> Arc<HookSet> {
    let looked = work.hooks.looked.as_ref();
    looked.map_or_else(
        || actor.session.setup.spawning.hooks.now(),
        |(_, all)| Arc::clone(all),
    )
}

/// Returns what runs the agent's hooks, as of now.
pub(super) fn host(actor: &Actor, work: &Work) -> HookHost {
    let facts = actor.role.sub_agent().map(|sub| &sub.run.facts);
    let team = actor.role.teammate().map(|it| &it.team_identity);
    let attribution = &actor.prefix.attribution;
    let posse = json!({
        "agent": attribution.agent,
        "path": attribution.path,
        "parent": attribution.parent,
        "depth": facts.map_or(0, |facts| facts.depth),
        "type": facts.map(|facts| facts.agent_type.as_str()),
        "team": team.map(|it| it.team.to_string()),
        "member": team.map(|it| it.name.to_string()),
        "epoch": actor.identity.epoch.0,
        "step": actor.prefix.history.next_seq(),
    });
    HookHost {
        sink: actor.sink.clone(),
        sub_agent: facts.map(|facts| facts.agent_type.clone()),
        transcript: actor.session.transcript(actor.identity.agent),
        prompt: work.hooks.prompt,
        attended: actor.machine.approver() != Approver::Nobody,
        ..HookHost::new(&actor.ports, &actor.session, actor.machine.rights(), posse)
    }
}

/// Returns what asks models for these hooks, if any of them asks one.
fn judge<'a>(
    actor: &Actor,
    hooks: impl IntoIterator<Item = &'a Arc<Hook>>,
) -> Option<Box<HookJudge>> {
    hooks.into_iter().find(|hook| HookJudge::is_for(hook))?;
    Some(Box::new(HookJudge {
        ports: actor.ports.clone(),
        attribution: Arc::clone(&actor.prefix.attribution),
        account: actor.spending.account.clone(),
        model: actor.spending.model.clone(),
        rights: actor.machine.rights().clone(),
        tools: actor.setup.tools.clone(),
        own: OwnPrefix {
            preamble: actor.prefix.preamble.clone(),
            history: actor.prefix.history.clone(),
            previous: actor.prefix.previous_reply.clone(),
            last_request: actor.prefix.last_request,
        },
    }))
}

/// Runs hooks for the machine.
pub(super) fn run(actor: &Actor, request: HookRequest, work: &mut Work) {
    let host = HookHost {
        judge: judge(actor, &request.hooks),
        ..host(actor, work)
    };
    work.hooks
        .running
        .start(Uuid::now_v7(), move |cancel| async move {
            let run = request.run;
            let HooksSaid {
                merged,
                beside,
                charges,
            } = host.run(request, cancel).await;
            let said = Box::new(merged);
            let then = AfterHooks::Step { run, said };
            HooksRan {
                then,
                beside,
                charges,
            }
        });
}

/// Runs hooks of an event that has happened. What they say is told with the next entry.
pub(super) fn tell(
    actor: &Actor,
    event: HookEvent,
    about: &str,
    own: impl FnOnce() -> Value,
    work: &mut Work,
) {
    let hooks = now(actor, work).matching(event, about).hooks;
    if hooks.is_empty() {
        return;
    }
    let request = request(event, hooks, about, own());
    let host = host(actor, work);
    work.hooks
        .running
        .start(Uuid::now_v7(), move |cancel| async move {
            let HooksSaid {
                merged,
                beside,
                charges,
            } = host.run(request, cancel).await;
            let said = Box::new(merged);
            HooksRan {
                then: AfterHooks::Told { event, said },
                beside,
                charges,
            }
        });
}

/// Returns what waits for the hooks that may keep a history from being replaced, and why they do;
/// none if there are none. One that is too large for the model is replaced in any case.
pub(super) fn before_compaction(
    actor: &Actor,
    compaction_request: &CompactionRequest,
    work: &mut Work,
) -> Option<BoxFuture<'static, Option<String>>> {
    let trigger = match compaction_request.auto {
        true => "auto",
        false => "manual",
    };
    work.hooks.compaction = trigger;
    let event = HookEvent::PreCompact;
    let hooks = now(actor, work).matching(event, trigger).hooks;
    if hooks.is_empty() {
        return None;
    }
    let own = json!({ "trigger": trigger, "custom_instructions": compaction_request.keep });
    let request = request(event, hooks, trigger, own);
    let (host, cancel) = (host(actor, work), work.cancel_model.clone());
    let must = compaction_request.overfull;
    Some(Box::pin(async move {
        let said = host.run(request, cancel).await.merged;
        let refused = said.ends_run.as_deref().or(said.denied());
        refused.filter(|_| !must).map(prompt::hook::denied)
    }))
}

/// Tells hooks of entries that are stored.
pub(super) fn on_entries(actor: &Actor, entries: &[Draft], work: &mut Work) {
    for entry in entries {
        match entry.kind {
            EntryKind::Compaction => {
                let trigger = work.hooks.compaction;
                let own = || {
                    json!({
                        "trigger": trigger,
                        "compact_summary": text_of(&entry.message.content),
                    })
                };
                tell(actor, HookEvent::PostCompact, trigger, own, work);
                let own = || json!({ "source": "compact" });
                if actor.role.is_main() {
                    tell(actor, HookEvent::SessionStart, "compact", own, work);
                }
            }
            EntryKind::Reply if actor.role.is_main() => {
                let text = text_of(&entry.message.content);
                let id = entry.reply.as_ref().map(|facts| facts.id.as_str());
                let own = || {
                    json!({
                        "turn_id": work.hooks.prompt,
                        "message_id": id,
                        "index": 0,
                        "final": true,
                        "delta": text,
                    })
                };
                if !text.is_empty() {
                    let own = own();
                    tell(actor, HookEvent::MessageDisplay, "", || own, work);
                }
            }
            _ => {}
        }
    }
}

/// Tells hooks of memory files that are read.
pub(super) fn on_instructions(actor: &Actor, files: &[&Instruction], why: &str, work: &mut Work) {
    let home = actor.setup.workspace.home.as_ref();
    for file in files {
        let is_users = !file.path.starts_with(&actor.setup.workspace.cwd)
            && home.is_some_and(|home| file.path.starts_with(home));
        let own = || {
            json!({
                "file_path": file.path,
                "memory_type": if is_users { "User" } else { "Project" },
                "load_reason": why,
            })
        };
        tell(actor, HookEvent::InstructionsLoaded, why, own, work);
    }
}

/// Returns a request for an event that no step waits for.
fn request(event: HookEvent, hooks: Vec<Arc<Hook>>, about: &str, own: Value) -> HookRequest {
    HookRequest {
        run: 0,
        event,
        hooks,
        about: about.to_owned(),
        call: None,
        own: match own {
            Value::Object(own) => own,
            _ => Map::new(),
        },
    }
}

/// Holds back a command that begins a run while its hooks decide. Returns any other.
pub(super) fn gate(actor: &mut Actor, command: Command, work: &mut Work) -> Option<Command> {
    let begins = matches!(
        command,
        Command::Prompt(_) | Command::Skill { .. } | Command::Team { .. } | Command::Continue
    );
    if !actor.role.is_main() || !begins {
        return Some(command);
    }
    if !std::mem::replace(&mut work.hooks.greeted, true) {
        let files = actor.session.setup.spawning.instructions.as_ref();
        let files = files.map(|files| Arc::clone(&files.at_start));
        let files: Vec<&Instruction> = files
            .iter()
            .flat_map(|it| it.iter().map(|f| &**f))
            .collect();
        on_instructions(actor, &files, "session_start", work);
    }
    if work.hooks.held.is_empty() && !is_gated(actor, &command, work) {
        work.hooks.started = true;
        work.hooks.prompt = Some(Uuid::now_v7());
        return Some(command);
    }
    if work.hooks.held.len() >= PROMPTS {
        command::warn(
            actor,
            "too many prompts are waiting; this one was not accepted".into(),
        );
        return None;
    }
    work.hooks.held.push_back(command);
    next_gated(actor, work);
    None
}

/// Returns true if a command has hooks that decide about it.
fn is_gated(actor: &Actor, command: &Command, work: &Work) -> bool {
    let hooks = now(actor, work);
    let starts =
        !work.hooks.started && (hooks.has(HookEvent::SessionStart) || hooks.has(HookEvent::Setup));
    let prompts = match command {
        Command::Prompt(_) | Command::Team { .. } => hooks.has(HookEvent::UserPromptSubmit),
        Command::Skill { .. } => {
            hooks.has(HookEvent::UserPromptSubmit) || hooks.has(HookEvent::UserPromptExpansion)
        }
        _ => false,
    };
    starts || prompts
}

/// Runs the hooks of the next command that waits.
fn next_gated(actor: &mut Actor, work: &mut Work) {
    if work.hooks.gating {
        return;
    }
    let Some(command) = work.hooks.held.pop_front() else {
        return;
    };
    work.hooks.gating = true;
    work.hooks.prompt = Some(Uuid::now_v7());
    let hooks = now(actor, work);
    let prompts = [HookEvent::UserPromptSubmit, HookEvent::UserPromptExpansion];
    let of_prompts = hooks.all().filter(|hook| prompts.contains(&hook.event));
    let host = HookHost {
        judge: judge(actor, of_prompts),
        ..host(actor, work)
    };
    let start = (!std::mem::replace(&mut work.hooks.started, true)).then(|| start_source(actor));
    work.hooks
        .running
        .start(Uuid::now_v7(), move |cancel| async move {
            let mut gate = Gate {
                host,
                hooks,
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
                let own = json!({ "source": source });
                gate.pass(HookEvent::SessionStart, source, own, &cancel)
                    .await;
                gate.host = after;
            }
            let (name, arguments, text) = words(&command);
            if let Some(name) = name {
                let own = json!({
                    "expansion_type": "slash_command",
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
            let then = AfterHooks::Command {
                command: Box::new(command),
                told: gate.told,
                refused: gate.refused,
            };
            HooksRan {
                then,
                beside: gate.beside,
                charges: gate.charges,
            }
        });
}

/// Hooks that a command has to pass.
struct Gate {
    host: HookHost,
    hooks: Arc<HookSet>,
    /// What the model is told.
    told: Vec<String>,
    beside: Vec<BesideHook>,
    charges: Vec<Charge>,
    /// Why it may not pass.
    refused: Option<String>,
}

impl Gate {
    /// Runs the hooks of an event, unless an earlier one has refused.
    async fn pass(
        &mut self,
        event: HookEvent,
        about: &str,
        own: Value,
        cancel: &tokio_util::sync::CancellationToken,
    ) {
        let hooks = self.hooks.matching(event, about).hooks;
        if hooks.is_empty() || self.refused.is_some() {
            return;
        }
        let request = request(event, hooks, about, own);
        let ran = self.host.run(request, cancel.clone()).await;
        self.beside.extend(ran.beside);
        self.charges.extend(ran.charges);
        let said = ran.merged;
        let texts = said.contexts.iter();
        self.told
            .extend(texts.map(|text| prompt::hook::context(event, "", text)));
        if let Some(prompt) = &said.more.first_prompt {
            self.told.push(prompt.clone());
        }
        let refusal = said.ends_run.clone();
        let denied = said.denied().map(str::to_owned);
        self.refused = refusal
            .or(denied.filter(|_| event != HookEvent::SessionStart))
            .map(|why| prompt::hook::refused_prompt(event, &why));
    }
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

fn text_of(words: &[ContentBlock]) -> String {
    let texts = words.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Handles hooks that have run; none if posse lost track of them, which counts as if they had not
/// answered.
pub(super) fn on_done(actor: &mut Actor, ran: Option<HooksRan>, work: &mut Work) -> Option<Input> {
    let HooksRan {
        then,
        beside,
        charges,
    } = ran?;
    actor.spending.owed.extend(charges);
    start_beside(actor, beside, work);
    match then {
        AfterHooks::Step { run, said } => {
            let intent = said.input.as_ref().and_then(|input| {
                let tool = actor.machine.open_calls()?.hooked_tool(run)?;
                Some(actor.intent(tool, input))
            });
            Some(Input::Hooked { run, said, intent })
        }
        AfterHooks::Told { event, said } => {
            for text in &said.contexts {
                actor.machine.tell(prompt::hook::context(event, "", text));
            }
            None
        }
        AfterHooks::Command {
            command,
            told,
            refused,
        } => {
            work.hooks.gating = false;
            let input = match refused {
                Some(why) => Some(Input::NotBegun(Outcome::Failed(Fault {
                    class: FaultClass::Hook,
                    status: None,
                    message: why,
                }))),
                None => {
                    for text in told {
                        actor.machine.tell(text);
                    }
                    command::receive(actor, *command, work)
                }
            };
            next_gated(actor, work);
            input
        }
    }
}

/// Starts hooks that nothing waits for.
fn start_beside(actor: &Actor, beside: Vec<BesideHook>, work: &mut Work) {
    for one in beside {
        let host = host(actor, work);
        let rewakes = one.hook.beside == RunsBeside::Rewakes;
        let event = one.hook.event;
        work.hooks
            .beside
            .start(Uuid::now_v7(), move |cancel| async move {
                let answer = host.run_beside(one, cancel).await;
                RanBeside {
                    event,
                    rewakes,
                    answer,
                }
            });
    }
}

/// Handles a hook that has run and that nothing waited for: what it says comes with the next entry;
/// if it refuses and may wake the agent, it does.
pub(super) fn on_beside_done(actor: &mut Actor, ran: Option<RanBeside>) -> Option<Input> {
    let RanBeside {
        event,
        rewakes,
        answer,
    } = ran?;
    if let Some(context) = &answer.context {
        actor
            .machine
            .tell(prompt::hook::context(event, "", context));
    }
    match answer.decision {
        Some(HookDecision::Deny(why)) if rewakes => {
            let words = prompt::hook::said(event, "", &why);
            Some(Input::Prompt(vec![ContentBlock::text(words)]))
        }
        _ => None,
    }
}

/// Runs the hooks of the session's end, and waits for them.
pub(super) async fn end_session(actor: &Actor, work: &mut Work) {
    let hooks = now(actor, work)
        .matching(HookEvent::SessionEnd, "other")
        .hooks;
    if hooks.is_empty() || !actor.role.is_main() || !work.hooks.started {
        return;
    }
    let own = json!({ "reason": "other" });
    let request = request(HookEvent::SessionEnd, hooks, "other", own);
    let host = host(actor, work);
    let cancel = tokio_util::sync::CancellationToken::new();
    drop(host.run(request, cancel).await);
}

/// Tells hooks of how a run has ended, if a fault has ended it.
pub(super) fn on_run_ended(actor: &Actor, outcome: &Outcome, text: &str, work: &mut Work) {
    if let Outcome::Failed(fault) | Outcome::Paused(fault) = outcome {
        let error = error_word(fault.class);
        let own = || {
            json!({
                "error": error,
                "error_details": fault.message,
                "last_assistant_message": text,
            })
        };
        tell(actor, HookEvent::StopFailure, error, own, work);
    }
}

/// Returns the ecosystem's word for a fault.
fn error_word(class: FaultClass) -> &'static str {
    match class {
        FaultClass::Busy => "rate_limit",
        FaultClass::Authentication | FaultClass::Permission => "authentication_failed",
        FaultClass::Billing => "billing_error",
        FaultClass::InvalidRequest | FaultClass::TooLarge => "invalid_request",
        FaultClass::NotFound => "model_not_found",
        FaultClass::Provider | FaultClass::Connection | FaultClass::Unreachable => "server_error",
        _ => "unknown",
    }
}

/// Tells hooks that a person is asked.
pub(super) fn on_asked(actor: &Actor, tool: &str, why: &str, work: &mut Work) {
    let own = || {
        json!({
            "message": format!("permission to use {tool}: {why}"),
            "notification_type": "permission_prompt",
        })
    };
    tell(
        actor,
        HookEvent::Notification,
        "permission_prompt",
        own,
        work,
    );
}
