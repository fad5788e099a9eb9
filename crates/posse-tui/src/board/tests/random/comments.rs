//! What a person has written in a review, and what may take it away.

use super::*;
use crate::board::line::LineUse;
use crate::board::review::{Comment, ReviewRow};

/// What is written in a review, and what the person was about to do, before an input.
pub(super) struct WrittenComments {
    comments: Vec<Comment>,
    line: Option<(LineUse, String)>,
    confirm: Option<Confirm>,
}

impl WrittenComments {
    pub(super) fn of(board: &Board) -> Self {
        let line = board.line.as_ref();
        Self {
            comments: comments(board).to_vec(),
            line: line.map(|line| (line.purpose.clone(), line.text.expanded())),
            confirm: board.confirm.clone(),
        }
    }

    /// Checks what is left after an input. `sent` is the last message that a review became.
    pub(super) fn check(&self, input: &BoardInput, sent: &str, board: &Board) {
        let after = comments(board);
        for comment in &self.comments {
            let now = after.iter().find(|it| it.id == comment.id);
            let has_words = now.is_some_and(|it| it.words == comment.words);
            let has_words = has_words || comment.words.is_empty();
            let has_begun = now.is_some_and(|it| it.begun == comment.begun);
            let has_begun = has_begun || comment.begun.is_none();
            let may_be_lost = match input {
                BoardInput::ReviewSent(_) => has_begun && sent.contains(&comment.words),
                BoardInput::Key(key) => self.may_end(comment, *key, has_begun),
                _ => false,
            };
            let is_kept = has_words && has_begun;
            assert!(is_kept || may_be_lost, "{comment:?} is lost by {input:?}");
        }
        if let BoardInput::Key(key) = input {
            self.check_written(*key, board);
        }
        for comment in after {
            let is_it = |row: &ReviewRow| matches!(row, ReviewRow::Comment { comment: it, .. } if *it == comment.id);
            let rows = board.worktrees.review.as_ref().map(|it| it.rows());
            assert!(rows.unwrap().iter().any(is_it), "{comment:?} is not shown");
            if let Some(LineUse::Comment(id, place)) = board.line.as_ref().map(|it| &it.purpose) {
                assert!(*id != comment.id || *place == comment.place, "{place:?}");
            }
        }
    }

    /// Returns true if a person may take away by this key what they wrote.
    fn may_end(&self, comment: &Comment, key: KeyEvent, has_begun: bool) -> bool {
        let is_yes = key == named("y");
        let ends = matches!(key.code, KeyCode::Enter | KeyCode::Esc) || key == named("Ctrl-c");
        match (&self.confirm, &self.line) {
            (Some(Confirm::DeleteComment(asked)), _) => is_yes && *asked == comment.id,
            (Some(Confirm::DropComments(_)), _) => is_yes,
            (None, Some((LineUse::Comment(id, _), _))) => ends && *id == comment.id,
            (None, Some((LineUse::Palette, _))) => has_begun && key.code == KeyCode::Enter,
            _ => false,
        }
    }

    /// Checks that what was written in the line is there when the line is closed.
    fn check_written(&self, key: KeyEvent, board: &Board) {
        let Some((LineUse::Comment(id, _), text)) = &self.line else {
            return;
        };
        if board.line.is_some() || text.trim().is_empty() {
            return;
        }
        let comment = comments(board).iter().find(|it| it.id == *id).unwrap();
        if key.code == KeyCode::Enter {
            assert_eq!((&comment.words[..], &comment.begun), (text.trim(), &None));
        } else {
            assert_eq!(comment.begun.as_ref().unwrap_or(&comment.words), text);
        }
    }
}

fn comments(board: &Board) -> &[Comment] {
    board
        .worktrees
        .review
        .as_ref()
        .map_or(&[], |it| it.comments())
}

/// The review of the second agent, with changes at other lines than before, or without some.
fn read_again() -> impl Strategy<Value = BoardInput> {
    (0..4u64, 1..4usize, any::<bool>()).prop_map(|(lines, files, has_first)| {
        let mut review = worktrees::review();
        let hunks = &mut review.files[1].change.hunks;
        for hunk in hunks.iter_mut() {
            hunk.old_start += lines;
            hunk.new_start += lines;
        }
        hunks.drain(..usize::from(!has_first));
        review.files.truncate(files);
        BoardInput::Review(Box::new(review))
    })
}

fn inputs() -> impl Strategy<Value = Vec<BoardInput>> {
    const NAMES: &str = "c c c c c Enter Enter Esc Esc Esc a b Backspace Backspace Up Down Down n n p Tab \
        Home r r s x x y 1 6 : Ctrl-c";
    let names: Vec<&str> = NAMES.split_whitespace().collect();
    let input = prop_oneof![
        40 => select(names).prop_map(|name| BoardInput::Key(named(name))),
        4 => read_again(),
        1 => Just(BoardInput::Paste("comment by name".into())),
        1 => Just(BoardInput::ReviewSent(agent(2))),
    ];
    prop::collection::vec(input, STEPS)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    // proves UI-19 (part: stray keys)
    #[test]
    fn no_comment_is_lost_by_any_keys(inputs in inputs()) {
        let mut twins = Twins::new();
        for desk in [&mut twins.desk, &mut twins.twin] {
            desk.agents(team());
            worktrees::reviewed(desk);
        }
        for (number, input) in inputs.iter().enumerate() {
            if twins.desk.board.worktrees.review.is_none() {
                break;
            }
            twins.step(1, input, number % 20 == 0);
        }
    }
}
