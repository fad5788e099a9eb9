//! What sub-agents may do and use: their gates, their budgets, and what it all came to.

use std::collections::BTreeMap;

use posse_port::store::{AgentFilter, AgentRecord, AgentState, Page};
use posse_protocol::{
    Cost, Event, EventKind, Limit, Outcome, PermissionMode, RealmId, RunChange, RunEnd, RunStatus,
    Spent, Usage,
};
use posse_runtime::govern::budget::{Budget, Budgets};
use posse_runtime::live::handle::Agent;
use posse_testkit::Rig;
use posse_testkit::rig::until_end;
use serde_json::Value;

/// What the agent whose path begins so has sent.
fn sent_by(rig: &Rig, path: &str) -> Vec<Value> {
    let requests = rig.server.requests();
    let own = |request: &&posse_scripted::Recorded| {
        request
            .header("x-posse-agent")
            .is_some_and(|given| given.starts_with(path))
    };
    requests
        .iter()
        .filter(own)
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect()
}

async fn rows(rig: &Rig, agent: &Agent) -> Vec<AgentRecord> {
    let realm = Some(RealmId::from(agent.id.uuid()));
    rig.store
        .agents(
            AgentFilter {
                realm,
                ..AgentFilter::default()
            },
            Page::first(1000),
        )
        .await
        .unwrap()
}

const GATES: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "{{tool}}" }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Bash", input = { command = "touch made" } }]
[[rule]]
when.turn = 1
reply = [
  { tool = "Agent", input = { description = "d", prompt = "p", subagent_type = "plan" } },
  { tool = "Agent", input = { description = "d", prompt = "p", subagent_type = "explore", name = "second" } },
  { tool = "Agent", input = { description = "d", prompt = "p", name = "third" } },
]
[[rule]]
reply = [{ text = "{{tool}}" }]
"#;

// proves PE-03
// proves PE-05 (part: denied when headless)
#[tokio::test]
async fn a_sub_agent_passes_three_gates() {
    let mut rig = Rig::playing(GATES)
        .unwrap()
        .agents()
        .rules(&[], &["Agent(plan)"])
        .unwrap();
    rig.profile.mode = PermissionMode::Default;
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, end) = until_end(&mut agent).await;
    assert_eq!(end.outcome, Outcome::Completed);
    let mut names: Vec<String> = rows(&rig, &agent)
        .await
        .into_iter()
        .map(|row| row.path)
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["/main", "/main/second-1.1", "/main/third-1.2"],
        "one may not be started"
    );
    let results = sent_by(&rig, "/main").pop().unwrap()["messages"][2]["content"].clone();
    assert_eq!(results[0]["is_error"], true, "{results}");
    let offered = |path: &str| {
        let tools = sent_by(&rig, path)[0]["tools"].as_array().unwrap().clone();
        tools.iter().any(|tool| tool["name"] == "Bash")
    };
    assert!(
        !offered("/main/second-") && offered("/main/third-"),
        "one has the tool, and one has not"
    );
    let told = |path: &str| {
        sent_by(&rig, path)[1]["messages"][2]["content"][0]["content"][0]["text"].to_string()
    };
    assert!(
        told("/main/second-").contains("there is no tool Bash"),
        "{}",
        told("/main/second-")
    );
    assert!(
        told("/main/third-").contains("Denied: approval is required"),
        "{}",
        told("/main/third-")
    );
    assert!(!rig.work().join("made").exists());
}

/// A sub-agent, of a type without a mode, that edits.
const EDITING: &str = r#"
[[rule]]
when = { agent = "re:^/main/", tool = "re:." }
reply = [{ text = "{{tool}}" }]
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Write", input = { file_path = "made", content = "x" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "d", prompt = "p" } }]
[[rule]]
reply = [{ text = "{{tool}}" }]
"#;

// proves AD-10
#[tokio::test]
async fn a_sub_agent_has_the_mode_of_its_parent() {
    let table = [
        (PermissionMode::Plan, false),
        (PermissionMode::Default, false),
        (PermissionMode::AcceptEdits, true),
        (PermissionMode::DontAsk, false),
        (PermissionMode::BypassPermissions, true),
    ];
    for (mode, edits) in table {
        let mut rig = Rig::playing(EDITING).unwrap().agents();
        rig.profile.mode = mode;
        let mut agent = rig.prompted("go").await.unwrap();
        let (_, end) = until_end(&mut agent).await;
        assert_eq!(end.outcome, Outcome::Completed, "{mode:?}");
        assert_eq!(
            sent_by(&rig, "/main/").len(),
            2,
            "{mode:?}: it asked for the edit and was told"
        );
        assert_eq!(rig.work().join("made").exists(), edits, "{mode:?}");
    }
}

/// A sub-agent that reads for ever.
const GREEDY: &str = r#"
[[rule]]
when.agent = "re:^/main/"
reply = [{ tool = "Read", input = { file_path = "a.txt" } }]
[[rule]]
when.turn = 1
reply = [{ tool = "Agent", input = { description = "greedy", prompt = "Read.", name = "greedy"BACKGROUND } }]
[[rule]]
reply = [{ text = "I was told." }]
"#;

/// The longest reply while there is enough of everything: longer than what a turn of the greedy one uses.
const MOST: u64 = 16_384;

/// Runs until nothing goes on.
async fn until_quiet(agent: &mut Agent) -> (Vec<Event>, Vec<RunEnd>) {
    let (mut events, mut ends) = (Vec::new(), Vec::<RunEnd>::new());
    while ends.last().is_none_or(|end| end.live > 0) {
        let (more, end) = until_end(agent).await;
        events.extend(more);
        ends.push(end);
    }
    (events, ends)
}

fn tokens(usage: &Usage) -> u64 {
    usage.prompt() + usage.output
}

/// What a person was told of the end of a sub-agent.
fn told(events: &[Event]) -> (RunStatus, String) {
    let ended = events.iter().find_map(|event| match &event.kind {
        EventKind::Run(news) => match &news.what {
            RunChange::Ended(end) => Some(end),
            _ => None,
        },
        _ => None,
    });
    let ended = ended.unwrap();
    (ended.status, ended.error.clone().unwrap_or_default())
}

/// Lets the sub-agent use up a budget; how much its calls and all calls have used.
async fn used_up(rig: &Rig, agent: &mut Agent) -> (Vec<Event>, Vec<RunEnd>, u64, u64) {
    let (events, ends) = until_quiet(agent).await;
    let rows = rows(rig, agent).await;
    let used = |row: &AgentRecord| {
        row.charges
            .iter()
            .map(|charge| tokens(&charge.usage))
            .sum::<u64>()
    };
    let greedy = rows.iter().find(|row| row.origin.is_some()).unwrap();
    assert_eq!(greedy.state, AgentState::Paused);
    let caps: Vec<u64> = sent_by(rig, "/main/greedy")
        .iter()
        .map(|body| body["max_tokens"].as_u64().unwrap())
        .collect();
    assert!(
        caps.len() > 2 && caps.first() == Some(&MOST) && caps.iter().all(|cap| *cap >= 1024),
        "{caps:?}"
    );
    assert!(caps.windows(2).all(|pair| pair[0] >= pair[1]), "{caps:?}");
    assert!(
        caps.last() < Some(&MOST),
        "what is left pays for a shorter reply before it pays for none: {caps:?}"
    );
    (events, ends, used(greedy), rows.iter().map(used).sum())
}

// proves LI-01 (part: tokens; per subtree; told)
#[tokio::test]
async fn a_sub_agent_whose_budget_is_used_up_is_paused_and_that_is_told() {
    const TOKENS: u64 = 40_000;
    for background in ["", ", run_in_background = true"] {
        let mut rig = Rig::playing(&GREEDY.replace("BACKGROUND", background))
            .unwrap()
            .agents();
        rig.file("a.txt", &"a line of text\n".repeat(10)).unwrap();
        rig.setup.limits.max_tokens = MOST as u32;
        let tokens = Some(TOKENS);
        rig.setup.spawning.budgets = Budgets {
            subtree: Budget {
                tokens,
                ..Budget::default()
            },
            ..Budgets::default()
        };
        let mut agent = rig.prompted("go").await.unwrap();
        let (events, ends, used, _) = used_up(&rig, &mut agent).await;
        assert!(used <= TOKENS, "{used}");
        let (status, why) = told(&events);
        assert_eq!(status, RunStatus::Paused);
        assert!(why.contains("is limited to 40000 tokens"), "{why}");
        assert_eq!(
            ends.last().unwrap().text,
            "I was told.",
            "whoever has started it goes on"
        );
        let last = sent_by(&rig, "/main")
            .into_iter()
            .rfind(|body| body["messages"].to_string().contains("paused"));
        let last = last.unwrap()["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .to_string();
        assert!(
            last.contains("paused") && last.contains("is limited to 40000 tokens"),
            "{last}"
        );
    }
}

// proves LI-01 (part: tokens; per session; told)
#[tokio::test]
async fn a_session_whose_budget_is_used_up_by_a_sub_agent_ends_with_what_there_is() {
    const TOKENS: u64 = 60_000;
    let mut rig = Rig::playing(&GREEDY.replace("BACKGROUND", ""))
        .unwrap()
        .agents();
    rig.file("a.txt", &"a line of text\n".repeat(10)).unwrap();
    rig.setup.limits.max_tokens = MOST as u32;
    rig.setup.limits.budget.tokens = Some(TOKENS);
    let mut agent = rig.prompted("go").await.unwrap();
    let (events, ends, _, used) = used_up(&rig, &mut agent).await;
    assert!(used <= TOKENS, "{used}");
    let (status, why) = told(&events);
    assert!(
        status == RunStatus::Paused && why.contains("the session is limited to 60000 tokens"),
        "{why}"
    );
    let end = ends.last().unwrap();
    assert!(
        matches!(
            end.outcome,
            Outcome::Partial(Limit::Budget) | Outcome::Completed
        ),
        "{:?}",
        end.outcome
    );
}

/// Two levels, some in the background, some waited for, of two types.
const TREE: &str = r#"
[[rule]]
when.agent = "re:^/main/[^/]+/"
reply = [{ text = "a leaf" }]
[[rule]]
when = { agent = "re:^/main/", turn = 1 }
reply = [
  { tool = "Agent", input = { description = "d", prompt = "p", run_in_background = true } },
  { tool = "Agent", input = { description = "d", prompt = "p", subagent_type = "explore" } },
]
[[rule]]
when.agent = "re:^/main/"
reply = [{ text = "a branch" }]
[[rule]]
when.turn = 1
reply = [
  { tool = "Agent", input = { description = "d", prompt = "p", run_in_background = true } },
  { tool = "Agent", input = { description = "d", prompt = "p", model = "claude-haiku-5-5" } },
]
[[rule]]
reply = [{ text = "the root" }]
"#;

type Sums = BTreeMap<String, (u64, Cost)>;

fn add<'a>(
    sums: &mut Sums,
    spent: impl IntoIterator<Item = (&'a String, &'a Usage, Option<Cost>)>,
) {
    for (model, usage, cost) in spent {
        let sum = sums.entry(model.clone()).or_default();
        *sum = (sum.0 + tokens(usage), sum.1 + cost.unwrap());
    }
}

// proves LI-04 (part: per agent; per model; the total)
#[tokio::test]
async fn what_runs_tell_is_what_the_store_has_agent_by_agent() {
    let rig = Rig::playing(TREE).unwrap().agents();
    let mut agent = rig.prompted("go").await.unwrap();
    let (_, ends) = until_quiet(&mut agent).await;
    let (mut told, mut kept, mut billed) = (Sums::new(), Sums::new(), 0);
    let by_model = |spent: &Spent| (spent.model.clone(), spent.usage, spent.cost);
    for (model, usage, cost) in ends
        .iter()
        .flat_map(|end| end.spent.iter().chain(&end.below))
        .map(by_model)
    {
        add(&mut told, [(&model, &usage, cost)]);
    }
    let rows = rows(&rig, &agent).await;
    assert_eq!(rows.len(), 1 + 2 + 4);
    for charge in rows.iter().flat_map(|row| &row.charges) {
        add(&mut kept, [(&charge.model, &charge.usage, charge.cost)]);
    }
    for request in rig.server.requests() {
        billed += request.usage.map_or(0, |usage| tokens(&usage));
    }
    assert_eq!((told.len(), &told), (2, &kept));
    assert_eq!(
        kept.values().map(|sum| sum.0).sum::<u64>(),
        billed,
        "and what the provider has counted"
    );
}
