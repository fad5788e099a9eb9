//! `posse doctor`.

mod checks;
mod files;
mod memory;
mod sandbox;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::assemble::provider::ProviderArgs;
use crate::config::environment;
use crate::config::search_paths::SearchPaths;
use crate::error::FAILED;
use crate::output::{print, tame};

/// Check what posse needs on this machine, and say how to fix what is missing.
///
/// Exits with 1 if something essential is missing.
#[derive(clap::Args)]
pub(crate) struct DoctorCommand {
    #[command(flatten)]
    provider: ProviderArgs,
    /// Print one JSON object per check
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    list: ListArgs,
}

/// What is listed instead of the checks.
#[derive(clap::Args)]
struct ListArgs {
    /// List the memory files that agents here begin with, and all rules, instead of the checks
    #[arg(long)]
    memory: bool,
    /// List settings, agents, skills and memory files here, and what becomes of each, instead of
    /// the checks
    #[arg(long, conflicts_with = "memory")]
    files: bool,
    /// Try the sandbox that commands run in, and show what it is made of, instead of the checks
    #[arg(long, conflicts_with_all = ["memory", "files"])]
    sandbox: bool,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grade {
    Good,
    /// posse works, but with restrictions.
    Lacking,
    /// posse does not work.
    Bad,
}

/// One check and its result.
struct Finding {
    what: &'static str,
    grade: Grade,
    found: String,
    /// What to do, unless all is well.
    advice: Option<String>,
}

impl DoctorCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if self.list.files {
            return files::list(self.json);
        }
        if self.list.memory {
            return memory::list(self.json);
        }
        if self.list.sandbox {
            return sandbox::list(self.json);
        }
        // First: without valid flags and variables no check makes sense.
        let settled = self.provider.settle()?;
        let runtime = crate::config::runtime()?;
        let mut worst_is_bad = false;
        let mut tell = |finding: Finding| {
            worst_is_bad |= finding.grade == Grade::Bad;
            print(format!("{}\n", self.line(&finding)).as_bytes())
        };
        tell(checks::key(&settled))?;
        tell(runtime.block_on(checks::endpoint(&settled)))?;
        let here = environment::working_directory().unwrap_or_else(|_| PathBuf::from("/"));
        let trust = SearchPaths::at(&here).trust;
        tell(checks::git(&trust))?;
        tell(checks::tmux(&trust))?;
        tell(checks::sandbox(&here))?;
        tell(checks::home())?;
        tell(checks::place())?;
        tell(checks::trust(&trust))?;
        for finding in checks::settings() {
            tell(finding)?;
        }
        Ok(if worst_is_bad {
            ExitCode::from(FAILED)
        } else {
            ExitCode::SUCCESS
        })
    }

    /// Returns a result as a line.
    fn line(&self, finding: &Finding) -> String {
        let (word, mark) = match finding.grade {
            Grade::Good => ("good", "\x1b[32m✓\x1b[0m"),
            Grade::Lacking => ("lacking", "\x1b[33m!\x1b[0m"),
            Grade::Bad => ("bad", "\x1b[31m✗\x1b[0m"),
        };
        if self.json {
            let Finding {
                what,
                found,
                advice,
                ..
            } = finding;
            return json!({"check": what, "grade": word, "found": found, "advice": advice})
                .to_string();
        }
        let advice = finding
            .advice
            .as_ref()
            .map_or_else(String::new, |advice| format!("\n           → {advice}"));
        format!(
            "{mark} {:<8} {}{advice}",
            finding.what,
            tame(&finding.found)
        )
    }
}
