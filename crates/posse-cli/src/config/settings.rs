//! Settings in layers: managed, command line, local, project, user. A repository may only tighten
//! permissions: what its files would loosen is ignored with a warning.

pub(crate) mod agents;
mod file;
pub(crate) mod teams;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use posse_permission::{Policy, RuleList, Source};
use posse_protocol::PermissionMode;

use self::agents::{AgentFlags, AgentSettings};
use self::file::SettingsFile;
use self::teams::{Backend, TeamSettings};
use super::search_paths::SearchPaths;
use super::store;
use crate::error::SettingsError;

/// Settings from flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlagSettings {
    /// `--allowedTools`.
    pub(crate) allow: Vec<String>,
    /// `--disallowedTools`.
    pub(crate) deny: Vec<String>,
    /// `--permission-mode`.
    pub(crate) mode: Option<PermissionMode>,
    /// The mode of the resumed session. It counts like a user's `defaultMode`, not like a flag.
    pub(crate) kept_mode: Option<PermissionMode>,
    /// The most permissive mode that a repository's team file allows.
    pub(crate) strictest: Option<PermissionMode>,
    /// `--model`.
    pub(crate) model: Option<String>,
    /// `--add-dir`.
    pub(crate) additional_directories: Vec<PathBuf>,
    /// `--max-depth` and the like.
    pub(crate) agents: AgentFlags,
    /// `--team-backend`.
    pub(crate) backend: Option<Backend>,
}

/// The effective settings of all layers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) mode: PermissionMode,
    pub(crate) model: Option<String>,
    pub(crate) additional_directories: Vec<PathBuf>,
    /// How agents may start others.
    pub(crate) agents: AgentSettings,
    /// How teams work.
    pub(crate) teams: TeamSettings,
    /// Size of a prompt in tokens at which it is compacted, if set.
    pub(crate) compact_at: Option<u64>,
    /// What was ignored, in summary.
    pub(crate) warnings: Vec<String>,
    /// What was ignored, in detail.
    pub(crate) details: Vec<String>,
}

/// The author of a layer, who decides what it may change.
#[derive(Clone, Copy, PartialEq)]
enum LayerAuthor {
    /// The administrator.
    Managed,
    /// The user.
    User,
    /// The repository's authors, who may only tighten.
    Repository,
}

/// One file of settings.
struct Layer {
    path: PathBuf,
    trust: LayerAuthor,
    /// What `/` in its rules refers to.
    root: PathBuf,
    content: SettingsFile,
}

impl Settings {
    /// Returns the effective settings in `cwd`, including flags.
    pub(crate) fn at(cwd: &Path, flags: FlagSettings) -> Result<Self, SettingsError> {
        Self::load(&SearchPaths::at(cwd), flags)
    }

    /// Reads and merges all layers.
    pub(crate) fn load(places: &SearchPaths, flags: FlagSettings) -> Result<Self, SettingsError> {
        // Resolved, because rules are compared with resolved paths.
        let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let cwd = resolved(&places.cwd);
        let home = places.home.as_deref().map(resolved);
        let layers = layers(places)?;
        let mut settings = Self {
            policy: Policy::default(),
            mode: mode(&layers, flags.mode, flags.kept_mode, flags.strictest)?,
            model: None,
            additional_directories: Vec::new(),
            agents: agents::settle(&layers, &flags.agents),
            teams: teams::settle(&layers, flags.backend),
            compact_at: own(&layers, |file| file.compact_at).map(NonZeroU64::get),
            warnings: Vec::new(),
            details: Vec::new(),
        };
        if let Some(wanted) = flags.mode.filter(|wanted| *wanted != settings.mode) {
            let said = format!(
                "ignored: --permission-mode {wanted}; managed settings say {}",
                settings.mode
            );
            settings.warnings.push(said);
        }
        let flag = |name: &str| Source {
            name: name.into(),
            root: cwd.clone(),
            cwd: cwd.clone(),
            home: home.clone(),
        };
        settings.policy.add(
            &flag("--allowedTools"),
            &RuleList {
                allow: flags.allow,
                ..RuleList::default()
            },
        )?;
        settings.policy.add(
            &flag("--disallowedTools"),
            &RuleList {
                deny: flags.deny,
                ..RuleList::default()
            },
        )?;
        for layer in &layers {
            let name = layer.path.display().to_string();
            let source = Source {
                name,
                root: resolved(&layer.root),
                cwd: cwd.clone(),
                home: home.clone(),
            };
            settings.take(layer, &source)?;
        }
        let given = |trust| said(&layers, trust, |file| file.model.clone());
        settings.model = given(LayerAuthor::Managed)
            .or(flags.model)
            .or_else(|| given(LayerAuthor::User));
        settings.additional_directories.extend(
            flags
                .additional_directories
                .iter()
                .map(|path| cwd.join(path)),
        );
        Ok(settings)
    }

    /// Merges rules and directories of a layer, and records what is ignored.
    fn take(&mut self, layer: &Layer, source: &Source) -> Result<(), SettingsError> {
        let permissions = &layer.content.permissions;
        // Denying and asking only tightens, so that every author may do it.
        let strict = RuleList {
            deny: permissions.deny.clone(),
            ask: permissions.ask.clone(),
            allow: Vec::new(),
        };
        self.policy.add(source, &strict)?;
        for (part, keys) in &layer.content.unknown {
            let (keys, file) = (keys.join(", "), layer.path.display());
            self.warnings
                .push(format!("unknown: {keys} in the {part} of {file}"));
        }
        if layer.trust == LayerAuthor::Repository {
            let (summary, details) = loosened(layer, self);
            self.warnings.extend(summary);
            self.details.extend(details);
            return Ok(());
        }
        for rule in &permissions.allow {
            // One at a time: an invalid allow rule allows nothing, so that a warning is enough.
            let one = RuleList {
                allow: vec![rule.clone()],
                ..RuleList::default()
            };
            if let Err(error) = self.policy.add(source, &one) {
                self.warnings.push(format!("ignored: {error}"));
            }
        }
        for directory in &permissions.additional_directories {
            let path = match (directory.strip_prefix("~/"), &source.home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => source.root.join(directory),
            };
            self.additional_directories.push(path);
        }
        Ok(())
    }
}

/// Reads every existing file, highest layer first.
fn layers(places: &SearchPaths) -> Result<Vec<Layer>, SettingsError> {
    let project = places.project();
    let mut files = vec![(
        places.managed.clone(),
        LayerAuthor::Managed,
        PathBuf::from("/"),
    )];
    for name in ["settings.local.json", "settings.json"] {
        for directory in [".posse", ".claude"] {
            files.push((
                project.join(directory).join(name),
                LayerAuthor::Repository,
                project.to_owned(),
            ));
        }
    }
    // Files in the user's own directories are the user's, even if posse is started inside them.
    let mut own = Vec::new();
    if let Some(directory) = &places.posse_home {
        own.push((
            directory.join("settings.json"),
            LayerAuthor::User,
            directory.clone(),
        ));
    }
    if let Some(home) = &places.home {
        own.push((
            home.join(".claude/settings.json"),
            LayerAuthor::User,
            home.clone(),
        ));
    }
    files.retain(|(path, _, _)| !own.iter().any(|(other, _, _)| other == path));
    files.extend(own);
    let mut layers = Vec::new();
    for (path, trust, root) in files {
        if let Some(content) = file::read(&path)? {
            layers.push(Layer {
                path,
                trust,
                root,
                content,
            });
        }
    }
    Ok(layers)
}

/// Returns the store that the administrator or the user has chosen. A repository cannot choose
/// one: it could read the conversations of other projects.
pub(crate) fn chosen_store(
    places: &SearchPaths,
) -> Result<Option<store::StoreLocation>, SettingsError> {
    let user = places
        .posse_home
        .as_ref()
        .map(|directory| directory.join("settings.json"));
    for path in [Some(places.managed.clone()), user].into_iter().flatten() {
        let Some(chosen) = file::read(&path)?.and_then(|content| content.store) else {
            continue;
        };
        let chosen = store::parse(&chosen).map_err(|why| SettingsError::Wrong {
            path: path.clone(),
            why: why.to_string(),
        })?;
        // A relative path starts at home if it begins with `~`, else at the settings file.
        let chosen = store::from_home(chosen, places.home.as_deref());
        return Ok(Some(match chosen {
            store::StoreLocation::File(chosen) => {
                store::StoreLocation::File(path.parent().unwrap_or(&path).join(chosen))
            }
            server @ store::StoreLocation::Server(_) => server,
        }));
    }
    Ok(None)
}

/// Returns the mode: from the highest layer of the user or the administrator, tightened by the
/// repository.
fn mode(
    layers: &[Layer],
    flag: Option<PermissionMode>,
    kept: Option<PermissionMode>,
    strictest: Option<PermissionMode>,
) -> Result<PermissionMode, SettingsError> {
    let given = |trust: LayerAuthor| {
        let of = layers.iter().filter(move |layer| layer.trust == trust);
        of.filter_map(|layer| layer.content.permissions.default_mode)
    };
    let managed = given(LayerAuthor::Managed).next();
    // A wish counts against the administrator's mode only if it is stricter.
    let wanted = flag
        .or(kept)
        .filter(|wanted| managed.is_none_or(|managed| strictness(*wanted) < strictness(managed)));
    let own = wanted
        .or(managed)
        .or_else(|| given(LayerAuthor::User).next())
        .unwrap_or_default();
    let disabled = layers.iter().find(|layer| {
        layer.trust != LayerAuthor::Repository && layer.content.permissions.disables_bypass
    });
    if let (PermissionMode::BypassPermissions, Some(layer)) = (own, disabled) {
        return Err(SettingsError::BypassDisabled {
            by: layer.path.clone(),
        });
    }
    // A flag is the user's decision for this run, which a repository does not change.
    let stricter = given(LayerAuthor::Repository)
        .chain(strictest)
        .filter(|_| flag.is_none())
        .map(strictness)
        .min();
    Ok(stricter
        .filter(|wanted| *wanted < strictness(own))
        .map_or(own, |wanted| PermissionMode::ALL[wanted]))
}

/// Returns a value from the files of one author, highest layer first.
fn said<T>(
    layers: &[Layer],
    trust: LayerAuthor,
    key: impl Fn(&SettingsFile) -> Option<T>,
) -> Option<T> {
    layers
        .iter()
        .filter(|layer| layer.trust == trust)
        .find_map(|layer| key(&layer.content))
}

/// Returns a value that only the administrator and the user may set.
fn own<T>(layers: &[Layer], key: impl Fn(&SettingsFile) -> Option<T>) -> Option<T> {
    said(layers, LayerAuthor::Managed, &key).or_else(|| said(layers, LayerAuthor::User, &key))
}

/// Returns the position of a mode in the order of strictness, strictest first.
fn strictness(mode: PermissionMode) -> usize {
    PermissionMode::ALL
        .iter()
        .position(|other| *other == mode)
        .unwrap_or_default()
}

/// Returns what a repository's file asks for in vain: as a summary, and in detail.
fn loosened(layer: &Layer, holds: &Settings) -> (Option<String>, Vec<String>) {
    let permissions = &layer.content.permissions;
    let looser = permissions
        .default_mode
        .filter(|wanted| strictness(*wanted) > strictness(holds.mode));
    let compact_at = layer.content.compact_at.map(|tokens| tokens.to_string());
    let kinds: [(&str, &str, Vec<String>); 8] = [
        ("allow rule", "allow rules", permissions.allow.clone()),
        (
            "directory",
            "directories",
            permissions.additional_directories.clone(),
        ),
        (
            "model",
            "models",
            layer.content.model.iter().cloned().collect(),
        ),
        ("compactAt", "compactAt", compact_at.into_iter().collect()),
        (
            "store",
            "stores",
            layer
                .content
                .store
                .iter()
                .map(|store| store::hushed(store))
                .collect(),
        ),
        (
            "mode",
            "modes",
            looser.iter().map(ToString::to_string).collect(),
        ),
        (
            "key of agents",
            "keys of agents",
            layer.content.agents.beyond(&holds.agents),
        ),
        (
            "key of teams",
            "keys of teams",
            layer.content.teams.beyond(),
        ),
    ];
    let file = layer.path.display();
    let (mut counts, mut details) = (Vec::new(), Vec::new());
    for (one, many, left_out) in kinds.iter().filter(|(_, _, left_out)| !left_out.is_empty()) {
        let name = if left_out.len() == 1 { one } else { many };
        counts.push(format!("{} {name}", left_out.len()));
        details.push(format!("ignored: {name} {} in {file}", left_out.join(", ")));
    }
    let why = "a repository may only tighten permissions; --verbose shows what was ignored, and \
               your own settings may allow it";
    let summary =
        (!counts.is_empty()).then(|| format!("ignored: {} in {file}: {why}", counts.join(", ")));
    (summary, details)
}

#[cfg(test)]
pub(crate) mod tests;
