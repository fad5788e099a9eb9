//! Hooks of an agent, and what waits for those that run: plain data for the decisions about them.

use std::sync::Arc;

use posse_permission::Verdict;
use posse_port::store::{CallOutcome, Operation};
use posse_protocol::RawJson;
use serde_json::{Map, Value};

use crate::hook::answer::HookDecision;
use crate::hook::{Hook, HookEvent, HookSet};

/// Hooks of an agent, as far as decisions need them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentHooks {
    /// Those that hold now.
    pub(crate) set: Arc<HookSet>,
    /// The agent's type; none for a main agent.
    pub(super) own_type: Option<String>,
    /// Number of times that hooks were run.
    runs: u64,
}

impl AgentHooks {
    /// Returns the hooks of an agent of this type; none for a main agent.
    pub(crate) fn of(own_type: Option<String>) -> Self {
        Self {
            own_type,
            ..Self::default()
        }
    }

    /// Returns a number for the next run of hooks.
    pub(super) fn next_run(&mut self) -> u64 {
        self.runs += 1;
        self.runs
    }
}

/// Hooks that are to be run side by side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HookRequest {
    /// Number of this run of hooks; `Input::Hooked` returns it.
    pub(crate) run: u64,
    /// The event.
    pub(crate) event: HookEvent,
    /// The hooks, in the order in which they count.
    pub(crate) hooks: Vec<Arc<Hook>>,
    /// What their matchers were compared with; empty if the event has nothing.
    pub(crate) about: String,
    /// The model's ID of the call that it is about.
    pub(crate) call: Option<String>,
    /// What only this event tells.
    pub(crate) own: Map<String, Value>,
}

impl HookRequest {
    /// Returns a request for an event that no step waits for.
    pub(crate) fn of_event(
        event: HookEvent,
        hooks: Vec<Arc<Hook>>,
        about: &str,
        own: Value,
    ) -> Self {
        Self {
            run: 0,
            event,
            hooks,
            about: about.to_owned(),
            call: None,
            own: match own {
                Value::Object(own) => own,
                _ => Map::new(),
            },
        }
    }
}

/// What a call waits for while hooks run.
#[derive(Debug, PartialEq)]
pub(super) enum HookStage {
    /// Whether it may run.
    Before,
    /// Whether a person must be asked, for this reason.
    Asking(String),
    /// Whether its operations may be committed.
    Operating(Vec<Operation>),
    /// What is added to its outcome, which is stored.
    After(CallOutcome),
    /// Whether the model may try it again: it was denied without asking anybody.
    Denied(CallOutcome),
}

/// What hooks have said about a call.
#[derive(Debug, Default)]
pub(super) struct CallHooks {
    /// True once the hooks before it were run for its input.
    pub(super) asked: bool,
    /// What they have decided, unless they refused.
    pub(super) decision: Option<HookDecision>,
    /// What the model reads after the results.
    pub(super) words: Vec<String>,
    /// The input as the model has given it, if a hook has changed it.
    pub(super) original: Option<RawJson>,
}

impl CallHooks {
    /// Returns what is known of a call about which hooks were asked by a dead process.
    pub(super) fn asked() -> Self {
        Self {
            asked: true,
            ..Self::default()
        }
    }
}

/// A verdict on a call that hooks were asked about.
pub(super) enum HookedVerdict {
    /// What the rules say, or more strictly.
    Ruled(Verdict),
    /// A hook has answered what a person would be asked.
    Agreed,
    /// It waits until somebody decides, for this reason.
    Deferred(String),
}

/// What is known of a call that ran, beside its outcome.
#[derive(Debug, Default)]
pub(crate) struct RanFacts {
    /// The result as hooks read it.
    pub(crate) answer: Option<Value>,
    /// How long it took.
    pub(crate) took_ms: Option<u64>,
}

/// The hooks for all calls of a reply.
#[derive(Debug, Default, PartialEq)]
pub(super) enum BatchHooks {
    /// They were not looked for.
    #[default]
    NotRun,
    /// They run.
    Running(u64),
    /// They have said this.
    Done(Vec<String>),
}

impl BatchHooks {
    /// Notes that they are ended. Returns true if they ran.
    pub(super) fn stopped(&mut self) -> bool {
        let ran = matches!(self, Self::Running(_));
        if ran {
            *self = Self::Done(Vec::new());
        }
        ran
    }
}
