//! Colours of members, as terminals show them.

use crate::output::tame;

/// The words in somebody's colour, safe to show. Where there are no colours they are the words alone.
pub(crate) fn painted(words: &str, color: &str) -> String {
    let words = tame(words);
    match code(color) {
        Some(code) => format!("\x1b[{code}m{words}\x1b[39m"),
        None => words,
    }
}

/// What a terminal calls a colour.
fn code(color: &str) -> Option<String> {
    let named = match color {
        "red" => "31",
        "green" => "32",
        "yellow" => "33",
        "blue" => "34",
        "purple" => "35",
        "cyan" => "36",
        "orange" => "38;5;208",
        "pink" => "38;5;205",
        shade => return shaded(shade),
    };
    Some(named.to_owned())
}

/// `#rrggbb`.
fn shaded(shade: &str) -> Option<String> {
    let digits = shade.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    Some(format!("38;2;{};{};{}", part(0)?, part(2)?, part(4)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_that_members_have_is_known() {
        for nth in 0..200 {
            let color = posse_protocol::team::color(nth);
            assert!(code(&color).is_some(), "{color}");
        }
        assert_eq!(painted("a\x1b[2J", "#0a0bff"), "\x1b[38;2;10;11;255ma\\u{1b}[2J\x1b[39m");
        for odd in ["", "#12", "#1234567", "#ü2345", "\x1b[2J"] {
            assert_eq!(painted("a", odd), "a", "{odd}");
        }
    }
}
