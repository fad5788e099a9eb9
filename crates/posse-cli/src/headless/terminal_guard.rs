//! Gives the terminal back if posse is killed and cannot do it: a shell beside it waits for the end
//! of a pipe that only posse holds open.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use posse_tui::terminal::RESTORE;
use rustix::termios::{SpecialCodeIndex, Termios, ttyname};

/// Waits for a word, which says that all is well, or for the end. Settings are brought back only if
/// they are those of posse: a shell that has the terminal again sets its own. Signals of the
/// terminal must not end it, and not stop it, either. What is erased below the cursor is the rest of
/// the live region.
const SCRIPT: &str = r#"trap "" HUP INT QUIT TERM TTOU TTIN TSTP
read -r word && exit
if [ "$(stty -g <"$1")" = "$2" ]; then stty "$3" <"$1" || stty sane <"$1"; fi
printf '%s\033[J' "$4" >"$1""#;

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
