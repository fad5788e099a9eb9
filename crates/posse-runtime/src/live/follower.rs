//! Follows the feed of a session for those who watch it: what concerns several agents, such as
//! tasks, mail and requests, is told from there, whichever process has committed it. One follower
//! for each session, as long as somebody watches it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use posse_port::Ports;
use posse_port::store::{
    FeedPage, FeedRow, MailFilter, OpenRequest, Page, Store, StoreError, TaskFilter, Topics,
};
use posse_protocol::{
    AgentId, Event, EventKind, ListId, Mail, MailId, MailUpdate, Name, RealmId, RequestUpdate,
    Task, TaskId, TaskStatus, TaskUpdate,
};
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::live::session::Session;
use crate::live::viewers::Viewers;
use crate::supervise::Supervisor;

/// Number of rows that are read at once.
const ROWS: usize = 256;
/// Minimum time between two looks: what happens in between is told together.
const PAUSE: Duration = Duration::from_millis(100);
/// Time until another look after a store has failed.
const AGAIN: Duration = Duration::from_secs(1);

/// The followers of this process.
#[derive(Default)]
pub(crate) struct Followers(Mutex<HashMap<AgentId, Weak<FollowGuard>>>);

/// Keeps a follower going until it is dropped.
pub(crate) struct FollowGuard {
    _stop: DropGuard,
    /// Makes it tell again what is there.
    newcomer: Arc<Notify>,
}

impl Followers {
    /// Returns what keeps the follower of a session going; starts it if there is none.
    pub(crate) fn follow(
        &self,
        session: &Session,
        (ports, supervisor, viewers): (&Ports, &Supervisor, &Viewers),
    ) -> Arc<FollowGuard> {
        let mut followers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        followers.retain(|_, guard| guard.strong_count() > 0);
        if let Some(guard) = followers.get(&session.root).and_then(Weak::upgrade) {
            guard.newcomer.notify_one();
            return guard;
        }
        let newcomer = Arc::<Notify>::default();
        newcomer.notify_one();
        let stop = supervisor.branch();
        let follower = Follower {
            ports: ports.clone(),
            viewers: viewers.clone(),
            root: session.root,
            realm: session.realm,
            newcomer: Arc::clone(&newcomer),
            is_begun: false,
            head: 0,
            tasks: HashMap::new(),
            requests: HashMap::new(),
        };
        let guard = Arc::new(FollowGuard {
            _stop: stop.clone().drop_guard(),
            newcomer,
        });
        followers.insert(session.root, Arc::downgrade(&guard));
        supervisor.start_errand(follower.run(stop));
        guard
    }
}

/// What a task was when it was looked at last.
type KnownTasks = HashMap<(Option<Name>, TaskId), u64>;

/// Follows one session.
struct Follower {
    ports: Ports,
    viewers: Viewers,
    root: AgentId,
    realm: RealmId,
    newcomer: Arc<Notify>,
    is_begun: bool,
    /// Number up to which the feed was read.
    head: u64,
    /// The version of each task.
    tasks: KnownTasks,
    /// The requests that are open.
    requests: HashMap<MailId, OpenRequest>,
}

impl Follower {
    async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.follow() => {}
        }
    }

    async fn follow(&mut self) {
        let newcomer = Arc::clone(&self.newcomer);
        loop {
            let looked = tokio::select! {
                // First: what is there is told before what changes.
                biased;
                () = newcomer.notified() => {
                    let told = self.introduce().await;
                    if told.is_err() {
                        newcomer.notify_one();
                    }
                    told
                }
                page = self.ports.store.follow_feed(self.realm, self.head, ROWS) => match page {
                    Ok(page) => self.tell_changes(page).await,
                    Err(error) => Err(error),
                },
            };
            let pause = if looked.is_ok() { PAUSE } else { AGAIN };
            self.ports.clock.sleep(pause).await;
        }
    }

    /// Tells what is there, since somebody new watches. The feed is looked at first, so that nothing
    /// is missed in between.
    async fn introduce(&mut self) -> Result<(), StoreError> {
        if !self.is_begun {
            self.head = self.store().feed(self.realm, 0, 0).await?.head;
            self.is_begun = true;
        }
        self.tasks.clear();
        for (team, task) in self.changed_tasks().await? {
            if !task.status.is_settled() {
                self.tell(self.root, EventKind::Task(Box::new(update(team, task))));
            }
        }
        self.requests.clear();
        self.tell_requests().await
    }

    /// Tells what commits have changed.
    async fn tell_changes(&mut self, page: FeedPage) -> Result<(), StoreError> {
        let mut topics = Topics::default();
        if page.has_gap(self.head) {
            topics = Topics::TASKS | Topics::REQUESTS;
        }
        for row in &page.rows {
            topics |= row.topics;
            self.tell_mail(row).await?;
        }
        if topics.contains(Topics::TASKS) || topics.contains(Topics::TEAMS) {
            for (team, task) in self.changed_tasks().await? {
                self.tell(self.root, EventKind::Task(Box::new(update(team, task))));
            }
        }
        if topics.contains(Topics::REQUESTS) {
            self.tell_requests().await?;
        }
        // Only now: if the store has failed, all of it is looked at again.
        self.head = page.rows.last().map_or(page.head, |row| row.number);
        Ok(())
    }

    fn store(&self) -> &dyn Store {
        &*self.ports.store
    }

    fn tell(&self, agent: AgentId, kind: EventKind) {
        self.viewers.show(self.root, &Event { agent, kind });
    }

    /// Tells of messages that a row says were delivered.
    async fn tell_mail(&self, row: &FeedRow) -> Result<(), StoreError> {
        let (Some(agent), Topics::MAIL, Some(before)) =
            (row.agent, row.topics, row.seq.checked_sub(1))
        else {
            return Ok(());
        };
        let count = usize::try_from(row.count).unwrap_or(usize::MAX);
        let (filter, page) = (MailFilter::default(), Page::after(before, count));
        for mail in self.store().mail(self.realm, agent, filter, page).await? {
            self.tell(agent, EventKind::Mail(Box::new(delivered(mail))));
        }
        Ok(())
    }

    /// Returns the tasks that have changed since it was last called, with their teams.
    async fn changed_tasks(&mut self) -> Result<Vec<(Option<Name>, Task)>, StoreError> {
        let realm = self.realm;
        let teams = self.store().teams(Some(realm), Page::all()).await?;
        let lists = teams.into_iter().map(|team| Some(team.name)).chain([None]);
        let (mut changed, mut seen) = (Vec::new(), HashSet::new());
        for team in lists {
            let list = ListId {
                realm,
                team: team.clone(),
            };
            let all = self
                .store()
                .tasks(list, TaskFilter::default(), Page::all())
                .await?;
            for task in all {
                let key = (team.clone(), task.id);
                seen.insert(key.clone());
                if self.tasks.insert(key, task.version) != Some(task.version) {
                    changed.push((team.clone(), task));
                }
            }
        }
        let gone: Vec<_> = self
            .tasks
            .keys()
            .filter(|key| !seen.contains(*key))
            .cloned()
            .collect();
        for (team, id) in gone {
            let list = ListId {
                realm,
                team: team.clone(),
            };
            // A list of which nothing is left went with its team.
            let task = self.store().task(list, id).await?;
            let task = task.filter(|task| task.status == TaskStatus::Deleted);
            changed.extend(task.map(|task| (team.clone(), task)));
            self.tasks.remove(&(team, id));
        }
        Ok(changed)
    }

    async fn open_requests(&self) -> Result<HashMap<MailId, OpenRequest>, StoreError> {
        let open = self.store().requests(self.realm, None, Page::all()).await?;
        Ok(open
            .into_iter()
            .map(|request| (request.id, request))
            .collect())
    }

    /// Tells which requests were made, and which wait no more.
    async fn tell_requests(&mut self) -> Result<(), StoreError> {
        let open = self.open_requests().await?;
        let known = std::mem::replace(&mut self.requests, open);
        let new = self.requests.values();
        let new = new.filter(|request| !known.contains_key(&request.id));
        let new = new.map(|request| (request, true));
        let over = known.values();
        let over = over.filter(|request| !self.requests.contains_key(&request.id));
        for (request, is_open) in new.chain(over.map(|request| (request, false))) {
            let update = RequestUpdate {
                id: request.id,
                kind: request.kind,
                from: request.from.name().to_owned(),
                text: request.text.clone(),
                is_open,
            };
            self.tell(request.to, EventKind::Request(Box::new(update)));
        }
        Ok(())
    }
}

/// Returns a message as viewers are told of it.
fn delivered(mail: Mail) -> MailUpdate {
    MailUpdate {
        id: mail.id,
        number: mail.number,
        from: mail.from.name().to_owned(),
        kind: mail.kind,
        summary: mail.summary,
        body: mail.body,
    }
}

/// Returns a task as viewers are told of it.
fn update(team: Option<Name>, task: Task) -> TaskUpdate {
    TaskUpdate {
        team,
        id: task.id,
        subject: task.subject,
        status: task.status,
        owner: task.owner.map(|owner| owner.name),
        waits_for: task.waits_for,
    }
}
