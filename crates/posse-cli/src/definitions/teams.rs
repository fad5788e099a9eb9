//! Declared teams: a file `NAME.toml` lists the members and the first tasks.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use posse_protocol::{Name, PermissionMode, TeamPlan};

use self::file::TeamFileReader;
use super::place::{self, Directory};
use super::scan::{self, ScanKind};
use super::{
    AgentSources, DefinitionEntry, DefinitionSet, DefinitionSource, HasName, InlineAgents, Remark,
    Severity,
};
use crate::config::search_paths::SearchPaths;
use crate::config::trust::{FileKind, LookedFile};

/// Name of directories with teams.
const TEAMS: &[&str] = &["teams"];

/// A team as its file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TeamDeclaration {
    pub(crate) name: Name,
    pub(crate) lead: LeadDeclaration,
    pub(crate) plan: TeamPlan,
}

/// What a file says about the lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeadDeclaration {
    /// The definition whose prompt is added to posse's own.
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<PermissionMode>,
    /// Addition to its system prompt.
    pub(crate) prompt: Option<String>,
}

impl HasName for TeamDeclaration {
    fn name(&self) -> &str {
        self.name.as_str()
    }
}

/// Where declared teams come from.
#[derive(Clone, Debug)]
pub(crate) struct TeamSources {
    places: SearchPaths,
    /// The known agent types.
    types: Vec<String>,
}

impl TeamSources {
    /// Returns the sources for a lead that works in `cwd`. A team may use any agent type defined
    /// there.
    pub(crate) fn at(cwd: &Path, given: InlineAgents) -> Self {
        Self::of(SearchPaths::at(cwd), given)
    }

    /// Returns the sources among these paths.
    pub(crate) fn of(places: SearchPaths, given: InlineAgents) -> Self {
        // Definitions first: a declaration with an unknown type is an error at its line.
        let types = AgentSources::new(places.clone(), given)
            .load()
            .definitions();
        let names = types.into_iter().map(|it| it.name).collect();
        Self::new(places, names)
    }

    pub(crate) fn new(places: SearchPaths, types: Vec<String>) -> Self {
        Self {
            places: place::resolved(places),
            types,
        }
    }

    /// Returns where the agent works.
    pub(crate) fn cwd(&self) -> &Path {
        &self.places.cwd
    }

    /// Returns the file that would declare a team, if the person trusted it.
    pub(crate) fn waiting(&self, name: &Name) -> Option<PathBuf> {
        let files = self.places.trust.waiting().into_iter();
        let mut files = files.filter(|file| file.kind == FileKind::Team);
        let is_meant = |file: &LookedFile| file.path.file_stem() == Some(OsStr::new(name.as_str()));
        files.find(is_meant).map(|file| file.path)
    }

    /// Reads all current declarations.
    pub(crate) fn load(&self) -> DefinitionSet<TeamDeclaration> {
        let mut loaded = DefinitionSet::default();
        let (managed, others) = place::directories(&self.places, TEAMS);
        // Other programs keep something else under that name.
        let ours = |directory: &Directory| {
            !directory
                .path
                .parent()
                .is_some_and(|parent| parent.ends_with(".claude"))
        };
        let mut seen = BTreeSet::new();
        for directory in [managed].into_iter().chain(others).filter(ours) {
            // Often one directory is a link to another, and must not be read twice.
            if !seen.insert(
                directory
                    .path
                    .canonicalize()
                    .unwrap_or_else(|_| directory.path.clone()),
            ) {
                continue;
            }
            let (known, told) = (loaded.known.clone(), loaded.remarks.len());
            self.read(&mut loaded, &directory);
            // An error in a file that is overridden anyway must not stop anyone.
            let counts_not = |remark: &&mut Remark| {
                about(remark).is_some_and(|name| known.iter().any(|known| known.is_called(name)))
            };
            for remark in loaded.remarks.iter_mut().skip(told).filter(counts_not) {
                remark.weight = Severity::Note;
                remark
                    .reason
                    .push_str(" (not used: another file of this name takes precedence)");
            }
        }
        loaded
            .known
            .sort_by(|one, other| one.definition.name.cmp(&other.definition.name));
        loaded
    }

    /// Adds all teams in a directory.
    fn read(&self, loaded: &mut DefinitionSet<TeamDeclaration>, directory: &Directory) {
        let bounds = directory.bounds.as_deref();
        let mut scanned = scan::scan(&directory.path, bounds, &ScanKind::TABLES, &mut loaded.left);
        place::admit(&self.places, directory, FileKind::Team, &mut scanned);
        loaded.remarks.extend(scanned.remarks);
        let mut here: Vec<DefinitionEntry<TeamDeclaration>> = Vec::new();
        for (path, text) in scanned.files {
            let Some(known) = self.take(loaded, path, &text, directory.source) else {
                continue;
            };
            match here
                .iter()
                .find(|first| first.is_called(known.definition.name()))
            {
                None => here.push(known),
                Some(first) => {
                    let reason = format!(
                        "{} already exists: {}",
                        known.definition.name,
                        first.origin(self.cwd())
                    );
                    let path = known.path.unwrap_or_default();
                    loaded.remarks.push(Remark {
                        weight: Severity::Error,
                        path,
                        line: None,
                        reason,
                    });
                }
            }
        }
        here.into_iter().for_each(|known| loaded.add(known));
    }

    /// Returns the team in a file, and records remarks about it.
    fn take(
        &self,
        loaded: &mut DefinitionSet<TeamDeclaration>,
        path: PathBuf,
        text: &str,
        source: DefinitionSource,
    ) -> Option<DefinitionEntry<TeamDeclaration>> {
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut lines = TeamFileReader::new(text, source);
        let read = match stem.parse::<Name>() {
            Ok(name) => lines.read(name, &self.types),
            Err(error) => {
                lines.whole(
                    Severity::Error,
                    format!("a file is named after its team, and {error}"),
                );
                None
            }
        };
        let remarks = lines.remarks.into_iter();
        loaded
            .remarks
            .extend(remarks.map(|(weight, line, reason)| Remark {
                weight,
                path: path.clone(),
                line,
                reason,
            }));
        read.map(|definition| DefinitionEntry {
            definition,
            source,
            path: Some(path),
        })
    }
}

/// Returns the team that a remark is about.
pub(crate) fn about(remark: &Remark) -> Option<&str> {
    remark.path.file_stem().and_then(|stem| stem.to_str())
}
