//! The MCP server with faults: that each fault is what it says, in both eras and over both transports.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

const NEW: &str = "2026-07-28";

fn command(options: &[&str]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the test is about a program")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-server"));
    command
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// A server that is spoken to by lines.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    number: u64,
    /// What came that was not asked for.
    others: Vec<Value>,
    /// Lines that are no messages.
    garbage: Vec<String>,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let mut child = command(options).spawn().unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            number: 0,
            others: Vec::new(),
            garbage: Vec::new(),
        }
    }

    /// Started, and connected as in 2025.
    fn initialized(options: &[&str]) -> Self {
        let mut server = Self::start(options);
        let wanted = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = server.ask("initialize", wanted);
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
    }

    /// Sends a request and returns its number.
    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.number += 1;
        let number = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }));
        number
    }

    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            match serde_json::from_str(&line) {
                Ok(message) => return Some(message),
                Err(_) => self.garbage.push(line),
            }
        }
    }

    /// Returns the next question or notification.
    fn told(&mut self) -> Value {
        match self.others.is_empty() {
            true => self.next().unwrap(),
            false => self.others.remove(0),
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let number = self.begin(method, params);
        self.answer(number)
    }

    fn answer(&mut self, number: u64) -> Value {
        loop {
            let message = self.next().unwrap();
            match message["id"] == number && message["method"].is_null() {
                true => return message,
                false => self.others.push(message),
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    }

    fn text(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap().to_owned()
    }

    fn tools(&mut self) -> Vec<String> {
        let (mut names, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = match &cursor {
                Value::Null => json!({}),
                cursor => json!({ "cursor": cursor }),
            };
            let page = self.ask("tools/list", params)["result"].clone();
            let tools = page["tools"].as_array().unwrap().iter();
            names.extend(tools.map(|tool| tool["name"].as_str().unwrap().to_owned()));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                return names;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A log in a directory of its own.
struct LogFile {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl LogFile {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        Self {
            _directory: directory,
            path,
        }
    }

    fn word(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

fn events(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines = text.lines();
    lines.map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// Waits until an event is in the log.
fn until(log: &Path, event: &str) -> Value {
    loop {
        let found = events(log).into_iter().find(|it| it["event"] == event);
        if let Some(found) = found {
            return found;
        }
        std::thread::yield_now();
    }
}

#[test]
fn it_speaks_both_eras() {
    let mut server = Server::initialized(&["--page", "4", "--tools", "3", "--always-load"]);
    let tools = server.tools();
    assert_eq!(tools.len(), 18, "{tools:?}");
    assert_eq!(tools.last().unwrap(), "tool_3");
    assert_eq!(server.text("tool_3", json!({})), "tool_3");
    assert_eq!(server.text("echo", json!({ "message": "hi" })), "hi");
    assert_eq!(server.text("add", json!({ "a": 1, "b": 2 })), "3");
    let unknown = server.call("nothing", json!({}));
    assert_eq!(unknown["error"]["code"], -32602);
    let prompt = server.ask(
        "prompts/get",
        json!({ "name": "greet", "arguments": { "who": "me" } }),
    );
    let text = &prompt["result"]["messages"][0]["content"]["text"];
    assert_eq!(text, "Say hello to me.");
    let resource = server.ask("resources/read", json!({ "uri": "test://greeting" }));
    assert_eq!(resource["result"]["contents"][0]["text"], "hello");

    let version = json!({ "io.modelcontextprotocol/protocolVersion": NEW });
    let mut server = Server::start(&["--new"]);
    let found = server.ask("server/discover", json!({ "_meta": version }));
    assert_eq!(found["result"]["supportedVersions"], json!([NEW]));
    assert_eq!(found["result"]["resultType"], "complete");
    let old = server.ask("initialize", json!({ "protocolVersion": "2025-11-25" }));
    assert_eq!(old["error"]["data"]["supported"], json!([NEW]));
    let call = json!({ "_meta": version, "name": "counter", "arguments": {} });
    let answer = server.ask("tools/call", call);
    assert_eq!(answer["result"]["resultType"], "complete");

    let mut server = Server::start(&["--old"]);
    let refused = server.ask("server/discover", json!({ "_meta": version }));
    assert_eq!(refused["error"]["code"], -32601);
    let mut server = Server::start(&["--old", "--swallow"]);
    server.begin("server/discover", json!({ "_meta": version }));
    // The next one is answered, and that one never.
    server.ask("ping", json!({}));
    assert!(server.others.is_empty());
}

#[test]
fn each_fault_is_what_it_says() {
    let log = LogFile::new();
    let mut server = Server::initialized(&["--log", log.word()]);
    assert_eq!(server.call("error", json!({}))["result"]["isError"], true);
    assert_eq!(server.call("refuse", json!({}))["error"]["code"], -32000);
    let structured = server.call("structured", json!({}));
    assert_eq!(structured["result"]["structuredContent"]["sum"], 3);
    assert_eq!(
        server.call("image", json!({}))["result"]["content"][0]["type"],
        "image"
    );
    assert_eq!(server.text("long", json!({})).len(), 200_000);
    assert_eq!(server.text("long_line", json!({})).len(), 20 << 20);
    assert_eq!(server.text("garbage", json!({})), "after the garbage");
    assert_eq!(server.garbage, ["this is {no message\n"]);
    let params = json!({ "name": "progress", "_meta": { "progressToken": "p" } });
    server.ask("tools/call", params);
    let steps: Vec<Value> = server.others.drain(..).collect();
    let steps: Vec<&Value> = steps.iter().map(|it| &it["params"]["progress"]).collect();
    assert_eq!(steps, [1, 2, 3]);
    let counts = [(); 2].map(|()| server.text("counter", json!({})));
    assert_eq!(counts, ["1", "2"]);
    // Another call is answered while one is not.
    let open = server.begin("tools/call", json!({ "name": "never", "arguments": {} }));
    assert_eq!(
        server.text("echo", json!({ "message": "still there" })),
        "still there"
    );
    let cancel = json!({ "requestId": open });
    server
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }));
    assert_eq!(until(&log.path, "cancelled")["id"], open);
    server.begin("tools/call", json!({ "name": "die", "arguments": {} }));
    assert_eq!(server.next(), None);
    assert_eq!(server.child.wait().unwrap().code(), Some(3));
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for call in events(&log.path).iter().filter(|it| it["event"] == "call") {
        *calls
            .entry(call["tool"].as_str().unwrap().to_owned())
            .or_default() += 1;
    }
    let counted = ["counter", "never", "die"].map(|tool| calls[tool]);
    assert_eq!(counted, [2, 1, 1]);
}

#[test]
fn its_list_changes_with_every_call() {
    let mut server = Server::initialized(&["--change-list"]);
    let before = server.tools().len();
    server.text("counter", json!({}));
    let told = server.told();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(server.tools().len(), before + 1);
    assert_eq!(server.text("added_1", json!({})), "added_1");

    let version = json!({ "io.modelcontextprotocol/protocolVersion": NEW });
    let mut server = Server::start(&["--change-list"]);
    let wanted = json!({ "_meta": version, "notifications": { "toolsListChanged": true } });
    let subscription = server.begin("subscriptions/listen", wanted);
    let told = server.told();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    server.text("counter", json!({}));
    let told = server.told();
    let meta = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*meta, subscription);
}

#[test]
fn it_asks_the_client_in_both_eras() {
    let log = LogFile::new();
    let mut server = Server::initialized(&["--roots", "--elicit", "--log", log.word()]);
    let question = server.told();
    assert_eq!(question["method"], "roots/list");
    let roots = json!({ "roots": [{ "uri": "file:///w" }] });
    server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots }));
    assert_eq!(until(&log.path, "roots")["answer"]["result"], roots);
    let open = server.begin("tools/call", json!({ "name": "ask", "arguments": {} }));
    let question = server.told();
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({ "action": "decline" });
    server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
    let text = server.answer(open)["result"]["content"][0]["text"].clone();
    assert_eq!(text, answer.to_string());

    let version = json!({ "io.modelcontextprotocol/protocolVersion": NEW });
    let mut call = json!({ "_meta": version, "name": "ask", "arguments": { "mode": "url" } });
    let asked = server.ask("tools/call", call.clone());
    assert_eq!(asked["result"]["resultType"], "input_required");
    let question = &asked["result"]["inputRequests"]["it"];
    assert_eq!(question["params"]["mode"], "url");
    call["requestState"] = asked["result"]["requestState"].clone();
    call["inputResponses"] = json!({ "it": answer });
    let done = server.ask("tools/call", call);
    assert_eq!(done["result"]["content"][0]["text"], answer.to_string());
}

#[test]
fn it_lives_on_if_it_is_told_to() {
    let log = LogFile::new();
    let mut server = Server::initialized(&["--log", log.word()]);
    server.input = None;
    assert!(server.child.wait().unwrap().success());
    until(&log.path, "end");

    let log = LogFile::new();
    let options = ["--ignore-eof", "--ignore-term", "--log", log.word()];
    let mut server = Server::initialized(&options);
    let pid = nix::unistd::Pid::from_raw(i32::try_from(server.child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(server.text("echo", json!({ "message": "here" })), "here");
    server.input = None;
    until(&log.path, "end");
    assert_eq!(server.child.try_wait().unwrap(), None);
    server.child.kill().unwrap();
    assert_eq!(server.child.wait().unwrap().signal(), Some(9));

    let failed = command(&["--fail-start"]).stderr(Stdio::piped()).output();
    assert_eq!(failed.unwrap().status.code(), Some(7));
}

/// Returns the messages of a stream of events.
fn messages(stream: &str) -> Vec<Value> {
    let data = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "));
    data.map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[tokio::test]
async fn it_speaks_streamable_http() {
    let log = LogFile::new();
    let mut server = Server::start(&["--http", "0", "--bearer", "t", "--log", log.word()]);
    let mut url = String::new();
    server.output.read_line(&mut url).unwrap();
    let client = posse_model::http_client(url.trim()).unwrap();
    let post = |method: &str, params: Value| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = client.post(url.trim()).body(message.to_string());
        request.header("content-type", "application/json")
    };
    let refused = post("ping", json!({})).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    let ask = async |method: &str, params: Value| {
        let request = post(method, params).header("authorization", "Bearer t");
        request.send().await.unwrap()
    };
    let first = ask("initialize", json!({ "protocolVersion": "2025-11-25" })).await;
    assert!(first.headers().contains_key("mcp-session-id"));
    let answer: Value = serde_json::from_str(&first.text().await.unwrap()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "faulty");
    let params = json!({ "name": "progress", "_meta": { "progressToken": 7 } });
    let called = ask("tools/call", params).await;
    assert_eq!(called.headers()["content-type"], "text/event-stream");
    let told = messages(&called.text().await.unwrap());
    assert_eq!(told.len(), 4);
    assert_eq!(told[3]["result"]["content"][0]["text"], "done");
    // Who closes a stream cancels its call.
    let open = ask("tools/call", json!({ "name": "never", "arguments": {} })).await;
    drop(open);
    // The connection is closed by a task of the runtime, which must not be kept from it.
    let path = log.path.clone();
    let closed = tokio::task::spawn_blocking(move || until(&path, "closed"));
    closed.await.unwrap();
    let version = json!({ "io.modelcontextprotocol/protocolVersion": NEW });
    let found = ask("server/discover", json!({ "_meta": version })).await;
    let found: Value = serde_json::from_str(&found.text().await.unwrap()).unwrap();
    assert_eq!(found["result"]["supportedVersions"], json!([NEW]));
}
