//! The hooks of settings while posse runs: they are read again when a file changes, unless a hook
//! refuses the change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_runtime::SessionHooks;
use posse_runtime::hook::{
    Hook, HookBook, HookEvent, HookLayer, HookSet, HookState, Merged, Preparation,
};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;

use crate::config::search_paths::SearchPaths;
use crate::config::settings::hooks::{HookRemark, SettingsHooks};
use crate::config::settings::{self, Settings, SettingsTexts};
use crate::config::trust::Trust;
use crate::definitions::{WatchGuard, WatchedFiles, shown, watch_files};
use crate::error::SettingsError;
use crate::output::{say, tame};

/// Number of changes that are shown at once.
const TOLD: usize = 5;

/// The hooks of a session's settings, and where they come from.
pub(crate) struct LiveHooks {
    places: SearchPaths,
    /// The value of `--settings`.
    flag: Option<String>,
    /// What counts of a workspace that is trusted for this run only.
    trust: Option<Trust>,
    now: SettingsHooks,
    /// Those of the program that drives posse.
    program: HookSet,
    /// Why the files could not be read the last time.
    broken: Option<String>,
    /// The files as they were read the last time.
    seen: Option<SettingsTexts>,
    /// What counts instead of changes that hooks have refused.
    kept: SettingsTexts,
    /// What asks hooks about changes; none if nothing does.
    asker: Option<HookAsker>,
    /// Those that agents have.
    pub(crate) book: Arc<HookBook>,
}

/// Runs hooks of a session, from threads too.
pub(super) struct HookAsker {
    hooks: SessionHooks,
    tokio: Handle,
}

impl HookAsker {
    /// Returns what runs hooks in the current tokio runtime.
    pub(super) fn new(hooks: SessionHooks) -> Self {
        Self {
            hooks,
            tokio: Handle::current(),
        }
    }

    /// Runs the hooks of an event, and waits for them. Not for async functions.
    pub(super) fn ask(&self, event: HookEvent, about: &str, own: Value) -> Merged {
        let own = match own {
            Value::Object(own) => own,
            _ => Map::new(),
        };
        self.tokio.block_on(self.hooks.run(event, about, own))
    }
}

impl LiveHooks {
    /// Returns the hooks of settings that were read in these places.
    pub(crate) fn new(
        settings: &Settings,
        places: SearchPaths,
        flag: Option<String>,
        program: Vec<Arc<Hook>>,
        prepares: Option<Preparation>,
    ) -> Self {
        let program = HookSet::new(program);
        let book = HookBook::new(settings.hooks.set().with(&program));
        let trust = &settings.trust;
        Self {
            places,
            flag,
            trust: trust.is_trusted_for_now().then(|| trust.of_what_was_seen()),
            now: settings.hooks.clone(),
            broken: None,
            seen: None,
            kept: SettingsTexts::new(),
            asker: None,
            book: Arc::new(book.preparing(prepares)),
            program,
        }
    }

    /// Starts watching in a thread, and returns at once. Changes apply unasked.
    pub(crate) fn watch(self) -> WatchGuard {
        watch_files(self)
    }

    /// Starts watching in a thread, and returns at once. ConfigChange hooks are asked about changes.
    pub(crate) fn watch_asking(mut self, hooks: SessionHooks) -> WatchGuard {
        self.asker = Some(HookAsker::new(hooks));
        // Read now: a change is one that comes after the first prompt, however late the thread is.
        self.seen = self.read().ok();
        watch_files(self)
    }

    /// Returns the settings files, existing or not.
    fn settings_files(&self) -> Vec<PathBuf> {
        let mut paths = settings::file_paths(&self.places);
        let is_path = |value: &&String| !value.trim_start().starts_with('{');
        let flag = self.flag.iter().filter(is_path);
        paths.extend(flag.map(|it| self.places.cwd.join(it)));
        paths
    }

    /// Asks hooks about files that have changed. What they refuse does not count.
    fn ask(&mut self, texts: &SettingsTexts) {
        let Some(before) = self.seen.replace(texts.clone()) else {
            return;
        };
        for (path, _) in texts
            .iter()
            .filter(|(path, text)| before.get(*path) != Some(text))
        {
            match self.refusal(path) {
                Some(told) => {
                    say(&tame(&told));
                    // After a second refusal, what counted before the first one still counts.
                    let counted = before.get(path).cloned().flatten();
                    self.kept.entry(path.clone()).or_insert(counted);
                }
                None => {
                    self.kept.remove(path);
                }
            }
        }
    }

    /// Returns what people are told if a hook refuses the change of a file.
    fn refusal(&self, path: &Path) -> Option<String> {
        let asker = self.asker.as_ref()?;
        let layer = settings::layer_of(&self.places, path).unwrap_or(HookLayer::Flag);
        let source = source_of(layer);
        let own = json!({ "source": source, "file_path": path });
        let said = asker.ask(HookEvent::ConfigChange, source, own);
        self.refused(path, layer, &said)
    }

    /// Returns what people are told if hooks that say this refuse the change of a file.
    fn refused(&self, path: &Path, layer: HookLayer, said: &Merged) -> Option<String> {
        let why = said.ends_run.as_deref().or(said.denied())?;
        let file = shown(path, &self.places.cwd);
        let why = match why.trim() {
            "" => String::new(),
            why => format!(": {why}"),
        };
        if layer == HookLayer::Managed {
            say(&tame(&format!(
                "hooks: the change of {file} counts, though a hook refuses it{why}"
            )));
            return None;
        }
        Some(format!(
            "hooks: the change of {file} does not count: a hook refuses it{why}"
        ))
    }

    /// Returns the hooks that files with these texts come to.
    fn settled(&self, mut texts: SettingsTexts) -> Result<SettingsHooks, SettingsError> {
        texts.extend(self.kept.clone());
        let places = self.places_now();
        let next = settings::read_hooks(&places, self.flag.as_deref(), &texts)?;
        Ok(next.after(&self.now, &places.trust))
    }

    /// Returns the places with the trust that the person has kept by now.
    fn places_now(&self) -> SearchPaths {
        let places = self.places.clone();
        let homes = (places.posse_home.as_deref(), places.home.as_deref());
        let kept = || Trust::of(&places.cwd, homes.0, homes.1);
        let trust = self.trust.clone().unwrap_or_else(kept);
        SearchPaths { trust, ..places }
    }

    /// Returns what has changed in one line; none if nothing has.
    fn difference(&self, next: &SettingsHooks) -> Option<String> {
        let name = |sign: &str, hook: &Hook| {
            let waits = match hook.state {
                HookState::Active => "",
                HookState::Waits { .. } => " (waits for `posse trust`, calls are asked about)",
            };
            tame(&format!("{sign} {} {}{waits}", hook.event, hook.title()))
        };
        let same = |hooks: &SettingsHooks, hook: &Hook| {
            let found = hooks.hooks.iter().find(|it| it.is_same(hook));
            found.map(|it| it.state.clone())
        };
        let added = next.hooks.iter();
        let added = added.filter(|hook| same(&self.now, hook).as_ref() != Some(&hook.state));
        let gone = self
            .now
            .hooks
            .iter()
            .filter(|hook| same(next, hook).is_none());
        let changes = added.map(|hook| name("+", hook));
        let changes = changes.chain(gone.map(|hook| name("-", hook)));
        let is_new = |remark: &&HookRemark| !self.now.remarks.contains(remark);
        let remarks = next.remarks.iter().filter(is_new);
        let remarks = remarks.map(|remark| {
            let file = shown(&remark.file, &self.places.cwd);
            format!("{file}:{}: {}", remark.line, tame(&remark.what))
        });
        let parts: Vec<String> = changes.chain(remarks).collect();
        let more = parts.len().checked_sub(TOLD).filter(|more| *more > 0);
        let more = more.map(|more| format!("and {more} more: `posse hooks list` lists all"));
        let told: Vec<String> = parts.into_iter().take(TOLD).chain(more).collect();
        (!told.is_empty()).then(|| format!("hooks: {}", told.join("; ")))
    }
}

impl WatchedFiles for LiveHooks {
    type Content = Result<SettingsTexts, SettingsError>;
    const WORD: &'static str = "hooks";

    fn paths(&self) -> Vec<PathBuf> {
        let mut paths = self.settings_files();
        // What the person accepts meanwhile counts.
        let home = self.places.posse_home.iter();
        paths.extend(home.map(|home| home.join("trust.toml")));
        paths
    }

    fn read(&self) -> Self::Content {
        settings::read_texts(self.settings_files())
    }

    fn take(&mut self, content: Self::Content) {
        let next = content.and_then(|texts| {
            self.ask(&texts);
            self.settled(texts)
        });
        let next = match next {
            Ok(next) => next,
            Err(error) => {
                let why = posse_port::in_a_line(&error);
                let told = format!("hooks: {why}; those from before still hold");
                if self.broken.as_ref() != Some(&told) {
                    say(&tame(&told));
                }
                self.broken = Some(told);
                return;
            }
        };
        self.broken = None;
        if next == self.now {
            return;
        }
        self.book.replace(next.set().with(&self.program));
        if let Some(line) = self.difference(&next) {
            say(&line);
        }
        self.now = next;
    }
}

/// Returns what hooks call the files of a layer.
fn source_of(layer: HookLayer) -> &'static str {
    match layer {
        HookLayer::Managed => "policy_settings",
        HookLayer::User => "user_settings",
        HookLayer::Project => "project_settings",
        HookLayer::Local => "local_settings",
        _ => "flag_settings",
    }
}

#[cfg(test)]
mod tests {
    use posse_runtime::hook::answer::HookDecision;
    use posse_runtime::hook::{HookEvent, Matched};

    use super::*;
    use crate::config::settings::FlagSettings;
    use crate::config::settings::tests::Disk;
    use crate::definitions::trustable::{Extent, Trustable};

    const OF_USER: &str = "home/.claude/settings.json";
    const OF_REPOSITORY: &str = "repo/.claude/settings.json";

    fn guard(command: &str) -> String {
        format!(
            r#"{{"hooks": {{"PreToolUse": [{{"matcher": "Bash", "hooks": [
                {{"type": "command", "command": "{command}"}}]}}]}}}}"#
        )
    }

    /// Returns the hooks of a disk with the trust that is kept there.
    fn live(disk: &Disk) -> LiveHooks {
        let places = &disk.places;
        let homes = (places.posse_home.as_deref(), places.home.as_deref());
        let places = SearchPaths {
            trust: Trust::kept(&places.cwd, homes.0, homes.1),
            ..places.clone()
        };
        let settings = Settings::load(&places, FlagSettings::default()).unwrap();
        LiveHooks::new(&settings, places, None, Vec::new(), None)
    }

    fn look_again(live: &mut LiveHooks) -> Matched {
        let content = live.read();
        live.take(content);
        live.book.now().matching(HookEvent::PreToolUse, "Bash")
    }

    fn titles(matched: &Matched) -> Vec<String> {
        matched.hooks.iter().map(|hook| hook.title()).collect()
    }

    fn accept(disk: &Disk) {
        Trustable::at(&disk.places, Extent::Whole).accept().unwrap();
    }

    #[test]
    fn a_changed_hook_of_the_user_holds_and_a_broken_file_keeps_the_old_one() {
        let disk = Disk::new();
        disk.write(OF_USER, &guard("one"));
        let mut live = live(&disk);
        assert_eq!(titles(&look_again(&mut live)), ["one"]);
        disk.write(OF_USER, &guard("two"));
        assert_eq!(titles(&look_again(&mut live)), ["two"]);
        disk.write(OF_USER, "{\"hooks\": ");
        assert_eq!(titles(&look_again(&mut live)), ["two"]);
        let told = live.broken.clone().unwrap();
        assert!(
            told.contains("settings.json") && told.contains("still hold"),
            "{told}"
        );
        disk.write(OF_USER, "{}");
        assert!(look_again(&mut live).is_empty() && live.broken.is_none());
    }

    #[test]
    fn what_was_refused_does_not_count_until_the_file_changes_again() {
        let disk = Disk::new();
        disk.write(OF_USER, &guard("one"));
        let mut live = live(&disk);
        let before = std::fs::read_to_string(disk.path(OF_USER)).unwrap();
        disk.write(OF_USER, "{");
        live.seen = Some(live.read().unwrap());
        live.kept.insert(disk.path(OF_USER), Some(before));
        assert_eq!(titles(&look_again(&mut live)), ["one"]);
        // Another file that changes does not bring it in.
        disk.write(OF_REPOSITORY, &guard("two"));
        accept(&disk);
        let mut both = titles(&look_again(&mut live));
        both.sort();
        assert_eq!(both, ["one", "two"]);
        disk.write(OF_USER, &guard("three"));
        let both = titles(&look_again(&mut live));
        assert!(
            both.contains(&"three".into()) && both.len() == 2,
            "{both:?}"
        );
        assert!(live.kept.is_empty());
    }

    #[test]
    fn a_change_of_the_administrator_counts_whatever_hooks_say() {
        let disk = Disk::new();
        let live = live(&disk);
        let path = disk.path(OF_USER);
        let said = Merged {
            decision: Some(HookDecision::Deny("not\nnow".into())),
            ..Merged::default()
        };
        let ends = Merged {
            ends_run: Some(String::new()),
            ..Merged::default()
        };
        for layer in [HookLayer::User, HookLayer::Local, HookLayer::Flag] {
            let told = live.refused(&path, layer, &said).unwrap();
            assert!(told.ends_with("a hook refuses it: not\nnow"), "{told}");
            assert!(live.refused(&path, layer, &ends).is_some());
            assert_eq!(live.refused(&path, layer, &Merged::default()), None);
        }
        assert_eq!(live.refused(&path, HookLayer::Managed, &said), None);
        let sources = [
            HookLayer::Managed,
            HookLayer::User,
            HookLayer::Project,
            HookLayer::Local,
            HookLayer::Flag,
        ]
        .map(source_of);
        let words = ["policy", "user", "project", "local", "flag"];
        assert_eq!(sources, words.map(|word| format!("{word}_settings")));
    }

    // proves HK-12 (part: hooks; content)
    #[test]
    fn a_changed_hook_of_a_repository_waits_and_what_the_old_one_saw_is_asked_about() {
        let disk = Disk::new();
        disk.write(OF_REPOSITORY, &guard("one"));
        let mut live = live(&disk);
        let waits = |matched: &Matched| matched.hooks.is_empty() && matched.waits.is_some();
        assert!(waits(&look_again(&mut live)));
        accept(&disk);
        assert_eq!(titles(&look_again(&mut live)), ["one"]);
        disk.write(OF_REPOSITORY, &guard("two").replace("Bash", "Edit"));
        assert!(waits(&look_again(&mut live)));
        let book = Arc::clone(&live.book);
        let edit = || book.now().matching(HookEvent::PreToolUse, "Edit");
        assert!(waits(&edit()));
        accept(&disk);
        assert!(look_again(&mut live).is_empty());
        assert_eq!(titles(&edit()), ["two"]);
        std::fs::remove_file(disk.path(OF_REPOSITORY)).unwrap();
        look_again(&mut live);
        assert!(waits(&edit()));
        accept(&disk);
        look_again(&mut live);
        assert!(edit().is_empty());
    }
}
