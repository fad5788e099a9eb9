//! Forks: they go on from exactly where their parent is, and the prompt cache knows them for life.

use std::collections::BTreeSet;

use posse_port::store::{AgentFilter, AgentRecord, AgentState, Page};
use posse_protocol::{EventKind, Outcome, PermissionMode, Usage};
use posse_runtime::definition::spawning::Background;
use posse_runtime::live::handle::Agent;
use posse_runtime::live::setup::Approver;
use posse_runtime::session::branch::CopiedHistory;
use posse_scripted::Recorded;
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, prompt, until_end};
use serde_json::Value;

use crate::agents::worktrees::git;

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// A rig with sub-agents that may do everything.
fn rig(script: &str) -> Rig {
    let mut rig = Rig::playing(script).unwrap().agents();
    rig.profile.mode = PermissionMode::BypassPermissions;
    rig
}

/// A fork call as a script has it.
fn fork(directive: &str, more: &str) -> String {
    format!(
        r#"{{ tool = "Agent", input = {{ description = "a fork", prompt = "{directive}", subagent_type = "fork"{more} }} }}"#
    )
}

/// The parent reads a file, then asks for forks; each fork looks once and reports.
fn script(calls: &[String]) -> String {
    format!(
        r#"
[[rule]]
when.agent = "re:^/main/"
when.tool = "looked"
reply = [{{ text = "Scope: looking. Result: seen by {{{{agent}}}}" }}]
[[rule]]
when.agent = "re:^/main/"
reply = [{{ thinking = "So I am a fork." }}, {{ tool = "Bash", input = {{ command = "echo looked" }} }}]
[[rule]]
when.turn = 1
reply = [{{ thinking = "First the file." }}, {{ tool = "Read", input = {{ file_path = "long.txt" }} }}]
[[rule]]
when.turn = 2
reply = [{{ thinking = "Now the forks." }}, {{ text = "I split it." }}, {}]
[[rule]]
reply = [{{ text = "All told." }}]
"#,
        calls.join(", ")
    )
}

fn long_file(rig: &Rig) {
    let lines: Vec<String> = (0..800)
        .map(|line| format!("line {line} says nothing of importance"))
        .collect();
    rig.file("long.txt", &lines.join("\n")).unwrap();
}

/// A request's bytes without its marks, and without what belongs to no prompt.
fn bare(request: &Recorded) -> String {
    let body = String::from_utf8(request.body.to_vec())
        .unwrap()
        .replace(MARK, "");
    let (before, after) = body.split_once(r#","max_tokens":"#).unwrap();
    let (_, messages) = after.split_once(r#""messages":["#).unwrap();
    format!("{before}|{}", messages.strip_suffix("]}").unwrap())
}

fn by<'a>(requests: &'a [Recorded], path: &str) -> Vec<&'a Recorded> {
    requests
        .iter()
        .filter(|request| request.header("x-posse-agent") == Some(path))
        .collect()
}

/// The paths of all but the main agent, in the order of their first requests.
fn forks(requests: &[Recorded]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let paths = requests
        .iter()
        .map(|request| request.header("x-posse-agent").unwrap().to_owned());
    paths
        .filter(|path| path != "/main" && seen.insert(path.clone()))
        .collect()
}

fn usage(request: &Recorded) -> Usage {
    request.usage.unwrap()
}

fn json(request: &Recorded) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

async fn rows(rig: &Rig, agent: &Agent) -> Vec<AgentRecord> {
    let filter = AgentFilter {
        parent: Some(agent.id),
        ..AgentFilter::default()
    };
    rig.store.agents(filter, Page::first(1000)).await.unwrap()
}

// proves FK-01
// proves FK-02
// proves FK-03 (part: model, tools and settings)
// proves FK-11 (part: the form; no conversation)
// proves AG-16 (part: directive)
// proves AG-02 (part: fork)
#[tokio::test]
async fn forks_begin_with_all_of_their_parent_and_differ_in_their_last_words_only() {
    let extra = r#"{ tool = "Bash", input = { command = "echo besides" } }"#.to_owned();
    let rig = rig(&script(&[
        fork("Look left.", ""),
        extra,
        fork("Look right.", ""),
    ]));
    long_file(&rig);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str()),
        (Outcome::Completed, "All told.")
    );
    let requests = rig.server.requests();
    let paths = forks(&requests);
    assert_eq!(paths.len(), 2);
    let parent = by(&requests, "/main");
    let (asked, answered) = (bare(parent[1]), bare(parent[2]));
    let firsts: Vec<String> = paths
        .iter()
        .map(|path| bare(by(&requests, path)[0]))
        .collect();
    for first in &firsts {
        // System, tools and messages of the parent, then its reply, then the one message of its own.
        assert!(first.starts_with(&asked), "not the parent's bytes");
        let shared = first
            .bytes()
            .zip(answered.bytes())
            .take_while(|(one, other)| one == other)
            .count();
        let reply = r#","name":"Agent","input":"#;
        assert!(
            answered[asked.len()..shared].contains(reply),
            "the reply with its calls is shared"
        );
        let own: Value =
            serde_json::from_str(&first[first.rfind(r#"{"role":"user""#).unwrap()..]).unwrap();
        let blocks = own["content"].as_array().unwrap();
        assert_eq!(
            blocks.len(),
            5,
            "an answer for each call, how forks work, and the directive"
        );
        let placeholders: BTreeSet<String> = blocks[..3]
            .iter()
            .map(|it| it["content"].to_string())
            .collect();
        assert_eq!(placeholders.len(), 1, "all the same");
        let calls = json(parent[2])["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()["content"]
            .clone();
        for (answer, call) in blocks[..3].iter().zip(calls.as_array().unwrap()) {
            assert_eq!(answer["tool_use_id"], call["tool_use_id"]);
        }
        let rules = blocks[3]["text"].as_str().unwrap();
        assert!(rules.starts_with("<fork-directive>"), "{rules}");
        for part in [
            "`Scope:`",
            "Key files:",
            "Files changed:",
            "commit",
            "Issues:",
            "500 words",
            "Do not converse",
        ] {
            assert!(rules.contains(part), "nothing of {part}");
        }
        let directive = blocks[4]["text"].as_str().unwrap();
        assert!(
            directive.starts_with("Your directive:\nLook "),
            "{directive}"
        );
        assert!(!first.contains("a fork\\\"") && !directive.contains("a fork\n"));
    }
    let differ = firsts[0]
        .bytes()
        .zip(firsts[1].bytes())
        .position(|(one, other)| one != other)
        .unwrap();
    assert!(
        firsts[0][..differ].ends_with("Your directive:\\nLook "),
        "{}",
        &firsts[0][differ - 40..differ]
    );
    // What they were told is told back: their reports, each to the call that asked for it.
    let told = answered.split("seen by /main/").count() - 1;
    assert_eq!(told, 2);
    // The cache is the judge: all of the parent's request is read, and nothing of it written again.
    for path in &paths {
        let own = by(&requests, path);
        assert!(usage(own[0]).cache_read >= usage(parent[1]).prompt());
        assert_eq!(
            usage(own[1]).cache_read,
            usage(own[0]).prompt(),
            "and so it goes on"
        );
    }
}

// proves FK-05 (part: forks)
#[tokio::test]
async fn of_many_forks_one_writes_what_all_share_and_the_others_read_it() {
    let calls: Vec<String> = (10..26)
        .map(|number| fork(&format!("Look at {number}."), ""))
        .collect();
    let rig = rig(&script(&calls));
    long_file(&rig);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    let requests = rig.server.requests();
    let paths = forks(&requests);
    assert_eq!(paths.len(), 16);
    let firsts: Vec<&Recorded> = paths.iter().map(|path| by(&requests, path)[0]).collect();
    let parent = usage(by(&requests, "/main")[1]).prompt();
    assert_eq!(
        usage(firsts[0]).cache_read,
        parent,
        "the first reads what its parent has left"
    );
    for other in &firsts[1..] {
        let Usage {
            cache_read,
            cache_write_5m,
            ..
        } = usage(other);
        assert!(
            cache_read > parent + 500,
            "the reply and the answers: {cache_read} after {parent}"
        );
        assert!(cache_write_5m < 30, "its own directive: {cache_write_5m}");
        // It waited until the first one's reply began, and no longer.
        assert!(other.at_us > firsts[0].at_us);
    }
    assert_eq!(end.misses.tokens(), 0, "{:?}", end.misses);
}

// proves FK-04
// proves FK-11 (part: no delegation)
#[tokio::test]
async fn forks_do_not_fork_nor_start_anybody() {
    let mut script = script(&[fork("Split it further.", "")]);
    script.insert_str(
        0,
        r#"
[[rule]]
when.user = "Split it again"
when.tool = "You are a fork"
reply = [{ text = "So I may not." }]
[[rule]]
when.user = "Split it again"
reply = [{ tool = "Agent", input = { description = "x", prompt = "y", subagent_type = "fork" } }]
[[rule]]
when.agent = "re:^/main/"
when.tool = "You are a fork"
reply = [{ text = "Scope: I did it alone." }]
[[rule]]
when.agent = "re:^/main/"
reply = [
  { tool = "Agent", input = { description = "x", prompt = "y", subagent_type = "fork" } },
  { tool = "Agent", input = { description = "x", prompt = "y" } },
]
"#,
    );
    let rig = rig(&script);
    long_file(&rig);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    let requests = rig.server.requests();
    let paths = forks(&requests);
    assert_eq!(paths.len(), 1, "nobody else: {paths:?}");
    let second = json(by(&requests, &paths[0])[1]);
    let answers = second["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    for answer in answers.as_array().unwrap() {
        assert_eq!(answer["is_error"], true);
        assert!(
            answer["content"][0]["text"]
                .as_str()
                .unwrap()
                .starts_with("You are a fork"),
            "{answer}"
        );
    }
    assert_eq!(rows(&rig, &agent).await.len(), 1);
    // The tool stays in the list: its bytes are those of the parent.
    let tools = |request: &Recorded| json(request)["tools"].to_string();
    assert_eq!(
        tools(by(&requests, &paths[0])[0]),
        tools(by(&requests, "/main")[0])
    );

    // The second line of defence: a session that begins as a fork's history does makes none either.
    let fork = rows(&rig, &agent).await.remove(0);
    let copy = rig
        .runtime()
        .unwrap()
        .fork_session(fork.agent, CopiedHistory::All, None, rig.setup.clone())
        .await;
    let mut copy = copy.unwrap();
    copy.handle.send(prompt("Split it again.")).await.unwrap();
    let (_, end) = until_end(&mut copy).await;
    assert_eq!(end.text, "So I may not.");
    let requests = rig.server.requests();
    let last = json(requests.last().unwrap()).to_string();
    assert!(
        last.matches("You are a fork: forks cannot start agents")
            .count()
            >= 3,
        "refused by its history"
    );
}

// proves FK-03 (part: questions)
// proves PE-01 (part: bubble)
#[tokio::test]
async fn a_forks_questions_go_to_whoever_answers_its_parent() {
    let script = script(&[fork("Look.", "")]);
    // A command that does more than read.
    let mut rig = rig(&script.replace("echo looked", "echo looked | tee seen"));
    long_file(&rig);
    rig.profile.mode = PermissionMode::Default;
    rig.setup.approver = Approver::FrontEnd;
    rig.setup.policy = Rig::playing("")
        .unwrap()
        .rules(&["Agent", "Read"], &[])
        .unwrap()
        .setup
        .policy;
    let mut agent = rig.prompted("go").await.unwrap();
    let question = loop {
        let event = agent.events.recv().await.unwrap();
        if let EventKind::ApprovalRequested(question) = event.kind {
            assert_ne!(event.agent, agent.id);
            let answer = posse_protocol::Answer::allow();
            let who = event.agent;
            agent
                .handle
                .send(posse_protocol::Command::Answer {
                    agent: who,
                    question: question.id,
                    answer,
                })
                .await
                .unwrap();
            break question;
        }
    };
    assert_eq!(question.tool, "Bash");
    assert!(question.from.unwrap().starts_with("/main/fork"));
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
}

// proves AG-05 (part: forks)
#[tokio::test]
async fn no_fork_is_started_past_a_limit() {
    let mut rig = rig(&script(&[fork("Look.", "")]));
    long_file(&rig);
    rig.setup.spawning.least_memory = u64::MAX;
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let requests = rig.server.requests();
    assert_eq!(forks(&requests), [""; 0]);
    assert_eq!(rows(&rig, &agent).await, []);
    let told = json(requests.last().unwrap()).to_string();
    assert!(
        told.contains("No agent was started: the machine has"),
        "{told}"
    );
}

// proves FK-14
// proves AG-03
#[tokio::test]
async fn a_rule_forbids_forks_a_model_is_refused_and_turns_are_capped() {
    let mut rig = rig(&script(&[
        fork("Look.", ""),
        fork("Look.", r#", model = "opus""#),
    ]));
    rig = rig.rules(&[], &["Agent(fork)"]).unwrap();
    long_file(&rig);
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let requests = rig.server.requests();
    assert!(forks(&requests).is_empty());
    assert!(
        !json(&requests[0])["tools"].to_string().contains("fork"),
        "nobody is told of them"
    );
    let denied = json(requests.last().unwrap()).to_string();
    assert_eq!(denied.matches("Denied: ").count(), 2, "{denied}");
    farewell(agent).await;

    let endless = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Bash", input = { command = "true" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "x", prompt = "y", subagent_type = "fork", model = "opus" } },
         { tool = "Agent", input = { description = "x", prompt = "y", subagent_type = "fork" } }]
[[rule]]
reply = [{ text = "Enough." }]
"#;
    let rig = self::rig(endless);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "Enough.");
    let requests = rig.server.requests();
    let paths = forks(&requests);
    assert_eq!(paths.len(), 1);
    assert_eq!(by(&requests, &paths[0]).len(), 200);
    let last = json(requests.last().unwrap()).to_string();
    assert!(last.contains("model: a fork has yours"), "{last}");
    assert_eq!(rows(&rig, &agent).await[0].state, AgentState::Partial);
}

// proves FK-06 (part: wake; another process)
// proves FK-07 (part: on disk)
#[tokio::test]
async fn a_fork_keeps_its_prefix_when_it_is_woken_and_in_another_process() {
    let mut script = script(&[fork("Look.", r#", name = "looker""#)]);
    script.insert_str(
        0,
        r#"
[[rule]]
when.user = "more, please"
when.tool = "Sent to"
reply = [{ text = "It has been asked." }]
[[rule]]
when.user = "more, please"
reply = [{ tool = "SendMessage", input = { to = "looker", message = "Look once more." } }]
[[rule]]
when.agent = "re:^/main/"
when.user = "Look once more"
reply = [{ text = "Scope: more. Result: nothing new" }]
"#,
    );
    let mut rig = rig(&script);
    long_file(&rig);
    rig.setup.spawning.background = Background::Asked;
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let id = agent.id;
    let lives = async |rig: &Rig, agent: &mut Agent, wakes: usize| {
        agent.handle.send(prompt("more, please")).await.unwrap();
        loop {
            let (_, end) = until_end(agent).await;
            let paths = forks(&rig.server.requests());
            if end.live == 0 && by(&rig.server.requests(), &paths[0]).len() == 2 + wakes {
                return;
            }
        }
    };
    lives(&rig, &mut agent, 1).await;
    farewell(agent).await;
    // Another process.
    let another = rig.another().unwrap();
    let mut agent = another.resume(id, None, rig.setup.clone()).await.unwrap();
    lives(&rig, &mut agent, 2).await;
    let requests = rig.server.requests();
    let paths = forks(&requests);
    assert_eq!(paths.len(), 1, "the same agent");
    let own = by(&requests, &paths[0]);
    for pair in own.windows(2) {
        assert!(
            bare(pair[1]).starts_with(&bare(pair[0])),
            "the bytes that it sent before"
        );
        assert_eq!(
            usage(pair[1]).cache_read,
            usage(pair[0]).prompt(),
            "nothing is written again"
        );
    }
    // The store has its parent's entries once.
    let row = rows(&rig, &agent).await.remove(0);
    let transcript = rig.store.read(row.agent).await.unwrap();
    assert_eq!(transcript.inherited, 4);
    assert_eq!(transcript.segments.len(), 1);
    assert_eq!(
        (transcript.segments[0].agent, transcript.segments[0].to),
        (id, 4)
    );
    let first = &transcript.entries[4].entry;
    assert!(
        first.head.is_some(),
        "what it shares with siblings stands apart"
    );
}

/// A git repository in the working directory, with one commit.
fn repository(rig: &Rig) {
    git(rig.work(), &["init", "-q", "-b", "main"]);
    git(rig.work(), &["add", "-A"]);
    git(rig.work(), &["commit", "-q", "-m", "First things"]);
}

// proves FK-10
#[tokio::test]
async fn a_fork_in_a_worktree_is_told_where_everything_lies_and_shares_its_prefix_all_the_same() {
    let calls = [
        fork("Look left.", r#", isolation = "worktree""#),
        fork("Look right.", r#", isolation = "worktree""#),
    ];
    let mut script = script(&calls);
    script.insert_str(
        0,
        r#"
[[rule]]
when.agent = "re:^/main/"
when.tool = "was not read yet"
reply = [{ text = "Scope: editing. Result: not without reading" }]
[[rule]]
when.agent = "re:^/main/"
when.user = "Look left"
reply = [{ tool = "Edit", input = { file_path = "long.txt", old_string = "line 1 says", new_string = "line 1 told" } }]
"#,
    );
    let rig = rig(&script);
    long_file(&rig);
    repository(&rig);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed, "{}", end.text);
    let requests = rig.server.requests();
    let paths = forks(&requests);
    let firsts: Vec<String> = paths
        .iter()
        .map(|path| bare(by(&requests, path)[0]))
        .collect();
    let differ = firsts[0]
        .bytes()
        .zip(firsts[1].bytes())
        .position(|(one, other)| one != other)
        .unwrap();
    assert!(
        firsts[0][..differ].contains("<fork-directive>"),
        "all before the directive is shared"
    );
    let parent = usage(by(&requests, "/main")[1]).prompt();
    for (path, row) in paths.iter().zip(rows(&rig, &agent).await) {
        let own = by(&requests, path);
        assert!(usage(own[0]).cache_read >= parent);
        let message =
            json(own[0])["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let directive = message.as_array().unwrap().last().unwrap()["text"]
            .as_str()
            .unwrap()
            .to_owned();
        for part in [
            rig.worktrees().to_str().unwrap(),
            rig.work().to_str().unwrap(),
            "your copy of the file is at the same place",
            "read a file there before you edit it",
            "main",
        ] {
            assert!(directive.contains(part), "nothing of {part}: {directive}");
        }
        assert_ne!(row.cwd, rig.work());
    }
    let told = requests
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned());
    assert!(
        told.into_iter()
            .any(|body| body.contains("not without reading")),
        "files there are not known yet"
    );
    let unchanged = std::fs::read_to_string(rig.work().join("long.txt")).unwrap();
    assert!(unchanged.contains("line 1 says"));
}
