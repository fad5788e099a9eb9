//! The thread that writes frames: a terminal that does not take them holds up nobody else.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Writes frames to the terminal, one at a time and each with one write.
pub struct FrameWriter {
    frames: Option<SyncSender<Vec<u8>>>,
    busy: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FrameWriter {
    /// Starts it. `written` is called after each frame.
    pub fn start(written: impl Fn() + Send + 'static) -> io::Result<Self> {
        let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let (frames, waiting) = sync_channel::<Vec<u8>>(1);
        let busy = Arc::new(AtomicBool::new(false));
        let is_busy = Arc::clone(&busy);
        let thread = thread::Builder::new()
            .name("posse-screen".into())
            .spawn(move || {
                while let Ok(frame) = waiting.recv() {
                    // A terminal that is gone is noticed by the one who reads from it.
                    let _ = out.write_all(&frame);
                    is_busy.store(false, Ordering::Release);
                    written();
                }
            })?;
        Ok(Self {
            frames: Some(frames),
            busy,
            thread: Some(thread),
        })
    }

    /// Returns true if the last frame is written: only then the next one is made.
    pub fn is_ready(&self) -> bool {
        !self.busy.load(Ordering::Acquire)
    }

    /// Writes a frame. Only when it is ready.
    pub fn write(&self, frame: Vec<u8>) {
        if let Some(frames) = self.frames.as_ref().filter(|_| !frame.is_empty()) {
            self.busy.store(true, Ordering::Release);
            // The thread ends only after this value.
            let _ = frames.try_send(frame);
        }
    }

    /// Writes a last frame after the one that is being written, and waits for both, as
    /// [`finish`](Self::finish) does.
    pub fn last(&mut self, frame: Vec<u8>, patience: Duration) {
        if let Some(frames) = &self.frames {
            // The channel has room for one, and the thread takes that when it is ready.
            let _ = frames.try_send(frame);
        }
        self.finish(patience);
    }

    /// Waits until the last frame is written. A terminal that takes nothing is not waited for: then
    /// its thread ends with the process.
    pub fn finish(&mut self, patience: Duration) {
        let begun = Instant::now();
        drop(self.frames.take());
        let Some(thread) = self.thread.take() else {
            return;
        };
        while !thread.is_finished() && begun.elapsed() < patience {
            thread::park_timeout(Duration::from_millis(1));
        }
    }
}
