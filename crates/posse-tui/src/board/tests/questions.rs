//! The screen of questions: what answers one, and what does not.

use posse_protocol::{Answer, Question, QuestionKind, RuleScope, Suggestion};

use super::*;
use crate::fixtures;

fn asked(number: u128, call: &str) -> BoardQuestion {
    BoardQuestion {
        agent: agent(number),
        session: agent(1),
        question: Question {
            suggestions: vec![Suggestion {
                rules: vec!["Bash(ls *)".into()],
            }],
            ..fixtures::question(call)
        },
        asked_ms: 1_700_000_000_000 - 40_000,
    }
}

fn choice(number: u128) -> BoardQuestion {
    let option = |label: &str| serde_json::json!({"label": label, "description": "d"});
    let input = serde_json::json!({"questions": [
        {"question": "Which?", "header": "Kind", "options": [option("Red"), option("Blue")]},
    ]});
    let mut asked = asked(number, "choice");
    asked.question.kind = QuestionKind::Choice;
    asked.question.input = posse_protocol::RawJson::from(&input);
    asked
}

fn desk(questions: Vec<BoardQuestion>) -> Desk {
    let mut desk = Desk::new(80, 20);
    desk.agents(team());
    desk.input(BoardInput::Questions(questions));
    desk.press("5");
    desk
}

fn allowed(number: u128, call: &str) -> BoardEffect {
    BoardEffect::Answer {
        agent: agent(number),
        question: fixtures::question(call).id,
        answer: Answer::allow(),
    }
}

#[test]
fn a_question_is_answered_by_a_chord_or_after_it_was_opened() {
    let mut desk = desk(vec![asked(4, "a"), asked(3, "b")]);
    for keys in ["Alt-y", "Enter", "Enter y", "y", "Alt-n", "Alt-a s"] {
        let effects = desk.press(keys);
        let is_answer = |effect: &BoardEffect| matches!(effect, BoardEffect::Answer { .. });
        assert!(!effects.iter().any(is_answer), "{keys} right after it came");
    }
    let mut desk = self::desk(vec![asked(4, "a"), asked(3, "b")]);
    desk.settle();
    // Letters and Enter are no answers.
    assert_eq!(desk.press("y Enter Enter Esc"), []);
    assert_eq!(desk.press("Alt-y"), [allowed(4, "a")]);
    // The next one has only just come under the cursor.
    assert_eq!(desk.press("Alt-y"), []);
    desk.settle();
    assert_eq!(desk.press("Enter y"), [allowed(3, "b")]);
    assert_eq!(desk.press("Alt-y"), []);
    assert!(desk.text().contains("no question waits"));
    // It is still among those that were read, for a moment.
    desk.input(BoardInput::Questions(vec![asked(4, "a")]));
    assert!(desk.text().contains("no question waits"));
    desk.wait(10_000);
    desk.input(BoardInput::Questions(vec![asked(4, "a")]));
    assert!(desk.text().contains("dev-2 wants to use Bash"));
}

#[test]
fn a_question_that_changes_must_be_seen_again() {
    let mut desk = desk(vec![asked(4, "a")]);
    desk.settle();
    let mut changed = asked(4, "a");
    changed.question.why = "another reason".into();
    desk.input(BoardInput::Questions(vec![changed]));
    assert_eq!(desk.press("Alt-y"), []);
    desk.settle();
    // An older one comes before it, and the highlighted one stays.
    desk.input(BoardInput::Questions(vec![asked(3, "z"), {
        let mut changed = asked(4, "a");
        changed.question.why = "another reason".into();
        changed
    }]));
    assert_eq!(desk.press("Alt-y"), [allowed(4, "a")]);
}

#[test]
fn always_asks_where_the_rule_holds_and_keeps_it() {
    let mut desk = desk(vec![asked(4, "a")]);
    desk.settle();
    assert_eq!(desk.press("Alt-a"), []);
    assert!(desk.text().contains("s in this session"));
    let effects = desk.press("d");
    let [BoardEffect::KeepRules(_, rules), BoardEffect::Answer { .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(rules.scope, RuleScope::Directory);
}

#[test]
fn options_are_chosen_in_words() {
    let mut desk = desk(vec![choice(4)]);
    desk.settle();
    assert_eq!(desk.press("Alt-y"), []);
    assert!(desk.text().contains("1  Red"), "{}", desk.text());
    desk.types("2");
    let effects = desk.press("Enter");
    let [BoardEffect::Answer { answer, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert!(format!("{answer:?}").contains("Blue"));
}

#[test]
fn words_to_a_question_that_is_gone_become_a_message() {
    let mut desk = desk(vec![choice(4)]);
    desk.settle();
    desk.press("Enter");
    desk.types("green");
    desk.input(BoardInput::Questions(Vec::new()));
    assert_eq!(desk.foot(), "to dev-2: green");
    assert_eq!(desk.press("Enter"), []);
    desk.settle();
    let message = BoardEffect::Message(agent(4), "green".into());
    assert_eq!(desk.press("Enter"), [message]);
}

#[test]
fn an_agent_leads_to_its_question() {
    let mut desk = Desk::new(80, 20);
    desk.agents(team());
    desk.input(BoardInput::Questions(vec![asked(3, "b"), asked(4, "a")]));
    desk.press("n a");
    assert!(desk.highlighted().contains("dev-2"));
    desk.settle();
    desk.press(":");
    desk.types("answer n not now");
    let effects = desk.press("Enter");
    let answer = Answer::Deny {
        message: "not now".into(),
        interrupt: false,
    };
    let [BoardEffect::Answer { answer: given, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(*given, answer);
}

#[test]
fn without_a_question_nothing_is_answered() {
    let mut desk = Desk::new(80, 12);
    desk.agents(team());
    desk.press("5");
    assert_eq!(desk.press("Alt-y"), []);
    assert_eq!(desk.foot(), "no question waits");
}
