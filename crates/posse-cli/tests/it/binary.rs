//! Running posse, and a scripted model beside it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The binary, in an environment without keys and with a home of its own.
pub(crate) fn posse() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posse"));
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("POSSE_HOME", home())
        .env("POSSE_SANDBOX", "off")
        .env("POSSE_TRUST", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null());
    command
}

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("home")
}

/// A directory to work in, with a home of posse's own beside it and a scripted model to talk to.
pub(crate) struct Project {
    server: Server,
    work: PathBuf,
    /// The home of the user.
    home: PathBuf,
    posse_home: PathBuf,
}

impl Project {
    /// The directory of the project of this name.
    pub(crate) fn place(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("project-{name}"))
    }

    /// Empty, whatever an earlier run of the test left.
    pub(crate) fn new(name: &str, script: &str) -> Self {
        let place = Self::place(name);
        let _ = std::fs::remove_dir_all(&place);
        let (work, home) = (place.join("work"), place.join("home"));
        std::fs::create_dir_all(&work).unwrap();
        Self {
            server: Server::start(name, script),
            work,
            posse_home: home.clone(),
            home,
        }
    }

    /// In a directory of a user's home, where posse's own home is, too.
    pub(crate) fn in_home(home: &Path, directory: &str, script: &str) -> Self {
        let work = home.join(directory);
        std::fs::create_dir_all(&work).unwrap();
        Self {
            server: Server::start(&format!("story-{directory}"), script),
            work,
            posse_home: home.join(".posse"),
            home: home.to_owned(),
        }
    }

    /// A file that the agent can reach.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    /// Where its scripted model is.
    pub(crate) fn url(&self) -> &str {
        &self.server.url
    }

    /// posse in the project.
    pub(crate) fn posse(&self, arguments: &[&str]) -> Command {
        let mut command = posse();
        command
            .current_dir(&self.work)
            .env("POSSE_HOME", &self.posse_home)
            .env("HOME", &self.home)
            // The files of a test's project count; tests about trust take this away.
            .env("POSSE_SANDBOX", "off")
            .env("POSSE_TRUST", &self.work)
            .env("ANTHROPIC_BASE_URL", &self.server.url)
            .args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.posse(arguments).output().unwrap()
    }

    /// The requests that its scripted model has got.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let output = Command::new("curl")
            .args(["-s", &format!("{}/_scripted/requests", self.url())])
            .output()
            .unwrap();
        let mut all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        for request in &mut all {
            if let Some(body) = request["body"].as_str() {
                request["body"] = serde_json::from_str(body).unwrap();
            }
        }
        all
    }
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    posse().args(arguments).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A scripted model in a process of its own; it ends with the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    /// Plays `script`, or the built-in one if it is empty.
    pub(crate) fn start(name: &str, script: &str) -> Self {
        let mut command = posse();
        command.args(["scripted-model", "--port", "0", "--json"]);
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.toml"));
        if !script.is_empty() {
            std::fs::File::create(&path)
                .unwrap()
                .write_all(script.as_bytes())
                .unwrap();
            command.arg(&path);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        Self {
            child,
            url: told["url"].as_str().unwrap().to_owned(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
