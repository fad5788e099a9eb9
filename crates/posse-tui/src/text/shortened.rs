//! The first lines of what a program has printed.

use ratatui_core::style::Style;
use ratatui_core::text::Line;

use super::{tame, without_escapes};

/// Number of characters of a line of output.
const OUTPUT_WIDTH: usize = 400;

/// Returns the first lines of a text, indented.
pub fn shortened(text: &str, most: usize) -> Vec<Line<'static>> {
    let text = without_escapes(text);
    let all: Vec<&str> = text.trim_end().lines().collect();
    // One line more costs no more than saying that it is left out.
    let shown = match all.len() {
        count if count <= most + 1 => count,
        _ => most,
    };
    let dim = Style::new().dim();
    let line = |text: &str| {
        let text: String = text.chars().take(OUTPUT_WIDTH).collect();
        Line::styled(format!("  {}", tame(&text)), dim)
    };
    let mut lines: Vec<_> = all.iter().take(shown).map(|text| line(text)).collect();
    if all.len() > shown {
        lines.push(line(&format!("… {} more lines", all.len() - shown)));
    }
    lines
}
