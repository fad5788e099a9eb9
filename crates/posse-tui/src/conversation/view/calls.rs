//! Calls that run, a line each.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::status::elapsed;
use crate::conversation::Conversation;
use crate::text::{clip, line_count};

/// Returns a line for each call that runs.
pub(super) fn lines(it: &Conversation, width: u16, now_ms: u64) -> Vec<Line<'static>> {
    let dim = Style::new().dim();
    let calls = it.shown.calls.running.iter().map(|call| {
        let mut facts = elapsed(now_ms.saturating_sub(call.since_ms));
        if call.lines > 0 {
            facts.push_str(&format!(" · {}", line_count(call.lines)));
        }
        if !call.last.is_empty() {
            facts.push_str(&format!(" · {}", call.last));
        }
        let line = Line::from(vec![
            Span::styled("┄ ", dim),
            Span::raw(call.title.clone()),
            Span::styled(format!("  {facts}"), dim),
        ]);
        clip(&line, width)
    });
    calls.collect()
}
