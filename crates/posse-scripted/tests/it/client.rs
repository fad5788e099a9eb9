//! A server on a test clock, and a client that keeps one connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use posse_scripted::{Pace, Script, Server, ServerOptions};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A clock that advances only when told to. Its day begins at 2026-11-15T00:00:00Z.
#[derive(Clone)]
pub(crate) struct TestPace(Arc<watch::Sender<Duration>>);

impl Pace for TestPace {
    fn now(&self) -> Duration {
        *self.0.borrow()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_700_800) + self.now()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (until, mut time) = (self.now() + duration, self.0.subscribe());
        Box::pin(async move {
            // An error means that the clock is gone, and with it the test.
            let _ = time.wait_for(|now| *now >= until).await;
        })
    }

    fn advance(&self, duration: Duration) {
        self.0.send_modify(|now| *now += duration);
    }
}

impl TestPace {
    pub(crate) fn advance_ms(&self, ms: u64) {
        self.advance(Duration::from_millis(ms));
    }
}

/// Starts a server that plays `script`.
pub(crate) fn play(script: &str) -> (Server, TestPace) {
    let pace = TestPace(Arc::new(watch::Sender::new(Duration::ZERO)));
    let options = ServerOptions {
        pace: Arc::new(pace.clone()),
        ..ServerOptions::playing(Script::parse(script).unwrap())
    };
    (Server::start(options).unwrap(), pace)
}

/// A connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    _connection: JoinSet<hyper::Result<()>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Returns the values of headers, of which each begins with `prefix`.
    pub(crate) fn each<const N: usize>(&self, prefix: &str, names: [&str; N]) -> [Option<&str>; N] {
        names.map(|name| self.header(&format!("{prefix}{name}")))
    }
}

impl Client {
    pub(crate) async fn connect(server: &Server) -> io::Result<Self> {
        let stream = TcpStream::connect(server.address()).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        Ok(Self {
            sender,
            _connection: tasks,
        })
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Answer> {
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (head, body): (_, Incoming) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }

    pub(crate) async fn get(&mut self, path: &str) -> hyper::Result<Answer> {
        let request = Request::get(path).header("x-api-key", "any");
        let request = request.header("anthropic-version", "2026-10-21");
        self.send(request.body(Full::default()).unwrap()).await
    }

    /// Sends a request of the Messages API.
    pub(crate) async fn messages(&mut self, account: &str, body: &Value) -> hyper::Result<Answer> {
        let request = Request::post("/v1/messages")
            .header("x-api-key", account)
            .header("anthropic-version", "2026-10-21");
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }

    /// Asks a model of the Messages API to answer one word.
    pub(crate) async fn ask(&mut self, account: &str) -> hyper::Result<Answer> {
        self.messages(account, &prompt("hello")).await
    }

    /// Asks a model of Chat Completions to answer one word.
    pub(crate) async fn chat(&mut self, account: &str) -> hyper::Result<Answer> {
        let body =
            json!({"model": "any-model", "messages": [{"role": "user", "content": "hello"}]});
        let request = Request::post("/v1/chat/completions")
            .header("authorization", format!("Bearer {account}"));
        self.send(request.body(body.to_string().into()).unwrap())
            .await
    }
}

/// Returns the body of a request of the Messages API.
pub(crate) fn prompt(text: &str) -> Value {
    json!({
        "model": "claude-opus-5-5", "max_tokens": 100,
        "messages": [{"role": "user", "content": text}],
    })
}
