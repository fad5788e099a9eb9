//! What earlier versions have written is read, continued and left as it was.
//!
//! `tests/fixtures/da60cb0` was made by that commit's binary with the scripts beside it (`make` says how): a session with
//! sub-agents, a fork and a team with mail and tasks, killed in the middle, in a file and in a database; and the lines of
//! three runs. Every later change of the schema adds a directory of its own here, made before the change.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use posse_port::store::{AgentFilter, Page, Store, StoreError};
use posse_protocol::{AgentId, ListId, TaskStatus};
use posse_scripted::{Recorded, Server};
use posse_store::Sqlite;
use posse_testkit::place::Place;
use posse_testkit::postgres::Database;
use regex::Regex;
use serde_json::Value;

use crate::binary::{Project, stderr, stdout};
use crate::crash::serve;

/// Where the fixtures were made.
const PLACE: &str = "/tmp/posse-fixture";

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/da60cb0")
        .join(name)
}

fn script(name: &str) -> String {
    std::fs::read_to_string(fixture(name)).unwrap()
}

fn unpacked(name: &str) -> Vec<u8> {
    let output = Command::new("gzip").arg("-dc").arg(fixture(name)).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

/// The last request of each agent that lived when the session was killed.
fn last_requests(name: &str) -> BTreeMap<String, String> {
    serde_json::from_slice(&unpacked(name)).unwrap()
}

/// The bytes of every entry, agent by agent.
async fn entries(store: &dyn Store) -> BTreeMap<AgentId, Vec<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for session in store
        .agents(AgentFilter::default(), Page::first(1000))
        .await
        .unwrap()
    {
        let transcript = store.read(session.agent).await.unwrap();
        let bytes = transcript.entries.iter().map(|it| it.entry.sent().to_vec());
        all.insert(session.agent, bytes.collect());
    }
    all
}

/// A request without marks of the cache: what stands before its messages, and these.
fn bare(body: &str) -> (String, String) {
    let mark = Regex::new(r#","cache_control":\{[^}]*\}"#).unwrap();
    let body = mark.replace_all(body, "");
    let (head, rest) = body.split_once(r#","max_tokens":"#).unwrap();
    let (_, messages) = rest.split_once(r#""messages":["#).unwrap();
    let messages = messages.strip_suffix("]}").unwrap();
    (head.to_owned(), messages.to_owned())
}

/// Sends a recorded request to the model once more, which then has it in its cache.
fn warm(server: &Server, path: &str, body: &str) {
    let mut curl = Command::new("curl")
        .args(["-sf", "-H", "x-api-key: k"])
        .args(["-H", "anthropic-version: 2026-10-21"])
        .args(["-H", "content-type: application/json"])
        .args(["-H", &format!("x-posse-agent: {path}")])
        .args(["--data-binary", "@-"])
        .arg(format!("{}/v1/messages", server.url()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = curl.stdin.take().unwrap();
    input.write_all(body.as_bytes()).unwrap();
    drop(input);
    let output = curl.wait_with_output().unwrap();
    assert!(output.status.success(), "{path}: {}", stdout(&output));
}

fn by<'a>(requests: &'a [Recorded], path: &str) -> Vec<&'a Recorded> {
    let own = requests
        .iter()
        .filter(|request| request.header("x-posse-agent") == Some(path));
    own.collect()
}

/// Waits until nobody holds an agent: on a server that has just started, the leases of the dead begin anew.
async fn free(store: &dyn Store, agent: AgentId) {
    loop {
        match store.take(agent).await {
            Ok(taken) => return store.release(agent, taken.epoch).await.unwrap(),
            Err(StoreError::Held { .. }) => std::thread::sleep(Duration::from_millis(200)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Continues the session that a store has, and looks at what was sent and what is stored.
async fn check(
    open: impl Fn() -> Arc<dyn Store>,
    recorded: &str,
    resume: impl Fn(&Server, &str) -> Output,
) {
    // A teammate works where it did.
    std::fs::create_dir_all(format!("{PLACE}/work")).unwrap();
    let store = open();
    let before = entries(store.as_ref()).await;
    assert_eq!(before.len(), 5, "the main agent and four below it");
    let team = store.teams(None, Page::first(10)).await.unwrap().remove(0);
    free(store.as_ref(), team.lead).await;
    drop(store);
    let (last, server) = (last_requests(recorded), serve(&script("resumed.toml")));
    for (path, body) in &last {
        warm(&server, path, body);
    }
    let output = resume(&server, &team.lead.to_string());
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "All is well.\n");

    let requests = server.requests();
    for (path, body) in &last {
        let own = by(&requests, path);
        let (warmed, resumed) = (own[0], own[1]);
        let ((head, sent), (same, continued)) = (
            bare(body),
            bare(std::str::from_utf8(&resumed.body).unwrap()),
        );
        assert_eq!(head, same, "{path}: model, tools and system prompt");
        assert!(continued.starts_with(&sent), "{path}: {sent}\n{continued}");
        let (warmed, resumed) = (warmed.usage.unwrap(), resumed.usage.unwrap());
        assert_eq!(resumed.cache_read, warmed.prompt(), "{path}: all is read");
    }
    let store = open();
    let after = entries(store.as_ref()).await;
    for (agent, entries) in &before {
        let now = &after[agent];
        assert!(now.len() >= entries.len(), "{agent}");
        assert_eq!(now[..entries.len()], entries[..], "{agent}");
    }
    assert!(after[&team.lead].len() > before[&team.lead].len());
    let list = ListId {
        realm: team.realm,
        team: Some(team.name),
    };
    let tasks = store
        .tasks(list, Default::default(), Page::first(10))
        .await
        .unwrap();
    assert_eq!(tasks.len(), 3);
    assert!(
        tasks
            .iter()
            .all(|task| task.status == TaskStatus::Completed),
        "{tasks:?}"
    );
}

fn resumed(project: &Project, server: &Server, session: &str) -> Command {
    let free = ["--permission-mode", "bypassPermissions"];
    let arguments = [&["-p"], &free[..], &["--resume", session, "Go on"]].concat();
    let mut command = project.posse(&arguments);
    command.env("ANTHROPIC_BASE_URL", server.url());
    command
}

#[tokio::test]
async fn a_session_in_a_file_of_da60cb0_is_continued() {
    let project = Project::new("earlier-file", "");
    let file = project.file("../home/posse.db");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, unpacked("posse.db.gz")).unwrap();
    let open = || -> Arc<dyn Store> { Arc::new(Sqlite::open(&file).unwrap()) };
    check(open, "file.json.gz", |server, session| {
        resumed(&project, server, session).output().unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_session_in_a_database_of_da60cb0_is_continued() {
    let (project, database) = (
        Project::new("earlier-database", ""),
        Database::empty().unwrap(),
    );
    let dump = project.file("posse.sql");
    std::fs::write(&dump, unpacked("posse.sql.gz")).unwrap();
    let loaded = Command::new("psql")
        .args(["-q", "-v", "ON_ERROR_STOP=1", "-d", database.url(), "-f"])
        .arg(&dump)
        .output();
    let loaded = loaded.unwrap();
    assert!(loaded.status.success(), "{}", stderr(&loaded));
    let place = Place::Server(database.url().into());
    let migrate = |arguments: &[&str]| {
        let mut command = project.posse(arguments);
        command.env("POSSE_STORE", database.url()).output().unwrap()
    };
    let refused = migrate(&["sessions", "list"]);
    assert!(
        stderr(&refused).contains("posse store migrate"),
        "{}",
        stderr(&refused)
    );
    let migrated = migrate(&["store", "migrate"]);
    assert!(migrated.status.success(), "{}", stderr(&migrated));
    let open = || place.open().unwrap();
    check(open, "database.json.gz", |server, session| {
        let mut command = resumed(&project, server, session);
        command.env("POSSE_STORE", database.url()).output().unwrap()
    })
    .await;
}

/// A line without what differs from run to run, and without words for people and models: these change, and with them
/// how many tokens they are and what they cost.
fn normal(value: Value, key: &str, role: &str, place: &str) -> Value {
    let ids = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(msg|toolu|req)_[0-9a-f]+(_\d+)?";
    let times = r"\d{4}-\d\d-\d\dT[0-9:.]+Z";
    match value {
        Value::Object(fields) => {
            let own = fields.get("role").and_then(Value::as_str);
            let role = own.unwrap_or(role).to_owned();
            let field = |(key, value): (String, Value)| {
                let value = normal(value, &key, &role, place);
                (key, value)
            };
            // A key that has been added since.
            let old = fields
                .into_iter()
                .filter(|(key, _)| key != "thinking_tokens");
            Value::Object(old.map(field).collect())
        }
        Value::Array(values) => {
            let values = values.into_iter();
            let values = values.filter(|it| key != "tools" || !it.as_str().is_some_and(is_new));
            values.map(|it| normal(it, key, role, place)).collect()
        }
        Value::String(text) if key == "text" && role == "user" && !is_prompt(&text) => {
            "WORDS".into()
        }
        Value::String(_) if matches!(key, "summary" | "signature") => "WORDS".into(),
        Value::String(_) if key == "claude_code_version" => "VERSION".into(),
        Value::String(text) => {
            let text = text.replace(place, "PLACE");
            let text = Regex::new(ids)
                .unwrap()
                .replace_all(&text, "ID")
                .into_owned();
            let text = Regex::new(times).unwrap().replace_all(&text, "TIME");
            text.into_owned().into()
        }
        Value::Number(_) if is_measured(key) => 0.into(),
        other => other,
    }
}

/// Returns true for a tool that has been added since.
fn is_new(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "EnterPlanMode" | "ExitPlanMode")
}

fn is_prompt(text: &str) -> bool {
    matches!(text, "Fix it." | "Make it work.")
}

fn is_measured(key: &str) -> bool {
    let key = key.to_lowercase();
    key.ends_with("_ms") || ["token", "cost", "usd"].iter().any(|it| key.contains(it))
}

/// The lines of each agent and of each task, in their order. Who speaks first of two that run at once is chance.
fn by_speaker(lines: &str, place: &str) -> Vec<Vec<Value>> {
    let mut speakers: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut told: BTreeMap<String, Value> = BTreeMap::new();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let who = line["task_id"].as_str().or(line["agent_id"].as_str());
        let other = if line["subtype"] == "team_task" {
            "tasks"
        } else {
            "main"
        };
        let who = who.unwrap_or(other).to_owned();
        if line["subtype"] == "task_progress" {
            // Since then it is also told when a call begins, without another reply.
            let tokens = line["usage"]["total_tokens"].clone();
            if told.insert(who.clone(), tokens.clone()) == Some(tokens) {
                continue;
            }
        }
        speakers
            .entry(who)
            .or_default()
            .push(normal(line, "", "", place));
    }
    let mut all: Vec<Vec<Value>> = speakers.into_values().collect();
    all.sort_by_key(|lines| serde_json::to_string(lines).unwrap());
    all
}

#[track_caller]
fn check_lines(name: &str, arguments: &[&str]) {
    let project = Project::new(&format!("earlier-{name}"), &script(&format!("{name}.toml")));
    std::fs::create_dir_all(project.file(".posse/teams")).unwrap();
    std::fs::write(project.file(".posse/teams/mend.toml"), script("mend.toml")).unwrap();
    let broken = "def add(a, b):\n    return a - b\n";
    std::fs::write(project.file("sum.py"), broken).unwrap();
    let lines = ["--output-format", "stream-json"];
    let free = ["--permission-mode", "bypassPermissions"];
    let mut command = project.posse(&[arguments, &free, &lines].concat());
    let output = command.env("ANTHROPIC_API_KEY", "k").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let place = project.file("..").canonicalize().unwrap();
    let now = by_speaker(&stdout(&output), place.to_str().unwrap());
    let then = by_speaker(&script(&format!("{name}.jsonl")), PLACE);
    assert_eq!(now.len(), then.len());
    for (now, then) in now.iter().zip(&then) {
        assert_eq!(now, then, "{name}");
    }
}

#[test]
fn tools_are_told_of_in_the_lines_of_da60cb0() {
    check_lines("plain", &["-p", "Fix it."]);
}

#[test]
fn background_runs_are_told_of_in_the_lines_of_da60cb0() {
    check_lines("background", &["-p", "Fix it."]);
}

#[test]
fn teams_are_told_of_in_the_lines_of_da60cb0() {
    check_lines("team", &["team", "run", "mend", "Make it work."]);
}
