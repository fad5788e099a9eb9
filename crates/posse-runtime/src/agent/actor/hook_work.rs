//! Hooks of an agent that run, and what is known of them from one input to the next.

use std::collections::VecDeque;
use std::sync::Arc;

use posse_port::store::Charge;
use posse_protocol::Command;
use uuid::Uuid;

use crate::agent::actor::hook_transcript::HookTranscript;
use crate::agent::hook_host::HookRun;
use crate::hook::answer::Answer;
use crate::hook::{HookEvent, HookSet, Merged};
use crate::live::skill_hooks::SkillHooks;
use crate::supervise::Calls;

/// Hooks of an agent that run, and what waits for them.
pub(super) struct HookWork {
    /// Those that something waits for.
    pub(super) running: Calls<HookKey, HooksRan>,
    /// Those that a prompt waits for. What ends the hooks of a run does not let a prompt pass.
    pub(super) gate: Calls<(), GateRan>,
    /// Those that nothing waits for.
    pub(super) beside: Calls<Uuid, RanBeside>,
    /// Commands that begin runs, and wait for the hooks of the first one.
    pub(super) held: VecDeque<Command>,
    /// True once the hooks of the session's start were looked for.
    pub(super) started: bool,
    /// True once hooks were told of the memory files that it begins with.
    pub(super) greeted: bool,
    /// What the last compaction was made for.
    pub(super) compaction: &'static str,
    /// What hooks of a prompt have cost whose run has not begun.
    pub(super) before: Vec<Charge>,
    /// What was said in the session, for hooks.
    pub(super) transcript: Option<HookTranscript>,
    /// The hooks of the skills that it has loaded.
    pub(super) of_skills: Option<Arc<SkillHooks>>,
    /// Its hooks as they were looked at last.
    pub(super) looked: Option<LookedHooks>,
}

/// The hooks of an agent as they were looked at last.
pub(super) struct LookedHooks {
    /// Those of settings.
    pub(super) settings: Arc<HookSet>,
    /// Number of changes of those of skills.
    pub(super) changes: usize,
    /// All of them.
    pub(super) all: Arc<HookSet>,
}

impl HookWork {
    pub(super) fn new() -> Self {
        Self {
            running: Calls::new(),
            gate: Calls::new(),
            beside: Calls::new(),
            held: VecDeque::new(),
            started: false,
            greeted: false,
            compaction: "auto",
            before: Vec::new(),
            transcript: None,
            of_skills: None,
            looked: None,
        }
    }

    /// Returns true while something waits for hooks.
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.gate.is_empty() || !self.held.is_empty()
    }

    /// Ends all hooks that something waits for, and drops what waits.
    pub(super) fn stop(&mut self) {
        self.held.clear();
        self.gate.cancel();
        self.running.cancel();
        self.beside.cancel();
    }
}

/// What hooks were started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookKey {
    /// This number of the machine, which waits for them.
    Step(u64),
    /// Something that has happened.
    Told,
}

/// Hooks that have run.
pub(super) struct HooksRan {
    pub(super) then: AfterHooks,
    pub(super) beside: Vec<HookRun>,
    /// What models have cost that they asked.
    pub(super) charges: Vec<Charge>,
}

/// What hooks were run for.
pub(super) enum AfterHooks {
    /// A step of the run that waits for them.
    Step { run: u64, said: Box<Merged> },
    /// Something that has happened: what they say is told with the next entry.
    Told { event: HookEvent, said: Box<Merged> },
}

/// A command whose hooks have run.
pub(super) struct GateRan {
    pub(super) command: Command,
    /// What the model is told beside it.
    pub(super) told: Vec<String>,
    /// Why it begins no run.
    pub(super) refused: Option<String>,
    /// True if they were told to end: then they have not let it pass.
    pub(super) stopped: bool,
    pub(super) beside: Vec<HookRun>,
    /// What models have cost that they asked.
    pub(super) charges: Vec<Charge>,
}

/// A hook that has run and that nothing waited for.
pub(super) struct RanBeside {
    pub(super) event: HookEvent,
    pub(super) rewakes: bool,
    pub(super) answer: Answer,
}
