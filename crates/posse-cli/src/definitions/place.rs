//! Which directories hold definitions, the one that counts most first.

use std::path::{Path, PathBuf};

use super::Source;
use crate::settings::Places;

/// A directory of definitions, there or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    pub(super) source: Source,
    /// What links may not lead out of: a repository could link to what is not its own.
    pub(super) bounds: Option<PathBuf>,
}

/// The administrator's, which stands above what the command line says, and those below that.
pub(super) fn directories(places: &Places) -> (Directory, Vec<Directory>) {
    let own = |path: PathBuf, source| Directory { path, source, bounds: None };
    let managed = places.managed.parent().unwrap_or(Path::new("/")).join("agents");
    let user: Vec<PathBuf> = [
        places.posse_home.as_ref().map(|directory| directory.join("agents")),
        places.home.as_ref().map(|home| home.join(".claude/agents")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let project = places.project();
    // What lies in the user's own directories is the user's, also for who works right in them.
    let theirs = |directory: &&Path| Some(*directory) != places.home.as_deref();
    let within = places.cwd.ancestors().take_while(|directory| directory.starts_with(project)).filter(theirs);
    let mut others: Vec<Directory> = within
        .flat_map(|directory| [directory.join(".posse/agents"), directory.join(".claude/agents")])
        .filter(|path| !user.contains(path))
        .map(|path| Directory { path, source: Source::Project, bounds: Some(project.to_owned()) })
        .collect();
    others.extend(user.into_iter().map(|path| own(path, Source::User)));
    (own(managed, Source::Managed), others)
}
