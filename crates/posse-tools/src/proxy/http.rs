//! Clients that speak HTTP: `CONNECT`, and requests whose target is a whole URL. One request per
//! connection, so that none can follow for another host.

use std::io;

use posse_port::tool::HostRefused;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, copy_bidirectional};
use tokio::net::TcpStream;

use super::head::read_head;
use super::target::{HTTP, Target};
use super::{DialError, DialFor, Dialled, Server};

/// Headers that are meant for the proxy itself, or for one connection.
const OF_A_CONNECTION: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// An answer of the proxy itself.
struct Refusal {
    status: &'static str,
    why: String,
}

impl Refusal {
    fn wrong(why: &str) -> Self {
        Self {
            status: "400 Bad Request",
            why: why.to_owned(),
        }
    }
}

/// What a client asks for.
enum ProxyRequest {
    /// To be connected.
    Connect(Target),
    /// To have a request sent.
    Send(SentRequest),
}

/// A request that is sent on.
struct SentRequest {
    target: Target,
    method: String,
    path: String,
    /// Its other headers, as they came.
    headers: String,
    /// The length of what follows.
    body: u64,
}

/// Serves a connection.
pub(super) async fn serve(server: &Server, mut client: TcpStream) -> io::Result<()> {
    let (head, rest) = match read_head(&mut client).await {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let refusal = Refusal {
                status: "431 Request Header Fields Too Large",
                why: "the head of a request has at most 16 KB".into(),
            };
            return refuse(&mut client, &refusal).await;
        }
        Err(error) => return Err(error),
    };
    let served = match read(&head) {
        Ok(ProxyRequest::Connect(target)) => connect(server, &mut client, &target, &rest).await,
        Ok(ProxyRequest::Send(request)) => send(server, &mut client, &request, &rest).await,
        Err(refusal) => Ok(Err(refusal)),
    };
    match served? {
        Ok(()) => Ok(()),
        Err(refusal) => refuse(&mut client, &refusal).await,
    }
}

/// Connects the client with a host.
async fn connect(
    server: &Server,
    client: &mut TcpStream,
    target: &Target,
    rest: &[u8],
) -> io::Result<Result<(), Refusal>> {
    if let Err(refused) = server.admit(target).await {
        return Ok(Err(forbidden(target, &refused)));
    }
    let mut host = match server.dial(target, DialFor::Tunnel).await {
        Ok(host) => host.stream,
        Err(error) => return Ok(Err(unreached(target, &error))),
    };
    client
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    host.write_all(rest).await?;
    copy_bidirectional(client, &mut host).await?;
    Ok(Ok(()))
}

/// Sends one request, and what is answered back.
async fn send(
    server: &Server,
    client: &mut TcpStream,
    request: &SentRequest,
    rest: &[u8],
) -> io::Result<Result<(), Refusal>> {
    let target = &request.target;
    if let Err(refused) = server.admit(target).await {
        return Ok(Err(forbidden(target, &refused)));
    }
    let Dialled {
        stream: mut host,
        by: upstream,
    } = match server.dial(target, DialFor::Request).await {
        Ok(dialled) => dialled,
        Err(error) => return Ok(Err(unreached(target, &error))),
    };
    let authority = match target.port {
        HTTP => target.to_string().trim_end_matches(":80").to_owned(),
        _ => target.to_string(),
    };
    let whole = match &upstream {
        Some(_) => format!("http://{authority}{}", request.path),
        None => request.path.clone(),
    };
    let mut head = format!(
        "{} {whole} HTTP/1.1\r\nHost: {authority}\r\n{}Connection: close\r\n",
        request.method, request.headers
    );
    if let Some(authorization) = upstream.as_ref().and_then(|it| it.authorization.as_ref()) {
        head.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    head.push_str("\r\n");
    host.write_all(head.as_bytes()).await?;
    // No more than the request has: what follows it may be for another host.
    let (mut from_client, mut to_client) = client.split();
    let (mut from_host, mut to_host) = host.split();
    let mut body = rest.chain(&mut from_client).take(request.body);
    let sent = async {
        copy(&mut body, &mut to_host).await?;
        // It may answer only after it has seen that nothing more comes.
        std::future::pending::<io::Result<()>>().await
    };
    let answered = async {
        copy(&mut from_host, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::select! {
        ended = answered => ended?,
        failed = sent => failed?,
    }
    Ok(Ok(()))
}

/// Reads a head.
fn read(head: &[u8]) -> Result<ProxyRequest, Refusal> {
    let strange = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\r' | b'\n' | b'\t');
    let text = std::str::from_utf8(head)
        .ok()
        .filter(|text| !text.bytes().any(|byte| strange(&byte)))
        .ok_or_else(|| Refusal::wrong("the head of the request is not text"))?;
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    // A lone one ends a line for some programs and not for others.
    if text.replace("\r\n", "").contains(['\r', '\n']) {
        return Err(Refusal::wrong(
            "the lines of the head do not end as they must",
        ));
    }
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, url, "HTTP/1.0" | "HTTP/1.1"] = first.as_slice() else {
        return Err(Refusal::wrong("this is not a request of HTTP/1.1"));
    };
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if method.is_empty() || !method.chars().all(is_word) {
        return Err(Refusal::wrong("this is not a request of HTTP/1.1"));
    }
    if *method == "CONNECT" {
        let target = Target::of_authority(url, None);
        let wrong = || Refusal::wrong("CONNECT needs a host and a port");
        return target.map(ProxyRequest::Connect).ok_or_else(wrong);
    }
    let wrong = || Refusal::wrong("this is a proxy: it needs a whole URL that begins with http://");
    let rest = match url.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http://") => rest,
        _ => return Err(wrong()),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target = Target::of_authority(authority, Some(HTTP)).ok_or_else(wrong)?;
    let path = match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    };
    let method = (*method).to_owned();
    sent_request(target, method, path, lines).map(ProxyRequest::Send)
}

/// Reads the headers of a request.
fn sent_request<'a>(
    target: Target,
    method: String,
    path: String,
    lines: impl Iterator<Item = &'a str>,
) -> Result<SentRequest, Refusal> {
    let mut fields = Vec::new();
    for line in lines {
        // One that begins with a space continues the one before, for some programs.
        let field = line.split_once(':').filter(|(name, _)| {
            let mut name = name.chars();
            let plain = |c: char| c.is_ascii_graphic();
            name.next().is_some_and(plain) && name.all(plain)
        });
        let (name, value) = field.ok_or_else(|| Refusal::wrong("a header has no name"))?;
        fields.push((name.to_lowercase(), value.trim(), line));
    }
    let of = |wanted: &str| -> Vec<&str> {
        let found = fields.iter().filter(|(name, _, _)| name == wanted);
        found.map(|(_, value, _)| *value).collect()
    };
    let is_other = |host: &&str| Target::of_authority(host, Some(HTTP)).as_ref() != Some(&target);
    if of("host").iter().any(is_other) {
        return Err(Refusal::wrong(
            "the header Host names another host than the URL",
        ));
    }
    if !of("transfer-encoding").is_empty() {
        return Err(Refusal {
            status: "411 Length Required",
            why: "the length of the content must be known".into(),
        });
    }
    let body = match of("content-length").as_slice() {
        [] => 0,
        [length] if length.bytes().all(|it| it.is_ascii_digit()) => length
            .parse()
            .map_err(|_| Refusal::wrong("the length of the content is no number"))?,
        _ => return Err(Refusal::wrong("the length of the content is not clear")),
    };
    let connection = of("connection").join(",").to_lowercase();
    let dropped: Vec<&str> = connection.split(',').map(str::trim).collect();
    let kept = fields.iter().filter(|(name, _, _)| {
        let name = name.as_str();
        name != "host" && !OF_A_CONNECTION.contains(&name) && !dropped.contains(&name)
    });
    let headers = kept.map(|(_, _, line)| format!("{line}\r\n")).collect();
    Ok(SentRequest {
        target,
        method,
        path,
        headers,
        body,
    })
}

fn forbidden(target: &Target, why: &HostRefused) -> Refusal {
    Refusal {
        status: "403 Forbidden",
        why: format!("posse does not let commands connect to {target}: {why}"),
    }
}

fn unreached(target: &Target, error: &DialError) -> Refusal {
    let status = match error {
        DialError::NotPublic { .. } => "403 Forbidden",
        _ => "502 Bad Gateway",
    };
    Refusal {
        status,
        why: format!("{target}: {error}"),
    }
}

/// Answers that it does not do that.
async fn refuse(client: &mut TcpStream, refusal: &Refusal) -> io::Result<()> {
    let Refusal { status, why } = refusal;
    let length = why.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{why}\n"
    );
    client.write_all(answer.as_bytes()).await?;
    client.shutdown().await
}
