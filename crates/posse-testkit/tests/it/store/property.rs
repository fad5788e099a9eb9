//! Random steps, right and wrong, on a store and on a plain model of one: both must agree on what
//! became of each, and on what is there in the end.

use std::collections::BTreeMap;
use std::sync::Arc;

use posse_protocol::{AgentId, Cost, EntryKind, PermissionMode, Usage};
use posse_runtime::port::store::{
    AgentState, CallChangeKind, CallKey, CallOutcome, Charge, Epoch, OpenCall, SeenFile, Segment, Session,
    SessionFilter, StateChange, Step, Store, StoredEntry,
};
use posse_testkit::store_contract::{Open, agent, birth, call, entry, fate, step};
use proptest::prelude::*;

use super::Directory;

const AGENTS: u64 = 4;
const HOSTS: usize = 2;

/// What is done; numbers that say how far it is from right.
#[derive(Clone, Debug)]
enum Deed {
    /// Steps that are called before any is waited for.
    Commit {
        host: usize,
        steps: Vec<Draft>,
    },
    Take {
        host: usize,
        agent: u64,
    },
    Release {
        host: usize,
        agent: u64,
        off: u64,
    },
    /// The host dies and another takes its place.
    Restart {
        host: usize,
    },
}

#[derive(Clone, Debug)]
struct Draft {
    agent: u64,
    born: Option<Option<(u64, u64, u64)>>,
    epoch_off: u64,
    seq_off: u64,
    kinds: Vec<EntryKind>,
    gap: bool,
    calls: Vec<(u64, u32, u8)>,
    charge: Option<(bool, Option<u64>)>,
    seen: Option<(bool, u64)>,
    state: Option<AgentState>,
    mode: Option<PermissionMode>,
}

fn drafts() -> impl Strategy<Value = Draft> {
    let rarely = |most: u64| prop_oneof![9 => Just(0), 1 => 1..=most];
    let kinds = proptest::sample::select(vec![EntryKind::Prompt, EntryKind::Reply, EntryKind::Results]);
    let segment = (1..=AGENTS, 0..3_u64, 0..4_u64);
    (
        (1..=AGENTS, proptest::option::weighted(0.2, proptest::option::of(segment)), rarely(2), rarely(1)),
        (proptest::collection::vec(kinds, 0..3), proptest::bool::weighted(0.05)),
        proptest::collection::vec((0..6_u64, 0..2_u32, 0..3_u8), 0..2),
        proptest::option::of((any::<bool>(), proptest::option::weighted(0.9, 0..100_u64))),
        proptest::option::of((any::<bool>(), any::<u64>())),
        proptest::option::of(proptest::sample::select(vec![AgentState::Running, AgentState::Paused])),
        proptest::option::of(proptest::sample::select(PermissionMode::ALL.to_vec())),
    )
        .prop_map(
            |((agent, born, epoch_off, seq_off), (kinds, gap), calls, charge, seen, state, mode)| Draft {
                agent,
                born,
                epoch_off,
                seq_off,
                kinds,
                gap,
                calls,
                charge,
                seen,
                state,
                mode,
            },
        )
}

fn deeds() -> impl Strategy<Value = Deed> {
    let host = 0..HOSTS;
    prop_oneof![
        8 => (host.clone(), proptest::collection::vec(drafts(), 1..6))
            .prop_map(|(host, steps)| Deed::Commit { host, steps }),
        2 => (host.clone(), 1..=AGENTS).prop_map(|(host, agent)| Deed::Take { host, agent }),
        1 => (host.clone(), 1..=AGENTS, 0..2_u64)
            .prop_map(|(host, agent, off)| Deed::Release { host, agent, off }),
        1 => host.prop_map(|host| Deed::Restart { host }),
    ]
}

/// An agent of the model.
#[derive(Clone)]
struct Known {
    epoch: u64,
    /// Number of its holder's life; none if it was given up.
    holder: Option<u64>,
    session: Session,
    segments: Vec<Segment>,
    inherited: Vec<StoredEntry>,
    own: Vec<StoredEntry>,
    calls: BTreeMap<CallKey, OpenCall>,
    seen: BTreeMap<String, SeenFile>,
}

#[derive(Default)]
struct Model {
    agents: BTreeMap<AgentId, Known>,
    /// The life that each place of a host is in; no number is used twice.
    lives: [u64; HOSTS],
    born: u64,
    now: i64,
}

impl Model {
    /// Begins a life; what the one before it held is set free.
    fn begin_life(&mut self, host: usize) {
        for known in self.agents.values_mut().filter(|known| known.holder == Some(self.lives[host])) {
            (known.holder, known.epoch) = (None, known.epoch + 1);
        }
        self.born += 1;
        self.lives[host] = self.born;
    }

    /// Makes a step of a draft, right but for what the draft says is wrong.
    fn word(&mut self, draft: &Draft) -> Step {
        self.now += 1;
        let known = self.agents.get(&agent(draft.agent));
        let (epoch, own) = known.map_or((1, 0), |known| (known.epoch, known.own.len() as u64));
        // One too many, or one too few.
        let wrong = [epoch, epoch + 1, epoch - 1];
        let mut step = step(draft.agent, wrong[draft.epoch_off as usize]);
        step.at_ms = self.now;
        if let Some(segment) = draft.born {
            step.birth = birth(draft.agent).birth;
            let segments = segment.map(|(of, from, to)| Segment { agent: agent(of), from, to });
            step.birth.as_mut().unwrap().segments = segments.into_iter().collect();
        }
        for (at, kind) in (own + draft.seq_off..).zip(&draft.kinds) {
            let seq = if draft.gap && at > own { at + 1 } else { at };
            step.entries.push(entry(seq, *kind, &format!("{} said {at}", draft.agent)));
        }
        for (seq, ordinal, change) in &draft.calls {
            let change = match change {
                0 => CallChangeKind::Asked { id: format!("toolu_{seq}"), tool: "Bash".into() },
                1 => CallChangeKind::Begun,
                _ => CallChangeKind::Done(CallOutcome { content: Arc::new([]), is_error: seq % 2 == 0 }),
            };
            step.calls.push(call(*seq, *ordinal, change));
        }
        step.charges.extend(draft.charge.map(|(which, tokens)| Charge {
            model: if which { "one" } else { "two" }.into(),
            usage: Usage { input: tokens.unwrap_or(1), ..Usage::default() },
            cost: tokens.map(Cost::from_pico_usd),
        }));
        let seen = |(which, version)| SeenFile { path: if which { "/a" } else { "/b" }.into(), version };
        step.seen.extend(draft.seen.map(seen));
        (step.state, step.mode) = (draft.state.map(StateChange::To), draft.mode);
        step
    }

    fn commit(&mut self, host: usize, step: &Step) -> &'static str {
        let mut known = match &step.birth {
            Some(_) if step.epoch != Epoch(1) || self.agents.contains_key(&step.agent) => return "bad step",
            Some(_) => match self.birth(host, step) {
                Some(known) => known,
                None => return "bad step",
            },
            None => match self.agents.get(&step.agent) {
                Some(known) => known.clone(),
                None => return "not found",
            },
        };
        if known.epoch != step.epoch.0 {
            return "fenced";
        }
        match known.advance(step) {
            Some(()) => {
                self.agents.insert(step.agent, known);
                "ok"
            }
            None => "bad step",
        }
    }

    fn birth(&self, host: usize, step: &Step) -> Option<Known> {
        let birth = step.birth.as_ref()?;
        let mut inherited = Vec::new();
        for segment in &birth.segments {
            let source = self.agents.get(&segment.agent)?;
            inherited.extend_from_slice(source.own.get(segment.from as usize..segment.to as usize)?);
        }
        let session = Session {
            realm: step.realm,
            agent: step.agent,
            parent: birth.parent,
            path: birth.path.clone(),
            model: birth.model.clone(),
            mode: birth.mode,
            cwd: birth.cwd.clone(),
            state: AgentState::Idle,
            holder: None,
            created_ms: step.at_ms,
            used_ms: 0,
            first_prompt: None,
            entries: 0,
            charges: Vec::new(),
        };
        let (segments, holder) = (birth.segments.clone(), Some(self.lives[host]));
        let (own, calls, seen) = Default::default();
        Some(Known { epoch: 1, holder, session, segments, inherited, own, calls, seen })
    }

    fn take(&mut self, host: usize, agent: AgentId) -> Result<Epoch, &'static str> {
        let me = self.lives[host];
        let lives = self.lives;
        let known = self.agents.get_mut(&agent).ok_or("not found")?;
        if known.holder.is_some_and(|holder| holder != me && lives.contains(&holder)) {
            return Err("held");
        }
        (known.holder, known.epoch) = (Some(me), known.epoch + 1);
        Ok(Epoch(known.epoch))
    }

    /// An agent's session as a store should show it.
    fn session(&self, known: &Known) -> Session {
        let held = known.holder.is_some_and(|holder| self.lives.contains(&holder));
        let all = || known.inherited.iter().chain(&known.own);
        let prompt = all().find(|stored| stored.entry.kind == EntryKind::Prompt);
        Session {
            holder: held.then(|| format!("pid {}", std::process::id())),
            entries: all().count() as u64,
            first_prompt: prompt.map(|stored| stored.entry.piece.bytes.clone()),
            ..known.session.clone()
        }
    }

    fn sessions(&self) -> Vec<Session> {
        let mut sessions: Vec<_> = self.agents.values().map(|known| self.session(known)).collect();
        sessions.sort_by_key(|session| std::cmp::Reverse((session.used_ms, session.agent)));
        sessions
    }
}

impl Known {
    /// Does what a step says, if it is in order.
    fn advance(&mut self, step: &Step) -> Option<()> {
        for entry in &step.entries {
            if entry.seq != self.own.len() as u64 {
                return None;
            }
            self.own.push(StoredEntry { agent: step.agent, at_ms: step.at_ms, entry: entry.clone() });
        }
        for change in &step.calls {
            let key = change.key;
            match &change.change {
                CallChangeKind::Asked { id, tool } => {
                    let (id, tool) = (id.clone(), tool.clone());
                    let asked = OpenCall { key, id, tool, begun: false, outcome: None, operated: None };
                    if self.calls.insert(key, asked).is_some() {
                        return None;
                    }
                }
                CallChangeKind::Begun => self.calls.get_mut(&key)?.begun = true,
                CallChangeKind::Done(outcome) => {
                    let call = self.calls.get_mut(&key).filter(|call| call.outcome.is_none())?;
                    call.outcome = Some(outcome.clone());
                }
            }
        }
        for charge in &step.charges {
            let totals = &mut self.session.charges;
            match totals.iter_mut().find(|total| total.model == charge.model) {
                Some(total) => {
                    total.usage += charge.usage;
                    total.cost = total.cost.zip(charge.cost).map(|(a, b)| a + b);
                }
                None => totals.push(charge.clone()),
            }
            totals.sort_by(|a, b| a.model.cmp(&b.model));
        }
        for file in &step.seen {
            self.seen.insert(file.path.display().to_string(), file.clone());
        }
        self.session.used_ms = step.at_ms;
        if let Some(StateChange::To(state)) = step.state {
            self.session.state = state;
        }
        self.session.mode = step.mode.unwrap_or(self.session.mode);
        Some(())
    }

    fn open_calls(&self) -> Vec<OpenCall> {
        let last = self.own.iter().rev().map(|stored| &stored.entry);
        match last.into_iter().find(|entry| entry.kind != EntryKind::Prompt) {
            Some(reply) if reply.kind == EntryKind::Reply => {
                self.calls.values().filter(|call| call.key.seq == reply.seq).cloned().collect()
            }
            _ => Vec::new(),
        }
    }
}

async fn play(open: Open<'_>, deeds: Vec<Deed>) {
    let mut model = Model::default();
    let mut hosts: Vec<Option<Arc<dyn Store>>> = Vec::new();
    for host in 0..HOSTS {
        hosts.push(Some(open()));
        model.begin_life(host);
    }
    let at = |hosts: &[Option<Arc<dyn Store>>], host: usize| hosts[host].clone().unwrap();
    for deed in deeds {
        match deed {
            Deed::Commit { host, steps } => {
                let store = at(&hosts, host);
                let mut begun = Vec::new();
                for draft in &steps {
                    let step = model.word(draft);
                    let wanted = model.commit(host, &step);
                    begun.push((wanted, format!("{step:?}"), store.commit(step)));
                }
                for (wanted, step, commit) in begun {
                    assert_eq!(fate(&commit.await), wanted, "{step}");
                }
            }
            Deed::Take { host, agent: number } => {
                let wanted = model.take(host, agent(number));
                let taken = at(&hosts, host).take(agent(number)).await;
                assert_eq!(fate(&taken), wanted.err().unwrap_or("ok"));
                if let Ok(taken) = taken {
                    let known = &model.agents[&agent(number)];
                    assert_eq!(Ok(taken.epoch), wanted);
                    assert_eq!(taken.transcript.open_calls, known.open_calls());
                    assert_eq!(taken.seen, known.seen.values().cloned().collect::<Vec<_>>());
                }
            }
            Deed::Release { host, agent: number, off } => {
                let known = model.agents.get_mut(&agent(number));
                let epoch = known.as_ref().map_or(1, |known| known.epoch) + off;
                if let Some(known) = known.filter(|_| off == 0) {
                    known.holder = None;
                }
                at(&hosts, host).release(agent(number), Epoch(epoch)).await.unwrap();
            }
            Deed::Restart { host } => {
                hosts[host] = None;
                hosts[host] = Some(open());
                model.begin_life(host);
            }
        }
    }
    compare(&model, at(&hosts, 0).as_ref()).await;
}

async fn compare(model: &Model, store: &dyn Store) {
    assert_eq!(store.sessions(SessionFilter::default(), 100).await.unwrap(), model.sessions());
    for (agent, known) in &model.agents {
        let read = store.read(*agent).await.unwrap();
        let entries: Vec<_> = known.inherited.iter().chain(&known.own).collect();
        assert_eq!(format!("{:?}", read.entries), format!("{entries:?}"));
        assert_eq!((read.inherited, &read.segments), (known.inherited.len(), &known.segments));
        assert_eq!(read.session, model.session(known));
    }
}

fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_does_what_the_model_does(deeds in proptest::collection::vec(deeds(), 1..25)) {
        let memory = posse_store::Sqlite::in_memory().unwrap();
        run(play(&|| Arc::new(memory.another_host().unwrap()), deeds));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 25, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_file_does_what_the_model_does(deeds in proptest::collection::vec(deeds(), 1..25)) {
        let directory = Directory::new();
        run(play(&|| directory.open(), deeds));
    }
}
