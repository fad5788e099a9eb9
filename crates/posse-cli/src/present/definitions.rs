//! Messages about definitions of agents, skills and teams.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use posse_port::closest;
use serde_json::{Value, json};

use crate::definitions::{DefinitionSet, HasName, Remark, Severity, WatchedSources};
use crate::error::{Advised, FAILED};
use crate::output::{broken_for_stdout, json_line, print, say_to_person};

/// Checks the definitions at `paths`, or all that are read here, and reports about them.
pub(crate) fn check<S: WatchedSources>(
    sources: &S,
    paths: &[PathBuf],
    json: bool,
) -> anyhow::Result<ExitCode> {
    let cwd = sources.cwd();
    let set = if paths.is_empty() {
        sources.load()
    } else {
        let paths: Vec<PathBuf> = paths.iter().map(|path| cwd.join(path)).collect();
        sources.load_only(&paths)
    };
    report(&set, cwd, S::WORD, json)
}

/// Tells a person who lists definitions if some of them have problems.
pub(crate) fn tell_of_trouble<T: HasName>(set: &DefinitionSet<T>, word: &str) {
    let trouble = set.trouble().count();
    if trouble > 0 {
        say_to_person(&format!(
            "{trouble} with problems: `posse {word} check` lists them"
        ));
    }
}

/// Returns the error for an unknown name; `kind` is what a definition is called.
pub(crate) fn unknown<T: HasName>(
    set: &DefinitionSet<T>,
    word: &str,
    kind: &str,
    name: &str,
) -> Advised {
    let names: Vec<&str> = set
        .known
        .iter()
        .map(|entry| entry.definition.name())
        .collect();
    let meant = closest(name, &names)
        .map(|meant| format!("did you mean {meant}? "))
        .unwrap_or_default();
    let there = if names.is_empty() {
        "there are none here".into()
    } else {
        format!("there are {}", names.join(", "))
    };
    let broken = if set.trouble().next().is_some() {
        format!("; `posse {word} check` lists what is broken")
    } else {
        String::new()
    };
    Advised {
        what: format!("there is no {kind} named {name}"),
        advice: format!("{meant}{there}{broken}"),
    }
}

/// Prints all remarks about definitions of `what`, and returns the exit code.
pub(crate) fn report<T: HasName>(
    loaded: &DefinitionSet<T>,
    cwd: &Path,
    what: &str,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let remarks = remarks(loaded, cwd);
    let count = |weight| {
        remarks
            .iter()
            .filter(|remark| remark.weight == weight)
            .count()
    };
    let (errors, warnings, notes) = (
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note),
    );
    let fine = loaded
        .known
        .iter()
        .chain(&loaded.shadowed)
        .filter(|known| known.path.is_some())
        .count();
    if json {
        let mut told = json!({
            "definitions": fine, "errors": errors, "warnings": warnings, "notes": notes,
            "remarks": remarks.iter().map(object).collect::<Vec<_>>(),
        });
        if errors > 0 {
            told["error"] = json!(format!(
                "{} in definitions of {what}",
                counted(errors, "error")
            ));
            told["hint"] =
                json!("`remarks` says where; broken definitions are not loaded, the rest are");
        }
        print(json_line(&told).as_bytes())?;
    } else {
        for remark in &remarks {
            let (place, weight) = (remark.place(cwd), remark.weight.as_str());
            let reason = crate::output::tame(&remark.reason);
            let line = broken_for_stdout(&format!("{place}: {weight}: {reason}"));
            print(format!("{line}\n").as_bytes())?;
        }
        let counts = [(errors, "error"), (warnings, "warning"), (notes, "note")];
        let counts = counts.map(|(count, what)| counted(count, what)).join(", ");
        print(format!("{}: {counts}\n", counted(fine, "definition")).as_bytes())?;
    }
    Ok(if errors == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

/// Returns all remarks by file and line, including those about overridden definitions.
fn remarks<T: HasName>(loaded: &DefinitionSet<T>, cwd: &Path) -> Vec<Remark> {
    let shadowed = loaded.shadowed.iter().filter_map(|known| {
        let (path, name) = (known.path.clone()?, known.definition.name());
        let winner = loaded.find(name)?.origin(cwd);
        let reason = format!("not used: {winner} takes precedence as {name}");
        Some(Remark {
            weight: Severity::Note,
            path,
            line: None,
            reason,
        })
    });
    let mut all: Vec<Remark> = loaded.remarks.iter().cloned().chain(shadowed).collect();
    all.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    all
}

fn object(remark: &Remark) -> Value {
    let Remark {
        weight,
        path,
        line,
        reason,
    } = remark;
    json!({"path": path.to_string_lossy(), "line": line, "weight": weight.as_str(), "reason": reason})
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
