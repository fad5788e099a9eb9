//! A scripted model to be called by what is measured.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

/// A scripted model in a process of its own. It ends, and its script goes, when this is dropped.
pub(super) struct Server {
    child: Child,
    script: PathBuf,
    pub(super) url: String,
}

impl Server {
    pub(super) fn start(binaries: &Path, script: &str) -> Result<Self> {
        let name = format!("posse-bench-{}-{}.toml", std::process::id(), script.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, script)?;
        Self::serve(binaries, path.as_os_str(), path.clone())
    }

    /// One that takes anything and answers all alike.
    pub(super) fn sink(binaries: &Path) -> Result<Self> {
        Self::serve(binaries, "--sink".as_ref(), PathBuf::new())
    }

    fn serve(binaries: &Path, what: &OsStr, script: PathBuf) -> Result<Self> {
        let mut child = Command::new(binaries.join("posse"))
            .args(["scripted-model", "--port", "0", "--json"])
            .arg(what)
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("stdout is piped")?).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line).context("the server did not start")?;
        Ok(Self {
            child,
            script,
            url: told["url"].as_str().unwrap_or_default().to_owned(),
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; there is nothing else to do about it here.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.script);
    }
}
