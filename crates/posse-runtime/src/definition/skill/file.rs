//! Parses a skill: Markdown, usually with YAML front matter.

mod field;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::definition::front::Page;
use crate::definition::front::Problem;
use crate::definition::front::value::quoted;
use crate::definition::skill::file::field::Fields;
use crate::definition::skill::{Skill, SkillBody, check_name};

/// Maximum length of a skill's description for models, in characters.
pub(crate) const TOLD: usize = 1_536;

/// Kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `SKILL.md` in a directory of its own, which is its name.
    Skill,
    /// A single file, whose path is its name.
    Command,
}

/// A parsed skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The skill, without hooks yet.
    pub skill: Skill,
    /// Its hooks as they are written, since the text does not say whose they are.
    pub hooks: Option<Value>,
    /// Warnings.
    pub notes: Vec<Problem>,
}

/// Parses a file. Its place determines its name, whatever the text says.
pub fn read(text: &str, name: &str, path: &Path, kind: Kind) -> Result<Read, Problem> {
    let page = Page::of(text, &field::KEYS)?;
    check_name(name).map_err(|reason| Problem::new(1, reason))?;
    let mut fields = Fields::default();
    let mut notes = page.notes;
    for field in page.fields {
        let mut odd = Vec::new();
        fields
            .take(&field.key, field.value, &mut odd)
            .map_err(|reason| Problem::new(field.line, reason))?;
        odd.extend(fields.misplaced(&field.key, name));
        notes.extend(
            odd.into_iter()
                .map(|reason| Problem::new(field.line, reason)),
        );
    }
    if page.body.is_empty() {
        let reason = "the instructions are missing: write them below this line";
        return Err(Problem::new(page.closing, reason));
    }
    let description = match fields.description.take() {
        Some(description) => description,
        None => {
            let reason = "`description` is missing: the first line of the instructions is used";
            notes.extend((kind == Kind::Skill).then(|| Problem::new(page.opening, reason)));
            first_line(&page.body)
        }
    };
    let body = SkillBody::new(&page.body, &fields.arguments)
        .map_err(|(line, reason)| Problem::new(page.body_line + line, reason))?;
    let (fork, alone) = fields.fork();
    notes.extend(
        alone
            .into_iter()
            .map(|reason| Problem::new(page.opening, reason)),
    );
    if !fields.for_model && !fields.for_user {
        let reason = "neither a model nor a person may call it; only agents that name it in `skills` have \
             it";
        notes.push(Problem::new(page.opening, reason));
    }
    notes.sort_by_key(|note| note.line);
    let skill = Skill {
        name: name.to_owned(),
        description,
        when_to_use: fields.when_to_use,
        argument_hint: fields.argument_hint,
        arguments: fields.arguments,
        for_model: fields.for_model,
        for_user: fields.for_user,
        allowed: fields.allowed,
        disallowed: fields.disallowed,
        hooks: Vec::new(),
        fork,
        body,
        path: PathBuf::from(path),
    };
    Ok(Read {
        skill,
        hooks: fields.hooks,
        notes,
    })
}

/// Returns the first line, as the description of a skill without one.
fn first_line(body: &str) -> String {
    let line = body
        .lines()
        .map(|line| line.trim_start_matches('#').trim())
        .find(|line| !line.is_empty());
    quoted(line.unwrap_or_default())
}
