//! The screens of worktrees.

use super::scenes::busy;
use super::*;
use crate::board::tests::worktrees;

/// Shows a text at every place of worktrees.
pub(super) fn everything(desk: &mut Desk, text: &str) {
    let mut review = worktrees::review();
    review.branch = text.into();
    review.base = text.into();
    for file in &mut review.files {
        file.change.path = format!("{text}{}", file.change.path);
        file.note = Some(text.into());
        let lines = file
            .change
            .hunks
            .iter_mut()
            .flat_map(|hunk| &mut hunk.lines);
        lines.for_each(|line| line.text = text.into());
    }
    desk.input(BoardInput::Worktrees(vec![BoardWorktree {
        agent: agent(2),
        branch: text.into(),
        base: text.into(),
        is_live: true,
    }]));
    let unreadable = WorktreeChanges::Unreadable(text.into());
    desk.input(BoardInput::WorktreeChanges(vec![(agent(2), unreadable)]));
    desk.press("6 Enter");
    desk.input(BoardInput::Review(Box::new(review)));
    desk.press("n c");
    desk.input(BoardInput::Paste(text.into()));
    desk.press("Enter 1");
}

#[test]
fn worktrees_screen() {
    check("worktrees", |desk| {
        busy(desk);
        worktrees::listed(desk);
    });
}

#[test]
fn a_review() {
    check("review", |desk| {
        busy(desk);
        worktrees::reviewed(desk);
        worktrees::commented(desk);
        desk.press("P n Down");
    });
}

#[test]
fn a_comment() {
    check("comment", |desk| {
        busy(desk);
        worktrees::reviewed(desk);
        desk.press("n c");
        desk.types("why was it a minus, and what do the tests say to that?");
    });
}

#[test]
fn a_worktree_is_discarded() {
    check("discard", |desk| {
        busy(desk);
        worktrees::listed(desk);
        desk.press("Home Down Down x");
        desk.input(BoardInput::Loss {
            agent: agent(6),
            loss: Some("1 commit, 2 uncommitted files (a.rs, b.rs)".into()),
        });
    });
}
