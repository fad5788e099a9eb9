//! The first line: what the board is about, how many are there, what it cost, and the screens.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::board::{Board, BoardScreen, Section};
use crate::text::{clip, columns};
use crate::theme::ColorRole;

/// The narrowest screen that names all screens.
const ALL_SCREENS: u16 = 108;
/// The narrowest screen that has the keys of all screens.
const ALL_KEYS: u16 = 76;
/// The narrowest screen that names the one that is shown.
const ONE_SCREEN: u16 = 40;

/// Returns the first line.
pub(super) fn line(it: &Board, width: u16) -> Line<'static> {
    let screens = screens(it, width);
    let taken = taken(&screens);
    let room = usize::from(width).saturating_sub(taken + 1);
    let mut line = Line::default();
    let mut add = |text: String, style: Style| {
        let separator = if line.spans.is_empty() { "" } else { " · " };
        if line.spans.is_empty() || line.width() + columns(&text) + 3 <= room {
            line.push_span(Span::styled(separator, Style::new().dim()));
            line.push_span(Span::styled(text, style));
        }
    };
    let asking = it.agents.tree.rows(Section::NeedsYou).count();
    let needs = match asking {
        0 => None,
        1 => Some("1 needs you".to_owned()),
        count => Some(format!("{count} need you")),
    };
    let yellow = ColorRole::Warning.style().bold();
    // Whoever needs the person comes before everything else, if there is little room.
    match needs.clone().filter(|_| room < 40) {
        Some(needs) => add(needs, yellow),
        None => add(it.title.clone(), Style::new().bold()),
    }
    add(agents(it.agents.tree.count()), Style::new());
    if let Some(needs) = needs.filter(|_| room >= 40) {
        add(needs, yellow);
    }
    if let Some(cost) = it.total.0 {
        add(cost.to_string(), Style::new());
    }
    if let Some(budget) = &it.total.1 {
        add(budget.clone(), Style::new());
    }
    add(it.scope.as_str().to_owned(), Style::new().dim());
    if line.width() > room {
        line = clip(&line, room as u16);
    }
    let gap = usize::from(width).saturating_sub(taken + line.width());
    line.push_span(Span::raw(" ".repeat(gap)));
    line.spans.extend(screens.into_iter().map(|(_, name)| name));
    clip(&line, width)
}

/// Returns the screen whose name is at a column.
pub(super) fn screen_at(it: &Board, width: u16, column: u16) -> Option<BoardScreen> {
    let screens = screens(it, width);
    let mut start = usize::from(width).checked_sub(taken(&screens))?;
    for (screen, name) in screens {
        let end = start + name.width();
        if (start..end).contains(&usize::from(column)) {
            return screen;
        }
        start = end;
    }
    None
}

/// Returns the number of columns of names.
fn taken(names: &[(Option<BoardScreen>, Span<'static>)]) -> usize {
    names.iter().map(|(_, name)| name.width()).sum()
}

fn agents(count: usize) -> String {
    match count {
        1 => "1 agent".to_owned(),
        count => format!("{count} agents"),
    }
}

/// Returns the names of the screens, each with its key, and what is between them.
fn screens(it: &Board, width: u16) -> Vec<(Option<BoardScreen>, Span<'static>)> {
    let bold = Style::new().bold();
    let name = |number: usize, screen: BoardScreen| {
        let waiting = match (screen, it.questions.count()) {
            (BoardScreen::Questions, count) if count > 0 => format!(" ({count})"),
            _ => String::new(),
        };
        let dim = Style::new().dim();
        match (screen == it.screen, width >= ALL_SCREENS) {
            (true, _) => Span::styled(format!("[{number}]{}{waiting}", screen.as_str()), bold),
            (false, true) => Span::styled(format!("{number} {}{waiting}", screen.as_str()), dim),
            (false, false) => Span::styled(format!("{number}{waiting}"), dim),
        }
    };
    let shown = |screen: &BoardScreen| width >= ALL_KEYS || *screen == it.screen;
    let mut spans = Vec::new();
    if width < ONE_SCREEN {
        return spans;
    }
    for (number, screen) in (1..).zip(BoardScreen::ALL) {
        if shown(&screen) {
            if !spans.is_empty() {
                spans.push((None, Span::raw(" ")));
            }
            spans.push((Some(screen), name(number, screen)));
        }
    }
    spans
}
