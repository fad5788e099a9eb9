//! Sub-agents that come to life: new ones, those that a message wakes, and those that a dead process
//! left at work.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use posse_protocol::{
    AgentId, Command, ContentBlock, Event, EventKind, MailKind, Name, RealmId, RunFacts, RunKind, Sender,
};
use uuid::Uuid;

use super::StartError;
use super::actor::{Identity, Sub};
use super::build::{About, Assembled, Below, Seed};
use super::recover::{depth, facts};
use crate::govern::Account;
use crate::permission::Standing;
use crate::port::model::{Effort, Preamble, Thinking};
use crate::port::store::{AgentFilter, Birth, Epoch, MailFilter, Origin, Session, StoreError, Taken};
use crate::spawn::Definition;
use crate::spawn::house::House;
use crate::spawn::nudge::About as Nudging;
use crate::spawn::output::Output;
use crate::spawn::run::Run;
use crate::spawn::tree::Tree;
use crate::supervise::Living;
use crate::tool::Workspace;

/// More unfinished agents than this are not taken up at once.
const UNFINISHED: usize = 10_000;

/// A sub-agent that is to be born.
pub(crate) struct Plan {
    pub(crate) tree: Arc<Tree>,
    pub(crate) origin: Origin,
    pub(crate) definition: Definition,
    pub(crate) path: String,
    pub(crate) depth: u32,
    pub(crate) model: String,
    pub(crate) effort: Option<Effort>,
    pub(crate) standing: Standing,
    pub(crate) account: Account,
    pub(crate) prompt: String,
    pub(crate) background: bool,
}

/// Mail for which an agent is brought back.
struct Waiting {
    newest: u64,
    /// Who wrote the first of it.
    from: Option<AgentId>,
}

impl Waiting {
    /// Who is told of the end of the run that it begins: whoever wrote it. An end that wakes somebody is
    /// told up the tree: two who told each other of their ends would wake each other for ever.
    fn starter(&self, session: &Session) -> AgentId {
        let parent = session.origin.as_ref().map_or(session.agent, |origin| origin.parent);
        self.from.unwrap_or(parent)
    }
}

impl House {
    /// Brings a new sub-agent to life, and gives its run; none if its parent may start nothing any more.
    pub(crate) fn bear(self: &Arc<Self>, plan: Plan) -> Option<Arc<Run>> {
        let Plan {
            tree,
            origin,
            definition,
            path,
            depth,
            model,
            effort,
            standing,
            account,
            prompt,
            background,
        } = plan;
        let agent = AgentId::from(Uuid::now_v7());
        let tools = self.tools_of_sub(agent, &tree, &definition, depth);
        let cwd = &standing.workspace().cwd;
        // What it is told of the session's directory is not true of another.
        let elsewhere = (*cwd != tree.standing.workspace().cwd)
            .then(|| format!("You work in another directory than the session does: {}", cwd.display()));
        let names = tools.names().join(",");
        let key = format!("{}\n{model}\n{effort:?}\n{names}\n{elsewhere:?}", definition.name);
        let preamble = tree.preamble(key, || {
            let mut system = vec![definition.prompt.trim_end().to_owned()];
            system.extend(tree.setup.spawning.context.iter().cloned());
            system.extend(elsewhere);
            let (model, tools, thinking) = (model.clone(), tools.specs(), Thinking::Default);
            self.ports.model.preamble(&Preamble { model, tools, system, thinking, effort })
        });
        let output_file = tree.output(agent);
        let run = RunFacts {
            task: agent.uuid(),
            kind: RunKind::Agent,
            agent_type: definition.name.clone(),
            name: origin.name.clone(),
            description: origin.description.clone(),
            call: origin.call_id.clone(),
            starter: origin.parent,
            depth,
            output_file: output_file.clone(),
        };
        let run = Arc::new(Run::new(run, Uuid::now_v7(), background));
        let mode = standing.mode();
        let name = origin.name.as_ref().map_or_else(|| path.clone(), ToString::to_string);
        let parent = origin.parent;
        let birth = Birth {
            origin: Some(Box::new(origin)),
            path: path.clone(),
            model: model.clone(),
            dialect: self.ports.model.dialect().to_owned(),
            mode,
            cwd: standing.workspace().cwd.clone(),
            preamble: preamble.clone(),
            segments: Vec::new(),
        };
        let about = About {
            identity: Identity { realm: tree.realm, agent, epoch: Epoch(1) },
            model,
            mode,
            effort,
            path,
            living: self.supervisor.room_for(agent),
            preamble,
            birth: Some(Box::new(birth)),
        };
        let first = Command::Prompt(vec![ContentBlock::text(prompt.clone())]);
        let sub = Sub::new(Arc::clone(&run), parent, Output::new(output_file), prompt);
        let turns = definition.max_turns;
        let below = Below { tree, sub, depth, standing, account, tools, turns, name };
        let assembled = self.assemble_sub(about, Seed::default(), below)?;
        // Nobody else knows it yet, so there is room.
        let _ = self.pass_on(agent, first);
        self.animate(assembled);
        Some(run)
    }

    /// Brings back a sub-agent for whom mail waits.
    pub(crate) async fn revive(self: &Arc<Self>, agent: AgentId) {
        // Who cannot be brought back now has mail that waits: whoever takes it later is told.
        let _ = self.try_revive(agent).await;
    }

    async fn try_revive(self: &Arc<Self>, agent: AgentId) -> Result<(), StartError> {
        // Whoever is being brought back looks into its inbox when it is here: no hint is lost.
        let Some(living) = self.supervisor.room_for(agent) else { return Ok(()) };
        let Some(session) = self.row(agent).await? else { return Ok(()) };
        let Some(waiting) = self.wants_back(&session).await? else { return Ok(()) };
        let Some(tree) = self.tree_of(&session).await? else { return Ok(()) };
        let (newest, starter) = (waiting.newest, waiting.starter(&session));
        let brought = async {
            let taken = self.ports.store.take(agent).await?;
            self.bring_back(taken, living, &tree, starter).await
        };
        match brought.await {
            Ok((assembled, _)) => {
                assembled.0.expect_mail();
                self.animate(assembled);
                Ok(())
            }
            Err(error) => {
                // It is tried again when there is more mail, not at every hint of this.
                self.beyond_reach().insert(agent, newest);
                Err(error)
            }
        }
    }

    fn beyond_reach(&self) -> MutexGuard<'_, HashMap<AgentId, u64>> {
        self.beyond_reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An agent as the store has it, without its history.
    pub(crate) async fn row(&self, agent: AgentId) -> Result<Option<Session>, StoreError> {
        let filter = AgentFilter { id: Some(agent), ..AgentFilter::default() };
        Ok(self.ports.store.agents(filter, 1).await?.pop())
    }

    /// The agent of a realm that is registered under a name.
    pub(crate) async fn named(&self, realm: RealmId, name: &Name) -> Result<Option<Session>, StoreError> {
        let (realm, name) = (Some(realm), Some(name.clone()));
        let filter = AgentFilter { realm, name, ..AgentFilter::default() };
        Ok(self.ports.store.agents(filter, 1).await?.pop())
    }

    /// The session that an agent belongs to, if that lives here.
    async fn tree_of(&self, session: &Session) -> Result<Option<Arc<Tree>>, StoreError> {
        let mut origin = session.origin.clone();
        while let Some(from) = origin {
            if let Some(above) = self.resident(from.parent) {
                return Ok(Some(Arc::clone(&above.tree)));
            }
            origin = self.row(from.parent).await?.and_then(|parent| parent.origin);
        }
        Ok(None)
    }

    /// The mail for which an agent that has ended is brought back: none for a root, for one that a person
    /// has stopped, for what waited when it was stopped, and for what it could not be brought back for.
    async fn wants_back(&self, session: &Session) -> Result<Option<Waiting>, StoreError> {
        let ended = session.ended.as_deref();
        if session.origin.is_none() || ended.is_some_and(|ended| ended.by_person) {
            return Ok(None);
        }
        let filter = MailFilter { waiting: true, after: 0 };
        let mail = self.ports.store.mail(session.realm, session.agent, filter, UNFINISHED).await?;
        let newest = mail.last().map_or(0, |mail| mail.number);
        let stopped = ended.map_or(0, |ended| ended.mail);
        let tried = self.beyond_reach().get(&session.agent).copied().unwrap_or(0);
        let frozen = session
            .origin
            .as_ref()
            .is_some_and(|origin| self.resident(origin.parent).is_some() && self.is_frozen(origin.parent));
        if newest <= stopped.max(tried) || frozen {
            return Ok(None);
        }
        let words = mail.iter().filter(|mail| mail.kind != MailKind::Notification);
        let from = words.filter_map(|mail| match mail.from {
            Sender::Agent { id, .. } if id != session.agent => Some(id),
            _ => None,
        });
        Ok(Some(Waiting { newest, from: from.into_iter().next() }))
    }

    /// Takes up the sub-agents of a session that a dead process left at work, or that mail waits for.
    /// They do not live yet.
    pub(super) async fn adopt(self: &Arc<Self>, tree: &Arc<Tree>) -> Result<Vec<Assembled>, StartError> {
        let filter = AgentFilter { realm: Some(tree.realm), unfinished: true, ..AgentFilter::default() };
        let found = self.ports.store.agents(filter, UNFINISHED).await?;
        let mut adopted: Vec<Assembled> = Vec::new();
        for session in &found {
            match self.take_up(session, tree).await {
                Ok(assembled) => adopted.extend(assembled),
                Err(StartError::Store(error @ (StoreError::Engine { .. } | StoreError::Full { .. }))) => {
                    for (actor, _) in &adopted {
                        self.leave(actor.agent());
                    }
                    return Err(error.into());
                }
                // One that is damaged, or that another process has, keeps nobody from the rest.
                Err(error) => {
                    let what = format!("sub-agent {} could not be taken up: {error}", session.agent);
                    let event = Event { agent: tree.root, kind: EventKind::Unheard(what) };
                    let _ = tree.events.try_send(event);
                }
            }
        }
        for (actor, _) in &adopted {
            if let Some(sub) = &actor.sub {
                self.count(&sub.run);
            }
            // What it waited for may be over by now.
            self.nudge(actor.agent(), Nudging::Settle);
        }
        Ok(adopted)
    }

    /// Takes up one of them, if it is of this session and there is something for it to do.
    async fn take_up(
        self: &Arc<Self>,
        session: &Session,
        tree: &Arc<Tree>,
    ) -> Result<Option<Assembled>, StartError> {
        let starter = match session.state.is_open() {
            true => session.starter.or(session.origin.as_ref().map(|origin| origin.parent)),
            false => self.wants_back(session).await?.map(|waiting| waiting.starter(session)),
        };
        let Some(starter) = starter else { return Ok(None) };
        let mine = self.tree_of(session).await?.is_some_and(|found| Arc::ptr_eq(&found, tree));
        let Some(living) = self.supervisor.room_for(session.agent).filter(|_| mine) else { return Ok(None) };
        let taken = self.ports.store.take(session.agent).await?;
        let (assembled, unanswered) = self.bring_back(taken, living, tree, starter).await?;
        if unanswered {
            // There is room: nobody else knows it yet.
            let _ = self.pass_on(session.agent, Command::Continue);
        }
        assembled.0.expect_mail();
        Ok(Some(assembled))
    }

    /// Puts a stored sub-agent together again, in a run of its own in the background, and settles what
    /// was open. Whether it has something to go on with besides mail.
    async fn bring_back(
        self: &Arc<Self>,
        taken: Taken,
        living: Living,
        tree: &Arc<Tree>,
        starter: AgentId,
    ) -> Result<(Assembled, bool), StartError> {
        self.same_dialect(&taken.transcript)?;
        let session = taken.transcript.session.clone();
        let agent = session.agent;
        let output_file = tree.output(agent);
        let mut facts = facts(&session, starter, output_file.clone());
        if !session.state.is_open() {
            // No call has begun this run, a message has.
            facts.call.clear();
        }
        let parent = session.origin.as_ref().map_or(tree.root, |origin| origin.parent);
        let known = tree.definition(&facts.agent_type);
        // A type that is not there any more has no tools.
        let definition =
            known.unwrap_or_else(|| Definition { tools: Some(Vec::new()), ..Definition::default() });
        let depth = depth(&session.path);
        let (parent_here, root_here) = (self.resident(parent), self.resident(tree.root));
        // Whoever follows the mode of one who has gone keeps the last that was known.
        let mode = if parent_here.is_some() { definition.mode } else { Some(session.mode) };
        let (above, account) = match parent_here.or(root_here) {
            Some(above) => (above.standing.clone(), above.account.clone()),
            None => (tree.standing.clone(), tree.account.clone()),
        };
        let workspace = Workspace { cwd: session.cwd.clone(), ..Workspace::clone(tree.standing.workspace()) };
        let standing = match above.child(mode, workspace) {
            Ok(standing) => standing,
            // Where it worked may not be worked in any more.
            Err(_) => above
                .child(mode, Workspace::clone(tree.standing.workspace()))
                .map_err(|outside| StoreError::BadStep(outside.to_string()))?,
        };
        let about = About {
            identity: Identity { realm: session.realm, agent, epoch: taken.epoch },
            model: session.model.clone(),
            mode: session.mode,
            effort: definition.effort,
            path: session.path.clone(),
            living: Some(living),
            preamble: taken.transcript.preamble.clone(),
            birth: None,
        };
        let name = facts.name.as_ref().map_or_else(|| session.path.clone(), ToString::to_string);
        let run = Arc::new(Run::new(facts, Uuid::now_v7(), true));
        let sub = Sub::new(run, parent, Output::new(output_file), String::new());
        let below = Below {
            tree: Arc::clone(tree),
            sub,
            depth,
            account: account.reopen(tree.setup.spawning.budgets, self.ports.clock.now(), &session.charges),
            tools: self.tools_of_sub(agent, tree, &definition, depth),
            turns: definition.max_turns,
            standing,
            name,
        };
        let seed = Seed::of(&taken)?;
        let frozen = || StoreError::BadStep("nothing is started any more".into());
        let mut assembled = self.assemble_sub(about, seed, below).ok_or_else(frozen)?;
        let settled = match self.recover(&mut assembled.0, taken).await {
            Ok(settle) => assembled.0.settle(settle).await.map_err(StartError::from),
            Err(error) => Err(error),
        };
        if let Err(error) = settled {
            self.leave(agent);
            return Err(error);
        }
        let unanswered = session.state.is_open() && assembled.0.machine.unfinished();
        Ok((assembled, unanswered))
    }
}
