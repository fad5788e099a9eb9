//! Assembles an agent from its parts and starts it.
//!
//! Assembling is apart from starting so that what a dead process left open can be settled in
//! between, before the agent does anything of its own.

use std::iter::successors;
use std::sync::Arc;

use posse_permission::Rights;
use posse_port::model::{Attribution, Effort, Encoded, Lineage, Model, ModelChoice, Preamble};
use posse_port::store::{Birth, Segment, StoreError, Taken, Transcript};
use posse_port::tool::{KnownFiles, Toolbox, Workspace};
use posse_protocol::{AgentId, Command, PermissionMode};
use tokio::sync::mpsc;

use crate::agent::actor::model::new_model;
use crate::agent::actor::{
    Actor, Advertised, Identity, Inbox, Prefix, Role, Spending, SubAgent, Teammate, depart,
};
use crate::agent::events::EventSink;
use crate::agent::lifecycle::Lifecycle;
use crate::agent::step;
pub(crate) use crate::agent::step::{AgentHooks, Authority, Life, Machine};
use crate::definition::output_schema::OutputSchema;
use crate::definition::terms::Terms;
use crate::govern::{Account, Budgets, RunSlots};
use crate::history::History;
use crate::history::cache_ttl::CacheTtl;
use crate::history::fork_point::ForkPoint;
use crate::history::request_size::{RequestSize, last_request};
use crate::history::restore::{current_preamble, last_reply, restore, waits};
use crate::live::channels::Channels;
use crate::live::handle::{Agent, AgentHandle, COMMANDS, CommandSender};
use crate::live::registry::{LiveAgent, Stop};
use crate::live::servers::{AgentServers, ServerWatch, SessionServers};
use crate::live::session::Session;
use crate::live::session_events::SessionEvents;
use crate::live::setup::Setup;
use crate::live::wakeup::Wakeup;
use crate::prompt;
use crate::prompt::advertised::Offer;
use crate::session::factory::Factory;
use crate::session::servers;
use crate::session::start_error::StartError;
use crate::supervise::AliveGuard;

/// What every agent is assembled from, whether it is new or read from the store.
pub(crate) struct AgentParts {
    /// Identity in the store.
    pub(crate) identity: Identity,
    /// Name of the model.
    pub(crate) model: String,
    /// Permission mode that it starts with.
    pub(crate) mode: PermissionMode,
    /// Reasoning effort, if it is known.
    pub(crate) effort: Option<Effort>,
    /// Position in the session, such as `/main/review-3`.
    pub(crate) path: String,
    /// Keeps others in this process from starting the same agent.
    pub(crate) alive: Option<AliveGuard>,
    /// Encoded system prompt and tools: the same bytes until it gets another model.
    pub(crate) preamble: Encoded,
    /// The same as at its birth.
    pub(crate) born: Encoded,
    /// Parts of other agents' histories that its own history begins with.
    pub(crate) segments: Vec<Segment>,
    /// Stored with the first step; none if the store has the agent already.
    pub(crate) birth: Option<Box<Birth>>,
    /// Terms that were agreed with a sub-agent.
    pub(crate) terms: Option<Box<Terms>>,
    /// Fingerprint of the agent types, skills and servers that its model was told of last.
    pub(crate) told: Option<u64>,
    /// What the preamble of a new agent offers.
    pub(crate) offer: Option<Offer>,
    /// What the preamble was made from, if it is made anew before the birth.
    pub(crate) unborn: Option<Box<Preamble>>,
}

impl AgentParts {
    /// Returns the parts of an agent that is not in the store yet.
    pub(crate) fn born(identity: Identity, birth: Birth, alive: Option<AliveGuard>) -> Self {
        Self {
            identity,
            model: birth.model.clone(),
            mode: birth.mode,
            effort: None,
            path: birth.path.clone(),
            alive,
            preamble: birth.preamble.clone(),
            born: birth.preamble.clone(),
            segments: birth.segments.clone(),
            birth: Some(Box::new(birth)),
            terms: None,
            told: None,
            offer: None,
            unborn: None,
        }
    }

    /// Returns the parts of an agent that was taken from the store.
    pub(crate) fn taken(taken: &Taken, alive: Option<AliveGuard>, model: &dyn Model) -> Self {
        let Transcript {
            record,
            preamble,
            segments,
            ..
        } = &taken.transcript;
        let current = current_preamble(&taken.transcript);
        let choice = model.choice(current).unwrap_or_else(|| ModelChoice {
            model: record.model.clone(),
            effort: None,
        });
        Self {
            identity: Identity {
                realm: record.realm,
                agent: record.agent,
                epoch: taken.epoch,
            },
            model: choice.model,
            mode: record.mode,
            effort: choice.effort,
            path: record.path.clone(),
            alive,
            preamble: current.clone(),
            born: preamble.clone(),
            segments: segments.clone(),
            birth: None,
            terms: None,
            told: record.types,
            offer: None,
            unborn: None,
        }
    }
}

/// State that an agent begins with. The default is that of an agent without a history.
#[derive(Default)]
pub(crate) struct Seed {
    /// Everything that was said.
    pub(crate) history: History,
    /// Files it has read, with the hashes that edits are checked against.
    pub(crate) seen: KnownFiles,
    /// True if the history ends with a message that the model has not answered.
    pub(crate) unanswered: bool,
    /// The provider's id of the last reply, if there is one.
    pub(crate) previous_reply: Option<String>,
    /// Size of the last request, in bytes and in tokens.
    pub(crate) last_request: RequestSize,
    /// What it can read from the prompt cache, and until when.
    pub(crate) cache_ttl: CacheTtl,
    /// The parent's fork point, if the agent is a fork that has no entry of its own yet.
    pub(crate) opening: Option<Arc<ForkPoint>>,
}

impl Seed {
    /// Returns the state of an agent that was taken from the store.
    pub(crate) fn of(taken: &Taken, model: &dyn Model) -> Result<Self, StoreError> {
        let Taken {
            transcript, seen, ..
        } = taken;
        Ok(Self {
            history: restore(transcript, model)?,
            seen: KnownFiles::remembered(seen.clone()),
            unanswered: waits(transcript),
            previous_reply: last_reply(transcript),
            last_request: RequestSize {
                // This process has made no call yet: the agent queues for a run slot as a new one
                // does.
                begun: false,
                ..last_request(transcript)
            },
            cache_ttl: CacheTtl::of(transcript),
            opening: None,
        })
    }

    /// Returns the state of a fork. One that works in a checkout of its own (`elsewhere`) knows
    /// none of the files there.
    pub(crate) fn grown(branch: Arc<ForkPoint>, elsewhere: bool) -> Self {
        Self {
            history: branch.history.clone(),
            seen: if elsewhere {
                KnownFiles::default()
            } else {
                branch.seen.fork()
            },
            unanswered: false,
            previous_reply: branch.previous_reply.clone(),
            last_request: branch.last_request,
            cache_ttl: branch.cache_ttl,
            opening: Some(branch),
        }
    }
}

/// What a sub-agent has besides the parts that every agent has.
pub(crate) struct SubAgentParts {
    /// Session that it belongs to.
    pub(crate) session: Arc<Session>,
    /// Its run, as others see it.
    pub(crate) sub: SubAgent,
    /// Number of agents above it.
    pub(crate) depth: u32,
    /// Its rights, derived from its parent's.
    pub(crate) rights: Rights,
    /// Its account, below its parent's.
    pub(crate) account: Account,
    /// Its tools.
    pub(crate) tools: Toolbox,
    /// Maximum number of model calls in a run.
    pub(crate) turns: Option<u32>,
    /// Schema of its answer.
    pub(crate) output_schema: Option<OutputSchema>,
    /// Name shown to people who are asked for approval.
    pub(crate) name: String,
    /// Its state as a member of a team, if it is a teammate.
    pub(crate) teammate: Option<Teammate>,
    /// Its servers.
    pub(crate) servers: Option<AgentServers>,
}

/// An agent that is assembled and not started, with the receiving end of its commands.
pub(crate) type Assembled = (Actor, mpsc::Receiver<Box<Command>>);

/// Everything in which main agents and sub-agents differ.
struct RoleParts {
    session: Arc<Session>,
    life: Life,
    rights: Rights,
    account: Account,
    stop: Stop,
    wakeup: Arc<Wakeup>,
    role: Role,
    output_schema: Option<OutputSchema>,
    name: Option<String>,
    servers: Option<AgentServers>,
}

/// Checks that a transcript was encoded for the provider that this process uses: its stored bytes
/// are sent as they are.
pub(crate) fn same_dialect(
    factory: &Arc<Factory>,
    transcript: &Transcript,
) -> Result<(), StartError> {
    let (stored, asked) = (transcript.dialect.clone(), factory.ports.model.dialect());
    if stored == asked {
        Ok(())
    } else {
        Err(StartError::OtherDialect { stored, asked })
    }
}

/// Assembles a main agent, and the handle for its front end.
pub(crate) fn assemble_root(
    factory: &Arc<Factory>,
    parts: AgentParts,
    seed: Seed,
    setup: Setup,
    tools: Toolbox,
) -> (Actor, mpsc::Receiver<Box<Command>>, Agent) {
    let Identity {
        realm, agent: id, ..
    } = parts.identity;
    let (events, heard) = SessionEvents::new(id, factory.registry.viewers.clone());
    let (commands, told) = mpsc::channel(COMMANDS);
    let budgets = Budgets {
        subtree: setup.limits.budget,
        ..Budgets::default()
    };
    let account = Account::session(budgets, factory.ports.clock.now());
    let workspace = own_spill(&setup.workspace, id);
    let rights = Rights::root(
        parts.mode,
        Arc::clone(&setup.policy),
        Arc::clone(&workspace),
    );
    let session = Arc::new(Session {
        rights: rights.clone(),
        root: id,
        realm,
        slots: RunSlots::new(setup.spawning.running),
        account: account.clone(),
        setup: setup.clone(),
        events,
        preambles: std::sync::Mutex::default(),
        attended: true.into(),
        shown: None,
        raising: 0.into(),
        notices: std::sync::Mutex::default(),
        takes_over: usize::MAX,
        is_worker: false,
        expects: false.into(),
        halted: std::sync::OnceLock::new(),
        message_row: Arc::default(),
        servers: SessionServers::default(),
        prompt: std::sync::Mutex::default(),
    });
    let servers = servers::connect(factory, &session, id, &rights, (None, None));
    if let Some(servers) = &servers {
        session.servers.set_of_main(servers);
    }
    let stop = Stop::new(factory.supervisor.branch());
    let who = LiveAgent {
        session: Arc::clone(&session),
        parent: None,
        path: parts.path.clone(),
        depth: 0,
        model: parts.model.clone(),
        effort: parts.effort,
        rights: rights.clone(),
        account: account.clone(),
        commands: CommandSender::Main(commands.downgrade()),
        stop: stop.clone(),
        run: None,
        fork: false,
        teammate: None,
        skill_hooks: Arc::default(),
        servers: servers.clone(),
    };
    let channels = setup.spawning.servers.channels();
    let channels = servers
        .as_ref()
        .and_then(|servers| Channels::open(id, servers, channels));
    if let Some(channels) = channels {
        let events = session.events.clone();
        let served = channels.serve(commands.downgrade(), events, stop.token.child_token());
        factory.supervisor.start_errand(served);
    }
    // `enter` refuses only below a frozen parent, and a main agent has no parent.
    let wakeup = factory.registry.enter(id, who).unwrap_or_default();
    let life = Life::Root {
        joins: setup.joins,
        then: match parts.mode {
            PermissionMode::Plan => PermissionMode::Default,
            mode => mode,
        },
    };
    let plans = parts.mode == PermissionMode::Plan;
    let names = tools.names().into_iter().map(str::to_owned).collect();
    let setup = Setup {
        tools,
        workspace,
        ..setup
    };
    let role = Role::Main { leads: true };
    let (output_schema, name) = (setup.output_schema.clone(), None);
    let kind = RoleParts {
        session,
        life,
        rights,
        account,
        stop,
        wakeup,
        role,
        output_schema,
        name,
        servers,
    };
    let session_account = kind.account.clone();
    let watch = ServerWatch::new(kind.servers.as_ref(), &kind.rights, &factory.ports.clock);
    let mut actor = assemble(factory, parts, seed, setup, kind);
    if plans {
        actor.machine.tell(prompt::plan::begun());
    }
    let handle = AgentHandle { commands };
    let agent = Agent {
        id,
        found: None,
        unfinished: false,
        tools: names,
        servers: watch,
        account: session_account,
        handle,
        events: heard,
    };
    (actor, told, agent)
}

/// Assembles a sub-agent. Returns none if its parent is frozen and may start nothing.
pub(crate) fn assemble_sub(
    factory: &Arc<Factory>,
    parts: AgentParts,
    seed: Seed,
    below: SubAgentParts,
) -> Option<Assembled> {
    let SubAgentParts {
        session,
        sub,
        depth,
        rights,
        account,
        tools,
        turns,
        output_schema,
        name,
        teammate,
        servers,
    } = below;
    let id = parts.identity.agent;
    let (commands, told) = mpsc::channel(COMMANDS);
    let stop = Stop::new(factory.supervisor.branch());
    let who = LiveAgent {
        session: Arc::clone(&session),
        parent: Some(sub.parent),
        path: parts.path.clone(),
        depth,
        model: parts.model.clone(),
        effort: parts.effort,
        rights: rights.clone(),
        account: account.clone(),
        commands: CommandSender::Sub(commands),
        stop: stop.clone(),
        run: Some(Arc::clone(&sub.run)),
        fork: parts
            .terms
            .as_ref()
            .is_some_and(|terms| terms.fork.is_some()),
        teammate: teammate.as_ref().map(|it| Arc::clone(&it.team_identity)),
        skill_hooks: Arc::default(),
        servers: servers.clone(),
    };
    // Entered before anything of it is durable: a parent that is frozen meanwhile refuses it here,
    // and one that is frozen later finds it and stops it.
    let wakeup = factory.registry.enter(id, who)?;
    let mut setup = Setup {
        tools,
        workspace: Arc::clone(rights.workspace()),
        ..session.setup.clone()
    };
    // The session's limit of turns is the main agent's; a sub-agent has that of its own terms.
    setup.limits.turns = turns;
    // The front end may have left since the session began.
    setup.approver = session.approver();
    let then = parts
        .terms
        .as_ref()
        .and_then(|terms| terms.teammate.as_ref()?.then);
    let (life, role) = match teammate {
        Some(teammate) => (
            Life::Teammate { then },
            Role::Teammate(Box::new(sub), Box::new(teammate)),
        ),
        None => (Life::Sub, Role::Sub(Box::new(sub))),
    };
    let name = Some(name);
    let kind = RoleParts {
        session,
        life,
        rights,
        account,
        stop,
        wakeup,
        role,
        output_schema,
        name,
        servers,
    };
    Some((assemble(factory, parts, seed, setup, kind), told))
}

/// Returns whose share of the account the calls of an agent use. Agents below a teammate use its.
fn lineage(factory: &Factory, session: &Session, role: &Role, path: &str) -> Lineage {
    let own = role
        .teammate()
        .map(|teammate| Arc::clone(&teammate.team_identity));
    let above = successors(role.sub_agent().map(|sub| sub.parent), |agent| {
        factory.registry.live_agent(*agent)?.parent
    });
    let mut teams = above.filter_map(|agent| factory.registry.live_agent(agent)?.teammate.clone());
    Lineage {
        session: session.root.to_string(),
        team: own
            .or_else(|| teams.next())
            .map(|team_identity| team_identity.team.to_string()),
        subtree: Lineage::subtree_of(path).to_owned(),
    }
}

/// Puts the parts together. Everything that differs between kinds of agents is in `kind`.
fn assemble(
    factory: &Arc<Factory>,
    parts: AgentParts,
    seed: Seed,
    setup: Setup,
    kind: RoleParts,
) -> Actor {
    let AgentParts {
        identity,
        model,
        path,
        alive,
        preamble,
        born,
        effort,
        segments,
        birth,
        told,
        offer,
        unborn,
        terms,
        ..
    } = parts;
    let RoleParts {
        session,
        life,
        rights,
        account,
        stop,
        wakeup,
        role,
        output_schema,
        name,
        servers,
    } = kind;
    let rights = Authority {
        agent: identity.agent,
        rights,
        approver: setup.approver,
        name,
        limits: setup.limits,
        hooks: AgentHooks::of(role.sub_agent().map(|sub| sub.run.facts.agent_type.clone())),
    };
    // A fork has its parent's system prompt, which may be older than this process.
    let is_new = birth.is_some() && seed.history.encoded_entries().is_empty();
    if let Some(servers) = servers.as_ref().filter(|_| birth.is_none()) {
        servers.begin_with(&born.bytes);
    }
    let files = session.setup.spawning.instructions.as_ref();
    let begins_with = files
        .filter(|_| is_new)
        .map(|files| Arc::clone(&files.at_start));
    let mut machine = Machine::new(rights, life, seed.history.next_seq(), seed.unanswered);
    machine.bind(output_schema);
    machine.inherits(!seed.history.encoded_entries().is_empty());
    if preamble != born {
        let model = model.clone();
        step::model::resume(
            &mut machine,
            new_model(&ModelChoice { model, effort }, false),
        );
    }
    let lineage = lineage(factory, &session, &role, &path);
    let attribution = Attribution {
        session: session.root.to_string(),
        agent: identity.agent.to_string(),
        parent: role.sub_agent().map(|sub| sub.parent.to_string()),
        path,
    };
    let sink = EventSink {
        agent: identity.agent,
        audience: session.events.audience(identity.agent),
        events: session.events.clone(),
        stop: stop.token.clone(),
        below: !role.is_main() && session.shown != Some(identity.agent),
        waits: Arc::default(),
    };
    Actor {
        alive,
        ports: factory.ports.clone(),
        supervisor: factory.supervisor.clone(),
        registry: Arc::clone(&factory.registry),
        lifecycle: Arc::clone(factory) as Arc<dyn Lifecycle>,
        setup,
        identity,
        role,
        terms,
        birth,
        prefix: Prefix {
            attribution: Arc::new(attribution),
            lineage,
            preamble,
            born,
            unborn,
            switch: None,
            segments,
            history: seed.history,
            previous_reply: seed.previous_reply,
            cache_ttl: seed.cache_ttl,
            last_request: seed.last_request,
            compaction_failed: false,
            fork_point: None,
            opening: seed.opening,
        },
        spending: Spending {
            account,
            model,
            permit: None,
            warmup: None,
            told_queued: false,
            output_cap: None,
            owed: Vec::new(),
        },
        inbox: Inbox {
            wakeup,
            last: 0,
            waits: false,
        },
        machine,
        known_files: seed.seen,
        advertised: Advertised::new((told, offer), servers, begins_with),
        tasks: std::collections::BTreeSet::new(),
        sink,
        stop,
        session,
    }
}

/// Starts a main agent, and notes in its handle whether it has something to continue.
pub(crate) fn start_root(
    factory: &Arc<Factory>,
    actor: Actor,
    commands: mpsc::Receiver<Box<Command>>,
    agent: Agent,
) -> Agent {
    // Asked before the actor is moved into its task.
    let unfinished = actor.machine.unfinished();
    start(factory, (actor, commands));
    Agent {
        unfinished,
        ..agent
    }
}

/// Starts an agent. If mail has arrived that it did not process when it ends, it is revived.
pub(crate) fn start(factory: &Arc<Factory>, (actor, commands): Assembled) {
    // Prepared in advance: after a panic there is no actor left to ask.
    let (crashed, agent) = (depart::crashed(&actor), actor.identity.agent);
    let lifecycle = Arc::clone(&actor.lifecycle);
    // A future has room for what it is given besides what it makes of it.
    let actor = Box::new(actor);
    let life = async move {
        if actor.live(commands).await {
            // Mail that came after its last look found an agent that was still registered, so
            // nobody has revived it.
            lifecycle.mail_for(agent);
        }
    };
    factory.supervisor.start_agent(life, crashed);
}

/// Returns the same workspace with an overflow directory of the session's own: one session must
/// not find what another has printed.
pub(crate) fn own_spill(workspace: &Workspace, agent: AgentId) -> Arc<Workspace> {
    let spill = workspace.spill.join(agent.to_string());
    Arc::new(Workspace {
        spill,
        ..workspace.clone()
    })
}
