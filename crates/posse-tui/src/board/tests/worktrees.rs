//! Worktrees: a list, and the review of one.

mod begun;
mod made;

use made::worktree;
pub(super) use made::{commented, listed, review, reviewed};

use super::*;

fn open() -> Desk {
    let mut desk = Desk::new(100, 24);
    desk.agents(team());
    reviewed(&mut desk);
    desk
}

const MESSAGE: &str = "I have reviewed the changes in your worktree (branch \
    posse/00000000-0000-0000-0000-000000000002, since 3f2a91c).\n\
    \nsrc/lexer.rs:41 (removed)\n> -    let n = a - b;\nwhy was it a minus?\n\
    \nsrc/lexer.rs:41\n> +    let n = a + b;\nuse checked_add\n\
    \nsrc/sign.rs\nneeds a test\n";

#[test]
fn each_has_what_is_known_of_it() {
    let mut desk = Desk::new(120, 20);
    desk.agents(team());
    listed(&mut desk);
    let text = desk.text();
    for words in [
        "[6]worktrees",
        "● dev-1",
        "live  2 commits · 3 files +6 −2",
        "clean",
        "○ old",
        "ended …",
        "git said: no",
        "since 3f2a91c on posse/0000",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // What is highlighted stays so, and what is known of the others is kept.
    desk.press("Down");
    assert!(desk.highlighted().contains("dev-2"));
    desk.input(BoardInput::Worktrees(vec![
        worktree(1, true),
        worktree(2, true),
        worktree(4, false),
    ]));
    assert!(desk.highlighted().contains("○ dev-2"));
    assert!(desk.text().contains("2 commits"));
    assert_eq!(
        desk.board.visible_worktrees(),
        [1, 2, 4].map(agent),
        "those on the screen are read"
    );
    desk.press("1");
    assert!(desk.board.visible_worktrees().is_empty());
    assert_eq!(desk.press("6 r"), [BoardEffect::ReadWorktrees]);
}

#[test]
fn a_review_is_walked_by_lines_changes_and_files() {
    let mut desk = open();
    let mut at = |keys: &str| {
        desk.press(keys);
        desk.highlighted()
    };
    assert_eq!(
        at(""),
        "❯ docs/picture.png  +0 −0 · not text, or too long to compare"
    );
    assert_eq!(at("n"), "❯   41 -    let n = a - b;");
    assert_eq!(at("n"), "❯   91 +    negate();");
    assert_eq!(at("n"), "❯    1 +pub fn negate() {}");
    assert_eq!(at("p p"), "❯   41 -    let n = a - b;");
    assert_eq!(at("j"), "❯   41 +    let n = a + b;");
    assert_eq!(at("P"), "❯ src/lexer.rs  +2 −1");
    assert_eq!(at("Tab"), "❯ src/sign.rs  new, 1 line");
    assert_eq!(at("Shift-Tab Shift-Tab"), at("Home"));
    assert_eq!(at("End"), "❯ … 2 more files");
    assert_eq!(at("k"), "❯ … 3 more lines");
    assert!(desk.press("N").is_empty());
    assert_eq!(desk.foot(), "there is no file after this one");
}

#[test]
fn the_highlighted_line_is_shown_in_full() {
    let mut desk = Desk::new(20, 8);
    desk.agents(team());
    reviewed(&mut desk);
    let mut long = review();
    long.files[1].change.hunks[0].lines[2].text = "    let number = first + second;".into();
    desk.press("r");
    desk.input(BoardInput::Review(Box::new(long)));
    desk.press("n j");
    assert_eq!(
        desk.rows()[2..7],
        [
            "    40  fn number()…",
            "    41 -    let n =…",
            "❯   41 +    let",
            "number = first +",
            "second;",
        ]
    );
    assert_eq!(desk.frame().caret.unwrap().y, 4);
}

// proves UI-19 (part: one message)
#[test]
fn comments_are_one_message_to_the_agent() {
    let mut desk = open();
    assert_eq!(desk.press("s"), []);
    assert_eq!(desk.foot(), "no comment is written: c writes one");
    commented(&mut desk);
    let text = desk.text();
    assert!(text.contains("dev-1 · 3 comments not sent"), "{text}");
    assert!(text.contains("▌ use checked_add"), "{text}");
    let sent = BoardEffect::SendReview(agent(2), MESSAGE.into());
    assert_eq!(desk.press("s"), std::slice::from_ref(&sent));
    // It may not have arrived.
    assert_eq!(desk.press("s"), [sent]);
    desk.input(BoardInput::ReviewSent(agent(4)));
    assert_eq!(desk.board.worktrees.unsent(), 3);
    desk.input(BoardInput::ReviewSent(agent(2)));
    assert_eq!(desk.board.worktrees.unsent(), 0);
    assert_eq!(desk.press("Esc"), []);
    assert!(desk.board.worktrees.review.is_none());
}

#[test]
fn comments_are_changed_and_deleted() {
    let mut desk = open();
    commented(&mut desk);
    desk.press("P n Down");
    assert_eq!(desk.highlighted(), "❯   ▌ why was it a minus?");
    desk.press("c");
    assert!(
        desk.foot()
            .starts_with("src/lexer.rs:41 (removed): why was")
    );
    desk.types(" Really.");
    desk.press("Enter");
    assert_eq!(desk.highlighted(), "❯   ▌ why was it a minus? Really.");
    desk.press("Up x");
    assert!(
        desk.foot()
            .starts_with("delete the comment “why was it a minus? Really.”?")
    );
    desk.press("n");
    assert_eq!(desk.board.worktrees.unsent(), 3);
    desk.press("x y");
    assert_eq!(desk.board.worktrees.unsent(), 2);
    desk.press("x");
    assert_eq!(desk.foot(), "no comment is highlighted");
}

#[test]
fn the_cursor_stays_where_a_comment_was_deleted() {
    let mut desk = open();
    commented(&mut desk);
    desk.press("P n Down");
    assert_eq!(desk.highlighted(), "❯   ▌ why was it a minus?");
    desk.press("x y");
    assert_eq!(desk.highlighted(), "❯   41 +    let n = a + b;");
}

// proves UI-19 (part: stray keys)
#[test]
fn comments_are_not_lost_by_a_stray_key() {
    let mut desk = open();
    commented(&mut desk);
    // Another screen does not close the review.
    desk.press("1 6");
    assert_eq!(desk.board.worktrees.unsent(), 3);
    let asks = "throw away 3 comments that are not sent? y yes · any other key no";
    for keys in ["Esc", "q", "Ctrl-c", "1 q", "1 Esc", "1 Ctrl-4", "1 Enter"] {
        desk.press("6");
        assert_eq!(desk.press(keys), [], "{keys}");
        assert_eq!(desk.foot(), asks, "{keys}");
        desk.press("n");
        assert_eq!(desk.board.worktrees.unsent(), 3, "{keys}");
    }
    desk.press("1 q");
    assert_eq!(desk.press("y"), [BoardEffect::Leave]);
    assert_eq!(desk.board.worktrees.unsent(), 0);

    // Neither is one that is begun.
    let mut desk = open();
    desk.press("n c");
    desk.types("half of");
    desk.press("Esc Down Down c");
    assert_eq!(desk.foot(), "src/lexer.rs:41:");
    desk.press("Esc Up c");
    assert_eq!(desk.foot(), "src/lexer.rs:41 (removed): half of");
    desk.press("Esc");
    desk.press("Esc");
    assert!(desk.foot().starts_with("throw away 1 comment"));
    desk.press("y");
    assert!(desk.board.worktrees.review.is_none());
}

// proves UI-19 (part: lines)
#[test]
fn comments_follow_their_lines_when_the_review_is_read_again() {
    let mut desk = open();
    commented(&mut desk);
    desk.press("P n Down Down");
    assert_eq!(desk.press("r"), [BoardEffect::ReadReview(agent(2))]);
    let mut again = review();
    let hunk = &mut again.files[1].change.hunks[0];
    (hunk.old_start, hunk.new_start) = (47, 50);
    hunk.lines.remove(1);
    again.files.remove(2);
    desk.input(BoardInput::Review(Box::new(again)));
    assert_eq!(desk.highlighted(), "❯   51 +    let n = a + b;");
    let message = |desk: &mut Desk| match &desk.press("s")[..] {
        [BoardEffect::SendReview(_, message)] => message.clone(),
        effects => panic!("{effects:?}"),
    };
    let sent = message(&mut desk);
    assert!(sent.contains("src/lexer.rs:51\n> +    let n = a + b;\nuse checked_add"));
    // Of lines and files that are gone, too.
    assert!(sent.contains("src/lexer.rs:41 (removed)\n") && sent.contains("src/sign.rs\n"));
    let rows = desk.rows();
    let row = |words: &str| rows.iter().position(|row| row.contains(words)).unwrap();
    assert_eq!(row("why was it a minus?"), row("src/lexer.rs") + 1);
    assert_eq!(row("needs a test"), row("… 2 more files") + 1);
}

#[test]
fn a_review_that_nobody_waits_for_is_not_opened() {
    let mut desk = Desk::new(100, 24);
    desk.agents(team());
    listed(&mut desk);
    desk.input(BoardInput::Review(Box::new(review())));
    assert!(desk.board.worktrees.review.is_none());
    desk.press("Down Enter");
    assert_eq!(desk.foot(), "git is asked what differs…");
    desk.input(BoardInput::Review(Box::new(review())));
    assert!(desk.board.worktrees.review.is_none(), "it is another's");
    let mut empty = review();
    (empty.files, empty.left_out) = (Vec::new(), 0);
    desk.press("Up d");
    desk.input(BoardInput::Review(Box::new(empty)));
    assert!(desk.text().contains("nothing differs from the base"));
    assert!(desk.foot().starts_with("c comment"), "{}", desk.foot());
    desk.press("c");
    assert_eq!(desk.foot(), "there is nothing to comment on");
}

// proves UI-19 (part: discarding)
#[test]
fn discarding_names_what_is_lost_and_asks() {
    let mut desk = Desk::new(100, 24);
    desk.agents(team());
    listed(&mut desk);
    let read = [BoardEffect::ReadLoss(agent(6))];
    assert_eq!(desk.press("Home Down Down x"), read);
    let loss = || BoardInput::Loss {
        agent: agent(6),
        loss: Some("1 commit, 2 uncommitted files (a.rs, b.rs)".into()),
    };
    desk.input(loss());
    let asked = "discard old's worktree with 1 commit, 2 uncommitted files (a.rs, b.rs)? y yes";
    assert!(desk.text().contains(asked), "{}", desk.text());
    // A key that was pressed before the question was there is no answer to it.
    assert_eq!(desk.press("y"), []);
    desk.settle();
    let discard = BoardEffect::Discard {
        agent: agent(6),
        loss: Some("1 commit, 2 uncommitted files (a.rs, b.rs)".into()),
    };
    assert_eq!(desk.press("y"), [discard]);
    // Who has gone elsewhere is not asked.
    desk.press("x Up");
    desk.input(loss());
    assert!(desk.board.confirm.is_none());
    desk.press("Down x 1");
    desk.input(loss());
    assert!(desk.board.confirm.is_none());
}

#[test]
fn the_editor_is_opened_for_the_worktree_or_a_file_of_it() {
    let mut desk = open();
    let edit = |file: Option<&str>| BoardEffect::Edit {
        agent: agent(2),
        file: file.map(str::to_owned),
    };
    let again = BoardEffect::ReadReview(agent(2));
    assert_eq!(
        desk.press("n e"),
        [edit(Some("src/lexer.rs")), again.clone()]
    );
    assert_eq!(desk.press("Esc e"), [edit(None)]);
    assert_eq!(desk.press("m"), []);
    assert!(desk.foot().starts_with("to dev-1:"));
    desk.press("Esc 1");
    assert_eq!(desk.press(":"), []);
    desk.types("edit");
    desk.press("Enter");
    assert_eq!(desk.foot(), "choose a worktree on screen 6 first");
}
