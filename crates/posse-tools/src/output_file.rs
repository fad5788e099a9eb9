//! The file for a command's output: private, readable while it grows, and limited in size.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::{DirBuilder, File};
use tokio::io::AsyncWriteExt as _;

/// Maximum size.
const MOST_BYTES: u64 = 64 << 20;
/// Space reserved for the line that says that the output was cut.
const CUT_LINE: u64 = 100;

/// A file that output is added to.
pub(crate) struct OutputFile {
    path: PathBuf,
    state: OutputFileState,
}

enum OutputFileState {
    Open { file: File, left: u64 },
    Cut,
    Failed(String),
}

impl OutputFile {
    /// Creates the file and its directory. It must not exist yet.
    pub(crate) async fn create(path: &Path) -> io::Result<Self> {
        if let Some(directory) = path.parent() {
            // The output of commands is private.
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)
                .await?;
        }
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .await?;
        Ok(Self {
            path: path.to_owned(),
            state: OutputFileState::Open {
                file,
                left: MOST_BYTES - CUT_LINE,
            },
        })
    }

    /// Returns a file that could not be created; what is added to it is lost.
    pub(crate) fn failed(path: &Path, why: &io::Error) -> Self {
        Self {
            path: path.to_owned(),
            state: OutputFileState::Failed(why.to_string()),
        }
    }

    /// Adds a piece, as far as there is space.
    pub(crate) async fn add(&mut self, piece: &[u8]) {
        let OutputFileState::Open { file, left } = &mut self.state else {
            return;
        };
        let fits = usize::try_from(*left)
            .unwrap_or(usize::MAX)
            .min(piece.len());
        let at = MOST_BYTES - CUT_LINE;
        let written: io::Result<bool> = async {
            file.write_all(&piece[..fits]).await?;
            let cut = fits < piece.len();
            if cut {
                file.write_all(format!("\n[posse cut the output here, at byte {at}]\n").as_bytes())
                    .await?;
                file.flush().await?;
            }
            Ok(cut)
        }
        .await;
        *left -= fits as u64;
        match written {
            Ok(false) => {}
            Ok(true) => self.state = OutputFileState::Cut,
            Err(error) => self.state = OutputFileState::Failed(error.to_string()),
        }
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(&mut self) {
        if let OutputFileState::Open { file, .. } = &mut self.state
            && let Err(error) = file.flush().await
        {
            self.state = OutputFileState::Failed(error.to_string());
        }
    }
}

/// What is in it, as part of a sentence about the output.
impl fmt::Display for OutputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.state {
            OutputFileState::Open { .. } => write!(f, "all of it is in {path}"),
            OutputFileState::Cut => write!(f, "the first 64 MiB of it are in {path}"),
            OutputFileState::Failed(why) => write!(f, "it could not be kept in {path}: {why}"),
        }
    }
}
