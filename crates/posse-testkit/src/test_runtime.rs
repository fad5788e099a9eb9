//! A runtime in a process that is measured or killed: on a real store, with the default tools, and
//! with sessions in it. Its model is elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_model::RetryPolicy;
use posse_permission::{Policy, RuleList, Source};
use posse_port::clock::SystemClock;
use posse_port::model::Model;
use posse_port::store::Store;
use posse_port::tool::Workspace;
use posse_protocol::{Event, EventKind, Outcome, PermissionMode, RunEnd};
use posse_runtime::definition::agent_type::built_in;
use posse_runtime::definition::spawning::{Background, Spawning, Teaming};
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::{AgentProfile, Limits, Setup};
use posse_runtime::runtime::Runtime;
use posse_tools::{Reach, SystemProcesses, ToolsConfig, Watchdog};

use crate::place::Place;
use crate::rig::{self, prompt};
use crate::scripted::{self, SetupError};

/// A directory with a runtime.
pub struct TestRuntime {
    /// The runtime.
    pub runtime: Runtime,
    /// Its store.
    pub store: Arc<dyn Store>,
    /// The setup of the agents.
    pub setup: Setup,
    directory: PathBuf,
}

impl TestRuntime {
    /// Creates it in `directory`, with a model at `url` and a maximum number of agents that work at
    /// once.
    pub fn new(url: &str, directory: &Path, running: usize) -> Result<Self, SetupError> {
        let work = directory.join("work");
        std::fs::create_dir_all(&work)?;
        Self::within(url, directory, &work, running)
    }

    /// The same, with another working directory for agents.
    pub fn within(
        url: &str,
        directory: &Path,
        work: &Path,
        running: usize,
    ) -> Result<Self, SetupError> {
        Self::asking(model(url)?, directory, work, running)
    }

    /// The same with any model.
    pub fn asking(
        model: Arc<dyn Model>,
        directory: &Path,
        work: &Path,
        running: usize,
    ) -> Result<Self, SetupError> {
        let home = directory.join("home");
        std::fs::create_dir_all(&home)?;
        Self::on(
            &Place::File(home.canonicalize()?.join("posse.db")),
            model,
            directory,
            work,
            running,
        )
    }

    /// The same on any store.
    pub fn on(
        place: &Place,
        model: Arc<dyn Model>,
        directory: &Path,
        work: &Path,
        running: usize,
    ) -> Result<Self, SetupError> {
        let at = |name: &str| -> Result<PathBuf, SetupError> {
            let path = directory.join(name);
            std::fs::create_dir_all(&path)?;
            Ok(path.canonicalize()?)
        };
        let store = place.open()?;
        let worktrees = directory.join("worktrees");
        let runtime = Runtime::new(rig::ports(model, Arc::clone(&store), worktrees)?);
        let cwd = work.canonicalize()?;
        let mut policy = Policy::default();
        let source = Source {
            name: "the bench".into(),
            root: cwd.clone(),
            cwd: cwd.clone(),
            home: None,
        };
        policy.add(
            &source,
            &RuleList {
                allow: vec!["Bash(echo *)".into()],
                ..RuleList::default()
            },
        )?;
        let spill = at("home/spill")?;
        let tools = posse_tools::all(ToolsConfig {
            reach: Reach::Public,
            background: true,
            processes: SystemProcesses::new(guardian()?, None, Vec::new()),
            gate: None,
        });
        let setup = Setup {
            policy: Arc::new(policy),
            limits: Limits {
                max_tokens: 64_000,
                ..Limits::default()
            },
            spawning: Spawning {
                types: Arc::new(built_in().into()),
                background: Background::Asked,
                running,
                // Members that only talk are what some measure.
                teams: Teaming {
                    message_notice: u32::MAX,
                    message_limit: u32::MAX,
                    ..Teaming::default()
                },
                ..rig::spawning()
            },
            ..Setup::new(tools, Workspace::new(cwd, spill))
        };
        Ok(Self {
            runtime,
            store,
            setup,
            directory: directory.to_owned(),
        })
    }

    /// The directory of its files.
    pub fn home(&self) -> PathBuf {
        self.directory.join("home")
    }

    /// The directory of its worktrees.
    pub fn worktrees(&self) -> PathBuf {
        self.directory.join("worktrees")
    }

    /// Resumes a session that another process has left.
    pub async fn resumed(&self, id: &str) -> Result<AgentRecord, SetupError> {
        Ok(AgentRecord(
            self.runtime
                .resume(id.parse()?, None, self.setup.clone())
                .await?,
        ))
    }

    /// Starts a session without prompts.
    pub fn session(&self) -> AgentRecord {
        self.session_in(PermissionMode::Default)
    }

    /// The same in another mode.
    pub fn session_in(&self, mode: PermissionMode) -> AgentRecord {
        let profile = AgentProfile {
            mode,
            ..AgentProfile::new("claude-opus-5", "You work on code. ".repeat(200))
        };
        AgentRecord(self.runtime.start(&profile, self.setup.clone()))
    }
}

/// The model at `url`.
pub fn model(url: &str) -> Result<Arc<dyn Model>, SetupError> {
    Ok(Arc::new(scripted::anthropic(
        url,
        Arc::new(SystemClock::default()),
        RetryPolicy::default(),
    )?))
}

/// The posse program beside this one.
pub fn posse() -> Result<PathBuf, SetupError> {
    let own = std::env::current_exe()?;
    Ok(own
        .parent()
        .ok_or("this program lies nowhere")?
        .join("posse"))
}

/// The program that ends commands of a dead posse, if it was built too.
fn guardian() -> Result<Option<Watchdog>, SetupError> {
    let posse = posse()?;
    Ok(posse.is_file().then(|| Watchdog::new(posse)))
}

/// The main agent of a session.
pub struct AgentRecord(pub Agent);

impl AgentRecord {
    /// Its id, as the server sees it.
    pub fn id(&self) -> String {
        self.0.id.to_string()
    }

    /// Sends it a prompt.
    pub async fn say(&self, text: &str) -> Result<(), SetupError> {
        Ok(self.0.handle.send(prompt(text)).await?)
    }

    /// Returns the next event.
    pub async fn event(&mut self) -> Result<Event, SetupError> {
        self.0
            .events
            .recv()
            .await
            .ok_or_else(|| "the session ended without a word".into())
    }

    /// Reads events until the run has completed.
    pub async fn end(&mut self) -> Result<RunEnd, SetupError> {
        loop {
            if let EventKind::Ended(end) = self.event().await?.kind {
                return match end.outcome {
                    Outcome::Completed => Ok(*end),
                    other => Err(format!("{other:?}").into()),
                };
            }
        }
    }
}
