//! One realm as a board shows it: its agents, teams, tasks and questions, read once and then kept by
//! the realm's feed.

use std::collections::{HashMap, HashSet};

use posse_port::store::{
    AgentRow, AgentState, FeedPage, Page, QuestionFilter, QuestionRecord, RowFilter, Store,
    StoreError, TaskFilter, Topics,
};
use posse_protocol::{AgentId, ListId, RealmId, TaskStatus};
use posse_tui::board::{BoardAgent, BoardQuestion, BoardTaskList};
use posse_tui::conversation::Sign;
use posse_tui::question::about;

use crate::output::short_path;
use crate::select::questions::LISTED;
use crate::select::tasks::list_of;

/// Number of agents that are read at a time.
const PAGE: usize = 1000;

/// A realm on a board.
pub(super) struct BoardRealm {
    realm: RealmId,
    /// The number of the last row of its feed that is in here.
    pub(super) number: u64,
    rows: HashMap<AgentId, AgentRow>,
    /// What the sessions of the realm are called, by their main agents.
    sessions: HashMap<AgentId, String>,
    /// What members of teams are called.
    members: HashMap<AgentId, String>,
    tasks: Vec<BoardTaskList>,
    questions: Vec<QuestionRecord>,
    /// What agents ask, in a line.
    asks: HashMap<AgentId, String>,
    /// The tasks that agents have in progress, in a line.
    works_on: HashMap<AgentId, String>,
}

/// What of a realm has changed.
#[derive(Default)]
pub(super) struct RealmChange {
    /// Agents whose rows are new.
    pub(super) agents: HashSet<AgentId>,
    /// Agents that have spent something.
    pub(super) costs: HashSet<AgentId>,
    /// Agents that have said something.
    pub(super) entries: HashSet<AgentId>,
    /// Agents that got messages.
    pub(super) mail: HashSet<AgentId>,
    pub(super) tasks: bool,
    pub(super) questions: bool,
}

impl BoardRealm {
    /// Reads a realm whose sessions are called so.
    pub(super) async fn read(
        store: &dyn Store,
        realm: RealmId,
        sessions: HashMap<AgentId, String>,
    ) -> Result<Self, StoreError> {
        let mut this = Self {
            realm,
            number: 0,
            rows: HashMap::new(),
            sessions,
            members: HashMap::new(),
            tasks: Vec::new(),
            questions: Vec::new(),
            asks: HashMap::new(),
            works_on: HashMap::new(),
        };
        this.read_again(store).await?;
        Ok(this)
    }

    /// Reads all of it.
    async fn read_again(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        self.rows.clear();
        let mut page = Page::first(PAGE);
        let mut number = None;
        loop {
            let read = store.rows(self.realm, RowFilter::Page(page)).await?;
            // What happens while the later pages are read has a higher number than the first.
            number.get_or_insert(read.number);
            let last = read.rows.last().map(|row| row.key(self.realm));
            let is_last = read.rows.len() < PAGE;
            self.rows
                .extend(read.rows.into_iter().map(|row| (row.agent, row)));
            match last.filter(|_| !is_last) {
                Some(last) => page = Page::after(last, PAGE),
                None => break,
            }
        }
        self.number = number.unwrap_or(0);
        self.read_teams(store).await?;
        self.read_questions(store).await
    }

    async fn read_teams(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let teams = store.teams(Some(self.realm), Page::all()).await?;
        let own = ListId {
            realm: self.realm,
            team: None,
        };
        let mut lists = vec![(own, "session".to_owned())];
        // Who has left a team keeps its name here.
        for team in &teams {
            lists.push((list_of(team), team.name.to_string()));
            let named = team.members.iter();
            let named = named.map(|it| (it.agent, format!("{}@{}", it.name, team.name)));
            self.members.extend(named);
        }
        self.tasks.clear();
        for (list, label) in lists {
            let tasks = store
                .tasks(list.clone(), TaskFilter::default(), Page::all())
                .await?;
            // The list of a session without tasks is not worth a line; that of a team is.
            if !tasks.is_empty() || list.team.is_some() {
                self.tasks.push(BoardTaskList { list, label, tasks });
            }
        }
        let tasks = self.tasks.iter().flat_map(|list| &list.tasks);
        let open = tasks.filter(|task| task.status == TaskStatus::InProgress);
        let owned = open.filter_map(|task| {
            let owner = task.owner.as_ref()?.agent?;
            Some((owner, format!("#{} {}", task.id, task.subject)))
        });
        self.works_on = owned.collect();
        Ok(())
    }

    async fn read_questions(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let filter = QuestionFilter {
            realm: Some(self.realm),
            open: true,
            ..QuestionFilter::default()
        };
        self.questions = store.questions(filter, Page::first(LISTED)).await?;
        self.asks.clear();
        for record in &self.questions {
            let asked = || format!("{}: {}", record.question.tool, about(&record.question));
            self.asks.entry(record.agent).or_insert_with(asked);
        }
        Ok(())
    }

    /// Reads what a page of the feed is about.
    pub(super) async fn follow(
        &mut self,
        store: &dyn Store,
        page: &FeedPage,
    ) -> Result<RealmChange, StoreError> {
        let mut change = RealmChange::default();
        if page.has_gap(self.number) {
            self.read_again(store).await?;
            change.agents.extend(self.rows.keys());
            change.costs.extend(self.rows.keys());
            change.entries.extend(self.rows.keys());
            change.mail.extend(self.rows.keys());
            (change.tasks, change.questions) = (true, true);
            return Ok(change);
        }
        for row in &page.rows {
            self.number = row.number;
            let has = |topic| row.topics.contains(topic);
            change.tasks |= has(Topics::TASKS) || has(Topics::TEAMS);
            change.questions |= has(Topics::QUESTIONS);
            let Some(agent) = row.agent else { continue };
            change.agents.insert(agent);
            for (topic, agents) in [
                (Topics::COSTS, &mut change.costs),
                (Topics::ENTRIES, &mut change.entries),
                (Topics::MAIL, &mut change.mail),
            ] {
                if has(topic) {
                    agents.insert(agent);
                }
            }
        }
        if change.tasks {
            // What members do has changed.
            change.agents.extend(self.works_on.keys());
            self.read_teams(store).await?;
            change.agents.extend(self.works_on.keys());
        }
        if change.questions {
            change.agents.extend(self.asks.keys());
            self.read_questions(store).await?;
            change.agents.extend(self.asks.keys());
        }
        let wanted = RowFilter::Agents(change.agents.iter().copied().collect());
        for row in store.rows(self.realm, wanted).await?.rows {
            self.rows.insert(row.agent, row);
        }
        Ok(change)
    }

    /// Notes what another session of the realm is called.
    pub(super) fn add_session(&mut self, session: AgentId, name: String) {
        self.sessions.entry(session).or_insert(name);
    }

    /// Returns all its agents.
    pub(super) fn agents(&self) -> impl Iterator<Item = AgentId> {
        self.rows.keys().copied()
    }

    /// Returns true if it has an agent.
    pub(super) fn has(&self, agent: AgentId) -> bool {
        self.rows.contains_key(&agent)
    }

    /// Returns the main agents of its sessions.
    pub(super) fn sessions(&self) -> impl Iterator<Item = AgentId> {
        self.sessions.keys().copied()
    }

    /// Returns when an agent made its last step.
    pub(super) fn used_ms(&self, agent: AgentId) -> i64 {
        self.rows.get(&agent).map_or(0, |row| row.used_ms)
    }

    /// Returns the tasks of all its lists.
    pub(super) fn tasks(&self) -> &[BoardTaskList] {
        &self.tasks
    }

    /// Returns its open questions.
    pub(super) fn questions(&self) -> impl Iterator<Item = BoardQuestion> {
        self.questions.iter().map(|record| BoardQuestion {
            agent: record.agent,
            session: self.root_of(record.agent),
            question: record.question.clone(),
            asked_ms: record.asked_ms,
        })
    }

    /// Returns an agent for a board.
    pub(super) fn agent(&self, agent: AgentId) -> Option<BoardAgent> {
        let row = self.rows.get(&agent)?;
        let sign = self.sign(row);
        Some(BoardAgent {
            agent,
            session: self.root_of(agent),
            parent: row.parent,
            name: self.name(agent),
            doing: self.doing(row, sign),
            sign,
            changed_ms: row.used_ms,
            place: short_path(&row.cwd),
            model: row.model.clone(),
            waiting_mail: row.waiting,
        })
    }

    /// Returns what an agent is called.
    pub(super) fn name(&self, agent: AgentId) -> String {
        let given = || self.members.get(&agent).or(self.sessions.get(&agent));
        let Some(row) = self.rows.get(&agent) else {
            return given().cloned().unwrap_or_else(|| agent.to_string());
        };
        match (given(), &row.name) {
            (Some(name), _) => name.clone(),
            (None, Some(name)) => name.to_string(),
            (None, None) if row.parent.is_none() => "main agent".to_owned(),
            // Without a name of its own, what it is to do is its name.
            (None, None) if row.description.is_empty() => row.agent_type.clone(),
            (None, None) => row.description.clone(),
        }
    }

    /// Returns the directory of an agent.
    pub(super) fn directory(&self, agent: AgentId) -> Option<&std::path::Path> {
        self.rows.get(&agent).map(|row| row.cwd.as_path())
    }

    /// Returns the main agent of an agent's session.
    pub(super) fn root_of(&self, agent: AgentId) -> AgentId {
        self.ancestry(agent).last().unwrap_or(agent)
    }

    /// Returns an agent and all above it, up to the main agent of its session.
    pub(super) fn ancestry(&self, agent: AgentId) -> impl Iterator<Item = AgentId> {
        let parent = |at: &AgentId| self.rows.get(at).and_then(|row| row.parent);
        // Bounded, so that a damaged store with a cycle does not hang the board.
        std::iter::successors(Some(agent), parent).take(self.rows.len() + 1)
    }

    fn sign(&self, row: &AgentRow) -> Sign {
        if self.asks.contains_key(&row.agent) {
            return Sign::Asks;
        }
        match (row.state, row.holder.is_some()) {
            (AgentState::Running | AgentState::Created, true) => Sign::Working,
            (AgentState::Waiting, true) => Sign::Waits,
            (AgentState::Idle, _) => Sign::Idle,
            (AgentState::Completed, _) => Sign::Done,
            // Its process has died, or something has stopped it.
            _ => Sign::Failed,
        }
    }

    fn doing(&self, row: &AgentRow, sign: Sign) -> String {
        if let Some(asked) = self.asks.get(&row.agent) {
            return asked.clone();
        }
        let is_named = row.name.is_some() || self.members.contains_key(&row.agent);
        let about = match is_named {
            true => &row.description,
            false => &row.agent_type,
        };
        let what = self.works_on.get(&row.agent).unwrap_or(about).clone();
        let state = match (row.state, row.holder.is_some()) {
            (state, false) if state.is_open() => "broken off",
            (state, _) if sign == Sign::Failed => state.as_str(),
            _ => return what,
        };
        match what.is_empty() {
            true => state.to_owned(),
            false => format!("{state}: {what}"),
        }
    }
}
