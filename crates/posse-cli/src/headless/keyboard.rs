//! The person's keys, from the terminal that posse runs in.
//!
//! Standard input may be anything, so keys are read from the controlling terminal, and only while
//! a question is on it. What was typed before the question was there is discarded.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read};
use std::os::unix::fs::OpenOptionsExt;

use posse_tui::question::Typing;
use rustix::fs::OFlags;
use rustix::process::{Signal as SignalNumber, getpgrp};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{caller, environment};

/// Set by systems that run jobs without a person.
const CI: &str = "CI";
/// Maximum length of a typed line, in bytes; a terminal has no longer ones.
const LONGEST: usize = 4096;

/// The keys of a terminal.
pub(crate) struct Keyboard {
    terminal: AsyncFd<File>,
    /// How the terminal was before.
    before: Termios,
    /// What is read now.
    reads: Option<Typing>,
    /// The process continues after it was stopped, or comes to the foreground.
    continued: Signal,
}

impl Keyboard {
    /// Returns the keys of the person in front of this process; `None` if there is nobody: no
    /// terminal, a process in the background, a job of a CI system, or a command of an agent.
    pub(crate) fn open() -> Option<Self> {
        let automatic = environment::variable(CI).is_some_and(|ci| !ci.is_empty());
        if automatic || !io::stderr().is_terminal() || !caller::is_person() {
            return None;
        }
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let mut options = OpenOptions::new();
        let terminal = options.read(true).write(true).custom_flags(flags);
        let terminal = terminal.open("/dev/tty").ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let continued = signal(SignalKind::from_raw(SignalNumber::CONT.as_raw())).ok()?;
        is_in_front(&terminal).then_some(())?;
        Some(Self {
            terminal: watched(terminal).ok()?,
            before,
            reads: None,
            continued,
        })
    }

    /// Sets what is read from now on. Anything typed before is discarded, unless that was read,
    /// too.
    pub(crate) fn read(&mut self, what: Option<Typing>) {
        // A process in the background that changes the terminal is stopped.
        if self.reads == what || !is_in_front(self.terminal.get_ref()) {
            return;
        }
        let set = match what {
            Some(typing) => self.change(OptionalActions::Flush, &shaped(&self.before, typing)),
            None => self.change(OptionalActions::Now, &self.before),
        };
        self.reads = what.filter(|_| set.is_ok());
    }

    fn change(&self, when: OptionalActions, to: &Termios) -> rustix::io::Result<()> {
        tcsetattr(self.terminal.get_ref(), when, to)
    }

    /// Waits for what is typed next. `None` if the person comes back to this process, who must be
    /// shown again what is asked.
    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            let ready = tokio::select! {
                _ = self.continued.recv() => {
                    // The shell has used the terminal meanwhile.
                    self.reads = None;
                    return None;
                }
                ready = self.terminal.readable(), if self.reads.is_some() => ready,
            };
            let Ok(mut ready) = ready else {
                self.reads = None;
                continue;
            };
            if !is_in_front(self.terminal.get_ref()) {
                // These keys are for somebody else; reading them would stop the process.
                drop(ready);
                self.reads = None;
                continue;
            }
            let mut bytes = [0; LONGEST];
            let read = ready.try_io(|terminal| terminal.get_ref().read(&mut bytes));
            drop(ready);
            match read {
                Err(_) => {}
                Ok(Ok(length)) => {
                    let typed = bytes.get(..length).unwrap_or_default();
                    return Some(String::from_utf8_lossy(typed).into_owned());
                }
                // The terminal is gone, which the process is told by a signal.
                Ok(Err(_)) => self.reads = None,
            }
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.read(None);
    }
}

/// Returns a terminal that can be waited for.
#[expect(
    deprecated,
    reason = "its successor is unsafe; a `File` keeps its descriptor"
)]
fn watched(terminal: File) -> io::Result<AsyncFd<File>> {
    AsyncFd::with_interest(terminal, Interest::READABLE)
}

/// Returns true if the keys of the terminal are for this process.
fn is_in_front(terminal: &File) -> bool {
    tcgetpgrp(terminal).is_ok_and(|front| front == getpgrp())
}

/// Returns the settings of a terminal for this kind of typing. Ctrl-C stays a signal.
fn shaped(before: &Termios, typing: Typing) -> Termios {
    let mut settings = before.clone();
    match typing {
        Typing::Key => {
            settings.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            settings.special_codes[SpecialCodeIndex::VMIN] = 1;
            settings.special_codes[SpecialCodeIndex::VTIME] = 0;
        }
        Typing::Line => settings.local_modes |= LocalModes::ICANON | LocalModes::ECHO,
    }
    settings
}
