//! `posse mcp`.

mod add;
mod add_json;
mod call;
mod check;
mod file;
mod get;
mod list;
mod login;
mod logout;
mod reach;
mod remove;
mod serve;
mod sign_in_target;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use posse_port::closest;
use posse_runtime::definition::server::{DeclaredServer, ServerAdmission, ServerSet, ServerSource};

use crate::config::environment;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::{FlagSettings, Settings};
use crate::definitions::Remark;
use crate::definitions::servers::{LoadedServers, ServerFlags, ServerSources};
use crate::error::Advised;
use crate::output::{say, tame};

/// Declare MCP servers, show those that are declared here, and be one.
#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct McpCommand {
    #[command(subcommand)]
    command: McpSubcommand,
}

#[derive(clap::Subcommand)]
enum McpSubcommand {
    Add(add::AddServer),
    AddJson(add_json::AddJsonServer),
    List(list::ListServers),
    Get(get::GetServer),
    Remove(remove::RemoveServer),
    Check(check::CheckServers),
    Call(call::CallServer),
    Serve(Box<serve::ServeMcp>),
    Login(login::LoginServer),
    Logout(logout::LogoutServer),
}

impl McpCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            McpSubcommand::Add(command) => command.run(),
            McpSubcommand::AddJson(command) => command.run(),
            McpSubcommand::List(command) => command.run(),
            McpSubcommand::Get(command) => command.run(),
            McpSubcommand::Remove(command) => command.run(),
            McpSubcommand::Check(command) => command.run(),
            McpSubcommand::Call(command) => command.run(),
            McpSubcommand::Serve(command) => command.run(),
            McpSubcommand::Login(command) => command.run(),
            McpSubcommand::Logout(command) => command.run(),
        }
    }
}

/// Whom a server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerScope {
    /// You, in this project.
    Local,
    /// You, in all projects.
    User,
    /// Everybody who works on this project: `.mcp.json`.
    Project,
}

impl ServerScope {
    fn source(self) -> ServerSource {
        match self {
            Self::Local => ServerSource::Local,
            Self::User => ServerSource::User,
            Self::Project => ServerSource::Project,
        }
    }

    /// Returns the scope of a server; none for one that no command changes.
    fn of(server: &DeclaredServer) -> Option<Self> {
        let all = [Self::Local, Self::User, Self::Project];
        all.into_iter()
            .find(|scope| scope.source() == server.origin.source)
    }

    fn word(self) -> &'static str {
        self.source().as_str()
    }
}

/// The servers of a directory.
struct LocalServers {
    cwd: PathBuf,
    settings: Settings,
    set: ServerSet,
    remarks: Vec<Remark>,
}

impl LocalServers {
    /// Reads what an agent would read here.
    fn here() -> anyhow::Result<Self> {
        let cwd = environment::working_directory()?;
        let places = SearchPaths::at(&cwd);
        let settings = Settings::load(&places, FlagSettings::default())?;
        let sources = ServerSources {
            places: &places,
            settings: &settings.servers,
            flags: &ServerFlags::default(),
            environment: environment::texts(),
        };
        let LoadedServers { set, remarks } = sources.load();
        Ok(Self {
            cwd,
            settings,
            set,
            remarks,
        })
    }

    /// Says what is wrong.
    fn tell(&self) {
        for remark in &self.remarks {
            say(&format!("warning: {}", remark.in_a_line(&self.cwd)));
        }
    }

    /// Returns all servers: those that count, by name, then those that are overridden.
    fn all(&self) -> impl Iterator<Item = (&DeclaredServer, ServerStanding)> {
        let known = self.set.all().map(|server| {
            let standing = match server.admission {
                ServerAdmission::Admitted => ServerStanding::Active,
                ServerAdmission::Waits { .. } => ServerStanding::Waits,
                ServerAdmission::Refused { .. } => ServerStanding::Refused,
            };
            (&**server, standing)
        });
        let overridden = self.set.overridden().iter();
        known.chain(overridden.map(|server| (&**server, ServerStanding::Overridden)))
    }

    /// Returns those of this name, the one that counts first.
    fn named(&self, name: &str) -> anyhow::Result<Vec<(&DeclaredServer, ServerStanding)>> {
        let found: Vec<_> = self.all().filter(|(it, _)| it.name == name).collect();
        if found.is_empty() {
            let names: Vec<&str> = self.all().map(|(it, _)| it.name.as_str()).collect();
            let advice = match closest(name, &names) {
                Some(meant) => format!("did you mean {meant}? `posse mcp list` lists all"),
                None => "`posse mcp list` lists all".to_owned(),
            };
            anyhow::bail!(Advised {
                what: format!("there is no MCP server {} here", tame(name)),
                advice: tame(&advice),
            });
        }
        Ok(found)
    }
}

/// What becomes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerStanding {
    /// Agents can have it.
    Active,
    /// The person has not accepted it.
    Waits,
    /// Settings do not let it start.
    Refused,
    /// Another one of the same name counts.
    Overridden,
}

impl ServerStanding {
    fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Waits => "waits",
            Self::Refused => "refused",
            Self::Overridden => "overridden",
        }
    }
}

/// Returns why a server is not started, if that is so.
fn why(server: &DeclaredServer) -> Option<&str> {
    match &server.admission {
        ServerAdmission::Admitted => None,
        ServerAdmission::Waits { why } | ServerAdmission::Refused { why } => Some(why),
    }
}
