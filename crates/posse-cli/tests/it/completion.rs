//! Completion in real shells: what stands on the screen after the tab key.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::binary::{Project, posse, stdout};
use crate::team::succeed;
use crate::tmux::Tmux;

/// How long a shell may take.
const LONG: Duration = Duration::from_secs(40);

/// How long a key may take before it is pressed again.
const AGAIN: Duration = Duration::from_millis(500);

/// What is typed, what a tab makes of it or shows, and what must not be seen. `ID` is the
/// beginning of a session's id, `WHOLE` all of it.
const CASES: &[(&str, &[&str], &[&str])] = &[
    ("posse sess", &["posse sessions"], &[]),
    ("posse team sh", &["posse team show"], &[]),
    // Once the commands of posse itself were offered here.
    (
        "posse team ",
        &["interrupt", "check", "import"],
        &["scripted-model", "--print"],
    ),
    ("posse sessions ex", &["sessions export"], &[]),
    ("posse worktrees cl", &["worktrees clean"], &[]),
    ("posse mcp log", &["login", "logout"], &["doctor"]),
    ("posse doctor --pro", &["doctor --provider"], &[]),
    ("posse -p --fork", &["-p --fork-session"], &[]),
    (
        "posse --permission-mode acc",
        &["--permission-mode acceptEdits"],
        &[],
    ),
    (
        "posse --permission-mode ",
        &["bypassPermissions", "dontAsk", "plan"],
        &["notes.txt"],
    ),
    (
        "posse --permission-mode=pl",
        &["--permission-mode=plan"],
        &[],
    ),
    ("posse -p --model opusp", &["--model opusplan"], &[]),
    (
        "posse --model ",
        &["sonnet", "haiku", "claude-"],
        &["notes.txt"],
    ),
    (
        "posse --output-format st",
        &["--output-format stream-json"],
        &[],
    ),
    ("posse --on-question d", &["--on-question deny"], &[]),
    (
        "posse --setting-sources lo",
        &["--setting-sources local"],
        &[],
    ),
    ("posse --resume ID", &["posse --resume WHOLE"], &[]),
    ("posse --resume=ID", &["posse --resume=WHOLE"], &[]),
    ("posse sessions show ID", &["sessions show WHOLE"], &[]),
    ("posse cost ID", &["cost WHOLE"], &[]),
    ("posse ask ID", &["ask WHOLE"], &[]),
    ("posse attach ID", &["attach WHOLE"], &[]),
    ("posse team show pro", &["show products"], &[]),
    ("posse team run dec", &["run declared"], &[]),
    ("posse team check dec", &["check declared"], &[]),
    ("posse team attach sc", &["attach scout"], &[]),
    ("posse team attach scout@", &["attach scout@products"], &[]),
    ("posse team stop 'sc", &["scout"], &[]),
    (
        "posse task show --team products ",
        &["show --team products 1"],
        &[],
    ),
    ("posse task update 1 --owner sc", &["--owner scout"], &[]),
    (
        "posse task update 1 --status in",
        &["--status in_progress"],
        &[],
    ),
    ("posse mail send team-l", &["send team-lead"], &[]),
    ("posse agents show scr", &["show scribe"], &[]),
    ("posse skills show loo", &["show look"], &[]),
    ("posse mcp get fil", &["get files"], &[]),
    ("posse hooks try PreT", &["try PreToolUse"], &[]),
    ("posse help perm", &["help permissions"], &[]),
    ("posse help team at", &["help team attach"], &[]),
    ("posse completions z", &["completions zsh"], &[]),
    ("posse store backup not", &["backup notes.txt"], &[]),
    ("posse trust sub", &["trust subdir/"], &["subject.txt"]),
];

/// A project with one of everything that has a name.
fn furnished(name: &str) -> (Project, String) {
    let script = "[[rule]]\nreply = [{ text = 'Ready.' }]\n";
    let project = Project::new(name, script);
    let write = |path: &str, text: &str| {
        let path = project.file(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        ".posse/agents/scribe.md",
        "---\nname: scribe\ndescription: Writes it down.\n---\nWrite.\n",
    );
    write(
        ".posse/skills/look/SKILL.md",
        "---\nname: look\ndescription: Looks.\n---\nLook.\n",
    );
    write(
        ".posse/teams/declared.toml",
        "description = \"Mends it.\"\n[roles.dev]\n[[tasks]]\nsubject = \"mend\"\n",
    );
    write(
        ".mcp.json",
        r#"{"mcpServers": {"files": {"command": "false"}}}"#,
    );
    write("notes.txt", "");
    write("subject.txt", "");
    fs::create_dir_all(project.file("subdir")).unwrap();
    write(
        "import/config.json",
        r#"{"name": "products", "leadAgentId": "team-lead@products", "leadSessionId": "elsewhere", "members": [
            {"agentId": "team-lead@products", "name": "team-lead", "agentType": "team-lead", "model": "opus"},
            {"agentId": "scout@products", "name": "scout", "agentType": "Explore", "cwd": "/w"}]}"#,
    );
    write(
        "import/tasks/1.json",
        r#"{"id": "1", "subject": "find it", "status": "pending"}"#,
    );
    succeed(&project, &["team", "import", "import"]);
    succeed(&project, &["-p", "mend the parser"]);
    succeed(&project, &["-p", "read the lexer"]);
    let listed = succeed(&project, &["sessions", "list", "--json"]);
    let session: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let id = session["session_id"].as_str().unwrap().to_owned();
    (project, id)
}

/// A shell in a terminal, with posse's completion.
struct Shell {
    tmux: Tmux,
}

impl Shell {
    fn start(project: &Project, name: &str) -> Self {
        let there = Command::new(name).arg("--version").output();
        assert!(there.is_ok(), "no {name} here: run .ci/setup");
        let setup = match name {
            "bash" => {
                "PS1='> '; bind 'set show-all-if-ambiguous on'; bind 'set bell-style none'; source <(posse completions bash)"
            }
            "zsh" => {
                "PS1='> '; unsetopt beep list_ambiguous; autoload -Uz compinit; compinit -D -u; source <(posse completions zsh)"
            }
            _ => "function fish_prompt; echo -n '> '; end; posse completions fish | source",
        };
        let shell: &[&str] = match name {
            "bash" => &["bash", "--norc", "--noprofile", "-i"],
            "zsh" => &["zsh", "-f", "-i"],
            _ => &["fish", "--no-config", "-i"],
        };
        let command = project.posse(&[]);
        let binary = Path::new(env!("CARGO_BIN_EXE_posse")).parent().unwrap();
        let set = command.get_envs().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value?.to_str()?);
            Some(match name {
                "PATH" => format!("PATH={}:{value}", binary.display()),
                _ => format!("{name}={value}"),
            })
        });
        let set: Vec<String> = set.chain(["LC_ALL=C.UTF-8".to_owned()]).collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let begin = ["env", "-i", "TERM=screen"];
        let work = project.file("");
        let tmux = Tmux::start(
            project.file("../tmux"),
            (150, 45),
            &["-c", work.to_str().unwrap()],
            &[&begin[..], &set, shell].concat(),
        );
        let shell = Self { tmux };
        shell.types(&["-l", setup]);
        shell.types(&["Enter"]);
        shell.types(&["-l", "posse --version && printf 'rea''dy\\n'"]);
        shell.types(&["Enter"]);
        shell.until("the shell is not ready", |screen| {
            screen.contains("\nready")
        });
        shell
    }

    fn types(&self, keys: &[&str]) {
        self.tmux.run(&[&["send-keys", "-t", "%0"], keys].concat());
    }

    fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.tmux.screen("%0");
            if holds(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < LONG, "{what}:\n{screen}");
            std::thread::yield_now();
        }
    }

    /// Gives up the line. Not by an interrupt, which could come late and take the next one, too. A
    /// key that arrives while the shell is busy may be lost, so that it is pressed again.
    fn clears(&self) {
        let begun = Instant::now();
        while self.tmux.screen("%0").trim() != ">" {
            assert!(begun.elapsed() < LONG, "{}", self.tmux.screen("%0"));
            self.types(&["C-e", "C-u", "C-l"]);
            let pressed = Instant::now();
            while pressed.elapsed() < AGAIN && self.tmux.screen("%0").trim() != ">" {
                std::thread::yield_now();
            }
        }
    }

    /// Types a line and a tab on an empty screen, and returns the screen that shows all of these.
    fn completes(&self, line: &str, expected: &[String]) -> String {
        self.clears();
        self.types(&["-l", line]);
        self.until(line, |screen| screen.contains(line.trim_end()));
        self.types(&["Tab"]);
        let has_all = |screen: &str| expected.iter().all(|it| screen.contains(it.as_str()));
        self.until(&format!("{line}<Tab> shows no {expected:?}"), has_all)
    }
}

fn check(name: &str) {
    let (project, id) = furnished(&format!("completion-{name}"));
    let shell = Shell::start(&project, name);
    let filled = |text: &str| text.replace("WHOLE", &id).replace("ID", &id[..18]);
    for (line, expected, absent) in CASES {
        let expected: Vec<String> = expected.iter().map(|it| filled(it)).collect();
        let screen = shell.completes(&filled(line), &expected);
        for word in *absent {
            assert!(
                !screen.contains(word),
                "{line}<Tab> shows {word}:\n{screen}"
            );
        }
    }
    // Those that show descriptions have the first prompt of a session.
    if name != "bash" {
        let about = ["mend the parser", "read the lexer"].map(str::to_owned);
        shell.completes("posse sessions show ", &about);
    }
}

#[test]
fn bash_completes_commands_and_values() {
    check("bash");
}

#[test]
fn zsh_completes_commands_and_values() {
    check("zsh");
}

#[test]
fn fish_completes_commands_and_values() {
    check("fish");
}

/// Asks as zsh does.
fn asked(command: &mut Command, words: &[&str]) -> String {
    let command = command.env("POSSE_COMPLETE", "zsh").args(["--", "posse"]);
    let output = command.args(words).output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    stdout(&output)
}

#[test]
fn a_key_press_makes_nothing_and_says_no_error() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("completion-nothing");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).unwrap();
    let ask = |words: &[&str]| {
        let mut command = posse();
        let command = command.current_dir(&place).env("HOME", &place);
        asked(command.env("POSSE_HOME", place.join("home")), words)
    };
    for words in [
        &["--resume", ""][..],
        &["sessions", "show", "x"],
        &["team", "attach", "a@b"],
        &["task", "show", "--store", "sqlite:missing.db", ""],
        &["task", "show", "--store", "nonsense", ""],
        &["cost", "--store", "postgres://nobody@127.0.0.1:1/none", ""],
        &["no-such-command", "x", "--", "y", ""],
    ] {
        let found = ask(words);
        let is_flag = |line: &str| line.starts_with('-');
        assert!(found.lines().all(is_flag), "{words:?}: {found}");
    }
    assert!(ask(&["cos"]).starts_with("cost\t"), "{}", ask(&["cos"]));
    assert_eq!(ask(&["-p", "cos"]), "", "commands come first");
    fs::write(place.join("text.db"), "no database").unwrap();
    let found = ask(&["cost", "--store", "sqlite:text.db", "0"]);
    assert_eq!(found, "");
    let files = fs::read_dir(&place).unwrap().flatten();
    let files: Vec<_> = files.map(|file| file.file_name()).collect();
    assert_eq!(files, ["text.db"], "nothing was made");
}

/// Words of a repository are offered as they are in its files; nothing of it is run.
#[test]
fn nothing_of_a_repository_is_run() {
    let (project, _) = furnished("completion-run");
    let bomb = "#!/bin/sh\ntouch \"$0.ran\"\n";
    for name in ["git", "posse", "false"] {
        fs::write(project.file(name), bomb).unwrap();
    }
    for words in [
        &["agents", "show", ""][..],
        &["skills", "show", ""],
        &["mcp", "get", ""],
        &["team", "run", ""],
        &["--resume", ""],
    ] {
        let trace = project.file("../trace");
        let output = Command::new("/usr/bin/strace")
            .args(["-f", "-e", "trace=execve", "-o"])
            .arg(&trace)
            .arg(env!("CARGO_BIN_EXE_posse"))
            .args(["--", "posse"])
            .args(words)
            .envs(
                project
                    .posse(&[])
                    .get_envs()
                    .filter_map(|(k, v)| Some((k, v?))),
            )
            .env("PATH", project.file(""))
            .env("POSSE_COMPLETE", "fish")
            .current_dir(project.file(""))
            .output();
        let output = output.unwrap();
        assert!(!stdout(&output).is_empty(), "{words:?}");
        let trace = fs::read_to_string(trace).unwrap();
        assert_eq!(trace.matches("execve(").count(), 1, "{words:?}: {trace}");
    }
}

/// Without the variable the words are a prompt as ever; an unknown shell changes nothing, either.
#[test]
fn only_a_script_asks() {
    for shell in ["", "tcsh"] {
        let mut command = posse();
        let output = command
            .env("POSSE_COMPLETE", shell)
            .arg("--version")
            .output();
        assert!(stdout(&output.unwrap()).starts_with("posse "));
    }
}
