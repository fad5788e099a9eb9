//! `posse attach`: watching an agent of another process.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use posse_protocol::wire::{ClientMessage, ClientWatch, ServerMessage};
use posse_protocol::{
    Activity, AgentId, Command as ToAgent, ContentBlock, Delta, Detail, EventKind, PermissionMode,
    PromptChange, QueuedPrompt, WatchTarget,
};
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
    assert!(shown.contains("> go") && shown.contains("→ $ "), "{shown}");
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
    far.until("→ $ ");
    std::fs::write(project.file("go"), "").unwrap();
    let shown = far.until("And another one, which is the last.");
    assert!(!shown.contains("│"), "{shown}");
    far.signal(Signal::INT);
    far.rest();
    assert!(near.rest().contains("And another one"));
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A program at the socket of a process.
struct Client {
    stream: UnixStream,
    read: BufReader<UnixStream>,
    /// Events that came before an answer.
    events: VecDeque<EventKind>,
}

impl Client {
    /// Connects to the only process that runs agents of a project.
    fn connect(project: &str) -> Self {
        let hosts = std::fs::read_dir(Project::place(project).join("home/hosts")).unwrap();
        let mut paths = hosts.map(|entry| entry.unwrap().path());
        let path = paths.find(|path| path.to_str().unwrap().contains(".sock"));
        let stream = UnixStream::connect(path.unwrap()).unwrap();
        let read = BufReader::new(stream.try_clone().unwrap());
        Self {
            stream,
            read,
            events: VecDeque::new(),
        }
    }

    /// Sends a command, and returns why it is refused.
    fn tell(&mut self, command: ToAgent) -> Result<(), String> {
        self.send(ClientMessage::Command {
            id: Some("1".into()),
            command,
        });
        loop {
            match self.next() {
                ServerMessage::Accepted { .. } => return Ok(()),
                ServerMessage::Refused { error, .. } => return Err(error),
                ServerMessage::Event { event, .. } => self.events.push_back(event.kind),
                ServerMessage::Hello { .. } | ServerMessage::Behind { .. } => {}
            }
        }
    }

    /// Waits for the next event.
    fn event(&mut self) -> EventKind {
        loop {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            if let ServerMessage::Event { event, .. } = self.next() {
                return event.kind;
            }
        }
    }

    /// Waits until a prompt is told to wait.
    fn queued(&mut self) -> QueuedPrompt {
        loop {
            if let EventKind::Queue(mut queue) = self.event()
                && let Some(prompt) = queue.pop()
            {
                return prompt;
            }
        }
    }

    fn send(&mut self, message: ClientMessage) {
        let line = message.encode().unwrap();
        self.stream.write_all(line.as_bytes()).unwrap();
    }

    fn next(&mut self) -> ServerMessage {
        let mut line = String::new();
        self.read.read_line(&mut line).unwrap();
        ServerMessage::decode(&line).unwrap()
    }
}

// proves WA-12 (part: handed over; refused)
#[test]
fn an_agent_is_told_commands_by_another_process() {
    let script = r#"
[[rule]]
when.turn = 1
reply = [{ tool = "Bash", input = { command = "touch here; until [ -e go ]; do sleep 0.02; done" } }]
[[rule]]
when.user = "and the lexer"
reply = [{ text = "Both then." }]
"#;
    let project = Project::new("attach-tells", script);
    let mut run = project.posse(&["-p", "go", "--allowedTools", "Bash"]);
    run.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    while !project.file("here").exists() {
        std::thread::yield_now();
    }
    let session = stdout(&project.run(&["sessions", "list", "--json"]));
    let session: serde_json::Value = serde_json::from_str(&session).unwrap();
    let main: AgentId = serde_json::from_value(session["session_id"].clone()).unwrap();
    let to = |agent, command| ToAgent::To {
        agent,
        command: Box::new(command),
    };
    let words = |text: &str| ToAgent::Prompt(vec![ContentBlock::text(text)]);

    let mut client = Client::connect("attach-tells");
    client.send(ClientMessage::Watch(ClientWatch {
        id: None,
        target: WatchTarget::Agent(main),
        detail: Some(Detail::News),
    }));
    let refused = |error: &str| Err(error.to_owned());
    let whom = "say which agent it is for, with `to`: a process may have several sessions";
    assert_eq!(client.tell(words("hello")), refused(whom));
    let stranger = AgentId::from(uuid::Uuid::from_u128(7));
    let gone = "it is not in this process";
    assert_eq!(client.tell(to(stranger, words("hello"))), refused(gone));
    let bypass = ToAgent::SetMode(PermissionMode::BypassPermissions);
    let at_start = "bypassPermissions must be chosen when posse starts";
    assert_eq!(client.tell(to(main, bypass)), refused(at_start));
    let unknown = to(main, words("/compactt"));
    let meant = "there is no command /compactt; did you mean /compact?";
    assert_eq!(client.tell(unknown), refused(meant));

    // What is told while it works waits, is seen to wait, and joins the run.
    assert_eq!(client.tell(to(main, words("and the lexer"))), Ok(()));
    let queued = client.queued();
    assert_eq!(
        (queued.text.as_str(), queued.joins),
        ("and the lexer", false)
    );
    let joins = ToAgent::ChangePrompt {
        prompt: queued.id,
        change: PromptChange::Join(true),
    };
    assert_eq!(client.tell(to(main, joins)), Ok(()));
    assert!(client.queued().joins);
    std::fs::write(project.file("go"), "").unwrap();
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "Both then.\n");
}
