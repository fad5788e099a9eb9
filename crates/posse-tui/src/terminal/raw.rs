//! The modes of a terminal while posse has it, and how it is given back.

use std::io::{self, Write};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// What is switched on: pasted text is marked as such, and the focus is told.
const ENTER: &[u8] = b"\x1b[?2004h\x1b[?1004h";

/// Brings every mode back that posse may have changed, whatever state a frame was in and on
/// whichever screen.
///
/// On the first screen, leaving the alternate one moves the cursor in some terminals: to where it was
/// last saved. So it is saved before and brought back after that. A terminal has a saved cursor for
/// each screen: after the alternate one, what comes back is the cursor that
/// [`FullScreen::enter`](super::FullScreen::enter) left. (tmux has one for both, and leaves the cursor
/// where it stood on the alternate screen.)
pub const RESTORE: &str = "\x1b[?2026l\x1b[?1006l\x1b[?1000l\x1b7\x1b[?1049l\x1b8\x1b[?7h\x1b[?25h\x1b[?2004l\x1b[?1004l\x1b[0m";

/// A terminal in raw mode, until this is dropped.
pub struct RawTerminal(());

impl RawTerminal {
    /// Switches to raw mode: keys come as they are pressed, and are not shown by themselves.
    pub fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let raw = Self(());
        write(ENTER)?;
        Ok(raw)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = write(RESTORE.as_bytes());
        let _ = disable_raw_mode();
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
