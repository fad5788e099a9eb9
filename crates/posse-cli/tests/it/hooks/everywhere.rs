//! Hooks of settings hold for every agent: 64 of three kinds in one process, members in panes, and
//! members on a worker. Each makes calls that a hook denies, and no call runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use posse_testkit::postgres::Database;
use serde_json::{Value, json};

use crate::binary::{Project, stderr};
use crate::crash::serve;
use crate::definitions::write;
use crate::panes::{self, FREE};
use crate::{team_run, worker};

/// The hook's words, as the model reads them.
const DENIED: &str = "Denied by a hook of the user: no shell here";

/// Settings with a hook that denies all commands and notes what it was asked.
fn denies(log: &Path) -> String {
    let command = format!("cat >>'{}'; echo no shell here >&2; exit 2", log.display());
    let hook = json!({"type": "command", "command": command});
    json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}).to_string()
}

/// The inputs that the hook has read.
fn asked(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap();
    let inputs = serde_json::Deserializer::from_str(&text).into_iter();
    inputs.map(Result::unwrap).collect()
}

/// The IDs of the commands in requests, each with its result.
fn told(requests: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    let mut calls = BTreeMap::new();
    let mut results = BTreeMap::new();
    for request in requests {
        let messages = request["messages"].as_array().unwrap();
        let blocks = messages
            .iter()
            .filter_map(|message| message["content"].as_array());
        for block in blocks.flatten() {
            let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str() {
                Some("tool_use") if block["name"] == "Bash" => {
                    calls.insert(text("id"), Value::Null);
                }
                Some("tool_result") => drop(results.insert(text("tool_use_id"), block.clone())),
                _ => {}
            }
        }
    }
    for (id, result) in &mut calls {
        *result = results.remove(id).unwrap_or_default();
    }
    calls
}

/// Checks that the hook was asked about each call once, and that the model was told that it was
/// denied. Returns the inputs of the hook.
fn all_denied(log: &Path, requests: impl Iterator<Item = Value>) -> Vec<Value> {
    let (asked, told) = (asked(log), told(requests));
    let mut ids: Vec<&str> = asked
        .iter()
        .map(|input| input["tool_use_id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    let known: Vec<&str> = told.keys().map(String::as_str).collect();
    assert_eq!(ids, known, "each call, once");
    for (id, result) in &told {
        let is_denied = result["is_error"] == true && result.to_string().contains(DENIED);
        assert!(is_denied, "{id}: {result}");
    }
    asked
}

/// How many agents have asked, by what `kind` says of each.
fn agents(asked: &[Value], kind: impl Fn(&Value) -> String) -> BTreeMap<String, usize> {
    let kinds: BTreeMap<&str, String> = asked
        .iter()
        .map(|input| (input["posse"]["agent"].as_str().unwrap(), kind(input)))
        .collect();
    let mut counts = BTreeMap::new();
    for kind in kinds.into_values() {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

/// A main agent that starts 22 sub-agents, 21 forks and 21 teammates. Each of them, and the main
/// agent, makes calls.
fn starts_64() -> String {
    let call = |more: &str| {
        format!("{{ tool = 'Agent', input = {{ description = 'd', prompt = 'Work.'{more} }} }}")
    };
    let sub_agents = (0..22).map(|_| call(""));
    let forks = (0..21).map(|_| call(", subagent_type = 'fork'"));
    let teammates = (0..21).map(|it| call(&format!(", name = 'mate-{it}', team_name = 'crew'")));
    let all: Vec<String> = sub_agents.chain(forks).chain(teammates).collect();
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main$", turn = 1 }}
reply = [{{ tool = "TeamCreate", input = {{ team_name = "crew", description = "d" }} }}]
[[rule]]
when = {{ agent = "re:^/main$", turn = 2 }}
reply = [{{ tool = "Bash", input = {{ command = "echo main >>ran.log" }} }}, {all}]
[[rule]]
when.agent = "re:^/main$"
reply = [{{ text = "I see." }}]
[[rule]]
when.tool = "re:{DENIED}"
reply = [{{ text = "It was denied." }}]
[[rule]]
reply = [
  {{ tool = "Bash", input = {{ command = "echo {{{{agent}}}} >>ran.log" }} }},
  {{ tool = "Bash", input = {{ command = "echo {{{{agent}}}} >>ran.log", run_in_background = true }} }},
]
"#,
        all = all.join(", ")
    )
}

// proves HK-02 (part: main agent; sub-agents; forks; teammates)
#[test]
fn no_call_of_64_agents_of_a_process_runs_if_a_hook_denies_it() {
    let project = Project::new("hooks-64", "");
    let server = serve(&starts_64());
    let log = Project::place("hooks-64").join("hooks.log");
    write(&project, "../home/.claude/settings.json", &denies(&log));
    let mut posse = project.posse(&["-p", "--team-backend", "in-process"]);
    posse
        .args(FREE)
        .arg("begin")
        .env("ANTHROPIC_BASE_URL", server.url());
    let output = posse.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!project.file("ran.log").exists(), "a call has run");
    let requests = server.requests();
    let bodies = requests.iter().map(|it| serde_json::from_slice(&it.body));
    let asked = all_denied(&log, bodies.map(Result::unwrap));
    assert_eq!(asked.len(), 1 + 64 * 2);
    let kind = |input: &Value| match &input["posse"] {
        posse if posse["team"] == "crew" && posse["depth"] != 0 => "teammate".to_owned(),
        posse => posse["type"].as_str().unwrap_or("main").to_owned(),
    };
    let expected = [
        ("fork", 21),
        ("general-purpose", 22),
        ("main", 1),
        ("teammate", 21),
    ];
    let expected = expected.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(agents(&asked, kind), BTreeMap::from(expected));
}

// proves HK-02 (part: panes)
#[test]
fn no_call_of_members_in_panes_runs_if_a_hook_denies_it() {
    let names: Vec<String> = (0..8).map(|number| format!("mate-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let log = Project::place("panes-hooks").join("hooks.log");
    let flags = [&["--team-backend", "tmux"], &FREE[..]].concat();
    let scene = panes::Scene::with("hooks", &names, &flags, |_| denies(&log));
    scene.all_is_over();
    let screen = scene.screen("%1");
    assert!(screen.contains("code 0"), "{screen}");
    assert_eq!(scene.done(), 0, "a call has run");
    let requests = scene.server.requests();
    let bodies = requests.iter().map(|it| serde_json::from_slice(&it.body));
    let asked = all_denied(&log, bodies.map(Result::unwrap));
    let member = |input: &Value| input["posse"]["member"].as_str().unwrap().to_owned();
    let all = names.iter().map(|name| ((*name).to_owned(), 1));
    assert_eq!(agents(&asked, member), all.collect());
}

// proves HK-02 (part: workers)
#[test]
fn no_call_of_members_on_a_worker_runs_if_a_hook_denies_it() {
    const MEMBERS: usize = 16;
    let database = Database::new().unwrap();
    let scene = worker::Scene::new("hooks", database.url());
    let log = Project::place("worker-hooks").join("hooks.log");
    write(
        &scene.project,
        "../home/.claude/settings.json",
        &denies(&log),
    );
    let tasks: String = (0..MEMBERS)
        .map(|task| format!("[[tasks]]\nsubject = 'part {task}'\n"))
        .collect();
    let team = format!(
        "description = 'It works.'\n[roles.dev]\nprompt = 'Work.'\ncount = {MEMBERS}\n{tasks}"
    );
    write(&scene.project, ".posse/teams/crew.toml", &team);
    // What is not denied would wait for this.
    fs::write(scene.project.file("go"), "").unwrap();
    let mut lead = scene.lead();
    let mut worker = scene.worker(&[]);
    worker.until_members("hosted", MEMBERS);
    assert_eq!(lead.ends(), 0, "{:#?}", lead.said);
    worker.interrupt();
    assert_eq!(worker.ends(), 0, "{:#?}", worker.said);
    assert!(!scene.project.file("done.log").exists(), "a call has run");
    let requests = team_run::requests(&scene.project);
    let bodies = requests.iter().map(|(_, body)| {
        let body: String = serde_json::from_str(body).unwrap();
        serde_json::from_str(&body).unwrap()
    });
    let asked = all_denied(&log, bodies);
    let member = |input: &Value| input["posse"]["member"].as_str().unwrap().to_owned();
    let agents = agents(&asked, member);
    assert_eq!(asked.len(), MEMBERS, "a call for each task");
    // Who is quick can have taken the task of another.
    assert!(agents.len() > MEMBERS / 2, "{agents:?}");
}
