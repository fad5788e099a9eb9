//! Text in a limited width.

use posse_tui::text::clip;

/// Returns `text` in at most `longest` characters.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some(_) => text
            .chars()
            .take(longest.saturating_sub(1))
            .chain(['…'])
            .collect(),
    }
}

/// Returns `text` in at most `widest` terminal columns.
pub(crate) fn fitted(text: &str, widest: usize) -> String {
    match u16::try_from(widest) {
        Ok(widest) => clip(&text.into(), widest).to_string(),
        Err(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }

    #[test]
    fn columns_are_not_characters() {
        let check = |text: &str, widest: usize, fits: &str| assert_eq!(fitted(text, widest), fits);
        check("fix it", 6, "fix it");
        check("fix it", 5, "fix …");
        check("漢字かな", 8, "漢字かな");
        check("漢字かな", 7, "漢字か…");
        check("漢字かな", 6, "漢字…");
        check("漢", 1, "…");
        check("漢", 0, "");
    }
}
