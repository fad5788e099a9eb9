//! `posse attach`: watching an agent of another process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use posse_protocol::wire::ServerMessage;
use posse_protocol::{Activity, Delta, EventKind};
use posse_testkit::postgres::Database;
use rustix::process::{Pid, Signal, kill_process};

use crate::binary::{Project, posse, stderr, stdout};
use crate::requests::{TOUCHES, asking, id};
use crate::team::succeed;

/// A process that watches.
struct Viewer {
    child: Child,
    printed: BufReader<ChildStdout>,
}

impl Viewer {
    fn start(project: &Project, arguments: &[&str]) -> Self {
        Self::of(project.posse(arguments))
    }

    fn of(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap());
        Self { child, printed }
    }

    /// Reads up to a line with this text.
    fn until(&mut self, text: &str) -> String {
        let mut read = String::new();
        loop {
            let before = read.len();
            let count = self.printed.read_line(&mut read).unwrap();
            assert!(count > 0, "it ended without {text}: {read}");
            if read[before..].contains(text) {
                return read;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Reads the rest, and waits for a good end.
    fn rest(mut self) -> String {
        let mut rest = String::new();
        self.printed.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }
}

/// The number of sockets beside the store.
fn sockets() -> usize {
    let entries = std::fs::read_dir(Project::place("attach").join("home/hosts")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| name.to_str().unwrap().contains(".sock"))
        .count()
}

/// A session whose command tries to watch, and waits until the file `go` is there.
fn script() -> String {
    let posse = posse().get_program().to_str().unwrap().to_owned();
    format!(
        r#"
[[rule]]
when.turn = 1
reply = [{{ tool = "Bash", input = {{ command = "{posse} attach --json > refused 2>&1; touch here; until [ -e go ]; do echo not yet; sleep 0.02; done; echo there" }} }}]
[[rule]]
reply = [{{ text = "One line.\nAnd another one, which is the last." }}]
"#
    )
}

// proves WA-05 (part: attach)
// proves WA-06 (part: attach; no gap)
// proves WA-03 (part: live; several; stopped; killed; removed; nothing changes)
// proves WA-04 (part: commands)
#[test]
fn an_agent_of_another_process_is_watched_and_does_not_notice() {
    let project = Project::new("attach", &script());
    let mut run = project.posse(&["-p", "go", "--permission-mode", "bypassPermissions"]);
    run.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    while !project.file("here").exists() {
        std::thread::yield_now();
    }
    // An agent's command cannot watch.
    let refused = std::fs::read_to_string(project.file("refused")).unwrap();
    assert!(
        refused.contains("an agent's command may not watch"),
        "{refused}"
    );

    assert_eq!(sockets(), 1);
    let mut plain = Viewer::start(&project, &["attach"]);
    let shown = plain.until("● working");
    assert!(
        shown.contains("> go") && shown.contains("→ Bash"),
        "{shown}"
    );
    // What the command prints is shown while it runs.
    plain.until("  │ not yet");
    let mut lines = Viewer::start(&project, &["attach", "--json"]);
    let first = lines.until("\"call_started\"");
    let mut stopped = Viewer::start(&project, &["attach"]);
    stopped.until("● working");
    stopped.signal(Signal::STOP);
    let mut killed = Viewer::start(&project, &["attach"]);
    killed.until("● working");
    killed.signal(Signal::KILL);
    killed.child.wait().unwrap();

    std::fs::write(project.file("go"), "").unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("And another one"),
        "{}",
        stdout(&output)
    );

    // Each line once, though it came as text and as an entry.
    let rest = plain.rest();
    assert_eq!(
        rest.matches("And another one, which is the last.").count(),
        1,
        "{rest}"
    );
    assert!(rest.contains("● idle · $0."), "{rest}");
    stopped.signal(Signal::CONT);
    assert!(stopped.rest().contains("And another one"));

    let all = first + &lines.rest();
    let events: Vec<EventKind> = all
        .lines()
        .filter_map(|line| match ServerMessage::decode(line).unwrap() {
            ServerMessage::Event { event, .. } => Some(event.kind),
            _ => None,
        })
        .collect();
    let text: String = events
        .iter()
        .filter_map(|kind| match kind {
            EventKind::Delta(Delta::Text(text)) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "One line.\nAnd another one, which is the last.");
    // First the history, then what happens, each entry once.
    let numbers: Vec<_> = events
        .iter()
        .filter_map(|kind| match kind {
            EventKind::Entry(entry) => Some(entry.seq),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    assert!(matches!(
        &events[..2],
        [EventKind::Entry(_), EventKind::Entry(_)]
    ));
    assert_eq!(events[2], EventKind::State(Activity::Working));
    assert_eq!(events.last(), Some(&EventKind::State(Activity::Gone)));
    assert!(
        events
            .iter()
            .any(|kind| matches!(kind, EventKind::Spending(_)))
    );
    assert_eq!(sockets(), 0, "it is removed");

    // Without a process that runs it, the store is shown, and stays as it is.
    let export = || stdout(&project.run(&["sessions", "export"]));
    let before = export();
    let mut later = Viewer::start(&project, &["attach"]);
    later.until("And another one");
    later.signal(Signal::INT);
    later.rest();
    assert_eq!(export(), before);
    let refused = project.run(&["attach", "--json"]);
    assert!(
        stderr(&refused).contains("no process runs it"),
        "{}",
        stderr(&refused)
    );
}

// proves WA-08 (part: at once; how to answer)
#[test]
fn a_new_viewer_is_shown_what_the_agent_asks() {
    let project = Project::new("attach-asks", TOUCHES);
    let (run, asked) = asking(&project, &[]);
    let mut viewer = Viewer::start(&project, &["attach"]);
    let request = &id(&asked)[..8];
    let answer = format!("`posse requests answer {request} allow`");
    let shown = viewer.until(&answer);
    assert!(
        shown.contains("? the main agent asks about Bash: touch made"),
        "{shown}"
    );
    succeed(&project, &["requests", "answer", request, "allow"]);
    assert!(viewer.rest().contains("It is done."));
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

// proves WA-09 (part: this machine; another one)
#[test]
fn agents_of_a_store_on_a_server_are_watched_too() {
    let database = Database::empty().unwrap();
    let project = Project::new("attach-server", &script());
    let at = |arguments: &[&str]| {
        let mut command = project.posse(arguments);
        command.env("POSSE_STORE", database.url());
        command
    };
    let mut run = at(&["-p", "go", "--permission-mode", "bypassPermissions"]);
    run.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    while !project.file("here").exists() {
        std::thread::yield_now();
    }
    let mut near = Viewer::of(at(&["attach"]));
    // Only the process that runs the command knows what it prints.
    near.until("  │ not yet");
    database
        .sql("UPDATE posse.host SET node = 'elsewhere'")
        .unwrap();
    let mut far = Viewer::of(at(&["attach"]));
    far.until("→ Bash");
    std::fs::write(project.file("go"), "").unwrap();
    let shown = far.until("And another one, which is the last.");
    assert!(!shown.contains("│"), "{shown}");
    far.signal(Signal::INT);
    far.rest();
    assert!(near.rest().contains("And another one"));
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}
