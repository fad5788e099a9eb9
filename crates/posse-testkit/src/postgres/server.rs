//! A separate server, to be killed, restarted, replicated and promoted.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::guard::{Guard, kill_all, pause};
use super::install::{Install, run};
use super::{certificate, guard};
use crate::scripted::SetupError;

/// Time-out for starting, stopping and replicating a server.
const PATIENCE: Duration = Duration::from_secs(60);

/// Durability of commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Commits are on the disk before they are acknowledged.
    #[default]
    On,
    /// The same, and each sync takes this much longer, as on a slow disk. The overhead of the delay
    /// makes the server's own processor time meaningless.
    Late(Duration),
    /// Commits may be lost: for tests of logic, which never kill the server.
    Off,
}

/// Configuration of a server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its durability.
    pub sync: Sync,
    /// True if it accepts TLS only, with a certificate of [`Server::authority`].
    pub tls: bool,
    /// More settings, as in postgresql.conf; they come last and take precedence.
    pub settings: Vec<(String, String)>,
}

impl Options {
    /// Adds a setting.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }
}

/// A running server on a port of 127.0.0.1, where `postgres` is a superuser without a password.
pub struct Server {
    install: Install,
    tls: bool,
    sync: Sync,
    port: u16,
    postmaster: Option<Child>,
    guard: Guard,
}

impl Server {
    /// Creates a server and starts it, in about two seconds.
    pub fn start(options: Options) -> Result<Self, SetupError> {
        let mut server = Self::nowhere(options.tls, options.sync)?;
        let (data, directory) = (server.data(), &server.guard.directory);
        let flags = [
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
            "--username=postgres",
        ];
        run(server
            .install
            .as_owner("initdb", directory)
            .args(flags)
            .arg("-D")
            .arg(&data))?;
        if options.tls {
            certificate::make(&server.install, directory)?;
        }
        server.configure(&options)?;
        server.launch_anywhere()?;
        Ok(server)
    }

    /// Prepares a server without data or port.
    fn nowhere(tls: bool, sync: Sync) -> Result<Self, SetupError> {
        let install = Install::find()?;
        let guard = Guard::new()?;
        install.own(&guard.directory)?;
        Ok(Self {
            install,
            tls,
            sync,
            port: 0,
            postmaster: None,
            guard,
        })
    }

    fn configure(&self, options: &Options) -> Result<(), SetupError> {
        let mut text =
            "listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 200\n\
                        log_checkpoints = off\n"
                .to_owned();
        if options.sync == Sync::Off {
            text.push_str("fsync = off\nfull_page_writes = off\nshared_buffers = 64MB\n");
        }
        if options.tls {
            let at = self.guard.directory.display();
            text.push_str(&format!(
                "ssl = on\nssl_cert_file = '{at}/server.crt'\nssl_key_file = '{at}/server.key'\n"
            ));
        }
        for (name, value) in &options.settings {
            text.push_str(&format!("{name} = '{}'\n", value.replace('\'', "''")));
        }
        let path = self.data().join("postgresql.conf");
        fs::write(&path, fs::read_to_string(&path)? + &text)?;
        let kind = if options.tls { "hostssl" } else { "host" };
        let who = format!("{kind} all all all trust\n{kind} replication all all trust\n");
        Ok(fs::write(self.data().join("pg_hba.conf"), who)?)
    }

    fn data(&self) -> PathBuf {
        self.guard.directory.join("data")
    }

    /// The certificate of the authority that signed the server's.
    pub fn authority(&self) -> PathBuf {
        self.guard.directory.join("authority.crt")
    }

    /// The port, which stays the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The postmaster, the parent of all other processes of the server.
    pub fn postmaster(&self) -> Option<u32> {
        self.postmaster.as_ref().map(Child::id)
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.guard.directory.join("log")
    }

    /// The URL of the database `postgres`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The URL of another database.
    pub fn url_of(&self, database: &str) -> String {
        let tls = if self.tls { "?sslmode=require" } else { "" };
        format!(
            "postgres://postgres@127.0.0.1:{}/{database}{tls}",
            self.port
        )
    }

    /// Creates an empty database, and returns its URL.
    pub fn database(&self, name: &str) -> Result<String, SetupError> {
        self.sql(&format!("CREATE DATABASE \"{name}\""))?;
        Ok(self.url_of(name))
    }

    /// Runs SQL in the database `postgres`: returns a line for each row, with `|` between columns.
    pub fn sql(&self, statement: &str) -> Result<String, SetupError> {
        sql(&self.url(), statement)
    }

    /// Kills it at once, the postmaster and all its children, and waits until they are gone.
    pub fn kill9(&mut self) -> Result<(), SetupError> {
        kill_all(&self.data())?;
        self.reap();
        Ok(())
    }

    /// Restarts it in place. If it runs, it is shut down first.
    pub fn restart(&mut self) -> Result<(), SetupError> {
        self.stop()?;
        let begun = Instant::now();
        loop {
            match self.launch() {
                Err(_) if begun.elapsed() < PATIENCE => pause(Duration::from_millis(50)),
                launched => return launched,
            }
        }
    }

    /// Shuts it down without waiting for its clients.
    pub fn stop(&mut self) -> Result<(), SetupError> {
        if self.postmaster.is_some() && !guard::processes(&self.data())?.is_empty() {
            run(self.control("stop").args(["-m", "fast"]))?;
        }
        self.reap();
        Ok(())
    }

    /// Creates a synchronous standby: from now on this server acknowledges only commits that the
    /// standby has.
    pub fn standby(&self) -> Result<Self, SetupError> {
        let mut standby = Self::nowhere(self.tls, self.sync)?;
        let from = format!(
            "{}{}application_name=standby",
            self.url(),
            if self.tls { "&" } else { "?" }
        );
        let mut copy = self
            .install
            .as_owner("pg_basebackup", &standby.guard.directory);
        copy.args([
            "--no-sync",
            "--checkpoint=fast",
            "--write-recovery-conf",
            "-d",
        ])
        .arg(from);
        run(copy.arg("-D").arg(standby.data()))?;
        standby.launch_anywhere()?;
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'")?;
        self.sql("SELECT pg_reload_conf()")?;
        let begun = Instant::now();
        while self.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")? != "1"
        {
            if begun.elapsed() > PATIENCE {
                return Err(
                    format!("the standby does not follow: {}", standby.last_words()).into(),
                );
            }
            pause(Duration::from_millis(10));
        }
        Ok(standby)
    }

    /// Promotes a standby to a writable server.
    pub fn promote(&self) -> Result<(), SetupError> {
        run(&mut self.control("promote")).map(drop)
    }

    fn control(&self, verb: &str) -> Command {
        let mut command = self.install.as_owner("pg_ctl", &self.guard.directory);
        command
            .args([verb, "--wait", "--silent", "-D"])
            .arg(self.data());
        command
    }

    /// Starts it on a free port, which another process may take first.
    fn launch_anywhere(&mut self) -> Result<(), SetupError> {
        let mut last = Ok(());
        for _ in 0..5 {
            self.port = free_port()?;
            last = self.launch();
            if last.is_ok() {
                break;
            }
        }
        last
    }

    fn launch(&mut self) -> Result<(), SetupError> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = match self.sync {
            Sync::Late(delay) => self.install.late("postgres", &self.data(), delay),
            Sync::On | Sync::Off => self.install.as_owner("postgres", &self.data()),
        };
        command
            .arg("-D")
            .arg(self.data())
            .arg("-c")
            .arg(format!("port={}", self.port));
        command
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        let postmaster = self.postmaster.insert(command.spawn()?);
        let begun = Instant::now();
        let mut asking = self.install.client("pg_isready");
        asking
            .args(["--quiet", "-h", "127.0.0.1", "-p"])
            .arg(self.port.to_string());
        loop {
            if postmaster.try_wait()?.is_some() || begun.elapsed() > PATIENCE {
                kill_all(&self.guard.directory.join("data"))?;
                self.reap();
                return Err(format!("the server does not start: {}", self.last_words()).into());
            }
            if asking.status()?.success() {
                return Ok(());
            }
            pause(Duration::from_millis(10));
        }
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }

    fn reap(&mut self) {
        if let Some(mut postmaster) = self.postmaster.take() {
            drop(postmaster.wait());
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.kill9());
    }
}

/// Runs SQL in a database: returns a line for each row, with `|` between columns.
pub fn sql(url: &str, statement: &str) -> Result<String, SetupError> {
    let mut command = Install::find()?.client("psql");
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statement]);
    run(&mut command).map_err(|error| format!("{statement}: {error}").into())
}

/// Returns a free port outside the ephemeral range: a client could take one of those while the
/// server is down.
fn free_port() -> Result<u16, SetupError> {
    let random = || 12_000 + (Uuid::now_v7().as_u128() % 20_000) as u16;
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (0..1000)
        .map(|_| random())
        .find(free)
        .ok_or_else(|| "no port is free".into())
}
