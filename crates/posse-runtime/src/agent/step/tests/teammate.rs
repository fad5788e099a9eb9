//! A teammate's life: it looks for work, rests, wakes, is interrupted, and leaves.

use posse_protocol::{Mail, MailId, MailKind, Name, Response, Sender, Task, TaskId, TaskStatus};
use uuid::Uuid;

use super::*;
use crate::agent::step::{Consequence, Resting, ToolRun};

fn teammate() -> Machine {
    alive(
        Life::Teammate { then: None },
        PermissionMode::Default,
        Approver::Nobody,
        FREE,
    )
}

fn mail(number: u64, from: &str, kind: MailKind, body: &str) -> Mail {
    let id = Uuid::from_u128(7).into();
    let from = match from {
        "user" => Sender::User,
        name => Sender::Agent {
            id,
            name: name.into(),
        },
    };
    Mail {
        id: MailId::from(Uuid::from_u128(number.into())),
        number,
        to: Uuid::from_u128(9).into(),
        from,
        kind,
        summary: "about it".into(),
        body: body.into(),
        sent_ms: 0,
        shown_in: None,
    }
}

fn letter(number: u64) -> Input {
    Input::Mail(vec![mail(number, Name::LEAD, MailKind::Text, "do it")])
}

fn task(id: u64) -> Task {
    Task {
        id: TaskId(id),
        subject: format!("subject {id}"),
        description: String::new(),
        active_form: None,
        status: TaskStatus::InProgress,
        owner: None,
        lost_by: None,
        blocked_by: Vec::new(),
        waits_for: Vec::new(),
        blocks: Vec::new(),
        created_ms: 0,
        updated_ms: 0,
        role: None,
        check: None,
        metadata: serde_json::Map::new(),
        version: 1,
    }
}

fn found(open: &[u64], claimed: Option<u64>) -> Input {
    let open = open.iter().map(|id| task(*id)).collect();
    Input::Found {
        open,
        claimed: claimed.map(|id| Box::new(task(id))),
    }
}

fn rests(decision: &Decision) -> Option<(&Outcome, bool)> {
    decision.commit.resting.as_ref().map(
        |Resting {
             outcome,
             unless_mail,
             ..
         }| (outcome, *unless_mail),
    )
}

fn texts(decision: &Decision) -> String {
    let blocks = decision
        .commit
        .entries
        .iter()
        .flat_map(|entry| &entry.message.content);
    let text = blocks.filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        _ => None,
    });
    text.collect::<Vec<_>>().join("\n")
}

// proves TE-03 (part: the loop)
#[test]
fn it_handles_rests_waits_and_wakes() {
    let mut machine = teammate();
    assert_eq!(told(&machine.step(letter(1))), "call");
    assert_eq!(
        told(&machine.step(reply("", StopReason::EndTurn))),
        "look and claim"
    );
    let resting = machine.step(found(&[], None));
    assert_eq!(
        (told(&resting).as_str(), rests(&resting)),
        ("", Some((&Outcome::Completed, true)))
    );
    assert_eq!(
        told(&machine.step(Input::Settled { mail_waits: false })),
        "end Completed"
    );
    assert!(machine.is_idle());
    assert_eq!(told(&machine.step(letter(2))), "call");
}

#[test]
fn mail_that_came_with_its_last_breath_is_read_first() {
    let mut machine = teammate();
    machine.step(letter(1));
    machine.step(reply("", StopReason::EndTurn));
    machine.step(found(&[], None));
    machine.step(Input::Settled { mail_waits: true });
    let decision = machine.step(letter(2));
    assert_eq!(
        (told(&decision).as_str(), decision.commit.mail.len()),
        ("call", 1)
    );
}

#[test]
fn a_task_that_it_takes_begins_a_run_of_its_own() {
    let mut machine = teammate();
    machine.step(letter(1));
    machine.step(reply("", StopReason::EndTurn));
    let decision = machine.step(found(&[], Some(3)));
    assert_eq!(told(&decision), "end Completed, call");
    assert!(
        texts(&decision).contains("subject 3"),
        "{}",
        texts(&decision)
    );
    // It does nothing, and a task becomes ready.
    let mut idle = teammate();
    assert_eq!(told(&idle.step(Input::Look)), "look and claim");
    assert_eq!(told(&idle.step(found(&[], None))), "");
    assert_eq!(told(&idle.step(Input::Look)), "look and claim");
    assert_eq!(told(&idle.step(found(&[], Some(4)))), "call");
    assert_eq!(told(&idle.step(Input::Look)), "", "it is at work");
}

// proves TK-09 (part: reminded)
#[test]
fn of_a_task_that_it_left_undone_it_is_reminded_once() {
    let mut machine = teammate();
    machine.step(letter(1));
    machine.step(reply("", StopReason::EndTurn));
    let reminded = machine.step(found(&[5], None));
    assert_eq!(told(&reminded), "call");
    assert!(
        texts(&reminded).contains("subject 5"),
        "{}",
        texts(&reminded)
    );
    machine.step(reply("", StopReason::EndTurn));
    assert_eq!(
        rests(&machine.step(found(&[5], None))),
        Some((&Outcome::Completed, true))
    );
    // Others are reminded too, if they have tasks, and take none by themselves.
    let mut root = started(Approver::Nobody, FREE);
    root.set_owning(true);
    assert_eq!(told(&root.step(reply("", StopReason::EndTurn))), "look");
    assert_eq!(told(&root.step(found(&[1], None))), "call");
    assert_eq!(
        told(&root.step(reply("", StopReason::EndTurn))),
        "end Completed"
    );
}

// proves TE-19 (part: idle; not ended)
#[test]
fn an_interruption_makes_it_idle_and_only_a_new_word_wakes_it() {
    let interruption = |number| mail(number, "user", MailKind::Interruption, "");
    let mut machine = teammate();
    machine.step(letter(1));
    assert_eq!(
        told(&machine.step(Input::Mail(vec![interruption(2)]))),
        "abort model"
    );
    let failure = Failure {
        error: ModelError::Cancelled,
        finished: Vec::new(),
        spent: Vec::new(),
        attempts: 1,
    };
    let decision = machine.step(Input::Failed {
        failure: Box::new(failure),
        charges: Vec::new(),
    });
    assert_eq!(
        (told(&decision).as_str(), rests(&decision)),
        ("end Interrupted", Some((&Outcome::Interrupted, false)))
    );
    // The interruption is in the history, so that it does not wait, and asks the model for nothing.
    let entry = decision.commit.entries.last().unwrap();
    assert_eq!(
        (
            decision.commit.mail.len(),
            crate::history::restore::unanswered(entry.kind, entry.reply.as_ref())
        ),
        (1, false)
    );
    assert!(machine.is_idle());
    assert_eq!(
        told(&machine.step(Input::Look)),
        "",
        "it takes no task either"
    );
    let quiet = machine.step(Input::Mail(vec![interruption(3)]));
    assert_eq!((told(&quiet).as_str(), quiet.commit.mail.len()), ("", 1));
    assert_eq!(told(&machine.step(letter(4))), "call");
    // Words that came after it, and with it, wake it too.
    let both = vec![
        interruption(5),
        mail(6, "user", MailKind::Text, "rather this"),
    ];
    let mut idle = teammate();
    assert_eq!(told(&idle.step(Input::Mail(both.clone()))), "call");
    let mut busy = teammate();
    busy.step(letter(1));
    assert_eq!(told(&busy.step(Input::Mail(both))), "abort model");
    let failure = Failure {
        error: ModelError::Cancelled,
        finished: Vec::new(),
        spent: Vec::new(),
        attempts: 1,
    };
    let ended = busy.step(Input::Failed {
        failure: Box::new(failure),
        charges: Vec::new(),
    });
    assert_eq!(
        (told(&ended).as_str(), ended.commit.mail.len()),
        ("end Interrupted", 0)
    );
    let next = busy.next().unwrap();
    assert_eq!((told(&busy.step(next)).as_str()), "call");
}

#[test]
fn who_could_not_go_on_waits_to_be_told_more() {
    let mut machine = teammate();
    machine.step(letter(1));
    let decision = machine.step(Input::Refused {
        why: "no money".into(),
        charges: Vec::new(),
    });
    assert!(
        matches!(rests(&decision), Some((Outcome::Paused(_), false))),
        "{decision:?}"
    );
    assert_eq!(told(&machine.step(Input::Look)), "");
    assert_eq!(told(&machine.step(letter(2))), "call");
}

#[test]
fn an_approved_plan_changes_the_mode_with_the_entry_that_says_so() {
    let answer = |approve, kind| {
        let request_id = MailId::from(Uuid::from_u128(1));
        let body = serde_json::to_string(&Response {
            request_id,
            approve,
            text: "more tests".into(),
        })
        .unwrap();
        Input::Mail(vec![mail(1, Name::LEAD, kind, &body)])
    };
    let table = [
        (
            true,
            MailKind::PlanApprovalResponse,
            Some(PermissionMode::AcceptEdits),
        ),
        (false, MailKind::PlanApprovalResponse, None),
        // The same words as a plain message approve nothing.
        (true, MailKind::Text, None),
    ];
    for (approve, kind, mode) in table {
        let life = Life::Teammate {
            then: Some(PermissionMode::AcceptEdits),
        };
        let mut machine = alive(life, PermissionMode::Plan, Approver::Nobody, FREE);
        let decision = machine.step(answer(approve, kind));
        assert_eq!(
            (decision.commit.mode, decision.commit.entries.len()),
            (mode, 1),
            "{approve} {kind:?}"
        );
        // It holds when the step is durable, not before.
        assert_eq!(machine.rights.rights.mode(), PermissionMode::Plan);
        for effect in &decision.after {
            if let Effect::SetMode(mode) = effect {
                machine.rights().set_mode(*mode);
            }
        }
        let now = mode.unwrap_or(PermissionMode::Plan);
        assert_eq!(machine.rights.rights.mode(), now);
    }
}

#[test]
fn who_agreed_to_end_finishes_its_calls_and_ends() {
    let mut machine = teammate();
    machine.step(letter(1));
    machine.step(reply("rr", StopReason::ToolUse));
    machine.leave();
    machine.step(done(1, 0, "a"));
    let last = machine.step(done(1, 1, "b"));
    assert_eq!(told(&last), "t0=a, t1=b, end Completed");
    let closing = last.commit.closing.as_ref().unwrap();
    assert_eq!(
        (&closing.outcome, closing.unless_mail),
        (&Outcome::Completed, false)
    );
    // One that does nothing ends at once.
    let mut idle = teammate();
    idle.leave();
    assert!(idle.step(Input::Interrupt).commit.closing.is_some());
}

#[test]
fn who_is_given_up_with_its_process_neither_rests_nor_ends() {
    let mut machine = teammate();
    machine.step(letter(1));
    machine.suspend();
    machine.forget_waiting();
    machine.step(Input::Interrupt);
    let failure = Failure {
        error: ModelError::Cancelled,
        finished: Vec::new(),
        spent: Vec::new(),
        attempts: 1,
    };
    let decision = machine.step(Input::Failed {
        failure: Box::new(failure),
        charges: Vec::new(),
    });
    assert_eq!(
        (
            decision.commit.closing,
            decision.commit.resting,
            decision.commit.state
        ),
        (None, None, None)
    );
}

#[test]
fn a_tool_that_another_wants_first_is_judged_and_its_answer_handed_on() {
    let first = |intent| Input::CallDone {
        key: CallKey { seq: 1, ordinal: 0 },
        result: Some(Ok(Answered {
            then: Consequence::ToolFirst {
                tool: "Bash".into(),
                input: RawJson::empty_object(),
                intent,
            },
            ..Answered::default()
        })),
    };
    let runs = |command: &str| Intent {
        read_only: false,
        beside_others: false,
        subject: Subject::runs(command),
        waits: false,
        title: command.into(),
    };
    let mut machine = started(Approver::FrontEnd, FREE);
    machine.step(reply("r", StopReason::ToolUse));
    assert_eq!(told(&machine.step(first(Ok(runs("make check"))))), "ask t0");
    let allowed = answered(0, Answer::allow());
    assert_eq!(told(&machine.step(allowed)), "begun 0, run 0");
    let again = machine.step(done(1, 0, "all passed"));
    let Some(Effect::Run(ToolRun {
        tool,
        first: Some(outcome),
        ..
    })) = again.after.last()
    else {
        panic!("{again:?}")
    };
    assert_eq!((tool.as_str(), outcome.is_error), ("Tool", false));
    assert_eq!(
        told(&machine.step(done(1, 0, "completed"))),
        "t0=completed, call"
    );
    // With nobody there to be asked, the one that wanted it is told that it is denied.
    let mut machine = started(Approver::Nobody, FREE);
    machine.step(reply("r", StopReason::ToolUse));
    let denied = machine.step(first(Ok(runs("make check"))));
    let Some(Effect::Run(ToolRun {
        first: Some(outcome),
        ..
    })) = denied.after.last()
    else {
        panic!("{denied:?}")
    };
    assert!(outcome.is_error);
}
