//! A repository made for another program: nothing in it is ignored in silence.

use serde_json::{Value, json};

use crate::binary::{Project, stderr, stdout};
use crate::team::lines;

const HOOKS: &str = r#"{
  "permissions": {"deny": ["Read(./secret)"], "allow": ["Bash(npm test)", "Bash(ls)"], "defaultMode": "acceptEdits"},
  "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./guard.sh"}]}]},
  "env": {"A": "b"},
  "statusLine": {"type": "command", "command": "x"}
}"#;

/// A repository with every kind of file.
fn repository(name: &str) -> Project {
    let project = Project::new(name, "");
    for (file, text) in [
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".claude/settings.json", HOOKS),
        (
            ".claude/settings.local.json",
            r#"{"permissions": {"allow": ["Bash(make)"]}}"#,
        ),
        (
            ".claude/agents/reviewer.md",
            "---\nname: reviewer\ndescription: d\n---\nReview.\n",
        ),
        (".claude/agents/broken.md", "---\nname: broken\n"),
        (
            ".claude/skills/pdf/SKILL.md",
            "---\nname: pdf\ndescription: d\n---\nRead it.\n",
        ),
        (".claude/commands/git/commit.md", "Commit it.\n"),
        (".claude/rules/style.md", "Short lines.\n"),
        (".claude/output-styles/poet.md", "Rhyme.\n"),
        (".claude/CLAUDE.md", "Be brief.\n"),
        ("CLAUDE.md", "See @docs/style.md and @../outside.md.\n"),
        ("CLAUDE.local.md", "I like tabs.\n"),
        ("docs/style.md", "Use tabs.\n"),
        (
            ".mcp.json",
            r#"{"mcpServers": {"db": {"command": "x"}, "web": {"command": "y"}}}"#,
        ),
    ] {
        write(&project, file, text);
    }
    project
}

fn write(project: &Project, file: &str, text: &str) {
    let path = project.file(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What a run says of files that posse does not use.
fn told(project: &Project) -> String {
    let output = project.run(&["-p", "hello"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stderr(&output)
}

// proves FC-08 (part: told once; told again; a missing guard)
#[test]
fn what_is_not_used_is_told_once_for_each_content_and_a_missing_guard_always() {
    let project = repository("foreign-told");
    let guard = "PreToolUse hooks of .claude/settings.json do not run";
    let files = [
        ".claude/settings.json: posse does not use statusLine",
        ".claude/output-styles: posse does not use any of it",
    ];
    let first = told(&project);
    for line in files.iter().chain([&guard]) {
        assert_eq!(first.matches(line).count(), 1, "{line}: {first}");
    }
    let second = told(&project);
    assert!(!second.contains("posse does not use"), "{second}");
    assert!(second.contains(guard), "{second}");
    write(&project, ".claude/plugins.json", "{}");
    let third = told(&project);
    assert_eq!(third.matches("posse does not use").count(), 1, "{third}");
    assert!(third.contains(".claude/plugins.json"), "{third}");
}

// proves FC-08 (part: programs)
#[test]
fn programs_are_told_of_a_missing_guard() {
    let project = repository("foreign-lines");
    let run = ["-p", "hello", "--output-format", "stream-json"];
    let told = lines(&project, &run);
    let file = project
        .file(".claude/settings.json")
        .canonicalize()
        .unwrap();
    let guards = json!([{"file": file.to_str().unwrap(), "events": ["PreToolUse"]}]);
    for line in [&told[0], &told[told.len() - 1]] {
        assert_eq!(line["missing_guards"], guards, "{line}");
    }
}

// proves FC-08 (part: a missing guard; programs; demanded; doctor)
#[test]
fn a_guard_of_an_agent_or_skill_is_missing_like_one_of_the_settings() {
    let project = repository("foreign-declared");
    write(&project, ".claude/settings.json", "{}");
    let hooks = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: ./guard.sh\n  Stop:\n    - hooks:\n        - type: command\n          command: ./bye.sh\n";
    let agent = format!("---\nname: reviewer\ndescription: d\n{hooks}---\nReview.\n");
    write(&project, ".claude/agents/reviewer.md", &agent);
    let skill = format!("---\nname: pdf\ndescription: d\n{hooks}---\nRead it.\n");
    write(&project, ".claude/skills/pdf/SKILL.md", &skill);
    let files = [".claude/agents/reviewer.md", ".claude/skills/pdf/SKILL.md"];
    let doctor = stdout(&project.run(&["doctor"]));
    for said in [told(&project), told(&project), doctor] {
        for file in files {
            let guard = format!("PreToolUse hooks of {file} do not run");
            assert_eq!(said.matches(&guard).count(), 1, "{guard}: {said}");
        }
    }
    let run = ["-p", "hello", "--output-format", "stream-json"];
    let lines = lines(&project, &run);
    let guard = |file: &str| {
        let path = project.file(file).canonicalize().unwrap();
        json!({"file": path.to_str().unwrap(), "events": ["PreToolUse"]})
    };
    for line in [&lines[0], &lines[lines.len() - 1]] {
        assert_eq!(line["missing_guards"], json!(files.map(guard)), "{line}");
    }
    let output = project.run(&["-p", "hello", "--require-hooks"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let demand = "--require-hooks demands the hooks of .claude/agents/reviewer.md";
    assert!(said.contains(demand), "{said}");
    // Whoever has switched all hooks off misses none.
    write(&project, "../off.json", r#"{"disableAllHooks": true}"#);
    let flags = [
        "-p",
        "hello",
        "--require-hooks",
        "--settings",
        "../off.json",
    ];
    let output = project.run(&flags);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

// proves FC-08 (part: demanded)
#[test]
fn a_guard_or_sandbox_that_is_demanded_stops_the_run_before_it_begins() {
    let project = repository("foreign-demands");
    let refused = |arguments: &[&str], why: &str| {
        let output = project.run(arguments);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(why) && told.contains("hint: "), "{told}");
    };
    refused(
        &["-p", "hello", "--require-hooks"],
        "--require-hooks demands the hooks of",
    );
    let sandbox = r#"{"sandbox": {"enabled": true, "failIfUnavailable": true}}"#;
    write(&project, ".claude/settings.json", sandbox);
    refused(&["-p", "hello"], "demands a sandbox (`failIfUnavailable`)");
}

// proves FC-08 (part: doctor)
#[test]
fn doctor_lists_what_is_used_told_and_refused_file_by_file() {
    let project = repository("foreign-doctor");
    write(&project, ".claude/rules/twin.md", "Be brief.\n");
    write(&project, ".claude/rules/more.md", "See @gone.md.\n");
    write(&project, ".claude/commands/pdf.md", "Another.");
    let rows = lines(&project, &["doctor", "--files", "--json"]);
    let root = project.file("").canonicalize().unwrap();
    let has = |state: &str, file: &str, what: &str| {
        let is_it = |row: &&Value| {
            row["state"] == state
                && row["file"] == root.join(file).to_str().unwrap()
                && row["what"].as_str().unwrap().contains(what)
        };
        assert!(
            rows.iter().any(|row| is_it(&row)),
            "{state} {file} {what}: {rows:#?}"
        );
    };
    for (state, file, what) in [
        ("used", ".claude/settings.json", "permissions"),
        (
            "refused",
            ".claude/settings.json",
            "2 allow rules, 1 variable, 1 mode",
        ),
        ("used", ".claude/settings.json", "hooks"),
        ("not used", ".claude/settings.json", "statusLine"),
        ("refused", ".claude/settings.local.json", "1 allow rule"),
        ("used", ".claude/agents/reviewer.md", "agent reviewer"),
        ("refused", ".claude/agents/broken.md", ""),
        ("used", ".claude/skills/pdf/SKILL.md", "skill pdf"),
        ("used", ".claude/commands/git/commit.md", "skill git:commit"),
        ("used", ".claude/rules/style.md", "memory"),
        ("not used", ".claude/output-styles", ""),
        ("used", ".claude/CLAUDE.md", "memory"),
        ("used", "CLAUDE.md", "memory"),
        ("used", "CLAUDE.local.md", "memory"),
        ("not used", ".claude/rules/twin.md", "memory: same"),
        ("not used", ".claude/rules/gone.md", "memory: missing"),
        (
            "not used",
            ".claude/commands/pdf.md",
            "skill pdf; another of that name counts",
        ),
        ("used", "docs/style.md", "memory"),
        ("used", ".mcp.json", "MCP server db"),
        ("used", ".mcp.json", "MCP server web"),
    ] {
        has(state, file, what);
    }
    // Every file of the repository is in the table.
    let listed = std::process::Command::new("find")
        .args([".", "-type", "f", "-not", "-path", "./.git/*"])
        .current_dir(&root)
        .output()
        .unwrap();
    for file in stdout(&listed).lines() {
        let path = root.join(file.trim_start_matches("./"));
        let told = rows
            .iter()
            .any(|row| path.starts_with(row["file"].as_str().unwrap()));
        assert!(told, "{file}: {rows:#?}");
    }
    let said = stdout(&project.run(&["doctor"]));
    for line in [
        "PreToolUse hooks of .claude/settings.json do not run",
        ".claude/output-styles: posse does not use any of it",
        ".claude/settings.json: hooks, permissions",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}
