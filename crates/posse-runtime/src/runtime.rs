//! The library's entrance: agents are started, resumed and forked here.

use std::sync::Arc;

use posse_protocol::{AgentId, PermissionMode, RealmId};
use uuid::Uuid;

use crate::agent::actor::{Actor, Identity};
use crate::history::cache_ttl::Reuse;
use crate::live::registry::House;
use crate::prompt::advertised::Offer;
use crate::session::assemble::{About, Seed};
use crate::supervise::Living;
use crate::toolset::skill::call::loadable;
use crate::toolset::startable;
use posse_port::Ports;
use posse_port::model::{Effort, Preamble};
use posse_port::store::{Birth, Epoch, Taken};

use crate::history::restore::{last_reply, restore, waits};
use crate::live::handle::Agent;
use crate::live::setup::{Character, Setup};
pub(crate) use crate::session::start_error::StartError;

/// Runs agents. One for each open store: it is the one that hears what the store wakes it for.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) house: Arc<House>,
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

    /// Stops all agents as [`Command::Interrupt`](posse_protocol::Command::Interrupt) would, and waits until they have given up what they held.
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
