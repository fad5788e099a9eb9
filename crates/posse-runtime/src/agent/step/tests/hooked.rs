//! Hooks in the course of a run.

use serde_json::json;

use super::*;
use crate::hook::answer::HookDecision;
use crate::hook::tests::hook;
use crate::hook::{HookEvent, HookSet, HookState, Merged};

fn hooked(events: &[HookEvent], approver: Approver, mode: PermissionMode) -> Machine {
    let life = Life::Root {
        joins: false,
        then: PermissionMode::Default,
    };
    let mut machine = alive(life, mode, approver, FREE);
    let hooks = events.iter().map(|event| Arc::new(hook(*event)));
    machine.set_hooks(&Arc::new(HookSet::new(hooks)));
    machine.step(Input::Prompt(vec![ContentBlock::text("go")]));
    machine
}

fn says(decision: &Decision, said: Merged) -> Input {
    let last = decision.after.iter().rev().find_map(|effect| match effect {
        Effect::Hook(request) => Some(request.run),
        _ => None,
    });
    Input::Hooked {
        run: last.unwrap(),
        said: Box::new(said),
        intent: None,
    }
}

fn decides(decision: HookDecision) -> Merged {
    Merged {
        decision: Some(decision),
        ..Merged::default()
    }
}

/// The texts of the last entry.
fn texts(decision: &Decision) -> Vec<String> {
    let entry = decision.commit.entries.last().unwrap();
    let texts = entry
        .message
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.clone()),
            _ => None,
        });
    texts.collect()
}

const FREELY: PermissionMode = PermissionMode::BypassPermissions;

// proves HK-09 (part: before)
#[test]
fn a_call_begins_only_after_its_hooks_have_answered() {
    let mut machine = hooked(&[HookEvent::PreToolUse], Approver::Nobody, FREELY);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    assert_eq!(told(&asked), "hook PreToolUse Tool");
    assert_eq!(asked.commit.entries.len(), 1);
    let run = machine.step(says(&asked, Merged::default()));
    assert_eq!(told(&run), "begun 0, run 0");
    let after = machine.step(done(1, 0, "made"));
    assert_eq!(told(&after), "t0=made, call");
}

#[test]
fn a_call_that_a_hook_denies_never_runs() {
    let mut machine = hooked(&[HookEvent::PreToolUse], Approver::Nobody, FREELY);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    let denied = machine.step(says(&asked, decides(HookDecision::Deny("not here".into()))));
    assert_eq!(told(&denied), "t0!Denied by, call");
    let denial = denied.after.iter().find_map(|effect| match effect {
        Effect::Emit(EventKind::Denied(denial)) => Some(denial.why.clone()),
        _ => None,
    });
    assert_eq!(
        denial.as_deref(),
        Some("Denied by a hook of the user: not here")
    );
}

// proves HK-07 (part: deny rules; questions)
#[test]
fn a_hook_answers_what_a_person_would_be_asked() {
    let mode = PermissionMode::Default;
    let allow = || decides(HookDecision::Allow);
    let mut machine = hooked(&[HookEvent::PreToolUse], Approver::Nobody, mode);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    let run = machine.step(says(&asked, allow()));
    assert_eq!(told(&run), "begun 0, run 0");
    // What it says nothing about is denied, since nobody is there.
    let mut machine = hooked(&[HookEvent::PreToolUse], Approver::Nobody, mode);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    let denied = machine.step(says(&asked, Merged::default()));
    assert_eq!(told(&denied), "t0!Denied , call");
    // In plan mode nothing is changed, whatever a hook says.
    let mut machine = hooked(
        &[HookEvent::PreToolUse],
        Approver::Nobody,
        PermissionMode::Plan,
    );
    let asked = machine.step(reply("w", StopReason::ToolUse));
    let denied = machine.step(says(&asked, allow()));
    assert_eq!(told(&denied), "t0!Denied , call");
    // Instead of the person.
    let mut machine = hooked(&[HookEvent::PermissionRequest], Approver::FrontEnd, mode);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    assert_eq!(told(&asked), "hook PermissionRequest Tool");
    let run = machine.step(says(&asked, allow()));
    assert_eq!(told(&run), "begun 0, run 0");
    let mut machine = hooked(&[HookEvent::PermissionRequest], Approver::FrontEnd, mode);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    let person = machine.step(says(&asked, Merged::default()));
    assert_eq!(told(&person), "ask t0");
}

#[test]
fn a_hook_has_a_person_asked_about_what_is_allowed() {
    let mut machine = hooked(&[HookEvent::PreToolUse], Approver::FrontEnd, FREELY);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    let person = machine.step(says(&asked, decides(HookDecision::Ask("odd".into()))));
    assert_eq!(told(&person), "ask t0");
}

// proves HK-12 (part: content)
#[test]
fn a_call_that_a_hook_would_see_is_asked_about_while_the_hook_waits_for_trust() {
    let mut machine = hooked(&[], Approver::FrontEnd, FREELY);
    let mut waits = hook(HookEvent::PreToolUse);
    let why = "it has changed".to_owned();
    waits.state = HookState::Waits { why };
    machine.set_hooks(&Arc::new(HookSet::new([Arc::new(waits)])));
    let asked = machine.step(reply("w", StopReason::ToolUse));
    assert_eq!(told(&asked), "ask t0");
}

#[test]
fn no_other_hook_answers_for_one_that_waits_for_trust() {
    for event in [HookEvent::PreToolUse, HookEvent::PermissionRequest] {
        let mut machine = hooked(&[], Approver::FrontEnd, PermissionMode::Default);
        let mut waits = hook(event);
        waits.origin.of_repository = true;
        let why = "it has changed".to_owned();
        waits.state = HookState::Waits { why };
        let mut active = hook(event);
        active.origin.line = Some(1);
        active.origin.layer = crate::hook::HookLayer::Program;
        machine.set_hooks(&Arc::new(HookSet::new([Arc::new(active), Arc::new(waits)])));
        let mut decision = machine.step(reply("w", StopReason::ToolUse));
        if event == HookEvent::PreToolUse {
            assert_eq!(told(&decision), "hook PreToolUse Tool");
            decision = machine.step(says(&decision, decides(HookDecision::Allow)));
        }
        assert_eq!(told(&decision), "ask t0", "{event}");
    }
}

#[test]
fn a_call_that_a_hook_allows_does_not_begin_if_it_ends_the_run() {
    let mode = PermissionMode::Default;
    let mut machine = hooked(&[HookEvent::PermissionRequest], Approver::FrontEnd, mode);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    let said = Merged {
        ends_run: Some("enough".into()),
        ..decides(HookDecision::Allow)
    };
    let ended = machine.step(says(&asked, said));
    assert!(!told(&ended).contains("run 0"), "{}", told(&ended));
}

// proves HK-07 (part: judged again; told)
#[test]
fn a_changed_input_is_judged_again_and_told() {
    let mut machine = hooked(
        &[HookEvent::PreToolUse],
        Approver::Nobody,
        PermissionMode::Plan,
    );
    let asked = machine.step(reply("r", StopReason::ToolUse));
    let input = RawJson::from(&json!({"command": "make"}));
    let said = Merged {
        input: Some(input),
        ..Merged::default()
    };
    let Input::Hooked { run, said, .. } = says(&asked, said) else {
        unreachable!()
    };
    let intent = Intent {
        read_only: false,
        beside_others: false,
        subject: Subject::runs("make"),
        waits: false,
        title: "w".into(),
    };
    let denied = machine.step(Input::Hooked {
        run,
        said,
        intent: Some(Ok(intent)),
    });
    assert_eq!(told(&denied), "t0!Denied , call");
    let words = texts(&denied).join("\n");
    assert!(words.contains(r#"{"command":"make"}"#), "{words}");
}

// proves HK-09 (part: outcome)
#[test]
fn an_outcome_is_stored_before_the_hooks_after_it_run() {
    let mut machine = hooked(&[HookEvent::PostToolUse], Approver::Nobody, FREELY);
    machine.step(reply("w", StopReason::ToolUse));
    let ran = machine.step(done(1, 0, "made"));
    assert_eq!(told(&ran), "stored 0, hook PostToolUse Tool");
    let said = Merged {
        contexts: vec!["look again".into()],
        ..decides(HookDecision::Deny("not formatted".into()))
    };
    let after = machine.step(says(&ran, said));
    assert_eq!(told(&after), "t0=made, call");
    let words = texts(&after).join("\n");
    assert!(
        words.contains("not formatted") && words.contains("look again"),
        "{words}"
    );
}

#[test]
fn a_run_ends_if_a_hook_says_so() {
    for event in [
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::PostToolBatch,
    ] {
        let mut machine = hooked(&[event], Approver::Nobody, FREELY);
        let mut last = machine.step(reply("w", StopReason::ToolUse));
        if event != HookEvent::PreToolUse {
            last = machine.step(done(1, 0, "made"));
        }
        let said = Merged {
            ends_run: Some("enough".into()),
            ..Merged::default()
        };
        let end = machine.step(says(&last, said));
        let words = told(&end);
        assert!(words.ends_with("end Partial(Hook)"), "{event} {words}");
    }
}

// proves HK-10 (part: held back; limit; counted)
#[test]
fn a_hook_holds_the_end_back_eight_times() {
    let mut machine = hooked(&[HookEvent::Stop], Approver::Nobody, FREELY);
    let denies = || decides(HookDecision::Deny("run the tests".into()));
    let mut turns = 1;
    loop {
        let ends = machine.step(reply("", StopReason::EndTurn));
        assert_eq!(told(&ends), "hook Stop");
        let next = machine.step(says(&ends, denies()));
        if told(&next) != "call" {
            let [.., Effect::End(ended)] = &next.after[..] else {
                panic!("{next:?}")
            };
            assert_eq!(ended.outcome, Outcome::Partial(Limit::Hook));
            assert_eq!((ended.run.text.as_str(), ended.run.turns), ("said", 9));
            break;
        }
        let words = texts(&next).join("\n");
        assert!(words.contains("run the tests"), "{words}");
        turns += 1;
    }
    assert_eq!(turns, 9);
    // It may end once no hook objects.
    let mut machine = hooked(&[HookEvent::Stop], Approver::Nobody, FREELY);
    let ends = machine.step(reply("", StopReason::EndTurn));
    let end = machine.step(says(&ends, Merged::default()));
    assert_eq!(told(&end), "end Completed");
}

// proves HK-11 (part: stop)
#[test]
fn an_interrupt_ends_hooks_and_runs_nothing() {
    for event in [
        HookEvent::PreToolUse,
        HookEvent::Stop,
        HookEvent::PostToolBatch,
    ] {
        let mut machine = hooked(&[event], Approver::Nobody, FREELY);
        let calls = if event == HookEvent::Stop { "" } else { "w" };
        let mut last = machine.step(reply(calls, StopReason::ToolUse));
        if event == HookEvent::PostToolBatch {
            last = machine.step(done(1, 0, "made"));
        }
        let ended = told(&machine.step(Input::Interrupt));
        assert!(ended.contains("abort hooks"), "{event} {ended}");
        assert!(ended.ends_with("end Interrupted"), "{event} {ended}");
        // What they say later changes nothing.
        let late = machine.step(says(&last, decides(HookDecision::Allow)));
        assert_eq!(told(&late), "");
    }
}

#[test]
fn a_call_can_be_left_open_until_somebody_decides() {
    let mut machine = hooked(&[HookEvent::PreToolUse], Approver::Nobody, FREELY);
    let asked = machine.step(reply("w", StopReason::ToolUse));
    let left = machine.step(says(&asked, decides(HookDecision::Defer("ask Ann".into()))));
    let words = told(&left);
    assert!(words.starts_with("ask t0, end Paused"), "{words}");
    assert!(machine.is_idle());
    assert_eq!(told(&machine.step(Input::Continue)), "ask again 1");
    // Beside other calls it is asked about at once.
    let mut machine = hooked(&[HookEvent::PreToolUse], Approver::FrontEnd, FREELY);
    let asked = machine.step(reply("ww", StopReason::ToolUse));
    let person = machine.step(says(&asked, decides(HookDecision::Defer("ask Ann".into()))));
    assert_eq!(told(&person), "ask t0");
}
