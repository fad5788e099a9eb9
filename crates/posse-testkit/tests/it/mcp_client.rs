//! The MCP client against the server with faults: both eras, programs and HTTP. What was done is counted on the
//! server's side.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use posse_port::clock::{Clock, SystemClock};
use posse_port::process::ProcessBoundary;
use posse_port::servers::{
    NoAsker, Server, ServerAnswer, ServerCall, ServerEntry, ServerFailure, ServerPlace,
    ServerSharing, ServerState, ServerTransport, Servers as _, SignInEntry,
};
use posse_port::tool::LiveOutput;
use posse_protocol::{AgentId, RawJson, ToolContent};
use posse_testkit::clock::TestClock;
use posse_tools::{McpServers, SystemProcesses};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Servers, and what the server of the testkit logs.
struct Scene {
    servers: McpServers,
    clock: Arc<dyn Clock>,
    directory: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self::with_clock(Arc::new(SystemClock::default()))
    }

    fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self {
            servers: McpServers::new(Arc::new(SystemProcesses::default())),
            clock,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn program(&self, options: &[&str]) -> ServerEntry {
        let log = self.log();
        let words = [
            env!("CARGO_BIN_EXE_mcp-server"),
            "--log",
            log.to_str().unwrap(),
        ];
        let words = words.iter().chain(options).map(|word| (*word).to_owned());
        entry(ServerTransport::Program {
            words: words.collect(),
            variables: Vec::new(),
        })
    }

    fn place(&self, agent: u128) -> ServerPlace {
        ServerPlace {
            session: AgentId::from(Uuid::from_u128(agent / 10)),
            agent: AgentId::from(Uuid::from_u128(agent)),
            directory: self.directory.path().to_owned(),
            boundary: ProcessBoundary::None,
            clock: Arc::clone(&self.clock),
        }
    }

    async fn connect(&self, entry: ServerEntry) -> Arc<dyn Server> {
        let server = self.servers.connect(&Arc::new(entry), &self.place(1));
        server.settled().await;
        server
    }

    /// What servers have logged of a kind.
    fn logged(&self, event: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines
            .filter(|line: &Value| line["event"] == event)
            .collect()
    }

    /// Waits until so many lines of a kind are logged.
    async fn until(&self, event: &str, count: usize) {
        while self.logged(event).len() < count {
            tokio::task::yield_now().await;
        }
    }
}

fn entry(transport: ServerTransport) -> ServerEntry {
    ServerEntry {
        name: "s".into(),
        transport,
        call_limit: None,
        sharing: ServerSharing::Process,
    }
}

/// A server over HTTP, which ends with the test.
struct Listening(Child, String);

impl Listening {
    fn start(options: &[&str]) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the test is about a program")]
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-server"));
        let mut child = command
            .args(["--http", "0"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut url)
            .unwrap();
        Self(child, url.trim().to_owned())
    }

    fn entry(&self, headers: &[(&str, &str)]) -> ServerEntry {
        let headers = headers.iter();
        entry(ServerTransport::Http {
            url: self.1.clone(),
            headers: headers
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            sign_in: SignInEntry::default(),
        })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn call(tool: &str, input: &Value) -> ServerCall {
    ServerCall {
        tool: tool.into(),
        input: RawJson::parse(&input.to_string()).unwrap(),
        session: AgentId::from(Uuid::nil()),
        path: "/main".into(),
        asker: Arc::new(NoAsker),
        output: LiveOutput::default(),
        overflow: None,
        cancel: CancellationToken::new(),
    }
}

fn text(answer: &ServerAnswer) -> String {
    let texts = answer.content.iter().filter_map(|part| match part {
        ToolContent::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

async fn add(server: &dyn Server) -> String {
    let answer = server.call(call("add", &json!({"a": 2, "b": 3}))).await;
    text(&answer.unwrap())
}

fn is_connected(server: &dyn Server) -> bool {
    matches!(server.state(), ServerState::Connected(facts) if facts.tools.len() == 15)
}

// proves MC-02 (part: eras; programs; addresses)
#[tokio::test]
async fn programs_and_addresses_of_both_eras_are_talked_to() {
    let scene = Scene::new();
    for options in [
        &[][..],
        &["--old"],
        &["--old", "--agree"],
        &["--new"],
        &["--page", "4"],
    ] {
        let server = scene.connect(scene.program(options)).await;
        assert!(is_connected(&*server), "{options:?}: {:?}", server.state());
        assert_eq!(add(&*server).await, "5", "{options:?}");
        let listening = Listening::start(&[options, &["--bearer", "t"]].concat());
        let server = scene
            .connect(listening.entry(&[("authorization", "Bearer t")]))
            .await;
        assert!(
            is_connected(&*server),
            "http {options:?}: {:?}",
            server.state()
        );
        assert_eq!(add(&*server).await, "5", "http {options:?}");
        let refused = scene.connect(listening.entry(&[])).await;
        let ServerState::Failed { why, .. } = refused.state() else {
            panic!("{:?}", refused.state());
        };
        assert!(why.contains("401"), "{why}");
    }
    scene.servers.end().await;
}

// proves MC-02 (part: shared false; secrets)
#[tokio::test]
async fn what_names_a_secret_stays_in_its_session_and_what_is_not_shared_with_its_agent() {
    let scene = Scene::new();
    for (sharing, other_agent, other_session) in [
        (ServerSharing::Process, true, true),
        (ServerSharing::Session, true, false),
        (ServerSharing::Agent, false, false),
    ] {
        let entry = Arc::new(ServerEntry {
            sharing,
            ..scene.program(&["--title", &format!("{sharing:?}")])
        });
        let of = |agent| scene.servers.connect(&entry, &scene.place(agent));
        let (first, same, neighbour, stranger) = (of(11), of(11), of(12), of(21));
        let is = |other: &Arc<dyn Server>| Arc::ptr_eq(&first, other);
        assert!(is(&same));
        assert_eq!(
            (is(&neighbour), is(&stranger)),
            (other_agent, other_session),
            "{sharing:?}"
        );
    }
    scene.servers.end().await;
}

// proves MC-02 (part: sixteen)
#[tokio::test]
async fn sixteen_calls_of_a_server_run_at_once() {
    let scene = Scene::new();
    let server = scene.connect(scene.program(&[])).await;
    let cancel = CancellationToken::new();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let cancel = cancel.clone();
        calls.spawn(server.call(ServerCall {
            cancel,
            ..call("never", &json!({}))
        }));
    }
    scene.until("call", 16).await;
    // One more would be logged before this is answered.
    let ended = calls.len();
    assert_eq!((ended, scene.logged("call").len()), (40, 16));
    cancel.cancel();
    while let Some(ended) = calls.join_next().await {
        assert!(matches!(
            ended.unwrap(),
            Err(ServerFailure::Stopped | ServerFailure::NotCalled(_))
        ));
    }
    assert_eq!(
        scene.logged("call").len(),
        16,
        "who waited was never called"
    );
    assert_eq!(add(&*server).await, "5", "its places are free again");
    scene.servers.end().await;
}

// proves MC-07 (part: cancelled)
#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_the_server_is_told() {
    let scene = Scene::new();
    for options in [&["--old"][..], &["--new"]] {
        let server = scene.connect(scene.program(options)).await;
        let cancel = CancellationToken::new();
        let before = scene.logged("call").len();
        let never = server.call(ServerCall {
            cancel: cancel.clone(),
            ..call("never", &json!({}))
        });
        let mut calls = tokio::task::JoinSet::new();
        calls.spawn(never);
        scene.until("call", before + 1).await;
        cancel.cancel();
        let ended = calls.join_next().await.unwrap().unwrap();
        assert!(matches!(ended, Err(ServerFailure::Stopped)), "{ended:?}");
        scene.until("cancelled", scene.logged("start").len()).await;
        assert_eq!(add(&*server).await, "5");
    }
    scene.servers.end().await;
}

// proves MC-07 (part: too long; no progress)
#[tokio::test]
async fn a_call_that_takes_too_long_or_makes_no_progress_ends() {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    for (limit, waited) in [
        (Some(hours(1)), hours(1)),
        (None, Duration::from_secs(30 * 60)),
    ] {
        let clock = TestClock::default();
        let scene = Scene::with_clock(Arc::new(clock.clone()));
        let entry = ServerEntry {
            call_limit: limit,
            ..scene.program(&[])
        };
        let server = scene.connect(entry).await;
        let mut calls = tokio::task::JoinSet::new();
        calls.spawn(server.call(call("never", &json!({}))));
        scene.until("call", 1).await;
        clock.asleep_for(waited).await;
        clock.advance(waited);
        let ended = calls.join_next().await.unwrap().unwrap();
        assert!(
            matches!(ended, Err(ServerFailure::TimedOut(after)) if after == waited),
            "{ended:?}"
        );
        scene.until("cancelled", 1).await;
        scene.servers.end().await;
    }
}

// proves MC-07 (part: lines; answers)
#[tokio::test]
async fn lines_and_answers_are_bounded() {
    let scene = Scene::new();
    let server = scene.connect(scene.program(&[])).await;
    let file = scene.directory.path().join("long.txt");
    let long = server.call(ServerCall {
        overflow: Some(file.clone()),
        ..call("long", &json!({ "characters": 2_000_000 }))
    });
    let answer = text(&long.await.unwrap());
    assert!(
        answer.len() < 400_000 && answer.contains("long.txt"),
        "{}",
        answer.len()
    );
    assert_eq!(std::fs::metadata(file).unwrap().len(), 2_000_000);
    let lost = server.call(call("long_line", &json!({}))).await;
    assert!(matches!(lost, Err(ServerFailure::Lost(_))), "{lost:?}");
    // What it printed beside its messages does no harm, and neither does the end of the other one.
    let answer = server.call(call("garbage", &json!({}))).await.unwrap();
    assert!(answer.restarted);
    assert_eq!(scene.logged("call").len(), 3, "none was made again");
    assert_eq!(scene.logged("start").len(), 2);
    scene.servers.end().await;
}

fn is_alive(pid: &Value) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

// proves MC-08 (part: the end)
#[tokio::test]
async fn servers_end_when_they_are_told_and_when_nobody_has_them() {
    let scene = Scene::new();
    let polite = scene.connect(scene.program(&[])).await;
    drop(polite);
    scene.until("end", 1).await;
    let stubborn = scene
        .connect(scene.program(&["--ignore-eof", "--ignore-term"]))
        .await;
    let started = scene.logged("start");
    let begun = Instant::now();
    scene.servers.end().await;
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(started.len(), 2);
    for start in started {
        assert!(!is_alive(&start["pid"]), "{start}");
    }
    let ended = stubborn.call(call("add", &json!({"a": 2, "b": 3}))).await;
    assert!(
        matches!(ended, Err(ServerFailure::NotCalled(_))),
        "{ended:?}"
    );
}
