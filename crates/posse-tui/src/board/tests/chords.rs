//! Keys that a person's file has changed.

use super::*;
use crate::board::action::{ACTIONS, Action};
use crate::keymap::KeyAction as _;

fn bind(desk: &mut Desk, name: &str, chords: &[&str]) {
    let chords: Vec<String> = chords.iter().map(|chord| (*chord).to_owned()).collect();
    assert_eq!(desk.board.keys.bind(name, &chords), [], "{name}");
}

#[test]
fn every_default_chord_can_be_read() {
    for (action, name, chords) in Action::ALL {
        let chords: Vec<String> = chords.iter().map(|chord| (*chord).to_owned()).collect();
        let mut keys = BoardKeys::default();
        assert_eq!(keys.0.chords(*action).len(), chords.len(), "{name}");
        // A file may say what holds anyway.
        assert_eq!(keys.bind(name, &chords), [], "{name}");
    }
    // What can be typed is called the same in a file.
    for facts in ACTIONS {
        let name = facts.name.replace(' ', "-");
        assert!(BoardKeys::names().contains(&name.as_str()), "{name}");
    }
}

#[test]
fn an_action_has_the_chords_of_the_file() {
    let mut desk = Desk::new(100, 60);
    desk.agents(team());
    bind(&mut desk, "stop", &["i"]);
    bind(&mut desk, "quit", &["ctrl-q"]);
    bind(&mut desk, "open", &["l"]);
    bind(&mut desk, "help", &[]);
    assert!(desk.foot().starts_with("l open  p peek  m message  i stop"));
    assert!(!desk.foot().contains("? keys"), "{}", desk.foot());
    desk.press("i");
    assert!(desk.foot().starts_with("stop dev-2?"), "{}", desk.foot());
    assert_eq!(desk.press("Esc x q ?"), []);
    assert_eq!(desk.press("l"), [BoardEffect::Open(agent(4))]);
    assert_eq!(desk.press("Enter"), [BoardEffect::Open(agent(4))]);
    assert_eq!(desk.press("Ctrl-q"), [BoardEffect::Leave]);
    assert_eq!(desk.press("Esc"), [BoardEffect::Leave]);
    assert_eq!(desk.press("Ctrl-c"), [BoardEffect::Leave]);
    // What has lost its key can be typed.
    desk.press(":");
    desk.types("interrupt");
    assert!(desk.text().contains("❯ interrupt  interrupt the agent"));
    let interrupted = [BoardEffect::Interrupt(agent(4))];
    assert_eq!(desk.press("Enter"), interrupted);
    desk.press(":");
    desk.types("help");
    desk.press("Enter");
    let text = desk.text();
    assert!(text.contains("l, Enter "), "{text}");
    assert!(text.contains("Ctrl-Q, Esc "), "{text}");
}

#[test]
fn a_question_is_answered_by_its_own_chord_alone() {
    let asked = BoardQuestion {
        agent: agent(4),
        session: agent(1),
        question: crate::fixtures::question("a"),
        asked_ms: 1_700_000_000_000 - 40_000,
    };
    let mut desk = Desk::new(80, 20);
    desk.agents(team());
    bind(&mut desk, "yes", &["ctrl-y"]);
    bind(&mut desk, "no", &[]);
    desk.input(BoardInput::Questions(vec![asked]));
    desk.press("5");
    assert!(
        desk.text().contains("Ctrl-Y yes   Enter open"),
        "{}",
        desk.text()
    );
    assert_eq!(desk.press("Ctrl-y"), []);
    desk.settle();
    assert_eq!(desk.press("Alt-y Alt-n y"), []);
    let is_answer = |effect: &BoardEffect| matches!(effect, BoardEffect::Answer { .. });
    assert!(desk.press("Ctrl-y").iter().any(is_answer));
}
