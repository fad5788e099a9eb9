//! Compaction: a summary takes the place of a history, and nothing that matters is lost with it.

use posse_port::store::{NewTask, Op, Order};
use posse_protocol::{Command, EntryKind, EventKind, Outcome, PermissionMode, Purpose};
use posse_runtime::live::handle::Agent;
use posse_scripted::Recorded;
use posse_testkit::Rig;
use posse_testkit::rig::{farewell, prompt, until_end};
use serde_json::Value;

fn rig(script: &str) -> Rig {
    let mut rig = Rig::playing(script).unwrap().agents();
    rig.profile.mode = PermissionMode::BypassPermissions;
    rig
}

fn body(request: &Recorded) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn main_requests(rig: &Rig) -> Vec<Recorded> {
    let requests = rig.server.requests();
    requests
        .into_iter()
        .filter(|request| request.header("x-posse-agent") == Some("/main"))
        .collect()
}

/// Whether a request asks for a summary.
fn is_side_query(request: &Recorded) -> bool {
    let messages = body(request)["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().to_string();
    last.contains("a summary takes its place")
}

/// Without the marks, which move.
fn bare(value: &Value) -> String {
    value
        .to_string()
        .replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

/// The text of the first message.
fn opening(request: &Recorded) -> String {
    bare(&body(request)["messages"][0]["content"])
}

/// Tasks in the list of an agent's session.
async fn tasks(rig: &Rig, agent: &Agent, subjects: &[&str]) {
    let realm = rig.store.read(agent.id).await.unwrap().record.realm;
    let create = |subject: &&str| Op::CreateTask {
        team: None,
        task: Box::new(NewTask {
            subject: (*subject).to_owned(),
            ..NewTask::default()
        }),
    };
    let ops = subjects.iter().map(create).collect();
    let results = rig
        .store
        .operate(Order {
            realm,
            ops,
            at_ms: 0,
        })
        .await
        .unwrap();
    assert!(results.iter().all(Result::is_ok), "{results:?}");
}

// proves TU-07 (part: compaction)
// proves TU-08 (part: unchanged; compaction)
// proves FK-13 (part: compaction; same prefix)
#[tokio::test]
async fn five_hundred_turns_cross_the_limit_and_nothing_is_forgotten() {
    let script = r#"
[[rule]]
when.user = "a summary takes its place"
reply = [{ thinking = "What was it all about?" }, { text = "SUMMARY: I read pieces of the book, up to {{turn}}." }]
[[rule]]
when.user = "read the book"
times = 1
reply = [{ thinking = "First what goes on." }, { tool = "Bash", input = { command = "sleep 1000", run_in_background = true, description = "a long sleep" } }]
[[rule]]
when.user = "read the book"
times = 499
reply = [{ thinking = "On with piece {{turn}}." }, { tool = "Read", input = { file_path = "book.txt", offset = 1, limit = 40 } }]
[[rule]]
when.user = "read the book"
reply = [{ text = "It is read." }]
[[rule]]
reply = [{ text = "Yes?" }]
"#;
    let mut rig = rig(script);
    rig.setup.limits.compact_at = Some(16_000);
    let lines: Vec<String> = (0..200)
        .map(|line| format!("line {line} of a long book about nothing"))
        .collect();
    let path = rig.file("book.txt", &lines.join("\n")).unwrap();
    let mut agent = rig.prompted("hello").await.unwrap();
    until_end(&mut agent).await;
    tasks(
        &rig,
        &agent,
        &["Write a review of the book", "Return the book"],
    )
    .await;
    agent
        .handle
        .send(prompt(
            "Now read the book: every word of this must survive, 'Zaphod' too.",
        ))
        .await
        .unwrap();
    let (events, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str()),
        (Outcome::Completed, "It is read.")
    );
    assert_eq!(end.turns, 501);
    let compactions = events.iter().filter(
        |event| matches!(&event.kind, EventKind::Entry(entry) if entry.kind == EntryKind::Compaction),
    );
    let compactions = compactions.count();
    assert!(compactions >= 3, "{compactions} compactions");
    let told = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Compacting { auto: true, .. }));
    assert_eq!(told.count(), compactions);

    let requests = main_requests(&rig);
    assert!(
        requests.iter().all(|request| request.status == 200),
        "the model took every request"
    );
    assert_eq!(
        requests
            .iter()
            .filter(|request| is_side_query(request))
            .count(),
        compactions
    );
    let mut before: Option<&Recorded> = None;
    let mut restated = 0;
    for request in &requests {
        let usage = request.usage.unwrap();
        assert!(usage.prompt() < 20_000, "the limit holds: {usage:?}");
        if is_side_query(request) {
            // The summary is asked for on the same prefix: it is read, not written.
            let previous = before.unwrap().usage.unwrap();
            assert!(
                usage.cache_read >= previous.prompt(),
                "{usage:?} after {previous:?}"
            );
            continue;
        }
        let sent = |request: &Recorded| body(request)["messages"].as_array().unwrap().len();
        let after = before.is_some_and(|before| sent(before) > sent(request));
        if after {
            restated += 1;
            let first = body(request)["messages"].clone();
            assert_eq!(first.as_array().unwrap().len(), 1, "nothing older is sent");
            assert!(
                !first.to_string().contains("thinking\""),
                "no thinking outlives what it was bound to"
            );
            let text = opening(request);
            for part in [
                "SUMMARY: I read pieces",
                path.to_str().unwrap(),
                "a long sleep",
                "Write a review of the book",
                "Return the book",
                "every word of this must survive, 'Zaphod' too.",
            ] {
                assert!(text.contains(part), "{part} is forgotten: {text}");
            }
        }
        before = Some(request);
    }
    assert_eq!(restated, compactions);
    // The transcript has everything, the agent goes on from the last summary.
    let transcript = rig.store.read(agent.id).await.unwrap();
    assert_eq!(transcript.entries.len(), 2 + 1 + 500 * 2 + 1 + compactions);
    let paid = transcript
        .record
        .charges
        .iter()
        .filter(|charge| charge.purpose == Purpose::Compaction);
    assert!(paid.map(|charge| charge.usage.output).sum::<u64>() > 0);
    farewell(agent).await;
}

// proves FK-06 (part: compaction of the parent)
// proves FK-07 (part: on disk)
#[tokio::test]
async fn a_person_compacts_and_forks_made_before_are_none_the_wiser() {
    let script = r#"
[[rule]]
when.user = "a summary takes its place"
reply = [{ text = "SUMMARY: a fork was made." }]
[[rule]]
when.agent = "re:^/main/"
when.user = "Again, please"
reply = [{ text = "Scope: again. Result: the same" }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "Scope: once. Result: done" }]
[[rule]]
when.user = "wake it"
when.tool = "Sent to"
reply = [{ text = "Done." }]
[[rule]]
when.user = "wake it"
reply = [{ tool = "SendMessage", input = { to = "twin", message = "Again, please." } }]
[[rule]]
when.turn = 1
reply = [{ thinking = "A twin." }, { tool = "Agent", input = { description = "a twin", prompt = "Do it once.", subagent_type = "fork", name = "twin" } }]
[[rule]]
reply = [{ text = "So it is." }]
"#;
    let rig = rig(script);
    let mut agent = rig.prompted(&"make a twin ".repeat(2000)).await.unwrap();
    until_end(&mut agent).await;
    agent
        .handle
        .send(Command::Compact {
            keep: Some("the name of the twin".into()),
        })
        .await
        .unwrap();
    let (events, end) = until_end(&mut agent).await;
    assert_eq!((end.outcome, end.turns), (Outcome::Completed, 0));
    assert!(
        events
            .iter()
            .any(|event| matches!(event.kind, EventKind::Compacting { auto: false, .. }))
    );
    let asked = main_requests(&rig).pop().unwrap();
    assert!(is_side_query(&asked) && body(&asked).to_string().contains("the name of the twin"));
    let id = agent.id;
    farewell(agent).await;
    // In another process: the parent has its summary, the fork all that it had.
    let mut agent = rig.resumed(id).await.unwrap();
    assert!(!agent.unfinished);
    agent.handle.send(prompt("wake it")).await.unwrap();
    let forks = |requests: &[Recorded]| -> Vec<Recorded> {
        let own = |request: &&Recorded| request.header("x-posse-agent") != Some("/main");
        requests.iter().filter(own).cloned().collect()
    };
    loop {
        let (_, end) = until_end(&mut agent).await;
        if end.live == 0 && forks(&rig.server.requests()).len() == 2 {
            break;
        }
    }
    let woken = main_requests(&rig)
        .into_iter()
        .find(|request| body(request).to_string().contains("wake it"));
    let woken = woken.unwrap();
    assert!(opening(&woken).contains("SUMMARY: a fork was made."));
    assert!(
        !body(&woken).to_string().contains("make a twin make a twin"),
        "nothing older is sent"
    );
    let twin = forks(&rig.server.requests());
    let [first, second] = [0, 1].map(|at| bare(&body(&twin[at])["messages"]));
    assert!(
        second.starts_with(first.strip_suffix(']').unwrap()),
        "the fork's own bytes"
    );
    assert_eq!(
        twin[1].usage.unwrap().cache_read,
        twin[0].usage.unwrap().prompt()
    );
}

#[tokio::test]
async fn a_history_that_the_model_cannot_take_is_compacted_without_what_came_last() {
    let script = r#"
[[rule]]
when.user = "a summary takes its place"
reply = [{ text = "SUMMARY: so far so good." }]
[[rule]]
when.tool = "too much for you"
times = 1
fault = { kind = "status", status = 400, message = "prompt is too long: 1000001 tokens > 1000000 maximum" }
[[rule]]
when.marker = "SUMMARY"
reply = [{ text = "I went on." }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "echo too much for you" } }]
"#;
    let rig = rig(script);
    let mut agent = rig.prompted("go on until it breaks").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.text.as_str()),
        (Outcome::Completed, "I went on.")
    );
    let requests = main_requests(&rig);
    let side_query = requests
        .iter()
        .find(|request| is_side_query(request))
        .unwrap();
    assert!(
        !body(side_query).to_string().contains("too much"),
        "what could not be taken is not sent again"
    );
    let last = opening(requests.last().unwrap());
    assert!(
        last.contains("The summary leaves out the last input")
            && last.contains("echo too much for you")
    );
    assert!(last.contains("go on until it breaks"));
}

#[tokio::test]
async fn without_a_summary_the_run_says_so_and_can_go_on_later() {
    let script = r#"
[[rule]]
when.user = "a summary takes its place"
times = 4
reply = [{ tool = "Bash", input = { command = "true" } }]
[[rule]]
when.user = "a summary takes its place"
reply = [{ text = "SUMMARY: at last." }]
[[rule]]
when.user = "compact"
reply = [{ text = "I cannot know that." }]
[[rule]]
reply = [{ text = "Fine." }]
"#;
    let rig = rig(script);
    let mut agent = rig.prompted("hello").await.unwrap();
    until_end(&mut agent).await;
    let before = rig.store.read(agent.id).await.unwrap().entries.len();
    agent
        .handle
        .send(Command::Compact { keep: None })
        .await
        .unwrap();
    let (events, end) = until_end(&mut agent).await;
    let Outcome::Failed(fault) = end.outcome else {
        panic!("{:?}", end.outcome)
    };
    assert!(
        fault.message.contains("kept calling tools"),
        "{}",
        fault.message
    );
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.kind, EventKind::Warning(_)))
    );
    let refused = main_requests(&rig).pop().unwrap();
    assert!(body(&refused).to_string().contains("no tools may be used"));
    let transcript = rig.store.read(agent.id).await.unwrap();
    assert_eq!(
        transcript.entries.len(),
        before,
        "no trace in the conversation"
    );
    agent
        .handle
        .send(Command::Compact { keep: None })
        .await
        .unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    agent.handle.send(prompt("and now?")).await.unwrap();
    until_end(&mut agent).await;
    let last = main_requests(&rig).pop().unwrap();
    assert!(opening(&last).contains("SUMMARY: at last."));
}
