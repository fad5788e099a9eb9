//! Keys that a person's file has changed.

use posse_protocol::{Answer, Command};

use super::*;
use crate::conversation::Request;
use crate::fixtures::question;

/// Returns a conversation whose actions have these chords.
fn talk(chords: &[(&str, &[&str])]) -> Talk {
    let mut talk = Talk::new(80, 24);
    for (name, chords) in chords {
        let chords: Vec<String> = chords.iter().map(|chord| (*chord).to_owned()).collect();
        assert_eq!(talk.state.keys.bind(name, &chords), [], "{name}");
    }
    talk
}

fn is_answer(effect: &Effect) -> bool {
    matches!(effect, Effect::Send(Command::Answer { .. }))
}

#[test]
fn an_action_has_the_chord_of_the_file_and_no_other() {
    let mut talk = talk(&[("board", &["ctrl-t"]), ("history", &[])]);
    assert_eq!(talk.press("Ctrl-t"), [Effect::Ask(Request::Board)]);
    assert_eq!(talk.press("Ctrl-\\"), []);
    assert_eq!(talk.press("Ctrl-r"), []);
    assert!(talk.state.chooser.is_none());
    // Its name can be typed.
    talk.says("/history");
    assert!(talk.state.chooser.is_some());
}

#[test]
fn an_editing_key_can_be_taken_and_letters_cannot() {
    let mut talk = talk(&[("transcript", &["ctrl-a"]), ("bg", &["alt-b"])]);
    talk.types("ab");
    assert_eq!(talk.press("Ctrl-a"), [Effect::Ask(Request::Transcript)]);
    // With a draft, it edits as before.
    talk.press("Alt-b x");
    assert_eq!(talk.state.draft(), "xab");
    let refused = talk.state.keys.bind("board", &["x".to_owned()]);
    assert_eq!(refused.len(), 1);
    talk.types("x");
    assert_eq!(talk.state.draft(), "xxab");
}

#[test]
fn a_question_is_answered_by_its_own_chord_alone() {
    let chords: [(&str, &[&str]); 4] = [
        ("yes", &["ctrl-t"]),
        ("no", &[]),
        ("later", &["alt-y"]),
        ("answer", &["ctrl-q"]),
    ];
    let mut talk = talk(&chords);
    let mut long = question("one");
    long.shown = Some(posse_protocol::Display::Text {
        text: "echo\n".repeat(40),
    });
    talk.asks(long);
    let live = talk.live();
    assert!(live.contains("Ctrl-T yes   Ctrl-Q open"), "{live}");
    assert!(live.contains("more lines · Ctrl-Q shows all"), "{live}");
    assert!(!live.contains("Alt-Y") && !live.contains("Alt-N"), "{live}");
    for keys in ["Alt-y", "Alt-n", "y", "Enter", "Tab", "y"] {
        let effects = talk.press(keys);
        assert!(!effects.iter().any(is_answer), "{keys}: {effects:?}");
    }
    assert!(!talk.state.questions.is_open);
    let effects = talk.press("Ctrl-t");
    assert_eq!(effects.iter().filter(|effect| is_answer(effect)).count(), 1);
    // One that has only just come is not answered by it.
    talk.event(EventKind::ApprovalRequested(Box::new(question("two"))));
    assert!(!talk.press("Ctrl-t").iter().any(is_answer));
    talk.wait(crate::conversation::SETTLE_MS);
    talk.press("Ctrl-q");
    assert!(talk.state.questions.is_open);
    let answered = talk.press("Ctrl-t");
    let yes = |effect: &Effect| match effect {
        Effect::Send(Command::Answer { answer, .. }) => *answer == Answer::allow(),
        _ => false,
    };
    assert!(answered.iter().any(yes), "{answered:?}");
}

#[test]
fn lists_of_keys_have_the_chords_that_hold() {
    let chords: [(&str, &[&str]); 5] = [
        ("board", &["ctrl-t", "f2"]),
        ("keys", &["f1"]),
        ("agent-0", &["ctrl-o"]),
        ("stop-all", &["alt-s"]),
        ("answer", &["ctrl-q"]),
    ];
    let mut talk = talk(&chords);
    assert!(talk.live().ends_with("F1 keys"), "{}", talk.live());
    talk.printed();
    talk.says("/help");
    let printed = talk.printed();
    let row = |keys: &str| printed.iter().any(|line| line.trim().starts_with(keys));
    assert!(row("Ctrl-T, F2 "), "{printed:#?}");
    assert!(row("Ctrl-O Alt-1 Alt-2 Alt-3"));
    assert!(row("Tab ") && row("Ctrl-Q ") && row("Alt-S "));
    // Its chord was given to something else.
    assert!(
        !printed
            .iter()
            .any(|line| line.contains("the whole transcript, with search")
                && !line.contains("/transcript"))
    );
    talk.event(super::screens::run(9, "scout", "look"));
    talk.press("Alt-s");
    assert!(talk.live().contains("Alt-S again stops"), "{}", talk.live());
    let mut none = self::talk(&[("keys", &[])]);
    assert!(none.live().ends_with("/help"), "{}", none.live());
    none.types("?");
    assert_eq!(none.state.draft(), "?");
}

#[test]
fn tab_completes_a_name_whatever_else_it_does() {
    for chords in [("mode", "tab"), ("answer", "ctrl-q")] {
        let mut talk = talk(&[(chords.0, &[chords.1])]);
        talk.types("/tasksb");
        talk.press("Backspace Tab");
        assert_eq!(talk.state.draft(), "/tasks ", "{chords:?}");
        talk.press("Ctrl-u");
        talk.printed();
        talk.says("/help");
        let printed = talk.printed();
        let about = printed
            .iter()
            .filter(|line| line.contains("complete the name"));
        let rows: Vec<&str> = about.map(|line| line.trim()).collect();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert!(rows[0].starts_with("Tab "), "{rows:?}");
    }
}

#[test]
fn earlier_prompts_are_stepped_through_by_the_chord_that_opened_them() {
    let mut talk = talk(&[("history", &["ctrl-t"])]);
    talk.says("one");
    talk.says("two");
    talk.press("Ctrl-t Ctrl-t Enter");
    assert_eq!(talk.state.draft(), "one");
}

#[test]
fn every_default_chord_can_be_read() {
    use crate::conversation::key_actions::KeyedAction;
    use crate::keymap::KeyAction as _;
    for (action, name, chords) in KeyedAction::ALL {
        let chords: Vec<String> = chords.iter().map(|chord| (*chord).to_owned()).collect();
        let mut keys = ConversationKeys::default();
        assert_eq!(keys.0.chords(*action).len(), chords.len(), "{name}");
        // A file may say what holds anyway.
        assert_eq!(keys.bind(name, &chords), [], "{name}");
    }
}
