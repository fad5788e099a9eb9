//! posse killed at every system call around a call of a server, and then going on. The server counts
//! the calls, and ends only when it is killed.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use posse_scripted::Server;
use serde_json::{Value, json};

use crate::binary::stderr;
use crate::crash::{OTHERS, Scene, WRITES, fault, lines, serve};
use crate::hooks::living;

const SCRIPT: &str = r#"
[[rule]]
when.user = "go on"
reply = [{ text = "Going on." }]
[[rule]]
when.turn = 1
reply = [{ tool = "ToolSearch", input = { query = "select:mcp__calc__echo" } }]
[[rule]]
when.turn = 2
reply = [{ tool = "mcp__calc__echo", input = { message = "HELLO" } }]
[[rule]]
reply = [{ text = "All done." }]
"#;

/// Where posse waits, for a server among others.
const WAITS: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// How long posse's end may be ago when its server is gone.
const SOON: Duration = Duration::from_secs(2);

/// How far a run had come when it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    /// The server was not called.
    Nothing,
    /// It was, and its answer was lost with posse.
    Unknown,
    /// Its answer is kept.
    Answered,
}

/// A server that stays until it is killed.
const STAYS: &[&str] = &["--ignore-eof", "--ignore-term"];

/// Declares a server with these options.
fn flag(options: &[&str]) -> String {
    let posse = Path::new(env!("CARGO_BIN_EXE_posse"));
    let args = [&["--log", "server.log"], options].concat();
    let server = json!({ "command": posse.with_file_name("mcp-server"), "args": args });
    json!({ "mcpServers": { "calc": server } }).to_string()
}

fn arguments<'a>(url: &'a str, flag: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "-p",
        "--base-url",
        url,
        "--output-format",
        "stream-json",
        "--permission-mode",
        "bypassPermissions",
        "--mcp-config",
        flag,
    ];
    fixed.into_iter().chain(more.iter().copied()).collect()
}

/// How often the server was called.
fn calls(scene: &Scene) -> usize {
    scene
        .read("server.log")
        .matches("\"event\":\"call\"")
        .count()
}

/// The result of the server's call in a request; none if the request has no such call.
fn result(body: &[u8]) -> Option<Value> {
    let request: Value = serde_json::from_slice(body).unwrap();
    let messages = request["messages"].as_array().unwrap().iter();
    let blocks: Vec<&Value> = messages
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .collect();
    let called = blocks.iter().find(|it| it["name"] == "mcp__calc__echo")?;
    let is_its = |it: &&&Value| it["tool_use_id"] == called["id"];
    blocks.iter().find(is_its).map(|it| (*it).clone())
}

/// Continues a session whose posse was killed, and checks that the model is told the truth about the
/// call, and that it is not made again.
fn check(scene: &Scene, server: &Server, said: &Output, what: &str) -> Reached {
    let ended = Instant::now();
    while living(&scene.home) > 0 {
        assert!(ended.elapsed() < SOON, "{what}: a server is left");
        std::thread::yield_now();
    }
    let called = calls(scene);
    assert!(called <= 1, "{what}: it was called twice");
    let said = lines(said);
    let session = said.first().and_then(|line| line["session_id"].as_str());
    let Some(session) = session else {
        assert_eq!(called, 0, "{what}");
        return Reached::Nothing;
    };
    let shown = scene.run(&[], &["sessions", "show", session]);
    if !shown.status.success() {
        assert_eq!(called, 0, "{what}: {}", stderr(&shown));
        return Reached::Nothing;
    }
    let (url, flag) = (server.url(), flag(&[]));
    let resumed = scene.run(
        &[],
        &arguments(&url, &flag, &["--resume", session, "go on"]),
    );
    assert!(resumed.status.success(), "{what}: {}", stderr(&resumed));
    assert_eq!(calls(scene), called, "{what}: it was called again");
    let requests = server.requests();
    let last = requests
        .iter()
        .rfind(|request| request.header("x-posse-session-id") == Some(session));
    let Some(result) = result(&last.unwrap().body) else {
        assert_eq!(called, 0, "{what}: its reply is lost");
        return Reached::Nothing;
    };
    let text = result.to_string();
    let unknown = text.contains("Outcome unknown");
    let is_answer = text.contains("HELLO") && result["is_error"] != true;
    match called {
        0 => {
            assert!(unknown || text.contains("Not run"), "{what}: {text}");
            Reached::Nothing
        }
        _ if unknown => Reached::Unknown,
        _ => {
            assert!(is_answer, "{what}: {text}");
            Reached::Answered
        }
    }
}

/// Kills posse at every `stride`-th of these calls.
fn killed(calls: &[&str], stride: usize) -> BTreeMap<Reached, usize> {
    let server = serve(SCRIPT);
    let (url, flag) = (server.url(), flag(STAYS));
    let begin = arguments(&url, &flag, &["begin"]);
    // The server and the watchdog are not traced: only posse is killed.
    let strace = |more: &[String]| [&["-b", "execve"].map(str::to_owned), more].concat();
    let scene = Scene::new(&format!("mcp-count-{stride}"));
    let counts = scene.count(calls, |options| scene.run(&strace(options), &begin));
    let (mut faults, mut reached) = (0, BTreeMap::new());
    for (call, count) in &counts {
        for nth in (1..=*count).step_by(stride) {
            let what = format!("killed at {call} {nth} of {count}");
            let scene = Scene::new(&format!("mcp-{stride}-{call}-{nth}"));
            let options = strace(&fault(call, "signal=KILL", nth));
            let output = scene.run(&options, &begin);
            let came = check(&scene, &server, &output, &what);
            *reached.entry(came).or_default() += 1;
            faults += 1;
        }
    }
    let _ = writeln!(
        std::io::stderr(),
        "servers: {faults} kills at {counts:?}, after {reached:?}"
    );
    assert!(faults * stride > 20, "{counts:?}");
    reached
}

// proves MC-05 (part: crash)
// proves MC-08 (part: kill -9)
#[test]
fn killed_at_some_calls_around_a_call_of_a_server_it_is_not_made_twice() {
    let reached = killed(&["write", "sendmsg", "fsync", "epoll_wait"], 5);
    assert!(reached.len() > 1, "{reached:?}");
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn killed_at_every_call_around_a_call_of_a_server_it_is_not_made_twice() {
    let mut calls = [WRITES, OTHERS, WAITS].concat();
    // By this, children become what is not traced.
    calls.retain(|call| *call != "execve");
    let reached = killed(&calls, 1);
    for came in [Reached::Nothing, Reached::Answered] {
        assert!(reached.contains_key(&came), "{came:?}: {reached:?}");
    }
}
