//! Markdown with YAML front matter: the format of agent types, skills and commands. Which keys
//! there are is up to the caller.

pub(crate) mod error;
mod fence;
mod plain;
pub(crate) mod value;
mod yaml;

use serde_json::Value;

use crate::definition::front::fence::Fence;

/// Maximum size of a file in bytes. Texts for models have some thousand.
const LONGEST: usize = 256 * 1024;

/// A problem in a file, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

impl Problem {
    pub(crate) fn new(line: usize, reason: impl std::fmt::Display) -> Self {
        Self {
            line,
            reason: reason.to_string(),
        }
    }
}

/// Keys of a kind of file.
pub(crate) struct Keys {
    /// All of them.
    pub(crate) all: &'static [&'static str],
    /// Keys whose values are text of any kind.
    pub(crate) texts: &'static [&'static str],
    /// Those of them whose values are sentences.
    pub(crate) prose: &'static [&'static str],
    /// Keys whose values are names, in a list or in a text.
    pub(crate) lists: &'static [&'static str],
}

/// One key with its value.
pub(crate) struct Field {
    pub(crate) key: String,
    /// Its line, from 1.
    pub(crate) line: usize,
    pub(crate) value: Value,
}

/// Fields, and warnings about how they are written.
type Fields = (Vec<Field>, Vec<Problem>);

/// A parsed file. Line numbers are those of the file.
pub(crate) struct Page {
    pub(crate) fields: Vec<Field>,
    /// Warnings about how the fields are written.
    pub(crate) notes: Vec<Problem>,
    /// Text below the fields, trimmed.
    pub(crate) body: String,
    /// Line at which that begins.
    pub(crate) body_line: usize,
    /// The lines of the two `---`; both 1 if there are none.
    pub(crate) opening: usize,
    pub(crate) closing: usize,
    /// True if there is front matter.
    pub(crate) has_front: bool,
}

impl Page {
    /// Parses a text. Without front matter, all of it is the body.
    pub(crate) fn of(text: &str, keys: &Keys) -> Result<Self, Problem> {
        if text.len() > LONGEST {
            return Err(Problem::new(
                1,
                format!("the file is longer than {} KiB", LONGEST / 1024),
            ));
        }
        let text = text
            .strip_prefix('\u{feff}')
            .unwrap_or(text)
            .replace("\r\n", "\n")
            .replace('\r', "\n");
        let Some(fence) = Fence::of(&text)? else {
            let (fields, notes, body) = (Vec::new(), Vec::new(), text.trim().to_owned());
            let body_line = 1 + lines_above(&text);
            return Ok(Self {
                fields,
                notes,
                body,
                body_line,
                opening: 1,
                closing: 1,
                has_front: false,
            });
        };
        let Fence {
            opening,
            yaml,
            closing,
            body,
        } = fence;
        let (mut fields, mut notes) = yaml::fields(yaml, keys)
            .or_else(|broken| plain::fields(yaml, broken, keys))
            .map_err(|Problem { line, reason }| Problem {
                line: opening + line,
                reason,
            })?;
        fields.iter_mut().for_each(|field| field.line += opening);
        notes.iter_mut().for_each(|note| note.line += opening);
        let (body_line, body) = (closing + 1 + lines_above(body), body.trim().to_owned());
        Ok(Self {
            fields,
            notes,
            body,
            body_line,
            opening,
            closing,
            has_front: true,
        })
    }
}

/// Returns the number of empty lines at the beginning.
fn lines_above(text: &str) -> usize {
    text[..text.len() - text.trim_start().len()]
        .matches('\n')
        .count()
}
