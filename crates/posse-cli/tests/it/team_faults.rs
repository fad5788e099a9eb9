//! What goes wrong during `posse team run` is told at once, and pauses it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use posse_testkit::postgres::{Options, Server};

use crate::binary::{Project, stderr, stdout};
use crate::team_run::{HELD, project, requests, until};

/// Runs posse's team in a home on a small file system of its own. The reviewer fills it; then space
/// is made, and the team continues.
fn on_a_small_disk(project: &Project, arguments: &[&str]) -> Output {
    let home = project.file("../home");
    std::fs::create_dir_all(&home).unwrap();
    let script = r#"
        mount -t tmpfs -o size=4m small "$1" && home=$1 && shift || exit 99
        "$@"; echo "first: $?" >&2
        rm "$home/filler" && "$POSSE" team run mend --resume; echo "then: $?" >&2
    "#;
    let posse = project.posse(arguments);
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(&home).arg(posse.get_program());
    command.args(posse.get_args()).env_clear();
    for (name, value) in posse.get_envs() {
        command.env(name, value.unwrap());
    }
    command
        .env("POSSE", posse.get_program())
        .current_dir(posse.get_current_dir().unwrap())
        .stdin(Stdio::null());
    command.output().unwrap()
}

// proves FC-06 (part: a full disk)
#[test]
fn a_full_disk_pauses_a_team_at_once_and_it_continues() {
    let home = Project::place("team-full-disk").join("home");
    let fill = r#"
[[rule]]
when = { agent = "reviewer", marker = "Task 2 is yours" }
times = 1
reply = [{ tool = "Bash", input = { command = "./fill.sh" } }]
"#;
    let project = project("team-full-disk", fill);
    let filler = format!(
        "#!/bin/sh\ndd if=/dev/zero of={}/filler bs=4k; true\n",
        home.display()
    );
    std::fs::write(project.file("fill.sh"), filler).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(project.file("fill.sh"), executable).unwrap();
    let begun = Instant::now();
    let output = on_a_small_disk(
        &project,
        &[
            "team",
            "run",
            "mend",
            "go",
            "--allowedTools",
            "Bash(./fill.sh)",
        ],
    );
    let told = stderr(&output);
    assert!(begun.elapsed() < Duration::from_secs(20), "{told}");
    assert!(told.contains("the disk is full"), "{told}");
    assert!(told.contains("first: 3"), "it can be continued: {told}");
    assert!(
        told.contains("continue with `posse team run mend --resume"),
        "{told}"
    );
    assert!(told.contains("1 of 2 tasks done, 1 open: #2"), "{told}");
    assert!(told.contains("then: 0"), "{told}");
    assert_eq!(stdout(&output), "All is mended.\n", "{told}");
}

/// Runs the team with its sessions on a server of its own, which dies while the reviewer works.
struct Orphaned {
    _project: Project,
    server: Server,
    child: Child,
    from: BufReader<ChildStderr>,
}

impl Orphaned {
    fn start(name: &str, wait: &str) -> Self {
        let project = project(name, &HELD.replace("600000", "4000"));
        let mut server = Server::start(Options::default()).unwrap();
        let url = server.database("posse").unwrap();
        let mut child = project
            .posse(&["team", "run", "mend", "go", "--background-wait", wait])
            .env("POSSE_STORE", url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("the reviewer works", || {
            requests(&project)
                .iter()
                .any(|(_, asked)| asked.contains("Task 2 is yours"))
        });
        server.kill9().unwrap();
        let died = Instant::now();
        let mut from = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("the store does not answer") {
            assert_ne!(from.read_line(&mut said).unwrap(), 0, "{said}");
        }
        // A second for the check and one for the answer, and some for a busy machine.
        assert!(died.elapsed() < Duration::from_secs(4), "{said}");
        assert!(said.contains("waiting for it"), "{said}");
        Self {
            _project: project,
            server,
            child,
            from,
        }
    }

    /// Returns the exit code and the rest of what is said.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.from.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

// proves FC-06 (part: a dead store)
#[test]
fn a_team_waits_for_a_store_that_has_died() {
    let mut run = Orphaned::start("team-dead-store", "600");
    run.server.restart().unwrap();
    let (code, said) = run.end();
    assert!(said.contains("the store answers again"), "{said}");
    assert_eq!(said.lines().last(), Some("2 of 2 tasks done"), "{said}");
    assert_eq!(code, Some(0), "{said}");
}

// proves FC-06 (part: --background-wait)
#[test]
fn a_team_waits_for_a_dead_store_no_longer_than_it_was_told_to() {
    let mut run = Orphaned::start("team-lost-store", "2");
    let begun = Instant::now();
    let (code, said) = run.end();
    assert!(begun.elapsed() < Duration::from_secs(20), "{said}");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("paused: the store does not answer"), "{said}");
    assert!(
        said.contains("continue with `posse team run mend --resume"),
        "{said}"
    );
}

/// The members answer each message with another one.
const TALK: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "Sent to" }
reply = [{ text = "I have answered." }]
[[rule]]
when = { agent = "/dev-" }
reply = [{ tool = "SendMessage", input = { to = "reviewer", message = "After you." } }]
[[rule]]
when = { agent = "/reviewer-" }
reply = [{ tool = "SendMessage", input = { to = "dev", message = "No, after you." } }]
"#;

// proves FC-03 (part: messages)
#[test]
fn a_team_that_only_talks_is_told_once_and_then_paused() {
    let project = project("team-talk", TALK);
    let output = project.run(&["team", "run", "mend", "go"]);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{told}");
    let reason = "paused: its members wrote each other 40 messages in a row and did nothing else";
    assert!(told.contains(reason), "{told}");
    assert!(
        told.contains("continue with `posse team run mend --resume"),
        "{told}"
    );
    let notice = "have written each other 20 messages in a row";
    let asked = requests(&project);
    let last = |name: &str| {
        let of = |(agent, _): &&(String, String)| agent.contains(name);
        asked.iter().rfind(of).unwrap().1.matches(notice).count()
    };
    assert_eq!(last("/dev-") + last("/reviewer-"), 1, "{told}");
}
