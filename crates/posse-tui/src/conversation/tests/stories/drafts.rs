//! Drafts: each agent has its own, and looking at earlier prompts loses none.

use posse_protocol::{AgentPlace, ModelUpdate, RunChange, RunUpdate};

use super::super::screens::run;
use super::*;

fn switch(talk: &mut Talk, to: AgentId) {
    talk.input(Input::Show(to));
}

// proves UI-05 (part: any events)
#[test]
fn each_agent_has_its_own_draft() {
    let mut talk = talk();
    talk.event(run(21, "dev-1", "look"));
    talk.types("for the main agent");
    switch(&mut talk, agent(21));
    assert_eq!(talk.state.draft(), "");
    talk.types("for dev-1");
    let both = [
        (None, "for the main agent".to_owned()),
        (Some(agent(21)), "for dev-1".to_owned()),
    ];
    assert_eq!(talk.state.drafts(), both);
    switch(&mut talk, session());
    assert_eq!(talk.state.draft(), "for the main agent");
    assert_eq!(talk.state.drafts(), both);
    talk.press("Enter");
    assert_eq!(talk.state.drafts(), both[1..]);
    switch(&mut talk, agent(21));
    assert_eq!(talk.state.draft(), "for dev-1");
}

#[test]
fn kept_drafts_go_to_their_agents() {
    let mut talk = talk();
    talk.input(Input::KeptDraft(Some(agent(21)), "for dev-1".into()));
    talk.input(Input::KeptDraft(None, "for the main agent".into()));
    assert_eq!(talk.state.draft(), "for the main agent");
    switch(&mut talk, agent(21));
    assert_eq!(talk.state.draft(), "for dev-1");
}

#[test]
fn sending_an_earlier_prompt_leaves_the_draft() {
    let mut talk = talk();
    talk.types("half a thought");
    talk.press("Up");
    assert_eq!(talk.state.draft(), "an earlier prompt");
    let kept = talk.state.drafts();
    assert_eq!(kept, [(None, "half a thought".to_owned())]);
    // Also if it is edited first.
    talk.types("!");
    let kept = talk.state.drafts();
    assert_eq!(
        kept,
        [(None, "half a thought\nan earlier prompt!".to_owned())]
    );
    let said = say("an earlier prompt!");
    assert_eq!(talk.press("Enter"), sent("an earlier prompt!", said));
    assert_eq!(talk.state.draft(), "half a thought");
    talk.press("Up Ctrl-c");
    assert_eq!(talk.state.draft(), "");
    talk.press("Up");
    assert_eq!(talk.state.draft(), "an earlier prompt!");
    talk.press("Up");
    assert_eq!(talk.state.draft(), "half a thought");
}

#[test]
fn looking_at_an_earlier_prompt_of_another_agent_leaves_the_draft() {
    let mut talk = talk();
    talk.types("half a thought");
    talk.press("Up");
    switch(&mut talk, agent(21));
    switch(&mut talk, session());
    assert_eq!(talk.state.draft(), "half a thought");
}

#[test]
fn the_status_has_the_terms_of_the_one_that_is_shown() {
    let mut talk = talk();
    let EventKind::Run(update) = run(21, "dev-1", "look") else {
        panic!()
    };
    let RunUpdate { mut run, what } = *update;
    run.place = Some(Box::new(AgentPlace {
        path: "/main/dev-1".into(),
        model: "haiku-5".into(),
        mode: PermissionMode::Plan,
        cwd: "/tmp".into(),
        branch: None,
    }));
    assert!(matches!(what, RunChange::Started { .. }));
    talk.event(EventKind::Run(Box::new(RunUpdate { run, what })));
    assert!(
        talk.live().contains("default · opus-5-5"),
        "{}",
        talk.live()
    );
    switch(&mut talk, agent(21));
    assert!(talk.live().contains("plan · haiku-5"), "{}", talk.live());
    talk.event(EventKind::Mode(PermissionMode::AcceptEdits));
    talk.event(EventKind::Model(Box::new(ModelUpdate {
        model: "sonnet-5".into(),
        effort: Some("low".into()),
        reread_tokens: 0,
        cost: None,
    })));
    assert!(talk.live().contains("plan · haiku-5"), "{}", talk.live());
    switch(&mut talk, session());
    assert!(
        talk.live().contains("acceptEdits · sonnet-5 low"),
        "{}",
        talk.live()
    );
    switch(&mut talk, agent(22));
    assert!(!talk.live().contains("acceptEdits"), "{}", talk.live());
}

#[test]
fn who_is_talked_to_and_what_waits_is_said_before_the_money() {
    let mut talk = talk();
    talk.event(run(21, "dev-1", "look"));
    switch(&mut talk, agent(21));
    talk.event_of(agent(21), EventKind::State(Activity::Working));
    let spent = Spent {
        model: "m".into(),
        usage: Usage::default(),
        cost: Some(Cost::from_pico_usd(50_000_000_000)),
    };
    let spending = SpendingUpdate {
        subtree: vec![spent],
        context_tokens: 8_000,
        context_window: Some(200_000),
        ..SpendingUpdate::default()
    };
    talk.event_of(agent(21), EventKind::Spending(Box::new(spending)));
    let waiting = vec![queued(7, "then this")];
    talk.event_of(agent(21), EventKind::Queue(waiting));
    let live = talk.live();
    assert!(live.contains("talking to dev-1 · 1 queued"), "{live}");
}
