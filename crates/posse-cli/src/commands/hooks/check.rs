//! `posse hooks check`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use posse_runtime::hook::{HookAction, HookState};
use serde_json::json;

use super::LocalHooks;
use crate::definitions::shown;
use crate::error::FAILED;
use crate::output::{count, json_line, print, say_to_person, tame};

/// Check hooks: `file:line: problem`, one per line.
///
/// Reads settings, agent types and skills, and looks for the programs that hooks start; nothing is
/// run. Exits with 1 if anything is wrong.
#[derive(clap::Args)]
pub(super) struct CheckHooks {
    /// More settings: JSON, or the path of a file
    #[arg(long, value_name = "JSON|FILE")]
    settings: Option<String>,
    /// Print one JSON object per problem
    #[arg(long)]
    json: bool,
}

/// Something that is wrong.
#[derive(PartialEq)]
struct Problem {
    file: PathBuf,
    line: Option<usize>,
    what: String,
}

impl CheckHooks {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let here = LocalHooks::here(self.settings)?;
        let problems = here.problems();
        for problem in &problems {
            let line = match self.json {
                true => json_line(&json!({
                    "file": problem.file.to_string_lossy(), "line": problem.line,
                    "problem": problem.what,
                })),
                false => problem.in_a_line(&here.cwd) + "\n",
            };
            print(line.as_bytes())?;
        }
        let hooks = count(here.set.all().count(), "hook");
        let summary = match problems.len() {
            0 => format!("{hooks}, nothing is wrong"),
            number => format!("{hooks}, {}", count(number, "problem")),
        };
        say_to_person(&summary);
        Ok(match problems.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(FAILED),
        })
    }
}

impl Problem {
    fn in_a_line(&self, cwd: &Path) -> String {
        let line = self.line.map(|line| format!(":{line}"));
        let file = shown(&self.file, cwd);
        format!("{file}{}: {}", line.unwrap_or_default(), tame(&self.what))
    }
}

impl LocalHooks {
    /// Returns what is wrong with settings, with definitions, and with what hooks start.
    fn problems(&self) -> Vec<Problem> {
        let of_settings = self.settings.hooks.remarks.iter().map(|remark| Problem {
            file: remark.file.clone(),
            line: Some(remark.line),
            what: remark.what.clone(),
        });
        let definitions = self.agents.about_hooks.iter();
        let of_definitions = definitions
            .chain(&self.skills.about_hooks)
            .map(|it| Problem {
                file: it.path.clone(),
                line: it.line,
                what: it.reason.clone(),
            });
        let of_hooks = self.set.all().filter_map(|hook| {
            let what = match (&hook.state, &hook.action) {
                (HookState::Waits { why }, _) => why.clone(),
                // What the file says has been told.
                (_, HookAction::Unsupported { .. }) => return None,
                _ => format!(
                    "this {} hook cannot run: {}",
                    hook.event,
                    self.search.missing(hook)?
                ),
            };
            Some(Problem {
                file: hook.origin.file.clone(),
                line: hook.origin.line,
                what,
            })
        });
        let mut problems: Vec<Problem> =
            of_settings.chain(of_definitions).chain(of_hooks).collect();
        problems.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
        problems.dedup();
        problems
    }
}
