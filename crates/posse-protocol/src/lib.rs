//! The words of posse: what passes between its rooms, and between the runtime and its front ends.
//!
//! A front end sends [`Command`]s and sees [`Event`]s. [`Message`]s made of [`ContentBlock`]s are
//! what agents and models say; [`Task`]s, [`Team`]s and [`Mail`] are what agents share. [`wire`] is
//! the form of all this between processes, with its version. `posse_runtime` is the guide to the
//! whole.
//!
//! This crate owns names and shapes. It decides nothing, reads nothing and starts nothing.

pub mod choice;
pub mod command;
pub mod content;
pub mod control;
pub mod cost;
pub mod display;
pub mod elicitation;
pub mod event;
pub mod host;
pub mod id;
pub mod listing;
pub mod mail;
pub mod memory;
pub mod misses;
pub mod mode;
pub mod name;
pub mod plan;
pub mod question;
pub mod queue;
pub mod run;
pub mod session_news;
pub mod suggestion;
pub mod task;
pub mod team;
pub mod usage;
pub mod watch;
pub mod wire;

pub use choice::{BadChoice, ChoiceAnswers, ChoiceOption, ChoiceQuestion, Choices};
pub use command::Command;
pub use content::{ContentBlock, Message, RawJson, Role, StopReason, ToolContent, ToolSpec};
pub use control::{IdleReason, IdleReport, Request, RequestKind, Response, TaskReport};
pub use cost::{Cost, Purpose};
pub use display::{DiffLine, Display, FileDiff, Hunk, LineChange};
pub use elicitation::{Elicitation, ElicitationReply, ElicitationWish};
pub use event::{
    Aside, Delta, Denial, Entry, EntryKind, Event, EventKind, Fault, FaultClass, HookEnd,
    HookUpdate, Limit, MemberChange, MemberUpdate, Missed, ModelUpdate, Outcome, ReplyFacts, Retry,
    RunEnd, SpendingUpdate, Spent,
};
pub use host::authority;
pub use id::{AgentId, HostId, MailId, QuestionId, RealmId};
pub use listing::{ListKind, ListedName, Listing};
pub use mail::{Mail, MailKind, Sender};
pub use memory::MemoryScope;
pub use misses::{AgentMisses, Misses};
pub use mode::{PermissionMode, UnknownMode};
pub use name::{BadName, Name};
pub use plan::{PlannedTask, Role as TeamRole, TeamPlan};
pub use question::{
    AcceptedRules, Answer, Answerer, GivenAnswer, Question, QuestionKind, SandboxRefusal,
};
pub use queue::{PromptChange, QueuedPrompt};
pub use run::{
    AgentPlace, Notification, RunChange, RunFacts, RunKind, RunStatus, RunUpdate, RunUsage,
    WorktreeEnd,
};
pub use session_news::{MailUpdate, RequestUpdate, TaskUpdate};
pub use suggestion::{RuleScope, Suggestion};
pub use task::{ListId, Owner, Takes, Task, TaskId, TaskStatus};
pub use team::{Member, MemberState, Note, Team};
pub use usage::Usage;
pub use watch::{Activity, Detail, WaitReason, WatchTarget};
