//! Decisions on inputs, without anything outside.

mod histories;
mod hooked;
mod left;
mod plan;
mod repetition;
mod teammate;

use std::collections::HashMap;
use std::sync::Arc;

use posse_permission::{Policy, Rights};
use posse_port::model::{ApiError, ApiErrorKind, Failure, ModelError, RateLimits, Reply};
use posse_port::store::{
    AgentState, CallChangeKind, CallKey, CallOutcome, Charge, OpenCall, QuestionChange,
    QuestionChangeKind, question_id,
};
use posse_port::tool::{Intent, Subject, ToolError, Workspace};
use posse_protocol::{
    Answer, Answerer, ContentBlock, Cost, EntryKind, EventKind, FaultClass, GivenAnswer, Limit,
    Outcome, PermissionMode, Purpose, Question, QuestionKind, RawJson, ReplyFacts, StopReason,
    ToolContent, Usage,
};
use uuid::Uuid;

use crate::agent::step::open_calls::LeftQuestion;
use crate::agent::step::{
    AgentHooks, Answered, Authority, Decision, Delegated, Effect, Input, LeftCall, Life, Machine,
};
use crate::definition::output_schema::OutputSchema;
use crate::govern::Budget;
use crate::live::setup::{Approver, Limits, Repeats};

/// The agent that decides.
const ME: Uuid = Uuid::from_u128(1);

fn machine(approver: Approver, limits: Limits) -> Machine {
    alive(
        Life::Root {
            joins: false,
            then: PermissionMode::Default,
        },
        PermissionMode::Default,
        approver,
        limits,
    )
}

fn alive(life: Life, mode: PermissionMode, approver: Approver, limits: Limits) -> Machine {
    let workspace = Workspace {
        cwd: "/w".into(),
        roots: vec!["/w".into()],
        spill: "/spill".into(),
        home: None,
        mirror: None,
        notes: None,
    };
    let policy = Arc::new(Policy::default());
    let rights = Rights::root(mode, policy, Arc::new(workspace));
    let rights = Authority {
        hooks: AgentHooks::default(),
        agent: ME.into(),
        rights,
        approver,
        name: None,
        limits,
    };
    Machine::new(rights, life, 0, false)
}

const NOTHING: Budget = Budget {
    tokens: None,
    cost: None,
    turns: None,
    time: None,
};
const FREE: Limits = Limits {
    turns: None,
    budget: NOTHING,
    max_tokens: 100,
    compact_at: None,
    repeats: Repeats { notice: 3, stop: 5 },
};

fn started(approver: Approver, limits: Limits) -> Machine {
    let mut machine = machine(approver, limits);
    let decision = machine.step(Input::Prompt(vec![ContentBlock::text("go")]));
    assert_eq!(decision.after, [Effect::Begin, Effect::CallModel]);
    assert_eq!(decision.commit.state, Some(AgentState::Running));
    machine
}

/// `r` reads, `f` fetches and `w` runs a command (which are asked about), `x` has a bad input.
fn reply(calls: &str, stop: StopReason) -> Input {
    let block = |(index, _): (usize, char)| ContentBlock::ToolUse {
        id: format!("t{index}"),
        name: "Tool".into(),
        input: RawJson::empty_object(),
    };
    let intent = |what: char| {
        let (read_only, subject) = match what {
            'r' => (true, Subject::Reads(vec!["/w/a".into()])),
            'f' => (
                true,
                Subject::Fetches {
                    host: "a.example".into(),
                },
            ),
            'w' => (false, Subject::runs("make")),
            _ => return Err(ToolError::Tell("bad input".into())),
        };
        Ok(Intent {
            read_only,
            beside_others: what == 'r',
            subject,
            waits: false,
            title: what.into(),
        })
    };
    let mut content = vec![ContentBlock::text("said")];
    content.extend(calls.chars().enumerate().map(block));
    let usage = Usage {
        output: 1,
        ..Usage::default()
    };
    Input::Reply {
        reply: Box::new(Reply {
            id: "m".into(),
            model: "model".into(),
            content,
            stop,
            usage,
            wasted: Vec::new(),
            cache_miss: None,
            limits: RateLimits::default(),
            attempts: 1,
        }),
        charges: vec![Charge {
            model: "model".into(),
            usage,
            cost: Some(Cost::from_pico_usd(5)),
            purpose: Purpose::Work,
            missed: 0,
        }],
        intents: calls.chars().map(intent).collect(),
        capped: false,
        missed: None,
    }
}

fn said(text: &str) -> Answered {
    Answered {
        content: vec![ToolContent::text(text)],
        ..Answered::default()
    }
}

fn done(seq: u64, ordinal: u32, text: &str) -> Input {
    Input::CallDone {
        key: CallKey { seq, ordinal },
        result: Some(Ok(said(text))),
    }
}

/// The decision in a line: what is run, asked, aborted; what results go back; how it ends.
fn told(decision: &Decision) -> String {
    let mut parts = Vec::new();
    for change in &decision.commit.calls {
        match &change.change {
            CallChangeKind::Asked { .. } => {}
            CallChangeKind::Begun { .. } => parts.push(format!("begun {}", change.key.ordinal)),
            CallChangeKind::Done(_) => parts.push(format!("stored {}", change.key.ordinal)),
        }
    }
    for entry in &decision.commit.entries {
        for block in &entry.message.content {
            if let ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            } = block
            {
                let [ToolContent::Text { text }] = &content[..] else {
                    panic!("one text")
                };
                let words: Vec<&str> = text.split([' ', ':', '.']).take(2).collect();
                parts.push(format!(
                    "{tool_use_id}{}{}",
                    if *is_error { "!" } else { "=" },
                    words.join(" ")
                ));
            }
        }
    }
    for QuestionChange { change, .. } in &decision.commit.questions {
        match change {
            QuestionChangeKind::Asked(new) => parts.push(format!("ask {}", new.question.call)),
            QuestionChangeKind::Done => {}
            QuestionChangeKind::Withdrawn => parts.push("withdraw".into()),
        }
    }
    for effect in &decision.after {
        match effect {
            Effect::Run(run) => parts.push(format!("run {}", run.key.ordinal)),
            Effect::AskAgain(left) => parts.push(format!("ask again {}", left.len())),
            Effect::Emit(_) | Effect::SetMode(_) | Effect::Begin => {}
            Effect::CallModel => parts.push("call".into()),
            Effect::Compact(compaction_request) => parts.push(format!(
                "compact{}",
                if compaction_request.overfull {
                    " overfull"
                } else {
                    ""
                }
            )),
            Effect::Look { claim } => {
                parts.push(format!("look{}", if *claim { " and claim" } else { "" }))
            }
            Effect::Raise => parts.push("raise".into()),
            Effect::AbortModel => parts.push("abort model".into()),
            Effect::StartRun(id) => parts.push(format!("start {id}")),
            Effect::AbortCalls => parts.push("abort calls".into()),
            Effect::Hook(request) => {
                parts.push(
                    format!("hook {} {}", request.event, request.about)
                        .trim()
                        .to_owned(),
                );
            }
            Effect::AbortHooks => parts.push("abort hooks".into()),
            Effect::Delegate(key) => parts.push(format!("delegate {}", key.seq)),
            Effect::AbortDelegate => parts.push("abort delegate".into()),
            Effect::End(ended) => parts.push(format!("end {:?}", ended.outcome)),
            Effect::Refuse(outcome) => parts.push(format!("refuse {outcome:?}")),
        }
    }
    parts.join(", ")
}

#[test]
fn an_agent_follows_a_skill_and_its_answer_is_the_runs() {
    let mut machine = machine(Approver::Nobody, FREE);
    let words = || Input::Delegate(vec![ContentBlock::text("/look")]);
    let done = |outcome| {
        Input::Delegated(Box::new(Delegated {
            outcome,
            text: "found".into(),
            told: "It found.".into(),
        }))
    };
    let begun = machine.step(words());
    assert_eq!(
        (told(&begun).as_str(), begun.commit.state),
        ("delegate 0", Some(AgentState::Waiting))
    );
    assert!(machine.waits() && !machine.is_idle());
    // Words that come meanwhile wait for a run of their own.
    assert_eq!(
        told(&machine.step(Input::Prompt(vec![ContentBlock::text("next")]))),
        ""
    );
    let ended = machine.step(done(Outcome::Completed));
    assert_eq!(
        (told(&ended).as_str(), ended.commit.entries.len()),
        ("end Completed", 1)
    );
    let Some(Effect::End(end)) = ended.after.last() else {
        panic!("{ended:?}")
    };
    assert_eq!((end.run.text.as_str(), end.run.turns), ("found", 0));
    let entry = &ended.commit.entries[0];
    assert!(
        !crate::history::restore::unanswered(entry.kind, entry.reply.as_ref()),
        "nothing is left to do"
    );
    let next = machine.next().unwrap();
    assert_eq!(told(&machine.step(next)), "call");
    let refused = told(&machine.step(words()));
    assert!(refused.starts_with("refuse Failed"), "{refused}");

    let mut machine = self::machine(Approver::Nobody, FREE);
    machine.step(words());
    assert_eq!(told(&machine.step(Input::Interrupt)), "abort delegate");
    assert_eq!(
        told(&machine.step(done(Outcome::Interrupted))),
        "end Interrupted"
    );
    assert_eq!(
        told(&machine.step(Input::NotBegun(Outcome::Interrupted))),
        "refuse Interrupted"
    );
}

/// A person's answer to the first question about a call of the first reply.
fn answered(ordinal: u32, answer: Answer) -> Input {
    Input::Answer {
        question: question_id(ME.into(), &format!("1.{ordinal}.0")),
        given: GivenAnswer {
            answer,
            by: Answerer::Person,
        },
        intent: None,
    }
}

#[test]
fn neighbours_that_may_run_together_and_the_rest_one_after_another() {
    let mut machine = started(Approver::FrontEnd, FREE);
    let step = |machine: &mut Machine, input| told(&machine.step(input));
    assert_eq!(
        step(&mut machine, reply("rrfxrr", StopReason::ToolUse)),
        "run 0, run 1"
    );
    assert_eq!(step(&mut machine, done(1, 1, "one")), "stored 1");
    assert_eq!(step(&mut machine, done(1, 0, "zero")), "stored 0, ask t2");
    let allow = answered(2, Answer::allow());
    assert_eq!(step(&mut machine, allow), "run 2");
    assert_eq!(
        step(&mut machine, done(1, 2, "two")),
        "stored 2, run 4, run 5"
    );
    assert_eq!(step(&mut machine, done(1, 5, "five")), "stored 5");
    assert_eq!(
        step(&mut machine, done(1, 4, "four")),
        "t0=zero, t1=one, t2=two, t3!bad input, t4=four, t5=five, call"
    );
    assert_eq!(
        step(&mut machine, reply("", StopReason::EndTurn)),
        "end Completed"
    );
    assert!(machine.is_idle() && !machine.unfinished());
}

#[test]
fn a_reply_is_committed_before_its_tools_run_and_results_before_the_next_call() {
    let mut machine = started(Approver::Nobody, FREE);
    let decision = machine.step(reply("r", StopReason::ToolUse));
    assert_eq!(decision.commit.entries.len(), 1);
    assert!(matches!(
        decision.commit.calls[0].change,
        CallChangeKind::Asked { .. }
    ));
    assert!(
        decision
            .after
            .iter()
            .any(|effect| matches!(effect, Effect::Run(_)))
    );
    let decision = machine.step(done(1, 0, "ok"));
    assert_eq!(
        (decision.commit.entries.len(), told(&decision).as_str()),
        (1, "t0=ok, call")
    );
}

#[test]
fn what_nobody_can_be_asked_about_is_denied_and_the_model_told() {
    let mut machine = started(Approver::Nobody, FREE);
    let decision = machine.step(reply("f", StopReason::ToolUse));
    assert_eq!(told(&decision), "t0!Denied , call");
    let mut machine = started(Approver::FrontEnd, FREE);
    machine.step(reply("fr", StopReason::ToolUse));
    let answer = Answer::Deny {
        message: "No way".into(),
        interrupt: false,
    };
    let deny = answered(0, answer);
    assert_eq!(told(&machine.step(deny)), "run 1");
    assert_eq!(machine.step(done(1, 0, "late")), Decision::default());
}

// proves TU-04
#[test]
fn a_tool_fails_in_two_ways_and_a_crash_is_the_first() {
    let fails = |result| {
        let mut machine = started(Approver::Nobody, FREE);
        machine.step(reply("r", StopReason::ToolUse));
        told(&machine.step(Input::CallDone {
            key: CallKey { seq: 1, ordinal: 0 },
            result,
        }))
    };
    assert_eq!(
        fails(Some(Err(ToolError::Tell("no such file".into())))),
        "t0!no such, call"
    );
    assert_eq!(fails(None), "t0!The tool, call");
    let stopped = fails(Some(Err(ToolError::Stop("disk gone".into()))));
    assert!(
        stopped.starts_with("t0!disk gone, end Failed(Fault { class: Tool"),
        "{stopped}"
    );
}

#[test]
fn an_interrupt_leaves_every_call_with_a_result() {
    let step = |machine: &mut Machine, input| told(&machine.step(input));
    let mut machine = started(Approver::FrontEnd, FREE);
    step(&mut machine, reply("rrf", StopReason::ToolUse));
    step(&mut machine, done(1, 0, "zero"));
    assert_eq!(step(&mut machine, Input::Interrupt), "abort calls");
    let given_up = Input::CallDone {
        key: CallKey { seq: 1, ordinal: 1 },
        result: None,
    };
    assert_eq!(
        step(&mut machine, given_up),
        "t0=zero, t1!Interrupted before, t2!Not run, end Interrupted"
    );
    assert!(machine.unfinished());

    let mut machine = started(Approver::FrontEnd, FREE);
    step(&mut machine, reply("f", StopReason::ToolUse));
    assert_eq!(
        step(&mut machine, Input::Interrupt),
        "t0!Not run, withdraw, end Interrupted"
    );

    let mut machine = started(Approver::FrontEnd, FREE);
    assert_eq!(step(&mut machine, Input::Interrupt), "abort model");
    assert_eq!(
        step(&mut machine, reply("r", StopReason::ToolUse)),
        "t0!Not run, end Interrupted",
        "it was quicker"
    );

    let mut machine = started(Approver::FrontEnd, FREE);
    step(&mut machine, Input::Interrupt);
    let Input::Reply {
        reply: cut,
        charges,
        ..
    } = reply("r", StopReason::ToolUse)
    else {
        unreachable!()
    };
    let failure = Failure {
        error: ModelError::Cancelled,
        finished: cut.content,
        spent: vec![cut.usage],
        attempts: 1,
    };
    let decision = machine.step(Input::Failed {
        failure: Box::new(failure),
        charges,
    });
    assert_eq!(told(&decision), "t0!Not run, end Interrupted");
    assert_eq!(decision.commit.entries.len(), 2);
}

#[test]
fn limits_refuse_the_next_call() {
    let mut machine = started(
        Approver::Nobody,
        Limits {
            turns: Some(1),
            ..FREE
        },
    );
    machine.step(reply("r", StopReason::ToolUse));
    let decision = machine.step(done(1, 0, "ok"));
    assert_eq!(
        told(&decision),
        format!("t0=ok, end {:?}", Outcome::Partial(Limit::Turns))
    );
    assert!(machine.unfinished());
    assert_eq!(
        told(&machine.step(Input::Continue)),
        "call",
        "a new run has new limits"
    );

    let mut machine = started(Approver::Nobody, FREE);
    let refused = Input::Refused {
        why: "nothing left".into(),
        charges: Vec::new(),
    };
    assert_eq!(
        told(&machine.step(refused)),
        format!("end {:?}", Outcome::Partial(Limit::Budget))
    );
    assert!(machine.unfinished());
    for (stop, outcome) in [
        (StopReason::MaxTokens, Outcome::Partial(Limit::Output)),
        (StopReason::Refusal, Outcome::Refused),
        (StopReason::Other("new".into()), Outcome::Completed),
    ] {
        let mut machine = started(Approver::Nobody, FREE);
        assert_eq!(
            told(&machine.step(reply("", stop))),
            format!("end {outcome:?}")
        );
    }
    let mut machine = started(Approver::Nobody, FREE);
    assert_eq!(
        told(&machine.step(reply("", StopReason::PauseTurn))),
        "call"
    );
}

fn api(kind: ApiErrorKind) -> Input {
    let error = ApiError {
        kind,
        status: 400,
        message: "x".into(),
        request_id: None,
        retry_after: None,
        should_retry: None,
    };
    let (error, finished, spent) = (ModelError::Api(Box::new(error)), Vec::new(), Vec::new());
    Input::Failed {
        failure: Box::new(Failure {
            error,
            finished,
            spent,
            attempts: 1,
        }),
        charges: Vec::new(),
    }
}

fn compacted() -> Input {
    let facts = ReplyFacts {
        id: "s".into(),
        model: "model".into(),
        stop: Some(StopReason::EndTurn),
        usage: Usage::default(),
        missed: None,
    };
    Input::Compacted {
        content: vec![ContentBlock::text("sum")],
        facts: Some(facts),
        charges: Vec::new(),
    }
}

#[test]
fn a_context_that_is_full_is_compacted_once_and_what_was_asked_stays_word_for_word() {
    let mut machine = started(Approver::Nobody, FREE);
    assert_eq!(
        told(&machine.step(reply("", StopReason::ContextFull))),
        "compact overfull"
    );
    let decision = machine.step(compacted());
    assert_eq!(told(&decision), "call");
    let [entry] = &decision.commit.entries[..] else {
        panic!("one entry")
    };
    let texts: Vec<&ContentBlock> = entry.message.content.iter().collect();
    assert_eq!((entry.kind, texts.len()), (EntryKind::Compaction, 3));
    assert_eq!(
        (texts[0], texts[2]),
        (&ContentBlock::text("sum"), &ContentBlock::text("go"))
    );
    assert_eq!(entry.reply.as_ref().unwrap().stop, None, "the run goes on");
    assert!(machine.unfinished());
    let end = format!("end {:?}", Outcome::Partial(Limit::Context));
    assert_eq!(
        told(&machine.step(api(ApiErrorKind::ContextFull))),
        end,
        "a summary that is too long"
    );

    let mut machine = started(Approver::Nobody, FREE);
    assert_eq!(
        told(&machine.step(api(ApiErrorKind::ContextFull))),
        "compact overfull"
    );
    machine.step(compacted());
    machine.step(reply("r", StopReason::ToolUse));
    machine.step(done(2, 0, "ok"));
    assert_eq!(
        told(&machine.step(api(ApiErrorKind::ContextFull))),
        "compact overfull",
        "it was answered since"
    );
    assert_eq!(
        told(&machine.step(api(ApiErrorKind::ContextFull))),
        end,
        "nor can it be summarised"
    );
}

#[test]
fn what_nobody_has_answered_outlives_a_compaction() {
    // Paused, then compacted: the prompt waits on.
    let mut machine = started(Approver::Nobody, FREE);
    assert!(told(&machine.step(api(ApiErrorKind::Overloaded))).starts_with("end Paused"));
    assert_eq!(
        told(&machine.step(Input::Compact { keep: None })),
        "compact"
    );
    let decision = machine.step(compacted());
    assert_eq!(told(&decision), "end Completed");
    let entry = &decision.commit.entries[0];
    assert_eq!(
        entry.message.content.last(),
        Some(&ContentBlock::text("go"))
    );
    assert_eq!(entry.reply.as_ref().unwrap().stop, None);
    assert!(machine.unfinished());
    assert_eq!(told(&machine.step(Input::Continue)), "call");

    // Words that joined at a tool boundary are no tool's answer.
    let mut machine = self::machine(Approver::Nobody, FREE);
    machine.life = Life::Root {
        joins: true,
        then: PermissionMode::Default,
    };
    machine.step(Input::Prompt(vec![ContentBlock::text("go")]));
    machine.step(reply("r", StopReason::ToolUse));
    machine.step(Input::Prompt(vec![ContentBlock::text("not that")]));
    machine.step(done(1, 0, "large"));
    assert_eq!(
        told(&machine.step(api(ApiErrorKind::ContextFull))),
        "compact overfull"
    );
    let decision = machine.step(compacted());
    let said: Vec<&ContentBlock> = decision.commit.entries[0]
        .message
        .content
        .iter()
        .skip(2)
        .collect();
    assert_eq!(
        said,
        [&ContentBlock::text("go"), &ContentBlock::text("not that")]
    );

    // An interrupt is not swallowed by a context that is full.
    let mut machine = started(Approver::Nobody, FREE);
    machine.step(Input::Interrupt);
    assert_eq!(
        told(&machine.step(api(ApiErrorKind::ContextFull))),
        "end Interrupted"
    );
    // A reply that fills the context once more ends it, and a later run may try again.
    let mut machine = started(Approver::Nobody, FREE);
    assert_eq!(
        told(&machine.step(reply("", StopReason::ContextFull))),
        "compact overfull"
    );
    machine.step(compacted());
    let end = format!("end {:?}", Outcome::Partial(Limit::Context));
    assert_eq!(told(&machine.step(reply("", StopReason::ContextFull))), end);
    machine.step(Input::Prompt(vec![ContentBlock::text("again")]));
    assert_eq!(
        told(&machine.step(reply("", StopReason::ContextFull))),
        "compact overfull"
    );
    // Without a summary the run goes on while there is room.
    let mut machine = started(Approver::Nobody, FREE);
    machine.step(reply("r", StopReason::ToolUse));
    machine.step(Input::Compact { keep: None });
    assert_eq!(told(&machine.step(done(1, 0, "ok"))), "t0=ok, compact");
    let silent = Input::NotCompacted {
        why: "it is silent".into(),
        charges: Vec::new(),
    };
    assert_eq!(told(&machine.step(silent)), "call");
}

#[test]
fn a_person_compacts_at_once_or_before_the_next_call() {
    let request = || Input::Compact {
        keep: Some("it".into()),
    };
    let mut machine = self::machine(Approver::Nobody, FREE);
    assert_eq!(
        told(&machine.step(request())),
        "end Completed",
        "there is nothing to compact"
    );
    let mut machine = started(Approver::Nobody, FREE);
    machine.step(reply("", StopReason::EndTurn));
    assert_eq!(told(&machine.step(request())), "compact");
    let decision = machine.step(compacted());
    assert_eq!(told(&decision), "end Completed");
    assert_eq!(
        decision.commit.entries[0].reply.as_ref().unwrap().stop,
        Some(StopReason::EndTurn)
    );
    assert!(!machine.unfinished());
    assert_eq!(
        decision.commit.entries[0].message.content.len(),
        1,
        "nothing is being asked"
    );

    let mut machine = started(Approver::Nobody, FREE);
    machine.step(reply("r", StopReason::ToolUse));
    assert_eq!(told(&machine.step(request())), "");
    assert_eq!(told(&machine.step(done(1, 0, "ok"))), "t0=ok, compact");
    assert_eq!(told(&machine.step(Input::Interrupt)), "abort model");
    let (error, finished, spent) = (ModelError::Cancelled, Vec::new(), Vec::new());
    let failure = Box::new(Failure {
        error,
        finished,
        spent,
        attempts: 0,
    });
    assert_eq!(
        told(&machine.step(Input::Failed {
            failure,
            charges: Vec::new()
        })),
        "end Interrupted"
    );
    assert!(machine.unfinished());
    assert_eq!(
        told(&machine.step(Input::Continue)),
        "call",
        "what was wanted once is not done twice"
    );
}

#[test]
fn a_fault_that_may_pass_pauses_and_another_fails() {
    let failed = |kind| {
        let mut machine = started(Approver::Nobody, FREE);
        let error = ApiError {
            kind,
            status: 500,
            message: "x".into(),
            request_id: None,
            retry_after: None,
            should_retry: None,
        };
        let error = ModelError::Api(Box::new(error));
        let failure = Failure {
            error,
            finished: vec![ContentBlock::text("half")],
            spent: Vec::new(),
            attempts: 9,
        };
        let decision = machine.step(Input::Failed {
            failure: Box::new(failure),
            charges: Vec::new(),
        });
        assert_eq!(
            decision.commit.entries,
            [],
            "nothing of a failed reply is kept"
        );
        assert!(machine.unfinished());
        (decision.commit.state, told(&decision))
    };
    let (state, told) = failed(ApiErrorKind::Overloaded);
    assert!(
        state == Some(AgentState::Paused) && told.starts_with("end Paused"),
        "{told}"
    );
    let (state, told) = failed(ApiErrorKind::Authentication);
    assert!(
        state == Some(AgentState::Idle) && told.starts_with("end Failed"),
        "{told}"
    );
}

#[test]
fn what_a_dead_process_left_open_is_settled_and_never_run() {
    let mut machine = machine(Approver::Nobody, FREE);
    let open = |ordinal, begun, outcome| OpenCall {
        key: CallKey { seq: 1, ordinal },
        id: format!("t{ordinal}"),
        tool: "Bash".into(),
        begun,
        outcome,
        operated: None,
    };
    let known = CallOutcome {
        content: Arc::new([ToolContent::text("ok then")]),
        is_error: false,
    };
    let child = CallOutcome {
        content: Arc::new([ToolContent::text("it ended")]),
        is_error: false,
    };
    let open_calls = vec![
        open(0, true, Some(known)),
        open(1, true, None),
        open(2, false, None),
        open(3, true, None),
    ];
    let mut known = HashMap::from([(CallKey { seq: 1, ordinal: 3 }, child)]);
    let left = open_calls.into_iter().map(|call| LeftCall {
        known: known.remove(&call.key),
        call,
        asked: None,
    });
    let decision = machine.recover(left.collect(), AgentState::Running);
    assert_eq!(
        told(&decision),
        "t0=ok then, t1!Outcome unknown, t2!Not run,, t3=it ended"
    );
    assert!(decision.after.is_empty() && machine.unfinished());
    assert_eq!(told(&machine.step(Input::Continue)), "call");
}

#[test]
fn interrupts_that_come_again_change_nothing() {
    let mut machine = started(Approver::FrontEnd, FREE);
    machine.step(reply("rr", StopReason::ToolUse));
    assert_eq!(told(&machine.step(Input::Interrupt)), "abort calls");
    assert_eq!(
        machine.step(Input::Interrupt),
        Decision::default(),
        "the tools' grace is not prolonged"
    );
}

#[test]
fn when_everybody_has_left_nothing_waits_for_an_answer() {
    let mut machine = started(Approver::FrontEnd, FREE);
    assert_eq!(
        told(&machine.step(reply("f", StopReason::ToolUse))),
        "ask t0"
    );
    // The actor denies it for nobody, unless a person was faster.
    assert_eq!(machine.step(Input::Unattended), Decision::default());
    let nobody = Input::Answer {
        question: question_id(ME.into(), "1.0.0"),
        given: GivenAnswer {
            answer: Answer::Deny {
                message: "Denied: nobody.".into(),
                interrupt: false,
            },
            by: Answerer::Nobody,
        },
        intent: None,
    };
    let denied = machine.step(nobody);
    assert_eq!(told(&denied), "t0!Denied , call");
    let reported = |effect: &Effect| matches!(effect, Effect::Emit(EventKind::Denied(_)));
    assert!(denied.after.iter().any(reported), "{denied:?}");
    assert_eq!(
        told(&machine.step(reply("f", StopReason::ToolUse))),
        "t0!Denied , call"
    );
}

#[test]
fn thoughts_that_led_to_nothing_are_not_an_entry() {
    let mut machine = started(Approver::Nobody, FREE);
    machine.step(Input::Interrupt);
    let finished = vec![ContentBlock::Thinking {
        thinking: "hm".into(),
        signature: "s".into(),
    }];
    let failure = Failure {
        error: ModelError::Cancelled,
        finished,
        spent: Vec::new(),
        attempts: 1,
    };
    let decision = machine.step(Input::Failed {
        failure: Box::new(failure),
        charges: Vec::new(),
    });
    assert_eq!(
        (decision.commit.entries.len(), told(&decision).as_str()),
        (0, "end Interrupted")
    );
}

#[test]
fn a_turn_that_the_provider_paused_is_not_finished() {
    let mut machine = started(
        Approver::Nobody,
        Limits {
            turns: Some(1),
            ..FREE
        },
    );
    assert!(told(&machine.step(reply("", StopReason::PauseTurn))).ends_with("end Partial(Turns)"));
    assert!(machine.unfinished());
}

#[test]
fn prompts_wait_their_turn_and_the_queue_has_an_end() {
    let mut machine = started(Approver::Nobody, FREE);
    let prompt = |text: &str| Input::Prompt(vec![ContentBlock::text(text)]);
    for _ in 0..crate::agent::step::PROMPTS {
        assert_eq!(machine.step(prompt("later")), Decision::default());
    }
    assert!(
        told(&machine.step(prompt("too many"))).starts_with("refuse Failed(Fault { class: Busy")
    );
    assert_eq!(
        told(&machine.step(reply("", StopReason::EndTurn))),
        "end Completed"
    );
    let next = machine.next().unwrap();
    assert_eq!(told(&machine.step(next)), "call");
    assert!(machine.next().is_none());
}

#[test]
fn calls_that_end_together_are_one_step() {
    let mut machine = started(Approver::Nobody, FREE);
    machine.step(reply("rrr", StopReason::ToolUse));
    let mut decision = machine.step(done(1, 1, "b"));
    assert_eq!(told(&decision), "stored 1");
    decision.add(machine.step(done(1, 0, "a")));
    assert_eq!(told(&decision), "stored 1, stored 0");
    // The results say it all.
    decision.add(machine.step(done(1, 2, "c")));
    assert_eq!(told(&decision), "t0=a, t1=b, t2=c, call");
    assert_eq!(decision.commit.state, Some(AgentState::Running));
}

/// A sub-agent whose answer must be an integer, and what it says.
fn bound() -> Machine {
    let Machine { rights, .. } = machine(Approver::Nobody, FREE);
    let mut machine = Machine::new(rights, Life::Sub, 0, false);
    machine.bind(Some(
        OutputSchema::new(&serde_json::json!({"type": "integer"})).unwrap(),
    ));
    machine.step(Input::Prompt(vec![ContentBlock::text("go")]));
    machine
}

fn saying(text: &str) -> Input {
    let Input::Reply {
        mut reply,
        charges,
        intents,
        capped,
        missed,
    } = reply("", StopReason::EndTurn)
    else {
        panic!("a reply")
    };
    reply.content = vec![ContentBlock::text(text)];
    Input::Reply {
        reply,
        charges,
        intents,
        capped,
        missed,
    }
}

#[test]
fn an_answer_that_mail_has_overtaken_is_no_answer() {
    let mut machine = bound();
    assert!(
        machine.step(saying("seven")).commit.closing.is_none(),
        "it is asked for once more"
    );
    let decision = machine.step(saying("7"));
    assert_eq!(decision.commit.closing.unwrap().outcome, Outcome::Completed);
    assert_eq!(machine.run().value.as_ref().unwrap().get(), "7");
    // Mail waits: the run goes on, and may ask for its new answer once more.
    machine.step(Input::Settled { mail_waits: true });
    assert_eq!(
        (&machine.run().value, machine.run().repaired),
        (&None, false)
    );
    machine.step(Input::Continue);
    machine.step(Input::Mail(vec![posse_protocol::Mail {
        id: uuid::Uuid::nil().into(),
        number: 1,
        to: uuid::Uuid::nil().into(),
        from: posse_protocol::Sender::User,
        kind: posse_protocol::MailKind::Text,
        summary: String::new(),
        body: "and the next?".into(),
        sent_ms: 0,
        shown_in: None,
    }]));
    let decision = machine.step(saying("eight"));
    assert!(
        decision.commit.closing.is_none() && decision.after.contains(&Effect::CallModel),
        "{decision:?}"
    );
    let decision = machine.step(saying("nine"));
    let outcome = decision.commit.closing.unwrap().outcome;
    assert!(matches!(outcome, Outcome::Failed(fault) if fault.message.contains("output schema")));
    let Some(Effect::End(ended)) = decision.after.last() else {
        panic!("{:?}", decision.after)
    };
    assert_eq!((ended.run.text.as_str(), &ended.run.value), ("nine", &None));
}
