//! Which chords do what on a board.

use super::BoardScreen;
use super::action::{Action, KeyPlace, WorktreeAction};
use super::review::ReviewStep;
use crate::keymap::{Chord, KeyAction, KeyProblem, KeyTable};

impl Action {
    /// Returns the places in which its keys do it; empty means everywhere.
    fn places(self) -> &'static [KeyPlace] {
        const WORKTREES: KeyPlace = KeyPlace::Screen(BoardScreen::Worktrees);
        match self {
            Self::AddTask | Self::DeleteTask => &[KeyPlace::Screen(BoardScreen::Tasks)],
            Self::Yes | Self::No | Self::Always => &[KeyPlace::Screen(BoardScreen::Questions)],
            Self::Worktree(WorktreeAction::Review | WorktreeAction::Discard) => &[WORKTREES],
            Self::Worktree(WorktreeAction::ReadAgain | WorktreeAction::Edit) => {
                &[WORKTREES, KeyPlace::Review]
            }
            Self::Worktree(_) => &[KeyPlace::Review],
            _ => &[],
        }
    }

    /// Returns true if its keys do it in this place.
    pub(super) fn is_on(self, place: KeyPlace) -> bool {
        self.places().is_empty() || self.places().contains(&place)
    }

    /// Returns the word that answers a question.
    pub(super) fn answer(self) -> Option<char> {
        match self {
            Self::Yes => Some('y'),
            Self::No => Some('n'),
            Self::Always => Some('a'),
            _ => None,
        }
    }
}

impl KeyAction for Action {
    // What is possible in some places only comes first.
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (Self::AddTask, "add", &["a"]),
        (Self::DeleteTask, "delete", &["d"]),
        (Self::Yes, "yes", &["alt-y"]),
        (Self::No, "no", &["alt-n"]),
        (Self::Always, "always", &["alt-a"]),
        (Self::Worktree(WorktreeAction::Review), "review", &["d"]),
        (Self::Worktree(WorktreeAction::Discard), "discard", &["x"]),
        (
            Self::Worktree(WorktreeAction::ReadAgain),
            "read-again",
            &["r"],
        ),
        (Self::Worktree(WorktreeAction::Edit), "edit", &["e"]),
        (Self::Worktree(WorktreeAction::Comment), "comment", &["c"]),
        (
            Self::Worktree(WorktreeAction::DeleteComment),
            "delete-comment",
            &["x"],
        ),
        (Self::Worktree(WorktreeAction::Send), "send", &["s"]),
        (
            Self::Worktree(WorktreeAction::Step(ReviewStep::NextHunk)),
            "next-change",
            &["n"],
        ),
        (
            Self::Worktree(WorktreeAction::Step(ReviewStep::PreviousHunk)),
            "previous-change",
            &["p"],
        ),
        (
            Self::Worktree(WorktreeAction::Step(ReviewStep::NextFile)),
            "next-file",
            &["N", "tab"],
        ),
        (
            Self::Worktree(WorktreeAction::Step(ReviewStep::PreviousFile)),
            "previous-file",
            &["P", "shift-tab"],
        ),
        (Self::Worktree(WorktreeAction::Close), "close", &["q"]),
        (Self::Open, "open", &["enter"]),
        (Self::Peek, "peek", &["p"]),
        (Self::Pager, "pager", &["o", "ctrl-o"]),
        (Self::Message, "message", &["m"]),
        (Self::Interrupt, "interrupt", &["i"]),
        (Self::Stop, "stop", &["x"]),
        (Self::Answer, "answer", &["a"]),
        (Self::NextAsking, "next", &["n"]),
        (Self::Filter, "filter", &["/"]),
        (Self::Scope, "scope", &["s"]),
        (Self::Fold, "fold", &["space"]),
        (Self::Show(BoardScreen::Agents), "agents", &["1"]),
        (Self::Show(BoardScreen::Tasks), "tasks", &["2"]),
        (Self::Show(BoardScreen::Mail), "mail", &["3"]),
        (Self::Show(BoardScreen::Cost), "cost", &["4"]),
        (Self::Show(BoardScreen::Questions), "questions", &["5"]),
        (Self::Show(BoardScreen::Worktrees), "worktrees", &["6"]),
        (Self::NextScreen, "next-screen", &["tab"]),
        (Self::PreviousScreen, "previous-screen", &["shift-tab"]),
        (Self::Up, "up", &["up", "k"]),
        (Self::Down, "down", &["down", "j"]),
        (Self::PageUp, "page-up", &["pageup"]),
        (Self::PageDown, "page-down", &["pagedown"]),
        (Self::Top, "top", &["home", "g"]),
        (Self::Bottom, "bottom", &["end", "G"]),
        (Self::Palette, "palette", &[":"]),
        (Self::Help, "help", &["?"]),
        (Self::Suspend, "suspend", &["ctrl-z"]),
        (Self::Leave, "quit", &["q", "esc", "ctrl-\\"]),
    ];

    fn refusal(self, chord: Chord) -> Option<&'static str> {
        self.answer().and_then(|_| chord.refusal_to_answer())
    }

    fn may_share_chord_with(self, other: Self) -> bool {
        let (own, others) = (self.places(), other.places());
        match own.is_empty() == others.is_empty() {
            // What is possible in some places only comes before what is possible in each.
            false => true,
            true => !own.is_empty() && !own.iter().any(|place| others.contains(place)),
        }
    }
}

/// Which keys do what on a board.
#[derive(Clone, Debug, Default)]
pub struct BoardKeys(pub(super) KeyTable<Action>);

impl BoardKeys {
    /// Returns the names of all actions.
    pub fn names() -> Vec<&'static str> {
        KeyTable::<Action>::names()
    }

    /// Gives an action these chords in place of those it has, and returns what of that does not hold.
    pub fn bind(&mut self, name: &str, chords: &[String]) -> Vec<KeyProblem> {
        self.0.bind(name, chords)
    }

    /// Returns the keys of an action for people; empty if it has none.
    pub(super) fn listed(&self, action: Action) -> String {
        let own = self.0.listed(action);
        match action {
            Action::Answer => {
                let answers = [Action::Yes, Action::No, Action::Always];
                let answers = answers
                    .into_iter()
                    .filter_map(|answer| self.0.first(answer));
                let answers: Vec<String> = answers.collect();
                let parts = [own, answers.join(" ")];
                let parts = parts.into_iter().filter(|part| !part.is_empty());
                parts.collect::<Vec<_>>().join("; ")
            }
            _ if own.is_empty() => own,
            Action::AddTask | Action::DeleteTask => format!("{own} (tasks)"),
            Action::Worktree(_) => match action.is_on(KeyPlace::Screen(BoardScreen::Worktrees)) {
                true => format!("{own} (worktrees)"),
                false => format!("{own} (review)"),
            },
            _ => own,
        }
    }
}
