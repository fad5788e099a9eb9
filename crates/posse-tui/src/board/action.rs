//! Everything that a person can do on a board: each has keys, and a name that can be typed.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::BoardScreen;
use crate::edit::fuzzy;

/// Something that a person can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Open,
    Peek,
    Pager,
    Message,
    Interrupt,
    Stop,
    Answer,
    NextAsking,
    Filter,
    Scope,
    Fold,
    AddTask,
    DeleteTask,
    Show(BoardScreen),
    NextScreen,
    PreviousScreen,
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    Palette,
    Help,
    Suspend,
    Leave,
}

/// What is known of an action.
pub(super) struct ActionFacts {
    pub(super) action: Action,
    /// What is typed.
    pub(super) name: &'static str,
    /// Its keys, for people.
    pub(super) keys: &'static str,
    /// What it does.
    pub(super) about: &'static str,
}

const fn facts(
    action: Action,
    name: &'static str,
    keys: &'static str,
    about: &'static str,
) -> ActionFacts {
    ActionFacts {
        action,
        name,
        keys,
        about,
    }
}

/// All actions, those that are needed most first.
pub(super) const ACTIONS: &[ActionFacts] = &[
    facts(
        Action::Open,
        "open",
        "Enter",
        "open the conversation, the message, the task or the question",
    ),
    facts(Action::Peek, "peek", "p", "show what the agent says"),
    facts(
        Action::Pager,
        "pager",
        "o, Ctrl-O",
        "show the agent's whole transcript",
    ),
    facts(
        Action::Message,
        "message",
        "m",
        "write to the agent: message [TEXT]",
    ),
    facts(
        Action::Interrupt,
        "interrupt",
        "i",
        "interrupt the agent's run",
    ),
    facts(
        Action::Stop,
        "stop",
        "x",
        "stop the agent and all below it; asks first",
    ),
    facts(
        Action::Answer,
        "answer",
        "a; Alt-Y Alt-N Alt-A",
        "go to the agent's question; answer it: answer y",
    ),
    facts(
        Action::NextAsking,
        "next",
        "n",
        "highlight the next agent that needs you",
    ),
    facts(
        Action::Filter,
        "filter",
        "/",
        "show only agents that fit: filter [TEXT]",
    ),
    facts(
        Action::Scope,
        "scope",
        "s",
        "show more or fewer sessions: scope [session|directory|store]",
    ),
    facts(
        Action::Fold,
        "fold",
        "Space",
        "hide the agents of the section, or show them",
    ),
    facts(
        Action::AddTask,
        "add",
        "a (tasks)",
        "add a task to the list: add [TEXT]",
    ),
    facts(
        Action::DeleteTask,
        "delete",
        "d (tasks)",
        "delete the task; asks first",
    ),
    facts(
        Action::Show(BoardScreen::Agents),
        "agents",
        "1",
        "show the agents",
    ),
    facts(
        Action::Show(BoardScreen::Tasks),
        "tasks",
        "2",
        "show the tasks",
    ),
    facts(
        Action::Show(BoardScreen::Mail),
        "mail",
        "3",
        "show the messages",
    ),
    facts(
        Action::Show(BoardScreen::Cost),
        "cost",
        "4",
        "show what was spent",
    ),
    facts(
        Action::Show(BoardScreen::Questions),
        "questions",
        "5",
        "show the questions that wait",
    ),
    facts(
        Action::NextScreen,
        "next screen",
        "Tab",
        "show the next screen",
    ),
    facts(
        Action::PreviousScreen,
        "previous screen",
        "Shift-Tab",
        "show the screen before",
    ),
    facts(Action::Up, "up", "Up, k", "one line up"),
    facts(Action::Down, "down", "Down, j", "one line down"),
    facts(Action::PageUp, "page up", "PageUp", "one screen up"),
    facts(Action::PageDown, "page down", "PageDown", "one screen down"),
    facts(Action::Top, "top", "Home, g", "to the first line"),
    facts(Action::Bottom, "bottom", "End, G", "to the last line"),
    facts(Action::Palette, "palette", ":", "type what is to be done"),
    facts(Action::Help, "help", "?", "show all keys and names"),
    facts(Action::Suspend, "suspend", "Ctrl-Z", "leave to the shell"),
    facts(Action::Leave, "quit", "q, Esc, Ctrl-\\", "leave the board"),
];

/// Returns the action of a key on a screen.
pub(super) fn of_key(key: KeyEvent, screen: BoardScreen) -> Option<Action> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    if control {
        return match key.code {
            KeyCode::Char('o') => Some(Action::Pager),
            KeyCode::Char('z') => Some(Action::Suspend),
            // Terminals send Ctrl-\ as Ctrl-4.
            KeyCode::Char('\\' | '4') => Some(Action::Leave),
            _ => None,
        };
    }
    if alt {
        return None;
    }
    Some(match key.code {
        KeyCode::Enter => Action::Open,
        KeyCode::Up | KeyCode::Char('k') => Action::Up,
        KeyCode::Down | KeyCode::Char('j') => Action::Down,
        KeyCode::PageUp => Action::PageUp,
        KeyCode::PageDown => Action::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Action::Top,
        KeyCode::End | KeyCode::Char('G') => Action::Bottom,
        KeyCode::Tab => Action::NextScreen,
        KeyCode::BackTab => Action::PreviousScreen,
        KeyCode::Char('p') => Action::Peek,
        KeyCode::Char('o') => Action::Pager,
        KeyCode::Char('m') => Action::Message,
        KeyCode::Char('i') => Action::Interrupt,
        KeyCode::Char('x') => Action::Stop,
        KeyCode::Char('a') if screen == BoardScreen::Tasks => Action::AddTask,
        KeyCode::Char('d') if screen == BoardScreen::Tasks => Action::DeleteTask,
        KeyCode::Char('a') => Action::Answer,
        KeyCode::Char('n') => Action::NextAsking,
        KeyCode::Char('/') => Action::Filter,
        KeyCode::Char('s') => Action::Scope,
        KeyCode::Char(' ') => Action::Fold,
        KeyCode::Char(':') => Action::Palette,
        KeyCode::Char('?') => Action::Help,
        KeyCode::Char('q') => Action::Leave,
        KeyCode::Char(digit @ '1'..='5') => {
            let number = digit.to_digit(10)?.checked_sub(1)? as usize;
            Action::Show(*BoardScreen::ALL.get(number)?)
        }
        _ => return None,
    })
}

/// Returns the actions that are worth a place at the foot of a screen, each with a short word.
pub(super) fn hints(screen: BoardScreen) -> &'static [(&'static str, &'static str)] {
    match screen {
        BoardScreen::Agents => &[
            ("Enter", "open"),
            ("p", "peek"),
            ("m", "message"),
            ("i", "interrupt"),
            ("x", "stop"),
            ("/", "filter"),
            ("n", "needs you"),
            ("s", "scope"),
            (":", "type"),
        ],
        BoardScreen::Tasks => &[
            ("Enter", "read"),
            ("a", "add"),
            ("d", "delete"),
            (":", "type"),
        ],
        BoardScreen::Mail => &[("Enter", "read"), ("m", "reply"), (":", "type")],
        BoardScreen::Cost => &[("Enter", "open the agent"), (":", "type")],
        BoardScreen::Questions => &[
            ("Enter", "open"),
            ("Alt-Y", "yes"),
            ("Alt-N", "no"),
            ("Alt-A", "always"),
            ("o", "transcript"),
            (":", "type"),
        ],
    }
}

/// Returns the actions whose names fit what is typed, best first, and what is typed after the name.
pub(super) fn fitting(typed: &str) -> (Vec<&'static ActionFacts>, &str) {
    let typed = typed.trim_start();
    // Of names that begin alike, the longest.
    let whole = ACTIONS.iter().filter(|it| rest(typed, it.name).is_some());
    if let Some(whole) = whole.max_by_key(|it| it.name.len()) {
        let argument = rest(typed, whole.name).unwrap_or_default();
        if !argument.is_empty() || typed.ends_with(' ') {
            return (vec![whole], argument.trim());
        }
    }
    let word = typed.trim_end();
    let names: Vec<&str> = ACTIONS.iter().map(|it| it.name).collect();
    let best = match word {
        "" => (0..names.len()).collect(),
        word => fuzzy::best(word, &names, names.len()),
    };
    let mut found: Vec<_> = best.into_iter().filter_map(|at| ACTIONS.get(at)).collect();
    found.sort_by_key(|it| it.name != word);
    if found.is_empty()
        && let Some((first, argument)) = word.split_once(' ')
    {
        // `sc store`: a part of a name is enough.
        let best = fuzzy::best(first, &names, 1);
        found.extend(best.into_iter().filter_map(|at| ACTIONS.get(at)));
        return (found, argument.trim());
    }
    (found, "")
}

/// Returns what follows a name.
fn rest<'a>(typed: &'a str, name: &str) -> Option<&'a str> {
    let rest = typed.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(' ')).then_some(rest)
}
