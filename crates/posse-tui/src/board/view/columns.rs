//! Columns of a row, and the words in them.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::conversation::Sign;
use crate::text::{clip, columns};
use crate::theme::ColorRole;

/// Returns text that takes exactly this many columns: cut off, or followed by blanks.
pub(super) fn fitted(text: &str, width: usize) -> String {
    let taken = columns(text);
    if taken <= width {
        return format!("{text}{}", " ".repeat(width - taken));
    }
    let line = clip(&Line::raw(text), width as u16);
    let text: String = line
        .spans
        .iter()
        .map(|span| span.content.as_ref())
        .collect();
    let taken = columns(&text);
    format!("{text}{}", " ".repeat(width.saturating_sub(taken)))
}

/// Returns text at the right end of this many columns.
pub(super) fn right(text: &str, width: usize) -> String {
    let taken = columns(text);
    match width.checked_sub(taken) {
        Some(gap) => format!("{}{text}", " ".repeat(gap)),
        None => fitted(text, width),
    }
}

/// Returns the mark before a line, and the style of its name.
pub(super) fn mark(is_highlighted: bool) -> (Span<'static>, Style) {
    let style = ColorRole::Accent.style().bold();
    match is_highlighted {
        true => (Span::styled("❯ ", style), style),
        false => (Span::raw("  "), Style::new()),
    }
}

/// Returns the style of a state's sign.
pub(super) fn sign_style(sign: Sign) -> Style {
    match sign {
        Sign::Waits => ColorRole::Waiting.style(),
        other => other.style(),
    }
}

/// Returns a time for people, in the largest unit: `5 s`, `12m`, `3h`, `2d`.
pub(super) fn age(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns a number of tokens for people: `950`, `12k`, `3.4M`.
pub(super) fn tokens(count: u64) -> String {
    match count {
        0..1000 => count.to_string(),
        1000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}.{}M", count / 1_000_000, count / 100_000 % 10),
    }
}
