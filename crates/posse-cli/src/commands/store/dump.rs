//! Copies a server's store with PostgreSQL's own program.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context as _;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::store::DatabaseServer;
use crate::error::Advised;

/// Writes the copy to a new file and returns its size; `None` if a signal stopped it. Nothing is
/// left of an incomplete copy.
pub(super) async fn dumped(server: &DatabaseServer, to: &Path) -> anyhow::Result<Option<u64>> {
    let (mut interrupt, mut end) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    let copy = PartialFile::beside(to)?;
    let mut dumping = start(server, copy.file.try_clone()?)?;
    let mut said = dumping.stderr.take();
    let told = async {
        let mut text = Vec::new();
        if let Some(said) = &mut said {
            tokio::io::AsyncReadExt::read_to_end(said, &mut text).await?;
        }
        io::Result::Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let ended = tokio::select! {
        told = told => told?,
        _ = interrupt.recv() => return gone(dumping).await,
        _ = end.recv() => return gone(dumping).await,
    };
    if !dumping.wait().await?.success() {
        anyhow::bail!(refused(&ended, server));
    }
    Ok(Some(copy.finish(to)?))
}

/// Kills the program and waits for its end.
async fn gone(mut dumping: Child) -> anyhow::Result<Option<u64>> {
    dumping.kill().await?;
    Ok(None)
}

/// Starts the program. Secrets are passed in its environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the one program that can copy a server's store"
)]
fn start(server: &DatabaseServer, to: File) -> anyhow::Result<Child> {
    let mut command = Command::new("pg_dump");
    // Row security: a tenant can only copy its own rows, and would be refused without this
    // option.
    command.args([
        "--format=custom",
        "--enable-row-security",
        "--schema=posse",
        "--no-password",
    ]);
    command.arg(format!("--dbname={}", server.for_others()));
    command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(to)
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // A group of its own: Ctrl-C reaches only posse, which then ends the program in order.
    command.process_group(0);
    if let Some(password) = server.password() {
        command.env("PGPASSWORD", password);
    }
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow::Error::new(Advised {
            what: "pg_dump is not installed, which copies a server's store".into(),
            advice:
                "install PostgreSQL's client programs (Debian: postgresql-client), not older than the server"
                    .into(),
        }),
        _ => anyhow::Error::new(error).context("cannot run pg_dump"),
    })
}

/// Returns the reason why there is no copy, from the program's messages.
fn refused(said: &str, server: &DatabaseServer) -> Advised {
    let lines = said
        .lines()
        .map(|line| line.trim_start_matches("pg_dump: "));
    let lines: Vec<&str> = lines
        .map(|line| line.trim_start_matches("error: "))
        .collect();
    if said.contains("server version mismatch") {
        let versions = lines
            .iter()
            .find_map(|line| line.strip_prefix("detail: "))
            .unwrap_or("it is newer");
        return Advised {
            what: format!("pg_dump is older than the server: {versions}"),
            advice:
                "install the client programs of the server's version, and put them first in PATH"
                    .into(),
        };
    }
    Advised {
        what: format!(
            "pg_dump could not copy {}: {}",
            server.shown(),
            lines.join("; ")
        ),
        advice: "nothing was copied; `posse store check` shows whether posse itself can connect"
            .into(),
    }
}

/// An incomplete copy under a temporary name, which is removed when this is dropped.
struct PartialFile {
    path: PathBuf,
    file: File,
}

impl PartialFile {
    /// Creates the file beside its final name.
    fn beside(to: &Path) -> anyhow::Result<Self> {
        let mut name = to.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        // In the same directory, since a hard link cannot cross file systems.
        let path = PathBuf::from(name);
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            // Transcripts contain everything that agents have read.
            .mode(0o600)
            .open(&path);
        let file = made.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, file })
    }

    /// Gives the copy its name and returns its size.
    fn finish(self, to: &Path) -> anyhow::Result<u64> {
        self.file.sync_all()?;
        // A link fails if the name exists, so that nothing is ever overwritten.
        std::fs::hard_link(&self.path, to)
            .with_context(|| format!("cannot write {}", to.display()))?;
        Ok(self.file.metadata()?.len())
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_says_is_told_in_a_line() {
        let Ok(crate::config::store::StoreLocation::Server(server)) =
            crate::config::store::parse("postgres://me:s3cret@h/db")
        else {
            panic!()
        };
        let older = "pg_dump: error: aborting because of server version mismatch\n\
                     pg_dump: detail: server version: 16.1; pg_dump version: 15.4\n";
        let told = refused(older, &server);
        assert_eq!(
            told.what,
            "pg_dump is older than the server: server version: 16.1; pg_dump version: 15.4"
        );
        let other = "pg_dump: error: no matching schemas were found\n";
        let told = refused(other, &server).what;
        assert_eq!(
            told,
            "pg_dump could not copy me@h/db: no matching schemas were found"
        );
    }
}
