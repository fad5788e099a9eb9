//! `posse team list --declared`.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::definitions::teams::{TeamDeclaration, TeamSources};
use crate::definitions::{DefinitionEntry, InlineAgents};
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, say_to_person, tame, width};

const COLUMNS: [Column; 5] = [
    needed("TEAM"),
    spare("SOURCE", 2),
    needed("ROLES"),
    spare("TASKS", 1).right(),
    spare("DESCRIPTION", 3),
];

/// Lists the teams that are declared here.
pub(super) fn list(json: bool) -> anyhow::Result<ExitCode> {
    let sources: TeamSources = TeamSources::at(
        &crate::config::environment::working_directory()?,
        InlineAgents::default(),
    );
    let loaded = sources.load();
    if json {
        for known in &loaded.known {
            print(json_line(&object(known, sources.cwd())).as_bytes())?;
        }
    } else if loaded.known.is_empty() {
        say_to_person("no team is declared here; .posse/teams/NAME.toml declares one");
    } else {
        let rows: Vec<Vec<String>> = loaded.known.iter().map(row).collect();
        print(table(&COLUMNS, &rows, width()).as_bytes())?;
    }
    match loaded.trouble().count() {
        0 => {}
        trouble => say_to_person(&format!(
            "{trouble} with problems: `posse team check` lists them"
        )),
    }
    Ok(ExitCode::SUCCESS)
}

fn row(known: &DefinitionEntry<TeamDeclaration>) -> Vec<String> {
    let TeamDeclaration { name, plan, .. } = &known.definition;
    let roles = plan.roles.iter().map(|(name, role)| match role.count {
        1 => name.to_string(),
        count => format!("{count} {name}"),
    });
    vec![
        name.to_string(),
        known.source.as_str().to_owned(),
        roles.collect::<Vec<_>>().join(", "),
        plan.tasks.len().to_string(),
        tame(plan.description.lines().next().unwrap_or_default()),
    ]
}

fn object(known: &DefinitionEntry<TeamDeclaration>, cwd: &Path) -> Value {
    let TeamDeclaration { name, plan, .. } = &known.definition;
    let roles: serde_json::Map<String, Value> = plan
        .roles
        .iter()
        .map(|(name, role)| (name.to_string(), json!(role.count)))
        .collect();
    json!({
        "team": name, "source": known.source.as_str(), "path": known.origin(cwd),
        "description": plan.description, "roles": roles, "tasks": plan.tasks.len(),
    })
}
