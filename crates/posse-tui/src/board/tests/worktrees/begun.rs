//! Comments that were begun: none is lost, and each is found where it was begun.

use super::*;

/// Begins a comment at the cursor, and leaves it.
fn begin(desk: &mut Desk, words: &str) {
    desk.press("c");
    desk.types(words);
    desk.press("Esc");
}

/// Returns the foot while the comment at the cursor is written.
fn at_cursor(desk: &mut Desk) -> String {
    desk.press("c");
    let foot = desk.foot();
    desk.press("Esc");
    foot
}

/// Returns the review with its first change ten lines further down.
fn moved() -> BoardInput {
    let mut again = review();
    let hunk = &mut again.files[1].change.hunks[0];
    (hunk.old_start, hunk.new_start) = (50, 50);
    BoardInput::Review(Box::new(again))
}

#[test]
fn each_line_keeps_the_comment_that_was_begun_on_it() {
    let mut desk = open();
    desk.press("n");
    begin(&mut desk, "half of");
    desk.press("n");
    begin(&mut desk, "a quarter");
    desk.press("n c");
    desk.types("whole");
    desk.press("Enter");
    assert_eq!(desk.board.worktrees.unsent(), 3);
    desk.press("p");
    assert_eq!(at_cursor(&mut desk), "src/lexer.rs:91: a quarter");
    desk.press("p");
    assert_eq!(at_cursor(&mut desk), "src/lexer.rs:41 (removed): half of");
    // Another comment by its name does not replace it.
    desk.press(":");
    desk.types("comment another");
    desk.press("Enter");
    assert_eq!(desk.board.worktrees.unsent(), 4);
    assert_eq!(at_cursor(&mut desk), "src/lexer.rs:41 (removed): half of");
    // One that is finished was not begun any more; one that is emptied is gone.
    desk.press("c");
    desk.types(" it");
    desk.press("Enter");
    assert_eq!(at_cursor(&mut desk), "src/lexer.rs:41 (removed):");
    desk.press("n c");
    for _ in 0.."a quarter".len() {
        desk.press("Backspace");
    }
    desk.press("Esc");
    assert_eq!(desk.board.worktrees.unsent(), 3);
}

#[test]
fn a_comment_that_was_begun_is_not_sent_and_stays() {
    let mut desk = open();
    desk.press("n c");
    desk.types("whole");
    desk.press("Enter n");
    begin(&mut desk, "half of");
    let sent = desk.press("s");
    let [BoardEffect::SendReview(_, message)] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert!(message.contains("whole") && !message.contains("half of"));
    // What is written after it was sent was not sent, either.
    desk.press("n c");
    desk.types("later");
    desk.press("Enter p");
    desk.input(BoardInput::ReviewSent(agent(2)));
    assert_eq!(desk.board.worktrees.unsent(), 2);
    assert_eq!(at_cursor(&mut desk), "src/lexer.rs:91: half of");
    assert!(desk.text().contains("▌ later") && !desk.text().contains("▌ whole"));
    // Nothing is sent while all are begun only.
    desk.press("s");
    desk.input(BoardInput::ReviewSent(agent(2)));
    assert_eq!(desk.press("s"), []);
    assert_eq!(desk.foot(), "no comment is written: c writes one");
    assert_eq!(desk.board.worktrees.unsent(), 1);
}

#[test]
fn comments_that_were_begun_follow_their_lines() {
    let mut desk = open();
    desk.press("n");
    begin(&mut desk, "half of");
    desk.press("r");
    desk.input(moved());
    assert_eq!(desk.highlighted(), "❯   51 -    let n = a - b;");
    assert_eq!(at_cursor(&mut desk), "src/lexer.rs:51 (removed): half of");
    // The line is gone: the comment stands under its file.
    let mut again = review();
    again.files[1].change.hunks.remove(0);
    desk.press("r");
    desk.input(BoardInput::Review(Box::new(again)));
    assert_eq!(desk.board.worktrees.unsent(), 1);
    desk.press("Home Tab Down");
    assert_eq!(desk.highlighted(), "❯   ▌ begun: half of");
    assert_eq!(at_cursor(&mut desk), "src/lexer.rs:51 (removed): half of");
}

#[test]
fn a_comment_follows_its_line_while_it_is_written() {
    for is_new in [true, false] {
        let mut desk = open();
        desk.press("n");
        if !is_new {
            desk.press("c");
            desk.types("why");
            desk.press("Enter Down");
        }
        desk.press("r c");
        desk.types(" not");
        desk.input(moved());
        assert!(desk.foot().starts_with("src/lexer.rs:51 (removed):"));
        desk.press("Enter");
        assert_eq!(desk.board.worktrees.unsent(), 1, "{is_new}");
        let sent = format!("{:?}", desk.press("s"));
        assert!(sent.contains("src/lexer.rs:51 (removed)"), "{sent}");
        assert!(sent.contains(if is_new { "not" } else { "why not" }));
    }
}

#[test]
fn a_change_that_was_begun_belongs_to_its_comment() {
    let mut desk = open();
    desk.press("n c");
    desk.types("why");
    desk.press("Enter Down");
    begin(&mut desk, " not?");
    assert_eq!(desk.board.worktrees.unsent(), 1);
    let changed = "src/lexer.rs:41 (removed): why not?";
    assert_eq!(at_cursor(&mut desk), changed);
    desk.press("Up");
    assert_eq!(at_cursor(&mut desk), "src/lexer.rs:41 (removed):");
    // What was written is sent; the change stays.
    let sent = format!("{:?}", desk.press("s"));
    assert!(sent.contains("why") && !sent.contains("not?"), "{sent}");
    desk.input(BoardInput::ReviewSent(agent(2)));
    assert_eq!(desk.board.worktrees.unsent(), 1);
    assert_eq!(at_cursor(&mut desk), changed);
}

#[test]
fn what_is_asked_about_is_deleted_whatever_was_sent_meanwhile() {
    let mut desk = open();
    desk.press("n c");
    desk.types("a first one");
    desk.press("Enter s n c");
    desk.types("a second one");
    desk.press("Enter Down x");
    desk.input(BoardInput::ReviewSent(agent(2)));
    assert!(
        desk.foot()
            .starts_with("delete the comment “a second one”?")
    );
    desk.press("y");
    assert_eq!(desk.board.worktrees.unsent(), 0);
}
