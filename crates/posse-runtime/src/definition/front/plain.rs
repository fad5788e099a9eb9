//! Front matter that is not valid YAML, as people write it: `description: Use it for this: that`.

use std::collections::HashSet;

use serde_json::Value;

use crate::definition::front::value::quoted;
use crate::definition::front::yaml;
use crate::definition::front::yaml::Broken;
use crate::definition::front::{Field, Fields, Keys, Problem};
use posse_port::closest;

/// Maximum number of keys: each is parsed as a document of its own.
const MOST: usize = 200;

/// A key with all lines up to the next key.
struct Block<'a> {
    key: &'a str,
    line: usize,
    lines: Vec<&'a str>,
}

/// Parses fields of a text that is not YAML: each on its own, as YAML if it is valid, otherwise
/// verbatim if it is a text.
pub(super) fn fields(yaml: &str, broken: Broken, keys: &Keys) -> Result<Fields, Problem> {
    if broken.too_much {
        return Err(broken.problem);
    }
    let Some(blocks) = blocks(yaml, keys) else {
        return Err(broken.problem);
    };
    let mut seen = HashSet::new();
    let (mut fields, mut notes) = (Vec::new(), Vec::new());
    if let Some(block) = blocks.get(MOST) {
        return Err(Problem::new(
            block.line,
            format!("there are more than {MOST} keys"),
        ));
    }
    for block in blocks {
        if !seen.insert(block.key) {
            return Err(Problem::new(
                block.line,
                format!("`{}` is given twice", quoted(block.key)),
            ));
        }
        match yaml::fields(&block.lines.join("\n"), keys) {
            Ok((found, odd)) => {
                let above = block.line - 1;
                fields.extend(found.into_iter().map(|field| Field {
                    line: field.line + above,
                    ..field
                }));
                notes.extend(odd.into_iter().map(|note| Problem {
                    line: note.line + above,
                    ..note
                }));
            }
            Err(_) if let Some(text) = block.plain(keys) => {
                let reason = format!("`{}` is not quoted; read as plain text", quoted(block.key));
                notes.push(Problem::new(block.line, reason));
                fields.push(Field {
                    key: block.key.to_owned(),
                    line: block.line,
                    value: Value::String(text),
                });
            }
            Err(Broken { problem, .. }) => {
                return Err(Problem {
                    line: problem.line + block.line - 1,
                    ..problem
                });
            }
        }
    }
    Ok((fields, notes))
}

/// Splits the text where keys begin; none if it does not begin with a key.
fn blocks<'a>(yaml: &'a str, keys: &Keys) -> Option<Vec<Block<'a>>> {
    let mut blocks: Vec<Block<'a>> = Vec::new();
    // Number of open examples: `user: …` inside one is not a key.
    let mut open = 0_usize;
    for (at, line) in yaml.lines().enumerate() {
        match key_of(line).filter(|key| open == 0 || is_meant(key, keys)) {
            Some(key) => {
                open = 0;
                blocks.push(Block {
                    key,
                    line: at + 1,
                    lines: vec![line],
                });
            }
            None if line.trim().is_empty() || line.starts_with('#') => {
                if let Some(block) = blocks.last_mut() {
                    block.lines.push("");
                }
            }
            None => blocks.last_mut()?.lines.push(line),
        }
        open = (open + line.matches("<example>").count())
            .saturating_sub(line.matches("</example>").count());
    }
    (!blocks.is_empty()).then_some(blocks)
}

/// Returns the key at the beginning of a line.
fn key_of(line: &str) -> Option<&str> {
    let (key, rest) = line.split_once(':')?;
    let fits = key.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    (fits && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some(key)
}

/// Returns true if a key exists, or is nearly one that does.
fn is_meant(key: &str, keys: &Keys) -> bool {
    key.len() <= 64 && closest(key, keys.all).is_some()
}

impl Block<'_> {
    /// Returns the text verbatim, if it has no quotes, no YAML syntax and no invisible characters.
    fn plain(&self, keys: &Keys) -> Option<String> {
        let (first, more) = self.lines.split_first()?;
        let first = first.split_once(':')?.1.trim();
        let marked: &[char] = match self.key {
            key if keys.texts.contains(&key) => &['"', '\'', '|', '>'],
            key if keys.lists.contains(&key) => &['"', '\'', '|', '>', '[', '{', '&', '!'],
            key if keys.all.contains(&key) => return None,
            _ => &['"', '\'', '|', '>', '[', '{', '&', '*', '!'],
        };
        if first.is_empty() || first.starts_with(marked) {
            return None;
        }
        let lines: Vec<&str> = [first]
            .into_iter()
            .chain(more.iter().map(|line| line.trim()))
            .collect();
        let text = lines.join("\n");
        let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        (!text.contains(odd)).then(|| text.trim_end().to_owned())
    }
}
