//! Names of actions that are typed.

use super::*;
use crate::board::action::{ACTIONS, fitting};

impl Desk {
    fn command(&mut self, words: &str) -> Vec<BoardEffect> {
        self.press(":");
        self.types(words);
        self.press("Enter")
    }
}

#[test]
fn every_action_has_a_name_that_does_what_its_key_does() {
    for facts in ACTIONS {
        let keys = BoardKeys::default().listed(facts.action);
        let (found, argument) = fitting(facts.name);
        let first = found.first().map(|found| found.action);
        assert_eq!(first, Some(facts.action), "{}", facts.name);
        assert_eq!(argument, "");
        let by_key = |desk: &mut Desk| {
            if facts.action == super::super::action::Action::Show(BoardScreen::Agents) {
                desk.press("2");
            }
            let name = keys.split([',', ';', ' ']).next().unwrap();
            desk.press(name)
        };
        let by_name = |desk: &mut Desk| {
            if facts.action == super::super::action::Action::Show(BoardScreen::Agents) {
                desk.press("2");
            }
            desk.command(facts.name)
        };
        let desk = || {
            let mut desk = Desk::new(100, 30);
            desk.agents(team());
            if keys.contains("(tasks)") {
                desk.press("2");
            }
            if keys.contains("(worktrees)") {
                worktrees::listed(&mut desk);
            }
            if keys.contains("(review)") {
                worktrees::reviewed(&mut desk);
                desk.press("Down Down");
            }
            desk
        };
        let (mut first, mut second) = (desk(), desk());
        assert_eq!(by_key(&mut first), by_name(&mut second), "{}", facts.name);
        assert_eq!(first.text(), second.text(), "{}", facts.name);
    }
}

#[test]
fn what_is_typed_may_have_words_and_a_part_of_a_name() {
    let mut desk = Desk::new(80, 20);
    desk.agents(team());
    let scope = |scope| [BoardEffect::ChangeScope(scope)];
    assert_eq!(desk.command("scope store"), scope(Scope::Store));
    assert_eq!(desk.command("sco session"), scope(Scope::Session));
    assert_eq!(desk.command("scope moon"), []);
    assert_eq!(desk.foot(), "a scope is session, directory or store");
    let message = BoardEffect::Message(agent(4), "stop that".into());
    assert_eq!(desk.command("message stop that"), [message]);
    assert_eq!(desk.command("filter dev"), []);
    assert!(desk.foot().starts_with("/dev (Esc shows all)"));
    desk.press("Esc");
    assert_eq!(desk.command("inter"), [BoardEffect::Interrupt(agent(4))]);
    assert_eq!(desk.command(""), []);
    assert_eq!(desk.command("zzz"), []);
    assert_eq!(desk.foot(), "nothing is called zzz");
}

#[test]
fn names_are_completed() {
    let mut desk = Desk::new(80, 20);
    desk.agents(team());
    desk.press(":");
    desk.types("sto");
    assert!(desk.text().contains("❯ stop"), "{}", desk.text());
    desk.press("Tab");
    assert_eq!(desk.foot(), ":stop");
    desk.press("Enter");
    assert!(desk.foot().starts_with("stop dev-2?"));
    desk.press("Esc : Down Down Enter");
    assert!(desk.board.confirm.is_none());
    desk.press(": Backspace");
    assert!(desk.board.line.is_none());
}
