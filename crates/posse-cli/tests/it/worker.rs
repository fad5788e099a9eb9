//! Workers: they have members work that another process leads, and go on with what a killed one had.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use posse_testkit::postgres::Database;
use serde_json::Value;

use crate::binary::{Project, stderr, stdout};
use crate::requests::waits;

/// How long anything may take.
const LONG: Duration = Duration::from_secs(60);

/// Members do a task each when the file `go` is there, and leave a line for it. What was broken off they do again.
const SCRIPT: &str = r#"
[[rule]]
when.agent = 're:^/main$'
reply = [{ text = 'All is done.' }]
[[rule]]
when = { tool = 're:Outcome unknown|Not run', state = { phase = 'work' } }
reply = [{ tool = 'Bash', input = { command = 'until [ -e go ]; do sleep 0.02; done; echo part-{{state.part}} >>done.log' } }]
[[rule]]
when = { tool = 're:.', state = { phase = 'work' } }
set.phase = 'complete'
reply = [{ tool = 'TaskUpdate', input = { taskId = '{{state.part}}', status = 'completed' } }]
[[rule]]
when.tool = 're:.'
reply = [{ text = 'Done.' }]
[[rule]]
when.user = 're:Task (\d+) is yours now'
set = { phase = 'work', part = '{{user.1}}' }
reply = [{ tool = 'Bash', input = { command = 'until [ -e go ]; do sleep 0.02; done; echo part-{{user.1}} >>done.log' } }]
[[rule]]
reply = [{ text = 'Ready.' }]
"#;

const TEAM: &str = "description = 'It works.'\n\
    [roles.dev]\nprompt = 'Work.'\ncount = 2\n\
    [[tasks]]\nsubject = 'one'\n[[tasks]]\nsubject = 'two'\n";

pub(crate) struct Scene {
    pub(crate) project: Project,
    store: String,
    mode: &'static str,
}

impl Scene {
    pub(crate) fn new(name: &str, store: &str) -> Self {
        let project = Project::new(&format!("worker-{name}"), SCRIPT);
        std::fs::create_dir_all(project.file(".posse/teams")).unwrap();
        std::fs::write(project.file(".posse/teams/crew.toml"), TEAM).unwrap();
        Self {
            project,
            store: store.to_owned(),
            mode: "bypassPermissions",
        }
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.project.posse(arguments);
        command
            .args(["--permission-mode", self.mode])
            .env("POSSE_STORE", &self.store);
        Running::new(
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// Runs another command on the store until it ends.
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = self.project.posse(arguments);
        let output = command.env("POSSE_STORE", &self.store).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    }

    pub(crate) fn lead(&self) -> Running {
        self.start(&["team", "run", "crew", "work", "--team-backend", "worker"])
    }

    pub(crate) fn worker(&self, more: &[&str]) -> Running {
        self.start(&[&["worker", "--json"], more].concat())
    }
}

/// A process, and the lines that it says.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    pub(crate) said: Vec<String>,
}

impl Running {
    fn new(mut child: Child) -> Self {
        let (send, lines) = mpsc::channel();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let also = send.clone();
        std::thread::spawn(move || {
            BufReader::new(out)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|it| send.send(it))
        });
        std::thread::spawn(move || {
            BufReader::new(err)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|it| also.send(it))
        });
        Self {
            child,
            lines,
            said: Vec::new(),
        }
    }

    /// Waits for a line that is meant.
    fn until(&mut self, what: &str, is_meant: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let left = LONG.saturating_sub(begun.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if is_meant(&line) {
                        return line;
                    }
                }
                Err(_) => panic!("{what}: {:#?}", self.said),
            }
        }
    }

    /// Waits until so many members have come to something here.
    pub(crate) fn until_members(&mut self, event: &str, count: usize) {
        for _ in 0..count {
            self.until(event, |line| {
                serde_json::from_str::<Value>(line).is_ok_and(|line| line["event"] == event)
            });
        }
    }

    pub(crate) fn ends(&mut self) -> i32 {
        // What it says must not hold it up.
        while let Ok(line) = self.lines.recv_timeout(LONG) {
            self.said.push(line);
        }
        self.child.wait().unwrap().code().unwrap()
    }

    pub(crate) fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One worker is killed, and another goes on within `soon`.
fn another_goes_on(scene: &Scene, soon: Duration) {
    let mut lead = scene.lead();
    let mut first = scene.worker(&["--team", "other", "--team", "crew"]);
    first.until_members("running", 2);
    let mut second = scene.worker(&[]);
    second.until_members("ready", 1);
    first.child.kill().unwrap();
    let killed = Instant::now();
    second.until_members("hosted", 2);
    let took = killed.elapsed();
    assert!(took <= soon, "taken over after {took:?}");
    std::fs::write(scene.project.file("go"), "").unwrap();
    assert_eq!(lead.ends(), 0, "{:#?}", lead.said);
    assert!(
        lead.said.iter().any(|line| line == "All is done."),
        "{:#?}",
        lead.said
    );
    second.until_members("left", 2);
    second.interrupt();
    assert_eq!(second.ends(), 0, "{:#?}", second.said);
    let done = std::fs::read_to_string(scene.project.file("done.log")).unwrap();
    assert!(done.contains("part-1") && done.contains("part-2"), "{done}");
    let shown = scene.run(&["team", "show", "--json"]);
    assert!(!shown.contains("in_progress"), "{shown}");
}

#[test]
fn a_second_worker_goes_on_with_what_a_killed_one_had() {
    let database = Database::new().unwrap();
    let scene = Scene::new("killed", &format!("{}?posse_lease=2s", database.url()));
    another_goes_on(&scene, Duration::from_secs(3));
}

// proves QU-03 (part: workers)
// proves QU-02 (part: from anywhere)
#[test]
fn questions_of_a_worker_are_answered_from_another_terminal() {
    let database = Database::new().unwrap();
    let mut scene = Scene::new("asks", database.url());
    scene.mode = "default";
    let mut lead = scene.lead();
    let mut worker = scene.worker(&[]);
    worker.until_members("asked", 2);
    let open = scene.run(&["requests", "list", "--json"]);
    assert_eq!(open.lines().count(), 2, "{open}");
    for line in open.lines() {
        let asked: Value = serde_json::from_str(line).unwrap();
        let hours = waits(&asked).as_secs() / 3600;
        assert!((23..=24).contains(&hours), "a day: {asked}");
        assert!(asked["from"].as_str().unwrap().starts_with("dev-"));
        let id = asked["request_id"].as_str().unwrap();
        scene.run(&["requests", "answer", id, "allow"]);
    }
    std::fs::write(scene.project.file("go"), "").unwrap();
    assert_eq!(lead.ends(), 0, "{:#?}", lead.said);
    let done = std::fs::read_to_string(scene.project.file("done.log")).unwrap();
    assert_eq!(done.lines().count(), 2, "{done}");
    worker.interrupt();
    assert_eq!(worker.ends(), 0, "{:#?}", worker.said);
}

#[test]
fn workers_of_one_machine_share_a_file() {
    let place =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("project-worker-file/w.db");
    let scene = Scene::new("file", &format!("sqlite:{}", place.display()));
    another_goes_on(&scene, Duration::from_secs(3));
}

#[test]
fn a_worker_takes_no_more_than_it_is_told_and_gives_back_what_it_has() {
    let place =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("project-worker-most/w.db");
    let scene = Scene::new("most", &format!("sqlite:{}", place.display()));
    let mut lead = scene.lead();
    let mut small = scene.worker(&["--max", "1"]);
    small.until_members("running", 1);
    // It has looked several times since, and has taken nobody else: that is the lead's to say.
    lead.until("one is left", |line| {
        line.contains("no worker has taken dev-")
    });
    assert_eq!(
        small
            .said
            .iter()
            .filter(|line| line.contains("\"hosted\""))
            .count(),
        1,
        "{:#?}",
        small.said
    );
    small.interrupt();
    assert_eq!(small.ends(), 0, "{:#?}", small.said);
    assert!(
        small
            .said
            .iter()
            .any(|line| line.contains("\"given_back\":1")),
        "{:#?}",
        small.said
    );
    let mut other = scene.worker(&[]);
    other.until_members("hosted", 2);
    std::fs::write(scene.project.file("go"), "").unwrap();
    assert_eq!(lead.ends(), 0, "{:#?}", lead.said);
}

#[test]
fn what_is_not_here_is_left_to_others() {
    let place =
        std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("project-worker-away/w.db");
    let scene = Scene::new("away", &format!("sqlite:{}", place.display()));
    let _lead = scene.lead();
    let work = scene.project.file("");
    let mut worker = scene.worker(&["--team", "crew", "--max", "1"]);
    worker.until_members("running", 1);
    let away = work.with_file_name("elsewhere");
    std::fs::rename(&work, &away).unwrap();
    let mut command = crate::binary::posse();
    command
        .args(["worker", "--json"])
        .env("POSSE_STORE", &scene.store)
        .env("ANTHROPIC_BASE_URL", scene.project.url());
    let mut stranger = Running::new(
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let told = stranger.until("it is told", |line| line.contains("left_out"));
    assert!(told.contains("does not exist here"), "{told}");
}
