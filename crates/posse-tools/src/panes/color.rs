//! Colours of members, for terminals and for tmux.

/// A colour that terminals can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// One of the 256 numbered colours.
    Number(u8),
    /// Red, green and blue.
    Shade(u8, u8, u8),
}

impl Color {
    /// Returns the colour of this name, or of `#rrggbb`; `None` if it is unknown.
    pub fn read(name: &str) -> Option<Self> {
        Some(Self::Number(match name {
            "red" => 1,
            "green" => 2,
            "yellow" => 3,
            "blue" => 4,
            "cyan" => 6,
            "purple" => 135,
            "orange" => 208,
            "pink" => 213,
            shade => return Self::shade(shade),
        }))
    }

    fn shade(shade: &str) -> Option<Self> {
        let digits = shade.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        let part = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then_some(())?;
        Some(Self::Shade(part(0)?, part(2)?, part(4)?))
    }

    /// Returns its code for terminals, between `ESC [` and `m`.
    pub fn in_terminals(self) -> String {
        match self {
            Self::Number(number @ 0..8) => format!("3{number}"),
            Self::Number(number) => format!("38;5;{number}"),
            Self::Shade(red, green, blue) => format!("38;2;{red};{green};{blue}"),
        }
    }

    /// Returns its name in tmux.
    pub(super) fn in_tmux(self) -> String {
        match self {
            Self::Number(number) => format!("colour{number}"),
            Self::Shade(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_a_team_is_known_by_the_same_names() {
        for nth in 0..200 {
            let name = posse_protocol::team::color(nth);
            assert!(Color::read(&name).is_some(), "{name}");
        }
        let codes =
            |name: &str| Color::read(name).map(|color| (color.in_terminals(), color.in_tmux()));
        let both = |one: &str, other: &str| Some((one.to_owned(), other.to_owned()));
        assert_eq!(codes("green"), both("32", "colour2"));
        assert_eq!(codes("pink"), both("38;5;213", "colour213"));
        assert_eq!(codes("#0a0bff"), both("38;2;10;11;255", "#0a0bff"));
        for odd in ["", "nice", "#12", "#+12345", "#ü2345"] {
            assert_eq!(Color::read(odd), None, "{odd}");
        }
    }
}
