//! The registry: which agents live in this process, who started them, and how to reach them.
//!
//! It holds nothing that must survive the process: the store has that. An agent is entered before
//! it is durable and leaves before its end is reported, so that everyone who hears of it finds the
//! registry up to date.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use posse_protocol::{AgentId, Command, Event, EventKind, ListId, RunChange, RunUpdate};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::definition::teammate::TeamIdentity;
use crate::govern::Account;
use crate::history::fork_point::ForkPoint;
use crate::live::follower::Followers;
use crate::live::handle::{CommandSender, TellError};
use crate::live::questions::SideQuestions;
use crate::live::run::Run;
use crate::live::servers::AgentServers;
use crate::live::servers::ServerLists;
use crate::live::session::Session;
use crate::live::skill_hooks::SkillHooks;
use crate::live::viewers::Viewers;
use crate::live::wakeup::{WakeReason, Wakeup};
use posse_permission::{Policy, Rights};
use posse_port::model::Effort;

/// The agents that live in this process, and the sessions they belong to.
///
/// One lock covers the whole table: between freezing an agent and everything below it, no child
/// can slip in.
#[derive(Default)]
pub(crate) struct Registry {
    live_agents: Mutex<HashMap<AgentId, RegistryEntry>>,
    /// Sessions whose main agent lives elsewhere and whose free members are taken up here. Weak: a
    /// session ends with its last agent or host.
    hosted: Mutex<Vec<Weak<Session>>>,
    /// Questions to people that do not belong to a tool call.
    pub(crate) questions: SideQuestions,
    /// Servers that sessions share.
    pub(crate) server_lists: ServerLists,
    /// Those who watch agents of this process.
    pub(crate) viewers: Viewers,
    /// Those who follow the feeds of watched sessions.
    pub(crate) followers: Followers,
}

/// An agent that lives in this process: what others may know of it. Nothing here changes but the
/// model, by [`Registry::set_model`].
#[derive(Clone)]
pub(crate) struct LiveAgent {
    /// Session that it belongs to.
    pub(crate) session: Arc<Session>,
    /// The agent that created it; none for a main agent.
    pub(crate) parent: Option<AgentId>,
    /// Position in the session, such as `/main/review-3`.
    pub(crate) path: String,
    /// Number of agents above it.
    pub(crate) depth: u32,
    /// Name of its model.
    pub(crate) model: String,
    /// Its reasoning effort, which children inherit.
    pub(crate) effort: Option<Effort>,
    /// Its rights: those of its children are derived from them at each call.
    pub(crate) rights: Rights,
    /// Its account: those of its children are below it.
    pub(crate) account: Account,
    /// Accepts commands for it.
    pub(crate) commands: CommandSender,
    /// Tells it to end.
    pub(crate) stop: Stop,
    /// Run of a sub-agent.
    pub(crate) run: Option<Arc<Run>>,
    /// True if it is a fork.
    pub(crate) fork: bool,
    /// Its identity in its team, if it is a teammate.
    pub(crate) teammate: Option<Arc<TeamIdentity>>,
    /// Hooks of the skills that it has loaded.
    pub(crate) skill_hooks: Arc<SkillHooks>,
    /// Servers that it uses, if there are any.
    pub(crate) servers: Option<AgentServers>,
}

/// A live agent, and what changes about it.
pub(super) struct RegistryEntry {
    /// The agent.
    pub(super) who: Arc<LiveAgent>,
    /// Wakes it.
    pub(super) wakeup: Arc<Wakeup>,
    /// True once it is being stopped: it may start nothing.
    pub(super) frozen: bool,
    /// Background runs that it started and that are not over.
    pub(super) live: HashSet<Uuid>,
    /// Its background commands.
    pub(super) shells: HashMap<Uuid, Shell>,
    /// Its fork point, while calls of its last reply may make forks.
    pub(super) branch: Option<Arc<ForkPoint>>,
    /// True if it is a teammate that would take a task.
    pub(super) accepts: bool,
}

/// A background command of an agent.
#[derive(Clone)]
pub(crate) struct Shell {
    /// Its run, as others see it.
    pub(crate) run: Arc<Run>,
    /// Tells it to end.
    pub(crate) stop: Stop,
    /// Time when it began, by the monotonic clock.
    pub(crate) began: Duration,
}

/// Who stops an agent or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// A person.
    Person,
    /// An agent.
    Agent(AgentId),
    /// The agent above it was stopped: its own end is not reported separately.
    Above {
        /// True if that is a person.
        person: bool,
    },
    /// posse is shutting down.
    Shutdown,
}

impl By {
    /// Returns true if a person asked for it.
    pub(crate) fn is_person(self) -> bool {
        matches!(self, Self::Person | Self::Above { person: true })
    }

    /// Returns the value for agents below the one that is stopped.
    pub(crate) fn below(self) -> Self {
        Self::Above {
            person: self.is_person(),
        }
    }
}

/// Tells an agent or a command to end, and remembers who did.
#[derive(Clone)]
pub(crate) struct Stop {
    /// Fires when it must end.
    pub(crate) token: CancellationToken,
    by: Arc<OnceLock<By>>,
}

impl Stop {
    pub(crate) fn new(token: CancellationToken) -> Self {
        Self {
            token,
            by: Arc::new(OnceLock::new()),
        }
    }

    /// Tells it to end. The first caller counts.
    pub(crate) fn stop(&self, by: By) {
        // Set before the token fires: the agent asks who it was as soon as it wakes up.
        let _ = self.by.set(by);
        self.token.cancel();
    }

    /// Returns who stopped it. Only the end of the process cancels the token without saying so.
    pub(crate) fn by(&self) -> By {
        self.by.get().copied().unwrap_or(By::Shutdown)
    }
}

impl Registry {
    /// Notes another model and effort of an agent, which children inherit from now on.
    pub(crate) fn set_model(&self, agent: AgentId, model: String, effort: Option<Effort>) {
        if let Some(entry) = self.live_agents().get_mut(&agent) {
            let who = LiveAgent::clone(&entry.who);
            entry.who = Arc::new(LiveAgent {
                model,
                effort,
                ..who
            });
        }
    }

    /// Enters an agent and returns the wake-up by which it learns of events. Returns none if its
    /// parent is frozen.
    pub(crate) fn enter(&self, agent: AgentId, who: LiveAgent) -> Option<Arc<Wakeup>> {
        let wakeup = Arc::new(Wakeup::default());
        let mut live_agents = self.live_agents();
        if who
            .parent
            .is_some_and(|parent| live_agents.get(&parent).is_some_and(|above| above.frozen))
        {
            return None;
        }
        // Idle teammates do not count: nobody waits for their end.
        if let Some(run) = who
            .run
            .as_ref()
            .filter(|run| run.is_background() && who.teammate.is_none())
        {
            // Counted under the same lock as it is entered: otherwise its starter could end in
            // between, because nothing seemed to be left.
            for one in [Some(run.starter()), host(&live_agents, &who)]
                .into_iter()
                .flatten()
            {
                if let Some(it) = live_agents.get_mut(&one) {
                    it.live.insert(run.facts.task);
                }
            }
        }
        let (live, shells) = (HashSet::new(), HashMap::new());
        // A teammate counts as looking for tasks until it has looked itself, so that no wake-up is
        // lost.
        let accepts = who.teammate.is_some();
        let (who, reasons) = (Arc::new(who), Arc::clone(&wakeup));
        live_agents.insert(
            agent,
            RegistryEntry {
                who,
                wakeup: reasons,
                frozen: false,
                live,
                shells,
                branch: None,
                accepts,
            },
        );
        Some(wakeup)
    }

    /// Removes an agent and wakes its starter. Returns true if mail arrived that it did not process
    /// and nobody stopped it.
    pub(crate) fn leave(&self, agent: AgentId) -> bool {
        let mut live_agents = self.live_agents();
        let Some(left) = live_agents.remove(&agent) else {
            return false;
        };
        let starter = left.who.run.as_ref().map(|run| run.starter());
        for one in [starter, left.who.parent].into_iter().flatten() {
            if let Some(it) = live_agents.get_mut(&one) {
                settle(it, agent.uuid());
            }
        }
        // After the removal no wake-up can reach it, so this look misses no mail.
        left.wakeup.is_raised(WakeReason::Mail) && !left.who.stop.token.is_cancelled()
    }

    /// Returns the live agent with this ID.
    pub(crate) fn live_agent(&self, agent: AgentId) -> Option<Arc<LiveAgent>> {
        self.live_agents()
            .get(&agent)
            .map(|entry| Arc::clone(&entry.who))
    }

    /// Returns the session of a live agent, or of which one lives here, by its main agent.
    pub(crate) fn session_of(&self, id: AgentId) -> Option<Arc<Session>> {
        let agents = self.live_agents();
        let of_session = || agents.values().find(|it| it.who.session.root == id);
        let found = agents.get(&id).or_else(of_session);
        found.map(|it| Arc::clone(&it.who.session))
    }

    /// Sets or clears an agent's fork point. It is set while calls that may fork are open.
    pub(crate) fn set_fork_point(&self, agent: AgentId, branch: Option<Arc<ForkPoint>>) {
        if let Some(live_agent) = self.live_agents().get_mut(&agent) {
            live_agent.branch = branch;
        }
    }

    /// Returns an agent's fork point, if calls that may fork are open.
    pub(crate) fn fork_point(&self, agent: AgentId) -> Option<Arc<ForkPoint>> {
        self.live_agents()
            .get(&agent)
            .and_then(|live_agent| live_agent.branch.clone())
    }

    /// Sets whether a teammate would take a task.
    pub(crate) fn set_accepts_tasks(&self, agent: AgentId, accepts: bool) {
        if let Some(live_agent) = self.live_agents().get_mut(&agent) {
            live_agent.accepts = accepts;
        }
    }

    /// Returns true if a teammate would take a task; none if it does not live here.
    pub(crate) fn accepts_tasks(&self, agent: AgentId) -> Option<bool> {
        self.live_agents()
            .get(&agent)
            .map(|live_agent| live_agent.accepts)
    }

    /// Returns the teammates that would take a task of a list.
    pub(crate) fn accepting_tasks(&self, list: &ListId) -> Vec<(AgentId, Arc<TeamIdentity>)> {
        let accepts = |(agent, it): (&AgentId, &RegistryEntry)| {
            let team_identity = it.who.teammate.as_ref().filter(|_| it.accepts)?;
            let theirs = it.who.session.realm == list.realm
                && list.team.as_ref() == Some(&team_identity.team);
            theirs.then(|| (*agent, Arc::clone(team_identity)))
        };
        let mut accepting_tasks: Vec<_> = self.live_agents().iter().filter_map(accepts).collect();
        // In a fixed order, so that the same teammates are woken first each time.
        accepting_tasks.sort_unstable_by_key(|(agent, _)| *agent);
        accepting_tasks
    }

    /// Notes that free members of a session that lives elsewhere are taken up here, as long as the
    /// session is held.
    pub(crate) fn stays(&self, session: &Arc<Session>) {
        let mut hosted = self.hosted();
        hosted.retain(|session| session.strong_count() > 0);
        hosted.push(Arc::downgrade(session));
    }

    /// Returns the session with this main agent, if its free members are taken up here.
    pub(crate) fn stays_for(&self, root: AgentId) -> Option<Arc<Session>> {
        self.hosted()
            .iter()
            .filter_map(Weak::upgrade)
            .find(|session| session.root == root)
    }

    fn hosted(&self) -> MutexGuard<'_, Vec<Weak<Session>>> {
        self.hosted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the sessions that have agents here or host free members here.
    pub(crate) fn sessions(&self) -> Vec<Arc<Session>> {
        let mut sessions: Vec<Arc<Session>> =
            self.hosted().iter().filter_map(Weak::upgrade).collect();
        for live_agent in self.live_agents().values() {
            if !sessions
                .iter()
                .any(|session| Arc::ptr_eq(session, &live_agent.who.session))
            {
                sessions.push(Arc::clone(&live_agent.who.session));
            }
        }
        sessions
    }

    /// Returns true if one more free member of the session's teams may be taken up here.
    pub(crate) fn has_room(&self, session: &Arc<Session>) -> bool {
        let live_agents = self.live_agents();
        // A worker's limit holds for all sessions together.
        let counts =
            |it: &&RegistryEntry| session.is_worker || Arc::ptr_eq(&it.who.session, session);
        let teammates = live_agents
            .values()
            .filter(|it| it.who.teammate.is_some())
            .filter(counts);
        teammates.count() < session.takes_over
    }

    /// Returns the number of members of a session's teams that live here.
    pub(crate) fn teammates(&self, root: AgentId) -> usize {
        self.live_agents()
            .values()
            .filter(|it| it.who.teammate.is_some() && it.who.session.root == root)
            .count()
    }

    /// Returns the number of agents of a session that live here.
    pub(crate) fn population(&self, root: AgentId) -> usize {
        self.live_agents()
            .values()
            .filter(|it| it.who.session.root == root)
            .count()
    }

    /// Returns true if an agent may start nothing: it is being stopped, or is gone.
    pub(crate) fn is_frozen(&self, agent: AgentId) -> bool {
        self.live_agents()
            .get(&agent)
            .is_none_or(|live_agent| live_agent.frozen)
    }

    /// Returns the number of an agent's background runs that are not over.
    pub(crate) fn live(&self, agent: AgentId) -> usize {
        self.live_agents()
            .get(&agent)
            .map_or(0, |live_agent| live_agent.live.len())
    }

    /// Notes that an agent has started a background command.
    pub(crate) fn shell_began(&self, agent: AgentId, shell: Shell) {
        if let Some(live_agent) = self.live_agents().get_mut(&agent) {
            let task = shell.run.facts.task;
            live_agent.live.insert(task);
            live_agent.shells.insert(task, shell);
        }
    }

    /// Notes that a background command is over.
    pub(crate) fn shell_over(&self, agent: AgentId, task: Uuid) {
        if let Some(live_agent) = self.live_agents().get_mut(&agent) {
            live_agent.shells.remove(&task);
            settle(live_agent, task);
        }
    }

    /// Returns an agent's background commands.
    pub(crate) fn shells(&self, agent: AgentId) -> Vec<Shell> {
        self.live_agents()
            .get(&agent)
            .map_or_else(Vec::new, |it| it.shells.values().cloned().collect())
    }

    /// Returns the background runs of an agent that are not over.
    pub(crate) fn background(&self, agent: AgentId) -> Vec<Arc<Run>> {
        let live_agents = self.live_agents();
        let Some(entry) = live_agents.get(&agent) else {
            return Vec::new();
        };
        let run = |task: &Uuid| match entry.shells.get(task) {
            Some(shell) => Some(Arc::clone(&shell.run)),
            None => live_agents.get(&AgentId::from(*task))?.who.run.clone(),
        };
        entry.live.iter().filter_map(run).collect()
    }

    /// Returns the run with this ID, of an agent or a command, and the agent that owns it.
    pub(crate) fn run(&self, task: Uuid) -> Option<(Arc<Run>, AgentId)> {
        let live_agents = self.live_agents();
        if let Some((agent, live_agent)) = live_agents.get_key_value(&AgentId::from(task)) {
            return live_agent.who.run.clone().map(|run| (run, *agent));
        }
        live_agents.iter().find_map(|(agent, it)| {
            it.shells
                .get(&task)
                .map(|shell| (shell.run.clone(), *agent))
        })
    }

    /// Returns an agent's background runs that are not over; the oldest first.
    pub(crate) fn live_runs(&self, agent: AgentId) -> Vec<Arc<Run>> {
        let mut tasks: Vec<Uuid> = match self.live_agents().get(&agent) {
            Some(live_agent) => live_agent.live.iter().copied().collect(),
            None => Vec::new(),
        };
        // IDs are UUIDs of version 7, which sort by time.
        tasks.sort_unstable();
        tasks
            .into_iter()
            .filter_map(|task| self.run(task))
            .map(|(run, _)| run)
            .collect()
    }

    /// Returns the number of agents here below an agent.
    pub(crate) fn below(&self, task: Uuid) -> usize {
        let top = AgentId::from(task);
        // Copied, because `is_below` takes the same lock.
        let agents: Vec<AgentId> = self.live_agents().keys().copied().collect();
        agents
            .into_iter()
            .filter(|agent| *agent != top && self.is_below(*agent, top))
            .count()
    }

    /// Returns true if an agent may stop a run: only what it or an agent below it started.
    pub(crate) fn may_stop(&self, agent: AgentId, run: &Run) -> bool {
        let owner = if run.is_agent() {
            AgentId::from(run.facts.task)
        } else {
            run.starter()
        };
        run.starter() == agent || (owner != agent && self.is_below(owner, agent))
    }

    /// Returns true if `agent` is `above` or comes from it.
    fn is_below(&self, agent: AgentId, above: AgentId) -> bool {
        let live_agents = self.live_agents();
        let mut at = Some(agent);
        while let Some(agent) = at {
            if agent == above {
                return true;
            }
            at = live_agents.get(&agent).and_then(|entry| entry.who.parent);
        }
        false
    }

    /// Sends a command to an agent at once, or not at all.
    pub(crate) fn tell(&self, agent: AgentId, command: Command) -> Result<(), TellError> {
        let who = self.live_agent(agent).ok_or(TellError::NotHere)?;
        who.commands.try_send(command)
    }

    /// Wakes an agent. Returns false if it does not live here.
    pub(crate) fn wake(&self, agent: AgentId, about: WakeReason) -> bool {
        let wakeup = self
            .live_agents()
            .get(&agent)
            .map(|live_agent| Arc::clone(&live_agent.wakeup));
        wakeup.map(|wakeup| wakeup.raise(about)).is_some()
    }

    /// Notes that nobody can answer questions of a session any more, and tells its agents.
    pub(crate) fn unattended(&self, session: &Session) {
        session.attended.store(false, Ordering::Release);
        let below =
            |it: &&RegistryEntry| it.who.session.root == session.root && it.who.parent.is_some();
        for live_agent in self.live_agents().values().filter(below) {
            live_agent.wakeup.raise(WakeReason::Unattended);
        }
    }

    /// Moves all sub-agents of a session to the background.
    pub(crate) fn detach_all(&self, root: AgentId) {
        // Collected first, because `detach` takes the same lock.
        let of_tree = |it: &&RegistryEntry| it.who.session.root == root;
        let runs: Vec<_> = self
            .live_agents()
            .values()
            .filter(of_tree)
            .filter_map(|it| it.who.run.clone())
            .collect();
        for run in runs {
            self.detach(&run);
        }
    }

    /// Moves a sub-agent to the background.
    pub(crate) fn detach(&self, run: &Arc<Run>) {
        if run.detach() {
            self.detached(run);
        }
    }

    /// Counts a background run for its starter, if it has not ended meanwhile.
    pub(crate) fn count(&self, run: &Run) {
        let mut live_agents = self.live_agents();
        if live_agents.contains_key(&AgentId::from(run.facts.task))
            && let Some(starter) = live_agents.get_mut(&run.starter())
        {
            starter.live.insert(run.facts.task);
        }
    }

    /// Counts a run that has just moved to the background, and reports it.
    pub(crate) fn detached(&self, run: &Run) {
        self.count(run);
        let agent = AgentId::from(run.facts.task);
        let session = self
            .live_agent(agent)
            .map(|live_agent| Arc::clone(&live_agent.session));
        if let Some(session) = session {
            let news = RunUpdate {
                run: run.facts.clone(),
                what: RunChange::Detached,
            };
            // Not waited for: a front end that does not read must not hold up the caller.
            session.events.try_send(Event {
                agent,
                kind: EventKind::Run(Box::new(news)),
            });
        }
    }

    /// Returns the rules that hold for an agent now; none if it does not live here.
    pub(crate) fn policy(&self, agent: AgentId) -> Option<Arc<Policy>> {
        let live_agents = self.live_agents();
        live_agents
            .get(&agent)
            .map(|entry| entry.who.rights.policy())
    }

    /// Locks the table.
    pub(super) fn live_agents(&self) -> MutexGuard<'_, HashMap<AgentId, RegistryEntry>> {
        self.live_agents
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a run from its starter's count, and wakes the starter if it was counted.
fn settle(starter: &mut RegistryEntry, task: Uuid) {
    if starter.live.remove(&task) {
        starter.wakeup.raise(WakeReason::Settle);
    }
}

/// Returns the parent, if the agent works in the parent's worktree: the parent must not end first,
/// because its worktree is removed with it.
fn host(live_agents: &HashMap<AgentId, RegistryEntry>, who: &LiveAgent) -> Option<AgentId> {
    let parent = who.parent?;
    let here = |who: &LiveAgent| {
        who.rights
            .workspace()
            .mirror
            .as_ref()
            .map(|mirror| mirror.here.clone())
    };
    let own = here(who)?;
    (here(&live_agents.get(&parent)?.who)? == own).then_some(parent)
}
