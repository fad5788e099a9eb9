//! Parses a definition: Markdown with YAML front matter, or an entry of `--agents`.

mod field;
mod name;
#[cfg(test)]
mod tests;
mod tools;

use serde_json::Value;

use crate::definition::agent_type::{Definition, MemoryScope};
use crate::definition::front::error::FieldError;
use crate::definition::front::{Page, value};

pub use crate::definition::agent_type::file::name::check_name;
pub use crate::definition::agent_type::file::tools::unavailable;
use crate::definition::front::Problem;

/// A parsed definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadDefinition {
    /// The definition; its `memory` is none, because the text does not say where notes are, and it has
    /// no hooks yet.
    pub definition: Definition,
    /// Who shares its notes, if it keeps any.
    pub memory: Option<MemoryScope>,
    /// Its hooks as they are written, since the text does not say whose they are.
    pub hooks: Option<Value>,
    /// A permission mode that posse does not have; `default` is used.
    pub unknown_mode: Option<String>,
    /// Warnings.
    pub notes: Vec<Problem>,
}

/// Parses a file. Returns none if it has no front matter and so is not a definition, such as a
/// README.
pub fn read(text: &str) -> Result<Option<ReadDefinition>, Problem> {
    let page = Page::of(text, &field::KEYS)?;
    if !page.has_front {
        return Ok(None);
    }
    let mut read = ReadDefinition {
        notes: page.notes,
        ..ReadDefinition::default()
    };
    for field in page.fields {
        let mut odd = Vec::new();
        field::take(&mut read, &field.key, field.value, &mut odd)
            .map_err(|reason| Problem::new(field.line, reason))?;
        read.notes.extend(
            odd.into_iter()
                .map(|reason| Problem::new(field.line, reason)),
        );
    }
    read.notes.sort_by_key(|note| note.line);
    read.definition.prompt = page.body;
    match field::missing(&read.definition) {
        Some("prompt") => Err(Problem::new(
            page.closing,
            "the prompt is missing: write it below this line",
        )),
        Some(key) => Err(Problem::new(page.opening, format!("`{key}` is missing"))),
        None => Ok(Some(read)),
    }
}

/// Parses one entry of `--agents`: the fields of front matter, and `prompt`. It has no lines, so
/// all warnings have the first.
pub fn from_json(name: &str, entry: &Value) -> Result<ReadDefinition, FieldError> {
    check_name(name)?;
    let Value::Object(fields) = entry else {
        return Err(FieldError::NotAnObject(value::kind(entry)));
    };
    let mut read = ReadDefinition::default();
    let mut odd = Vec::new();
    for (key, value) in fields {
        match key.as_str() {
            "name" => odd.push("`name` is ignored: the entry already has its name".to_owned()),
            "prompt" => read.definition.prompt = value::text(key, value.clone())?,
            _ => field::take(&mut read, key, value.clone(), &mut odd)?,
        }
    }
    name.clone_into(&mut read.definition.name);
    if let Some(key) = field::missing(&read.definition) {
        return Err(FieldError::Missing(key));
    }
    read.notes = odd
        .into_iter()
        .map(|reason| Problem::new(1, reason))
        .collect();
    Ok(read)
}
