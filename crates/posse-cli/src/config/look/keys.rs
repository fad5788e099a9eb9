//! `keys.toml` in posse's home: chords for actions, in place of those that posse has.

use std::path::Path;

use posse_port::closest;
use posse_tui::board::BoardKeys;
use posse_tui::conversation::ConversationKeys;
use posse_tui::keymap::{Chord, KeyProblem, WrongChord};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::toml_file::TomlFile;
use super::unknown;

/// The tables of the file.
const PARTS: [&str; 2] = ["conversation", "board"];

/// Which keys do what.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChosenKeys {
    pub(crate) conversation: ConversationKeys,
    pub(crate) board: BoardKeys,
}

/// Returns the name of the file.
pub(crate) fn file_in(home: &Path) -> std::path::PathBuf {
    home.join("keys.toml")
}

/// Returns the keys, and says what of the file does not hold.
pub(super) fn read(home: Option<&Path>, warnings: &mut Vec<String>) -> ChosenKeys {
    let mut keys = ChosenKeys::default();
    let path = home.map(file_in);
    let Some(file) = path.and_then(|path| TomlFile::read(&path, warnings)) else {
        return keys;
    };
    for (name, part) in file.table(warnings) {
        let at = name.span().start;
        let Some(table) = part.get_ref().as_table() else {
            let what = format!("`{}` belongs in [conversation] or [board]", name.get_ref());
            warnings.push(file.remark(at, &what));
            continue;
        };
        let part = name.get_ref().as_ref();
        match part {
            "conversation" => each(&file, table, warnings, |action, chords| {
                let names = ConversationKeys::names();
                (keys.conversation.bind(action, chords), names)
            }),
            "board" => each(&file, table, warnings, |action, chords| {
                (keys.board.bind(action, chords), BoardKeys::names())
            }),
            _ => {
                let what = unknown("table", part, &PARTS);
                warnings.push(file.remark(at, &what));
            }
        }
    }
    keys
}

/// Gives each action of a table its chords, in the order of the file.
fn each(
    file: &TomlFile,
    table: &DeTable<'_>,
    warnings: &mut Vec<String>,
    mut bind: impl FnMut(&str, &[String]) -> (Vec<KeyProblem>, Vec<&'static str>),
) {
    let mut rows: Vec<_> = table.iter().collect();
    rows.sort_by_key(|(name, _)| name.span().start);
    for (name, value) in rows {
        let at = name.span().start;
        let Some(chords) = chords(value) else {
            let what = "a chord is text, as \"ctrl-x\", or a list of texts";
            warnings.push(file.remark(at, what));
            continue;
        };
        let (problems, names) = bind(name.get_ref(), &chords);
        for problem in problems {
            warnings.push(file.remark(at, &words(&problem, name.get_ref(), &names)));
        }
    }
}

/// Returns the chords of a value. An empty text is none.
fn chords(value: &Spanned<DeValue<'_>>) -> Option<Vec<String>> {
    let all = match value.get_ref() {
        DeValue::String(one) => vec![one.to_string()],
        DeValue::Array(many) => {
            let texts = many.iter().map(|one| one.get_ref().as_str());
            texts
                .map(|text| text.map(str::to_owned))
                .collect::<Option<_>>()?
        }
        _ => return None,
    };
    let is_some = |chord: &String| !chord.is_empty();
    Some(all.into_iter().filter(is_some).collect())
}

/// Returns a problem in words.
fn words(problem: &KeyProblem, action: &str, names: &[&str]) -> String {
    match problem {
        KeyProblem::UnknownAction(action) => unknown("action", action, names),
        KeyProblem::Wrong { chord, why } => {
            let meant = match why {
                WrongChord::UnknownKey(word) | WrongChord::UnknownModifier(word) => {
                    let known = Chord::words();
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    closest(word, &known).map(str::to_owned)
                }
                WrongChord::SentAs(_) => None,
            };
            let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)"));
            let meant = meant.unwrap_or_default();
            format!("`{chord}` is ignored for `{action}`: {why}{meant}")
        }
        KeyProblem::Refused { chord, why } => {
            format!("{chord} is ignored for `{action}`: {why}")
        }
        KeyProblem::Taken { chord, by } => {
            format!("{chord} is ignored for `{action}`: `{by}` has it")
        }
    }
}
