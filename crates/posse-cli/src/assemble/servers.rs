//! The MCP servers of a run: the flags that declare some, and what is told of those that do not start.

use std::sync::Arc;

use posse_port::servers::Servers;
use posse_runtime::definition::server::{ServerAdmission, ServerSet};
use posse_tools::{McpServers, SystemProcesses};

use super::profile_args::PROGRAMS;
use super::sign_in;
use crate::config::environment;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::Settings;
use crate::definitions::servers::{LoadedServers, ServerFlags, ServerSources};
use crate::definitions::shown;
use crate::output::{say, tame};

/// Number of warnings about servers that are shown.
const MOST_WARNINGS: usize = 5;

/// Flags about MCP servers.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ServerArgs {
    /// More MCP servers, as JSON or in a file: {"mcpServers": {…}}; can be repeated
    #[arg(long, value_name = "FILE or JSON", value_parser = super::config_value::json_or_file, help_heading = PROGRAMS, hide_short_help = true)]
    mcp_config: Vec<String>,
    /// Use only the MCP servers of --mcp-config and of the administrator
    #[arg(long, help_heading = PROGRAMS, hide_short_help = true)]
    strict_mcp_config: bool,
    /// Take what these MCP servers send unasked as prompts; can be repeated
    #[arg(long, value_name = "SERVER", value_delimiter = ',', help_heading = PROGRAMS, hide_short_help = true)]
    channels: Vec<String>,
}

impl ServerArgs {
    /// Returns what the flags say.
    pub(crate) fn flags(&self) -> ServerFlags {
        ServerFlags {
            configs: self.mcp_config.clone(),
            is_strict: self.strict_mcp_config,
            // Other programs write it so.
            channels: self
                .channels
                .iter()
                .map(|name| name.strip_prefix("server:").unwrap_or(name).to_owned())
                .collect(),
        }
    }
}

/// Returns what connects with servers. Programs are started by `processes`.
pub(crate) fn connector(processes: SystemProcesses) -> Arc<dyn Servers> {
    let processes = Arc::new(processes);
    Arc::new(match sign_in::directory() {
        Some(directory) => McpServers::with_sign_ins(processes, directory),
        None => McpServers::new(processes),
    })
}

/// Reads the servers of a session, and tells what is wrong with them.
pub(super) fn load(places: &SearchPaths, settings: &Settings, flags: &ServerFlags) -> ServerSet {
    let sources = ServerSources {
        places,
        settings: &settings.servers,
        flags,
        environment: environment::texts(),
    };
    let LoadedServers { set, remarks } = sources.load();
    let remarks = remarks.iter().map(|remark| remark.in_a_line(&places.cwd));
    let told: Vec<String> = remarks
        .chain(not_started(&set, places))
        .chain(no_channels(&set))
        .collect();
    for line in told.iter().take(MOST_WARNINGS) {
        say(&format!("warning: {line}"));
    }
    if let Some(more) = told.len().checked_sub(MOST_WARNINGS).filter(|it| *it > 0) {
        say(&format!(
            "warning: and {more} more about MCP servers: `posse mcp list` lists all"
        ));
    }
    set
}

/// Returns what is told of channels that are no servers.
fn no_channels(set: &ServerSet) -> Vec<String> {
    let missing = set
        .channels()
        .iter()
        .filter(|name| set.find(name).is_none());
    let told = missing.map(|name| tame(&format!("--channels: there is no MCP server {name} here")));
    told.collect()
}

/// Returns what is told of servers that are not started. In a workspace that nobody has trusted, those
/// of the repository are counted with its other files.
fn not_started(set: &ServerSet, places: &SearchPaths) -> Vec<String> {
    let told = set.all().filter_map(|server| {
        let why = match &server.admission {
            ServerAdmission::Admitted => return None,
            ServerAdmission::Waits { .. } if !places.trust.is_trusted() => return None,
            // The repository's own files or the person have switched it off.
            ServerAdmission::Refused { .. } if server.origin.of_repository => return None,
            ServerAdmission::Waits { why } | ServerAdmission::Refused { why } => why,
        };
        let file = shown(&server.origin.file, &places.cwd);
        Some(tame(&format!(
            "{file}: the MCP server {} is not started: {why}",
            server.name
        )))
    });
    told.collect()
}
