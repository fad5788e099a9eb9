//! The theme that a person has chosen: one of posse's, a file of theirs, or colours in the settings.

use std::path::Path;

use posse_port::closest;
use posse_tui::theme::{ColorRole, Theme, color_of};

use super::toml_file::TomlFile;
use super::unknown;
use crate::config::settings::ui::ThemeChoice;

/// Returns the theme, and says what of the choice does not hold.
pub(super) fn chosen(
    choice: Option<&ThemeChoice>,
    home: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Theme {
    match choice {
        None => Theme::ansi(),
        Some(ThemeChoice::Named(name)) => named(name, home, warnings),
        Some(ThemeChoice::Colors(colors)) => {
            let mut theme = Theme::ansi();
            for (role, color) in colors {
                if let Some(fault) = set(&mut theme, role, color) {
                    warnings.push(format!("ui.theme of the settings: {fault}"));
                }
            }
            theme
        }
    }
}

fn named(name: &str, home: Option<&Path>, warnings: &mut Vec<String>) -> Theme {
    if let Some(theme) = Theme::named(name) {
        return theme;
    }
    let directory = home.map(|home| home.join("themes"));
    // Not a path: a name stays in the directory.
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let path = match (&directory, name.chars().all(is_name) && !name.is_empty()) {
        (Some(directory), true) => Some(directory.join(format!("{name}.toml"))),
        _ => None,
    };
    match path.and_then(|path| TomlFile::read(&path, warnings)) {
        Some(file) => of_file(&file, warnings),
        None => {
            warnings.push(no_theme(name, directory.as_deref()));
            Theme::ansi()
        }
    }
}

/// Returns the remark about a name that no theme has.
fn no_theme(name: &str, directory: Option<&Path>) -> String {
    let mut names: Vec<String> = Theme::BUILT_IN.map(str::to_owned).to_vec();
    let files = directory.and_then(|directory| std::fs::read_dir(directory).ok());
    for file in files.into_iter().flatten().flatten() {
        let path = file.path();
        if path.extension().is_some_and(|it| it == "toml")
            && let Some(stem) = path.file_stem()
        {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hint = match closest(name, &names) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are {}", names.join(", ")),
    };
    format!("there is no theme `{name}` ({hint}); it is `ansi`")
}

/// Returns the theme of a file. What it does not name is as in `ansi`.
fn of_file(file: &TomlFile, warnings: &mut Vec<String>) -> Theme {
    let mut theme = Theme::ansi();
    for (role, color) in &file.table(warnings) {
        let fault = match color.get_ref().as_str() {
            Some(color) => set(&mut theme, role.get_ref(), color),
            None => Some("a colour is text, as \"#ff8800\" or \"red\"".to_owned()),
        };
        warnings.extend(fault.map(|fault| file.remark(role.span().start, &fault)));
    }
    theme
}

/// Gives a role a colour, both as they are written. Returns what is wrong with them.
fn set(theme: &mut Theme, role: &str, color: &str) -> Option<String> {
    let Some(known) = ColorRole::named(role) else {
        let names = ColorRole::ALL.map(ColorRole::name);
        return Some(unknown("role", role, &names));
    };
    let Some(color) = color_of(color) else {
        return Some(format!(
            "`{color}` is not a colour for `{role}`; write #rrggbb, default, or one of the terminal's own, such as red or bright-red"
        ));
    };
    theme.set(known, color);
    None
}
