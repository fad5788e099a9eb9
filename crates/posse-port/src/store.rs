//! The store port: where transcripts, mail, tasks and teams live, and what is promised about them.
//!
//! The heart is [`Store::commit`]: whatever an agent does between two waits for the outside world is
//! one [`Step`], committed whole or not at all, durable when the call returns, and refused if somebody
//! else has taken the agent over. Nothing is ever changed in place that was part of a conversation.
//!
//! **Hosts.** A store that is open, and holds agents, is a *host*. While it is open it says by itself
//! that it lives (a lock that the kernel frees when the process dies, and a heartbeat), at no cost per
//! agent; so no operation here is called heartbeat. A host is *dead* when its process has ended, and
//! *stalled* when its heartbeat is older than the lease. The store finds dead hosts at once on one
//! machine, after the lease over many. What a dead host held is set free in one transaction: its agents
//! get a new epoch and no holder, its tasks are pending again with a note of who had them. A stalled
//! host is treated the same, but only when somebody wants what it holds: a process that was stopped by
//! hand and continued has lost nothing if nobody missed it.
//!
//! **Realms.** Everything belongs to a realm, and nothing reaches from one into another: every key
//! begins with it, and it may be the key by which data are spread over servers.
//!
//! **Compaction.** An entry of the kind [`Compaction`](posse_protocol::EntryKind::Compaction) stands for all
//! of its agent's history before it, inherited or own. What is older stays, for people and for the forks that
//! begin with it, but nobody needs it to go on: [`Store::take`] leaves it out. Nothing of a realm is ever
//! removed but with all of it.
//!
//! **Time** is in milliseconds of Unix time, given by the caller, and only kept: lists for people are
//! sorted by it, but no order of steps, mail or claims depends on it.

mod operation;
mod step;
mod view;

use posse_protocol::{AgentId, ListId, Mail, Name, Note, RealmId, Task, TaskId, Team};

use super::BoxFuture;

pub use operation::{
    Address, Done, Greeting, INBOX_BYTES, INBOX_MAILS, Joining, MAIL_BYTES, METADATA_DEPTH,
    NewTask, Op, OpResult, Operation, Order, Receipt, Refusal, TEXT_BYTES, TaskChange, depth,
};
pub use step::{
    AgentState, Birth, CallChange, CallChangeKind, CallKey, CallOutcome, Charge, Committed,
    EndedRun, Epoch, NewEntry, Origin, RunChange, RunChangeKind, SeenFile, Segment, StateChange,
    Step, StepId, TakenMail, checksum,
};
pub use view::{
    AgentFilter, AgentRecord, Archive, BackgroundRun, MailFilter, Membership, OpenCall,
    OpenRequest, Ready, SessionFilter, StoredEntry, Taken, TaskFilter, Transcript, Wake,
};

/// Where everything lives.
pub trait Store: Send + Sync {
    /// Commits a step. When this returns `Ok` the step is durable, through kill -9 and power loss;
    /// when it returns `Err`, nothing was acknowledged, and the agent's writer must stop: whether the
    /// step is there after all is found out by whoever takes the agent next.
    ///
    /// Steps of one agent are committed in the order of the calls (whoever does not wait for each, and
    /// has thousands waiting, must keep the order of polling too). A step of an epoch that is not the
    /// agent's current one is refused with [`StoreError::Fenced`], alone: other steps of the same
    /// batch are not touched. So is a birth by a host that was taken for dead. A birth under a name that
    /// another agent of the realm has, or a member of one of its teams has or had, is refused with
    /// [`StoreError::NameTaken`].
    ///
    /// A step that ends its agent gives its tasks back, those that it was to do as well, and the teams that it led
    /// to the first member of each.
    ///
    /// A step whose id is that of the agent's last one was committed already: it changes nothing, and
    /// the answer is the same as the first time.
    ///
    /// What is refused inside a step (a task that somebody else has, an inbox that is full) does not
    /// fail the step: it is an [`OpResult`] that commits with it.
    fn commit(&self, step: Step) -> BoxFuture<'_, Result<Committed, StoreError>>;

    /// Does what a person asks for, outside any agent: all of the operations in their order, in one
    /// transaction, durable when this returns. What is refused is refused alone, as in a step.
    fn operate(&self, order: Order) -> BoxFuture<'_, Result<Vec<OpResult>, StoreError>>;

    /// Makes this host the agent's only writer, with a higher epoch than any before, and gives all
    /// there is to go on from: of an agent with a compaction of its own the entries from the last of these
    /// on, and nothing inherited. Refused with [`StoreError::Held`] while another host holds it that
    /// lives and is not stalled; if it is dead or stalled, all it held is set free first.
    fn take(&self, agent: AgentId) -> BoxFuture<'_, Result<Taken, StoreError>>;

    /// Gives the agent up, so that others need not find out first that this process has ended. What
    /// tasks it was doing are pending again, and the epoch that is given up writes nothing any more.
    /// With an old epoch it does nothing.
    fn release(&self, agent: AgentId, epoch: Epoch) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Waits until something has happened that this host should know, and says what. At least once
    /// for all that happened after the call before it returned; hints may be repeated, and may turn
    /// out to be empty. Mail that waits for an agent when it is taken is among them. One caller at a
    /// time; a call that is dropped loses nothing.
    fn woken(&self) -> BoxFuture<'_, Result<Vec<Wake>, StoreError>>;

    /// A transcript to look at, with all that a compaction stands for; nothing is taken.
    fn read(&self, agent: AgentId) -> BoxFuture<'_, Result<Transcript, StoreError>>;

    /// Root agents, the one used last first, at most `limit`.
    fn sessions(
        &self,
        filter: SessionFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>>;

    /// Agents, by path and then by age, at most `limit`.
    fn agents(
        &self,
        filter: AgentFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>>;

    /// An agent's mail, in the order of its inbox, at most `limit`. Only looking: mail is taken by the
    /// step that shows it to the model. Empty for whoever has no inbox.
    fn mail(
        &self,
        realm: RealmId,
        agent: AgentId,
        filter: MailFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Mail>, StoreError>>;

    /// Teams, the newest first: of one realm, or of all.
    fn teams(
        &self,
        realm: Option<RealmId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Team>, StoreError>>;

    /// What an agent is in the teams of a realm, by their names; several times in one where it has several names,
    /// in the order of joining. Costs no more than there are such, however large the teams are.
    fn membership(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> BoxFuture<'_, Result<Vec<Membership>, StoreError>>;

    /// A team's notes, by name.
    fn notes(&self, realm: RealmId, team: Name) -> BoxFuture<'_, Result<Vec<Note>, StoreError>>;

    /// A task, also a deleted one.
    fn task(&self, list: ListId, id: TaskId) -> BoxFuture<'_, Result<Option<Task>, StoreError>>;

    /// Tasks by their numbers, at most `limit`. Deleted ones are left out.
    fn tasks(
        &self,
        list: ListId,
        filter: TaskFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Task>, StoreError>>;

    /// Requests of a realm that are open and that an agent was asked, or has asked; of all if none is given.
    /// The oldest first.
    fn requests(
        &self,
        realm: RealmId,
        agent: Option<AgentId>,
    ) -> BoxFuture<'_, Result<Vec<OpenRequest>, StoreError>>;

    /// All of a team as it was at one moment; none if there is no such team.
    fn export(
        &self,
        realm: RealmId,
        team: Name,
    ) -> BoxFuture<'_, Result<Option<Archive>, StoreError>>;

    /// Makes a team of an archive, in the realm that it names. Its members' inboxes are made with it;
    /// tasks that were being done are pending. Refused with [`StoreError::BadStep`] if there is such a
    /// team already, or the archive contradicts itself: nothing of it is there then.
    fn import(&self, archive: Archive) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Why the store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has taken the agent over; this one must stop.
    #[error("agent {agent} has been taken over by another process")]
    Fenced {
        /// The agent.
        agent: AgentId,
    },
    /// Another live process writes to the agent.
    #[error("session {agent} is open in another process ({holder})")]
    Held {
        /// The agent.
        agent: AgentId,
        /// The process, for people: `pid 4711`.
        holder: String,
    },
    /// There is no such agent.
    #[error("there is no session {agent}")]
    NotFound {
        /// The agent.
        agent: AgentId,
    },
    /// What is stored is not what was stored.
    #[error("the transcript of {agent} is damaged at entry {seq}")]
    Damaged {
        /// The agent.
        agent: AgentId,
        /// The first entry that is wrong.
        seq: u64,
    },
    /// The disk is full.
    #[error("the disk is full: {place} cannot grow")]
    Full {
        /// The file.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The engine failed.
    #[error("the store failed ({place})")]
    Engine {
        /// The file or server.
        place: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file was written by a newer posse.
    #[error(
        "{place} was written by a newer posse (schema version {found}; this posse supports {known})"
    )]
    TooNew {
        /// The file.
        place: String,
        /// Its version.
        found: u32,
        /// The newest one known here.
        known: u32,
    },
    /// Another agent of the realm is registered under the name, or is or was a member of a team under it; nothing
    /// of the step is there.
    #[error("the name {name} is taken{}; a name cannot be reused", by_agent(.by))]
    NameTaken {
        /// The name.
        name: Name,
        /// Who has it; none if whoever had it has left its team.
        by: Option<AgentId>,
    },
    /// The caller broke a rule of this port.
    #[error("a step that cannot be committed: {0}")]
    BadStep(String),
}

fn by_agent(by: &Option<AgentId>) -> String {
    by.map(|agent| format!(" by agent {agent}"))
        .unwrap_or_default()
}
