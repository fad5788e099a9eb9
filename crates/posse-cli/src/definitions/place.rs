//! Which directories hold definitions, the one that counts most first.

use std::path::{Path, PathBuf};

use super::DefinitionSource;
use crate::config::search_paths::SearchPaths;

/// A directory of definitions, there or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// What such directories are called.
    pub(super) kind: &'static str,
    pub(super) source: DefinitionSource,
    /// What links may not lead out of: a repository could link to what is not its own.
    pub(super) bounds: Option<PathBuf>,
}

/// Returns the administrator's, which stands above what the command line says, and those below
/// that. `kinds` is what the directories are called, the one that counts more first; an
/// administrator has the first only.
pub(super) fn directories(
    places: &SearchPaths,
    kinds: &[&'static str],
) -> (Directory, Vec<Directory>) {
    let own = |path: PathBuf, kind, source| Directory {
        path,
        kind,
        source,
        bounds: None,
    };
    let first = kinds.first().copied().unwrap_or_default();
    let managed = places
        .managed
        .parent()
        .unwrap_or(Path::new("/"))
        .join(first);
    let user: Vec<(PathBuf, &'static str)> = kinds
        .iter()
        .flat_map(|kind| {
            let posse = places
                .posse_home
                .as_ref()
                .map(|directory| directory.join(kind));
            let home = places
                .home
                .as_ref()
                .map(|home| home.join(".claude").join(kind));
            [posse, home]
                .into_iter()
                .flatten()
                .map(|path| (path, *kind))
        })
        .collect();
    let project = places.project();
    // What lies in the user's own directories is the user's, also for who works right in them.
    let theirs = |directory: &&Path| Some(*directory) != places.home.as_deref();
    let within = places
        .cwd
        .ancestors()
        .take_while(|directory| directory.starts_with(project))
        .filter(theirs);
    let of = |directory: &Path, kind: &'static str| {
        [".posse", ".claude"].map(|name| (directory.join(name).join(kind), kind))
    };
    let mut others: Vec<Directory> = within
        .flat_map(|directory| kinds.iter().flat_map(move |kind| of(directory, kind)))
        .filter(|(path, _)| !user.iter().any(|(known, _)| known == path))
        .map(|(path, kind)| Directory {
            path,
            kind,
            source: DefinitionSource::Project,
            bounds: Some(project.to_owned()),
        })
        .collect();
    others.extend(
        user.into_iter()
            .map(|(path, kind)| own(path, kind, DefinitionSource::User)),
    );
    (own(managed, first, DefinitionSource::Managed), others)
}

/// Returns all of them.
pub(super) fn all(places: &SearchPaths, kinds: &[&'static str]) -> Vec<PathBuf> {
    let (managed, others) = directories(places, kinds);
    [managed]
        .into_iter()
        .chain(others)
        .map(|directory| directory.path)
        .collect()
}

/// Returns whose a file is. What lies where nobody looks is taken for the user's.
pub(super) fn source_of(
    path: &Path,
    places: &SearchPaths,
    kinds: &[&'static str],
) -> DefinitionSource {
    let (managed, others) = directories(places, kinds);
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let holds = |directory: &Directory| real.starts_with(&directory.path);
    let found = [managed].into_iter().chain(others).find(holds);
    found.map_or(DefinitionSource::User, |directory| directory.source)
}

/// Places without links. One directory has one name: links to it would else make two of it.
pub(super) fn resolved(places: SearchPaths) -> SearchPaths {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let (posse_home, home) = (places.posse_home.map(real), places.home.map(real));
    SearchPaths {
        posse_home,
        home,
        cwd: real(places.cwd),
        ..places
    }
}
