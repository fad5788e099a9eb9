//! How commands are confined: the key `sandbox`. It is read only from posse's own files. A
//! repository may only tighten: hide more, and require a sandbox.

use std::path::{Path, PathBuf};

use posse_port::confinement::Limits;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Layer, LayerAuthor};
use crate::config::environment;
use crate::error::SettingsError;

/// How many processes and threads a command may have at once, unless settings say otherwise.
const PROCESSES: u64 = 4096;
/// Bytes in a megabyte of `limits.memoryMb`.
const MEGABYTE: u64 = 1 << 20;

/// Whether commands are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SandboxUse {
    /// As well as the machine can.
    #[default]
    Auto,
    /// Else they do not run.
    Required,
    /// Not at all.
    Off,
}

impl SandboxUse {
    fn of_word(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "required" => Some(Self::Required),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for SandboxUse {
    /// Other programs write `true` and `false`.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        let read = match &value {
            Value::Bool(true) => Some(Self::Auto),
            Value::Bool(false) => Some(Self::Off),
            Value::String(word) => Self::of_word(word),
            _ => None,
        };
        let wrong = || format!("sandbox.enabled is {value}, and none of {WORDS}");
        read.ok_or_else(|| serde::de::Error::custom(wrong()))
    }
}

/// The words for whether commands are confined.
const WORDS: &str = "auto, required and off";

/// The effective settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SandboxSettings {
    pub(crate) enabled: SandboxUse,
    /// Whether people are asked about commands although the sandbox holds them.
    pub(crate) asks: bool,
    /// Directories that commands may write to beside the workspace.
    pub(crate) write: Vec<PathBuf>,
    /// Paths that commands cannot read.
    pub(crate) hide: Vec<PathBuf>,
    pub(crate) limits: Limits,
    /// Whether no command may run outside.
    pub(crate) never_outside: bool,
}

/// The keys of `sandbox`.
pub(super) const KEYS: [&str; 8] = [
    "enabled",
    "autoAllow",
    "write",
    "hide",
    "hosts",
    "limits",
    "outside",
    "allowOutside",
];
/// The keys of its `limits`.
pub(super) const LIMIT_KEYS: [&str; 2] = ["processes", "memoryMb"];

/// The content of the key `sandbox` in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SandboxFile {
    enabled: Option<SandboxUse>,
    auto_allow: Option<bool>,
    write: Vec<String>,
    hide: Vec<String>,
    /// Hosts that commands may connect to, as in rules.
    pub(super) hosts: Vec<String>,
    limits: LimitsFile,
    /// Commands that run outside, as in rules.
    pub(super) outside: Vec<String>,
    allow_outside: Option<bool>,
}

/// The content of `limits`.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LimitsFile {
    processes: Option<u64>,
    memory_mb: Option<u64>,
}

/// The variable that says whether commands are confined, for one process.
const VARIABLE: &str = "POSSE_SANDBOX";

/// Returns what the environment says; an error if that is none of the words.
pub(crate) fn of_environment() -> Result<Option<SandboxUse>, SettingsError> {
    let Some(word) = environment::variable(VARIABLE) else {
        return Ok(None);
    };
    let wrong = || SettingsError::Wrong {
        path: VARIABLE.into(),
        why: format!("`{word}` is none of {WORDS}"),
    };
    SandboxUse::of_word(&word).ok_or_else(wrong).map(Some)
}

impl SandboxFile {
    /// Returns the keys that a repository's file sets and that are for the user to decide.
    pub(super) fn beyond(&self) -> Vec<String> {
        let asked = [
            self.enabled.is_some_and(|it| it != SandboxUse::Required),
            self.auto_allow.is_some(),
            !self.write.is_empty(),
            false,
            !self.hosts.is_empty(),
            self.limits.processes.is_some() || self.limits.memory_mb.is_some(),
            !self.outside.is_empty(),
            self.allow_outside == Some(true),
        ];
        let keys = KEYS.iter().zip(asked).filter(|(_, asked)| *asked);
        keys.map(|(key, _)| (*key).to_owned()).collect()
    }
}

/// Merges the layers: the administrator, then the environment, then the user; and what only
/// tightens, of all of them.
pub(super) fn settle(
    layers: &[Layer],
    home: Option<&Path>,
    of_environment: Option<SandboxUse>,
) -> SandboxSettings {
    let is_required = |layer: &Layer| layer.content.sandbox.enabled == Some(SandboxUse::Required);
    let of_repository = |layer: &&Layer| layer.trust == LayerAuthor::Repository;
    let managed = super::said(layers, LayerAuthor::Managed, |file| file.sandbox.enabled);
    let own = managed
        .or(of_environment)
        .or_else(|| super::said(layers, LayerAuthor::User, |file| file.sandbox.enabled))
        .unwrap_or_default();
    let enabled = match layers.iter().filter(of_repository).any(is_required) {
        true => SandboxUse::Required,
        false => own,
    };
    let paths = |layer: &Layer, paths: &[String]| -> Vec<PathBuf> {
        let path = |path: &String| match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => layer.root.join(path),
        };
        let resolved = |path: PathBuf| path.canonicalize().unwrap_or(path);
        paths.iter().map(path).map(resolved).collect()
    };
    let write = layers.iter().filter(|layer| !of_repository(layer));
    let processes = super::own(layers, |file| file.sandbox.limits.processes);
    let memory = super::own(layers, |file| file.sandbox.limits.memory_mb);
    SandboxSettings {
        enabled,
        asks: super::own(layers, |file| file.sandbox.auto_allow) == Some(false),
        write: write
            .flat_map(|layer| paths(layer, &layer.content.sandbox.write))
            .collect(),
        hide: layers
            .iter()
            .flat_map(|layer| paths(layer, &layer.content.sandbox.hide))
            .collect(),
        limits: Limits {
            processes: Some(processes.unwrap_or(PROCESSES)),
            memory: memory.map(|megabytes| megabytes.saturating_mul(MEGABYTE)),
            file_size: None,
        },
        never_outside: layers
            .iter()
            .any(|layer| layer.content.sandbox.allow_outside == Some(false)),
    }
}
