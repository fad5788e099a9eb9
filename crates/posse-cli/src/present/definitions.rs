//! What is to be said about definitions of agents, skills and teams.

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::definitions::{DefinitionSet, HasName, Remark, Severity};
use crate::error::FAILED;
use crate::output::{json_line, print};

/// Tells all that is to be said about definitions of `what`, and whether there are errors.
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
                json!("`remarks` tells where; what is broken is not loaded, the rest is");
        }
        print(json_line(&told).as_bytes())?;
    } else {
        for remark in &remarks {
            let (place, weight) = (remark.place(cwd), remark.weight.as_str());
            let reason = crate::output::tame(&remark.reason);
            print(format!("{place}: {weight}: {reason}\n").as_bytes())?;
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

/// Everything to be said, by file and line; what is shadowed as well.
fn remarks<T: HasName>(loaded: &DefinitionSet<T>, cwd: &Path) -> Vec<Remark> {
    let shadowed = loaded.shadowed.iter().filter_map(|known| {
        let (path, name) = (known.path.clone()?, known.definition.name());
        let winner = loaded.find(name)?.origin(cwd);
        let reason = format!("does not count: {winner} stands before it as {name}");
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
