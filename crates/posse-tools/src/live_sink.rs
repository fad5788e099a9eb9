//! Shows the output of a command while it runs: in pieces of a bounded size, at a bounded rate, and
//! only while somebody watches.

use std::sync::Arc;
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::clock::Clock;
use posse_port::tool::{LiveOutput, ToolContext};

use crate::capture::Sink;

/// Minimum time between two pieces.
const PAUSE: Duration = Duration::from_millis(50);
/// Maximum size of a piece in bytes. Of more that was printed meanwhile, the end is shown.
const PIECE: usize = 16 << 10;

/// A sink whose output is shown to those who watch.
pub(crate) struct LiveSink<S> {
    sink: S,
    output: LiveOutput,
    clock: Arc<dyn Clock>,
    /// The end of what was printed and not shown yet.
    waiting: Vec<u8>,
    /// Number of bytes before it that were not shown.
    skipped: u64,
    /// Runs since a piece was shown.
    pause: Option<BoxFuture<'static, ()>>,
}

impl<S: Sink> LiveSink<S> {
    /// Returns a sink that shows the output of a call.
    pub(crate) fn new(sink: S, context: &ToolContext) -> Self {
        Self {
            sink,
            output: context.output.clone(),
            clock: Arc::clone(&context.clock),
            waiting: Vec::new(),
            skipped: 0,
            pause: None,
        }
    }

    /// Shows the rest, and returns the sink.
    pub(crate) fn finish(self) -> S {
        if !self.waiting.is_empty() && self.output.is_watched() {
            let text = String::from_utf8_lossy(&self.waiting).into_owned();
            self.output.show(text, self.skipped);
        }
        self.sink
    }

    /// Shows what waits. A character that is not whole yet waits on.
    fn show(&mut self) {
        let whole = self.waiting.len() - unfinished(&self.waiting);
        if whole == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&self.waiting[..whole]).into_owned();
        self.waiting.drain(..whole);
        self.output.show(text, std::mem::take(&mut self.skipped));
        self.pause = Some(self.clock.sleep(PAUSE));
    }

    /// Keeps the end of what waits, beginning with a whole character.
    fn cut(&mut self) {
        let Some(over) = self.waiting.len().checked_sub(PIECE) else {
            return;
        };
        let begins = |at: &usize| self.waiting[*at] & 0xc0 != 0x80;
        let limit = self.waiting.len().min(over + 4);
        let over = (over..limit).find(begins).unwrap_or(over);
        self.waiting.drain(..over);
        self.skipped += over as u64;
    }
}

impl<S: Sink> Sink for LiveSink<S> {
    async fn take(&mut self, piece: &[u8]) {
        self.sink.take(piece).await;
        if !self.output.is_watched() {
            // Those who come later see what is printed from then on.
            (self.waiting, self.skipped, self.pause) = (Vec::new(), 0, None);
            return;
        }
        self.waiting.extend_from_slice(piece);
        self.cut();
        if self.pause.is_none() {
            self.show();
        }
    }

    async fn due(&mut self) {
        match &mut self.pause {
            Some(pause) => {
                pause.await;
                self.pause = None;
                self.show();
            }
            None => std::future::pending().await,
        }
    }
}

/// Returns the number of bytes at the end that begin a character without ending it.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = bytes.len().min(3);
    for length in 1..=tail {
        let size = match bytes[bytes.len() - length] {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return 0,
        };
        return if length < size { length } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_character_that_may_still_end_is_unfinished() {
        let check = |bytes: &[u8], length| assert_eq!(unfinished(bytes), length, "{bytes:?}");
        check(b"", 0);
        check(b"abc", 0);
        check("aß".as_bytes(), 0);
        check(&"aß".as_bytes()[..2], 1);
        check(&"漢".as_bytes()[..2], 2);
        check(&"🦀".as_bytes()[..3], 3);
        check("🦀".as_bytes(), 0);
        check(b"a\xff", 0);
        check(b"\x80\x80\x80\x80", 0);
    }
}
