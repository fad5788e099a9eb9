//! The store port: storage of transcripts, mail, tasks and teams, and its guarantees.
//!
//! The central operation is [`Store::commit`]: everything an agent does between two waits for the
//! outside world is one [`Step`], committed whole or not at all, durable when the call returns, and
//! refused if another host has taken the agent over. Nothing that was part of a conversation is
//! ever changed in place.
//!
//! **Hosts.** An open store that holds agents is a *host*. While open it signals by itself that it
//! is alive (a lock that the kernel frees when the process dies, and a heartbeat), at no cost per
//! agent; so the port has no heartbeat operation. A host is *dead* when its process has ended, and
//! *stalled* when its heartbeat is older than the lease. The store finds dead hosts at once on one
//! machine, after the lease across machines. Everything a dead host held is freed in one
//! transaction: its agents get a new epoch and no holder, its tasks are pending again with a note
//! of who had them. A stalled host is treated the same, but only when something it holds is
//! requested: a process that was stopped and continued by hand has lost nothing if nobody needed
//! it.
//!
//! **Realms.** Everything belongs to one realm, and no operation crosses realms: every key begins
//! with the realm, which can serve as the sharding key.
//!
//! **Compaction.** An entry of the kind [`Compaction`](posse_protocol::EntryKind::Compaction)
//! replaces all of its agent's history before it, inherited or own. Older entries stay, for people
//! and for the forks that begin with them, but are not needed to continue: [`Store::take`] leaves
//! them out. A realm is only ever removed as a whole.
//!
//! **Model.** An entry of the kind [`Model`](posse_protocol::EntryKind::Model) gives its agent another
//! model: its head is the preamble of all requests after it, and its facts name the model that lists
//! show from then on. The preamble of the birth stays: with the entries before, it is what was sent.
//!
//! **Feed.** Each realm numbers its commits, so that any number of readers can follow what happens
//! in it, from any process and across restarts, without reading anything twice.
//!
//! **Time** is in milliseconds of Unix time, given by the caller, and only stored: lists for people
//! are sorted by it, but no order of steps, mail or claims depends on it.

mod call;
mod feed;
mod layer;
mod operation;
mod page;
mod question;
mod step;
mod view;

use posse_protocol::{AgentId, ListId, Mail, Name, Note, RealmId, Task, TaskId, Team};

use super::BoxFuture;

pub use call::CallKey;
pub use feed::{FeedPage, FeedRow, Topics};
pub use layer::StoreLayer;
pub use operation::{
    Address, Done, Greeting, INBOX_BYTES, INBOX_MAILS, Joining, MAIL_BYTES, METADATA_DEPTH,
    NewTask, Op, OpResult, Operation, Order, Receipt, Refusal, TEXT_BYTES, TaskChange, depth,
};
pub use page::{AgentKey, Page, RequestKey, RowFilter, SessionKey, TeamKey};
pub use question::{
    NewQuestion, QuestionChange, QuestionChangeKind, QuestionFilter, QuestionKey, QuestionRecord,
    QuestionState, question_id,
};
pub use step::{
    AgentState, Birth, CallChange, CallChangeKind, CallOutcome, Charge, Committed, EndedRun, Epoch,
    NewEntry, Origin, RunChange, RunChangeKind, SeenFile, Segment, StateChange, Step, StepId,
    TakenMail, checksum, with_loaded,
};
pub use view::{
    AgentFilter, AgentRecord, AgentRow, AgentRows, Archive, BackgroundRun, CallTier, EntryPage,
    MailFilter, Membership, OpenCall, OpenRequest, Ready, SessionFilter, StoredEntry,
    SubtreeSpending, Taken, TaskFilter, Transcript, Wake,
};

/// Storage of transcripts, mail, tasks and teams.
pub trait Store: Send + Sync {
    /// Commits a step. When this returns `Ok` the step is durable, through kill -9 and power loss;
    /// when it returns `Err`, nothing was acknowledged, and the agent's writer must stop: the next
    /// host to take the agent finds out if the step was committed after all.
    ///
    /// Steps of one agent are committed in the order of the calls (a caller that does not await
    /// each, and has thousands pending, must also poll them in order). A step whose epoch is not
    /// the agent's current one is refused with [`StoreError::Fenced`], alone: other steps of the
    /// same batch are not affected. So is a birth by a host that was declared dead. A birth under a
    /// name that another agent of the realm has, or a member of one of its teams has or had, is
    /// refused with [`StoreError::NameTaken`].
    ///
    /// A step that ends its agent gives back its tasks, including those only assigned to it, hands
    /// the teams it led to the first member of each, and withdraws its questions.
    ///
    /// A step with the id of the agent's last step was committed already: it changes nothing, and
    /// returns the same answer as the first time.
    ///
    /// A refusal inside a step (a task that is already claimed, a full inbox) does not fail the
    /// step: it is an [`OpResult`] that commits with it.
    fn commit(&self, step: Step) -> BoxFuture<'_, Result<Committed, StoreError>>;

    /// Performs operations of a person, outside any agent: all in order, in one transaction,
    /// durable when this returns. Each is refused on its own, as in a step.
    fn operate(&self, order: Order) -> BoxFuture<'_, Result<Vec<OpResult>, StoreError>>;

    /// Makes this host the agent's only writer, with a higher epoch than any before, and returns
    /// everything needed to continue: for an agent with its own compaction the entries from the
    /// last one on, and nothing inherited. Refused with [`StoreError::Held`] while another host
    /// holds it that is alive and not stalled; if that host is dead or stalled, everything it held
    /// is freed first.
    fn take(&self, agent: AgentId) -> BoxFuture<'_, Result<Taken, StoreError>>;

    /// Releases the agent, so that others need not first detect that this process has ended. Tasks
    /// it was doing are pending again, and the released epoch can no longer write. With an old
    /// epoch it does nothing.
    fn release(&self, agent: AgentId, epoch: Epoch) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Waits for events that concern this host, and returns them. Everything that happened after
    /// the call before it returned is reported at least once; hints may be repeated, and may turn
    /// out to be empty. Mail that waits for an agent when it is taken is included. One caller at a
    /// time; dropping the future loses nothing.
    fn woken(&self) -> BoxFuture<'_, Result<Vec<Wake>, StoreError>>;

    /// Returns the feed of a realm after the row number `after`, at most `limit` rows, from one
    /// snapshot. Numbers have no gap and are in the order in which the commits became durable:
    /// whoever has read up to a number has missed nothing before it, whichever processes wrote it.
    /// Old rows are removed; [`FeedPage::has_gap`] tells if some of these were.
    fn feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<FeedPage, StoreError>>;

    /// Waits until the feed of a realm has a row with a higher number than `after`, written by any
    /// process, and returns what [`feed`](Store::feed) then would. Any number of callers at a time;
    /// dropping the future loses nothing. Costs writers nothing that depends on the number of
    /// callers.
    fn follow_feed(
        &self,
        realm: RealmId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<FeedPage, StoreError>>;

    /// Reads a transcript without taking the agent, including the entries that a compaction
    /// replaces.
    fn read(&self, agent: AgentId) -> BoxFuture<'_, Result<Transcript, StoreError>>;

    /// Returns a part of a transcript, including entries that a compaction replaces. The key of an
    /// entry is its position: inherited ones come first, then the agent's own in the order of their
    /// numbers. A page costs the same wherever it is.
    fn entries(
        &self,
        agent: AgentId,
        page: Page<u64>,
    ) -> BoxFuture<'_, Result<EntryPage, StoreError>>;

    /// Returns how strongly the agent's own calls that run commands were held, in their order.
    fn tiers(&self, agent: AgentId) -> BoxFuture<'_, Result<Vec<CallTier>, StoreError>>;

    /// Lists root agents, most recently used first.
    fn sessions(
        &self,
        filter: SessionFilter,
        page: Page<SessionKey>,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>>;

    /// Lists agents by realm, path and id; those of one parent by id, which is by age. A page costs
    /// the same wherever it is, except of held or unfinished agents: there it depends on their
    /// number.
    fn agents(
        &self,
        filter: AgentFilter,
        page: Page<AgentKey>,
    ) -> BoxFuture<'_, Result<Vec<AgentRecord>, StoreError>>;

    /// Returns light rows of a realm's agents, and the last number of its feed, from one snapshot.
    /// The cost depends on the number of rows, not on what the agents did.
    ///
    /// A list of all agents is kept by reading it once, page by page, and from then on only the
    /// rows of [`FeedPage::agents`] after the number of the first page: whatever changes a row has
    /// a number in the feed.
    fn rows(
        &self,
        realm: RealmId,
        filter: RowFilter,
    ) -> BoxFuture<'_, Result<AgentRows, StoreError>>;

    /// Returns what each of these agents and all agents below it were charged, in the order given,
    /// all from one snapshot. The cost depends on the number of these agents, not on their history.
    fn spending(
        &self,
        agents: Vec<AgentId>,
    ) -> BoxFuture<'_, Result<Vec<SubtreeSpending>, StoreError>>;

    /// Lists an agent's mail by number, which is inbox order. Read-only: mail is taken by the step
    /// that shows it to the model. Empty for an agent without an inbox.
    fn mail(
        &self,
        realm: RealmId,
        agent: AgentId,
        filter: MailFilter,
        page: Page<u64>,
    ) -> BoxFuture<'_, Result<Vec<Mail>, StoreError>>;

    /// Lists teams of one realm or of all, the highest key first, which is the newest. The cost
    /// also depends on the number of teams in the realm, if one is given.
    fn teams(
        &self,
        realm: Option<RealmId>,
        page: Page<TeamKey>,
    ) -> BoxFuture<'_, Result<Vec<Team>, StoreError>>;

    /// Lists an agent's memberships in a realm by team name; several in a team where it has several
    /// names, in the order of joining. The cost depends on their number, not on the size of the
    /// teams. Not in pages, since an agent joins few teams under few names.
    fn membership(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> BoxFuture<'_, Result<Vec<Membership>, StoreError>>;

    /// Lists the notes of a team or a session, by name.
    fn notes(&self, list: ListId, page: Page<Name>)
    -> BoxFuture<'_, Result<Vec<Note>, StoreError>>;

    /// Returns a task, even a deleted one.
    fn task(&self, list: ListId, id: TaskId) -> BoxFuture<'_, Result<Option<Task>, StoreError>>;

    /// Lists tasks by number. Deleted ones are left out.
    fn tasks(
        &self,
        list: ListId,
        filter: TaskFilter,
        page: Page<TaskId>,
    ) -> BoxFuture<'_, Result<Vec<Task>, StoreError>>;

    /// Lists the open requests of a realm that an agent was asked or has asked, or all if no agent
    /// is given; oldest first. The cost depends on the number of those that are open.
    fn requests(
        &self,
        realm: RealmId,
        agent: Option<AgentId>,
        page: Page<RequestKey>,
    ) -> BoxFuture<'_, Result<Vec<OpenRequest>, StoreError>>;

    /// Lists questions to people, oldest first.
    fn questions(
        &self,
        filter: QuestionFilter,
        page: Page<QuestionKey>,
    ) -> BoxFuture<'_, Result<Vec<QuestionRecord>, StoreError>>;

    /// Returns a consistent snapshot of a team; `None` if there is no such team.
    fn export(
        &self,
        realm: RealmId,
        team: Name,
    ) -> BoxFuture<'_, Result<Option<Archive>, StoreError>>;

    /// Creates a team from an archive, in the realm that it names, with its members' inboxes; tasks
    /// in progress become pending. Refused as a whole with [`StoreError::BadStep`] if the team
    /// already exists or the archive contradicts itself.
    fn import(&self, archive: Archive) -> BoxFuture<'_, Result<(), StoreError>>;
}

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has taken the agent over; this one must stop.
    #[error("agent {agent} has been taken over by another process")]
    Fenced {
        /// The agent.
        agent: AgentId,
    },
    /// Another live process holds the agent.
    #[error("session {agent} is open in another process ({holder})")]
    Held {
        /// The agent.
        agent: AgentId,
        /// The process, for people: `pid 4711`.
        holder: String,
    },
    /// The agent does not exist.
    #[error("there is no session {agent}")]
    NotFound {
        /// The agent.
        agent: AgentId,
    },
    /// The stored data differs from what was written.
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
        /// The newest version known here.
        known: u32,
    },
    /// Another agent of the realm is registered under the name, or is or was a member of a team
    /// under it; nothing of the step was committed.
    #[error("the name {name} is taken{}; a name cannot be reused", by_agent(.by))]
    NameTaken {
        /// The name.
        name: Name,
        /// Its owner; `None` if that has left its team.
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
