//! The menu under the prompt: commands after a slash, files and agents after an at sign.

use std::ops::Range;

use posse_protocol::{Command, ListKind};

use super::help::COMMANDS;
use super::{Conversation, Effect};
use crate::edit::complete::{self, Target};
use crate::edit::fuzzy;

/// Number of rows that are shown.
pub(crate) const ROWS: usize = 6;
/// Number of names that are kept.
const MOST: usize = 200;

/// A menu of names for what is being typed.
pub(crate) struct Menu {
    /// What the name replaces in the draft.
    range: Range<usize>,
    /// What was typed of it.
    part: String,
    is_command: bool,
    files: Vec<(String, String)>,
    agents: Vec<(String, String)>,
    /// The names that fit, best first, each with what it is.
    pub(crate) items: Vec<(String, String)>,
    pub(crate) chosen: usize,
}

impl Menu {
    /// Names have come.
    pub(super) fn listed(&mut self, what: ListKind, part: &str, names: Vec<(String, String)>) {
        if self.is_command || part != self.part {
            return;
        }
        match what {
            ListKind::Files => self.files = names,
            ListKind::Agents => self.agents = names,
            ListKind::Commands => return,
        }
        let agents = self.agents.iter().map(|(name, about)| {
            let about = format!("agent · {about}");
            (format!("agent-{name}"), about)
        });
        let all: Vec<_> = agents.chain(self.files.iter().cloned()).collect();
        self.items = fitting(&self.part, all);
        self.chosen = self.chosen.min(self.items.len().saturating_sub(1));
    }

    /// Moves the choice.
    pub(super) fn step(&mut self, down: bool) {
        let count = self.items.len().max(1);
        self.chosen = match down {
            true => (self.chosen + 1) % count,
            false => (self.chosen + count - 1) % count,
        };
    }
}

/// Opens, changes or closes the menu, after the draft has changed. Returns lists to ask for.
pub(super) fn refresh(it: &mut Conversation) -> Vec<Effect> {
    let text = it.draft.text().to_owned();
    let Some((target, range)) = complete::target(&text, it.draft.cursor()) else {
        it.menu = None;
        return Vec::new();
    };
    let (part, is_command) = match target {
        Target::Command(part) => (part.to_owned(), true),
        Target::Mention(part) => (part.to_owned(), false),
    };
    if let Some(menu) = &mut it.menu
        && menu.part == part
        && menu.is_command == is_command
    {
        menu.range = range;
        return Vec::new();
    }
    let old = it
        .menu
        .take()
        .filter(|menu| !menu.is_command && !is_command);
    let items = match is_command {
        true => fitting(&part, commands(it)),
        false => old.map_or_else(Vec::new, |menu| fitting(&part, menu.items)),
    };
    it.menu = Some(Menu {
        range,
        part: part.clone(),
        is_command,
        files: Vec::new(),
        agents: Vec::new(),
        items,
        chosen: 0,
    });
    if is_command {
        return Vec::new();
    }
    [ListKind::Files, ListKind::Agents]
        .map(|what| {
            it.to_shown(Command::List {
                what,
                part: part.clone(),
            })
        })
        .into()
}

/// Puts the chosen name into the draft.
pub(super) fn accept(it: &mut Conversation) -> bool {
    let Some(menu) = it.menu.take_if(|menu| menu.chosen < menu.items.len()) else {
        return false;
    };
    let (name, _) = &menu.items[menu.chosen];
    complete::accept(&mut it.draft, menu.range, name);
    true
}

/// Returns true if Enter takes the chosen name, since what is typed is none.
pub(super) fn wants_enter(it: &Conversation) -> bool {
    it.menu.as_ref().is_some_and(|menu| {
        let is_whole = menu.items.iter().any(|(name, _)| *name == menu.part);
        !menu.items.is_empty() && !is_whole
    })
}

/// Returns all commands: the terminal's own, then skills.
fn commands(it: &Conversation) -> Vec<(String, String)> {
    let own = COMMANDS
        .iter()
        .map(|(name, about)| ((*name).to_owned(), (*about).to_owned()));
    let others = it.offered.commands.iter().cloned();
    let is_own = |name: &str| COMMANDS.iter().any(|(own, _)| *own == name);
    own.chain(others.filter(|(name, _)| !is_own(name)))
        .collect()
}

fn fitting(part: &str, names: Vec<(String, String)>) -> Vec<(String, String)> {
    if part.is_empty() {
        return names.into_iter().take(MOST).collect();
    }
    let words: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    let best = fuzzy::best(part, &words, MOST);
    best.into_iter()
        .filter_map(|at| names.get(at).cloned())
        .collect()
}
