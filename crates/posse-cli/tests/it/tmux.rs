//! A real tmux with a server of its own.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::binary::stdout;

/// A tmux server with one window.
pub(crate) struct Tmux {
    pub(crate) socket: PathBuf,
    /// Its pid.
    pub(crate) server: String,
}

impl Tmux {
    /// Starts a command in a window of this size, after these options of `new-session`.
    pub(crate) fn start(
        socket: PathBuf,
        (columns, rows): (u16, u16),
        options: &[&str],
        command: &[&str],
    ) -> Self {
        let mut tmux = Self {
            socket,
            server: String::new(),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let session = [
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
        ];
        tmux.run(&[&session, options, &["--"], command].concat());
        let pid = tmux.run(&["display-message", "-p", "#{pid}"]);
        tmux.server = pid.trim().to_owned();
        tmux
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(arguments)
            .output()
            .unwrap();
        stdout(&output)
    }

    /// What a pane shows, with lines as they were written.
    pub(crate) fn screen(&self, pane: &str) -> String {
        self.run(&["capture-pane", "-p", "-J", "-t", pane])
    }

    pub(crate) fn kill(&self) {
        let _ = Command::new("kill")
            .args(["-9", &self.server])
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may have ended by itself.
        if !self.server.is_empty() {
            self.kill();
        }
    }
}
