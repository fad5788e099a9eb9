//! What settings files say about MCP servers: which may be started, and which of a repository's are
//! meant.

use std::collections::BTreeSet;
use std::path::PathBuf;

use posse_runtime::definition::server::{ServerPattern, ServerPolicy};
use posse_runtime::hook::PathStep;
use serde_json::Value;

use super::{Layer, LayerAuthor};
use crate::config::json_text::line_of;

/// The keys of a settings file that are about servers.
pub(super) const KEYS: [&str; 5] = [
    "disabledMcpjsonServers",
    "enabledMcpjsonServers",
    "enableAllProjectMcpServers",
    "deniedMcpServers",
    "allowedMcpServers",
];
/// Those of them that only the administrator sets.
pub(super) const OF_ADMINISTRATOR: [&str; 1] = [KEYS[4]];
/// The one that a repository's file may set, too: it only tightens.
pub(super) const OF_REPOSITORY: &str = KEYS[0];

/// What a settings file says about servers.
#[derive(Debug, Default)]
pub(super) struct ServersFile {
    disabled: Vec<String>,
    enabled: Vec<String>,
    enables_all: bool,
    denied: Vec<ServerPattern>,
    allowed: Option<Vec<ServerPattern>>,
    /// What is wrong: the line, and what it is.
    wrong: Vec<(usize, String)>,
}

impl ServersFile {
    /// Reads the keys about servers of a file.
    pub(super) fn read(all: &Value, text: &str) -> Self {
        let mut file = Self::default();
        file.disabled = file.names(all, text, KEYS[0]);
        file.enabled = file.names(all, text, KEYS[1]);
        file.enables_all = all[KEYS[2]] == true;
        file.denied = file.patterns(all, text, KEYS[3]).unwrap_or_default();
        file.allowed = file.patterns(all, text, KEYS[4]);
        file
    }

    fn names(&mut self, all: &Value, text: &str, key: &str) -> Vec<String> {
        let name = |name: &Value| name.as_str().map(str::to_owned);
        let names = match &all[key] {
            Value::Null => Some(Vec::new()),
            Value::Array(names) => names.iter().map(name).collect(),
            _ => None,
        };
        names.unwrap_or_else(|| {
            let path = [PathStep::Key(key.to_owned())];
            let told = format!("`{key}` must be a list of names; it is ignored");
            self.wrong.push((line_of(text, &path), told));
            Vec::new()
        })
    }

    /// Returns the patterns of a list. One that is wrong means no server: it allows none, and of those
    /// that it should have denied the person is told.
    fn patterns(&mut self, all: &Value, text: &str, key: &str) -> Option<Vec<ServerPattern>> {
        let entries = match &all[key] {
            Value::Null => return None,
            Value::Array(entries) => entries,
            _ => {
                let path = [PathStep::Key(key.to_owned())];
                let told = format!("`{key}` must be a list; it names no server");
                self.wrong.push((line_of(text, &path), told));
                return Some(Vec::new());
            }
        };
        let mut patterns = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            match ServerPattern::read(entry) {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => {
                    let path = [PathStep::Key(key.to_owned()), PathStep::Index(index)];
                    let told = format!("`{key}`: {error}; it names no server");
                    self.wrong.push((line_of(text, &path), told));
                }
            }
        }
        Some(patterns)
    }
}

/// What all settings files together say about servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerSettings {
    /// Which servers may be started.
    pub(crate) policy: ServerPolicy,
    /// Names of a repository's servers that are switched off.
    pub(crate) disabled: BTreeSet<String>,
    /// Names of a repository's servers that the user has switched on for other programs.
    pub(crate) enabled: BTreeSet<String>,
    /// The user accepts all servers of the workspaces that they trust.
    pub(crate) enables_all: bool,
    remarks: Vec<(PathBuf, usize, String)>,
}

impl ServerSettings {
    /// Returns what is wrong, a line each.
    pub(super) fn warnings(&self) -> Vec<String> {
        let remarks = self.remarks.iter();
        let line = |(file, line, what): &(PathBuf, usize, String)| {
            format!("{}:{line}: {what}", file.display())
        };
        remarks.map(line).collect()
    }
}

/// Merges the layers, the highest first. A repository can switch its servers off, and not on.
pub(super) fn settle(layers: &[Layer]) -> ServerSettings {
    let mut settled = ServerSettings::default();
    for layer in layers {
        let file = &layer.content.servers;
        settled.disabled.extend(file.disabled.iter().cloned());
        if layer.trust == LayerAuthor::Repository {
            continue;
        }
        settled.enabled.extend(file.enabled.iter().cloned());
        settled.enables_all |= file.enables_all;
        let policy = &mut settled.policy;
        policy.denied.extend(file.denied.iter().cloned());
        if layer.trust == LayerAuthor::Managed {
            policy.allowed = policy.allowed.take().or_else(|| file.allowed.clone());
        }
        let wrong = file.wrong.iter();
        let wrong = wrong.map(|(line, what)| (layer.path.clone(), *line, what.clone()));
        settled.remarks.extend(wrong);
    }
    settled
}

#[cfg(test)]
mod tests {
    use crate::config::settings::tests::Disk;
    use crate::config::settings::{FlagSettings, Settings};

    #[test]
    fn a_repository_switches_its_servers_off_and_not_on() {
        let disk = Disk::new();
        let all = r#""enabledMcpjsonServers": ["a"], "enableAllProjectMcpServers": true,
            "deniedMcpServers": [{"serverName": "x"}], "allowedMcpServers": []"#;
        let of_repository = format!(r#"{{"disabledMcpjsonServers": ["b"], {all}}}"#);
        disk.write("repo/.claude/settings.json", &of_repository);
        let load = || Settings::load(&disk.places, FlagSettings::default()).unwrap();
        let servers = load().servers;
        assert!(servers.disabled.contains("b"));
        assert!(servers.enabled.is_empty() && !servers.enables_all);
        assert!(servers.policy.denied.is_empty() && servers.policy.allowed.is_none());
        // The user's own counts, but only the administrator says what is allowed at all.
        disk.write("home/.claude/settings.json", &format!("{{{all}}}"));
        let servers = load().servers;
        assert!(servers.enabled.contains("a") && servers.enables_all);
        assert!(servers.policy.denied.len() == 1 && servers.policy.allowed.is_none());
        disk.write("managed.json", &format!("{{{all}}}"));
        assert_eq!(load().servers.policy.allowed, Some(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let disk = Disk::new();
        let user =
            "{\n\"disabledMcpjsonServers\": \"a\",\n\"deniedMcpServers\": [\n{\"name\": \"x\"}]}";
        disk.write("home/.claude/settings.json", user);
        let settings = Settings::load(&disk.places, FlagSettings::default()).unwrap();
        for told in [
            "settings.json:2: `disabledMcpjsonServers` must be a list of names; it is ignored",
            "settings.json:4: `deniedMcpServers`: an entry must be an object with one of \
             `serverName` (a text), `serverCommand` (a list of texts) and `serverUrl` (a text); it \
             names no server",
        ] {
            let told = |warning: &&String| warning.ends_with(told);
            assert!(
                settings.warnings.iter().any(|it| told(&it)),
                "{:?}",
                settings.warnings
            );
        }
    }
}
