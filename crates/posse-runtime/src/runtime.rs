//! Entry point of the library: starts, resumes and forks agents.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::definition::agent_type::Definition;
use crate::session::assemble;
use crate::session::branch::CopiedHistory;
use crate::session::dispatch;
use crate::session::factory::Factory;
use crate::session::factory::ToolsOf;
use crate::session::recover;
use crate::session::revive;
use crate::session::session_hooks::SessionHooks;
use crate::session::side_query::{self, NoteTools, SideAnswer, SideQueryOptions};
use crate::session::team::declared;
use crate::session::team::host::{self, Hosted, Hosting};
use crate::session::team::workers;
use posse_permission::Policy;
use posse_protocol::{AgentId, Command, PermissionMode, RealmId};
use uuid::Uuid;

use crate::agent::actor::{Actor, Identity};
use crate::history::cache_ttl::CacheTtl;
use crate::live::setup::{loadable, startable};
use crate::prompt::advertised::Offer;
use crate::session::assemble::{AgentParts, Seed};
use crate::supervise::AliveGuard;
use crate::toolset::Toolset;
use posse_port::Ports;
use posse_port::model::Preamble;
use posse_port::store::{Birth, Epoch, Taken};
use posse_port::tool::Toolbox;

use crate::agent::actor::depart;
use crate::history::restore::{current_preamble, last_reply, restore, waits};
use crate::live::handle::{Agent, TellError};
use crate::live::setup::{AgentProfile, Setup};
use crate::live::subscription::Subscription;
pub(crate) use crate::session::start_error::StartError;

/// Runs agents. There is one for each open store, whose wake-ups it handles.
#[derive(Clone)]
pub struct Runtime {
    factory: Arc<Factory>,
}

impl Runtime {
    /// Returns a runtime that reaches the outside through `ports`.
    pub fn new(ports: Ports) -> Self {
        Self {
            factory: Arc::new(Factory::new(ports, Box::new(Toolset))),
        }
    }

    /// Starts a new main agent, in a realm of its own. It is stored with its first prompt.
    pub fn start(&self, profile: &AgentProfile, setup: Setup) -> Agent {
        self.start_as(AgentId::from(Uuid::now_v7()), profile, setup)
    }

    /// Starts a new main agent with this ID, which the store must not have.
    pub fn start_as(&self, id: AgentId, profile: &AgentProfile, setup: Setup) -> Agent {
        let AgentProfile {
            model,
            system,
            thinking,
            effort,
            mode,
        } = profile.clone();
        let identity = Identity {
            realm: RealmId::from(id.uuid()),
            agent: id,
            epoch: Epoch(1),
        };
        let types = startable(&setup);
        let tools = self.factory.tools.for_agent(
            &self.factory,
            id,
            &setup,
            of_main(&types, &model, &setup),
        );
        let offer = Offer::of(&tools, &types, &loadable(&setup));
        let preamble = Preamble {
            model: model.clone(),
            tools: tools.specs(),
            system,
            thinking,
            effort,
        };
        let ports = &self.factory.ports;
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
        let parts = AgentParts {
            effort,
            told: offer.fingerprint(),
            offer: Some(offer),
            unborn: Some(Box::new(preamble)),
            ..AgentParts::born(identity, birth, self.factory.supervisor.room_for(id))
        };
        self.begin(parts, Seed::default(), setup, tools)
    }

    /// Resumes a stored agent. What its process left open when it died is settled first: a call
    /// whose outcome is unknown is reported as such, and never run again. Its sub-agents that had
    /// not ended continue in the background.
    pub async fn resume(
        &self,
        id: AgentId,
        mode: Option<PermissionMode>,
        setup: Setup,
    ) -> Result<Agent, StartError> {
        let Some(alive) = self.factory.supervisor.room_for(id) else {
            return Err(StartError::AlreadyHere { agent: id });
        };
        let taken = self.factory.ports.store.take(id).await?;
        let epoch = taken.epoch;
        match self.go_on(taken, alive, mode, setup).await {
            Ok(agent) => Ok(agent),
            Err(error) => {
                self.factory.registry.leave(id);
                // The error is dropped: if this fails, the lease runs out and others can take the
                // agent.
                let _ = self.factory.ports.store.release(id, epoch).await;
                Err(error)
            }
        }
    }

    /// Assembles and starts a main agent that was taken from the store.
    async fn go_on(
        &self,
        taken: Taken,
        alive: AliveGuard,
        mode: Option<PermissionMode>,
        setup: Setup,
    ) -> Result<Agent, StartError> {
        assemble::same_dialect(&self.factory, &taken.transcript)?;
        let record = taken.transcript.record.clone();
        let parts = AgentParts {
            mode: mode.unwrap_or(record.mode),
            ..AgentParts::taken(&taken, Some(alive), &*self.factory.ports.model)
        };
        let tools = self.main_tools(record.agent, &parts.model, &setup);
        // Before the inbox is read: mail that comes in between is then not missed.
        dispatch::start(&self.factory);
        let seed = Seed::of(&taken, &*self.factory.ports.model)?;
        let (mut actor, commands, agent) =
            assemble::assemble_root(&self.factory, parts, seed, setup, tools);
        // Taken up before the main agent is settled, so that it counts those that continue.
        let below = revive::adopt(&self.factory, &actor.session).await?;
        actor
            .machine
            .set_live(self.factory.registry.live(record.agent));
        // A resumed session does nothing until a person says so.
        actor.machine.mute();
        if let Err(error) = self.settle(&mut actor, taken, mode).await {
            for (adopted, _) in below {
                depart::give_back(adopted).await;
            }
            return Err(error);
        }
        declared::start_declared_members(&self.factory, &actor.session);
        let session = Arc::clone(&actor.session);
        let agent = assemble::start_root(&self.factory, actor, commands, agent);
        below
            .into_iter()
            .for_each(|adopted| assemble::start(&self.factory, adopted));
        workers::expect_workers(&self.factory, &session);
        Ok(Agent {
            found: Some(record),
            ..agent
        })
    }

    /// Settles what the last process left open, and reads the inbox.
    async fn settle(
        &self,
        actor: &mut Actor,
        taken: Taken,
        mode: Option<PermissionMode>,
    ) -> Result<(), StartError> {
        let mut settle = recover::recover(&self.factory, actor, taken).await?;
        settle.commit.mode = mode;
        actor.settle(settle).await?;
        Ok(actor.look_for_mail().await?)
    }

    /// Starts a new main agent whose history begins with another's, which stays as it is. Both are in
    /// the same realm, because what they share is shared on disk too.
    pub async fn fork_session(
        &self,
        id: AgentId,
        copied: CopiedHistory,
        mode: Option<PermissionMode>,
        setup: Setup,
    ) -> Result<Agent, StartError> {
        let mut transcript = self.factory.ports.store.read(id).await?;
        assemble::same_dialect(&self.factory, &transcript)?;
        copied.cut(&mut transcript)?;
        let model = &*self.factory.ports.model;
        let (history, session) = (restore(&transcript, model)?, transcript.record.clone());
        // The branch has the model that the conversation had there.
        let preamble = current_preamble(&transcript).clone();
        let choice = model.choice(&preamble);
        let segments = history.segments(id, transcript.segments.clone());
        let history = history.forked();
        let birth = Birth {
            origin: None,
            path: session.path.clone(),
            model: choice.map_or_else(|| session.model.clone(), |choice| choice.model),
            dialect: transcript.dialect.clone(),
            mode: mode.unwrap_or(session.mode),
            cwd: setup.workspace.cwd.clone(),
            preamble,
            segments,
        };
        let seed = Seed {
            previous_reply: last_reply(&transcript),
            unanswered: waits(&transcript),
            cache_ttl: CacheTtl::of(&transcript),
            history,
            ..Seed::default()
        };
        let agent = AgentId::within(session.realm, Uuid::now_v7());
        let identity = Identity {
            realm: session.realm,
            agent,
            epoch: Epoch(1),
        };
        let parts = AgentParts {
            // What a cut history was told of types and skills is unknown, so it is told again.
            told: session.types.filter(|_| copied == CopiedHistory::All),
            ..AgentParts::born(identity, birth, self.factory.supervisor.room_for(agent))
        };
        let tools = self.main_tools(agent, &parts.model, &setup);
        let agent = self.begin(parts, seed, setup, tools);
        Ok(Agent {
            found: Some(session),
            ..agent
        })
    }

    /// Hosts members of a session's teams whose lead lives elsewhere. They have no more rights than
    /// `setup`, and the mode that the session's main agent has now.
    pub async fn host(&self, hosting: Hosting, setup: Setup) -> Result<Hosted, StartError> {
        host::host(&self.factory, hosting, setup).await
    }

    /// Takes up members that have become free in the sessions that are hosted here.
    pub async fn take_up_free(&self) {
        revive::take_over(&self.factory).await;
    }

    /// Returns true if another process has taken this one for dead: then it can write nothing.
    pub fn is_fenced(&self) -> bool {
        self.factory.fenced.load(Ordering::Acquire)
    }

    /// Returns the number of members of a session's teams that live here.
    pub fn members_here(&self, session: AgentId) -> usize {
        self.factory.registry.teammates(session)
    }

    /// Sends a command to an agent that lives here, at once or not at all.
    pub fn tell(&self, agent: AgentId, command: Command) -> Result<(), TellError> {
        self.factory.registry.tell(agent, command)
    }

    /// Returns the permission rules that hold for an agent now, those that a person has accepted
    /// for the session included; none if it does not live here.
    pub fn policy(&self, agent: AgentId) -> Option<Arc<Policy>> {
        self.factory.registry.policy(agent)
    }

    /// Watches agents that live here.
    pub fn watch(&self) -> Subscription {
        let (ports, supervisor) = (&self.factory.ports, &self.factory.supervisor);
        let registry = Arc::clone(&self.factory.registry);
        Subscription::new(registry, ports.clone(), supervisor.clone())
    }

    /// Returns what runs hooks of a session for events that a front end notices.
    pub fn hooks_of(&self, session: AgentId) -> SessionHooks {
        SessionHooks::new(&self.factory, session)
    }

    /// Asks an agent a question: it answers from what it knows, and its conversation and its run
    /// stay as they are.
    pub async fn ask(
        &self,
        agent: AgentId,
        question: &str,
        options: SideQueryOptions,
    ) -> Result<SideAnswer, StartError> {
        side_query::ask(&self.factory, agent, question, options).await
    }

    /// Asks for an agent's progress in a line or two.
    pub async fn progress(
        &self,
        agent: AgentId,
        options: SideQueryOptions,
    ) -> Result<SideAnswer, StartError> {
        side_query::progress(&self.factory, agent, options).await
    }

    /// Asks what of an agent's work is worth remembering. An agent that keeps notes updates them;
    /// any other only reports.
    pub async fn remember(
        &self,
        agent: AgentId,
        note_tools: NoteTools,
        options: SideQueryOptions,
    ) -> Result<SideAnswer, StartError> {
        side_query::remember(&self.factory, agent, note_tools, options).await
    }

    /// Stops all agents as [`Command::Interrupt`] would, and
    /// waits until they have released what they held.
    pub async fn shut_down(&self) {
        self.factory.supervisor.stop().await;
        self.factory.ports.servers.end().await;
    }

    /// Assembles and starts a new main agent.
    fn begin(&self, parts: AgentParts, seed: Seed, setup: Setup, tools: Toolbox) -> Agent {
        dispatch::start(&self.factory);
        let (actor, commands, agent) =
            assemble::assemble_root(&self.factory, parts, seed, setup, tools);
        assemble::start_root(&self.factory, actor, commands, agent)
    }

    /// Returns the tools of a main agent.
    fn main_tools(&self, agent: AgentId, model: &str, setup: &Setup) -> Toolbox {
        let types = startable(setup);
        let kind = of_main(&types, model, setup);
        self.factory
            .tools
            .for_agent(&self.factory, agent, setup, kind)
    }
}

/// Returns what the tools of a main agent are made from.
fn of_main<'a>(types: &'a [Arc<Definition>], model: &'a str, setup: &Setup) -> ToolsOf<'a> {
    ToolsOf {
        terms: None,
        types: Some(types),
        model,
        has_servers: setup.spawning.servers.active().next().is_some(),
    }
}

/// Path of a main agent.
const ROOT_PATH: &str = "/main";
