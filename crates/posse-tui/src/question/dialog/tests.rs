//! How questions are answered.

use posse_protocol::Suggestion;

use super::*;
use crate::fixtures::{self, session};

/// A question with these suggestions.
fn dialog(rules: &[&str]) -> QuestionDialog {
    let suggestion = |rule: &&str| Suggestion {
        rules: vec![(*rule).to_owned()],
    };
    let question = Question {
        suggestions: rules.iter().map(suggestion).collect(),
        ..fixtures::question("a")
    };
    QuestionDialog::new(session(), question)
}

/// What comes of these words, the last of which answers.
fn answer(dialog: &mut QuestionDialog, words: &[&str]) -> Answer {
    let (last, before) = words.split_last().unwrap();
    for words in before {
        let step = dialog.typed(words);
        assert!(matches!(step, DialogStep::Ask(_)), "{words}: {step:?}");
    }
    match dialog.typed(last) {
        DialogStep::Answered(answer) => answer,
        DialogStep::Ask(prompt) => panic!("{last}: {prompt}"),
    }
}

// proves PE-08 (part: a pane)
#[test]
fn questions_with_options_are_asked_one_after_the_other() {
    let option = |label: &str| serde_json::json!({"label": label, "description": "d"});
    let input = serde_json::json!({"questions": [
        {"question": "Which?", "header": "Kind", "options": [option("Red"), option("Blue")]},
        {"question": "Where?", "header": "Place", "options": [option("Here"), option("There")],
         "multiSelect": true},
    ]});
    let asked = || {
        let question = Question {
            kind: posse_protocol::QuestionKind::Choice,
            tool: "AskUserQuestion".into(),
            input: posse_protocol::RawJson::from(&input),
            ..fixtures::question("a")
        };
        QuestionDialog::new(session(), question)
    };
    let prompt = asked().prompt();
    let first = "  │ [Kind] Which?\n  │ 1  Red: d\n  │ 2  Blue: d\n  number, or your";
    assert!(prompt.starts_with(first), "{prompt}");
    let given = |words: &[&str]| match answer(&mut asked(), words) {
        Answer::Allow { input, .. } => input.unwrap().get().to_owned(),
        Answer::Deny { message, .. } => message,
        Answer::Approve { .. } => panic!("it is no plan"),
    };
    let answers = given(&["", "3", "1,2", "2", "", "1,2"]);
    let expected = r#""answers":{"Where?":"Here, There","Which?":"Blue"}"#;
    assert!(answers.contains(expected), "{answers}");
    let answers = given(&["as you like", "-"]);
    assert!(
        answers.contains(r#""answers":{"Which?":"as you like"}"#),
        "{answers}"
    );
    assert_eq!(given(&["-", "-"]), "the user does not want to answer");
}

#[test]
fn only_a_clear_word_answers() {
    for odd in ["", " ", "why?", "yy", "y please", "a", "1", "s", "b"] {
        let step = dialog(&[]).typed(odd);
        let prompt = "  y allow once · n deny · r deny with a reason";
        assert_eq!(step, DialogStep::Ask(prompt.into()), "{odd}");
    }
    assert_eq!(answer(&mut dialog(&[]), &["", "Y"]), Answer::allow());
    let no = |message: &str| Answer::Deny {
        message: message.into(),
        interrupt: false,
    };
    assert_eq!(answer(&mut dialog(&[]), &["n"]), no("the user said no"));
    assert_eq!(answer(&mut dialog(&[]), &["n not now"]), no("not now"));
}

// proves QU-07 (part: a pane)
#[test]
fn always_asks_for_the_rule_and_for_where_it_holds() {
    let always = |rule: &str, scope| Answer::Allow {
        input: None,
        always: Some(AcceptedRules {
            rules: vec![rule.into()],
            scope,
        }),
    };
    let two = || dialog(&["Bash(ls)", "Bash(ls *)"]);
    let prompt = two().prompt();
    assert!(prompt.contains("a always"), "{prompt}");
    let DialogStep::Ask(rules) = two().typed("a") else {
        panic!()
    };
    assert!(
        rules.contains("  1  Bash(ls)\n  2  Bash(ls *)\n"),
        "{rules}"
    );
    let words = ["a", "", "0", "3", "2", "", "x", "d"];
    let expected = always("Bash(ls *)", RuleScope::Directory);
    assert_eq!(answer(&mut two(), &words), expected);
    let words = ["a", "1", "s"];
    let expected = always("Bash(ls)", RuleScope::Session);
    assert_eq!(answer(&mut two(), &words), expected);
    let words = ["a", "b", "a", "1", "b", "y"];
    assert_eq!(answer(&mut two(), &words), Answer::allow());
    let expected = always("Bash(ls)", RuleScope::Everywhere);
    assert_eq!(answer(&mut dialog(&["Bash(ls)"]), &["a", "e"]), expected);
}
