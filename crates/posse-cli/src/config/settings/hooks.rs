//! Hooks in settings files, and what the administrator and the user say about all hooks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_permission::Source;
use posse_runtime::hook::{
    Hook, HookFile, HookLayer, HookPolicy, HookScope, HookSet, HookState, PathStep, read,
};
use serde_json::Value;

use super::{Layer, LayerAuthor};
use crate::config::json_text::line_of;
use crate::config::text_file;
use crate::config::trust::{FileKind, Trust};

/// The keys of a settings file that are about hooks.
pub(super) const KEYS: [&str; 6] = [
    "hooks",
    "disableAllHooks",
    "stopHookLimit",
    "allowManagedHooksOnly",
    "allowedHttpHookUrls",
    "httpHookAllowedEnvVars",
];
/// Those of them that only the administrator sets.
pub(super) const OF_ADMINISTRATOR: [&str; 3] = [KEYS[3], KEYS[4], KEYS[5]];

/// What a settings file says about hooks.
#[derive(Debug, Default)]
pub(super) struct HooksFile {
    /// The value of `hooks`.
    value: Value,
    /// The file, in which places are looked for.
    text: String,
    /// True if no hook shall run.
    pub(super) disables_all: bool,
    pub(super) stop_limit: Option<u32>,
    /// A value that cannot be used: its key, and what it must be.
    wrong: Option<(&'static str, &'static str)>,
    managed_only: bool,
    urls: Option<Vec<String>>,
    variables: Option<Vec<String>>,
}

impl HooksFile {
    /// Reads the keys about hooks of a file.
    pub(super) fn read(all: &Value, text: &str) -> Self {
        let limit = &all["stopHookLimit"];
        let stop_limit = limit.as_u64().and_then(|limit| u32::try_from(limit).ok());
        let is_wrong = !limit.is_null() && stop_limit.is_none();
        Self {
            value: all["hooks"].clone(),
            text: text.to_owned(),
            disables_all: all["disableAllHooks"] == true,
            stop_limit,
            wrong: is_wrong.then_some(("stopHookLimit", "a whole number")),
            managed_only: all["allowManagedHooksOnly"] == true,
            urls: texts(&all["allowedHttpHookUrls"]),
            variables: texts(&all["httpHookAllowedEnvVars"]),
        }
    }

    /// Returns true if it declares hooks.
    pub(super) fn declares_any(&self) -> bool {
        match &self.value {
            Value::Object(events) => !events.is_empty(),
            value => !value.is_null(),
        }
    }
}

/// Returns the texts of a list. A value of another shape lists nothing.
fn texts(list: &Value) -> Option<Vec<String>> {
    let texts = |list: &Vec<Value>| {
        let texts = list.iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    };
    (!list.is_null()).then(|| list.as_array().map(texts).unwrap_or_default())
}

/// The hooks of all settings files.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SettingsHooks {
    pub(crate) hooks: Vec<Arc<Hook>>,
    /// What hooks are held to, those of agents and skills as well.
    pub(crate) policy: HookPolicy,
    pub(crate) remarks: Vec<HookRemark>,
}

/// Something that is wrong with the hooks of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookRemark {
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
    pub(crate) what: String,
    /// True if the hooks of the file wait until the person accepts it.
    pub(crate) waits: bool,
}

impl HookRemark {
    /// Returns it as a line: the file, its line, and what is wrong.
    pub(crate) fn in_a_line(&self) -> String {
        format!("{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

impl SettingsHooks {
    /// Returns the hooks that count.
    pub(crate) fn set(&self) -> HookSet {
        HookSet::new(self.hooks.iter().cloned()).under(self.policy.clone())
    }

    /// Returns what is wrong, a line each. In a workspace that nobody has trusted, nothing is said
    /// about files that wait.
    pub(super) fn warnings(&self, trust: &Trust) -> Vec<String> {
        let remarks = self.remarks.iter().filter(|remark| !remark.waits);
        let waiting = self
            .hooks
            .iter()
            .filter(|hook| hook.state != HookState::Active);
        let waiting = waiting.filter(|_| trust.is_trusted());
        let files: BTreeSet<&Path> = waiting.map(|hook| hook.origin.file.as_path()).collect();
        let waiting = files.into_iter().map(|file| {
            format!(
                "{}: its hooks do not run: it is new or has changed since this workspace was \
                 trusted; `posse trust` shows it",
                file.display()
            )
        });
        remarks.map(HookRemark::in_a_line).chain(waiting).collect()
    }

    /// Adds the hooks of a file.
    fn take(&mut self, layer: &Layer, source: Source) {
        let content = &layer.content.hooks;
        let of_repository = layer.trust == LayerAuthor::Repository && !layer.is_trusted_to_allow;
        let file = HookFile {
            layer: layer.hooks,
            path: layer.path.clone(),
            of_repository,
            source,
        };
        let line = |path: &[PathStep]| {
            let path: Vec<PathStep> = [PathStep::Key("hooks".into())]
                .into_iter()
                .chain(path.iter().cloned())
                .collect();
            line_of(&content.text, &path)
        };
        let waits = of_repository && !layer.is_accepted;
        let state = match waits {
            true => waiting(&layer.path),
            false => HookState::Active,
        };
        let found = read(&content.value, &file);
        self.hooks
            .extend(found.hooks.into_iter().map(|(hook, path)| {
                let mut hook = hook;
                hook.origin.line = Some(line(&path));
                hook.state = state.clone();
                Arc::new(hook)
            }));
        self.remarks.extend(found.problems.into_iter().map(|it| {
            let line = line(&it.path);
            HookRemark {
                file: layer.path.clone(),
                line,
                what: it.what.to_string(),
                waits,
            }
        }));
        self.remarks.extend(content.wrong.map(|(key, expected)| {
            let line = line_of(&content.text, &[PathStep::Key(key.into())]);
            HookRemark {
                file: layer.path.clone(),
                line,
                what: format!("`{key}` must be {expected}; it is ignored"),
                waits,
            }
        }));
    }
}

impl SettingsHooks {
    /// Returns what counts after files have changed. The person had accepted the guards that were
    /// there before: if their file is another now, or gone, what they saw is asked about until the
    /// person accepts that, too.
    pub(crate) fn after(mut self, before: &Self, trust: &Trust) -> Self {
        let is_replaced = |file: &Path| {
            let text = text_file::read(file).ok().flatten();
            trust.has_changed(FileKind::Settings, file, text.as_deref())
        };
        let is_there = |hook: &Hook| {
            let mut hooks = self.hooks.iter();
            hooks.any(|it| it.origin.file == hook.origin.file && it.is_same(hook))
        };
        let guards = before.hooks.iter().filter(|hook| hook.event.guards());
        let gone = guards.filter(|hook| !is_there(hook));
        let gone: Vec<Arc<Hook>> = gone
            .filter(|hook| is_replaced(&hook.origin.file))
            .map(|hook| {
                Arc::new(Hook {
                    state: waiting(&hook.origin.file),
                    ..Hook::clone(hook)
                })
            })
            .collect();
        self.hooks.extend(gone);
        self
    }
}

/// Returns the state of hooks that the person has not accepted.
fn waiting(file: &Path) -> HookState {
    let file = file.display();
    HookState::Waits {
        why: format!(
            "hooks of {file} do not run: you have not accepted them as they are now (`posse trust`)"
        ),
    }
}

/// Merges the layers, the highest first.
pub(super) fn settle(layers: &[Layer], source: impl Fn(&Layer) -> Source) -> SettingsHooks {
    let mut settled = SettingsHooks {
        policy: policy(layers),
        ..SettingsHooks::default()
    };
    for layer in layers {
        settled.take(layer, source(layer));
    }
    settled
}

/// Returns what the administrator and the user say about all hooks. A repository may not switch off
/// the guards of the user.
fn policy(layers: &[Layer]) -> HookPolicy {
    let is_managed = |layer: &&Layer| layer.hooks == HookLayer::Managed;
    let managed = || layers.iter().filter(is_managed).map(|it| &it.content.hooks);
    let own = || layers.iter().filter(|layer| layer.decides_about_hooks());
    let scope = if managed().any(|file| file.disables_all) {
        HookScope::Nothing
    } else if managed().any(|file| file.managed_only)
        || own().any(|layer| layer.content.hooks.disables_all)
    {
        HookScope::Managed
    } else {
        HookScope::All
    };
    HookPolicy {
        scope,
        urls: managed().find_map(|file| file.urls.clone()),
        variables: managed().find_map(|file| file.variables.clone()),
        stop_limit: own().find_map(|layer| layer.content.hooks.stop_limit),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::settings::tests::Disk;
    use crate::config::settings::{FlagSettings, Settings};

    fn guard(command: &str, more: &str) -> String {
        format!(
            r#"{{{more} "hooks": {{"PreToolUse": [{{"hooks": [
                {{"type": "command", "command": "{command}"}}]}}]}}}}"#
        )
    }

    /// A hook of each layer; the administrator's file and the user's say something more.
    fn disk(managed: &str, user: &str) -> Disk {
        let disk = Disk::new();
        disk.write("managed.json", &guard("managed", managed));
        disk.write("home/.claude/settings.json", &guard("user", user));
        disk.write("repo/.posse/settings.json", &guard("project", ""));
        disk.write("repo/.claude/settings.local.json", &guard("local", ""));
        disk
    }

    fn load(disk: &Disk) -> Settings {
        let flags = FlagSettings {
            settings: Some(guard("flag", "")),
            ..FlagSettings::default()
        };
        Settings::load(&disk.places, flags).unwrap()
    }

    fn titles(disk: &Disk) -> Vec<String> {
        let set = load(disk).hooks.set();
        set.all().map(|hook| hook.title()).collect()
    }

    #[test]
    fn all_layers_have_hooks_in_the_order_in_which_they_count() {
        let disk = disk("", r#""stopHookLimit": 3,"#);
        let all = ["managed", "user", "project", "local", "flag"];
        assert_eq!(titles(&disk), all);
        let set = load(&disk).hooks.set();
        assert_eq!(set.stop_limit(), 3);
        let of_repository = set.all().map(|hook| hook.origin.of_repository);
        // Outside of a repository of git, nobody knows whose file the local one is.
        let expected = [false, false, true, true, false];
        assert_eq!(of_repository.collect::<Vec<_>>(), expected);
        assert!(set.all().all(|hook| hook.origin.line == Some(2)));
    }

    #[test]
    fn hooks_of_the_administrator_survive_what_others_switch_off() {
        let off = r#""disableAllHooks": true,"#;
        assert_eq!(titles(&disk("", off)), ["managed"]);
        assert_eq!(titles(&disk(off, "")), [""; 0]);
        assert_eq!(
            titles(&disk(r#""allowManagedHooksOnly": true,"#, "")),
            ["managed"]
        );
        // Only the administrator may say it.
        assert_eq!(
            titles(&disk("", r#""allowManagedHooksOnly": true,"#)).len(),
            5
        );
    }

    #[test]
    fn a_limit_that_is_no_number_is_told_with_its_line() {
        let disk = disk("", "\n\n\"stopHookLimit\": \"many\",");
        let settings = load(&disk);
        let told = "settings.json:3: `stopHookLimit` must be a whole number; it is ignored";
        assert!(settings.warnings.iter().any(|it| it.ends_with(told)));
        assert_eq!(settings.hooks.set().stop_limit(), 8);
    }
}
