//! `posse` in a terminal of its own.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};

use crate::Failed;
use crate::model::Model;
use crate::process::Process;
use crate::screen::Screen;

const SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 120,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

/// What the prompt begins with.
const SIGN: &str = "›";
/// Time that it may take to end.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time without output after which it has done all that it had to do.
const QUIET: Duration = Duration::from_millis(700);

/// A conversation, or another screen. It ends when this is dropped.
pub(crate) struct Session {
    pub(crate) screen: Screen,
    pub(crate) process: Process,
    /// Time from exec until its first frame was there.
    pub(crate) first: Duration,
    child: Child,
    keyboard: File,
}

impl Session {
    /// Starts a conversation with `model`, and waits for its prompt.
    pub(crate) fn start(place: &Path, model: &Model) -> Result<Self, Failed> {
        Self::exec(place, &model.url, &[], &[SIGN])
    }

    /// Starts `posse` with arguments, and waits until all of these texts are on its screen.
    pub(crate) fn exec(
        place: &Path,
        url: &str,
        arguments: &[&str],
        shown: &[&str],
    ) -> Result<Self, Failed> {
        let pty = openpty(&SIZE, None)?;
        // A terminal that its program holds, too, never ends.
        fcntl(&pty.master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
        let keyboard = File::from(pty.master);
        let screen = Screen::read(keyboard.try_clone()?);
        let side = || pty.slave.try_clone().map(Stdio::from);
        let mut command = posse(place, url)?;
        command
            .args(arguments)
            .stdin(side()?)
            .stdout(side()?)
            .stderr(side()?);
        let begun = Instant::now();
        let child = command.spawn()?;
        let mut session = Self {
            process: Process(child.id()),
            screen,
            first: Duration::ZERO,
            child,
            keyboard,
        };
        for text in shown {
            let seen = session.screen.wait_for(text, 0)?;
            session.first = session.first.max(seen - begun);
        }
        Ok(session)
    }

    /// Starts one, and waits until it has nothing to do.
    pub(crate) fn settled(place: &Path, model: &Model) -> Result<Self, Failed> {
        let session = Self::start(place, model)?;
        session.screen.wait_for_quiet(QUIET);
        Ok(session)
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) -> Result<(), Failed> {
        Ok(self.keyboard.write_all(keys.as_bytes())?)
    }

    /// Says something to the agent.
    pub(crate) fn say(&mut self, words: &str) -> Result<(), Failed> {
        let from = self.screen.length();
        self.press(words)?;
        self.screen.wait_for(words, from)?;
        self.press("\r")
    }

    /// Waits until it has done all that it had to do.
    pub(crate) fn settle(&self) {
        self.screen.wait_for_quiet(QUIET);
    }

    /// Leaves as a person does. Fails if that does not end it.
    pub(crate) fn leave(self) -> Result<(), Failed> {
        self.leave_by("\x04")
    }

    /// The same by another key.
    pub(crate) fn leave_by(mut self, key: &str) -> Result<(), Failed> {
        self.press(key)?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > PATIENCE {
                return Err("posse does not end".into());
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // It has ended already unless something failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns `posse` in the home and the directory of a place, with a model at an address.
pub(crate) fn posse(place: &Path, url: &str) -> Result<Command, Failed> {
    let (home, work) = (place.join("home"), place.join("work"));
    for directory in [&home, &work] {
        std::fs::create_dir_all(directory)?;
    }
    let mut command = Command::new(std::env::current_exe()?.with_file_name("posse"));
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("TERM", "xterm-256color")
        .env("LANG", "C.UTF-8")
        .env("HOME", &home)
        .env("POSSE_HOME", home.join(".posse"))
        .env("POSSE_SANDBOX", "off")
        .env("POSSE_TRUST", &work)
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", "k")
        .current_dir(&work);
    Ok(command)
}
