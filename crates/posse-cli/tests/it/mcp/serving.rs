//! posse as an MCP server: what a client sends line by line, and what it is told.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{objects, project};
use crate::binary::{Project, stdout};

/// A command that says which process it is, and does not end by itself.
const SLOW: &str = "echo $$ >pid; mv pid slow; exec sleep 1000";

/// What the model of these tests says.
fn script() -> String {
    format!(
        r#"
[[rule]]
when = {{ user = "look", turn = 1 }}
reply = [{{ tool = "ToolSearch", input = {{ query = "select:mcp__posse__sessions,mcp__posse__run" }} }}]
[[rule]]
when = {{ user = "look", turn = 2 }}
reply = [{{ tool = "mcp__posse__sessions", input = {{}} }}]
[[rule]]
when.tool = "re:."
reply = [{{ text = "the end" }}]
[[rule]]
when.user = "edit"
reply = [{{ tool = "Bash", input = {{ command = "touch made" }} }}]
[[rule]]
when.user = "write"
reply = [{{ tool = "Write", input = {{ file_path = "written", content = "x" }} }}]
[[rule]]
when.user = "slow"
reply = [{{ tool = "Bash", input = {{ command = "{SLOW}" }} }}]
[[rule]]
reply = [{{ text = "the end" }}]
"#
    )
}

/// Which lines a client speaks.
#[derive(Clone, Copy, PartialEq)]
enum Era {
    Initialize,
    Discover,
}

/// A client of `posse mcp serve`.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    era: Era,
    last: u64,
}

impl Client {
    fn start(project: &Project, era: Era, flags: &[&str]) -> Self {
        let mut command = project.posse(&[&["mcp", "serve"], flags].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut client = Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            era,
            last: 0,
        };
        if era == Era::Initialize {
            let params = json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
            });
            let told = client.ask("initialize", params);
            assert_eq!(told["result"]["protocolVersion"], "2025-11-25");
            client.line(
                &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
            );
        }
        client
    }

    fn line(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Sends a request, and returns its number.
    fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last += 1;
        params["_meta"]["progressToken"] = self.last.into();
        if self.era == Era::Discover {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let request =
            json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        self.line(&request.to_string());
        self.last
    }

    fn begin(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    /// Reads up to the answer to a request, and returns it with the progress before it.
    fn answer(&mut self, id: u64) -> (Value, Vec<String>) {
        let mut progress = Vec::new();
        loop {
            let told = self.next();
            if told["id"] == id {
                return (told, progress);
            }
            assert_eq!(told["method"], "notifications/progress", "{told}");
            progress.push(told["params"]["message"].as_str().unwrap().to_owned());
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id).0
    }

    /// Calls a tool, and returns what programs are told.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        let answer = self.answer(id).0;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// Calls a tool that says no, and returns why.
    fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let id = self.begin(tool, arguments);
        let answer = self.answer(id).0;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap().to_owned()
    }

    /// Waits until a message about progress contains a text.
    fn wait_for(&mut self, id: u64, text: &str) {
        loop {
            let told = self.next();
            assert_eq!(told["params"]["progressToken"], id, "{told}");
            if told["params"]["message"].as_str().unwrap().contains(text) {
                return;
            }
        }
    }

    fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id, "reason": "enough"});
        let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        self.line(&told.to_string());
    }

    /// Asks for the last session until nobody works on it.
    fn idle_session(&mut self) -> Value {
        loop {
            let session = self.call("session", json!({}));
            if session["held"] == false {
                return session;
            }
        }
    }

    /// Closes the input, and returns how the server ended, how long that took, and what it still said.
    fn end(mut self) -> (ExitStatus, Duration, String) {
        let begun = Instant::now();
        drop(self.input.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).unwrap();
        let status = self.child.wait().unwrap();
        (status, begun.elapsed(), rest)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process of the slow command, once it runs.
fn slow_process(project: &Project) -> String {
    loop {
        if let Ok(pid) = fs::read_to_string(project.file("slow")) {
            return pid.trim().to_owned();
        }
        std::thread::yield_now();
    }
}

fn is_alive(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

const FREE: [&str; 2] = ["--allowedTools", "Bash"];

// proves MC-13 (part: eras; run)
#[test]
fn a_client_of_either_era_lists_tools_and_runs_agents() {
    let project = project("serve-eras", &script());
    for era in [Era::Initialize, Era::Discover] {
        let mut client = Client::start(&project, era, &[]);
        if era == Era::Discover {
            let found = client.ask("server/discover", json!({}))["result"].clone();
            assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
            assert_eq!(found["resultType"], "complete");
        }
        let listed = client.ask("tools/list", json!({}))["result"].clone();
        let names = listed["tools"].as_array().unwrap().iter();
        let names: Vec<&str> = names.map(|it| it["name"].as_str().unwrap()).collect();
        let all = [
            "run",
            "sessions",
            "session",
            "tasks",
            "add_task",
            "update_task",
            "mail",
            "send_mail",
        ];
        assert_eq!(names, all);
        assert_eq!(listed.get("ttlMs").is_some(), era == Era::Discover);
        let id = client.begin("run", json!({"prompt": "hello there"}));
        let (answer, progress) = client.answer(id);
        let result = &answer["result"];
        assert_eq!(result.get("resultType").is_some(), era == Era::Discover);
        assert_eq!(result["content"][0]["text"], "the end", "{answer}");
        let facts = &result["structuredContent"];
        assert_eq!(facts["outcome"], "completed");
        let session = facts["session_id"].as_str().unwrap();
        assert_eq!(progress, [format!("agent {session} works")]);
        assert!(facts["cost_usd"].as_f64().unwrap() > 0.0);
        let more = client.call("run", json!({"prompt": "and more", "session": session}));
        assert_eq!(more["session_id"], session);
        let last = project.requests().pop().unwrap()["body"]["messages"].to_string();
        assert!(
            last.contains("hello there") && last.contains("and more"),
            "{last}"
        );
        let (status, _, rest) = client.end();
        assert!(status.success() && rest.is_empty(), "{rest}");
    }
    let listed = objects(&project.run(&["sessions", "list", "--json"]));
    assert_eq!(listed.len(), 2);
}

// proves MC-13 (part: cancelled)
#[test]
fn a_call_that_is_cancelled_stops_its_run_which_can_be_continued() {
    let project = project("serve-cancel", &script());
    let mut client = Client::start(&project, Era::Initialize, &FREE);
    let id = client.begin("run", json!({"prompt": "slow"}));
    client.wait_for(id, "Bash: ");
    let pid = slow_process(&project);
    client.cancel(id);
    // No answer to what was cancelled comes before this one.
    let session = client.idle_session();
    assert!(!is_alive(&pid));
    assert_eq!(
        (&session["state"], &session["is_finished"]),
        (&json!("idle"), &json!(false))
    );
    let again = json!({"prompt": "go on", "session": session["session_id"]});
    assert_eq!(client.call("run", again)["result"], "the end");
    assert_eq!(client.call("session", json!({}))["is_finished"], true);
}

// proves MC-13 (part: end of input)
#[test]
fn when_the_input_ends_runs_are_stopped_and_the_server_ends() {
    let project = project("serve-eof", &script());
    let mut client = Client::start(&project, Era::Discover, &FREE);
    let id = client.begin("run", json!({"prompt": "slow"}));
    client.wait_for(id, "Bash: ");
    let pid = slow_process(&project);
    let (status, took, rest) = client.end();
    assert!(status.success(), "{rest}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    let answer: Value = serde_json::from_str(&rest).unwrap();
    let result = &answer["result"];
    assert_eq!(
        (&answer["id"], &result["isError"]),
        (&json!(id), &json!(true))
    );
    assert_eq!(result["structuredContent"]["outcome"], "interrupted");
    assert!(!is_alive(&pid));
    let session = objects(&project.run(&["sessions", "list", "--json"])).remove(0);
    assert_eq!(session["state"], "idle");
    let again = project.run(&["-p", "--continue", "go on"]);
    assert_eq!(stdout(&again), "the end\n");
}

// proves MC-13 (part: killed)
#[test]
fn a_server_that_is_killed_leaves_no_process_and_its_run_can_be_continued() {
    let project = project("serve-killed", &script());
    let mut client = Client::start(&project, Era::Initialize, &FREE);
    let id = client.begin("run", json!({"prompt": "slow"}));
    client.wait_for(id, "Bash: ");
    let pid = slow_process(&project);
    drop(client);
    while is_alive(&pid) {
        std::thread::yield_now();
    }
    let session = objects(&project.run(&["sessions", "list", "--json"])).remove(0);
    assert_eq!(session["state"], "broken");
    let mut client = Client::start(&project, Era::Discover, &FREE);
    let again = json!({"prompt": "go on", "session": session["session_id"]});
    assert_eq!(client.call("run", again)["result"], "the end");
    let last = project.requests().pop().unwrap()["body"]["messages"].to_string();
    assert!(last.contains("unknown"), "{last}");
}

// proves MC-13 (part: rights)
#[test]
fn a_call_has_the_rights_that_the_server_was_started_with() {
    let project = project("serve-rights", &script());
    // A session that may do more than the server.
    let wide = ["--permission-mode", "acceptEdits", "-p", "hello"];
    assert!(project.run(&wide).status.success());
    let mut client = Client::start(&project, Era::Initialize, &["--max-turns", "3"]);
    let wide = client.call("session", json!({}));
    assert_eq!(wide["permission_mode"], "acceptEdits");
    let why = client.refused("send_mail", json!({"to": "/main", "text": "write it"}));
    assert!(
        why.contains("/main works in acceptEdits, and this server in default"),
        "{why}"
    );
    let why = client.refused("add_task", json!({"subject": "write it"}));
    assert!(why.contains("--permission-mode acceptEdits"), "{why}");
    let continued = json!({"prompt": "write", "session": wide["session_id"]});
    assert_eq!(client.call("run", continued)["denied"], json!(["Write"]));
    assert!(!project.file("written").exists());
    let denied = client.call("run", json!({"prompt": "edit"}));
    assert_eq!(denied["denied"], json!(["Bash"]));
    assert!(!project.file("made").exists());
    for (argument, value) in [
        ("permission_mode", json!("bypassPermissions")),
        ("allowedTools", json!(["Bash"])),
        ("model", json!("opus")),
    ] {
        let why = client.refused("run", json!({"prompt": "edit", argument: value}));
        assert_eq!(why, format!("run has no `{argument}`"));
    }
    // Less is possible.
    let id = client.begin("run", json!({"prompt": "edit", "max_turns": 1}));
    assert_eq!(
        client.answer(id).0["result"]["structuredContent"]["outcome"],
        "max_turns"
    );
    let id = client.begin("run", json!({"prompt": "hi", "budget_usd": 0.000001}));
    assert_eq!(
        client.answer(id).0["result"]["structuredContent"]["outcome"],
        "budget"
    );
}

// proves MC-13 (part: rights)
#[test]
fn sessions_of_other_directories_are_out_of_reach() {
    let project = project("serve-elsewhere", &script());
    let other = project.file("other");
    fs::create_dir_all(&other).unwrap();
    let elsewhere = project.posse(&["-p", "hi"]).current_dir(&other).output();
    assert!(elsewhere.unwrap().status.success());
    let all = objects(&project.run(&["sessions", "list", "--json", "--all"]));
    let id = &all[0]["session_id"];
    let mut client = Client::start(&project, Era::Initialize, &[]);
    assert_eq!(client.call("sessions", json!({})), json!({"sessions": []}));
    for (tool, arguments) in [
        ("session", json!({"session": id})),
        ("run", json!({"session": id, "prompt": "x"})),
        ("tasks", json!({"session": id})),
        ("mail", json!({"session": id})),
        (
            "send_mail",
            json!({"session": id, "to": "/main", "text": "x"}),
        ),
    ] {
        let why = client.refused(tool, arguments);
        assert!(why.contains("is of another directory"), "{tool}: {why}");
    }
}

// proves MC-13 (part: rights)
#[test]
fn all_runs_together_spend_no_more_than_the_server_may() {
    let project = project("serve-budget", &script());
    let flags = ["--max-budget-usd", "0.15", "--max-tokens", "100"];
    let mut client = Client::start(&project, Era::Initialize, &flags);
    let spent = client.call("run", json!({"prompt": "hi"}))["cost_usd"].as_f64();
    assert!(spent.unwrap() > 0.02, "{spent:?}");
    // What is left does not pay for the worst case of another call.
    let id = client.begin("run", json!({"prompt": "hi", "budget_usd": 0.15}));
    let result = client.answer(id).0["result"].clone();
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["outcome"]),
        (&json!(true), &json!("budget"))
    );
    let sessions = client.call("sessions", json!({"limit": 200}));
    let costs = sessions["sessions"].as_array().unwrap().iter();
    let costs: f64 = costs.map(|it| it["total_cost_usd"].as_f64().unwrap()).sum();
    assert!(costs <= 0.15, "{costs}");
}

// proves MC-13 (part: rights)
#[test]
fn a_session_that_has_posse_as_a_server_can_only_look() {
    let project = project("serve-inner", &script());
    let posse = env!("CARGO_BIN_EXE_posse");
    let args = ["mcp", "serve", "--permission-mode", "bypassPermissions"];
    let flag = json!({"mcpServers": {"posse": {"command": posse, "args": args}}}).to_string();
    let output = project.run(&[
        "-p",
        "--allowedTools",
        "mcp__posse",
        "--mcp-config",
        &flag,
        "look",
    ]);
    assert_eq!(stdout(&output), "the end\n");
    let requests = project.requests();
    let first = requests[0]["body"]["messages"].to_string();
    assert!(first.contains("mcp__posse__sessions"), "{first}");
    for tool in [
        "mcp__posse__run",
        "mcp__posse__send_mail",
        "mcp__posse__add_task",
    ] {
        assert!(!first.contains(tool), "{first}");
    }
    let last = requests.last().unwrap()["body"]["messages"].to_string();
    assert!(last.contains("first_prompt"), "{last}");
}

// proves MC-13 (part: tasks; mail)
#[test]
fn tasks_and_mail_are_those_of_the_command_line() {
    let project = project("serve-tasks", &script());
    let mut client = Client::start(&project, Era::Initialize, &[]);
    let why = client.refused("tasks", json!({}));
    assert!(why.contains("there is no session"), "{why}");
    client.call("run", json!({"prompt": "hi"}));
    let added = client.call(
        "add_task",
        json!({"subject": "lex", "description": "all of it"}),
    );
    assert_eq!(
        (&added["id"], &added["status"]),
        (&json!(1), &json!("pending"))
    );
    client.call("add_task", json!({"subject": "parse", "blocked_by": [1]}));
    let done = client.call("update_task", json!({"id": 1, "status": "completed"}));
    assert_eq!(done["status"], "completed");
    let tasks = client.call("tasks", json!({"status": "pending"}))["tasks"].clone();
    assert_eq!(tasks[0]["subject"], "parse");
    let listed = objects(&project.run(&["task", "list", "--json"]));
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1], tasks[0]);
    let why = client.refused("update_task", json!({"id": 9, "status": "completed"}));
    assert!(why.contains('9'), "{why}");
    let sent = client.call("send_mail", json!({"to": "/main", "text": "look\nhere"}));
    assert_eq!(sent["sent"][0]["to"], "/main");
    let mail = client.call("mail", json!({"waiting": true}))["mail"].clone();
    let listed = objects(&project.run(&["mail", "list", "--json"]));
    assert_eq!(mail, json!(listed));
    assert_eq!(
        (&mail[0]["from"], &mail[0]["summary"]),
        (&json!("user"), &json!("look"))
    );
    let session = client.call("session", json!({}))["session_id"].clone();
    client.call("run", json!({"prompt": "next", "session": session}));
    let last = project.requests().pop().unwrap()["body"]["messages"].to_string();
    assert!(
        last.contains("look\\\\nhere") || last.contains("look\\nhere"),
        "{last}"
    );
    assert_eq!(
        client.call("mail", json!({"waiting": true}))["mail"],
        json!([])
    );
    let why = client.refused("tasks", json!({"team": "nobody"}));
    assert!(why.contains("there is no team nobody here"), "{why}");
}

// proves MC-13 (part: lines)
#[test]
fn what_is_no_request_is_answered_with_an_error_and_the_rest_goes_on() {
    let project = project("serve-lines", &script());
    let mut client = Client::start(&project, Era::Initialize, &[]);
    let code = |client: &mut Client, line: &str| {
        client.line(line);
        client.next()["error"]["code"].clone()
    };
    assert_eq!(code(&mut client, "garbage"), -32700);
    assert_eq!(code(&mut client, "[]"), -32600);
    assert_eq!(
        code(&mut client, &format!("\"{}\"", "x".repeat(17 << 20))),
        -32600
    );
    assert_eq!(
        code(
            &mut client,
            r#"{"jsonrpc": "2.0", "id": 7, "method": "dance"}"#
        ),
        -32601
    );
    let unknown = client.ask("tools/call", json!({"name": "dance"}));
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    client.era = Era::Discover;
    assert_eq!(
        client.ask("ping", json!({}))["result"]["resultType"],
        "complete"
    );
    drop(client);
    // Without `initialize`, each request has to name the version.
    let mut client = Client::start(&project, Era::Discover, &[]);
    client.era = Era::Initialize;
    assert_eq!(client.ask("tools/list", json!({}))["error"]["code"], -32602);
    let version = json!({"io.modelcontextprotocol/protocolVersion": "2030-01-01"});
    let error = client.ask("tools/list", json!({"_meta": version}))["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["supported"]),
        (&json!(-32022), &json!(["2026-07-28"]))
    );
}

// proves MC-13 (part: at once)
#[test]
fn more_runs_than_may_work_at_once_wait() {
    let project = project("serve-slots", &script());
    let flags = [&FREE[..], &["--max-runs", "1"]].concat();
    let mut client = Client::start(&project, Era::Initialize, &flags);
    let first = client.begin("run", json!({"prompt": "slow"}));
    client.wait_for(first, "Bash: ");
    let waiting: Vec<u64> = (0..63)
        .map(|_| client.begin("run", json!({"prompt": "hi"})))
        .collect();
    // No more calls are kept.
    let refused = client.begin("run", json!({"prompt": "hi"}));
    let answer = client.next();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(refused), &json!(-32000))
    );
    assert_eq!(project.requests().len(), 1);
    // One that waits can be cancelled, too, and the next one begins when the first is done.
    waiting[1..].iter().for_each(|id| client.cancel(*id));
    client.cancel(first);
    let (answer, progress) = client.answer(waiting[0]);
    assert_eq!(answer["result"]["structuredContent"]["result"], "the end");
    assert_eq!(progress.len(), 1, "{progress:?}");
    assert_eq!(project.requests().len(), 2);
}
