//! Agents: their transcripts, and everything that belongs to one agent alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use posse_port::model::Encoded;
use posse_port::store::{
    AgentRecord, AgentState, BackgroundRun, Birth, CallChange, CallChangeKind, CallKey, Charge,
    Committed, EndedRun, NewEntry, OpenCall, Origin, RunChange, RunChangeKind, SeenFile, Segment,
    StateChange, Step, StepId, StoredEntry,
};
use posse_protocol::{AgentId, EntryKind, Name, PermissionMode, Purpose, RealmId, RunStatus};
use uuid::Uuid;

use super::{HostNumber, Said};

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Agent {
    /// Its epoch, as the model counts it.
    pub epoch: u64,
    /// The host that holds it.
    pub holder: Option<HostNumber>,
    /// Its realm.
    pub realm: RealmId,
    /// Its path.
    pub path: String,
    /// Its state.
    pub state: Said<AgentState>,
    /// Its mode.
    pub mode: PermissionMode,
    /// The histories of others that its own begins with.
    pub segments: Said<Vec<Segment>>,
    /// Their entries.
    pub inherited: Vec<Entry>,
    /// The first prompt of the inherited history, including compacted parts.
    prompt: Option<Entry>,
    /// Its own entries.
    pub own: Vec<Entry>,
    /// Its maker and purpose.
    pub origin: Said<Option<Box<Origin>>>,
    /// The agent that is notified when its run ends.
    starter: Option<AgentId>,
    ended: Said<Option<Box<EndedRun>>>,
    types: Option<u64>,
    model: String,
    cwd: PathBuf,
    created_ms: i64,
    used_ms: i64,
    calls: BTreeMap<CallKey, Said<OpenCall>>,
    charges: BTreeMap<(String, Purpose), Said<Charge>>,
    /// What the step of its last entry reserved.
    reserved: Said<Option<Box<Charge>>>,
    seen: BTreeMap<PathBuf, u64>,
    runs: Vec<Said<BackgroundRun>>,
    /// Runs that have ended.
    over: BTreeSet<Uuid>,
    last: Option<(StepId, Said<Committed>)>,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The owner.
    pub agent: AgentId,
    /// Its number.
    pub seq: u64,
    /// Its kind.
    pub kind: EntryKind,
    /// Its beginning, if it shares that with its siblings.
    pub head: Option<Bytes>,
    /// Definitions of tools that it brings.
    pub loaded: Option<Bytes>,
    /// The bytes as sent, after the head.
    pub bytes: Bytes,
    /// Commit time.
    pub at_ms: i64,
}

impl From<&StoredEntry> for Entry {
    fn from(stored: &StoredEntry) -> Self {
        Self::new(stored.agent, &stored.entry, stored.at_ms)
    }
}

impl Entry {
    fn new(agent: AgentId, entry: &NewEntry, at_ms: i64) -> Self {
        let bytes = |encoded: &Option<Encoded>| encoded.as_ref().map(|it| it.bytes.clone());
        Self {
            agent,
            seq: entry.seq,
            kind: entry.kind,
            head: bytes(&entry.head),
            loaded: bytes(&entry.loaded),
            bytes: entry.encoded.bytes.clone(),
            at_ms,
        }
    }

    /// Its bytes as sent.
    fn sent(&self) -> Bytes {
        let parts: Vec<&[u8]> = self
            .head
            .iter()
            .chain([&self.bytes])
            .map(Bytes::as_ref)
            .collect();
        parts.join(&b',').into()
    }
}

impl Agent {
    /// Creates an agent without entries of its own; `None` if the birth is invalid.
    pub(super) fn born(
        host: HostNumber,
        step: &Step,
        birth: &Birth,
        others: &BTreeMap<AgentId, Arc<Self>>,
    ) -> Option<Self> {
        if step.epoch.0 != 1 || step.misplaced().is_some() {
            return None;
        }
        let (mut inherited, mut prompt) = (Vec::new(), None);
        for segment in &birth.segments {
            let source = others
                .get(&segment.agent)
                .filter(|source| source.realm == step.realm)?;
            let (from, to) = (segment.from as usize, segment.to as usize);
            if from > 0 && source.own.get(from)?.kind != EntryKind::Compaction {
                return None;
            }
            inherited.extend_from_slice(source.own.get(from..to)?);
            let before = source.prompt.as_ref().filter(|_| from > 0);
            prompt = prompt.or_else(|| {
                before
                    .or_else(|| first_prompt(source.own.get(..to)?))
                    .cloned()
            });
        }
        Some(Self {
            epoch: 1,
            holder: Some(host),
            realm: step.realm,
            path: birth.path.clone(),
            state: Said(AgentState::Idle),
            mode: birth.mode,
            segments: Said(birth.segments.clone()),
            inherited,
            prompt,
            own: Vec::new(),
            origin: Said(birth.origin.clone()),
            starter: None,
            ended: Said(None),
            types: None,
            model: birth.model.clone(),
            cwd: birth.cwd.clone(),
            created_ms: step.at_ms,
            used_ms: step.at_ms,
            calls: BTreeMap::new(),
            charges: BTreeMap::new(),
            reserved: Said(None),
            seen: BTreeMap::new(),
            runs: Vec::new(),
            over: BTreeSet::new(),
            last: None,
        })
    }

    /// Returns true if this step was its last one.
    pub(super) fn was_last(&self, step: &Step) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| *last == step.id)
    }

    /// Returns the result of this step, if it was the last one.
    pub(super) fn answer_to(&self, step: &Step) -> Option<Committed> {
        let (last, answer) = self.last.as_ref()?;
        (*last == step.id).then(|| answer.0.clone())
    }

    /// Applies the changes of a step to its agent alone, if it is valid; its operations may be left
    /// out.
    pub(super) fn advance(&mut self, step: &Step, left_out: bool) -> Option<()> {
        for entry in &step.entries {
            if entry.seq != self.own.len() as u64 {
                return None;
            }
            self.own.push(Entry::new(step.agent, entry, step.at_ms));
            if let Some(model) = entry.model() {
                self.model = model.to_owned();
            }
        }
        if !step.entries.is_empty() {
            self.reserved = Said(step.reserved.clone());
        }
        step.calls.iter().try_for_each(|change| self.call(change))?;
        step.charges.iter().for_each(|charge| self.charge(charge));
        for file in &step.seen {
            self.seen.insert(file.path.clone(), file.version);
        }
        let called = |key| {
            let call = self.calls.get(&key).map(|call| &call.0);
            call.is_some_and(|call| call.outcome.is_none() && call.operated.is_none())
        };
        if !left_out
            && !step
                .operations
                .iter()
                .filter_map(|operation| operation.call)
                .all(called)
        {
            return None;
        }
        let ends = match step.state {
            Some(StateChange::To(state) | StateChange::UnlessMail(state)) => !state.is_open(),
            None => false,
        };
        if step.ended.is_some() && !ends {
            return None;
        }
        step.runs
            .iter()
            .try_for_each(|change| self.run(change, step.at_ms))?;
        self.used_ms = step.at_ms;
        self.mode = step.mode.unwrap_or(self.mode);
        self.types = step.types.or(self.types);
        self.starter = step.starter.or(self.starter);
        Some(())
    }

    /// Sets the state that the step gives.
    pub(super) fn change_state(&mut self, step: &Step) {
        if let Some(StateChange::To(state) | StateChange::UnlessMail(state)) = step.state {
            (self.state, self.ended) = (Said(state), Said(step.ended.clone()));
        }
    }

    /// Stores the result of the step.
    pub(super) fn settle(&mut self, step: &Step, committed: &Committed) {
        for (operation, result) in step.operations.iter().zip(&committed.results) {
            if let Some(call) = operation.call.and_then(|key| self.calls.get_mut(&key)) {
                call.0.operated.get_or_insert_default().push(result.clone());
            }
        }
        self.last = Some((step.id, Said(committed.clone())));
    }

    pub(super) fn forget_step(&mut self) {
        self.last = None;
    }

    fn call(&mut self, CallChange { key, change }: &CallChange) -> Option<()> {
        match change {
            CallChangeKind::Asked { id, tool, .. } => {
                let (id, tool) = (id.clone(), tool.clone());
                let asked = OpenCall {
                    key: *key,
                    id,
                    tool,
                    begun: false,
                    outcome: None,
                    operated: None,
                };
                self.calls.insert(*key, Said(asked)).is_none().then_some(())
            }
            CallChangeKind::Begun { .. } => {
                self.calls.get_mut(key)?.0.begun = true;
                Some(())
            }
            CallChangeKind::Done(outcome) => {
                let call = &mut self.calls.get_mut(key)?.0;
                call.outcome
                    .replace(outcome.clone())
                    .is_none()
                    .then_some(())
            }
        }
    }

    /// Adds a charge; one without a price makes the total unpriced.
    pub(super) fn charge(&mut self, charge: &Charge) {
        let key = (charge.model.clone(), charge.purpose);
        match self.charges.get_mut(&key) {
            Some(Said(total)) => *total += charge,
            None => {
                self.charges.insert(key, Said(charge.clone()));
            }
        }
    }

    /// Starts and ends runs in this order, each once.
    fn run(&mut self, RunChange { id, change }: &RunChange, at_ms: i64) -> Option<()> {
        let open = self.runs.iter().position(|run| run.0.id == *id);
        match (change, open) {
            (
                RunChangeKind::Began {
                    call,
                    kind,
                    description,
                    output,
                },
                None,
            ) if !self.over.contains(id) => {
                let (description, output) = (description.clone(), output.clone());
                let (id, call, kind, began_ms) = (*id, *call, *kind, at_ms);
                self.runs.push(Said(BackgroundRun {
                    id,
                    call,
                    kind,
                    description,
                    output,
                    began_ms,
                }));
            }
            (RunChangeKind::Ended(status), Some(run))
                if !matches!(status, RunStatus::Running | RunStatus::Paused) =>
            {
                self.runs.remove(run);
                self.over.insert(*id);
            }
            _ => return None,
        }
        Some(())
    }

    /// Its registered name.
    pub fn name(&self) -> Option<&Name> {
        self.origin.0.as_ref()?.name.as_ref()
    }

    /// Calls of its last own reply, if their results are not there yet.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        match self
            .own
            .iter()
            .rev()
            .find(|entry| entry.kind != EntryKind::Prompt)
        {
            Some(reply) if reply.kind == EntryKind::Reply => self
                .calls
                .values()
                .filter(|call| call.0.key.seq == reply.seq)
                .map(|call| call.0.clone())
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the entries that are still sent, and how many of them are inherited: from its last
    /// compaction on, if there is one.
    pub fn sent(&self) -> (Vec<Entry>, usize) {
        match self
            .own
            .iter()
            .rposition(|entry| entry.kind == EntryKind::Compaction)
        {
            Some(since) => (self.own.get(since..).unwrap_or_default().to_vec(), 0),
            None => (self.all().cloned().collect(), self.inherited.len()),
        }
    }

    /// All entries, inherited ones first.
    pub fn all(&self) -> impl Iterator<Item = &Entry> {
        self.inherited.iter().chain(&self.own)
    }

    /// Files whose content it knows, by path.
    pub fn seen(&self) -> Vec<SeenFile> {
        self.seen
            .iter()
            .map(|(path, version)| SeenFile {
                path: path.clone(),
                version: *version,
            })
            .collect()
    }

    /// Commands that have not ended, oldest first.
    pub fn runs(&self) -> Vec<BackgroundRun> {
        self.runs.iter().map(|run| run.0.clone()).collect()
    }

    /// The agent as listed among sessions, with its holder as a number.
    pub fn session(&self, id: AgentId) -> AgentRecord {
        let prompt = self.prompt.as_ref().or_else(|| first_prompt(&self.own));
        AgentRecord {
            realm: self.realm,
            agent: id,
            origin: self.origin.0.clone(),
            starter: self.starter,
            path: self.path.clone(),
            model: self.model.clone(),
            mode: self.mode,
            cwd: self.cwd.clone(),
            state: self.state.0,
            ended: self.ended.0.clone(),
            holder: self.holder.map(|host| host.0.to_string()),
            created_ms: self.created_ms,
            used_ms: self.used_ms,
            first_prompt: prompt.map(Entry::sent),
            entries: self.all().count() as u64,
            charges: self.charges.values().map(|total| total.0.clone()).collect(),
            reserved: (self.state.0 == AgentState::Running)
                .then(|| self.reserved.0.clone())
                .flatten(),
            types: self.types,
        }
    }
}

fn first_prompt(entries: &[Entry]) -> Option<&Entry> {
    entries.iter().find(|entry| entry.kind == EntryKind::Prompt)
}
