//! Checks that validating with a schema is bounded: it refers to no other document and not to
//! itself, and is not too large once each reference is replaced by its target.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::definition::output_schema::error::SchemaError;
use crate::definition::output_schema::{MOST_LEVELS, MOST_PARTS};

/// Keywords by which a reference could mean another place than the one it names.
const MOVING: [&str; 4] = ["$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor"];

/// Refuses a schema that is not bounded.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    let mut walk = Walk {
        root: schema,
        known: HashMap::new(),
    };
    let size = walk.size(schema)?;
    if size.levels > MOST_LEVELS {
        return Err(SchemaError::TooDeep(size.levels));
    }
    if size.parts > MOST_PARTS {
        return Err(SchemaError::TooLarge);
    }
    Ok(())
}

/// Size of a part.
#[derive(Clone, Copy, Default)]
struct Size {
    levels: usize,
    parts: usize,
}

impl Size {
    fn and(self, other: Self) -> Self {
        Self {
            levels: self.levels.max(other.levels),
            parts: self.parts.saturating_add(other.parts),
        }
    }
}

struct Walk<'a> {
    root: &'a Value,
    /// Size of each reference's target; none while it is being computed, which detects a cycle.
    known: HashMap<&'a str, Option<Size>>,
}

impl<'a> Walk<'a> {
    fn size(&mut self, part: &'a Value) -> Result<Size, SchemaError> {
        let mut size = Size::default();
        match part {
            Value::Object(map) => {
                for (key, value) in map {
                    size = size.and(self.size(value)?);
                    size = size.and(self.referred(key, value)?);
                }
                self.stays(part, map)?;
            }
            Value::Array(list) => {
                for value in list {
                    size = size.and(self.size(value)?);
                }
            }
            _ => return Ok(size),
        }
        Ok(Size {
            levels: size.levels + 1,
            parts: size.parts.saturating_add(1),
        })
    }

    /// Returns the size of a reference's target.
    fn referred(&mut self, key: &str, value: &'a Value) -> Result<Size, SchemaError> {
        let ("$ref", Value::String(to)) = (key, value) else {
            return Ok(Size::default());
        };
        match self.known.get(to.as_str()) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => return Err(SchemaError::Recursive(to.clone())),
            None => {}
        }
        let place = to
            .strip_prefix('#')
            .ok_or_else(|| SchemaError::OtherDocument(to.clone()))?;
        if place.is_empty() {
            return Err(SchemaError::Recursive(to.clone()));
        }
        // A percent sign could be read in two ways.
        let target = Some(place).filter(|place| place.starts_with('/') && !place.contains('%'));
        let target = target.and_then(|place| self.root.pointer(place));
        let target = target.ok_or_else(|| SchemaError::Dangling(to.clone()))?;
        self.known.insert(to, None);
        let size = self.size(target)?;
        self.known.insert(to, Some(size));
        Ok(size)
    }

    /// Refuses keywords by which references lead elsewhere.
    fn stays(&self, part: &Value, map: &Map<String, Value>) -> Result<(), SchemaError> {
        let said = |word: &str| map.get(word).is_some_and(Value::is_string);
        if let Some(word) = MOVING.into_iter().find(|word| said(word)) {
            return Err(SchemaError::OtherReference(word));
        }
        let whole = std::ptr::eq(part, self.root);
        match ["$id", "$schema"]
            .into_iter()
            .find(|word| !whole && said(word))
        {
            Some(word) => Err(SchemaError::Inner(word)),
            None => Ok(()),
        }
    }
}
