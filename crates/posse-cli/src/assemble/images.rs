//! Images that go with a prompt: of files, and of the clipboard.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use posse_tools::image::{EncodedImage, ImageError, encoded};
use posse_tui::conversation::AttachedImage;

/// Number of bytes of a file that is not even looked at.
const HUGE: u64 = 100 << 20;
/// Time in which a program must print the clipboard.
const PATIENCE: Duration = Duration::from_secs(3);

/// Programs that print the image of the clipboard, with their arguments.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("wl-paste", &["--no-newline", "--type", "image/png"]),
    (
        "xclip",
        &["-selection", "clipboard", "-t", "image/png", "-o"],
    ),
    ("pngpaste", &["-"]),
];

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// It is none, or too large.
    #[error("{0}")]
    Image(#[from] ImageError),
    /// No program for the clipboard is there.
    #[error(
        "the clipboard cannot be read: install wl-paste (wl-clipboard), xclip or, on macOS, pngpaste"
    )]
    NoProgram,
    /// The clipboard holds something else.
    #[error("there is no image in the clipboard")]
    NoImage,
}

/// Returns the image in a file.
pub(crate) fn of_file(path: &Path) -> Result<AttachedImage, AttachError> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(ImageError::Other.into());
    }
    if about.len() > HUGE {
        return Err(ImageError::TooLarge.into());
    }
    let name = path.file_name().map(OsStr::to_string_lossy);
    attached(&name.unwrap_or_default(), &std::fs::read(path)?)
}

/// Returns the image in the clipboard.
pub(crate) async fn of_clipboard() -> Result<AttachedImage, AttachError> {
    let mut is_any_there = false;
    for (program, arguments) in PROGRAMS {
        match printed(program, arguments).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(content) if !content.is_empty() => return attached("clipboard.png", &content),
            _ => is_any_there = true,
        }
    }
    Err(match is_any_there {
        true => AttachError::NoImage,
        false => AttachError::NoProgram,
    })
}

/// Returns what a program prints; nothing if it fails or takes too long.
#[expect(
    clippy::disallowed_methods,
    reason = "a person's own clipboard, at their key"
)]
async fn printed(program: &str, arguments: &[&str]) -> io::Result<Vec<u8>> {
    let child = tokio::process::Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    Ok(match output.status.success() {
        true => output.stdout,
        false => Vec::new(),
    })
}

fn attached(name: &str, content: &[u8]) -> Result<AttachedImage, AttachError> {
    let EncodedImage { media_type, data } = encoded(content)?;
    Ok(AttachedImage {
        name: name.to_owned(),
        bytes: content.len() as u64,
        media_type: media_type.to_owned(),
        data: data.into(),
    })
}
