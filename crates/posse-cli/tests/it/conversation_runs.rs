//! What a person does about runs, in a real terminal: interrupting, moving to the background,
//! stopping, and hearing of their ends.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::Project;
use crate::conversation_rules::{IDLE, UNTIL_TOLD, until};
use crate::flags::bodies;
use crate::terminal::Terminal;

/// How long an interrupt may take.
const SECOND: Duration = Duration::from_secs(1);

/// Returns the number of processes whose arguments contain this.
fn processes(words: &str) -> usize {
    let has_words = |path: PathBuf| {
        let arguments = fs::read(path.join("cmdline")).unwrap_or_default();
        let arguments = arguments.split(|byte| *byte == 0);
        let arguments: Vec<_> = arguments.map(String::from_utf8_lossy).collect();
        arguments.join(" ").contains(words)
    };
    let all = fs::read_dir("/proc").unwrap();
    all.filter(|entry| has_words(entry.as_ref().unwrap().path()))
        .count()
}

/// Runs a command, speaks, or answers.
const INTERRUPTED: &str = r#"
[[rule]]
when.user = "go on"
reply = [{ text = "On it goes." }]
[[rule]]
when.user = "speak"
tokens_per_s = 20
reply = [{ text = "Alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi and after all these words of the old alphabet there are still more words so that it takes some time to say them until at last there comes Omega" }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "sleep 71001 & (trap '' TERM; sleep 71001) & sleep 71001" } }]
"#;

// proves TU-05 (part: terminal)
#[test]
fn escape_ends_the_stream_and_the_tools() {
    let project = Project::new("rules-escape", INTERRUPTED);
    let terminal = Terminal::start(&project, "'run it' --allowedTools Bash");
    terminal.sees("Esc interrupts");
    let command = || processes("sleep 71001");
    until("running", || command() >= 3);
    let begun = Instant::now();
    terminal.types(&["Escape"]);
    until("killed", || command() == 0);
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    terminal.sees(IDLE);
    terminal.types(&["speak", "Enter"]);
    terminal.sees("Alpha beta");
    let begun = Instant::now();
    terminal.types(&["Escape"]);
    let screen = terminal.sees(IDLE);
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    assert!(!screen.contains("Omega"), "{screen}");
    terminal.types(&["go on", "Enter"]);
    let screen = terminal.sees("On it goes.");
    assert!(
        screen.contains("Alpha beta"),
        "what was said stays: {screen}"
    );
    // Each call has a result, and what was said was said.
    let bodies = bodies(&project);
    let messages = bodies.last().unwrap()["messages"].to_string();
    assert_eq!(messages.matches(r#""type":"tool_use""#).count(), 1);
    assert_eq!(messages.matches(r#""type":"tool_result""#).count(), 1);
    assert!(
        messages.to_lowercase().contains("interrupted"),
        "{messages}"
    );
    assert!(messages.contains("Alpha beta"), "{messages}");
    terminal.types(&["C-d"]);
    terminal.sees("code 0");
}

// proves BG-02 (part: terminal)
#[test]
fn a_key_moves_a_sub_agent_to_the_background() {
    let script = crate::agents::starts("", UNTIL_TOLD);
    let project = Project::new("rules-background", &script);
    let terminal = Terminal::start(&project, "'look around' --allowedTools Bash");
    terminal.sees("1 find callers ●");
    // The main agent and its sub-agent have asked their models once each.
    until("working", || bodies(&project).len() == 2);
    terminal.types(&["C-b"]);
    terminal.sees("The tool said: ");
    terminal.sees(IDLE);
    let launched = bodies(&project).pop().unwrap()["messages"].to_string();
    let words = "works in the background: find callers";
    assert!(launched.contains(words), "{launched}");
    terminal.sees("1 find callers ●");
    fs::write(project.file("go"), "").unwrap();
    terminal.sees("It has ended.");
    // The same run: it was told once what to do, and then what its command had printed.
    let bodies = bodies(&project);
    let begun = bodies.iter().filter(|body| {
        let messages = body["messages"].as_array().unwrap();
        messages.len() == 1 && body["messages"].to_string().contains("Who calls it?")
    });
    assert_eq!((bodies.len(), begun.count()), (5, 1));
}

/// Starts a sub-agent in the background, then asks for a command; later starts another.
const NOTIFIED: &str = r#"
[[rule]]
when = { agent = "re:^/main/.", tool = "re:." }
reply = [{ text = "two callers" }]
[[rule]]
when.agent = "re:^/main/."
reply = [{ tool = "Bash", input = { command = "sh wait.sh" } }]
[[rule]]
when.user = "task-notification"
reply = [{ text = "It has ended." }]
[[rule]]
when.turn = 2
reply = [{ tool = "Bash", input = { command = "touch made" } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It works." }]
[[rule]]
reply = [{ tool = "Agent", input = { description = "find callers", prompt = "Who calls it?", run_in_background = true } }]
"#;

// proves BG-08 (part: terminal)
#[test]
fn the_end_of_a_run_is_told_between_turns_and_at_tool_boundaries() {
    let project = Project::new("rules-notified", NOTIFIED);
    fs::write(project.file("wait.sh"), UNTIL_TOLD).unwrap();
    let arguments = "'look around' --allowedTools 'Bash(sh wait.sh),Agent'";
    let terminal = Terminal::start(&project, arguments);
    terminal.sees("Alt-Y yes");
    until("working", || bodies(&project).len() == 3);
    fs::write(project.file("go"), "").unwrap();
    // The person sees it at once; the agent does not while the question is open.
    terminal.sees("✓ find callers");
    let screen = terminal.sees("Alt-Y yes");
    assert!(!screen.contains("It has ended."), "{screen}");
    let main = || {
        let bodies = bodies(&project).into_iter();
        bodies
            .filter(|body| body["messages"].to_string().contains("look"))
            .collect::<Vec<Value>>()
    };
    assert_eq!(main().len(), 2, "nothing begins under the dialog");
    terminal.waits("made", || {
        terminal.types(&["M-y"]);
        project.file("made").exists()
    });
    terminal.sees("It has ended.");
    terminal.sees(IDLE);
    let requests = main();
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    let told = messages.last().unwrap()["content"].to_string();
    assert!(told.contains("tool_result"), "with the result: {told}");
    assert!(told.contains("<task-notification>"), "{told}");

    // Between turns: nobody has said anything.
    fs::remove_file(project.file("go")).unwrap();
    terminal.types(&["again", "Enter"]);
    terminal.sees("It works.");
    terminal.sees(IDLE);
    fs::write(project.file("go"), "").unwrap();
    terminal.sees_times("It has ended.", 2);
}

// proves BG-20 (part: terminal)
#[test]
fn all_that_is_in_the_background_is_stopped_from_the_terminal() {
    let background = ", run_in_background = true";
    let script = crate::agents::starts(background, "sleep 71002");
    for keys in [&["/stop all", "Enter"][..], &["M-x", "M-x"]] {
        let project = Project::new("rules-stop", &script);
        let terminal = Terminal::start(&project, "'look around' --allowedTools Bash");
        terminal.sees("The tool said: ");
        terminal.sees(IDLE);
        until("running", || processes("sleep 71002") > 0);
        terminal.types(keys);
        terminal.sees("stopping find callers and everything");
        until("stopped", || processes("sleep 71002") == 0);
        terminal.waits("gone", || !terminal.screen().contains("1 find callers"));
        terminal.types(&["C-d"]);
        terminal.sees("code 0");
    }
}
