//! Panes of the tmux that the user works in. Commands go to its server as a script on standard
//! input, so that no secret appears in a command line; nothing is ever typed into a pane.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_port::BoxFuture;
use posse_port::panes::{NewPane, Panes};
use tokio::task::spawn_blocking;

use super::color::Color;
use super::launch::{Launch, NoBudget};
use super::pane_layout::{self, PanePosition, TmuxPane};
use crate::child::{self, Unheard};

/// How long one run of tmux may take.
const LIMIT: Duration = Duration::from_secs(10);
/// What tmux says if there is no room for another pane.
const FULL: &str = "no space for new pane";

/// The tmux server and pane in which posse runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inside {
    /// The socket of its server.
    socket: PathBuf,
    /// The pane.
    pane: String,
}

impl Inside {
    /// Reads `$TMUX` and `$TMUX_PANE`; none if they are not as tmux sets them.
    pub fn read(tmux: &str, pane: &str) -> Option<Self> {
        // The socket's own path may have commas.
        let (rest, _session) = tmux.rsplit_once(',')?;
        let (socket, _server) = rest.rsplit_once(',')?;
        let digits = pane.strip_prefix('%')?;
        let is_pane = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        (is_pane && !socket.is_empty()).then(|| Self {
            socket: socket.into(),
            pane: pane.into(),
        })
    }
}

/// Where panes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Into the window that posse runs in, beside it.
    #[default]
    Split,
    /// Into a window of their own.
    Window,
}

/// Panes of a tmux.
#[derive(Clone, Debug)]
pub struct TmuxPanes(Arc<TmuxServer>);

/// The tmux server, and how panes are opened in it.
#[derive(Debug)]
struct TmuxServer {
    inside: Inside,
    place: Place,
    launch: Launch,
    /// Panes are opened one at a time: each position depends on the panes already there.
    turn: Mutex<()>,
}

/// What the user can do without tmux.
const INSTEAD: &str = "--team-backend in-process does not need it";

/// Why no pane could be opened.
#[derive(Debug, thiserror::Error)]
enum TmuxError {
    #[error(transparent)]
    NoBudget(#[from] NoBudget),
    #[error("the pane that posse runs in is gone; --team-backend in-process does not need one")]
    LeadGone,
    #[error("its process ended at once; `posse doctor` may show why")]
    EndedAtOnce,
    #[error("tmux said: {said}; tmux 3.2 or later is needed, {INSTEAD}")]
    Refused { said: String },
    #[error("there is no tmux in the PATH; {INSTEAD}")]
    Missing,
    #[error("tmux had not answered after {} s; {INSTEAD}", .0.as_secs())]
    Late(Duration),
    #[error("tmux cannot be run: {0}; {INSTEAD}")]
    Io(#[source] io::Error),
    #[error("tmux printed more than can be read; {INSTEAD}")]
    TooMuch,
}

impl TmuxError {
    /// Returns true if tmux refused, and its complaint has these words.
    fn is_about(&self, words: &str) -> bool {
        matches!(self, Self::Refused { said } if said.contains(words))
    }
}

impl TmuxPanes {
    /// Returns panes next to the one in which posse runs; `launch` is the command in each.
    pub fn new(inside: Inside, place: Place, launch: Launch) -> Self {
        Self(Arc::new(TmuxServer {
            inside,
            place,
            launch,
            turn: Mutex::new(()),
        }))
    }
}

impl Panes for TmuxPanes {
    fn name(&self) -> &str {
        "tmux"
    }

    fn open(&self, pane: NewPane) -> BoxFuture<'_, Result<(), String>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let opened = spawn_blocking(move || {
                let title = pane.title.clone();
                inner
                    .open(&pane)
                    .map_err(|why| format!("no pane for {title}: {why}"))
            });
            opened.await.map_err(|error| error.to_string())?
        })
    }
}

impl TmuxServer {
    /// Opens a pane, in a window of its own if the window of posse has no room.
    fn open(&self, pane: &NewPane) -> Result<(), TmuxError> {
        let line = self.launch.command_line(pane)?;
        let marked = pane.session.to_string();
        // A panic while it was held leaves nothing half done here, so poisoning can be ignored.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.look(&marked)?;
        self.close_dead(&seen)?;
        let position = pane_layout::next(&seen, &self.inside.pane, self.place == Place::Window)
            .ok_or(TmuxError::LeadGone)?;
        let opened = match self.make(&position, pane, &line) {
            Err(error) if error.is_about(FULL) => {
                let lead = seen
                    .iter()
                    .find(|other| other.id == self.inside.pane)
                    .ok_or(TmuxError::LeadGone)?;
                let window = PanePosition::Window {
                    session: lead.session.clone(),
                };
                (self.make(&window, pane, &line)?, window)
            }
            made => (made?, position),
        };
        self.dress(&opened.0, &opened.1, pane)
    }

    /// Returns all panes of the server; `marked` is the session whose panes are ours.
    fn look(&self, marked: &str) -> Result<Vec<TmuxPane>, TmuxError> {
        let said = self.tmux(TmuxScript::default().command("list-panes").words([
            "-a",
            "-F",
            pane_layout::FORMAT,
        ]))?;
        Ok(said
            .lines()
            .filter_map(|line| pane_layout::read(line, marked))
            .collect())
    }

    /// Closes our panes that tmux keeps after their process has ended: they only take up room.
    fn close_dead(&self, seen: &[TmuxPane]) -> Result<(), TmuxError> {
        for pane in seen.iter().filter(|pane| pane.marks.pane && pane.dead) {
            self.tmux(
                TmuxScript::default()
                    .command("kill-pane")
                    .words(["-t", &pane.id]),
            )?;
        }
        Ok(())
    }

    /// Opens the pane. Returns its id.
    fn make(
        &self,
        position: &PanePosition,
        pane: &NewPane,
        line: &[OsString],
    ) -> Result<String, TmuxError> {
        let (_, team) = pane.title.rsplit_once('@').unwrap_or(("", &pane.title));
        let mut script = match position {
            PanePosition::Split {
                pane: divided,
                beside,
                zoomed,
                ..
            } => {
                let script = TmuxScript::default()
                    .command("split-window")
                    .word(if *beside { "-h" } else { "-v" });
                let script = if *zoomed { script.word("-Z") } else { script };
                script.words(["-t", divided])
            }
            PanePosition::Window { session } => {
                let script = TmuxScript::default()
                    .command("new-window")
                    .words(["-t", &format!("{session}:")]);
                script.word("-n").plain(team.as_ref())
            }
        };
        // `-d`: the pane that the user types into stays the active one.
        script = script
            .words(["-d", "-P", "-F", "#{pane_id}", "-c"])
            .plain(pane.cwd.as_os_str());
        for variable in &self.launch.environment {
            script = script.word("-e").word(variable.setting());
        }
        let printed = self.tmux(script.word("--").words(line))?;
        Ok(printed.trim().to_owned())
    }

    /// Sets the options of the new pane: its title, its colour, and that it closes when its
    /// process ends.
    fn dress(&self, id: &str, position: &PanePosition, pane: &NewPane) -> Result<(), TmuxError> {
        let on = |script: TmuxScript, name: &str| {
            script.command("set-option").words(["-p", "-t", id, name])
        };
        let mut script = on(TmuxScript::default(), "remain-on-exit").word("off");
        script = on(script, "@posse").word(pane.session.to_string());
        script = script
            .command("select-pane")
            .words(["-t", id, "-T"])
            .plain(pane.title.as_ref());
        // Only the format is set per pane: a border style would apply to the whole window.
        if let Some(color) = Color::read(&pane.color) {
            let format = format!("#[fg={}] #{{pane_title}} #[default]", color.in_tmux());
            script = on(script, "pane-border-format").word(format);
        }
        let window = |script: TmuxScript, name: &str| {
            script.command("set-option").words(["-w", "-t", id, name])
        };
        match position {
            PanePosition::Window { .. } => {
                script = window(script, "@posse-window").word(pane.session.to_string());
                script = window(script, "pane-border-status").word("top");
            }
            PanePosition::Split { tiled: true, .. } => {
                script = script.command("select-layout").words(["-t", id, "tiled"]);
            }
            PanePosition::Split { .. } => {}
        }
        // Its process may have ended before `remain-on-exit` was off.
        let close = format!("kill-pane -t {id}");
        script = script
            .command("if-shell")
            .words(["-F", "-t", id, "#{pane_dead}", &close]);
        // Tmux names the id of a pane only when that pane is gone.
        self.tmux(script).map(drop).map_err(|error| {
            if error.is_about(id) {
                TmuxError::EndedAtOnce
            } else {
                error
            }
        })
    }

    /// Runs commands in the server. Returns what they print.
    #[expect(clippy::disallowed_methods, reason = "this is where tmux is started")]
    fn tmux(&self, script: TmuxScript) -> Result<String, TmuxError> {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(&self.inside.socket)
            .args(["source-file", "-"]);
        match child::run(command, Some(&script.0), LIMIT) {
            Ok(heard) if heard.status.success() => {
                Ok(String::from_utf8_lossy(&heard.printed).into_owned())
            }
            Ok(heard) => {
                let said = String::from_utf8_lossy(&heard.said);
                let said = said.trim().replace('\n', "; ");
                Err(TmuxError::Refused { said })
            }
            Err(Unheard::Missing) => Err(TmuxError::Missing),
            Err(Unheard::Late(limit)) => Err(TmuxError::Late(limit)),
            Err(Unheard::Io(error)) => Err(TmuxError::Io(error)),
            Err(Unheard::TooMuch) => Err(TmuxError::TooMuch),
        }
    }
}

/// Commands for tmux, one per line.
#[derive(Default)]
struct TmuxScript(Vec<u8>);

impl TmuxScript {
    fn command(mut self, name: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push(b'\n');
        }
        self.0.extend_from_slice(name.as_bytes());
        self
    }

    /// Adds a word, quoted so that tmux reads it literally.
    fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.0.extend_from_slice(b" '");
        for byte in word.as_ref().as_bytes() {
            match byte {
                b'\'' => self.0.extend_from_slice(b"'\\''"),
                // Tmux would strip the spaces at the start of the next line.
                b'\n' => self.0.extend_from_slice(b"'\"\\n\"'"),
                byte => self.0.push(*byte),
            }
        }
        self.0.push(b'\'');
        self
    }

    fn words<W: AsRef<OsStr>>(self, words: impl IntoIterator<Item = W>) -> Self {
        words
            .into_iter()
            .fold(self, |script, word| script.word(word))
    }

    /// Adds a word in which tmux would expand formats, which can run commands; `#` is escaped.
    fn plain(self, word: &OsStr) -> Self {
        let mut escaped = Vec::new();
        for byte in word.as_bytes() {
            escaped.extend(std::iter::repeat_n(
                *byte,
                if *byte == b'#' { 2 } else { 1 },
            ));
        }
        self.word(OsStr::from_bytes(&escaped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_posse_runs_is_read_from_what_tmux_says() {
        let inside = |socket: &str| {
            Some(Inside {
                socket: socket.into(),
                pane: "%12".into(),
            })
        };
        assert_eq!(
            Inside::read("/tmp/tmux-0/default,123,0", "%12"),
            inside("/tmp/tmux-0/default")
        );
        assert_eq!(Inside::read("/tmp/a,b,123,0", "%12"), inside("/tmp/a,b"));
        for (tmux, pane) in [
            ("", "%1"),
            ("/tmp/x", "%1"),
            ("/tmp/x,1,0", ""),
            ("/tmp/x,1,0", "1"),
            (",1,0", "%1"),
        ] {
            assert_eq!(Inside::read(tmux, pane), None);
        }
    }
}
