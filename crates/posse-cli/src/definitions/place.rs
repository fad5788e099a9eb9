//! The directories with definitions, highest precedence first.

use std::path::{Path, PathBuf};

use super::scan::ScanResult;
use super::{DefinitionSource, Remark, Severity};
use crate::config::search_paths::SearchPaths;
use crate::config::trust::FileKind;
use crate::config::trust::fingerprint::Fingerprint;

/// A directory with definitions, existing or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// The name of such directories.
    pub(super) kind: &'static str,
    pub(super) source: DefinitionSource,
    /// Links must not lead out of this: a repository could link to private files.
    pub(super) bounds: Option<PathBuf>,
}

/// Returns the administrator's directory, which precedes the command line, and those that follow
/// it.
/// `kinds` are the names of the directories, highest precedence first; an administrator has only
/// the first.
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
    // Files in the user's own directories are the user's, even if posse is started inside them.
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
    others.retain(|directory| match directory.source {
        DefinitionSource::Project => places.sources.project,
        DefinitionSource::User => places.sources.user,
        _ => true,
    });
    (own(managed, first, DefinitionSource::Managed), others)
}

/// Returns the paths of all of them.
pub(super) fn all(places: &SearchPaths, kinds: &[&'static str]) -> Vec<PathBuf> {
    let (managed, others) = directories(places, kinds);
    [managed]
        .into_iter()
        .chain(others)
        .map(|directory| directory.path)
        .collect()
}

/// Returns the source of a file. One outside of all directories counts as the user's.
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

/// Why a file of a trusted workspace is not used.
pub(super) const WAITS: &str = "not used: it is new or has changed since this workspace was \
                                trusted; `posse trust` shows it";

/// Takes out the files of a repository that the person has not accepted. In a trusted workspace
/// each is told; in another one nothing is said about files that do not count.
pub(super) fn admit(
    places: &SearchPaths,
    directory: &Directory,
    kind: FileKind,
    scanned: &mut ScanResult,
) {
    if directory.source != DefinitionSource::Project {
        return;
    }
    let (trust, top) = (&places.trust, places.project());
    let mut waiting = Vec::new();
    scanned.files.retain(|(path, text)| {
        let print = match (kind, path.parent()) {
            (FileKind::Skill, Some(beside)) => Fingerprint::of_skill(text, beside),
            _ => Some(Fingerprint::of(kind, text)),
        };
        let is_admitted = trust.admits(kind, (path, top), print);
        if !is_admitted {
            waiting.push(path.clone());
        }
        is_admitted
    });
    if !trust.is_trusted() {
        scanned.remarks.clear();
        return;
    }
    scanned
        .remarks
        .extend(waiting.into_iter().map(|path| Remark {
            weight: Severity::Warning,
            path,
            line: None,
            reason: WAITS.to_owned(),
        }));
}

/// Resolves links, so that each directory has one name.
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
