//! `posse doctor --memory`: memory files, why each is one, and what is used of it.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::assemble::open::workspace;
use crate::config::environment::working_directory;
use crate::config::search_paths::SearchPaths;
use crate::config::settings::{FlagSettings, Settings};
use crate::definitions::instructions::{Fate, FoundFile, InstructionSources, Reason};
use crate::definitions::shown;
use crate::output::table::{Column, needed, spare, table};
use crate::output::{json_line, print, say_to_person, tame, width};

/// Columns of the table. The file is last, because the last column is never cut in a pipe.
const COLUMNS: [Column; 4] = [
    needed("STATE"),
    spare("WHY", 1),
    spare("BYTES", 2).right(),
    needed("FILE"),
];

/// Prints all memory files for an agent that would work here.
pub(super) fn list(as_json: bool) -> anyhow::Result<ExitCode> {
    let cwd = working_directory()?;
    let found = found(&cwd, Settings::at(&cwd, FlagSettings::default())?)?;
    if as_json {
        for file in &found {
            print(json_line(&object(file)).as_bytes())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        say_to_person("there are no memory files here");
        return Ok(ExitCode::SUCCESS);
    }
    let row = |file: &FoundFile| {
        let bytes = file.bytes.map(|bytes| bytes.to_string());
        vec![
            state(&file.fate).to_owned(),
            file.reason.as_str().to_owned(),
            bytes.unwrap_or_default(),
            format!("{}{}", shown(&file.path, &cwd), details(file, &cwd)),
        ]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    print(table(&COLUMNS, &rows, width()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the memory files for an agent that would work here.
pub(super) fn found(cwd: &Path, settings: Settings) -> anyhow::Result<Vec<FoundFile>> {
    let workspace = Arc::new(workspace(&settings, cwd.to_owned())?);
    let policy = Arc::new(settings.policy);
    let sources = InstructionSources::new(SearchPaths::at(cwd), policy, workspace);
    Ok(sources.survey())
}

/// Returns what else there is to say about a file, for people.
fn details(file: &FoundFile, cwd: &Path) -> String {
    let mut details = Vec::new();
    if let Reason::ImportOf(importer) = &file.reason {
        details.push(format!("imported by {}", shown(importer, cwd)));
    }
    if let Some(globs) = globs(file) {
        details.push(format!("for {}", globs.join(", ")));
    }
    match &file.fate {
        Fate::Cut(bytes) => details.push(format!("after {bytes} bytes")),
        Fate::SameAs(path) => details.push(format!("as {}", shown(path, cwd))),
        Fate::Refused(why) => details.push(why.clone()),
        Fate::Used | Fate::Information | Fate::LeftOut | Fate::OnlyImports | Fate::Missing => {}
    }
    match details.is_empty() {
        true => String::new(),
        false => tame(&format!(" ({})", details.join("; "))),
    }
}

fn globs(file: &FoundFile) -> Option<&[String]> {
    let used = file.used.as_ref()?;
    used.globs.as_ref().map(|globs| globs.patterns.as_slice())
}

/// Returns what became of a file.
pub(super) fn state(fate: &Fate) -> &'static str {
    match fate {
        Fate::Used => "used",
        Fate::Information => "not trusted",
        Fate::Cut(_) => "cut",
        Fate::LeftOut => "left out",
        Fate::SameAs(_) => "same",
        Fate::OnlyImports => "only imports",
        Fate::Refused(_) => "refused",
        Fate::Missing => "missing",
    }
}

/// Returns a file for programs.
fn object(file: &FoundFile) -> Value {
    let mut object = json!({
        "file": file.path.display().to_string(),
        "why": file.reason.as_str(),
        "bytes": file.bytes,
        "state": state(&file.fate),
        "loaded": match (&file.used, globs(file)) {
            (None, _) => "never",
            (Some(_), None) => "at the start",
            (Some(_), Some(_)) => "with a matching file",
        },
    });
    if let Reason::ImportOf(importer) = &file.reason {
        object["import_of"] = json!(importer.display().to_string());
    }
    if let Some(globs) = globs(file) {
        object["globs"] = json!(globs);
    }
    match &file.fate {
        Fate::Cut(bytes) => object["used_bytes"] = json!(bytes),
        Fate::SameAs(path) => object["same_as"] = json!(path.display().to_string()),
        Fate::Refused(why) => object["reason"] = json!(why),
        _ => {}
    }
    object
}
