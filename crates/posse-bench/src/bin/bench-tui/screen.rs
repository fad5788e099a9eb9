//! What a program writes to its terminal, and when.

use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Failed;
use crate::plain::PlainText;

/// Time that is waited for something on the screen.
const PATIENCE: Duration = Duration::from_secs(20);

/// What was read from a terminal. A thread reads until the terminal is gone.
pub(crate) struct Screen(Arc<Shared>);

#[derive(Default)]
struct Shared {
    received: Mutex<Received>,
    changed: Condvar,
}

#[derive(Default)]
struct Received {
    plain: PlainText,
    /// Number of bytes, with escape sequences.
    bytes: usize,
    reads: Vec<Arrival>,
}

/// The end of one read.
struct Arrival {
    at: Instant,
    /// Length of the text by then.
    length: usize,
}

impl Screen {
    /// Starts to read.
    pub(crate) fn read(mut terminal: File) -> Self {
        let shared = Arc::<Shared>::default();
        let written = Arc::clone(&shared);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count @ 1..) = terminal.read(&mut buffer) {
                let at = Instant::now();
                written.lock().add(&buffer[..count], at);
                written.changed.notify_all();
            }
        });
        Self(shared)
    }

    /// Returns the number of bytes that were read.
    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().bytes
    }

    /// Returns the length of the text that was read.
    pub(crate) fn length(&self) -> usize {
        self.0.lock().plain.text.len()
    }

    /// Waits for a text after the first `from` bytes of what was read. Returns when it was there.
    pub(crate) fn wait_for(&self, text: &str, from: usize) -> Result<Instant, Failed> {
        self.wait_within(PATIENCE, text, from)
    }

    /// The same for something that takes a time of its own.
    pub(crate) fn wait_within(
        &self,
        patience: Duration,
        text: &str,
        from: usize,
    ) -> Result<Instant, Failed> {
        let begun = Instant::now();
        let (mut received, mut from) = (self.0.lock(), from);
        loop {
            if let Some((_, at)) = received.find(text, from) {
                return Ok(at);
            }
            // Its beginning may be there.
            from = from.max((received.plain.text.len() + 1).saturating_sub(text.len()));
            let Some(left) = patience.checked_sub(begun.elapsed()) else {
                let shown = String::from_utf8_lossy(&received.plain.text);
                return Err(format!("`{text}` is not on the screen, but {shown}").into());
            };
            let waited = self.0.changed.wait_timeout(received, left);
            (received, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until nothing was read for a time.
    pub(crate) fn wait_for_quiet(&self, time: Duration) {
        loop {
            let last = self.0.lock().reads.last().map(|read| read.at);
            let quiet = last.map_or(time, |last| last.elapsed());
            match time.checked_sub(quiet) {
                Some(left) if !left.is_zero() => thread::sleep(left),
                _ => return,
            }
        }
    }

    /// Returns when each of these texts was first on the screen after the first `from` bytes of what
    /// was read. They come in this order; none if one did not come.
    pub(crate) fn arrivals<'a>(
        &self,
        texts: impl Iterator<Item = &'a str>,
        mut from: usize,
    ) -> Vec<Option<Instant>> {
        let received = self.0.lock();
        let mut arrival = |text: &str| {
            let (place, at) = received.find(text, from)?;
            from = place;
            Some(at)
        };
        texts.map(&mut arrival).collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Received {
    fn add(&mut self, bytes: &[u8], at: Instant) {
        self.plain.push(bytes);
        self.bytes += bytes.len();
        let length = self.plain.text.len();
        self.reads.push(Arrival { at, length });
    }

    /// Returns where a text is, and when all of it was there.
    fn find(&self, text: &str, from: usize) -> Option<(usize, Instant)> {
        let rest = self.plain.text.get(from..)?;
        let mut places = rest.windows(text.len());
        let place = from + places.position(|part| part == text.as_bytes())?;
        let read = self
            .reads
            .partition_point(|read| read.length < place + text.len());
        Some((place, self.reads.get(read)?.at))
    }
}
