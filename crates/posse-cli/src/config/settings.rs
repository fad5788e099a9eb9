//! Settings in layers: managed, command line, local, project, user. A repository may only tighten
//! permissions: what its files would loosen is ignored with a warning.

pub(crate) mod account;
pub(crate) mod agents;
mod file;
mod foreign;
pub(crate) mod hooks;
mod ignored;
pub(crate) mod sandbox;
pub(crate) mod servers;
pub(crate) mod teams;
pub(crate) mod ui;
mod variables;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_permission::{Policy, RuleList, Source};
use posse_protocol::PermissionMode;
use posse_runtime::hook::HookLayer;
use posse_tools::is_untracked;

use self::account::AccountSettings;
use self::agents::{AgentFlags, AgentSettings};
use self::file::{Permissions, SettingsFile, TextOf};
use self::hooks::SettingsHooks;
use self::sandbox::SandboxSettings;
use self::servers::ServerSettings;
use self::teams::{Backend, TeamSettings};
use self::ui::UiSettings;
use super::kept_rules;
use super::search_paths::SearchPaths;
use super::store;
use super::trust::{FileKind, Trust};
use super::unsupported::{Unsupported, UnusedFile};
use crate::error::SettingsError;

/// Name of the file that a person has for themselves in a repository.
const LOCAL: &str = "settings.local.json";

/// Settings from flags.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlagSettings {
    /// `--allowedTools`.
    pub(crate) allow: Vec<String>,
    /// `--disallowedTools`.
    pub(crate) deny: Vec<String>,
    /// `--permission-mode`.
    pub(crate) mode: Option<PermissionMode>,
    /// The word of `--permission-mode`, if posse does not have that mode.
    pub(crate) foreign_mode: Option<&'static str>,
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
    /// `--settings`: JSON, or the path of a file.
    pub(crate) settings: Option<String>,
    /// `--tools`: the only tools that agents may use.
    pub(crate) tools: Option<Vec<String>>,
}

/// The effective settings of all layers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) mode: PermissionMode,
    pub(crate) model: Option<String>,
    pub(crate) additional_directories: Vec<PathBuf>,
    /// What the provider's account may be used for.
    pub(crate) account: AccountSettings,
    /// How agents may start others.
    pub(crate) agents: AgentSettings,
    /// How teams work.
    pub(crate) teams: TeamSettings,
    /// How commands are confined.
    pub(crate) sandbox: SandboxSettings,
    /// Variables of commands.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The hooks of all layers.
    pub(crate) hooks: SettingsHooks,
    /// Which MCP servers may be started.
    pub(crate) servers: ServerSettings,
    /// Size of a prompt in tokens at which it is compacted, if set.
    pub(crate) compact_at: Option<u64>,
    /// The administrator or the user has switched bypassPermissions off.
    pub(crate) bypass_disabled: bool,
    /// What was ignored, in summary.
    pub(crate) warnings: Vec<String>,
    /// What was ignored, in detail.
    pub(crate) details: Vec<String>,
    /// The files that were read, highest layer first.
    pub(crate) files: Vec<SettingsUse>,
    /// What posse does not support.
    pub(crate) unsupported: Unsupported,
    /// Which of the repository's files count.
    pub(crate) trust: Trust,
}

/// A file of settings, and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct SettingsUse {
    pub(crate) path: PathBuf,
    /// Keys that count.
    pub(crate) used: Vec<String>,
    /// What a repository may not set.
    pub(crate) refused: Vec<String>,
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
    /// Whose hooks it has.
    hooks: HookLayer,
    /// What `/` in its rules refers to.
    root: PathBuf,
    content: SettingsFile,
    /// It is the repository's, and the person has accepted it as it is.
    is_accepted: bool,
    /// It is the repository's, and its allow rules count: the person's own file, which git does not
    /// track, in a workspace that they trust.
    is_trusted_to_allow: bool,
}

impl Layer {
    /// Returns true if it is the administrator's or the person's.
    fn decides_about_hooks(&self) -> bool {
        self.trust != LayerAuthor::Repository || self.is_trusted_to_allow
    }
}

/// Where a layer's files are looked for.
struct LayerPath {
    path: PathBuf,
    trust: LayerAuthor,
    hooks: HookLayer,
    root: PathBuf,
}

impl Settings {
    /// Returns the effective settings in `cwd`, including flags.
    pub(crate) fn at(cwd: &Path, flags: FlagSettings) -> Result<Self, SettingsError> {
        Self::load(&SearchPaths::at(cwd), flags)
    }

    /// Reads and merges all layers.
    pub(crate) fn load(places: &SearchPaths, flags: FlagSettings) -> Result<Self, SettingsError> {
        let cwd = resolved(&places.cwd);
        let home = places.home.as_deref().map(resolved);
        let layers = layers(places, flags.settings.as_deref())?;
        let source = |layer: &Layer| source_of(layer, places);
        let mut settings = Self {
            policy: Policy::default(),
            mode: mode(&layers, &flags, places.trust.is_trusted())?,
            model: None,
            additional_directories: Vec::new(),
            account: account::settle(&layers),
            agents: agents::settle(&layers, &flags.agents),
            teams: teams::settle(&layers, flags.backend),
            sandbox: sandbox::settle(&layers, home.as_deref(), sandbox::of_environment()?),
            env: variables::settle(&layers),
            hooks: hooks::settle(&layers, source),
            servers: servers::settle(&layers),
            compact_at: own(&layers, |file| file.compact_at).map(NonZeroU64::get),
            bypass_disabled: bypass_disabled(&layers).is_some(),
            warnings: Vec::new(),
            details: Vec::new(),
            files: Vec::new(),
            unsupported: unsupported(&layers, places),
            trust: places.trust.clone(),
        };
        settings
            .warnings
            .extend(settings.hooks.warnings(&places.trust));
        settings.warnings.extend(settings.servers.warnings());
        let usual = own_mode(&layers).filter(|mode| is_looser(*mode) && *mode != settings.mode);
        let usual = usual.filter(|_| !places.trust.is_trusted());
        if let (Some(usual), None, None) = (usual, flags.mode, flags.kept_mode) {
            let said = format!(
                "not used: defaultMode {usual} of your settings, since this workspace is not \
                 trusted (`posse trust`, or `--permission-mode {usual}` for this run)"
            );
            settings.warnings.push(said);
        }
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
        if settings.sandbox.never_outside {
            settings.policy.keep_inside();
        }
        if let Some(tools) = flags.tools {
            settings.policy.limit_to_tools(tools);
        }
        for layer in &layers {
            settings.take(layer, &source(layer))?;
        }
        let (summary, details) = ignored::in_vain(&layers, &settings);
        settings.warnings.extend(summary);
        settings.details.extend(details);
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
        if let Some(word) = permissions.unknown_mode() {
            let (file, told) = (layer.path.display(), no_such_mode(word));
            let stricter = match self.mode {
                PermissionMode::Default => String::new(),
                mode => format!("; `{mode}` applies here"),
            };
            self.warnings.push(format!("{file}: {told}{stricter}"));
        }
        let mut file = SettingsUse {
            path: layer.path.clone(),
            used: layer.content.foreign.used.clone(),
            refused: Vec::new(),
        };
        if layer.trust == LayerAuthor::Repository {
            file.refused = ignored::counts(layer, self);
            let mode = permissions.default_mode();
            let tightens = !permissions.deny.is_empty()
                || !permissions.ask.is_empty()
                || layer.is_trusted_to_allow
                || mode.is_some_and(|mode| mode.strictness() <= self.mode.strictness());
            file.used.retain(|key| match key.as_str() {
                "permissions" => tightens,
                "env" => layer.is_trusted_to_allow,
                "hooks" => layer.is_accepted,
                key => matches!(key, "agents" | "sandbox" | servers::OF_REPOSITORY),
            });
            self.files.push(file);
            if layer.is_trusted_to_allow {
                self.allow(&permissions.allow, source);
            }
            return Ok(());
        }
        self.files.push(file);
        self.allow(&permissions.allow, source);
        let outside = layer.content.sandbox.outside.iter();
        let outside: Vec<String> = outside
            .filter(|_| !self.sandbox.never_outside)
            .map(|command| format!("Outside({command})"))
            .collect();
        self.allow(&outside, source);
        let hosts = layer.content.sandbox.hosts.iter();
        let hosts: Vec<String> = hosts.map(|host| format!("Connect({host})")).collect();
        self.allow(&hosts, source);
        for directory in &permissions.additional_directories {
            let path = match (directory.strip_prefix("~/"), &source.home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => source.root.join(directory),
            };
            self.additional_directories.push(path);
        }
        Ok(())
    }

    /// Adds allow rules.
    fn allow(&mut self, rules: &[String], source: &Source) {
        for rule in rules {
            // One at a time: an invalid allow rule allows nothing, so that a warning is enough.
            let one = RuleList {
                allow: vec![rule.clone()],
                ..RuleList::default()
            };
            if let Err(error) = self.policy.add(source, &one) {
                self.warnings.push(format!("ignored: {error}"));
            }
        }
    }
}

/// Returns the files that settings can be in, existing or not, highest layer first.
fn paths(places: &SearchPaths) -> Vec<LayerPath> {
    let (project, sources) = (places.project(), places.sources);
    let file = |path: PathBuf, trust, hooks, root: &Path| LayerPath {
        path,
        trust,
        hooks,
        root: root.to_owned(),
    };
    let (administrator, user) = (LayerAuthor::Managed, LayerAuthor::User);
    let mut files = vec![file(
        places.managed.clone(),
        administrator,
        HookLayer::Managed,
        Path::new("/"),
    )];
    let of_project = [
        (sources.local, LOCAL, HookLayer::Local),
        (sources.project, "settings.json", HookLayer::Project),
    ];
    for (_, name, layer) in of_project.into_iter().filter(|(is_read, ..)| *is_read) {
        for directory in [".posse", ".claude"] {
            let path = project.join(directory).join(name);
            files.push(file(path, LayerAuthor::Repository, layer, project));
        }
    }
    // Files in the user's own directories are the user's, even if posse is started inside them.
    if let Some(path) = kept_rules::local_file(places).filter(|_| sources.local) {
        files.push(file(path, user, HookLayer::Local, project));
    }
    let mut own = Vec::new();
    if let Some(directory) = &places.posse_home {
        let path = directory.join("settings.json");
        own.push(file(path, user, HookLayer::User, directory));
    }
    if let Some(home) = &places.home {
        let path = home.join(".claude/settings.json");
        own.push(file(path, user, HookLayer::User, home));
    }
    files.retain(|file| !own.iter().any(|other| other.path == file.path));
    files.extend(own.into_iter().filter(|_| sources.user));
    files
}

/// Reads every existing file, highest layer first.
fn layers(places: &SearchPaths, flag: Option<&str>) -> Result<Vec<Layer>, SettingsError> {
    layers_of(places, flag, &file::text)
}

/// Parses every existing file, highest layer first.
fn layers_of(
    places: &SearchPaths,
    flag: Option<&str>,
    text_of: TextOf<'_>,
) -> Result<Vec<Layer>, SettingsError> {
    let mut layers = Vec::new();
    for file in paths(places) {
        let Some(content) = file::parsed(&file.path, text_of)? else {
            continue;
        };
        let is_repository = file.trust == LayerAuthor::Repository;
        let is_accepted = is_repository && is_accepted(&file.path, &content, places);
        let is_trusted_to_allow = is_accepted && may_allow(&file.path, places);
        let LayerPath {
            path,
            trust,
            hooks,
            root,
        } = file;
        layers.push(Layer {
            path,
            trust,
            hooks,
            root,
            content,
            is_accepted,
            is_trusted_to_allow,
        });
    }
    if let Some(value) = flag {
        let (path, content) = file::of_flag(value, &places.cwd, text_of)?;
        let is_managed = |layer: &&Layer| layer.trust == LayerAuthor::Managed;
        let above = layers.iter().take_while(is_managed).count();
        let flag = Layer {
            path,
            trust: LayerAuthor::User,
            hooks: HookLayer::Flag,
            root: places.cwd.clone(),
            content,
            is_accepted: false,
            is_trusted_to_allow: false,
        };
        layers.insert(above, flag);
    }
    let others = layers.iter_mut();
    others
        .filter(|layer| layer.trust != LayerAuthor::Managed)
        .for_each(|layer| layer.content.leave_out_managed_keys());
    // Sessions of all projects are in one store, which these files choose before any other is read.
    // The board, which shows several projects, looks the same in each.
    let chooser = places
        .posse_home
        .as_ref()
        .map(|it| it.join("settings.json"));
    let others = layers.iter_mut().filter(|layer| {
        layer.trust == LayerAuthor::User && chooser.as_deref() != Some(&layer.path)
    });
    others.for_each(|layer| layer.content.leave_out_home_keys());
    Ok(layers)
}

/// Returns the paths of all settings files, existing or not.
pub(crate) fn file_paths(places: &SearchPaths) -> Vec<PathBuf> {
    paths(places).into_iter().map(|file| file.path).collect()
}

/// The texts of settings files, existing or not.
pub(crate) type SettingsTexts = BTreeMap<PathBuf, Option<String>>;

/// Reads these files.
pub(crate) fn read_texts(
    paths: impl IntoIterator<Item = PathBuf>,
) -> Result<SettingsTexts, SettingsError> {
    let read = |path: PathBuf| Ok((path.clone(), file::text(&path)?));
    paths.into_iter().map(read).collect()
}

/// Returns whose hooks a settings file has; none if it is no file of `places`.
pub(crate) fn layer_of(places: &SearchPaths, path: &Path) -> Option<HookLayer> {
    let mut files = paths(places).into_iter();
    files.find(|it| it.path == path).map(|it| it.hooks)
}

/// Returns the hooks of all layers, whose files have these texts. `flag` is the value of
/// `--settings`.
pub(crate) fn read_hooks(
    places: &SearchPaths,
    flag: Option<&str>,
    texts: &SettingsTexts,
) -> Result<SettingsHooks, SettingsError> {
    let text_of = |path: &Path| match texts.get(path) {
        Some(text) => Ok(text.clone()),
        None => file::text(path),
    };
    let layers = layers_of(places, flag, &text_of)?;
    Ok(hooks::settle(&layers, |layer| source_of(layer, places)))
}

/// Returns what the paths in a layer's rules refer to. They are resolved, because rules are compared
/// with resolved paths.
fn source_of(layer: &Layer, places: &SearchPaths) -> Source {
    Source {
        name: layer.path.display().to_string(),
        root: resolved(&layer.root),
        cwd: resolved(&places.cwd),
        home: places.home.as_deref().map(resolved),
    }
}

fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// What the administrator or the user has set for the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreSettings {
    pub(crate) location: Option<store::StoreLocation>,
    /// Age at which rows of feeds are removed.
    pub(crate) feed_age: Option<Duration>,
}

/// Returns what the administrator or the user has set for the store. A repository cannot choose
/// one: it could read the conversations of other projects.
pub(crate) fn store_settings(places: &SearchPaths) -> Result<StoreSettings, SettingsError> {
    let mut set = StoreSettings::default();
    for (path, content) in everywhere(places)? {
        let hours = content.feed_hours.map(|hours| u64::from(hours.get()));
        let age = hours.map(|hours| Duration::from_secs(hours * 60 * 60));
        set.feed_age = set.feed_age.or(age);
        let Some(chosen) = content.store.filter(|_| set.location.is_none()) else {
            continue;
        };
        let chosen = store::parse(&chosen).map_err(|why| SettingsError::Wrong {
            path: path.clone(),
            why: why.to_string(),
        })?;
        // A relative path starts at home if it begins with `~`, else at the settings file.
        let chosen = store::from_home(chosen, places.home.as_deref());
        set.location = Some(match chosen {
            store::StoreLocation::File(chosen) => {
                store::StoreLocation::File(path.parent().unwrap_or(&path).join(chosen))
            }
            server @ store::StoreLocation::Server(_) => server,
        });
    }
    Ok(set)
}

/// Returns what the user and the administrator have set for the terminal.
pub(crate) fn ui_settings(places: &SearchPaths) -> Result<UiSettings, SettingsError> {
    let mut set = UiSettings::default();
    for (_, content) in everywhere(places)? {
        set.theme = set.theme.or(content.ui.theme);
        set.mouse = set.mouse.or(content.ui.mouse);
    }
    Ok(set)
}

/// Reads the files that hold in every directory: the administrator's, then the user's.
fn everywhere(places: &SearchPaths) -> Result<Vec<(PathBuf, SettingsFile)>, SettingsError> {
    let user = places.posse_home.as_ref();
    let user = user.map(|directory| directory.join("settings.json"));
    let paths = [Some(places.managed.clone()), user].into_iter().flatten();
    let read = paths.map(|path| Ok(file::read(&path)?.map(|content| (path, content))));
    read.filter_map(Result::transpose).collect()
}

/// Returns the mode: from the highest layer of the user or the administrator, tightened by the
/// repository. Where that layer has a mode that posse does not have, the strictest of all counts.
fn mode(
    layers: &[Layer],
    flags: &FlagSettings,
    is_trusted: bool,
) -> Result<PermissionMode, SettingsError> {
    let of = |trust: LayerAuthor| {
        let of = layers.iter().filter(move |layer| layer.trust == trust);
        of.map(|layer| &layer.content.permissions)
    };
    let given = |trust| of(trust).filter_map(Permissions::default_mode);
    let own = || of(LayerAuthor::Managed).chain(of(LayerAuthor::User));
    let strictest = || {
        let modes = own().filter_map(Permissions::default_mode);
        let modes = modes
            .chain(flags.kept_mode)
            .chain([PermissionMode::Default]);
        modes.min_by_key(|mode| mode.strictness())
    };
    let managed = given(LayerAuthor::Managed).next();
    let highest = own().find(|permissions| permissions.default_mode().is_some());
    let own = match (flags.mode.or(flags.kept_mode), highest) {
        _ if flags.foreign_mode.is_some() => strictest(),
        // A wish counts against the administrator's mode only if it is stricter.
        (Some(wanted), _) => [wanted]
            .into_iter()
            .chain(managed)
            .min_by_key(|mode| mode.strictness()),
        (None, Some(highest)) if highest.unknown_mode().is_some() => strictest(),
        (None, highest) => {
            let usual = highest.and_then(Permissions::default_mode);
            let may_loosen = is_trusted || managed.is_some();
            usual.filter(|mode| may_loosen || !is_looser(*mode))
        }
    };
    let own = own.unwrap_or_default();
    if let (PermissionMode::BypassPermissions, Some(layer)) = (own, bypass_disabled(layers)) {
        return Err(SettingsError::BypassDisabled {
            by: layer.path.clone(),
        });
    }
    // A flag is the user's decision for this run, which a repository does not change.
    let stricter = given(LayerAuthor::Repository)
        .chain(flags.strictest)
        .filter(|_| flags.mode.is_none())
        .map(PermissionMode::strictness)
        .min();
    Ok(stricter
        .filter(|wanted| *wanted < own.strictness())
        .map_or(own, |wanted| PermissionMode::ALL[wanted]))
}

/// Returns true if the person has accepted a repository's file that could count for more than what
/// tightens.
fn is_accepted(path: &Path, content: &SettingsFile, places: &SearchPaths) -> bool {
    let (permissions, hooks) = (&content.permissions, &content.hooks);
    let allows = !permissions.allow.is_empty() || !content.env.names().is_empty();
    let is_meant = is_local(path) && (allows || hooks.disables_all);
    let file = (path, places.project());
    (is_meant || hooks.declares_any())
        && places
            .trust
            .admits(FileKind::Settings, file, content.seen.clone())
}

/// Returns true if allow rules and variables of a repository's file that the person has accepted
/// count: git does not track it, so that it does not come from others. Git is run only in a
/// workspace that they trust.
fn may_allow(path: &Path, places: &SearchPaths) -> bool {
    is_local(path) && places.trust.is_trusted() && is_untracked(path, places.trust.root())
}

/// Returns true if a file is the one that a person has for themselves in a repository.
fn is_local(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == LOCAL)
}

/// Returns the remark about a permission mode that posse does not have.
pub(crate) fn no_such_mode(word: &str) -> String {
    format!("posse has no permission mode `{word}`; it counts as `default`")
}

/// Returns the layer that switches bypassPermissions off. A repository cannot.
fn bypass_disabled(layers: &[Layer]) -> Option<&Layer> {
    layers.iter().find(|layer| {
        layer.trust != LayerAuthor::Repository && layer.content.permissions.disables_bypass
    })
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

/// Returns the mode that the administrator or the user has chosen for all workspaces.
fn own_mode(layers: &[Layer]) -> Option<PermissionMode> {
    own(layers, |file| file.permissions.default_mode())
}

/// Returns true if a mode lets agents change files without asking.
fn is_looser(mode: PermissionMode) -> bool {
    mode.strictness() > PermissionMode::Default.strictness()
}

/// Returns a value that only the administrator and the user may set.
fn own<T>(layers: &[Layer], key: impl Fn(&SettingsFile) -> Option<T>) -> Option<T> {
    said(layers, LayerAuthor::Managed, &key).or_else(|| said(layers, LayerAuthor::User, &key))
}

/// Returns what posse does not support of these files, and of the project's other files.
fn unsupported(layers: &[Layer], places: &SearchPaths) -> Unsupported {
    let unused = |layer: &Layer| {
        let foreign = &layer.content.foreign;
        (!foreign.unused.is_empty()).then(|| UnusedFile {
            path: layer.path.clone(),
            what: foreign.unused.join(", "),
            content: layer.content.fingerprint,
        })
    };
    let demand = |layer: &&Layer| layer.content.foreign.demands_sandbox;
    let mut files: Vec<UnusedFile> = layers.iter().filter_map(unused).collect();
    files.extend(super::unsupported::files(places));
    Unsupported {
        files,
        guards: Vec::new(),
        demand_sandbox: layers
            .iter()
            .filter(demand)
            .map(|layer| layer.path.clone())
            .collect(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
