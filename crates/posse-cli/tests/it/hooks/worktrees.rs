//! Hooks that make and remove worktrees, and hooks of skills.

use std::fs;

use serde_json::{Value, json};

use super::models::requests;
use super::{SETTINGS, objects, program};
use crate::binary::{Project, stderr};
use crate::definitions::{project, write};

const SCRIPT: &str = r#"
[[rule]]
when = { agent = "re:^/main/.", tool = "re:." }
reply = [{ text = "SUB-DONE" }]
[[rule]]
when = { agent = "re:^/main/." }
reply = [{ tool = "Bash", input = { command = "pwd > here.txt; pwd" } }]
[[rule]]
when = { tool = "re:." }
reply = [{ text = "The tool said: {{tool}}" }]
[[rule]]
when = { user = "go" }
reply = [{ tool = "Agent", input = { description = "x", prompt = "Work.", subagent_type = "general-purpose", isolation = "worktree" } }]
"#;

fn with_hooks(name: &str, create: &str, remove: Option<&str>) -> Project {
    let project = project(name, SCRIPT);
    let hook = |command: &str| json!([{"hooks": [{"type": "command", "command": command}]}]);
    let mut hooks = json!({"WorktreeCreate": hook(create)});
    if let Some(remove) = remove {
        hooks["WorktreeRemove"] = hook(remove);
    }
    write(&project, SETTINGS, &json!({ "hooks": hooks }).to_string());
    project
}

fn run(project: &Project) -> String {
    let flags = ["-p", "go", "--output-format", "json"];
    let output = project.run(&[&flags[..], &["--permission-mode", "bypassPermissions"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    objects(&output).pop().unwrap()["result"]
        .as_str()
        .unwrap()
        .to_owned()
}

const MAKES: &str = "cat >create.json; mkdir -p made/$(jq -r .name create.json); echo noise; \
                     echo made/$(jq -r .name create.json)";

// proves WT-03 (part: hooks)
// proves HK-01 (part: worktrees)
#[test]
fn a_worktree_that_a_hook_has_made_is_used_and_kept() {
    let project = with_hooks("hooks-worktree-made", MAKES, None);
    let said = run(&project);
    let input: Value =
        serde_json::from_slice(&fs::read(project.file("create.json")).unwrap()).unwrap();
    let name = input["name"].as_str().unwrap();
    assert!(name.starts_with("agent-"), "{name}");
    let made = project.file("made").join(name).canonicalize().unwrap();
    let here = fs::read_to_string(made.join("here.txt")).unwrap();
    assert_eq!(here.trim(), made.to_str().unwrap());
    assert!(
        said.contains("SUB-DONE") && said.contains("a hook made it"),
        "{said}"
    );
    let told = requests(&project)[1].to_string();
    assert!(
        told.contains("You work in a git worktree") && !told.contains("on branch"),
        "{told}"
    );
}

// proves WT-03 (part: hooks)
// proves HK-01 (part: worktrees)
#[test]
fn a_hook_that_removes_worktrees_is_told_where_it_is() {
    let remove = "cat >remove.json; rm -r \"$(jq -r .worktree_path remove.json)\"";
    let project = with_hooks("hooks-worktree-removed", MAKES, Some(remove));
    let said = run(&project);
    assert!(
        said.contains("SUB-DONE") && said.contains("removed by a hook"),
        "{said}"
    );
    let input: Value =
        serde_json::from_slice(&fs::read(project.file("remove.json")).unwrap()).unwrap();
    let path = input["worktree_path"].as_str().unwrap();
    assert!(
        path.contains("/made/agent-") && !fs::exists(path).unwrap(),
        "{path}"
    );
}

#[test]
fn an_agent_that_is_not_born_leaves_no_worktree() {
    let remove = "cat >remove.json; rm -r \"$(jq -r .worktree_path remove.json)\"";
    let project = with_hooks("hooks-worktree-veto", MAKES, Some(remove));
    let settings = fs::read_to_string(project.file(SETTINGS)).unwrap();
    let mut settings: Value = serde_json::from_str(&settings).unwrap();
    let veto = json!({"type": "command", "command": "echo NOT-NOW >&2; exit 2"});
    settings["hooks"]["SubagentStart"] = json!([{ "hooks": [veto] }]);
    write(&project, SETTINGS, &settings.to_string());
    let said = run(&project);
    assert!(said.contains("NOT-NOW"), "{said}");
    let made = fs::read_dir(project.file("made"));
    assert_eq!(made.map_or(0, |made| made.count()), 0);
}

#[test]
fn no_agent_starts_if_the_hook_makes_no_worktree() {
    for (name, create, why) in [
        ("code", "echo BROKEN >&2; exit 1", "BROKEN"),
        ("silent", "true", "gave no path"),
        ("gone", "echo nowhere", "nowhere"),
        ("root", "echo /", "where no agent may work"),
        ("home", "echo ../home", "where no agent may work"),
        // Anywhere else is the person's choice, not a repository's.
        (
            "beside",
            "mkdir -p ../beside; echo ../beside",
            "where no agent may work",
        ),
    ] {
        let project = with_hooks(&format!("hooks-worktree-{name}"), create, None);
        let said = run(&project);
        assert!(
            said.contains("WorktreeCreate hook") && said.contains(why),
            "{said}"
        );
        assert_eq!(requests(&project).len(), 2);
    }
}

// proves HK-02 (part: skills)
#[test]
fn hooks_of_a_skill_hold_once_it_is_loaded() {
    let script = r#"
[[rule]]
when = { turn = 1 }
reply = [{ tool = "Bash", input = { command = "echo one" } }]
[[rule]]
when = { turn = 2 }
reply = [{ tool = "Skill", input = { skill = "careful" } }]
[[rule]]
when = { turn = 3 }
reply = [{ tool = "Bash", input = { command = "echo two" } }]
[[rule]]
when = { turn = 4 }
reply = [{ tool = "Bash", input = { command = "echo three" } }]
[[rule]]
reply = [{ text = "all done" }]
"#;
    let project = project("hooks-skill", script);
    program(
        &project,
        "log.sh",
        "#!/bin/sh\necho \"$1 $(jq -r .tool_input.command)\" >>log\n",
    );
    write(
        &project,
        ".claude/skills/careful/SKILL.md",
        "---\nname: careful\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        \
         - type: command\n          command: ./log.sh always\n        - type: command\n          \
         command: ./log.sh once\n          once: true\n---\nTake care.\n",
    );
    let said = run(&project);
    assert_eq!(said, "all done");
    let log = fs::read_to_string(project.file("log")).unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["always echo three", "always echo two", "once echo two"]
    );
}
