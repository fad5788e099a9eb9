//! Hooks that are servers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use posse_permission::Policy;
use posse_port::process::ProcessBounds;
use posse_port::tool::NoHosts;

use super::*;

/// A server that answers with what it was sent, and counts its connections.
struct EchoServer {
    url: String,
    connections: Arc<AtomicUsize>,
}

impl EchoServer {
    fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let stream = stream.unwrap();
                std::thread::spawn(move || answer(stream, status));
            }
        });
        Self { url, connections }
    }

    fn call(&self, headers: &[(&str, &str)]) -> HookCall {
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        call(
            "http",
            HookTarget::Http {
                url: self.url.clone(),
                headers: headers.iter().map(text).collect(),
                variables: vec!["KEY".into(), "UNSET".into()],
            },
        )
    }
}

/// Answers each request of a connection with its headers that are of interest, and its body.
fn answer(mut stream: std::net::TcpStream, status: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let (mut told, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or_default() == 0 {
                return;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            }
            if ["post ", "content-type", "x-"]
                .iter()
                .any(|it| line.starts_with(it))
            {
                told.push_str(&line);
                told.push('\n');
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        told.push_str(&String::from_utf8(body).unwrap());
        let length = told.len();
        let head = format!("HTTP/1.1 {status}\r\nlocation: /elsewhere\r\ncontent-length: {length}");
        // A client that has heard enough hangs up.
        let _ = stream.write_all(format!("{head}\r\n\r\n{told}").as_bytes());
    }
}

fn http_hooks() -> SystemHooks {
    let environment = [("KEY", "k1"), ("SECRET", "s1")];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    SystemHooks::new(SystemProcesses::default(), environment.into(), None)
}

#[tokio::test]
async fn an_input_is_posted_with_listed_variables_only() {
    let server = EchoServer::start("200 OK");
    let hooks = http_hooks();
    let headers = [
        ("X-Key", "Bearer $KEY"),
        ("X-Not", "a${SECRET}b$UNSET$OTHER"),
    ];
    let said = hooks.run(server.call(&headers)).await;
    assert_eq!((said.code, &said.failure), (Some(0), &None));
    assert_eq!(
        said.output,
        "post /hook http/1.1\ncontent-type: application/json\nx-key: bearer k1\nx-not: ab\n{\"a\":1}"
    );
    for _ in 0..20 {
        assert_eq!(hooks.run(server.call(&[])).await.code, Some(0));
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn many_at_once_share_few_connections() {
    let server = EchoServer::start("200 OK");
    let hooks = http_hooks();
    for _ in 0..5 {
        let begun = Instant::now();
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..200 {
            calls.spawn(hooks.run(server.call(&[])));
        }
        let all = calls.join_all().await;
        println!("200 posts: {:?}", begun.elapsed());
        assert!(all.iter().all(|said| said.code == Some(0)));
    }
    assert!(server.connections.load(Ordering::SeqCst) <= 64);
}

#[tokio::test]
async fn what_is_no_success_is_a_refusal() {
    for status in ["500 Internal Server Error", "302 Found"] {
        let server = EchoServer::start(status);
        let said = http_hooks().run(server.call(&[])).await;
        let refused = HookFailure::Refused(format!("HTTP {status}"));
        assert_eq!((said.failure, said.code), (Some(refused), None));
        assert!(said.errors.ends_with("{\"a\":1}"), "{}", said.errors);
        assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_reply_that_is_too_long_is_none() {
    let server = EchoServer::start("200 OK");
    let large = HookCall {
        input: "x".repeat(1 << 20).into(),
        ..server.call(&[])
    };
    let said = http_hooks().run(large).await;
    assert_eq!(said.failure, Some(HookFailure::TooLong(1 << 20)));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let target = HookTarget::Http {
        url,
        headers: Vec::new(),
        variables: Vec::new(),
    };
    // Accepts and says nothing.
    let clock = HandClock::default();
    let silent = HookCall {
        clock: Arc::new(clock.clone()),
        ..call("http-silent", target)
    };
    let hooks = http_hooks();
    let (late, ()) = tokio::join!(hooks.run(silent.clone()), clock.wake(AMPLE));
    assert_eq!(late.failure, Some(HookFailure::TimedOut(AMPLE)));
    let stopped = hooks.run(silent.clone());
    silent.cancel.cancel();
    assert_eq!(stopped.await.failure, Some(HookFailure::Stopped));
    drop(listener);
    let refused = HookCall {
        cancel: CancellationToken::new(),
        ..silent
    };
    let Some(HookFailure::NotRun(why)) = hooks.run(refused.clone()).await.failure else {
        panic!("nobody listens there");
    };
    assert!(why.starts_with("it cannot be reached: "), "{why}");
    // A sandbox reaches no host that nobody has allowed.
    let held = HookCall {
        boundary: ProcessBoundary::Sandbox(ProcessBounds {
            confinement: Arc::default(),
            workspace: World::new().context.workspace.clone(),
            files: Arc::new(Policy::default()),
            hosts: Arc::new(NoHosts),
        }),
        ..refused
    };
    let why = "127.0.0.1: it may reach no host".into();
    assert_eq!(
        hooks.run(held).await.failure,
        Some(HookFailure::NotRun(why))
    );
}
