//! `posse board` in a real terminal: everybody at work.

use crate::binary::{Project, stdout};
use crate::requests::TOUCHES;
use crate::team_run;
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

#[test]
fn a_click_shows_another_screen_unless_the_mouse_is_switched_off() {
    let project = Project::new("board-mouse", TOUCHES);
    project.run(&["-p", "hello"]);
    let lines = "posse board; echo code $?";
    let terminal = Terminal::with(&project, (140, 30), lines);
    let flag = |terminal: &Terminal<'_>| {
        let flag = terminal
            .tmux
            .run(&["display-message", "-p", "#{mouse_any_flag}"]);
        flag.trim().to_owned()
    };
    let screen = terminal.sees("[1]agents");
    assert_eq!(flag(&terminal), "1");
    let head = screen.lines().next().unwrap();
    let column = head.split(" 2 tasks").next().unwrap().chars().count() + 2;
    let click = format!("\x1b[<0;{column};1M");
    let bytes: Vec<String> = click.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut send = vec!["send-keys", "-t", "%0", "-H"];
    send.extend(bytes.iter().map(String::as_str));
    terminal.tmux.run(&send);
    terminal.sees("[2]tasks");
    terminal.types(&["q"]);
    terminal.sees("code 0");

    std::fs::write(
        project.file("../home/settings.json"),
        r#"{"ui": {"mouse": false}}"#,
    )
    .unwrap();
    let terminal = Terminal::beside(&project, "tmux2", "posse board; echo code $?");
    terminal.sees("[1]agents");
    assert_eq!(flag(&terminal), "0");
    terminal.types(&["q"]);
    terminal.sees("code 0");
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

/// Both members ask, one after the other.
const ASK: &str = r#"
[[rule]]
when = { agent = "/dev-", marker = "Task 1 is yours" }
times = 1
reply = [{ tool = "Bash", input = { command = "touch seen" } }]
[[rule]]
when = { agent = "/reviewer-", marker = "Task 2 is yours" }
times = 1
reply = [{ tool = "Bash", input = { command = "touch told" } }]
"#;

// proves UI-18 (part: the run ends)
#[test]
fn a_team_is_on_the_board_until_its_run_ends() {
    let project = team_run::project("board-team", ASK);
    let lines = "seq 8; posse team run mend 'make it work'; echo code $?";
    let terminal = Terminal::with(&project, (120, 40), lines);
    let screen = terminal.sees("NEEDS YOU 1");
    assert!(screen.contains("Bash: touch seen"), "{screen}");
    assert!(screen.contains(FOOT), "{screen}");
    terminal.types(&["5"]);
    terminal.waits("answered", || {
        terminal.types(&["M-y"]);
        project.file("seen").exists()
    });
    terminal.waits("answered", || {
        terminal.types(&["M-y"]);
        project.file("told").exists()
    });
    let screen = terminal.sees("code 0");
    for told in [
        "\n7\n8\n● dev@mend joined",
        "All is mended.",
        "2 of 2 tasks done",
    ] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    assert!(!screen.contains(FOOT), "{screen}");
    assert!(!screen.contains("posse board"), "nobody left it: {screen}");
}

// proves UI-18 (part: the person leaves)
#[test]
fn who_leaves_the_board_of_a_team_is_asked_below_its_lines() {
    let project = team_run::project("board-left", ASK);
    let terminal = Terminal::start(&project, "team run mend 'make it work'");
    terminal.sees("NEEDS YOU 1");
    // A conversation that is opened from it returns to it.
    terminal.types(&["Enter"]);
    terminal.sees("attached: leaving stops nobody");
    terminal.types(&["C-d"]);
    terminal.sees(FOOT);
    terminal.types(&["q"]);
    let screen = terminal.sees("n deny");
    for told in ["dev@mend joined", "the team works on", "touch seen"] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    assert!(!screen.contains(FOOT), "{screen}");
    terminal.types(&["y"]);
    terminal.sees("touch told");
    assert!(project.file("seen").exists());
    terminal.types(&["n"]);
    let screen = terminal.sees("code 0");
    assert!(!project.file("told").exists(), "{screen}");
    assert!(screen.contains("2 of 2 tasks done"), "{screen}");
}

// proves UI-18 (part: plain)
#[test]
fn a_team_in_lines_shows_no_board() {
    let project = team_run::project("board-plain", ASK);
    let terminal = Terminal::start(&project, "team run mend 'make it work' --plain");
    terminal.sees("touch seen");
    let alternate = ["display-message", "-p", "-t", "%0", "#{alternate_on}"];
    assert_eq!(terminal.tmux.run(&alternate).trim(), "0");
    terminal.sees("n deny");
    terminal.types(&["y"]);
    terminal.sees("touch told");
    terminal.types(&["y"]);
    let screen = terminal.sees("code 0");
    assert!(screen.contains("2 of 2 tasks done"), "{screen}");
}

// proves UI-09 (part: any end)
#[test]
fn whatever_ends_a_board_the_terminal_is_as_before() {
    for (signal, code) in [("-TERM", "130"), ("-KILL", "137")] {
        let project = Project::new(&format!("board-end{signal}"), TOUCHES);
        project.run(&["-p", "touch it"]);
        let lines = "stty -g > ../before; posse board; code=$?; \
            until stty -g > ../after; cmp -s ../before ../after; do :; done; echo ended $code";
        let terminal = Terminal::with(&project, (80, 24), lines);
        terminal.sees(FOOT);
        let flags = "#{alternate_on} #{bracket_paste_flag} #{mouse_any_flag}";
        let modes = || {
            terminal
                .tmux
                .run(&["display-message", "-p", "-t", "%0", flags])
        };
        // Not every tmux tells of pastes.
        let before = modes();
        assert!(before.starts_with('1') && before.trim().ends_with(" 1"));
        terminal.kills(signal);
        terminal.sees(&format!("ended {code}"));
        terminal.waits("restored", || !modes().contains('1'));
    }
}

#[test]
fn lines_that_follow_the_command_are_left_to_the_shell() {
    let project = team_run::project("board-pasted", "");
    let lines = "echo begin; read go; posse team run mend go; read what; echo got $what";
    let terminal = Terminal::with(&project, (100, 30), lines);
    terminal.sees("begin");
    // Together, so that the second line is there when posse starts.
    terminal.types(&["go", "Enter", "x i q", "Enter"]);
    let screen = terminal.sees("got x i q");
    assert!(screen.contains("2 of 2 tasks done"), "{screen}");
}
