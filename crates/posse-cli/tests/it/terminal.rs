//! `posse -p` in a real terminal: it asks the person in front, who answers with a key.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::binary::Project;
use crate::requests::{TOUCHES, id, question};
use crate::team::succeed;
use crate::tmux::Tmux;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(40);
const KEYS: &str = "  y allow once · a always · n deny · r deny with a reason";

/// A terminal in which posse runs.
pub(crate) struct Terminal<'a> {
    project: &'a Project,
    pub(crate) tmux: Tmux,
}

impl<'a> Terminal<'a> {
    /// Runs posse in a window that is wide enough.
    pub(crate) fn start(project: &'a Project, arguments: &str) -> Self {
        Self::with(
            project,
            (120, 40),
            &format!("posse {arguments}; echo code $?"),
        )
    }

    /// Runs lines of a shell in a window of this size.
    pub(crate) fn with(project: &'a Project, size: (u16, u16), lines: &str) -> Self {
        Self::in_tmux(project, "tmux", size, lines)
    }

    /// Runs lines of a shell in another terminal with this name.
    pub(crate) fn beside(project: &'a Project, name: &str, lines: &str) -> Self {
        Self::in_tmux(project, name, (100, 30), lines)
    }

    fn in_tmux(project: &'a Project, name: &str, size: (u16, u16), lines: &str) -> Self {
        let command = project.posse(&[]);
        let set = command.get_envs().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value?.to_str()?);
            Some(format!("{name}='{value}'"))
        });
        let set: Vec<String> = set.collect();
        let (set, binary) = (set.join(" "), env!("CARGO_BIN_EXE_posse"));
        let posse = format!("posse() {{ env -i TERM=$TERM {set} $more {binary} \"$@\"; }}");
        let (work, socket) = (project.file(""), project.file(&format!("../{name}")));
        let lines = format!("cd {}\n{posse}\n{lines}\nexec cat", work.display());
        let tmux = Tmux::start(socket, size, &[], &["bash", "-c", &lines]);
        Self { project, tmux }
    }

    /// Gives a person a shell in which posse can be called, in a window of this size.
    pub(crate) fn shell(project: &'a Project, size: (u16, u16), without: &[&str]) -> Self {
        let command = project.posse(&[]);
        let binary = Path::new(env!("CARGO_BIN_EXE_posse")).parent().unwrap();
        let set = command.get_envs().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value?.to_str()?);
            let value = match name {
                "PATH" => format!("{}:{value}", binary.display()),
                _ => value.to_owned(),
            };
            (!without.contains(&name)).then(|| format!("{name}={value}"))
        });
        let set: Vec<String> = set.collect();
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let (work, socket) = (project.file(""), project.file("../tmux"));
        let shell = ["PS1=$ ", "HISTFILE=", "bash", "--norc", "--noprofile", "-i"];
        let command = [&["env", "-i", "TERM=screen"][..], &set, &shell].concat();
        let options = ["-c", work.to_str().unwrap()];
        let tmux = Tmux::start(socket, size, &options, &command);
        Self { project, tmux }
    }

    pub(crate) fn screen(&self) -> String {
        self.tmux.screen("%0")
    }

    /// Waits until this is on the screen so often.
    pub(crate) fn sees_times(&self, what: &str, times: usize) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if screen.matches(what).count() >= times {
                return screen;
            }
            assert!(begun.elapsed() < LONG, "no `{what}`: {screen}");
            std::thread::yield_now();
        }
    }

    pub(crate) fn sees(&self, what: &str) -> String {
        self.sees_times(what, 1)
    }

    pub(crate) fn types(&self, keys: &[&str]) {
        self.tmux.run(&[&["send-keys", "-t", "%0"], keys].concat());
    }

    fn has_made(&self) -> bool {
        self.project.file("made").exists()
    }
}

/// Asks about a change of a file, and says what came of it.
const EDITS: &str = r#"
[[rule]]
when.turn = 3
reply = [{ text = "Heard: {{tool}}" }]
[[rule]]
when.turn = 2
reply = [{ tool = "Edit", input = { file_path = "a.txt", old_string = "two", new_string = "2" } }]
[[rule]]
reply = [{ tool = "Read", input = { file_path = "a.txt" } }]
"#;

// proves QU-08 (part: keys; in full)
#[test]
fn a_key_answers_below_the_change() {
    let project = Project::new("terminal-keys", EDITS);
    let file = project.file("a.txt");
    for (keys, told, after) in [
        (&[&["y"][..]][..], "→ allowed once", "one\n2\n"),
        (&[&["n"]], "→ denied", "one\ntwo\n"),
        (&[&["r"], &["no, wait", "Enter"]], "→ denied", "one\ntwo\n"),
        (
            &[&["a"], &["b"], &["a"], &["s"]],
            "→ always allowed: Edit(",
            "one\n2\n",
        ),
    ] {
        fs::write(&file, "one\ntwo\n").unwrap();
        let terminal = Terminal::start(&project, "-p change");
        let screen = terminal.sees(KEYS);
        assert!(
            screen.contains("\n? Edit\n") && screen.contains("  │    2 -two\n  │    2 +2\n"),
            "{screen}"
        );
        assert!(!screen.contains("code"), "{screen}");
        let mut asked = screen;
        for keys in keys {
            terminal.types(keys);
            // The next key is typed when its question is there.
            let begun = Instant::now();
            while terminal.screen() == asked {
                assert!(begun.elapsed() < LONG, "{keys:?}: {asked}");
            }
            asked = terminal.screen();
        }
        let screen = terminal.sees("code 0");
        assert!(screen.contains(told), "{screen}");
        assert_eq!(fs::read_to_string(&file).unwrap(), after, "{screen}");
        let reason = screen.contains("Heard: no, wait");
        assert_eq!(reason, keys.len() == 2, "{screen}");
    }
}

/// Says something, changes a file, and ends with Markdown that streams slowly.
const SAYS: &str = r#"
[[rule]]
when.turn = 3
tokens_per_s = 40
reply = [{ text = "\n## Alpha\n\nThe sign **is** wrong in `a.txt`, and it is mended now, in a paragraph of two lines or three. Omega\n\n```sh\necho 'a line of code that is longer than the window'\n```\n" }]
[[rule]]
when.turn = 2
reply = [{ text = "I *change* it." }, { tool = "Edit", input = { file_path = "a.txt", old_string = "two", new_string = "2" } }]
[[rule]]
reply = [{ tool = "Read", input = { file_path = "a.txt" } }]
"#;

#[test]
fn a_reply_is_markdown_that_is_seen_while_it_arrives() {
    let project = Project::new("terminal-markdown", SAYS);
    fs::write(project.file("a.txt"), "one\ntwo\n").unwrap();
    let lines = "posse -p change --permission-mode acceptEdits; echo code $?";
    let terminal = Terminal::with(&project, (40, 30), lines);
    let early = terminal.sees("\nThe sign is wrong");
    assert!(!early.contains("Omega"), "{early}");
    terminal.sees("code 0");
    let history = ["capture-pane", "-p", "-J", "-S", "-", "-t", "%0"];
    let all = terminal.tmux.run(&history);
    let (all, _) = all.split_once("\n3 turns").unwrap();
    assert_eq!(
        all,
        "→ Read a.txt
  2 lines

I change it.

→ Edit a.txt
   2 -two
   2 +2

Alpha

The sign is wrong in a.txt, and it is
mended now, in a paragraph of two lines
or three. Omega

echo 'a line of code that is longer than the window'",
        "each line once, also above the window"
    );
}

/// A skill in an agent of its own, whose answer is the answer of the run.
const FORKS: &str = r#"
[[rule]]
reply = [{ text = "lexer.rs **uses** it." }]
"#;

// proves HK-05 (part: called by name)
#[test]
fn the_answer_of_a_forked_skill_is_printed() {
    let project = Project::new("terminal-fork", FORKS);
    let skill = project.file("../home/skills/look/SKILL.md");
    fs::create_dir_all(skill.parent().unwrap()).unwrap();
    let text = "---\ndescription: Looks.\ncontext: fork\n---\nWho uses $ARGUMENTS?\n";
    fs::write(skill, text).unwrap();
    let terminal = Terminal::start(&project, "-p '/look x'");
    let screen = terminal.sees("code 0");
    assert_eq!(screen.matches("lexer.rs uses it.").count(), 1, "{screen}");
}

#[test]
fn without_colour_a_terminal_gets_text_alone() {
    let project = Project::new("terminal-mono", SAYS);
    for more in ["NO_COLOR=1", "TERM=dumb"] {
        fs::write(project.file("a.txt"), "one\ntwo\n").unwrap();
        let run = "posse -p change --permission-mode acceptEdits";
        // `script` gives posse a terminal, and writes what it prints into a file.
        let lines = format!(
            "more={more}; export -f posse; export more; script -qec '{run}' typed; echo code $?"
        );
        let terminal = Terminal::with(&project, (80, 30), &lines);
        terminal.sees("code 0");
        let written = fs::read_to_string(project.file("typed")).unwrap();
        assert!(written.contains("The sign is wrong"), "{written}");
        // Without colours lines are still drawn in place, which a dumb terminal cannot do.
        let is_styled = written.split('\u{1b}').skip(1).any(|after| {
            let end = after.find(|c: char| c.is_ascii_alphabetic());
            end.is_some_and(|end| after[end..].starts_with('m'))
        });
        assert!(!is_styled, "{more}: {written}");
        let is_drawn = written.contains("\u{1b}[J");
        assert_eq!(is_drawn, more == "NO_COLOR=1", "{more}: {written}");
    }
}

/// Starts an agent, and prints code slowly while that one works.
const PRINTS: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "Agent", input = { description = "find callers", prompt = "Who calls step?", subagent_type = "Explore", run_in_background = true } }]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
tokens_per_s = 20
reply = [{ text = "This is the code:\n\n```sh\necho one\necho two\necho three\necho four\necho five\necho six\n```\n\nThat is all of it." }]
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
delay_ms = 600
reply = [{ text = "Let me look." }, { tool = "Grep", input = { pattern = "fn step" } }]
[[rule]]
reply = [{ text = "Done." }]
"#;

#[test]
fn lines_about_others_do_not_tear_code_that_arrives() {
    let project = Project::new("terminal-torn", PRINTS);
    let terminal = Terminal::start(&project, "-p look");
    let screen = terminal.sees("code 0");
    assert!(
        screen.contains("· find callers: Grep fn step\n"),
        "{screen}"
    );
    let code = "echo one\necho two\necho three\necho four\necho five\necho six\n";
    assert!(screen.contains(code), "{screen}");
}

#[test]
fn what_to_do_next_is_broken_at_words_and_can_be_pasted() {
    let project = Project::new("terminal-narrow", "");
    let lines = "posse -p hello; posse -p x --base-url nonsense; echo code $?";
    let terminal = Terminal::with(&project, (50, 20), lines);
    terminal.sees("code 1");
    let rows = terminal.tmux.run(&["capture-pane", "-p", "-J", "-t", "%0"]);
    let pasted = rows
        .lines()
        .find_map(|line| line.strip_prefix("continue with: "));
    let pasted: Vec<&str> = pasted.unwrap().split(' ').collect();
    assert_eq!((pasted.len(), pasted[2]), (4, "--resume"), "{rows}");
    let hint = rows.lines().skip_while(|line| !line.starts_with("hint: "));
    let hint: Vec<&str> = hint.take(2).map(str::trim).collect();
    assert_eq!(
        hint,
        [
            "hint: a base URL looks like http://127.0.0.1:4141",
            "or https://host"
        ]
    );
}

#[test]
fn remarks_about_definitions_are_broken_at_words() {
    let project = Project::new("terminal-remarks", "");
    std::fs::create_dir_all(project.file(".posse/teams")).unwrap();
    let team =
        "description = \"d\"\n[roles.dev]\nprompt = \"p\"\npermission_mode = \"acceptEdits\"\n";
    std::fs::write(project.file(".posse/teams/few.toml"), team).unwrap();
    let lines = "posse team check few; echo code $?";
    let screen = Terminal::with(&project, (60, 20), lines).sees("code 0");
    let said: Vec<&str> = screen.lines().collect();
    assert_eq!(
        said[..2],
        [
            ".posse/teams/few.toml: note: role dev: `acceptEdits` is more",
            "  than the session's mode allows, so that its members work",
        ],
        "{screen}"
    );
}

/// Thinks for a while, and answers.
const THINKS: &str = r#"
[[rule]]
delay_ms = 2500
reply = [{ text = "It is done." }]
"#;

// proves UI-13 (part: no colour)
#[test]
fn a_line_shows_that_work_goes_on_until_there_is_text() {
    let project = Project::new("terminal-alive", THINKS);
    for (name, lines, is_shown) in [
        ("colours", "posse -p wait; echo code $?", true),
        (
            "no colours",
            "more=NO_COLOR=1; posse -p wait; echo code $?",
            true,
        ),
        ("dumb", "more=TERM=dumb; posse -p wait; echo code $?", false),
        (
            "a pipe",
            "posse -p wait 2>err; cat err; echo code $?",
            false,
        ),
    ] {
        let terminal = Terminal::with(&project, (60, 20), lines);
        if is_shown {
            terminal.sees(" working · 1s");
        }
        let screen = terminal.sees("code 0");
        let history = ["capture-pane", "-p", "-J", "-S", "-", "-t", "%0"];
        let all = terminal.tmux.run(&history);
        assert!(!all.contains("working"), "{name}: {all}");
        assert!(screen.contains("It is done."), "{name}: {screen}");
    }
}

/// Waits for a file, and then asks.
const LATER: &str = r#"
[[rule]]
when.tool = "waited"
reply = [{ tool = "Bash", input = { command = "touch made" } }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It is done." }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "sh wait.sh" } }]
"#;

// proves QU-08 (part: typed before; no default)
#[test]
fn what_is_typed_before_and_what_is_unclear_is_no_answer() {
    let project = Project::new("terminal-before", LATER);
    let wait = "echo begun >begun; until [ -e go ]; do sleep 0.02; done; echo waited";
    fs::write(project.file("wait.sh"), wait).unwrap();
    // Where nothing is redrawn, what is typed stays.
    let lines = "more=TERM=dumb; posse -p touch --allowedTools 'Bash(sh wait.sh)'; echo code $?";
    let terminal = Terminal::with(&project, (120, 40), lines);
    terminal.sees("→ $ sh wait.sh");
    terminal.types(&["y", "y", "Enter"]);
    terminal.sees("yy");
    fs::write(project.file("go"), "").unwrap();
    terminal.sees(KEYS);
    for (times, unclear) in [(2, "Enter"), (3, "Up"), (4, "x"), (5, "Space"), (6, "1")] {
        terminal.types(&[unclear]);
        terminal.sees_times(KEYS, times);
    }
    assert!(!terminal.has_made());
    terminal.types(&["Y"]);
    let screen = terminal.sees("code 0");
    assert!(
        screen.contains("→ allowed once") && terminal.has_made(),
        "{screen}"
    );
}

// proves QU-08 (part: interrupt)
#[test]
fn ctrl_c_at_a_question_interrupts_and_leaves_the_terminal_as_it_was() {
    let project = Project::new("terminal-interrupt", TOUCHES);
    let lines = "posse -p touch; echo code $?; stty -a | grep -ow -e '-*icanon' -e '-*echo'";
    let terminal = Terminal::with(&project, (120, 40), lines);
    terminal.sees(KEYS);
    terminal.types(&["C-c"]);
    let screen = terminal.sees("\necho\n");
    assert!(
        screen.contains("code 130") && screen.contains("\nicanon\n"),
        "{screen}"
    );
    assert!(!terminal.has_made(), "{screen}");
    assert_eq!(succeed(&project, &["requests", "list"]), "");
}

// proves QU-08 (part: suspended)
#[test]
fn a_question_is_still_there_after_the_job_was_stopped() {
    let project = Project::new("terminal-stopped", TOUCHES);
    let lines = "set -m; posse -p touch; echo stopped; read line; fg; echo code $?";
    let terminal = Terminal::with(&project, (120, 40), lines);
    terminal.sees(KEYS);
    terminal.types(&["C-z"]);
    terminal.sees("\nstopped");
    // It is the shell that reads now.
    terminal.types(&["y", "Enter"]);
    // Who comes back is asked again.
    terminal.sees_times(KEYS, 2);
    assert!(!terminal.has_made());
    terminal.types(&["y"]);
    terminal.sees("code 0");
    assert!(terminal.has_made());
}

// proves QU-08 (part: nobody)
#[test]
fn nobody_is_asked_who_is_not_there() {
    for (name, lines) in [
        ("deny", "posse -p touch --on-question deny; echo code $?"),
        ("ci", "more=CI=true; posse -p touch; echo code $?"),
        (
            "background",
            "set -m; posse -p touch & wait $!; echo code $?",
        ),
        (
            "detached",
            "setsid -w bash -c \"$(declare -f posse); posse -p touch\"; echo code $?",
        ),
        ("piped", "posse -p touch 2>err; echo code $?"),
    ] {
        let project = Project::new(&format!("terminal-{name}"), TOUCHES);
        let terminal = Terminal::with(&project, (120, 40), lines);
        let screen = terminal.sees("code 0");
        assert!(!screen.contains("allow once"), "{name}: {screen}");
        assert!(!terminal.has_made(), "{name}");
    }
}

// proves QU-08 (part: elsewhere)
#[test]
fn an_answer_from_elsewhere_is_told_in_a_narrow_window() {
    let project = Project::new("terminal-elsewhere", TOUCHES);
    let lines = "posse -p touch; echo code $?";
    let terminal = Terminal::with(&project, (40, 24), lines);
    terminal.sees(KEYS);
    let asked = question(&project);
    succeed(&project, &["requests", "answer", id(&asked), "allow"]);
    let screen = terminal.sees("code 0");
    assert!(screen.contains("→ needs no answer any more"), "{screen}");
    assert!(terminal.has_made());
}

/// A sub-agent asks about a command, and the main agent about a choice.
const BELOW: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "Touch it.", name = "scout" } }]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [{ tool = "AskUserQuestion", input = { questions = [{ question = "Which?", header = "Kind", options = [{ label = "Red", description = "r" }, { label = "Blue", description = "b" }], multiSelect = false }] } }]
[[rule]]
when.agent = "re:^/main$"
reply = [{ text = "Heard: {{tool}}" }]
[[rule]]
when.tool = "re:."
reply = [{ text = "It is done." }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "touch made" } }]
"#;

// proves PE-05 (part: terminal)
// proves PE-08 (part: the terminal)
#[test]
fn sub_agents_and_choices_are_answered_at_the_terminal() {
    let project = Project::new("terminal-below", BELOW);
    let terminal = Terminal::start(&project, "-p look --allowedTools Agent");
    let screen = terminal.sees(KEYS);
    assert!(
        screen.contains("\n? scout: Bash\n  │ touch made\n"),
        "{screen}"
    );
    terminal.types(&["y"]);
    let screen = terminal.sees("- no answer");
    assert!(
        terminal.has_made() && screen.contains("  │ 2  Blue: b\n"),
        "{screen}"
    );
    terminal.types(&["Enter"]);
    terminal.sees_times("- no answer", 2);
    terminal.types(&["2", "Enter"]);
    let screen = terminal.sees("code 0");
    assert!(
        screen.contains("→ answered") && screen.contains("→ Blue"),
        "{screen}"
    );
}

/// Hands in a plan.
const PLANS: &str = r#"
[[rule]]
when.tool = "re:."
reply = [{ text = "Heard: {{tool}}" }]
[[rule]]
reply = [{ tool = "ExitPlanMode", input = { plan = "First the lexer." } }]
"#;

// proves QU-08 (part: plans)
#[test]
fn a_plan_is_approved_with_a_key() {
    let project = Project::new("terminal-plan", PLANS);
    let terminal = Terminal::start(&project, "-p plan --permission-mode plan");
    let screen = terminal.sees("y approve · e approve, and edit without asking");
    assert!(screen.contains("  │ First the lexer.\n"), "{screen}");
    terminal.types(&["e"]);
    let screen = terminal.sees("code 0");
    assert!(screen.contains("→ approved, with acceptEdits"), "{screen}");
}
