//! All actions with their names.

use super::{Action, ActionFacts, WorktreeAction};
use crate::board::BoardScreen;
use crate::board::review::ReviewStep;

const fn facts(action: Action, name: &'static str, about: &'static str) -> ActionFacts {
    ActionFacts {
        action,
        name,
        about,
    }
}

const fn worktree(action: WorktreeAction, name: &'static str, about: &'static str) -> ActionFacts {
    facts(Action::Worktree(action), name, about)
}

/// All actions, those that are needed most first.
pub(in crate::board) const ACTIONS: &[ActionFacts] = &[
    facts(
        Action::Open,
        "open",
        "open the conversation, the message, the task or the question",
    ),
    facts(Action::Peek, "peek", "show what the agent says"),
    facts(Action::Pager, "pager", "show the agent's whole transcript"),
    facts(
        Action::Message,
        "message",
        "write to the agent: message [TEXT]",
    ),
    facts(Action::Interrupt, "interrupt", "interrupt the agent's run"),
    facts(
        Action::Stop,
        "stop",
        "stop the agent and all below it; asks first",
    ),
    facts(
        Action::Answer,
        "answer",
        "go to the agent's question; answer it: answer y",
    ),
    facts(
        Action::NextAsking,
        "next",
        "highlight the next agent that needs you",
    ),
    facts(
        Action::Filter,
        "filter",
        "show only agents that fit: filter [TEXT]",
    ),
    facts(
        Action::Scope,
        "scope",
        "show more or fewer sessions: scope [session|directory|store]",
    ),
    facts(
        Action::Fold,
        "fold",
        "hide the agents of the section, or show them",
    ),
    facts(Action::AddTask, "add", "add a task to the list: add [TEXT]"),
    facts(Action::DeleteTask, "delete", "delete the task; asks first"),
    worktree(
        WorktreeAction::Review,
        "review",
        "show what differs in the worktree, and comment on it",
    ),
    worktree(
        WorktreeAction::Comment,
        "comment",
        "say something to the line, or change what you said: comment [TEXT]",
    ),
    worktree(
        WorktreeAction::Send,
        "send",
        "send all comments to the agent, as one message",
    ),
    worktree(
        WorktreeAction::DeleteComment,
        "delete comment",
        "delete the comment; asks first",
    ),
    worktree(
        WorktreeAction::Step(ReviewStep::NextHunk),
        "next change",
        "to the next change",
    ),
    worktree(
        WorktreeAction::Step(ReviewStep::PreviousHunk),
        "previous change",
        "to the change before",
    ),
    worktree(
        WorktreeAction::Step(ReviewStep::NextFile),
        "next file",
        "to the next file",
    ),
    worktree(
        WorktreeAction::Step(ReviewStep::PreviousFile),
        "previous file",
        "to the file before",
    ),
    worktree(
        WorktreeAction::Close,
        "close",
        "close the review; asks if comments are not sent",
    ),
    worktree(
        WorktreeAction::Discard,
        "discard",
        "delete the worktree and all work in it; asks first",
    ),
    worktree(
        WorktreeAction::Edit,
        "edit",
        "open the worktree, or the file, in $EDITOR",
    ),
    worktree(
        WorktreeAction::ReadAgain,
        "read again",
        "ask git again what differs",
    ),
    facts(
        Action::Show(BoardScreen::Agents),
        "agents",
        "show the agents",
    ),
    facts(Action::Show(BoardScreen::Tasks), "tasks", "show the tasks"),
    facts(Action::Show(BoardScreen::Mail), "mail", "show the messages"),
    facts(
        Action::Show(BoardScreen::Cost),
        "cost",
        "show what was spent",
    ),
    facts(
        Action::Show(BoardScreen::Questions),
        "questions",
        "show the questions that wait",
    ),
    facts(
        Action::Show(BoardScreen::Worktrees),
        "worktrees",
        "show the worktrees",
    ),
    facts(Action::NextScreen, "next screen", "show the next screen"),
    facts(
        Action::PreviousScreen,
        "previous screen",
        "show the screen before",
    ),
    facts(Action::Up, "up", "one line up"),
    facts(Action::Down, "down", "one line down"),
    facts(Action::PageUp, "page up", "one screen up"),
    facts(Action::PageDown, "page down", "one screen down"),
    facts(Action::Top, "top", "to the first line"),
    facts(Action::Bottom, "bottom", "to the last line"),
    facts(Action::Palette, "palette", "type what is to be done"),
    facts(Action::Help, "help", "show all keys and names"),
    facts(Action::Suspend, "suspend", "leave to the shell"),
    facts(Action::Leave, "quit", "leave the board"),
];
