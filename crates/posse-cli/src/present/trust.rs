//! What a workspace has that would count, for a person who decides about it.

use crate::config::trust::FileState;
use crate::definitions::DefinitionSource;
use crate::definitions::trustable::{Trustable, TrustableFile};
use crate::output::tame;

/// Number of files that are listed.
const MOST: usize = 100;

/// Returns the files that wait, a line each.
pub(crate) fn list(found: &Trustable) -> String {
    let files: Vec<&TrustableFile> = found.waiting().collect();
    let mut out = String::new();
    for file in files.iter().take(MOST) {
        out.push_str(&format!("  {}\n", line(file)));
    }
    if let Some(more) = files.len().checked_sub(MOST).filter(|more| *more > 0) {
        out.push_str(&format!("  and {more} more\n"));
    }
    out
}

fn line(file: &TrustableFile) -> String {
    let path = tame(&file.path.to_string_lossy());
    let mut line = match &file.name {
        Some(name) => format!("{} {}: {path}", file.kind.name(1), tame(name)),
        None => format!("{}: {path}", file.kind.name(1)),
    };
    let replaced = match file.replaces {
        Some(DefinitionSource::BuiltIn) => Some("replaces posse's own"),
        Some(DefinitionSource::User) => Some("replaces your own"),
        Some(_) => Some("replaces another"),
        None => None,
    };
    let changed = (file.state == FileState::Changed).then_some("has changed");
    let refused = (!file.is_acceptable).then_some("too large to be accepted");
    let remarks: Vec<&str> = [replaced, changed, refused].into_iter().flatten().collect();
    if !remarks.is_empty() {
        line.push_str(&format!(" ({})", remarks.join(", ")));
    }
    line
}

/// Returns the question's text: which workspace, and what it has.
pub(crate) fn introduction(found: &Trustable) -> String {
    let root = tame(&found.trust.root().to_string_lossy());
    let waiting = found.waiting().count();
    match (found.trust.is_trusted(), waiting) {
        (true, _) => format!(
            "New or changed since you trusted {root}:\n\n{}\n",
            list(found)
        ),
        (false, 0) => format!(
            "{root} is not trusted. It has no agents, skills or instructions; if you trust it, \
             posse runs git there.\n\n"
        ),
        (false, _) => format!(
            "{root} is not trusted. If you trust it, posse runs git there, and uses these \
             files:\n\n{}\n",
            list(found)
        ),
    }
}
