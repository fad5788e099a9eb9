//! Settles what a dead process left open of an agent, before the agent continues.
//!
//! A tool call that may have begun is never run again. Its outcome is looked up where someone else
//! knows it: a sub-agent's record, or results that were stored with an operation. Of any other call
//! the model is told that the outcome is unknown.

use std::collections::HashMap;
use std::sync::Arc;

use posse_port::store::{
    AgentFilter, AgentRecord, BackgroundRun, CallKey, CallOutcome, EndedRun, OpenCall, Page,
    StoreError, Taken,
};
use posse_port::tool::{RunReport, ToolError, ToolOutput};
use posse_protocol::{
    AgentId, AgentPlace, Member, RawJson, RunFacts, RunKind, RunStatus, RunUsage,
};

use crate::agent::actor::{Actor, marker, shells};
use crate::agent::ending;
use crate::agent::step::{Decision, LeftCall, failure};
use crate::definition::terms::Terms;
use crate::definition::tool_name::AGENT;
use crate::live::lookup::terms;
use crate::live::roster;
use crate::live::run::shell_facts;
use crate::live::setup::reader;
use crate::prompt;
use crate::prompt::Returned;
use crate::prompt::team::Spawned;
use crate::session::factory::Factory;
use crate::session::start_error::StartError;

/// Maximum number of an agent's children among which those of open calls are looked for.
const CHILDREN: usize = 100_000;

/// Ends the processes that open calls and background commands left running, finds out what became
/// of calls whose outcome others know, and decides what the agent is told.
pub(crate) async fn recover(
    factory: &Arc<Factory>,
    actor: &mut Actor,
    taken: Taken,
) -> Result<Decision, StartError> {
    let agent = actor.identity.agent;
    let Taken {
        transcript,
        runs,
        questions,
        ..
    } = taken;
    let open = transcript.open_calls;
    for call in open
        .iter()
        .filter(|call| call.begun && call.outcome.is_none())
    {
        // Ended before anything else: whatever still runs could change files while the agent is
        // told that the outcome is unknown.
        if let Some(tool) = actor.setup.tools.get(&call.tool) {
            tool.abandon(marker(agent, call.key)).await;
        }
    }
    for run in runs {
        settle_dead_command(actor, run).await?;
    }
    let mut known = children_of(factory, actor, &open).await?;
    for call in &open {
        let tool = actor.setup.tools.get(&call.tool);
        if let (Some(results), Some(tool)) = (&call.operated, tool) {
            // The step that changed the store kept the results, so this outcome is known exactly.
            known.insert(call.key, outcome(tool.operated(results)));
        }
    }
    let record = transcript.record;
    let intent = |tool: &str, input: &RawJson| actor.intent(tool, input);
    let (open, lost) = LeftCall::with_questions(open, known, questions, intent);
    let mut settle = actor.machine.recover(open, record.state);
    settle.commit.questions.extend(lost);
    // A call that was cut off may have to be paid for: from now on its worst cost is on record.
    settle
        .commit
        .charges
        .extend(record.reserved.map(|call| *call));
    Ok(settle)
}

/// Settles a background command of a dead process: it is gone, and the agent is told so.
async fn settle_dead_command(actor: &mut Actor, run: BackgroundRun) -> Result<(), StoreError> {
    let agent = actor.identity.agent;
    // The row does not name the tool, and abandoning what a tool did not start does nothing.
    for tool in actor.setup.tools.all() {
        tool.abandon(marker(agent, run.call)).await;
    }
    let facts = shell_facts(run.id, agent, run.description, String::new(), run.output);
    let summary = "posse ended while it ran, and ended it too".to_owned();
    let report = RunReport {
        status: RunStatus::Killed,
        summary,
        result: String::new(),
    };
    let end = ending::of_shell(&facts, &report, RunUsage::default());
    shells::commit_end(actor, &end, false).await
}

/// Finds out what became of the sub-agents that open calls have started.
async fn children_of(
    factory: &Arc<Factory>,
    actor: &Actor,
    open: &[OpenCall],
) -> Result<HashMap<CallKey, CallOutcome>, StoreError> {
    let mut known = HashMap::new();
    let is_open = |call: &&OpenCall| call.tool == AGENT && call.begun && call.outcome.is_none();
    let calls: Vec<_> = open.iter().filter(is_open).collect();
    if calls.is_empty() {
        return Ok(known);
    }
    let (realm, parent) = (Some(actor.identity.realm), Some(actor.identity.agent));
    let filter = AgentFilter {
        realm,
        parent,
        ..AgentFilter::default()
    };
    let children = factory
        .ports
        .store
        .agents(filter, Page::first(CHILDREN))
        .await?;
    let teammates = spawned(factory, actor.identity.realm).await?;
    for call in calls {
        let made = |child: &&AgentRecord| {
            child
                .origin
                .as_ref()
                .is_some_and(|origin| origin.call == call.key)
        };
        let told = match children.iter().find(made) {
            // The call is stored as begun before the child is, so a crash in between leaves no
            // child.
            None => failure("Not started: posse ended before the sub-agent existed."),
            Some(child) => child_outcome(actor, child, &teammates),
        };
        known.insert(call.key, told);
    }
    Ok(known)
}

/// Returns what the starter is told of each teammate of a session.
async fn spawned(
    factory: &Arc<Factory>,
    realm: posse_protocol::RealmId,
) -> Result<HashMap<AgentId, String>, StoreError> {
    let mut told = HashMap::new();
    for team in roster::teams(&*factory.ports.store, realm).await? {
        for member in &team.members {
            let Member {
                agent,
                name,
                agent_type,
                color,
                ..
            } = member;
            let (team, plan) = (&team.name, false);
            let spawned = Spawned {
                agent: *agent,
                agent_type,
                wished: name,
                name,
                team,
                color,
                plan,
            };
            told.insert(*agent, prompt::team::spawned(&spawned));
        }
    }
    Ok(told)
}

/// Returns the outcome of a call whose child exists.
fn child_outcome(
    actor: &Actor,
    child: &AgentRecord,
    teammates: &HashMap<AgentId, String>,
) -> CallOutcome {
    if let Some(told) = teammates.get(&child.agent) {
        return outcome(Ok(ToolOutput::text(told.clone())));
    }
    let facts = facts(
        child,
        actor.identity.agent,
        actor.session.output(child.agent),
    );
    let reader = reader(&actor.setup.tools);
    match (&child.ended, child.state.status()) {
        // Without a text, mail tells of its end. Reporting it here as well would tell it twice.
        (Some(ended), Some(status)) if ended.text.is_some() => {
            let EndedRun {
                run,
                error,
                usage,
                text,
                value,
                worktree,
                ..
            } = &**ended;
            let text = text.as_deref().unwrap_or_default();
            let mut end = ending::of_agent(&facts, *run, (status, error.clone()), text, *usage);
            (end.value, end.worktree) = (value.clone(), worktree.clone());
            let one_shot = terms(child, &actor.session).one_shot;
            let of = Returned {
                agent_type: &facts.agent_type,
                one_shot,
                model: &child.model,
            };
            outcome(prompt::result(&end, of, reader))
        }
        _ => {
            let told = prompt::launched(&facts, "", reader);
            let why =
                "posse ended while you waited for this; the same run continues in the background.";
            outcome(Ok(ToolOutput::text(format!("{why}\n{told}"))))
        }
    }
}

/// Returns the facts of a stored sub-agent's run.
pub(crate) fn facts(
    child: &AgentRecord,
    starter: AgentId,
    output_file: std::path::PathBuf,
) -> RunFacts {
    let origin = child.origin.as_deref();
    RunFacts {
        task: child.agent.uuid(),
        kind: RunKind::Agent,
        agent_type: origin
            .map(|origin| origin.agent_type.clone())
            .unwrap_or_default(),
        name: origin.and_then(|origin| origin.name.clone()),
        description: origin
            .map(|origin| origin.description.clone())
            .unwrap_or_default(),
        call: origin
            .map(|origin| origin.call_id.clone())
            .unwrap_or_default(),
        starter,
        depth: depth(&child.path),
        output_file,
        place: Some(Box::new(AgentPlace {
            path: child.path.clone(),
            model: child.model.clone(),
            mode: child.mode,
            cwd: child.cwd.clone(),
            branch: origin
                .and_then(Terms::kept)
                .and_then(|terms| terms.branch()),
        })),
    }
}

/// Returns an agent's depth by its path: 0 for `/main`.
pub(crate) fn depth(path: &str) -> u32 {
    u32::try_from(path.matches('/').count().saturating_sub(1)).unwrap_or(u32::MAX)
}

/// Returns the outcome of a call from what its tool says.
fn outcome(told: Result<ToolOutput, ToolError>) -> CallOutcome {
    match told {
        Ok(output) => CallOutcome {
            content: output.content.into(),
            is_error: false,
        },
        Err(ToolError::Tell(what) | ToolError::Stop(what)) => failure(what),
    }
}
