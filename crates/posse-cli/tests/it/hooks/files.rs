//! Hooks of files: those that hooks watch, and settings that change while posse runs.

use std::fs::{self, File};
use std::process::Child;

use serde_json::{Value, json};

use crate::binary::{Project, stderr};
use crate::definitions::write;
use crate::team::succeed;
use crate::team_run::until;

const OF_USER: &str = "../home/.claude/settings.json";
const FLAGS: [&str; 2] = ["--permission-mode", "bypassPermissions"];

/// A hook that runs a command.
pub(super) fn hook(matcher: &str, command: &str) -> Value {
    json!({"matcher": matcher, "hooks": [{"type": "command", "command": command}]})
}

/// A command that appends its input to a file, a line each.
pub(super) fn logs(file: &str) -> String {
    format!("tr -d '\\n' >> {file}; echo >> {file}")
}

/// The inputs that hooks have logged.
pub(super) fn logged(project: &Project, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(project.file(file)).unwrap_or_default();
    let lines = text.lines();
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// A command of the model that waits until hooks have logged this.
fn awaits(words: &str, file: &str) -> String {
    format!("timeout 60 sh -c 'until grep -q {words} {file}; do sleep 0.1; done' 2>/dev/null")
}

/// A script in which the model's calls are these commands, in order, and then an answer.
pub(super) fn commands(all: &[String]) -> String {
    let rule = |(turn, command): (usize, &String)| {
        let command = json!(command);
        format!(
            "[[rule]]\nwhen.turn = {turn}\nwhen.agent = \"/main\"\n\
             reply = [{{ tool = \"Bash\", input = {{ command = {command} }} }}]\n",
            turn = turn + 1
        )
    };
    let rules: String = all.iter().enumerate().map(rule).collect();
    format!("{rules}[[rule]]\nreply = [{{ text = \"Done.\" }}]\n")
}

fn read(project: &Project, file: &str) -> String {
    fs::read_to_string(project.file(file)).unwrap_or_default()
}

/// Writes a file anew, and moves it to its place.
fn replaces(text: &str, file: &str) -> String {
    format!("echo '{text}' > ../draft.env && mv ../draft.env {file}")
}

// proves HK-01 (part: files)
// proves HK-14
#[test]
fn hooks_are_told_of_changed_files_and_set_variables() {
    let sub_agent = r#"
[[rule]]
when.agent = "re:^/main/"
when.turn = 1
reply = [{ tool = "Bash", input = { command = "echo $START $A > ../of_sub_agent" } }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Looked." }]
[[rule]]
when.agent = "/main"
when.turn = 3
reply = [{ tool = "Agent", input = { description = "look", prompt = "Look at the variables." } }]
"#;
    let steps = [
        format!(
            "echo $START > ../at_start; {}; {}",
            replaces("A=1", ".env"),
            awaits("add", "../log")
        ),
        format!(
            "echo $A > ../after_add; {}; {}",
            replaces("A=22", ".env"),
            awaits("change", "../log")
        ),
        "a sub-agent looks".to_owned(),
        format!(
            "{}; {}",
            replaces("x", "other.txt"),
            awaits("add", "../others")
        ),
        format!(
            "echo $A$OTHER > ../after_other; rm .env; {}",
            awaits("unlink", "../log")
        ),
        "echo $START$A > ../after_unlink".to_owned(),
    ];
    let script = format!("{sub_agent}{}", commands(&steps));
    let project = Project::new("hooks-files", &script);
    let exports = "test ! -e .env || sed 's/^/export /' .env > \"$CLAUDE_ENV_FILE\"";
    let other = "echo export OTHER=other > \"$CLAUDE_ENV_FILE\"";
    let hooks = json!({"hooks": {
        "SessionStart": [hook("", "echo export START=begun A=0 > \"$CLAUDE_ENV_FILE\"")],
        "FileChanged": [
            hook(".env|.envrc", &format!("{exports}; {}", logs("../log"))),
            hook("other.txt", &format!("{other}; {}", logs("../others"))),
        ],
    }});
    write(&project, OF_USER, &hooks.to_string());
    succeed(&project, &[&["-p", "go"][..], &FLAGS].concat());
    let log = logged(&project, "../log");
    let events: Vec<_> = log.iter().map(|it| &it["event"]).collect();
    assert_eq!(events, ["add", "change", "unlink"]);
    let path = project.file("").canonicalize().unwrap().join(".env");
    for input in &log {
        assert_eq!(input["hook_event_name"], "FileChanged");
        assert_eq!(input["file_path"], json!(path));
        assert!(input["session_id"].is_string() && input.get("agent_id").is_none());
    }
    assert_eq!(logged(&project, "../others").len(), 1);
    assert_eq!(read(&project, "../at_start"), "begun\n");
    assert_eq!(read(&project, "../after_add"), "1\n");
    assert_eq!(read(&project, "../of_sub_agent"), "begun 22\n");
    assert_eq!(read(&project, "../after_other"), "22other\n");
    assert_eq!(read(&project, "../after_unlink"), "begun0\n");
}

// proves HK-01 (part: files)
#[test]
fn hooks_name_more_files_to_watch() {
    let grows = |file: &str| {
        let awaits = format!("until grep -q {file} ../log; do echo x >> {file}; sleep 0.3; done");
        format!("timeout 60 sh -c '{awaits}' 2>/dev/null")
    };
    let steps = [grows("data/list.txt"), grows("later.txt")];
    let project = Project::new("hooks-watch", &commands(&steps));
    let says = |event: &str, path: &str| {
        let own = json!({"hookEventName": event, "watchPaths": [path]});
        format!("echo '{}'", json!({ "hookSpecificOutput": own }))
    };
    let later = project.file("later.txt").display().to_string();
    let answers = format!("{}; {}", logs("../log"), says("FileChanged", &later));
    let hooks = json!({"hooks": {
        "SessionStart": [hook("", &says("SessionStart", "data/list.txt"))],
        "FileChanged": [hook("", &answers)],
    }});
    write(&project, OF_USER, &hooks.to_string());
    write(&project, "data/other.txt", "x");
    succeed(&project, &[&["-p", "go"][..], &FLAGS].concat());
    let log = logged(&project, "../log");
    assert_eq!(log[0]["event"], "add");
    let path = |input: &Value| input["file_path"].as_str().unwrap().to_owned();
    assert!(path(&log[0]).ends_with("/work/data/list.txt"), "{log:?}");
    assert_eq!(path(log.last().unwrap()), later);
}

#[test]
fn a_hook_of_a_file_does_not_outlive_the_run() {
    let waits = "timeout 60 sh -c 'until test -s ../pid; do sleep 0.1; done' 2>/dev/null";
    let steps = [format!("{}; {waits}", replaces("A=1", ".env"))];
    let project = Project::new("hooks-file-end", &commands(&steps));
    let hooks = json!({"hooks": {"FileChanged": [
        hook(".env", "echo $$ > ../pid; exec sleep 1000"),
    ]}});
    write(&project, OF_USER, &hooks.to_string());
    assert_eq!(
        succeed(&project, &[&["-p", "go"][..], &FLAGS].concat()),
        "Done.\n"
    );
    let pid = read(&project, "../pid");
    let process = std::path::Path::new("/proc").join(pid.trim());
    assert!(!pid.is_empty() && !process.exists());
}

#[test]
fn files_that_are_not_watched_are_told() {
    let project = Project::new("hooks-many-files", "");
    let list = "seq -f '\"f%g\"' 1 1100 | paste -sd,";
    let begins = r#"{"hookSpecificOutput": {"hookEventName": "SessionStart", "watchPaths": ["#;
    let says = format!("echo '{begins}'; {list}; echo ']}}}}'");
    let hooks = json!({"hooks": {
        "SessionStart": [hook("", &says)],
        "FileChanged": [hook("", "true")],
    }});
    write(&project, OF_USER, &hooks.to_string());
    let output = project.run(&["-p", "hello"]);
    let told = "hooks: more than 1000 files are to be watched; the others are not";
    assert_eq!(stderr(&output).matches(told).count(), 1);
}

/// A run whose progress is in files.
struct Running {
    child: Child,
}

impl Running {
    fn start(project: &Project) -> Self {
        let errors = File::create(project.file("../stderr")).unwrap();
        let arguments = [&["-p", "go"][..], &FLAGS].concat();
        let mut posse = project.posse(&arguments);
        let child = posse.stderr(errors).spawn().unwrap();
        Self { child }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// proves HK-01 (part: files)
#[test]
fn a_hook_keeps_a_change_of_settings_from_counting() {
    let steps = [
        format!("touch ../begun; {}", awaits("1", "../go")),
        "echo forbidden > ../made1".to_owned(),
        awaits("2", "../go"),
        "echo forbidden > ../made2".to_owned(),
    ];
    let project = Project::new("hooks-config", &commands(&steps));
    let guard = "! grep -q forbidden || { echo not that >&2; exit 2; }";
    let decides = format!(
        "{}; test -e ../agreed || {{ echo not now >&2; exit 2; }}",
        logs("../log")
    );
    let decides = hook("user_settings", &decides);
    let guarded = json!({"hooks": {
        "PreToolUse": [hook("Bash", guard)],
        "ConfigChange": [decides, hook("project_settings", "exit 2")],
    }});
    write(&project, OF_USER, &guarded.to_string());
    let mut run = Running::start(&project);
    until("a first call", || project.file("../begun").exists());
    write(&project, OF_USER, "{}");
    until("the refusal", || {
        let told = "settings.json does not count: a hook refuses it: not now";
        read(&project, "../stderr").contains(told)
    });
    write(&project, "../go", "1");
    until("the second call", || {
        read(&project, "../stderr").contains("not that") || { project.file("../made1").exists() }
    });
    write(&project, "../agreed", "");
    write(&project, OF_USER, "{\"hooks\": {}}");
    until("the change", || {
        read(&project, "../stderr").contains("hooks: - PreToolUse")
    });
    write(&project, "../go", "12");
    assert!(run.child.wait().unwrap().success());
    assert!(!project.file("../made1").exists());
    assert_eq!(read(&project, "../made2"), "forbidden\n");
    let log = logged(&project, "../log");
    let asked: Vec<_> = log.iter().map(|it| &it["source"]).collect();
    assert_eq!(asked, ["user_settings"; 2]);
    let path = project.file(OF_USER).canonicalize().unwrap();
    for input in &log {
        assert_eq!(input["hook_event_name"], "ConfigChange");
        let file = input["file_path"].as_str().unwrap();
        assert_eq!(fs::canonicalize(file).unwrap(), path);
    }
}
