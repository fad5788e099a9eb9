//! A request as the prompt cache sees it: a sequence of blocks, each with the hash of everything
//! up to it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use serde_json::Value;

use crate::tokens;

/// The part of the prompt that a block belongs to, in the order they are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Tools,
    System,
    Messages,
}

/// How long an entry is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheTtl {
    FiveMinutes,
    OneHour,
}

/// One block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    pub(crate) section: Section,
    /// Hash of everything up to and including this block, without cache marks.
    pub(crate) hash: u64,
    /// Tokens up to and including this block.
    pub(crate) tokens: u64,
    pub(crate) mark: Option<CacheTtl>,
    /// Thinking is cached with what surrounds it and cannot have a mark.
    pub(crate) cacheable: bool,
}

/// A prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestPrefix {
    pub(crate) positions: Vec<Position>,
}

/// Hashes blocks one after another.
#[derive(Clone)]
pub(crate) struct Builder {
    hasher: DefaultHasher,
    tokens: u64,
    positions: Vec<Position>,
    /// Definitions of deferred tools by name, which are read where they are referred to.
    deferred: Arc<HashMap<String, String>>,
}

impl Builder {
    /// Starts with what every block depends on: the model.
    pub(crate) fn new(model: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(model.as_bytes());
        Self {
            hasher,
            tokens: 0,
            positions: Vec::new(),
            deferred: Arc::default(),
        }
    }

    /// Adds a deferred tool: it is no part of the prompt until a block refers to it.
    pub(crate) fn defer(&mut self, tool: &Value) {
        let name = tool["name"].as_str().unwrap_or_default();
        let mut definition = tool.clone();
        if let Some(fields) = definition.as_object_mut() {
            fields.shift_remove("defer_loading");
        }
        Arc::make_mut(&mut self.deferred).insert(name.to_owned(), definition.to_string());
    }

    /// Adds a setting that the rest depends on, unless it has its default.
    pub(crate) fn setting(&mut self, name: &str, value: &Value, default: &str) {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        if !value.is_null() && text != default {
            self.hasher.write(name.as_bytes());
            self.hasher.write(text.as_bytes());
        }
    }

    /// Adds a block. Its JSON is hashed with keys in the given order, without spaces and cache
    /// mark: what a model reads, not how it was written.
    pub(crate) fn block(&mut self, section: Section, role: &str, block: &Value) {
        let mark = mark_of(block);
        let text = match block.as_object() {
            Some(object) if object.contains_key("cache_control") => {
                let mut bare = object.clone();
                bare.shift_remove("cache_control");
                Value::Object(bare).to_string()
            }
            _ => block.to_string(),
        };
        self.hasher.write_u8(section as u8);
        self.hasher.write(role.as_bytes());
        self.hasher.write(text.as_bytes());
        self.tokens += tokens::of_block(text.len());
        for name in references(block) {
            if let Some(definition) = self.deferred.get(name) {
                self.hasher.write(definition.as_bytes());
                self.tokens += tokens::of_block(definition.len());
            }
        }
        let cacheable = !is_thinking(block);
        self.positions.push(Position {
            section,
            hash: self.hasher.finish(),
            tokens: self.tokens,
            mark,
            cacheable,
        });
    }

    /// Returns the hash of everything so far.
    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    pub(crate) fn finish(self) -> RequestPrefix {
        RequestPrefix {
            positions: self.positions,
        }
    }
}

impl RequestPrefix {
    /// Returns the tokens of the whole prompt.
    pub(crate) fn tokens(&self) -> u64 {
        self.positions.last().map_or(0, |last| last.tokens)
    }
}

/// Returns the names of the tools that a result refers to.
pub(crate) fn references(block: &Value) -> impl Iterator<Item = &str> {
    let parts = block["content"].as_array().into_iter().flatten();
    let references = parts.filter(|part| part["type"] == "tool_reference");
    references.filter_map(|part| part["tool_name"].as_str())
}

/// Returns true if a block is thinking, readable or not.
pub(crate) fn is_thinking(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

fn mark_of(block: &Value) -> Option<CacheTtl> {
    let mark = block.get("cache_control").filter(|mark| !mark.is_null())?;
    Some(ttl_of(mark))
}

/// Returns the time to live that a mark asks for.
pub(crate) fn ttl_of(mark: &Value) -> CacheTtl {
    if mark["ttl"] == "1h" {
        CacheTtl::OneHour
    } else {
        CacheTtl::FiveMinutes
    }
}
