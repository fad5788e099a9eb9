//! `posse` in a real terminal: a conversation.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::binary::Project;
use crate::requests::TOUCHES;
use crate::terminal::Terminal;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(40);
/// What the foot of the screen always has.
const FOOT: &str = "? keys";

/// Says what it was told, with all that Markdown has.
const ECHO: &str = r##"
[[rule]]
reply = [{ text = "# Title\n\nSome **strong** words.\n\n- one\n- two\n\n```rust\nfn main() {}\n```\n\nThe end." }]
"##;

impl Terminal<'_> {
    /// Waits until a condition holds.
    pub(crate) fn waits(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < LONG, "never {what}: {}", self.screen());
            std::thread::yield_now();
        }
    }

    /// Waits until this is on the screen or above it.
    fn sees_anywhere(&self, what: &str) {
        self.waits(what, || {
            let all = ["capture-pane", "-p", "-J", "-S", "-", "-t", "%0"];
            self.tmux.run(&all).contains(what)
        });
    }

    /// The pid of the only posse below the pane.
    fn posse(&self) -> String {
        let shell = self.tmux.run(&["display-message", "-p", "#{pane_pid}"]);
        let found = Command::new("pgrep")
            .args(["-P", shell.trim(), "-x", "posse"])
            .output();
        String::from_utf8(found.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    }

    pub(crate) fn kills(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.posse()]).status();
        assert!(sent.unwrap().success());
    }
}

// proves UI-01 (part: a conversation)
#[test]
fn a_conversation_is_printed_once() {
    let project = Project::new("talk", ECHO);
    let terminal = Terminal::start(&project, "");
    terminal.sees(FOOT);
    terminal.types(&["do", "Space", "it", "Enter"]);
    let screen = terminal.sees("The end.");
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let expected = [
        "› do it",
        "",
        "Title",
        "",
        "Some strong words.",
        "",
        "• one",
        "• two",
        "",
        "fn main() {}",
        "",
        "The end.",
    ];
    let begin = lines.iter().position(|line| *line == expected[0]).unwrap();
    assert_eq!(lines[begin..][..expected.len()], expected, "{screen}");
    terminal.types(&["C-d"]);
    let screen = terminal.sees("code 0");
    assert!(
        screen.contains("continue with: posse --resume "),
        "{screen}"
    );
    assert_eq!(screen.matches("The end.").count(), 1, "{screen}");
    assert!(!screen.contains(FOOT), "{screen}");
}

// proves UI-04 (part: a terminal)
#[test]
fn enter_sends_the_draft_while_a_question_waits() {
    let project = Project::new("talk-question", TOUCHES);
    let terminal = Terminal::start(&project, "'go on'");
    terminal.sees("Alt-Y yes");
    terminal.types(&["yes", "Enter"]);
    terminal.sees("1 queued");
    assert!(!project.file("made").exists());
    // Not at once: what is pressed when a question appears is not meant for it.
    terminal.waits("made", || {
        terminal.types(&["M-y"]);
        project.file("made").exists()
    });
    terminal.types(&["C-d"]);
    terminal.sees("code ");
}

// proves UI-09 (part: any end)
#[test]
fn whatever_ends_posse_the_terminal_is_as_before() {
    for (signal, code) in [("-TERM", "130"), ("-HUP", "130"), ("-KILL", "137")] {
        let project = Project::new(&format!("talk-end{signal}"), ECHO);
        let lines = "stty -g > ../before; posse; code=$?; \
            until stty -g > ../after; cmp -s ../before ../after; do :; done; echo ended $code";
        let terminal = Terminal::with(&project, (80, 24), lines);
        terminal.sees(FOOT);
        terminal.types(&["words"]);
        terminal.sees("› words");
        let modes = || {
            terminal
                .tmux
                .run(&["display-message", "-p", "#{bracket_paste_flag}"])
        };
        terminal.kills(signal);
        terminal.sees(&format!("ended {code}"));
        terminal.waits("pastes are plain again", || modes().trim() != "1");
        terminal.waits("nothing is left of the foot", || {
            !terminal.screen().contains(FOOT)
        });
    }
}

#[test]
fn a_shell_is_not_disturbed_after_kill_9() {
    let project = Project::new("talk-echo", ECHO);
    let terminal = Terminal::shell(&project, (80, 24), &[]);
    for round in 0..6 {
        terminal.types(&["clear; posse", "Enter"]);
        terminal.sees(FOOT);
        terminal.kills("-KILL");
        terminal.waits("prompt", || {
            let screen = terminal.screen();
            screen.contains("Killed") && screen.trim_end().ends_with("\n$")
        });
        let words = format!("echo round-{round}");
        terminal.types(&[&words, "Enter"]);
        let screen = terminal.sees(&format!("\nround-{round}\n"));
        assert_eq!(screen.matches(&words).count(), 1, "typed twice: {screen}");
    }
}

// proves UI-05 (part: kill -9)
#[test]
fn a_draft_survives_kill_9() {
    let project = Project::new("talk-draft", ECHO);
    let terminal = Terminal::with(&project, (80, 24), "posse; posse; echo left $?");
    terminal.sees(FOOT);
    terminal.types(&["half", "Space", "a", "Space", "thought"]);
    terminal.sees("› half a thought");
    let drafts = project.file("../home/drafts");
    let kept = || {
        let files = fs::read_dir(&drafts).into_iter().flatten().flatten();
        let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
        texts.collect::<String>().contains("half a thought")
    };
    terminal.waits("kept", kept);
    terminal.kills("-KILL");
    // The second posse has it.
    terminal.sees_times("› half a thought", 2);
    terminal.types(&["C-c"]);
    terminal.waits("discarded", || !kept());
    terminal.types(&["C-d"]);
    terminal.sees("left 0");
}

#[test]
fn ctrl_z_gives_the_terminal_away_for_a_while() {
    let project = Project::new("talk-stop", ECHO);
    let lines = "set -m; posse; echo stopped; stty -a | grep -o -- '-*icanon'; fg; echo left $?";
    let terminal = Terminal::with(&project, (80, 24), lines);
    terminal.sees(FOOT);
    terminal.types(&["a", "Space", "draft"]);
    terminal.sees("› a draft");
    terminal.types(&["C-z"]);
    let screen = terminal.sees("stopped\nicanon");
    assert!(!screen.contains("-icanon"), "{screen}");
    terminal.sees("› a draft");
    terminal.types(&["C-c", "C-d"]);
    terminal.sees("left 0");
}

#[test]
fn without_a_terminal_there_is_advice() {
    let project = Project::new("talk-nowhere", ECHO);
    let output = project.posse(&[]).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("there is no terminal to talk in"), "{words}");
    assert!(words.contains("posse -p"), "{words}");
}

/// Number of paragraphs that are streamed while the window changes.
const PARAGRAPHS: usize = 120;

fn paragraph(number: usize) -> String {
    let words = ["some words of prose that wrap"; 4];
    let words = words[..=number % 4].join(" ");
    format!("P{number:03} 漢字 {words} E{number:03}")
}

// proves UI-01 (part: resizing)
// proves UI-17 (part: resize)
#[test]
fn resizing_damages_nothing() {
    let all: Vec<String> = (0..PARAGRAPHS).map(paragraph).collect();
    let text = all.join("\\n\\n");
    let script =
        format!("[pace]\ntokens_per_s = 400\n[[rule]]\nreply = [{{ text = \"{text}\" }}]\n");
    let project = Project::new("talk-resize", &script);
    let lines = "posse 'stream it'; echo left $?";
    let terminal = Terminal::with(&project, (120, 40), lines);
    let tmux = &terminal.tmux;
    tmux.run(&["set", "-g", "history-limit", "50000"]);
    tmux.run(&["set-option", "-w", "window-size", "manual"]);
    let sizes = [
        (60, 20),
        (150, 50),
        (44, 12),
        (100, 30),
        (80, 14),
        (160, 45),
    ];
    for (step, (columns, rows)) in sizes.iter().cycle().take(12).enumerate() {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        tmux.run(&["resize-window", "-x", &columns, "-y", &rows]);
        // The stream goes on between two changes.
        terminal.sees_anywhere(&format!("E{:03}", step * 8 + 7));
    }
    tmux.run(&["resize-window", "-x", "120", "-y", "40"]);
    terminal.sees_anywhere(&format!("E{:03}", PARAGRAPHS - 1));
    terminal.sees(FOOT);
    terminal.types(&["C-d"]);
    terminal.sees("left 0");
    let screen = tmux.run(&["capture-pane", "-p", "-J", "-S", "-", "-t", "%0"]);
    let words: Vec<&str> = screen.split_whitespace().collect();
    let screen = words.join(" ");
    for paragraph in &all {
        assert_eq!(
            screen.matches(paragraph).count(),
            1,
            "{paragraph}: {screen}"
        );
        let begin = &paragraph[..4];
        assert_eq!(
            screen.matches(begin).count(),
            1,
            "{begin} is doubled: {screen}"
        );
    }
    assert_eq!(screen.matches("working").count(), 0, "{screen}");
}

/// Variables that leave posse without a key and without a server.
const NO_KEY: &str = "more='ANTHROPIC_BASE_URL= ANTHROPIC_API_KEY= ANTHROPIC_AUTH_TOKEN='";

#[test]
fn the_first_start_offers_a_model_without_a_key() {
    let project = Project::new("talk-first", ECHO);
    let lines = format!("{NO_KEY}\nposse; echo left $?");
    let terminal = Terminal::with(&project, (100, 30), &lines);
    terminal.sees("1, 2 or q:");
    terminal.types(&["7", "Enter"]);
    terminal.sees_times("1, 2 or q:", 2);
    terminal.types(&["2", "Enter"]);
    terminal.sees(FOOT);
    terminal.types(&["hello", "Space", "there", "Enter"]);
    terminal.sees("I am posse's scripted model");
    terminal.types(&["C-d"]);
    terminal.sees("left 0");
}

#[test]
fn a_key_is_kept_unseen_until_logout() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::new("talk-key", ECHO);
    let lines =
        format!("{NO_KEY}\nposse; echo left $?; posse logout; echo out $?; posse </dev/null");
    let terminal = Terminal::with(&project, (100, 30), &lines);
    terminal.sees("1, 2 or q:");
    terminal.types(&["1", "Enter"]);
    terminal.sees("Paste the key");
    terminal.types(&["sk-secret", "Enter"]);
    terminal.sees(FOOT);
    let file = project.file("../home/keys.json");
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kept = fs::read_to_string(&file).unwrap();
    assert_eq!(kept, r#"{"ANTHROPIC_API_KEY":"sk-secret"}"#);
    terminal.types(&["C-d"]);
    let screen = terminal.sees("out 0");
    assert!(!screen.contains("sk-secret"), "{screen}");
    assert!(!file.exists());
}

#[test]
fn a_session_is_chosen_from_a_list() {
    let project = Project::new("talk-resume", ECHO);
    for prompt in ["mend the lexer", "write the guide"] {
        let output = project.posse(&["-p", prompt]).output().unwrap();
        assert!(output.status.success());
    }
    let terminal = Terminal::start(&project, "-r");
    let screen = terminal.sees("type to search");
    let place = |words: &str| screen.find(words).unwrap();
    assert!(
        place("write the guide") < place("mend the lexer"),
        "{screen}"
    );
    terminal.types(&["lexer", "Enter"]);
    let screen = terminal.sees("› mend the lexer");
    assert!(!screen.contains("write the guide"), "{screen}");
    terminal.types(&["C-d"]);
    terminal.sees("code 0");
}

/// Says how many prompts it has been sent.
const COUNTS: &str = r##"
[[rule]]
reply = [{ text = "This is turn {{turn}}." }]
"##;

#[test]
fn rewinding_branches_before_a_prompt_and_has_it_as_the_draft() {
    let project = Project::new("talk-rewind", COUNTS);
    let terminal = Terminal::start(&project, "'look around'");
    terminal.sees("This is turn 1.");
    terminal.types(&["mend the lexer", "Enter"]);
    terminal.sees("This is turn 2.");
    terminal.types(&["/rewind", "Enter"]);
    let screen = terminal.sees("Return to before which prompt?");
    assert!(screen.contains("look around"), "{screen}");
    terminal.types(&["Enter"]);
    let screen = terminal.sees("the conversation as it was is kept: /resume ");
    assert!(screen.contains("nothing in them was undone"), "{screen}");
    terminal.sees("\n› mend the lexer\n");
    // What the branch began with can be returned to before it has said anything.
    terminal.types(&["C-u"]);
    terminal.types(&["/rewind", "Enter"]);
    terminal.sees_times("look around", 3);
    terminal.types(&["Escape"]);
    terminal.waits("closed", || !terminal.screen().contains("type to search"));
    terminal.types(&["C-y"]);
    terminal.sees("\n› mend the lexer\n");
    terminal.types(&[" and the parser", "Enter"]);
    terminal.sees_times("This is turn 2.", 2);
    // Each is a session of its own, and the branch has what was said before.
    let sessions = crate::team::lines(&project, &["sessions", "list", "--json"]);
    let shown = |session: &serde_json::Value| {
        let id = session["session_id"].as_str().unwrap();
        crate::team::succeed(&project, &["sessions", "show", id])
    };
    let (branch, first) = (shown(&sessions[0]), shown(&sessions[1]));
    assert_eq!(sessions.len(), 2);
    assert!(branch.contains("look around"), "{branch}");
    assert!(branch.contains("mend the lexer and the parser"), "{branch}");
    assert!(first.contains("> mend the lexer ("), "{first}");
    assert!(!first.contains("and the parser"), "{first}");
    // Back to the first prompt, which the branch has from the other session: nothing is left.
    terminal.types(&["Escape"]);
    terminal.sees("Esc again");
    terminal.types(&["Escape"]);
    terminal.sees("Return to before which prompt?");
    terminal.types(&["around", "Enter"]);
    terminal.sees("returned to before “look around”");
    terminal.sees("\n› look around\n");
    terminal.types(&["Enter"]);
    terminal.sees_times("This is turn 1.", 3);
    terminal.types(&["C-d"]);
    terminal.sees("code 0");
    let sessions = crate::team::lines(&project, &["sessions", "list", "--json"]);
    assert_eq!(sessions.len(), 3);
}

#[test]
fn posse_says_in_a_conversation_what_its_commands_say() {
    let project = Project::new("talk-reports", ECHO);
    for directory in [".git", ".posse"] {
        fs::create_dir(project.file(directory)).unwrap();
    }
    let rules = r#"{"permissions": {"deny": ["Bash(rm *)"]}}"#;
    fs::write(project.file(".posse/settings.json"), rules).unwrap();
    fs::write(project.file("AGENTS.md"), "Build with make.").unwrap();
    let terminal = Terminal::start(&project, "--allowedTools Edit");
    terminal.sees(FOOT);
    terminal.types(&["/permissions", "Enter"]);
    let screen = terminal.sees("to change them: ");
    for row in [
        "deny   .posse/settings.json  Bash(rm *)",
        "allow  --allowedTools        Edit",
    ] {
        assert!(screen.contains(row), "{screen}");
    }
    terminal.types(&["/config", "Enter"]);
    let screen = terminal.sees("(the project's)\n");
    assert!(
        screen.contains("used   .posse/settings.json  permissions\n"),
        "{screen}"
    );
    terminal.types(&["/memory", "Enter"]);
    let screen = terminal.sees("# TEXT keeps a note");
    assert!(screen.contains("AGENTS.md"), "{screen}");
    terminal.types(&["/doctor", "Enter"]);
    terminal.sees("✓ git");
    terminal.types(&["C-d"]);
    terminal.sees("code 0");
}

#[test]
fn the_servers_of_the_session_are_listed() {
    let project = Project::new("talk-servers", ECHO);
    let posse = std::path::Path::new(env!("CARGO_BIN_EXE_posse"));
    let good = serde_json::json!({ "command": posse.with_file_name("mcp-server") });
    let bad = serde_json::json!({ "command": "no-such-server" });
    let servers = serde_json::json!({ "mcpServers": { "calc": good, "other": bad } });
    fs::write(project.file("servers.json"), servers.to_string()).unwrap();
    let terminal = Terminal::start(&project, "--mcp-config servers.json");
    terminal.sees(FOOT);
    // The first request waits for servers.
    terminal.types(&["go", "Enter"]);
    terminal.sees("The end.");
    terminal.types(&["/mcp", "Enter"]);
    let screen = terminal.sees("calc   connected: 15 tools, 1 prompt");
    assert!(screen.contains("other  failed: "), "{screen}");
}

#[test]
fn the_agent_is_asked_to_write_agents_md_unless_there_is_one() {
    let project = Project::new("talk-init", ECHO);
    fs::write(project.file("AGENTS.md"), "Build with make.").unwrap();
    let terminal = Terminal::start(&project, "");
    terminal.sees(FOOT);
    terminal.types(&["/init", "Enter"]);
    terminal.sees("/init improve asks the agent");
    assert!(crate::flags::bodies(&project).is_empty());
    terminal.types(&["/init improve", "Enter"]);
    terminal.sees("The end.");
    fs::remove_file(project.file("AGENTS.md")).unwrap();
    terminal.types(&["/init", "Enter"]);
    terminal.sees_anywhere("Write a file AGENTS.md");
    terminal.waits("sent", || crate::flags::bodies(&project).len() == 2);
    let bodies = crate::flags::bodies(&project);
    let last = |body: &serde_json::Value| {
        let messages = body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].to_string()
    };
    assert!(last(&bodies[0]).contains("Improve AGENTS.md"));
    let asked = last(&bodies[1]);
    for words in [
        "Write a file AGENTS.md",
        "to run a single test",
        "the layout",
        "conventions",
    ] {
        assert!(asked.contains(words), "{asked}");
    }
    terminal.sees(FOOT);
    terminal.types(&["C-d"]);
    terminal.sees("code 0");
}

/// The smallest PNG: one pixel.
const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
\0\0\0\nIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

#[test]
fn images_go_with_the_prompt() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::new("talk-images", ECHO);
    fs::write(project.file("a shot.png"), PNG).unwrap();
    let mut large = PNG.to_vec();
    large.resize(4 << 20, 0);
    fs::write(project.file("large.png"), large).unwrap();
    let bin = project.file("bin");
    fs::create_dir(&bin).unwrap();
    let lines = "read -r go; more=PATH=$PWD/bin; posse; echo code $?";
    let terminal = Terminal::with(&project, (120, 40), lines);
    terminal.types(&["Enter"]);
    terminal.sees(FOOT);
    let paste = |text: &str| {
        terminal.tmux.run(&["set-buffer", text]);
        terminal.tmux.run(&["paste-buffer", "-p", "-t", "%0"]);
    };
    terminal.types(&["C-v"]);
    terminal.sees("install wl-paste");
    paste("'large.png'");
    terminal.sees("larger than 3.75 MiB");
    terminal.sees("› 'large.png'");
    terminal.types(&["C-u"]);
    paste("see gone.png");
    terminal.sees("› see gone.png");
    terminal.types(&["C-u"]);
    paste("'a shot.png'");
    terminal.sees("› [image 1: a shot.png 1 KB]");
    // A program that prints the clipboard.
    let xclip = bin.join("xclip");
    let script = "#!/bin/sh\n[ \"$4\" = image/png ] && exec /bin/cat '../a shot.png'\n";
    fs::write(
        &xclip,
        script.replace("../", &format!("{}/", project.file("").display())),
    )
    .unwrap();
    fs::set_permissions(&xclip, fs::Permissions::from_mode(0o755)).unwrap();
    terminal.types(&["C-v"]);
    terminal.sees("[image 2: clipboard.png 1 KB]");
    terminal.types(&[" which?", "Enter"]);
    terminal.sees("The end.");
    let bodies = crate::flags::bodies(&project);
    let messages = bodies[0]["messages"].as_array().unwrap();
    let content = messages.last().unwrap()["content"].as_array().unwrap();
    let images: Vec<_> = content
        .iter()
        .filter(|block| block["type"] == "image")
        .collect();
    assert_eq!(images.len(), 2, "{content:?}");
    for image in images {
        let source = &image["source"];
        assert_eq!(
            (&source["type"], &source["media_type"]),
            (&"base64".into(), &"image/png".into())
        );
        assert!(source["data"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    }
    let said = content.iter().any(|block| {
        let text = block["text"].as_str().unwrap_or_default();
        text.starts_with("[image 1: a shot.png 1 KB][image 2: clipboard.png 1 KB] which?")
    });
    assert!(said, "{content:?}");
    terminal.types(&["C-d"]);
    terminal.sees("code 0");
}

#[test]
fn a_bell_rings_for_those_who_look_elsewhere() {
    let project = Project::new("talk-bell", TOUCHES);
    let terminal = Terminal::with(&project, (80, 24), "read -r go; posse; echo code $?");
    let bytes = project.file("../bytes");
    let pipe = format!("cat > {}", bytes.display());
    terminal.tmux.run(&["pipe-pane", "-t", "%0", &pipe]);
    terminal.types(&["Enter"]);
    terminal.sees(FOOT);
    let has = |what: &[u8]| {
        let written = fs::read(&bytes).unwrap();
        written.windows(what.len()).any(|part| part == what)
    };
    let focus = |letter: &str| {
        terminal
            .tmux
            .run(&["send-keys", "-t", "%0", "-H", "1b", "5b", letter]);
    };
    // Gained, and then lost.
    focus("49");
    terminal.types(&["touch it", "Enter"]);
    terminal.sees("Alt-Y yes");
    assert!(!has(b"\x07"));
    terminal.waits("answered", || {
        terminal.types(&["M-n"]);
        !terminal.screen().contains("Alt-Y yes")
    });
    terminal.waits("idle", || !terminal.screen().contains("Esc interrupts"));
    focus("4f");
    terminal.types(&["touch it", "Enter"]);
    terminal.sees("Alt-Y yes");
    terminal.waits("a bell", || has(b"\x07"));
    terminal.types(&["C-c", "C-d"]);
    terminal.sees("code ");
    assert!(has(b"\x1b[?1004h"));
    terminal.waits("the focus is not told any more", || has(b"\x1b[?1004l"));
}

// proves UI-13 (part: plain)
#[test]
fn lines_alone_can_do_it_all() {
    let project = Project::new("talk-plain", TOUCHES);
    let lines = "read -r go; posse --plain; echo left $?";
    let terminal = Terminal::with(&project, (80, 24), lines);
    let bytes = project.file("../bytes");
    let pipe = format!("cat > {}", bytes.display());
    terminal.tmux.run(&["pipe-pane", "-t", "%0", &pipe]);
    terminal.types(&["Enter"]);
    terminal.sees("posse · ");
    terminal.types(&["go", "Space", "on", "Enter"]);
    terminal.sees("answer with /answer");
    terminal.types(&["yes", "Enter"]);
    terminal.types(&["/mode", "Space", "plan", "Enter"]);
    terminal.sees("mode: plan");
    assert!(!project.file("made").exists());
    terminal.types(&["/mode", "Space", "default", "Enter"]);
    terminal.waits("made", || {
        terminal.types(&["/answer", "Space", "y", "Enter"]);
        project.file("made").exists()
    });
    terminal.sees("ready");
    terminal.types(&["/quit", "Enter"]);
    terminal.sees("left 0");
    let written = fs::read(&bytes).unwrap();
    assert!(
        !written.contains(&0x1b),
        "{}",
        String::from_utf8_lossy(&written)
    );
}

#[test]
fn a_call_without_a_type_forks_if_that_is_wanted_with_a_person_in_front() {
    let project = Project::new("talk-fork", &crate::agents::starts("", "true"));
    fs::create_dir_all(project.file("../home")).unwrap();
    let settings = r#"{"agents": {"implicitFork": "interactive"}}"#;
    fs::write(project.file("../home/settings.json"), settings).unwrap();
    let terminal = Terminal::start(&project, "'look here' --allowedTools Bash");
    terminal.sees("● Agent");
    terminal.waits("forked", || {
        let agents = crate::team::lines(&project, &["agents", "ps", "--all", "--json"]);
        agents.iter().any(|agent| agent["path"] == "/main/fork-1")
    });
}
