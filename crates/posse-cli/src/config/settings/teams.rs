//! How teams work: the key `teams`. It is read only from posse's own files, and only from the
//! user's and the administrator's, because it names programs to run.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use posse_runtime::definition::spawning::Teaming;
use posse_tools::{Place, Template};
use serde::{Deserialize, Deserializer};

use super::{Layer, LayerAuthor};

/// Default time a teammate may take to answer a shutdown request.
const DEADLINE: Duration = Duration::from_secs(60);

/// Where teammates run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Backend {
    /// In the process that starts them.
    #[default]
    InProcess,
    /// Each in a pane of the tmux that posse runs in.
    Tmux,
    /// Each in a pane opened by `teams.paneCommand`.
    Command,
    /// In any `posse worker` that takes them.
    Worker,
}

/// The effective settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TeamSettings {
    pub(crate) backend: Backend,
    /// Who demands this backend; without a demand, another one is used if it does not work.
    pub(crate) forced: Option<ForcedBy>,
    pub(crate) pane_command: Option<Template>,
    /// Where panes of tmux go.
    pub(crate) place: Place,
    /// Time a teammate may take to answer a shutdown request.
    pub(crate) deadline: Duration,
    /// Number of messages in a row at which members are told that they do nothing else.
    pub(crate) message_notice: u32,
    /// The same number at which the team is paused.
    pub(crate) message_limit: u32,
}

/// Who demands a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ForcedBy {
    /// `--team-backend`.
    Flag,
    /// The administrator, in this file.
    File(PathBuf),
}

/// The keys of `teams`.
pub(super) const KEYS: [&str; 6] = [
    "backend",
    "paneCommand",
    "tmux",
    "shutdownDeadline",
    "messageNotice",
    "messageLimit",
];

/// The content of the key `teams` in a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TeamsFile {
    backend: Option<Backend>,
    #[serde(default, deserialize_with = "template")]
    pane_command: Option<Template>,
    #[serde(default, deserialize_with = "place")]
    tmux: Option<Place>,
    /// In seconds.
    shutdown_deadline: Option<NonZeroU32>,
    message_notice: Option<NonZeroU32>,
    message_limit: Option<NonZeroU32>,
}

impl TeamsFile {
    /// Returns the keys that a repository's file sets: all of them are for the user to decide.
    pub(super) fn beyond(&self) -> Vec<String> {
        let asked = [
            self.backend.is_some(),
            self.pane_command.is_some(),
            self.tmux.is_some(),
            self.shutdown_deadline.is_some(),
            self.message_notice.is_some(),
            self.message_limit.is_some(),
        ];
        KEYS.iter()
            .zip(asked)
            .filter(|(_, asked)| *asked)
            .map(|(key, _)| (*key).to_owned())
            .collect()
    }
}

/// Merges the layers: the administrator, then the flag, then the user.
pub(super) fn settle(layers: &[Layer], flag: Option<Backend>) -> TeamSettings {
    let managed = layers
        .iter()
        .filter(|layer| layer.trust == LayerAuthor::Managed)
        .find_map(|layer| {
            Some((
                layer.content.teams.backend?,
                ForcedBy::File(layer.path.clone()),
            ))
        });
    let (backend, forced) = managed.or_else(|| Some((flag?, ForcedBy::Flag))).unzip();
    let deadline = super::own(layers, |file| file.teams.shutdown_deadline);
    let deadline = deadline.map_or(DEADLINE, |seconds| {
        Duration::from_secs(seconds.get().into())
    });
    let usual = Teaming::default();
    let number = |own: Option<NonZeroU32>, usual| own.map_or(usual, NonZeroU32::get);
    TeamSettings {
        backend: backend
            .or_else(|| super::own(layers, |file| file.teams.backend))
            .unwrap_or_default(),
        forced,
        pane_command: super::own(layers, |file| file.teams.pane_command.clone()),
        place: super::own(layers, |file| file.teams.tmux).unwrap_or_default(),
        deadline,
        message_notice: number(
            super::own(layers, |file| file.teams.message_notice),
            usual.message_notice,
        ),
        message_limit: number(
            super::own(layers, |file| file.teams.message_limit),
            usual.message_limit,
        ),
    }
}

fn template<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Template>, D::Error> {
    let words = Option::<Vec<String>>::deserialize(from)?;
    let wrong = |why| serde::de::Error::custom(format!("`paneCommand`: {why}"));
    words
        .map(|words| Template::new(words).map_err(wrong))
        .transpose()
}

fn place<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Place>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    let read = |word: String| match word.as_str() {
        "split" => Ok(Place::Split),
        "window" => Ok(Place::Window),
        _ => Err(serde::de::Error::custom("`tmux` must be split or window")),
    };
    word.map(read).transpose()
}
