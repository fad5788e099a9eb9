//! `posse hooks list`.

use std::process::ExitCode;

use posse_runtime::hook::{Hook, HookState};
use serde_json::json;

use super::LocalHooks;
use crate::assemble::hooks::hindrance;
use crate::definitions::shown;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, say_to_person, tame, width};
use crate::present::hooks;

const COLUMNS: [Column; 6] = [
    needed("EVENT"),
    spare("MATCHER", 1),
    spare("KIND", 4),
    spare("STATE", 2),
    spare("DECLARED IN", 3),
    needed("RUNS"),
];

/// List the hooks that run here: each event's in the order in which they count.
#[derive(clap::Args)]
pub(super) struct ListHooks {
    /// More settings: JSON, or the path of a file
    #[arg(long, value_name = "JSON|FILE")]
    settings: Option<String>,
    /// Print one JSON object per hook
    #[arg(long)]
    json: bool,
}

impl ListHooks {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let here = LocalHooks::here(self.settings)?;
        if self.json {
            for hook in here.set.all() {
                let mut object = hooks::object(hook);
                object["state"] = json!(here.state(hook));
                object["why"] = json!(here.why(hook));
                print(json_line(&object).as_bytes())?;
            }
            return Ok(ExitCode::SUCCESS);
        }
        let row = |hook: &Hook| {
            let line = hook.origin.line.map(|line| format!(":{line}"));
            let file = shown(&hook.origin.file, &here.cwd);
            vec![
                hook.event.to_string(),
                tame(&hook.matcher.to_string()),
                tame(hooks::kind(hook)),
                here.state(hook).to_owned(),
                file + &line.unwrap_or_default(),
                tame(&hook.title()),
            ]
        };
        let rows: Vec<Vec<String>> = here.set.all().map(|hook| row(hook)).collect();
        if let Some(why) = here.left_out() {
            say_to_person(why);
        }
        if rows.is_empty() {
            say_to_person("no hooks run here; `posse help hooks` says how to declare one");
            return Ok(ExitCode::SUCCESS);
        }
        print(table(&COLUMNS, &rows, width()).as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl LocalHooks {
    /// Returns in one word whether a hook runs.
    fn state(&self, hook: &Hook) -> &'static str {
        match &hook.state {
            HookState::Waits { .. } => "waits",
            HookState::Active if hindrance(hook, &self.search).is_some() => "broken",
            HookState::Active => "active",
        }
    }

    /// Returns why it does not run, if that is so.
    fn why(&self, hook: &Hook) -> Option<String> {
        match &hook.state {
            HookState::Waits { why } => Some(why.clone()),
            HookState::Active => hindrance(hook, &self.search),
        }
    }
}
