//! Types of agents at work: their tools, models, notes and first words; and that what was agreed holds.

use std::sync::Arc;

use posse_protocol::{Outcome, PermissionMode};
use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::{Memory, MemoryScope, built_in};
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, prompt, until_end};

use super::{last_words, offered, rig, row, sent_by, until_over, words};

/// A main agent that starts one of this type, which has these tools called.
fn starting(kind: &str, more: &str, calls: &str) -> String {
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main/", turn = 1 }}
reply = [{calls}]
[[rule]]
when.agent = "re:^/main/"
reply = [{{ text = "Done." }}]
[[rule]]
when.turn = 1
reply = [{{ tool = "Agent", input = {{ description = "Work", prompt = "Work.", subagent_type = "{kind}"{more} }} }}]
[[rule]]
reply = [{{ text = "Thanks." }}]
"#
    )
}

const SAYS: &str = "{ text = \"Done.\" }";

/// A rig that has this type too.
fn having(definition: Definition, script: &str) -> Rig {
    let mut rig = rig(script);
    rig.setup.spawning.types = Arc::new(built_in().into_iter().chain([definition]).collect());
    rig
}

fn tester() -> Definition {
    Definition {
        name: "tester".into(),
        description: "Tests.".into(),
        prompt: "You test things.".into(),
        ..Definition::default()
    }
}

/// What the sub-agent with this path has sent, once all is over.
async fn worked(rig: &Rig, path: &str) -> Vec<serde_json::Value> {
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    farewell(agent).await;
    let sent = sent_by(rig, path);
    assert!(
        !sent.is_empty(),
        "{}",
        last_words(&sent_by(rig, "/main")[1])
    );
    sent
}

// proves AD-04 (part: tools; disallowedTools)
#[tokio::test]
async fn an_agent_has_the_tools_that_its_type_says_and_none_that_it_disallows() {
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let table = [
        (
            None,
            names(&[]),
            ["Bash", "Edit", "Grep", "Read", "Agent"].as_slice(),
            ["NoSuchTool"].as_slice(),
        ),
        (
            None,
            names(&["Bash", "Agent"]),
            &["Edit", "Grep", "Read"],
            &["Bash", "Agent"],
        ),
        (
            Some(names(&["Read", "Bash"])),
            names(&["Bash"]),
            &["Read"],
            &["Bash", "Grep", "Agent"],
        ),
    ];
    for (tools, disallowed, has, lacks) in table {
        let kind = Definition {
            tools,
            disallowed,
            ..tester()
        };
        let rig = having(kind, &starting("tester", "", SAYS));
        let sent = worked(&rig, "/main/tester-1").await;
        let offered = offered(&sent[0]);
        assert!(has.iter().all(|tool| offered.contains(tool)), "{offered:?}");
        assert!(
            lacks.iter().all(|tool| !offered.contains(tool)),
            "{offered:?}"
        );
    }
}

// proves AD-06 (part: order; inherit; families; modes)
#[tokio::test]
async fn the_model_is_the_one_that_counts_most() {
    let (opus, haiku) = ("claude-opus-5", "claude-haiku-5-5");
    // Forced, call, type, usual; the main agent has claude-opus-5.
    let table = [
        (None, None, None, None, opus),
        (None, None, None, Some(haiku), haiku),
        (
            None,
            None,
            Some("claude-sonnet-5"),
            Some(haiku),
            "claude-sonnet-5",
        ),
        (None, Some("haiku"), Some("claude-sonnet-5"), None, haiku),
        (
            Some("claude-fable-5-1"),
            Some("haiku"),
            Some("sonnet"),
            Some(haiku),
            "claude-fable-5-1",
        ),
        (None, Some("inherit"), Some("claude-sonnet-5"), None, opus),
        // A family is that of its parent, to the letter; not its newest.
        (None, Some("opus"), None, None, opus),
        (None, Some("sonnet"), None, None, "claude-sonnet-5-5"),
        // What depends on the mode is settled when the agent starts.
        (None, None, Some("opusplan"), None, "claude-sonnet-5-5"),
    ];
    for (forced, call, kind, usual, expected) in table {
        let more = call.map_or_else(String::new, |model| format!(r#", model = "{model}""#));
        let kind = Definition {
            model: kind.map(str::to_owned),
            ..tester()
        };
        let mut rig = having(kind, &starting("tester", &more, SAYS));
        rig.setup.spawning.forced_model = forced.map(str::to_owned);
        rig.setup.spawning.usual_model = usual.map(str::to_owned);
        let sent = worked(&rig, "/main/tester-1").await;
        assert_eq!(sent[0]["model"], expected, "{forced:?} {call:?} {usual:?}");
    }
    let planning = Definition {
        model: Some("opusplan".into()),
        mode: Some(PermissionMode::Plan),
        ..tester()
    };
    let rig = having(planning, &starting("tester", "", SAYS));
    assert_eq!(
        worked(&rig, "/main/tester-1").await[0]["model"],
        opus,
        "the family of its parent"
    );
}

// proves AD-03 (part: without case; Explore; Plan; Bash)
#[tokio::test]
async fn what_posse_brings_along_has_its_tools_and_models() {
    let reading = ["AskUserQuestion", "Glob", "Grep", "Read", "WebFetch"].as_slice();
    let planning = [&["AskUserQuestion", "ExitPlanMode"], &reading[1..]].concat();
    let opus = "claude-opus-5";
    let table = [
        ("explore", reading, "claude-haiku-5-5"),
        ("PLAN", &planning[..], opus),
        ("bash", ["AskUserQuestion", "Bash"].as_slice(), opus),
    ];
    for (kind, tools, model) in table {
        let rig = rig(&starting(kind, "", SAYS));
        let sent = worked(&rig, &format!("/main/{}-1", kind.to_lowercase())).await;
        let mut offered = offered(&sent[0]);
        offered.sort_unstable();
        assert_eq!(
            (offered.as_slice(), &sent[0]["model"]),
            (tools, &model.into()),
            "{kind}"
        );
    }
}

// proves AD-07 (part: loaded; written)
#[tokio::test]
async fn notes_are_in_the_system_prompt_and_may_be_written() {
    let write = r#"{ tool = "Write", input = { file_path = "NOTES/MEMORY.md", content = "Tests need a clock." } }, { tool = "Write", input = { file_path = "other.rs", content = "no" } }"#;
    let home = tempfile::tempdir().unwrap();
    let directory = home
        .path()
        .canonicalize()
        .unwrap()
        .join(".claude/agent-memory/tester");
    let write = write.replace("NOTES", directory.to_str().unwrap());
    let memory = Memory {
        scope: MemoryScope::User,
        directory: directory.clone(),
    };
    let kind = Definition {
        memory: Some(memory),
        tools: Some(vec!["Grep".into()]),
        ..tester()
    };
    let mut rig = having(kind, &starting("tester", "", &write));
    // Nobody is there to be asked, and it is no mode that accepts edits.
    rig.profile.mode = PermissionMode::Default;
    let sent = worked(&rig, "/main/tester-1").await;
    let mut tools = offered(&sent[0]);
    tools.sort_unstable();
    assert_eq!(
        tools,
        ["AskUserQuestion", "Edit", "Grep", "Read", "Write"],
        "what it needs to keep notes, whatever its type has"
    );
    let system = sent[0]["system"].to_string();
    assert!(
        system.contains("You test things.") && system.contains("There are none yet"),
        "{system}"
    );
    assert_eq!(
        std::fs::read_to_string(directory.join("MEMORY.md")).unwrap(),
        "Tests need a clock."
    );
    let told = last_words(&sent[1]);
    assert!(
        told.contains("may edit only its notes"),
        "its type may edit nothing else: {told}"
    );
    assert!(!rig.work().join("other.rs").exists());

    // The next of its type knows.
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let next = sent_by(&rig, "/main/tester-1");
    let system = next.last().unwrap()["system"].to_string();
    assert!(system.contains("Tests need a clock."), "{system}");
    farewell(agent).await;
}

// proves AD-08 (part: initialPrompt)
#[tokio::test]
async fn an_initial_prompt_comes_before_the_first_words() {
    let kind = Definition {
        initial_prompt: Some("Read CONTRIBUTING.md first.".into()),
        ..tester()
    };
    let rig = having(kind, &starting("tester", "", SAYS));
    let sent = worked(&rig, "/main/tester-1").await;
    assert_eq!(
        words(&sent[0]["messages"][0]),
        ["Read CONTRIBUTING.md first.", "Work."]
    );
}

// proves AG-04 (part: refused by name)
#[tokio::test]
async fn a_type_that_needs_servers_is_not_started_without_them() {
    let kind = Definition {
        required_mcp_servers: vec!["github".into(), "jira-*".into()],
        ..tester()
    };
    let rig = having(kind, &starting("tester", "", SAYS));
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert!(
        told.contains("needs MCP servers that are not connected: github, jira-*"),
        "{told}"
    );
    assert!(sent_by(&rig, "/main/tester-1").is_empty());
}

/// What was agreed with an agent holds when its type is another, or is gone.
#[tokio::test]
async fn who_is_revived_keeps_what_its_type_was_when_it_was_started() {
    let script = r#"
[[rule]]
when = { agent = "re:^/main/", user = "Once more", turn = 2 }
reply = [{ tool = "Bash", input = { command = "echo > touched" } }, { tool = "Read", input = { file_path = "a" } }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Done." }]
[[rule]]
when = { user = "wake it", turn = 3 }
reply = [{ tool = "SendMessage", input = { to = "t1", message = "Once more" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "Work", prompt = "Work.", subagent_type = "tester", name = "t1" } }]
[[rule]]
reply = [{ text = "Thanks." }]
"#;
    let rig = having(
        Definition {
            tools: Some(vec!["Read".into()]),
            ..tester()
        },
        script,
    );
    rig.file("a", "the file").unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    // The same name, with every tool.
    rig.setup.spawning.types.replace(vec![tester()]);
    agent.handle.send(prompt("wake it")).await.unwrap();
    until_over(&mut agent, "Work").await;
    let told = last_words(sent_by(&rig, "/main/t1-1").last().unwrap());
    assert!(
        told.contains("there is no tool Bash") && told.contains("the file"),
        "{told}"
    );
    assert!(!rig.work().join("touched").exists());
    assert_eq!(
        row(&rig, agent.id, "Work").await.origin.unwrap().agent_type,
        "tester"
    );
    farewell(agent).await;
}
