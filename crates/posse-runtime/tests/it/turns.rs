//! Whole runs: prompts in, events out, requests on the wire, rows in the store, files on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use posse_port::BoxFuture;
use posse_port::tool::{
    Intent, Subject, Tool, ToolContext, ToolError, ToolOutput, Toolbox, Workspace,
};
use posse_protocol::{
    Command, ContentBlock, Cost, Delta, EntryKind, EventKind, Limit, Outcome, PermissionMode,
    RawJson, ToolSpec,
};
use posse_runtime::govern::budget::Budget;
use posse_runtime::live::setup::{Approver, Limits};
use posse_runtime::session::branch::CopiedHistory;
use posse_testkit::rig::{farewell, prompt, until_end};
use posse_testkit::{Faulty, Rig};
use serde_json::Value;
use tokio::sync::Barrier;

pub(crate) fn bodies(rig: &Rig) -> Vec<Value> {
    rig.server
        .requests()
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect()
}

/// The bytes of a request's messages, without marks and without the closing bracket.
pub(crate) fn messages(body: &[u8]) -> String {
    let text = String::from_utf8(body.to_vec())
        .unwrap()
        .replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let start = text.find(r#""messages":["#).unwrap();
    text[start..].strip_suffix("]}").unwrap().to_owned()
}

const FIX: &str = r#"
[[rule]]
when.tool = "replaced|changed|written"
reply = [{ text = "Fixed: 2 + 2 is 4 again." }]
[[rule]]
when.tool = "return a - b"
reply = [{ text = "A minus. " }, { tool = "Edit", input = { file_path = "sum.py", old_string = "a - b", new_string = "a + b" } }]
[[rule]]
when.turn = 3
reply = [{ text = "Fixed: 2 + 2 is 4 again." }]
[[rule]]
when.user = "fix"
reply = [{ thinking = "Look first." }, { text = "Looking. " }, { tool = "Read", input = { file_path = "sum.py" } }]
[[rule]]
reply = [{ text = "You are welcome." }]
"#;

// proves TU-01 (part: the model asks for no tool)
// proves TU-07 (part: byte for byte)
// proves TR-02 (part: history)
#[tokio::test]
async fn a_run_goes_round_until_the_model_is_done_and_sends_the_same_bytes_again() {
    let rig = Rig::playing(FIX).unwrap();
    let file = rig
        .file("sum.py", "def add(a, b):\n    return a - b\n")
        .unwrap();
    let mut agent = rig.prompted("fix it").await.unwrap();
    let (events, end) = until_end(&mut agent).await;
    assert_eq!((end.outcome, end.turns), (Outcome::Completed, 3));
    assert_eq!(end.text, "Fixed: 2 + 2 is 4 again.");
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        "def add(a, b):\n    return a + b\n"
    );
    let kinds: Vec<EntryKind> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Entry(entry) => Some(entry.kind),
            _ => None,
        })
        .collect();
    use EntryKind::{Prompt, Reply, Results};
    assert_eq!(kinds, [Prompt, Reply, Results, Reply, Results, Reply]);

    agent.handle.send(prompt("thanks")).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "You are welcome.");
    let id = agent.id;
    farewell(agent).await;
    let mut agent = rig.resumed(id).await.unwrap();
    agent.handle.send(prompt("and again")).await.unwrap();
    until_end(&mut agent).await;

    let requests = rig.server.requests();
    assert_eq!(requests.len(), 5);
    for pair in requests.windows(2) {
        let (before, after) = (messages(&pair[0].body), messages(&pair[1].body));
        assert!(
            after.starts_with(&before),
            "what was sent once is sent again:\n{before}\n{after}"
        );
        // The prompt before is read whole from the cache, in the same process and in the next.
        let (before, after) = (pair[0].usage.unwrap(), pair[1].usage.unwrap());
        assert_eq!(after.cache_read, before.prompt(), "{:?}", pair[1].usage);
    }
}

// proves TU-02
#[tokio::test]
async fn a_reply_is_seen_while_it_arrives() {
    let script = r#"
[[rule]]
reply = [{ thinking = "hm" }, { text = "now" }, { tool = "Glob", input = { pattern = "*.rs" } }]
fault = { kind = "stall", at = 1960 }
"#;
    let rig = Rig::playing(script).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    // The stream stands still; what it has said so far has been shown.
    let (mut text, mut thinking, mut tools) = (String::new(), String::new(), Vec::new());
    while let Some(event) = agent.events.recv().await {
        match event.kind {
            EventKind::Delta(Delta::Text(more)) => text.push_str(&more),
            EventKind::Delta(Delta::Thinking(more)) => thinking.push_str(&more),
            EventKind::Delta(Delta::ToolUse { name, .. }) => tools.push(name),
            EventKind::Delta(Delta::ToolInput(more)) if !more.is_empty() => break,
            EventKind::Entry(entry) => {
                assert_eq!(entry.kind, EntryKind::Prompt, "the reply is not whole")
            }
            _ => {}
        }
    }
    assert_eq!(
        (text.as_str(), thinking.as_str(), &tools[..]),
        ("now", "hm", &["Glob".to_owned()][..])
    );
    agent.handle.send(Command::Interrupt).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Interrupted);
}

/// A tool that says what runs beside it.
struct Probe {
    name: &'static str,
    beside_others: bool,
    running: Arc<AtomicUsize>,
    /// Two calls that may run together wait for each other here.
    meet: Arc<Barrier>,
}

impl Tool for Probe {
    fn name(&self) -> &str {
        self.name
    }

    fn spec(&self) -> ToolSpec {
        let input_schema =
            RawJson::parse(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#).unwrap();
        ToolSpec {
            name: self.name.into(),
            description: "Probes.".into(),
            input_schema,
        }
    }

    fn intent(&self, _: &RawJson, _: &Workspace) -> Result<Intent, ToolError> {
        let (beside_others, subject) = (self.beside_others, Subject::Nothing);
        Ok(Intent {
            read_only: true,
            beside_others,
            subject,
            waits: false,
            title: "probe".into(),
        })
    }

    fn run(
        &self,
        input: RawJson,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let (running, meet, beside) = (
            Arc::clone(&self.running),
            Arc::clone(&self.meet),
            self.beside_others,
        );
        Box::pin(async move {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            if beside {
                meet.wait().await;
            }
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            let alone = beside || now == 1;
            Ok(ToolOutput::text(format!(
                "{} {}",
                input.get(),
                if alone { "fine" } else { "CROWDED" }
            )))
        })
    }
}

// proves TU-03 (part: side by side; order of results)
#[tokio::test]
async fn calls_that_may_run_together_do_and_results_come_in_call_order() {
    let script = r#"
[[rule]]
when.tool = "fine"
reply = [{ text = "done" }]
[[rule]]
reply = [
  { tool = "Look", input = { n = 0 } }, { tool = "Look", input = { n = 1 } },
  { tool = "Change", input = { n = 2 } }, { tool = "Change", input = { n = 3 } },
  { tool = "Look", input = { n = 4 } }, { tool = "Look", input = { n = 5 } },
]
"#;
    let running = Arc::new(AtomicUsize::new(0));
    let meet = Arc::new(Barrier::new(2));
    let probe = |name, beside_others| -> Arc<dyn Tool> {
        Arc::new(Probe {
            name,
            beside_others,
            running: Arc::clone(&running),
            meet: Arc::clone(&meet),
        })
    };
    let tools: Toolbox = [probe("Look", true), probe("Change", false)]
        .into_iter()
        .collect();
    let rig = Rig::playing(script).unwrap().tools(tools);
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    let sent = &bodies(&rig)[1]["messages"];
    assert_eq!(
        sent.as_array().unwrap().len(),
        3,
        "all results in one message"
    );
    let results: Vec<&str> = sent[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["content"][0]["text"].as_str().unwrap())
        .collect();
    let expected: Vec<String> = (0..6).map(|n| format!("{{\"n\":{n}}} fine")).collect();
    assert_eq!(results, expected);
}

// proves TU-09
#[tokio::test]
async fn nothing_happens_before_what_led_to_it_is_stored() {
    for refused in [EntryKind::Prompt, EntryKind::Reply, EntryKind::Results] {
        let mut rig = Rig::playing(FIX).unwrap();
        rig.file("sum.py", "return a - b\n").unwrap();
        let refuse = Box::new(move |step: &posse_port::store::Step| {
            step.entries.iter().any(|entry| entry.kind == refused)
        });
        rig.store = Arc::new(Faulty {
            refuse,
            ..Faulty::new(Arc::clone(&rig.store))
        });
        let mut agent = rig.prompted("fix it").await.unwrap();
        let (events, end) = until_end(&mut agent).await;
        let Outcome::Paused(fault) = end.outcome else {
            panic!("{:?}", end.outcome)
        };
        assert!(fault.message.contains("disk is full"), "{}", fault.message);
        // Whoever waits gets what was said and paid for, stored or not.
        let asked = refused != EntryKind::Prompt;
        assert_eq!(
            (!end.text.is_empty(), !end.spent.is_empty()),
            (asked, asked)
        );
        farewell(agent).await;
        let ran = events
            .iter()
            .any(|event| matches!(event.kind, EventKind::CallStarted { .. }));
        // A reply that is not stored runs no tool; results that are not stored are not sent.
        assert_eq!(ran, refused == EntryKind::Results);
        assert_eq!(
            rig.server.requests().len(),
            usize::from(refused != EntryKind::Prompt)
        );
    }
}

// proves TU-08 (part: another model or tool set)
#[tokio::test]
async fn a_resumed_agent_keeps_the_model_and_tools_that_its_thinking_is_bound_to() {
    let mut rig = Rig::playing(FIX).unwrap();
    rig.file("sum.py", "return a - b\n").unwrap();
    let mut agent = rig.prompted("fix it").await.unwrap();
    until_end(&mut agent).await;
    let id = agent.id;
    farewell(agent).await;
    // Whoever resumes it would have another model and fewer tools.
    rig.profile.model = "claude-haiku-5-5".into();
    rig.setup.tools.retain(|name| name == "Read");
    let mut agent = rig.resumed(id).await.unwrap();
    agent.handle.send(prompt("thanks")).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.text, "You are welcome.");
    let sent = bodies(&rig);
    let (before, after) = (&sent[2], &sent[3]);
    assert_eq!(
        (&after["model"], &after["tools"]),
        (&before["model"], &before["tools"])
    );
    let thought = &before["messages"][1]["content"][0];
    assert_eq!(thought["type"], "thinking");
    assert_eq!(&after["messages"][1]["content"][0], thought);
}

// proves TU-01 (part: max_turns; refused by a limit)
#[tokio::test]
async fn turns_and_money_are_limits_that_a_new_run_can_go_beyond() {
    let mut rig = Rig::playing(FIX).unwrap();
    rig.file("sum.py", "return a - b\n").unwrap();
    rig.setup.limits = Limits {
        turns: Some(1),
        ..rig.setup.limits
    };
    let mut agent = rig.prompted("fix it").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(
        (end.outcome, end.turns),
        (Outcome::Partial(Limit::Turns), 1)
    );
    agent.handle.send(Command::Continue).await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Partial(Limit::Turns));
    agent.handle.send(Command::Continue).await.unwrap();
    assert_eq!(until_end(&mut agent).await.1.outcome, Outcome::Completed);

    // A call is made only if the worst that it could cost is there: 4096 tokens of output and all bytes of
    // the request at the highest price.
    let limited = async |cost: f64| {
        let mut rig = Rig::playing(FIX).unwrap();
        rig.file("sum.py", "return a - b\n").unwrap();
        let cost = Some(Cost::from_pico_usd((cost * 1e12) as u64));
        rig.setup.limits = Limits {
            budget: Budget {
                cost,
                ..Budget::default()
            },
            ..rig.setup.limits
        };
        let mut agent = rig.prompted("fix it").await.unwrap();
        let (_, end) = until_end(&mut agent).await;
        let stored = rig.store.read(agent.id).await;
        let kept = stored.map(|stored| {
            stored
                .record
                .charges
                .iter()
                .filter_map(|charge| charge.cost)
                .sum()
        });
        (end, rig.server.requests().len(), kept.unwrap_or_default())
    };
    let (end, requests, _) = limited(1e-12).await;
    assert_eq!(
        (end.outcome, end.turns, requests),
        (Outcome::Partial(Limit::Budget), 0, 0)
    );
    let mut outcomes = Vec::new();
    for cents in (4..40).step_by(4) {
        let (end, requests, kept) = limited(f64::from(cents) / 100.0).await;
        let spent: Cost = end.spent.iter().filter_map(|spent| spent.cost).sum();
        assert_eq!(spent, kept, "what it cost is kept");
        assert!(
            kept <= Cost::from_pico_usd(u64::try_from(cents).unwrap() * 10_000_000_000),
            "{kept:?}"
        );
        outcomes.push((requests, end.outcome));
    }
    assert_eq!(
        outcomes[0],
        (0, Outcome::Partial(Limit::Budget)),
        "the first call could cost more"
    );
    assert_eq!(outcomes.last().unwrap(), &(3, Outcome::Completed));
}

#[tokio::test]
async fn a_denied_call_reaches_the_model_and_nothing_else() {
    let script = r#"
[[rule]]
when.tool = "Denied"
reply = [{ text = "I may not." }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "touch made" } }]
"#;
    let mut rig = Rig::playing(script)
        .unwrap()
        .rules(&[], &["Bash(touch *)"])
        .unwrap();
    rig.profile.mode = PermissionMode::BypassPermissions;
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!((end.text.as_str(), end.denials.len()), ("I may not.", 1));
    assert!(!rig.work().join("made").exists());
}

#[tokio::test]
async fn a_question_is_answered_by_the_front_end() {
    let script = r#"
[[rule]]
when.tool = "hello|refused"
reply = [{ text = "Seen: {{tool}}" }]
[[rule]]
when.tool = "re:(?s).+"
reply = [{ text = "Seen: {{tool}}" }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "echo hello | tee seen" } }]
"#;
    use posse_protocol::Answer::{self, Allow, Deny};
    let with = |input| Allow {
        input: Some(input),
        always: None,
    };
    let other = RawJson::parse(r#"{"command":"echo other"}"#).unwrap();
    let denied = RawJson::parse(r#"{"command":"curl x"}"#).unwrap();
    for (answer, expected) in [
        (Answer::allow(), "hello"),
        (with(other), "other"),
        (with(denied), "Denied"),
        (
            Deny {
                message: "refused by a person".into(),
                interrupt: false,
            },
            "refused by a person",
        ),
    ] {
        let mut rig = Rig::playing(script)
            .unwrap()
            .rules(&[], &["Bash(curl *)"])
            .unwrap();
        rig.setup.approver = Approver::FrontEnd;
        let mut agent = rig.prompted("go").await.unwrap();
        let question = loop {
            if let EventKind::ApprovalRequested(question) = agent.events.recv().await.unwrap().kind
            {
                break question.id;
            }
        };
        agent
            .handle
            .send(Command::Answer {
                agent: agent.id,
                question,
                answer,
            })
            .await
            .unwrap();
        let (_, end) = until_end(&mut agent).await;
        assert!(
            end.text.contains(expected),
            "{} has no {expected}",
            end.text
        );
    }
}

#[tokio::test]
async fn a_forked_session_shares_the_prefix_and_leaves_the_first_alone() {
    let rig = Rig::playing("[[rule]]\nreply = [{ text = \"turn {{turn}}\" }]").unwrap();
    let mut agent = rig.prompted("one").await.unwrap();
    until_end(&mut agent).await;
    let id = agent.id;
    let runtime = rig.runtime().unwrap();
    let mut fork = runtime
        .fork_session(id, CopiedHistory::All, None, rig.setup.clone())
        .await
        .unwrap();
    fork.handle.send(prompt("two")).await.unwrap();
    assert_eq!(until_end(&mut fork).await.1.text, "turn 2");
    agent.handle.send(prompt("other two")).await.unwrap();
    until_end(&mut agent).await;
    let second = fork.id;
    farewell(fork).await;
    // A fork of the fork, from the store alone.
    let mut third = runtime
        .fork_session(second, CopiedHistory::All, None, rig.setup.clone())
        .await
        .unwrap();
    third.handle.send(prompt("three")).await.unwrap();
    assert_eq!(until_end(&mut third).await.1.text, "turn 3");
    let texts = |number: usize| -> Vec<String> {
        let sent = bodies(&rig)[number]["messages"].as_array().unwrap().clone();
        sent.iter()
            .map(|message| message["content"][0]["text"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts(1), ["one", "turn 1", "two"]);
    assert_eq!(texts(2), ["one", "turn 1", "other two"]);
    assert_eq!(texts(3), ["one", "turn 1", "two", "turn 2", "three"]);
    let requests = rig.server.requests();
    for number in [1, 2] {
        assert!(requests[number].usage.unwrap().cache_read >= requests[0].usage.unwrap().prompt());
    }
    let stored = rig.store.read(third.id).await.unwrap();
    assert_eq!((stored.entries.len(), stored.inherited), (6, 4));
}

const BRANCHES: &str = r#"
[[rule]]
when.user = "summary"
reply = [{ text = "<summary>It was short.</summary>" }]
[[rule]]
when.user = "look"
times = 1
reply = [{ tool = "Glob", input = { pattern = "*" } }]
[[rule]]
reply = [{ text = "turn {{turn}}" }]
"#;

// proves CV-01 (part: any entry; before a compaction; refused)
#[tokio::test]
async fn a_conversation_is_branched_after_any_entry() {
    let rig = Rig::playing(BRANCHES).unwrap();
    let mut agent = rig.prompted("one").await.unwrap();
    until_end(&mut agent).await;
    // 0 one, 1 reply, 2 look, 3 its call, 4 the result, 5 reply, 6 the summary.
    agent.handle.send(prompt("look")).await.unwrap();
    until_end(&mut agent).await;
    agent
        .handle
        .send(Command::Compact { keep: None })
        .await
        .unwrap();
    until_end(&mut agent).await;
    let (runtime, id) = (rig.runtime().unwrap(), agent.id);
    let before = rig.store.read(id).await.unwrap();
    assert_eq!(before.entries.len(), 7);
    let branch = async |at| {
        let copied = CopiedHistory::Through(at);
        runtime
            .fork_session(id, copied, None, rig.setup.clone())
            .await
    };
    for (at, why) in [
        (
            3,
            "it calls tools, whose results are entry 4; branch after that one",
        ),
        (7, "the session has the entries 0 to 6"),
    ] {
        let error = branch(at)
            .await
            .map(|agent| agent.id)
            .unwrap_err()
            .to_string();
        let words = format!("the conversation cannot be branched after entry {at}: {why}");
        assert_eq!(error, words);
    }
    for (at, kept) in [(0, 1), (1, 2), (4, 5), (5, 6), (6, 1)] {
        let mut other = branch(at).await.unwrap();
        let sent = bodies(&rig).len();
        other.handle.send(prompt("other")).await.unwrap();
        until_end(&mut other).await;
        let sent = bodies(&rig)[sent]["messages"].as_array().unwrap().clone();
        assert_eq!(sent.len(), kept + 1, "{at}");
        let stored = rig.store.read(other.id).await.unwrap();
        let first = if at == 6 { 6 } else { 0 };
        let own = &before.entries[first..=at as usize];
        let same = stored.entries.iter().zip(own);
        assert_eq!(stored.inherited, own.len());
        for (copy, original) in same {
            assert_eq!(
                copy.entry.checksum, original.entry.checksum,
                "the same bytes"
            );
        }
        farewell(other).await;
    }
    let after = rig.store.read(id).await.unwrap();
    assert_eq!(after.entries.len(), 7, "the first is left alone");
    farewell(agent).await;
}

/// A copy of a session whose tools are at work begins before the reply that asked for them: the API
/// refuses a call without a result, and the results belong to the other.
#[tokio::test]
async fn a_session_can_be_copied_while_its_tools_work() {
    let script = r#"
[[rule]]
when.user = "copy"
reply = [{ text = "I am the copy" }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "echo up > ready; cat hold" } }]
"#;
    let mut rig = Rig::playing(script).unwrap();
    rig.profile.mode = PermissionMode::BypassPermissions;
    let at = |name: &str| rig.work().join(name);
    for name in ["ready", "hold"] {
        nix::unistd::mkfifo(&at(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let agent = rig.prompted("go").await.unwrap();
    let ready = at("ready");
    tokio::task::spawn_blocking(move || std::fs::read(ready))
        .await
        .unwrap()
        .unwrap();
    let mut copy = rig
        .runtime()
        .unwrap()
        .fork_session(agent.id, CopiedHistory::All, None, rig.setup.clone())
        .await
        .unwrap();
    assert!(copy.unfinished);
    copy.handle.send(prompt("copy")).await.unwrap();
    assert_eq!(until_end(&mut copy).await.1.text, "I am the copy");
    assert_eq!(rig.store.read(copy.id).await.unwrap().inherited, 1);
    agent.handle.send(Command::Interrupt).await.unwrap();
    farewell(agent).await;
}

/// What a link leads to is judged before it is followed, however it got there.
#[tokio::test]
async fn a_link_that_an_earlier_call_put_in_the_way_is_not_followed() {
    let script = r#"
[[rule]]
when.turn = 2
reply = [{ text = "Tools said: {{tool}}" }]
[[rule]]
reply = [
  { tool = "Bash", input = { command = "rm -r notes docs; ln -s secrets notes; ln -s .git docs" } },
  { tool = "Read", input = { file_path = "notes/key" } },
  { tool = "Grep", input = { pattern = "hush", path = "notes", output_mode = "content" } },
  { tool = "Write", input = { file_path = "docs/config", content = "evil" } },
]
"#;
    let rig = Rig::playing(script)
        .unwrap()
        .rules(&["Bash"], &["Read(./secrets/**)"])
        .unwrap();
    for name in ["notes", "docs", "secrets", ".git"] {
        std::fs::create_dir(rig.work().join(name)).unwrap();
    }
    rig.file("secrets/key", "hush").unwrap();
    rig.file("notes/key", "loud").unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert!(rig.work().join("notes").is_symlink(), "{}", end.text);
    assert!(!end.text.contains("hush"), "{}", end.text);
    assert_eq!(
        end.text.matches("its target changed").count(),
        3,
        "{}",
        end.text
    );
    assert!(!rig.work().join(".git/config").exists());
}

/// A parser that panics, and a tool that does: the model is told, and the run goes on.
#[tokio::test]
async fn what_a_model_writes_does_not_end_the_agent() {
    let script = r#"
[[rule]]
when.turn = 2
reply = [{ text = "Tools said: {{tool}}" }]
[[rule]]
reply = [{ tool = "Bash", input = { command = "echo ~99999999999999999999" } }]
"#;
    let mut rig = Rig::playing(script).unwrap();
    rig.profile.mode = PermissionMode::BypassPermissions;
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    assert!(end.text.contains("~99999999999999999999"), "{}", end.text);
}

/// A store that panics stands for any bug in the actor's own task.
#[tokio::test]
async fn an_agent_that_panics_says_that_it_has_ended() {
    let mut rig = Rig::playing(FIX).unwrap();
    let refuse = Box::new(|step: &posse_port::store::Step| -> bool {
        assert!(step.birth.is_some(), "a bug");
        false
    });
    rig.store = Arc::new(Faulty {
        refuse,
        ..Faulty::new(Arc::clone(&rig.store))
    });
    let mut agent = rig.prompted("fix it").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert!(
        matches!(end.outcome, Outcome::Failed(fault) if fault.message.contains("posse itself"))
    );
    assert!(agent.events.recv().await.is_none());
    // Nobody holds it, and what was acknowledged is there.
    assert_eq!(
        rig.store
            .take(agent.id)
            .await
            .unwrap()
            .transcript
            .entries
            .len(),
        1
    );
}

/// A slow reader gets less often, and more at a time; it misses nothing.
#[tokio::test]
async fn a_slow_reader_misses_nothing() {
    let words: String = (0..900)
        .map(|n| format!("{{ text = \"w{n} \" }}, "))
        .collect();
    let rig = Rig::playing(&format!("[[rule]]\nreply = [{words}]\n")).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    // Nothing is read until the server has sent everything.
    rig.server.wait_for_requests(1).await;
    while rig.server.requests()[0].outcome == posse_scripted::Outcome::Open {
        tokio::task::yield_now().await;
    }
    let (events, end) = until_end(&mut agent).await;
    let (mut blocks, mut text) = (0, String::new());
    for event in events {
        match event.kind {
            EventKind::Delta(Delta::Text(more)) => text.push_str(&more),
            EventKind::Delta(Delta::BlockDone) => blocks += 1,
            _ => {}
        }
    }
    assert_eq!((blocks, text), (900, end.text));
}

#[tokio::test]
async fn an_edited_transcript_is_not_resumed() {
    let rig = Rig::playing("[[rule]]\nreply = [{ text = \"yes\" }]").unwrap();
    let mut agent = rig.prompted("one").await.unwrap();
    until_end(&mut agent).await;
    let id = agent.id;
    farewell(agent).await;
    let database = rig.place().file().unwrap();
    let edit = "update entry set bytes = cast(replace(cast(bytes as text), 'yes', 'no!') as blob)";
    let changed = rusqlite::Connection::open(database)
        .unwrap()
        .execute(edit, [])
        .unwrap();
    assert_eq!(changed, 2);
    let error = rig
        .runtime()
        .unwrap()
        .resume(id, None, rig.setup.clone())
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("damaged at entry 1"), "{error}");
}

#[tokio::test]
async fn blocks_of_a_prompt_reach_the_model_as_they_are() {
    let rig = Rig::playing("[[rule]]\nreply = [{ text = \"I see\" }]").unwrap();
    let agent = rig
        .runtime()
        .unwrap()
        .start(&rig.profile, rig.setup.clone());
    let image = ContentBlock::Image {
        media_type: "image/png".into(),
        data: "AAAA".into(),
    };
    agent
        .handle
        .send(Command::Prompt(vec![ContentBlock::text("look"), image]))
        .await
        .unwrap();
    let mut agent = agent;
    assert_eq!(until_end(&mut agent).await.1.text, "I see");
    assert_eq!(
        bodies(&rig)[0]["messages"][0]["content"][1]["type"],
        "image"
    );
}
