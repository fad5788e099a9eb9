//! Layers on a disk.

use std::fs;
use std::time::Duration;

use posse_permission::{Verdict, decide};
use posse_port::tool::FileGuard;
use posse_port::tool::{Intent, Subject, Workspace};
use posse_port::worktree::{Base, Dirty};
use posse_protocol::Cost;
use posse_runtime::definition::spawning::Background;
use posse_runtime::govern::budget::Budget;

use posse_tools::Place;

use super::agents::ImplicitFork;
use super::teams::ForcedBy;
use super::*;
use crate::config::search_paths::SettingSources;
use crate::config::trust::Trust;

/// A directory that goes when it is dropped, with a home, a repository in it, and a place to work there.
pub(crate) struct Disk {
    root: PathBuf,
    pub(crate) places: SearchPaths,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let root = std::env::temp_dir().join(format!("posse-test-{}", uuid::Uuid::now_v7()));
        for directory in ["home", "posse", "repo/.git", "repo/sub/deep"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        let root = root.canonicalize().unwrap();
        let places = SearchPaths {
            managed: root.join("managed.json"),
            posse_home: Some(root.join("posse")),
            home: Some(root.join("home")),
            cwd: root.join("repo/sub"),
            sources: SettingSources::default(),
            trust: Trust::everything(&root.join("repo/sub")),
        };
        Self { root, places }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn load(&self, flags: FlagSettings) -> Result<Settings, SettingsError> {
        Settings::load(&self.places, flags)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn workspace() -> Workspace {
    Workspace {
        cwd: "/w".into(),
        roots: vec!["/w".into()],
        spill: "/spill".into(),
        home: None,
        mirror: None,
        notes: None,
    }
}

fn runs(settings: &Settings, command: &str) -> &'static str {
    let workspace = workspace();
    let subject = Subject::runs(command);
    let intent = Intent {
        read_only: false,
        beside_others: false,
        subject,
        waits: false,
        title: String::new(),
    };
    match decide(
        &settings.policy,
        PermissionMode::Default,
        &workspace,
        "Bash",
        &intent,
    ) {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

#[test]
fn nothing_anywhere_is_the_default() {
    let settings = Disk::new().load(FlagSettings::default()).unwrap();
    assert_eq!(settings.mode, PermissionMode::Default);
    assert_eq!(settings.model, None);
    assert_eq!(settings.warnings, Vec::<String>::new());
}

// proves PE-02 (part: the layers)
#[test]
fn rules_come_from_every_layer() {
    let disk = Disk::new();
    let deny =
        |rule: &str| format!(r#"{{"permissions": {{"deny": ["Bash({rule})"]}}, "hooks": {{}}}}"#);
    disk.write("managed.json", &deny("a"));
    disk.write("repo/.posse/settings.local.json", &deny("b"));
    disk.write("repo/.claude/settings.local.json", &deny("c"));
    disk.write("repo/.posse/settings.json", &deny("d"));
    disk.write(
        "repo/.claude/settings.json",
        r#"{"permissions": {"ask": ["Bash(e)"]}}"#,
    );
    disk.write("posse/settings.json", &deny("f"));
    disk.write(
        "home/.claude/settings.json",
        r#"{"permissions": {"allow": ["Bash(e)", "Bash(g)"]}}"#,
    );
    let flags = FlagSettings {
        allow: vec!["Bash(a)".into(), "Bash(i)".into()],
        deny: vec!["Bash(h)".into()],
        ..Default::default()
    };
    let settings = disk.load(flags).unwrap();
    for command in ["a", "b", "c", "d", "f", "h"] {
        assert_eq!(runs(&settings, command), "deny", "{command}");
    }
    assert_eq!(
        (
            runs(&settings, "e"),
            runs(&settings, "g"),
            runs(&settings, "i")
        ),
        ("ask", "allow", "allow")
    );
}

// corpus C166
#[test]
fn a_repository_may_only_tighten() {
    for file in [
        ".posse/settings.json",
        ".claude/settings.json",
        ".posse/settings.local.json",
    ] {
        let disk = Disk::new();
        disk.write(
            &format!("repo/{file}"),
            r#"{"model": "other", "store": "sqlite:/tmp/x", "permissions": {"allow": ["Bash", "Edit"], "additionalDirectories": ["/"],
                "defaultMode": "bypassPermissions"}}"#,
        );
        let settings = disk.load(FlagSettings::default()).unwrap();
        assert_eq!(runs(&settings, "anything"), "ask");
        assert_eq!(
            (settings.mode, settings.model),
            (PermissionMode::Default, None)
        );
        assert_eq!(settings.additional_directories, Vec::<PathBuf>::new());
        let [warning] = &settings.warnings[..] else {
            panic!("{:?}", settings.warnings)
        };
        // In another program's file it is no store.
        let store = if file.starts_with(".posse") {
            "1 store, "
        } else {
            ""
        };
        let counts = format!("ignored: 2 allow rules, 1 directory, 1 model, {store}1 mode in ");
        assert!(
            warning.starts_with(&counts) && warning.contains(file),
            "{warning}"
        );
        let told = settings.details.join("\n");
        for exact in [
            "allow rules Bash, Edit in",
            "directory / in",
            "model other",
            "mode bypassPermissions",
        ] {
            assert!(told.contains(exact), "{told}");
        }
    }
}

#[test]
fn the_mode_of_a_repository_counts_if_it_is_stricter() {
    let table = [
        ("plan", "acceptEdits", "plan"),
        ("dontAsk", "default", "dontAsk"),
        ("default", "acceptEdits", "default"),
        ("acceptEdits", "default", "default"),
        ("default", "plan", "plan"),
    ];
    for (repository, user, expected) in table {
        let disk = Disk::new();
        let mode = |mode: &str| format!(r#"{{"permissions": {{"defaultMode": "{mode}"}}}}"#);
        disk.write("repo/.posse/settings.json", &mode(repository));
        disk.write("posse/settings.json", &mode(user));
        assert_eq!(
            disk.load(FlagSettings::default()).unwrap().mode.as_str(),
            expected,
            "{repository} over {user}"
        );
    }
}

#[test]
fn a_flag_beats_files_and_yields_to_the_administrator() {
    let disk = Disk::new();
    let mode = |mode: &str| format!(r#"{{"permissions": {{"defaultMode": "{mode}"}}}}"#);
    let flag = |mode| FlagSettings {
        mode: Some(mode),
        ..FlagSettings::default()
    };
    disk.write("repo/.posse/settings.json", &mode("plan"));
    disk.write("posse/settings.json", &mode("default"));
    assert_eq!(
        disk.load(flag(PermissionMode::AcceptEdits)).unwrap().mode,
        PermissionMode::AcceptEdits
    );
    disk.write("managed.json", &mode("default"));
    assert_eq!(
        disk.load(flag(PermissionMode::Plan)).unwrap().mode,
        PermissionMode::Plan
    );
    let settings = disk.load(flag(PermissionMode::AcceptEdits)).unwrap();
    assert_eq!(settings.mode, PermissionMode::Default);
    assert_eq!(
        settings.warnings,
        ["ignored: --permission-mode acceptEdits; managed settings say default"]
    );
}

// proves TS-01 (part: changes)
#[test]
fn before_trust_the_users_usual_mode_lets_nothing_be_changed_unasked() {
    let mode = |mode: &str| format!(r#"{{"permissions": {{"defaultMode": "{mode}"}}}}"#);
    for (says, expected) in [
        ("plan", "plan"),
        ("dontAsk", "dontAsk"),
        ("acceptEdits", "default"),
        ("bypassPermissions", "default"),
    ] {
        let mut disk = Disk::new();
        disk.write("posse/settings.json", &mode(says));
        let trusted = disk.load(FlagSettings::default()).unwrap();
        assert_eq!(trusted.mode.as_str(), says);
        disk.places.trust = Trust::nothing(&disk.places.cwd);
        let settings = disk.load(FlagSettings::default()).unwrap();
        assert_eq!(settings.mode.as_str(), expected, "{says}");
        let told = settings.warnings.concat();
        let is_told = told.starts_with("not used: defaultMode");
        assert_eq!(is_told, says != expected, "{told}");
        // A flag is for this run, and an administrator decides for all workspaces.
        let flag = FlagSettings {
            mode: Some(PermissionMode::AcceptEdits),
            ..FlagSettings::default()
        };
        let settings = disk.load(flag).unwrap();
        assert_eq!(settings.mode, PermissionMode::AcceptEdits);
        disk.write("managed.json", &mode("acceptEdits"));
        let settings = disk.load(FlagSettings::default()).unwrap();
        assert_eq!(settings.mode, PermissionMode::AcceptEdits);
    }
}

#[test]
fn a_kept_mode_beats_the_users_default_and_nothing_else() {
    let mode = |mode: &str| format!(r#"{{"permissions": {{"defaultMode": "{mode}"}}}}"#);
    let kept = || FlagSettings {
        kept_mode: Some(PermissionMode::AcceptEdits),
        ..FlagSettings::default()
    };
    let check = |file: &str, says: &str, expected: &str| {
        let disk = Disk::new();
        disk.write(file, &mode(says));
        let settings = disk.load(kept()).unwrap();
        assert_eq!(settings.mode.as_str(), expected, "{file} says {says}");
        assert_eq!(settings.warnings, Vec::<String>::new());
    };
    check("posse/settings.json", "plan", "acceptEdits");
    check("repo/.posse/settings.json", "plan", "plan");
    check("managed.json", "default", "default");
    check("managed.json", "bypassPermissions", "acceptEdits");
    let disk = Disk::new();
    let both = FlagSettings {
        mode: Some(PermissionMode::Plan),
        ..kept()
    };
    assert_eq!(disk.load(both).unwrap().mode, PermissionMode::Plan);
}

#[test]
fn the_highest_layer_says_the_model() {
    let disk = Disk::new();
    let model = |model: &str| format!(r#"{{"model": "{model}"}}"#);
    disk.write("home/.claude/settings.json", &model("lowest"));
    disk.write("posse/settings.json", &model("user"));
    let flags = || FlagSettings {
        model: Some("flag".into()),
        ..FlagSettings::default()
    };
    assert_eq!(
        disk.load(FlagSettings::default()).unwrap().model.as_deref(),
        Some("user")
    );
    assert_eq!(disk.load(flags()).unwrap().model.as_deref(), Some("flag"));
    disk.write("managed.json", &model("managed"));
    assert_eq!(
        disk.load(flags()).unwrap().model.as_deref(),
        Some("managed")
    );
}

#[test]
fn bypass_can_be_switched_off() {
    let bypass = || FlagSettings {
        mode: Some(PermissionMode::BypassPermissions),
        ..FlagSettings::default()
    };
    for value in ["true", "\"disable\""] {
        let disk = Disk::new();
        assert_eq!(
            disk.load(bypass()).unwrap().mode,
            PermissionMode::BypassPermissions
        );
        let text = format!(r#"{{"permissions": {{"disableBypassPermissionsMode": {value}}}}}"#);
        disk.write("managed.json", &text);
        let error = disk.load(bypass()).unwrap_err().to_string();
        assert!(error.contains("managed.json"), "{error}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_file() {
    let table = [
        (
            r#"{"permissions": {"deny": "Bash"}}"#,
            "expected a sequence",
        ),
        (r#"{"permissions": {"deny": ["Bsh"]}}"#, "no tool `Bsh`"),
        (
            r#"{"permissions": {"defaultMode": 1}}"#,
            "expected a string",
        ),
        (
            r#"{"permissions": {"disableBypassPermissionsMode": 1}}"#,
            "\"disable\"",
        ),
        ("{", "EOF"),
    ];
    for (text, expected) in table {
        let disk = Disk::new();
        disk.write("repo/.posse/settings.json", text);
        let error = disk.load(FlagSettings::default()).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("settings.json"),
            "{error}"
        );
    }
}

// proves FC-10 (part: modes of others)
#[test]
fn a_mode_that_posse_does_not_have_is_default_and_told() {
    for word in ["auto", "manual", "bubble", "yolo"] {
        let disk = Disk::new();
        let text = format!(r#"{{"permissions": {{"defaultMode": "{word}"}}}}"#);
        disk.write("posse/settings.json", &text);
        let settings = disk.load(FlagSettings::default()).unwrap();
        assert_eq!(settings.mode, PermissionMode::Default);
        let file = disk.path("posse/settings.json");
        let told = format!(
            "{}: posse has no permission mode `{word}`; it counts as `default`",
            file.display()
        );
        assert_eq!(settings.warnings, [told]);
        let plan = r#"{"permissions": {"defaultMode": "plan"}}"#;
        disk.write("repo/.claude/settings.json", plan);
        let settings = disk.load(FlagSettings::default()).unwrap();
        assert_eq!(settings.mode, PermissionMode::Plan, "the stricter one");
    }
}

// proves FC-10 (part: modes of others)
#[test]
fn a_mode_that_posse_does_not_have_loosens_no_other_layer() {
    let mode = |word: &str| format!(r#"{{"permissions": {{"defaultMode": "{word}"}}}}"#);
    let files = [
        "managed.json",
        "repo/given.json",
        "posse/settings.json",
        "home/.claude/settings.json",
    ];
    // What each of the files says, and the result.
    let table: [([&str; 4], &str); 7] = [
        (["auto", "", "plan", ""], "plan"),
        (["auto", "", "", "acceptEdits"], "default"),
        (["", "auto", "dontAsk", "plan"], "plan"),
        (["", "", "auto", "plan"], "plan"),
        (["", "", "auto", "bypassPermissions"], "default"),
        // A mode that posse has is the user's decision about the layers below.
        (["", "acceptEdits", "auto", "plan"], "acceptEdits"),
        (["acceptEdits", "auto", "plan", ""], "acceptEdits"),
    ];
    for (words, expected) in table {
        let disk = Disk::new();
        let said = files.iter().zip(words).filter(|(_, word)| !word.is_empty());
        said.for_each(|(file, word)| disk.write(file, &mode(word)));
        let given = disk.path("repo/given.json");
        let flags = FlagSettings {
            settings: given.exists().then(|| given.display().to_string()),
            ..FlagSettings::default()
        };
        let settings = disk.load(flags).unwrap();
        assert_eq!(settings.mode.as_str(), expected, "{words:?}");
        if words.contains(&"plan") && expected == "plan" {
            let told = settings.warnings.join("\n");
            assert!(told.contains("; `plan` applies here"), "{told}");
        }
        // The same word as a flag.
        let flags = FlagSettings {
            foreign_mode: Some("auto"),
            ..FlagSettings::default()
        };
        let strictest = match words.contains(&"plan") {
            true => "plan",
            false => "default",
        };
        assert_eq!(disk.load(flags).unwrap().mode.as_str(), strictest);
    }
}

// proves FC-10 (part: one line)
#[test]
fn what_a_repository_asks_for_in_vain_is_one_line() {
    let disk = Disk::new();
    for name in [".claude/settings.json", ".claude/settings.local.json"] {
        let text = r#"{"model": "x", "permissions": {"allow": ["Bash(a)", "Bash(b)"]}}"#;
        disk.write(&format!("repo/{name}"), text);
    }
    let settings = disk.load(FlagSettings::default()).unwrap();
    let [told] = &settings.warnings[..] else {
        panic!("{:?}", settings.warnings)
    };
    assert!(
        told.starts_with("ignored: 4 allow rules, 2 models in ")
            && told.contains("settings.local.json and ")
            && told.contains(".claude/settings.json: a repository may only tighten"),
        "{told}"
    );
    assert_eq!(settings.details.len(), 4);
}

// proves FC-10 (part: sources; settings)
#[test]
fn flags_add_settings_and_choose_files() {
    let disk = Disk::new();
    let deny = |rule: &str| format!(r#"{{"permissions": {{"deny": ["Bash({rule})"]}}}}"#);
    disk.write("home/.claude/settings.json", &deny("user"));
    disk.write("repo/.claude/settings.json", &deny("project"));
    disk.write("repo/.claude/settings.local.json", &deny("local"));
    let denied = |sources: &str, settings: Option<&str>| {
        let places = disk.places.clone().limited_to(sources.parse().unwrap());
        let flags = FlagSettings {
            settings: settings.map(str::to_owned),
            ..FlagSettings::default()
        };
        let settings = Settings::load(&places, flags).unwrap();
        let all = ["user", "project", "local", "flag"];
        let denied: Vec<&str> = all
            .into_iter()
            .filter(|command| runs(&settings, command) == "deny")
            .collect();
        let unused = settings.unsupported.files.iter();
        let unused: Vec<String> = unused
            .filter(|file| file.path.starts_with("--settings"))
            .map(|file| format!("{}: {}", file.path.display(), file.what))
            .collect();
        (denied.join(","), unused)
    };
    for sources in ["user,project,local", "user", "project", "local", ""] {
        assert_eq!(denied(sources, None).0, sources);
    }
    assert_eq!(denied("", Some(&deny("flag"))).0, "flag");
    disk.write("extra.json", &deny("flag"));
    let file = disk.path("extra.json").display().to_string();
    assert_eq!(denied("user", Some(&file)).0, "user,flag");
    let (_, unused) = denied(
        "",
        Some(r#"{"env": {"A": "b"}, "statusLine": {"type": "x"}, "sandbox": {"enabled": true}}"#),
    );
    assert_eq!(unused, ["--settings: statusLine"]);
    assert!("user,home".parse::<SettingSources>().is_err());
    let missing = FlagSettings {
        settings: Some("nowhere.json".into()),
        ..FlagSettings::default()
    };
    let error = disk.load(missing).unwrap_err().to_string();
    assert!(error.contains("nowhere.json"), "{error}");
}

#[test]
fn a_typo_is_named_and_a_mark_is_skipped() {
    let disk = Disk::new();
    disk.write(
        "repo/.posse/settings.json",
        "\u{feff}{\"other\": 1, \"permissions\": {\"dney\": [\"Bash\"], \"xyz\": 1, \"deny\": [\"Bash(a)\"]}}",
    );
    let settings = disk.load(FlagSettings::default()).unwrap();
    let [warning] = &settings.warnings[..] else {
        panic!("{:?}", settings.warnings)
    };
    assert!(
        warning.starts_with("unknown: `dney` (did you mean `deny`?), `xyz` in "),
        "{warning}"
    );
    assert!(warning.contains("settings.json"), "{warning}");
    assert_eq!(
        (runs(&settings, "a"), runs(&settings, "b")),
        ("deny", "ask")
    );
    disk.write("repo/.posse/settings.json", "\u{feff}");
    assert_eq!(
        disk.load(FlagSettings::default()).unwrap().warnings,
        Vec::<String>::new()
    );
}

#[test]
fn an_allow_rule_that_is_not_understood_is_left_out() {
    let disk = Disk::new();
    disk.write(
        "home/.claude/settings.json",
        r#"{"permissions": {"allow": ["Frobnicate(x)", "Bash(ls)"]}}"#,
    );
    let settings = disk.load(FlagSettings::default()).unwrap();
    assert_eq!(runs(&settings, "ls"), "allow");
    assert!(matches!(settings.warnings.as_slice(), [one] if one.contains("Frobnicate")));
    let flags = FlagSettings {
        allow: vec!["Frobnicate".into()],
        ..FlagSettings::default()
    };
    assert!(matches!(disk.load(flags), Err(SettingsError::Rule(_))));
}

#[test]
fn paths_begin_where_the_file_belongs() {
    let disk = Disk::new();
    disk.write(
        "repo/.posse/settings.json",
        r#"{"permissions": {"deny": ["Read(/a)", "Read(./b)", "Read(~/c)"]}}"#,
    );
    disk.write(
        "posse/settings.json",
        r#"{"permissions": {"additionalDirectories": ["~/x", "/abs"]}}"#,
    );
    let flags = FlagSettings {
        additional_directories: vec!["../y".into()],
        ..FlagSettings::default()
    };
    let settings = disk.load(flags).unwrap();
    for name in ["repo/a", "repo/sub/b", "home/c"] {
        assert!(
            settings
                .policy
                .denies_reading(&disk.path(name), &workspace()),
            "{name}"
        );
    }
    assert!(
        !settings
            .policy
            .denies_reading(&disk.path("repo/b"), &workspace())
    );
    let directories = [
        disk.path("home/x"),
        "/abs".into(),
        disk.path("repo/sub/../y"),
    ];
    assert_eq!(settings.additional_directories, directories);
}

#[test]
fn the_store_is_chosen_by_the_user_and_never_by_a_repository() {
    let disk = Disk::new();
    let chosen = || {
        let settings = store_settings(&disk.places);
        settings
            .map(|set| set.location)
            .map_err(|error| error.to_string())
    };
    let file = |path| Ok(Some(store::StoreLocation::File(path)));
    let store = |path: &str| format!(r#"{{"store": "{path}"}}"#);
    for theirs in [
        "repo/.posse/settings.json",
        "repo/.claude/settings.json",
        "home/.claude/settings.json",
    ] {
        disk.write(theirs, &store("sqlite:/theirs.db"));
    }
    assert_eq!(chosen(), Ok(None));
    disk.write("posse/settings.json", &store("sqlite:mine.db"));
    assert_eq!(chosen(), file(disk.path("posse/mine.db")));
    disk.write("posse/settings.json", &store("sqlite:~/mine.db"));
    assert_eq!(chosen(), file(disk.path("home/mine.db")));
    disk.write("managed.json", &store("sqlite:/var/posse.db"));
    assert_eq!(chosen(), file("/var/posse.db".into()));
    disk.write("managed.json", &store("postgres://me@host/db"));
    assert!(matches!(
        chosen(),
        Ok(Some(store::StoreLocation::Server(_)))
    ));
    disk.write("managed.json", &store("postgres:host:s3cret"));
    let said = chosen().unwrap_err();
    assert!(
        said.contains("managed.json") && said.contains("USER@HOST"),
        "{said}"
    );
    assert!(!said.contains("s3cret"), "{said}");
}

// proves LI-03 (part: configurable)
// proves FK-09 (part: off by default)
#[test]
fn how_agents_start_others_has_defaults_and_can_be_said() {
    let disk = Disk::new();
    let agents = disk.load(FlagSettings::default()).unwrap().agents;
    assert_eq!(
        (agents.depth, agents.running, agents.background),
        (3, 64, Background::Asked)
    );
    assert_eq!(
        (agents.auto_background, agents.budgets.subtree),
        (None, Budget::default())
    );
    assert_eq!(agents.implicit_fork, ImplicitFork::Off);
    disk.write(
        "posse/settings.json",
        r#"{"agents": {"maxDepth": 5, "maxRunning": 8, "background": "always", "autoBackgroundSeconds": 120,
            "budget": {"usd": 0.25, "tokens": 1000, "turns": 7, "seconds": 60}, "subtreeBudget": {"usd": 2},
            "worktree": {"base": "fresh", "dirty": "carry"}, "implicitFork": "always"}, "compactAt": 5000}"#,
    );
    // Another program's key of the same name is its own.
    disk.write("home/.claude/settings.json", r#"{"agents": ["theirs"]}"#);
    disk.write(
        "repo/.claude/settings.json",
        r#"{"agents": {"maxDepth": "deep"}}"#,
    );
    let settings = disk.load(FlagSettings::default()).unwrap();
    let agents = settings.agents;
    assert_eq!(
        (agents.depth, agents.running, agents.background),
        (5, 8, Background::Always)
    );
    assert_eq!(agents.auto_background, Some(Duration::from_secs(120)));
    assert_eq!((agents.base, agents.dirty), (Base::Fresh, Dirty::Carry));
    assert_eq!(
        (agents.implicit_fork, settings.compact_at),
        (ImplicitFork::Always, Some(5000))
    );
    let alone = Budget {
        cost: Some(Cost::from_pico_usd(250_000_000_000)),
        tokens: Some(1000),
        turns: Some(7),
        time: Some(Duration::from_secs(60)),
    };
    assert_eq!(agents.budgets.alone, alone);
    assert_eq!(
        agents.budgets.subtree.cost,
        Some(Cost::from_pico_usd(2_000_000_000_000))
    );
    assert_eq!(settings.warnings, Vec::<String>::new());
    let flags = AgentFlags {
        depth: Some(1),
        running: Some(100),
        no_background: true,
        auto_background: None,
    };
    let agents = disk
        .load(FlagSettings {
            agents: flags,
            ..FlagSettings::default()
        })
        .unwrap()
        .agents;
    assert_eq!(
        (agents.depth, agents.running, agents.background),
        (1, 100, Background::Off)
    );
}

#[test]
fn a_repository_lowers_the_limits_of_agents_and_no_more() {
    let disk = Disk::new();
    disk.write(
        "repo/.posse/settings.json",
        r#"{"agents": {"maxDepth": 1, "maxRunning": 1000, "background": "always", "autoBackgroundSeconds": 1,
            "budget": {"usd": 1}, "subtreeBudget": {"tokens": 50, "turns": 5}, "worktree": {"base": "fresh"},
            "implicitFork": "always"}}"#,
    );
    disk.write(
        "posse/settings.json",
        r#"{"agents": {"budget": {"usd": 0.5}, "subtreeBudget": {"tokens": 9}}}"#,
    );
    let settings = disk.load(FlagSettings::default()).unwrap();
    let agents = settings.agents;
    assert_eq!(
        (agents.depth, agents.running, agents.background),
        (1, 64, Background::Asked)
    );
    assert_eq!(
        (agents.auto_background, agents.base, agents.dirty),
        (None, Base::Head, Dirty::Tell)
    );
    assert_eq!(
        agents.budgets.alone.cost,
        Some(Cost::from_pico_usd(500_000_000_000))
    );
    assert_eq!(
        (agents.budgets.subtree.tokens, agents.budgets.subtree.turns),
        (Some(9), Some(5))
    );
    let [warning] = &settings.warnings[..] else {
        panic!("{:?}", settings.warnings)
    };
    assert!(
        warning.starts_with("ignored: 7 keys of agents in "),
        "{warning}"
    );
    let exact = "keys of agents maxRunning, background, autoBackgroundSeconds, budget, subtreeBudget, worktree, \
         implicitFork in";
    assert!(
        settings.details[0].contains(exact),
        "{:?}",
        settings.details
    );
    disk.write(
        "repo/.posse/settings.json",
        r#"{"agents": {"background": "off", "maxDepth": 0}}"#,
    );
    let flag = AgentFlags {
        depth: Some(2),
        ..AgentFlags::default()
    };
    let settings = disk
        .load(FlagSettings {
            agents: flag,
            ..FlagSettings::default()
        })
        .unwrap();
    assert_eq!(
        (settings.agents.background, settings.agents.depth),
        (Background::Off, 2),
        "a flag is not overruled"
    );
    assert_eq!(settings.warnings, Vec::<String>::new());
}

// proves FC-03 (part: settings)
#[test]
fn how_often_a_call_may_fail_is_set_by_the_user_and_lowered_by_a_repository() {
    let disk = Disk::new();
    let repeats = || {
        let settings = disk.load(FlagSettings::default()).unwrap();
        let repeats = settings.agents.repeats;
        (repeats.notice, repeats.stop, settings.warnings)
    };
    assert_eq!(repeats(), (3, 5, vec![]));
    disk.write(
        "posse/settings.json",
        r#"{"agents": {"repeatedCallNotice": 2, "repeatedCallLimit": 9}}"#,
    );
    assert_eq!(repeats(), (2, 9, vec![]));
    disk.write(
        "repo/.posse/settings.json",
        r#"{"agents": {"repeatedCallNotice": 8, "repeatedCallLimit": 4}}"#,
    );
    let (notice, stop, warnings) = repeats();
    assert_eq!((notice, stop), (2, 4));
    assert!(
        warnings[0].starts_with("ignored: 1 key of agents"),
        "{warnings:?}"
    );
}

#[test]
fn the_administrator_bounds_what_agents_may_do() {
    let disk = Disk::new();
    disk.write(
        "managed.json",
        r#"{"agents": {"maxDepth": 2, "background": "off", "budget": {"tokens": 100}}}"#,
    );
    disk.write(
        "posse/settings.json",
        r#"{"agents": {"background": "always", "budget": {"tokens": 900}}}"#,
    );
    for (flag, holds) in [(None, 2), (Some(9), 2), (Some(1), 1)] {
        let flags = AgentFlags {
            depth: flag,
            ..AgentFlags::default()
        };
        let agents = disk
            .load(FlagSettings {
                agents: flags,
                ..FlagSettings::default()
            })
            .unwrap()
            .agents;
        assert_eq!((agents.depth, agents.background), (holds, Background::Off));
        assert_eq!(agents.budgets.alone.tokens, Some(100));
    }
}

#[test]
fn what_is_wrong_about_agents_is_told() {
    for (text, expected) in [
        (
            r#"{"agents": {"background": "never"}}"#,
            "off, asked, default or always",
        ),
        (r#"{"agents": {"maxRunning": 0}}"#, "nonzero"),
        (r#"{"agents": {"budget": {"usd": -1}}}"#, "more than zero"),
        (r#"{"agents": 7}"#, "invalid type"),
    ] {
        let disk = Disk::new();
        disk.write("posse/settings.json", text);
        let error = disk.load(FlagSettings::default()).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("settings.json"),
            "{error}"
        );
    }
    let disk = Disk::new();
    disk.write(
        "posse/settings.json",
        r#"{"agents": {"maxDept": 1, "budget": {"eur": 1}}}"#,
    );
    let settings = disk.load(FlagSettings::default()).unwrap();
    let said = settings.warnings.join("\n");
    assert!(
        said.contains("unknown: `maxDept` (did you mean `maxDepth`?) in the agents of "),
        "{said}"
    );
    assert!(said.contains("`eur` in the budget of "), "{said}");
}

#[test]
fn where_teammates_run_is_said_by_the_user_and_never_by_a_repository() {
    let disk = Disk::new();
    let teams = |flag| {
        disk.load(FlagSettings {
            backend: flag,
            ..FlagSettings::default()
        })
        .unwrap()
        .teams
    };
    let default = teams(None);
    assert_eq!(
        (default.backend, default.forced, default.place),
        (Backend::InProcess, None, Place::Split)
    );
    assert_eq!(
        (default.pane_command, default.deadline),
        (None, Duration::from_secs(60))
    );
    let all = r#"{"teams": {"backend": "command", "paneCommand": ["term", "{argv...}"], "tmux": "window",
                  "shutdownDeadline": 5}}"#;
    disk.write("repo/.posse/settings.json", all);
    disk.write("repo/.claude/settings.json", r#"{"teams": "theirs"}"#);
    assert_eq!(teams(None).pane_command, None);
    let settings = disk.load(FlagSettings::default()).unwrap();
    let exact = "keys of teams backend, paneCommand, tmux, shutdownDeadline in ";
    assert!(
        settings.details.iter().any(|line| line.contains(exact)),
        "{:?}",
        settings.details
    );
    disk.write("posse/settings.json", all);
    let mine = teams(None);
    assert_eq!(
        (mine.backend, mine.forced, mine.place),
        (Backend::Command, None, Place::Window)
    );
    assert!(mine.pane_command.is_some() && mine.deadline == Duration::from_secs(5));
    let flagged = teams(Some(Backend::Tmux));
    assert_eq!(
        (flagged.backend, flagged.forced),
        (Backend::Tmux, Some(ForcedBy::Flag))
    );
    disk.write("managed.json", r#"{"teams": {"backend": "in-process"}}"#);
    let managed = teams(Some(Backend::Tmux));
    assert_eq!(managed.backend, Backend::InProcess);
    assert!(matches!(managed.forced, Some(ForcedBy::File(path)) if path.ends_with("managed.json")));
    for (text, expected) in [
        (r#"{"teams": {"backend": "screen"}}"#, "screen"),
        (
            r#"{"teams": {"paneCommand": ["term"]}}"#,
            "neither {argv...} nor {command}",
        ),
        (r#"{"teams": {"tmux": "tab"}}"#, "split or window"),
        (r#"{"teams": {"shutdownDeadline": 0}}"#, "nonzero"),
    ] {
        disk.write("posse/settings.json", text);
        let error = disk.load(FlagSettings::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

// proves FD-03 (part: setting)
#[test]
fn the_user_and_the_administrator_say_how_long_feeds_are_kept() {
    let disk = Disk::new();
    let hours = || {
        let age = store_settings(&disk.places).unwrap().feed_age;
        age.map(|age| age.as_secs() / 3600)
    };
    disk.write("repo/.posse/settings.json", r#"{"feedHours": 1}"#);
    disk.write("repo/.posse/settings.local.json", r#"{"feedHours": 1}"#);
    assert_eq!(hours(), None);
    disk.write("posse/settings.json", r#"{"feedHours": 5}"#);
    assert_eq!(hours(), Some(5));
    disk.write("managed.json", r#"{"feedHours": 7}"#);
    assert_eq!(hours(), Some(7));
    let flags = FlagSettings {
        settings: Some(r#"{"feedHours": 9}"#.into()),
        ..FlagSettings::default()
    };
    let settings = disk.load(flags).unwrap();
    let told: Vec<_> = settings
        .unsupported
        .files
        .iter()
        .map(|file| file.what.as_str())
        .collect();
    assert_eq!(told, ["feedHours (settings.json in posse's home sets it)"]);
    assert!(
        settings
            .details
            .iter()
            .any(|line| line.contains("feedHours")),
        "{:?}",
        settings.details
    );
    disk.write("posse/settings.json", r#"{"feedHours": 0}"#);
    assert!(store_settings(&disk.places).is_err());
}

// proves FC-08 (part: told once)
#[test]
fn what_is_not_used_of_a_file_has_no_effect_and_is_told() {
    let disk = Disk::new();
    // In another program's file the same words may mean anything.
    disk.write(
        "home/.claude/settings.json",
        r#"{"compactAt": 5000, "store": 3, "teams": "x"}"#,
    );
    disk.write("posse/settings.json", r#"{"store": "sqlite:/own.db"}"#);
    let flags = FlagSettings {
        settings: Some(r#"{"store": "sqlite:/other.db", "compactAt": 7000}"#.into()),
        ..FlagSettings::default()
    };
    let settings = disk.load(flags).unwrap();
    assert_eq!(settings.compact_at, Some(7000));
    let told: Vec<(String, String)> = settings
        .unsupported
        .files
        .iter()
        .map(|file| {
            let path = file.path.strip_prefix(disk.path("")).unwrap_or(&file.path);
            (path.display().to_string(), file.what.clone())
        })
        .collect();
    let expected = [
        ("--settings", "store (--store sets it)"),
        ("home/.claude/settings.json", "compactAt, store, teams"),
    ];
    assert_eq!(
        told,
        expected.map(|(file, what)| (file.to_owned(), what.to_owned()))
    );
    let used = |name: &str| {
        let file = settings.files.iter().find(|file| file.path.ends_with(name));
        file.unwrap().used.clone()
    };
    assert_eq!(used("--settings"), ["compactAt"]);
    assert_eq!(used("posse/settings.json"), ["store"]);
    let settings = disk.load(FlagSettings::default()).unwrap();
    assert_eq!(settings.compact_at, None);
}
