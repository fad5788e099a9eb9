//! Files of teams, good and bad.

use std::fs;

use posse_protocol::{Cost, PermissionMode, PlannedTask, TeamRole};

use super::super::{DefinitionSource, Severity};
use super::file::TeamFileReader;
use super::*;
use crate::config::search_paths::SettingSources;
use crate::config::trust::Trust;

const GOOD: &str = r#"description = "Mends the parser."

[lead]
agent = "general-purpose"
model = "opus"
permission_mode = "plan"
prompt = "Be brief."

[roles.dev]
prompt = "You write."
model = "sonnet"
effort = "high"
permission_mode = "acceptEdits"
worktree = true
budget_usd = 2.5
count = 2

[roles.reviewer]
agent = "explore"
takes = ["review", "docs"]

[[tasks]]
subject = "mend it"
check = "cargo test"

[[tasks]]
subject = "look at it"
description = "All of it."
role = "review"
blocked_by = [1]
"#;

fn types() -> Vec<String> {
    ["general-purpose", "Explore"].map(str::to_owned).to_vec()
}

type Said = (Severity, Option<usize>, String);

fn read_as(text: &str, source: DefinitionSource) -> (Option<TeamDeclaration>, Vec<Said>) {
    let mut lines = TeamFileReader::new(text, source);
    let read = lines.read("parser".parse().unwrap(), &types());
    (read, lines.remarks)
}

// proves TE-14 (part: the file; roles)
#[test]
fn a_file_declares_roles_and_tasks() {
    let (read, said) = read_as(GOOD, DefinitionSource::Project);
    assert_eq!(said, []);
    let dev = TeamRole {
        agent: None,
        prompt: "You write.".into(),
        model: Some("sonnet".into()),
        effort: Some("high".into()),
        mode: Some(PermissionMode::AcceptEdits),
        worktree: true,
        budget: Some(Cost::from_pico_usd(2_500_000_000_000)),
        count: 2,
        takes: None,
    };
    let reviewer = TeamRole {
        agent: Some("explore".into()),
        prompt: String::new(),
        model: None,
        effort: None,
        mode: None,
        worktree: false,
        budget: None,
        count: 1,
        takes: Some(vec!["review".into(), "docs".into()]),
    };
    let tasks = vec![
        PlannedTask {
            subject: "mend it".into(),
            check: Some("cargo test".into()),
            ..PlannedTask::default()
        },
        PlannedTask {
            subject: "look at it".into(),
            description: "All of it.".into(),
            role: Some("review".into()),
            blocked_by: vec![1],
            check: None,
        },
    ];
    let declared = TeamDeclaration {
        name: "parser".parse().unwrap(),
        lead: LeadDeclaration {
            agent: Some("general-purpose".into()),
            model: Some("opus".into()),
            mode: Some(PermissionMode::Plan),
            prompt: Some("Be brief.".into()),
        },
        plan: TeamPlan {
            description: "Mends the parser.".into(),
            roles: [
                ("dev".parse().unwrap(), dev),
                ("reviewer".parse().unwrap(), reviewer),
            ]
            .into(),
            tasks,
        },
    };
    assert_eq!(read, Some(declared));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let role = "[roles.dev]\n";
    for (text, line, what) in [
        ("", None, "it has no roles"),
        ("[roles]\n", Some(1), "it has no roles"),
        (
            "roles = 3\n",
            Some(1),
            "`roles` of the file must be a table, not a integer",
        ),
        ("[roles.dev\n", Some(1), ""),
        ("\n[roles.Dev]\n", Some(2), "`Dev` is not a valid name"),
        ("[roles.team-lead]\n", Some(1), "is reserved"),
        ("roles.dev = 1\n", Some(1), "a role must be a table"),
        ("[roles.dev]\ncuont = 2\n", Some(2), "did you mean `count`?"),
        (
            "discription = \"x\"\n[roles.dev]\n",
            Some(1),
            "did you mean `description`?",
        ),
        (
            "[roles.dev]\nfoo = 2\n",
            Some(2),
            "[roles.dev] has no field `foo`: there are agent, prompt",
        ),
        (
            "[roles.dev]\nowns = [\"src\"]\n",
            Some(2),
            "cannot own files yet",
        ),
        ("[roles.dev]\ncount = 0\n", Some(2), "from 1 to 1000"),
        ("[roles.dev]\ncount = \"2\"\n", Some(2), "from 1 to 1000"),
        (
            "[roles.dev]\nagent = \"explor\"\n",
            Some(2),
            "did you mean Explore?",
        ),
        (
            "[lead]\nagent = \"x\"\n[roles.dev]\n",
            Some(2),
            "there is no agent type `x`",
        ),
        (
            "[roles.dev]\neffort = \"much\"\n",
            Some(2),
            "`much` is not an effort",
        ),
        (
            "[roles.dev]\npermission_mode = \"yolo\"\n",
            Some(2),
            "`yolo` is not a permission mode",
        ),
        (
            "[roles.dev]\nworktree = \"yes\"\n",
            Some(2),
            "true or false, not a string",
        ),
        (
            "[roles.dev]\nbudget_usd = -1\n",
            Some(2),
            "`budget_usd`: a budget must be more than zero",
        ),
        (
            "[roles.dev]\nbudget_usd = true\n",
            Some(2),
            "an amount in dollars",
        ),
        ("[roles.dev]\ntakes = [\"\"]\n", Some(2), "empty word"),
        (
            "[roles.dev]\ntakes = \"docs\"\n",
            Some(2),
            "a list of words",
        ),
        ("[roles.dev]\nprompt = 1\n", Some(2), "a text in quotes"),
        (
            "[roles.dev]\ncount = 2\n[roles.dev-2]\n",
            Some(1),
            "role dev-2 has the name of one of the 2 of dev",
        ),
    ] {
        check(text, line, what);
    }
    for (tasks, line, what) in [
        ("[tasks]\nsubject = \"x\"\n", 2, "`[[tasks]]` before each"),
        ("[[tasks]]\n", 2, "task 1 has no `subject`"),
        ("[[tasks]]\nsubject = \" \"\n", 2, "task 1 has no `subject`"),
        (
            "[[tasks]]\nsubject = \"x\"\nblocked_by = [1]\n",
            4,
            "task 1 waits for itself",
        ),
        (
            "[[tasks]]\nsubject = \"x\"\nblocked_by = [2]\n",
            4,
            "task 2, which does not come before it",
        ),
        (
            "[[tasks]]\nsubject = \"x\"\nblocked_by = [0]\n",
            4,
            "task 0, which does not come before it",
        ),
        (
            "[[tasks]]\nsubject = \"x\"\nblocked_by = 1\n",
            4,
            "a list of task numbers",
        ),
        (
            "[[tasks]]\nsubject = \"x\"\nrole = \"dve\"\n",
            2,
            "did you mean `dev`?",
        ),
        (
            "[[tasks]]\nsubject = \"x\"\nrole = \"docs\"\n",
            2,
            "a word that a role has in `takes`",
        ),
        (
            "[[tasks]]\nsubject = \"x\"\nowner = \"dev\"\n",
            4,
            "task 1 has no field `owner`",
        ),
    ] {
        check(&format!("{role}{tasks}"), Some(line), what);
    }
}

fn check(text: &str, line: Option<usize>, what: &str) {
    let (read, said) = read_as(text, DefinitionSource::User);
    assert_eq!(read, None, "{text}");
    let [(Severity::Error, at, reason)] = &said[..] else {
        panic!("{text}: {said:?}")
    };
    assert_eq!(*at, line, "{text}: {reason}");
    assert!(reason.contains(what), "{text}: {reason}");
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = "x = 1\n[roles.dev]\ncount = 0\nagent = \"y\"\n[[tasks]]\nrole = \"z\"\n";
    let lines: Vec<_> = read_as(text, DefinitionSource::User)
        .1
        .into_iter()
        .map(|(_, line, _)| line)
        .collect();
    assert_eq!(lines, [Some(1), Some(4), Some(3), Some(5), Some(5)]);
}

#[test]
fn what_nobody_takes_by_itself_is_a_warning() {
    let text = "[roles.dev]\ntakes = [\"code\"]\n[[tasks]]\nsubject = \"x\"\n";
    let (read, said) = read_as(text, DefinitionSource::User);
    assert!(read.is_some());
    let [(Severity::Warning, Some(3), why)] = &said[..] else {
        panic!("{said:?}")
    };
    assert!(why.contains("the lead must assign it"), "{why}");
}

#[test]
fn a_repository_does_not_switch_rules_off() {
    let text = "[lead]\npermission_mode = \"bypassPermissions\"\n[roles.dev]\npermission_mode = \"bypassPermissions\"\n";
    let modes = |declared: TeamDeclaration| {
        let roles: Vec<_> = declared
            .plan
            .roles
            .into_values()
            .map(|role| role.mode)
            .collect();
        (declared.lead.mode, roles)
    };
    let (read, said) = read_as(text, DefinitionSource::Project);
    assert_eq!(modes(read.unwrap()), (None, vec![None]));
    let told: Vec<_> = said
        .iter()
        .map(|(weight, line, _)| (*weight, *line))
        .collect();
    assert_eq!(
        told,
        [(Severity::Warning, Some(2)), (Severity::Warning, Some(4))]
    );
    let bypass = Some(PermissionMode::BypassPermissions);
    let (read, said) = read_as(text, DefinitionSource::User);
    assert_eq!(
        (modes(read.unwrap()), said),
        ((bypass, vec![bypass]), vec![])
    );
}

#[test]
fn the_nearest_file_counts_and_other_programs_have_none() {
    let root = std::env::temp_dir().join(format!("posse-test-{}", uuid::Uuid::now_v7()));
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let good = |what: &str| format!("description = \"{what}\"\n[roles.dev]\n");
    write("repo/.git/HEAD", "");
    write("repo/.posse/teams/parser.toml", &good("project"));
    write("repo/.posse/teams/Bad Name.toml", &good("x"));
    write("repo/.posse/teams/notes.md", "nothing");
    write("repo/.claude/teams/other.toml", &good("x"));
    write("home/posse/teams/parser.toml", &good("user"));
    write("home/posse/teams/docs.toml", &good("docs"));
    let places = SearchPaths {
        managed: root.join("etc/settings.json"),
        posse_home: Some(root.join("home/posse")),
        home: Some(root.join("home")),
        cwd: root.join("repo"),
        sources: SettingSources::default(),
        trust: Trust::everything(&root.join("repo")),
    };
    let loaded = TeamSources::new(places, types()).load();
    let found = |list: &[DefinitionEntry<TeamDeclaration>]| {
        list.iter()
            .map(|known| (known.definition.plan.description.clone(), known.source))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found(&loaded.known),
        [
            ("docs".into(), DefinitionSource::User),
            ("project".into(), DefinitionSource::Project)
        ]
    );
    assert_eq!(
        found(&loaded.shadowed),
        [("user".into(), DefinitionSource::User)]
    );
    let [remark] = &loaded.remarks[..] else {
        panic!("{:?}", loaded.remarks)
    };
    assert_eq!((about(remark), remark.line), (Some("Bad Name"), None));
    fs::remove_dir_all(root).unwrap();
}
