//! Open tool calls of one reply: judged, asked about, run, and answered in order.

use std::sync::Arc;

use posse_port::store::{CallChange, CallChangeKind, CallKey, CallOutcome, OpenCall};
use posse_port::tool::{Intent, Subject, ToolError};
use posse_protocol::{ContentBlock, EventKind, Outcome, RawJson, ToolContent, WaitReason};

use crate::agent::step::{Decision, Effect, ToolRun};

/// The open calls of a reply.
pub(crate) struct OpenCalls {
    pub(super) calls: Vec<OpenToolCall>,
    /// Set if no further call is run: how the run will end.
    pub(super) stopping: Option<Outcome>,
}

/// One tool call.
pub(super) struct OpenToolCall {
    /// Position of the call: reply and ordinal.
    pub(super) key: CallKey,
    /// The model's ID of the call.
    pub(super) id: String,
    pub(super) tool: String,
    /// Input, which a person may have changed.
    pub(super) input: RawJson,
    /// What it means to do, or why the input is wrong.
    pub(super) intent: Result<Intent, ToolError>,
    pub(super) phase: CallPhase,
    first: First,
}

/// Another tool that a call's own tool asks to be run first.
enum First {
    /// None was asked for.
    Unasked,
    /// It takes the place of the call's own tool, which is kept here.
    Used {
        tool: String,
        input: RawJson,
        intent: Result<Intent, ToolError>,
    },
    /// It has ended with this outcome.
    Done(CallOutcome),
}

/// Progress of a call.
#[derive(PartialEq)]
pub(super) enum CallPhase {
    /// Its turn has not come, or it was not judged yet.
    Waiting,
    /// A person is asked for approval.
    Asked,
    /// It runs.
    Running,
    Done(CallOutcome),
}

/// Result of a call that was aborted.
pub(super) const INTERRUPTED: &str =
    "Interrupted before it ended. Part of it may have taken effect.";
/// Result of a call that was not started because the run was stopped.
pub(super) const NOT_RUN: &str = "Not run: the run was stopped first.";
/// Result of a call whose tool panicked.
pub(super) const CRASHED: &str = "The tool crashed. Part of it may have taken effect.";
/// Result of a call that had begun when the process died.
pub(super) const UNKNOWN: &str = "Outcome unknown: posse ended while this was running. It may have \
                       taken full, partial or no effect, and was not run again. Check before you \
                       repeat it.";
/// Result of a call that had not begun when the process died.
pub(super) const NOT_BEGUN: &str =
    "Not run, or without effect: posse ended before this started or answered.";

/// Returns the result of a call that a dead process left open.
pub(super) fn recovered(call: OpenCall, known: Option<CallOutcome>) -> ContentBlock {
    let unknown = || failure(if call.begun { UNKNOWN } else { NOT_BEGUN });
    let outcome = call.outcome.or(known).unwrap_or_else(unknown);
    result(call.id, &outcome)
}

/// Returns an outcome that tells the model of an error.
pub(crate) fn failure(text: impl Into<String>) -> CallOutcome {
    CallOutcome {
        content: Arc::new([ToolContent::text(text)]),
        is_error: true,
    }
}

/// Returns the content block for an outcome.
pub(super) fn result(id: String, outcome: &CallOutcome) -> ContentBlock {
    ContentBlock::ToolResult {
        tool_use_id: id,
        content: outcome.content.to_vec(),
        is_error: outcome.is_error,
    }
}

impl OpenCalls {
    /// Returns the calls in `content`, the reply with number `seq`.
    pub(super) fn new(
        seq: u64,
        content: &[ContentBlock],
        intents: Vec<Result<Intent, ToolError>>,
    ) -> Self {
        let uses = content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse { id, name, input } => {
                Some((id.clone(), name.clone(), input.clone()))
            }
            _ => None,
        });
        // An interrupted reply comes without intents: its calls are never run.
        let intents = intents.into_iter().chain(std::iter::repeat_with(|| {
            Err(ToolError::Tell(NOT_RUN.into()))
        }));
        let calls = uses
            .zip(intents)
            .zip(0..)
            .map(|(((id, tool, input), intent), ordinal)| OpenToolCall {
                key: CallKey { seq, ordinal },
                id,
                tool,
                input,
                intent,
                phase: CallPhase::Waiting,
                first: First::Unasked,
            });
        Self {
            calls: calls.collect(),
            stopping: None,
        }
    }

    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.calls.len()).unwrap_or(u32::MAX)
    }

    /// Returns true if all calls whose turn it is wait for other agents or for a person.
    pub(super) fn waits(&self) -> bool {
        let mut open = self.calls[self.group()]
            .iter()
            .filter(|call| !matches!(call.phase, CallPhase::Done(_)));
        let waits = |call: &OpenToolCall| match &call.phase {
            CallPhase::Asked => true,
            CallPhase::Running => call.intent.as_ref().is_ok_and(|intent| intent.waits),
            CallPhase::Waiting | CallPhase::Done(_) => false,
        };
        self.stopping.is_none() && open.all(waits)
    }

    /// Returns what calls that wait wait for: a person first, because only people can end that.
    pub(super) fn wait_reason(&self) -> WaitReason {
        let is_asked = |call: &OpenToolCall| call.phase == CallPhase::Asked;
        match self.calls.iter().any(is_asked) {
            true => WaitReason::Person,
            false => WaitReason::Children,
        }
    }

    /// Returns the events that say which calls run.
    pub(crate) fn in_progress(&self) -> impl Iterator<Item = EventKind> {
        let running = self.calls.iter();
        running
            .filter(|call| call.phase == CallPhase::Running)
            .filter_map(|call| Some(call.started(call.intent.as_ref().ok()?.title.clone())))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the tool of a call.
    pub(crate) fn tool(&self, key: CallKey) -> Option<&str> {
        self.calls
            .iter()
            .find(|call| call.key == key)
            .map(|call| call.tool.as_str())
    }

    /// Returns the model's ID of a call.
    pub(crate) fn call_id(&self, key: CallKey) -> Option<&str> {
        self.calls
            .iter()
            .find(|call| call.key == key)
            .map(|call| call.id.as_str())
    }

    /// Returns the model's IDs of all calls.
    pub(crate) fn call_ids(&self) -> impl Iterator<Item = String> {
        self.calls.iter().map(|call| call.id.clone())
    }

    /// Returns true if a running tool waits for other agents.
    pub(crate) fn awaits_others(&self) -> bool {
        let waits = |call: &OpenToolCall| call.intent.as_ref().is_ok_and(|intent| intent.waits);
        self.calls
            .iter()
            .any(|call| call.phase == CallPhase::Running && waits(call))
    }

    /// Returns the tool of a call that a person is asked about.
    pub(crate) fn asked_tool(&self, id: &str) -> Option<&str> {
        let asked = self
            .calls
            .iter()
            .find(|call| call.id == id && call.phase == CallPhase::Asked);
        asked.map(|call| call.tool.as_str())
    }

    /// Returns the changes that the step with the reply stores.
    pub(super) fn asked(&self) -> impl Iterator<Item = CallChange> {
        self.calls.iter().map(|call| CallChange {
            key: call.key,
            change: CallChangeKind::Asked {
                id: call.id.clone(),
                tool: call.tool.clone(),
            },
        })
    }

    /// Returns the results of calls none of which has run.
    pub(super) fn not_run(&self) -> Vec<ContentBlock> {
        self.calls
            .iter()
            .map(|call| result(call.id.clone(), &failure(NOT_RUN)))
            .collect()
    }

    /// Returns the calls whose turn it is: the first open one and, if it may run beside others,
    /// those directly after it that may too.
    pub(super) fn group(&self) -> std::ops::Range<usize> {
        let beside = |call: &&OpenToolCall| {
            call.intent
                .as_ref()
                .map_or(true, |intent| intent.beside_others)
        };
        let Some(first) = self
            .calls
            .iter()
            .position(|call| !matches!(call.phase, CallPhase::Done(_)))
        else {
            return 0..0;
        };
        let more = self.calls[first..].iter().take_while(beside).count();
        first..first + more.max(1)
    }

    /// Returns true if every call has an outcome.
    pub(crate) fn all_done(&self) -> bool {
        self.calls
            .iter()
            .all(|call| matches!(call.phase, CallPhase::Done(_)))
    }
}

impl OpenToolCall {
    /// Starts the call. A call that may change something outside is stored as begun first: after a
    /// crash it must not run again.
    pub(super) fn run(&mut self, decision: &mut Decision) {
        let Ok(intent) = &self.intent else { return };
        if !intent.read_only
            || intent.waits
            || matches!(
                intent.subject,
                Subject::Starts { .. } | Subject::Follows { .. }
            )
        {
            decision.commit.calls.push(CallChange {
                key: self.key,
                change: CallChangeKind::Begun,
            });
        }
        self.phase = CallPhase::Running;
        decision
            .after
            .push(Effect::Emit(self.started(intent.title.clone())));
        let (tool, input, subject) = (
            self.tool.clone(),
            self.input.clone(),
            intent.subject.clone(),
        );
        let first = match &self.first {
            First::Done(outcome) => Some(outcome.clone()),
            First::Unasked | First::Used { .. } => None,
        };
        decision.after.push(Effect::Run(ToolRun {
            key: self.key,
            call: self.id.clone(),
            tool,
            input,
            subject,
            first,
        }));
    }

    /// Returns the event that says that it runs.
    fn started(&self, title: String) -> EventKind {
        let (call, tool) = (self.id.clone(), self.tool.clone());
        EventKind::CallStarted { call, tool, title }
    }

    /// Runs another tool first. It needs permission as if the model had called it.
    pub(super) fn use_first(
        &mut self,
        tool: String,
        input: RawJson,
        intent: Result<Intent, ToolError>,
    ) {
        if !matches!(self.first, First::Unasked) {
            self.phase = CallPhase::Done(failure(
                "a tool can require only one other to be used first",
            ));
            return;
        }
        let tool = std::mem::replace(&mut self.tool, tool);
        let input = std::mem::replace(&mut self.input, input);
        let intent = std::mem::replace(&mut self.intent, intent);
        self.first = First::Used {
            tool,
            input,
            intent,
        };
        self.phase = CallPhase::Waiting;
    }

    /// Continues with the call's own tool after the one that ran first. Returns false if there was
    /// none.
    pub(super) fn after_first(&mut self, outcome: &CallOutcome) -> bool {
        let First::Used {
            tool,
            input,
            intent,
        } = std::mem::replace(&mut self.first, First::Unasked)
        else {
            return false;
        };
        (self.tool, self.input, self.intent) = (tool, input, intent);
        self.first = First::Done(outcome.clone());
        self.phase = CallPhase::Waiting;
        true
    }

    /// Ends a call that did not run. If it was a tool to be run first, the call's own tool decides.
    pub(super) fn not_run(&mut self, outcome: CallOutcome) {
        if !self.after_first(&outcome) {
            self.phase = CallPhase::Done(outcome);
        }
    }

    /// Ends a call that ran, and reports it.
    pub(super) fn done(&mut self, decision: &mut Decision, outcome: CallOutcome) {
        let (call, is_error) = (self.id.clone(), outcome.is_error);
        decision
            .after
            .push(Effect::Emit(EventKind::CallDone { call, is_error }));
        self.phase = CallPhase::Done(outcome);
    }
}
