//! Connecting to hosts: directly, or through a proxy of the user's.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::ProxyTerms;
use super::head::read_head;
use super::target::Target;
use crate::address::Reach;
use crate::processes::within;

/// How long a connection may take to be made.
const LIMIT: Duration = Duration::from_secs(30);

/// Why a host is not reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    /// A name leads to an address that is not public.
    #[error(
        "it leads to {address}, which is this machine or on a private network: reached only if \
         sandbox.hosts names that address, too"
    )]
    NotPublic { address: IpAddr },
    #[error("it could not be reached: {0}")]
    Unreached(#[from] io::Error),
    #[error("it could not be reached in 30 s")]
    TooLong,
    #[error("the proxy {proxy} did not connect to it: {status}")]
    Upstream { proxy: String, status: String },
}

/// A proxy of the user's that connects to other hosts.
#[derive(Debug, PartialEq, Eq)]
pub struct Upstream {
    host: String,
    port: u16,
    /// The value of `Proxy-Authorization`.
    pub(super) authorization: Option<String>,
    /// Hosts that are reached without it.
    except: Vec<String>,
}

impl Upstream {
    /// Reads the URL of a proxy and the list of hosts that are reached without it, as the variables
    /// `https_proxy` and `no_proxy` have them. None if it is not one that speaks plain HTTP.
    pub fn new(url: &str, except: &str) -> Option<Self> {
        let url = reqwest::Url::parse(url).ok()?;
        if url.scheme() != "http" {
            return None;
        }
        let credentials = format!("{}:{}", url.username(), url.password().unwrap_or_default());
        let decoded = percent_decoded(&credentials);
        let authorization =
            (credentials != ":").then(|| format!("Basic {}", STANDARD.encode(decoded)));
        let except = except.split(',').map(|it| it.trim().to_lowercase());
        Some(Self {
            host: url.host_str()?.trim_matches(['[', ']']).to_owned(),
            port: url.port_or_known_default()?,
            authorization,
            except: except.filter(|it| !it.is_empty()).collect(),
        })
    }

    /// Returns true if a host is reached through it.
    pub(super) fn serves(&self, host: &str) -> bool {
        !self.except.iter().any(|except| {
            let except = except.trim_start_matches("*.").trim_start_matches('.');
            let above = host.strip_suffix(except);
            except == "*" || above.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
    }

    /// Connects to the proxy itself.
    async fn connect(&self) -> io::Result<TcpStream> {
        TcpStream::connect((self.host.as_str(), self.port)).await
    }

    /// Has it connect to a host.
    async fn tunnel(&self, target: &Target) -> Result<TcpStream, DialError> {
        let mut stream = self.connect().await?;
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
        if let Some(authorization) = &self.authorization {
            request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await?;
        let (head, _) = read_head(&mut stream).await?;
        let head = String::from_utf8_lossy(&head);
        let status = head.lines().next().unwrap_or_default();
        let is_done = status
            .split(' ')
            .nth(1)
            .is_some_and(|it| it.starts_with('2'));
        match is_done {
            true => Ok(stream),
            false => Err(DialError::Upstream {
                proxy: format!("{}:{}", self.host, self.port),
                status: status.chars().filter(|c| !c.is_control()).collect(),
            }),
        }
    }
}

/// Returns the bytes of a part of a URL.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().iter();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let escaped = bytes.as_slice().get(..2).filter(|_| *byte == b'%');
        let escaped = escaped.and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(escaped) => {
                decoded.push(escaped);
                bytes.nth(1);
            }
            None => decoded.push(*byte),
        }
    }
    decoded
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DialFor {
    /// Whatever the client sends.
    Tunnel,
    /// One request of plain HTTP.
    Request,
}

/// A connection.
pub(super) struct Dialled {
    pub(super) stream: TcpStream,
    /// The proxy that answers the request instead of the host.
    pub(super) by: Option<Arc<Upstream>>,
}

/// Connects to a host that was admitted.
pub(super) async fn dial(
    terms: &ProxyTerms,
    target: &Target,
    purpose: DialFor,
) -> Result<Dialled, DialError> {
    let upstream = terms.upstream.as_ref();
    let dialled = async {
        let alone = |stream| Dialled { stream, by: None };
        match upstream.filter(|it| it.serves(&target.host)) {
            Some(upstream) if purpose == DialFor::Request => Ok(Dialled {
                stream: upstream.connect().await?,
                by: Some(Arc::clone(upstream)),
            }),
            Some(upstream) => upstream.tunnel(target).await.map(alone),
            None => direct(terms, target).await.map(alone),
        }
    };
    let dialled = within(&*terms.clock, LIMIT, dialled).await;
    dialled.unwrap_or(Err(DialError::TooLong))
}

/// Connects to one of the addresses that a name leads to now: that which was checked.
async fn direct(terms: &ProxyTerms, target: &Target) -> Result<TcpStream, DialError> {
    let found: Vec<SocketAddr> = match target.address() {
        // It was admitted as what it is.
        Some(address) => vec![(address, target.port).into()],
        None => tokio::net::lookup_host((target.host.as_str(), target.port))
            .await?
            .collect(),
    };
    let may_be_reached = |address: &SocketAddr| {
        let ip = address.ip().to_canonical();
        target.address().is_some()
            || Reach::Public.covers(ip)
            || terms.gate.allows(&ip.to_string(), target.port)
    };
    let (reached, private): (Vec<_>, Vec<_>) = found.into_iter().partition(may_be_reached);
    match (reached.is_empty(), private.first()) {
        (true, Some(address)) => Err(DialError::NotPublic {
            address: address.ip(),
        }),
        _ => Ok(TcpStream::connect(reached.as_slice()).await?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_read_from_its_variables() {
        let upstream = Upstream::new(
            "http://me:p%40ss@proxy.test:8080/",
            "localhost, .corp.test,*.lan,10.0.0.1",
        );
        let upstream = upstream.unwrap();
        assert_eq!(
            (upstream.host.as_str(), upstream.port),
            ("proxy.test", 8080)
        );
        let expected = format!("Basic {}", STANDARD.encode("me:p@ss"));
        assert_eq!(upstream.authorization, Some(expected));
        for (host, expected) in [
            ("crates.io", true),
            ("a.corp.test", false),
            ("corp.test", false),
            ("evilcorp.test", true),
            ("x.lan", false),
            ("10.0.0.1", false),
            ("localhost", false),
        ] {
            assert_eq!(upstream.serves(host), expected, "{host}");
        }
        assert!(!Upstream::new("http://p", "*").unwrap().serves("crates.io"));
        assert_eq!(Upstream::new("http://p", "").unwrap().port, 80);
        for other in ["https://p", "socks5://p:1080", "p:8080", ""] {
            assert_eq!(Upstream::new(other, ""), None, "{other}");
        }
    }
}
