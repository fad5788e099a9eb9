//! What holds for every conversation, in a real terminal: silence, frames, copies, colours, and
//! that nothing in front of an agent holds it up.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::Project;
use crate::flags::bodies;
use crate::terminal::Terminal;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(40);
/// What the foot of the screen has while the agent has no run.
pub(crate) const IDLE: &str = "○ idle";

/// Works until the test says so.
pub(crate) const UNTIL_TOLD: &str = "until [ -e go ]; do sleep 0.02; done";

/// Returns all lines of a terminal, also those above the window, as they were written.
fn all_lines(terminal: &Terminal<'_>) -> Vec<String> {
    let all = ["capture-pane", "-p", "-J", "-S", "-", "-t", "%0"];
    let text = terminal.tmux.run(&all);
    text.lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// Writes what a terminal gets into a file.
fn piped(project: &Project, terminal: &Terminal<'_>) -> PathBuf {
    let bytes = project.file("../bytes");
    let pipe = format!("cat > {}", bytes.display());
    terminal.tmux.run(&["pipe-pane", "-t", "%0", &pipe]);
    bytes
}

/// Waits without asking the terminal.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "never {what}");
        std::thread::yield_now();
    }
}

const TALKS: &str = r#"
[[rule]]
reply = [{ text = "Heard." }]
"#;

// proves UI-02 (part: an idle conversation)
#[test]
fn an_idle_conversation_writes_nothing() {
    let project = Project::new("rules-idle", TALKS);
    let lines = "read -r go; posse 'say it'; echo left $?";
    let terminal = Terminal::with(&project, (80, 24), lines);
    let bytes = piped(&project, &terminal);
    terminal.types(&["Enter"]);
    terminal.sees("Heard.");
    terminal.sees(IDLE);
    terminal.types(&["half a draft"]);
    terminal.sees("› half a draft");
    let length = || fs::metadata(&bytes).unwrap().len();
    // The last frame may still be on its way through the pipe.
    let quiet = |time: Duration| {
        let (before, begun) = (length(), Instant::now());
        while length() == before && begun.elapsed() < time {
            std::thread::sleep(Duration::from_millis(10));
        }
        length() == before
    };
    until("settled", || quiet(Duration::from_millis(300)));
    let before = length();
    assert!(quiet(Duration::from_secs(3)), "{} bytes", length() - before);
    terminal.types(&["x"]);
    terminal.sees("› half a draftx");
    until("written", || length() > before);
}

/// Streams numbers for some seconds.
fn numbers() -> String {
    let numbers: Vec<String> = (1000..1900).map(|number| number.to_string()).collect();
    let lines: Vec<String> = numbers.chunks(6).map(|line| line.join(" ")).collect();
    let text = lines.join("\\n\\n");
    format!("[pace]\ntokens_per_s = 150\n[[rule]]\nreply = [{{ text = \"{text}\" }}]\n")
}

/// Begins and ends a frame, as strace prints it.
const FRAME: (&str, &str) = (r#""\33[?2026h"#, r#"\33[?2026l""#);

// proves UI-03 (part: one write; keys)
#[test]
fn a_frame_is_one_write_and_a_key_is_in_the_next_one() {
    let project = Project::new("rules-frames", &numbers());
    let lines = "more='strace -f -qq -y -s 100000 -e trace=read,write -e signal=none -o ../trace'\n\
        posse 'count up'; echo left $?";
    let terminal = Terminal::with(&project, (80, 24), lines);
    terminal.sees("1005");
    // Letters that no frame has otherwise.
    let mut draft = String::from("› ");
    let letters = ["q", "x", "z", "j", "Q", "Z"];
    for letter in letters {
        terminal.types(&[letter]);
        draft.push_str(letter);
        terminal.sees(&draft);
    }
    let screen = terminal.screen();
    assert!(
        screen.contains("Esc interrupts"),
        "still streaming: {screen}"
    );
    terminal.types(&["Escape"]);
    terminal.sees(IDLE);
    terminal.types(&["C-c", "C-d"]);
    terminal.sees("left 0");

    let trace = fs::read_to_string(project.file("../trace")).unwrap();
    let is_write = |line: &&str| line.contains("write(") && line.contains("</dev/pts/");
    let writes: Vec<&str> = trace.lines().filter(is_write).collect();
    let frames = writes.iter().filter(|line| line.contains("[?2026h"));
    let mut count = 0;
    for frame in frames {
        let text = &frame[frame.find('"').unwrap()..=frame.rfind('"').unwrap()];
        assert!(
            text.starts_with(FRAME.0) && text.ends_with(FRAME.1),
            "{frame}"
        );
        assert_eq!(text.matches("[?2026").count(), 2, "{frame}");
        count += 1;
    }
    assert!(count > 10, "{count} frames");
    // What is no frame switches modes on and off, or is said after the end.
    let last = writes.iter().rposition(|line| line.contains("[?2026h"));
    for line in writes[..last.unwrap()]
        .iter()
        .filter(|line| !line.contains("[?2026h"))
    {
        assert!(line.contains(r#""\33[?"#), "{line}");
    }
    for letter in letters {
        let typed = format!("\"{letter}\"");
        let mut lines = trace.lines().skip_while(|line| {
            let is_read = line.contains("read(") || line.contains("read resumed");
            !(is_read && line.contains(&typed))
        });
        assert!(lines.next().is_some(), "{letter} was not read");
        let mut after = lines.filter(|line| is_write(line) && line.contains("[?2026h"));
        // One may have been on its way when the key came.
        let is_drawn = after.by_ref().take(2).any(|frame| frame.contains(letter));
        assert!(is_drawn, "{letter} is not in the next frame");
    }
}

/// A sub-agent speaks slowly.
fn speaks() -> String {
    let words: Vec<String> = (0..200).map(|number| format!("word{number:03}")).collect();
    let text = words.join(" ");
    format!(
        r#"
[[rule]]
when.agent = "re:^/main/."
tokens_per_s = 40
reply = [{{ text = "Alpha {text} Omega" }}]
[[rule]]
when.tool = "re:."
reply = [{{ text = "It has spoken." }}]
[[rule]]
reply = [{{ tool = "Agent", input = {{ description = "d", prompt = "Speak.", name = "scout" }} }}]
"#
    )
}

/// What a model was sent, as far as it is the same in each run.
fn sent(project: &Project) -> Vec<(String, usize, usize)> {
    let length = |body: &Value, key: &str| body[key].as_array().map_or(0, Vec::len);
    let bodies = bodies(project);
    let facts = bodies.iter().map(|body| {
        let model = body["model"].as_str().unwrap().to_owned();
        (model, length(body, "messages"), length(body, "tools"))
    });
    facts.collect()
}

// proves UI-07
#[test]
fn a_sub_agent_is_watched_while_it_speaks() {
    let alone = Project::new("rules-alone", &speaks());
    let unwatched = Terminal::start(&alone, "'begin it' --allowedTools Agent");
    let project = Project::new("rules-watched", &speaks());
    let first = Terminal::start(&project, "'begin it' --allowedTools Agent");
    first.sees("1 scout ●");
    first.types(&["M-1"]);
    let agents = crate::team::lines(&project, &["agents", "ps", "--all", "--json"]);
    let scout = agents.iter().find(|agent| agent["name"] == "scout");
    let id = scout.unwrap()["agent_id"].as_str().unwrap();
    let lines = format!("posse attach {id}; echo code $?");
    let second = Terminal::beside(&project, "tmux2", &lines);
    for terminal in [&first, &second] {
        let screen = terminal.sees("word0");
        assert!(screen.contains("› Speak."), "{screen}");
        assert!(!screen.contains("Omega"), "while it speaks: {screen}");
    }
    // More is seen as it is said.
    first.sees("word060");
    first.sees("Omega");
    second.sees("Omega");
    first.types(&["M-0"]);
    first.sees("It has spoken.");
    unwatched.sees("It has spoken.");
    assert_eq!(
        sent(&project),
        sent(&alone),
        "the models were asked the same"
    );
}

const CODE: &str = "let answer = compute(first_argument, second_argument, third_argument);";
const COMMAND: &str = "echo one two three four five six seven eight nine ten eleven twelve";
const ADDRESS: &str = "https://example.org/a/long/path/that/is/wider/than/forty/columns?page=2";

// proves UI-11
#[test]
fn what_is_copied_is_what_was_written() {
    let script = format!(
        r#"
[[rule]]
when.tool = "re:."
reply = [{{ text = "See {ADDRESS} for more.\n\n```rust\n{CODE}\n```\n\nThe end." }}]
[[rule]]
reply = [{{ tool = "Bash", input = {{ command = "{COMMAND}" }} }}]
"#
    );
    let project = Project::new("rules-copied", &script);
    let lines = "posse 'begin it' --allowedTools Bash; echo code $?";
    let terminal = Terminal::with(&project, (40, 24), lines);
    terminal.sees("The end.");
    terminal.types(&[&format!("!{COMMAND} thirteen"), "Enter"]);
    terminal.waits("printed", || {
        all_lines(&terminal)
            .iter()
            .any(|line| line.ends_with("twelve thirteen"))
    });
    let lines = all_lines(&terminal);
    let text = lines.join("\n");
    assert!(lines.iter().any(|line| line == CODE), "{text}");
    let commands = lines.iter().filter(|line| line.contains(COMMAND));
    assert_eq!(commands.count(), 2, "{text}");
    assert!(lines.iter().any(|line| line.contains(ADDRESS)), "{text}");
    let output = &COMMAND["echo ".len()..];
    let printed = format!("  {output}");
    assert!(lines.contains(&printed), "{text}");
}

/// A cell with what is seen of it besides its colour.
type Cell = (char, Vec<u16>);

/// Returns the cells of a captured screen, and the codes of its colours.
fn cells(captured: &str) -> (Vec<Cell>, Vec<u16>) {
    let (mut cells, mut colours) = (Vec::new(), Vec::new());
    let mut style: Vec<u16> = Vec::new();
    let mut rest = captured.chars();
    while let Some(next) = rest.next() {
        if next != '\u{1b}' {
            cells.push((next, style.clone()));
            continue;
        }
        let codes: String = rest.by_ref().take_while(|c| *c != 'm').collect();
        for code in codes.trim_start_matches('[').split(';') {
            match code.parse().unwrap_or(0) {
                0 => style.clear(),
                code @ 1..=9 => style.push(code),
                22 => style.retain(|code| !matches!(code, 1 | 2)),
                code @ 23..=29 => style.retain(|on| *on != code - 20),
                39 | 49 => {}
                code => colours.push(code),
            }
        }
        style.sort_unstable();
        style.dedup();
    }
    (cells, colours)
}

// proves UI-13 (part: no colour)
#[test]
fn without_colour_all_else_is_there() {
    const SAYS: &str = r#"
[[rule]]
when.tool = "re:."
reply = [{ text = "done" }]
[[rule]]
reply = [{ text = "A **strong** word.\n\n```rust\nfn main() { return 1; }\n```" }, { tool = "Bash", input = { command = "touch made" } }]
"#;
    let project = Project::new("rules-mono", SAYS);
    let captured = |more: &str| {
        let lines = format!("more={more}; posse 'begin it'; echo code $?");
        let terminal = Terminal::with(&project, (80, 24), &lines);
        terminal.sees("Alt-Y yes");
        terminal.types(&["! ls"]);
        terminal.sees("› ! ls");
        let text = terminal.tmux.run(&["capture-pane", "-p", "-e", "-t", "%0"]);
        // How long it takes is another thing each time.
        let words = text.split(' ').map(|word| match word.parse::<u32>() {
            Ok(_) => "0",
            Err(_) => word,
        });
        cells(&words.collect::<Vec<_>>().join(" "))
    };
    let (with, colours) = captured("A=1");
    let (without, none) = captured("NO_COLOR=1");
    assert!(colours.len() > 5, "{colours:?}");
    assert_eq!(none, Vec::<u16>::new());
    let text = |cells: &[Cell]| cells.iter().map(|(c, _)| *c).collect::<String>();
    assert_eq!(text(&with), text(&without));
    assert_eq!(with, without);
}

/// Streams for some seconds, then makes a file, then ends.
fn makes(text: &str, pace: u32) -> String {
    format!(
        r#"
[[rule]]
when.tool = "re:."
reply = [{{ text = "It is done." }}]
[[rule]]
tokens_per_s = {pace}
reply = [{{ text = "{text}" }}, {{ tool = "Bash", input = {{ command = "touch made" }} }}]
"#
    )
}

// proves UI-17 (part: suspended)
#[test]
fn a_suspended_viewer_holds_up_no_agent() {
    let words: Vec<String> = (0..150).map(|number| format!("word{number:03}")).collect();
    let project = Project::new("rules-suspended", &makes(&words.join(" "), 50));
    let first = Terminal::start(&project, "'begin it' --allowedTools Bash");
    first.sees("word00");
    let lines = "set -m; posse attach; echo stopped; read -r line; fg; echo code $?";
    let second = Terminal::beside(&project, "tmux2", lines);
    second.sees("Esc interrupts");
    second.types(&["C-z"]);
    second.sees("\nstopped");
    let made = project.file("made");
    assert!(!made.exists(), "the agent works when its viewer is stopped");
    until("made", || made.exists());
    first.sees("It is done.");
    let screen = second.screen();
    assert!(!screen.contains("It is done."), "it was stopped: {screen}");
    second.types(&["Enter"]);
    second.sees("It is done.");
    second.types(&["C-d"]);
    second.sees("code 0");
}

/// Waits for a file, says more than a terminal takes while nobody reads from it, and makes a file.
fn says_much() -> String {
    let lines: Vec<String> = (0..2000)
        .map(|number| format!("P{number:04} some words of prose that fill a line of the screen"))
        .collect();
    let text = lines.join("\\n\\n");
    format!(
        r#"
[[rule]]
when.turn = 3
reply = [{{ text = "It is done." }}]
[[rule]]
when.turn = 2
reply = [{{ text = "{text}" }}, {{ tool = "Bash", input = {{ command = "touch made" }} }}]
[[rule]]
reply = [{{ tool = "Bash", input = {{ command = "{UNTIL_TOLD}" }} }}]
"#
    )
}

// proves UI-17 (part: stopped terminal)
#[test]
fn a_stopped_terminal_holds_up_no_agent() {
    let project = Project::new("rules-stopped", &says_much());
    let terminal = Terminal::start(&project, "'begin it' --allowedTools Bash");
    terminal.sees("┄ $ until");
    let signal = |name: &str| {
        let server = terminal.tmux.server.as_str();
        let sent = Command::new("kill").args([name, server]).status();
        assert!(sent.unwrap().success());
    };
    signal("-STOP");
    fs::write(project.file("go"), "").unwrap();
    until("made", || project.file("made").exists());
    until("the last request", || bodies(&project).len() == 3);
    signal("-CONT");
    terminal.sees("P1999");
    terminal.sees("It is done.");
    terminal.sees(IDLE);
    terminal.types(&["C-d"]);
    terminal.sees("code 0");
}
