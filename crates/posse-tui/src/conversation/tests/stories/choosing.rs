//! Lists in place of the prompt.

use super::*;
use crate::conversation::{PlainView, Request};
use crate::picker::PickerItem;

fn prompts(words: &[&str]) -> Input {
    let item = |words: &&str| PickerItem {
        words: (*words).into(),
        about: "  2m".into(),
    };
    Input::Prompts(words.iter().map(item).collect())
}

#[test]
fn escape_twice_on_an_empty_prompt_asks_for_the_prompts() {
    let ask = vec![Effect::Ask(Request::Prompts)];
    let mut talk = talk();
    assert_eq!(talk.press("Esc"), []);
    assert!(talk.live().contains("Esc again"));
    assert_eq!(talk.press("Esc"), ask);
    // Slowly, with another key between, with a draft or while it works, Esc is Esc.
    talk.press("Esc");
    talk.wait(1000);
    assert_eq!(talk.press("Esc"), []);
    talk.press("Left");
    assert_eq!(talk.press("Esc"), []);
    talk.types("a");
    assert_eq!(talk.press("Esc Esc"), []);
    talk.press("Backspace");
    talk.works();
    let interrupt = Effect::Send(Command::Interrupt);
    assert_eq!(talk.press("Esc Esc"), [interrupt.clone(), interrupt]);
    talk.says("/rewind");
    assert!(talk.live().contains("the agent works"));
}

#[test]
fn a_prompt_to_return_to_is_chosen_by_search_or_number() {
    let mut talk = talk();
    assert_eq!(
        talk.says("/rewind"),
        sent("/rewind", Effect::Ask(Request::Prompts))
    );
    talk.input(prompts(&["write the guide", "mend the lexer"]));
    assert!(talk.live().contains("Files stay as they are"));
    assert_eq!(talk.types("lexer"), []);
    assert_eq!(talk.press("Enter"), [Effect::Ask(Request::Rewind(2))]);
    assert_eq!(
        talk.says("/rewind 2"),
        sent("/rewind 2", Effect::Ask(Request::Rewind(2)))
    );
    assert!(
        !talk
            .says("/rewind 0")
            .contains(&Effect::Ask(Request::Rewind(0)))
    );
}

#[test]
fn leaving_the_list_changes_nothing() {
    for key in ["Esc", "Ctrl-c", "Ctrl-d"] {
        let mut talk = talk();
        talk.types("a draft");
        talk.input(prompts(&["write the guide"]));
        talk.types("xyz");
        assert!(talk.live().contains("nothing fits"));
        assert_eq!(talk.press(key), []);
        assert_eq!(talk.state.draft(), "a draft");
        assert!(talk.live().contains("› a draft"));
    }
}

#[test]
fn a_list_names_those_that_the_choice_stops() {
    let mut talk = talk();
    talk.event(run(21, "dev-1", "look"));
    talk.input(prompts(&["write the guide"]));
    assert!(talk.live().contains("this stops dev-1"));
    let mut talk = self::talk();
    talk.input(prompts(&[]));
    assert!(talk.live().contains("there is no prompt to return to yet"));
}

#[test]
fn a_question_is_seen_and_answered_beside_a_list() {
    let mut talk = talk();
    talk.input(prompts(&["write the guide"]));
    talk.asks(crate::fixtures::question("a"));
    let live = talk.live();
    assert!(
        live.contains("Alt-Y yes") && live.contains("write the guide"),
        "{live}"
    );
    assert_eq!(talk.press("Alt-y").len(), 1);
    assert!(talk.live().contains("write the guide"));
}

#[test]
fn without_keys_earlier_prompts_are_printed() {
    let mut talk = talk();
    for line in ["mend the lexer", "write the guide", "/history lexer"] {
        talk.input(Input::Line(line.into()));
    }
    let news = PlainView::default().news(&mut talk.state);
    let news = String::from_utf8(news).unwrap();
    assert!(news.ends_with("\nmend the lexer\n"), "{news}");
    talk.input(Input::Line("next".into()));
    assert_eq!(talk.state.draft(), "");
}

#[test]
fn lines_alone_say_how_to_get_help() {
    let mut talk = talk();
    let mut view = PlainView::default();
    let first = String::from_utf8(view.news(&mut talk.state)).unwrap();
    assert!(
        first.ends_with("/help lists what can be typed\n"),
        "{first}"
    );
    let effects = talk.input(Input::Line("?".into()));
    assert!(!effects.iter().any(|done| matches!(done, Effect::Send(_))));
    let help = String::from_utf8(view.news(&mut talk.state)).unwrap();
    assert!(help.contains("/interrupt"), "{help}");
    assert!(!help.contains("/help lists"), "{help}");
}

#[test]
fn only_the_main_agent_is_rewound() {
    let mut talk = talk();
    talk.input(Input::Show(agent(21)));
    assert_eq!(talk.press("Esc Esc"), []);
    assert!(talk.live().contains("Alt-0 shows it"));
}

#[test]
fn what_a_branch_began_with_does_not_hide_its_own_entries() {
    let mut talk = talk();
    let text = |seq, words: &str| entry(seq, EntryKind::Reply, vec![ContentBlock::text(words)]);
    talk.input(Input::Inherited(vec![text(0, "old"), text(1, "older")]));
    talk.event(reply(0, "new"));
    assert_eq!(talk.printed()[1..], ["old", "older", "new"]);
}

#[test]
fn an_earlier_prompt_is_searched_for() {
    let mut talk = talk();
    for prompt in [
        "mend the lexer",
        "write the guide",
        "mend the parser",
        "write the guide",
    ] {
        talk.says(prompt);
    }
    talk.types("half a thought");
    assert_eq!(talk.press("Ctrl-r"), []);
    let live = talk.live();
    assert!(live.contains("❯ write the guide"), "{live}");
    assert_eq!(live.matches("write the guide").count(), 1, "{live}");
    // Older with each press.
    talk.types("mend");
    assert!(talk.live().contains("❯ mend the parser"));
    talk.press("Ctrl-r Enter");
    assert_eq!(talk.state.draft(), "mend the lexer");
    talk.press("Down Down Down Down");
    assert_eq!(talk.state.draft(), "half a thought");
    // What is typed need not be together.
    talk.press("Ctrl-r");
    talk.types("mdlxr");
    assert!(talk.live().contains("❯ mend the lexer"));
    talk.press("Esc");
    assert_eq!(talk.state.draft(), "half a thought");
    talk.press("Ctrl-c");
    talk.says("/history parser");
    assert_eq!(talk.press("Enter"), []);
    assert_eq!(talk.state.draft(), "mend the parser");
}
