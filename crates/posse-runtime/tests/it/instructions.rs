//! Memory files that change while agents live, and how much of them an agent is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_port::tool::Workspace;
use posse_protocol::{Command, EventKind, MemoryScope};
use posse_runtime::definition::catalogue::Catalogue;
use posse_runtime::definition::instructions::{
    Instruction, InstructionFinder, InstructionKeeper, NoteError, SessionInstructions, Standing,
};
use posse_runtime::prompt::instructions::from_start;
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, prompt, until_end};
use serde_json::Value;

/// Finds one long text about each file.
#[derive(Debug)]
struct Long;

impl InstructionFinder for Long {
    fn about(&self, path: &Path, _: &Workspace) -> Vec<Instruction> {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        vec![file(&path.display().to_string(), &name.repeat(5_000))]
    }
}

/// Has one file, and notices at once when it changes.
#[derive(Debug)]
struct One(Arc<Catalogue<Instruction>>);

impl InstructionKeeper for One {
    fn add(&self, line: &str, scope: MemoryScope) -> Result<PathBuf, NoteError> {
        if scope == MemoryScope::User {
            return Err(NoteError::NotRead(scope));
        }
        let mut files: Vec<Instruction> = self.0.now().iter().map(|it| (**it).clone()).collect();
        files[0].text.push_str(&format!("\n- {line}"));
        let path = files[0].path.clone();
        self.0.replace(files);
        Ok(path)
    }
}

fn file(path: &str, text: &str) -> Instruction {
    Instruction {
        path: path.into(),
        text: text.into(),
        globs: None,
        standing: Standing::default(),
    }
}

/// A rig whose agents begin with this file.
fn rig(script: &str, first: Instruction) -> (Rig, Arc<Catalogue<Instruction>>) {
    let mut rig = Rig::playing(script).unwrap();
    let files: Arc<Catalogue<Instruction>> = Arc::new(vec![first].into());
    let block = from_start(&files.now(), Path::new("/etc/posse")).unwrap();
    rig.profile.system.push(block);
    rig.setup.spawning.instructions = Some(Arc::new(SessionInstructions {
        files: Arc::clone(&files),
        at_start: files.now(),
        finder: Arc::new(Long),
        keeper: Arc::new(One(Arc::clone(&files))),
    }));
    (rig, files)
}

/// Returns the messages of the last request.
fn messages(rig: &Rig) -> String {
    let requests = rig.server.requests();
    let body: Value = serde_json::from_slice(&requests.last().unwrap().body).unwrap();
    body["messages"].to_string()
}

// proves FC-09 (part: changes)
#[tokio::test]
async fn a_change_is_told_with_the_next_message() {
    let script = "[[rule]]\nreply = [{ text = 'Yes.' }]\n";
    let (rig, files) = rig(script, file("/w/CLAUDE.md", "Use tabs."));
    let mut agent = rig.prompted("one").await.unwrap();
    until_end(&mut agent).await;
    assert!(!messages(&rig).contains("memory"), "nothing has changed");
    let mut seen = Vec::new();
    for text in ["Use spaces.", "Use tabs.", "Use spaces."] {
        files.replace(vec![file("/w/CLAUDE.md", text)]);
        agent.handle.send(prompt("go on")).await.unwrap();
        until_end(&mut agent).await;
        let told = messages(&rig);
        let replaced = told.matches("new or have changed").count();
        let back = told.matches("were changed back").count();
        seen.push((replaced, back, told.matches("Use spaces.").count()));
        assert!(!told.contains("Use tabs."), "it is in the system prompt");
    }
    assert_eq!(seen, [(1, 0, 1), (1, 1, 1), (1, 2, 1)]);
    farewell(agent).await;
}

// proves CV-05 (part: told; refused)
#[tokio::test]
async fn a_note_is_in_the_file_and_told_with_the_next_message() {
    let script = "[[rule]]\nreply = [{ text = 'Yes.' }]\n";
    let (rig, _) = rig(script, file("/w/CLAUDE.md", "Use tabs."));
    let mut agent = rig.prompted("one").await.unwrap();
    until_end(&mut agent).await;
    let mut said = Vec::new();
    for (text, scope) in [
        (" Run the\n  tests. ", MemoryScope::Project),
        (" \n", MemoryScope::Project),
        (&"x".repeat(5000), MemoryScope::Project),
        ("Be kind.", MemoryScope::User),
    ] {
        let text = text.to_owned();
        agent
            .handle
            .send(Command::Note { text, scope })
            .await
            .unwrap();
        said.push(agent.events.recv().await.unwrap().kind);
    }
    let warning = |why: &str| EventKind::Warning(format!("the note was not added: {why}"));
    let expected = [
        EventKind::Noted {
            file: "/w/CLAUDE.md".into(),
            line: "Run the tests.".into(),
        },
        warning("it is empty"),
        warning("it is too long; edit the memory file"),
        warning("no memory file of the kind `user` is read here"),
    ];
    assert_eq!(said, expected);
    let entries = rig.store.read(agent.id).await.unwrap().entries;
    assert_eq!(entries.len(), 2, "no run begins, and nothing is an entry");
    agent.handle.send(prompt("two")).await.unwrap();
    until_end(&mut agent).await;
    let told = messages(&rig);
    assert!(
        told.contains("- Run the tests.") && !told.contains("Be kind"),
        "{told}"
    );
    farewell(agent).await;
}

// proves FC-09 (part: limits)
#[tokio::test]
async fn more_than_there_is_room_for_is_only_named() {
    let script = r#"
[[rule]]
times = 9
reply = [{ tool = "Read", input = { file_path = "file-{{turn}}" } }]
[[rule]]
reply = [{ text = "Read." }]
"#;
    let (rig, _) = rig(script, file("/w/CLAUDE.md", "Use tabs."));
    for number in 1..=9 {
        rig.file(&format!("file-{number}"), "x").unwrap();
    }
    let mut agent = rig.prompted("read them").await.unwrap();
    until_end(&mut agent).await;
    let told = messages(&rig);
    // 30,000 bytes each: six fit, and the beginning of the seventh.
    let bytes: usize = (1..=9)
        .map(|number| 6 * told.matches(&format!("file-{number}").repeat(100)).count() * 100)
        .sum();
    assert!((190_000..=205_000).contains(&bytes), "{bytes}");
    assert_eq!(told.matches("[cut here: all files together").count(), 1);
    let left_out = told.matches("Left out, because you have been told").count();
    assert_eq!(left_out, 2, "each is named");
    farewell(agent).await;
}
