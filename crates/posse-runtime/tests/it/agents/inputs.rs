//! What the Agent tool can be asked, and what it refuses.

use std::sync::Arc;

use posse_protocol::{EventKind, PermissionMode, RunChange};
use posse_runtime::definition::agent_type::Definition;
use posse_runtime::definition::agent_type::built_in;
use posse_runtime::definition::spawning::Background;
use posse_runtime::govern::budget::Budget;
use posse_testkit::Rig;
use posse_testkit::rig::until_end;

use super::{in_background, last_words, news, offered, paths, rig, row, rows, sent_by};

/// A main agent that makes one call of Agent with this in it, and a sub-agent that looks where it is.
fn calling(input: &str) -> String {
    format!(
        r#"
[[rule]]
when = {{ agent = "re:^/main/", tool = "re:." }}
reply = [{{ text = "I am in {{{{tool}}}}" }}]
[[rule]]
when.agent = "re:^/main/"
reply = [{{ tool = "Bash", input = {{ command = "pwd" }} }}]
[[rule]]
when.turn = 1
reply = [{{ tool = "Agent", input = {{ description = "Look", prompt = "Look."{input} }} }}]
[[rule]]
reply = [{{ text = "I see." }}]
"#
    )
}

/// What the main agent is told; and that it is a failure without any sub-agent.
async fn refused(rig: &Rig) -> String {
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    assert!(
        paths(rig).iter().all(|path| path == "/main"),
        "{:?}",
        paths(rig)
    );
    assert_eq!(rows(rig, agent.id).await, []);
    let body = &sent_by(rig, "/main")[1];
    assert_eq!(body["messages"][2]["content"][0]["is_error"], true);
    last_words(body)
}

// proves AG-01 (part: model and effort; name; cwd)
// proves AG-06 (part: working directory)
// proves AG-18 (part: a name outside a team)
#[tokio::test]
async fn what_a_call_says_is_heeded() {
    let input = r#", name = "scout", model = "claude-haiku-5-5", effort = "low", cwd = "below""#;
    let rig = rig(&calling(input));
    let below = rig.work().join("below");
    std::fs::create_dir(&below).unwrap();
    let mut agent = rig.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let own = &sent_by(&rig, "/main/scout-1");
    assert_eq!(own.len(), 2, "{}", last_words(&sent_by(&rig, "/main")[1]));
    assert_eq!(
        (&own[0]["model"], &own[0]["output_config"]["effort"]),
        (&"claude-haiku-5-5".into(), &"low".into())
    );
    assert_eq!(last_words(&own[1]).trim_end(), below.display().to_string());
    let child = row(&rig, agent.id, "Look").await;
    assert_eq!(
        (child.cwd, child.model.as_str()),
        (below, "claude-haiku-5-5")
    );
    assert_eq!(child.origin.unwrap().name.unwrap().as_str(), "scout");
    let told = last_words(&sent_by(&rig, "/main")[1]);
    assert!(
        told.contains("; model: claude-haiku-5-5; ") && told.contains(" 1 tool use, "),
        "{told}"
    );
}

// proves AG-01 (part: unknown types)
// proves AG-07
// proves AG-17 (part: elsewhere)
#[tokio::test]
async fn what_cannot_be_done_is_refused_and_nobody_is_started() {
    for (input, why) in [
        (
            r#", subagent_type = "reviewer""#,
            "there is no reviewer; there are general-purpose, Explore, Plan, Bash",
        ),
        (r#", mode = "plan""#, "mode is for teammates only"),
        (
            r#", team_name = "red", name = "a""#,
            "you are not in a team red",
        ),
        (
            r#", isolation = "remote""#,
            "isolation: remote agents are not supported yet",
        ),
        (
            r#", isolation = "moon""#,
            "isolation: moon does not exist; use worktree",
        ),
        (
            r#", isolation = "worktree", cwd = ".""#,
            "cwd and isolation cannot be combined",
        ),
        (r#", cwd = "/""#, "is outside the allowed directories"),
        (r#", cwd = "nowhere""#, "cwd: "),
        (r#", name = "main""#, "main is reserved"),
        (
            r#", effort = "much""#,
            "effort: there is no much; there are low",
        ),
        (r#", colour = "red""#, "colour"),
    ] {
        let told = refused(&rig(&calling(input))).await;
        assert!(told.contains(why), "{input}: {told}");
    }
}

// proves AG-03
#[tokio::test]
async fn a_type_that_a_rule_denies_is_an_error_and_never_another_type() {
    let rig = rig(&calling(r#", subagent_type = "explore""#))
        .rules(&[], &["Agent(explore)"])
        .unwrap();
    let told = refused(&rig).await;
    assert!(told.contains("Agent(explore)"), "{told}");
    let body = &sent_by(&rig, "/main")[0];
    let tool = body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "Agent")
        .unwrap();
    let text = tool["description"].as_str().unwrap();
    assert!(
        !text.contains("- Explore: ") && text.contains("\n- Plan: "),
        "it is not offered either: {text}"
    );
}

// proves AG-05 (part: depth; live agents; budget; memory)
#[tokio::test]
async fn no_agent_is_started_past_a_limit() {
    let mut poor = rig(&calling(""));
    poor.setup.limits.budget = Budget {
        turns: Some(1),
        ..Budget::default()
    };
    let mut agent = poor.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    assert_eq!(
        (paths(&poor), rows(&poor, agent.id).await),
        (vec!["/main".to_owned()], vec![])
    );
    let stored = poor.store.read(agent.id).await.unwrap();
    let told =
        String::from_utf8(stored.entries.last().unwrap().entry.encoded.bytes.to_vec()).unwrap();
    assert!(told.contains("No agent was started: "), "{told}");

    let mut small = rig(&calling(""));
    small.setup.spawning.least_memory = u64::MAX;
    let told = refused(&small).await;
    assert!(
        told.contains("No agent was started: the machine has"),
        "{told}"
    );

    let mut flat = rig(&calling(""));
    flat.setup.spawning.depth = 0;
    let told = refused(&flat).await;
    assert!(told.contains("there is no tool Agent"), "{told}");

    // There may be sixteen live agents for each place, and the main agent is one of them.
    let calls = r#"{ tool = "Agent", input = { description = "Wait", prompt = "Wait.", run_in_background = true } }, "#;
    let many = format!(
        "[[rule]]\nwhen.agent = \"re:^/main/\"\ndelay_ms = 1000\nreply = [{{ text = \"hm\" }}]\n\
         [[rule]]\nwhen.turn = 1\nreply = [{}]\n[[rule]]\nreply = [{{ text = \"So many.\" }}]\n",
        calls.repeat(17)
    );
    let (mut full, _clock) = super::paced(&many);
    full.setup.spawning.running = 1;
    let mut agent = full.prompted("go").await.unwrap();
    until_end(&mut agent).await;
    let told = last_words(&sent_by(&full, "/main")[1]);
    assert_eq!(
        told.matches("works in the background").count(),
        15,
        "{told}"
    );
    assert_eq!(
        told.matches("No agent was started: 16 agents of this session are live")
            .count(),
        2,
        "{told}"
    );
    assert_eq!(rows(&full, agent.id).await.len(), 15);
}

// proves AG-08 (part: the call; the definition; by default; false in the call)
// proves AG-01 (part: run_in_background)
#[tokio::test]
async fn where_a_run_goes() {
    let kinds = |background: bool| -> Arc<posse_runtime::definition::catalogue::Catalogue> {
        Arc::new(
            built_in()
                .into_iter()
                .map(|kind| Definition { background, ..kind })
                .collect(),
        )
    };
    use Background::{Always, Asked, Default};
    for (session, kind, call, expected) in [
        (Asked, false, "", false),
        (Asked, false, ", run_in_background = true", true),
        (Asked, true, "", true),
        (Asked, true, ", run_in_background = false", true),
        (Default, false, "", true),
        (Default, false, ", run_in_background = false", false),
        (Always, false, ", run_in_background = false", true),
    ] {
        let mut rig = rig(&calling(call));
        rig.setup.spawning.types = kinds(kind);
        in_background(&mut rig, session);
        let mut agent = rig.prompted("go").await.unwrap();
        let events = super::until(&mut agent, |event| news(event).is_some()).await;
        let RunChange::Started { background, .. } = &news(&events[events.len() - 1]).unwrap().what
        else {
            panic!("{events:#?}")
        };
        assert_eq!(*background, expected, "{session:?} {kind} {call}");
        let done = |event: &posse_protocol::Event| matches!(event.kind, EventKind::CallDone { .. });
        super::until(&mut agent, done).await;
        rig.server.wait_for_requests(2).await;
        until_end(&mut agent).await;
        let told = last_words(&sent_by(&rig, "/main")[1]);
        assert_eq!(
            told.starts_with("The sub-agent (general-purpose) works in the background"),
            expected,
            "{told}"
        );
    }
}

// proves AG-22 (part: switched off; schema)
#[tokio::test]
async fn background_work_can_be_switched_off() {
    let schema = |rig: &Rig| {
        let body = sent_by(rig, "/main").remove(0);
        let tools = body["tools"].as_array().unwrap().clone();
        let tool = tools
            .into_iter()
            .find(|tool| tool["name"] == "Agent")
            .unwrap();
        (
            tool["input_schema"]["properties"]["run_in_background"].is_object(),
            offered(&body).join(" "),
        )
    };
    let mut off = rig(&calling(", run_in_background = true"));
    in_background(&mut off, Background::Off);
    let told = refused(&off).await;
    assert!(told.contains("background work is switched off"), "{told}");
    let (offers, tools) = schema(&off);
    let watching = ["TaskOutput", "TaskStop", "Wait"];
    assert!(
        !offers && watching.iter().all(|tool| !tools.contains(tool)),
        "{tools}"
    );

    let on = rig(&calling(""));
    until_end(&mut on.prompted("go").await.unwrap()).await;
    let (offers, tools) = schema(&on);
    assert!(
        offers
            && tools.contains("TaskOutput")
            && tools.contains("TaskStop")
            && tools.contains("Wait")
    );
}

// proves AG-19 (part: team-making; background)
#[tokio::test]
async fn some_tools_are_withheld_and_the_background_removes_no_other() {
    // The last three are for members of teams, which a sub-agent is none of.
    let withheld = [
        "EnterPlanMode",
        "ExitPlanMode",
        "TeamCreate",
        "TeamDelete",
        "TeamHandOver",
        "NoteWrite",
        "NoteRead",
    ];
    let mut lists = Vec::new();
    for call in ["", ", run_in_background = true"] {
        let rig = rig(&calling(call));
        let mut agent = rig.prompted("go").await.unwrap();
        super::until_over(&mut agent, "Look").await;
        let main = sent_by(&rig, "/main").remove(0);
        assert!(withheld.iter().all(|name| offered(&main).contains(name)));
        let own = sent_by(&rig, "/main/general-purpose-1").remove(0);
        let own: Vec<String> = offered(&own).into_iter().map(str::to_owned).collect();
        let kept: Vec<&str> = offered(&main)
            .into_iter()
            .filter(|name| !withheld.contains(name))
            .collect();
        assert_eq!(own, kept, "all others it has");
        lists.push(own);
    }
    assert_eq!(lists[0], lists[1]);
}

// proves AG-06 (part: mode)
// proves PE-04 (part: mode)
#[tokio::test]
async fn a_mode_of_its_own_holds_for_the_sub_agent_alone() {
    // A command that is not known to only read.
    let mut rig = rig(&calling("").replace("pwd", "make"));
    let kinds = built_in().into_iter();
    let kinds = kinds.map(|kind| Definition {
        mode: Some(PermissionMode::DontAsk),
        ..kind
    });
    rig.setup.spawning.types = Arc::new(kinds.collect());
    let mut agent = rig.prompted("go").await.unwrap();
    let (events, end) = until_end(&mut agent).await;
    let denied = events
        .iter()
        .find(|event| matches!(event.kind, EventKind::Denied(_)))
        .unwrap();
    let child = row(&rig, agent.id, "Look").await;
    assert_eq!(
        (denied.agent, child.mode),
        (child.agent, PermissionMode::DontAsk)
    );
    assert!(end.denials.is_empty(), "they are the sub-agent's");
    let told = last_words(&sent_by(&rig, "/main/general-purpose-1")[1]);
    assert!(told.starts_with("Denied"), "{told}");
}

/// Two that are started together cannot have the same name: one is refused, and nobody hears of it.
#[tokio::test]
async fn a_name_is_given_once_also_to_two_at_the_same_time() {
    for background in ["false", "true"] {
        let call = format!(
            r#"{{ tool = "Agent", input = {{ description = "Twin", prompt = "Be.", name = "twin", run_in_background = {background} }} }}"#
        );
        let script = format!(
            "[[rule]]\nwhen.agent = \"re:^/main/\"\nreply = [{{ text = \"I am.\" }}]\n\
             [[rule]]\nwhen.turn = 1\nreply = [{call}, {call}, {call}]\n\
             [[rule]]\nreply = [{{ text = \"One.\" }}]\n"
        );
        let rig = rig(&script);
        let mut agent = rig.prompted("go").await.unwrap();
        let mut events = super::until(&mut agent, |event| super::over(event).is_some()).await;
        if !events
            .iter()
            .any(|event| matches!(event.kind, EventKind::Ended(_)))
        {
            events.extend(until_end(&mut agent).await.0);
        }
        let twins = rows(&rig, agent.id).await;
        assert_eq!(twins.len(), 1);
        let told = sent_by(&rig, "/main").remove(1);
        let results = told["messages"][2]["content"].as_array().unwrap();
        let refused: Vec<_> = results
            .iter()
            .filter(|result| result["is_error"] == true)
            .collect();
        assert_eq!(refused.len(), 2, "{results:#?}");
        for result in refused {
            let words = result["content"][0]["text"].as_str().unwrap();
            assert!(words.contains("twin"), "{words}");
        }
        let of_runs = events.iter().filter(|event| news(event).is_some());
        assert!(
            of_runs
                .into_iter()
                .all(|event| event.agent == twins[0].agent),
            "{events:#?}"
        );
    }
}
