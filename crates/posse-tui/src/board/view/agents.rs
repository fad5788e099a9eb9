//! The agents: a title for each section, and a tree below it.

use posse_protocol::AgentId;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::columns::{age, fitted, mark, right, sign_style};
use super::{DrawnPart, rule};
use crate::board::agents::AgentLine;
use crate::board::layout::visible_lines;
use crate::board::section::has_age;
use crate::board::tree::AgentRow;
use crate::board::{Board, Section, act};
use crate::text::{clip, columns};
use crate::theme::ColorRole;

/// Number of branches that are drawn before a name at most.
const BRANCHES: usize = 8;

/// The widths of columns; 0 for those that are left out.
struct Widths {
    name: usize,
    doing: usize,
    state: usize,
    mail: usize,
    cost: usize,
    model: usize,
    place: usize,
}

impl Widths {
    /// Narrow screens have fewer columns; names stay.
    fn new(width: u16) -> Self {
        let all = usize::from(width).saturating_sub(2);
        let from = |least: u16, columns: usize| if width >= least { columns } else { 0 };
        let state = from(34, 12);
        let cost = from(60, 10);
        let mail = from(76, 8);
        let place = from(100, 22);
        let model = from(130, 16);
        let rest = all.saturating_sub(state + cost + mail + place + model);
        let name = match width {
            0..50 => rest,
            50..100 => 22,
            _ => 30,
        };
        Self {
            name,
            doing: rest.saturating_sub(name),
            state,
            mail,
            cost,
            model,
            place,
        }
    }
}

/// Returns the lines that are on the screen.
pub(super) fn draw(it: &Board, width: u16, now_ms: i64) -> DrawnPart {
    let widths = Widths::new(width);
    let cursor = it.agents.cursor();
    let mut part = DrawnPart::default();
    for line in visible_lines(it) {
        let is_highlighted = cursor.key() == Some(&line);
        if is_highlighted {
            part.caret = Some((part.lines.len(), 0));
        }
        let drawn = match line {
            AgentLine::Title(section) => title(it, section, is_highlighted),
            AgentLine::Agent(agent) => row(it, agent, &widths, now_ms),
        };
        part.lines.push(clip(&drawn, width));
    }
    if part.lines.is_empty() {
        let words = match (it.agents.tree.count(), it.agents.tree.filter()) {
            (0, _) => "  nobody is here".to_owned(),
            (_, filter) => format!("  nobody fits {filter}"),
        };
        let line = Line::styled(words, Style::new().dim());
        part.lines.push(clip(&line, width));
    }
    part
}

fn title(it: &Board, section: Section, is_highlighted: bool) -> Line<'static> {
    let rows = it.agents.tree.rows(section);
    let (all, shown) = (rows.count(), rows.shown().len());
    let count = match all == shown {
        true => format!(" {all}"),
        false => format!(" {shown} of {all}"),
    };
    let style = match section {
        Section::NeedsYou => ColorRole::Warning.style().bold(),
        Section::Broken => ColorRole::Bad.style().bold(),
        _ => Style::new().bold(),
    };
    let (mark, _) = mark(is_highlighted);
    let mut line = Line::from(vec![
        mark,
        Span::styled(section.title(), style),
        Span::styled(count, Style::new().dim()),
    ]);
    if it.agents.tree.is_folded(section) {
        line.push_span(Span::styled(" ▸ folded", Style::new().dim()));
    }
    line
}

fn row(it: &Board, agent: AgentId, widths: &Widths, now_ms: i64) -> Line<'static> {
    let Some(row) = it.agents.tree.get(agent) else {
        return Line::default();
    };
    let facts = &row.facts;
    let dim = Style::new().dim();
    let (mark, style) = mark(it.agents.highlighted() == Some(agent));
    let branches = branches(it, row);
    let sign = facts.sign;
    let room = widths.name.saturating_sub(columns(&branches) + 2);
    let mut line = Line::from(vec![
        mark,
        Span::styled(branches, dim),
        Span::styled(format!("{} ", sign.mark()), sign_style(sign)),
        Span::styled(fitted(&name(it, row), room), style),
    ]);
    let since = match has_age(sign) {
        true => format!(" {}", age(now_ms.saturating_sub(facts.changed_ms))),
        false => String::new(),
    };
    let mail = match facts.waiting_mail {
        0 => String::new(),
        count => format!("{count} mail"),
    };
    let cost = row.cost.map(|cost| cost.to_string()).unwrap_or_default();
    let state = format!("{}{since}", sign.word());
    let mut add = |text: String, style| line.push_span(Span::styled(text, style));
    if widths.doing > 1 {
        add(format!(" {}", fitted(&facts.doing, widths.doing - 1)), dim);
    }
    for (text, width) in [(state, widths.state), (mail, widths.mail)] {
        if width > 1 {
            add(format!(" {}", fitted(&text, width - 1)), Style::new());
        }
    }
    if widths.cost > 1 {
        add(format!(" {}", right(&cost, widths.cost - 1)), Style::new());
    }
    for (text, width) in [(&facts.model, widths.model), (&facts.place, widths.place)] {
        if width > 2 {
            add(format!("  {}", fitted(text, width - 2)), dim);
        }
    }
    line
}

/// Returns the name of an agent; with that of its session, if nothing above it says so.
fn name(it: &Board, row: &AgentRow) -> String {
    let facts = &row.facts;
    let has_parent = it.agents.tree.rows(row.section()).has_above(&row.path);
    let is_main = facts.agent == facts.session;
    let session = it.agents.tree.get(facts.session);
    match session.filter(|_| !has_parent && !is_main && it.scope != crate::board::Scope::Session) {
        Some(session) => format!("{} · {}", facts.name, session.facts.name),
        None => facts.name.clone(),
    }
}

/// Returns the branches that lead to an agent of a section.
fn branches(it: &Board, row: &AgentRow) -> String {
    let rows = it.agents.tree.rows(row.section());
    let Ok(place) = rows.place(&row.path) else {
        return String::new();
    };
    if it.agents.tree.is_folded(row.section()) {
        return String::new();
    }
    let branches = rows.branches(place);
    let first = branches.len().saturating_sub(BRANCHES);
    let Some((last, above)) = branches.split_last() else {
        return String::new();
    };
    let mut text: String = above
        .iter()
        .skip(first)
        .map(|follows| if *follows { "│ " } else { "  " })
        .collect();
    text.push_str(if *last { "├ " } else { "└ " });
    text
}

/// Returns what the highlighted agent says.
pub(super) fn peek(it: &mut Board, width: u16, height: usize) -> DrawnPart {
    let agent = it.agents.highlighted();
    let name = agent.map_or_else(String::new, |agent| act::name(it, agent));
    let title = match name.as_str() {
        "" => "peek".to_owned(),
        name => format!("{name} ─ peek"),
    };
    let mut lines = vec![rule(&title, width)];
    let most = height.saturating_sub(1);
    match it.peek.lines(width, most) {
        Some(said) => lines.extend(said.iter().map(|line| clip(line, width))),
        None if agent.is_none() => {}
        None => lines.push(Line::styled("…", Style::new().dim())),
    }
    DrawnPart { lines, caret: None }
}
