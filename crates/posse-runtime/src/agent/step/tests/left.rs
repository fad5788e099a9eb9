//! Questions that a dead process has left.

use super::*;

/// What a dead process asked is still asked, and the call runs as it is answered.
#[test]
fn a_question_that_was_left_is_asked_again_and_its_call_runs() {
    let call = |ordinal, begun| OpenCall {
        key: CallKey { seq: 1, ordinal },
        id: format!("t{ordinal}"),
        tool: "Tool".into(),
        begun,
        outcome: None,
        operated: None,
    };
    let question = Question {
        id: question_id(ME.into(), "1.1.0"),
        kind: QuestionKind::Permission,
        call: "t1".into(),
        tool: "Tool".into(),
        input: RawJson::empty_object(),
        why: "why".into(),
        from: None,
        until_ms: None,
        suggestions: Vec::new(),
        shown: None,
        refused: None,
    };
    let intent = Intent {
        read_only: false,
        beside_others: false,
        subject: Subject::runs("make"),
        waits: false,
        title: "make".into(),
    };
    let left = |ordinal, begun, asked| LeftCall {
        call: call(ordinal, begun),
        known: None,
        asked,
    };
    let asked = LeftQuestion {
        question,
        intent: Ok(intent),
        asked_ms: 7,
    };
    let mut machine = machine(Approver::FrontEnd, FREE);
    let open = vec![
        left(0, true, None),
        left(1, false, Some(asked)),
        left(2, false, None),
    ];
    let decision = machine.recover(open, AgentState::Waiting);
    assert_eq!(
        decision,
        Decision::default(),
        "nothing is told to the model"
    );
    assert!(machine.unfinished() && machine.waits() && machine.asks());
    assert!(machine.left().is_none(), "a person says when");
    let prompt = Input::Prompt(vec![ContentBlock::text("and then?")]);
    assert_eq!(told(&machine.step(prompt)), "ask again 1");
    let allowed = answered(1, Answer::allow());
    assert_eq!(told(&machine.step(allowed)), "begun 1, run 1");
    let results = machine.step(done(1, 1, "made"));
    assert_eq!(
        told(&results),
        "t0!Outcome unknown, t1=made, t2!Not run,, call"
    );
    // What the person said meanwhile is part of the same run.
    let last = results.commit.entries[0].message.content.last();
    assert_eq!(last, Some(&ContentBlock::text("and then?")));
    assert_eq!(
        told(&machine.step(reply("", StopReason::EndTurn))),
        "end Completed"
    );
    assert!(machine.is_idle());
}
