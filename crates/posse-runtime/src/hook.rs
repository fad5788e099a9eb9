//! Hooks: programs, servers and prompts of people that see what an agent does, and have a say in it.
//! What a file declares, which hooks an event has, and what their answers come to. Pure: nothing
//! here runs a hook.

pub mod answer;
mod book;
mod config;
mod event;
mod kind;
mod matcher;
pub mod merge;
mod payload;
mod policy;
mod set;
mod target;
#[cfg(test)]
pub(crate) mod tests;

pub use book::{FileWatcher, HookBook, Preparation};
pub use config::{FileProblem, HookFile, HookProblem, PathStep, ReadHooks, read};
pub use event::HookEvent;
pub(crate) use event::Veto;
pub use kind::{
    Condition, Hook, HookAction, HookLayer, HookOrigin, HookProgram, HookState, HookTool,
    OnFailure, RunsBeside,
};
pub use matcher::Matcher;
pub use merge::Merged;
pub(crate) use merge::strictest;
pub use payload::{HookFacts, SubAgentFacts, payload};
pub use policy::{HookPolicy, HookScope};
pub use set::{HookSet, Matched, MatchedCall};
pub use target::{NotRunnable, target, variables};
