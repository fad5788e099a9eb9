//! Texts about tools that were loaded in mid-conversation.

use crate::definition::tool_name::TOOL_SEARCH;
use posse_port::text::line;

/// Maximum number of tools that are named.
const TOOLS: usize = 200;

/// Returns what is told instead of definitions that the model has.
pub(crate) fn tools_already_loaded(names: &[String]) -> String {
    format!("Already loaded: {}.", names.join(", "))
}

/// Returns what is told of the tools that a history had loaded, when it is gone.
pub(super) fn tools_to_load_again(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let named: Vec<_> = names.iter().take(TOOLS).map(|name| line(name)).collect();
    let more = match names.len().saturating_sub(TOOLS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "Tools you had loaded, and must load again with {TOOL_SEARCH} before you call them: {}{more}\n",
        named.join(", ")
    )
}
