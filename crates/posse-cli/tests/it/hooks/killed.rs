//! posse killed at every system call between a reply, the hooks before its call, the call, its
//! outcome and the hooks after it; and then going on.
//!
//! The call leaves a line each time it runs, and a hook one when it begins and one when it ends.
//! Each hook leaves a process in a session of its own.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use posse_scripted::Server;
use serde_json::{Value, json};

use crate::binary::stderr;
use crate::crash::{OTHERS, Scene, WRITES, fault, lines, log, serve};
use crate::hooks::living;

const SCRIPT: &str = r#"
[[rule]]
when.user = "go on"
reply = [{ text = "Going on." }]
[[rule]]
when.turn = 1
reply = [{ tool = "Bash", input = { command = "echo first >>done.log" } }]
[[rule]]
reply = [{ text = "All done." }]
"#;

/// Where posse waits, for a hook or a call among others.
const WAITS: &[&str] = &["epoll_wait", "epoll_pwait", "epoll_pwait2"];
/// How long posse's end may be ago when all is gone.
const SOON: Duration = Duration::from_secs(2);
/// How long anything may take.
const LONG: Duration = Duration::from_secs(60);
/// What a hook does that ends: it takes long enough to be cut off.
const WORKS: &str = "cat >/dev/null; sleep 0.2";

/// Settings with a hook before and one after each command.
fn settings(before: &str, after: &str) -> String {
    let group = |command: &str| json!([{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]);
    json!({"hooks": {"PreToolUse": group(before), "PostToolUse": group(after)}}).to_string()
}

/// A hook that notes when it begins and ends, and does `between` in the meantime.
fn notes(word: &str, between: &str) -> String {
    format!(
        "echo {word}-begins >>hooks.log; (setsid sleep 1000 &); {between}; echo {word}-ends >>hooks.log"
    )
}

/// A hook that does not end, whoever asks it to.
fn hangs(word: &str) -> String {
    notes(word, "trap '' TERM; sleep 1000; sleep 1000")
}

fn arguments<'a>(url: &'a str, settings: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "-p",
        "--base-url",
        url,
        "--output-format",
        "stream-json",
        "--include-hook-events",
        "--permission-mode",
        "bypassPermissions",
        "--settings",
        settings,
    ];
    fixed.into_iter().chain(more.iter().copied()).collect()
}

/// Waits until nothing is left.
fn all_gone(scene: &Scene, what: &str) {
    let ended = Instant::now();
    while living(&scene.home) > 0 {
        assert!(ended.elapsed() < SOON, "{what}: a process is left");
        std::thread::yield_now();
    }
}

/// The result of the command in a request; none if the request has no such call.
fn result(body: &[u8]) -> Option<Value> {
    let request: Value = serde_json::from_slice(body).unwrap();
    let messages = request["messages"].as_array().unwrap();
    let blocks = messages
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let mut results = blocks.filter(|block| block["type"] == "tool_result");
    results.next().cloned()
}

/// How far a run had come when it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reached {
    Nothing,
    /// The hook before the call had begun.
    Before,
    /// It had ended.
    Allowed,
    /// The call had run.
    Ran,
    /// The hook after the call had begun.
    After,
    /// It had ended.
    Done,
}

/// Continues a session whose posse was killed, and checks that the model is told the truth about
/// the call, and that nothing runs again.
fn check(scene: &Scene, server: &Server, said: &Output, settings: &str, what: &str) -> Reached {
    all_gone(scene, what);
    let (ran, hooks) = (log(scene), scene.read("hooks.log"));
    let has = |note: &str| {
        let count = hooks.lines().filter(|line| *line == note).count();
        assert!(count <= 1, "{what}: {note} twice");
        count == 1
    };
    assert!(ran.lines().count() <= 1, "{what}: it ran twice");
    assert!(
        ran.is_empty() || has("pre-ends"),
        "{what}: it was not asked about"
    );
    assert!(
        !has("post-begins") || !ran.is_empty(),
        "{what}: it did not run"
    );
    let reached = match &ran {
        _ if has("post-ends") => Reached::Done,
        _ if has("post-begins") => Reached::After,
        ran if !ran.is_empty() => Reached::Ran,
        _ if has("pre-ends") => Reached::Allowed,
        _ if has("pre-begins") => Reached::Before,
        _ => Reached::Nothing,
    };
    let said = lines(said);
    let session = said.first().and_then(|line| line["session_id"].as_str());
    let Some(session) = session else {
        assert_eq!(reached, Reached::Nothing, "{what}");
        return reached;
    };
    let shown = scene.run(&[], &["sessions", "show", session]);
    if !shown.status.success() {
        assert_eq!(reached, Reached::Nothing, "{what}: {}", stderr(&shown));
        return reached;
    }
    let url = server.url();
    let resumed = scene.run(
        &[],
        &arguments(&url, settings, &["--resume", session, "go on"]),
    );
    assert!(resumed.status.success(), "{what}: {}", stderr(&resumed));
    assert_eq!(
        (log(scene), scene.read("hooks.log")),
        (ran, hooks),
        "{what}: something was run again"
    );
    let requests = server.requests();
    let last = requests
        .iter()
        .rfind(|request| request.header("x-posse-session-id") == Some(session));
    let Some(result) = result(&last.unwrap().body) else {
        assert_eq!(reached, Reached::Nothing, "{what}: its reply is lost");
        return reached;
    };
    let text = result.to_string();
    let (not_run, unknown) = (text.contains("Not run"), text.contains("Outcome unknown"));
    let fits = match reached {
        Reached::Nothing | Reached::Before => not_run,
        Reached::Allowed => not_run || unknown,
        // Its outcome may have been lost with posse, and then that is said.
        Reached::Ran => unknown || !not_run && result["is_error"] != true,
        Reached::After | Reached::Done => !not_run && !unknown && result["is_error"] != true,
    };
    assert!(fits, "{what}, after {reached:?}: {text}");
    reached
}

/// Kills posse at every `stride`-th of these calls.
fn killed(calls: &[&str], stride: usize) -> BTreeMap<Reached, usize> {
    let server = serve(SCRIPT);
    let url = server.url();
    let settings = settings(&notes("pre", WORKS), &notes("post", WORKS));
    let begin = arguments(&url, &settings, &["begin"]);
    // Hooks, commands and the watchdog are not traced: only posse is killed.
    let strace = |more: &[String]| [&["-b", "execve"].map(str::to_owned), more].concat();
    let scene = Scene::new(&format!("hooks-count-{stride}"));
    let counts = scene.count(calls, |options| scene.run(&strace(options), &begin));
    let (mut faults, mut reached) = (0, BTreeMap::new());
    for (call, count) in &counts {
        for nth in (1..=*count).step_by(stride) {
            let what = format!("killed at {call} {nth} of {count}");
            let scene = Scene::new(&format!("hooks-{stride}-{call}-{nth}"));
            let options = strace(&fault(call, "signal=KILL", nth));
            let output = scene.run(&options, &begin);
            let came = check(&scene, &server, &output, &settings, &what);
            *reached.entry(came).or_default() += 1;
            faults += 1;
        }
    }
    let _ = writeln!(
        std::io::stderr(),
        "hooks: {faults} kills at {counts:?}, after {reached:?}"
    );
    assert!(faults * stride > 20, "{counts:?}");
    reached
}

// proves HK-09 (part: before; outcome; crash)
#[test]
fn killed_at_some_calls_around_hooks_nothing_runs_twice_and_no_outcome_is_lost() {
    let reached = killed(&["write", "sendmsg", "fsync", "epoll_wait"], 5);
    assert!(reached.len() > 2, "{reached:?}");
}

#[test]
#[ignore = "the long form: `cargo xtask faults`"]
fn killed_at_every_call_around_hooks_nothing_runs_twice_and_no_outcome_is_lost() {
    let mut calls = [WRITES, OTHERS, WAITS].concat();
    // By this, children become what is not traced.
    calls.retain(|call| *call != "execve");
    let reached = killed(&calls, 1);
    // While a hook runs posse makes hardly any call; the tests below kill it then.
    for came in [Reached::Allowed, Reached::Ran, Reached::Done] {
        assert!(reached.contains_key(&came), "{came:?}: {reached:?}");
    }
}

/// Kills posse while a hook of it hangs.
fn killed_while_it_hangs(name: &str, before: &str, after: &str, begun: &str) -> Reached {
    let server = serve(SCRIPT);
    let (url, settings) = (server.url(), settings(before, after));
    let scene = Scene::new(&format!("hooks-{name}"));
    let mut command = scene.command(&[], &arguments(&url, &settings, &["begin"]));
    let mut posse = command.stdout(Stdio::piped()).spawn().unwrap();
    let since = Instant::now();
    // The shell, what it waits for, and what has left its session.
    while !scene.read("hooks.log").contains(begun) || living(&scene.home) < 3 {
        assert!(since.elapsed() < LONG, "the hook does not hang");
        std::thread::yield_now();
    }
    posse.kill().unwrap();
    let output = posse.wait_with_output().unwrap();
    check(&scene, &server, &output, &settings, name)
}

// proves HK-09 (part: crash)
// proves HK-11 (part: no process)
#[test]
fn a_call_whose_hook_is_cut_off_by_a_crash_is_told_as_not_run() {
    let after = notes("post", WORKS);
    let reached = killed_while_it_hangs("before", &hangs("pre"), &after, "pre-begins");
    assert_eq!(reached, Reached::Before);
}

// proves HK-09 (part: outcome; crash)
// proves HK-11 (part: no process)
#[test]
fn the_outcome_of_a_call_whose_hook_is_cut_off_by_a_crash_is_kept() {
    let before = notes("pre", WORKS);
    let reached = killed_while_it_hangs("after", &before, &hangs("post"), "post-begins");
    assert_eq!(reached, Reached::After);
}
