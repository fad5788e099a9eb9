//! MCP servers as people declare them: where entries are, and which of a repository's the person has
//! accepted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use posse_runtime::definition::server::{
    DeclaredServer, ServerAdmission, ServerFile, ServerRemark, ServerSet, ServerSource, read,
};
use posse_runtime::hook::PathStep;
use serde_json::Value;

use super::{Remark, Severity};
use crate::config::json_text::{line_of, without_comments};
use crate::config::search_paths::SearchPaths;
use crate::config::settings::servers::ServerSettings;
use crate::config::text_file;
use crate::config::trust::FileKind;
use crate::config::trust::fingerprint::Fingerprint;

/// The repository's file.
pub(crate) const OF_PROJECT: &str = ".mcp.json";
/// The user's file in their home directory, which belongs to other programs, too.
pub(crate) const OF_USER: &str = ".claude.json";
/// The administrator's file, beside their settings.
const OF_ADMINISTRATOR: &str = "managed-mcp.json";
/// The key of servers.
pub(crate) const SERVERS: &str = "mcpServers";
/// The key of what the user's file says about projects.
pub(crate) const PROJECTS: &str = "projects";
/// Maximum size of a repository's file in bytes.
const MOST: u64 = 1 << 20;

/// The servers of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerFlags {
    /// `--mcp-config`: JSON, or the paths of files.
    pub(crate) configs: Vec<String>,
    /// `--strict-mcp-config`: no others count, but the administrator's.
    pub(crate) is_strict: bool,
    /// `--channels`: servers whose messages become prompts.
    pub(crate) channels: Vec<String>,
}

/// All servers that are declared in a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoadedServers {
    pub(crate) set: ServerSet,
    /// What is wrong with files and entries.
    pub(crate) remarks: Vec<Remark>,
}

/// Where servers are looked for.
pub(crate) struct ServerSources<'a> {
    pub(crate) places: &'a SearchPaths,
    pub(crate) settings: &'a ServerSettings,
    pub(crate) flags: &'a ServerFlags,
    /// The variables that entries can name.
    pub(crate) environment: BTreeMap<String, String>,
}

impl ServerSources<'_> {
    /// Reads all entries.
    pub(crate) fn load(self) -> LoadedServers {
        let mut found = Found::default();
        let places = self.places;
        found.read_file(ServerSource::Managed, &managed(places), &[]);
        for config in &self.flags.configs {
            if config.trim_start().starts_with('{') {
                let path = PathBuf::from("--mcp-config");
                found.read_text(ServerSource::Flag, &path, config, &[]);
            } else {
                found.read_flag_file(&places.cwd.join(config));
            }
        }
        if !self.flags.is_strict {
            self.read_files(&mut found);
        }
        let admitted = found
            .servers
            .into_iter()
            .map(|server| self.admitted(server));
        let declared = admitted.collect();
        let policy = self.settings.policy.clone();
        let set = ServerSet::new(declared, policy, self.environment, &places.cwd)
            .with_channels(self.flags.channels.clone());
        let mut remarks = found.remarks;
        if !places.trust.is_trusted() {
            // Nothing is said about files that wait.
            let root = places.project();
            remarks.retain(|remark| !is_of_project(&remark.path, root));
        }
        remarks.extend(unset(&set, &places.cwd));
        LoadedServers { set, remarks }
    }

    /// Reads the files of the user and the repository.
    fn read_files(&self, found: &mut Found) {
        let places = self.places;
        let user = user_file(places);
        if let Some(user) = user.as_ref().filter(|_| places.sources.local) {
            for project in projects(places) {
                let below = [PathStep::Key(PROJECTS.into()), PathStep::Key(project)];
                found.read_file(ServerSource::Local, user, &below);
            }
        }
        if places.sources.project {
            // The nearest one counts.
            for directory in up_to_project(places) {
                found.read_file(ServerSource::Project, &directory.join(OF_PROJECT), &[]);
            }
        }
        if let Some(user) = user.as_ref().filter(|_| places.sources.user) {
            found.read_file(ServerSource::User, user, &[]);
        }
    }

    /// Returns a server with what the person and settings say about it.
    fn admitted(&self, server: DeclaredServer) -> DeclaredServer {
        if server.origin.source != ServerSource::Project {
            return server;
        }
        let (name, trust) = (&server.name, &self.places.trust);
        let path = approved_as(&server.origin.file, name);
        let print = Fingerprint::of(FileKind::Server, &server.content());
        let is_accepted = trust.admits(
            FileKind::Server,
            (&path, self.places.project()),
            Some(print),
        );
        let counts = is_accepted || (self.settings.enables_all && trust.is_trusted());
        let admission = if self.settings.disabled.contains(name) {
            ServerAdmission::Refused {
                why: "disabledMcpjsonServers of the settings names it".into(),
            }
        } else if counts {
            ServerAdmission::Admitted
        } else {
            let named = match self.settings.enabled.contains(name) {
                true => "; enabledMcpjsonServers names it, but a name can stand for anything",
                false => "",
            };
            ServerAdmission::Waits {
                why: format!("you have not accepted it as it is now (`posse trust`){named}"),
            }
        };
        DeclaredServer {
            admission,
            ..server
        }
    }
}

/// Returns what stands for a repository's server where the person's trust in files is kept.
pub(crate) fn approved_as(file: &Path, name: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(format!("#{name}"));
    path.into()
}

/// Returns the administrator's file.
fn managed(places: &SearchPaths) -> PathBuf {
    places.managed.with_file_name(OF_ADMINISTRATOR)
}

/// Returns the user's file.
pub(crate) fn user_file(places: &SearchPaths) -> Option<PathBuf> {
    places.home.as_ref().map(|home| home.join(OF_USER))
}

/// Returns the directories by which the user's file may know the project, the nearest one first.
pub(crate) fn projects(places: &SearchPaths) -> Vec<String> {
    let directories = up_to_project(places);
    let names = directories.iter().filter_map(|it| it.to_str());
    names.map(str::to_owned).collect()
}

/// Returns the working directory and those above it in the project.
fn up_to_project(places: &SearchPaths) -> Vec<PathBuf> {
    let project = places.project();
    let above = places.cwd.ancestors();
    let inside = above.take_while(|directory| directory.starts_with(project));
    inside.map(Path::to_owned).collect()
}

fn is_of_project(path: &Path, root: &Path) -> bool {
    path.starts_with(root) && path.ends_with(OF_PROJECT)
}

/// Returns what is told of variables that are not set.
fn unset(set: &ServerSet, cwd: &Path) -> Vec<Remark> {
    let remark = |server: &DeclaredServer| {
        let unset = set.resolve(server, cwd).unset;
        let names = unset.iter().map(|name| format!("${{{name}}}"));
        let names = names.collect::<Vec<_>>().join(", ");
        (!unset.is_empty()).then(|| Remark {
            weight: Severity::Warning,
            path: server.origin.file.clone(),
            line: server.origin.line,
            reason: format!(
                "the MCP server {}: not set, and without a default: {names}",
                server.name
            ),
        })
    };
    set.active().filter_map(|it| remark(it)).collect()
}

/// What was read so far.
#[derive(Default)]
struct Found {
    servers: Vec<DeclaredServer>,
    remarks: Vec<Remark>,
}

impl Found {
    /// Reads the servers of a file, below these keys. It need not be there.
    fn read_file(&mut self, source: ServerSource, path: &Path, below: &[PathStep]) {
        match text_of(source, path) {
            Ok(Some(text)) => self.read_text(source, path, &text, below),
            Ok(None) => {}
            Err(error) => self.wrong(path, None, format!("cannot be read: {error}")),
        }
    }

    /// Reads a file that the command line names.
    fn read_flag_file(&mut self, path: &Path) {
        match text_of(ServerSource::Flag, path) {
            Ok(Some(text)) => self.read_text(ServerSource::Flag, path, &text, &[]),
            Ok(None) => self.wrong(path, None, "--mcp-config: there is no such file".into()),
            Err(error) => self.wrong(path, None, format!("--mcp-config: {error}")),
        }
    }

    fn read_text(&mut self, source: ServerSource, path: &Path, text: &str, below: &[PathStep]) {
        if text.trim().is_empty() {
            return;
        }
        let plain = without_comments(text);
        let all: Value = match serde_json::from_str(&plain) {
            Ok(all) => all,
            Err(error) => return self.wrong(path, Some(error.line()), error.to_string()),
        };
        let mut value = &all;
        for step in below {
            value = match step {
                PathStep::Key(key) => &value[key.as_str()],
                PathStep::Index(index) => &value[*index],
            };
        }
        let file = ServerFile {
            source,
            path: path.to_owned(),
            of_repository: source == ServerSource::Project,
        };
        let found = read(&value[SERVERS], &file);
        let has_lines = path.is_absolute();
        let line = |path: &[PathStep]| {
            let servers = [PathStep::Key(SERVERS.into())];
            let path: Vec<PathStep> = [below, &servers, path].concat();
            has_lines.then(|| line_of(&plain, &path))
        };
        for mut server in found.servers {
            server.origin.line = line(&[PathStep::Key(server.name.clone())]);
            self.servers.push(server);
        }
        for ServerRemark { path: place, what } in found.remarks {
            let server = match place.first() {
                Some(PathStep::Key(name)) => format!("the MCP server {name}: "),
                _ => String::new(),
            };
            self.remarks.push(Remark {
                weight: match what.is_note() {
                    true => Severity::Warning,
                    false => Severity::Error,
                },
                path: path.to_owned(),
                line: line(&place),
                reason: format!("{server}{what}"),
            });
        }
    }

    fn wrong(&mut self, path: &Path, line: Option<usize>, reason: String) {
        self.remarks.push(Remark {
            weight: Severity::Error,
            path: path.to_owned(),
            line,
            reason,
        });
    }
}

/// Returns the text of a file; none if it does not exist.
fn text_of(source: ServerSource, path: &Path) -> std::io::Result<Option<String>> {
    let is_long = std::fs::metadata(path).is_ok_and(|about| about.len() > MOST);
    if source == ServerSource::Project && is_long {
        return Err(std::io::Error::other("it is too long"));
    }
    text_file::read(path)
}
