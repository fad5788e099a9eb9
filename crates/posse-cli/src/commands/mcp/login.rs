//! `posse mcp login`.

use std::future::pending;
use std::io::IsTerminal as _;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use tokio::sync::mpsc;

use super::sign_in_target::SignInTarget;
use crate::assemble::sign_in::{PendingSignIn, SignInAnswer, explained, sign_ins};
use crate::config::caller;
use crate::config::environment::variable;
use crate::error::Advised;
use crate::headless::input::stdin::{self, StdinLine};
use crate::output::{print, say, tame};

/// How long the person may take.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Sign in to an MCP server that wants it (OAuth).
///
/// Prints an address and opens it in your browser ($BROWSER, or that of the desktop). Where there is no
/// browser, open it on any machine, sign in, and paste the address that the browser is sent to then: it
/// cannot be reached from there, which does not matter.
#[derive(clap::Args)]
pub(super) struct LoginServer {
    /// Name of the server
    name: String,
    /// Open no browser
    #[arg(long)]
    no_browser: bool,
}

impl LoginServer {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        caller::only_a_person_can("sign in to MCP servers")?;
        let target = SignInTarget::find(&self.name)?;
        let sign_ins = sign_ins()?;
        let failed = |error| explained(error, &tame(&self.name));
        let signed_in = crate::config::runtime()?.block_on(async {
            let begun = sign_ins.begin(&target.url, &target.sign_in).await;
            let pending = begun.map_err(failed)?;
            let waited = tokio::time::timeout(PATIENCE, self.answer(&pending)).await;
            let answer = waited.map_err(|_| Advised {
                what: "nobody has signed in".into(),
                advice: format!("`posse mcp login {}` begins anew", self.name),
            })??;
            sign_ins.finish(pending, answer).await.map_err(failed)
        })?;
        let scopes = match signed_in.scopes.is_empty() {
            true => String::new(),
            false => format!(" ({})", signed_in.scopes.join(" ")),
        };
        let (name, issuer) = (&self.name, &signed_in.issuer);
        say(&tame(&format!("signed in to {name} at {issuer}{scopes}")));
        if !signed_in.is_lasting {
            say("it gives no means to stay signed in: you will be asked again");
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Has the person sign in. Their browser comes back by itself, or they paste what it was sent to.
    async fn answer(&self, pending: &PendingSignIn) -> anyhow::Result<SignInAnswer> {
        let address = tame(pending.address());
        let browser = match self.no_browser {
            true => None,
            false => browser(),
        };
        say("sign in at this address:");
        print(format!("{address}\n").as_bytes())?;
        let opened = browser.is_some_and(|browser| open(&browser, &address));
        let mut pasted = match opened {
            true if !std::io::stdin().is_terminal() => None,
            _ => {
                say(
                    "then paste here the address that your browser is sent to, if it shows none of posse",
                );
                Some(stdin::lines())
            }
        };
        let failed = |error| explained(error, &tame(&self.name));
        loop {
            let line = tokio::select! {
                answer = pending.wait() => return answer.map_err(failed),
                line = next(&mut pasted) => line,
            };
            match line {
                Some(StdinLine::Text(text)) if text.trim().is_empty() => {}
                Some(StdinLine::Text(text)) => match pending.pasted(&text) {
                    Ok(answer) => return Ok(answer),
                    Err(error) if std::io::stdin().is_terminal() => say(&error.to_string()),
                    Err(error) => return Err(failed(error)),
                },
                Some(StdinLine::Unreadable(what)) => say(&format!("this is {what}")),
                // The browser may come back all the same.
                None => pasted = None,
            }
        }
    }
}

async fn next(lines: &mut Option<mpsc::Receiver<StdinLine>>) -> Option<StdinLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => pending().await,
    }
}

/// Returns the command that opens addresses; none where nobody would see it.
fn browser() -> Option<String> {
    if let Some(browser) = variable("BROWSER") {
        return Some(browser);
    }
    if cfg!(target_os = "macos") && variable("SSH_CONNECTION").is_none() {
        return Some("open".to_owned());
    }
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|it| variable(it).is_some());
    (has_display && variable("SSH_CONNECTION").is_none()).then(|| "xdg-open".to_owned())
}

/// Opens an address of the web in a browser. Returns false if it cannot be started.
#[expect(
    clippy::disallowed_methods,
    reason = "a person's own browser, on their desktop"
)]
fn open(browser: &str, address: &str) -> bool {
    // By a shell, since the variable may have arguments. The address is none of its text.
    let started = std::process::Command::new("sh")
        .arg("-c")
        .arg(format!("{browser} \"$1\""))
        .arg("sh")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    started.is_ok()
}
