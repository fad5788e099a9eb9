//! Streamable HTTP on 127.0.0.1, as little of HTTP/1.1 as clients need. Answers are streams of events,
//! or JSON where nothing comes before them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::Failed;
use crate::outbox::Outbox;
use crate::server::{Request, Server};

/// Largest body that is read, in bytes.
const MOST: usize = 64 << 20;
/// The header of sessions, in small letters.
const SESSION: &str = "mcp-session-id";

/// Numbers of sessions.
static SESSIONS: AtomicUsize = AtomicUsize::new(0);

/// Listens on a port, for ever.
pub(crate) async fn run(server: Arc<Server>, port: u16) -> Result<(), Failed> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let origin: Arc<str> = format!("http://{}", listener.local_addr()?).into();
    let url = format!("{origin}/mcp\n");
    let mut output = tokio::io::stdout();
    output.write_all(url.as_bytes()).await?;
    output.flush().await?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let (server, origin) = (Arc::clone(&server), Arc::clone(&origin));
        connections.spawn(async move {
            let mut connection = Connection::new(server, stream, origin);
            // A client that breaks off has seen what it wanted.
            while let Ok(Some(request)) = Head::read(&mut connection.input).await {
                if connection.answer(request).await.is_err() {
                    break;
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// A request of HTTP.
struct Head {
    method: String,
    /// The path and the query.
    target: String,
    /// By names in small letters.
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Head {
    /// Reads the next request; none at the end of the connection.
    async fn read(input: &mut (impl AsyncBufRead + Unpin)) -> Result<Option<Self>, Failed> {
        let mut line = String::new();
        if input.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let mut words = line.split(' ').map(str::to_owned);
        let (method, target) = (words.next(), words.next());
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            input.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length");
        let length: usize = length.map_or(Ok(0), |length| length.parse())?;
        if length > MOST {
            return Err("the body is too long".into());
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).await?;
        Ok(Some(Self {
            method: method.unwrap_or_default(),
            target: target.unwrap_or_default(),
            headers,
            body,
        }))
    }
}

struct Connection {
    server: Arc<Server>,
    input: BufReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
    /// The address that is listened at.
    origin: Arc<str>,
}

impl Connection {
    fn new(server: Arc<Server>, stream: TcpStream, origin: Arc<str>) -> Self {
        let (input, output) = stream.into_split();
        Self {
            server,
            input: BufReader::new(input),
            output,
            origin,
        }
    }

    async fn answer(&mut self, head: Head) -> Result<(), Failed> {
        if let Some(token) = &self.server.options.bearer {
            let given = head.headers.get("authorization");
            if given != Some(&format!("Bearer {token}")) {
                return self
                    .empty("401 Unauthorized", "WWW-Authenticate: Bearer\r\n")
                    .await;
            }
        }
        if self.server.options.has("--sign-in") {
            if self.sign_in(&head).await? {
                return Ok(());
            }
            if !self
                .server
                .sign_ins
                .knows(head.headers.get("authorization"))
            {
                let about = format!(
                    "WWW-Authenticate: Bearer resource_metadata=\"{}/.well-known/\
                     oauth-protected-resource/mcp\"\r\n",
                    self.origin
                );
                return self.empty("401 Unauthorized", &about).await;
            }
        }
        match head.method.as_str() {
            "POST" => self.post(head).await,
            "GET" => {
                let (outbox, lines) = Outbox::new();
                self.server.subscribe(None, outbox);
                self.stream("", lines).await.map(|_| ())
            }
            "DELETE" => self.empty("200 OK", "").await,
            _ => self.empty("405 Method Not Allowed", "").await,
        }
    }

    /// Answers a request that is about signing in. Returns false if it is about something else.
    async fn sign_in(&mut self, head: &Head) -> Result<bool, Failed> {
        let server = Arc::clone(&self.server);
        let path = head.target.split('?').next().unwrap_or_default();
        let grants = String::from_utf8_lossy(&head.body);
        let is_refresh = path == "/token" && grants.contains("grant_type=refresh_token");
        if is_refresh {
            server.log.write("refresh", json!({}))?;
            if let Some(delay) = server.options.slow_refresh {
                crate::pause(delay).await;
            }
        }
        let (origin, target) = (&*self.origin, &head.target);
        let reply = server
            .sign_ins
            .reply(&server.options, origin, target, &head.body);
        let Some((status, headers, body)) = reply else {
            return Ok(false);
        };
        server
            .log
            .write("sign-in", json!({ "path": path, "status": status }))?;
        let headers = format!("Content-Type: application/json\r\n{headers}");
        self.whole(status, &headers, body.to_string().as_bytes())
            .await?;
        Ok(true)
    }

    async fn post(&mut self, head: Head) -> Result<(), Failed> {
        let Ok(message) = serde_json::from_slice::<Value>(&head.body) else {
            return self.empty("400 Bad Request", "").await;
        };
        let Some(method) = message["method"].as_str() else {
            self.server.questions.answered(message);
            return self.empty("202 Accepted", "").await;
        };
        if message["id"].is_null() {
            if method == "notifications/cancelled" {
                let id = &message["params"]["requestId"];
                self.server.log.write("cancelled", json!({ "id": id }))?;
            }
            return self.empty("202 Accepted", "").await;
        }
        let (outbox, mut lines) = Outbox::new();
        let request = Request {
            id: message["id"].clone(),
            method: method.to_owned(),
            params: message["params"].clone(),
            outbox,
        };
        // The new era has no sessions.
        let known = head.headers.get(SESSION).cloned();
        let session = match (method, known) {
            ("initialize", _) => Some(SESSIONS.fetch_add(1, Ordering::SeqCst).to_string()),
            (_, known) => known,
        };
        let session = session.map(|it| {
            format!(
                "Mcp-Session-Id: session-{}\r\n",
                it.trim_start_matches("session-")
            )
        });
        let session = session.unwrap_or_default();
        let (id, streams) = (
            request.id.clone(),
            matches!(method, "tools/call" | "subscriptions/listen"),
        );
        let mut work = JoinSet::new();
        work.spawn(Arc::clone(&self.server).answer(request));
        if streams {
            if !self.stream(&session, lines).await? {
                self.server.log.write("closed", json!({ "id": id }))?;
            }
            return Ok(());
        }
        let answer = lines.recv().await.unwrap_or_default();
        let headers = format!("Content-Type: application/json\r\n{session}");
        self.whole("200 OK", &headers, answer.as_bytes()).await
    }

    async fn empty(&mut self, status: &str, headers: &str) -> Result<(), Failed> {
        self.whole(status, headers, b"").await
    }

    async fn whole(&mut self, status: &str, headers: &str, body: &[u8]) -> Result<(), Failed> {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
        self.output.write_all(head.as_bytes()).await?;
        self.output.write_all(body).await?;
        Ok(self.output.flush().await?)
    }

    /// Sends messages as events until there are no more. Returns false if the client has closed the
    /// connection before.
    async fn stream(
        &mut self,
        headers: &str,
        mut lines: tokio::sync::mpsc::Receiver<String>,
    ) -> Result<bool, Failed> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\
             {headers}Transfer-Encoding: chunked\r\n\r\n"
        );
        self.output.write_all(head.as_bytes()).await?;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                read = self.input.fill_buf() => match read {
                    // It has sent the next request already.
                    Ok(more) if !more.is_empty() => lines.recv().await,
                    _ => return Ok(false),
                },
            };
            let Some(line) = line else { break };
            let event = format!("event: message\ndata: {line}\n\n");
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            if self.output.write_all(chunk.as_bytes()).await.is_err() {
                return Ok(false);
            }
        }
        self.output.write_all(b"0\r\n\r\n").await?;
        Ok(true)
    }
}
