//! Open tool calls of one reply: judged, asked about, run, and answered in order.

use std::collections::HashMap;
use std::sync::Arc;

use posse_permission::{Consent, Rights};
use posse_port::confinement::Tier;
use posse_port::store::{
    CallChange, CallChangeKind, CallKey, CallOutcome, NewQuestion, OpenCall, QuestionChange,
    QuestionChangeKind, QuestionRecord, question_id,
};
use posse_port::tool::{Intent, Subject, ToolError};
use posse_protocol::{
    AgentId, ContentBlock, EventKind, Outcome, Question, QuestionId, QuestionKind, RawJson,
    SandboxRefusal, ToolContent, WaitReason,
};

use crate::agent::step::hooks::{BatchHooks, CallHooks, HookStage};
use crate::agent::step::{Decision, Effect, ToolRun};
use crate::definition::tool_name::meant;
use crate::hook::answer::HookDecision;

/// The open calls of a reply.
pub(crate) struct OpenCalls {
    pub(super) calls: Vec<OpenToolCall>,
    /// Set if no further call is run: how the run will end.
    pub(super) stopping: Option<Outcome>,
    /// Hooks for all of them.
    pub(super) batch: BatchHooks,
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
    /// Number of questions that were asked about it.
    questions: u32,
    first: First,
    /// What the sandbox has refused to it, and what it was told.
    refused: Option<Refused>,
    /// What hooks have said about it.
    pub(super) hooks: CallHooks,
}

/// A command that has failed because of the sandbox, and that a person is asked about.
struct Refused {
    refusal: SandboxRefusal,
    /// What the command printed, and how it ended.
    told: String,
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
        /// What hooks have decided about it, and the input that they have changed.
        decision: Option<HookDecision>,
        original: Option<RawJson>,
    },
    /// It has ended with this outcome.
    Done(CallOutcome),
}

/// A call that a person is asked about.
pub(crate) struct AskedCall<'a> {
    pub(crate) tool: &'a str,
    pub(crate) input: &'a RawJson,
    pub(crate) intent: &'a Intent,
    /// What the sandbox has refused to it.
    pub(crate) refused: Option<&'a SandboxRefusal>,
}

/// Progress of a call.
#[derive(PartialEq)]
pub(super) enum CallPhase {
    /// Its turn has not come, or it was not judged yet.
    Waiting,
    /// Hooks run for it: the number of the run, and what they decide about.
    Hooked(u64, HookStage),
    /// A person is asked this about it.
    Asked(QuestionId),
    /// It runs.
    Running,
    Done(CallOutcome),
}

/// What is told of a command that waited to be run again when the process died.
const OUTPUT_LOST: &str =
    "It has run in the sandbox, which refused something; its output was lost.";
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

/// A call that a dead process left open, with its question if one waits.
pub(crate) struct LeftCall {
    pub(crate) call: OpenCall,
    /// Its outcome, if others know it.
    pub(crate) known: Option<CallOutcome>,
    /// The question about it that waits.
    pub(crate) asked: Option<LeftQuestion>,
}

/// A question that a dead process has asked.
pub(crate) struct LeftQuestion {
    pub(crate) question: Question,
    /// What its call means to do.
    pub(crate) intent: Result<Intent, ToolError>,
    /// When it was asked, in milliseconds of Unix time.
    pub(crate) asked_ms: i64,
}

impl LeftCall {
    /// Finds the questions that open calls wait with. The others have lost their calls: they are
    /// withdrawn.
    pub(crate) fn with_questions(
        open: Vec<OpenCall>,
        mut known: HashMap<CallKey, CallOutcome>,
        mut questions: Vec<QuestionRecord>,
        intent: impl Fn(&str, &RawJson) -> Result<Intent, ToolError>,
    ) -> (Vec<Self>, Vec<QuestionChange>) {
        let left = open.into_iter().map(|call| {
            let known = known.remove(&call.key);
            let is_open = call.outcome.is_none() && known.is_none();
            // A call that has begun may have had an effect, whatever was asked about it later; but
            // if the question is whether it may run again, that is known.
            let about = |record: &QuestionRecord| {
                record.call == call.key
                    && record.question.tool == call.tool
                    && (!call.begun || record.question.refused.is_some())
            };
            let at = questions.iter().rposition(about).filter(|_| is_open);
            let asked = at.map(|at| {
                let record = questions.remove(at);
                LeftQuestion {
                    intent: intent(&call.tool, &record.question.input),
                    question: record.question,
                    asked_ms: record.asked_ms,
                }
            });
            Self { call, known, asked }
        });
        let left = left.collect();
        let withdrawn = |record: QuestionRecord| QuestionChange {
            id: record.question.id,
            change: QuestionChangeKind::Withdrawn,
        };
        (left, questions.into_iter().map(withdrawn).collect())
    }

    /// Returns its outcome if no question about it waits.
    pub(super) fn outcome(self) -> CallOutcome {
        let unknown = if self.call.begun { UNKNOWN } else { NOT_BEGUN };
        let known = self.call.outcome.or(self.known);
        known.unwrap_or_else(|| failure(unknown))
    }
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
                let (tool, input) = meant(name, input);
                Some((id.clone(), tool.into_owned(), input.into_owned()))
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
                questions: 0,
                first: First::Unasked,
                refused: None,
                hooks: CallHooks::default(),
            });
        Self {
            calls: calls.collect(),
            stopping: None,
            batch: BatchHooks::default(),
        }
    }

    /// Returns the calls that a dead process left, some of which wait for an answer.
    pub(super) fn left(calls: Vec<LeftCall>) -> Self {
        let calls = calls.into_iter().map(|mut left| {
            let (key, id) = (left.call.key, left.call.id.clone());
            let tool = left.call.tool.clone();
            let refusal = left.asked.as_ref();
            let refused = refusal.and_then(|asked| {
                let refusal = asked.question.refused.clone()?;
                let told = OUTPUT_LOST.to_owned();
                Some(Refused { refusal, told })
            });
            let (input, intent, phase, questions) = match left.asked.take() {
                Some(LeftQuestion {
                    question,
                    intent,
                    asked_ms,
                }) => {
                    // Counted on from a number that no question about this call has had.
                    let questions = asked_ms as u32;
                    let phase = CallPhase::Asked(question.id);
                    (question.input, intent, phase, questions)
                }
                None => {
                    let not_run = ToolError::Tell(NOT_RUN.into());
                    let done = CallPhase::Done(left.outcome());
                    (RawJson::empty_object(), Err(not_run), done, 0)
                }
            };
            OpenToolCall {
                key,
                id,
                tool,
                input,
                intent,
                phase,
                questions,
                first: First::Unasked,
                refused,
                // They were asked before the question.
                hooks: CallHooks::asked(),
            }
        });
        Self {
            calls: calls.collect(),
            stopping: None,
            batch: BatchHooks::default(),
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
            CallPhase::Asked(_) => true,
            CallPhase::Running => call.intent.as_ref().is_ok_and(|intent| intent.waits),
            CallPhase::Waiting | CallPhase::Hooked(..) | CallPhase::Done(_) => false,
        };
        self.stopping.is_none() && open.all(waits)
    }

    /// Returns what calls that wait wait for: a person first, because only people can end that.
    pub(super) fn wait_reason(&self) -> WaitReason {
        match self.asks() {
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

    /// Returns the tool of the call for which hooks run.
    pub(crate) fn hooked_tool(&self, run: u64) -> Option<&str> {
        let waits =
            |call: &&OpenToolCall| matches!(call.phase, CallPhase::Hooked(it, _) if it == run);
        self.calls.iter().find(waits).map(|call| call.tool.as_str())
    }

    /// Returns the call that a question is about.
    pub(crate) fn asked_about(&self, question: QuestionId) -> Option<AskedCall<'_>> {
        let call = self.calls.iter().find(|call| call.is_asked(question))?;
        Some(AskedCall {
            tool: &call.tool,
            input: &call.input,
            intent: call.intent.as_ref().ok()?,
            refused: call.refused.as_ref().map(|refused| &refused.refusal),
        })
    }

    /// Returns true if a person is asked about a call.
    pub(crate) fn asks(&self) -> bool {
        let asked = |call: &OpenToolCall| matches!(call.phase, CallPhase::Asked(_));
        self.calls.iter().any(asked)
    }

    /// Returns the changes that the step with the reply stores.
    pub(super) fn asked(&self) -> impl Iterator<Item = CallChange> {
        self.calls.iter().map(|call| CallChange {
            key: call.key,
            change: CallChangeKind::Asked {
                id: call.id.clone(),
                tool: call.tool.clone(),
                tier: call.tier(),
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
    /// Returns true if it waits for the answer to this question.
    pub(super) fn is_asked(&self, question: QuestionId) -> bool {
        self.phase == CallPhase::Asked(question)
    }

    /// Returns what a question about it wants to know.
    pub(super) fn kind(&self) -> QuestionKind {
        match self.intent.as_ref().map(|intent| &intent.subject) {
            Ok(Subject::Asks(kind)) => *kind,
            _ => QuestionKind::Permission,
        }
    }

    /// Asks a person about it, on behalf of an agent and in its name.
    pub(super) fn ask(
        &mut self,
        agent: AgentId,
        from: Option<String>,
        why: String,
        decision: &mut Decision,
    ) {
        let CallKey { seq, ordinal } = self.key;
        let id = question_id(agent, &format!("{seq}.{ordinal}.{}", self.questions));
        self.questions = self.questions.wrapping_add(1);
        self.phase = CallPhase::Asked(id);
        let question = Question {
            id,
            kind: self.kind(),
            call: self.id.clone(),
            tool: self.tool.clone(),
            input: self.input.clone(),
            why,
            from,
            until_ms: None,
            suggestions: Vec::new(),
            shown: None,
            refused: self.refused.as_ref().map(|refused| refused.refusal.clone()),
        };
        let new = NewQuestion {
            call: self.key,
            question,
        };
        let change = QuestionChangeKind::Asked(Box::new(new));
        decision
            .commit
            .questions
            .push(QuestionChange { id, change });
    }

    /// Keeps what the sandbox has refused, for a question about it.
    pub(super) fn refuse(&mut self, refusal: SandboxRefusal, told: String) {
        self.refused = Some(Refused { refusal, told });
    }

    /// Returns who has agreed to it, now that a person has.
    pub(super) fn consent(&mut self) -> Consent {
        match self.refused.take() {
            Some(refused) => Consent::Again(refused.refusal),
            None => Consent::Person,
        }
    }

    /// Returns the text with what the command printed before it, if it has run.
    pub(super) fn with_output(&mut self, text: String) -> String {
        match self.refused.take() {
            Some(refused) => format!(
                "{}\n(It has run in the sandbox; this is about running it again:) {text}",
                refused.told.trim_end()
            ),
            None => text,
        }
    }

    /// Closes the question that is open about it, if there is one, and tells front ends.
    pub(super) fn close_question(&self, change: QuestionChangeKind, decision: &mut Decision) {
        if let CallPhase::Asked(id) = self.phase {
            decision
                .commit
                .questions
                .push(QuestionChange { id, change });
            let withdrawn = EventKind::ApprovalWithdrawn { question: id };
            decision.after.push(Effect::Emit(withdrawn));
        }
    }

    /// Starts the call. A call that may change something outside is stored as begun first: after a
    /// crash it must not run again.
    pub(super) fn run(&mut self, consent: Consent, rights: &Rights, decision: &mut Decision) {
        let Ok(intent) = &self.intent else { return };
        let tier = rights.tier(&intent.subject, &consent);
        if !intent.read_only
            || intent.waits
            || tier != self.tier()
            || matches!(
                intent.subject,
                Subject::Starts { .. } | Subject::Follows { .. }
            )
        {
            decision.commit.calls.push(CallChange {
                key: self.key,
                change: CallChangeKind::Begun { tier },
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
            consent,
            first,
        }));
    }

    /// Returns the sandbox that it is to run in, if it runs a command.
    fn tier(&self) -> Option<Tier> {
        match self.intent.as_ref().ok()?.subject {
            Subject::Runs { tier, .. } => Some(tier),
            _ => None,
        }
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
            decision: self.hooks.decision.take(),
            original: self.hooks.original.take(),
        };
        self.hooks.asked = false;
        self.phase = CallPhase::Waiting;
    }

    /// Continues with the call's own tool after the one that ran first. Returns false if there was
    /// none.
    pub(super) fn after_first(&mut self, outcome: &CallOutcome) -> bool {
        let First::Used {
            tool,
            input,
            intent,
            decision,
            original,
        } = std::mem::replace(&mut self.first, First::Unasked)
        else {
            return false;
        };
        (self.tool, self.input, self.intent) = (tool, input, intent);
        self.first = First::Done(outcome.clone());
        // They were asked before it gave way to the other tool.
        self.hooks.asked = true;
        self.hooks.decision = decision;
        self.hooks.original = original;
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
