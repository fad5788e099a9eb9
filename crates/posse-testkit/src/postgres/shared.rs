//! The server that all tests share: the first test that needs it starts it, and it ends some
//! seconds after the last.
//!
//! Each test is a process, so their shared state is kept in files beside the program. Each test
//! locks `users` as long as it lives, the process that starts the server locks `ready` until it is
//! up, the keeper locks `alive`; `address` holds the server's address. The kernel releases the
//! locks of killed processes.

use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_store::Postgres;
use uuid::Uuid;

use super::guard::pause;
use super::install::keeper;
use super::server::{Options, Server, Sync, sql};
use crate::scripted::SetupError;

/// Time from the end of the last test to the end of the server.
const IDLE: Duration = Duration::from_secs(5);

/// A database of the shared server, dropped with its test.
pub struct Database {
    name: String,
    url: String,
    shared: Arc<Shared>,
}

impl Database {
    /// Creates a database with posse's schema only: a copy of a template, which is faster than
    /// creating the schema.
    pub fn new() -> Result<Self, SetupError> {
        let shared = shared()?;
        Self::like(&template(&shared)?)
    }

    /// Creates an empty database.
    pub fn empty() -> Result<Self, SetupError> {
        Self::like("template1")
    }

    fn like(template: &str) -> Result<Self, SetupError> {
        let shared = shared()?;
        let name = format!("test_{}", Uuid::now_v7().simple());
        sql(
            &shared.url_of("postgres"),
            &format!("CREATE DATABASE {name} TEMPLATE {template}"),
        )?;
        let url = shared.url_of(&name);
        Ok(Self { name, url, shared })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL in it as superuser: returns a line for each row, with `|` between columns.
    pub fn sql(&self, statement: &str) -> Result<String, SetupError> {
        sql(&self.url, statement)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        drop(sql(&self.shared.url_of("postgres"), &statement));
    }
}

/// The template database. Each program has its own, as each knows its own schema.
fn template(shared: &Shared) -> Result<String, SetupError> {
    let program = std::env::current_exe()?;
    let mut hasher = DefaultHasher::new();
    (&program, fs::metadata(&program)?.modified()?).hash(&mut hasher);
    let name = format!("template_{:016x}", hasher.finish());
    let server = shared.url_of("postgres");
    let made = || {
        sql(
            &server,
            &format!("SELECT 1 FROM pg_database WHERE datname = '{name}'"),
        )
    };
    if made()?.is_empty() {
        let making = shared.files.open("template")?;
        making.lock()?;
        if made()?.is_empty() {
            let draft = format!("draft_{}", Uuid::now_v7().simple());
            sql(&server, &format!("CREATE DATABASE {draft}"))?;
            drop(Postgres::open(&shared.url_of(&draft))?);
            sql(
                &server,
                &format!("ALTER DATABASE {draft} ALLOW_CONNECTIONS false"),
            )?;
            sql(&server, &format!("ALTER DATABASE {draft} RENAME TO {name}"))?;
        }
    }
    Ok(name)
}

/// A process's use of the server.
struct Shared {
    files: Files,
    /// Its address.
    address: String,
    /// The lock that marks it as used.
    _users: File,
}

impl Shared {
    fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}", self.address)
    }
}

/// Returns the server, started if need be.
fn shared() -> Result<Arc<Shared>, SetupError> {
    static SHARED: Mutex<Option<Arc<Shared>>> = Mutex::new(None);
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(shared) = &*shared {
        return Ok(Arc::clone(shared));
    }
    let mut keeper = keeper()?;
    let files = Files(Path::new(keeper.get_program()).with_extension("shared"));
    fs::create_dir_all(&files.0)?;
    let users = files.open("users")?;
    // Waits while a server ends.
    users.lock_shared()?;
    let address = match files.address()? {
        Some(address) => address,
        None => {
            let trouble = File::create(files.path("trouble"))?;
            keeper
                .arg("share")
                .arg(&files.0)
                .stdout(Stdio::piped())
                .stderr(trouble);
            let mut child = keeper.spawn()?;
            let mut said = String::new();
            BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut said)?;
            let trouble = || fs::read_to_string(files.path("trouble")).unwrap_or_default();
            files
                .address()?
                .ok_or_else(|| format!("no server: {}", trouble().trim()))?
        }
    };
    Ok(Arc::clone(shared.insert(Arc::new(Shared {
        files,
        address,
        _users: users,
    }))))
}

/// The files that coordinate processes.
struct Files(PathBuf);

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn open(&self, name: &str) -> Result<File, SetupError> {
        Ok(File::options()
            .create(true)
            .append(true)
            .open(self.path(name))?)
    }

    /// The address of the server, if there is one; waits while one starts.
    fn address(&self) -> Result<Option<String>, SetupError> {
        let ready = self.open("ready")?;
        ready.lock_shared()?;
        self.rights()
    }

    /// The same, for the holder of the lock on `ready`.
    fn rights(&self) -> Result<Option<String>, SetupError> {
        match self.open("alive")?.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Ok(Some(fs::read_to_string(self.path("address"))?)),
            Ok(()) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}

/// The keeper's side: starts the server unless there is one, calls `ready`, and keeps it until
/// nobody has used it for some seconds or `told` ends.
pub async fn keep(
    directory: &Path,
    ready: impl FnOnce(),
    told: impl Future<Output = ()>,
) -> Result<(), SetupError> {
    let files = Files(directory.to_owned());
    let starting = files.open("ready")?;
    starting.lock()?;
    if files.rights()?.is_some() {
        ready();
        return Ok(());
    }
    let alive = files.open("alive")?;
    alive.lock()?;
    let options = Options {
        sync: Sync::Off,
        ..Options::default()
    };
    let server = Server::start(
        options
            .set("max_connections", "500")
            .set("log_statement", "none"),
    )?;
    fs::write(
        files.path("address"),
        format!("127.0.0.1:{}", server.port()),
    )?;
    starting.unlock()?;
    ready();
    let users = files.open("users")?;
    let unused = tokio::task::spawn_blocking(move || until_unused(users));
    tokio::select! {
        users = unused => {
            // Nobody can start using it until it is gone.
            let _users = users??;
            drop(server);
            alive.unlock()?;
        }
        () = told => drop(server),
    }
    Ok(())
}

/// Waits until nobody holds the lock, and for some seconds more; then nobody can take it.
fn until_unused(users: File) -> Result<File, SetupError> {
    loop {
        users.lock()?;
        users.unlock()?;
        pause(IDLE);
        match users.try_lock() {
            Ok(()) => return Ok(users),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
}
