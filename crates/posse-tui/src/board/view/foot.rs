//! The last line: what the person writes or is asked, a notice, or the keys that work now.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::board::action::{self, Action, hints};
use crate::board::keys::place;
use crate::board::layout::Areas;
use crate::board::line::{FootLine, LineUse};
use crate::board::{Board, Confirm, act};
use crate::conversation::edited_rows;
use crate::text::{clip, columns, wrap};
use crate::theme::ColorRole;

/// Number of names that are shown above the line where they are typed.
const NAMES: usize = 8;

/// The foot.
pub(super) struct Foot {
    /// Lines that cover those above the foot.
    pub(super) menu: Vec<Line<'static>>,
    pub(super) line: Line<'static>,
    /// The column of the cursor.
    pub(super) caret: Option<u16>,
}

/// Returns the foot.
pub(super) fn draw(it: &Board, width: u16, areas: Areas) -> Foot {
    let plain = |line: Line<'static>| Foot {
        menu: Vec::new(),
        line: clip(&line, width),
        caret: None,
    };
    let yellow = ColorRole::Warning.style();
    if let Some(line) = &it.line {
        let mut foot = written(it, line, width, areas);
        if let Some(notice) = it.notice.as_ref().filter(|_| foot.menu.is_empty()) {
            foot.menu = vec![clip(&Line::styled(notice.clone(), yellow), width)];
        }
        return foot;
    }
    if let Some(confirm) = &it.confirm {
        // All of what a yes would do is seen: the last line is the foot.
        let asked = Line::styled(asked(it, confirm), yellow.bold());
        let mut menu = wrap(&asked, width, 0);
        let line = menu.pop().unwrap_or_default();
        // On a very small screen the middle is left out: the keys are seen.
        let room = areas.head + areas.list + areas.pane;
        if menu.len() > room && room >= 2 {
            menu.drain(room - 1..menu.len() - 1);
            if let Some(cut) = menu.get_mut(room - 2) {
                cut.push_span(Span::raw(" …"));
                *cut = clip(cut, width);
            }
        }
        return Foot {
            menu,
            ..plain(line)
        };
    }
    if let Some(notice) = &it.notice {
        return plain(Line::styled(notice.clone(), yellow));
    }
    if it.help.is_some() {
        let words = "Up and Down scroll · any other key closes";
        return plain(Line::styled(words, Style::new().dim()));
    }
    if it.questions.is_open() {
        let words = "Esc back to the list";
        return plain(Line::styled(words, Style::new().dim()));
    }
    plain(keys(it, width))
}

/// Returns what a yes would do.
fn asked(it: &Board, confirm: &Confirm) -> String {
    match confirm {
        Confirm::Stop { agent, below, .. } => {
            let name = act::name(it, *agent);
            let (all, working) = *below;
            let below = match (all, working) {
                (0, _) => String::new(),
                (1, _) => " and the agent below it".to_owned(),
                (all, working) => format!(" and {all} agents below it ({working} at work)"),
            };
            format!("stop {name}{below}? y yes · any other key no")
        }
        Confirm::DeleteTask { task, subject, .. } => {
            format!("delete #{task} {subject}? y yes · any other key no")
        }
        confirm => {
            let asked = act::asked_about_worktrees(it, confirm);
            format!("{} y yes · any other key no", asked.unwrap_or_default())
        }
    }
}

/// Returns the line that the person writes.
fn written(it: &Board, line: &FootLine, width: u16, areas: Areas) -> Foot {
    let label = line.label();
    // What is written has at least half of the line.
    let label = clip(&Line::raw(label), (width / 2).max(1));
    let taken = label.width() as u16;
    let no_sign = ("", Style::new());
    // The rows leave room for a sign of two columns, which is not there.
    let inner = width.saturating_sub(taken) + 2;
    let (rows, (row, column)) = edited_rows(&line.text, inner, 1, no_sign);
    let mut drawn = label.style(ColorRole::Accent.style().bold());
    if let Some(text) = rows.into_iter().nth(row) {
        drawn.spans.extend(text.spans);
    }
    let menu = match line.purpose {
        LineUse::Palette => names(it, line, width, areas.list + areas.pane),
        _ => Vec::new(),
    };
    Foot {
        menu,
        line: clip(&drawn, width),
        caret: Some(taken + column.saturating_sub(2)),
    }
}

/// Returns the names that fit what is typed, around the chosen one.
fn names(board: &Board, line: &FootLine, width: u16, room: usize) -> Vec<Line<'static>> {
    let (fitting, _) = action::fitting(line.text.text());
    let most = NAMES.min(room);
    let first = (line.chosen + 1).saturating_sub(most);
    let shown = fitting.iter().enumerate().skip(first).take(most);
    let widest = fitting.iter().map(|it| columns(it.name)).max();
    let widest = widest.unwrap_or_default();
    shown
        .map(|(at, it)| {
            let (sign, style) = match at == line.chosen {
                true => ("❯ ", ColorRole::Accent.style().bold()),
                false => ("  ", Style::new()),
            };
            let about = match board.keys.listed(it.action) {
                keys if keys.is_empty() => it.about.to_owned(),
                keys => format!("{keys} · {}", it.about),
            };
            let line = Line::from(vec![
                Span::styled(format!("{sign}{:<widest$}", it.name), style),
                Span::styled(format!("  {about}"), Style::new().dim()),
            ]);
            clip(&line, width)
        })
        .collect()
}

/// Returns the keys that work now, as many as have room.
fn keys(it: &Board, width: u16) -> Line<'static> {
    let all = it.keys.0.first(Action::Help);
    let all = all.map_or_else(String::new, |key| format!("{key} keys"));
    let mut line = Line::default();
    let mut room = usize::from(width).saturating_sub(all.len());
    let filter = it.agents.tree.filter();
    if !filter.is_empty() && it.screen == crate::board::BoardScreen::Agents {
        let words = format!("/{filter} (Esc shows all)  ");
        room = room.saturating_sub(columns(&words));
        line.push_span(Span::styled(words, ColorRole::Accent.style()));
    }
    for (action, word) in hints(place(it)) {
        let Some(key) = it.keys.0.first(*action) else {
            continue;
        };
        let taken = columns(&key) + columns(word) + 3;
        if taken > room {
            break;
        }
        room -= taken;
        line.push_span(Span::styled(key, Style::new().bold()));
        line.push_span(Span::styled(format!(" {word}  "), Style::new().dim()));
    }
    line.push_span(Span::styled(all, Style::new().dim()));
    line
}
