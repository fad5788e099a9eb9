//! Colours as people write them.

use ratatui_core::style::Color;

/// Returns the colour that is written as `#rrggbb`, as one of the terminal's own (`red`,
/// `bright-red`), or as `default`, which is that of plain text.
pub fn color_of(text: &str) -> Option<Color> {
    if let Some(digits) = text.strip_prefix('#') {
        let is_whole = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u32::from_str_radix(digits, 16).ok().filter(|_| is_whole)?;
        return Some(Color::from_u32(value));
    }
    Some(match text {
        "default" => Color::Reset,
        "black" => Color::Black,
        "red" => Color::Red,
        "green" => Color::Green,
        "yellow" => Color::Yellow,
        "blue" => Color::Blue,
        "magenta" => Color::Magenta,
        "cyan" => Color::Cyan,
        "white" => Color::Gray,
        "bright-black" => Color::DarkGray,
        "bright-red" => Color::LightRed,
        "bright-green" => Color::LightGreen,
        "bright-yellow" => Color::LightYellow,
        "bright-blue" => Color::LightBlue,
        "bright-magenta" => Color::LightMagenta,
        "bright-cyan" => Color::LightCyan,
        "bright-white" => Color::White,
        _ => return None,
    })
}
