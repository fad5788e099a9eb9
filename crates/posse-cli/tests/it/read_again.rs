//! What was said can be read again: transcripts and mail of every agent, and every hint that names
//! a command to read them with.

use std::path::Path;

use serde_json::Value;

use crate::binary::{Project, stderr, stdout};
use crate::cost::{TREE, session};
use crate::team::{lines, succeed};
use crate::team_run;

/// The agents of a tree as `sessions tree --json` prints it, each before those it started.
fn flat(tree: &Value) -> Vec<&Value> {
    let below = tree["children"].as_array().unwrap().iter().flat_map(flat);
    [tree].into_iter().chain(below).collect()
}

fn tree(project: &Project, session: &str) -> Value {
    lines(project, &["sessions", "tree", session, "--json"]).remove(0)
}

// proves FC-05 (part: any agent; the tree)
#[test]
fn every_agent_of_a_session_can_be_read() {
    let project = Project::new("read-agents", TREE);
    let id = session(&project, &["go"]);
    let tree = tree(&project, &id);
    let agents = flat(&tree);
    let parents: Vec<Option<&str>> = agents.iter().map(|it| it["parent"].as_str()).collect();
    let ids: Vec<&str> = agents
        .iter()
        .map(|it| it["agent_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        parents,
        [None, Some(ids[0]), Some(ids[1]), Some(ids[0]), Some(ids[3])]
    );
    for agent in &agents[1..] {
        let agent_id = agent["agent_id"].as_str().unwrap();
        let shown = succeed(&project, &["sessions", "show", agent_id]);
        let head = format!("agent {agent_id}\nd (general-purpose) of session {id}\ncompleted · ");
        assert!(shown.starts_with(&head), "{shown}");
        assert!(
            shown.contains("\n> p ") && shown.contains("\ndone\n"),
            "{shown}"
        );
        assert_eq!(
            succeed(&project, &["sessions", "show", &agent_id[..35]]),
            shown
        );
        let told = lines(&project, &["sessions", "show", agent_id, "--json"]).remove(0);
        assert_eq!(
            (&told["session_id"], &told["agent_id"], &told["parent"]),
            (
                &Value::from(id.as_str()),
                &agent["agent_id"],
                &agent["parent"]
            )
        );
        assert_eq!(told["total_cost_usd"], agent["subtree_cost_usd"]);
        let exported = lines(&project, &["sessions", "export", agent_id]);
        assert_eq!(told["entries"], Value::from(exported));
    }
    let shown = succeed(&project, &["sessions", "tree"]);
    let rows: Vec<&str> = shown.lines().collect();
    assert_eq!(rows.len(), 6, "{shown}");
    assert!(
        rows[0].starts_with("ID ")
            && rows[3].contains("completed")
            && rows[3].contains("      general-purpose-1: "),
        "{shown}"
    );
}

/// The commands in backticks that posse names, as arguments.
fn hints(told: &str) -> Vec<Vec<String>> {
    let quoted = told.split('`').skip(1).step_by(2);
    let commands = quoted.filter_map(|quoted| quoted.strip_prefix("posse "));
    let words = commands.map(|command| command.split(' ').map(str::to_owned).collect());
    words.collect()
}

/// Does what the only hint says, in the project's directory, and returns what comes of it.
pub(crate) fn follow(project: &Project, told: &str) -> String {
    let [hint] = &hints(told)[..] else {
        panic!("one hint: {told}")
    };
    let arguments: Vec<&str> = hint.iter().map(String::as_str).collect();
    succeed(project, &arguments)
}

/// A team that has done its work, and whose members have left.
fn after_the_work(name: &str) -> Project {
    let project = team_run::project(name, "");
    let output = project.run(&["team", "run", "mend", "make it work"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    project
}

// proves FC-05 (part: members that have left; the tree; hints)
#[test]
fn what_members_did_can_be_read_when_they_have_left() {
    let project = after_the_work("read-members");
    let refused = project.run(&["team", "attach", "dev"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stdout(&refused));
    let shown = follow(&project, &stderr(&refused));
    for words in [
        "dev of team mend",
        "⇠ task #1: mend it",
        "→ task 1: completed",
        "It is done.",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(
        succeed(&project, &["sessions", "show", "dev"]),
        shown,
        "by its name"
    );
    let session = lines(&project, &["sessions", "list", "--json"]).remove(0);
    assert_eq!(session["agents"], 3);
    let id = session["session_id"].as_str().unwrap();
    let tree = tree(&project, id);
    assert_eq!(flat(&tree).len(), 3, "{tree}");
    assert_eq!(tree["subtree_cost_usd"], session["total_cost_usd"]);

    // A team that is deleted takes no transcript with it.
    succeed(&project, &["team", "delete", "mend"]);
    assert_eq!(succeed(&project, &["sessions", "show", "dev"]), shown);
}

/// The messages in a directory of inboxes.
fn exported(directory: &Path) -> Vec<String> {
    let files = std::fs::read_dir(directory.join("inboxes")).unwrap();
    let mut ids = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let inbox: Vec<Value> = serde_json::from_str(&text).unwrap();
        let each = inbox
            .iter()
            .map(|mail| mail["posse"]["id"].as_str().unwrap());
        ids.extend(each.map(str::to_owned));
    }
    ids.sort_unstable();
    ids
}

// proves FC-05 (part: mail of members that have left)
#[test]
fn the_mail_of_members_that_have_left_is_kept() {
    let project = after_the_work("read-mail");
    let mut all: Vec<String> = lines(&project, &["mail", "list", "--json"])
        .iter()
        .map(|mail| mail["id"].as_str().unwrap().to_owned())
        .collect();
    all.sort_unstable();
    let of_team = lines(&project, &["mail", "list", "--team", "mend", "--json"]);
    assert_eq!(of_team.len(), all.len(), "{of_team:?}");
    let to_dev = succeed(&project, &["mail", "list", "--to", "dev@mend", "--verbose"]);
    assert!(to_dev.contains("team-lead → dev 1"), "{to_dev}");

    let directory = project.file("archive");
    let place = directory.to_str().unwrap();
    let told = succeed(&project, &["team", "export", place]);
    assert!(told.contains("of members that have left to "), "{told}");
    assert_eq!(exported(&directory), all);
    let again = succeed(&project, &["team", "export", place]);
    assert!(again.contains("all files were up to date"), "{again}");
    // An import has no transcripts of members that have left, and says what it leaves out.
    let imported = project.run(&["team", "import", place]);
    let said = stderr(&imported);
    assert!(
        imported.status.success() && said.contains("inboxes/dev.json is left out"),
        "{said}"
    );
}

// proves FC-05 (part: hints)
#[test]
fn what_a_hint_says_about_reading_works() {
    let project = after_the_work("read-hints");
    // From elsewhere: the sessions of other directories.
    std::fs::create_dir(project.file("empty")).unwrap();
    let lost = project
        .posse(&["sessions", "show"])
        .current_dir(project.file("empty"))
        .output()
        .unwrap();
    assert!(follow(&project, &stderr(&lost)).contains("make it work"));
    let lost = project.run(&["sessions", "show", "abc"]);
    assert!(follow(&project, &stderr(&lost)).contains("make it work"));
    // The last line of a run.
    let output = project.run(&["-p", "--verbose", "hello"]);
    let said = stderr(&output);
    let (_, again) = said.split_once("continue with: posse ").unwrap();
    let again = again.lines().next().unwrap();
    let arguments: Vec<&str> = again.split(' ').chain(["and?"]).collect();
    assert_eq!(succeed(&project, &arguments), "Ready.\n");
    // What was imported.
    let place = project.file("archive");
    let place = place.to_str().unwrap();
    succeed(&project, &["team", "export", place]);
    let told = succeed(&project, &["team", "import", place]);
    let (_, look) = told.trim_end().rsplit_once("look at it: posse ").unwrap();
    let arguments: Vec<&str> = look.split(' ').collect();
    assert!(succeed(&project, &arguments).contains("mend"));
}

/// The reviewer looks at its task many times and never completes it.
const LOOKS: &str = r#"
[[rule]]
when = { agent = "reviewer", marker = "Task 2 is yours" }
times = 8
reply = [{ tool = "TaskGet", input = { taskId = "2" } }]
[[rule]]
when = { agent = "reviewer", marker = "Task 2 is yours" }
reply = [{ text = "I cannot." }]
"#;

// proves FC-05 (part: hints)
#[test]
fn what_attach_leaves_out_can_be_read() {
    let project = team_run::project("read-attach", LOOKS);
    let output = project.run(&["team", "run", "mend", "make it work"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let shown = succeed(&project, &["team", "attach", "reviewer"]);
    let (count, rest) = shown.split_once(" earlier entries: posse ").unwrap();
    let count: usize = count.rsplit('(').next().unwrap().parse().unwrap();
    let (command, _) = rest.split_once(')').unwrap();
    let arguments: Vec<&str> = command.split(' ').collect();
    let told = lines(&project, &arguments);
    let entries = told.iter().filter(|line| line["type"] != "state").count();
    assert_eq!(entries, count + 12);
}
