//! The screen of agents.

use super::*;

#[test]
fn agents_are_in_sections_and_a_tree() {
    let mut desk = Desk::new(80, 12);
    desk.agents(team());
    let names: Vec<String> = desk
        .rows()
        .iter()
        .skip(1)
        .map(|row| {
            row.chars()
                .take(20)
                .collect::<String>()
                .trim_end()
                .to_owned()
        })
        .collect();
    assert_eq!(
        names,
        [
            "  NEEDS YOU 1",
            "❯ ◐ dev-2",
            "  WORKING 3",
            "  ◌ main",
            "  └ ● dev-1",
            "    └ ● explore",
            "  IDLE 1",
            "  ○ reviewer",
            "  DONE 1 ▸ folded",
            "",
            "Enter open  p peek",
        ]
    );
}

#[test]
fn keys_act_on_the_highlighted_agent() {
    let mut desk = Desk::new(80, 12);
    desk.agents(team());
    assert_eq!(desk.press("Enter"), [BoardEffect::Open(agent(4))]);
    assert_eq!(
        desk.press("Down Down i"),
        [BoardEffect::Interrupt(agent(1))]
    );
    assert_eq!(desk.press("j o"), [BoardEffect::Pager(agent(2))]);
    assert_eq!(desk.press("Ctrl-o"), [BoardEffect::Pager(agent(2))]);
    let scope = BoardEffect::ChangeScope(Scope::Directory);
    assert_eq!(desk.press("s"), [scope]);
    desk.press("m");
    desk.types("look at it");
    let words = "look at it".to_owned();
    assert_eq!(desk.press("Enter"), [BoardEffect::Message(agent(2), words)]);
    assert_eq!(desk.press("q"), [BoardEffect::Leave]);
    assert_eq!(desk.press("Esc"), [BoardEffect::Leave]);
    assert_eq!(desk.press("Ctrl-\\"), [BoardEffect::Leave]);
}

#[test]
fn a_message_that_was_begun_is_kept() {
    let mut desk = Desk::new(80, 12);
    desk.agents(team());
    desk.press("m");
    desk.types("look at");
    desk.press("Esc Down Down m");
    assert_eq!(desk.foot(), "to main:");
    desk.press("Esc Up Up m");
    assert_eq!(desk.foot(), "to dev-2: look at");
    let message = BoardEffect::Message(agent(4), "look at".into());
    assert_eq!(desk.press("Enter"), [message]);
    desk.press("m");
    assert_eq!(desk.foot(), "to dev-2:");
}

// proves UI-15
#[test]
fn stopping_names_whom_it_stops_and_asks_once() {
    let mut desk = Desk::new(80, 12);
    desk.agents(team());
    assert_eq!(desk.press("Down Down x"), []);
    let asked = "stop main and 4 agents below it (3 at work)? y yes · any other key no";
    assert_eq!(desk.foot(), asked);
    assert_eq!(desk.press("Enter y"), []);
    assert_eq!(desk.press("x"), []);
    // Another one below it has ended: the yes was for what was shown before.
    desk.agents(vec![below(2, at_work(3, "explore", Sign::Done))]);
    assert_eq!(desk.press("y"), []);
    desk.settle();
    assert!(
        desk.foot()
            .starts_with("stop main and 3 agents below it (2 at work)?")
    );
    assert_eq!(desk.press("y"), [BoardEffect::Stop(agent(1))]);
    assert_eq!(desk.press("y"), []);
}

#[test]
fn a_key_for_an_agent_that_has_just_gone_acts_on_nobody() {
    let mut desk = Desk::new(80, 12);
    desk.agents(team());
    desk.press("Down Down Down");
    desk.gone(&[2]);
    assert!(desk.highlighted().contains("explore"));
    for keys in ["i", "Enter", "y x", "m"] {
        assert_eq!(desk.press(keys), [], "{keys}");
        assert_eq!(desk.foot(), "dev-1 has just gone from the board");
    }
    desk.settle();
    assert_eq!(desk.press("i"), [BoardEffect::Interrupt(agent(3))]);
}

#[test]
fn an_agent_that_ends_under_the_cursor_stays_highlighted() {
    let mut desk = Desk::new(80, 14);
    desk.agents(team());
    desk.press("Down Down Down");
    desk.agents(vec![at_work(2, "dev-1", Sign::Done)]);
    assert!(desk.highlighted().contains("✓ dev-1"));
    assert_eq!(desk.press("o"), [BoardEffect::Pager(agent(2))]);
    desk.press("Up");
    assert!(desk.highlighted().contains("DONE 2 ▸ folded"));
    assert!(!desk.text().contains("✓ dev-1"));
    desk.press("Enter");
    assert!(desk.text().contains("✓ dev-1"));
    assert!(desk.text().contains("✓ old"));
}

#[test]
fn a_filter_shows_those_that_fit_as_it_is_typed() {
    let mut desk = Desk::new(80, 14);
    desk.agents(team());
    desk.press("/");
    desk.types("dev");
    let text = desk.text();
    assert!(text.contains("dev-1") && text.contains("dev-2"), "{text}");
    assert!(!text.contains("reviewer"), "{text}");
    assert!(text.contains("WORKING 1 of 3"), "{text}");
    desk.press("Enter");
    desk.agents(vec![
        at_work(9, "dev-9", Sign::Idle),
        at_work(10, "x", Sign::Idle),
    ]);
    assert!(desk.text().contains("dev-9"));
    assert!(desk.text().contains("IDLE 1 of 3"));
    assert_eq!(desk.press("Esc"), []);
    assert!(desk.text().contains("reviewer"));
    // Those who have ended are found, too.
    desk.press(":");
    desk.types("filter old");
    desk.press("Enter");
    assert!(desk.highlighted().contains("✓ old"));
}

#[test]
fn the_words_of_the_highlighted_agent_are_wanted_while_its_pane_is_open() {
    let mut desk = Desk::new(80, 20);
    desk.agents(team());
    assert_eq!(desk.press("p"), [BoardEffect::Peek(Some(agent(4)))]);
    assert_eq!(desk.press("Down"), [BoardEffect::Peek(None)]);
    assert_eq!(desk.press("Down"), [BoardEffect::Peek(Some(agent(1)))]);
    let peek = |agent, words: &str| BoardInput::Peek {
        agent,
        entries: Vec::new(),
        arriving: words.into(),
    };
    desk.input(peek(agent(4), "too late"));
    desk.input(peek(agent(1), "I wait for **three**\u{1b}[31m agents"));
    let text = desk.text();
    assert!(text.contains("I wait for three agents"), "{text}");
    assert!(!text.contains("too late"), "{text}");
    assert_eq!(desk.press("p"), [BoardEffect::Peek(None)]);
}

#[test]
fn a_tree_is_right_in_whichever_order_its_agents_come() {
    let mut all = team();
    all.push(below(3, at_work(7, "deep", Sign::Working)));
    let mut expected = Desk::new(80, 20);
    expected.agents(all.clone());
    expected.press("Home");
    for turn in 0..all.len() {
        let mut desk = Desk::new(80, 20);
        all.rotate_left(turn);
        for facts in &all {
            desk.agents(vec![facts.clone()]);
        }
        desk.press("Home");
        assert_eq!(desk.text(), expected.text());
        all.reverse();
    }
    // Two that name each other do not end in a circle.
    expected.agents(vec![below(7, at_work(2, "dev-1", Sign::Working))]);
    expected.gone(&[3]);
    expected.gone(&[2, 7]);
    assert!(!expected.text().contains("deep"));
}

#[test]
fn narrow_screens_keep_names() {
    for (columns, rows) in [(20, 5), (40, 12), (4, 1), (7, 2), (120, 40)] {
        let mut desk = Desk::new(columns, rows);
        desk.agents(team());
        let row = desk.highlighted();
        let name = if columns < 10 {
            "❯ ◐"
        } else {
            "❯ ◐ dev-2"
        };
        assert!(row.starts_with(name), "{row}");
        assert_eq!(desk.rows().len(), usize::from(rows));
    }
}
