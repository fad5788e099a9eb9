//! Text that must not be wider than so much.

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

/// Returns the number of terminal columns of `text`; East Asian characters and emoji take two.
pub(crate) fn breadth(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// Returns the number of columns of a character.
fn columns(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036f | 0x200b..=0x200f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff => 2,
        0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// Returns `text` in at most `widest` terminal columns.
pub(crate) fn fitted(text: &str, widest: usize) -> String {
    if breadth(text) <= widest {
        return text.to_owned();
    }
    let mut left = widest.saturating_sub(1);
    let mut fitted: String = text
        .chars()
        .take_while(|c| {
            let rest = left.checked_sub(columns(*c));
            left = rest.unwrap_or_default();
            rest.is_some()
        })
        .collect();
    if widest > 0 {
        fitted.push('…');
    }
    fitted
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
