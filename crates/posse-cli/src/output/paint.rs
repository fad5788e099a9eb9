//! Colours of members in terminals.

use posse_protocol::{Name, Team};
use posse_tools::Color;

use super::tame;

/// Returns a text in a colour, safe to show. An unknown colour leaves it plain.
pub(crate) fn painted(words: &str, color: &str) -> String {
    stained(&tame(words), color)
}

/// Returns a member's colour by name. `team-lead` is the current lead.
pub(crate) fn color_in<'a>(team: &'a Team, name: &str) -> Option<&'a str> {
    let is_it = |member: &&posse_protocol::Member| {
        member.name.as_str() == name || (name == Name::LEAD && member.agent == team.lead)
    };
    team.members
        .iter()
        .find(is_it)
        .map(|member| member.color.as_str())
}

/// Returns a safe text in a colour.
pub(crate) fn stained(words: &str, color: &str) -> String {
    match Color::read(color) {
        Some(color) => format!("\x1b[{}m{words}\x1b[39m", color.in_terminals()),
        None => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_painted_and_tamed() {
        assert_eq!(
            painted("a\x1b[2J", "#0a0bff"),
            "\x1b[38;2;10;11;255ma\\u{1b}[2J\x1b[39m"
        );
        for odd in ["", "#12", "#1234567", "#ü2345", "\x1b[2J"] {
            assert_eq!(painted("a", odd), "a", "{odd}");
        }
    }
}
