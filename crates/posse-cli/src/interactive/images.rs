//! Images for the prompt, as a conversation asks for them.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use posse_protocol::ContentBlock;
use posse_tui::conversation::{AttachedImage, Input};

use crate::assemble::images::{AttachError, of_clipboard, of_file};
use crate::config::environment::home;

/// The clipboard while it is read.
type Reading = Pin<Box<dyn Future<Output = Result<AttachedImage, AttachError>> + Send>>;

/// The clipboard, which is read beside the event loop.
#[derive(Default)]
pub(super) struct Clipboard(Option<Reading>);

impl Clipboard {
    /// Begins to read it, unless it is being read.
    pub(super) fn read(&mut self) {
        self.0.get_or_insert_with(|| Box::pin(of_clipboard()));
    }

    /// Returns true while it is read.
    pub(super) fn is_busy(&self) -> bool {
        self.0.is_some()
    }

    /// Returns what was in it; waits for ever if it is not read. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Input {
        let Some(reading) = &mut self.0 else {
            return std::future::pending().await;
        };
        let found = reading.await;
        self.0 = None;
        match found {
            Ok(image) => Input::Image(image),
            Err(error) => Input::Notice(error.to_string()),
        }
    }
}

/// Returns the image in a file, or what else is to be done with what was pasted.
pub(super) fn of_path(path: &str, pasted: String, cwd: &Path) -> Vec<Input> {
    let path = match (path.strip_prefix("~/"), home()) {
        (Some(below), Some(home)) => home.join(below),
        _ => PathBuf::from(path),
    };
    let text = |pasted: String| (!pasted.is_empty()).then_some(Input::PasteText(pasted));
    match of_file(&cwd.join(path)) {
        Ok(image) => vec![Input::Image(image)],
        // Words that only end like the name of an image.
        Err(AttachError::Unreadable(_)) if !pasted.is_empty() => text(pasted).into_iter().collect(),
        Err(error) => {
            let notice = Input::Notice(error.to_string());
            text(pasted).into_iter().chain([notice]).collect()
        }
    }
}

/// Returns a prompt with its images.
pub(super) fn blocks(words: String, images: Vec<AttachedImage>) -> Vec<ContentBlock> {
    let images = images.into_iter().map(|image| ContentBlock::Image {
        media_type: image.media_type,
        data: image.data.to_string(),
    });
    std::iter::once(ContentBlock::text(words))
        .chain(images)
        .collect()
}
