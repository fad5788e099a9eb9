//! Side queries: questions of people about an agent in the store, wherever it lives. Its
//! transcript is read and never taken, so its run is not disturbed.

use std::path::PathBuf;
use std::sync::Arc;

use posse_permission::{Policy, Rights};
use posse_port::model::{Attribution, CallPriority, Lineage, Standing, Ttl};
use posse_port::store::{AgentRecord, Charge, Op, Order, StoreError, Transcript};
use posse_port::tool::{AgentMemory, KnownFiles, Toolbox, Workspace};
use posse_protocol::{AgentId, PermissionMode, ReplyFacts};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::wall_ms;
pub(crate) use crate::agent::side_query::{Hear, SideQuery, SideQueryError, SideReply, SideTools};
use crate::definition::terms::{NOTING, Terms};
use crate::govern::{Account, Budgets};
use crate::history::request_size::last_request;
use crate::history::restore::{current_preamble, last_reply, restore};
use crate::live::lookup;
use crate::prompt::side_query::SideInstruction;
use crate::session::assemble;
use crate::session::factory::Factory;
use crate::session::start_error::StartError;

/// Maximum number of replies of an agent that updates its notes.
const NOTE_TURNS: usize = 16;

/// Options of a side query.
pub struct SideQueryOptions {
    /// Maximum length of the reply, in tokens.
    pub max_tokens: u32,
    /// Cancels the query.
    pub cancel: CancellationToken,
    /// Called with the answer while it arrives.
    pub hear: Option<Hear>,
}

/// What an agent needs to update its notes.
pub struct NoteTools {
    /// Tools, of which only those that read and write files are used.
    pub tools: Toolbox,
    /// Policy whose denials apply; what it allows is ignored.
    pub policy: Arc<Policy>,
    /// Directory for output that is too long to show.
    pub spill: PathBuf,
    /// Home directory of the user.
    pub home: Option<PathBuf>,
}

/// Result of a side query.
#[derive(Debug)]
pub struct SideAnswer {
    /// The answer.
    pub answer: Result<String, SideQueryError>,
    /// Facts about the last reply, if there was one.
    pub facts: Option<ReplyFacts>,
    /// What it cost, even if it failed.
    pub charges: Vec<Charge>,
    /// Why the charges could not be stored, if they could not.
    pub unbooked: Option<String>,
}

/// Asks an agent a question: it answers from what it knows, and its conversation and its run stay
/// as they are.
pub(crate) async fn ask(
    factory: &Arc<Factory>,
    agent: AgentId,
    question: &str,
    options: SideQueryOptions,
) -> Result<SideAnswer, StartError> {
    let transcript = factory.ports.store.read(agent).await?;
    run_query(
        factory,
        &transcript,
        &SideInstruction::Question(question.to_owned()),
        SideTools::Refused,
        options,
    )
    .await
}

/// Asks for an agent's progress in a line or two.
pub(crate) async fn progress(
    factory: &Arc<Factory>,
    agent: AgentId,
    options: SideQueryOptions,
) -> Result<SideAnswer, StartError> {
    let transcript = factory.ports.store.read(agent).await?;
    run_query(
        factory,
        &transcript,
        &SideInstruction::Progress,
        SideTools::Refused,
        options,
    )
    .await
}

/// Asks what of an agent's work is worth remembering. An agent that keeps notes updates them; any
/// other only reports.
pub(crate) async fn remember(
    factory: &Arc<Factory>,
    agent: AgentId,
    note_tools: NoteTools,
    options: SideQueryOptions,
) -> Result<SideAnswer, StartError> {
    let transcript = factory.ports.store.read(agent).await?;
    let record = &transcript.record;
    let terms = record.origin.as_deref().and_then(Terms::kept);
    let noting = terms.and_then(|terms| Some((terms.notes.clone()?.directory, terms)));
    let (notes, side_tools) = match noting {
        Some((directory, terms)) => (
            Some(directory.clone()),
            with_note_tools(note_tools, record, &terms, directory),
        ),
        None => (None, SideTools::Refused),
    };
    run_query(
        factory,
        &transcript,
        &SideInstruction::Memory { notes },
        side_tools,
        options,
    )
    .await
}

/// Makes the side query and books its charges.
async fn run_query(
    factory: &Arc<Factory>,
    transcript: &Transcript,
    instruction: &SideInstruction,
    side_tools: SideTools,
    options: SideQueryOptions,
) -> Result<SideAnswer, StartError> {
    assemble::same_dialect(factory, transcript)?;
    let (
        record,
        SideQueryOptions {
            max_tokens,
            cancel,
            hear,
        },
    ) = (&transcript.record, options);
    // An agent that lives here pays from the session's budget; the budgets of another process are
    // unknown.
    let account = factory
        .registry
        .live_agent(record.agent)
        .map(|live_agent| live_agent.account.clone());
    let account =
        account.unwrap_or_else(|| Account::session(Budgets::default(), factory.ports.clock.now()));
    let attribution = attribution(factory, record).await?;
    let standing = Standing {
        lineage: Lineage {
            session: attribution.session.clone(),
            team: None,
            subtree: Lineage::subtree_of(&attribution.path).to_owned(),
        },
        priority: CallPriority::Person,
        prompt: None,
        cached: 0,
    };
    let query = SideQuery {
        ports: factory.ports.clone(),
        preamble: current_preamble(transcript).clone(),
        history: restore(transcript, &*factory.ports.model)?,
        open: transcript
            .open_calls
            .iter()
            .map(|call| call.id.clone())
            .collect(),
        attribution: Arc::new(attribution),
        standing,
        model: record.model.clone(),
        previous: last_reply(transcript),
        account,
        last_request: last_request(transcript),
        max_tokens,
        // Asked once: the longer cache lifetime, which costs more, would not be used again.
        ttl: Ttl::FiveMinutes,
        cancel,
        hear,
    };
    let SideReply {
        charges,
        facts,
        text,
    } = query.ask(instruction, side_tools).await;
    // Also after a failure: attempts that failed may have to be paid for.
    let unbooked = book(factory, record, &charges).await;
    Ok(SideAnswer {
        answer: text,
        facts,
        charges,
        unbooked,
    })
}

/// Returns the attribution of calls about an agent: the agent's own.
async fn attribution(
    factory: &Arc<Factory>,
    record: &AgentRecord,
) -> Result<Attribution, StoreError> {
    let parent = record.origin.as_ref().map(|origin| origin.parent);
    let (mut root, mut above) = (record.agent, parent);
    while let Some(parent) = above {
        root = parent;
        above = lookup::row(&*factory.ports.store, parent)
            .await?
            .and_then(|row| row.origin)
            .map(|origin| origin.parent);
    }
    Ok(Attribution {
        session: root.to_string(),
        agent: record.agent.to_string(),
        parent: parent.map(|parent| parent.to_string()),
        path: record.path.clone(),
    })
}

/// Stores charges for an agent that this process does not hold. Returns why it could not.
async fn book(factory: &Arc<Factory>, record: &AgentRecord, charges: &[Charge]) -> Option<String> {
    let op = |charge: &Charge| Op::Charge {
        agent: record.agent,
        charge: Box::new(charge.clone()),
    };
    let ops: Vec<Op> = charges.iter().map(op).collect();
    if ops.is_empty() {
        return None;
    }
    let at_ms = wall_ms(&*factory.ports.clock);
    match factory
        .ports
        .store
        .operate(Order {
            realm: record.realm,
            ops,
            at_ms,
        })
        .await
    {
        Ok(results) => results
            .into_iter()
            .find_map(Result::err)
            .map(|refusal| refusal.to_string()),
        Err(error) => Some(posse_port::in_a_line(&error)),
    }
}

/// Returns tools that reach an agent's notes and nothing else.
fn with_note_tools(
    note_tools: NoteTools,
    record: &AgentRecord,
    terms: &Terms,
    directory: PathBuf,
) -> SideTools {
    let NoteTools {
        mut tools,
        policy,
        spill,
        home,
    } = note_tools;
    tools.retain(|name| NOTING.contains(&name) && terms.has(name));
    let workspace = Workspace {
        cwd: directory.clone(),
        roots: vec![directory.clone()],
        spill,
        home,
        mirror: None,
        notes: Some(AgentMemory {
            directory,
            only: true,
        }),
    };
    // An agent in plan mode changes nothing, not even notes. Any other mode is lowered to the
    // default, because keeping notes needs no more.
    let mode = match record.mode {
        PermissionMode::Plan => PermissionMode::Plan,
        _ => PermissionMode::Default,
    };
    let rights = Rights::root(mode, Arc::new(policy.strict()), Arc::new(workspace));
    SideTools::Allowed {
        tools,
        rights,
        seen: KnownFiles::default(),
        turns: NOTE_TURNS,
    }
}
