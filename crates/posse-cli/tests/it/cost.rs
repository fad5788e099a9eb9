//! `posse cost`.

use posse_port::model::Encoded;
use posse_port::store::{
    AgentState, Birth, CallKey, Charge, Epoch, Origin, StateChange, Step, Store,
};
use posse_protocol::{AgentId, Cost, PermissionMode, Purpose, RealmId, Usage};
use posse_store::Sqlite;
use serde_json::Value;
use uuid::Uuid;

use crate::binary::Project;
use crate::read_again::follow;
use crate::team::{lines, refused, succeed};

/// The id of the session that a prompt began.
pub(crate) fn session(project: &Project, arguments: &[&str]) -> String {
    let told = lines(
        project,
        &[&["-p", "--output-format", "json"], arguments].concat(),
    );
    told[0]["session_id"].as_str().unwrap().to_owned()
}

/// Puts a sub-agent into the store as one that has done its work leaves it.
fn sub_agent(
    project: &Project,
    realm: &str,
    parent: &str,
    name: &str,
    charges: Vec<Charge>,
) -> String {
    let realm: RealmId = realm.parse().unwrap();
    let agent = AgentId::within(realm, Uuid::now_v7());
    let origin = Origin {
        parent: parent.parse().unwrap(),
        call: CallKey { seq: 1, ordinal: 0 },
        call_id: "call".into(),
        agent_type: "Explore".into(),
        name: Some(name.parse().unwrap()),
        description: "look \u{1b}[2Jaround\nhere".into(),
        terms: String::new(),
    };
    let birth = Birth {
        origin: Some(Box::new(origin)),
        path: "/main/explore-1".into(),
        model: "m".into(),
        dialect: "anthropic".into(),
        mode: PermissionMode::Default,
        cwd: "/".into(),
        preamble: Encoded {
            bytes: r#""system":"You look around.""#.into(),
            mark_at: None,
        },
        segments: Vec::new(),
    };
    let step = Step {
        birth: Some(Box::new(birth)),
        charges,
        state: Some(StateChange::To(AgentState::Completed)),
        ..Step::new(realm, agent, Epoch(1), 1_763_190_000_000)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Sqlite::open(&project.file("../home/posse.db")).unwrap();
        store.commit(step).await.unwrap();
    });
    agent.to_string()
}

fn charge(model: &str, input: u64, cost: Option<u64>) -> Charge {
    let usage = Usage {
        input,
        cache_read: 1,
        output: 2,
        ..Usage::default()
    };
    Charge {
        model: model.into(),
        usage,
        cost: cost.map(Cost::from_pico_usd),
        purpose: Purpose::Work,
        missed: 0,
    }
}

/// Dollars of JSON, exactly.
pub(crate) fn pico(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1e12).round() as u64
}

fn tokens(usage: &Value) -> u64 {
    [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    ]
    .iter()
    .map(|part| usage[part].as_u64().unwrap())
    .sum()
}

pub(crate) fn bill(project: &Project, session: &str) -> Value {
    lines(project, &["cost", session, "--json"]).remove(0)
}

/// The figures of an agent: by itself, and with all below it.
fn figures(agent: &Value) -> [(u64, u64); 2] {
    [
        (pico(&agent["cost_usd"]), tokens(&agent["usage"])),
        (
            pico(&agent["subtree_cost_usd"]),
            tokens(&agent["subtree_usage"]),
        ),
    ]
}

fn sum(figures: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    figures.fold((0, 0), |(cost, tokens), (more_cost, more_tokens)| {
        (cost + more_cost, tokens + more_tokens)
    })
}

// proves LI-04 (part: per agent; per subtree; per model; the total)
#[test]
fn the_costs_of_agents_and_of_models_add_up_to_the_total() {
    let project = Project::new("cost-tree", "");
    let main = session(&project, &["hello"]);
    let fork = session(
        &project,
        &["--resume", &main, "--fork-session", "go elsewhere"],
    );
    let one = sub_agent(
        &project,
        &main,
        &main,
        "one",
        vec![charge("m", 10, Some(7)), charge("n", 5, Some(3))],
    );
    let below = sub_agent(
        &project,
        &main,
        &one,
        "below",
        vec![charge("n", 100, Some(1_000_000_000_001))],
    );
    let two = sub_agent(
        &project,
        &main,
        &main,
        "two",
        vec![charge("m", 20, Some(9))],
    );
    let of_fork = sub_agent(
        &project,
        &main,
        &fork,
        "elsewhere",
        vec![charge("m", 40, Some(5))],
    );

    let told = bill(&project, &main[..20]);
    let agents = told["agents"].as_array().unwrap();
    let ids: Vec<&str> = agents
        .iter()
        .map(|agent| agent["agent_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [&main, &one, &below, &two],
        "each before those that it started, by age"
    );
    let [root, first, third, second] = agents.iter().map(figures).collect::<Vec<_>>()[..] else {
        panic!("four agents")
    };
    assert!(root[0].0 > 0 && root[0].1 > 0, "{told}");
    assert_eq!(first, [(10, 21), (1_000_000_000_011, 124)]);
    assert_eq!(
        (third[0], third[1], second),
        ((1_000_000_000_001, 103), third[0], [(9, 23); 2])
    );
    let total = (pico(&told["total_cost_usd"]), tokens(&told["usage"]));
    assert_eq!(root[1], total);
    assert_eq!(
        sum([root, first, third, second]
            .into_iter()
            .map(|agent| agent[0])),
        total
    );
    assert_eq!(sum([root[0], first[1], second[1]].into_iter()), total);
    let models = told["models"].as_array().unwrap();
    let of_model = |model: &Value| (pico(&model["cost_usd"]), tokens(&model["usage"]));
    assert_eq!(sum(models.iter().map(of_model)), total);
    assert_eq!(models.len(), 3);
    assert_eq!(
        (&agents[2]["parent"], &agents[2]["name"]),
        (&one.into(), &"below".into())
    );

    let forked = bill(&project, &fork);
    let ids: Vec<&str> = forked["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["agent_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        ids,
        [&fork, &of_fork],
        "a session that shares the store's realm has its own bill"
    );
}

/// A tree that has really worked: two in the background that start one each.
pub(crate) const TREE: &str = r#"
[[rule]]
when = { agent = "re:^/main/[^/]+$", turn = 1 }
reply = [{ tool = "Agent", input = { description = "d", prompt = "p" } }]
[[rule]]
when = { agent = "re:^/main$", turn = 1 }
reply = [
  { tool = "Agent", input = { description = "d", prompt = "p", run_in_background = true } },
  { tool = "Agent", input = { description = "d", prompt = "p", model = "claude-haiku-5-5", run_in_background = true } },
]
[[rule]]
reply = [{ text = "done" }]
"#;

// proves LI-04 (part: per agent; per model; the total)
#[test]
fn the_bill_of_a_session_is_what_its_runs_have_told() {
    let project = Project::new("cost-told", TREE);
    let told = lines(&project, &["-p", "go", "--output-format", "json"]).remove(0);
    let bill = bill(&project, told["session_id"].as_str().unwrap());
    assert_eq!(bill["agents"].as_array().unwrap().len(), 5, "{bill}");
    assert_eq!(
        pico(&told["total_cost_usd"]),
        pico(&bill["total_cost_usd"]),
        "{told}"
    );
    let models = told["modelUsage"].as_object().unwrap();
    assert_eq!(models.len(), 2, "{told}");
    let of = |usage: &Value, names: &[&str]| {
        names
            .iter()
            .map(|name| usage[name].as_u64().unwrap())
            .sum::<u64>()
    };
    let names = [
        "inputTokens",
        "outputTokens",
        "cacheReadInputTokens",
        "cacheCreationInputTokens",
    ];
    for model in bill["models"].as_array().unwrap() {
        let usage = &models[model["model"].as_str().unwrap()];
        assert_eq!(of(usage, &names), tokens(&model["usage"]), "{told}");
        assert_eq!(pico(&usage["costUSD"]), pico(&model["cost_usd"]), "{told}");
    }
    let agents = bill["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| figures(agent)[0]);
    assert_eq!(
        sum(agents),
        (pico(&bill["total_cost_usd"]), tokens(&bill["usage"]))
    );
}

/// Everything that is said of the cost of a session: by the bill, the list, the transcript and the
/// tree.
fn costs_told(project: &Project, session: &str) -> Vec<(u64, u64)> {
    let object = |arguments: &[&str]| lines(project, arguments).remove(0);
    let listed = lines(project, &["sessions", "list", "--json"]);
    let listed = listed.iter().find(|line| line["session_id"] == session);
    let shown = object(&["sessions", "show", session, "--json"]);
    let tree = object(&["sessions", "tree", session, "--json"]);
    let whole = [&bill(project, session), listed.unwrap(), &shown]
        .map(|told| (pico(&told["total_cost_usd"]), tokens(&told["usage"])));
    whole.into_iter().chain([figures(&tree)[1]]).collect()
}

// proves FC-04 (part: sessions list; sessions show; the result)
#[test]
fn the_cost_of_a_session_is_whole_wherever_it_is_told() {
    let project = Project::new("cost-whole", TREE);
    let told = lines(&project, &["-p", "go", "--output-format", "json"]).remove(0);
    let id = told["session_id"].as_str().unwrap();
    let costs = costs_told(&project, id);
    assert!(
        costs[0].0 > 0 && costs.iter().all(|cost| *cost == costs[0]),
        "{costs:?}"
    );
    assert_eq!(pico(&told["total_cost_usd"]), costs[0].0);
    let words = Cost::from_pico_usd(costs[0].0).to_string();
    let shown = succeed(&project, &["sessions", "show", id]);
    assert!(
        shown.contains(&format!(" · {words} · 5 agents · ")),
        "{shown}"
    );
    for listed in [&["sessions", "list"][..], &["sessions", "list", "-n", "1"]] {
        let listed = succeed(&project, listed);
        assert!(listed.contains(&format!("  {words}  go\n")), "{listed}");
    }
    // A copy has its own costs, though it shares the history.
    let copy = session(&project, &["--resume", id, "--fork-session", "and?"]);
    let after = costs_told(&project, &copy);
    assert!(after.iter().all(|cost| *cost == after[0]), "{after:?}");
    assert!(after[0].0 < costs[0].0);
    assert_eq!(costs_told(&project, id), costs);
}

/// Every object called `usage` in a value.
fn usages(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().flat_map(usages).collect(),
        Value::Object(fields) => {
            let each = fields.iter();
            let each = each.flat_map(|(name, value)| match name.ends_with("usage") {
                true => vec![value],
                false => usages(value),
            });
            each.collect()
        }
        _ => Vec::new(),
    }
}

// proves FC-04 (part: one set of keys)
#[test]
fn tokens_have_the_same_keys_in_every_json() {
    let project = Project::new("cost-keys", "");
    let told = lines(&project, &["-p", "go", "--output-format", "json"]).remove(0);
    let id = told["session_id"].as_str().unwrap();
    let keys = |usage: &Value| {
        let fields = usage.as_object().unwrap_or_else(|| panic!("{usage}"));
        fields.keys().cloned().collect::<Vec<_>>()
    };
    let wanted = keys(&told["usage"]);
    for key in [
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ] {
        assert!(wanted.contains(&key.to_owned()), "{told}");
    }
    for arguments in [
        &["cost", id, "--json"][..],
        &["cache", id, "--json", "--all"],
        &["sessions", "list", "--json"],
        &["sessions", "show", id, "--json"],
        &["sessions", "tree", id, "--json"],
        &["sessions", "export", id],
        &["ask", id, "why?", "--json"],
        &["ask-model", "why?", "--json"],
        &["-p", "go", "--output-format", "stream-json"],
    ] {
        let told = lines(&project, arguments);
        let usages: Vec<&Value> = told.iter().flat_map(usages).collect();
        assert!(!usages.is_empty(), "{arguments:?}: {told:?}");
        for usage in usages {
            assert_eq!(keys(usage), wanted, "{arguments:?}");
        }
    }
}

// proves FC-05 (part: hints)
// proves FK-08 (part: per agent; read and written)
#[test]
fn what_was_read_written_and_missed_adds_up_as_well() {
    let project = Project::new("cost-cache", "");
    let main = session(&project, &["hello"]);
    let missed = |purpose, missed, charge: Charge| Charge {
        purpose,
        missed,
        ..charge
    };
    let work = charge("m", 10, Some(7));
    let one = sub_agent(
        &project,
        &main,
        &main,
        "one",
        vec![
            missed(Purpose::Work, 30_000, work.clone()),
            missed(Purpose::Work, 500, work.clone()),
            missed(Purpose::Compaction, 4, charge("n", 5, Some(3))),
        ],
    );
    sub_agent(
        &project,
        &main,
        &one,
        "two",
        vec![missed(Purpose::Question, 2, work)],
    );
    let told = bill(&project, &main);
    let agents = told["agents"].as_array().unwrap();
    let of = |agent: &Value| {
        ["missed_tokens", "subtree_missed_tokens"].map(|name| agent[name].as_u64().unwrap())
    };
    assert_eq!(
        agents.iter().map(of).collect::<Vec<_>>(),
        [[0, 30_506], [30_504, 30_506], [2, 2]]
    );
    let shown = succeed(&project, &["cost", &main]);
    let why = follow(&project, &shown);
    assert!(why.contains("MISSED") && why.contains("one: look"), "{why}");
    assert_eq!(told["missed_tokens"], 30_506);
    for groups in [&told["models"], &told["purposes"]] {
        let groups = groups.as_array().unwrap();
        let figures = groups
            .iter()
            .map(|group| (pico(&group["cost_usd"]), tokens(&group["usage"])));
        assert_eq!(
            sum(figures),
            (pico(&told["total_cost_usd"]), tokens(&told["usage"])),
            "{told}"
        );
        assert_eq!(
            groups
                .iter()
                .map(|group| group["missed_tokens"].as_u64().unwrap())
                .sum::<u64>(),
            30_506
        );
    }
    let purposes: Vec<&str> = told["purposes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["purpose"].as_str().unwrap())
        .collect();
    assert_eq!(purposes, ["work", "compaction", "question"]);
    assert_eq!(agents[1]["models"][0]["missed_tokens"], 30_500);
    assert_eq!(agents[1]["purposes"][1]["missed_tokens"], 4);

    let shown = succeed(&project, &["cost", &main, "--verbose"]);
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let row = |begins: &[&str]| rows.iter().any(|row| row.starts_with(begins));
    assert!(
        row(&[
            "READ", "WRITTEN", "MISSED", "ALL", "READ", "ALL", "WRITTEN", "ALL", "MISSED", "AGENT"
        ]),
        "{shown}"
    );
    assert!(
        row(&["3", "0", "30,504", "4", "0", "30,506", "one:"]),
        "{shown}"
    );
    assert!(
        rows.iter().any(|row| row.last() == Some(&"compaction")),
        "{shown}"
    );
    assert!(
        shown.contains(&format!(
            "30,506 tokens had been in the cache and were not found there: `posse cache {}`",
            &main[..18]
        )),
        "{shown}"
    );
    let other = session(&project, &["hello"]);
    let plain = succeed(&project, &["cost", &other, "--verbose"]);
    assert!(
        !plain.contains("were not found") && !plain.contains("FOR"),
        "{plain}"
    );
}

#[test]
fn a_bill_can_be_read() {
    let project = Project::new("cost-read", "");
    refused(
        &project,
        &["cost"],
        1,
        &["no session of", "sessions list --all"],
    );
    let main = session(&project, &["hello"]);
    let plain = succeed(&project, &["cost"]);
    assert!(
        plain.contains("  idle   main\n") && plain.ends_with(" · 1 agent\n"),
        "{plain}"
    );
    let one = sub_agent(
        &project,
        &main,
        &main,
        "one",
        vec![charge("m", 10, Some(1_234_500_000_000))],
    );
    sub_agent(
        &project,
        &main,
        &one,
        "two",
        vec![charge("odd\u{1b}", 10, None)],
    );
    let rows = |shown: &str| -> Vec<Vec<String>> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        shown.lines().map(words).collect()
    };
    // A line for each agent, and the total.
    let shown = succeed(&project, &["cost", &main]);
    let list = rows(&shown);
    assert_eq!(list[0], ["COST", "IN", "OUT", "STATE", "AGENT"]);
    assert_eq!(list[1][3..], ["idle", "main"]);
    assert_eq!(
        list[2],
        [
            "$1.2345",
            "11",
            "2",
            "completed",
            "one:",
            "look",
            "\\u{1b}[2Jaround",
            "here"
        ]
    );
    assert_eq!(list[4], [] as [&str; 0]);
    assert_eq!(list[5][0], "total");
    let shown = succeed(&project, &["cost", &main, "--verbose"]);
    let rows = rows(&shown);
    let head = [
        "COST", "WITH", "BELOW", "IN", "OUT", "TYPE", "STATE", "AGENT",
    ];
    assert_eq!(rows[0], head);
    assert_eq!(rows[1].last().unwrap(), "main");
    let words = ["look", "\\u{1b}[2Jaround", "here"];
    assert_eq!(
        rows[2],
        [
            &["$1.2345", "?", "11", "2", "Explore", "completed", "one:"],
            &words[..]
        ]
        .concat()
    );
    assert_eq!(
        rows[3],
        [
            &["?", "?", "11", "2", "Explore", "completed", "two:"],
            &words[..]
        ]
        .concat()
    );
    assert!(
        shown.contains("  one: look") && shown.contains("    two: look"),
        "{shown}"
    );
    assert!(
        shown.contains("total price unknown · ") && shown.contains(" out · 3 agents\n"),
        "{shown}"
    );
    assert!(
        shown.ends_with("it has no price\n") && shown.contains("the cost of odd\\u{1b} is unknown"),
        "{shown}"
    );
    assert_eq!(bill(&project, &main)["total_cost_usd"], Value::Null);
    assert!(
        plain.contains(&format!(
            "total {} · ",
            plain
                .lines()
                .nth(1)
                .unwrap()
                .trim_start()
                .split(' ')
                .next()
                .unwrap()
        )),
        "{plain}"
    );
    refused(
        &project,
        &["cost", "abc"],
        1,
        &["no session abc", "sessions list --all"],
    );
}
