//! Where the browser comes back to: a port of this machine.

use std::io;

use reqwest::Url;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::fault::SignInError;

const PATH: &str = "/callback";
/// How much of a request is read.
const MOST: u64 = 16 << 10;
/// How many requests are read at once: browsers open connections that they do not use.
const MOST_CONNECTIONS: usize = 8;

const DONE: &str = "You have signed in. You can close this page and go back to posse.";
const REFUSED: &str = "This did not work. posse says why.";
const OTHER: &str = "There is nothing here.";

/// What the browser brings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Callback {
    pub(super) code: Option<String>,
    pub(super) state: Option<String>,
    pub(super) issuer: Option<String>,
    pub(super) error: Option<String>,
    pub(super) error_description: Option<String>,
}

impl Callback {
    /// Reads an address.
    pub(super) fn read(url: &Url) -> Self {
        let mut callback = Self::default();
        for (name, value) in url.query_pairs() {
            let place = match &*name {
                "code" => &mut callback.code,
                "state" => &mut callback.state,
                "iss" => &mut callback.issuer,
                "error" => &mut callback.error,
                "error_description" => &mut callback.error_description,
                _ => continue,
            };
            *place = Some(value.into_owned());
        }
        callback
    }
}

/// A port that is listened at.
#[derive(Debug)]
pub(super) struct CallbackPort {
    listener: TcpListener,
    pub(super) redirect: String,
}

impl CallbackPort {
    /// Listens at a port that is `wanted`, or at that of the last time if it is free, or at any.
    pub(super) async fn open(wanted: Option<u16>, last: Option<u16>) -> Result<Self, SignInError> {
        let listener = match (wanted, last) {
            (Some(port), _) => bind(port).await?,
            (None, Some(port)) => match bind(port).await {
                Ok(listener) => listener,
                Err(_) => bind(0).await?,
            },
            (None, None) => bind(0).await?,
        };
        let port = listener.local_addr();
        let port = port.map_err(|source| SignInError::Port { port: 0, source })?;
        Ok(Self {
            redirect: format!("http://localhost:{}{PATH}", port.port()),
            listener,
        })
    }

    /// Waits for the browser. Requests with another state are not meant.
    pub(super) async fn wait(&self, state: &str) -> io::Result<Callback> {
        let mut requests = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if requests.len() < MOST_CONNECTIONS => {
                    let (stream, _) = accepted?;
                    let state = state.to_owned();
                    requests.spawn(async move { serve(stream, &state).await.ok().flatten() });
                }
                Some(Ok(Some(callback))) = requests.join_next() => return Ok(callback),
            }
        }
    }
}

async fn bind(port: u16) -> Result<TcpListener, SignInError> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await;
    listener.map_err(|source| SignInError::Port { port, source })
}

/// Answers a request. Returns what it brings, if it is the one that is waited for.
async fn serve(stream: TcpStream, state: &str) -> io::Result<Option<Callback>> {
    let mut stream = BufReader::new(stream);
    let mut request = (&mut stream).take(MOST);
    let mut line = String::new();
    request.read_line(&mut line).await?;
    let path = line.split(' ').nth(1).unwrap_or_default();
    let url = Url::parse(&format!("http://localhost{path}")).ok();
    let url = url.filter(|url| line.starts_with("GET ") && url.path() == PATH);
    let callback = url.map(|url| Callback::read(&url));
    let callback = callback.filter(|it| it.state.as_deref() == Some(state));
    let (status, text) = match &callback {
        None => ("404 Not Found", OTHER),
        Some(it) if it.code.is_some() => ("200 OK", DONE),
        Some(_) => ("400 Bad Request", REFUSED),
    };
    // A connection that is closed before all was read is reset, and the page with it.
    let mut head = String::new();
    while request.read_line(&mut head).await? > 2 {
        head.clear();
    }
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(callback)
}
