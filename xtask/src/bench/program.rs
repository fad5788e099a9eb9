//! A measuring program, and a place for its files.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::server::Server;

/// The measuring program, and a place for its files.
pub(super) struct Bench {
    pub(super) program: PathBuf,
    pub(super) directory: Directory,
}

impl Bench {
    pub(super) fn new(binaries: &Path, name: &str) -> Result<Self> {
        Ok(Self {
            program: binaries.join(name),
            directory: Directory::new(name, &std::env::temp_dir())?,
        })
    }

    /// The same with its files in memory, where there is a place for that: a disk on which making a file
    /// takes long one moment and not the next would be all that is measured.
    pub(super) fn in_memory(binaries: &Path, name: &str) -> Result<Self> {
        let memory = Path::new("/dev/shm");
        if free_kib(memory).unwrap_or(0) < ROOM_KIB {
            return Self::new(binaries, name);
        }
        Ok(Self {
            program: binaries.join(name),
            directory: Directory::new(name, memory)?,
        })
    }

    /// Runs the program with a directory of its own in place of `DIR`, and a file in it in place of `DB`.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Value> {
        let place = self.directory.fresh()?;
        let fill = |argument: &&str| match *argument {
            "DIR" => place.clone(),
            "DB" => place.join("posse.db"),
            other => PathBuf::from(other),
        };
        let output = Command::new(&self.program)
            .args(arguments.iter().map(fill))
            .output()?;
        std::fs::remove_dir_all(&place)?;
        ensure!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Runs the program with a scripted model in place of `URL`.
    pub(super) fn asking(
        &self,
        binaries: &Path,
        script: &str,
        arguments: &[&str],
    ) -> Result<Value> {
        let server = Server::start(binaries, script)?;
        let fill = |argument: &&str| match *argument {
            "URL" => server.url.clone(),
            other => other.to_owned(),
        };
        let arguments: Vec<String> = arguments.iter().map(fill).collect();
        self.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    pub(super) fn measure(&self, key: &str, arguments: &[&str]) -> Result<f64> {
        let found = self.run(arguments)?;
        found[key]
            .as_f64()
            .with_context(|| format!("{found} has no {key}"))
    }
}

/// Room that files in memory need.
const ROOM_KIB: u64 = 4 << 20;

/// How much room there is at a place, as far as that is known.
fn free_kib(at: &Path) -> Option<u64> {
    let output = Command::new("df")
        .args(["-k", "--output=avail"])
        .arg(at)
        .output()
        .ok()?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .last()?
        .trim()
        .parse()
        .ok()
}

/// A directory; gone at the end.
pub(super) struct Directory(PathBuf);

impl Directory {
    fn new(name: &str, within: &Path) -> Result<Self> {
        let path = within.join(format!("posse-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(super) fn fresh(&self) -> Result<PathBuf> {
        let number = std::fs::read_dir(&self.0)?.count();
        let path = self.0.join(number.to_string());
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left over lies in the system's place for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
