//! The last line: who is talked to, what waits, mode, model, context, money, and the keys that
//! matter now.

use posse_protocol::{Activity, Cost, Spent, WaitReason};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::conversation::{Conversation, KeyedAction, Sign};
use crate::text::{clip, columns, one_line};
use crate::theme::ColorRole;

/// After this time people are told that a hook runs.
const SLOW_MS: u64 = 500;
/// Number of characters of a hook that are shown.
const TITLE: usize = 40;

/// Returns the beginning of a hook's title.
fn cut(title: &str) -> String {
    let title = one_line(title);
    match title.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", &title[..at]),
        None => title,
    }
}

/// Returns the status line.
pub(super) fn line(it: &Conversation, width: u16, now_ms: u64) -> Line<'static> {
    if let Some(notice) = it.notice.as_ref().or(it.shown.retry.as_ref()) {
        let style = ColorRole::Warning.style();
        return clip(&Line::styled(one_line(notice), style), width);
    }
    let dim = Style::new().dim();
    let mut line = Line::default();
    let sign = Sign::of(it.shown.activity);
    let mark = format!("{} ", sign.mark());
    line.push_span(Span::styled(mark, sign.style()));
    match it.is_working() {
        true => {
            let since = elapsed(now_ms.saturating_sub(it.shown.since_ms));
            line.push_span(Span::raw(format!("{} {since}", doing(it))));
            add(&mut line, "Esc interrupts", width);
        }
        false => line.push_span(Span::styled(doing(it), dim)),
    }
    let slow = |since_ms: u64| now_ms.saturating_sub(since_ms) >= SLOW_MS;
    if let Some(hook) = it.shown.hooks.iter().find(|hook| slow(hook.since_ms)) {
        add(&mut line, &format!("hook: {}", cut(&hook.title)), width);
    }
    for fact in facts(it) {
        add(&mut line, &fact, width);
    }
    let keys = match it.keys.0.first(KeyedAction::Keys) {
        Some(key) => format!("{key} keys"),
        None => "/help".to_owned(),
    };
    let gap = usize::from(width).checked_sub(line.width() + columns(&keys) + 1);
    if let Some(gap) = gap.filter(|gap| *gap >= 2) {
        line.push_span(Span::styled(format!("{}{keys}", " ".repeat(gap)), dim));
    }
    clip(&line, width)
}

/// Adds a fact, if all of it has room.
fn add(line: &mut Line<'static>, fact: &str, width: u16) {
    let separator = if line.spans.is_empty() { "" } else { " · " };
    let fact = format!("{separator}{}", one_line(fact));
    if line.spans.is_empty() || line.width() + columns(&fact) <= usize::from(width) {
        line.push_span(Span::styled(fact, Style::new().dim()));
    }
}

/// Returns what the agent is doing.
fn doing(it: &Conversation) -> &'static str {
    match it.shown.activity {
        Activity::Idle | Activity::Gone => Sign::of(it.shown.activity).word(),
        Activity::Working => "working",
        Activity::Waiting(reason) => match reason {
            WaitReason::Place => "waits for its turn",
            WaitReason::Budget => "waits for money that others reserved",
            WaitReason::Rate => "waits for the provider",
            WaitReason::Children => "waits for others",
            WaitReason::Person => "waits for you",
        },
    }
}

fn facts(it: &Conversation) -> Vec<String> {
    let mut facts = Vec::new();
    // Whom the keys are for, and what becomes of them, comes before what has been spent.
    if it.shown.agent != it.main {
        facts.push(format!("talking to {}", it.shown.name));
    }
    match it.shown.queue.len() {
        0 => {}
        count => facts.push(format!("{count} queued")),
    }
    let terms = it.shown_terms();
    facts.extend(terms.mode.iter().map(ToString::to_string));
    facts.extend(terms.model.map(|model| match terms.effort {
        Some(effort) => format!("{model} {effort}"),
        None => model,
    }));
    let spending = &it.shown.spending;
    if let Some(window) = spending.context_window.filter(|window| *window > 0) {
        let percent = spending.context_tokens.saturating_mul(100) / window;
        let size = match window {
            0..1_000_000 => format!("{}k", window / 1000),
            window => format!("{}M", window / 1_000_000),
        };
        facts.push(format!("{percent} % of {size}"));
    }
    if let Some(cost) = total(&spending.subtree) {
        let left = spending.left.map(|left| format!(", {left} left"));
        facts.push(format!("{cost}{}", left.unwrap_or_default()));
    }
    facts
}

/// Returns the sum, none if a price is not known or nothing was spent.
fn total(spent: &[Spent]) -> Option<Cost> {
    let mut total: Option<Cost> = None;
    for spent in spent {
        let cost = spent.cost?;
        total = Some(total.map_or(cost, |total| total + cost));
    }
    total
}

/// Returns a time for people: `5 s`, `2m 05s`.
pub(in crate::conversation) fn elapsed(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}
