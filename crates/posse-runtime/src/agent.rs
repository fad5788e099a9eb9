//! Agents: how they are started and spoken to.

mod actor;
mod fault;
mod history;
mod outlet;
mod step;

use std::sync::Arc;

use posse_protocol::{AgentId, Command, Cost, Event, PermissionMode, RealmId};
use tokio::sync::mpsc;
use uuid::Uuid;

pub use self::fault::in_a_line;

use self::actor::{Actor, Identity, marker};
use self::history::History;
use self::outlet::{EVENTS, Outlet};
use self::step::{Machine, Rights, unanswered};

use crate::permission::Policy;
use crate::port::clock::Clock;
use crate::port::model::{Attribution, Effort, Model, Piece, Preamble, Thinking};
use crate::port::price::Prices;
use crate::port::store::{Birth, Epoch, SeenFile, Segment, Session, Store, StoreError, Taken, Transcript};
use crate::supervise::{Living, Supervisor};
use crate::tool::{Seen, Toolbox, Workspace};

/// What the runtime reaches the outside through.
#[derive(Clone)]
pub struct Ports {
    /// The model API.
    pub model: Arc<dyn Model>,
    /// Where transcripts live.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What model calls cost.
    pub prices: Arc<dyn Prices>,
}

/// What an agent is for its whole life; kept in the store.
#[derive(Clone, Debug)]
pub struct Character {
    /// The model's name.
    pub model: String,
    /// The system prompt, block by block.
    pub system: Vec<String>,
    /// Whether the model thinks.
    pub thinking: Thinking,
    /// How hard it tries.
    pub effort: Option<Effort>,
    /// The mode it starts in.
    pub mode: PermissionMode,
}

/// What an agent is given by the process that runs it; not kept.
#[derive(Clone)]
pub struct Setup {
    /// Its tools. Of a resumed agent the model knows those it was started with.
    pub tools: Toolbox,
    /// Its rules.
    pub policy: Arc<Policy>,
    /// Where it works.
    pub workspace: Arc<Workspace>,
    /// How far a run may go.
    pub limits: Limits,
    /// Who answers when a rule says ask.
    pub asker: Asker,
}

/// How far a run may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Model calls in a run.
    pub turns: Option<u32>,
    /// Money in a run: no call is made once it is spent.
    pub budget: Option<Cost>,
    /// The longest reply, in tokens.
    pub max_tokens: u32,
}

/// Who answers when a rule says ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Nobody: what would be asked is denied, and the model is told why.
    Nobody,
    /// The front end, by [`Command::Answer`].
    FrontEnd,
}

/// An agent that lives in this process.
pub struct Agent {
    /// Its id, and that of its session.
    pub id: AgentId,
    /// What the store had of it when it was resumed or forked; none of a new one.
    pub found: Option<Session>,
    /// Whether [`Command::Continue`] has something to continue.
    pub unfinished: bool,
    /// The way to it. When all handles are dropped the agent finishes what it was told and ends;
    /// then `events` closes.
    pub handle: AgentHandle,
    /// What happens to it.
    pub events: mpsc::Receiver<Event>,
}

/// The way to an agent.
#[derive(Clone)]
pub struct AgentHandle {
    commands: mpsc::Sender<Command>,
}

/// The agent has ended and hears nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the agent has ended")]
pub struct Gone;

impl AgentHandle {
    /// Tells the agent something.
    pub async fn send(&self, command: Command) -> Result<(), Gone> {
        self.commands.send(command).await.map_err(|_| Gone)
    }
}

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This runtime has it already.
    #[error("agent {agent} is at work in this process already")]
    AlreadyHere {
        /// The agent.
        agent: AgentId,
    },
    /// The session was held in another provider's words.
    #[error("the session was held with the {stored} API, which is spelt otherwise than {asked}'s")]
    OtherDialect {
        /// What it was held in.
        stored: String,
        /// What was asked for.
        asked: &'static str,
    },
}

/// Runs agents.
#[derive(Clone)]
pub struct Runtime {
    ports: Ports,
    supervisor: Supervisor,
}

impl Runtime {
    /// A runtime that reaches the outside through `ports`.
    pub fn new(ports: Ports) -> Self {
        Self { ports, supervisor: Supervisor::default() }
    }

    /// A new root agent, in a realm of its own. It is in the store from its first prompt on.
    pub fn start(&self, character: &Character, setup: Setup) -> Agent {
        let Character { model, system, thinking, effort, mode } = character.clone();
        let tools = setup.tools.specs();
        let preamble = Preamble { model: model.clone(), tools, system, thinking, effort };
        let birth = Birth {
            parent: None,
            path: "/main".into(),
            model,
            dialect: self.ports.model.dialect().to_owned(),
            mode,
            cwd: setup.workspace.cwd.clone(),
            preamble: self.ports.model.preamble(&preamble),
            segments: Vec::new(),
        };
        let id = Uuid::now_v7();
        self.bear(RealmId::from(id), AgentId::from(id), birth, Seed::default(), setup)
    }

    /// Goes on with an agent that the store has. What its process left open when it died is settled
    /// first: a call whose outcome is unknown is answered so, and never run again.
    pub async fn resume(
        &self,
        id: AgentId,
        mode: Option<PermissionMode>,
        setup: Setup,
    ) -> Result<Agent, StartError> {
        let Some(living) = self.supervisor.room_for(id) else {
            return Err(StartError::AlreadyHere { agent: id });
        };
        let taken = self.ports.store.take(id).await?;
        match self.go_on(taken, living, mode, setup).await {
            Ok(agent) => Ok(agent),
            Err((epoch, error)) => {
                // If it fails, others find out by themselves that this process has ended.
                let _ = self.ports.store.release(id, epoch).await;
                Err(error)
            }
        }
    }

    async fn go_on(
        &self,
        taken: Taken,
        living: Living,
        mode: Option<PermissionMode>,
        setup: Setup,
    ) -> Result<Agent, (Epoch, StartError)> {
        let Taken { epoch, transcript, seen, .. } = taken;
        let failed = |error: StartError| (epoch, error);
        self.same_dialect(&transcript).map_err(failed)?;
        let history = restore(&transcript).map_err(|error| failed(error.into()))?;
        let session = transcript.session.clone();
        for call in transcript.open_calls.iter().filter(|call| call.begun && call.outcome.is_none()) {
            if let Some(tool) = setup.tools.get(&call.tool) {
                tool.abandon(marker(session.agent, call.key)).await;
            }
        }
        let seed =
            Seed { history, seen, unanswered: waits(&transcript), previous_reply: last_reply(&transcript) };
        let identity = Identity { realm: session.realm, agent: session.agent, epoch };
        let about = About {
            identity,
            model: session.model.clone(),
            mode: mode.unwrap_or(session.mode),
            path: session.path.clone(),
            living: Some(living),
        };
        let (mut actor, commands, agent) = self.assemble(about, transcript.preamble, None, seed, setup);
        let mut settle = actor.machine.recover(transcript.open_calls);
        settle.commit.mode = mode;
        actor.commit(settle.commit).await.map_err(|error| failed(error.into()))?;
        Ok(self.animate(actor, commands, Agent { found: Some(session), ..agent }))
    }

    /// A new root agent whose history begins with all of another's, which stays as it is. It lives in
    /// the same realm: what is shared is shared on disk too.
    pub async fn fork_session(
        &self,
        id: AgentId,
        mode: Option<PermissionMode>,
        setup: Setup,
    ) -> Result<Agent, StartError> {
        let mut transcript = self.ports.store.read(id).await?;
        self.same_dialect(&transcript)?;
        if !transcript.open_calls.is_empty() {
            // Whoever asked for these tools gets their answers; the copy begins before it did.
            transcript.entries.pop();
        }
        let (history, session) = (restore(&transcript)?.forked(), transcript.session.clone());
        let own = (transcript.entries.len() - transcript.inherited) as u64;
        let mut segments = transcript.segments.clone();
        segments.extend((own > 0).then_some(Segment { agent: id, from: 0, to: own }));
        let birth = Birth {
            parent: None,
            path: session.path.clone(),
            model: session.model.clone(),
            dialect: transcript.dialect.clone(),
            mode: mode.unwrap_or(session.mode),
            cwd: setup.workspace.cwd.clone(),
            preamble: transcript.preamble.clone(),
            segments,
        };
        let seed = Seed {
            previous_reply: last_reply(&transcript),
            unanswered: waits(&transcript),
            history,
            seen: Vec::new(),
        };
        let id = AgentId::from(Uuid::now_v7());
        let agent = self.bear(session.realm, id, birth, seed, setup);
        Ok(Agent { found: Some(session), ..agent })
    }

    /// Stops all agents as [`Command::Interrupt`] would, and waits until they have given up what they held.
    pub async fn shut_down(&self) {
        self.supervisor.stop().await;
    }

    fn same_dialect(&self, transcript: &Transcript) -> Result<(), StartError> {
        let (stored, asked) = (transcript.dialect.clone(), self.ports.model.dialect());
        if stored == asked { Ok(()) } else { Err(StartError::OtherDialect { stored, asked }) }
    }

    fn bear(&self, realm: RealmId, agent: AgentId, birth: Birth, seed: Seed, setup: Setup) -> Agent {
        let identity = Identity { realm, agent, epoch: Epoch(1) };
        let (model, mode, path) = (birth.model.clone(), birth.mode, birth.path.clone());
        let preamble = birth.preamble.clone();
        let living = self.supervisor.room_for(agent);
        let about = About { identity, model, mode, path, living };
        let (actor, commands, agent) = self.assemble(about, preamble, Some(Box::new(birth)), seed, setup);
        self.animate(actor, commands, agent)
    }

    fn assemble(
        &self,
        about: About,
        preamble: Piece,
        birth: Option<Box<Birth>>,
        seed: Seed,
        setup: Setup,
    ) -> (Actor, mpsc::Receiver<Command>, Agent) {
        let About { identity, model, mode, path, living } = about;
        let workspace = Workspace {
            // What one session printed is nothing for another to find.
            spill: setup.workspace.spill.join(identity.agent.to_string()),
            ..Workspace::clone(&setup.workspace)
        };
        let setup = Setup { workspace: Arc::new(workspace), ..setup };
        let (events, heard) = mpsc::channel(EVENTS);
        let (commands, told) = mpsc::channel(COMMANDS);
        let rights = Rights {
            mode,
            policy: Arc::clone(&setup.policy),
            workspace: Arc::clone(&setup.workspace),
            asker: setup.asker,
            limits: setup.limits,
        };
        let (id, stop) = (identity.agent, self.supervisor.branch());
        let machine = Machine::new(rights, seed.history.next_seq(), seed.unanswered);
        let agent =
            Agent { id, found: None, unfinished: false, handle: AgentHandle { commands }, events: heard };
        let actor = Actor {
            _living: living,
            ports: self.ports.clone(),
            setup,
            identity,
            attribution: Arc::new(Attribution {
                session: id.to_string(),
                agent: id.to_string(),
                parent: None,
                path,
            }),
            model,
            preamble,
            birth,
            history: seed.history,
            previous_reply: seed.previous_reply,
            machine,
            seen: Seen::remembered(seed.seen),
            outlet: Outlet { agent: id, events, stop: stop.clone() },
            stop,
        };
        (actor, told, agent)
    }

    fn animate(&self, actor: Actor, commands: mpsc::Receiver<Command>, agent: Agent) -> Agent {
        let unfinished = actor.machine.unfinished();
        let crashed = actor.crashed();
        self.supervisor.start_agent(actor.live(commands), crashed);
        Agent { unfinished, ..agent }
    }
}

/// Commands that may wait for the agent.
const COMMANDS: usize = 16;

/// Who is brought to life.
struct About {
    identity: Identity,
    model: String,
    mode: PermissionMode,
    path: String,
    living: Option<Living>,
}

/// What an agent begins with.
#[derive(Default)]
struct Seed {
    history: History,
    seen: Vec<SeenFile>,
    unanswered: bool,
    previous_reply: Option<String>,
}

fn last_reply(transcript: &Transcript) -> Option<String> {
    let mut replies = transcript.entries.iter().rev().filter_map(|stored| stored.entry.reply.as_ref());
    replies.next().map(|facts| facts.id.clone()).filter(|id| !id.is_empty())
}

/// Whether the transcript ends with something that the model has not answered.
fn waits(transcript: &Transcript) -> bool {
    transcript.entries.last().is_some_and(|last| unanswered(last.entry.kind, last.entry.reply.as_ref()))
}

/// The history as it was, if that is what is stored.
fn restore(transcript: &Transcript) -> Result<History, StoreError> {
    let mut history = History::default();
    let mut whose = None;
    for stored in &transcript.entries {
        if whose.replace(stored.agent).is_some_and(|before| before != stored.agent) {
            history = history.forked();
        }
        let damaged = |seq| StoreError::Damaged { agent: stored.agent, seq };
        history.restore(&stored.entry).map_err(damaged)?;
    }
    let mine = whose.is_none_or(|agent| agent == transcript.session.agent);
    Ok(if mine { history } else { history.forked() })
}
