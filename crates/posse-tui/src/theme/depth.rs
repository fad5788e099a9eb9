//! Terminals that have fewer colours: which of theirs is nearest.

use ratatui_core::style::Color;

/// How many colours a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorDepth {
    /// Its own sixteen.
    Sixteen,
    /// The 256 numbered ones.
    Indexed,
    /// All.
    True,
}

impl ColorDepth {
    /// Returns the depth that the variables `COLORTERM` and `TERM` tell.
    pub fn told(colorterm: Option<&str>, term: Option<&str>) -> Self {
        let term = term.unwrap_or_default();
        match colorterm {
            Some("truecolor" | "24bit") => Self::True,
            _ if term.ends_with("-direct") => Self::True,
            _ if term.contains("256color") => Self::Indexed,
            _ => Self::Sixteen,
        }
    }

    /// Returns the nearest colour that a terminal of this depth has.
    pub(super) fn nearest(self, color: Color) -> Color {
        match (self, color) {
            (Self::Indexed, Color::Rgb(red, green, blue)) => {
                Color::Indexed(index([red, green, blue]))
            }
            (Self::Sixteen, Color::Rgb(red, green, blue)) => sixteenth([red, green, blue]),
            (Self::Sixteen, Color::Indexed(number)) => sixteenth(value(number)),
            (_, color) => color,
        }
    }
}

/// The levels of red, green and blue in the cube of the numbered colours.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Returns the number of the nearest of the 240 colours that look alike everywhere.
fn index(wanted: [u8; 3]) -> u8 {
    let distance = |number: &u8| -> u32 {
        let channels = value(*number).into_iter().zip(wanted);
        channels.map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
    };
    (16..=255).min_by_key(distance).unwrap_or(16)
}

/// Returns red, green and blue of a numbered colour; of the first sixteen, the usual ones.
pub(super) fn value(number: u8) -> [u8; 3] {
    match number {
        0..=15 => {
            let high = if number < 8 { 0x80 } else { 0xff };
            match number {
                7 => [0xc0; 3],
                8 => [0x80; 3],
                _ => [1, 2, 4].map(|bit| if number & bit == 0 { 0 } else { high }),
            }
        }
        16..=231 => {
            let at = usize::from(number - 16);
            [at / 36, at / 6 % 6, at % 6].map(|level| LEVELS[level])
        }
        232.. => [8 + 10 * (number - 232); 3],
    }
}

/// Returns the one of sixteen colours that has the same hue, and is as bright. The nearest by
/// distance would be a grey for every pale colour.
fn sixteenth(wanted: [u8; 3]) -> Color {
    const DARK: [Color; 8] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
    ];
    const BRIGHT: [Color; 8] = [
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    let least = wanted.into_iter().min().unwrap_or_default();
    let most = wanted.into_iter().max().unwrap_or_default();
    if most - least < 32 {
        return match most {
            0..48 => Color::Black,
            48..150 => Color::DarkGray,
            150..224 => Color::Gray,
            224.. => Color::White,
        };
    }
    let middle = (u16::from(least) + u16::from(most)) / 2;
    let bits = wanted.into_iter().zip([1, 2, 4]);
    let hue: usize = bits
        .filter(|(channel, _)| u16::from(*channel) > middle)
        .map(|(_, bit)| bit)
        .sum();
    match most {
        0..0xc0 => DARK[hue],
        0xc0.. => BRIGHT[hue],
    }
}
