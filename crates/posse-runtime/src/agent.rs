//! Agents: how they are started and spoken to.

mod actor;
mod aside;
mod back;
mod branch;
mod bring;
mod build;
mod fare;
mod history;
mod inquiry;
mod outlet;
mod recover;
mod reuse;
mod step;

use std::sync::Arc;

use posse_protocol::{AgentId, Command, EntryKind, Event, PermissionMode, RealmId};
use tokio::sync::mpsc;
use uuid::Uuid;

pub use self::aside::{AsideError, Hear};
pub(crate) use self::back::{is_mate, terms};
pub(crate) use self::branch::Branch;
pub(crate) use self::bring::{Joins, Plan};
pub use self::inquiry::{Desk, Findings, Inquiry};
pub(crate) use self::recover::facts as run_facts;

use self::actor::{Actor, Identity};
use self::build::{About, Seed};
use self::history::History;
use self::reuse::Reuse;
use self::step::unanswered;

use crate::govern::Budget;
use crate::skill::call::loadable;
use crate::spawn::Spawning;
use crate::spawn::house::House;
use crate::spawn::offer::Offer;
use crate::spawn::tool::startable;
use crate::supervise::Living;
use posse_permission::Policy;
use posse_port::Ports;
use posse_port::model::{Effort, Preamble, Thinking};
use posse_port::store::{Birth, Epoch, Session, StoreError, StoredEntry, Taken, Transcript};
use posse_port::tool::{Toolbox, Workspace};

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
    /// How it may start others.
    pub spawning: Spawning,
    /// Whether words that come while it works join its run at the next tool boundary. If not, each gets
    /// a run of its own.
    pub joins: bool,
}

/// How far a run may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Model calls of the agent itself in a run.
    pub turns: Option<u32>,
    /// What the session may use from now on, all agents together: no call is made that could exceed it.
    pub budget: Budget,
    /// The longest reply, in tokens.
    pub max_tokens: u32,
    /// How large a prompt may be, in tokens, before a summary takes its place: by itself near the end of
    /// the model's window.
    pub compact_at: Option<u64>,
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
    /// The names of its tools.
    pub tools: Vec<String>,
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
    /// A way to somebody, and where it leads.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Command>) {
        let (commands, told) = mpsc::channel(build::COMMANDS);
        (Self { commands }, told)
    }

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
    /// Where it worked cannot be worked in.
    #[error("{0}")]
    Place(String),
    /// The session was held in another provider's words.
    #[error("the session was held with the {stored} API, which is spelt otherwise than {asked}'s")]
    OtherDialect {
        /// What it was held in.
        stored: String,
        /// What was asked for.
        asked: &'static str,
    },
}

/// Runs agents. One for each open store: it is the one that hears what the store wakes it for.
#[derive(Clone)]
pub struct Runtime {
    house: Arc<House>,
}

impl Runtime {
    /// A runtime that reaches the outside through `ports`.
    pub fn new(ports: Ports) -> Self {
        Self {
            house: Arc::new(House::new(ports)),
        }
    }

    pub(crate) fn house(&self) -> &Arc<House> {
        &self.house
    }

    /// A new root agent, in a realm of its own. It is in the store from its first prompt on.
    pub fn start(&self, character: &Character, setup: Setup) -> Agent {
        let Character {
            model,
            system,
            thinking,
            effort,
            mode,
        } = character.clone();
        let id = AgentId::from(Uuid::now_v7());
        let identity = Identity {
            realm: RealmId::from(id.uuid()),
            agent: id,
            epoch: Epoch(1),
        };
        let types = startable(&setup);
        let tools = self.house.tools_of_root(id, &setup, &types);
        let told = Offer::of(&tools, &types, &loadable(&setup)).fingerprint();
        let preamble = Preamble {
            model: model.clone(),
            tools: tools.specs(),
            system,
            thinking,
            effort,
        };
        let ports = &self.house.ports;
        let birth = Birth {
            origin: None,
            path: ROOT_PATH.into(),
            model,
            dialect: ports.model.dialect().to_owned(),
            mode,
            cwd: setup.workspace.cwd.clone(),
            preamble: ports.model.preamble(&preamble),
            segments: Vec::new(),
        };
        self.bear((identity, told), birth, effort, Seed::default(), setup)
    }

    /// Goes on with an agent that the store has. What its process left open when it died is settled
    /// first: a call whose outcome is unknown is answered so, and never run again. Its sub-agents that
    /// had not ended go on in the background.
    pub async fn resume(
        &self,
        id: AgentId,
        mode: Option<PermissionMode>,
        setup: Setup,
    ) -> Result<Agent, StartError> {
        let Some(living) = self.house.supervisor.room_for(id) else {
            return Err(StartError::AlreadyHere { agent: id });
        };
        let taken = self.house.ports.store.take(id).await?;
        let epoch = taken.epoch;
        match self.go_on(taken, living, mode, setup).await {
            Ok(agent) => Ok(agent),
            Err(error) => {
                self.house.leave(id);
                // If it fails, others find out by themselves that this process has ended.
                let _ = self.house.ports.store.release(id, epoch).await;
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
    ) -> Result<Agent, StartError> {
        self.house.same_dialect(&taken.transcript)?;
        let session = taken.transcript.session.clone();
        let about = About {
            identity: Identity {
                realm: session.realm,
                agent: session.agent,
                epoch: taken.epoch,
            },
            model: session.model.clone(),
            mode: mode.unwrap_or(session.mode),
            effort: None,
            path: session.path.clone(),
            living: Some(living),
            preamble: taken.transcript.preamble.clone(),
            segments: taken.transcript.segments.clone(),
            birth: None,
            told: session.types,
            terms: None,
        };
        let seed = Seed::of(&taken)?;
        let (mut actor, commands, agent) = self.house.assemble_root(about, seed, setup);
        let below = self.house.adopt(&actor.tree).await?;
        actor.machine.set_live(self.house.live(session.agent));
        actor.machine.fall_asleep();
        if let Err(error) = self.settle(&mut actor, taken, mode).await {
            for (adopted, _) in below {
                adopted.give_back().await;
            }
            return Err(error);
        }
        self.house.raise(&actor.tree);
        let tree = Arc::clone(&actor.tree);
        let agent = self.house.animate_root(actor, commands, agent);
        below
            .into_iter()
            .for_each(|adopted| self.house.animate(adopted));
        self.house.expect_workers(&tree);
        Ok(Agent {
            found: Some(session),
            ..agent
        })
    }

    async fn settle(
        &self,
        actor: &mut Actor,
        taken: Taken,
        mode: Option<PermissionMode>,
    ) -> Result<(), StartError> {
        let mut settle = self.house.recover(actor, taken).await?;
        settle.commit.mode = mode;
        actor.settle(settle).await?;
        Ok(actor.look_for_mail().await?)
    }

    /// A new root agent whose history begins with all of another's, which stays as it is. It lives in
    /// the same realm: what is shared is shared on disk too.
    pub async fn fork_session(
        &self,
        id: AgentId,
        mode: Option<PermissionMode>,
        setup: Setup,
    ) -> Result<Agent, StartError> {
        let mut transcript = self.house.ports.store.read(id).await?;
        self.house.same_dialect(&transcript)?;
        if !transcript.open_calls.is_empty() {
            // Whoever asked for these tools gets their answers; the copy begins before it did.
            transcript.entries.pop();
        }
        let (history, session) = (restore(&transcript)?, transcript.session.clone());
        let segments = history.segments(id, transcript.segments.clone());
        let history = history.forked();
        let birth = Birth {
            origin: None,
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
            reuse: Reuse::of(&transcript),
            history,
            ..Seed::default()
        };
        let agent = AgentId::from(Uuid::now_v7());
        let identity = Identity {
            realm: session.realm,
            agent,
            epoch: Epoch(1),
        };
        let agent = self.bear((identity, session.types), birth, None, seed, setup);
        Ok(Agent {
            found: Some(session),
            ..agent
        })
    }

    /// Stops all agents as [`Command::Interrupt`] would, and waits until they have given up what they held.
    pub async fn shut_down(&self) {
        self.house.supervisor.stop().await;
    }

    fn bear(
        &self,
        (identity, told): (Identity, Option<u64>),
        birth: Birth,
        effort: Option<Effort>,
        seed: Seed,
        setup: Setup,
    ) -> Agent {
        let about = About {
            identity,
            model: birth.model.clone(),
            mode: birth.mode,
            effort,
            path: birth.path.clone(),
            living: self.house.supervisor.room_for(identity.agent),
            preamble: birth.preamble.clone(),
            segments: birth.segments.clone(),
            birth: Some(Box::new(birth)),
            told,
            terms: None,
        };
        let (actor, commands, agent) = self.house.assemble_root(about, seed, setup);
        self.house.animate_root(actor, commands, agent)
    }
}

/// The path of a main agent.
const ROOT_PATH: &str = "/main";

fn last_reply(transcript: &Transcript) -> Option<String> {
    let is_new = |stored: &&StoredEntry| stored.entry.kind != EntryKind::Compaction;
    // What tells of another agent's answer has facts too, and is no reply.
    let replied = |stored: &&StoredEntry| stored.entry.kind != EntryKind::Prompt;
    let entries = transcript
        .entries
        .iter()
        .rev()
        .take_while(is_new)
        .filter(replied);
    let mut replies = entries.filter_map(|stored| stored.entry.reply.as_ref());
    replies
        .next()
        .map(|facts| facts.id.clone())
        .filter(|id| !id.is_empty())
}

/// Whether the transcript ends with something that the model has not answered.
fn waits(transcript: &Transcript) -> bool {
    transcript
        .entries
        .last()
        .is_some_and(|last| unanswered(last.entry.kind, last.entry.reply.as_ref()))
}

/// The history as it was, if that is what is stored.
fn restore(transcript: &Transcript) -> Result<History, StoreError> {
    let mut history = History::default();
    let mut whose = None;
    for stored in &transcript.entries {
        if whose
            .replace(stored.agent)
            .is_some_and(|before| before != stored.agent)
        {
            history = history.forked();
        }
        let damaged = |seq| StoreError::Damaged {
            agent: stored.agent,
            seq,
        };
        history.restore(&stored.entry).map_err(damaged)?;
    }
    let mine = whose.is_none_or(|agent| agent == transcript.session.agent);
    Ok(if mine { history } else { history.forked() })
}
