//! Everything that a person can do on a board: each has keys, and a name that can be typed.

mod list;

pub(super) use self::list::ACTIONS;
use super::BoardScreen;
use super::review::ReviewStep;
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
    Worktree(WorktreeAction),
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

/// Something that a person can do with worktrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WorktreeAction {
    Review,
    ReadAgain,
    Discard,
    Edit,
    Comment,
    DeleteComment,
    Send,
    Step(ReviewStep),
    Close,
}

/// Where a key is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyPlace {
    Screen(BoardScreen),
    /// In the review of a worktree.
    Review,
}

const NEXT_CHANGE: Action = Action::Worktree(WorktreeAction::Step(ReviewStep::NextHunk));
const NEXT_FILE: Action = Action::Worktree(WorktreeAction::Step(ReviewStep::NextFile));

/// What is known of an action.
pub(super) struct ActionFacts {
    pub(super) action: Action,
    /// What is typed.
    pub(super) name: &'static str,
    /// What it does.
    pub(super) about: &'static str,
}

/// Returns the actions that are worth a place at the foot, each with a short word.
pub(super) fn hints(place: KeyPlace) -> &'static [(Action, &'static str)] {
    let screen = match place {
        KeyPlace::Screen(screen) => screen,
        KeyPlace::Review => {
            return &[
                (Action::Worktree(WorktreeAction::Comment), "comment"),
                (Action::Worktree(WorktreeAction::Send), "send"),
                (NEXT_CHANGE, "next change"),
                (NEXT_FILE, "next file"),
                (Action::Worktree(WorktreeAction::Edit), "edit"),
                (Action::Worktree(WorktreeAction::Close), "back"),
                (Action::Palette, "type"),
            ];
        }
    };
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
        BoardScreen::Worktrees => &[
            (Action::Open, "review"),
            (Action::Message, "message"),
            (Action::Worktree(WorktreeAction::Discard), "discard"),
            (Action::Worktree(WorktreeAction::Edit), "edit"),
            (Action::Worktree(WorktreeAction::ReadAgain), "read again"),
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
