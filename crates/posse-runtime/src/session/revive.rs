//! Sub-agents that come back: those that a message wakes, and those that a dead process left at work.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use posse_protocol::{
    AgentId, Command, Event, EventKind, MailKind, MemberChange, MemberState, Sender,
};
use uuid::Uuid;

use crate::agent::actor::{Identity, Mate, Sub, last_resort, wall_ms};
use crate::agent::ending;
use crate::agent::output::Output;
use crate::definition::output_schema::Contract;
use crate::definition::spawning::IN_PROCESS;
use crate::definition::terms::Terms;
use crate::live::registry::House;
use crate::live::run::Run;
use crate::live::session::Tree;
use crate::live::wakeup::About as Nudging;
use crate::prompt;
use crate::session::assemble::{About, Assembled, Below, Seed};
use crate::session::create::startable_at;
use crate::session::recover::{depth, facts};
use crate::session::spawn;
use crate::session::start_error::StartError;
use crate::supervise::Living;
use posse_permission::Standing;
use posse_port::store::{
    AgentFilter, AgentState, Epoch, MailFilter, Session, StateChange, Step, StoreError, Taken,
};
use posse_port::tool::Workspace;

/// More unfinished agents than this are not taken up at once.
const UNFINISHED: usize = 10_000;

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
        let parent = session
            .origin
            .as_ref()
            .map_or(session.agent, |origin| origin.parent);
        self.from.unwrap_or(parent)
    }
}

impl House {
    /// Brings back a sub-agent for whom mail waits.
    pub(crate) async fn revive(self: &Arc<Self>, agent: AgentId) {
        // Who cannot be brought back now has mail that waits: whoever takes it later is told.
        let _ = self.try_revive(agent).await;
    }

    async fn try_revive(self: &Arc<Self>, agent: AgentId) -> Result<(), StartError> {
        // Whoever is being brought back looks into its inbox when it is here: no hint is lost.
        let Some(living) = self.supervisor.room_for(agent) else {
            return Ok(());
        };
        let Some(session) = self.row(agent).await? else {
            return Ok(());
        };
        let Some(waiting) = self.wants_back(&session).await? else {
            return Ok(());
        };
        let Some(tree) = self.tree_of(&session).await? else {
            return Ok(());
        };
        let mate = is_mate(&session);
        let _alone = match mate {
            true => Some(self.adopting.lock().await),
            false => None,
        };
        if mate {
            // Who has a pane is waited for there; if its process dies, it is taken up then.
            let card = self.card(session.realm, agent).await?;
            if card.is_none_or(|card| card.backend != IN_PROCESS) || !self.has_room(&tree) {
                return Ok(());
            }
        }
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
        self.beyond_reach
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The mail for which an agent that has ended is brought back: none for a root, for one that a person
    /// has stopped, for what waited when it was stopped, and for what it could not be brought back for.
    async fn wants_back(&self, session: &Session) -> Result<Option<Waiting>, StoreError> {
        let ended = session.ended.as_deref();
        if session.origin.is_none() || ended.is_some_and(|ended| ended.by_person) {
            return Ok(None);
        }
        let filter = MailFilter {
            waiting: true,
            after: 0,
        };
        let mail = self
            .ports
            .store
            .mail(session.realm, session.agent, filter, UNFINISHED)
            .await?;
        let newest = mail.last().map_or(0, |mail| mail.number);
        let stopped = ended.map_or(0, |ended| ended.mail);
        let tried = self
            .beyond_reach()
            .get(&session.agent)
            .copied()
            .unwrap_or(0);
        let frozen = session.origin.as_ref().is_some_and(|origin| {
            self.resident(origin.parent).is_some() && self.is_frozen(origin.parent)
        });
        if newest <= stopped.max(tried) || frozen {
            return Ok(None);
        }
        let words = mail
            .iter()
            .filter(|mail| mail.kind != MailKind::Notification);
        let from = words.filter_map(|mail| match mail.from {
            Sender::Agent { id, .. } if id != session.agent => Some(id),
            _ => None,
        });
        Ok(Some(Waiting {
            newest,
            from: from.into_iter().next(),
        }))
    }

    /// Takes up the sub-agents of a session that a dead process left at work, or that mail waits for.
    /// They do not live yet.
    pub(crate) async fn adopt(
        self: &Arc<Self>,
        tree: &Arc<Tree>,
    ) -> Result<Vec<Assembled>, StartError> {
        let filter = AgentFilter {
            realm: Some(tree.realm),
            unfinished: true,
            ..AgentFilter::default()
        };
        // Teammates come first: others come from them.
        let mut found = self.members_of(tree).await?;
        for session in self.ports.store.agents(filter, UNFINISHED).await? {
            if found.iter().all(|known| known.agent != session.agent) {
                found.push(session);
            }
        }
        let mut adopted: Vec<Assembled> = Vec::new();
        for session in &found {
            match self.take_up(session, tree).await {
                Ok(assembled) => adopted.extend(assembled),
                Err(StartError::Store(
                    error @ (StoreError::Engine { .. } | StoreError::Full { .. }),
                )) => {
                    for (actor, _) in adopted {
                        actor.give_back().await;
                    }
                    return Err(error.into());
                }
                // It lives elsewhere.
                Err(StartError::Store(StoreError::Held { .. })) => {}
                // One that is damaged keeps nobody from the rest.
                Err(error) => {
                    let what =
                        format!("sub-agent {} could not be taken up: {error}", session.agent);
                    let event = Event {
                        agent: tree.root,
                        kind: EventKind::Unheard(what),
                    };
                    let _ = tree.events.try_send(event);
                }
            }
        }
        for (actor, _) in &adopted {
            if let Some(sub) = actor.sub.as_ref().filter(|_| actor.mate.is_none()) {
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
        if !self.belongs(session).await? {
            self.close_former(session, tree).await?;
            return Ok(None);
        }
        let starter = match session.state.is_open() || is_mate(session) {
            true => session
                .starter
                .or(session.origin.as_ref().map(|origin| origin.parent)),
            false => self
                .wants_back(session)
                .await?
                .map(|waiting| waiting.starter(session)),
        };
        let Some(starter) = starter else {
            return Ok(None);
        };
        let mine = self
            .tree_of(session)
            .await?
            .is_some_and(|found| Arc::ptr_eq(&found, tree));
        if !mine || is_mate(session) && !self.has_room(tree) {
            return Ok(None);
        }
        if !self.is_for(session, tree).await? || !self.is_fit_for(session, tree).await? {
            return Ok(None);
        }
        let Some(living) = self.supervisor.room_for(session.agent) else {
            return Ok(None);
        };
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
    /// was open. Whether it has something to go on with besides mail. One that cannot go on has failed, and
    /// its starter is told.
    async fn bring_back(
        self: &Arc<Self>,
        taken: Taken,
        living: Living,
        tree: &Arc<Tree>,
        starter: AgentId,
    ) -> Result<(Assembled, bool), StartError> {
        let (session, epoch) = (taken.transcript.session.clone(), taken.epoch);
        match self.in_its_place(taken, tree, starter).await {
            Ok((mut assembled, unanswered)) => {
                assembled.0.living = Some(living);
                Ok((assembled, unanswered))
            }
            Err(error) => {
                if !is_of_the_store(&error) {
                    self.give_up(&session, epoch, tree, starter, &error).await;
                }
                // Only now may others try.
                drop(living);
                Err(error)
            }
        }
    }

    /// The same, with the checkout that it has for itself.
    async fn in_its_place(
        self: &Arc<Self>,
        taken: Taken,
        tree: &Arc<Tree>,
        starter: AgentId,
    ) -> Result<(Assembled, bool), StartError> {
        self.same_dialect(&taken.transcript)?;
        let terms = terms(&taken.transcript.session, tree);
        let Some(worktree) = terms.worktree.clone() else {
            return self.rebuild(taken, tree, starter, terms).await;
        };
        let remade = self
            .ports
            .worktrees
            .reclaim(&worktree)
            .await
            .map_err(StartError::Place)?;
        match self.rebuild(taken, tree, starter, terms).await {
            Ok((mut assembled, unanswered)) => {
                if remade {
                    assembled.0.machine.tell(prompt::remade(&worktree));
                }
                assembled.0.has_worktree(Some(worktree));
                Ok((assembled, unanswered))
            }
            Err(error) => {
                self.ports.worktrees.release(&worktree).await;
                Err(error)
            }
        }
    }

    /// A sub-agent cannot go on: that is its end, and is told as one.
    async fn give_up(
        &self,
        session: &Session,
        epoch: Epoch,
        tree: &Tree,
        starter: AgentId,
        error: &StartError,
    ) {
        let run = Run::new(
            facts(session, starter, tree.output(session.agent)),
            Uuid::now_v7(),
            true,
        );
        let mut end = ending::broken(&run.facts, run.id, format!("it could not go on: {error}"));
        end.worktree = session
            .ended
            .as_ref()
            .and_then(|ended| ended.worktree.clone());
        let filter = MailFilter {
            waiting: true,
            after: 0,
        };
        let mail = self
            .ports
            .store
            .mail(session.realm, session.agent, filter, UNFINISHED)
            .await;
        let newest = mail
            .ok()
            .and_then(|mail| mail.last().map(|mail| mail.number))
            .unwrap_or(0);
        let who = Identity {
            realm: session.realm,
            agent: session.agent,
            epoch,
        };
        last_resort(self, who, &run, &end, newest).await;
    }

    async fn rebuild(
        self: &Arc<Self>,
        taken: Taken,
        tree: &Arc<Tree>,
        starter: AgentId,
        terms: Terms,
    ) -> Result<(Assembled, bool), StartError> {
        let session = taken.transcript.session.clone();
        let agent = session.agent;
        let output_file = tree.output(agent);
        let mut facts = facts(&session, starter, output_file.clone());
        if !session.state.is_open() {
            // No call has begun this run, a message has.
            facts.call.clear();
        }
        let parent = session
            .origin
            .as_ref()
            .map_or(tree.root, |origin| origin.parent);
        let card = match &terms.mate {
            Some(_) => self.card(session.realm, agent).await?.map(Arc::new),
            None => None,
        };
        facts.name = card.as_ref().map(|card| card.name.clone()).or(facts.name);
        let depth = depth(&session.path);
        let (parent_here, root_here) = (self.resident(parent), self.resident(tree.root));
        // Whoever follows the mode of one who has gone keeps the last that was known.
        // And a teammate may have come out of its plan.
        let follows = parent_here.is_some() && terms.mate.as_ref().is_none_or(|mate| !mate.plan);
        let mode = if follows {
            terms.mode
        } else {
            Some(session.mode)
        };
        let (above, account) = match parent_here.or(root_here) {
            Some(above) => (above.standing.clone(), above.account.clone()),
            None => (tree.standing.clone(), tree.account.clone()),
        };
        let workspace = workspace_again(&above, &session, &terms).map_err(StartError::Place)?;
        let standing = above
            .child(mode, workspace)
            .map_err(|outside| StartError::Place(outside.to_string()))?;
        terms.give(&standing).map_err(StartError::Place)?;
        let about = About {
            identity: Identity {
                realm: session.realm,
                agent,
                epoch: taken.epoch,
            },
            model: session.model.clone(),
            mode: session.mode,
            effort: terms.effort,
            path: session.path.clone(),
            living: None,
            preamble: taken.transcript.preamble.clone(),
            segments: taken.transcript.segments.clone(),
            birth: None,
            told: session.types,
            terms: Some(Box::new(terms.clone())),
        };
        let name = match &card {
            Some(card) => card.address(),
            None => facts
                .name
                .as_ref()
                .map_or_else(|| session.path.clone(), ToString::to_string),
        };
        let run = Arc::new(Run::new(facts, Uuid::now_v7(), true));
        let sub = Sub::new(run, parent, Output::new(output_file), String::new());
        let types = startable_at(depth, &tree.setup, &terms);
        let below = Below {
            tree: Arc::clone(tree),
            sub,
            depth,
            account: account.reopen(
                spawn::budgets(
                    &tree.setup.spawning,
                    terms.mate.as_ref().and_then(|mate| mate.budget),
                ),
                self.ports.clock.now(),
                &session.charges,
            ),
            tools: self.tools_of_sub(agent, &tree.setup, &terms, types.as_deref()),
            turns: terms.turns,
            // What could be checked once can be checked again.
            contract: terms
                .schema
                .as_deref()
                .and_then(|schema| Contract::new(schema).ok()),
            standing,
            name,
            mate: card.map(|card| Mate::new(card, MemberChange::TakenOver)),
        };
        let seed = Seed::of(&taken)?;
        let frozen = || StoreError::BadStep("nothing is started any more".into());
        let mut assembled = self.assemble_sub(about, seed, below).ok_or_else(frozen)?;
        let settled = match self.recover(&mut assembled.0, taken).await {
            Ok(settle) => assembled.0.settle(settle).await.map_err(StartError::from),
            Err(error) => Err(error),
        };
        let settled = match settled {
            Ok(()) => assembled
                .0
                .back_among_mates(session.entries == 0)
                .await
                .map_err(StartError::from),
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

impl House {
    /// Takes up one member of a session's teams.
    pub(crate) async fn take_member(
        self: &Arc<Self>,
        agent: AgentId,
        tree: &Arc<Tree>,
    ) -> Result<Assembled, StartError> {
        let Some(living) = self.supervisor.room_for(agent) else {
            return Err(StartError::AlreadyHere { agent });
        };
        let session = self
            .row(agent)
            .await?
            .ok_or(StoreError::NotFound { agent })?;
        if !is_mate(&session) || !self.belongs(&session).await? {
            return Err(StartError::Place(format!(
                "agent {agent} is in no team of the session"
            )));
        }
        let starter = session
            .origin
            .as_ref()
            .map_or(tree.root, |origin| origin.parent);
        let taken = self.ports.store.take(agent).await?;
        let (assembled, unanswered) = self.bring_back(taken, living, tree, starter).await?;
        if unanswered {
            // There is room: nobody else knows it yet.
            let _ = self.pass_on(agent, Command::Continue);
        }
        assembled.0.expect_mail();
        Ok(assembled)
    }

    /// The members of a session's teams that somebody must have.
    async fn members_of(&self, tree: &Tree) -> Result<Vec<Session>, StoreError> {
        let mut found = Vec::new();
        for team in self.teams(tree.realm).await? {
            let others = team
                .members
                .iter()
                .filter(|member| member.agent != tree.root);
            for member in others.filter(|member| member.state != MemberState::ShutDown) {
                found.extend(self.row(member.agent).await?.filter(is_mate));
            }
        }
        Ok(found)
    }

    /// Whether an agent is what it was: a teammate that has left its team is brought back by nothing.
    async fn belongs(&self, session: &Session) -> Result<bool, StoreError> {
        Ok(!is_mate(session) || self.card(session.realm, session.agent).await?.is_some())
    }

    /// A teammate had left its team when its process died, and that was all.
    async fn close_former(&self, session: &Session, tree: &Tree) -> Result<(), StoreError> {
        if !session.state.is_open() {
            return Ok(());
        }
        let epoch = self.ports.store.take(session.agent).await?.epoch;
        let state = Some(StateChange::To(AgentState::Completed));
        let at_ms = wall_ms(&*self.ports.clock);
        self.ports
            .store
            .commit(Step {
                state,
                ..Step::new(session.realm, session.agent, epoch, at_ms)
            })
            .await?;
        if let Some(worktree) = terms(session, tree).worktree {
            self.ports.worktrees.release(&worktree).await;
        }
        Ok(())
    }

    /// Takes up the members of teams whose hosts have died.
    pub(crate) async fn take_over(self: &Arc<Self>) {
        let _alone = self.adopting.lock().await;
        for tree in self.trees().into_iter().filter(|tree| tree.takes_over > 0) {
            // A store that fails is noticed by whoever commits next.
            if let Ok(adopted) = self.adopt(&tree).await {
                adopted
                    .into_iter()
                    .for_each(|adopted| self.animate(adopted));
            }
            self.expect_workers(&tree);
        }
    }
}

/// Whether a stored agent is a teammate, or was one.
pub(crate) fn is_mate(session: &Session) -> bool {
    let origin = session.origin.as_deref();
    origin
        .and_then(Terms::kept)
        .is_some_and(|terms| terms.mate.is_some())
}

/// Whether it is the store that fails, and not this one agent.
fn is_of_the_store(error: &StartError) -> bool {
    let others =
        |error: &StoreError| !matches!(error, StoreError::BadStep(_) | StoreError::Damaged { .. });
    matches!(error, StartError::Store(error) if others(error))
}

/// Where an agent works that is brought back below `above`. Who worked in a worktree works there or not at
/// all; of others, where they worked may not be worked in any more.
fn workspace_again(
    above: &Standing,
    session: &Session,
    terms: &Terms,
) -> Result<Workspace, String> {
    let here = above.workspace();
    let shared = here
        .mirror
        .as_ref()
        .is_some_and(|mirror| session.cwd.starts_with(&mirror.here));
    let mut workspace = match &terms.worktree {
        Some(worktree) => {
            // If its parent has gone, it lies below one whose checkout is a copy's original, or contains it.
            let origins = [&worktree.origin].into_iter().chain(&terms.copies);
            let found = origins.map(|origin| {
                here.below(origin.clone())
                    .in_worktree(&worktree.path, origin)
            });
            let within = |workspace: &Workspace| !workspace.roots.is_empty();
            let found = found
                .flatten()
                .find(within)
                .ok_or("its worktree is of another repository")?;
            let workspace = Workspace {
                cwd: session.cwd.clone(),
                ..found
            };
            spawn::make_room(&workspace, &worktree.path)?;
            workspace
        }
        None if !terms.copies.is_empty() && !shared => {
            return Err("it worked in the worktree of an agent that has ended".into());
        }
        None if here.roots.iter().any(|root| session.cwd.starts_with(root)) => {
            here.below(session.cwd.clone())
        }
        None => here.below(here.cwd.clone()),
    };
    workspace.notes.clone_from(&terms.notes);
    Ok(workspace)
}

/// What holds for a stored sub-agent.
pub(crate) fn terms(session: &Session, tree: &Tree) -> Terms {
    let Some(origin) = session.origin.as_deref() else {
        return Terms::lost();
    };
    let of_type = || {
        tree.definition(&origin.agent_type)
            .map(|kind| Terms::of(&kind))
    };
    // An older posse kept none; then it is the type that is there now, or nothing.
    let kept = if origin.terms.is_empty() {
        of_type()
    } else {
        Terms::kept(origin)
    };
    kept.unwrap_or_else(Terms::lost)
}
