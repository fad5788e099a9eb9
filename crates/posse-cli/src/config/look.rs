//! How posse looks to a person, and which keys it has, as their settings and files say.
//!
//! A mistake in them is a warning: nobody is kept from their work by a colour or a key.

pub(crate) mod keys;
mod theme;
mod toml_file;

use std::path::Path;

use posse_port::closest;
use posse_tui::theme::{ColorDepth, Theme};

use self::keys::ChosenKeys;
use super::search_paths::SearchPaths;
use super::settings;
use crate::error::SettingsError;
use crate::output::{say, tame};

/// How posse looks.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) theme: Theme,
    pub(crate) keys: ChosenKeys,
    /// True if the mouse is used where posse has the whole screen.
    pub(crate) mouse: bool,
    /// What was ignored, each with its file.
    pub(crate) warnings: Vec<String>,
}

impl Look {
    /// Reads it, for a terminal with so many colours; none if no colour is wanted.
    pub(crate) fn load(depth: Option<ColorDepth>) -> Result<Self, SettingsError> {
        // Any directory: no repository decides about it.
        Self::read(&SearchPaths::at(Path::new("/")), depth)
    }

    fn read(places: &SearchPaths, depth: Option<ColorDepth>) -> Result<Self, SettingsError> {
        let set = settings::ui_settings(places)?;
        let mut warnings = Vec::new();
        let home = places.posse_home.as_deref();
        let chosen = theme::chosen(set.theme.as_ref(), home, &mut warnings);
        let theme = match depth {
            Some(depth) => chosen.at_depth(depth),
            None => Theme::mono(),
        };
        let keys = keys::read(home, &mut warnings);
        Ok(Self {
            theme,
            keys,
            mouse: set.mouse.unwrap_or(true),
            warnings,
        })
    }

    /// Prints the warnings.
    pub(crate) fn warn(&self) {
        for warning in &self.warnings {
            say(&format!("warning: {}", tame(warning)));
        }
    }
}

/// Returns the remark about a name that is not known.
fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    match closest(name, names) {
        Some(meant) => format!("unknown {what} `{name}` (did you mean `{meant}`?)"),
        None => format!("unknown {what} `{name}`; there are {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests;
