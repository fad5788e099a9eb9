//! MCP servers as people declare them: entries of files, flags and front matter, which of several with
//! the same name counts, and what an entry comes to for an agent. Pure.

mod entry;
mod expand;
mod policy;
mod problem;
mod secret;
mod set;
mod sign_in;
#[cfg(test)]
mod tests;
mod tool_names;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posse_port::servers::SignInEntry;
use serde_json::{Map, Value, json};

pub use crate::definition::server::entry::{
    ReadServers, ServerFile, ServerRemark, is_name, read, read_entry,
};
pub use crate::definition::server::expand::{ResolvedServer, ServerVariables};
pub use crate::definition::server::policy::{PatternError, ServerPattern, ServerPolicy};
pub use crate::definition::server::problem::ServerProblem;
pub use crate::definition::server::secret::is_secret_name;
pub use crate::definition::server::set::ServerSet;
pub(crate) use crate::definition::server::tool_names::{ToolNames, tool_name};

/// Who declares a server, highest precedence first: of several with the same name, the whole entry of
/// the first one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerSource {
    /// The administrator.
    Managed,
    /// `--mcp-config`.
    Flag,
    /// The user, for one project.
    Local,
    /// The repository, in `.mcp.json`.
    Project,
    /// The user, for all projects.
    User,
    /// A plugin.
    Plugin,
    /// The front matter of an agent type. It is for agents of the type only, and takes part in no order.
    Agent,
}

impl ServerSource {
    /// Returns the source in the word that hooks and other programs know.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Flag => "dynamic",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
            Self::Agent => "agent",
        }
    }
}

/// Where a server is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOrigin {
    /// By whom.
    pub source: ServerSource,
    /// The file, or the flag.
    pub file: PathBuf,
    /// The line, counted from 1, if it is known.
    pub line: Option<usize>,
    /// True if the repository declares it. Such a program runs in the sandbox, without variables whose
    /// names tell of a secret, unless the entry names them.
    pub of_repository: bool,
}

/// How a declared server is reached. Variables are not replaced yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredTransport {
    /// A program that is started.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables.
        env: Vec<(String, String)>,
    },
    /// Streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of each request.
        headers: Vec<(String, String)>,
        /// What is said about signing in.
        sign_in: SignInEntry,
    },
}

/// Whether a server may be started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerAdmission {
    /// It may.
    #[default]
    Admitted,
    /// The person has not accepted it as it is.
    Waits {
        /// Why.
        why: String,
    },
    /// Settings do not let it.
    Refused {
        /// Why.
        why: String,
    },
}

/// A server that somebody declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredServer {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub transport: DeclaredTransport,
    /// How long a call may take; none for the default.
    pub call_limit: Option<Duration>,
    /// True if its tools are known from the beginning, instead of being looked for.
    pub always_load: bool,
    /// False if each agent needs one of its own.
    pub is_shared: bool,
    /// Where it is declared.
    pub origin: ServerOrigin,
    /// Whether it may be started.
    pub admission: ServerAdmission,
}

impl DeclaredServer {
    /// Returns true if nothing keeps it from being started.
    pub fn is_admitted(&self) -> bool {
        self.admission == ServerAdmission::Admitted
    }

    /// Returns what it runs or where it is, before variables are replaced. For people.
    pub fn title(&self) -> String {
        match &self.transport {
            DeclaredTransport::Program { command, args, .. } => {
                let words = [command].into_iter().chain(args);
                words.map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            DeclaredTransport::Http { url, .. } => url.clone(),
        }
    }

    /// Returns the kind of its transport, as entries name it.
    pub fn kind(&self) -> &'static str {
        match self.transport {
            DeclaredTransport::Program { .. } => "stdio",
            DeclaredTransport::Http { .. } => "http",
        }
    }

    /// Returns the entry, as it would be written in a file.
    pub fn entry(&self) -> Value {
        let pairs = |pairs: &[(String, String)]| {
            let pairs = pairs.iter();
            let pairs = pairs.map(|(name, value)| (name.clone(), Value::from(value.clone())));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        let mut entry = match &self.transport {
            DeclaredTransport::Program { command, args, env } => json!({
                "type": self.kind(), "command": command, "args": args, "env": pairs(env),
            }),
            DeclaredTransport::Http { url, headers, .. } => json!({
                "type": self.kind(), "url": url, "headers": pairs(headers),
            }),
        };
        if let DeclaredTransport::Http { sign_in, .. } = &self.transport
            && let Some(sign_in) = sign_in::as_written(sign_in)
        {
            entry["oauth"] = sign_in;
        }
        if let Some(limit) = self.call_limit {
            let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            entry["timeout"] = json!(limit);
        }
        if self.always_load {
            entry["alwaysLoad"] = json!(true);
        }
        if !self.is_shared {
            entry["shared"] = json!(false);
        }
        entry
    }

    /// Returns what a person accepts of it: all that it does, before variables are replaced. Two
    /// entries that do the same have the same text, however they are written.
    pub fn content(&self) -> String {
        let mut entry = self.entry();
        let sorted = ["env", "headers"];
        for key in sorted {
            if let Some(Value::Object(pairs)) = entry.get_mut(key) {
                pairs.sort_keys();
            }
        }
        json!([self.name, entry]).to_string()
    }
}

/// A server that an agent type has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentServer {
    /// One that is declared elsewhere, by its name.
    Named(String),
    /// One of its own.
    Own(Arc<DeclaredServer>),
}

impl AgentServer {
    /// Returns its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Own(server) => &server.name,
        }
    }

    /// Returns it as it is written in front matter.
    pub fn as_written(&self) -> Value {
        match self {
            Self::Named(name) => json!(name),
            Self::Own(server) => json!({ server.name.as_str(): server.entry() }),
        }
    }

    /// Returns the same server, declared in this file.
    #[must_use]
    pub fn declared_in(self, file: PathBuf, line: Option<usize>, of_repository: bool) -> Self {
        let Self::Own(server) = self else { return self };
        let origin = ServerOrigin {
            source: ServerSource::Agent,
            file,
            line,
            of_repository,
        };
        Self::Own(Arc::new(DeclaredServer {
            origin,
            ..Arc::unwrap_or_clone(server)
        }))
    }
}
