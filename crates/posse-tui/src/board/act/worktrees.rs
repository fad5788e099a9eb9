//! What a person does with worktrees and in the review of one.

use posse_protocol::AgentId;

use super::confirm::{Confirm, DropReason};
use crate::board::action::{Action, WorktreeAction};
use crate::board::layout::{is_reviewing, list_height};
use crate::board::line::{FootLine, LineUse};
use crate::board::review::ReviewStep;
use crate::board::{Board, BoardEffect, BoardReview, BoardScreen};
use crate::text::one_line;

/// What is said while git is asked, which may take a while.
const READING: &str = "git is asked what differs…";

/// Does what an action stands for. `argument` is what was typed after its name.
pub(super) fn run(it: &mut Board, action: WorktreeAction, argument: &str) -> Vec<BoardEffect> {
    match action {
        WorktreeAction::Review => return review(it),
        WorktreeAction::ReadAgain if is_reviewing(it) => return review(it),
        WorktreeAction::ReadAgain => {
            if is_shown(it) {
                return vec![BoardEffect::ReadWorktrees];
            }
        }
        WorktreeAction::Discard => return discard(it),
        WorktreeAction::Edit => return edit(it),
        WorktreeAction::Comment => comment(it, argument),
        WorktreeAction::DeleteComment => delete_comment(it),
        WorktreeAction::Send => return send(it),
        WorktreeAction::Step(to) => step(it, to),
        WorktreeAction::Close => close(it),
    }
    Vec::new()
}

/// Opens what is highlighted: the review of a worktree, or a comment in it.
pub(super) fn open(it: &mut Board) -> Vec<BoardEffect> {
    if is_reviewing(it) {
        comment(it, "");
        return Vec::new();
    }
    review(it)
}

fn is_shown(it: &mut Board) -> bool {
    let is_shown = it.screen == BoardScreen::Worktrees;
    if !is_shown {
        it.notice = Some("choose a worktree on screen 6 first".to_owned());
    }
    is_shown
}

/// Returns the agent whose worktree is highlighted or reviewed.
fn target(it: &mut Board) -> Option<AgentId> {
    if !is_shown(it) {
        return None;
    }
    let target = it.worktrees.target();
    if target.is_none() {
        it.notice = Some("no worktree is highlighted".to_owned());
    }
    target
}

/// Asks for the review of the highlighted worktree, or to read the open one again.
fn review(it: &mut Board) -> Vec<BoardEffect> {
    let Some(agent) = target(it) else {
        return Vec::new();
    };
    it.worktrees.want(agent);
    it.notice = Some(READING.to_owned());
    vec![BoardEffect::ReadReview(agent)]
}

/// The review of a worktree was read.
pub(in crate::board) fn show_review(it: &mut Board, review: BoardReview) {
    it.worktrees.set_review(review);
    if let (Some(line), Some(review)) = (&mut it.line, &it.worktrees.review)
        && let LineUse::Comment(_, place) = &mut line.purpose
    {
        review.follow(place);
    }
    it.notice = it.notice.take().filter(|notice| notice != READING);
}

/// Asks what would be lost with the highlighted worktree.
fn discard(it: &mut Board) -> Vec<BoardEffect> {
    if is_reviewing(it) {
        it.notice = Some("close the review first".to_owned());
        return Vec::new();
    }
    let Some(agent) = target(it) else {
        return Vec::new();
    };
    it.notice = Some(READING.to_owned());
    vec![BoardEffect::ReadLoss(agent)]
}

/// It is known what would be lost with a worktree: asks whether it is to be discarded, if the person
/// is still there.
pub(in crate::board) fn ask_discard(
    it: &mut Board,
    agent: AgentId,
    loss: Option<String>,
    now_ms: i64,
) {
    let is_there = it.screen == BoardScreen::Worktrees
        && it.worktrees.review.is_none()
        && it.worktrees.target() == Some(agent);
    let is_busy = it.line.is_some() || it.confirm.is_some() || it.help.is_some();
    if is_there && !is_busy {
        it.confirm = Some(Confirm::Discard {
            agent,
            loss,
            asked_ms: now_ms,
        });
    }
}

fn edit(it: &mut Board) -> Vec<BoardEffect> {
    let Some(agent) = target(it) else {
        return Vec::new();
    };
    let open = it.worktrees.review.as_ref();
    let file = open.and_then(|review| review.highlighted_file());
    let file = file.map(|file| file.change.path.clone());
    let mut effects = vec![BoardEffect::Edit { agent, file }];
    if is_reviewing(it) {
        effects.extend(review(it));
    }
    effects
}

/// Says something to the highlighted line.
fn comment(it: &mut Board, words: &str) {
    if !in_review(it) {
        return;
    }
    let Some(review) = &mut it.worktrees.review else {
        return;
    };
    if !words.is_empty() && review.write_at_cursor(words) {
        return;
    }
    match review.comment_at_cursor() {
        Some((comment, place, begun)) => {
            let purpose = LineUse::Comment(comment, place);
            it.line = Some(FootLine::new(purpose, &begun));
        }
        None => it.notice = Some("there is nothing to comment on".to_owned()),
    }
}

/// Returns true if a review is on the screen, else says so.
fn in_review(it: &mut Board) -> bool {
    let is_there = is_reviewing(it);
    if !is_there {
        it.notice = Some("open the review of a worktree on screen 6 first".to_owned());
    }
    is_there
}

fn delete_comment(it: &mut Board) {
    if !in_review(it) {
        return;
    }
    let review = it.worktrees.review.as_ref();
    match review.and_then(|review| review.comment_below_cursor()) {
        Some(comment) => it.confirm = Some(Confirm::DeleteComment(comment)),
        None => it.notice = Some("no comment is highlighted".to_owned()),
    }
}

/// Sends all comments.
fn send(it: &mut Board) -> Vec<BoardEffect> {
    if !in_review(it) {
        return Vec::new();
    }
    let review = it.worktrees.review.as_mut();
    let message = review.and_then(|review| Some((review.agent(), review.message()?)));
    match message {
        Some((agent, words)) => vec![BoardEffect::SendReview(agent, words)],
        None => {
            let comment = Action::Worktree(WorktreeAction::Comment);
            let key = it.keys.0.first(comment);
            let key = key.as_deref().unwrap_or(":comment");
            it.notice = Some(format!("no comment is written: {key} writes one"));
            Vec::new()
        }
    }
}

fn step(it: &mut Board, to: ReviewStep) {
    if !in_review(it) {
        return;
    }
    let height = list_height(it);
    let review = it.worktrees.review.as_mut();
    if !review.is_some_and(|review| review.step(to, height)) {
        let what = match to {
            ReviewStep::NextHunk => "there is no change after this one",
            ReviewStep::PreviousHunk => "there is no change before this one",
            ReviewStep::NextFile => "there is no file after this one",
            ReviewStep::PreviousFile => "there is no file before this one",
        };
        it.notice = Some(what.to_owned());
    }
}

/// Closes the review; asks first if comments would be lost.
fn close(it: &mut Board) {
    if !in_review(it) {
        return;
    }
    match it.worktrees.unsent() {
        0 => it.worktrees.close(),
        _ => it.confirm = Some(Confirm::DropComments(DropReason::Close)),
    }
}

/// Holds back what would end the board while comments are not sent, and asks first.
pub(in crate::board) fn keep_comments(
    it: &mut Board,
    mut effects: Vec<BoardEffect>,
) -> Vec<BoardEffect> {
    let ends = |effect: &BoardEffect| matches!(effect, BoardEffect::Leave | BoardEffect::Open(_));
    if it.worktrees.unsent() > 0
        && let Some(at) = effects.iter().position(ends)
    {
        let effect = Box::new(effects.remove(at));
        it.confirm = Some(Confirm::DropComments(DropReason::Effect(effect)));
    }
    effects
}

/// Returns what a yes would do, if it is about worktrees.
pub(in crate::board) fn asked_about_worktrees(it: &Board, confirm: &Confirm) -> Option<String> {
    Some(match confirm {
        Confirm::Discard { agent, loss, .. } => {
            let name = super::name(it, *agent);
            match loss {
                Some(loss) => format!("discard {name}'s worktree with {}?", one_line(loss)),
                None => format!("discard {name}'s worktree, which holds nothing?"),
            }
        }
        Confirm::DeleteComment(comment) => {
            let review = it.worktrees.review.as_ref();
            let words = review.map(|review| one_line(review.words(*comment)));
            format!("delete the comment “{}”?", words.unwrap_or_default())
        }
        Confirm::DropComments(_) => match it.worktrees.unsent() {
            1 => "throw away 1 comment that is not sent?".to_owned(),
            count => format!("throw away {count} comments that are not sent?"),
        },
        Confirm::Stop { .. } | Confirm::DeleteTask { .. } => return None,
    })
}
