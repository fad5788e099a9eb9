//! `posse board` in a real terminal: everybody at work.

use crate::binary::{Project, stdout};
use crate::requests::TOUCHES;
use crate::terminal::Terminal;

/// What the foot of the agents' screen has.
const FOOT: &str = "Enter open";

// proves UI-06 (part: one queue)
// proves UI-08
#[test]
fn everybody_is_on_the_board_and_can_be_answered_there() {
    let project = Project::new("board", TOUCHES);
    let first = Terminal::start(&project, "'the first'");
    first.sees("Alt-Y yes");
    let second = Terminal::beside(&project, "tmux2", "posse 'the second'; echo code $?");
    second.sees("Alt-Y yes");
    let export = || stdout(&project.run(&["sessions", "export"]));
    let before = export();

    let board = Terminal::beside(&project, "tmux3", "posse board; echo code $?");
    let screen = board.sees(FOOT);
    assert!(screen.contains("NEEDS YOU 2"), "{screen}");
    for words in ["the first", "the second", "Bash: touch"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
    // Its conversation is opened from there, and leaving that comes back.
    board.types(&["Enter"]);
    board.sees("attached: leaving stops nobody");
    board.types(&["C-d"]);
    board.sees(FOOT);
    assert_eq!(export(), before, "looking changes nothing");

    // All questions are in one list; each is answered once.
    board.types(&["5"]);
    let screen = board.sees("[5]questions (2)");
    assert_eq!(screen.matches("Bash: touch made").count(), 2, "{screen}");
    board.waits("answered", || {
        board.types(&["M-y"]);
        project.file("made").exists()
    });
    board.waits("both answered", || {
        board.types(&["M-y"]);
        board.screen().contains("no question waits")
    });
    for terminal in [&first, &second] {
        terminal.waits("no question", || !terminal.screen().contains("Alt-Y yes"));
        terminal.types(&["C-d"]);
        terminal.sees("code 0");
    }
    board.types(&["q"]);
    let screen = board.sees("code 0");
    assert!(!screen.contains("questions"), "{screen}");
}

/// Says more than the channel of a front end holds, a word at a time.
fn long() -> String {
    let words: String = (0..900).map(|number| format!("word{number} ")).collect();
    format!("[[rule]]\ntokens_per_s = 400\nreply = [{{ text = \"{words}\\n\\nThe end.\" }}]\n")
}

// proves UI-17 (part: another screen)
#[test]
fn the_agent_does_not_wait_while_the_person_looks_at_the_board() {
    let project = Project::new("board-over", &long());
    let terminal = Terminal::start(&project, "'go on'");
    terminal.sees("word20");
    terminal.types(&["C-\\"]);
    terminal.sees(FOOT);
    // It ends while the board is shown.
    let is_idle = || {
        let listed = stdout(&project.run(&["agents", "ps", "--json"]));
        listed.contains("\"idle\"")
    };
    terminal.waits("ended", is_idle);
    terminal.types(&["q"]);
    terminal.sees("The end.");
    // The whole transcript, with search.
    terminal.types(&["C-o"]);
    terminal.sees("the main agent");
    terminal.types(&["/", "word100 ", "Enter"]);
    terminal.sees("word100 ");
    terminal.types(&["q"]);
    terminal.sees("? keys");
    terminal.types(&["C-d"]);
    terminal.sees("code 0");
}
