//! Reads what a board shows: once all of it, and from then on what the feeds name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::{Clock as _, SystemClock};
use posse_port::store::{
    AgentFilter, AgentRecord, FeedPage, MailFilter, Page, SessionFilter, Store, StoreError,
};
use posse_protocol::{AgentId, Cost, RealmId};
use posse_tui::board::{Board, BoardInput, BoardMail, BoardScreen, CostRow, Scope};
use tokio::task::JoinSet;

use super::realm::{BoardRealm, RealmChange};
use super::stale_costs::{DueCosts, StaleCosts};
use super::worktrees::{WorktreeReader, WorktreeReading};
use crate::output::transcript::shortened;
use crate::present::costs::Tally;
use crate::present::history::{decoded, first_line};

/// Number of sessions that a board has.
const SESSIONS: usize = 200;
/// Number of rows of a feed that are read at a time.
const ROWS: usize = 1000;
/// Time between two looks for sessions that are new.
const LOOK: Duration = Duration::from_secs(2);
/// Number of agents whose messages are shown, the last used ones, and of messages of each.
const INBOXES: usize = 200;
const MESSAGES: usize = 20;
/// Number of entries that a peek shows.
const PEEK: usize = 12;
/// Number of characters of a session's first words.
const WORDS: usize = 60;

/// Which sessions a board is about.
#[derive(Clone)]
pub(crate) struct BoardPlace {
    /// The session of a board of one.
    pub(crate) session: Option<AgentRecord>,
    /// The directory.
    pub(crate) cwd: PathBuf,
}

/// Reads for a board.
pub(super) struct BoardReader {
    store: Arc<dyn Store>,
    place: BoardPlace,
    scope: Scope,
    realms: BTreeMap<RealmId, BoardRealm>,
    following: JoinSet<(RealmId, Result<FeedPage, StoreError>)>,
    /// What is to be read before the next frame.
    stale: Stale,
    /// The agent at which the person peeks.
    peeked: Option<AgentId>,
    pub(super) worktrees: WorktreeReader,
    clock: SystemClock,
    /// When new sessions are looked for.
    look_at: Duration,
}

/// What is on the board and may be wrong.
#[derive(Default)]
struct Stale {
    costs: StaleCosts,
    /// Agents whose messages have changed.
    mail: bool,
    charges: bool,
    peek: bool,
}

/// What has happened.
pub(super) enum BoardNews {
    /// A feed has grown.
    Feed(RealmId, Result<FeedPage, StoreError>),
    /// It is time to look for new sessions.
    Look,
    /// It is time to read costs.
    Costs,
    /// Something of worktrees was read; none if it is time to read them.
    Worktrees(Option<WorktreeReading>),
}

impl BoardReader {
    /// Returns a reader that has read nothing.
    pub(super) fn new(store: Arc<dyn Store>, place: BoardPlace, scope: Scope) -> Self {
        Self {
            store,
            place,
            scope,
            realms: BTreeMap::new(),
            following: JoinSet::new(),
            stale: Stale::default(),
            peeked: None,
            worktrees: WorktreeReader::new(),
            clock: SystemClock::default(),
            look_at: LOOK,
        }
    }

    /// Reads everything of a scope.
    pub(super) async fn read(&mut self, scope: Scope) -> anyhow::Result<Vec<BoardInput>> {
        let before = std::mem::take(&mut self.realms);
        let gone = before.values().flat_map(BoardRealm::agents).collect();
        self.following = JoinSet::new();
        self.scope = scope;
        self.stale.mail = true;
        self.stale.charges = true;
        self.worktrees.add_all();
        let mut inputs = vec![BoardInput::Agents {
            changed: Vec::new(),
            gone,
        }];
        inputs.extend(self.add_sessions(SESSIONS).await?);
        Ok(inputs)
    }

    /// Adds sessions of the scope that are not on the board yet, among the last used ones.
    async fn add_sessions(&mut self, most: usize) -> anyhow::Result<Vec<BoardInput>> {
        let sessions = match (self.scope, &self.place.session) {
            (Scope::Session, Some(session)) => vec![session.clone()],
            (Scope::Session | Scope::Directory, _) => {
                let filter = SessionFilter {
                    cwd: Some(self.place.cwd.clone()),
                    ..SessionFilter::default()
                };
                self.store.sessions(filter, Page::first(most)).await?
            }
            (Scope::Store, _) => {
                let filter = SessionFilter::default();
                self.store.sessions(filter, Page::first(most)).await?
            }
        };
        let mut named: BTreeMap<RealmId, HashMap<AgentId, String>> = BTreeMap::new();
        for session in &sessions {
            let name = self.session_name(session);
            match self.realms.get_mut(&session.realm) {
                Some(realm) => realm.add_session(session.agent, name),
                None => {
                    let names = named.entry(session.realm).or_default();
                    names.insert(session.agent, name);
                }
            }
        }
        let mut changed = Vec::new();
        for (id, names) in named {
            let realm = BoardRealm::read(&*self.store, id, names).await?;
            changed.extend(realm.agents().filter_map(|agent| realm.agent(agent)));
            self.stale.costs.add_new(realm.agents());
            self.worktrees.add_changed(realm.agents());
            self.follow(id, realm.number);
            self.realms.insert(id, realm);
        }
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let gone = Vec::new();
        Ok(vec![
            BoardInput::Agents { changed, gone },
            self.tasks(),
            self.questions(),
        ])
    }

    fn session_name(&self, session: &AgentRecord) -> String {
        if self.scope == Scope::Session {
            return "main agent".to_owned();
        }
        let words = session.first_prompt.as_deref().and_then(first_line);
        let words = words.map(|words| shortened(&words, WORDS));
        words.unwrap_or_else(|| "(nothing was said)".to_owned())
    }

    fn follow(&mut self, realm: RealmId, after: u64) {
        let store = Arc::clone(&self.store);
        self.following
            .spawn(async move { (realm, store.follow_feed(realm, after, ROWS).await) });
    }

    /// Waits until something has happened. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> BoardNews {
        let rest = self.look_at.saturating_sub(self.clock.now());
        let look = async {
            match self.scope {
                Scope::Session => std::future::pending().await,
                Scope::Directory | Scope::Store => self.clock.sleep(rest).await,
            }
        };
        let due = self.stale.costs.due_at();
        let costs = async {
            match due {
                Some(at) => self.clock.sleep(at.saturating_sub(self.clock.now())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(Ok((realm, page))) = self.following.join_next() => BoardNews::Feed(realm, page),
            () = look => BoardNews::Look,
            () = costs => BoardNews::Costs,
            read = self.worktrees.next(&self.clock) => BoardNews::Worktrees(read),
        }
    }

    /// Reads what has happened.
    pub(super) async fn on_news(&mut self, news: BoardNews) -> anyhow::Result<Vec<BoardInput>> {
        match news {
            BoardNews::Look => {
                self.look_at = self.clock.now() + LOOK;
                self.add_sessions(1).await
            }
            // Those of the screen are read before the next frame.
            BoardNews::Costs => Ok(Vec::new()),
            BoardNews::Worktrees(read) => {
                let read = read.map(|read| self.worktrees.on_read(read));
                Ok(read.into_iter().collect())
            }
            BoardNews::Feed(id, page) => {
                let page = page?;
                let Some(realm) = self.realms.get_mut(&id) else {
                    return Ok(Vec::new());
                };
                let change = realm.follow(&*self.store, &page).await?;
                let after = realm.number;
                self.follow(id, after);
                Ok(self.changed(id, change))
            }
        }
    }

    fn changed(&mut self, id: RealmId, change: RealmChange) -> Vec<BoardInput> {
        let Some(realm) = self.realms.get(&id) else {
            return Vec::new();
        };
        let agents = change.agents.iter();
        let mut inputs = vec![BoardInput::Agents {
            changed: agents.filter_map(|agent| realm.agent(*agent)).collect(),
            gone: Vec::new(),
        }];
        // What an agent spends is spent by all above it, too.
        let spending = change.costs.iter();
        let costs = spending.flat_map(|agent| realm.ancestry(*agent));
        self.stale.costs.add_changed(costs);
        self.stale.charges |= !change.costs.is_empty();
        self.stale.mail |= !change.mail.is_empty();
        let worked = change.agents.iter().chain(&change.entries);
        self.worktrees.add_changed(worked.copied());
        let peeked = self.peeked.is_some_and(|it| change.entries.contains(&it));
        self.stale.peek |= peeked;
        if change.tasks {
            inputs.push(self.tasks());
        }
        if change.questions {
            inputs.push(self.questions());
        }
        inputs
    }

    fn tasks(&self) -> BoardInput {
        let lists = self.realms.values().flat_map(|realm| realm.tasks());
        BoardInput::Tasks(lists.cloned().collect())
    }

    fn questions(&self) -> BoardInput {
        let all = self.realms.values().flat_map(|realm| realm.questions());
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|question| question.asked_ms);
        BoardInput::Questions(all)
    }

    /// Sets at whom the person peeks.
    pub(super) fn peek(&mut self, agent: Option<AgentId>) {
        self.peeked = agent;
        self.stale.peek = agent.is_some();
    }

    /// Reads what is on the screen and is not known: no more than that.
    pub(super) async fn fill(&mut self, board: &Board) -> anyhow::Result<Vec<BoardInput>> {
        let mut inputs = Vec::new();
        let (visible, now) = (board.visible_agents(), self.clock.now());
        let sessions = self.realms.values().flat_map(BoardRealm::sessions);
        let due = self.stale.costs.take(&visible, sessions, now);
        if !due.agents.is_empty() {
            inputs.extend(self.spent(due).await?);
        }
        if std::mem::take(&mut self.stale.peek)
            && let Some(agent) = self.peeked
        {
            inputs.push(self.peeked_at(agent).await?);
        }
        match board.screen() {
            BoardScreen::Mail if std::mem::take(&mut self.stale.mail) => {
                inputs.push(self.mail().await?);
            }
            BoardScreen::Cost if std::mem::take(&mut self.stale.charges) => {
                inputs.push(self.costs().await?);
            }
            _ => {}
        }
        let agents = self.realms.values().flat_map(BoardRealm::agents);
        self.worktrees.begin(board, agents, now);
        Ok(inputs)
    }

    /// Returns what agents have cost, and all sessions of the board together if that is due.
    async fn spent(&self, due: DueCosts) -> anyhow::Result<Vec<BoardInput>> {
        let spending = self.store.spending(due.agents.clone()).await?;
        let costs = spending.iter().map(|spent| Tally::of(&spent.charges).cost);
        let each: Vec<(AgentId, Option<Cost>)> = due.agents.iter().copied().zip(costs).collect();
        let mut inputs = vec![BoardInput::Spent(each)];
        if due.total {
            let sessions = self.realms.values().flat_map(BoardRealm::sessions);
            let sessions: HashSet<AgentId> = sessions.collect();
            let of_each = due.agents.iter().zip(&spending);
            let of_sessions = of_each.filter(|(agent, _)| sessions.contains(agent));
            inputs.push(BoardInput::Total {
                cost: Tally::of(of_sessions.flat_map(|(_, spent)| &spent.charges)).cost,
                budget: None,
            });
        }
        Ok(inputs)
    }

    async fn peeked_at(&self, agent: AgentId) -> anyhow::Result<BoardInput> {
        let page = self.store.entries(agent, Page::last(PEEK)).await?;
        let entries = page.entries.iter().filter_map(|entry| decoded(entry).ok());
        Ok(BoardInput::Peek {
            agent,
            entries: entries.collect(),
            arriving: String::new(),
        })
    }

    /// Returns the newest messages of the agents that were used last.
    async fn mail(&self) -> anyhow::Result<BoardInput> {
        let of_realm = |(id, realm): (&RealmId, &BoardRealm)| {
            let (id, agents) = (*id, realm.agents().collect::<Vec<_>>());
            let used = agents.into_iter().map(|it| (realm.used_ms(it), id, it));
            used.collect::<Vec<_>>()
        };
        let mut agents: Vec<_> = self.realms.iter().flat_map(of_realm).collect();
        agents.sort_unstable_by(|one, other| other.cmp(one));
        let mut all = Vec::new();
        for (_, id, agent) in agents.into_iter().take(INBOXES) {
            let Some(realm) = self.realms.get(&id) else {
                continue;
            };
            let page = Page::last(MESSAGES);
            let mail = self.store.mail(id, agent, MailFilter::default(), page);
            all.extend(mail.await?.into_iter().map(|mail| BoardMail {
                id: mail.id,
                from: mail.from,
                to: mail.to,
                to_name: realm.name(mail.to),
                kind: mail.kind,
                summary: mail.summary,
                body: mail.body,
                at_ms: mail.sent_ms,
                is_waiting: mail.shown_in.is_none(),
            }));
        }
        all.sort_by_key(|mail| std::cmp::Reverse(mail.at_ms));
        Ok(BoardInput::Mail(all))
    }

    /// Returns what each agent has spent, by model and purpose.
    async fn costs(&self) -> anyhow::Result<BoardInput> {
        let mut rows = Vec::new();
        for (id, realm) in &self.realms {
            let filter = AgentFilter {
                realm: Some(*id),
                ..AgentFilter::default()
            };
            for record in self.store.agents(filter, Page::all()).await? {
                rows.extend(record.charges.iter().map(|charge| {
                    let tally = Tally::of([charge]);
                    CostRow {
                        agent: record.agent,
                        name: realm.name(record.agent),
                        model: charge.model.clone(),
                        purpose: charge.purpose,
                        missed: tally.missed,
                        cost: tally.cost,
                        usage: tally.usage,
                    }
                }));
            }
        }
        Ok(BoardInput::Costs(rows))
    }

    /// Returns the realm that has an agent.
    pub(super) fn realm_of(&self, agent: AgentId) -> Option<(RealmId, &BoardRealm)> {
        let mut realms = self.realms.iter();
        let found = realms.find(|(_, realm)| realm.has(agent));
        found.map(|(id, realm)| (*id, realm))
    }
}
