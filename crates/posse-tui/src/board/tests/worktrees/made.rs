//! Hand-made worktrees and a review.

use posse_protocol::{DiffLine, FileDiff, Hunk, LineChange};

use super::*;

pub(super) fn worktree(number: u128, is_live: bool) -> BoardWorktree {
    BoardWorktree {
        agent: agent(number),
        branch: format!("posse/{}", agent(number)),
        base: "3f2a91c0d1e2f3a4b5c6d7e8f9a0b1c2d3e4f5a6".into(),
        is_live,
    }
}

/// Shows the list of worktrees.
pub(in crate::board::tests) fn listed(desk: &mut Desk) {
    desk.press("6");
    let all = [(2, true), (4, true), (6, false), (8, false)];
    let all = all.map(|(number, is_live)| worktree(number, is_live));
    desk.input(BoardInput::Worktrees(all.into()));
    let read = |commits, files, added, removed| WorktreeChanges::Read {
        commits,
        files,
        added,
        removed,
    };
    desk.input(BoardInput::WorktreeChanges(vec![
        (agent(2), read(2, 3, 6, 2)),
        (agent(4), read(0, 0, 0, 0)),
        (agent(8), WorktreeChanges::Unreadable("git said: no".into())),
    ]));
}

fn line(change: LineChange, text: &str) -> DiffLine {
    DiffLine {
        change,
        text: text.into(),
        is_open: false,
    }
}

fn file(path: &str, hunks: Vec<(u64, Vec<DiffLine>)>) -> ReviewFile {
    let lines = || hunks.iter().flat_map(|(_, lines)| lines);
    let count = |change| lines().filter(|it| it.change == change).count() as u64;
    let (added, removed) = (count(LineChange::Added), count(LineChange::Removed));
    let hunk = |(start, lines)| Hunk {
        old_start: start,
        new_start: start,
        lines,
    };
    ReviewFile {
        change: FileDiff {
            path: path.into(),
            is_new: false,
            added,
            removed,
            hunks: hunks.into_iter().map(hunk).collect(),
            left_out: 0,
        },
        note: None,
    }
}

/// Three files: two changes in one, one in another, and something that is not text.
pub(in crate::board::tests) fn review() -> BoardReview {
    use LineChange::{Added, Kept, Removed};
    let lexer = file(
        "src/lexer.rs",
        vec![
            (
                40,
                vec![
                    line(Kept, "fn number() {"),
                    line(Removed, "    let n = a - b;"),
                    line(Added, "    let n = a + b;"),
                    line(Kept, "}"),
                ],
            ),
            (
                90,
                vec![line(Kept, "fn sign() {"), line(Added, "    negate();")],
            ),
        ],
    );
    let mut new = file(
        "src/sign.rs",
        vec![(1, vec![line(Added, "pub fn negate() {}")])],
    );
    new.change.is_new = true;
    new.change.left_out = 3;
    let mut picture = file("docs/picture.png", Vec::new());
    picture.note = Some("not text, or too long to compare".into());
    let BoardWorktree {
        agent,
        branch,
        base,
        ..
    } = worktree(2, true);
    BoardReview {
        agent,
        branch,
        base,
        files: vec![picture, lexer, new],
        left_out: 2,
    }
}

/// Opens the review of the first worktree.
pub(in crate::board::tests) fn reviewed(desk: &mut Desk) {
    listed(desk);
    assert_eq!(
        desk.press("Home Enter"),
        [BoardEffect::ReadReview(agent(2))]
    );
    desk.input(BoardInput::Review(Box::new(review())));
}

/// Writes comments on two lines and a file.
pub(in crate::board::tests) fn commented(desk: &mut Desk) {
    desk.press("n c");
    desk.types("why was it a minus?");
    desk.press("Enter Down Down c");
    desk.types("use checked_add");
    desk.press("Enter Tab c");
    desk.types("needs a test");
    desk.press("Enter");
}
