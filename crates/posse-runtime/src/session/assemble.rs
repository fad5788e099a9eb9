//! How an agent is put together, and brought to life.

use std::sync::Arc;

use posse_protocol::{AgentId, Command, Event, PermissionMode};
use tokio::sync::mpsc;

use crate::agent::actor::{Actor, Identity, Known, Mate, Sub};
use crate::agent::events::{EVENTS, Outlet};
pub(crate) use crate::agent::step::{Life, Machine, Rights};
use crate::definition::output_schema::Contract;
use crate::definition::terms::Terms;
use crate::govern::{Account, Budgets, Places};
use crate::history::History;
use crate::history::cache_ttl::Reuse;
use crate::history::fork_point::Branch;
use crate::history::request_size::Paid;
use crate::history::restore::restore;
use crate::history::restore::{last_reply, waits};
use crate::live::handle::COMMANDS;
use crate::live::handle::{Agent, AgentHandle};
use crate::live::registry::{House, Resident, Stop};
use crate::live::session::Tree;
use crate::live::setup::Setup;
use crate::live::wakeup::{About as Nudging, Nudge};
use crate::session::side_query::paid;
use crate::session::start_error::StartError;
use crate::session::team::host::Members;
use crate::supervise::Living;
use crate::toolset::startable;
use posse_permission::Standing;
use posse_port::model::{Attribution, Effort, Piece};
use posse_port::store::{Birth, Segment, StoreError, Taken, Transcript};
use posse_port::tool::{Seen, Toolbox, Workspace};

/// Who is brought to life.
pub(crate) struct About {
    pub(crate) identity: Identity,
    pub(crate) model: String,
    pub(crate) mode: PermissionMode,
    /// How hard it tries, if that is known.
    pub(crate) effort: Option<Effort>,
    pub(crate) path: String,
    pub(crate) living: Option<Living>,
    pub(crate) preamble: Piece,
    /// The histories of others that its own begins with.
    pub(crate) segments: Vec<Segment>,
    pub(crate) birth: Option<Box<Birth>>,
    /// What was agreed with a sub-agent.
    pub(crate) terms: Option<Box<Terms>>,
    /// The types of agents and skills that its model was told of last, as a fingerprint.
    pub(crate) told: Option<u64>,
}

/// What an agent begins with.
#[derive(Default)]
pub(crate) struct Seed {
    pub(crate) history: History,
    pub(crate) seen: Seen,
    pub(crate) unanswered: bool,
    pub(crate) previous_reply: Option<String>,
    pub(crate) paid: Paid,
    /// What it can read from the cache.
    pub(crate) reuse: Reuse,
    /// Where its parent stands, if it goes on from there.
    pub(crate) opening: Option<Arc<Branch>>,
}

impl Seed {
    /// What the store has.
    pub(crate) fn of(taken: &Taken) -> Result<Self, StoreError> {
        let Taken {
            transcript, seen, ..
        } = taken;
        Ok(Self {
            history: restore(transcript)?,
            seen: Seen::remembered(seen.clone()),
            unanswered: waits(transcript),
            previous_reply: last_reply(transcript),
            paid: Paid {
                begun: false,
                ..paid(transcript)
            },
            reuse: Reuse::of(transcript),
            opening: None,
        })
    }

    /// What a fork goes on from. Whoever works `elsewhere` knows no file there.
    pub(crate) fn grown(branch: Arc<Branch>, elsewhere: bool) -> Self {
        Self {
            history: branch.history.clone(),
            seen: if elsewhere {
                Seen::default()
            } else {
                branch.seen.fork()
            },
            unanswered: false,
            previous_reply: branch.previous_reply.clone(),
            paid: branch.paid,
            reuse: branch.reuse,
            opening: Some(branch),
        }
    }
}

/// What makes a sub-agent of an agent.
pub(crate) struct Below {
    pub(crate) tree: Arc<Tree>,
    pub(crate) sub: Sub,
    pub(crate) depth: u32,
    pub(crate) standing: Standing,
    pub(crate) account: Account,
    pub(crate) tools: Toolbox,
    pub(crate) turns: Option<u32>,
    pub(crate) contract: Option<Contract>,
    /// What a person calls it.
    pub(crate) name: String,
    /// Who it is in its team.
    pub(crate) mate: Option<Mate>,
}

/// An agent that is put together and does not live yet, with what tells it things.
pub(crate) type Assembled = (Actor, mpsc::Receiver<Command>);

/// What roots and sub-agents differ in.
struct Kind {
    tree: Arc<Tree>,
    life: Life,
    standing: Standing,
    account: Account,
    stop: Stop,
    nudge: Arc<Nudge>,
    sub: Option<Sub>,
    mate: Option<Mate>,
    contract: Option<Contract>,
    name: Option<String>,
}

impl House {
    pub(crate) fn same_dialect(&self, transcript: &Transcript) -> Result<(), StartError> {
        let (stored, asked) = (transcript.dialect.clone(), self.ports.model.dialect());
        if stored == asked {
            Ok(())
        } else {
            Err(StartError::OtherDialect { stored, asked })
        }
    }

    /// A root, with the front end's way to it.
    pub(crate) fn assemble_root(
        self: &Arc<Self>,
        about: About,
        seed: Seed,
        setup: Setup,
    ) -> (Actor, mpsc::Receiver<Command>, Agent) {
        let Identity {
            realm, agent: id, ..
        } = about.identity;
        let (events, heard) = mpsc::channel(EVENTS);
        let (commands, told) = mpsc::channel(COMMANDS);
        let budgets = Budgets {
            subtree: setup.limits.budget,
            ..Budgets::default()
        };
        let account = Account::session(budgets, self.ports.clock.now());
        let tools = self.tools_of_root(id, &setup, &startable(&setup));
        let workspace = own_spill(&setup.workspace, id);
        let standing = Standing::root(
            about.mode,
            Arc::clone(&setup.policy),
            Arc::clone(&workspace),
        );
        let tree = Arc::new(Tree {
            standing: standing.clone(),
            root: id,
            realm,
            places: Places::new(setup.spawning.running),
            account: account.clone(),
            setup: setup.clone(),
            events: events.clone(),
            preambles: std::sync::Mutex::default(),
            attended: true.into(),
            shown: None,
            raising: 0.into(),
            notices: std::sync::Mutex::default(),
            takes_over: usize::MAX,
            is_worker: false,
            expects: false.into(),
        });
        let stop = Stop::new(self.supervisor.branch());
        let who = Resident {
            tree: Arc::clone(&tree),
            parent: None,
            path: about.path.clone(),
            depth: 0,
            model: about.model.clone(),
            effort: about.effort,
            standing: standing.clone(),
            account: account.clone(),
            commands: None,
            stop: stop.clone(),
            run: None,
            fork: false,
            mate: None,
        };
        // Nobody is above a root who could be frozen.
        let nudge = self.enter(id, who).unwrap_or_default();
        let life = Life::Root { joins: setup.joins };
        let names = tools.names().into_iter().map(str::to_owned).collect();
        let setup = Setup {
            tools,
            workspace,
            ..setup
        };
        let (sub, mate, contract, name) = (None, None, None, None);
        let kind = Kind {
            tree,
            life,
            standing,
            account,
            stop,
            nudge,
            sub,
            mate,
            contract,
            name,
        };
        let actor = self.assemble(about, seed, setup, kind);
        let handle = AgentHandle { commands };
        let agent = Agent {
            id,
            found: None,
            unfinished: false,
            tools: names,
            handle,
            events: heard,
        };
        (actor, told, agent)
    }

    /// A sub-agent; none if the one who starts it may start nothing any more.
    pub(crate) fn assemble_sub(
        self: &Arc<Self>,
        about: About,
        seed: Seed,
        below: Below,
    ) -> Option<Assembled> {
        let Below {
            tree,
            sub,
            depth,
            standing,
            account,
            tools,
            turns,
            contract,
            name,
            mate,
        } = below;
        let id = about.identity.agent;
        let (commands, told) = mpsc::channel(COMMANDS);
        let stop = Stop::new(self.supervisor.branch());
        let who = Resident {
            tree: Arc::clone(&tree),
            parent: Some(sub.parent),
            path: about.path.clone(),
            depth,
            model: about.model.clone(),
            effort: about.effort,
            standing: standing.clone(),
            account: account.clone(),
            commands: Some(commands),
            stop: stop.clone(),
            run: Some(Arc::clone(&sub.run)),
            fork: about
                .terms
                .as_ref()
                .is_some_and(|terms| terms.fork.is_some()),
            mate: mate.as_ref().map(|mate| Arc::clone(&mate.card)),
        };
        let nudge = self.enter(id, who)?;
        let mut setup = Setup {
            tools,
            workspace: Arc::clone(standing.workspace()),
            ..tree.setup.clone()
        };
        setup.limits.turns = turns;
        setup.asker = tree.asker();
        let then = about
            .terms
            .as_ref()
            .and_then(|terms| terms.mate.as_ref()?.then);
        let life = if mate.is_some() {
            Life::Mate { then }
        } else {
            Life::Sub
        };
        let (sub, name) = (Some(sub), Some(name));
        let kind = Kind {
            tree,
            life,
            standing,
            account,
            stop,
            nudge,
            sub,
            mate,
            contract,
            name,
        };
        Some((self.assemble(about, seed, setup, kind), told))
    }

    /// A session whose main agent lives elsewhere, for the members of its teams that are to live here.
    pub(crate) async fn foreign_tree(
        &self,
        session: AgentId,
        members: Members,
        setup: Setup,
    ) -> Result<(Arc<Tree>, mpsc::Receiver<Event>), StartError> {
        let row = self
            .row(session)
            .await?
            .ok_or(StoreError::NotFound { agent: session })?;
        let (events, heard) = mpsc::channel(EVENTS);
        let budgets = Budgets {
            subtree: setup.limits.budget,
            ..Budgets::default()
        };
        let workspace = own_spill(&setup.workspace, session);
        let tree = Tree {
            standing: Standing::root(row.mode, Arc::clone(&setup.policy), workspace),
            root: session,
            realm: row.realm,
            places: Places::new(setup.spawning.running),
            account: Account::session(budgets, self.ports.clock.now()),
            setup,
            events,
            preambles: std::sync::Mutex::default(),
            attended: true.into(),
            shown: match members {
                Members::One(agent) => Some(agent),
                Members::Free { .. } | Members::Raised { .. } => None,
            },
            is_worker: matches!(members, Members::Raised { .. }),
            expects: false.into(),
            takes_over: match members {
                Members::One(_) => 0,
                Members::Free { most } | Members::Raised { most } => most.unwrap_or(usize::MAX),
            },
            raising: 0.into(),
            notices: std::sync::Mutex::default(),
        };
        Ok((Arc::new(tree), heard))
    }

    fn assemble(self: &Arc<Self>, about: About, seed: Seed, setup: Setup, kind: Kind) -> Actor {
        let About {
            identity,
            model,
            path,
            living,
            preamble,
            segments,
            birth,
            told,
            terms,
            ..
        } = about;
        let Kind {
            tree,
            life,
            standing,
            account,
            stop,
            nudge,
            sub,
            mate,
            contract,
            name,
        } = kind;
        let rights = Rights {
            standing,
            asker: setup.asker,
            name,
            limits: setup.limits,
        };
        let mut machine = Machine::new(rights, life, seed.history.next_seq(), seed.unanswered);
        machine.bind(contract);
        machine.inherits(!seed.history.pieces().is_empty());
        let attribution = Attribution {
            session: tree.root.to_string(),
            agent: identity.agent.to_string(),
            parent: sub.as_ref().map(|sub| sub.parent.to_string()),
            path,
        };
        let outlet = Outlet {
            agent: identity.agent,
            events: tree.events.clone(),
            stop: stop.token.clone(),
            below: sub.is_some() && tree.shown != Some(identity.agent),
        };
        Actor {
            living,
            house: Arc::clone(self),
            setup,
            identity,
            attribution: Arc::new(attribution),
            model,
            preamble,
            segments,
            terms,
            branch: None,
            opening: seed.opening,
            birth,
            history: seed.history,
            previous_reply: seed.previous_reply,
            reuse: seed.reuse,
            machine,
            seen: seed.seen,
            outlet,
            stop,
            nudge,
            account,
            place: None,
            warmth: None,
            paid: seed.paid,
            unsqueezed: false,
            told_queued: false,
            mail_waits: false,
            last_mail: 0,
            known: Known::told(told),
            sub,
            mate,
            tasks: std::collections::BTreeSet::new(),
            completed: false,
            tree,
        }
    }

    pub(crate) fn animate_root(
        self: &Arc<Self>,
        actor: Actor,
        commands: mpsc::Receiver<Command>,
        agent: Agent,
    ) -> Agent {
        let unfinished = actor.machine.unfinished();
        self.animate((actor, commands));
        Agent {
            unfinished,
            ..agent
        }
    }

    /// Lets an agent live. If mail has come when it ends, it comes back.
    pub(crate) fn animate(self: &Arc<Self>, (actor, commands): Assembled) {
        let (crashed, house, agent) = (actor.crashed(), Arc::clone(self), actor.identity.agent);
        let life = async move {
            if actor.live(commands).await {
                house.mail_for(agent);
            }
        };
        self.supervisor.start_agent(life, crashed);
    }
}

impl Actor {
    /// Looks into the inbox before it lives.
    pub(crate) fn expect_mail(&self) {
        self.nudge.raise(Nudging::Mail);
    }
}

/// The same workspace with a place of the session's own: what one has printed is nothing for another to find.
fn own_spill(workspace: &Workspace, agent: AgentId) -> Arc<Workspace> {
    let spill = workspace.spill.join(agent.to_string());
    Arc::new(Workspace {
        spill,
        ..workspace.clone()
    })
}
