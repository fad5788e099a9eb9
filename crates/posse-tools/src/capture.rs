//! Output of a command: as much as a model is shown, and all of it in a file. In the foreground
//! there is a file only if the output is too long; in the background there is one from the start.

use std::path::{Path, PathBuf};

use crate::output_file::OutputFile;

/// Number of bytes that are shown; of longer output the first and the last half.
const TOLD: usize = 30_000;
const HALF: usize = TOLD / 2;
/// Number of bytes that are shown of the end of background output.
const END: usize = 4_000;

/// Receives the output of a command.
pub(crate) trait Sink: Send {
    /// Receives the next piece.
    fn take(&mut self, piece: &[u8]) -> impl Future<Output = ()> + Send;

    /// Completes after something was done that was due; never, if nothing is. Dropping the future
    /// loses nothing.
    fn due(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// The output of a command in the foreground.
pub(crate) struct Capture {
    path: PathBuf,
    start: Vec<u8>,
    /// At least the last half, once there is more than is shown.
    end: Vec<u8>,
    total: u64,
    file: Option<OutputFile>,
}

impl Capture {
    /// Returns a capture whose file, if it needs one, is created in `directory` and named after
    /// `marker`.
    pub(crate) fn new(directory: &Path, marker: &str) -> Self {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let name: String = marker.chars().map(plain).collect();
        let path = directory.join(format!("{name}.txt"));
        Self {
            path,
            start: Vec::new(),
            end: Vec::new(),
            total: 0,
            file: None,
        }
    }

    /// Returns what the model is shown.
    pub(crate) async fn told(mut self) -> String {
        let Some(mut file) = self.file.take() else {
            return String::from_utf8_lossy(&self.start).into_owned();
        };
        file.finish().await;
        let start = String::from_utf8_lossy(&self.start[..HALF.min(self.start.len())]);
        let end = String::from_utf8_lossy(last(&self.end, HALF));
        // A character that was cut in half is dropped.
        let (start, end) = (
            start.trim_end_matches('\u{fffd}'),
            end.trim_start_matches('\u{fffd}'),
        );
        let left_out = self.total.saturating_sub(TOLD as u64);
        format!(
            "{start}\n[… {left_out} of {} bytes left out here; {file} …]\n{end}",
            self.total
        )
    }
}

impl Sink for Capture {
    async fn take(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        if self.start.len() + piece.len() <= TOLD && self.file.is_none() {
            self.start.extend_from_slice(piece);
            return;
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                // The file is complete: what was kept in memory so far is written first.
                let made = OutputFile::create(&self.path).await;
                let mut file = made.unwrap_or_else(|error| OutputFile::failed(&self.path, &error));
                file.add(&self.start).await;
                self.end.clone_from(&self.start);
                file
            }
        };
        file.add(piece).await;
        self.file = Some(file);
        keep_end(&mut self.end, piece, HALF);
        if let Some(missing) = HALF.checked_sub(self.start.len()) {
            self.start
                .extend_from_slice(&piece[..piece.len().min(missing)]);
        }
    }
}

/// The output of a command in the background.
pub(crate) struct Log {
    file: OutputFile,
    end: Vec<u8>,
    total: u64,
}

impl Log {
    /// Returns a log that writes everything to `file`.
    pub(crate) fn new(file: OutputFile) -> Self {
        Self {
            file,
            end: Vec::new(),
            total: 0,
        }
    }

    /// Returns the end of the output, for the notification that the command has ended.
    pub(crate) async fn told(mut self) -> String {
        self.file.finish().await;
        if self.total == 0 {
            // So that silence is not taken for output that was left out.
            return "(no output)".into();
        }
        let end = String::from_utf8_lossy(last(&self.end, END));
        match self.total.saturating_sub(END as u64) {
            0 => end.into_owned(),
            left_out => {
                let end = end.trim_start_matches('\u{fffd}');
                format!(
                    "[… {left_out} of {} bytes left out here; {} …]\n{end}",
                    self.total, self.file
                )
            }
        }
    }
}

impl Sink for Log {
    async fn take(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        self.file.add(piece).await;
        keep_end(&mut self.end, piece, END);
    }
}

/// Appends a piece to a buffer that keeps at least the last `most` bytes.
fn keep_end(end: &mut Vec<u8>, piece: &[u8], most: usize) {
    end.extend_from_slice(last(piece, most));
    // Only now and then, so that the buffer is not moved for every piece.
    if end.len() > 8 * most {
        end.drain(..end.len() - most);
    }
}

fn last(bytes: &[u8], most: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(most)..]
}
