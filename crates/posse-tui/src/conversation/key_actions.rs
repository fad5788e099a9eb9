//! What keys do in a conversation, and which chords may do it.

use crate::keymap::{Chord, KeyAction, KeyProblem, KeyTable};

/// Something that a key does. Each has a command, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyedAction {
    Newline,
    Later,
    History,
    Mode,
    Answer,
    Yes,
    No,
    Always,
    /// The main agent for 0, else the n-th of the others.
    Agent(u8),
    Board,
    Transcript,
    Background,
    StopAll,
    Image,
    Editor,
    Suspend,
    Quit,
    Keys,
}

impl KeyedAction {
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

impl KeyAction for KeyedAction {
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (Self::Newline, "newline", &["alt-enter", "ctrl-j"]),
        (Self::Later, "later", &["alt-q"]),
        (Self::History, "history", &["ctrl-r"]),
        (Self::Mode, "mode", &["shift-tab"]),
        (Self::Answer, "answer", &["tab"]),
        (Self::Yes, "yes", &["alt-y"]),
        (Self::No, "no", &["alt-n"]),
        (Self::Always, "always", &["alt-a"]),
        (Self::Agent(0), "agent-0", &["alt-0"]),
        (Self::Agent(1), "agent-1", &["alt-1"]),
        (Self::Agent(2), "agent-2", &["alt-2"]),
        (Self::Agent(3), "agent-3", &["alt-3"]),
        (Self::Agent(4), "agent-4", &["alt-4"]),
        (Self::Agent(5), "agent-5", &["alt-5"]),
        (Self::Agent(6), "agent-6", &["alt-6"]),
        (Self::Agent(7), "agent-7", &["alt-7"]),
        (Self::Agent(8), "agent-8", &["alt-8"]),
        (Self::Agent(9), "agent-9", &["alt-9"]),
        (Self::Board, "board", &["ctrl-\\"]),
        (Self::Transcript, "transcript", &["ctrl-o"]),
        (Self::Background, "bg", &["ctrl-b"]),
        (Self::StopAll, "stop-all", &["alt-x"]),
        (Self::Image, "image", &["ctrl-v"]),
        (Self::Editor, "editor", &["ctrl-g"]),
        (Self::Suspend, "suspend", &["ctrl-z"]),
        (Self::Quit, "quit", &["ctrl-d"]),
        (Self::Keys, "keys", &["?"]),
    ];

    fn refusal(self, chord: Chord) -> Option<&'static str> {
        let is_held = chord.is_held();
        match self {
            Self::Yes | Self::No | Self::Always => chord.refusal_to_answer(),
            Self::Keys if chord.is_character('?') => None,
            _ if is_held || chord.is_free_of_text() => None,
            _ => Some("it belongs to the prompt; use Ctrl, Alt or a function key"),
        }
    }

    fn may_share_chord_with(self, _: Self) -> bool {
        false
    }
}

/// Which keys do what in a conversation.
#[derive(Clone, Debug, Default)]
pub struct ConversationKeys(pub(super) KeyTable<KeyedAction>);

impl ConversationKeys {
    /// Returns the names of all actions.
    pub fn names() -> Vec<&'static str> {
        KeyTable::<KeyedAction>::names()
    }

    /// Gives an action these chords in place of those it has, and returns what of that does not hold.
    pub fn bind(&mut self, name: &str, chords: &[String]) -> Vec<KeyProblem> {
        self.0.bind(name, chords)
    }
}
