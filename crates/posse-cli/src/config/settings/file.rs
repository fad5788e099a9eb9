//! One settings file. Keys at the top that posse does not use are reported once: other programs keep
//! theirs in the same file.

use std::path::{Path, PathBuf};

use posse_protocol::PermissionMode;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::account::{self, AccountFile};
use super::agents::{self, AgentsFile};
use super::foreign::{self, Foreign};
use super::hooks::{self, HooksFile};
use super::sandbox::{self, SandboxFile};
use super::servers::{self, ServersFile};
use super::teams::{self, TeamsFile};
use super::ui::{self, UiSettings};
use super::variables::VariablesFile;
use crate::config::json_text::without_comments;
use crate::config::text_file;
use crate::config::trust::FileKind;
use crate::config::trust::fingerprint::Fingerprint;
use crate::config::unsupported::fingerprint;
use crate::error::SettingsError;
use posse_port::closest;

/// The keys of a settings file that posse reads.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SettingsFile {
    #[serde(default)]
    pub(super) permissions: Permissions,
    pub(super) model: Option<String>,
    /// Variables of commands.
    #[serde(default)]
    pub(super) env: VariablesFile,
    /// The store: `sqlite:PATH`, or a server's URL.
    #[serde(skip)]
    pub(super) store: Option<String>,
    /// Time that the store keeps rows of feeds.
    #[serde(skip)]
    pub(super) feed_hours: Option<std::num::NonZeroU32>,
    /// Size of a prompt in tokens at which the history is replaced by a summary.
    #[serde(skip)]
    pub(super) compact_at: Option<std::num::NonZeroU64>,
    /// What the provider's account may be used for.
    #[serde(skip)]
    pub(super) account: AccountFile,
    /// How agents may start others.
    #[serde(skip)]
    pub(super) agents: AgentsFile,
    /// How teams work.
    #[serde(skip)]
    pub(super) teams: TeamsFile,
    /// Its hooks.
    #[serde(skip)]
    pub(super) hooks: HooksFile,
    /// What it says about MCP servers.
    #[serde(skip)]
    pub(super) servers: ServersFile,
    /// How commands are confined.
    #[serde(skip)]
    pub(super) sandbox: SandboxFile,
    /// How posse looks.
    #[serde(skip)]
    pub(super) ui: UiSettings,
    /// Unknown keys inside posse's own parts: a typo there may leave a rule without effect.
    #[serde(skip)]
    pub(super) unknown: Vec<(&'static str, Vec<String>)>,
    /// What posse does not use.
    #[serde(skip)]
    pub(super) foreign: Foreign,
    /// Changes when the content does.
    #[serde(skip)]
    pub(super) fingerprint: u64,
    /// What a person's trust in the file is for.
    #[serde(skip)]
    pub(super) seen: Option<Fingerprint>,
}

/// The keys of `permissions`.
const KEYS: [&str; 6] = [
    "allow",
    "ask",
    "deny",
    "defaultMode",
    "additionalDirectories",
    "disableBypassPermissionsMode",
];

/// The content of the key `permissions`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Permissions {
    #[serde(default)]
    pub(super) allow: Vec<String>,
    #[serde(default)]
    pub(super) ask: Vec<String>,
    #[serde(default)]
    pub(super) deny: Vec<String>,
    /// As it is written: other programs have modes that posse does not have.
    #[serde(default, rename = "defaultMode")]
    mode_word: Option<String>,
    #[serde(default)]
    pub(super) additional_directories: Vec<String>,
    /// `"disable"` in other programs' files, `true` in posse's.
    #[serde(
        default,
        rename = "disableBypassPermissionsMode",
        deserialize_with = "switch"
    )]
    pub(super) disables_bypass: bool,
}

impl Permissions {
    /// Returns the mode. A word that posse does not know means `default`.
    pub(super) fn default_mode(&self) -> Option<PermissionMode> {
        let word = self.mode_word.as_deref()?;
        Some(word.parse().unwrap_or_default())
    }

    /// Returns the mode's word if posse does not know it.
    pub(super) fn unknown_mode(&self) -> Option<&str> {
        let is_unknown = |word: &&str| word.parse::<PermissionMode>().is_err();
        self.mode_word.as_deref().filter(is_unknown)
    }
}

impl SettingsFile {
    /// Counts what only the administrator sets among what is not used.
    pub(super) fn leave_out_managed_keys(&mut self) {
        for key in hooks::OF_ADMINISTRATOR
            .into_iter()
            .chain(servers::OF_ADMINISTRATOR)
        {
            let foreign = &mut self.foreign;
            if let Some(at) = foreign.used.iter().position(|used| used == key) {
                foreign.used.remove(at);
                let told = format!("{key} (managed settings set it)");
                foreign.unused.push(told);
            }
        }
    }

    /// Counts what only `settings.json` in posse's home sets among what is not used.
    pub(super) fn leave_out_home_keys(&mut self) {
        let mut leave = |key: &str, hint: &str| {
            self.foreign.used.retain(|used| used != key);
            self.foreign.unused.push(format!("{key} ({hint} sets it)"));
        };
        if self.store.take().is_some() {
            leave("store", "--store");
        }
        if self.feed_hours.take().is_some() {
            leave("feedHours", "settings.json in posse's home");
        }
        if !std::mem::take(&mut self.ui).keys().is_empty() {
            leave("ui", "settings.json in posse's home");
        }
    }
}

/// Returns the text of a file; `None` if it does not exist.
pub(super) type TextOf<'a> = &'a dyn Fn(&Path) -> Result<Option<String>, SettingsError>;

/// Parses the value of `--settings`: JSON, or the path of a file, which must exist.
pub(super) fn of_flag(
    value: &str,
    cwd: &Path,
    text_of: TextOf<'_>,
) -> Result<(PathBuf, SettingsFile), SettingsError> {
    if value.trim_start().starts_with('{') {
        let path = PathBuf::from("--settings");
        return parse(&path, value).map(|file| (path, file));
    }
    let path = cwd.join(value);
    let file = match parsed(&path, text_of)? {
        Some(file) => file,
        None if path.exists() => SettingsFile::default(),
        None => {
            return Err(SettingsError::Unreadable {
                path,
                source: std::io::ErrorKind::NotFound.into(),
            });
        }
    };
    Ok((path, file))
}

/// Reads a file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<SettingsFile>, SettingsError> {
    parsed(path, &text)
}

/// Returns the text of a file on the disk; `None` if it does not exist.
pub(super) fn text(path: &Path) -> Result<Option<String>, SettingsError> {
    text_file::read(path).map_err(|source| SettingsError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Parses a file with this text; `None` if it does not exist.
pub(super) fn parsed(
    path: &Path,
    text_of: TextOf<'_>,
) -> Result<Option<SettingsFile>, SettingsError> {
    let Some(text) = text_of(path)? else {
        return Ok(None);
    };
    if text.trim().is_empty() {
        return Ok(None);
    }
    parse(path, &text).map(Some)
}

/// Parses the content of a file.
fn parse(path: &Path, text: &str) -> Result<SettingsFile, SettingsError> {
    let wrong = |error: serde_json::Error| SettingsError::Wrong {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let plain = without_comments(text);
    let mut file: SettingsFile = serde_json::from_str(&plain).map_err(wrong)?;
    let all: Value = serde_json::from_str(&plain).map_err(wrong)?;
    let mut parts = vec![("permissions", &all["permissions"], &KEYS[..])];
    // In other programs' files these keys have another meaning.
    let is_own = !path
        .parent()
        .is_some_and(|directory| directory.ends_with(".claude"));
    file.foreign = foreign::read(&all, is_own);
    file.hooks = HooksFile::read(&all, &plain);
    file.servers = ServersFile::read(&all, &plain);
    file.fingerprint = fingerprint(path, text);
    file.seen = Some(Fingerprint::of(FileKind::Settings, text));
    if is_own {
        file.store = Option::deserialize(&all["store"]).map_err(wrong)?;
        file.feed_hours = Option::deserialize(&all["feedHours"]).map_err(wrong)?;
        file.compact_at = Option::deserialize(&all["compactAt"]).map_err(wrong)?;
        let ours = &all["account"];
        file.account = Option::deserialize(ours)
            .map_err(wrong)?
            .unwrap_or_default();
        parts.push(("account", ours, &account::KEYS));
        let ours = &all["agents"];
        file.agents = Option::deserialize(ours)
            .map_err(wrong)?
            .unwrap_or_default();
        parts.push(("agents", ours, &agents::KEYS));
        for part in ["budget", "subtreeBudget"] {
            parts.push((part, &ours[part], &agents::BUDGET_KEYS));
        }
        parts.push(("worktree", &ours["worktree"], &agents::WORKTREE_KEYS));
        let ours = &all["teams"];
        file.teams = Option::deserialize(ours)
            .map_err(wrong)?
            .unwrap_or_default();
        parts.push(("teams", ours, &teams::KEYS));
        let ours = &all["sandbox"];
        file.sandbox = Option::deserialize(ours)
            .map_err(wrong)?
            .unwrap_or_default();
        parts.push(("sandbox", ours, &sandbox::KEYS));
        parts.push(("limits", &ours["limits"], &sandbox::LIMIT_KEYS));
        let ours = &all["ui"];
        file.ui = Option::deserialize(ours)
            .map_err(wrong)?
            .unwrap_or_default();
        parts.push(("ui", ours, &ui::KEYS));
    }
    let unknown = parts
        .into_iter()
        .map(|(part, value, known)| (part, not_known(value, known)));
    file.unknown = unknown.filter(|(_, keys)| !keys.is_empty()).collect();
    Ok(file)
}

/// Returns the unknown keys of an object, with suggestions.
fn not_known(object: &Value, known: &[&str]) -> Vec<String> {
    let keys = object
        .as_object()
        .into_iter()
        .flat_map(|object| object.keys());
    let unknown = keys.filter(|key| !known.contains(&key.as_str()));
    let named = unknown.map(|key| match closest(key, known) {
        Some(meant) => format!("`{key}` (did you mean `{meant}`?)"),
        None => format!("`{key}`"),
    });
    named.collect()
}

/// Parses `true`, `false` or `"disable"`.
fn switch<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Switch {
        Plain(bool),
        Word(String),
    }
    match Switch::deserialize(from) {
        Ok(Switch::Plain(on)) => Ok(on),
        Ok(Switch::Word(word)) if word == "disable" => Ok(true),
        _ => Err(serde::de::Error::custom(
            "disableBypassPermissionsMode must be true, false or \"disable\"",
        )),
    }
}
