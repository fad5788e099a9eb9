//! Everything that a person can do on a board: each has keys, and a name that can be typed.

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
    Yes,
    No,
    Always,
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
    /// What it does.
    pub(super) about: &'static str,
}

const fn facts(action: Action, name: &'static str, about: &'static str) -> ActionFacts {
    ActionFacts {
        action,
        name,
        about,
    }
}

/// All actions, those that are needed most first.
pub(super) const ACTIONS: &[ActionFacts] = &[
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

/// Returns the actions that are worth a place at the foot of a screen, each with a short word.
pub(super) fn hints(screen: BoardScreen) -> &'static [(Action, &'static str)] {
    match screen {
        BoardScreen::Agents => &[
            (Action::Open, "open"),
            (Action::Peek, "peek"),
            (Action::Message, "message"),
            (Action::Interrupt, "interrupt"),
            (Action::Stop, "stop"),
            (Action::Filter, "filter"),
            (Action::NextAsking, "needs you"),
            (Action::Scope, "scope"),
            (Action::Palette, "type"),
        ],
        BoardScreen::Tasks => &[
            (Action::Open, "read"),
            (Action::AddTask, "add"),
            (Action::DeleteTask, "delete"),
            (Action::Palette, "type"),
        ],
        BoardScreen::Mail => &[
            (Action::Open, "read"),
            (Action::Message, "reply"),
            (Action::Palette, "type"),
        ],
        BoardScreen::Cost => &[(Action::Open, "open the agent"), (Action::Palette, "type")],
        BoardScreen::Questions => &[
            (Action::Open, "open"),
            (Action::Yes, "yes"),
            (Action::No, "no"),
            (Action::Always, "always"),
            (Action::Pager, "transcript"),
            (Action::Palette, "type"),
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
