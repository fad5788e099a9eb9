//! Configuration on the command line: JSON, or a file.

/// Parses JSON or the path of a file: a path becomes absolute, because the session and its panes may
/// work elsewhere.
pub(super) fn json_or_file(text: &str) -> std::io::Result<String> {
    if text.trim_start().starts_with('{') {
        return Ok(text.to_owned());
    }
    let path = std::path::absolute(text)?.into_os_string();
    let is_odd = |_| std::io::Error::other("the name of the working directory is not text");
    path.into_string().map_err(is_odd)
}
