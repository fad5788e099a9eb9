//! The paths that words could name.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::word::Word;

/// Maximum number of letters before the value in a cluster of short options.
const MOST_LETTERS: usize = 8;
/// Maximum number of signs in a word after which a value may begin.
const MOST_SIGNS: usize = 16;

/// Returns the word, and every part of it that could be a path: behind an option, a `=`, an `@`, a
/// `:` or a `,`, and in a `file:` URL.
pub(super) fn values(word: &Word) -> impl Iterator<Item = Cow<'_, str>> {
    let text = word.text.as_str();
    let short = text
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))
        .unwrap_or_default();
    let attached = short
        .char_indices()
        .skip(1)
        .take(MOST_LETTERS)
        .filter_map(|(at, _)| short.get(at..));
    let signs = text.match_indices(['=', '@', ':', ',']).take(MOST_SIGNS);
    let behind = signs.filter_map(|(at, sign)| {
        let value = text.get(at + 1..)?;
        // What follows the colon of a URL is not a path.
        (sign != ":" || !value.starts_with("//")).then_some(value)
    });
    let whole = std::iter::once(text).chain(behind);
    let parts = whole.flat_map(|value| {
        let first = value.split_once(',').map(|(first, _)| first);
        [Some(value), first].into_iter().flatten()
    });
    let plain = parts.chain(attached).filter(|value| !value.is_empty());
    plain
        .map(Cow::Borrowed)
        .chain(file_url(text).map(Cow::Owned))
}

/// Returns the path of a `file:` URL in a word.
fn file_url(text: &str) -> Option<String> {
    let at = text.to_ascii_lowercase().find("file:")?;
    let rest = text.get(at + "file:".len()..)?;
    let path = match rest.strip_prefix("//") {
        // What comes first is a host.
        Some(rest) => rest.get(rest.find('/')?..)?,
        None => rest,
    };
    Some(unescaped(path))
}

/// Returns a text with its `%2e` as characters.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let (byte, after) = match (*first, byte) {
            (b'%', Some(byte)) => (byte, &after[2..]),
            (first, _) => (first, after),
        };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a path as it is named in a directory, with its `.` and `..`. The shell replaces `~` also
/// behind a `=` or a `:`.
pub(super) fn path(place: &Path, value: &str, home: Option<&Path>) -> PathBuf {
    let in_home = value
        .strip_prefix('~')
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    match (in_home, home) {
        (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
        _ => place.join(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_that_could_be_a_path() {
        let values = |text: &str| -> Vec<String> {
            let word = Word::literal(text);
            values(&word).map(Cow::into_owned).collect()
        };
        let has = |text: &str, value: &str| {
            let found = values(text);
            assert!(found.iter().any(|it| it == value), "{text}: {found:?}");
        };
        has("src/a", "src/a");
        has("if=~/.ssh/id", "~/.ssh/id");
        has("--mount=type=bind,source=/etc,target=/x", "/etc");
        has("-ofile", "file");
        has("@list", "list");
        has("HEAD:.env", ".env");
        has("file:///h/.ssh/id_rsa", "/h/.ssh/id_rsa");
        has("FILE://localhost/h/%2essh/id", "/h/.ssh/id");
        has("url=file:/h/a", "/h/a");
        assert!(!values("https://a.b/c").iter().any(|it| it == "//a.b/c"));
        let home = Some(Path::new("/h"));
        assert_eq!(path("/w".as_ref(), "~/a", home), Path::new("/h/a"));
        assert_eq!(path("/w".as_ref(), "b/../a", home), Path::new("/w/b/../a"));
        assert_eq!(path("/w".as_ref(), "~x", home), Path::new("/w/~x"));
    }
}
