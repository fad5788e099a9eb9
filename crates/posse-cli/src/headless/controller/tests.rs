//! Conversations, event by event and line by line.

use posse_port::store::Charge;
use posse_protocol::{Answer, ContentBlock, Delta, MemberChange, Purpose, Task};
use posse_runtime::govern::{Ask, Budgets};

use super::*;
use crate::headless::fixtures::{
    detached, end, facts, member, mine, progress, question, question_id, run, run_ended, session,
    started, task, team,
};
use crate::headless::render::denials::Denials;
use crate::headless::render::json_lines::JsonLines;
use crate::headless::render::live_reply::ReplyView;
use crate::headless::render::text::TextRenderer;

/// A question about the call `t1`.
fn open(agent: AgentId, from: Option<&str>) -> OpenApproval {
    let question = question_id("t1", from);
    OpenApproval { question, agent }
}

fn plan(first: Option<Command>) -> RunPlan {
    let (listening, patience) = (first.is_none(), Duration::from_secs(600));
    RunPlan {
        main: session(),
        first,
        listening,
        waits_for_answers: false,
        terminal: None,
        patience,
        account: Account::session(Budgets::default(), Duration::ZERO),
        slash: SlashCommands::default(),
        led: false,
        program: ProgramTerms {
            initialized: true,
            ..ProgramTerms::default()
        },
    }
}

fn controller() -> Controller {
    Controller::new(Renderer::Lines(JsonLines::new(facts(), false)), plan(None))
}

fn tell(controller: &mut Controller, line: Value) -> Vec<Value> {
    values(controller.line(Some(StdinLine::Text(line.to_string()))))
}

fn values(said: Vec<OutputItem>) -> Vec<Value> {
    let out = said.into_iter().filter_map(|said| match said {
        OutputItem::Out(text) => Some(serde_json::from_str(&text).unwrap()),
        OutputItem::Note(_)
        | OutputItem::Reply { .. }
        | OutputItem::Shown(_)
        | OutputItem::TerminalNote(_)
        | OutputItem::Ask(_)
        | OutputItem::LiveLine(_)
        | OutputItem::Panel(_) => None,
    });
    out.collect()
}

fn request(subtype: &str, mode: &str) -> Value {
    json!({"type": "control_request", "request_id": "r", "request": {"subtype": subtype, "mode": mode}})
}

fn prompt(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}})
}

fn asked() -> Event {
    mine(EventKind::ApprovalRequested(Box::new(question("t1", None))))
}

fn ended() -> Event {
    ended_with(0)
}

/// A run of the main agent ends while so many background runs go on.
fn ended_with(live: usize) -> Event {
    mine(EventKind::Ended(Box::new(RunEnd {
        live,
        ..end(Outcome::Completed)
    })))
}

fn begun() -> Event {
    mine(EventKind::Started)
}

fn news(news: posse_protocol::RunUpdate) -> Event {
    mine(EventKind::Run(Box::new(news)))
}

#[test]
fn what_was_told_is_finished_before_it_ends() {
    let mut controller = controller();
    tell(&mut controller, prompt("one"));
    tell(&mut controller, prompt("two"));
    assert_eq!(
        controller.next_command(),
        Some(Command::Prompt(vec![ContentBlock::text("one")]))
    );
    assert_eq!(
        controller.next_command(),
        Some(Command::Prompt(vec![ContentBlock::text("two")]))
    );
    controller.line(None);
    controller.event(ended());
    assert!(!controller.is_done(), "the second run is still to come");
    controller.event(ended());
    assert!(controller.is_done());
}

#[test]
fn questions_are_answered_by_a_line_or_by_the_end_of_lines() {
    let mut controller = controller();
    let line = values(controller.event(asked())).remove(0);
    let response = json!({"subtype": "success", "request_id": line["request_id"], "response": {"behavior": "allow"}});
    tell(
        &mut controller,
        json!({"type": "control_response", "response": response}),
    );
    let allow = Answer::allow();
    assert_eq!(
        controller.next_command(),
        Some(Command::Answer {
            agent: session(),
            question: question_id("t1", None),
            answer: allow
        })
    );
    controller.event(asked());
    controller.line(None);
    assert_eq!(
        controller.next_command(),
        Some(unanswered(open(session(), None)))
    );
    assert!(
        values(controller.event(asked())).is_empty(),
        "nobody is there to be asked"
    );
    assert_eq!(
        controller.next_command(),
        Some(unanswered(open(session(), None)))
    );
}

// proves PE-04 (part: bypassPermissions)
#[test]
fn rights_that_were_not_given_at_the_start_are_not_given_later() {
    let mut controller = controller();
    let told = tell(
        &mut controller,
        request("set_permission_mode", "bypassPermissions"),
    );
    assert_eq!(told[0]["response"]["subtype"], "error");
    assert_eq!(controller.next_command(), None);
    let told = tell(&mut controller, request("set_permission_mode", "plan"));
    assert_eq!(
        (
            &told[0]["response"]["subtype"],
            &told[0]["response"]["request_id"]
        ),
        (&"success".into(), &"r".into())
    );
    assert_eq!(
        controller.next_command(),
        Some(Command::SetMode(PermissionMode::Plan))
    );
}

#[test]
fn rubbish_is_reported_and_it_goes_on() {
    let mut controller = controller();
    let told = values(controller.line(Some(StdinLine::Text("{".into()))));
    assert_eq!(
        (&told[0]["type"], &told[0]["subtype"]),
        (&"system".into(), &"input_error".into())
    );
    let response =
        json!({"subtype": "success", "request_id": "q9", "response": {"behavior": "allow"}});
    let told = tell(
        &mut controller,
        json!({"type": "control_response", "response": response}),
    );
    assert_eq!(told[0]["subtype"], "input_error");
    assert!(told[0]["error"].as_str().unwrap().contains("q9"));
    assert_eq!(
        tell(&mut controller, request("dance", ""))[0]["response"]["subtype"],
        "error"
    );
    tell(&mut controller, prompt("one"));
    assert!(controller.next_command().is_some());
    assert!(controller.end().not_understood);
}

#[test]
fn the_first_signal_stops_the_run_and_the_second_everything() {
    let mut controller = controller();
    tell(&mut controller, prompt("one"));
    tell(&mut controller, prompt("two"));
    controller.signal();
    assert!(!controller.must_leave());
    controller.event(ended());
    assert!(controller.must_leave(), "what waits is not begun");
    let mut idle = self::controller();
    idle.signal();
    assert!(idle.must_leave() && !idle.end().leaves_at_once());
    let mut stuck = self::controller();
    tell(&mut stuck, prompt("one"));
    stuck.signal();
    stuck.signal();
    assert!(stuck.must_leave() && stuck.end().leaves_at_once());
}

#[test]
fn an_interrupt_is_for_a_run() {
    let mut controller = controller();
    assert_eq!(
        tell(&mut controller, request("interrupt", ""))[0]["response"]["subtype"],
        "success"
    );
    assert_eq!(controller.next_command(), None);
    tell(&mut controller, prompt("one"));
    tell(&mut controller, request("interrupt", ""));
    controller.next_command();
    assert_eq!(controller.next_command(), Some(Command::Interrupt));
}

#[test]
fn questions_that_wait_are_left_open_when_the_lines_end_and_hold_the_wait_up() {
    let plan = RunPlan {
        waits_for_answers: true,
        ..plan(None)
    };
    let renderer = Renderer::Lines(JsonLines::new(facts(), false));
    let mut controller = Controller::new(renderer, plan);
    values(controller.event(asked()));
    controller.line(None);
    assert_eq!(controller.next_command(), None, "others may answer it");
    controller.event(mine(EventKind::Ended(Box::new(RunEnd {
        live: 1,
        ..end(Outcome::Completed)
    }))));
    assert_eq!(controller.waits(), None);
    let question = question_id("t1", None);
    controller.event(mine(EventKind::ApprovalWithdrawn { question }));
    assert!(controller.waits().is_some());
}

// proves PE-05 (part: its name)
#[test]
fn a_childs_question_is_asked_in_its_name_and_answered_to_it() {
    let mut controller = controller();
    let child = AgentId::from(run(1).task);
    controller.event(asked());
    let question = question("t1", Some("scout"));
    let line = values(controller.event(Event {
        agent: child,
        kind: EventKind::ApprovalRequested(Box::new(question.clone())),
    }))
    .remove(0);
    assert_eq!(line["request"]["agent_name"], "scout");
    let response = json!({"subtype": "success", "request_id": line["request_id"], "response": {"behavior": "allow"}});
    tell(
        &mut controller,
        json!({"type": "control_response", "response": response}),
    );
    let answer = Command::Answer {
        agent: child,
        question: question.id,
        answer: Answer::allow(),
    };
    assert_eq!(controller.next_command(), Some(answer));
    let gone = |question| EventKind::ApprovalWithdrawn { question };
    assert!(
        values(controller.event(Event {
            agent: child,
            kind: gone(question.id)
        }))
        .is_empty(),
        "it is answered"
    );
    assert_eq!(
        values(controller.event(mine(gone(question_id("t1", None)))))[0]["type"],
        "control_cancel_request"
    );
    controller.line(None);
    controller.event(Event {
        agent: child,
        kind: EventKind::ApprovalRequested(Box::new(question)),
    });
    assert_eq!(
        controller.next_command(),
        Some(unanswered(open(child, Some("scout"))))
    );
}

#[test]
fn a_sub_agents_own_doings_are_not_the_main_agents() {
    let mut controller = controller();
    let child = AgentId::from(run(1).task);
    controller.event(news(started(run(1), false)));
    tell(&mut controller, prompt("one"));
    let denial = end(Outcome::Completed).denials[0].clone();
    let told = values(controller.event(Event {
        agent: child,
        kind: EventKind::Denied(denial),
    }));
    assert_eq!(told[0]["agent_name"], "Explore (find callers)");
    assert_eq!(
        (&told[0]["agent_id"], &told[0]["tool_name"]),
        (&json!(child), &json!("Bash"))
    );
    assert!(
        controller
            .event(Event {
                agent: child,
                kind: ended().kind
            })
            .is_empty()
    );
    controller.line(None);
    controller.next_command();
    assert!(!controller.is_done(), "the run of the main agent goes on");
}

#[test]
fn tasks_are_stopped_and_sent_to_the_background_by_lines() {
    let mut controller = controller();
    let stop = json!({"subtype": "stop_task", "task_id": run(1).task});
    let stop = json!({"type": "control_request", "request_id": "r", "request": stop});
    assert_eq!(
        tell(&mut controller, stop)[0]["response"]["subtype"],
        "success"
    );
    tell(&mut controller, request("stop_all_tasks", ""));
    tell(&mut controller, request("background_tasks", ""));
    let told: Vec<Command> = std::iter::from_fn(|| controller.next_command()).collect();
    assert_eq!(
        told,
        [
            Command::StopRun(run(1).task),
            Command::StopRuns,
            Command::Detach
        ]
    );
    let told = tell(&mut controller, request("initialize", ""));
    let can = told[0]["response"]["response"]["capabilities"]
        .as_array()
        .unwrap();
    for name in ["stop_task", "stop_all_tasks", "background_tasks"] {
        assert!(can.contains(&json!(name)), "{can:?}");
    }
}

#[test]
fn what_reached_nobody_is_told_on_both_ways() {
    let said = controller().event(mine(EventKind::Warning("too late\x1b[2J".into())));
    assert_eq!(
        said[0],
        OutputItem::Note("warning: too late\\u{1b}[2J".into())
    );
    let told = values(said);
    assert_eq!(
        (&told[0]["subtype"], &told[0]["message"]),
        (&json!("unheard"), &json!("too late\u{1b}[2J"))
    );
}

/// One prompt, and what comes of it as one object or as text.
fn single(renderer: Renderer) -> Controller {
    let mut controller = Controller::new(
        renderer,
        plan(Some(Command::Prompt(vec![ContentBlock::text("go")]))),
    );
    controller.next_command();
    controller.event(begun());
    controller.event(news(started(run(1), true)));
    controller
}

// proves BG-08 (part: waits)
#[test]
fn while_background_runs_go_on_the_last_word_is_not_said() {
    let mut controller = single(Renderer::Json(facts(), Denials::default()));
    assert_eq!(controller.waits(), None, "the main agent works");
    let said = controller.event(ended_with(1));
    let waiting = "waiting for 1 background run: Explore (find callers); Ctrl-C stops";
    assert_eq!(said, [OutputItem::TerminalNote(waiting.into())]);
    let (first, patience) = controller.waits().unwrap();
    assert_eq!(patience, Duration::from_secs(600));
    assert!(!controller.is_done() && !controller.must_leave());
    controller.event(news(run_ended(run(1))));
    assert_ne!(
        controller.waits().unwrap().0,
        first,
        "an end begins another wait"
    );
    assert!(!controller.is_done(), "it begins another run");
    controller.event(begun());
    assert_eq!(controller.waits(), None);
    let told = values(controller.event(ended()));
    assert!(controller.is_done());
    assert_eq!(
        (told.len(), &told[0]["num_turns"]),
        (1, &json!(4)),
        "two runs of two turns, one object"
    );
    assert_eq!(
        (&told[0]["total_cost_usd"], told[0].get("left_running")),
        (&json!(1.0), None)
    );
}

#[test]
fn text_has_the_last_runs_reply_only_and_lines_have_all() {
    let mut controller = single(Renderer::Text(TextRenderer::new(
        facts(),
        ReplyView::Plain,
        false,
    )));
    assert_eq!(
        controller.event(ended_with(1)),
        [],
        "and nothing is said in a pipe"
    );
    controller.event(begun());
    assert_eq!(
        controller.event(ended()),
        [OutputItem::Out("all done\n".into())]
    );
    let mut controller = single(Renderer::Lines(JsonLines::new(facts(), false)));
    for live in [1, 0] {
        let told = values(controller.event(ended_with(live)));
        assert_eq!(
            (&told[0]["type"], &told[0]["num_turns"]),
            (&json!("result"), &json!(2))
        );
        controller.event(begun());
    }
}

// proves BG-08 (part: ceiling)
#[test]
fn what_does_not_end_is_told_and_stopped() {
    let mut controller = single(Renderer::Json(facts(), Denials::default()));
    controller.event(ended_with(1));
    let note = "left running: none ended within 600 s; 1 background run will be stopped: Explore \
                (find callers)";
    assert_eq!(controller.waited(), [OutputItem::Note(note.into())]);
    assert_eq!(controller.next_command(), Some(Command::StopRuns));
    assert_eq!(controller.waits(), None);
    assert!(!controller.must_leave(), "it is not gone yet");
    let told = values(controller.event(news(run_ended(run(1)))));
    assert_eq!(told[0]["left_running"][0]["task_id"], json!(run(1).task));
    assert_eq!(told[0]["result"], "all done");
    assert!(controller.must_leave());
    let ending = controller.end();
    assert!(ending.gave_up && !ending.is_interrupted());
    let mut lines = single(Renderer::Lines(JsonLines::new(facts(), false)));
    lines.event(ended_with(1));
    let told = values(lines.waited());
    assert_eq!(
        (&told[0]["subtype"], &told[0]["waited_seconds"]),
        (&json!("left_running"), &json!(600))
    );
    assert_eq!(told[0]["tasks"][0]["description"], "find callers");
}

#[test]
fn a_run_that_begins_while_all_is_stopped_is_not_wanted() {
    let mut controller = single(Renderer::Json(facts(), Denials::default()));
    controller.event(news(started(run(2), true)));
    controller.event(ended_with(2));
    controller.waited();
    controller.next_command();
    controller.event(news(run_ended(run(1))));
    assert!(!controller.must_leave(), "one of two is gone");
    controller.event(begun());
    assert_eq!(controller.next_command(), Some(Command::Interrupt));
    let end = RunEnd {
        live: 1,
        ..end(Outcome::Interrupted)
    };
    assert!(
        controller
            .event(mine(EventKind::Ended(Box::new(end))))
            .is_empty()
    );
    assert!(!controller.must_leave());
    let told = values(controller.event(news(run_ended(run(2)))));
    assert!(controller.must_leave());
    assert_eq!(
        (&told[0]["subtype"], &told[0]["num_turns"]),
        (&json!("success"), &json!(4)),
        "it is paid for"
    );
}

#[test]
fn a_signal_while_it_waits_stops_background_runs_and_a_second_one_leaves() {
    let mut controller = single(Renderer::Json(facts(), Denials::default()));
    controller.event(ended_with(1));
    assert_eq!(
        controller.signal(),
        [OutputItem::TerminalNote(
            "stopping; press Ctrl-C again to exit now".into()
        )]
    );
    assert_eq!(controller.next_command(), Some(Command::StopRuns));
    assert!(!controller.must_leave());
    assert_eq!(
        values(controller.event(news(run_ended(run(1)))))[0]["subtype"],
        "success"
    );
    assert!(controller.must_leave() && !controller.end().leaves_at_once());
    let mut impatient = single(Renderer::Json(facts(), Denials::default()));
    impatient.event(ended_with(1));
    impatient.signal();
    impatient.signal();
    assert!(impatient.must_leave() && impatient.end().leaves_at_once());
}

#[test]
fn a_signal_while_it_works_stops_both() {
    let mut controller = single(Renderer::Json(facts(), Denials::default()));
    controller.signal();
    let told: Vec<Command> = std::iter::from_fn(|| controller.next_command()).collect();
    assert_eq!(told, [Command::Interrupt, Command::StopRuns]);
    controller.event(news(run_ended(run(1))));
    assert!(!controller.must_leave(), "the main agent still works");
    let told =
        values(controller.event(mine(EventKind::Ended(Box::new(end(Outcome::Interrupted))))));
    assert_eq!(told[0]["terminal_reason"], "interrupted");
    assert!(controller.must_leave());
}

#[test]
fn while_lines_can_come_nothing_is_given_up() {
    let mut controller = controller();
    tell(&mut controller, prompt("one"));
    controller.next_command();
    controller.event(begun());
    controller.event(ended_with(1));
    assert_eq!(controller.waits(), None);
    controller.line(None);
    assert!(controller.waits().is_some() && !controller.is_done());
    controller.gone();
    assert!(controller.is_done(), "there is nobody left to wait for");
}

/// Something happens to the only member of a team, the agent of this run.
fn member_news(what: MemberChange) -> Event {
    Event {
        agent: run(1).task.into(),
        kind: EventKind::Member(Box::new(member(what))),
    }
}

fn joined() -> Event {
    let (agent_type, model, backend) = ("x".into(), "m".into(), "in-process".into());
    member_news(MemberChange::Joined {
        agent_type,
        model,
        backend,
    })
}

#[test]
fn members_are_waited_for_and_left_to_the_end_of_the_process() {
    let mut controller = single(Renderer::Json(facts(), Denials::default()));
    controller.event(joined());
    controller.event(ended_with(1));
    let (wait, _) = controller.waits().unwrap();
    controller.event(member_news(MemberChange::Running));
    assert_ne!(
        controller.waits().unwrap().0,
        wait,
        "whatever a member does is worth waiting for"
    );
    assert!(!controller.is_done());
    controller.signal();
    assert_eq!(
        controller.next_command(),
        None,
        "nobody is told to give up what it does"
    );
    assert!(controller.must_leave());
}

#[test]
fn of_a_team_only_what_the_lead_has_started_is_stopped_and_not_waited_for_long() {
    let mut controller = single(Renderer::Json(facts(), Denials::default()));
    controller.event(joined());
    controller.event(news(started(run(2), true)));
    controller.event(news(started(
        RunFacts {
            starter: run(1).task.into(),
            ..run(3)
        },
        true,
    )));
    controller.signal();
    let told: Vec<Command> = std::iter::from_fn(|| controller.next_command()).collect();
    assert_eq!(told, [Command::Interrupt, Command::StopRun(run(2).task)]);
    assert_eq!(controller.waits(), None, "the lead itself is waited for");
    let mut late = ended_with(2);
    if let EventKind::Ended(end) = &mut late.kind {
        end.outcome = Outcome::Interrupted;
    }
    controller.event(late);
    assert!(!controller.must_leave());
    let (wait, patience) = controller.waits().unwrap();
    assert!(patience <= Duration::from_secs(3));
    controller.event(member_news(MemberChange::Running));
    assert_eq!(
        controller.waits().unwrap().0,
        wait,
        "and nothing makes it longer"
    );
    assert_eq!(
        values(controller.waited())[0]["terminal_reason"],
        "interrupted"
    );
    assert!(controller.must_leave() && !controller.end().leaves_at_once());
}

#[test]
fn who_works_elsewhere_is_not_waited_for_after_a_signal() {
    let mut controller = single(Renderer::Json(facts(), Denials::default()));
    controller.event(news(run_ended(run(1))));
    // Two busy members of whom nothing is heard here.
    controller.event(ended_with(2));
    controller.signal();
    assert!(
        controller
            .waits()
            .is_some_and(|(_, patience)| patience <= Duration::from_secs(3))
    );
    controller.waited();
    assert!(controller.must_leave());
}

#[test]
fn what_becomes_of_a_members_run_is_no_task() {
    for renderer in [
        Renderer::Lines(JsonLines::new(facts(), false)),
        Renderer::Text(TextRenderer::new(facts(), ReplyView::Arriving, true)),
    ] {
        let mut controller = Controller::new(
            renderer,
            plan(Some(Command::Prompt(vec![ContentBlock::text("go")]))),
        );
        controller.event(joined());
        for what in [
            started(run(1), true),
            detached(run(1)),
            progress(run(1), 2),
            run_ended(run(1)),
        ] {
            assert_eq!(controller.event(news(what)), []);
        }
        assert!(
            !controller.event(news(started(run(2), true))).is_empty(),
            "others are"
        );
    }
}

#[test]
fn words_and_interruptions_reach_members() {
    let mut controller = controller();
    let agent = AgentId::from(run(1).task);
    let words = json!({"type": "user", "agent_id": agent, "message": {"role": "user", "content": "faster"}});
    assert!(tell(&mut controller, words).is_empty());
    let prompt = Command::Prompt(vec![ContentBlock::text("faster")]);
    assert_eq!(controller.next_command(), Some(to(agent, prompt)));
    let interrupt = json!({"subtype": "interrupt", "agent_id": agent});
    let line = json!({"type": "control_request", "request_id": "r", "request": interrupt});
    assert_eq!(
        tell(&mut controller, line)[0]["response"]["subtype"],
        "success"
    );
    assert_eq!(
        controller.next_command(),
        Some(to(agent, Command::Interrupt))
    );
    tell(
        &mut controller,
        json!({"type": "user", "agent_id": session(), "message": {"role": "user", "content": "x"}}),
    );
    assert!(
        matches!(controller.next_command(), Some(Command::Prompt(_))),
        "its own id is no other's"
    );
}

/// Books a call of the main agent that costs a dollar.
fn book(account: &Account) {
    let ask = Ask {
        input: 1,
        output: 1,
        least: 1,
        price: &|_, _| Some(Cost::ZERO),
    };
    let charge = Charge {
        model: "m".into(),
        usage: posse_protocol::Usage {
            output: 7,
            ..posse_protocol::Usage::default()
        },
        cost: Some(Cost::from_pico_usd(1_000_000_000_000)),
        purpose: Purpose::Work,
        missed: 0,
    };
    let reserved = account.reserve(&ask, Duration::ZERO).unwrap();
    reserved.settle(&[charge]);
}

/// A run of a team's lead that has begun and said something.
fn talking() -> (Controller, Account) {
    let plan = RunPlan {
        led: true,
        ..plan(Some(Command::Continue))
    };
    let account = plan.account.clone();
    let lines = Renderer::Lines(JsonLines::new(facts(), false));
    let mut controller = Controller::new(lines, plan);
    controller.event(begun());
    for delta in [
        Delta::Started { model: "m".into() },
        Delta::Text("I have ".into()),
        Delta::Text("found it.".into()),
    ] {
        controller.event(mine(EventKind::Delta(delta)));
    }
    book(&account);
    (controller, account)
}

// proves FC-06 (part: what was said)
#[test]
fn a_run_without_a_store_still_says_what_it_had_and_what_it_cost() {
    let (mut controller, _) = talking();
    controller.store(Some("it is gone"));
    let told = values(controller.waited()).pop().unwrap();
    assert_eq!(
        (&told["type"], &told["terminal_reason"], &told["result"]),
        (
            &json!("result"),
            &json!("paused"),
            &json!("I have found it.")
        )
    );
    assert_eq!(
        (&told["total_cost_usd"], &told["usage"]["output_tokens"]),
        (&json!(1.0), &json!(7))
    );
    assert!(controller.must_leave());
    // The same if the run ends while the store is waited for.
    let (mut controller, account) = talking();
    controller.event(ended_with(1));
    controller.store(Some("it is gone"));
    controller.event(begun());
    book(&account);
    let told = values(controller.give_up_on_store(ended())).pop().unwrap();
    assert_eq!(
        (&told["terminal_reason"], &told["result"]),
        (&json!("paused"), &json!("all done"))
    );
    let all = controller.end().last.unwrap();
    assert_eq!((all.turns, all.text.as_str()), (4, "all done"));
}

// proves FC-06 (part: what was said)
#[test]
fn a_store_lost_between_runs_leaves_the_last_result_as_it_was() {
    let (mut controller, account) = talking();
    controller.event(ended_with(1));
    book(&account);
    controller.store(Some("it is gone"));
    controller.waited();
    let all = controller.end().last.unwrap();
    assert_eq!((all.turns, all.text.as_str()), (2, "all done"));
    // Two dollars are booked, of which the run has reported half a dollar.
    assert_eq!(
        result::cost(&all),
        Some(Cost::from_pico_usd(2_000_000_000_000))
    );
}

#[test]
fn nothing_about_a_team_follows_its_result() {
    let (open, done) = (task(1, "in_progress"), task(1, "completed"));
    let seen = |task: &Task| TeamSnapshot {
        team: team(),
        tasks: vec![task.clone()],
        changed: vec![task.clone()],
        requests: 0,
        cost: None,
    };
    let first = Command::Continue;
    let plan = RunPlan {
        led: true,
        ..plan(Some(first))
    };
    let mut controller = Controller::new(Renderer::Lines(JsonLines::new(facts(), false)), plan);
    let told = values(controller.seen(&seen(&open), Duration::ZERO));
    assert_eq!(told[0]["subtype"], "team_task", "{told:?}");
    controller.event(mine(EventKind::Started));
    let told = values(controller.event(ended()));
    assert_eq!(told.last().unwrap()["type"], "result", "{told:?}");
    assert!(controller.seen(&seen(&done), Duration::ZERO).is_empty());
    let line = controller.end().progress.map(|progress| progress.line());
    assert_eq!(line.as_deref(), Some("0 of 1 task done, 1 open: #1 s"));
}
