//! A project with a scripted model, made and run as `record.py` makes and runs it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use posse_scripted::{Script, Server, ServerOptions};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::binary::posse;
use crate::worktrees::git;

/// Seconds that a run may take.
const PATIENCE: &str = "60";

/// What a run needs: of a scene of cases.json, or of an entry of scripts.json.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Setting {
    pub(super) model: Vec<String>,
    pub(super) flags: Vec<String>,
    pub(super) files: BTreeMap<String, String>,
    pub(super) settings: Map<String, Value>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) prompt: Option<String>,
    pub(super) prompts: Option<Vec<String>>,
    /// The small MCP server is configured.
    pub(super) server: bool,
}

/// The project of one setting.
pub(super) struct Scene {
    pub(super) base: PathBuf,
    model: Model,
    setting: Setting,
}

/// A scripted model on a thread of its own. It ends when this is dropped.
struct Model {
    server: Arc<Server>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    fn start(script: Script) -> Self {
        let (tell, told) = mpsc::channel();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let server = Server::start(ServerOptions::playing(script)).unwrap();
                tell.send(Arc::new(server)).unwrap();
                let _ = ended.await;
            });
        });
        Self {
            server: told.recv().unwrap(),
            end: Some(end),
            thread: Some(thread),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().unwrap().join();
    }
}

/// What a run has shown.
pub(super) struct Shown {
    pub(super) code: Option<i32>,
    /// The `result` lines.
    pub(super) ends: Vec<Value>,
    pub(super) stderr: String,
}

impl Scene {
    /// Makes the project anew.
    pub(super) fn new(name: &str, setting: Setting) -> Self {
        let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(&base).unwrap();
        let base = base.canonicalize().unwrap();
        let work = base.join("w");
        let mut files = setting.files.clone();
        if setting.server {
            let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hooks/server.py");
            let small = json!({"command": "python3", "args": [program]});
            files.insert(
                "mcp.json".into(),
                json!({"mcpServers": {"small": small}}).to_string(),
            );
        }
        fs::create_dir_all(&work).unwrap();
        for (name, text) in files {
            let path = work.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        git(&work, &["init", "-q", "-b", "main"]);
        let commit = "-c user.name=a -c user.email=a@b commit -q --allow-empty -m a";
        git(&work, &commit.split(' ').collect::<Vec<_>>());
        Self {
            base,
            model: Model::start(Script::parse(&setting.model.join("\n")).unwrap()),
            setting,
        }
    }

    pub(super) fn work(&self) -> PathBuf {
        self.base.join("w")
    }

    /// Writes the settings that `--settings` names.
    pub(super) fn write_settings(&self, settings: &Value) {
        fs::write(self.base.join("settings.json"), settings.to_string()).unwrap();
    }

    /// Runs posse once. With `--resume` among the flags there is no other prompt than theirs.
    pub(super) fn run(&self, more: &[String]) -> Shown {
        let prompts = self.setting.prompts.clone().unwrap_or_default();
        let mut arguments = vec!["-p".to_owned()];
        if prompts.is_empty() && !more.iter().any(|flag| flag == "--resume") {
            arguments.push(self.setting.prompt.clone().unwrap_or_else(|| "go".into()));
        }
        arguments.extend(joined(self.setting.flags.iter().chain(more)));
        if !prompts.is_empty() {
            arguments.extend(["--input-format", "stream-json"].map(str::to_owned));
        }
        let mut command = self.command();
        command.args(arguments).args([
            "--model",
            "claude-opus-5-5",
            "--settings",
            self.base.join("settings.json").to_str().unwrap(),
            "--output-format",
            "stream-json",
            "--verbose",
            "--include-hook-events",
        ]);
        talk(command, &self.base.join("stderr"), prompts)
    }

    /// posse, ended after a while.
    fn command(&self) -> Command {
        let plain = posse();
        let mut command = Command::new("timeout");
        command
            .args(["--foreground", PATIENCE])
            .arg(plain.get_program())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.base.join("home"))
            .env("POSSE_HOME", self.base.join("home/.posse"))
            .env("POSSE_SANDBOX", "off")
            .env("POSSE_TRUST", self.work())
            .env("ANTHROPIC_BASE_URL", self.model.server.url())
            .env("ANTHROPIC_API_KEY", "any")
            .envs(&self.setting.environment)
            .current_dir(self.work());
        command
    }

    /// The bodies of the requests that the model has answered.
    pub(super) fn bodies(&self) -> Vec<Value> {
        let requests = self.model.server.requests().into_iter();
        requests
            .filter(|request| request.rule.is_some() && request.path.starts_with("/v1/messages"))
            .map(|request| serde_json::from_slice(&request.body).unwrap())
            .collect()
    }
}

/// Returns flags as posse takes them: the tools after `--allowedTools` as one value.
fn joined<'a>(flags: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut tools = false;
    for flag in flags {
        match joined.last_mut() {
            Some(last) if tools && last != "--allowedTools" && !flag.starts_with('-') => {
                *last += &format!(",{flag}");
            }
            _ => joined.push(flag.clone()),
        }
        tools = (tools && !flag.starts_with('-')) || flag == "--allowedTools";
    }
    joined
}

/// Runs a program to its end. It is told a prompt at the start and after each result.
fn talk(mut command: Command, stderr: &Path, prompts: Vec<String>) -> Shown {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(stderr).unwrap())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take();
    let mut waiting = prompts.into_iter();
    let mut say = || match waiting.next() {
        Some(content) => {
            let message = json!({"role": "user", "content": content});
            let line = json!({"type": "user", "message": message});
            // It may have ended already.
            let _ = writeln!(input.as_mut().unwrap(), "{line}");
        }
        None => drop(input.take()),
    };
    say();
    let mut ends = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["type"] == "result" {
            ends.push(line);
            say();
        }
    }
    Shown {
        code: child.wait().unwrap().code(),
        ends,
        stderr: fs::read_to_string(stderr).unwrap(),
    }
}

/// The parts of content, which may be a text.
pub(super) fn blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}
