//! Which chords do what on a board.

use super::BoardScreen;
use super::action::Action;
use crate::keymap::{Chord, KeyAction, KeyProblem, KeyTable};

impl Action {
    /// Returns the only screen on which its keys do it; none if that is each.
    fn place(self) -> Option<BoardScreen> {
        match self {
            Self::AddTask | Self::DeleteTask => Some(BoardScreen::Tasks),
            Self::Yes | Self::No | Self::Always => Some(BoardScreen::Questions),
            _ => None,
        }
    }

    /// Returns true if its keys do it on this screen.
    pub(super) fn is_on(self, screen: BoardScreen) -> bool {
        self.place().is_none_or(|place| place == screen)
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
    // What is possible on one screen only comes first.
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (Self::AddTask, "add", &["a"]),
        (Self::DeleteTask, "delete", &["d"]),
        (Self::Yes, "yes", &["alt-y"]),
        (Self::No, "no", &["alt-n"]),
        (Self::Always, "always", &["alt-a"]),
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
        let is_answer = self.answer().is_some();
        // A key that was meant for something else must not answer.
        (is_answer && (!chord.is_held() || chord.is_enter()))
            .then_some("an answer needs Ctrl or Alt, and not Enter")
    }

    fn is_apart_from(self, other: Self) -> bool {
        self.place() != other.place()
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
            Action::AddTask | Action::DeleteTask if !own.is_empty() => format!("{own} (tasks)"),
            _ => own,
        }
    }
}
