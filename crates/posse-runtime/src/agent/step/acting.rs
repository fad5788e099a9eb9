//! The tool calls of one reply: judged, asked about, run, and answered in their order.

use std::sync::Arc;

use posse_protocol::{
    Answer, ContentBlock, Denial, EntryKind, EventKind, Fault, FaultClass, Message, Outcome,
    Question, RawJson, Role, RunKind, ToolContent,
};

use crate::agent::step::{Answered, Consequence, Decision, Effect, Life, Machine, State};
pub(crate) use crate::live::setup::Asker;
use posse_permission::Verdict;
use posse_port::store::{
    AgentState, CallChange, CallChangeKind, CallKey, CallOutcome, OpenCall, Operation, RunChange,
    RunChangeKind, TakenMail,
};
use posse_port::tool::{Intent, Subject, ToolError};

/// The calls of a reply.
pub(super) struct Acting {
    calls: Vec<Call>,
    /// Why no further call is run, and how the run will end.
    stopping: Option<Outcome>,
}

struct Call {
    key: CallKey,
    id: String,
    tool: String,
    input: RawJson,
    intent: Result<Intent, ToolError>,
    phase: Phase,
    first: First,
}

/// Another tool that a call's own wants to be used first.
enum First {
    /// None so far.
    Unasked,
    /// It is used in place of the call's own, which is kept here.
    Used {
        tool: String,
        input: RawJson,
        intent: Result<Intent, ToolError>,
    },
    /// What came of it.
    Done(CallOutcome),
}

#[derive(PartialEq)]
enum Phase {
    Waiting,
    Asked,
    Running,
    Done(CallOutcome),
}

const INTERRUPTED: &str = "Interrupted before it ended. Part of it may have taken effect.";
const NOT_RUN: &str = "Not run: the run was stopped first.";
const CRASHED: &str = "The tool crashed. Part of it may have taken effect.";
const UNKNOWN: &str = "Outcome unknown: posse ended while this was running. It may have taken effect in whole, in \
                       part or not at all, and was not run again. Look before you repeat it.";
const NOT_BEGUN: &str =
    "Not run, or without effect: posse ended before this had begun or answered.";

/// What the model is told of a call that a dead process left open.
pub(super) fn recovered(call: OpenCall, known: Option<CallOutcome>) -> ContentBlock {
    let unknown = || failure(if call.begun { UNKNOWN } else { NOT_BEGUN });
    let outcome = call.outcome.or(known).unwrap_or_else(unknown);
    result(call.id, &outcome)
}

pub(crate) fn failure(text: impl Into<String>) -> CallOutcome {
    CallOutcome {
        content: Arc::new([ToolContent::text(text)]),
        is_error: true,
    }
}

fn result(id: String, outcome: &CallOutcome) -> ContentBlock {
    ContentBlock::ToolResult {
        tool_use_id: id,
        content: outcome.content.to_vec(),
        is_error: outcome.is_error,
    }
}

impl Acting {
    /// The calls in `content`, the reply with number `seq`.
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
        let intents = intents.into_iter().chain(std::iter::repeat_with(|| {
            Err(ToolError::Tell(NOT_RUN.into()))
        }));
        let calls = uses
            .zip(intents)
            .zip(0..)
            .map(|(((id, tool, input), intent), ordinal)| Call {
                key: CallKey { seq, ordinal },
                id,
                tool,
                input,
                intent,
                phase: Phase::Waiting,
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

    /// Whether all calls whose turn it is wait for other agents, or for a person.
    pub(super) fn waits(&self) -> bool {
        let mut open = self.calls[self.group()]
            .iter()
            .filter(|call| !matches!(call.phase, Phase::Done(_)));
        let waits = |call: &Call| match &call.phase {
            Phase::Asked => true,
            Phase::Running => call.intent.as_ref().is_ok_and(|intent| intent.waits),
            Phase::Waiting | Phase::Done(_) => false,
        };
        self.stopping.is_none() && open.all(waits)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The tool of a call.
    pub(super) fn tool(&self, key: CallKey) -> Option<&str> {
        self.calls
            .iter()
            .find(|call| call.key == key)
            .map(|call| call.tool.as_str())
    }

    /// The model's id of a call.
    pub(super) fn call_id(&self, key: CallKey) -> Option<&str> {
        self.calls
            .iter()
            .find(|call| call.key == key)
            .map(|call| call.id.as_str())
    }

    /// The model's ids of all calls.
    pub(super) fn call_ids(&self) -> impl Iterator<Item = String> {
        self.calls.iter().map(|call| call.id.clone())
    }

    /// Whether a tool runs that waits for other agents.
    pub(super) fn awaits_others(&self) -> bool {
        let waits = |call: &Call| call.intent.as_ref().is_ok_and(|intent| intent.waits);
        self.calls
            .iter()
            .any(|call| call.phase == Phase::Running && waits(call))
    }

    /// The tool of a call that a person is being asked about.
    pub(super) fn asked_tool(&self, id: &str) -> Option<&str> {
        let asked = self
            .calls
            .iter()
            .find(|call| call.id == id && call.phase == Phase::Asked);
        asked.map(|call| call.tool.as_str())
    }

    /// What the store is told when the reply is.
    pub(super) fn asked(&self) -> impl Iterator<Item = CallChange> {
        self.calls.iter().map(|call| CallChange {
            key: call.key,
            change: CallChangeKind::Asked {
                id: call.id.clone(),
                tool: call.tool.clone(),
            },
        })
    }

    /// Results of calls none of which has run.
    pub(super) fn not_run(&self) -> Vec<ContentBlock> {
        self.calls
            .iter()
            .map(|call| result(call.id.clone(), &failure(NOT_RUN)))
            .collect()
    }

    /// The calls whose turn it is: the first open one and, if it may run beside others, the
    /// neighbours after it that may too.
    fn group(&self) -> std::ops::Range<usize> {
        let beside = |call: &&Call| {
            call.intent
                .as_ref()
                .map_or(true, |intent| intent.beside_others)
        };
        let Some(first) = self
            .calls
            .iter()
            .position(|call| !matches!(call.phase, Phase::Done(_)))
        else {
            return 0..0;
        };
        let more = self.calls[first..].iter().take_while(beside).count();
        first..first + more.max(1)
    }

    fn all_done(&self) -> bool {
        self.calls
            .iter()
            .all(|call| matches!(call.phase, Phase::Done(_)))
    }
}

impl Machine {
    /// Starts what may start now; when every call is answered, goes on to the model.
    pub(super) fn advance(&mut self, decision: &mut Decision) {
        loop {
            let State::Acting(acting) = &self.state else {
                return;
            };
            if acting.all_done() {
                return self.answer_model(decision);
            }
            let group = acting.group();
            for index in group.clone() {
                self.judge(decision, index);
            }
            let State::Acting(acting) = &self.state else {
                return;
            };
            let open =
                |index: usize| matches!(acting.calls[index].phase, Phase::Asked | Phase::Running);
            if group.into_iter().any(open) {
                if acting.waits() {
                    decision.commit.state = Some(AgentState::Waiting);
                }
                return;
            }
        }
    }

    fn judge(&mut self, decision: &mut Decision, index: usize) {
        let State::Acting(acting) = &mut self.state else {
            return;
        };
        let (rights, call) = (&self.rights, &mut acting.calls[index]);
        if call.phase != Phase::Waiting {
            return;
        }
        let intent = match &call.intent {
            Ok(intent) => intent,
            Err(ToolError::Tell(what)) => {
                let outcome = failure(what);
                return call.not_run(outcome);
            }
            Err(ToolError::Stop(what)) => {
                let what = what.clone();
                return self.tool_stops(decision, index, &what);
            }
        };
        match rights.standing.verdict(&call.tool, intent) {
            Verdict::Allow => call.run(decision),
            Verdict::Ask(why) if rights.asker == Asker::FrontEnd => {
                call.phase = Phase::Asked;
                let (tool, input) = (call.tool.clone(), call.input.clone());
                let question = Question {
                    call: call.id.clone(),
                    tool,
                    input,
                    why,
                    from: rights.name.clone(),
                };
                decision
                    .after
                    .push(Effect::Emit(EventKind::Asked(question)));
            }
            Verdict::Ask(why) => {
                self.deny(
                    decision,
                    index,
                    format!("Denied, since nobody is there to be asked: {why}"),
                );
            }
            Verdict::Deny(why) => self.deny(decision, index, format!("Denied: {why}")),
        }
    }

    fn deny(&mut self, decision: &mut Decision, index: usize, why: String) {
        let denial = self.refuse(index, why);
        decision
            .after
            .extend(denial.map(|denial| Effect::Emit(EventKind::Denied(denial))));
    }

    fn refuse(&mut self, index: usize, why: String) -> Option<Denial> {
        let State::Acting(acting) = &mut self.state else {
            return None;
        };
        let call = &mut acting.calls[index];
        let (tool, input) = (call.tool.clone(), call.input.clone());
        call.not_run(failure(why.clone()));
        let denial = Denial {
            tool,
            call: call.id.clone(),
            input,
            why,
        };
        self.run.denials.push(denial.clone());
        Some(denial)
    }

    pub(super) fn answer(
        &mut self,
        decision: &mut Decision,
        id: &str,
        answer: Answer,
        intent: Option<Result<Intent, ToolError>>,
    ) {
        let asked = |call: &Call| call.id == id && call.phase == Phase::Asked;
        let found = match &self.state {
            State::Acting(acting) => acting.calls.iter().position(asked),
            _ => None,
        };
        let (State::Acting(acting), Some(index)) = (&mut self.state, found) else {
            // Somebody took the trouble to answer: they are told that nobody waits for it any more.
            let what = format!(
                "the answer about call {id} came too late: nothing is asked about it any more"
            );
            return decision.after.push(Effect::Emit(EventKind::Unheard(what)));
        };
        match answer {
            Answer::Allow { input } => {
                let (rights, call) = (&self.rights, &mut acting.calls[index]);
                if let (Some(input), Some(intent)) = (input, intent) {
                    (call.input, call.intent) = (input, intent);
                }
                // A person may allow what a rule asks about, never what one denies.
                let verdict = call
                    .intent
                    .as_ref()
                    .map(|intent| rights.standing.verdict(&call.tool, intent));
                match verdict {
                    Ok(Verdict::Deny(why)) => self.deny(decision, index, format!("Denied: {why}")),
                    Ok(Verdict::Allow | Verdict::Ask(_)) => call.run(decision),
                    Err(_) => {
                        call.phase = Phase::Waiting;
                        self.judge(decision, index);
                    }
                }
            }
            Answer::Deny { message, interrupt } => {
                // Who denies it need not be told.
                self.refuse(index, message);
                if interrupt {
                    return self.stop_acting(decision, Outcome::Interrupted);
                }
            }
        }
        self.advance(decision);
    }

    /// Whoever could answer has left: what was asked is denied, and nothing is asked any more.
    pub(super) fn unattended(&mut self, decision: &mut Decision) {
        self.rights.asker = Asker::Nobody;
        let State::Acting(acting) = &self.state else {
            return;
        };
        let asked = |index: &usize| acting.calls[*index].phase == Phase::Asked;
        let open: Vec<usize> = (0..acting.calls.len()).filter(asked).collect();
        for index in open {
            self.deny(
                decision,
                index,
                "Denied: nobody is there any more to be asked.".into(),
            );
        }
        self.advance(decision);
    }

    pub(super) fn call_done(
        &mut self,
        decision: &mut Decision,
        key: CallKey,
        ended: Option<Result<Answered, ToolError>>,
    ) {
        let State::Acting(acting) = &mut self.state else {
            return;
        };
        let running = |call: &Call| call.key == key && call.phase == Phase::Running;
        let Some(index) = acting.calls.iter().position(running) else {
            return;
        };
        let outcome = match ended {
            Some(Ok(Answered { content, then })) => {
                match then {
                    Consequence::Nothing => {}
                    // What the model is told is known when they are done.
                    Consequence::Operate(ops) => {
                        let operation = |op| Operation {
                            call: Some(key),
                            op,
                        };
                        return decision
                            .commit
                            .operations
                            .extend(ops.into_iter().map(operation));
                    }
                    Consequence::Took(numbers) => {
                        self.queue.shown(&numbers);
                        // Two calls may have looked at the same end.
                        self.took.extend(numbers);
                        self.took.sort_unstable();
                        self.took.dedup();
                    }
                    Consequence::First {
                        tool,
                        input,
                        intent,
                    } => {
                        acting.calls[index].use_first(tool, input, intent);
                        return self.advance(decision);
                    }
                    Consequence::Began {
                        id,
                        description,
                        output,
                    } => {
                        let kind = RunKind::Shell;
                        let change = RunChangeKind::Began {
                            call: key,
                            kind,
                            description,
                            output,
                        };
                        decision.commit.runs.push(RunChange { id, change });
                        decision.after.push(Effect::StartRun(id));
                    }
                }
                CallOutcome {
                    content: content.into(),
                    is_error: false,
                }
            }
            Some(Err(ToolError::Tell(what))) => failure(what),
            Some(Err(ToolError::Stop(what))) => return self.tool_stops(decision, index, &what),
            None if acting.stopping.is_some() => failure(INTERRUPTED),
            None => failure(CRASHED),
        };
        if acting.stopping.is_none() && acting.calls[index].after_first(&outcome) {
            return self.advance(decision);
        }
        acting.calls[index].done(decision, outcome.clone());
        // While others are open a crash must not make this one's outcome unknown.
        if !acting.all_done() {
            decision.commit.calls.push(CallChange {
                key,
                change: CallChangeKind::Done(outcome),
            });
        }
        self.advance(decision);
    }

    fn tool_stops(&mut self, decision: &mut Decision, index: usize, what: &str) {
        let State::Acting(acting) = &mut self.state else {
            return;
        };
        let call = &mut acting.calls[index];
        call.done(decision, failure(what));
        let (key, message) = (call.key, format!("{}: {what}", call.tool));
        if !acting.all_done() {
            decision.commit.calls.push(CallChange {
                key,
                change: CallChangeKind::Done(failure(what)),
            });
        }
        self.stop_acting(
            decision,
            Outcome::Failed(Fault {
                class: FaultClass::Tool,
                status: None,
                message,
            }),
        );
    }

    /// Nothing more is started; when what runs has ended, the run ends with `outcome`.
    pub(super) fn stop_acting(&mut self, decision: &mut Decision, outcome: Outcome) {
        let State::Acting(acting) = &mut self.state else {
            return;
        };
        let told_to_end = acting.stopping.is_some();
        acting.stopping.get_or_insert(outcome);
        let mut running = false;
        for call in &mut acting.calls {
            if call.phase == Phase::Asked {
                decision.after.push(Effect::Emit(EventKind::Withdrawn {
                    call: call.id.clone(),
                }));
            }
            match call.phase {
                Phase::Waiting | Phase::Asked => call.phase = Phase::Done(failure(NOT_RUN)),
                Phase::Running => running = true,
                Phase::Done(_) => {}
            }
        }
        match running {
            true if told_to_end => {}
            true => decision.after.push(Effect::AbortCalls),
            false => self.advance(decision),
        }
    }

    /// Every call has its outcome: they go back in one message, in their order.
    fn answer_model(&mut self, decision: &mut Decision) {
        let State::Acting(acting) = std::mem::replace(&mut self.state, State::Idle) else {
            return;
        };
        let results = acting
            .calls
            .into_iter()
            .filter_map(|call| match call.phase {
                Phase::Done(outcome) => Some(result(call.id, &outcome)),
                _ => None,
            });
        let mut content: Vec<ContentBlock> = results.collect();
        let entry = self.next_seq;
        let took = std::mem::take(&mut self.took).into_iter();
        decision
            .commit
            .mail
            .extend(took.map(|number| TakenMail { number, entry }));
        if acting.stopping.is_none() {
            // The tool boundary: what has come meanwhile is shown with the results.
            if matches!(self.life, Life::Root { joins: true } | Life::Mate { .. }) {
                content.extend(self.queue.all_prompts());
            }
            content.extend(self.show_news(decision));
        }
        self.add(
            decision,
            EntryKind::Results,
            Message {
                role: Role::User,
                content,
            },
            None,
        );
        match acting.stopping {
            Some(outcome) => self.end(decision, outcome),
            None if self.leaving => self.end(decision, Outcome::Completed),
            None => self.call_model(decision),
        }
    }
}

impl Call {
    /// Lets the call run; what may change something outside is recorded first.
    fn run(&mut self, decision: &mut Decision) {
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
        self.phase = Phase::Running;
        let (call, tool, title) = (self.id.clone(), self.tool.clone(), intent.title.clone());
        decision
            .after
            .push(Effect::Emit(EventKind::CallStarted { call, tool, title }));
        let (tool, input, subject) = (
            self.tool.clone(),
            self.input.clone(),
            intent.subject.clone(),
        );
        let first = match &self.first {
            First::Done(outcome) => Some(outcome.clone()),
            First::Unasked | First::Used { .. } => None,
        };
        decision.after.push(Effect::Run {
            key: self.key,
            call: self.id.clone(),
            tool,
            input,
            subject,
            first,
        });
    }

    /// Another tool is used first. It is judged as if the model had called it.
    fn use_first(&mut self, tool: String, input: RawJson, intent: Result<Intent, ToolError>) {
        if !matches!(self.first, First::Unasked) {
            self.phase = Phase::Done(failure("a tool can want only one other to be used first"));
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
        self.phase = Phase::Waiting;
    }

    /// If the tool that was used first has come to this, the call's own is next.
    fn after_first(&mut self, outcome: &CallOutcome) -> bool {
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
        self.phase = Phase::Waiting;
        true
    }

    /// It came to nothing before it ran. If another tool was to be used first, the call's own says what follows.
    fn not_run(&mut self, outcome: CallOutcome) {
        if !self.after_first(&outcome) {
            self.phase = Phase::Done(outcome);
        }
    }

    fn done(&mut self, decision: &mut Decision, outcome: CallOutcome) {
        let (call, is_error) = (self.id.clone(), outcome.is_error);
        decision
            .after
            .push(Effect::Emit(EventKind::CallDone { call, is_error }));
        self.phase = Phase::Done(outcome);
    }
}
