//! Images in prompts: files that are pasted or dragged in, and what is in the clipboard.

use std::collections::BTreeMap;

use super::{AttachedImage, Conversation, Effect, Request, menu};

/// Number of bytes of all images that are kept.
const MOST_BYTES: usize = 64 << 20;
/// Number of bytes of the longest path.
const LONGEST_PATH: usize = 4096;
/// Number of characters of a name that are shown.
const NAME: usize = 36;
/// How names of images end.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// The images of prompts, by the numbers of their chips.
#[derive(Default)]
pub(super) struct Images(BTreeMap<u32, AttachedImage>);

impl Images {
    fn keep(&mut self, number: u32, image: AttachedImage) {
        self.0.insert(number, image);
        let mut total: usize = self.0.values().map(|image| image.data.len()).sum();
        // The one that has just come stays, however large.
        while total > MOST_BYTES && self.0.len() > 1 {
            total -= self.0.pop_first().map_or(0, |(_, image)| image.data.len());
        }
    }
}

/// Puts an image into the prompt.
pub(super) fn attach(it: &mut Conversation, image: AttachedImage) {
    let name: String = image.name.chars().take(NAME).collect();
    let about = format!("{name} {}", size(image.bytes));
    if let Some(number) = it.draft.insert_image(&about) {
        it.drafts.images.keep(number, image);
    }
}

/// Returns the images that stand in the prompt, in order.
pub(super) fn of_draft(it: &mut Conversation) -> Vec<AttachedImage> {
    let numbers = it.draft.images();
    let found = numbers
        .iter()
        .filter_map(|number| it.drafts.images.0.get(number));
    let found: Vec<AttachedImage> = found.cloned().collect();
    if found.len() < numbers.len() {
        it.notice = Some("an image is too old and was not sent; add it again".to_owned());
    }
    found
}

/// Pastes text as it is.
pub(super) fn paste_text(it: &mut Conversation, text: &str) -> Vec<Effect> {
    it.draft.paste(text);
    menu::refresh(it)
}

/// Handles a paste: the path of an image is asked for, all else is text.
pub(super) fn paste(it: &mut Conversation, text: &str) -> Vec<Effect> {
    match path(text) {
        Some(path) => vec![Effect::Ask(Request::ImageFile {
            path,
            pasted: text.to_owned(),
        })],
        None => paste_text(it, text),
    }
}

/// Returns the path of an image, if a text looks like one: terminals quote or escape the names of
/// files that are dragged into them.
fn path(text: &str) -> Option<String> {
    let text = text.trim();
    let lower = text.trim_end_matches(['\'', '"']).to_lowercase();
    let is_name = text.len() <= LONGEST_PATH && !text.contains('\n');
    if !is_name || !ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
        return None;
    }
    for quote in ['\'', '"'] {
        let inner = text.strip_prefix(quote);
        if let Some(inner) = inner.and_then(|rest| rest.strip_suffix(quote)) {
            return Some(inner.to_owned());
        }
    }
    match text.strip_prefix("file://") {
        Some(address) => Some(unescaped(address, '%')),
        None => Some(unescaped(text, '\\')),
    }
}

/// Returns a path without its escapes: `%20`, or a backslash before a character.
fn unescaped(text: &str, sign: char) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(sign) {
        bytes.extend(before.as_bytes());
        let code = after.get(..2).filter(|_| sign == '%');
        rest = match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                after.get(2..).unwrap_or_default()
            }
            None => {
                let first = after.chars().next();
                let length = first.map_or(0, char::len_utf8);
                bytes.extend(&after.as_bytes()[..length]);
                &after[length..]
            }
        };
    }
    bytes.extend(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns a size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes.div_ceil(1000)),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_images_are_known() {
        for (text, expected) in [
            ("/tmp/shot.png", Some("/tmp/shot.png")),
            (" shots/A.JPEG \n", Some("shots/A.JPEG")),
            ("'/tmp/a b.gif'", Some("/tmp/a b.gif")),
            ("\"/tmp/a b.webp\"", Some("/tmp/a b.webp")),
            ("/tmp/a\\ \\(1\\).png", Some("/tmp/a (1).png")),
            ("file:///tmp/a%20%C3%A9.png", Some("/tmp/a é.png")),
            ("100%.png", Some("100%.png")),
            ("see a\nand b.png", None),
            ("a.png is wrong", None),
            ("a.pdf", None),
        ] {
            assert_eq!(path(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn sizes_are_rounded_up() {
        assert_eq!(
            [0, 1, 119_001, 999_999, 1_000_000, 3_760_000].map(size),
            ["0 KB", "1 KB", "120 KB", "1000 KB", "1.0 MB", "3.7 MB"]
        );
    }
}
