//! `posse doctor --files`: every file that posse or a program like it reads here, and what becomes
//! of it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use posse_runtime::definition::server::{DeclaredServer, ServerAdmission};
use serde_json::json;

use super::memory;
use crate::config::environment::{self, posse_home, working_directory};
use crate::config::look::keys;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::{FlagSettings, Settings};
use crate::definitions::instructions::Fate;
use crate::definitions::servers::{LoadedServers, ServerFlags, ServerSources};
use crate::definitions::skills::SkillSources;
use crate::definitions::{AgentSources, DefinitionSet, HasName, InlineAgents, Severity, shown};
use crate::output::table::{Column, needed, table};
use crate::output::{json_line, print, say_to_person, tame, width};

const COLUMNS: [Column; 3] = [needed("STATE"), needed("FILE"), needed("WHAT")];

/// A file, or a part of it.
struct Row {
    /// `used`, `refused` or `not used`.
    state: &'static str,
    path: PathBuf,
    what: String,
}

/// Prints all files.
pub(super) fn list(as_json: bool) -> anyhow::Result<ExitCode> {
    let cwd = working_directory()?;
    let settings = Settings::at(&cwd, FlagSettings::default())?;
    let mut rows = of_settings(&settings);
    rows.extend(of_definitions(
        "agent",
        &AgentSources::at(&cwd, InlineAgents::default()).load(),
    ));
    rows.extend(of_definitions("skill", &SkillSources::at(&cwd).load()));
    rows.extend(of_servers(&cwd, &settings));
    let memory = memory::found(&cwd, settings)?;
    rows.extend(memory.iter().map(|file| Row {
        state: match &file.fate {
            Fate::Used | Fate::Cut(_) => "used",
            Fate::Refused(_) => "refused",
            Fate::Information
            | Fate::LeftOut
            | Fate::SameAs(_)
            | Fate::OnlyImports
            | Fate::Missing => "not used",
        },
        path: file.path.clone(),
        what: format!("memory: {}", memory::state(&file.fate)),
    }));
    let keys = posse_home().map(|home| keys::file_in(&home));
    rows.extend(keys.filter(|path| path.is_file()).map(|path| Row {
        state: "used",
        path,
        what: "keys".to_owned(),
    }));
    rows.sort_by(|a, b| a.path.cmp(&b.path));
    if as_json {
        for row in &rows {
            let line = json!({"file": row.path.display().to_string(), "state": row.state, "what": row.what});
            print(json_line(&line).as_bytes())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        say_to_person("there are no settings, definitions or memory files here");
    }
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.columns(&cwd)).collect();
    print(table(&COLUMNS, &rows, width()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

impl Row {
    fn columns(&self, cwd: &Path) -> Vec<String> {
        vec![
            self.state.to_owned(),
            shown(&self.path, cwd),
            tame(&self.what),
        ]
    }
}

/// Returns what becomes of settings, and of files that posse does not read.
fn of_settings(settings: &Settings) -> Vec<Row> {
    let mut rows = Vec::new();
    for file in &settings.files {
        for (state, what) in [("used", &file.used), ("refused", &file.refused)] {
            if !what.is_empty() {
                let (path, what) = (file.path.clone(), what.join(", "));
                rows.push(Row { state, path, what });
            }
        }
    }
    rows.extend(settings.unsupported.files.iter().map(|file| Row {
        state: "not used",
        path: file.path.clone(),
        what: file.what.clone(),
    }));
    rows
}

/// Returns what becomes of MCP servers.
fn of_servers(cwd: &Path, settings: &Settings) -> Vec<Row> {
    let places = SearchPaths::at(cwd);
    let sources = ServerSources {
        places: &places,
        settings: &settings.servers,
        flags: &ServerFlags::default(),
        environment: environment::texts(),
    };
    let LoadedServers { set, remarks } = sources.load();
    let row = |server: &DeclaredServer, more: &str| {
        let (state, why) = match &server.admission {
            ServerAdmission::Admitted => ("used", more.to_owned()),
            ServerAdmission::Waits { why } | ServerAdmission::Refused { why } => {
                ("not used", format!(": {why}"))
            }
        };
        let state = if more.is_empty() { state } else { "not used" };
        Row {
            state,
            path: server.origin.file.clone(),
            what: format!("MCP server {}{why}", server.name),
        }
    };
    let known = set.all().map(|it| row(it, ""));
    let overridden = set.overridden().iter();
    let overridden = overridden.map(|it| row(it, "; another of that name counts"));
    let wrong = remarks.into_iter().map(|remark| Row {
        state: match remark.weight {
            Severity::Error => "refused",
            Severity::Warning | Severity::Note => "used",
        },
        path: remark.path,
        what: remark.reason,
    });
    known.chain(overridden).chain(wrong).collect()
}

/// Returns what becomes of definitions.
fn of_definitions<T: HasName>(kind: &str, loaded: &DefinitionSet<T>) -> Vec<Row> {
    let mut rows = Vec::new();
    let overridden = "; another of that name counts";
    for (entries, state, more) in [
        (&loaded.known, "used", ""),
        (&loaded.shadowed, "not used", overridden),
    ] {
        for entry in entries {
            let Some(path) = entry.path.clone() else {
                continue;
            };
            let what = format!("{kind} {}{more}", entry.definition.name());
            rows.push(Row { state, path, what });
        }
    }
    rows.extend(loaded.remarks.iter().map(|remark| Row {
        state: match remark.weight {
            Severity::Error => "refused",
            Severity::Warning | Severity::Note => "not used",
        },
        path: remark.path.clone(),
        what: remark.reason.clone(),
    }));
    rows
}
