//! Questions: what answers them, and what does not.

use posse_protocol::{
    AcceptedRules, Answer, Command, EventKind, QuestionKind, RuleScope, Suggestion,
};

use super::*;
use crate::fixtures::question;

fn answered(question: &Question, answer: Answer) -> Effect {
    Effect::Send(Command::Answer {
        agent: session(),
        question: question.id,
        answer,
    })
}

fn suggesting(rules: &[&str]) -> Question {
    let suggestion = |rule: &&str| Suggestion {
        rules: vec![(*rule).into()],
    };
    Question {
        suggestions: rules.iter().map(suggestion).collect(),
        ..question("a")
    }
}

fn choice() -> Question {
    let option = |label: &str| serde_json::json!({"label": label, "description": ""});
    let input = serde_json::json!({"questions": [
        {"question": "Which?", "header": "Kind", "options": [option("Red"), option("Blue")]},
    ]});
    Question {
        kind: QuestionKind::Choice,
        tool: "AskUserQuestion".into(),
        input: RawJson::from(&input),
        ..question("c")
    }
}

fn plan() -> Question {
    Question {
        kind: QuestionKind::Plan,
        tool: "ExitPlanMode".into(),
        input: RawJson::parse(r##"{"plan": "# Steps\n1. mend"}"##).unwrap(),
        ..question("p")
    }
}

#[test]
fn a_question_that_appears_takes_no_key_of_the_draft() {
    let mut talk = talk();
    talk.types("yes, ");
    talk.asks(question("a"));
    assert!(talk.live().contains("Alt-Y yes"), "{}", talk.live());
    assert_eq!(talk.types("y n a 1"), []);
    let text = "yes, y n a 1";
    assert_eq!(talk.press("Enter"), sent(text, say(text)));
    assert!(talk.live().contains("Alt-Y yes"));
}

#[test]
fn an_answer_needs_a_moment_to_look() {
    let mut talk = talk();
    let (first, second) = (question("a"), question("b"));
    let ask = |question: &Question| EventKind::ApprovalRequested(Box::new(question.clone()));
    talk.event(ask(&first));
    talk.event(ask(&second));
    talk.wait(399);
    assert_eq!(talk.press("Alt-y Tab y"), []);
    assert_eq!(talk.state.draft(), "y");
    talk.wait(1);
    assert_eq!(talk.press("Alt-y"), [answered(&first, Answer::allow())]);
    assert_eq!(talk.press("Alt-y"), [], "the next one has just come");
    talk.wait(400);
    let no = Answer::Deny {
        message: "the user said no".into(),
        interrupt: false,
    };
    assert_eq!(talk.press("Alt-N"), [answered(&second, no)]);
    assert_eq!(talk.press("Alt-n"), []);
    assert_eq!(talk.state.draft(), "y");
}

#[test]
fn always_asks_for_the_rule_and_where_it_holds() {
    let mut talk = talk();
    let asked = suggesting(&["Bash(ls)", "Bash(ls *)"]);
    talk.asks(asked.clone());
    assert_eq!(talk.press("Alt-a"), []);
    assert!(talk.live().contains("2  Bash(ls *)"), "{}", talk.live());
    assert_eq!(talk.types("2"), []);
    let rules = AcceptedRules {
        rules: vec!["Bash(ls *)".into()],
        scope: RuleScope::Directory,
    };
    let always = Answer::Allow {
        input: None,
        always: Some(rules.clone()),
    };
    let expected = [Effect::KeepRules(rules), answered(&asked, always)];
    assert_eq!(talk.types("d"), expected);
    assert_eq!(talk.state.draft(), "");
}

#[test]
fn a_question_that_is_closed_begins_anew() {
    let mut talk = talk();
    let asked = suggesting(&["Bash(ls)"]);
    talk.asks(asked.clone());
    talk.press("Alt-a Esc");
    assert!(talk.live().contains("Alt-Y yes"), "{}", talk.live());
    assert_eq!(talk.press("Alt-y"), [answered(&asked, Answer::allow())]);
}

#[test]
fn a_command_answers_as_a_key_does() {
    let mut talk = talk();
    let asked = suggesting(&["Bash(ls)"]);
    talk.asks(asked.clone());
    talk.says("/answer a");
    assert!(talk.live().contains("s in this session"), "{}", talk.live());
    talk.press("Esc");
    let effects = talk.says("/answer y");
    assert_eq!(
        effects.last(),
        Some(&answered(&asked, Answer::allow())),
        "{effects:?}"
    );
}

#[test]
fn options_are_chosen_by_number_or_in_own_words() {
    let check = |words: &str, expected: &str| {
        let mut talk = talk();
        talk.types("draft");
        talk.asks(choice());
        assert_eq!(talk.press("Alt-y"), [], "its options must be seen");
        assert!(talk.live().contains("2  Blue"), "{}", talk.live());
        let Some(Effect::Send(Command::Answer { answer, .. })) = talk.says(words).pop() else {
            panic!("{words} is no answer");
        };
        let Answer::Allow {
            input: Some(input), ..
        } = answer
        else {
            panic!("{answer:?}");
        };
        assert!(input.get().contains(expected), "{}", input.get());
        assert_eq!(talk.state.draft(), "draft");
    };
    check("2", r#""answers":{"Which?":"Blue"}"#);
    check(
        "green, if there is any",
        r#""answers":{"Which?":"green, if there is any"}"#,
    );
}

#[test]
fn a_plan_is_approved_or_sent_back() {
    let mut talk = talk();
    talk.asks(plan());
    assert!(talk.live().contains("hands in a plan"), "{}", talk.live());
    talk.press("Tab");
    assert!(talk.live().contains("1. mend"), "{}", talk.live());
    let edits = Answer::Approve {
        plan: None,
        mode: Some(PermissionMode::AcceptEdits),
    };
    assert_eq!(talk.types("e"), [answered(&plan(), edits)]);
    talk.asks(plan());
    talk.press("Tab r");
    let back = Answer::Deny {
        message: "tests first".into(),
        interrupt: false,
    };
    talk.types("tests firsst");
    talk.press("Backspace Backspace t");
    assert_eq!(talk.press("Enter"), [answered(&plan(), back)]);
}

#[test]
fn a_question_that_is_withdrawn_disappears() {
    let mut talk = talk();
    let asked = question("a");
    talk.asks(asked.clone());
    talk.press("Tab");
    talk.event(EventKind::ApprovalWithdrawn { question: asked.id });
    assert!(!talk.live().contains("Bash"), "{}", talk.live());
    assert_eq!(talk.types("y"), []);
    assert_eq!(talk.press("Alt-y"), []);
    assert_eq!(talk.state.draft(), "y");
}

#[test]
fn words_to_a_question_are_not_lost() {
    let mut talk = talk();
    talk.types("draft");
    talk.asks(choice());
    talk.asks(question("b"));
    talk.press("Tab");
    talk.types("green");
    talk.press("Tab Tab");
    assert!(talk.live().contains("» green"), "{}", talk.live());
    assert_eq!(talk.press("Enter"), [], "it has just come");
    talk.press("Esc");
    talk.wait(400);
    talk.press("Tab");
    assert!(talk.live().contains("» green"), "{}", talk.live());
    let withdrawn = choice().id;
    talk.event(EventKind::ApprovalWithdrawn {
        question: withdrawn,
    });
    assert_eq!(talk.state.draft(), "draft");
    let last = talk.printed().pop();
    let expected = "not sent, since the question is gone: green";
    assert_eq!(last.as_deref(), Some(expected));
}

#[test]
fn tab_shows_the_next_question() {
    let mut talk = talk();
    let (first, second) = (question("a"), question("b"));
    talk.asks(first.clone());
    talk.asks(second.clone());
    talk.press("Tab Tab");
    assert_eq!(talk.types("y"), [], "it has just come");
    talk.wait(400);
    assert_eq!(talk.types("y"), [answered(&second, Answer::allow())]);
}

#[test]
fn tab_for_a_name_that_is_not_known_opens_no_question() {
    let mut talk = talk();
    talk.asks(question("a"));
    talk.types("see @no-such-file");
    assert_eq!(talk.press("Tab"), []);
    talk.types("y");
    assert_eq!(talk.state.draft(), "see @no-such-filey");
    assert!(talk.live().contains("Alt-Y yes"), "{}", talk.live());
}

#[test]
fn text_that_is_pasted_answers_nothing() {
    let mut talk = talk();
    talk.asks(question("a"));
    talk.press("Tab");
    talk.input(Input::Paste("y".into()));
    assert!(talk.live().contains("wants to use Bash"));
    assert_eq!(talk.state.draft(), "");
}

#[test]
fn the_smallest_screen_has_all_keys_of_an_open_question() {
    let mut talk = Talk::new(20, 5);
    talk.asks(suggesting(&["Bash(ls)", "Bash(ls *)"]));
    let mut stage = |keys: &str, expected: &[&str], printed: &[&str]| {
        talk.press(keys);
        let live = talk.live();
        let above = talk.printed().join("\n");
        for words in expected {
            assert!(live.contains(words), "{keys}: {live}");
        }
        for words in printed {
            assert!(above.contains(words), "{keys}: {above}");
        }
    };
    stage(
        "Tab",
        &["◐", "y yes", "a always", "n no", "r reason"],
        &["allow once"],
    );
    stage("a", &["1 to 2", "b back"], &["Bash(ls)", "Bash(ls *)"]);
    stage(
        "1",
        &["s session", "d here", "e all", "b back"],
        &["in this"],
    );
    stage("b", &["y yes", "r reason"], &[]);
    stage("r", &["what instead?", "b back", "»"], &[]);
}

#[test]
fn of_a_long_change_the_changed_lines_are_seen_first() {
    use posse_protocol::{DiffLine, Display, FileDiff, Hunk, LineChange};
    let line = |change, text: &str| DiffLine {
        change,
        text: text.into(),
        is_open: false,
    };
    let lines = vec![
        line(LineChange::Kept, "one"),
        line(LineChange::Kept, "two"),
        line(LineChange::Kept, "three"),
        line(LineChange::Removed, "four"),
        line(LineChange::Added, "4"),
        line(LineChange::Kept, "five"),
    ];
    let change = FileDiff {
        path: "a.txt".into(),
        is_new: false,
        added: 1,
        removed: 1,
        hunks: vec![Hunk {
            old_start: 1,
            new_start: 1,
            lines,
        }],
        left_out: 0,
    };
    let mut talk = talk();
    talk.asks(Question {
        shown: Some(Display::Diff(change)),
        ..question("a")
    });
    let live = talk.live();
    assert!(
        live.contains("a.txt  +1 −1\n   4 -four\n   4 +4\n  … 4 more lines · Tab shows all\n"),
        "{live}"
    );
}
