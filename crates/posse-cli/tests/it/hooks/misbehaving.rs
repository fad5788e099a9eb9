//! Hooks that misbehave, by `posse -p`: it is told, it takes neither long nor much memory, and
//! nothing of them is left when their call begins.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_scripted::Server;
use serde_json::{Value, json};

use crate::binary::{Project, stderr};
use crate::crash::serve;
use crate::definitions::write;
use crate::hooks::living;
use crate::panes::FREE;
use crate::run::{LINES, Talk, lines};

/// How long a run with such a hook may take.
const BOUND: Duration = Duration::from_secs(20);
/// How much memory posse may use, in kB: less than a hook prints.
const MEMORY: u64 = 90_000;
/// Does not end, whoever asks it to, and has a child that has left its session.
const HANGS: &str = "trap '' TERM; (setsid sleep 1000 &); echo up >up.log; sleep 1000; sleep 1000";
/// Notes which processes of hooks of its agent are there.
const LOOKS: &str = r#"echo "${POSSE_CALL%%.*}" >agent.log; grep -lazF "POSSE_CALL=${POSSE_CALL%%.*}.hook." /proc/[0-9]*/environ >left.log 2>/dev/null; echo ran >>ran.log"#;

/// A project with a hook before each command, and a model that makes one.
struct Scene {
    project: Project,
    server: Arc<Server>,
    name: String,
}

impl Scene {
    /// `more` are keys of the hook.
    fn new(name: &str, command: &str, more: Value) -> Self {
        let name = format!("hooks-{name}");
        let project = Project::new(&name, "");
        // Large enough that no pipe holds it.
        let call = json!({"command": format!("{LOOKS}; : {}", "x".repeat(80_000))});
        let call = toml_text(&call.to_string());
        let script = format!(
            "[[rule]]\nwhen.user = 'hurry'\nreply = [{{ text = 'quick' }}]\n\
             [[rule]]\nwhen.tool = 're:.'\nreply = [{{ text = 'done' }}]\n\
             [[rule]]\nreply = [{{ tool = 'Bash', json = {call} }}]\n"
        );
        let mut hook = json!({
            "type": "command",
            "command": format!("echo \"$POSSE_CALL\" >mark.log; {command}"),
        });
        for (key, value) in more.as_object().unwrap() {
            hook[key] = value.clone();
        }
        let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
        write(
            &project,
            "../home/.claude/settings.json",
            &hooks.to_string(),
        );
        Self {
            server: serve(&script),
            project,
            name,
        }
    }

    fn start(&self) -> Child {
        let mut posse = self.project.posse(&LINES);
        posse
            .arg("--include-hook-events")
            .args(FREE)
            .arg("begin")
            .env("ANTHROPIC_BASE_URL", self.server.url());
        let piped = posse.stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().unwrap()
    }

    /// Runs posse to its end. Returns what it said, and the most memory that it has used.
    fn run(&self) -> (Output, u64) {
        let begun = Instant::now();
        let child = self.start();
        let status = format!("/proc/{}/status", child.id());
        // What it says is read meanwhile.
        let ended = std::thread::spawn(|| child.wait_with_output().unwrap());
        let mut most = 0;
        while !ended.is_finished() {
            let status = fs::read_to_string(&status).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let now = line.map(|line| line.trim().trim_end_matches(" kB").parse().unwrap());
            most = now.unwrap_or(0).max(most);
            assert!(begun.elapsed() < BOUND, "{}: it does not end", self.name);
            std::thread::yield_now();
        }
        (ended.join().unwrap(), most)
    }

    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.project.file(file)).ok()
    }

    fn living(&self) -> usize {
        living(&Project::place(&self.name).join("home"))
    }

    /// Waits until the hook hangs, with its two children.
    fn until_it_hangs(&self) {
        let begun = Instant::now();
        while self.read("up.log").is_none() || self.living() < 3 {
            assert!(begun.elapsed() < BOUND, "the hook does not hang");
            std::thread::yield_now();
        }
    }

    /// What the model was told of its call.
    fn result(&self) -> Value {
        let requests = self.server.requests();
        let last: Value = serde_json::from_slice(&requests.last().unwrap().body).unwrap();
        last["messages"][2]["content"][0].clone()
    }

    /// The call has run, when nothing of the hook was left.
    fn call_ran_alone(&self) {
        assert_eq!(self.read("ran.log").as_deref(), Some("ran\n"));
        assert_eq!(self.read("left.log").as_deref(), Some(""));
        // Otherwise it would have looked for something else.
        let mark = format!("{}.hook.", self.read("agent.log").unwrap().trim());
        assert!(self.read("mark.log").unwrap().starts_with(&mark));
        assert_ne!(self.result()["is_error"], true);
    }
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    format!("'''{text}'''")
}

/// The end of the hook, as programs are told of it.
fn end_of_hook(output: &Output) -> Value {
    let told = lines(output);
    let mut ends = told
        .iter()
        .filter(|line| line["subtype"] == "hook_response");
    ends.next().unwrap().clone()
}

/// A hook that fails in this way: it is told, and the call runs; or the call is denied, if the hook
/// says so.
fn fails(name: &str, command: &str, more: Value, why: &str) {
    let scene = Scene::new(name, command, more.clone());
    let (output, memory) = scene.run();
    let told = stderr(&output);
    assert!(output.status.success(), "{name}: {told}");
    let end = end_of_hook(&output);
    assert_eq!(end["outcome"], "error", "{name}");
    let failure = end["failure"].as_str().unwrap();
    assert!(failure.contains(why), "{name}: {failure}");
    let size = end["stdout"].as_str().unwrap().len() + end["stderr"].as_str().unwrap().len();
    assert!(size < 50_000, "{name}: {size} bytes are told");
    let warned = told.contains("the PreToolUse hook") && told.contains(why);
    assert!(warned, "{name}: {told}");
    assert!(memory > 0 && memory < MEMORY, "{name}: {memory} kB");
    scene.call_ran_alone();

    let mut blocks = more;
    blocks["onFailure"] = "block".into();
    let scene = Scene::new(&format!("{name}-blocks"), command, blocks);
    let (output, _) = scene.run();
    assert!(output.status.success(), "{name}: {}", stderr(&output));
    assert_eq!(scene.read("ran.log"), None, "{name}");
    let result = scene.result();
    let denied = "Denied by a hook of the user: it failed, which counts as a refusal";
    let text = result.to_string();
    assert!(
        result["is_error"] == true && text.contains(denied) && text.contains(why),
        "{name}: {text}"
    );
}

// proves HK-08 (part: onFailure)
// proves HK-11 (part: no process)
#[test]
fn a_hook_that_hangs_is_ended() {
    fails(
        "hangs",
        HANGS,
        json!({"timeout": 1}),
        "it took longer than 1 s",
    );
}

#[test]
fn a_hook_that_prints_without_end_is_ended() {
    let why = "it printed more than 1048576 bytes";
    fails("floods", "yes | head -c 100000000", json!({}), why);
    fails("complains", "yes | head -c 100000000 >&2", json!({}), why);
}

#[test]
fn half_an_object_is_no_answer() {
    let why = "it printed broken JSON";
    fails("half", r#"printf '{"decision": "blo'"#, json!({}), why);
}

// proves HK-11 (part: no process)
#[test]
fn daemons_of_a_hook_do_not_outlive_it() {
    let command = "(setsid sh -c 'sleep 1000; sleep 1000' &); \
                   setsid sh -c '(trap \"\" TERM HUP; sleep 1000; sleep 1000) & exit' ; echo said >&2";
    let scene = Scene::new("daemons", command, json!({}));
    let (output, _) = scene.run();
    assert!(output.status.success(), "{}", stderr(&output));
    let end = end_of_hook(&output);
    assert_eq!(end["outcome"], "success");
    let said = end["stderr"].as_str().unwrap();
    assert!(said.starts_with("said\n"), "{said}");
    assert!(
        said.contains("still running when the hook ended; now ended, too"),
        "{said}"
    );
    scene.call_ran_alone();
}

#[test]
fn a_hook_need_not_read_its_input() {
    let scene = Scene::new("early", "exec <&-; exit 0", json!({"onFailure": "block"}));
    let (output, _) = scene.run();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(end_of_hook(&output)["outcome"], "success");
    scene.call_ran_alone();
}

#[test]
fn a_hook_that_removes_the_working_directory_fails_the_call_and_not_posse() {
    let scene = Scene::new("removes", "cd /; rm -rf \"$OLDPWD\"", json!({}));
    let (output, _) = scene.run();
    assert!(output.status.success(), "{}", stderr(&output));
    let result = scene.result();
    let told = result.to_string().contains("is not a directory");
    assert!(result["is_error"] == true && told, "{result}");
    assert_eq!(scene.living(), 0);
}

// proves HK-11 (part: stop; no process)
#[test]
fn ctrl_c_ends_a_hook_that_hangs_within_a_second() {
    let scene = Scene::new("sigint", HANGS, json!({}));
    let child = scene.start();
    scene.until_it_hangs();
    let stopped = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let took = stopped.elapsed();
    assert_eq!(scene.living(), 0);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(
        (output.status.code(), output.status.signal()),
        (Some(130), None)
    );
    let told = lines(&output).pop().unwrap();
    assert_eq!(told["terminal_reason"], "interrupted", "{told}");
    assert_eq!(scene.read("ran.log"), None);
}

// proves HK-11 (part: stop; no process)
#[test]
fn an_interrupt_ends_a_hook_that_hangs_within_a_second_and_the_next_prompt_is_heard() {
    let scene = Scene::new("interrupt", HANGS, json!({}));
    let url = scene.server.url();
    let mut talk = Talk::start(&scene.project, &[&["--base-url", &url], &FREE[..]].concat());
    talk.prompt("begin");
    scene.until_it_hangs();
    let stopped = Instant::now();
    let interrupt =
        json!({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}});
    talk.tell(&interrupt);
    let told = talk.hear("result");
    while scene.living() > 0 {
        assert!(stopped.elapsed() < BOUND, "a process is left");
        std::thread::yield_now();
    }
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(told["terminal_reason"], "interrupted", "{told}");
    assert_eq!(scene.read("ran.log"), None);
    talk.prompt("hurry");
    assert_eq!(talk.hear("result")["result"], "quick");
    assert_eq!(talk.end(), Some(0));
}
