//! The terminal in front of a person: whether there is one, its size and its colours.

use std::io::{self, IsTerminal};

use posse_tui::conversation::Size;
use posse_tui::theme::ColorDepth;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::config::environment;

/// The size of a terminal that does not tell it.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// The smallest terminal that has more than lines.
const SMALLEST: Size = Size {
    columns: 20,
    rows: 5,
};

/// Returns true if a person types and reads.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns true if there is a terminal that can do more than lines.
pub(crate) fn has_screen() -> bool {
    is_there() && !needs_plain()
}

/// Returns true if a terminal cannot do more than lines.
pub(crate) fn needs_plain() -> bool {
    let size = size();
    let is_dumb = environment::variable("TERM").is_none_or(|term| term == "dumb");
    is_dumb || size.columns < SMALLEST.columns || size.rows < SMALLEST.rows
}

/// Returns true if lines on stderr can be drawn again in place.
pub(crate) fn can_redraw() -> bool {
    let term = environment::variable("TERM");
    io::stderr().is_terminal() && term.is_some_and(|term| term != "dumb")
}

/// Returns true if this process is the one that the person at the terminal on stderr works with.
pub(crate) fn is_in_front() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|front| front == getpgrp())
}

/// Returns true if lines are typed already that nobody has read.
pub(crate) fn is_typed_ahead() -> bool {
    let stdin = io::stdin();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut waiting, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Returns the size of the terminal.
pub(crate) fn size() -> Size {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            columns: size.ws_col,
            rows: size.ws_row,
        },
        _ => USUAL,
    }
}

/// Returns how many colours the terminal has; none if the person wants no colour.
pub(crate) fn color_depth() -> Option<ColorDepth> {
    let variable = environment::variable;
    let told = || {
        ColorDepth::told(
            variable("COLORTERM").as_deref(),
            variable("TERM").as_deref(),
        )
    };
    variable("NO_COLOR").is_none().then(told)
}
