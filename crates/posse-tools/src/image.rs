//! Images for a model: which bytes are one, and their text.

use base64::Engine as _;

/// How long an image's base64 text may be; model APIs refuse larger ones.
const TEXT_BYTES: u64 = 5 << 20;
/// Size of the largest image in bytes: four letters of base64 text are three bytes.
pub(crate) const LARGEST: u64 = TEXT_BYTES / 4 * 3;

/// An image as a model gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedImage {
    /// Its media type, `image/png` for one.
    pub media_type: &'static str,
    /// The base64 text.
    pub data: String,
}

/// Why bytes are no image for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// They are something else.
    #[error("it is not a PNG, JPEG, GIF or WebP image")]
    Other,
    /// It is larger than model APIs take.
    #[error("the image is larger than 3.75 MiB; make it smaller")]
    TooLarge,
}

/// Returns the media type, by the content; what a file is called says little.
pub(crate) fn media_type(content: &[u8]) -> Option<&'static str> {
    match content {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, rest @ ..] if rest.starts_with(b"WEBP") => {
            Some("image/webp")
        }
        _ => None,
    }
}

/// Returns an image for a model.
pub fn encoded(content: &[u8]) -> Result<EncodedImage, ImageError> {
    let media_type = media_type(content).ok_or(ImageError::Other)?;
    if content.len() as u64 > LARGEST {
        return Err(ImageError::TooLarge);
    }
    let data = base64::engine::general_purpose::STANDARD.encode(content);
    Ok(EncodedImage { media_type, data })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_content() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n..."), Some("image/png"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"GIF89a.."), Some("image/gif"));
        assert_eq!(
            media_type(b"RIFF\x01\x02\x03\x04WEBPVP8 "),
            Some("image/webp")
        );
        assert_eq!(media_type(b"GIFT list"), None);
    }

    #[test]
    fn a_large_image_is_refused() {
        let mut content = b"GIF89a".to_vec();
        content.resize(LARGEST as usize, 0);
        assert_eq!(encoded(&content).unwrap().data.len() as u64, TEXT_BYTES);
        content.push(0);
        assert_eq!(encoded(&content), Err(ImageError::TooLarge));
        assert_eq!(encoded(b"text"), Err(ImageError::Other));
    }
}
