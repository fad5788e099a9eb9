//! Files that a person names with `@` in a prompt, as a model reads them.

use std::path::Path;

use posse_port::text::{attribute, neutral};

/// Returns a file or a directory's listing in its frame.
pub fn attached(path: &Path, text: &str) -> String {
    let path = attribute(&path.display().to_string());
    let text = neutral(text.trim_end());
    format!("<attached-file path=\"{path}\">\n{text}\n</attached-file>")
}
