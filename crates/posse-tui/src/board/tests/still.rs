//! A list does not move under the cursor while it changes by itself.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::board::agents::AgentLine;

/// What happens to a list.
#[derive(Clone, Debug)]
enum Change {
    Update(Vec<BoardAgent>, Vec<AgentId>),
    Keys(&'static str),
    Filter(&'static str),
}

fn facts() -> impl Strategy<Value = BoardAgent> {
    let signs = vec![
        Sign::Working,
        Sign::Working,
        Sign::Asks,
        Sign::Waits,
        Sign::Idle,
        Sign::Failed,
        Sign::Done,
    ];
    (1..60u128, 0..60u128, 1..4u128, select(signs)).prop_map(|(number, parent, session, sign)| {
        let mut facts = at_work(number, &format!("agent-{number}"), sign);
        facts.session = agent(session);
        // Also agents that are not there, younger ones, and circles.
        facts.parent = (parent > 0).then(|| agent(parent));
        facts
    })
}

fn change() -> impl Strategy<Value = Change> {
    let gone = prop::collection::vec((1..60u128).prop_map(agent), 0..4);
    let keys = select(vec![
        "Down",
        "Down Down Down",
        "Up",
        "PageDown",
        "PageUp",
        "End",
        "Home",
        "Space",
        "n",
        "Up Space",
    ]);
    prop_oneof![
        8 => (prop::collection::vec(facts(), 0..12), gone)
            .prop_map(|(changed, gone)| Change::Update(changed, gone)),
        4 => keys.prop_map(Change::Keys),
        1 => select(vec!["", "agent-1", "2"]).prop_map(Change::Filter),
    ]
}

/// Returns the row of the screen on which something is highlighted.
fn screen_row(desk: &mut Desk) -> Option<usize> {
    desk.rows().iter().position(|row| row.starts_with('❯'))
}

/// Agents come, change and go: what is highlighted stays, and stays on its row. If all of them fit
/// on the screen, all are there.
fn check_update(desk: &mut Desk, changed: Vec<BoardAgent>, gone: Vec<AgentId>) {
    let key = desk.board.agents.cursor().key().copied();
    let row = screen_row(desk);
    desk.input(BoardInput::Agents { changed, gone });
    desk.board.agents.tree.check();
    let after = desk.board.agents.cursor().key().copied();
    let new_row = screen_row(desk);
    let Some(key) = key else {
        return;
    };
    let is_there = match key {
        AgentLine::Agent(agent) => {
            let row = desk.board.agents.tree.get(agent);
            row.is_some_and(|row| {
                let rows = desk.board.agents.tree.rows(row.section());
                rows.shown().contains(&row.path)
            })
        }
        AgentLine::Title(section) => !desk.board.agents.tree.rows(section).shown().is_empty(),
    };
    if !is_there {
        let is_empty = desk.board.agents.lines() == 0;
        assert!(after.is_some() || is_empty, "the neighbour takes over");
        return;
    }
    assert_eq!(after, Some(key));
    // The head is the first row, and the foot the last one.
    let rows = desk.rows().len() - 2;
    let most = desk.board.agents.cursor().at() + 1;
    match desk.board.agents.lines() <= rows {
        true => assert_eq!(new_row, Some(most)),
        false => assert_eq!(new_row, row.map(|row| row.min(most))),
    }
}

fn check_cursor(desk: &mut Desk) {
    let agents = &desk.board.agents;
    let cursor = agents.cursor();
    assert_eq!(cursor.key().copied(), agents.line(cursor.at()));
    let is_empty = agents.lines() == 0;
    assert_eq!(screen_row(desk).is_none(), is_empty);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // proves UI-16
    #[test]
    fn the_list_does_not_move_under_the_cursor(
        rows in 4..20u16,
        changes in prop::collection::vec(change(), 1..40),
    ) {
        let mut desk = Desk::new(60, rows);
        for change in changes {
            match change {
                Change::Update(changed, gone) => check_update(&mut desk, changed, gone),
                Change::Keys(keys) => {
                    desk.press(keys);
                }
                Change::Filter(words) => desk.board.agents.set_filter(words),
            }
            check_cursor(&mut desk);
        }
    }
}

#[test]
fn other_lists_do_not_move_under_the_cursor() {
    let mail = |number: u128| BoardMail {
        id: uuid::Uuid::from_u128(number).into(),
        from: posse_protocol::Sender::User,
        to: agent(1),
        to_name: "main".into(),
        kind: posse_protocol::MailKind::Text,
        summary: format!("letter {number}"),
        body: String::new(),
        at_ms: 0,
        is_waiting: false,
    };
    let mut desk = Desk::new(60, 10);
    desk.press("3");
    desk.input(BoardInput::Mail((10..20).rev().map(mail).collect()));
    desk.press("Down Down Down");
    let row = screen_row(&mut desk);
    assert!(desk.highlighted().contains("letter 16"));
    desk.input(BoardInput::Mail((13..25).rev().map(mail).collect()));
    assert!(desk.highlighted().contains("letter 16"));
    assert_eq!(screen_row(&mut desk), row);
    let without = (13..25).rev().filter(|number| *number != 16);
    desk.input(BoardInput::Mail(without.map(mail).collect()));
    assert!(desk.highlighted().contains("letter 15"));
    assert_eq!(screen_row(&mut desk), row);
}

#[test]
fn rows_that_come_are_filled() {
    let mut desk = Desk::new(60, 8);
    desk.agents(
        (1..30)
            .map(|number| at_work(number, "a", Sign::Idle))
            .collect(),
    );
    desk.press("End");
    desk.input(BoardInput::Size(Size {
        columns: 60,
        rows: 40,
    }));
    let shown = desk.rows().iter().filter(|row| row.contains("○ a")).count();
    assert_eq!(shown, 29);
    desk.input(BoardInput::Size(Size {
        columns: 60,
        rows: 8,
    }));
    desk.press("p");
    assert_ne!(desk.highlighted(), "");
    desk.press("p");
    let shown = desk.rows().iter().filter(|row| row.contains("○ a")).count();
    assert_eq!(shown, 6);
}
