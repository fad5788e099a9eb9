//! A definition from its text: Markdown with YAML in front, or an entry of `--agents`.

mod field;
mod front;
mod name;
mod plain;
mod tools;
mod yaml;

use serde_json::Value;

use self::front::Front;
use super::{Definition, MemoryScope};

pub use self::name::check_name;

/// Bytes of a file. Prompts are some thousand; what is far beyond is no definition.
const LONGEST: usize = 256 * 1024;

/// Something about a file, by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong or odd there.
    pub reason: String,
}

impl Problem {
    fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// A definition that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The definition; its `memory` is none, for where notes lie is not in the text.
    pub definition: Definition,
    /// Whose notes it keeps, if any.
    pub memory: Option<MemoryScope>,
    /// What is odd but no error.
    pub notes: Vec<Problem>,
}

/// Reads a file's text. None: it has no front matter, so it is no definition (a README beside them).
pub fn read(text: &str) -> Result<Option<Read>, Problem> {
    if text.len() > LONGEST {
        return Err(Problem::new(1, format!("the file is longer than {} KiB", LONGEST / 1024)));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let Some(front) = Front::of(&text)? else { return Ok(None) };

    let (fields, notes) = yaml::fields(front.yaml)
        .or_else(|broken| plain::fields(front.yaml, broken))
        .map_err(|Problem { line, reason }| Problem { line: front.opening + line, reason })?;
    let mut read = Read { notes, ..Read::default() };
    for field in fields {
        let mut odd = Vec::new();
        field::take(&mut read, &field.key, field.value, &mut odd)
            .map_err(|reason| Problem::new(front.opening + field.line, reason))?;
        read.notes.extend(odd.into_iter().map(|reason| Problem::new(field.line, reason)));
    }
    for note in &mut read.notes {
        note.line += front.opening;
    }
    read.notes.sort_by_key(|note| note.line);

    read.definition.prompt = front.body.trim().to_owned();
    match field::missing(&read.definition) {
        Some("prompt") => Err(Problem::new(
            front.closing,
            "there is no prompt: what the agent is told stands below this line",
        )),
        Some(key) => Err(Problem::new(front.opening, format!("`{key}` is missing"))),
        None => Ok(Some(read)),
    }
}

/// Reads one entry of `--agents`: the fields of front matter, and `prompt`. It has no lines; all notes
/// have the first.
pub fn from_json(name: &str, value: &Value) -> Result<Read, String> {
    check_name(name)?;
    let Value::Object(fields) = value else {
        return Err(format!("a definition is an object, not {}", field::kind(value)));
    };
    let mut read = Read::default();
    let mut odd = Vec::new();
    for (key, value) in fields {
        match key.as_str() {
            "name" => odd.push("`name` is not heeded: the entry has the name already".to_owned()),
            "prompt" => read.definition.prompt = field::text(key, value.clone())?,
            _ => field::take(&mut read, key, value.clone(), &mut odd)?,
        }
    }
    name.clone_into(&mut read.definition.name);
    if let Some(key) = field::missing(&read.definition) {
        return Err(format!("`{key}` is missing"));
    }
    read.notes = odd.into_iter().map(|reason| Problem::new(1, reason)).collect();
    Ok(read)
}

#[cfg(test)]
mod tests;
