//! What a command prints: as much as a model is told, and the whole in a file if it is more.

use std::io;
use std::path::{Path, PathBuf};

use tokio::fs::{DirBuilder, File};
use tokio::io::AsyncWriteExt as _;

/// How much is told; of more, the first and the last half.
const TOLD: usize = 30_000;
const HALF: usize = TOLD / 2;
/// How large the file becomes, and the room in it for the line that says so.
const MOST_BYTES: u64 = 64 << 20;
const CUT_LINE: u64 = 100;

/// Takes what a command prints.
pub(crate) struct Capture {
    path: PathBuf,
    start: Vec<u8>,
    /// At least the last half, once there is more than is told.
    end: Vec<u8>,
    total: u64,
    file: Spill,
}

enum Spill {
    Unneeded,
    Open { file: File, left: u64 },
    Cut,
    Failed(String),
}

impl Capture {
    /// Takes output whose file, if it needs one, is made in `directory` and named after `marker`.
    pub(crate) fn new(directory: &Path, marker: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = marker.chars().map(plain).collect();
        let path = directory.join(format!("{name}.txt"));
        Self { path, start: Vec::new(), end: Vec::new(), total: 0, file: Spill::Unneeded }
    }

    /// Takes the next piece.
    pub(crate) async fn take(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        if self.start.len() + piece.len() <= TOLD && self.end.is_empty() {
            self.start.extend_from_slice(piece);
            return;
        }
        if matches!(self.file, Spill::Unneeded) {
            self.open().await;
            // It is whole from its first byte on, so that what was kept goes first.
            self.end.clone_from(&self.start);
            let start = std::mem::take(&mut self.start);
            self.spill(&start).await;
            self.start = start;
        }
        self.spill(piece).await;
        self.end.extend_from_slice(piece);
        if self.end.len() > 4 * TOLD {
            self.end.drain(..self.end.len() - HALF);
        }
        if let Some(missing) = HALF.checked_sub(self.start.len()) {
            self.start.extend_from_slice(&piece[..piece.len().min(missing)]);
        }
    }

    async fn open(&mut self) {
        let opened = async {
            if let Some(directory) = self.path.parent() {
                // What commands print is nobody else's business.
                DirBuilder::new().recursive(true).mode(0o700).create(directory).await?;
            }
            File::options().write(true).create_new(true).mode(0o600).open(&self.path).await
        };
        self.file = match opened.await {
            Ok(file) => Spill::Open { file, left: MOST_BYTES - CUT_LINE },
            Err(error) => Spill::Failed(error.to_string()),
        };
    }

    async fn spill(&mut self, piece: &[u8]) {
        let Spill::Open { file, left } = &mut self.file else { return };
        let fits = usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len());
        let at = MOST_BYTES - CUT_LINE;
        let written: io::Result<bool> = async {
            file.write_all(&piece[..fits]).await?;
            let cut = fits < piece.len();
            if cut {
                file.write_all(format!("\n[posse cut the output here, at byte {at}]\n").as_bytes()).await?;
                file.flush().await?;
            }
            Ok(cut)
        }
        .await;
        *left -= fits as u64;
        match written {
            Ok(false) => {}
            Ok(true) => self.file = Spill::Cut,
            Err(error) => self.file = Spill::Failed(error.to_string()),
        }
    }

    /// What the model is told of it.
    pub(crate) async fn told(mut self) -> String {
        if let Spill::Open { file, .. } = &mut self.file
            && let Err(error) = file.flush().await
        {
            self.file = Spill::Failed(error.to_string());
        }
        let path = self.path.display();
        let kept = match &self.file {
            Spill::Unneeded => return String::from_utf8_lossy(&self.start).into_owned(),
            Spill::Open { .. } => format!("all of it is in {path}"),
            Spill::Cut => format!("the first 64 MiB of it are in {path}"),
            Spill::Failed(why) => format!("it could not be kept in {path}: {why}"),
        };
        let start = String::from_utf8_lossy(&self.start[..HALF.min(self.start.len())]);
        let end = String::from_utf8_lossy(&self.end[self.end.len().saturating_sub(HALF)..]);
        // Halves of a character that the cut left are no loss.
        let (start, end) = (start.trim_end_matches('\u{fffd}'), end.trim_start_matches('\u{fffd}'));
        let left_out = self.total.saturating_sub(TOLD as u64);
        format!("{start}\n[… {left_out} of {} bytes left out here; {kept} …]\n{end}", self.total)
    }
}
