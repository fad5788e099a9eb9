//! An agent that is looked at in the middle of a reply.

use super::screens::run;
use super::*;

#[test]
fn a_reply_is_seen_from_the_moment_its_agent_is_shown() {
    let mut talk = Talk::new(60, 24);
    talk.event(run(9, "scout", "look at the tests"));
    talk.input(Input::Show(agent(9)));
    talk.input(Input::Entries {
        entries: Vec::new(),
        next: 0,
    });
    talk.printed();
    let say = |talk: &mut Talk, text: &str| {
        talk.event_of(agent(9), EventKind::Delta(Delta::Text(text.into())));
    };
    say(&mut talk, "of the lexer.\n\nThen\u{1b}[2J ");
    say(&mut talk, "the parser");
    let live = talk.live();
    assert!(live.contains("… of the lexer."), "{live}");
    assert!(
        live.contains("Then") && live.contains("the parser"),
        "{live}"
    );
    assert!(!live.contains('\u{1b}'), "{live}");
    assert_eq!(talk.printed(), [""; 0], "its beginning was missed");
    // Only the end of much is kept.
    say(&mut talk, &"many words ".repeat(10_000));
    say(&mut talk, "to the end");
    assert!(talk.live().contains("to the end"), "{}", talk.live());
    // The whole of it is printed once.
    let text = "A look at the tests of the lexer.";
    talk.event_of(agent(9), reply(0, text));
    assert!(!talk.live().contains("to the end"), "{}", talk.live());
    assert_eq!(talk.printed(), [text]);
    say(&mut talk, "Next.\n\n");
    say(&mut talk, "More");
    assert_eq!(talk.printed(), ["Next."]);
}

#[test]
fn a_terminal_of_the_same_size_was_not_resized() {
    let mut talk = Talk::new(80, 24);
    talk.event(run(21, "a-developer-with-a-name", "look at the numbers"));
    let before = talk.live();
    assert!(before.contains("look at the numbers"), "{before}");
    // As after the board.
    talk.input(Input::Size(Size {
        columns: 80,
        rows: 24,
    }));
    assert_eq!(talk.live(), before);
}
