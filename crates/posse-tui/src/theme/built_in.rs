//! The colours of the themes that posse has, in the order of [`ColorRole::ALL`](super::ColorRole::ALL).
//!
//! Those of `dark` and `light` are among the 256 numbered ones, so that fewer terminals show others.

use ratatui_core::style::Color;

use super::Theme;

/// The terminal's own colours.
pub(super) const ANSI: Theme = Theme {
    colors: [
        Color::Cyan,    // accent
        Color::Green,   // good
        Color::Red,     // bad
        Color::Yellow,  // warning
        Color::Blue,    // waiting
        Color::Reset,   // quiet
        Color::Reset,   // selection
        Color::Magenta, // shell
        Color::Blue,    // memory
        Color::Magenta, // attachment
        Color::Green,   // added
        Color::Red,     // removed
        Color::Cyan,    // code
        Color::Blue,    // keyword
        Color::Green,   // string
        Color::Magenta, // number
        Color::Reset,   // comment
    ],
};

/// For a dark background.
pub(super) const DARK: Theme = Theme {
    colors: [
        rgb(0x5fd7ff), // accent
        rgb(0x87d75f), // good
        rgb(0xff8787), // bad
        rgb(0xffd75f), // warning
        rgb(0x87afff), // waiting
        rgb(0xa8a8a8), // quiet
        rgb(0xffd75f), // selection
        rgb(0xd7afff), // shell
        rgb(0x87afff), // memory
        rgb(0xd7afff), // attachment
        rgb(0x87d787), // added
        rgb(0xff8787), // removed
        rgb(0x87d7d7), // code
        rgb(0x87afff), // keyword
        rgb(0xafd787), // string
        rgb(0xd7afff), // number
        rgb(0x949494), // comment
    ],
};

/// For a light background.
pub(super) const LIGHT: Theme = Theme {
    colors: [
        rgb(0x005f87), // accent
        rgb(0x005f00), // good
        rgb(0xaf0000), // bad
        rgb(0x875f00), // warning
        rgb(0x005faf), // waiting
        rgb(0x626262), // quiet
        rgb(0x005f87), // selection
        rgb(0x870087), // shell
        rgb(0x005faf), // memory
        rgb(0x870087), // attachment
        rgb(0x005f00), // added
        rgb(0xaf0000), // removed
        rgb(0x005f5f), // code
        rgb(0x0000af), // keyword
        rgb(0x5f5f00), // string
        rgb(0x870087), // number
        rgb(0x6c6c6c), // comment
    ],
};

const fn rgb(value: u32) -> Color {
    Color::from_u32(value)
}
