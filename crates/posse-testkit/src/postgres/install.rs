//! The PostgreSQL installation, and the user it runs as.

#![expect(
    clippy::disallowed_methods,
    reason = "starts servers and what belongs to them"
)]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::{User, geteuid};

use crate::scripted::SetupError;

/// Where Debian and its derivatives put each version.
const VERSIONS: &str = "/usr/lib/postgresql";
const MISSING: &str = "there is no PostgreSQL in /usr/lib/postgresql/*/bin: install it \
                       (apt-get install postgresql, or .ci/setup for all that tests need)";

/// The newest installed version.
#[derive(Clone, Debug)]
pub(super) struct Install {
    programs: PathBuf,
    /// A server refuses to run as root.
    owner: Option<(u32, u32)>,
}

impl Install {
    pub(super) fn find() -> Result<Self, SetupError> {
        let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
        let found = std::fs::read_dir(VERSIONS)
            .map_err(|_| MISSING)?
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                Some((version(&path)?, path.join("bin")))
                    .filter(|(_, programs)| programs.join("initdb").is_file())
            });
        let (_, programs) = found.max().ok_or(MISSING)?;
        let owner = if geteuid().is_root() {
            let user = User::from_name("postgres")?
                .ok_or("there is no user `postgres` to run a server as")?;
            Some((user.uid.as_raw(), user.gid.as_raw()))
        } else {
            None
        };
        Ok(Self { programs, owner })
    }

    /// Gives a file or directory to the user that the server runs as.
    pub(super) fn own(&self, path: &Path) -> Result<(), SetupError> {
        match self.owner {
            Some((user, group)) => Ok(std::os::unix::fs::chown(path, Some(user), Some(group))?),
            None => Ok(()),
        }
    }

    /// A command that runs as the server's user. It works in `directory`, by which it is found when
    /// it must end.
    pub(super) fn as_owner(&self, program: &str, directory: &Path) -> Command {
        self.owned(self.client(program), directory)
    }

    /// The same, with each sync delayed.
    pub(super) fn late(&self, name: &str, directory: &Path, delay: Duration) -> Command {
        let mut command = self.owned(program("strace"), directory);
        let inject = format!("inject=fsync,fdatasync:delay_exit={}", delay.as_micros());
        // With `-D` strace is not the parent, so that the server stays our own child.
        command.args(["-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null"]);
        command.args([
            "-e",
            "trace=fsync,fdatasync",
            "-e",
            "signal=none",
            "-e",
            &inject,
        ]);
        command
            .arg(self.programs.join(name))
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        command
    }

    fn owned(&self, mut command: Command, directory: &Path) -> Command {
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command.current_dir(directory);
        command
    }

    /// A command that runs as the current user.
    pub(super) fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command
            .stdin(Stdio::null())
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        command
    }
}

/// Another installed program.
pub(super) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end, which must be successful, and returns its output.
pub(super) fn run(command: &mut Command) -> Result<String, SetupError> {
    let output = command
        .output()
        .map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{:?}: {}: {}",
            command.get_program(),
            output.status,
            said.trim()
        )
        .into());
    }
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

/// The testkit's keeper program: beside this one, or one directory up when this is a test.
pub(super) fn keeper() -> Result<Command, SetupError> {
    let own = std::env::current_exe()?;
    let found = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|at| at.join("postgres-keeper"))
        .find(|path| path.is_file());
    let path = found.ok_or(
        "postgres-keeper is not built: cargo build -p posse-testkit --bins, in the same profile",
    )?;
    let mut command = Command::new(path);
    // A signal to this process group must not end the processes that clean up.
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Ok(command)
}
