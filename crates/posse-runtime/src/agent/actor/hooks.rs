//! Hooks of an agent: started beside it, and heard as inputs. A person's prompt waits until its
//! hooks have let it pass.

mod gate;
mod told;

use std::sync::Arc;

use posse_port::model::Effort;
use posse_protocol::{ContentBlock, Fault, FaultClass, ListId, Name, Outcome, RunKind, TaskId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::actor::hook_transcript::HookTranscript;
use crate::agent::actor::hook_work::{
    AfterHooks, GateRan, HookKey, HooksRan, LookedHooks, RanBeside,
};
use crate::agent::actor::work::Work;
use crate::agent::actor::{Actor, command, standing, tasks};
use crate::agent::hook_host::{HookHost, HookRun, HooksSaid};
use crate::agent::hook_judge::{HookJudge, OwnPrefix};
use crate::agent::step::{HookRequest, Input};
use crate::definition::skill::Skill;
use crate::hook::answer::HookDecision;
use crate::hook::{Hook, HookEvent, HookSet, Merged, RunsBeside};
use crate::live::run::Run;
use crate::live::setup::Approver;
use crate::live::skill_hooks::SkillHooks;
use crate::prompt;

pub(super) use crate::agent::actor::hooks::gate::gate;
pub(super) use crate::agent::actor::hooks::told::{
    after_compaction, before_compaction, end_session, on_asked, on_background_ended, on_entries,
    on_instructions, on_quiet, on_run_ended, wait_for_quiet,
};

/// Brings the machine's hooks up to date.
pub(super) fn look(actor: &mut Actor, work: &mut Work) {
    let settings = actor.session.setup.spawning.hooks.now();
    let of_skills = work.hooks.of_skills.get_or_insert_with(|| {
        let who = actor.registry.live_agent(actor.identity.agent);
        who.map(|who| Arc::clone(&who.skill_hooks))
            .unwrap_or_default()
    });
    let changes = of_skills.changes();
    let known = work.hooks.looked.as_ref();
    if known.is_some_and(|it| Arc::ptr_eq(&it.settings, &settings) && it.changes == changes) {
        return;
    }
    let own = own(actor, of_skills);
    let all = match own.is_empty() {
        true => Arc::clone(&settings),
        false => Arc::new(settings.with(&own)),
    };
    actor.machine.set_hooks(&all);
    if all.is_empty() {
        work.hooks.transcript = None;
    }
    work.hooks.looked = Some(LookedHooks {
        settings,
        changes,
        all,
    });
}

/// Returns the hooks of the agent's type, of the skill that it was started for, and of those that
/// it has loaded.
fn own(actor: &Actor, of_skills: &SkillHooks) -> HookSet {
    let mut hooks = of_skills.now();
    let Some(sub_agent) = actor.role.sub_agent() else {
        return HookSet::new(hooks);
    };
    let followed = actor.terms.as_ref().map(|terms| &terms.granted.file);
    let skills = actor.session.setup.spawning.skills.as_ref();
    let skills = skills.map(|skills| skills.now()).unwrap_or_default();
    let of_file =
        |skill: &&Arc<Skill>| followed.is_some_and(|file| skill.path.to_str() == Some(file));
    if let Some(skill) = skills.iter().find(of_file) {
        of_skills.load(&skill.hooks);
        hooks = of_skills.now();
    }
    let mut hooks: Vec<Arc<Hook>> = hooks.iter().map(Hook::of_sub_agent).collect();
    let kind = actor.session.definition(&sub_agent.run.facts.agent_type);
    hooks.extend(kind.iter().flat_map(|kind| kind.hooks.iter().cloned()));
    HookSet::new(hooks)
}

/// Returns true if the agent has any hooks.
pub(super) fn has_any(actor: &Actor, work: &Work) -> bool {
    !now(actor, work).is_empty()
}

/// Returns true if the agent has hooks for an event.
pub(super) fn has(actor: &Actor, work: &Work, event: HookEvent) -> bool {
    now(actor, work).has(event)
}

/// Returns the hooks that hold for the agent now.
fn now(actor: &Actor, work: &Work) -> Arc<HookSet> {
    let looked = work.hooks.looked.as_ref();
    looked.map_or_else(
        || actor.session.setup.spawning.hooks.now(),
        |it| Arc::clone(&it.all),
    )
}

/// Returns what runs the agent's hooks, as of now.
pub(super) fn host(actor: &Actor, work: &mut Work) -> HookHost {
    if actor.role.is_main() && work.hooks.transcript.is_none() {
        work.hooks.transcript = Some(HookTranscript::begin(actor));
    }
    let facts = actor.role.sub_agent().map(|sub| &sub.run.facts);
    let team = actor.role.teammate().map(|it| &it.team_identity);
    let attribution = &actor.prefix.attribution;
    let choice = actor.ports.model.choice(&actor.prefix.preamble);
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
        effort: choice.and_then(|choice| choice.effort.map(Effort::as_str)),
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
        standing: standing::of(actor, false),
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

/// Notes that these hooks run: some do so once only.
fn note_run(hooks: &[Arc<Hook>], work: &Work) {
    let of_skills = work.hooks.of_skills.iter();
    of_skills.for_each(|known| known.ran(hooks));
}

/// Runs hooks for the machine.
pub(super) fn run(actor: &Actor, mut request: HookRequest, work: &mut Work) {
    add_facts(actor, &mut request);
    note_run(&request.hooks, work);
    let host = HookHost {
        judge: judge(actor, &request.hooks),
        ..host(actor, work)
    };
    let store = Arc::clone(&actor.ports.store);
    let task = completed(actor, &request);
    work.hooks
        .running
        .start(HookKey::Step(request.run), move |cancel| async move {
            if let Some((list, id)) = task
                && let Ok(Some(task)) = store.task(list, id).await
            {
                let own = &mut request.own;
                let told = [
                    ("task_subject", task.subject),
                    ("task_description", task.description),
                ];
                for (key, text) in told {
                    let unknown = own.get(key).is_none_or(Value::is_null);
                    unknown.then(|| own.insert(key.to_owned(), json!(text)));
                }
            }
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

/// Returns the task that hooks are told of, if what it is about is not known yet.
fn completed(actor: &Actor, request: &HookRequest) -> Option<(ListId, TaskId)> {
    if request.event != HookEvent::TaskCompleted {
        return None;
    }
    let text = |key: &str| request.own.get(key).and_then(Value::as_str);
    let team = text("team_name").map(|team| team.parse::<Name>().ok());
    let id = text("task_id")?.parse().ok()?;
    Some((tasks::list(actor, team.flatten()), id))
}

/// Adds what the actor knows: who the teammate is, and what runs at the end of a turn.
fn add_facts(actor: &Actor, request: &mut HookRequest) {
    let in_team = matches!(
        request.event,
        HookEvent::TeammateIdle | HookEvent::TaskCreated | HookEvent::TaskCompleted
    );
    if let Some(teammate) = actor.role.teammate().filter(|_| in_team) {
        let identity = &teammate.team_identity;
        let own = &mut request.own;
        own.insert("teammate_name".into(), json!(identity.name.to_string()));
        own.insert("team_name".into(), json!(identity.team.to_string()));
    }
    let of_tool = matches!(
        request.event,
        HookEvent::PreToolUse | HookEvent::PostToolUse | HookEvent::PostToolUseFailure
    );
    let servers = actor.advertised.servers.as_ref().filter(|_| of_tool);
    if let Some((name, source)) = servers.and_then(|servers| servers.origin(&request.about)) {
        let server = json!({ "name": name, "source": source.as_str() });
        request.own.insert("mcp_server".into(), server);
    }
    if !matches!(request.event, HookEvent::Stop | HookEvent::SubagentStop) {
        return;
    }
    let agent = actor.identity.agent;
    let task = |run: &Arc<Run>| {
        let facts = &run.facts;
        let mut task = json!({
            "id": facts.task,
            "status": "running",
            "description": facts.description,
        });
        match facts.kind {
            RunKind::Shell => task["type"] = json!("shell"),
            _ => {
                task["type"] = json!("subagent");
                task["agent_type"] = json!(facts.agent_type);
            }
        }
        task
    };
    let tasks: Vec<Value> = actor.registry.background(agent).iter().map(task).collect();
    let own = &mut request.own;
    own.insert("background_tasks".into(), json!(tasks));
    own.insert("session_crons".into(), json!([]));
    if request.event == HookEvent::SubagentStop {
        let transcript = HookTranscript::begin(actor);
        own.insert("agent_transcript_path".into(), json!(transcript.path()));
    }
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
    note_run(&hooks, work);
    let request = HookRequest::of_event(event, hooks, about, own());
    let host = host(actor, work);
    work.hooks
        .running
        .start(HookKey::Told, move |cancel| async move {
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

/// Handles hooks that have run; none if posse lost track of them, which counts as a refusal.
pub(super) fn on_done(
    actor: &mut Actor,
    key: HookKey,
    ran: Option<HooksRan>,
    work: &mut Work,
) -> Option<Input> {
    let Some(HooksRan {
        then,
        beside,
        charges,
    }) = ran
    else {
        let HookKey::Step(run) = key else {
            return None;
        };
        let said = Box::new(Merged::refusing(prompt::hook::LOST));
        let intent = None;
        return Some(Input::Hooked { run, said, intent });
    };
    actor.machine.book(&charges);
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
            let hooks = &actor.session.setup.spawning.hooks;
            hooks.watch(&said.more.watch);
            for text in &said.contexts {
                actor.machine.tell(prompt::hook::context(event, "", text));
            }
            None
        }
    }
}

/// Handles the hooks of a command, which begins a run if they let it pass. If posse lost track of
/// them, they have not.
pub(super) fn on_gate_done(
    actor: &mut Actor,
    ran: Option<GateRan>,
    work: &mut Work,
) -> Option<Input> {
    let not_begun = |why: String| {
        Some(Input::NotBegun(Outcome::Failed(Fault {
            class: FaultClass::Hook,
            status: None,
            message: why,
        })))
    };
    let input = match ran {
        Some(GateRan {
            command,
            told,
            refused,
            stopped,
            beside,
            charges,
        }) => {
            work.hooks.before.extend(charges.iter().cloned());
            actor.spending.owed.extend(charges);
            start_beside(actor, beside, work);
            match refused {
                _ if stopped || work.stopping => Some(Input::NotBegun(Outcome::Interrupted)),
                Some(why) => not_begun(why),
                None => {
                    for text in told {
                        actor.machine.tell(text);
                    }
                    command::receive(actor, command, work)
                }
            }
        }
        None => not_begun(prompt::hook::LOST.to_owned()),
    };
    gate::next_gated(actor, work);
    input
}

/// Starts hooks that nothing waits for.
fn start_beside(actor: &Actor, beside: Vec<HookRun>, work: &mut Work) {
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

fn text_of(words: &[ContentBlock]) -> String {
    let texts = words.iter().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
