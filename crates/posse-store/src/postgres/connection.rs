//! Connecting to the server: parsing its URL, TLS, and the connection pool.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use posse_port::store::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::PgFailure;
use crate::Timing;

/// Maximum size of a host's pool. The listener's connection is not part of it.
const CONNECTIONS: usize = 16;
/// Time a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Time sent bytes may stay unacknowledged before the connection counts as broken.
const UNHEARD: Duration = Duration::from_secs(10);

/// A server and how to connect to it.
#[derive(Clone)]
pub(super) struct ServerConnection {
    config: Config,
    tls: MakeRustlsConnect,
    /// Connections for writes and queries.
    pub(super) pool: Pool,
    pub(super) timing: Timing,
    /// The server's name for people, without a password.
    place: Arc<str>,
}

/// The half of a dedicated connection that carries its traffic, notifications included.
pub(super) type DriverConnection =
    Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

impl ServerConnection {
    /// Parses a URL. Does not connect yet.
    pub(super) fn new(url: &str, timing: Option<Timing>) -> Result<Self, StoreError> {
        let UrlOptions {
            rest,
            root,
            lease,
            plain,
        } = asked(url)?;
        let mut config: Config = rest
            .parse()
            .map_err(|error: tokio_postgres::Error| unusable(&rest, reason(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(unusable(&rest, "it names no host".into()));
        }
        let place = place(&config);
        let lease = lease.unwrap_or(Timing::default().lease);
        let timing = timing.unwrap_or_else(|| Timing {
            lease,
            // A sweep is also what renews the lease: on a busy machine one or two may come late.
            sweep: Duration::from_secs(1).min(lease / 4),
            patience: Duration::from_secs(60),
            ..Timing::default()
        });
        // Without an explicit sslmode, only connections that never leave the machine are
        // unencrypted.
        let encrypted = plain.map_or_else(|| !is_near(&config), |plain| !plain);
        config.ssl_mode(if encrypted {
            SslMode::Require
        } else {
            SslMode::Disable
        });
        // After a failover the URL may name several servers; only the writable one is of use.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.connect_timeout(config.get_connect_timeout().copied().unwrap_or(CONNECT));
        config.tcp_user_timeout(config.get_tcp_user_timeout().copied().unwrap_or(UNHEARD));
        // A connection that waits for an answer sends nothing, so only keepalives notice a dead
        // server.
        if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
            config
                .keepalives_idle(UNHEARD / 2)
                .keepalives_interval(UNHEARD / 5)
                .keepalives_retries(3);
        }
        // jit: compiling takes longer than these short queries run. Idle timeout: a process that
        // is stopped within a transaction must not keep its locks.
        let settings = format!(
            "{} -c search_path=posse -c posse.lease={}ms -c jit=off -c idle_in_transaction_session_timeout=60000",
            config.get_options().unwrap_or_default(),
            timing.lease.as_millis(),
        );
        config.options(settings.trim());
        if config.get_application_name().is_none() {
            config.application_name("posse");
        }
        let tls = MakeRustlsConnect::new(
            trust(encrypted, root.as_deref()).map_err(|error| failed(&place, error))?,
        );
        // `Fast` skips the test query before a connection is reused: that would cost a round trip
        // each time, and a broken connection is noticed with its first query anyway.
        let recycled = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let manager = Manager::from_config(config.clone(), tls.clone(), recycled);
        let pool = Pool::builder(manager).max_size(CONNECTIONS).build();
        let pool = pool.map_err(|error| failed(&place, io::Error::other(error)))?;
        Ok(Self {
            config,
            tls,
            pool,
            timing,
            place: place.into(),
        })
    }

    /// Returns a pooled connection, which goes back to the pool when it is dropped.
    pub(super) async fn client(&self) -> Result<Object, PgFailure> {
        Ok(self.pool.get().await?)
    }

    /// Closes pooled connections that were not used for `spare`.
    pub(super) fn let_go(&self, spare: Duration) {
        self.pool.retain(|_, used| used.last_used() < spare);
    }

    /// Opens a dedicated connection and returns it with the half that drives it.
    pub(super) async fn line(&self) -> Result<(Client, DriverConnection), PgFailure> {
        Ok(self.config.connect(self.tls.clone()).await?)
    }

    /// Returns the server's name for people, without a password.
    pub(super) fn place(&self) -> &str {
        &self.place
    }
}

/// Options of a URL that posse handles itself, because the driver does not know them.
struct UrlOptions {
    /// The URL without these options.
    rest: String,
    /// Certificates to trust instead of the system's.
    root: Option<PathBuf>,
    /// Lease of this host's claims, if the URL sets one.
    lease: Option<Duration>,
    /// True if the URL turns encryption off, false if it asks for it.
    plain: Option<bool>,
}

/// Splits posse's own options from a URL.
fn asked(url: &str) -> Result<UrlOptions, StoreError> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let mut asked = UrlOptions {
        rest: String::new(),
        root: None,
        lease: None,
        plain: None,
    };
    let mut kept = Vec::new();
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("sslrootcert", path)) => asked.root = Some(decoded(path).into()),
            Some(("sslmode", "disable")) => asked.plain = Some(true),
            // All three verify the certificate: encryption without verification is not supported,
            // so `require` means the stricter mode.
            Some(("sslmode", "require" | "verify-ca" | "verify-full")) => asked.plain = Some(false),
            Some(("sslmode", other)) => {
                let why = format!(
                    "sslmode={other}: use disable or verify-full (encryption without verification \
                     is not supported)"
                );
                return Err(unusable(base, why));
            }
            Some(("posse_lease", lease)) => {
                let read = duration(lease).filter(|lease| !lease.is_zero());
                let why = || format!("posse_lease={lease} is not a time such as 15s or 500ms");
                asked.lease = Some(read.ok_or_else(|| unusable(base, why()))?);
            }
            _ => kept.push(part),
        }
    }
    asked.rest = if kept.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", kept.join("&"))
    };
    Ok(asked)
}

/// Decodes percent-encoded text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let code = more
            .get(..2)
            .and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        match (first, code) {
            // A percent sign that is not followed by two digits stands for itself.
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = &more[2..];
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses a duration such as `15s` or `500ms`.
fn duration(text: &str) -> Option<Duration> {
    match text.strip_suffix("ms") {
        Some(number) => number.parse().ok().map(Duration::from_millis),
        None => text
            .strip_suffix('s')?
            .parse()
            .ok()
            .map(Duration::from_secs),
    }
}

/// Returns true if every host of the URL is this machine, where no network is involved.
fn is_near(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        }
    })
}

/// Returns the TLS configuration with the certificates to trust.
fn trust(encrypted: bool, root: Option<&std::path::Path>) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    match root {
        Some(path) => {
            let about =
                |error: &dyn fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
            let file = File::open(path).map_err(|error| about(&error))?;
            for certificate in CertificateDer::pem_reader_iter(BufReader::new(file)) {
                let certificate = certificate.map_err(|error| about(&error))?;
                roots.add(certificate).map_err(|error| about(&error))?;
            }
        }
        None if encrypted => {
            // Systems ship certificates that rustls cannot parse; the remaining ones are enough.
            let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        None => {}
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(io::Error::other)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Returns a server's name for people: user, hosts and database, but not the password.
fn place(config: &Config) -> String {
    let port = |at: usize| {
        config
            .get_ports()
            .get(at)
            .or(config.get_ports().first())
            .copied()
            .unwrap_or(5432)
    };
    let hosts = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(at, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(at)),
            Host::Unix(path) => format!("{}:{}", path.display(), port(at)),
        });
    let hosts = hosts.collect::<Vec<_>>().join(",");
    let user = config
        .get_user()
        .map(|user| format!("{user}@"))
        .unwrap_or_default();
    format!(
        "postgres://{user}{hosts}/{}",
        config.get_dbname().unwrap_or_default()
    )
}

/// Returns an error and its cause on one line.
fn reason(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Returns the error of the port for a server that cannot be used.
fn failed(place: &str, error: io::Error) -> StoreError {
    StoreError::Engine {
        place: place.to_owned(),
        source: Box::new(error),
    }
}

/// Returns the error for an invalid URL. The URL may contain a password, so only its scheme is
/// repeated.
fn unusable(url: &str, why: String) -> StoreError {
    let shown = url
        .split_once("://")
        .map_or("postgres://…", |(scheme, _)| match scheme {
            "postgres" => "postgres://…",
            _ => "postgresql://…",
        });
    failed(shown, io::Error::new(io::ErrorKind::InvalidInput, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_where_and_how() {
        let link =
            ServerConnection::new("postgres://me:secret@one:1,two:2/db?posse_lease=2s", None)
                .unwrap();
        assert_eq!(link.place(), "postgres://me@one:1,two:2/db");
        assert_eq!(link.timing.lease, Duration::from_secs(2));
        assert_eq!(link.timing.sweep, Duration::from_millis(500));
        assert_eq!(link.config.get_ssl_mode(), SslMode::Require);
        let near = ServerConnection::new("postgresql://me@127.0.0.1:5/db?application_name=x", None)
            .unwrap();
        assert_eq!(near.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(near.config.get_application_name(), Some("x"));
        let told =
            ServerConnection::new("postgres://me@localhost/db?sslmode=verify-full", None).unwrap();
        assert_eq!(told.config.get_ssl_mode(), SslMode::Require);
    }

    #[test]
    fn what_is_wrong_with_a_url_is_told_without_its_password() {
        for (url, what) in [
            (
                "postgres://me:secret@one/db?sslmode=prefer",
                "sslmode=prefer",
            ),
            (
                "postgres://me:secret@one/db?posse_lease=soon",
                "posse_lease=soon",
            ),
            ("postgres://me:secret@one/db?colour=red", "colour"),
            (
                "postgres://me:secret@one/db?sslrootcert=/no/such%20file&sslmode=require",
                "/no/such file",
            ),
        ] {
            let error = ServerConnection::new(url, None).err().unwrap();
            let source = std::error::Error::source(&error).unwrap().to_string();
            assert!(source.contains(what), "{source}");
            assert!(
                !format!("{error} {error:?}").contains("secret"),
                "{error:?}"
            );
        }
    }
}
