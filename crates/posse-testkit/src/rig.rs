//! A whole runtime for a test: the scripted model over real HTTP, a real store, real tools, a
//! directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use posse_model::RetryPolicy;
use posse_model::price::PriceList;
use posse_permission::{Policy, RuleList, Source};
use posse_port::Ports;
use posse_port::clock::{Clock, SystemClock};
use posse_port::model::Model;
use posse_port::store::Store;
use posse_port::tool::{Toolbox, Workspace};
use posse_protocol::{
    AgentId, Command, ContentBlock, Event, EventKind, Fault, FaultClass, Outcome, PermissionMode,
    RunEnd,
};
use posse_runtime::definition::agent_type::built_in;
use posse_runtime::definition::spawning::{Background, Spawning};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::{AgentProfile, Limits, Setup};
use posse_runtime::runtime::Runtime;
use posse_scripted::Server;
use tempfile::TempDir;

use crate::place::{Ground, Place};
use crate::scripted::{self, SetupError};

/// A runtime and everything it needs.
pub struct Rig {
    /// The scripted model.
    pub server: Server,
    /// The store: in a file, or on a server.
    pub store: Arc<dyn Store>,
    /// The setup of the agents.
    pub setup: Setup,
    /// The profile of the agents.
    pub profile: AgentProfile,
    clock: Arc<dyn Clock>,
    policy: RetryPolicy,
    runtime: OnceLock<Runtime>,
    directory: TempDir,
    /// Removed when nobody uses the store any more.
    ground: Ground,
}

impl Rig {
    /// A rig whose model plays `script`, on the machine's clock, without jitter in its retries.
    pub fn playing(script: &str) -> Result<Self, SetupError> {
        Self::with(scripted::play(script)?, Arc::new(SystemClock::default()))
    }

    /// A rig with a given server and clock.
    pub fn with(server: Server, clock: Arc<dyn Clock>) -> Result<Self, SetupError> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| -> std::io::Result<PathBuf> {
            let path = directory.path().canonicalize()?.join(name);
            std::fs::create_dir_all(&path)?;
            Ok(path)
        };
        let tools = posse_tools::all(posse_tools::ToolsConfig {
            reach: posse_tools::Reach::Public,
            background: true,
            processes: posse_tools::SystemProcesses::default(),
            gate: None,
        });
        let workspace = Workspace::new(at("work")?, at("home/spill")?);
        let setup = setup(tools, workspace);
        let profile = AgentProfile {
            mode: PermissionMode::AcceptEdits,
            ..AgentProfile::new("claude-opus-5", "You work on code. ".repeat(200))
        };
        let ground = Ground::new(&at("home")?)?;
        let store = ground.place().open()?;
        let policy = RetryPolicy {
            random: || 1.0,
            ..RetryPolicy::default()
        };
        Ok(Self {
            server,
            store,
            setup,
            profile,
            clock,
            policy,
            runtime: OnceLock::new(),
            directory,
            ground,
        })
    }

    /// The agents' working directory.
    pub fn work(&self) -> &Path {
        &self.setup.workspace.cwd
    }

    /// The location of the store.
    pub fn place(&self) -> &Place {
        self.ground.place()
    }

    /// The directory of worktrees.
    pub fn worktrees(&self) -> PathBuf {
        self.directory.path().join("home/worktrees")
    }

    /// Writes a file into the agents' working directory.
    pub fn file(&self, name: &str, content: &str) -> Result<PathBuf, SetupError> {
        let path = self.work().join(name);
        std::fs::write(&path, content)?;
        Ok(path)
    }

    /// Enables sub-agents of the built-in types, which know only their own prompt.
    pub fn agents(mut self) -> Self {
        let spawning = &mut self.setup.spawning;
        (spawning.types, spawning.background) = (Arc::new(built_in().into()), Background::Asked);
        self
    }

    /// Sets the tools.
    pub fn tools(mut self, tools: Toolbox) -> Self {
        self.setup.tools = tools;
        self
    }

    /// Sets the permission rules.
    pub fn rules(mut self, allow: &[&str], deny: &[&str]) -> Result<Self, SetupError> {
        let own = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
        let list = RuleList {
            allow: own(allow),
            deny: own(deny),
            ask: Vec::new(),
        };
        let cwd = self.work().to_owned();
        let source = Source {
            name: "the test".into(),
            root: cwd.clone(),
            cwd,
            home: None,
        };
        let mut policy = Policy::default();
        policy.add(&source, &list)?;
        self.setup.policy = Arc::new(policy);
        Ok(self)
    }

    /// The runtime of this rig: a store has one.
    pub fn runtime(&self) -> Result<Runtime, SetupError> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime.clone());
        }
        let runtime = self.another()?;
        Ok(self.runtime.get_or_init(|| runtime).clone())
    }

    /// Creates another runtime on the same store, which takes agents over as another process would.
    pub fn another(&self) -> Result<Runtime, SetupError> {
        let url = self.server.url();
        let model = Arc::new(scripted::anthropic(
            &url,
            Arc::clone(&self.clock),
            self.policy,
        )?);
        Ok(Runtime::new(Ports {
            clock: Arc::clone(&self.clock),
            ..ports(model, Arc::clone(&self.store), self.worktrees())?
        }))
    }

    /// Creates an agent and sends it `text`.
    pub async fn prompted(&self, text: &str) -> Result<Agent, SetupError> {
        let agent = self.runtime()?.start(&self.profile, self.setup.clone());
        agent.handle.send(prompt(text)).await?;
        Ok(agent)
    }

    /// Resumes a stored agent.
    pub async fn resumed(&self, id: AgentId) -> Result<Agent, SetupError> {
        Ok(self.runtime()?.resume(id, None, self.setup.clone()).await?)
    }
}

/// The ports of a test: prices that are built in, and worktrees of git in this directory.
pub fn ports(
    model: Arc<dyn Model>,
    store: Arc<dyn Store>,
    worktrees: PathBuf,
) -> Result<Ports, SetupError> {
    Ok(Ports {
        prices: Arc::new(PriceList::built_in()?),
        worktrees: Arc::new(posse_tools::GitWorktrees::new(worktrees)),
        ..Ports::new(model, store)
    })
}

/// The setup of a rig, unless a test sets another.
pub fn setup(tools: Toolbox, workspace: Workspace) -> Setup {
    Setup {
        limits: Limits {
            max_tokens: 4096,
            ..Limits::default()
        },
        spawning: spawning(),
        ..Setup::new(tools, workspace)
    }
}

/// The spawning settings of a rig, unless a test sets others; there are no types yet.
pub fn spawning() -> Spawning {
    Spawning {
        background: Background::Off,
        least_memory: 64 << 20,
        ..Spawning::default()
    }
}

/// A prompt of one text.
pub fn prompt(text: &str) -> Command {
    Command::Prompt(vec![ContentBlock::text(text)])
}

/// Returns all events up to the end of the run, and how it ended.
pub async fn until_end(agent: &mut Agent) -> (Vec<Event>, RunEnd) {
    let mut events = Vec::new();
    while let Some(event) = agent.events.recv().await {
        if let EventKind::Ended(end) = event.kind {
            return (events, *end);
        }
        events.push(event);
    }
    let message = "the agent ended without a word".to_owned();
    (
        events,
        RunEnd::of(Outcome::Failed(Fault {
            class: FaultClass::Internal,
            status: None,
            message,
        })),
    )
}

/// Drops an agent's handle and waits until it has ended.
pub async fn farewell(agent: Agent) {
    let Agent {
        handle, mut events, ..
    } = agent;
    drop(handle);
    while events.recv().await.is_some() {}
}
