//! Short conversations, each about one thing.

mod choosing;
mod drafts;
mod images;
mod questions;
mod replies;

use posse_protocol::{
    Command, Cost, EventKind, ListKind, ListedName, Listing, MemoryScope, PermissionMode,
    PromptChange, SpendingUpdate, Spent, Usage,
};

use super::screens::run;
use super::*;

fn talk() -> Talk {
    Talk::new(80, 24)
}

/// Returns the effects of a prompt that is sent: it is kept, then this.
fn sent(text: &str, effect: Effect) -> Vec<Effect> {
    vec![Effect::KeepPrompt(text.into()), effect]
}

fn say(words: &str) -> Effect {
    Effect::Say(session(), words.into())
}

#[test]
fn a_prompt_is_sent_once() {
    let mut talk = talk();
    assert_eq!(talk.says("mend it"), sent("mend it", say("mend it")));
    assert_eq!(talk.state.draft(), "");
    assert_eq!(talk.press("Enter"), []);
}

#[test]
fn lines_end_without_sending() {
    let mut talk = talk();
    talk.types("one");
    talk.press("Alt-Enter");
    talk.types("two");
    talk.press("Ctrl-j");
    talk.types("three\\");
    assert_eq!(talk.press("Enter"), []);
    assert_eq!(talk.state.draft(), "one\ntwo\nthree\n");
}

#[test]
fn a_prompt_joins_the_run() {
    let mut talk = talk();
    talk.works();
    talk.says("faster");
    let joins = Effect::Send(Command::ChangePrompt {
        prompt: 7,
        change: PromptChange::Join(true),
    });
    let waiting = vec![queued(7, "faster")];
    assert_eq!(talk.event(EventKind::Queue(waiting.clone())), [joins]);
    assert_eq!(talk.event(EventKind::Queue(waiting)), []);
    assert!(talk.live().contains("1 queued"));
}

#[test]
fn a_prompt_for_later_waits_for_the_end_of_the_run() {
    let mut talk = talk();
    talk.works();
    talk.types("then this");
    let expected = sent("then this", say("then this"));
    assert_eq!(talk.press("Alt-q"), expected);
    assert_eq!(
        talk.event(EventKind::Queue(vec![queued(7, "then this")])),
        []
    );
}

#[test]
fn up_takes_back_the_last_prompt_that_waits() {
    let mut talk = talk();
    talk.works();
    talk.event(EventKind::Queue(vec![queued(7, "one"), queued(8, "two")]));
    let taken = talk.press("Up");
    let expected = Effect::Send(Command::ChangePrompt {
        prompt: 8,
        change: PromptChange::TakeBack,
    });
    assert_eq!(taken, [expected]);
    assert_eq!(talk.state.draft(), "two");
}

#[test]
fn up_and_down_walk_through_earlier_prompts() {
    let mut talk = talk();
    talk.says("one");
    talk.types("draft");
    talk.press("Up Up");
    assert_eq!(talk.state.draft(), "an earlier prompt");
    talk.press("Down Down");
    assert_eq!(talk.state.draft(), "draft");
}

#[test]
fn the_first_sign_says_what_a_prompt_is() {
    let check = |text: &str, command: Command| {
        let expected = sent(text, Effect::Send(command));
        assert_eq!(talk().says(text), expected, "{text}");
    };
    check("! ls -l", Command::Shell("ls -l".into()));
    check(
        "# use tabs",
        Command::Note {
            text: "use tabs".into(),
            scope: MemoryScope::Project,
        },
    );
    check(
        "/model sonnet-5",
        Command::SetModel {
            model: Some("sonnet-5".into()),
            effort: None,
        },
    );
    check("/mode plan", Command::SetMode(PermissionMode::Plan));
    let words = "/deploy now";
    assert_eq!(talk().says(words), sent(words, say(words)));
    assert_eq!(talk().says("/usr/bin"), sent("/usr/bin", say("/usr/bin")));
}

#[test]
fn a_command_that_lacks_words_says_how_it_is_written() {
    let mut talk = talk();
    talk.says("/export");
    assert!(talk.live().contains("/export FILE"), "{}", talk.live());
}

#[test]
fn the_models_that_can_be_chosen_are_named() {
    let mut talk = talk();
    talk.printed();
    talk.says("/model");
    assert_eq!(talk.printed(), ["opus-5-5; others: sonnet-5"]);
    talk.state.offered.models.clear();
    talk.says("/model");
    assert_eq!(talk.printed(), ["opus-5-5"], "none is known");
}

#[test]
fn a_menu_helps_with_commands() {
    let mut talk = talk();
    talk.types("/");
    assert!(talk.live().contains("❯ help"));
    talk.types("mod");
    talk.press("Down");
    assert!(talk.live().contains("❯ model"), "{}", talk.live());
    assert_eq!(talk.press("Tab"), []);
    assert_eq!(talk.state.draft(), "/model ");
    assert!(!talk.live().contains('❯'));
}

#[test]
fn enter_accepts_a_part_of_a_name_and_sends_a_whole_one() {
    let mut talk = talk();
    talk.types("/comp");
    assert_eq!(talk.press("Enter"), []);
    assert_eq!(talk.state.draft(), "/compact ");
    let compact = Effect::Send(Command::Compact { keep: None });
    assert_eq!(talk.press("Enter"), sent("/compact ", compact));
    assert_eq!(
        talk.says("/quit"),
        sent("/quit", Effect::Leave),
        "a whole name is sent at once"
    );
}

#[test]
fn the_menu_lists_files_and_agents() {
    let mut talk = talk();
    talk.types("see @");
    let asked = talk.types("l");
    let list = |what| {
        let part = "l".to_owned();
        Effect::Send(Command::List { what, part })
    };
    assert_eq!(asked, [list(ListKind::Files), list(ListKind::Agents)]);
    talk.event(listed(ListKind::Files, "l", &["src/lexer.rs", "lib.rs"]));
    talk.event(listed(ListKind::Agents, "l", &["linter"]));
    assert!(talk.live().contains("lib.rs"), "{}", talk.live());
    assert!(talk.live().contains("agent-linter"), "{}", talk.live());
    talk.press("Tab");
    assert!(talk.state.draft().ends_with(' '), "{}", talk.state.draft());
}

fn listed(what: ListKind, part: &str, names: &[&str]) -> EventKind {
    let named = |name: &&str| ListedName {
        name: (*name).into(),
        about: String::new(),
    };
    EventKind::Listed(Box::new(Listing {
        what,
        part: part.into(),
        names: names.iter().map(named).collect(),
        left_out: 0,
    }))
}

#[test]
fn the_menu_is_about_the_text_that_is_there() {
    let mut talk = talk();
    talk.types("/mo");
    talk.input(Input::Paste("de plan".into()));
    talk.press("Tab");
    assert_eq!(talk.state.draft(), "/mode plan");
    talk.press("Ctrl-c");
    talk.types("/mo");
    talk.input(Input::Draft("other".into()));
    talk.press("Tab");
    assert_eq!(talk.state.draft(), "other");
    talk.press("Ctrl-c");
    talk.types("/mo");
    talk.press("Alt-Enter");
    talk.press("Tab");
    assert_eq!(talk.state.draft(), "/mo\n");
}

#[test]
fn escape_closes_the_menu_then_interrupts() {
    let mut talk = talk();
    talk.works();
    talk.types("/mo");
    assert_eq!(talk.press("Esc"), []);
    let interrupt = Effect::Send(Command::Interrupt);
    assert_eq!(talk.press("Esc"), [interrupt]);
    assert_eq!(talk.state.draft(), "/mo");
}

#[test]
fn control_c_clears_the_draft_then_interrupts_then_leaves() {
    let mut talk = talk();
    talk.works();
    talk.types("a thought");
    assert_eq!(talk.press("Ctrl-c"), []);
    assert_eq!(talk.state.draft(), "");
    talk.wait(1000);
    let interrupt = Effect::Send(Command::Interrupt);
    assert_eq!(talk.press("Ctrl-c"), [interrupt]);
    assert_eq!(talk.press("Ctrl-c"), [Effect::Leave]);
    talk.wait(1000);
    talk.press("Up");
    assert_eq!(talk.state.draft(), "a thought");
}

#[test]
fn only_two_interrupts_in_a_row_leave() {
    let mut talk = talk();
    talk.types("a");
    talk.press("Ctrl-c");
    talk.types("b");
    assert_eq!(talk.press("Ctrl-c"), []);
}

#[test]
fn shift_tab_chooses_the_next_mode() {
    let mut talk = talk();
    let modes = [
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::Default,
    ];
    for mode in modes {
        let chosen = talk.press("Shift-Tab");
        assert_eq!(chosen, [Effect::Send(Command::SetMode(mode))]);
        talk.event(EventKind::Mode(mode));
        assert!(talk.live().contains(mode.as_str()));
    }
}

#[test]
fn a_digit_shows_the_one_that_has_it_on_the_screen() {
    let mut talk = talk();
    talk.event(super::screens::run(20, "", "make"));
    talk.event(super::screens::run(21, "dev-1", "mend the lexer"));
    assert!(talk.live().contains("2 dev-1"), "{}", talk.live());
    assert_eq!(talk.press("Alt-2"), [Effect::Show(agent(21))]);
    assert_eq!(talk.press("Alt-1"), [], "a command cannot be talked to");
    assert_eq!(talk.press("Alt-9 Left"), []);
    talk.input(Input::Show(agent(21)));
    assert!(talk.live().contains("talking to dev-1"), "{}", talk.live());
    let to = |command| {
        let agent = agent(21);
        let command = Box::new(command);
        Effect::Send(Command::To { agent, command })
    };
    talk.event_of(agent(21), EventKind::State(Activity::Working));
    assert_eq!(talk.press("Esc"), [to(Command::Interrupt)]);
    talk.event(super::screens::run_end(21, "dev-1", "done"));
    assert!(talk.live().contains("talking to dev-1"), "{}", talk.live());
    assert_eq!(talk.press("Alt-0"), [Effect::Show(session())]);
}

// proves UI-15
#[test]
fn stopping_names_what_it_stops() {
    let mut talk = talk();
    talk.event(run(9, "scout", "look at the tests"));
    talk.event(run(10, "", "cargo watch"));
    let stop = |id| Effect::Send(Command::StopRun(uuid::Uuid::from_u128(id)));
    assert_eq!(talk.says("/stop scout"), sent("/stop scout", stop(9)));
    let printed = talk.printed().join("\n");
    assert!(printed.contains("stopping scout"), "{printed}");
    assert!(printed.contains("everything it has started"), "{printed}");
    // Leaving stops them, too.
    assert_eq!(talk.press("Ctrl-d"), []);
    let live = talk.live();
    assert!(live.contains("this stops scout, shell"), "{live}");
    assert_eq!(talk.press("Ctrl-d"), [Effect::Leave]);
}

// proves UI-12
#[test]
fn money_and_context_are_shown_as_they_are_spent() {
    let mut talk = talk();
    let cost = |cents: u64| Cost::from_pico_usd(cents * 10_000_000_000);
    let mut spends = |cents, left, tokens| {
        let spent = Spent {
            model: "m".into(),
            usage: Usage::default(),
            cost: Some(cost(cents)),
        };
        talk.event(EventKind::Spending(Box::new(SpendingUpdate {
            own: Vec::new(),
            subtree: vec![spent],
            left: Some(cost(left)),
            context_tokens: tokens,
            context_window: Some(200_000),
        })));
        talk.live()
    };
    let live = spends(42, 58, 68_000);
    assert!(live.contains("34 % of 200k · $0.42"), "{live}");
    assert!(live.contains("$0.58 left"), "{live}");
    let live = spends(90, 10, 100_000);
    assert!(live.contains("50 % of 200k · $0.90"), "{live}");
    assert!(live.contains("$0.10 left"), "{live}");
}

#[test]
fn reports_are_asked_for_by_name() {
    use crate::conversation::{Report, Request};
    for (command, report) in [
        ("/permissions", Report::Permissions),
        ("/config", Report::Config),
        ("/memory", Report::Memory),
        ("/doctor", Report::Doctor),
        ("/mcp", Report::Servers),
    ] {
        let expected = sent(command, Effect::Ask(Request::Report(report)));
        assert_eq!(talk().says(command), expected);
    }
    for (command, improves) in [("/init", false), ("/init improve", true)] {
        let expected = sent(command, Effect::Ask(Request::Init(improves)));
        assert_eq!(talk().says(command), expected);
    }
}

#[test]
fn an_alert_is_for_those_who_look_elsewhere() {
    use crate::conversation::Alert;
    let mut talk = talk();
    let run_of = |talk: &mut Talk, ms: u64| {
        talk.works();
        talk.wait(ms);
        talk.event(EventKind::State(Activity::Idle));
        talk.state.take_alert()
    };
    assert_eq!(run_of(&mut talk, 60_000), None);
    talk.input(Input::Focus(false));
    assert_eq!(run_of(&mut talk, 10_000), None);
    assert_eq!(run_of(&mut talk, 10_001), Some(Alert::RunOver));
    assert_eq!(talk.state.take_alert(), None);
    talk.asks(crate::fixtures::question("a"));
    assert_eq!(talk.state.take_alert(), Some(Alert::Question));
    // The same again is none.
    talk.asks(crate::fixtures::question("a"));
    assert_eq!(talk.state.take_alert(), None);
    talk.asks(crate::fixtures::question("b"));
    talk.input(Input::Focus(true));
    assert_eq!(talk.state.take_alert(), None);
    talk.asks(crate::fixtures::question("c"));
    assert_eq!(talk.state.take_alert(), None);
}
