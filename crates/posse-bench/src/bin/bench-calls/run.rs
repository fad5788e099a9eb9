//! Runs with hooks or servers and without, by turns.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use posse_model::RetryPolicy;
use posse_permission::Source;
use posse_port::Ports;
use posse_port::clock::SystemClock;
use posse_port::hooks::{HookRunner, NoHooks};
use posse_port::servers::{NoServers, Servers};
use posse_port::tool::{Tool, Workspace};
use posse_protocol::{Command, ContentBlock, EventKind, Outcome, PermissionMode};
use posse_runtime::definition::server::ServerSet;
use posse_runtime::hook::{self, HookBook, HookFile, HookLayer, HookSet};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::{AgentProfile, Setup};
use posse_runtime::runtime::Runtime;
use posse_store::Sqlite;
use posse_testkit::faulty::Faulty;
use posse_testkit::{rig, scripted};
use posse_tools::{SystemHooks, SystemProcesses, Watchdog};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::Failed;
use crate::call::{Calls, Nothing, TOOL};
use crate::server::HookServer;

/// Reads its input and says nothing.
const SCRIPT: &str = "cat >/dev/null";
/// Size of an input, about.
const INPUT: usize = 700;

/// Runs of agents with the same hooks and servers.
pub(crate) struct Ground {
    pub(crate) runtime: Runtime,
    setup: Setup,
    commits: Arc<AtomicU64>,
}

/// What is called, and what is beside that.
pub(crate) struct Beside {
    /// The tool.
    pub(crate) tool: String,
    pub(crate) hooks: HookSet,
    pub(crate) runner: Arc<dyn HookRunner>,
    pub(crate) declared: ServerSet,
    pub(crate) servers: Arc<dyn Servers>,
}

impl Beside {
    /// A call of a tool that does nothing.
    pub(crate) fn nothing() -> Self {
        Self {
            tool: TOOL.into(),
            hooks: HookSet::default(),
            runner: Arc::new(NoHooks),
            declared: ServerSet::default(),
            servers: Arc::new(NoServers),
        }
    }
}

impl Ground {
    /// `hooks` is the value of the key in settings.
    fn new(
        directory: &Path,
        calls: u32,
        hooks: &Value,
        runner: Arc<dyn HookRunner>,
    ) -> Result<Self, Failed> {
        let hooks = declared(directory, hooks);
        let beside = Beside {
            hooks,
            runner,
            ..Beside::nothing()
        };
        Self::with(directory, calls, beside)
    }

    pub(crate) fn with(directory: &Path, calls: u32, beside: Beside) -> Result<Self, Failed> {
        std::fs::create_dir_all(directory)?;
        let commits = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&commits);
        let mut store = Faulty::new(Arc::new(Sqlite::open(&directory.join("posse.db"))?));
        store.refuse = Box::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        });
        // Nobody is asked there.
        let inner = scripted::anthropic(
            "http://127.0.0.1:1",
            Arc::new(SystemClock::default()),
            RetryPolicy::default(),
        )?;
        let model = Arc::new(Calls::new(inner, &beside.tool, calls));
        let runtime = Runtime::new(Ports {
            servers: beside.servers,
            hooks: beside.runner,
            ..rig::ports(model, Arc::new(store), directory.join("worktrees"))?
        });
        Ok(Self {
            runtime,
            setup: setup(directory, beside.hooks, beside.declared),
            commits,
        })
    }

    pub(crate) fn start(&self) -> Agent {
        let profile = AgentProfile {
            mode: PermissionMode::BypassPermissions,
            ..AgentProfile::new("claude-opus-5", "You do nothing. ".repeat(100))
        };
        self.runtime.start(&profile, self.setup.clone())
    }

    /// Returns how long a run takes.
    pub(crate) async fn run(&self) -> Result<Duration, Failed> {
        let mut agent = self.start();
        let begun = Instant::now();
        turn(&mut agent).await?;
        Ok(begun.elapsed())
    }
}

/// Returns the hooks of a key of settings.
fn declared(directory: &Path, hooks: &Value) -> HookSet {
    let file = HookFile {
        layer: HookLayer::User,
        path: "settings.json".into(),
        of_repository: false,
        source: Source {
            name: "settings.json".into(),
            root: directory.to_owned(),
            cwd: directory.to_owned(),
            home: None,
        },
    };
    let read = hook::read(hooks, &file).hooks.into_iter();
    HookSet::new(read.map(|(hook, _)| Arc::new(hook)))
}

fn setup(directory: &Path, hooks: HookSet, servers: ServerSet) -> Setup {
    let workspace = Workspace::new(directory.to_owned(), directory.to_owned());
    let tool: Arc<dyn Tool> = Arc::new(Nothing);
    let mut setup = rig::setup([tool].into_iter().collect(), workspace);
    setup.spawning.hooks = Arc::new(HookBook::new(hooks));
    setup.spawning.servers = Arc::new(servers);
    setup
}

/// Sends the agent a prompt and waits for the end of its run.
pub(crate) async fn turn(agent: &mut Agent) -> Result<(), Failed> {
    let prompt = Command::Prompt(vec![ContentBlock::text("go")]);
    agent.handle.send(prompt).await?;
    while let Some(event) = agent.events.recv().await {
        match event.kind {
            EventKind::Ended(end) if end.outcome == Outcome::Completed => return Ok(()),
            EventKind::Ended(end) => return Err(format!("{:?}", end.outcome).into()),
            // A hook that fails would cost nothing.
            EventKind::Warning(what) => return Err(what.into()),
            _ => {}
        }
    }
    Err("the agent ended".into())
}

/// Returns the value of the key `hooks` with these before each call of the tool.
fn before(matcher: &str, hooks: &[Value]) -> Value {
    json!({"PreToolUse": [{"matcher": matcher, "hooks": hooks}]})
}

fn runner(posse: Option<&Path>) -> Arc<dyn HookRunner> {
    let processes = SystemProcesses::new(posse.map(Watchdog::new), None, Vec::new());
    Arc::new(SystemHooks::new(processes, BTreeMap::new(), None))
}

pub(crate) async fn commits(hooks: &str, calls: u32, directory: &Path) -> Result<Value, Failed> {
    let hook = json!({"type": "command", "command": "exit 2"});
    let hooks = match hooks {
        "none" => Value::Null,
        "unmatched" => before("Other", &[hook]),
        _ => return Err("hooks are none or unmatched".into()),
    };
    let ground = Ground::new(directory, calls, &hooks, runner(None))?;
    ground.run().await?;
    Ok(json!({"commits": ground.commits.load(Ordering::Relaxed)}))
}

/// Two programs on each call.
pub(crate) async fn programs(
    posse: &Path,
    (calls, rounds): (u32, u32),
    directory: &Path,
) -> Result<Value, Failed> {
    // Two that are alike would be one.
    let hook = |more: &str| json!({"type": "command", "command": format!("{SCRIPT}{more}")});
    let hooks = before(TOOL, &[hook(""), hook(" ")]);
    let hooked = Ground::new(
        &directory.join("hooked"),
        calls,
        &hooks,
        runner(Some(posse)),
    )?;
    let plain = Ground::new(&directory.join("plain"), calls, &Value::Null, runner(None))?;
    hooked.run().await?;
    plain.run().await?;
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        times[0].push(hooked.run().await? / calls);
        times[1].push(plain.run().await? / calls);
        times[2].push(scripts(calls)? / calls);
    }
    let [hooked, plain, scripts] = times.map(median_ms);
    Ok(json!({"hooked_ms": hooked, "plain_ms": plain, "scripts_ms": scripts}))
}

/// Returns how long the scripts of so many calls take by themselves.
#[expect(clippy::disallowed_methods, reason = "it waits for what it starts")]
fn scripts(calls: u32) -> Result<Duration, Failed> {
    let begun = Instant::now();
    for _ in 0..calls {
        let start = || {
            Program::new("sh")
                .args(["-c", SCRIPT])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
        };
        let mut both = [start()?, start()?];
        for script in &mut both {
            let mut input = script.stdin.take().ok_or("stdin is piped")?;
            input.write_all(&[b' '; INPUT])?;
        }
        for script in both {
            script.wait_with_output()?;
        }
    }
    Ok(begun.elapsed())
}

/// A program that stays.
pub(crate) async fn persistent(
    posse: &Path,
    (calls, rounds): (u32, u32),
    directory: &Path,
) -> Result<Value, Failed> {
    let answers = std::env::current_exe()?;
    let hook = json!({
        "type": "command", "command": answers, "args": ["answers"], "persistent": true,
    });
    let hooks = before(TOOL, &[hook]);
    let hooked = Ground::new(
        &directory.join("hooked"),
        calls,
        &hooks,
        runner(Some(posse)),
    )?;
    let plain = Ground::new(&directory.join("plain"), calls, &Value::Null, runner(None))?;
    // The program is started.
    hooked.run().await?;
    plain.run().await?;
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        times[0].push(hooked.run().await? / calls);
        times[1].push(plain.run().await? / calls);
    }
    let [hooked, plain] = times.map(median_ms);
    Ok(json!({"hooked_ms": hooked, "plain_ms": plain}))
}

/// Many agents and one server.
pub(crate) async fn http(agents: u32, calls: u32, directory: &Path) -> Result<Value, Failed> {
    let server = HookServer::start()?;
    let url = format!("http://127.0.0.1:{}/hook", server.port);
    let hooks = before(TOOL, &[json!({"type": "http", "url": url})]);
    let hooked = Ground::new(&directory.join("hooked"), calls, &hooks, runner(None))?;
    let plain = Ground::new(&directory.join("plain"), calls, &Value::Null, runner(None))?;
    plain.run().await?;
    let without = together(&plain, agents).await?;
    let with = together(&hooked, agents).await?;
    let all = f64::from(agents) * f64::from(calls);
    Ok(json!({
        "hooked_ms": with.as_secs_f64() * 1e3 / all,
        "plain_ms": without.as_secs_f64() * 1e3 / all,
        "lost": all - server.asked() as f64,
    }))
}

/// Returns how long the runs of so many agents take.
pub(crate) async fn together(ground: &Ground, agents: u32) -> Result<Duration, Failed> {
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..agents {
        let mut agent = ground.start();
        running.spawn(async move { turn(&mut agent).await });
    }
    while let Some(ended) = running.join_next().await {
        ended??;
    }
    Ok(begun.elapsed())
}

pub(crate) fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    middle.as_secs_f64() * 1e3
}
