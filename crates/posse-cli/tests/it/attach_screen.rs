//! `posse attach` in a real terminal: the conversation of another process.

use crate::binary::{Project, stdout};
use crate::requests::TOUCHES;
use crate::terminal::Terminal;

/// What the foot of the screen always has.
const FOOT: &str = "? keys";

/// Answers, and then waits for more.
const TALKS: &str = r#"
[[rule]]
when.user = "second"
reply = [{ text = "Heard the second." }]
[[rule]]
reply = [{ text = "Heard the first." }]
"#;

fn export(project: &Project) -> String {
    stdout(&project.run(&["sessions", "export"]))
}

// proves UI-08
// proves WA-12 (part: handed over)
#[test]
fn attaching_and_leaving_change_nothing() {
    let project = Project::new("attach-screen", TALKS);
    let first = Terminal::start(&project, "'the first'");
    first.sees("Heard the first.");
    // It is shown while it arrives, and stored then.
    first.waits("the stored reply", || {
        export(&project).contains(r#""kind":"reply""#)
    });
    let before = export(&project);

    let second = Terminal::beside(&project, "tmux2", "posse attach; echo code $?");
    // What was said is shown, and by whom.
    let screen = second.sees(FOOT);
    assert!(
        screen.contains("attached: leaving stops nobody"),
        "{screen}"
    );
    second.sees("Heard the first.");
    second.types(&["half", "Space", "a", "Space", "draft"]);
    second.sees("› half a draft");
    second.types(&["C-u"]);
    second.types(&["C-d"]);
    let screen = second.sees("code 0");
    assert!(
        screen.contains("attach again with: posse attach "),
        "{screen}"
    );
    assert_eq!(export(&project), before);

    // What is said there is heard, and seen at both ends.
    let third = Terminal::beside(&project, "tmux3", "posse attach; echo code $?");
    third.sees("Heard the first.");
    third.types(&["the", "Space", "second", "Enter"]);
    third.sees("Heard the second.");
    first.sees("› the second");
    first.sees("Heard the second.");
    // One that is killed is not missed.
    third.kills("-KILL");
    first.types(&["second", "Space", "again", "Enter"]);
    first.sees_times("Heard the second.", 2);
    // The end of the session's process ends the attached ones.
    let fourth = Terminal::beside(&project, "tmux4", "posse attach; echo code $?");
    fourth.sees("Heard the second.");
    first.types(&["C-d"]);
    first.sees("code 0");
    fourth.sees("no longer running in that process");
    fourth.sees("code 0");
}

// proves UI-06 (part: any terminal)
#[test]
fn a_question_is_answered_from_another_terminal_once() {
    let project = Project::new("attach-question", TOUCHES);
    let first = Terminal::start(&project, "'go on'");
    first.sees("Alt-Y yes");
    let second = Terminal::beside(&project, "tmux2", "posse attach; echo code $?");
    second.sees("Alt-Y yes");
    second.waits("answered", || {
        second.types(&["M-y"]);
        project.file("made").exists()
    });
    // The question is gone at both ends.
    first.waits("no question", || !first.screen().contains("Alt-Y yes"));
    second.waits("no question", || !second.screen().contains("Alt-Y yes"));
    first.types(&["C-d"]);
    second.sees("no longer running in that process");
}
