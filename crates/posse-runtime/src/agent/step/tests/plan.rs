//! A plan that a person answers.

use posse_port::store::Op;

use super::*;

/// A machine in plan mode whose model has handed in a plan and called another tool beside it.
fn handed_in() -> Machine {
    let mut machine = alive(
        Life::Root {
            joins: false,
            then: PermissionMode::Default,
        },
        PermissionMode::Plan,
        Approver::FrontEnd,
        FREE,
    );
    machine.step(Input::Prompt(vec![ContentBlock::text("go")]));
    let mut input = reply("f", StopReason::ToolUse);
    let Input::Reply { reply, intents, .. } = &mut input else {
        panic!("a reply")
    };
    let plan = RawJson::parse(r#"{"plan":"1. Build."}"#).unwrap();
    reply.content[1] = ContentBlock::ToolUse {
        id: "t0".into(),
        name: "ExitPlanMode".into(),
        input: plan,
    };
    intents[0].as_mut().unwrap().subject = Subject::Asks(QuestionKind::Plan);
    assert_eq!(told(&machine.step(input)), "ask t0");
    machine
}

// proves PM-02 (part: one step)
#[test]
fn result_mode_and_note_of_an_approved_plan_are_one_step() {
    let approve = Answer::Approve {
        plan: Some("1. Test.".into()),
        mode: Some(PermissionMode::AcceptEdits),
    };
    let mut machine = handed_in();
    let Decision { commit, after } = machine.step(answered(0, approve));
    let closed = &commit.questions[..];
    assert!(matches!(
        closed,
        [QuestionChange {
            change: QuestionChangeKind::Done,
            ..
        }]
    ));
    assert_eq!(commit.mode, Some(PermissionMode::AcceptEdits));
    assert_eq!(commit.entries.len(), 1, "the results");
    assert_eq!(commit.entries[0].kind, EntryKind::Results);
    let noted = commit
        .operations
        .iter()
        .map(|operation| match &operation.op {
            Op::WriteNote {
                team: None,
                name,
                text,
                expect: None,
            } => (name.as_str(), text.as_str()),
            other => panic!("{other:?}"),
        });
    assert_eq!(noted.collect::<Vec<_>>(), [("plan", "1. Test.")]);
    assert!(after.contains(&Effect::CallModel), "and then it goes on");
    // The mode holds once all that is durable, not before.
    assert_eq!(machine.rights.rights.mode(), PermissionMode::Plan);
    assert!(after.contains(&Effect::SetMode(PermissionMode::AcceptEdits)));
}

#[test]
fn a_plan_that_is_sent_back_changes_nothing() {
    let deny = Answer::Deny {
        message: "Test first.".into(),
        interrupt: false,
    };
    let commit = handed_in().step(answered(0, deny)).commit;
    assert_eq!((commit.mode, commit.operations), (None, Vec::new()));
}
