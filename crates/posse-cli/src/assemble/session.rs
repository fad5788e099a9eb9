//! The wiring of a session: which store, which tools, which settings. One small place to plug them in.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::Context;
use posse_permission::Policy;
use posse_port::store::Store;
use posse_port::tool::Toolbox;
use posse_protocol::{AgentId, PermissionMode};
use posse_store::{Postgres, Sqlite};
use posse_tools::{Guardian, Means, Reach};

use crate::commands::guard;
use crate::config::environment::{self, posse_home};
use crate::config::settings::Places;
pub(crate) use crate::config::settings::agents::{AgentFlags, ImplicitFork};
pub(crate) use crate::config::settings::{FlagSettings, Settings};
use crate::config::store::{self, Meant, Place, Server, StoreArgs};
use crate::definitions::skills::SkillSources;
use crate::definitions::teams::TeamSources;
use crate::definitions::{Given, Sources, instructions};
use crate::error::Advised;

/// What a front end can say of a session before anything has happened in it.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The session, which is its root agent.
    pub(crate) session: AgentId,
    /// The command that goes on with it, without its words.
    pub(crate) again: String,
    /// The model's name.
    pub(crate) model: String,
    /// Where the agent works.
    pub(crate) cwd: PathBuf,
    /// The names of its tools.
    pub(crate) tools: Vec<String>,
    /// The types of agents that it can start.
    pub(crate) agents: Vec<String>,
    /// The skills that its model can load.
    pub(crate) skills: Vec<String>,
    /// The commands that a person can call.
    pub(crate) commands: Vec<String>,
    /// The mode it starts in.
    pub(crate) mode: PermissionMode,
    /// Where the key comes from; none if there is none.
    pub(crate) key_source: Option<&'static str>,
    /// How often a model call is tried again.
    pub(crate) retries: u32,
}

/// As much of an id as tells it from any other: the millisecond, and some chance.
pub(crate) fn short(id: AgentId) -> String {
    let id = id.to_string();
    id.get(..18).unwrap_or(&id).to_owned()
}

/// Opens the store that is meant, and makes it if it is missing.
pub(crate) fn open_store(store: &StoreArgs) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Opened::at(&meant_store(store)?.place)?.store)
}

/// A store that is open.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The same, if it is a file: whoever stops in its turn to write holds up all others there.
    pub(crate) file: Option<Arc<Sqlite>>,
}

impl Opened {
    /// Opens the store at a place, and makes it if it is missing.
    pub(crate) fn at(place: &Place) -> anyhow::Result<Self> {
        match place {
            Place::File(path) => {
                let file = Arc::new(Sqlite::open(path)?);
                Ok(Self {
                    store: file.clone(),
                    file: Some(file),
                })
            }
            Place::Server(server) => Ok(Self {
                store: open_server(server)?,
                file: None,
            }),
        }
    }
}

/// Opens the store that is meant without making any: one that nobody has named is empty until it is there.
pub(crate) fn look_into_store(store: &StoreArgs) -> anyhow::Result<Arc<dyn Store>> {
    let meant = meant_store(store)?;
    match &meant.place {
        Place::File(path) if !meant.named && !path.exists() => Ok(Arc::new(Sqlite::in_memory()?)),
        _ => Ok(Opened::at(&there(meant.place)?)?.store),
    }
}

/// A store that is there, as far as that can be seen from here.
pub(crate) fn there(place: Place) -> Result<Place, Advised> {
    let path = match &place {
        Place::File(path) if !path.exists() => path,
        Place::File(_) | Place::Server(_) => return Ok(place),
    };
    Err(Advised {
        what: format!("there is no store {} yet", path.display()),
        advice: "--store sqlite:PATH names another; `posse -p` and `posse team import` make one"
            .into(),
    })
}

/// The store that is meant; a server with the password that it wants.
pub(crate) fn meant_store(store: &StoreArgs) -> anyhow::Result<Meant> {
    // A store is chosen by the user, never by what lies in a directory.
    let Meant { place, named } = store::place(store.store.as_ref(), &places(Path::new("/")))?;
    let place = match place {
        Place::File(path) if path.is_dir() => anyhow::bail!(Advised {
            what: format!("{} is a directory", path.display()),
            advice: format!(
                "a store is a file: sqlite:{}",
                path.join("posse.db").display()
            ),
        }),
        Place::File(path) => Place::File(path),
        Place::Server(server) => {
            Place::Server(server.or_password(environment::variable("PGPASSWORD")))
        }
    };
    Ok(Meant { place, named })
}

/// A command that means the same store as this one: what only a flag has said must be said again. A password is
/// not: `PGPASSWORD` says it.
pub(crate) fn in_store(command: String, store: &StoreArgs) -> String {
    match &store.store {
        Some(place) => format!("{command} --store {}", quoted(&place.address())),
        None => command,
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:@,%+=".contains(c);
    if word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn open_server(server: &Server) -> anyhow::Result<Arc<dyn Store>> {
    Ok(Arc::new(Postgres::open(&server.whole())?))
}

/// Where tools put what is too long to be told.
pub(crate) fn spill() -> anyhow::Result<PathBuf> {
    let home = home()?;
    // The store may be elsewhere, and this be the first that is kept here.
    std::fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
    let spill = home
        .canonicalize()
        .with_context(|| format!("cannot find {}", home.display()))?
        .join("spill");
    let old = spill.clone();
    // Nobody waits for it; what it does not get to do, the next run does.
    let _ = std::thread::Builder::new()
        .name("posse-sweep".into())
        .spawn(move || sweep(&old, KEPT));
    Ok(spill)
}

/// Where worktrees of agents are.
pub(crate) fn worktrees() -> anyhow::Result<PathBuf> {
    Ok(home()?.join("worktrees"))
}

/// How long a session's spilt output is kept after it was last added to.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Removes what has not been touched for so long.
fn sweep(spill: &Path, kept: Duration) {
    for session in std::fs::read_dir(spill).into_iter().flatten().flatten() {
        let touched = session.metadata().and_then(|about| about.modified()).ok();
        if touched
            .and_then(|at| at.elapsed().ok())
            .is_some_and(|age| age > kept)
        {
            // If it cannot be removed now, it may be later.
            let _ = std::fs::remove_dir_all(session.path());
        }
    }
}

/// The one of this process: all agents' commands are its care.
static GUARDIAN: LazyLock<Guardian> = LazyLock::new(|| {
    // If it is not known, the first command says so.
    let posse = std::env::current_exe().unwrap_or_else(|_| "posse".into());
    Guardian::new(posse, [guard::NAME])
});

/// The tools of an agent, without those that the rules forbid altogether.
pub(crate) fn tools(policy: &Policy) -> Toolbox {
    let mut tools = all_tools();
    tools.retain(|tool| !policy.forbids_tool(tool));
    tools
}

/// Every tool that there is.
pub(crate) fn all_tools() -> Toolbox {
    posse_tools::all(Means {
        reach: Reach::Public,
        background: true,
        guardian: Some(GUARDIAN.clone()),
    })
}

/// The settings that hold in `cwd`, with what flags say.
pub(crate) fn settings(cwd: &Path, flags: FlagSettings) -> anyhow::Result<Settings> {
    Ok(Settings::load(&places(cwd), flags)?)
}

/// What is written down for agents in `cwd` and above, as one block.
pub(crate) fn instructions(cwd: &Path) -> Option<String> {
    instructions::render(&instructions::gather(&places(cwd)))
}

/// Where types of agents are defined for who works in `cwd`.
pub(crate) fn definitions(cwd: &Path, given: Given) -> Sources {
    Sources::new(places(cwd), given)
}

/// Where skills and commands are for who works in `cwd`.
pub(crate) fn skills(cwd: &Path) -> SkillSources {
    SkillSources::new(places(cwd))
}

/// Where teams are declared for who works in `cwd`.
pub(crate) fn teams(cwd: &Path, given: Given) -> TeamSources {
    let types = definitions(cwd, given)
        .load()
        .definitions()
        .into_iter()
        .map(|it| it.name);
    TeamSources::new(places(cwd), types.collect())
}

fn places(cwd: &Path) -> Places {
    Places {
        managed: PathBuf::from("/etc/posse/settings.json"),
        posse_home: posse_home(),
        home: environment::home(),
        cwd: cwd.to_owned(),
    }
}

fn home() -> anyhow::Result<PathBuf> {
    Ok(posse_home().ok_or_else(|| Advised {
        what: "there is no home directory".into(),
        advice: "set POSSE_HOME to a directory of yours".into(),
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_output_is_swept_away_and_new_is_not() {
        let spill = std::env::temp_dir().join(format!("posse-test-{}", uuid::Uuid::now_v7()));
        let make = |name: &str| std::fs::create_dir_all(spill.join(name)).unwrap();
        make("one");
        make("two");
        sweep(&spill, Duration::from_secs(3600));
        assert_eq!(std::fs::read_dir(&spill).unwrap().count(), 2);
        let old = std::time::SystemTime::now() - Duration::from_secs(7200);
        std::fs::File::open(spill.join("one"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        sweep(&spill, Duration::from_secs(3600));
        let left: Vec<_> = std::fs::read_dir(&spill)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["two"]);
        std::fs::remove_dir_all(&spill).unwrap();
    }
}
