//! Sub-agents and background runs, as people and programs see them.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::run::{LINES, Talk, lines, processes_of, result};

/// A sub-agent runs `command`, then says what it found; the main agent starts it and goes on.
pub(crate) fn starts(background: &str, command: &str) -> String {
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main/.", tool = "re:." }}
reply = [{{ text = "two callers" }}]
[[rule]]
when.agent = "re:^/main/."
reply = [{{ tool = "Bash", input = {{ command = "{command}" }} }}]
[[rule]]
when.user = "task-notification"
reply = [{{ text = "It has ended." }}]
[[rule]]
when.tool = "re:two callers"
reply = [{{ text = "It found two callers." }}]
[[rule]]
when.tool = "re:."
reply = [{{ text = "The tool said: {{{{tool}}}}" }}]
[[rule]]
reply = [{{ tool = "Agent", input = {{ description = "find callers", prompt = "Who calls it?"{background} }} }}]
"#
    )
}

const IN_BACKGROUND: &str = ", run_in_background = true";
/// Goes on until the test says so.
const UNTIL_TOLD: &str = "until [ -e go ]; do sleep 0.02; done";

/// posse with lines coming out.
struct Listening {
    child: Child,
    from: BufReader<ChildStdout>,
}

impl Listening {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        let arguments = [&LINES[..], &["--allowedTools", "Bash", "look"], arguments].concat();
        let mut child = project
            .posse(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        Self { child, from }
    }

    /// Reads up to the line of this type or subtype.
    fn hear(&mut self, kind: &str) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.from.read_line(&mut line).unwrap(),
                0,
                "it ended before a {kind} came"
            );
            let told: Value = serde_json::from_str(&line).unwrap();
            if told["type"] == kind || told["subtype"] == kind {
                return told;
            }
        }
    }
}

/// Waits until a run has a process.
fn wait_for_process(task: &Value) -> String {
    let task = task["task_id"].as_str().unwrap().to_owned();
    let begun = Instant::now();
    while processes_of(&task) == 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "the command does not begin"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    task
}

// proves BG-08 (part: waits)
#[test]
fn the_end_of_a_background_agent_begins_another_run() {
    let project = Project::new("agents-background", &starts(IN_BACKGROUND, UNTIL_TOLD));
    let mut posse = Listening::start(&project, &[]);
    let started = posse.hear("task_started");
    assert_eq!(
        (&started["is_backgrounded"], &started["spawn_depth"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(
        (&started["subagent_type"], &started["prompt"]),
        (&json!("general-purpose"), &json!("Who calls it?"))
    );
    let first = posse.hear("result");
    assert_eq!(
        (&first["subtype"], &first["num_turns"]),
        (&json!("success"), &json!(2)),
        "{first}"
    );
    std::fs::write(project.file("go"), "").unwrap();
    let ended = posse.hear("task_notification");
    assert_eq!(
        (&ended["status"], &ended["task_id"]),
        (&json!("completed"), &started["task_id"]),
        "{ended}"
    );
    assert_eq!(ended["usage"]["tool_uses"], json!(1));
    let told = posse.hear("user");
    assert_eq!(
        (&told["isSynthetic"], told.get("isReplay")),
        (&json!(true), None),
        "{told}"
    );
    let last = posse.hear("result");
    assert_eq!(
        (&last["result"], &last["num_turns"]),
        (&json!("It has ended."), &json!(1)),
        "{last}"
    );
    assert_eq!(posse.child.wait().unwrap().code(), Some(0));
}

// proves BG-08 (part: waits)
#[test]
fn one_object_is_the_last_runs_with_what_all_took() {
    let project = Project::new("agents-json", &starts(IN_BACKGROUND, "sleep 0.3"));
    let output = project.run(&[
        "-p",
        "look",
        "--allowedTools",
        "Bash",
        "--output-format",
        "json",
    ]);
    let told = lines(&output);
    assert_eq!(
        (told.len(), &told[0]["result"]),
        (1, &json!("It has ended.")),
        "{}",
        stderr(&output)
    );
    let model = told[0]["modelUsage"]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap();
    assert!(
        model["outputTokens"].as_u64() > told[0]["usage"]["output_tokens"].as_u64(),
        "{}",
        told[0]
    );
    assert_eq!(
        (output.status.code(), stderr(&output).as_str()),
        (Some(0), "")
    );
    let output = project.run(&["-p", "look", "--allowedTools", "Bash", "--verbose"]);
    assert_eq!(stdout(&output), "It has ended.\n");
    let said = stderr(&output);
    for line in [
        "⇢ general-purpose: find callers (background)",
        "⇠ completed find callers · 1 tool use · ",
    ] {
        assert!(said.contains(line), "{said}");
    }
}

// proves BG-08 (part: ceiling; reports and stops)
#[test]
fn what_does_not_end_in_time_is_told_and_stopped() {
    let project = Project::new("agents-ceiling", &starts(IN_BACKGROUND, "sleep 1000"));
    let mut posse = Listening::start(&project, &["--background-wait", "1"]);
    let task = wait_for_process(&posse.hear("task_started"));
    let left = posse.hear("left_running");
    assert_eq!(
        (&left["tasks"][0]["task_id"], &left["waited_seconds"]),
        (&json!(task), &json!(1))
    );
    assert_eq!(posse.hear("task_notification")["status"], "stopped");
    assert_eq!(posse.child.wait().unwrap().code(), Some(3));
    assert_eq!(processes_of(&task), 0);
    let at_once = [
        "-p",
        "look",
        "--allowedTools",
        "Bash",
        "--output-format",
        "json",
        "--background-wait",
        "0",
    ];
    let output = project.run(&at_once);
    let told = result(&output);
    assert_eq!(
        (&told["subtype"], output.status.code()),
        (&json!("success"), Some(3)),
        "{told}"
    );
    assert_eq!(told["left_running"][0]["description"], "find callers");
    assert!(
        stderr(&output).contains("left running: 1 background run will be stopped"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn ctrl_c_while_it_waits_stops_what_is_waited_for() {
    let project = Project::new("agents-signal", &starts(IN_BACKGROUND, "sleep 1000"));
    let mut posse = Listening::start(&project, &[]);
    let task = wait_for_process(&posse.hear("task_started"));
    posse.hear("result");
    Command::new("kill")
        .args(["-INT", &posse.child.id().to_string()])
        .status()
        .unwrap();
    assert_eq!(posse.hear("task_notification")["status"], "stopped");
    assert_eq!(posse.child.wait().unwrap().code(), Some(130));
    assert_eq!(processes_of(&task), 0);
}

// proves BG-20 (part: one command)
#[test]
fn a_line_stops_a_task_and_the_main_agent_is_told() {
    let project = Project::new("agents-stop", &starts(IN_BACKGROUND, "sleep 1000"));
    let stop = |talk: &mut Talk, request: Value| {
        talk.tell(&json!({"type": "control_request", "request_id": "1", "request": request}));
        assert_eq!(
            talk.hear("control_response")["response"]["subtype"],
            "success"
        );
    };
    for all in [false, true] {
        let mut talk = Talk::start(&project, &["--allowedTools", "Bash"]);
        talk.prompt("look");
        let started = talk.hear("task_started");
        talk.hear("result");
        let task = wait_for_process(&started);
        let one = json!({"subtype": "stop_task", "task_id": task});
        stop(
            &mut talk,
            if all {
                json!({"subtype": "stop_all_tasks"})
            } else {
                one
            },
        );
        assert_eq!(talk.hear("task_notification")["status"], "stopped");
        assert_eq!(processes_of(&task), 0, "it is told when it is gone");
        if all {
            // Who stops everything wants nothing to begin by it; the agent hears of it with the next words.
            talk.prompt("and now?");
        }
        assert_eq!(talk.hear("result")["result"], "It has ended.");
        stop(&mut talk, json!({"subtype": "stop_task", "task_id": task}));
        assert!(
            talk.hear("unheard")["message"]
                .as_str()
                .unwrap()
                .contains(&task)
        );
        assert_eq!(talk.end(), Some(0));
    }
}

// proves PE-05 (part: its name)
#[test]
fn a_sub_agents_question_comes_with_its_name() {
    let script = starts(r#", name = "scout""#, "touch made");
    let project = Project::new("agents-asked", &script);
    for (behavior, exists) in [("deny", false), ("allow", true)] {
        let mut talk = Talk::start(&project, &["--allowedTools", "Agent"]);
        talk.prompt("look");
        let started = talk.hear("task_started");
        let asked = talk.hear("control_request");
        let request = &asked["request"];
        assert_eq!(
            (&request["agent_id"], &request["agent_name"]),
            (&started["task_id"], &json!("scout"))
        );
        assert_eq!(
            (&request["subtype"], &request["tool_name"]),
            (&json!("can_use_tool"), &json!("Bash"))
        );
        let answer = json!({"behavior": behavior, "message": "not now"});
        let response =
            json!({"subtype": "success", "request_id": asked["request_id"], "response": answer});
        talk.tell(&json!({"type": "control_response", "response": response}));
        assert_eq!(talk.hear("result")["result"], "It found two callers.");
        assert_eq!(talk.end(), Some(0));
        assert_eq!(project.file("made").exists(), exists);
    }
    let output = project.run(&["-p", "look", "--allowedTools", "Agent"]);
    let said = stderr(&output);
    assert!(
        said.starts_with("✗ scout: Bash(") && said.lines().count() == 1,
        "{said}"
    );
}

// proves AG-22 (part: switched off)
#[test]
fn nothing_goes_to_the_background_where_that_is_switched_off() {
    let project = Project::new("agents-off", &starts(IN_BACKGROUND, "true"));
    let output = project.run(&["-p", "look", "--allowedTools", "Bash", "--no-background"]);
    assert!(
        stdout(&output).contains("background"),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
    assert!(
        !stdout(&output).contains("two callers"),
        "{}",
        stdout(&output)
    );
    let project = Project::new("agents-on", &starts("", "true"));
    let output = project.run(&["-p", "look", "--allowedTools", "Bash", "--no-background"]);
    assert_eq!(
        stdout(&output),
        "It found two callers.\n",
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_line_moves_what_is_waited_for_to_the_background() {
    let project = Project::new("agents-detach", &starts("", UNTIL_TOLD));
    let mut talk = Talk::start(&project, &["--allowedTools", "Bash"]);
    talk.prompt("look");
    let started = talk.hear("task_started");
    assert_eq!(started["is_backgrounded"], json!(false));
    wait_for_process(&started);
    talk.tell(
        &json!({"type": "control_request", "request_id": "1", "request": {"subtype": "background_tasks"}}),
    );
    assert_eq!(
        talk.hear("task_updated")["patch"],
        json!({"is_backgrounded": true})
    );
    let first = talk.hear("result");
    assert_eq!(first["num_turns"], json!(2), "{first}");
    std::fs::write(project.file("go"), "").unwrap();
    assert_eq!(talk.hear("task_notification")["status"], "completed");
    assert_eq!(talk.hear("result")["result"], "It has ended.");
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn what_had_not_ended_goes_on_after_a_kill() {
    let project = Project::new(
        "agents-killed",
        &starts(r#", run_in_background = true, name = "scout""#, UNTIL_TOLD),
    );
    let mut posse = Listening::start(&project, &[]);
    let task = wait_for_process(&posse.hear("task_started"));
    posse.hear("result");
    posse.child.kill().unwrap();
    posse.child.wait().unwrap();
    std::fs::write(project.file("go"), "").unwrap();
    let sent = stdout(&project.run(&["mail", "send", "scout", "hurry"]));
    assert_eq!(sent, "sent to scout: it waits in its inbox\n");
    let goes_on = ["-p", "--continue", "--allowedTools", "Bash"];
    let told = lines(&project.run(&[&goes_on[..], &["--output-format", "stream-json"]].concat()));
    let of = |kind: &str| {
        told.iter()
            .filter(|line| line["subtype"] == kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (of("task_started").len(), &of("task_started")[0]["task_id"]),
        (1, &json!(task))
    );
    assert_eq!(
        (
            of("task_notification").len(),
            &of("task_notification")[0]["status"]
        ),
        (1, &json!("completed"))
    );
    assert_eq!(told.last().unwrap()["result"], "It has ended.");
    let output = project.run(&goes_on);
    assert!(
        stderr(&output).contains("has nothing left to do"),
        "{}",
        stderr(&output)
    );
}

// proves FK-09 (part: headless only when asked)
#[test]
fn a_call_without_a_type_forks_headless_only_where_that_is_always_wanted() {
    for (wanted, started) in [
        ("off", "/main/general-purpose-1"),
        ("interactive", "/main/general-purpose-1"),
        ("always", "/main/fork-1"),
    ] {
        let project = Project::new(&format!("agents-fork-{wanted}"), &starts("", "true"));
        let settings = json!({"agents": {"implicitFork": wanted}});
        std::fs::create_dir_all(project.file("../home")).unwrap();
        std::fs::write(project.file("../home/settings.json"), settings.to_string()).unwrap();
        let output = project.run(&["-p", "--allowedTools", "Bash", "--", "look"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let agents = crate::team::lines(&project, &["agents", "ps", "--all", "--json"]);
        assert!(
            agents.iter().any(|agent| agent["path"] == started),
            "{wanted}: {agents:?}"
        );
    }
}
