//! `posse team run` with the real binary, and what is shown of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use posse_protocol::Cost;
use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::cost::{bill, pico};
use crate::team::{lines, succeed};

/// Two work, one task waits for the other; the lead says at last how it went.
const TEAM: &str = r#"
description = "Mends it."
[lead]
prompt = "You end with a full stop."
[roles.dev]
prompt = "You mend."
[roles.reviewer]
prompt = "You review."
[[tasks]]
subject = "mend it"
role = "dev"
[[tasks]]
subject = "look at it"
role = "reviewer"
blocked_by = [1]
"#;

/// Whoever has a task completes it. `hold` is what the reviewer does at first.
fn script(hold: &str) -> String {
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main$", user = "Task 2: completed" }}
reply = [{{ text = "All is mended." }}]
[[rule]]
when.tool = "Updated"
reply = [{{ text = "It is done." }}]
{hold}
[[rule]]
when = {{ agent = "re:^/main/", marker = "Task 2 is yours" }}
reply = [{{ tool = "TaskUpdate", input = {{ taskId = "2", status = "completed" }} }}]
[[rule]]
when = {{ agent = "re:^/main/", marker = "Task 1 is yours" }}
reply = [{{ tool = "TaskUpdate", input = {{ taskId = "1", status = "completed" }} }}]
[[rule]]
reply = [{{ text = "Ready." }}]
"#
    )
}

pub(crate) fn project(name: &str, hold: &str) -> Project {
    let project = Project::new(name, &script(hold));
    std::fs::create_dir_all(project.file(".posse/teams")).unwrap();
    std::fs::write(project.file(".posse/teams/mend.toml"), TEAM).unwrap();
    project
}

/// The one team of the project, for programs.
fn shown(project: &Project) -> Value {
    let mut shown = lines(project, &["team", "show", "--json"]);
    assert_eq!(shown.len(), 1, "{shown:?}");
    shown.remove(0)
}

/// Continues the team, which reaches its goal. Returns what was said meanwhile.
fn resumed(project: &Project) -> String {
    let output = project.run(&["team", "run", "mend", "--resume"]);
    let told = stderr(&output);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "All is mended.\n"),
        "{told}"
    );
    told
}

/// The reviewer thinks for ten minutes, once.
pub(crate) const HELD: &str = r#"
[[rule]]
when = { agent = "reviewer", marker = "Task 2 is yours" }
times = 1
delay_ms = 600000
reply = [{ text = "hm" }]
"#;

/// posse with lines coming out.
pub(crate) struct Listening {
    pub(crate) child: Child,
    from: BufReader<ChildStdout>,
}

impl Listening {
    pub(crate) fn start(project: &Project, arguments: &[&str]) -> Self {
        let mut child = project
            .posse(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        Self { child, from }
    }

    /// Reads up to a line like that.
    fn hear(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.from.read_line(&mut line).unwrap(),
                0,
                "it ended before that came"
            );
            let told: Value = serde_json::from_str(&line).unwrap();
            if is_it(&told) {
                return told;
            }
        }
    }

    /// Until the reviewer works on its task, and its model has been asked about it.
    pub(crate) fn until_held(&mut self, project: &Project) {
        self.hear(|told| told["subtype"] == "team_task" && told["task"]["owner"] == "reviewer");
        until("the reviewer begins", || {
            requests(project)
                .iter()
                .any(|(_, asked)| asked.contains("Task 2 is yours"))
        });
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) const LINES: [&str; 5] = ["team", "run", "mend", "--output-format", "stream-json"];

// proves TE-14 (part: roles; one command; headless)
// proves TE-18 (part: members at work; something claimable)
#[test]
fn a_declared_team_reaches_its_goal_with_one_command() {
    let project = project("team-run", "");
    let output = project.run(&["team", "run", "mend", "make it work"]);
    let told = stderr(&output);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "All is mended.\n"),
        "{told}"
    );
    for line in [
        "● dev@mend joined (general-purpose, ",
        "✓ #1 mend it (dev)",
        "✓ #2 look at it (reviewer)",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(!told.contains('\x1b'), "no terminal, no colours: {told}");
    let shown = shown(&project);
    assert_eq!(shown["open_tasks"], 0);
    assert_eq!(shown["description"], "Mends it.");
}

#[test]
fn programs_hear_of_members_and_tasks() {
    let project = project("team-lines", "");
    let output = project.run(&[&LINES[..], &["make it work"]].concat());
    let told: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let members: Vec<(&str, &str)> = told
        .iter()
        .filter(|line| line["subtype"] == "member")
        .map(|line| {
            (
                line["event"].as_str().unwrap(),
                line["name"].as_str().unwrap(),
            )
        })
        .collect();
    for expected in [
        ("joined", "dev"),
        ("joined", "reviewer"),
        ("idle", "dev"),
        ("idle", "reviewer"),
    ] {
        assert!(members.contains(&expected), "{expected:?}: {members:?}");
    }
    let at = |is_it: &dyn Fn(&Value) -> bool| told.iter().position(is_it).unwrap();
    let done = |id: u64| {
        at(&|line| {
            line["task"]["id"] == id
                && line["task"]["status"] == "completed"
                && line["team"] == "mend"
        })
    };
    let result = at(&|line| line["type"] == "result" && line["result"] == "All is mended.");
    assert!(
        done(1) <= done(2) && done(2) < result,
        "the last word comes last"
    );
    let as_task = |line: &&Value| {
        line["subtype"]
            .as_str()
            .is_some_and(|word| word.starts_with("task_"))
    };
    assert_eq!(told.iter().find(as_task), None, "members are no tasks");
    let prompt = at(&|line| line["type"] == "user" && line["isReplay"] == true);
    assert_eq!(
        told[prompt]["message"]["content"][0]["text"],
        "make it work"
    );
}

// proves TE-11 (part: lead and teammates; mail; tasks)
#[test]
fn a_team_that_was_killed_is_brought_back_by_one_command() {
    let project = project("team-resume", HELD);
    let mut first = Listening::start(&project, &[&LINES[..], &["make it work"]].concat());
    first.until_held(&project);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let told = succeed(&project, &["mail", "send", "reviewer@mend", "Look twice."]);
    assert!(told.starts_with("sent to reviewer"), "{told}");
    let told = resumed(&project);
    assert!(!told.contains("✓ #1"), "what was done is no news: {told}");
    let requests = requests(&project);
    let of = |words: &str| {
        requests
            .iter()
            .filter(|(_, text)| text.contains(words))
            .count()
    };
    assert!(of("Look twice.") > 0, "mail that waited was shown");
    let done = lines(&project, &["task", "list", "--team", "mend", "--json"]);
    assert!(
        done.iter().all(|task| task["status"] == "completed"),
        "{done:?}"
    );
}

#[test]
fn ctrl_c_says_how_to_go_on_and_keeps_the_team() {
    let project = project("team-stop", HELD);
    let arguments = [&LINES[..], &["make it work"]].concat();
    let mut child = project
        .posse(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let from = BufReader::new(child.stdout.take().unwrap());
    let mut listening = Listening { child, from };
    listening.until_held(&project);
    let (id, begun) = (listening.child.id().to_string(), std::time::Instant::now());
    std::process::Command::new("kill")
        .args(["-INT", &id])
        .status()
        .unwrap();
    std::io::copy(&mut listening.from, &mut std::io::sink()).unwrap();
    let mut told = String::new();
    std::io::Read::read_to_string(&mut listening.child.stderr.take().unwrap(), &mut told).unwrap();
    assert_eq!(listening.child.wait().unwrap().code(), Some(130), "{told}");
    assert!(
        begun.elapsed().as_secs() < 20,
        "who works is not waited for"
    );
    assert_eq!(
        told.matches("continue with: posse team run mend --resume ")
            .count(),
        1,
        "{told}"
    );
    let shown = shown(&project);
    assert_eq!(shown["members"].as_array().unwrap().len(), 3, "{shown}");
    resumed(&project);
    let done = lines(&project, &["task", "list", "--team", "mend", "--json"]);
    assert!(
        done.len() == 2 && done.iter().all(|task| task["status"] == "completed"),
        "{done:?}"
    );
}

#[test]
fn text_that_is_broken_off_is_no_result() {
    let project = project("team-broken-off", HELD);
    let posse = &mut project.posse(&["team", "run", "mend", "make it work", "--verbose"]);
    let child = posse
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the reviewer works", || {
        requests(&project)
            .iter()
            .any(|(_, asked)| asked.contains("Task 2 is yours"))
    });
    std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let told = stderr(&output);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(130), ""),
        "{told}"
    );
    assert_eq!(told.matches("continue with: ").count(), 1, "{told}");
}

/// The developer says that it has done its task, twice, and does not complete it.
const LAZY: &str = r#"
[[rule]]
when = { agent = "/dev-", marker = "Task 1 is yours" }
times = 2
reply = [{ text = "I have done it." }]
"#;

// proves TE-18 (part: open tasks)
// proves FC-02 (part: partial; last line; members stay; resume)
#[test]
fn a_team_that_did_not_do_its_work_did_not_succeed_and_continues() {
    for format in ["text", "json", "stream-json"] {
        let project = project(&format!("team-lazy-{format}"), LAZY);
        let run = [
            "team",
            "run",
            "mend",
            "make it work",
            "--output-format",
            format,
        ];
        let output = project.run(&run);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{told}");
        let last = "0 of 2 tasks done, 2 open: #1 mend it; #2 look at it";
        assert_eq!(told.lines().last(), Some(last), "{told}");
        assert!(
            told.contains("hint: continue with `posse team run mend --resume "),
            "{told}"
        );
        if format != "text" {
            let line = stdout(&output);
            let result: Value = serde_json::from_str(line.lines().last().unwrap()).unwrap();
            assert_eq!(result["terminal_reason"], "open_tasks", "{result}");
            assert_eq!(result["is_error"], true);
            assert_eq!(result["tasks"]["done"], 0);
            assert_eq!(result["tasks"]["open"][0]["subject"], "mend it");
        }
        // Nobody was dismissed, and one command continues.
        let shown = shown(&project);
        assert_eq!(shown["members"].as_array().unwrap().len(), 3, "{shown}");
        let told = resumed(&project);
        assert_eq!(told.lines().last(), Some("2 of 2 tasks done"), "{told}");
    }
}

// proves FC-02 (part: teams that a model makes)
#[test]
fn a_team_that_a_model_made_and_left_with_open_tasks_did_not_succeed() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main/" }
reply = [{ text = "I have done it." }]
[[rule]]
when.turn = 1
reply = [
    { tool = "TeamCreate", input = { team_name = "mend", description = "d" } },
]
[[rule]]
when.turn = 2
reply = [
    { tool = "TaskCreate", input = { subject = "mend it", description = "d" } },
    { tool = "Agent", input = { description = "d", prompt = "mend", name = "dev", team_name = "mend" } },
]
[[rule]]
reply = [{ text = "All is mended." }]
"#;
    let project = Project::new("team-made", script);
    let output = project.run(&["-p", "go", "--output-format", "json"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    let result: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(result["terminal_reason"], "open_tasks", "{result}");
    let last = "0 of 1 task done, 1 open: #1 mend it";
    assert_eq!(told.lines().last(), Some(last), "{told}");
    assert!(
        told.contains("hint: continue with `posse -p --resume "),
        "{told}"
    );
}

// proves FC-02 (part: a role that cannot start)
#[test]
fn a_team_whose_role_cannot_start_stops_before_it_spends() {
    let project = project("team-no-commit", "");
    let file = project.file(".posse/teams/mend.toml");
    let isolated = TEAM.replace("[roles.dev]", "[roles.dev]\nworktree = true");
    std::fs::write(file, isolated).unwrap();
    let git = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(project.file(""))
        .status();
    assert!(git.unwrap().success());
    let output = project.run(&["team", "run", "mend", "go"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("the team cannot start: role dev works in a worktree"),
        "{told}"
    );
    assert!(told.contains("hint: commit something first"), "{told}");
    assert_eq!(requests(&project), [], "nothing was spent");
}

// proves FC-02 (part: capped)
#[test]
fn what_a_role_asks_for_in_vain_is_told_by_check_and_at_the_start() {
    let project = project("team-capped", "");
    let team = TEAM
        .replace(
            "[roles.dev]",
            "[roles.dev]\npermission_mode = \"acceptEdits\"",
        )
        .replace(
            "role = \"dev\"",
            "role = \"dev\"\ncheck = \"./check.sh add\"",
        );
    std::fs::write(project.file(".posse/teams/mend.toml"), team).unwrap();
    let capped = "role dev: `acceptEdits` is more than the session's mode allows";
    let denied = "the check of task 1 needs approval: no rule allows Bash(./check.sh add)";
    let checked = project.run(&["team", "check", "mend"]);
    let said = stdout(&checked) + &stderr(&checked);
    assert_eq!(checked.status.code(), Some(0), "{said}");
    assert!(said.contains(capped) && said.contains(denied), "{said}");
    let denies = ["team", "run", "mend", "go", "--on-question", "deny"];
    let told = stderr(&project.run(&denies));
    assert!(told.contains(capped) && told.contains(denied), "{told}");
    let flags = [
        "--permission-mode",
        "acceptEdits",
        "--allowedTools",
        "Bash(./check.sh add)",
    ];
    let told = stderr(&project.run(&[&["team", "run", "mend", "go"][..], &flags].concat()));
    assert!(!told.contains(capped) && !told.contains(denied), "{told}");
}

/// The reviewer asks before it completes its task.
const ASKS: &str = r#"
[[rule]]
when = { agent = "/reviewer-", marker = "Task 2 is yours" }
times = 1
reply = [{ tool = "Bash", input = { command = "touch seen" } }]
"#;

// proves QU-03 (part: team run)
// proves QU-02 (part: from anywhere)
#[test]
fn a_members_question_waits_and_is_answered_from_another_terminal() {
    let project = project("team-asks", ASKS);
    let mut command = project.posse(&["team", "run", "mend", "go"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let run = command.stderr(Stdio::piped()).spawn().unwrap();
    let begun = std::time::Instant::now();
    let asked = loop {
        let open = lines(&project, &["requests", "list", "--json"]);
        if let [one] = &open[..] {
            break one.clone();
        }
        assert!(begun.elapsed().as_secs() < 30, "{open:?}");
    };
    assert_eq!(asked["from"], "reviewer@mend");
    assert_eq!(asked["input"], json!({"command": "touch seen"}));
    let members = shown(&project)["members"].clone();
    let waiting = |member: &&Value| member["name"] == "reviewer";
    let reviewer = members.as_array().unwrap().iter().find(waiting).unwrap();
    assert_eq!(reviewer["state"], "waiting", "{members}");
    let id = asked["request_id"].as_str().unwrap();
    assert_eq!(reviewer["asks"]["request_id"], id, "{members}");
    let table = succeed(&project, &["team", "show"]);
    let row = table.lines().find(|line| line.starts_with("reviewer"));
    assert!(row.is_some_and(|row| row.contains(" asks ")), "{table}");
    succeed(&project, &["requests", "answer", id, "allow"]);
    let output = run.wait_with_output().unwrap();
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(project.file("seen").exists());
    assert!(
        told.contains("? reviewer@mend asks about Bash: touch seen"),
        "{told}"
    );
    assert_eq!(told.lines().last(), Some("2 of 2 tasks done"), "{told}");
}

/// As after a crash between the last task and the end.
#[test]
fn members_of_a_team_that_is_done_are_dismissed_when_it_is_resumed() {
    let project = project("team-done", LAZY);
    let output = project.run(&["team", "run", "mend", "make it work"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    for id in ["1", "2"] {
        succeed(
            &project,
            &[
                "task",
                "update",
                id,
                "--status",
                "completed",
                "--team",
                "mend",
            ],
        );
    }
    let output = project.run(&["team", "run", "mend", "--resume"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(told.lines().last(), Some("2 of 2 tasks done"), "{told}");
    let shown = shown(&project);
    assert_eq!(shown["members"].as_array().unwrap().len(), 1, "{shown}");
    let again = project.run(&["team", "run", "mend", "--resume"]);
    assert!(
        stderr(&again).contains("has nothing left to do"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn a_finished_team_whose_members_have_left_has_its_lead_alone() {
    let project = project("team-again", "");
    succeed(&project, &["team", "run", "mend", "make it work"]);
    let shown = shown(&project);
    let id = shown["session_id"].as_str().unwrap();
    let output = project.run(&["team", "run", "mend", "--resume", id, "and now more"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(
        told.contains("have left, and only its lead continues")
            && told.contains("starts a new team"),
        "{told}"
    );
    let shown = succeed(&project, &["team", "show"]);
    assert!(shown.contains("have left: dev ($0."), "{shown}");
    // Mail of those who have left can be read, and is exported.
    let mail = lines(
        &project,
        &["mail", "list", "--team", "mend", "--to", "dev", "--json"],
    );
    assert!(
        !mail.is_empty() && mail.iter().all(|mail| mail["to"] == "dev"),
        "{mail:?}"
    );
    let exported = &lines(&project, &["team", "export", "out", "--json"])[0];
    assert!(
        exported["messages_of_former_members"].as_u64() >= Some(1),
        "{exported}"
    );
    let refused = project.run(&["team", "attach", "dev"]);
    assert!(
        stderr(&refused).contains("posse sessions show 0"),
        "{}",
        stderr(&refused)
    );
    let refused = project.run(&["team", "run", "mend", "--resume", "and now more"]);
    assert!(
        stderr(&refused).contains("a goal needs an id before it"),
        "{}",
        stderr(&refused)
    );
}

/// What the first line of a run says of the session's mode and model, and stderr of all of it.
fn begun(project: &Project, team: &str) -> (Value, Value, String) {
    let output = project.run(&["team", "run", team, "go", "--output-format", "stream-json"]);
    let first: Value = serde_json::from_str(stdout(&output).lines().next().unwrap()).unwrap();
    assert_eq!(first["subtype"], "init", "{first}");
    (
        first["permissionMode"].clone(),
        first["model"].clone(),
        stderr(&output),
    )
}

// proves PE-04 (part: bypassPermissions)
#[test]
fn a_repository_never_loosens_what_the_lead_may_do() {
    let project = Project::new("team-lead", "[[rule]]\nreply = [{ text = \"Ready.\" }]\n");
    let write = |name: &str, text: &str| {
        let path = project.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let boss = |name: &str, mode: &str| {
        format!(
            "---\nname: {name}\ndescription: d\npermissionMode: {mode}\nmodel: claude-haiku-5-5\n---\nYou lead.\n"
        )
    };
    let led_by = |name: &str| format!("[lead]\nagent = \"{name}\"\n[roles.dev]\n");
    write(
        ".posse/agents/theirs.md",
        &boss("theirs", "bypassPermissions"),
    );
    write(".posse/agents/strict.md", &boss("strict", "plan"));
    write("../home/agents/mine.md", &boss("mine", "bypassPermissions"));
    write("../home/teams/a.toml", &led_by("theirs"));
    write(".posse/teams/b.toml", &led_by("mine"));
    write(
        ".posse/teams/c.toml",
        "[lead]\nmodel = \"claude-haiku-5-5\"\npermission_mode = \"acceptEdits\"\n[roles.dev]\n",
    );
    for team in ["a", "b", "c"] {
        let (mode, model, told) = begun(&project, team);
        assert_eq!(
            (&mode, &model),
            (&json!("default"), &json!("claude-opus-5-5")),
            "{team}: {told}"
        );
        assert!(
            told.contains("ignored: model claude-haiku-5-5"),
            "{team}: {told}"
        );
    }
    write("../home/teams/d.toml", &led_by("strict"));
    assert_eq!(begun(&project, "d").0, "plan", "it may tighten");
    write("../home/teams/e.toml", &led_by("mine"));
    let (mode, model, told) = begun(&project, "e");
    assert_eq!(
        (mode, model),
        (json!("bypassPermissions"), json!("claude-haiku-5-5")),
        "{told}"
    );
}

/// One is of another model and mode, one has no money.
const TERMS: &str = r#"
description = "Mends it."
[roles.dev]
model = "claude-haiku-5-5"
permission_mode = "plan"
[roles.poor]
budget_usd = 0.000001
[roles.other]
"#;

// proves TE-14 (part: models; permissions; budgets)
#[test]
fn what_is_declared_of_a_role_holds() {
    let project = Project::new("team-terms", "[[rule]]\nreply = [{ text = \"Ready.\" }]\n");
    std::fs::create_dir_all(project.file(".posse/teams")).unwrap();
    std::fs::write(project.file(".posse/teams/mend.toml"), TERMS).unwrap();
    let output = project.run(&[
        "team",
        "run",
        "mend",
        "go",
        "--permission-mode",
        "acceptEdits",
    ]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(
        told.contains("● poor@mend failed: ") || told.contains("● poor@mend idle"),
        "{told}"
    );
    let asked = requests(&project);
    let of = |name: &str| {
        asked
            .iter()
            .filter(|(agent, _)| agent.starts_with(&format!("/main/{name}-")))
            .collect::<Vec<_>>()
    };
    assert!(
        of("dev")
            .iter()
            .all(|(_, body)| body.contains(r#"{\"model\":\"claude-haiku-5-5\","#)),
        "{asked:?}"
    );
    assert!(
        of("other")
            .iter()
            .all(|(_, body)| body.contains(r#"{\"model\":\"claude-opus-5-5\","#)),
        "{asked:?}"
    );
    assert_eq!(
        (
            of("dev").is_empty(),
            of("other").is_empty(),
            of("poor").len()
        ),
        (false, false, 0),
        "{told}"
    );
    let agents = lines(&project, &["agents", "ps", "--all", "--json"]);
    let mode = |name: &str| {
        let is_it = |agent: &&Value| {
            agent["path"]
                .as_str()
                .unwrap()
                .starts_with(&format!("/main/{name}-"))
        };
        agents
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{agents:?}"))["permission_mode"]
            .clone()
    };
    assert_eq!(
        (mode("dev"), mode("other")),
        (json!("plan"), json!("acceptEdits"))
    );
}

// proves SM-11 (part: colours)
#[test]
fn mail_is_shown_in_the_colour_of_its_sender() {
    let project = project("team-colours", HELD);
    let mut run = Listening::start(&project, &[&LINES[..], &["make it work"]].concat());
    run.until_held(&project);
    let shown = |arguments: &[&str]| {
        stdout(
            &project
                .posse(arguments)
                .env("CLICOLOR_FORCE", "1")
                .output()
                .unwrap(),
        )
    };
    let [team] = &lines(&project, &["team", "show", "--json"])[..] else {
        panic!()
    };
    // The lead is the first, and the first colour is blue.
    assert_eq!(team["members"][0]["color"], "blue");
    let seen = shown(&["team", "attach", "reviewer"]);
    assert!(
        seen.contains("\x1b[34m⇠ team-lead: You review.\x1b[39m"),
        "{seen:?}"
    );
    let own = seen.lines().find(|line| line.contains("task #2:")).unwrap();
    assert!(!own.contains("\x1b[34m"), "{own:?}");
    for raw in ["<system-reminder>", "<mail ", "<team-task", "agent-id="] {
        assert!(!seen.contains(raw), "{raw}: {seen}");
    }
    assert!(seen.contains("· You are reviewer@mend."), "{seen:?}");
    let listed = shown(&["mail", "list", "--team", "mend"]);
    let of_lead = listed
        .lines()
        .filter(|line| line.contains("  team-lead  "))
        .collect::<Vec<_>>();
    assert!(
        !of_lead.is_empty() && of_lead.iter().all(|line| line.starts_with("\x1b[34m")),
        "{listed:?}"
    );
    let long = shown(&[
        "mail",
        "list",
        "--team",
        "mend",
        "--to",
        "reviewer",
        "--verbose",
    ]);
    assert!(
        long.contains("\x1b[34mteam-lead → reviewer 1\x1b[39m"),
        "{long:?}"
    );
}

// proves LI-04 (part: per team)
#[test]
fn what_the_members_of_a_team_cost_adds_up_to_its_bill() {
    let project = project("team-cost", HELD);
    let mut run = Listening::start(&project, &[&LINES[..], &["make it work"]].concat());
    run.until_held(&project);
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    let [team] = &lines(&project, &["team", "show", "--json"])[..] else {
        panic!()
    };
    let members = team["members"].as_array().unwrap();
    assert_eq!(members.len(), 3, "{team}");
    let costs: Vec<u64> = members
        .iter()
        .map(|member| pico(&member["cost_usd"]))
        .collect();
    assert!(costs.iter().all(|cost| *cost > 0), "{costs:?}");
    let lead = members.iter().find(|member| member["is_lead"] == true);
    let bill = bill(&project, lead.unwrap()["agent_id"].as_str().unwrap());
    assert_eq!(
        costs.iter().sum::<u64>(),
        pico(&bill["total_cost_usd"]),
        "{bill}"
    );
}

/// Kills the team while its reviewer's model thinks. Returns the lead's id.
fn killed_in_flight(project: &Project) -> String {
    let mut run = Listening::start(project, &[&LINES[..], &["make it work"]].concat());
    run.until_held(project);
    // A member that becomes idle writes to the lead in the same step.
    let rests = |member: &Value| member["state"] == "idle" && member["waiting_mail"] == 0;
    until("only the reviewer works", || {
        let team = shown(project);
        let mut members = team["members"].as_array().unwrap().iter();
        members.all(|member| member["name"] == "reviewer" || rests(member))
    });
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    let members = shown(project)["members"].as_array().unwrap().clone();
    let lead = members.iter().find(|member| member["is_lead"] == true);
    lead.unwrap()["agent_id"].as_str().unwrap().to_owned()
}

// proves FC-04 (part: calls in flight)
#[test]
fn a_call_that_a_crash_cut_off_is_told_apart_as_at_most() {
    let project = project("team-in-flight", HELD);
    let lead = killed_in_flight(&project);
    let told = || bill(&project, &lead);
    let before = told();
    let reviewer = |bill: &Value| {
        let agents = bill["agents"].as_array().unwrap().clone();
        let is_it = |agent: &Value| agent["path"].as_str().unwrap().contains("reviewer");
        agents.into_iter().find(is_it).unwrap()
    };
    let uncertain = pico(&before["uncertain_cost_usd"]);
    assert!(uncertain > 0, "{before}");
    assert_eq!(
        pico(&reviewer(&before)["uncertain_cost_usd"]),
        uncertain,
        "only its call was in flight: {before}"
    );
    let words = format!(
        "at most {} for calls in flight",
        Cost::from_pico_usd(uncertain)
    );
    let says = |arguments: &[&str]| {
        let told = succeed(&project, arguments);
        assert!(told.contains(&words), "{arguments:?}: {told}");
    };
    says(&["cost", &lead]);
    says(&["sessions", "show", &lead]);
    let listed = lines(&project, &["sessions", "list", "--json"]).remove(0);
    assert_eq!(listed["uncertain_cost_usd"], before["uncertain_cost_usd"]);
    assert_eq!(listed["total_cost_usd"], before["total_cost_usd"]);

    // Another process does the work. What the lost call may have cost stays on record.
    let output = project.run(&["team", "run", "mend", "--resume", "--verbose"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!(" and {words}")), "{said}");
    let after = told();
    assert_eq!(after["uncertain_cost_usd"], before["uncertain_cost_usd"]);
    assert!(pico(&after["total_cost_usd"]) > pico(&before["total_cost_usd"]));
    says(&["cost", &lead]);
}

// proves FC-04 (part: budgets after resume)
#[test]
fn a_call_that_a_crash_cut_off_counts_against_budgets() {
    let project = project("team-in-flight-budget", HELD);
    let poor = TEAM.replace("You review.\"", "You review.\"\nbudget_usd = 0.2");
    std::fs::write(project.file(".posse/teams/mend.toml"), poor).unwrap();
    let lead = killed_in_flight(&project);
    let of_reviewer = || {
        let requests = requests(&project).into_iter();
        requests
            .filter(|(agent, _)| agent.contains("reviewer"))
            .count()
    };
    let before = of_reviewer();
    let uncertain = pico(&bill(&project, &lead)["uncertain_cost_usd"]);
    assert!((1..=pico(&json!(0.2))).contains(&uncertain), "{uncertain}");
    let output = project.run(&["team", "run", "mend", "--resume"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert_eq!(
        of_reviewer(),
        before,
        "another call could exceed its budget: {said}"
    );
    assert!(said.contains("limited to $0.20"), "{said}");
}

/// The time that a process has used of its processors, in hundredths of a second.
fn used(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

// proves TE-05 (part: no CPU)
#[test]
fn an_idle_teammate_uses_no_processor() {
    let project = project("team-idle", HELD);
    let mut run = Listening::start(&project, &[&LINES[..], &["make it work"]].concat());
    run.until_held(&project);
    until("dev is idle", || {
        let [team] = &lines(&project, &["team", "show", "--json"])[..] else {
            panic!()
        };
        let members = team["members"].as_array().unwrap();
        members
            .iter()
            .any(|member| member["name"] == "dev" && member["state"] == "idle")
    });
    let (before, begun) = (used(run.child.id()), std::time::Instant::now());
    std::thread::sleep(std::time::Duration::from_secs(3));
    let share = (used(run.child.id()) - before) as f64 / 100.0 / begun.elapsed().as_secs_f64();
    // A loop would use all of one; what is measured is a thousandth of that.
    assert!(share < 0.05, "{share}");
}

pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed().as_secs() < 20, "{what}");
    }
}

#[test]
fn a_person_talks_to_a_member_from_elsewhere() {
    let project = project("team-talk", &HELD.replace("600000", "2000"));
    let mut run = Listening::start(&project, &[&LINES[..], &["make it work"]].concat());
    run.until_held(&project);
    let seen = succeed(&project, &["team", "attach", "reviewer"]);
    for words in [
        "● reviewer@mend · general-purpose",
        "⇠ task #2: look at it",
        "● running · #2 look at it",
    ] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
    succeed(
        &project,
        &["mail", "send", "reviewer@mend", "Begin with the lexer."],
    );
    let result = run.hear(|told| told["type"] == "result" && told["result"] == "All is mended.");
    assert_eq!(result["is_error"], false);
    let heard = |(agent, asked): &(String, String)| {
        agent.contains("reviewer") && asked.contains("Begin with the lexer.")
    };
    assert!(requests(&project).iter().any(heard));
}

// proves TE-19 (part: not ended)
#[test]
fn a_member_that_is_interrupted_from_elsewhere_stays() {
    let project = project("team-interrupt", HELD);
    let mut run = Listening::start(&project, &[&LINES[..], &["make it work"]].concat());
    run.until_held(&project);
    succeed(&project, &["team", "interrupt", "reviewer"]);
    let idle = run.hear(|told| told["event"] == "idle" && told["reason"] == "interrupted");
    assert_eq!(
        (&idle["name"], &idle["tasks"][0]["id"]),
        (&json!("reviewer"), &json!(2))
    );
}

/// All that the model was asked: who asked, and what.
pub(crate) fn requests(project: &Project) -> Vec<(String, String)> {
    let url = format!("{}/_scripted/requests", project.url());
    let output = std::process::Command::new("curl")
        .args(["-s", &url])
        .output()
        .unwrap();
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let read = |request: &Value| {
        let agent = request["headers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|pair| pair[0] == "x-posse-agent");
        let agent = agent.map_or_else(String::new, |pair| pair[1].as_str().unwrap().to_owned());
        (agent, request["body"].to_string())
    };
    all.iter().map(read).collect()
}
