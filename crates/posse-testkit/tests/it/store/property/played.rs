//! A history on a store and on the model, side by side.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use posse_port::store::{
    AgentFilter, AgentKey, AgentRecord, Committed, Epoch, FeedRow, MailFilter, OpResult, Operation,
    Order, Origin, Page, QuestionFilter, Ready, Refusal, RequestKey, RowFilter, RunChange, Segment,
    SessionFilter, SessionKey, Step, Store, TakenMail, TaskFilter, TeamKey, Topics, Wake,
};
use posse_protocol::{
    AgentId, EntryKind, HostId, ListId, Name, RealmId, Takes, TaskId, TaskStatus,
};
use posse_testkit::model::{Agent, Entry, Fate, HostNumber, Model};
use posse_testkit::store_contract::pages::paged;
use posse_testkit::store_contract::rows::row_of;
use posse_testkit::store_contract::{
    self as contract, Open, agent, birth, call, entry, fate, headed, loading, origin, step,
};
use uuid::Uuid;

use super::draft::{
    Begin, Born, Deed, Draft, HOSTS, Rough, TEAMS, Taking, Which, home, inhabitants,
};

/// How long a hint may take that must come.
const PATIENCE: Duration = Duration::from_secs(10);

/// An epoch as the model and as the store counts it.
type Pair = (u64, u64);

/// A realm by its number: two in which histories play, and those that teams are copied to.
fn realm(number: u64) -> RealmId {
    let first = contract::realm().uuid().as_u128();
    Uuid::from_u128(first + (u128::from(number) << 12)).into()
}

/// Where a history is played.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) open: Open<'a>,
    /// Where each host has a file while it lives.
    pub(super) hosts: Option<&'a Path>,
}

pub(super) struct Played<'a> {
    ground: Ground<'a>,
    model: Model,
    hosts: Vec<(HostNumber, Arc<dyn Store>)>,
    /// What each host was told and the model did not ask for yet.
    told: Vec<BTreeSet<Wake>>,
    /// The epochs that were given, oldest first.
    epochs: BTreeMap<AgentId, Vec<Pair>>,
    last: BTreeMap<AgentId, Step>,
    now: i64,
    /// How many realms there are.
    realms: u64,
}

impl<'a> Played<'a> {
    /// Plays a history.
    pub(super) async fn all(ground: Ground<'a>, deeds: &[Deed]) {
        let mut model = Model::default();
        let hosts = (0..HOSTS)
            .map(|_| (model.open(), (ground.open)()))
            .collect();
        let (told, epochs, last) = (
            vec![BTreeSet::new(); HOSTS],
            BTreeMap::new(),
            BTreeMap::new(),
        );
        let mut played = Self {
            ground,
            model,
            hosts,
            told,
            epochs,
            last,
            now: 0,
            realms: 2,
        };
        for deed in deeds {
            played.play(deed).await;
        }
        for host in 0..HOSTS {
            played.compare(host).await;
        }
    }

    async fn play(&mut self, deed: &Deed) {
        self.now += 1;
        match deed {
            Deed::Commit { host, steps } => self.commit(*host, steps).await,
            Deed::Repeat {
                host,
                agent: number,
            } => {
                if let Some(step) = self.last.get(&agent(*number)).cloned() {
                    self.commit_one(*host, step).await;
                }
            }
            Deed::Order {
                host,
                realm: number,
                ops,
            } => {
                let order = ops.iter().map(Rough::op).collect();
                let order = Order {
                    realm: realm(*number),
                    ops: order,
                    at_ms: self.now,
                };
                let wanted = self.model.operate(&order);
                let done = self.hosts[*host].1.operate(order).await.unwrap();
                same(&plain(done), &plain(wanted), ops);
            }
            Deed::Take { host, agent } => self.take(*host, *agent).await,
            Deed::Release {
                host,
                agent: number,
                epoch,
            } => {
                let (ours, theirs) = self.epoch(agent(*number), *epoch);
                self.model.release(agent(*number), Epoch(ours));
                self.hosts[*host]
                    .1
                    .release(agent(*number), Epoch(theirs))
                    .await
                    .unwrap();
            }
            Deed::Restart { host, killed } => self.restart(*host, *killed).await,
            Deed::Copy {
                host,
                realm,
                team,
                to,
            } => self.copy(*host, (*realm, team), *to).await,
            Deed::Compare { host } => self.compare(*host).await,
        }
    }

    fn epoch(&self, agent: AgentId, which: Which) -> Pair {
        let given = self.epochs.get(&agent).map_or(&[][..], Vec::as_slice);
        let last = given.last().copied().unwrap_or((1, 1));
        match which {
            Which::Last => last,
            Which::Before => given.iter().rev().nth(1).copied().unwrap_or((0, 0)),
            Which::Never => (last.0 + 1000, last.1 + 1000),
        }
    }

    /// Commits steps that are all called before any is waited for.
    async fn commit(&mut self, host: usize, drafts: &[Draft]) {
        let (number, store) = self.hosts[host].clone();
        let mut begun = Vec::new();
        for draft in drafts {
            self.now += 1;
            let (theirs, ours) = self.word(draft);
            let wanted = self.model.commit(number, &ours);
            self.note(&ours, &theirs, wanted.is_ok());
            begun.push((wanted, draft, store.commit(theirs)));
        }
        for (wanted, draft, commit) in begun {
            agree(&wanted, commit.await, draft);
        }
    }

    /// Commits a step as the store was given it before.
    async fn commit_one(&mut self, host: usize, theirs: Step) {
        let (number, store) = self.hosts[host].clone();
        let given = self
            .epochs
            .get(&theirs.agent)
            .map_or(&[][..], Vec::as_slice);
        let ours = given
            .iter()
            .find(|(_, real)| *real == theirs.epoch.0)
            .map_or(0, |(ours, _)| *ours);
        let wanted = self.model.commit(
            number,
            &Step {
                epoch: Epoch(ours),
                ..theirs.clone()
            },
        );
        let about = ("again", theirs.agent, theirs.epoch);
        agree(&wanted, store.commit(theirs).await, &about);
    }

    fn note(&mut self, ours: &Step, theirs: &Step, committed: bool) {
        if committed {
            self.last.insert(ours.agent, theirs.clone());
            if ours.birth.is_some() {
                self.epochs.insert(ours.agent, vec![(1, 1)]);
            }
        }
    }

    /// A step of a draft, with the store's epoch and with the model's.
    fn word(&self, draft: &Draft) -> (Step, Step) {
        let id = agent(draft.agent);
        let (ours, theirs) = self.epoch(id, draft.epoch);
        let mut worded = step(draft.agent, theirs);
        worded.at_ms = self.now;
        let home = home(draft.agent);
        worded.realm = realm(if draft.astray { 1 - home } else { home });
        if let Some(Born {
            segment,
            origin: from,
        }) = draft.born.clone()
        {
            worded.birth = birth(draft.agent).birth.map(|mut birth| {
                birth.path = format!("/a{}", draft.agent - inhabitants(home).start() + 1);
                let segments = segment.map(|(of, begin, to)| self.segment(agent(of), begin, to));
                birth.segments = segments.into_iter().collect();
                birth.origin = from.map(|(parent, name)| {
                    Box::new(Origin {
                        name,
                        ..*origin(parent)
                    })
                });
                birth
            });
        }
        let own = self
            .model
            .agent(id)
            .map_or(0, |known| known.own.len() as u64);
        for (at, (kind, head)) in (own + draft.off..).zip(&draft.kinds) {
            let seq = if draft.gap && at > own { at + 1 } else { at };
            let text = format!("{} said {at}", draft.agent);
            worded.entries.push(match head {
                Some(number) => {
                    let entry = headed(seq, *kind, &format!("head {number}"), &text);
                    match kind {
                        EntryKind::Results => loading(entry, &format!("[{number}]")),
                        _ => entry,
                    }
                }
                None => entry(seq, *kind, &text),
            });
        }
        for (seq, ordinal, change) in &draft.calls {
            worded.calls.push(call(*seq, *ordinal, change.clone()));
        }
        worded.charges.extend(draft.charge.clone());
        worded.reserved = draft.reserved.clone().map(Box::new);
        worded.seen.extend(draft.seen.clone());
        worded.mail = self.taken(
            worded.realm,
            id,
            draft,
            worded.entries.first().map(|entry| entry.seq),
        );
        for (call, op) in &draft.ops {
            let call = call.map(|(seq, ordinal)| posse_port::store::CallKey { seq, ordinal });
            worded.operations.push(Operation { call, op: op.op() });
        }
        let some = |number: u8| Uuid::from_u128(u128::from(number) + 1);
        worded
            .runs
            .extend(draft.run.clone().map(|(id, change)| RunChange {
                id: some(id),
                change,
            }));
        worded.questions.clone_from(&draft.questions);
        (worded.state, worded.mode) = (draft.state, draft.mode);
        worded.types = draft.mode.map(|mode| u64::MAX - mode as u64);
        (worded.ended, worded.starter) =
            (draft.ended.clone().map(Box::new), draft.starter.map(agent));
        let ours = Step {
            epoch: Epoch(ours),
            ..worded.clone()
        };
        (worded, ours)
    }

    /// Entries of an agent: up to one, or so many from its last compaction on.
    fn segment(&self, source: AgentId, begin: Begin, to: u64) -> Segment {
        let since = self.model.agent(source).and_then(|known| {
            known
                .own
                .iter()
                .rfind(|entry| entry.kind == EntryKind::Compaction)
                .map(|entry| entry.seq)
        });
        match begin {
            Begin::Number(from) => Segment {
                agent: source,
                from,
                to,
            },
            Begin::Compaction => {
                let from = since.unwrap_or(0);
                Segment {
                    agent: source,
                    from,
                    to: from + to,
                }
            }
        }
    }

    fn taken(
        &self,
        realm: RealmId,
        id: AgentId,
        draft: &Draft,
        entry: Option<u64>,
    ) -> Vec<TakenMail> {
        let waiting = self.model.mail(realm, id, MailFilter { waiting: true });
        let numbers = waiting.iter().map(|mail| mail.number);
        let all = |entry: u64| {
            numbers
                .clone()
                .map(move |number| TakenMail { number, entry })
        };
        match (draft.mail, entry) {
            (None, _) | (Some(Taking::All | Taking::Twice), None) => Vec::new(),
            (Some(Taking::All), Some(entry)) => all(entry).collect(),
            (Some(Taking::Twice), Some(entry)) => all(entry).chain(all(entry)).collect(),
            (Some(Taking::Number(number)), entry) => vec![TakenMail {
                number,
                entry: entry.unwrap_or(0),
            }],
            (Some(Taking::Elsewhere), entry) => all(entry.map_or(0, |entry| entry + 100)).collect(),
        }
    }

    async fn take(&mut self, host: usize, number: u64) {
        let (id, place) = (agent(number), self.hosts[host].0);
        let wanted = self.model.take(place, id);
        let taken = self.hosts[host].1.take(id).await;
        assert_eq!(fate(&taken), wanted.map_or_else(Fate::as_str, |_| "ok"));
        let (Ok(taken), Ok(epoch)) = (taken, wanted) else {
            return;
        };
        let given = self.epochs.entry(id).or_default();
        assert!(
            given.iter().all(|(_, before)| *before < taken.epoch.0),
            "{taken:?} after {given:?}"
        );
        given.push((epoch.0, taken.epoch.0));
        let known = self.model.agent(id).unwrap();
        assert_eq!(taken.transcript.open_calls, known.open_calls());
        let (sent, inherited) = known.sent();
        same(
            &taken.transcript.entries.iter().map(Entry::from).collect(),
            &sent,
            &id,
        );
        assert_eq!(taken.transcript.inherited, inherited);
        assert_eq!(taken.seen, known.seen());
        assert_eq!(taken.mail, self.model.mail_waiting(known.realm, id));
        let own = QuestionFilter {
            realm: Some(known.realm),
            agent: Some(id),
            ..QuestionFilter::default()
        };
        assert_eq!(
            taken.questions,
            self.model.questions(&own, &Page::first(1000))
        );
        assert_eq!(
            by_id(taken.runs, |run| run.id),
            by_id(known.runs(), |run| run.id)
        );
    }

    /// Ends a host, if another is there that notices, and opens one in its place. One that is killed
    /// leaves its file behind; in memory there is nothing that it could leave.
    async fn restart(&mut self, host: usize, killed: bool) {
        let gone = self.hosts[host].0;
        let Some(other) =
            (0..HOSTS).find(|other| *other != host && self.model.is_settled(self.hosts[*other].0))
        else {
            return;
        };
        // What others were told before is no answer to this.
        self.hear(other).await;
        let held = self
            .model
            .agents()
            .any(|(_, agent)| agent.holder == Some(gone));
        let left = self
            .ground
            .hosts
            .filter(|_| killed)
            .map(files)
            .unwrap_or_default();
        self.hosts.remove(host);
        for (path, content) in left.into_iter().filter(|(path, _)| !path.exists()) {
            fs::write(path, content).unwrap();
        }
        self.model.die(gone);
        self.hosts
            .insert(host, (self.model.open(), (self.ground.open)()));
        self.told[host].clear();
        if held {
            self.hear(other).await;
        }
    }

    /// Takes a team out, and puts it in elsewhere; what was not there before is the same there.
    async fn copy(&mut self, host: usize, (from, team): (u64, &Name), to: Option<u64>) {
        let store = Arc::clone(&self.hosts[host].1);
        let archive = store.export(realm(from), team.clone()).await.unwrap();
        same(&archive, &self.model.export(realm(from), team), team);
        let Some(mut archive) = archive else { return };
        self.realms += u64::from(to.is_none());
        archive.team.realm = realm(to.unwrap_or(self.realms - 1));
        let wanted = self.model.import(&archive);
        let imported = store.import(archive.clone()).await;
        assert_eq!(
            fate(&imported),
            wanted.map_or_else(Fate::as_str, |()| "ok"),
            "{team} {from} {to:?}"
        );
        let found = store
            .export(archive.team.realm, team.clone())
            .await
            .unwrap();
        same(&found, &self.model.export(archive.team.realm, team), team);
        if to.is_none() {
            for task in archive
                .tasks
                .iter_mut()
                .filter(|task| task.status == TaskStatus::InProgress)
            {
                (task.status, task.version) = (TaskStatus::Pending, task.version + 1);
                task.lost_by = task.owner.take().map(|owner| owner.name);
            }
            same(&found, &Some(archive), team);
        }
    }

    /// Has a host told all that it must know.
    async fn hear(&mut self, host: usize) {
        let (number, store) = self.hosts[host].clone();
        let nobody = HostId::from(Uuid::nil());
        let plain = |wake: Wake| {
            if matches!(wake, Wake::Died(_)) {
                Wake::Died(nobody)
            } else {
                wake
            }
        };
        let mut wanted: BTreeSet<Wake> = self.model.woken(number).into_iter().map(plain).collect();
        // A hint that has become empty may be left out.
        wanted.retain(|wake| match wake {
            Wake::Mail(to) => {
                let answered = |agent: &Agent| self.model.has_answers(agent.realm, *to);
                let waits = |agent: &&Agent| {
                    self.model.mail_waiting(agent.realm, *to) > 0 || answered(agent)
                };
                self.model
                    .agent(*to)
                    .filter(waits)
                    .is_some_and(|agent| agent.holder == Some(number))
            }
            Wake::Tasks(_) => self
                .model
                .agents()
                .any(|(_, agent)| agent.holder == Some(number)),
            _ => true,
        });
        let told = &mut self.told[host];
        while !wanted.is_subset(told) {
            let more = tokio::time::timeout(PATIENCE, store.woken()).await;
            let more =
                more.unwrap_or_else(|_| panic!("host {host} was told {told:?}, not {wanted:?}"));
            told.extend(more.unwrap().into_iter().map(plain));
        }
        told.clear();
    }

    /// Compares all that can be read through a host, and what it was told.
    async fn compare(&mut self, host: usize) {
        self.hear(host).await;
        let (model, store) = (&self.model, self.hosts[host].1.as_ref());
        let mut sessions: Vec<_> = model
            .agents()
            .map(|(id, known)| known.session(id))
            .collect();
        sessions.retain(|session| session.origin.is_none());
        sessions.sort_by_key(|session| Reverse((session.used_ms, session.agent)));
        let found = paged(
            host == 1,
            async |page| {
                store
                    .sessions(SessionFilter::default(), page)
                    .await
                    .unwrap()
            },
            SessionKey::of,
        )
        .await;
        same(&held(found), &held(sessions), &"sessions");
        for (id, known) in model.agents() {
            let read = store.read(id).await.unwrap();
            let wanted: Vec<Entry> = known.all().cloned().collect();
            same(
                &read.entries.iter().map(Entry::from).collect(),
                &wanted,
                &id,
            );
            assert_eq!(
                (read.inherited, &read.segments),
                (known.inherited.len(), &known.segments.0)
            );
            let window = store.entries(id, Page::last(3)).await.unwrap();
            let first = usize::try_from(window.first).unwrap();
            same(
                &window.entries.iter().map(Entry::from).collect(),
                &wanted[first..].to_vec(),
                &id,
            );
            assert_eq!(first, wanted.len().saturating_sub(3));
            same(&read.open_calls, &known.open_calls(), &id);
            same(
                &held(vec![read.record]),
                &held(vec![known.session(id)]),
                &id,
            );
        }
        for number in 0..2 {
            self.compare_realm(store, number).await;
        }
        let teams = paged(
            host == 1,
            async |page| store.teams(None, page).await.unwrap(),
            TeamKey::of,
        )
        .await;
        let wanted: Vec<_> = model.teams(None).iter().map(TeamKey::of).collect();
        same(&teams.iter().map(TeamKey::of).collect(), &wanted, &"teams");
    }

    /// Compares the feed of a realm, but for who holds what: a host that died has lost everything
    /// at once in the model. Steps that were called together may be committed in any order that
    /// keeps each agent's own.
    async fn compare_feed(&self, store: &dyn Store, realm: RealmId) {
        let by_agent = |rows: &[FeedRow]| {
            let mut sorted: BTreeMap<Option<AgentId>, Vec<(u32, u64, u64)>> = BTreeMap::new();
            for row in rows.iter().filter(|row| row.topics != Topics::HOLDER) {
                let told = (row.topics.bits(), row.seq, row.count);
                sorted.entry(row.agent).or_default().push(told);
            }
            sorted
        };
        let found = contract::feed::whole(store, realm).await;
        same(
            &by_agent(&found),
            &by_agent(self.model.feed(realm)),
            &"feed",
        );
    }

    /// Compares what is found of the agents of a realm.
    async fn compare_agents(&self, store: &dyn Store, realm: RealmId, backwards: bool) {
        let here = self
            .model
            .agents()
            .filter(|(_, known)| known.realm == realm);
        let mut all: Vec<_> = here.map(|(id, known)| known.session(id)).collect();
        all.sort_by_key(AgentKey::of);
        let filter = AgentFilter {
            realm: Some(realm),
            ..AgentFilter::default()
        };
        let found = async |filter: &AgentFilter| {
            let read = async |page| store.agents(filter.clone(), page).await.unwrap();
            held(paged(backwards, read, AgentKey::of).await)
        };
        same(&found(&filter).await, &held(all.clone()), &"agents");
        let read = async |page| store.rows(realm, RowFilter::Page(page)).await.unwrap().rows;
        let mut rows = paged(backwards, read, |row| row.key(realm)).await;
        for row in &mut rows {
            row.holder = row.holder.take().map(|_| "somebody".into());
        }
        let waiting = |it: &AgentRecord| self.model.mail_waiting(realm, it.agent);
        let wanted = held(all.clone());
        let wanted: Vec<_> = wanted.iter().map(|it| row_of(it, waiting(it))).collect();
        same(&rows, &wanted, &"rows");
        let unfinished = |it: &&AgentRecord| {
            it.origin.is_some()
                && (it.state.is_open() || self.model.mail_waiting(realm, it.agent) > 0)
        };
        let open: Vec<_> = all.iter().filter(unfinished).cloned().collect();
        same(
            &found(&AgentFilter {
                unfinished: true,
                ..filter.clone()
            })
            .await,
            &held(open),
            &"unfinished",
        );
        let name_of = |it: &AgentRecord| it.origin.as_ref().and_then(|origin| origin.name.clone());
        let parent_of = |it: &AgentRecord| it.origin.as_ref().map(|origin| origin.parent);
        for session in &all {
            let spending = store.spending(vec![session.agent]).await.unwrap();
            assert_eq!(spending, [self.model.spending(session.agent)]);
            let with_prefix = AgentFilter {
                id_prefix: Some(session.agent.to_string()[..35].to_owned()),
                ..filter.clone()
            };
            let is_alike =
                |it: &&AgentRecord| it.agent.to_string()[..35] == session.agent.to_string()[..35];
            let alike: Vec<_> = all.iter().filter(is_alike).cloned().collect();
            same(&found(&with_prefix).await, &held(alike), &"prefix");
            let parent = Some(session.agent);
            let mut children: Vec<_> = all
                .iter()
                .filter(|it| parent_of(it) == parent)
                .cloned()
                .collect();
            children.sort_by_key(|it| it.agent);
            let filter = AgentFilter {
                parent,
                ..filter.clone()
            };
            same(&found(&filter).await, &held(children), &"children");
            if let name @ Some(_) = name_of(session) {
                let filter = AgentFilter {
                    name,
                    ..filter.clone()
                };
                let filter = AgentFilter {
                    parent: None,
                    ..filter
                };
                same(
                    &found(&filter).await,
                    &held(vec![session.clone()]),
                    &"named",
                );
            }
        }
    }

    /// Compares what belongs to a realm.
    async fn compare_realm(&self, store: &dyn Store, number: u64) {
        let (model, realm) = (&self.model, realm(number));
        self.compare_feed(store, realm).await;
        // One realm forwards, the other backwards.
        let backwards = number == 1;
        self.compare_agents(store, realm, backwards).await;
        for id in inhabitants(number)
            .chain([*inhabitants(1 - number).start()])
            .map(agent)
        {
            for waiting in [true, false] {
                let filter = MailFilter { waiting };
                let read = async |page| store.mail(realm, id, filter, page).await.unwrap();
                let found = paged(backwards, read, |mail| mail.number).await;
                same(&found, &model.mail(realm, id, filter), &(number, id));
            }
        }
        let read = async |page| store.teams(Some(realm), page).await.unwrap();
        let found = paged(backwards, read, TeamKey::of).await;
        same(&found, &model.teams(Some(realm)), &number);
        let teams: Vec<Name> = TEAMS.iter().map(|team| team.parse().unwrap()).collect();
        for team in teams.iter().cloned().map(Some).chain([None]) {
            let list = ListId { realm, team };
            let read = async |page| store.notes(list.clone(), page).await.unwrap();
            let found = paged(backwards, read, |note| note.name.clone()).await;
            same(&found, &model.notes(&list), &list);
        }
        for (agent, open) in inhabitants(number)
            .map(|number| (Some(agent(number)), false))
            .chain([(None, true), (None, false)])
        {
            let filter = QuestionFilter {
                realm: Some(realm),
                agent,
                open,
                ..QuestionFilter::default()
            };
            let all = Page::first(1000);
            let found = store.questions(filter.clone(), all).await.unwrap();
            same(&found, &model.questions(&filter, &all), &filter);
        }
        for agent in inhabitants(number).map(agent).map(Some).chain([None]) {
            let read = async |page| store.requests(realm, agent, page).await.unwrap();
            let found = paged(backwards, read, RequestKey::of).await;
            same(&found, &model.requests(realm, agent), &(number, agent));
            if let Some(agent) = agent {
                let found = store.membership(realm, agent).await.unwrap();
                same(&found, &model.membership(realm, agent), &(number, agent));
            }
        }
        for team in teams.into_iter().map(Some).chain([None]) {
            let list = ListId { realm, team };
            for filter in filters(number) {
                let read = async |page| {
                    let tasks = store.tasks(list.clone(), filter.clone(), page).await;
                    tasks.unwrap()
                };
                let found = paged(backwards, read, |task| task.id).await;
                same(&found, &model.tasks(&list, &filter), &(&list, filter));
            }
            for id in (1..9).map(TaskId) {
                same(
                    &store.task(list.clone(), id).await.unwrap(),
                    &model.task(&list, id),
                    &list,
                );
            }
        }
    }
}

/// All tasks, and those that some agents of a realm have or could claim.
fn filters(realm: u64) -> Vec<TaskFilter> {
    let only = Takes::Only {
        unmarked: realm == 0,
        roles: vec!["lexer".into(), "lexer".into()],
    };
    let anybody = Some(Ready {
        agent: None,
        takes: only.clone(),
    });
    let lost_by = || Some("a1".to_owned());
    let mut filters = vec![
        TaskFilter::default(),
        TaskFilter {
            ready: anybody.clone(),
            ..TaskFilter::default()
        },
        TaskFilter {
            assigned: true,
            ..TaskFilter::default()
        },
        TaskFilter {
            lost_by: lost_by(),
            ..TaskFilter::default()
        },
        TaskFilter {
            lost_by: Some("team-lead".into()),
            ..TaskFilter::default()
        },
        TaskFilter {
            lost_by: lost_by(),
            ready: anybody,
            ..TaskFilter::default()
        },
        TaskFilter {
            assigned: true,
            owner: inhabitants(realm).next().map(agent),
            ..TaskFilter::default()
        },
    ];
    for agent in inhabitants(realm).take(2).map(agent) {
        for takes in [only.clone(), Takes::Any] {
            let ready = Some(Ready {
                agent: Some(agent),
                takes,
            });
            filters.push(TaskFilter {
                ready,
                ..TaskFilter::default()
            });
        }
        let ready = Some(Ready {
            agent: Some(agent),
            takes: Takes::Any,
        });
        filters.push(TaskFilter {
            ready,
            owner: Some(agent),
            ..TaskFilter::default()
        });
        for status in [None, Some(TaskStatus::InProgress)] {
            filters.push(TaskFilter {
                status,
                owner: Some(agent),
                ..TaskFilter::default()
            });
        }
    }
    filters
}

/// The files of a directory, but for bells.
fn files(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let found = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let plain = found.filter(|path| path.extension().is_none());
    plain
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

/// Says where two things differ, and no more: there are long texts in them.
#[track_caller]
fn same<T: Debug + PartialEq>(found: &T, wanted: &T, about: &dyn Debug) {
    if found == wanted {
        return;
    }
    let (found, wanted) = (format!("{found:?}"), format!("{wanted:?}"));
    let common = found
        .bytes()
        .zip(wanted.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    let near = |text: &str| -> String {
        text.chars()
            .skip(common.saturating_sub(120))
            .take(240)
            .collect()
    };
    panic!(
        "{about:?}: the store says …{}…, the model …{}…",
        near(&found),
        near(&wanted)
    );
}

fn agree(
    wanted: &Result<Committed, Fate>,
    done: Result<Committed, posse_port::store::StoreError>,
    about: &dyn Debug,
) {
    match (wanted, done) {
        (Ok(wanted), Ok(done)) => {
            assert_eq!(done.mail_waits, wanted.mail_waits, "{about:?}");
            same(&plain(done.results), &plain(wanted.results.clone()), about);
        }
        (wanted, done) => {
            let wanted = wanted.as_ref().map_or_else(|fate| fate.as_str(), |_| "ok");
            assert_eq!(fate(&done), wanted, "{done:?}: {about:?}");
        }
    }
}

/// Results without what the port leaves open: which of several circles is told.
fn plain(mut results: Vec<OpResult>) -> Vec<OpResult> {
    for result in &mut results {
        if let Err(Refusal::Cycle { through }) = result {
            through.truncate(1);
        }
    }
    results
}

/// Sessions that say whether somebody holds them, not who.
fn held(mut sessions: Vec<AgentRecord>) -> Vec<AgentRecord> {
    for session in &mut sessions {
        session.holder = session.holder.as_ref().map(|_| "somebody".into());
    }
    sessions
}

/// What is as old as others may be anywhere among them.
fn by_id<T>(mut all: Vec<T>, id: impl Fn(&T) -> Uuid) -> Vec<T> {
    all.sort_by_key(id);
    all
}
