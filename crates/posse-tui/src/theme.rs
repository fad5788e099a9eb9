//! Colours: what each is for, and which one a theme has for that.
//!
//! Cells and lines hold roles, not colours: a [`Theme`] turns one into the other when bytes are made.
//! So nothing that decides or draws knows a theme, and this is the only place that names colours.

mod built_in;
mod depth;
mod read;

use ratatui_core::style::{Color, Modifier, Style};

pub use self::depth::ColorDepth;
pub use self::read::color_of;

/// What a colour is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorRole {
    /// The prompt, and what is chosen.
    Accent,
    /// What works or went well.
    Good,
    /// What has failed.
    Bad,
    /// What needs the person.
    Warning,
    /// What waits for another agent or task.
    Waiting,
    /// What is less important. Text with the modifier `DIM` has it.
    Quiet,
    /// What was searched for. Text with the modifier `REVERSED` has it.
    Selection,
    /// A command of the person, `!`.
    Shell,
    /// A note for the memory file, `#`.
    Memory,
    /// An image or a long paste in a prompt.
    Attachment,
    /// An added line.
    Added,
    /// A removed line.
    Removed,
    /// Code whose language is not known, and code in a sentence.
    Code,
    /// A keyword in code.
    Keyword,
    /// A string in code.
    String,
    /// A number in code.
    Number,
    /// A comment in code.
    Comment,
}

/// Number of roles.
const COUNT: usize = 17;

/// The first of the numbered colours that stand for roles in cells. Nothing else uses these greys.
const FIRST: u8 = 232;

impl ColorRole {
    /// All, in the order of their values.
    pub const ALL: [Self; COUNT] = [
        Self::Accent,
        Self::Good,
        Self::Bad,
        Self::Warning,
        Self::Waiting,
        Self::Quiet,
        Self::Selection,
        Self::Shell,
        Self::Memory,
        Self::Attachment,
        Self::Added,
        Self::Removed,
        Self::Code,
        Self::Keyword,
        Self::String,
        Self::Number,
        Self::Comment,
    ];

    /// Returns its name in a theme file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accent => "accent",
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Warning => "warning",
            Self::Waiting => "waiting",
            Self::Quiet => "quiet",
            Self::Selection => "selection",
            Self::Shell => "shell",
            Self::Memory => "memory",
            Self::Attachment => "attachment",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Code => "code",
            Self::Keyword => "keyword",
            Self::String => "string",
            Self::Number => "number",
            Self::Comment => "comment",
        }
    }

    /// Returns the role of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Returns the colour that stands for it in a cell.
    pub(crate) fn color(self) -> Color {
        Color::Indexed(FIRST + self as u8)
    }

    /// Returns the style that has its colour and nothing else.
    pub(crate) fn style(self) -> Style {
        Style::new().fg(self.color())
    }

    /// Returns the role that a cell's colour stands for.
    fn of(color: Color) -> Option<Self> {
        match color {
            Color::Indexed(number) => {
                let at = number.checked_sub(FIRST)?;
                Self::ALL.get(usize::from(at)).copied()
            }
            _ => None,
        }
    }
}

/// A colour for each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    colors: [Color; COUNT],
}

impl Theme {
    /// The names of those that posse has.
    pub const BUILT_IN: [&'static str; 4] = ["ansi", "dark", "light", "mono"];

    /// Returns the theme of this name that posse has.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ansi" => Self::ansi(),
            "dark" => built_in::DARK,
            "light" => built_in::LIGHT,
            "mono" => Self::mono(),
            _ => return None,
        })
    }

    /// Returns the theme of the terminal's own sixteen colours.
    pub fn ansi() -> Self {
        built_in::ANSI
    }

    /// Returns the theme without colour.
    pub fn mono() -> Self {
        let colors = [Color::Reset; COUNT];
        Self { colors }
    }

    /// Gives a role a colour, as [`color_of`] reads it.
    pub fn set(&mut self, role: ColorRole, color: Color) {
        if let Some(place) = self.colors.get_mut(role as usize) {
            *place = color;
        }
    }

    /// Returns the colour of a role.
    pub fn color(&self, role: ColorRole) -> Color {
        let color = self.colors.get(role as usize);
        color.copied().unwrap_or_default()
    }

    /// Returns the nearest theme for a terminal that has only so many colours.
    pub fn at_depth(self, depth: ColorDepth) -> Self {
        let colors = self.colors.map(|color| depth.nearest(color));
        Self { colors }
    }

    /// Returns a style of roles as a style of colours.
    pub(crate) fn drawn(&self, mut style: Style) -> Style {
        let role = style.fg.and_then(ColorRole::of);
        if let Some(role) = role {
            style.fg = Some(self.color(role));
        }
        let is_plain = style.fg.is_none_or(|color| color == Color::Reset);
        if style.add_modifier.contains(Modifier::DIM) {
            let quiet = self.color(ColorRole::Quiet);
            if is_plain {
                style.fg = Some(quiet);
            }
            // A colour that is chosen to be quiet must not become fainter still.
            let is_comment = role == Some(ColorRole::Comment) && !is_plain;
            if quiet != Color::Reset || is_comment {
                style.add_modifier.remove(Modifier::DIM);
            }
        }
        let selection = self.color(ColorRole::Selection);
        if style.add_modifier.contains(Modifier::REVERSED) && selection != Color::Reset {
            style.fg = Some(selection);
        }
        style
    }
}

#[cfg(test)]
mod tests;
