//! Markdown as styled lines, whole or while it streams.
