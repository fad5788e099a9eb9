//! Servers that agents use: who is told of what, what is sent, and what the servers see.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{objects, project};
use crate::binary::{Project, stderr, stdout};
use crate::definitions::write;

/// A script that loads `mcp__calc__add` and calls it.
const ADDS: &str = r#"
[[rule]]
when = { user = "go", tool = "re:mcp__calc__add" }
reply = [{ tool = "mcp__calc__add", input = { a = 2, b = 3 } }]
[[rule]]
when = { user = "go", tool = "5" }
reply = [{ text = "it is five" }]
[[rule]]
when = { user = "go" }
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__calc__add" } }]
"#;

/// The entry of the server of the testkit, which logs what it does.
pub(super) fn entry(project: &Project, options: &[&str]) -> Value {
    let posse = Path::new(env!("CARGO_BIN_EXE_posse"));
    let log = log(project);
    let args: Vec<&str> = [options, &["--log", log.to_str().unwrap()]].concat();
    json!({ "command": posse.with_file_name("mcp-server"), "args": args })
}

fn log(project: &Project) -> PathBuf {
    project.file("../server.log")
}

/// Declares the server `calc` for one run.
pub(super) fn flag(project: &Project, options: &[&str]) -> String {
    json!({ "mcpServers": { "calc": entry(project, options) } }).to_string()
}

/// What servers have logged of a kind.
pub(super) fn logged(project: &Project, event: &str) -> Vec<Value> {
    let text = fs::read_to_string(log(project)).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines
        .filter(|line: &Value| line["event"] == event)
        .collect()
}

const QUIET: [&str; 4] = ["--output-format", "stream-json", "--verbose", "-p"];
const FREE: [&str; 2] = ["--permission-mode", "bypassPermissions"];

/// Runs a prompt, and returns what is told, with the result at its end.
pub(super) fn told(project: &Project, more: &[&str]) -> Vec<Value> {
    let output = project.run(&[&QUIET[..], &FREE, more].concat());
    assert!(
        output.status.success(),
        "{}\n{}",
        stderr(&output),
        stdout(&output)
    );
    objects(&output)
}

fn result(told: &[Value]) -> &str {
    told.last().unwrap()["result"].as_str().unwrap()
}

/// Fails if a request could have read more from the cache.
pub(super) fn assert_nothing_missed(project: &Project) {
    let report = project.run(&["cache", "--json", "--all"]);
    let report = objects(&report).remove(0);
    let agents = report["agents"].as_array().unwrap();
    for agent in agents {
        for request in agent["requests"].as_array().unwrap() {
            assert!(request["missed"].is_null(), "{request}");
        }
    }
    assert!(!agents.is_empty(), "{report}");
}

// proves MC-06 (part: first call)
#[test]
fn the_first_request_knows_every_server_that_connects_in_time() {
    let project = project("mcp-first", ADDS);
    let flag = flag(&project, &["--slow-start", "400"]);
    let told = told(&project, &["--mcp-config", &flag, "go"]);
    assert_eq!(result(&told), "it is five");
    let requests = project.requests();
    let first = requests[0]["body"]["messages"].to_string();
    assert!(
        first.contains("- calc: ") && first.contains("mcp__calc__add"),
        "{first}"
    );
    assert!(!first.contains("still connecting"), "{first}");
    let calls = logged(&project, "call");
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["arguments"], json!({"a": 2, "b": 3}));
    assert_nothing_missed(&project);
}

/// Rules by the number of the turn: what is called, one after the other, and an end.
fn calls(inputs: &[(&str, &str)]) -> String {
    let rules = inputs.iter().enumerate().map(|(turn, (tool, input))| {
        let turn = turn + 1;
        format!("[[rule]]\nwhen.turn = {turn}\nreply = [{{ tool = '{tool}', json = '{input}' }}]\n")
    });
    let rules: String = rules.collect();
    format!("{rules}[[rule]]\nreply = [{{ text = 'the end' }}]\n")
}

// proves MC-03 (part: changes)
#[test]
fn a_list_that_changes_a_hundred_times_misses_no_cached_token() {
    let mut turns = vec![("ToolSearch", r#"{"query": "select:mcp__calc__echo"}"#)];
    turns.extend([("mcp__calc__echo", r#"{"message": "x"}"#); 100]);
    turns.push(("ToolSearch", r#"{"query": "select:mcp__calc__added_100"}"#));
    turns.push(("mcp__calc__added_100", "{}"));
    let project = project("mcp-changes", &calls(&turns));
    let flag = flag(&project, &["--change-list"]);
    let told = told(&project, &["--mcp-config", &flag, "go"]);
    assert_eq!(result(&told), "the end");
    assert_eq!(logged(&project, "call").len(), 101);
    let requests = project.requests();
    assert_eq!(requests.len(), turns.len() + 1);
    assert!(requests.iter().all(|it| it["status"] == 200));
    // What changes is told, and loaded besides.
    let last = &requests.last().unwrap()["body"];
    assert!(last["messages"].to_string().contains("mcp__calc__added_99"));
    let deferred = last["tools"].as_array().unwrap().iter();
    let deferred = deferred.filter(|it| it["defer_loading"] == true);
    let deferred: Vec<_> = deferred.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(deferred, ["mcp__calc__echo", "mcp__calc__added_100"]);
    assert_nothing_missed(&project);
}

// proves MC-06 (part: later ones)
#[test]
fn a_server_that_comes_late_is_told_of_and_waited_for() {
    let turns = [
        ("ToolSearch", r#"{"query": "+add sum"}"#),
        ("mcp__calc__add", r#"{"a": 2, "b": 3}"#),
    ];
    let project = project("mcp-late", &calls(&turns));
    let flag = flag(&project, &["--slow-start", "5500"]);
    let told = told(&project, &["--mcp-config", &flag, "go"]);
    assert_eq!(result(&told), "the end");
    let requests = project.requests();
    let first = requests[0]["body"]["messages"].to_string();
    assert!(first.contains("- calc (still connecting"), "{first}");
    let last = requests[2]["body"]["messages"].to_string();
    assert!(last.contains("mcp__calc__progress"), "{last}");
    assert_eq!(logged(&project, "call").len(), 1);
    assert_nothing_missed(&project);
}

// proves MC-06 (part: failed ones)
#[test]
fn a_server_that_fails_is_told_of_and_the_run_goes_on() {
    let project = project("mcp-failed", &calls(&[]));
    let flag = flag(&project, &["--fail-start"]);
    let told = told(&project, &["--mcp-config", &flag, "go"]);
    let first = project.requests()[0]["body"]["messages"].to_string();
    assert!(first.contains("- calc (not connected: "), "{first}");
    assert!(first.contains("this server always fails"), "{first}");
    for line in [&told[0], told.last().unwrap()] {
        let server = &line["mcp_servers"][0];
        assert_eq!(
            (&server["name"], &server["status"]),
            (&json!("calc"), &json!("failed"))
        );
        let why = server["error"].as_str().unwrap();
        assert!(why.contains("this server always fails"), "{why}");
    }
    let warnings = told.iter().filter(|it| it["subtype"] == "unheard");
    let warnings: Vec<String> = warnings.map(Value::to_string).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("the MCP server calc is not connected"),
        "{warnings:?}"
    );
}

// proves MC-03 (part: known from the beginning)
#[test]
fn tools_that_are_to_be_known_from_the_beginning_are_part_of_the_birth() {
    let project = project(
        "mcp-eager",
        &calls(&[("mcp__calc__echo", r#"{"message": "hi"}"#)]),
    );
    let flag = flag(&project, &["--always-load"]);
    let told = told(&project, &["--mcp-config", &flag, "go"]);
    let id = told[0]["session_id"].as_str().unwrap().to_owned();
    let requests = project.requests();
    let tools = requests[0]["body"]["tools"].as_array().unwrap().clone();
    let echo = tools.iter().find(|it| it["name"] == "mcp__calc__echo");
    assert!(echo.unwrap()["defer_loading"].is_null());
    let listed = requests[0]["body"]["messages"].to_string();
    assert!(!listed.contains("mcp__calc__echo,"), "{listed}");
    assert_eq!(logged(&project, "call").len(), 1);
    // A resumed agent has it as it had it.
    let again = ["--resume", &id, "--mcp-config", &flag, "again"];
    self::told(&project, &again);
    let last = project.requests().last().unwrap()["body"].clone();
    assert_eq!(last["tools"], json!(tools));
    assert_nothing_missed(&project);
}

// proves MC-04 (part: without its servers; called)
#[test]
fn a_session_is_resumed_without_its_servers() {
    let script = format!(
        "[[rule]]\nwhen = {{ user = 'again', tool = 'no tool mcp__calc__add now' }}\nreply = [{{ text = 'it is gone' }}]\n\
         [[rule]]\nwhen.user = 'again'\nreply = [{{ tool = 'mcp__calc__add', input = {{ a = 1, b = 1 }} }}]\n{ADDS}"
    );
    let project = project("mcp-resumed", &script);
    let flag = flag(&project, &[]);
    let first = told(&project, &["--mcp-config", &flag, "go"]);
    let id = first[0]["session_id"].as_str().unwrap().to_owned();
    let again = told(&project, &["--resume", &id, "again"]);
    assert_eq!(result(&again), "it is gone");
    let requests = project.requests();
    assert!(requests.iter().all(|it| it["status"] == 200));
    let last = &requests.last().unwrap()["body"];
    let deferred = last["tools"].as_array().unwrap().iter();
    let deferred = deferred.filter(|it| it["defer_loading"] == true);
    assert_eq!(deferred.count(), 1);
    assert_eq!(logged(&project, "call").len(), 1);
    assert_nothing_missed(&project);
}

/// A script whose main agent loads a tool, and then calls it by a fork, a sub-agent and a teammate.
const MANY: &str = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__calc__add" } }]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [
  { tool = "Agent", input = { description = "a fork", prompt = "Fork.", subagent_type = "fork" } },
  { tool = "Agent", input = { description = "a sub", prompt = "Sub.", subagent_type = "general-purpose" } },
]
[[rule]]
when = { agent = "re:^/main$", turn = 3 }
reply = [{ tool = "TeamCreate", input = { team_name = "crew", description = "d" } }]
[[rule]]
when = { agent = "re:^/main$", turn = 4 }
reply = [{ tool = "Agent", input = { description = "a mate", prompt = "Mate.", name = "cook", team_name = "crew" } }]
[[rule]]
when = { agent = "re:^/main" , user = "Fork.", tool = "re:^5$" }
reply = [{ text = "five" }]
[[rule]]
when = { agent = "re:^/main" , user = "Fork." }
reply = [{ tool = "mcp__calc__add", input = { a = 1, b = 4 } }]
[[rule]]
when = { agent = "re:^/main/.", tool = "re:^5$" }
reply = [{ text = "five" }]
[[rule]]
when = { agent = "re:^/main/.", tool = "re:mcp__calc__add" }
reply = [{ tool = "mcp__calc__add", input = { a = 2, b = 3 } }]
[[rule]]
when = { agent = "re:^/main/." }
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__calc__add" } }]
[[rule]]
reply = [{ text = "the end" }]
"#;

// proves MC-02 (part: one for all agents)
// proves MC-03 (part: forks)
// proves HK-06 (part: shared)
#[test]
fn a_fork_a_sub_agent_and_a_teammate_share_one_server() {
    let project = project("mcp-many", MANY);
    let flag = flag(&project, &[]);
    told(&project, &["--mcp-config", &flag, "go"]);
    let calls = logged(&project, "call");
    assert_eq!(calls.len(), 3, "{calls:?}");
    assert_eq!(logged(&project, "start").len(), 1);
    let requests = project.requests();
    assert!(requests.iter().all(|it| it["status"] == 200));
    // A fork has what its parent had loaded: it calls the tool at once.
    let forked = requests
        .iter()
        .find(|it| it["body"].to_string().contains("\"Fork.\""));
    let deferred = forked.unwrap()["body"]["tools"].as_array().unwrap().iter();
    assert_eq!(deferred.filter(|it| it["defer_loading"] == true).count(), 1);
    assert_nothing_missed(&project);
}

fn write_type(project: &Project, name: &str, front: &str) {
    let text = format!("---\nname: {name}\ndescription: d\n{front}---\nWork.\n");
    write(project, &format!(".posse/agents/{name}.md"), &text);
}

fn starts(kind: &str) -> String {
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main$", turn = 1 }}
reply = [{{ tool = "Agent", input = {{ description = "work", prompt = "Work.", subagent_type = "{kind}" }} }}]
[[rule]]
when = {{ agent = "re:^/main/.", turn = 1 }}
reply = [{{ tool = "ToolSearch", input = {{ query = "select:mcp__calc__add" }} }}]
[[rule]]
when = {{ agent = "re:^/main/.", turn = 2 }}
reply = [{{ tool = "mcp__calc__add", input = {{ a = 2, b = 3 }} }}]
[[rule]]
when = {{ agent = "re:^/main/." }}
reply = [{{ text = "SAID {{{{tool}}}}" }}]
[[rule]]
reply = [{{ text = "{{{{tool}}}}" }}]
"#
    )
}

// proves HK-06 (part: a definition's own)
// proves AD-01 (part: servers)
#[test]
fn a_definitions_own_server_lives_as_long_as_its_agents() {
    let project = project("mcp-own", &starts("tester"));
    let own = json!([{ "calc": entry(&project, &[]) }]);
    write_type(&project, "tester", &format!("mcpServers: {own}\n"));
    let told = told(&project, &["go"]);
    assert!(result(&told).contains("SAID 5"), "{}", result(&told));
    let seen: Vec<Value> = ["start", "call", "end"]
        .iter()
        .flat_map(|event| logged(&project, event))
        .map(|line| line["pid"].clone())
        .collect();
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert!(seen.iter().all(|pid| *pid == seen[0]));
    // The main agent was never told of it.
    let requests = project.requests();
    assert!(!requests[0]["body"].to_string().contains("mcp__calc"));
}

// proves AG-04 (part: servers)
#[test]
fn a_type_waits_for_the_servers_that_it_needs() {
    let project = project("mcp-required", &starts("tester"));
    write_type(&project, "tester", "requiredMcpServers: [\"ca*\"]\n");
    let slow = flag(&project, &["--slow-start", "5500"]);
    let told_of = |flag: &str| result(&told(&project, &["--mcp-config", flag, "go"])).to_owned();
    assert!(told_of(&slow).contains("SAID 5"));
    let failing = flag(&project, &["--fail-start"]);
    let failed = told_of(&failing);
    assert!(
        failed.contains("tester needs MCP servers that are not connected: ca* (")
            && failed.contains("this server always fails"),
        "{failed}"
    );
    let none = json!({ "mcpServers": { "other": entry(&project, &[]) } }).to_string();
    let missing = told_of(&none);
    assert!(
        missing.contains("not connected: ca* (none is declared)"),
        "{missing}"
    );
}

// proves MC-05 (part: unknown; started anew)
#[test]
fn a_call_in_which_the_server_ends_is_unknown_and_not_made_again() {
    let turns = [
        (
            "ToolSearch",
            r#"{"query": "select:mcp__calc__die,mcp__calc__counter"}"#,
        ),
        ("mcp__calc__counter", "{}"),
        ("mcp__calc__die", "{}"),
        ("mcp__calc__counter", "{}"),
    ];
    let project = project("mcp-dies", &calls(&turns));
    let flag = flag(&project, &[]);
    told(&project, &["--mcp-config", &flag, "go"]);
    let tools: Vec<Value> = logged(&project, "call")
        .iter()
        .map(|it| it["tool"].clone())
        .collect();
    assert_eq!(tools, ["counter", "die", "counter"]);
    assert_eq!(logged(&project, "start").len(), 2);
    let requests = project.requests();
    let last = requests.last().unwrap()["body"]["messages"].to_string();
    assert!(
        last.contains("exit code 3") || last.contains("status 3"),
        "{last}"
    );
    assert!(last.contains("unknown"), "{last}");
    assert!(
        last.contains("The server was started anew before this call"),
        "{last}"
    );
    assert_nothing_missed(&project);
}

// proves MC-03 (part: CallTool)
#[test]
fn a_model_that_loads_no_tools_calls_them_by_one_that_is_always_there() {
    let turns = [
        ("ToolSearch", r#"{"query": "select:mcp__calc__add"}"#),
        (
            "CallTool",
            r#"{"tool": "mcp__calc__add", "input": {"a": 2, "b": 3}}"#,
        ),
        ("CallTool", r#"{"tool": "mcp__calc__gone", "input": {}}"#),
    ];
    let project = project("mcp-chat", &calls(&turns));
    let flag = flag(&project, &["--change-list"]);
    let base = format!("{}/v1", project.url());
    let options = [
        "--provider",
        "openai",
        "--model",
        "gpt-6",
        "--base-url",
        &base,
    ];
    let output = project
        .posse(&[&QUIET[..], &FREE, &options, &["--mcp-config", &flag, "go"]].concat())
        .env("OPENAI_API_KEY", "any")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let requests = project.requests();
    let tools = |request: &Value| request["body"]["tools"].to_string();
    assert!(
        requests
            .iter()
            .all(|it| it["status"] == 200 && tools(it) == tools(&requests[0]))
    );
    assert!(tools(&requests[0]).contains("CallTool") && !tools(&requests[0]).contains("mcp__"));
    let calls = logged(&project, "call");
    assert_eq!(calls.len(), 1, "{calls:?}");
    assert_eq!(calls[0]["arguments"], json!({"a": 2, "b": 3}));
    let last = requests.last().unwrap()["body"]["messages"].to_string();
    assert!(
        last.contains("There is no tool mcp__calc__gone now"),
        "{last}"
    );
    assert_nothing_missed(&project);
}

// proves MC-09 (part: one for each worktree)
#[test]
fn a_server_that_names_the_worktree_is_one_for_each() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__calc__where" } }]
[[rule]]
when = { agent = "re:^/main$", turn = 2 }
reply = [{ tool = "mcp__calc__where", input = {} }]
[[rule]]
when = { agent = "re:^/main$", turn = 3 }
reply = [{ tool = "Agent", input = { description = "work", prompt = "Work.", isolation = "worktree" } }]
[[rule]]
when = { agent = "re:^/main/.", turn = 1 }
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__calc__where" } }]
[[rule]]
when = { agent = "re:^/main/.", turn = 2 }
reply = [{ tool = "mcp__calc__where", input = {} }]
[[rule]]
reply = [{ text = "{{tool}}" }]
"#;
    let project = repository("mcp-worktree", script);
    let flag = flag(&project, &["--title", "${POSSE_WORKTREE}"]);
    told(&project, &["--mcp-config", &flag, "go"]);
    let starts = logged(&project, "start");
    assert_eq!(starts.len(), 2, "{starts:?}");
    let titles: Vec<&str> = starts
        .iter()
        .map(|it| it["args"][1].as_str().unwrap())
        .collect();
    let top = project.file("").canonicalize().unwrap();
    assert_eq!(Path::new(titles[0]), top);
    assert!(
        titles[1].contains("worktrees") && titles[0] != titles[1],
        "{titles:?}"
    );
}

/// A project with a commit.
fn repository(name: &str, script: &str) -> Project {
    let project = project(name, script);
    let _ = fs::remove_dir_all(project.file(".git"));
    for arguments in [
        &["init", "-q"][..],
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
    ] {
        let done = std::process::Command::new("git")
            .args(arguments)
            .current_dir(project.file(""))
            .status();
        assert!(done.unwrap().success());
    }
    project
}

// proves MC-05 (part: crash)
// proves MC-08 (part: kill -9)
#[test]
fn no_server_outlives_a_posse_that_is_killed() {
    let turns = [
        ("ToolSearch", r#"{"query": "select:mcp__calc__never"}"#),
        ("mcp__calc__never", "{}"),
    ];
    let project = project("mcp-killed", &calls(&turns));
    let flag = flag(&project, &["--ignore-eof", "--ignore-term"]);
    let mut posse = project
        .posse(&[&QUIET[..], &FREE, &["--mcp-config", &flag, "go"]].concat())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let call = loop {
        if let Some(call) = logged(&project, "call").pop() {
            break call;
        }
        assert!(posse.try_wait().unwrap().is_none(), "it lives");
        std::thread::yield_now();
    };
    posse.kill().unwrap();
    posse.wait().unwrap();
    let killed = std::time::Instant::now();
    let server = PathBuf::from(format!("/proc/{}", call["pid"]));
    while server.exists() {
        assert!(killed.elapsed().as_secs() < 2, "{call}");
        std::thread::yield_now();
    }
    // It is not known whether the call was carried out, and it is not made again.
    told(&project, &["--continue", "--mcp-config", &flag, "again"]);
    assert_eq!(logged(&project, "call").len(), 1);
    let last = project.requests().last().unwrap()["body"]["messages"].to_string();
    assert!(
        last.contains("unknown") || last.contains("not known"),
        "{last}"
    );
}

// proves PE-14 (part: servers)
// proves HK-12 (part: servers)
// corpus C165: nothing is started before trust
// corpus C164: what is accepted is the content
#[test]
fn a_server_of_a_repository_runs_in_the_sandbox_and_only_if_it_was_accepted() {
    let project = project(
        "mcp-held",
        &calls(&[("ToolSearch", r#"{"query": "+add"}"#)]),
    );
    let posse = Path::new(env!("CARGO_BIN_EXE_posse"));
    let server = posse.with_file_name("mcp-server");
    let script = |word: &str| {
        format!(
            "touch {word}.inside; touch ../{word}.outside; echo ${{API_TOKEN-none}} >{word}.token; exec {}",
            server.display()
        )
    };
    let servers = |word: &str| json!({ "mcpServers": { word: { "command": "sh", "args": ["-c", script(word)] } } });
    write(&project, ".mcp.json", &servers("repository").to_string());
    let run = || {
        let flag = servers("flag").to_string();
        let output = crate::trust::untrusted(&project, &["-p", "go", "--mcp-config", &flag])
            .args(["--permission-mode", "acceptEdits"])
            .env("POSSE_SANDBOX", "required")
            .env("API_TOKEN", "secret")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let is = |file: &str| project.file(file).exists();
    // Nothing is started before trust.
    run();
    assert!(!is("repository.inside") && is("flag.inside") && is("../flag.outside"));
    let accepted = project.run(&["trust", "--yes"]);
    assert!(accepted.status.success(), "{}", stderr(&accepted));
    run();
    assert!(is("repository.inside") && !is("../repository.outside"));
    let token = |word: &str| fs::read_to_string(project.file(&format!("{word}.token"))).unwrap();
    assert_eq!(
        (token("repository").as_str(), token("flag").as_str()),
        ("none\n", "secret\n")
    );
    // What was accepted is the content.
    fs::remove_file(project.file("repository.inside")).unwrap();
    let changed = servers("repository")
        .to_string()
        .replace("exec", "echo C164 >&2; exec");
    write(&project, ".mcp.json", &changed);
    run();
    assert!(
        !is("repository.inside"),
        "it waits until it is accepted again"
    );
}

// proves PE-02 (part: the grammar)
#[test]
fn rules_name_servers_and_their_tools() {
    let turns = [
        (
            "ToolSearch",
            r#"{"query": "select:mcp__calc__add,mcp__calc__echo"}"#,
        ),
        ("mcp__calc__add", r#"{"a": 2, "b": 3}"#),
        ("mcp__calc__echo", r#"{"message": "x"}"#),
        ("ToolSearch", r#"{"query": "select:mcp__calc__never"}"#),
    ];
    let project = project("mcp-rules", &calls(&turns));
    let flag = flag(&project, &[]);
    let rules = [
        "--allowedTools",
        "mcp__calc__add",
        "--disallowedTools",
        "mcp__calc__never",
    ];
    let arguments = [&QUIET[..], &rules, &["--mcp-config", &flag, "go"]].concat();
    let output = project.run(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = objects(&output);
    let denied = &told.last().unwrap()["permission_denials"];
    assert_eq!(denied.as_array().unwrap().len(), 1, "{denied}");
    assert_eq!(denied[0]["tool_name"], "mcp__calc__echo");
    let tools: Vec<Value> = logged(&project, "call")
        .iter()
        .map(|it| it["tool"].clone())
        .collect();
    assert_eq!(tools, ["add"]);
    let last = project.requests().last().unwrap()["body"]["messages"].to_string();
    assert!(
        last.contains("There is no tool mcp__calc__never."),
        "{last}"
    );
}

// proves MC-03 (part: compaction)
#[test]
fn a_compaction_says_which_tools_were_loaded() {
    let turns = [
        ("ToolSearch", r#"{"query": "select:mcp__calc__add"}"#),
        ("mcp__calc__add", r#"{"a": 2, "b": 3}"#),
    ];
    let again = "[[rule]]\nwhen.user = 'again'\nreply = [{ text = 'the end' }]\n";
    let project = project("mcp-compacted", &format!("{again}{}", calls(&turns)));
    let flag = flag(&project, &[]);
    for prompt in ["go", "/compact", "again"] {
        told(
            &project,
            &["--continue", "--mcp-config", &flag, prompt][usize::from(prompt == "go")..],
        );
    }
    let requests = project.requests();
    let last = &requests.last().unwrap()["body"];
    let messages = last["messages"].to_string();
    assert!(
        messages.contains("must load again with ToolSearch before you call them: mcp__calc__add"),
        "{messages}"
    );
    assert!(
        messages.contains("- calc: mcp__calc__echo, mcp__calc__add"),
        "{messages}"
    );
    assert!(!last["tools"].to_string().contains("defer_loading"));
    assert!(requests.iter().all(|it| it["status"] == 200));
}

#[test]
fn a_person_checks_servers_and_calls_their_tools() {
    let project = project("mcp-check", "");
    fs::create_dir_all(project.file("../home")).unwrap();
    let failing = json!({ "command": "no-such-server" });
    let servers = json!({ "mcpServers": { "calc": entry(&project, &[]), "none": failing } });
    fs::write(project.file("../home/.claude.json"), servers.to_string()).unwrap();
    write(
        &project,
        ".mcp.json",
        r#"{"mcpServers": {"theirs": {"command": "touch", "args": ["ran"]}}}"#,
    );
    let run = |arguments: &[&str]| {
        crate::trust::untrusted(&project, arguments)
            .output()
            .unwrap()
    };
    let checked = run(&["mcp", "check"]);
    assert_eq!(checked.status.code(), Some(1));
    let rows = stdout(&checked);
    let states: Vec<Vec<&str>> = rows
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().take(3).collect())
        .collect();
    assert_eq!(states[0], ["calc", "connected", "15"], "{rows}");
    assert_eq!(states[1][..2], ["none", "failed"], "{rows}");
    assert_eq!(states[2], ["theirs", "not", "started"], "{rows}");
    let why = stderr(&checked);
    assert!(why.contains("exec: no-such-server: not found"), "{why}");
    assert!(!project.file("ran").exists());
    let one = run(&["mcp", "check", "calc", "--json"]);
    assert!(one.status.success(), "{}", stderr(&one));
    let one = objects(&one).remove(0);
    assert_eq!(
        (&one["state"], &one["tools"][1]),
        (&json!("connected"), &json!("add"))
    );
    let called = run(&["mcp", "call", "calc", "add", r#"{"a": 2, "b": 3}"#]);
    assert_eq!(
        (stdout(&called).as_str(), called.status.code()),
        ("5\n", Some(0))
    );
    let failed = run(&["mcp", "call", "calc", "error", "--json"]);
    assert_eq!(failed.status.code(), Some(1));
    let answer: Value = serde_json::from_str(&stdout(&failed)).unwrap();
    assert_eq!(answer["is_error"], true);
    let waits = run(&["mcp", "call", "theirs", "x"]);
    assert!(
        stderr(&waits).contains("theirs is not started"),
        "{}",
        stderr(&waits)
    );
    for start in logged(&project, "start") {
        assert!(!Path::new(&format!("/proc/{}", start["pid"])).exists());
    }
}
