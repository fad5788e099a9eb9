//! Lists of what a prompt may name, for front ends.

use std::path::Path;
use std::sync::Arc;

use posse_permission::{Policy, RuleList, Source};
use posse_protocol::{Command, EventKind, ListKind, Listing};
use posse_runtime::definition::skill::Skills;
use posse_runtime::definition::skill::file::{Kind, read};
use posse_runtime::live::handle::Agent;
use posse_testkit::rig::farewell;

use crate::agents::until;
use crate::agents::worktrees::repository;

async fn listed(agent: &mut Agent, what: ListKind, part: &str) -> Listing {
    let part = part.to_owned();
    let list = Command::List { what, part };
    agent.handle.send(list).await.unwrap();
    let events = until(agent, |event| matches!(event.kind, EventKind::Listed(_))).await;
    let Some(EventKind::Listed(listing)) = events.last().map(|event| event.kind.clone()) else {
        panic!()
    };
    *listing
}

fn names(listing: &Listing) -> Vec<&str> {
    let names = listing.names.iter().map(|listed| listed.name.as_str());
    names.collect()
}

// proves CV-06
#[tokio::test]
async fn files_agents_and_commands_are_listed_by_a_part_of_their_names() {
    let mut rig = repository("");
    for directory in ["src", "secret", "built", "many"] {
        std::fs::create_dir(rig.work().join(directory)).unwrap();
    }
    for file in [
        "src/Lexer.rs",
        "lexer.md",
        "secret/lexer.key",
        "built/lexer.o",
    ] {
        rig.file(file, "").unwrap();
    }
    rig.file(".gitignore", "built/\n").unwrap();
    let skill = |name: &str, fields: &str| {
        let text = format!("---\ndescription: About {name}.\n{fields}---\nDo it.\n");
        let path = format!("/skills/{name}/SKILL.md");
        read(&text, name, Path::new(&path), Kind::Skill)
            .unwrap()
            .skill
    };
    let skills = vec![
        skill("review", ""),
        skill("preview", ""),
        skill("models-only", "user-invocable: false\n"),
    ];
    rig.setup.spawning.skills = Some(Arc::new(Skills::from(skills)));
    let source = Source {
        name: String::new(),
        root: rig.work().to_owned(),
        cwd: rig.work().to_owned(),
        home: None,
    };
    let deny = vec!["Read(secret/**)".to_owned(), "Agent(Plan)".to_owned()];
    let rules = RuleList {
        deny,
        ..RuleList::default()
    };
    let mut policy = Policy::default();
    policy.add(&source, &rules).unwrap();
    rig.setup.policy = Arc::new(policy);
    let runtime = rig.runtime().unwrap();
    let mut agent = runtime.start(&rig.profile, rig.setup.clone());

    let found = listed(&mut agent, ListKind::Files, "LEXER").await;
    let mut files = names(&found);
    files.sort_unstable();
    assert_eq!(
        (files, found.left_out),
        (vec!["lexer.md", "src/Lexer.rs"], 0)
    );
    let found = listed(&mut agent, ListKind::Commands, "view").await;
    assert_eq!(names(&found), ["preview", "review"]);
    assert_eq!(found.names[1].about, "About review.");
    let found = listed(&mut agent, ListKind::Agents, "").await;
    assert_eq!(names(&found), ["Bash", "Explore", "general-purpose"]);

    // A list has an end, and says how much is beyond it.
    for number in 0..130 {
        rig.file(&format!("many/part-{number}"), "").unwrap();
    }
    let found = listed(&mut agent, ListKind::Files, "many/part").await;
    assert_eq!((found.names.len(), found.left_out), (100, 30));
    let newest = rig.work().join("many/part-7");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let file = std::fs::File::options().write(true).open(&newest).unwrap();
    file.set_modified(later).unwrap();
    let found = listed(&mut agent, ListKind::Files, "many/part").await;
    assert_eq!(names(&found)[0], "many/part-7");
    assert!(rig.server.requests().is_empty(), "no model is asked");
    farewell(agent).await;
}
