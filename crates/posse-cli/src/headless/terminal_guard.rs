//! Gives the terminal back if posse is killed and cannot do it: a shell beside it waits for the end
//! of a pipe that only posse holds open.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use posse_tui::terminal::RESTORE;
use rustix::process::{getpgid, getpgrp, getppid, getsid};
use rustix::termios::{SpecialCodeIndex, Termios, ttyname};

/// Waits for a word, which says that all is well, or for the end. What is erased below the cursor is
/// the rest of the live region. Signals of the terminal must not end it, and not stop it, either.
///
/// Settings are brought back only if they are those of posse. A shell that runs posse as a job takes
/// the terminal back and sets it up for its own prompt; to change it then would double what is typed.
/// So that shell has a second, and settings are left alone if another job has the terminal by then.
const SCRIPT: &str = r#"trap "" HUP INT QUIT TERM TTOU TTIN TSTP
read -r word && exit
printf '%s\033[J' "$4" >"$1"
turns=20
while [ "$(stty -g <"$1")" = "$2" ]; do
  if [ -n "$6" ] && [ "$turns" -gt 0 ]; then
    turns=$((turns - 1)); sleep 0.05; continue
  fi
  read -r pid name state parent group session terminal front rest <"/proc/$$/stat"
  if [ -z "$6" ] || [ "$front" = "$5" ] || [ "$front" = "$6" ]; then
    stty "$3" <"$1" || stty sane <"$1"
  fi
  exit
done"#;

/// Number of control characters that stty prints; the kernel has fewer.
const CHARACTERS: usize = 32;
/// Number of control characters of the kernel, in its order.
const KNOWN: [SpecialCodeIndex; 17] = [
    SpecialCodeIndex::VINTR,
    SpecialCodeIndex::VQUIT,
    SpecialCodeIndex::VERASE,
    SpecialCodeIndex::VKILL,
    SpecialCodeIndex::VEOF,
    SpecialCodeIndex::VTIME,
    SpecialCodeIndex::VMIN,
    SpecialCodeIndex::VSWTC,
    SpecialCodeIndex::VSTART,
    SpecialCodeIndex::VSTOP,
    SpecialCodeIndex::VSUSP,
    SpecialCodeIndex::VEOL,
    SpecialCodeIndex::VREPRINT,
    SpecialCodeIndex::VDISCARD,
    SpecialCodeIndex::VWERASE,
    SpecialCodeIndex::VLNEXT,
    SpecialCodeIndex::VEOL2,
];

/// The process that waits.
pub(crate) struct TerminalGuard(Child);

impl TerminalGuard {
    /// Starts it, for a terminal that was as `before` and is put into raw mode.
    #[expect(
        clippy::disallowed_methods,
        reason = "a shell of a few lines, none of an agent's"
    )]
    pub(crate) fn start(before: &Termios) -> io::Result<Self> {
        let terminal = io::stdin();
        let path = ttyname(terminal.as_fd(), Vec::new())?;
        let mut during = before.clone();
        during.make_raw();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", SCRIPT, "posse-terminal"])
            .arg(path.to_string_lossy().as_ref())
            .args([saved(&during), saved(before)])
            .arg(RESTORE)
            .args([getpgrp().to_string(), shell_of_job()])
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        Ok(Self(shell.spawn()?))
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.0.stdin.take() {
            let _ = pipe.write_all(b"well\n");
        }
        let _ = self.0.wait();
    }
}

/// Returns the process group of the shell that runs this process as a job of its own; empty if
/// none does.
fn shell_of_job() -> String {
    let shell = getppid().filter(|parent| getsid(Some(*parent)).ok() == getsid(None).ok());
    let group = shell.and_then(|shell| getpgid(Some(shell)).ok());
    let group = group.filter(|group| *group != getpgrp());
    group.map_or_else(String::new, |group| group.to_string())
}

/// Returns settings as stty reads and prints them.
fn saved(settings: &Termios) -> String {
    let mut text = format!(
        "{:x}:{:x}:{:x}:{:x}",
        settings.input_modes.bits(),
        settings.output_modes.bits(),
        settings.control_modes.bits(),
        settings.local_modes.bits()
    );
    for index in 0..CHARACTERS {
        let code = KNOWN.get(index).map_or(0, |at| settings.special_codes[*at]);
        text.push_str(&format!(":{code:x}"));
    }
    text
}
