//! Names in prompts and files: `@file`, `/name`, and tools that posse does not have.

use crate::binary::{stderr, stdout};
use crate::memory::{ANSWER, Scene};

/// Returns the messages of the last request.
fn messages(scene: &Scene) -> String {
    let bodies = scene.bodies();
    bodies.last().unwrap()["messages"].to_string()
}

// proves FC-13 (part: files; told)
#[test]
fn a_prompt_and_a_command_bring_the_files_that_they_name() {
    let scene = Scene::new("attached", ANSWER);
    scene.write("src/app.ts", "let app = 1;");
    scene.write("notes.md", "Remember the milk.");
    scene.write("../outside.md", "Not yours.");
    scene.write(
        ".claude/commands/git/commit.md",
        "Look at @src/app.ts and @$0.",
    );
    let output = scene.run(&["-p", "read @notes.md, @gone.md and @../outside.md"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let told = messages(&scene);
    assert!(
        told.contains("Remember the milk.") && told.contains("@gone.md and"),
        "{told}"
    );
    assert!(!told.contains("Not yours."), "{told}");
    for warning in [
        "warning: @gone.md is left as text: there is no such file",
        "warning: @../outside.md is left as text: it is outside",
    ] {
        assert!(said.contains(warning), "{said}");
    }
    scene.run(&["-p", "/git:commit notes.md"]);
    let told = messages(&scene);
    for text in ["let app = 1;", "Remember the milk."] {
        assert_eq!(told.matches(text).count(), 1, "{text}: {told}");
    }
}

// proves FC-13 (part: names)
#[test]
fn the_end_of_a_name_leads_to_the_whole() {
    let scene = Scene::new("names", ANSWER);
    scene.write(".claude/commands/git/commit.md", "Commit.");
    let output = scene.run(&["-p", "/commit"]);
    let said = stderr(&output);
    let expected = "there is no command /commit; did you mean /git:commit?";
    assert!(
        !output.status.success() && said.contains(expected),
        "{said}"
    );
    assert!(scene.bodies().is_empty(), "no model is asked");
}

// proves FC-13 (part: unknown tools)
#[test]
fn tools_that_posse_lacks_are_told_at_the_start_and_by_the_check() {
    let scene = Scene::new("tools", ANSWER);
    let agent =
        "---\nname: finder\ndescription: finds\ntools: Read, WebSearch, TodoWrite\n---\nFind.";
    scene.write(".claude/agents/finder.md", agent);
    let expected = "not available in posse: `WebSearch`, `TodoWrite`; the agent works without";
    let said = stderr(&scene.run(&["-p", "go"]));
    let line = format!("warning: .claude/agents/finder.md:4: {expected}");
    assert!(said.contains(&line), "{said}");
    let output = scene.run(&["agents", "check"]);
    let line = format!(".claude/agents/finder.md:4: warning: {expected}");
    assert!(
        output.status.success() && stdout(&output).contains(&line),
        "{}",
        stdout(&output)
    );
}
