//! Events that hooks are told of: entries, files, ends. They decide about none of them, but for
//! compactions.

use std::sync::Arc;
use std::time::Duration;

use posse_permission::Rights;
use posse_port::{BoxFuture, Ports};
use posse_protocol::{EntryKind, FaultClass, Outcome, Question, QuestionKind, RunFacts};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::Actor;
use crate::agent::actor::hook_transcript::HookTranscript;
use crate::agent::actor::hooks::{host, note_run, now, tell, text_of};
use crate::agent::actor::work::Work;
use crate::agent::hook_host::{HookHost, HooksSaid};
use crate::agent::step::{CompactionRequest, Draft, HookRequest};
use crate::definition::instructions::Instruction;
use crate::hook::HookEvent;
use crate::live::session::Session;
use crate::live::setup::Approver;
use crate::prompt;
use crate::supervise::Supervisor;

/// How long a person says nothing before hooks are told.
const QUIET: Duration = Duration::from_secs(60);
/// The notification that posse waits for a person.
const IDLE: &str = "idle_prompt";
/// The notification that a run in the background is over.
const COMPLETED: &str = "agent_completed";

/// Returns what waits for the hooks that may keep a history from being replaced, and why they do;
/// none if there are none. One that is too large for the model is replaced in any case.
pub(in crate::agent::actor) fn before_compaction(
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
    note_run(&hooks, work);
    let request = HookRequest::of_event(event, hooks, trigger, own);
    let (host, cancel) = (host(actor, work), work.cancel_model.clone());
    let (must, supervisor) = (compaction_request.overfull, actor.supervisor.clone());
    Some(Box::pin(async move {
        let HooksSaid { merged, beside, .. } = host.run(request, cancel).await;
        host.let_go(&supervisor, beside);
        let said = merged;
        let refused = said.ends_run.as_deref().or(said.denied());
        refused.filter(|_| !must).map(prompt::hook::denied)
    }))
}

/// Returns what asks the hooks of a session's start what they add to a summary; none if there are
/// none.
pub(in crate::agent::actor) fn after_compaction(
    actor: &Actor,
    work: &mut Work,
) -> Option<BoxFuture<'static, Vec<String>>> {
    let (event, source) = (HookEvent::SessionStart, "compact");
    let hooks = now(actor, work).matching(event, source).hooks;
    if hooks.is_empty() || !actor.role.is_main() {
        return None;
    }
    let request = HookRequest::of_event(event, hooks, source, json!({ "source": source }));
    note_run(&request.hooks, work);
    let (host, cancel) = (host(actor, work), work.cancel_model.clone());
    let (supervisor, book) = (
        actor.supervisor.clone(),
        Arc::clone(&actor.session.setup.spawning.hooks),
    );
    Some(Box::pin(async move {
        let HooksSaid { merged, beside, .. } = host.run(request, cancel).await;
        host.let_go(&supervisor, beside);
        book.watch(&merged.more.watch);
        let texts = merged.contexts.iter();
        texts
            .map(|text| prompt::hook::context(event, "", text))
            .collect()
    }))
}

/// Tells hooks of entries that are stored.
pub(in crate::agent::actor) fn on_entries(actor: &Actor, entries: &[Draft], work: &mut Work) {
    if actor.role.is_main() && !entries.is_empty() {
        match &mut work.hooks.transcript {
            Some(transcript) => transcript.add(actor, entries),
            // They are part of the history by now.
            none => *none = Some(HookTranscript::begin(actor)),
        }
    }
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
            }
            EntryKind::Reply if actor.role.is_main() => {
                let text = text_of(&entry.message.content);
                let id = entry.reply.as_ref().map(|facts| facts.id.as_str());
                let own = || {
                    json!({
                        "turn_id": actor.session.prompt(),
                        "message_id": id,
                        "index": 0,
                        "final": true,
                        "delta": text,
                    })
                };
                if !text.is_empty() {
                    tell(actor, HookEvent::MessageDisplay, "", own, work);
                }
            }
            _ => {}
        }
    }
}

/// Tells hooks of memory files that are read.
pub(in crate::agent::actor) fn on_instructions(
    actor: &Actor,
    files: &[&Instruction],
    why: &str,
    work: &mut Work,
) {
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

/// Runs the hooks of the session's end, and waits for them.
pub(in crate::agent::actor) async fn end_session(actor: &Actor, work: &mut Work) {
    let hooks = now(actor, work)
        .matching(HookEvent::SessionEnd, "other")
        .hooks;
    if hooks.is_empty() || !actor.role.is_main() || !work.hooks.started {
        return;
    }
    let own = json!({ "reason": "other" });
    let request = HookRequest::of_event(HookEvent::SessionEnd, hooks, "other", own);
    let host = host(actor, work);
    let cancel = CancellationToken::new();
    let said = host.run(request, cancel.clone()).await;
    for one in said.beside {
        host.run_beside(one, cancel.clone()).await;
    }
}

/// Tells hooks of how a run has ended, if a fault has ended it.
pub(in crate::agent::actor) fn on_run_ended(
    actor: &Actor,
    outcome: &Outcome,
    text: &str,
    work: &mut Work,
) {
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
pub(in crate::agent::actor) fn on_asked(actor: &Actor, question: &Question, work: &mut Work) {
    let Question {
        kind, tool, why, ..
    } = question;
    let (about, message) = match kind {
        QuestionKind::Form => ("elicitation_dialog", why.clone()),
        _ => (
            "permission_prompt",
            format!("permission to use {tool}: {why}"),
        ),
    };
    let own = || notification(about, &message);
    tell(actor, HookEvent::Notification, about, own, work);
}

/// Begins to wait for a person, if hooks want to know that nobody says anything.
pub(in crate::agent::actor) fn wait_for_quiet(actor: &Actor, work: &mut Work) {
    let hooks = now(actor, work).matching(HookEvent::Notification, IDLE);
    let waits =
        actor.role.is_main() && actor.machine.approver() == Approver::FrontEnd && !hooks.is_empty();
    work.timers.quiet = waits.then(|| actor.ports.clock.sleep(QUIET));
}

/// Tells hooks that posse waits for a person.
pub(in crate::agent::actor) fn on_quiet(actor: &Actor, work: &mut Work) {
    work.timers.quiet = None;
    let own = || notification(IDLE, "posse waits for your next prompt");
    tell(actor, HookEvent::Notification, IDLE, own, work);
}

/// Runs the hooks that want to know that a run in the background is over. Nobody waits for them.
pub(in crate::agent::actor) fn on_background_ended(
    (ports, supervisor): (&Ports, &Supervisor),
    (session, rights): (&Session, &Rights),
    run: &RunFacts,
) {
    let event = HookEvent::Notification;
    let hooks = session.setup.spawning.hooks.now();
    let hooks = hooks.matching(event, COMPLETED).hooks;
    if hooks.is_empty() {
        return;
    }
    let message = format!("{} is done: {}", run.agent_type, run.description);
    let request = HookRequest::of_event(event, hooks, COMPLETED, notification(COMPLETED, &message));
    let posse = json!({ "agent": run.task, "type": run.agent_type });
    let host = HookHost::new(ports, session, rights, posse);
    let cancel = supervisor.branch();
    supervisor.start_errand(async move {
        let said = host.run(request, cancel.clone()).await;
        for one in said.beside {
            host.run_beside(one, cancel.clone()).await;
        }
    });
}

fn notification(kind: &str, message: &str) -> Value {
    json!({ "message": message, "notification_type": kind })
}
