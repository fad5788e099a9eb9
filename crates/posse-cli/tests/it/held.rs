//! Commands of agents in the sandbox that posse makes for them: what they may change, what is asked
//! when something is refused, and what they do not see.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{Project, stderr, stdout};
use crate::turns;

/// How long a question or an end may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A project whose agent runs one command and says what it was told.
pub(crate) fn project(name: &str, input: &str) -> Project {
    let script = format!(
        "[[rule]]\nwhen.turn = 1\nreply = [{{ tool = \"Bash\", input = {input} }}]\n\
         [[rule]]\nreply = [{{ text = \"{{{{tool}}}}\" }}]\n"
    );
    Project::new(&format!("held-{name}"), &script)
}

pub(crate) fn runs(name: &str, command: &str) -> Project {
    project(name, &format!("{{ command = '''{command}''' }}"))
}

/// Runs the agent in the sandbox and returns what it was told.
pub(crate) fn told(project: &Project, arguments: &[&str]) -> String {
    let arguments = [&["-p", "go"], arguments].concat();
    let output = project
        .posse(&arguments)
        .env("POSSE_SANDBOX", "required")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// An agent that waits for a person.
pub(crate) struct Asking<'a> {
    project: &'a Project,
    child: Option<Child>,
}

impl<'a> Asking<'a> {
    pub(crate) fn new(project: &'a Project, arguments: &[&str]) -> Self {
        let arguments = [&["-p", "go", "--on-question", "wait"], arguments].concat();
        let child = project
            .posse(&arguments)
            .env("POSSE_SANDBOX", "required")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            project,
            child: Some(child),
        }
    }

    /// Waits for the question.
    pub(crate) fn question(&mut self) -> Value {
        let since = Instant::now();
        loop {
            let listed = self.project.run(&["requests", "list", "--json"]);
            if let Some(line) = stdout(&listed).lines().next() {
                return serde_json::from_str(line).unwrap();
            }
            assert!(since.elapsed() < PATIENCE, "no question");
            let child = self.child.take_if(|it| it.try_wait().unwrap().is_some());
            if let Some(ended) = child {
                panic!("no question: {:?}", ended.wait_with_output().unwrap());
            }
        }
    }

    /// Answers one of several.
    pub(crate) fn say(&self, question: &Value, answer: &[&str]) {
        let id = question["request_id"].as_str().unwrap();
        let answered = self
            .project
            .run(&[&["requests", "answer", id], answer].concat());
        assert!(answered.status.success(), "{}", stderr(&answered));
    }

    /// Answers the last one and returns what the agent was told.
    pub(crate) fn answer(mut self, question: &Value, answer: &[&str]) -> String {
        self.say(question, answer);
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let left = self.project.run(&["requests", "list", "--json"]);
        assert_eq!(stdout(&left), "");
        stdout(&output)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

// proves PE-10
#[test]
fn a_command_that_nobody_was_asked_about_changes_what_its_mode_lets_file_tools_change() {
    let command = "touch made; python3 -c 'open(\"by-python\", \"w\")'; touch ../beside; ls";
    let table: [(&str, &[&str], bool); 6] = [
        ("plan", &[], false),
        ("default", &[], false),
        ("dontAsk", &[], false),
        ("acceptEdits", &[], true),
        ("default", &["--allowedTools", "Bash"], true),
        ("plan", &["--allowedTools", "Bash"], false),
    ];
    for (mode, more, writes) in table {
        let project = runs("mode", command);
        let told = told(&project, &[&["--permission-mode", mode], more].concat());
        for name in ["made", "by-python"] {
            let is_made = project.file(name).exists();
            assert_eq!(is_made, writes, "{mode} {more:?}: {told}");
            assert_eq!(told.lines().any(|line| line == name), writes, "{told}");
        }
        assert!(!project.file("../beside").exists(), "{mode}");
        // To open the directory above would open far more.
        let words = "beside from being written: it would have to run outside)";
        assert!(told.contains(words), "{mode}: {told}");
    }
}

// proves PE-12 (part: told; once; nothing by itself)
#[test]
fn what_the_sandbox_refuses_is_asked_and_runs_again_once_it_is_allowed() {
    let project = runs(
        "again",
        "echo x >>/tmp/tries; mkdir target && wc -l </tmp/tries",
    );
    let mut asking = Asking::new(&project, &[]);
    let question = asking.question();
    let target = project.file("target").canonicalize().err();
    assert!(target.is_some(), "it must not have been made");
    let why = question["why"].as_str().unwrap();
    let path = project.file("").canonicalize().unwrap().join("target");
    let words = format!("to write {}", path.display());
    assert!(
        why.contains("the sandbox refused") && why.contains(&words),
        "{why}"
    );
    let told = asking.answer(&question, &["allow"]);
    assert_eq!(told, "2\n");
    assert!(project.file("target").is_dir());
}

// proves PE-12 (part: told)
#[test]
fn a_refusal_is_noticed_behind_a_pipe() {
    let project = runs("pipe", "mkdir target 2>&1 | tail -1");
    let mut asking = Asking::new(&project, &[]);
    let question = asking.question();
    assert_eq!(asking.answer(&question, &["allow"]), "(no output)\n");
    assert!(project.file("target").is_dir());
    // With nobody there it is told.
    std::fs::remove_dir(project.file("target")).unwrap();
    let told = told(&project, &[]);
    assert!(told.contains("(the sandbox refused it to write "), "{told}");
}

// proves PE-12 (part: no)
#[test]
fn a_refusal_that_a_person_does_not_lift_is_told_with_what_was_printed() {
    let project = runs("no", "echo before; mkdir target");
    let mut asking = Asking::new(&project, &[]);
    let question = asking.question();
    let told = asking.answer(&question, &["deny", "-m", "not now"]);
    assert!(
        told.contains("before\n") && told.contains("Read-only file system"),
        "{told}"
    );
    assert!(told.contains("not now"), "{told}");
    assert!(!project.file("target").exists());
}

// proves PE-12 (part: session)
#[test]
fn what_a_person_always_allows_is_not_refused_again() {
    let call = "reply = [{ tool = \"Bash\", input = { command = \"touch one && echo did\" } }]";
    let script = format!(
        "[[rule]]\nwhen.turn = 1\n{call}\n[[rule]]\nwhen.turn = 2\n{call}\n\
         [[rule]]\nreply = [{{ text = \"{{{{tool}}}}\" }}]\n"
    );
    let project = Project::new("held-session", &script);
    let mut asking = Asking::new(&project, &[]);
    let question = asking.question();
    let id = question["request_id"].as_str().unwrap();
    let shown = stdout(&project.run(&["requests", "show", id]));
    assert!(shown.contains("1  Bash(touch one)"), "{shown}");
    assert!(shown.contains("2  Outside(touch one)"), "{shown}");
    // The second call is not asked about.
    let told = asking.answer(&question, &["--always=session"]);
    assert_eq!(told, "did\n");
    assert!(project.file("one").is_file());
}

// proves PE-12 (part: outside)
#[test]
fn outside_the_sandbox_a_command_runs_only_if_a_person_or_a_rule_says_so() {
    let input =
        "{ command = \"touch ../beside && echo out ${POSSE_CONFINED:-free}\", outside = true }";
    let project = project("outside", input);
    let denied = told(
        &project,
        &["--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
    );
    assert!(
        denied.contains("it would run outside the sandbox"),
        "{denied}"
    );
    assert!(!project.file("../beside").exists());
    let mut asking = Asking::new(&project, &["--permission-mode", "acceptEdits"]);
    let question = asking.question();
    let told_ = asking.answer(&question, &["allow"]);
    assert_eq!(told_, "out free\n");
    assert!(project.file("../beside").exists());
    // Inside, though an agent may write everywhere.
    std::fs::remove_file(project.file("../beside")).unwrap();
    let settings = r#"{"sandbox": {"allowOutside": false}}"#;
    let never = told(&project, &["--settings", settings]);
    assert!(never.contains("no command runs outside"), "{never}");
    let command = "touch ../beside && echo out ${POSSE_CONFINED:-free}";
    let plain = runs("ruled", command);
    let settings = serde_json::json!({"sandbox": {"outside": [command]}}).to_string();
    assert_eq!(told(&plain, &["--settings", &settings]), "out free\n");
    assert!(plain.file("../beside").exists());
}

// proves PE-09 (part: deny rules)
#[test]
fn a_deny_rule_holds_for_programs() {
    let project = runs(
        "deny",
        "python3 -c 'print(open(\"sec\" + \"ret.txt\").read())'; python3 -c 'open(\"ke\" + \"pt.txt\", \"a\").write(\"x\")'; echo end",
    );
    std::fs::write(project.file("secret.txt"), "TOPSECRET").unwrap();
    std::fs::write(project.file("kept.txt"), "kept").unwrap();
    for (mode, deny) in [
        ("acceptEdits", ["Read(./secret.txt)", "Edit(kept.txt)"]),
        ("bypassPermissions", ["Read(*cret.txt)", "Edit(./kept.*)"]),
    ] {
        let deny = deny.join(",");
        let told = told(
            &project,
            &["--permission-mode", mode, "--disallowedTools", &deny],
        );
        assert!(
            !told.contains("TOPSECRET") && told.contains("end"),
            "{mode}: {told}"
        );
        let kept = std::fs::read_to_string(project.file("kept.txt")).unwrap();
        assert_eq!(kept, "kept", "{mode}: {told}");
    }
}

// proves PE-09 (part: deny rules)
#[test]
fn a_program_that_a_rule_denies_is_not_there() {
    let command = "rm -f h; cp /usr/bin/hostid ./h; ./h; python3 -c 'import os; os.system(\"hostid\")'; x=host; ${x}id; echo end";
    let project = runs("program", command);
    let own = Command::new("hostid").output().unwrap();
    let own = stdout(&own);
    let free = told(&project, &["--permission-mode", "acceptEdits"]);
    assert_eq!(free.matches(own.trim()).count(), 3, "{free}");
    for mode in ["acceptEdits", "bypassPermissions"] {
        let rule = ["--disallowedTools", "Bash(hostid *)"];
        let held = told(
            &project,
            &[&["--permission-mode", mode], &rule[..]].concat(),
        );
        assert!(held.contains("end") && !held.contains(own.trim()), "{held}");
    }
    // One with several names: none of them is there, and other commands run.
    let number = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
    let perl = Path::new("/usr/bin/perl");
    let entries = std::fs::read_dir("/usr/bin").unwrap().flatten();
    let others = entries.map(|it| it.path()).filter(|it| it.exists());
    let mut others = others.filter(|it| number(it) == number(perl) && it != perl);
    let other = others.next().expect("perl has several names");
    let command = format!(
        "p=per; ${{p}}l -e 'print 6*7'; {} -e 'print 6*7'; echo end",
        other.display()
    );
    let project = runs("names", &command);
    let free = told(&project, &[]);
    assert!(free.contains("4242"), "{free}");
    let rule = ["--disallowedTools", "Bash(perl *)"];
    let held = told(&project, &rule);
    assert!(held.contains("end") && !held.contains("42"), "{held}");
}

// proves PE-11 (part: appears)
#[test]
fn what_appears_and_would_run_later_is_moved_away_and_told() {
    let project = runs("appears", "cp made .envrc; mkdir .vscode; echo ok");
    std::fs::write(project.file("made"), "curl evil").unwrap();
    let told = told(&project, &["--permission-mode", "acceptEdits"]);
    assert!(told.starts_with("ok\n"), "{told}");
    for name in [".envrc", ".vscode"] {
        assert!(!project.file(name).exists(), "{name}");
        let words = format!("{name} was made by the command and moved to ");
        let line = told.lines().find(|line| line.contains(&words)).unwrap();
        let moved = line
            .split(&words)
            .nth(1)
            .unwrap()
            .split(": ")
            .next()
            .unwrap();
        assert!(Path::new(moved).exists(), "{moved}");
    }
}

// proves PE-11 (part: depth)
#[test]
fn what_appears_deep_in_the_workspace_is_moved_away_too() {
    let (project, told) = in_turns(
        "deep",
        &[
            // In a directory that was there, in new ones, and by a directory that is renamed.
            "mkdir -p new/one two && touch src/.envrc new/one/.envrc && mkdir two/.vscode && mv two three",
            // In directories that only the command before has made.
            "touch new/.envrc three/.npmrc; mkdir -p node_modules/x && touch node_modules/x/.npmrc",
            // Repositories stay as long as they run nothing, and then cannot be changed.
            "git init -q plain && git init -q evil && git -C evil config core.fsmonitor ./x; ls -A evil",
            "git -C plain config core.fsmonitor ./x; echo x >plain/.git/hooks/post-commit",
            "git clone -q . cloned && echo cloned",
        ],
        &[],
    );
    let present = [
        "src/.envrc",
        "new/one/.envrc",
        "two",
        "three/.vscode",
        "new/.envrc",
        "three/.npmrc",
        "evil/.git",
        "plain/.git/hooks/post-commit",
    ];
    let present = present.into_iter().filter(|it| project.file(it).exists());
    assert_eq!(present.collect::<Vec<_>>(), [""; 0]);
    let config = std::fs::read_to_string(project.file("plain/.git/config")).unwrap();
    assert!(!config.contains("fsmonitor"), "{config}");
    for kept in ["three", "node_modules/x/.npmrc", "cloned/.git/HEAD"] {
        assert!(project.file(kept).exists(), "{kept}");
    }
    assert!(told.contains("cloned"), "{told}");
}

// proves PE-16
#[test]
fn a_command_sees_none_of_posses_secrets_and_cannot_speak_for_the_user() {
    let posse = env!("CARGO_BIN_EXE_posse");
    let store = Project::place("held-secrets").join("home/posse.db");
    let store = store.display();
    let command = format!(
        "env; ls -la $POSSE_HOME $HOME; cat $POSSE_HOME/posse.db | wc -c; find $POSSE_HOME -name '*.sock'; \
         tr '\\0' '\\n' </proc/*/environ; ps ax | wc -l; p={posse}; $p requests list; $p sessions list; \
         python3 -c \"import sqlite3; sqlite3.connect('{store}').execute('delete from entry')\"; echo end"
    );
    let project = runs("secrets", &command);
    let output = project
        .posse(&[
            "-p",
            "go",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash",
        ])
        .env("POSSE_SANDBOX", "required")
        .env("ANTHROPIC_API_KEY", "sk-ant-TOPSECRET")
        .env("GITHUB_TOKEN", "TOPSECRET")
        .output()
        .unwrap();
    let told = stdout(&output);
    assert!(told.contains("end"), "{told} {}", stderr(&output));
    assert!(!told.contains("TOPSECRET"), "{told}");
    assert!(!told.contains(".sock\n"), "{told}");
    assert!(!told.contains("go"), "no session is seen: {told}");
    assert!(told.contains("sqlite3.OperationalError"), "S084: {told}");
    assert!(Path::new(&store.to_string()).exists());
    let sessions = stdout(&project.run(&["sessions", "list"]));
    assert!(sessions.contains("go"), "{sessions}");
}

// proves PE-14 (part: checks)
#[test]
fn checks_of_tasks_are_held_too() {
    let check = "ls; touch ../beside made; test -e made || test -e listed";
    let script = format!(
        r#"
[[rule]]
when.turn = 1
reply = [{{ tool = "TaskCreate", input = {{ subject = "s", description = "d", check = "{check}" }} }}]
[[rule]]
when.turn = 2
reply = [{{ tool = "TaskUpdate", input = {{ taskId = "1", status = "completed" }} }}]
[[rule]]
reply = [{{ text = "{{{{tool}}}}" }}]
"#
    );
    for (mode, writes) in [("default", false), ("acceptEdits", true)] {
        let project = Project::new("held-check", &script);
        std::fs::write(project.file("listed"), "").unwrap();
        let told = told(&project, &["--permission-mode", mode]);
        assert!(told.contains("Updated"), "{mode}: {told}");
        assert_eq!(project.file("made").exists(), writes, "{mode}: {told}");
        assert!(!project.file("../beside").exists(), "{mode}");
    }
}

// proves PE-14 (part: skills)
#[test]
fn commands_of_skills_are_held_too() {
    let project = Project::new("held-skill", "");
    let directory = project.file(".posse/skills/look");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(project.file("listed"), "").unwrap();
    let text = "---\nname: look\ndescription: looks\n---\nIt says !`touch made; ls`.\n";
    std::fs::write(directory.join("SKILL.md"), text).unwrap();
    let server = crate::crash::serve("[[rule]]\nreply = [{ text = \"done\" }]\n");
    let output = project
        .posse(&["-p", "/look"])
        .env("POSSE_SANDBOX", "required")
        .env("ANTHROPIC_BASE_URL", server.url())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let requests = server.requests();
    let body = String::from_utf8_lossy(&requests[0].body);
    assert!(body.contains("listed") && body.contains("Read-only file system"));
    assert!(!project.file("made").exists());
}

// proves PE-09 (part: background)
#[test]
fn a_command_in_the_background_is_held_too() {
    let script = "[[rule]]\nwhen.turn = 1\nreply = [{ tool = \"Bash\", input = { command = \"touch made; touch ../beside; echo ended\", run_in_background = true } }]\n\
                  [[rule]]\nwhen.turn = 2\nreply = [{ text = \"waiting\" }]\n\
                  [[rule]]\nreply = [{ text = \"{{user}}\" }]\n";
    let project = Project::new("held-background", script);
    let told = told(&project, &["--permission-mode", "acceptEdits"]);
    assert!(
        told.contains("completed") || told.contains("waiting"),
        "{told}"
    );
    assert!(project.file("made").exists() && !project.file("../beside").exists());
}

// proves PE-13 (part: stored)
#[test]
fn how_strongly_each_command_was_held_can_be_read_later() {
    let outside = "echo out ${POSSE_CONFINED:-free}";
    let read = vec![(
        "Read".to_owned(),
        serde_json::json!({"file_path": "Cargo.toml"}),
    )];
    let bash = |command: &str| vec![("Bash".to_owned(), serde_json::json!({"command": command}))];
    let script = turns::script([bash("ls"), read, bash("echo in > in"), bash(outside)]);
    let project = Project::new("tiers", &script);
    let settings = serde_json::json!({"sandbox": {"outside": [outside]}}).to_string();
    let arguments = ["--permission-mode", "acceptEdits", "--settings", &settings];
    assert_eq!(told(&project, &arguments), "out free\n");
    let shown = project.run(&["sessions", "show", "--json"]);
    let shown: Value = serde_json::from_str(&stdout(&shown)).unwrap();
    let held = |seq: u64, tier: &str| serde_json::json!({"seq": seq, "ordinal": 0, "tier": tier});
    let expected = [held(1, "A"), held(5, "A"), held(7, "C")];
    assert_eq!(shown["commands"], serde_json::json!(expected));
    let shown = stdout(&project.run(&["sessions", "show"]));
    let counted = "commands: 2 in tier A, 1 without a sandbox";
    assert!(shown.contains(counted), "{shown}");
}

// proves PE-13 (part: doctor)
#[test]
fn doctor_says_what_holds_and_what_does_not() {
    let project = runs("doctor", "true");
    std::fs::create_dir_all(project.file("../home/.ssh")).unwrap();
    let list = |sandbox: &str, arguments: &[&str]| {
        let mut posse = project.posse(arguments);
        posse.env("POSSE_SANDBOX", sandbox).output().unwrap()
    };
    let output = list("auto", &["doctor", "--sandbox", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(found["tier"], "A", "{found}");
    assert!(found["command_ms"].as_f64().unwrap() > 0.0, "{found}");
    let hidden = found["hidden"].to_string();
    assert!(hidden.contains("home/.ssh"), "{hidden}");
    let plain = stdout(&list("auto", &["doctor", "--sandbox"]));
    assert!(
        plain.starts_with("tier      A: namespaces, Landlock "),
        "{plain}"
    );
    let checks = stdout(&list("auto", &["doctor"]));
    assert!(checks.contains("sandbox  tier A: namespaces"), "{checks}");
    let off = list("off", &["doctor", "--sandbox"]);
    assert_eq!(off.status.code(), Some(1));
    assert!(stdout(&off).contains("the sandbox is off in your settings"));
    let checks = stdout(&list("off", &["doctor"]));
    assert!(checks.contains("sandbox  off: rules decide"), "{checks}");
    let wrong = list("maybe", &["doctor", "--sandbox"]);
    assert!(stderr(&wrong).contains("`maybe` is none of auto, required and off"));
}

/// What an attack tries at once: to write beside the workspace, to read a secret, to change what git
/// runs, and to leave a file that other programs run. It may leave `made`.
const ATTACK: &str = "touch $BESIDE/beside; cat ~/.ssh/id; python3 -c 'open(\".git/config\", \"a\").write(\"x\")'; \
                      git config core.fsmonitor evil; cp made .envrc; touch made; cp made .envrc; echo ran";

// proves PE-09 (part: worktrees)
#[test]
fn an_attack_fails_from_wherever_it_comes() {
    let attack = format!("{{ command = '''{ATTACK}''' }}");
    let behind = attack.replace(" }", ", run_in_background = true }");
    let of_agent = format!(
        "[[rule]]\nwhen = {{ agent = \"re:^/main/.\", turn = 1 }}\nreply = [{{ tool = \"Bash\", input = {attack} }}]\n\
         [[rule]]\nwhen = {{ agent = \"re:^/main/.\" }}\nreply = [{{ text = \"{{{{tool}}}}\" }}]\n"
    );
    let starts = |more: &str| {
        format!(
            "{of_agent}[[rule]]\nwhen.turn = 1\nreply = [{{ tool = \"Agent\", input = {{ description = \"x\", \
             prompt = \"Go.\"{more} }} }}]\n[[rule]]\nreply = [{{ text = \"{{{{tool}}}}\" }}]\n"
        )
    };
    let main = |input: &str| {
        format!(
            "[[rule]]\nwhen.turn = 1\nreply = [{{ tool = \"Bash\", input = {input} }}]\n\
             [[rule]]\nreply = [{{ text = \"{{{{tool}}}}\" }}]\n"
        )
    };
    for (name, script) in [
        ("main", main(&attack)),
        ("background", main(&behind)),
        ("sub-agent", starts("")),
        ("worktree", starts(", isolation = \"worktree\"")),
        ("behind", starts(", run_in_background = true")),
    ] {
        let project = crate::worktrees::repository(&format!("held-{name}"));
        let server = crate::crash::serve(&script);
        let ssh = project.file("../home/.ssh");
        std::fs::create_dir_all(&ssh).unwrap();
        std::fs::write(ssh.join("id"), "TOPSECRET").unwrap();
        let config = std::fs::read(project.file(".git/config")).unwrap();
        let arguments = [
            "-p",
            "go",
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash",
        ];
        let output = project
            .posse(&arguments)
            .env("POSSE_SANDBOX", "required")
            .env("ANTHROPIC_BASE_URL", server.url())
            .env("BESIDE", project.file("..").canonicalize().unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let requests = server.requests();
        let sent: Vec<_> = requests
            .iter()
            .map(|request| String::from_utf8_lossy(&request.body).into_owned())
            .collect();
        let says = |words: &str| sent.iter().any(|body| body.contains(words));
        assert!(!says("TOPSECRET"), "{name}");
        let told: Vec<&str> = sent
            .iter()
            .filter_map(|body| body.split("\"tool_result\"").nth(1))
            .collect();
        assert!(says("ran") && says("/.ssh/id: "), "{name}: {told:?}");
        assert!(!project.file("../beside").exists(), "{name}");
        assert_eq!(
            std::fs::read(project.file(".git/config")).unwrap(),
            config,
            "{name}"
        );
        assert!(!project.file(".envrc").exists(), "{name}");
        assert_eq!(project.file("made").exists(), name != "worktree", "{name}");
    }
}

// proves PE-09 (part: background)
#[test]
fn nothing_of_64_commands_outlives_a_killed_posse() {
    const COUNT: usize = 64;
    let tag = format!("held-killed-{}", std::process::id());
    let command = format!(
        "trap '' TERM HUP; (exec -a {tag} sleep 600) & env -i setsid -f bash -c 'exec -a {tag} sleep 600'; \
         mktemp $PWD/up.XXXXXX; wait; sleep 600"
    );
    let call = format!(
        "{{ tool = \"Bash\", input = {{ command = '''{command}''', run_in_background = true }} }}"
    );
    let script = format!(
        "[[rule]]\nwhen.turn = 1\nreply = [{}]\n[[rule]]\nreply = [{{ text = \"waiting\" }}]\n",
        vec![call; COUNT].join(", ")
    );
    let project = Project::new("held-killed", &script);
    let mounts = || std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let before = mounts();
    let mut posse = project
        .posse(&["-p", "go", "--permission-mode", "acceptEdits"])
        .env("POSSE_SANDBOX", "required")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
        let is_one = |line: &Vec<u8>| line.starts_with(tag.as_bytes());
        lines.filter(is_one).count()
    };
    let since = Instant::now();
    let up = || std::fs::read_dir(project.file("")).unwrap().count();
    while up() < COUNT || running() < 2 * COUNT {
        let is_running = posse.try_wait().unwrap().is_none();
        assert!(
            is_running && since.elapsed() < PATIENCE,
            "{} {}",
            up(),
            running()
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
    posse.kill().unwrap();
    posse.wait().unwrap();
    let since = Instant::now();
    while running() > 0 {
        let left = running();
        assert!(since.elapsed() < Duration::from_secs(1), "{left} are left");
    }
    assert_eq!(mounts(), before);
}

/// Makes a checkout with a bit of everything that people work with.
const MIXED: &str = r#"
git init -q -b main; git config user.email a@b; git config user.name n; mkdir -p src tests
printf '[package]\nname="x"\nversion="0.1.0"\nedition="2024"\n[workspace]\n' >Cargo.toml
printf 'pub fn f()->u8{1}\n#[test]\nfn t(){assert_eq!(f(),1)}\n' >src/lib.rs
printf 'int main(){return 0;}\n' >a.c; printf 'made: a.c\n\tgcc a.c -o made\n' >Makefile
printf 'import multiprocessing as m\ndef test_m(tmp_path):\n    (tmp_path/"x").write_text("a")\n    with m.Manager() as g:\n        assert list(g.list([1])) == [1]\n' >tests/test_x.py
printf '{"name":"x","version":"1.0.0","scripts":{"test":"node server.js"}}' >package.json
printf 'const h=require("http");const s=h.createServer((q,r)=>r.end("ok")).listen(0,"127.0.0.1",()=>h.get({port:s.address().port},()=>process.exit(0)))' >server.js
printf 'target\n.pytest_cache\n__pycache__\n' >.gitignore
git add -A; git commit -qm one; git checkout -qb side; touch s; git add s; git commit -qm side; git checkout -q main; touch m; git add m; git commit -qm main; git checkout -q side"#;

/// A checkout in which an agent runs commands as its user would.
pub(crate) struct Checkout(Project);

impl Checkout {
    pub(crate) fn new(name: &str) -> Self {
        let project = Project::new(&format!("held-{name}"), "");
        let mut made = Command::new("bash");
        made.args(["-ec", MIXED]).current_dir(project.file(""));
        assert!(made.status().unwrap().success());
        Self(project)
    }

    /// posse with an agent that runs commands, and the model that it talks to.
    pub(crate) fn agent(
        &self,
        commands: &[&str],
        arguments: &[&str],
    ) -> (Command, Arc<posse_scripted::Server>) {
        let server = crate::crash::serve(&turns::commands(commands));
        let mut posse = self.0.posse(arguments);
        // Toolchains are in the home of the user who runs the tests.
        for name in ["HOME", "PATH"] {
            posse.env(name, std::env::var_os(name).unwrap());
        }
        posse
            .env("POSSE_SANDBOX", "required")
            .env("ANTHROPIC_BASE_URL", server.url());
        (posse, server)
    }
}

// proves PE-09 (part: usual work)
#[test]
fn usual_work_is_not_refused() {
    let checkout = Checkout::new("usual");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let pytest = format!("{}/target/venv/bin/python -m pytest -q", root.display());
    for command in [
        "cargo check -q --offline",
        "cargo test -q --offline",
        "gcc a.c && ./a.out",
        "make && ./made",
        &pytest,
        "npm test",
        "node server.js",
        "touch z && git add z && git commit -qm z && git log -1 --format=%s | grep -qx z",
        "git rebase -q main && test -e m",
        "echo q >q && git add q && git stash -q && git stash pop -q && test -e q",
        "git worktree add -q linked -b linked && git -C linked status && git worktree remove linked",
    ] {
        let (mut posse, _server) = checkout.agent(
            &[command],
            &["-p", "go", "--permission-mode", "acceptEdits"],
        );
        posse.args(["--output-format", "json"]);
        let output = posse.output().unwrap();
        let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let told = result["result"].as_str().unwrap();
        assert!(
            !told.contains("exit code") && !told.contains("refused"),
            "{command}: {told}"
        );
    }
}

/// Installs packages, of which the user's own caches have none.
const INSTALLS: [(&str, &str); 3] = [
    (
        "@crates",
        "printf '[dependencies]\\nsmawk = \"0.3\"\\n' >>Cargo.toml; cargo fetch && cargo check -q --offline",
    ),
    (
        "@npm",
        "npm install --no-audit --no-fund is-number && test -d node_modules/is-number",
    ),
    (
        "@pypi",
        "python3 -m venv v && v/bin/pip install -q --no-cache-dir iniconfig && v/bin/python -c 'import iniconfig'",
    ),
];

// proves PE-09 (part: usual work; hosts)
#[test]
fn packages_are_installed_if_their_hosts_are_allowed_and_the_users_caches_stay_as_they_are() {
    let checkout = Checkout::new("install");
    let home = Path::new(&std::env::var_os("HOME").unwrap()).join(".cargo/registry/cache");
    let cached = |name: &str| {
        let indexes = std::fs::read_dir(&home).into_iter().flatten().flatten();
        let crates = indexes.flat_map(|index| std::fs::read_dir(index.path()).unwrap().flatten());
        let names = crates.map(|it| it.file_name().to_string_lossy().into_owned());
        names.filter(|it| it.starts_with(name)).count()
    };
    let before = cached("smawk-");
    for (hosts, command) in INSTALLS {
        let settings = format!(r#"{{"sandbox": {{"hosts": ["{hosts}"]}}}}"#);
        let arguments = [
            "-p",
            "go",
            "--permission-mode",
            "acceptEdits",
            "--settings",
            &settings,
        ];
        let (mut posse, _server) = checkout.agent(&[command], &arguments);
        posse.args(["--output-format", "json"]);
        let output = posse.output().unwrap();
        let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let told = result["result"].as_str().unwrap();
        assert!(
            !told.contains("exit code") && !told.contains("refused") && !told.contains("did not"),
            "{command}: {told}"
        );
    }
    assert_eq!(cached("smawk-"), before);
}

// proves PE-09 (part: usual work)
// proves PE-12 (part: told)
#[test]
fn in_default_mode_usual_work_is_one_question_that_names_the_path() {
    let checkout = Checkout::new("usual-default");
    let installs = INSTALLS.map(|(_, command)| command);
    let settings = r#"{"sandbox": {"hosts": ["@crates", "@npm", "@pypi"]}}"#;
    for (command, path) in [
        ("cargo check -q --offline", "Cargo.lock"),
        ("cargo test -q --offline", "target/"),
        ("gcc a.c", "a.out"),
        ("make && ./made", "made"),
        ("touch y && git add y && git commit -qm y", "y"),
        ("git commit -q --allow-empty -m empty", ".git/"),
        ("git rebase -q main", ".git/"),
        ("git worktree add -q linked -b linked", ""),
        (installs[0], "Cargo.toml"),
        (installs[1], "node_modules"),
        (installs[2], "v"),
    ] {
        let arguments = ["-p", "go", "--on-question", "wait", "--settings", settings];
        let (mut posse, _server) = checkout.agent(&[command], &arguments);
        posse.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut asking = Asking {
            project: &checkout.0,
            child: Some(posse.spawn().unwrap()),
        };
        let question = asking.question();
        let why = question["why"].as_str().unwrap();
        let named = checkout.0.file("").canonicalize().unwrap().join(path);
        assert!(
            why.contains(&named.display().to_string()),
            "{command}: {why}"
        );
        // Another question would not be answered.
        let told = asking.answer(&question, &["allow"]);
        assert!(!told.contains("exit code"), "{command}: {told}");
    }
}

// proves PE-09 (part: usual work)
#[test]
fn in_default_mode_tests_that_leave_nothing_are_not_asked_about() {
    let checkout = Checkout::new("usual-reading");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().unwrap();
    let pytest = format!("{}/target/venv/bin/python -m pytest -q", root.display());
    for command in ["npm test", "node server.js", &pytest, "git status"] {
        let arguments = ["-p", "go", "--output-format", "json"];
        let (mut posse, _server) = checkout.agent(&[command], &arguments);
        let output = posse.output().unwrap();
        let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let told = result["result"].as_str().unwrap();
        let is_refused = told.contains("exit code") || told.contains("the sandbox");
        assert!(!is_refused, "{command}: {told}");
        assert_eq!(
            result["permission_denials"],
            serde_json::json!([]),
            "{command}"
        );
    }
}

// proves PE-12 (part: once)
#[test]
fn a_yes_opens_no_more_than_was_asked() {
    let home = Project::place("held-opened");
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    for name in ["id", "other"] {
        std::fs::write(home.join(".ssh").join(name), format!("SECRET {name}")).unwrap();
    }
    let script = "[[rule]]\nwhen.turn = 1\nreply = [{ tool = \"Bash\", input = { command = \"cat ~/.ssh/other; cat ~/.ssh/id || exit 1\" } }]\n\
                  [[rule]]\nreply = [{ text = \"{{tool}}\" }]\n";
    let project = Project::in_home(&home, "held-opened-w", script);
    // Only the last line is about a file that is asked for.
    let mut asking = Asking::new(&project, &["--permission-mode", "acceptEdits"]);
    let question = asking.question();
    let why = question["why"].as_str().unwrap().to_owned();
    assert!(
        why.contains("/.ssh/id") && why.contains("/.ssh/other"),
        "{why}"
    );
    let told = asking.answer(&question, &["allow"]);
    assert!(
        told.contains("SECRET id") && told.contains("SECRET other"),
        "{told}"
    );
    // Another file there stays hidden.
    std::fs::write(home.join(".ssh/third"), "SECRET third").unwrap();
    let script = script.replace(
        "~/.ssh/other; cat",
        "~/.ssh/third 2>/dev/null; ls ~/.ssh 2>/dev/null; cat",
    );
    let project = Project::in_home(&home, "held-opened-w", &script);
    let mut asking = Asking::new(&project, &["--permission-mode", "acceptEdits"]);
    let question = asking.question();
    let told = asking.answer(&question, &["allow"]);
    assert!(
        told.contains("SECRET id") && !told.contains("third"),
        "{told}"
    );
}

// proves PE-11 (part: attacks)
#[test]
fn in_a_part_of_a_checkout_commits_work_and_hooks_cannot_be_made() {
    let project = crate::worktrees::repository("held-part");
    std::fs::create_dir_all(project.file("sub")).unwrap();
    let config = std::fs::read(project.file(".git/config")).unwrap();
    let command = "touch a && git add a && git -c user.name=n -c user.email=e commit -qm part && echo did; \
                   touch ../beside; cp a ../.git/hooks/post-commit; git config core.fsmonitor evil; true";
    let server = crate::crash::serve(&turns::commands(&[command]));
    let output = project
        .posse(&["-p", "go", "--permission-mode", "acceptEdits"])
        .current_dir(project.file("sub"))
        .env("POSSE_SANDBOX", "required")
        .env("ANTHROPIC_BASE_URL", server.url())
        .output()
        .unwrap();
    let told = stdout(&output);
    assert!(told.starts_with("did\n"), "{told} {}", stderr(&output));
    assert!(!project.file("beside").exists());
    assert!(!project.file(".git/hooks/post-commit").exists());
    assert_eq!(std::fs::read(project.file(".git/config")).unwrap(), config);
}

/// A checkout whose agent runs commands one after the other, as it may unasked.
fn in_turns(name: &str, commands: &[&str], arguments: &[&str]) -> (Project, String) {
    let project = crate::worktrees::repository(&format!("held-{name}"));
    std::fs::create_dir_all(project.file("src")).unwrap();
    let server = crate::crash::serve(&turns::commands(commands));
    let beside = project.file("../beside");
    std::fs::create_dir_all(&beside).unwrap();
    let arguments = [&["-p", "go", "--permission-mode", "acceptEdits"], arguments].concat();
    let output = project
        .posse(&arguments)
        .env("POSSE_SANDBOX", "required")
        .env("ANTHROPIC_BASE_URL", server.url())
        .env("BESIDE", beside.canonicalize().unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(server.requests().len(), commands.len() + 1);
    (project, stdout(&output))
}

// proves PE-09 (part: attacks)
#[test]
fn links_and_forged_worktrees_open_nothing_to_the_next_command() {
    let forge = "mkdir -p s f c/worktrees/r; ln -s $BESIDE c/logs; ln -s $BESIDE c/objects; \
                 for d in f c/worktrees/r; do echo $PWD/c >$d/commondir; echo $PWD/s/.git >$d/gitdir; done; \
                 echo \"gitdir: $PWD/c/worktrees/r\" | tee s/.git; rm -r src; ln -s $BESIDE src; sleep 1.1";
    let write = "touch $BESIDE/one; touch src/two; touch c/logs/three; cd s; touch ../c/objects/four; touch $PWD/ok";
    let (project, told) = in_turns(
        "forged",
        &[forge, write],
        &["--allowedTools", "Edit(src/**)"],
    );
    let left = std::fs::read_dir(project.file("../beside"))
        .unwrap()
        .count();
    assert_eq!(left, 0, "{told}");
    assert!(project.file("s/ok").exists(), "{told}");
}

// proves PE-11 (part: attacks)
#[test]
fn a_repository_that_is_planted_is_taken_away() {
    let make = "git init -q sub; cd sub; git config core.fsmonitor evil; \
                git -c user.name=n -c user.email=e commit -q --allow-empty -m x; \
                cd ..; git add sub 2>/dev/null; echo added";
    let (project, told) = in_turns("planted", &[make], &[]);
    assert!(
        told.starts_with("added\n") && told.contains("sub/.git was made"),
        "{told}"
    );
    assert!(!project.file("sub/.git").exists());
}

// proves PE-10
#[test]
fn what_file_tools_may_not_make_unasked_does_not_stay() {
    let make = "mkdir .cargo; touch .cargo/config.toml conftest.py rust-toolchain .bashrc plain";
    let (project, told) = in_turns("unmade", &[make], &[]);
    for name in [".cargo", "conftest.py", "rust-toolchain", ".bashrc"] {
        assert!(!project.file(name).exists(), "{name}: {told}");
    }
    assert!(project.file("plain").exists());
}

// proves PE-12 (part: no)
#[test]
fn nobody_can_lift_what_a_rule_denies_or_what_is_posses_own() {
    let say = "echo \"cat: $PWD/.env: Permission denied\"; echo \"touch: cannot touch '$POSSE_HOME/settings.json': Read-only file system\"; exit 1";
    let arguments = ["--disallowedTools", "Read(.env)"];
    let project = runs("unlifted", say);
    std::fs::write(project.file(".env"), "TOPSECRET").unwrap();
    let told = told(&project, &arguments);
    assert!(
        told.contains("/.env from being read: nobody can allow that)"),
        "{told}"
    );
    assert_eq!(told.matches("(the sandbox keeps ").count(), 2, "{told}");
    // It is not asked about, either.
    let mut asking = Asking::new(&project, &arguments);
    let child = asking.child.take().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output), told);
}
