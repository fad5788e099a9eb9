//! What posse's own commands print, in a conversation: the same program is run, beside the event loop,
//! so that a slow check holds up nothing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;

use posse_permission::Policy;
use posse_protocol::PermissionMode;
use posse_tui::conversation::Report;

use crate::config::environment::posse_home;
use crate::present::permissions;

/// What is being found out.
type Running = Pin<Box<dyn Future<Output = String> + Send>>;

/// Reports that were asked for, one after the other.
pub(super) struct Reports {
    cwd: PathBuf,
    /// Flags that say which model is called.
    provider: Vec<String>,
    waiting: VecDeque<Report>,
    running: Option<Running>,
}

impl Reports {
    /// Returns what reports on an agent in `cwd`, with these flags about the provider.
    pub(super) fn new(cwd: &Path, provider: Vec<String>) -> Self {
        Self {
            cwd: cwd.to_owned(),
            provider,
            waiting: VecDeque::new(),
            running: None,
        }
    }

    /// Asks for a report.
    pub(super) fn add(&mut self, report: Report) {
        self.waiting.push_back(report);
    }

    /// Returns true if a report is not there yet.
    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// Returns the next report; waits for ever if none was asked for. Dropping the future loses
    /// nothing.
    pub(super) async fn next(&mut self) -> String {
        if self.running.is_none()
            && let Some(report) = self.waiting.pop_front()
        {
            let (cwd, provider) = (self.cwd.clone(), self.provider.clone());
            self.running = Some(Box::pin(of(report, cwd, provider)));
        }
        let Some(running) = &mut self.running else {
            return std::future::pending().await;
        };
        let text = running.await;
        self.running = None;
        text
    }
}

/// Returns the rules that hold, and how to change them.
pub(super) fn rules(policy: &Policy, mode: PermissionMode, cwd: &Path) -> String {
    let home = posse_home().unwrap_or_default();
    format!(
        "mode: {mode}; /mode chooses another\n{}\
         to change them: answer a question with “always”, or edit {} (yours) or .posse/settings.json \
         (the project's, which may deny and ask only)",
        permissions::rules(policy, cwd),
        home.join("settings.json").display(),
    )
}

async fn of(report: Report, cwd: PathBuf, provider: Vec<String>) -> String {
    let home = posse_home().unwrap_or_default();
    let home = home.join("settings.json").display().to_string();
    match report {
        Report::Doctor => {
            let mut arguments = vec!["doctor".to_owned()];
            arguments.extend(provider);
            printed(&cwd, &arguments, "nothing was checked").await
        }
        Report::Config => {
            let none = "there are no settings, definitions or memory files here";
            let files = printed(&cwd, &["doctor".into(), "--files".into()], none).await;
            format!("{files}\nedit {home} (yours) or .posse/settings.json (the project's)")
        }
        Report::Memory => {
            let none = "there are no memory files here";
            let files = printed(&cwd, &["doctor".into(), "--memory".into()], none).await;
            format!("{files}\n# TEXT keeps a note; /init has AGENTS.md written")
        }
        // Only the runtime knows what was accepted in this session, and what is connected.
        Report::Permissions | Report::Servers => String::new(),
    }
}

/// Returns what posse prints with these arguments, `none` if that is nothing.
#[expect(
    clippy::disallowed_methods,
    reason = "posse itself, for the person in front of it"
)]
async fn printed(cwd: &Path, arguments: &[String], none: &str) -> String {
    let Ok(posse) = std::env::current_exe() else {
        return format!("posse cannot be found; run `posse {}`", arguments.join(" "));
    };
    let output = tokio::process::Command::new(posse)
        .args(arguments)
        .current_dir(cwd)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    match output {
        Ok(output) => {
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).trim_end().to_owned();
            match text.is_empty() {
                true => none.to_owned(),
                false => text,
            }
        }
        Err(error) => format!("posse {} cannot be run: {error}", arguments.join(" ")),
    }
}
