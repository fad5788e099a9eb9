//! Memory files: instructions for agents in CLAUDE.md, AGENTS.md and rules, of the administrator,
//! of the user, and from the project's root down to where the agent works.

mod finder;
mod found;
mod keeper;
mod survey;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_permission::Policy;
use posse_port::tool::Workspace;
use posse_runtime::definition::instructions::Instruction;

pub(crate) use self::finder::ProjectFinder;
pub(crate) use self::found::{Fate, FoundFile, Reason};
pub(crate) use self::keeper::MemoryKeeper;
use self::survey::Survey;
use super::{
    DefinitionEntry, DefinitionSet, DefinitionSource, HasName, Remark, Severity, WatchedSources,
    place,
};
use crate::config::search_paths::SearchPaths;

/// Where memory files are, and which of them may be read.
#[derive(Clone, Debug)]
pub(crate) struct InstructionSources {
    places: SearchPaths,
    policy: Arc<Policy>,
    workspace: Arc<Workspace>,
}

impl InstructionSources {
    /// Returns the sources for agents that work in this workspace under these rules.
    pub(crate) fn new(places: SearchPaths, policy: Arc<Policy>, workspace: Arc<Workspace>) -> Self {
        Self {
            places: place::resolved(places),
            policy,
            workspace,
        }
    }

    /// Returns where the agent works.
    pub(crate) fn cwd(&self) -> &Path {
        &self.places.cwd
    }

    /// Returns the administrator's directory.
    pub(crate) fn managed(&self) -> &Path {
        self.places.managed.parent().unwrap_or(Path::new("/"))
    }

    /// Looks for all memory files, most general first.
    pub(crate) fn survey(&self) -> Vec<FoundFile> {
        self.look().found
    }

    fn look(&self) -> Survey<'_> {
        let mut survey = Survey::new(self, self.places.project(), &self.workspace);
        survey.add_managed(self.managed());
        if self.places.sources.user {
            survey.add_user(
                self.places.posse_home.as_deref(),
                self.places.home.as_deref(),
            );
        }
        let mut directories: Vec<&Path> = self
            .places
            .cwd
            .ancestors()
            .take_while(|directory| directory.starts_with(self.places.project()))
            .collect();
        directories.reverse();
        survey.add_directories(&directories);
        survey
    }
}

impl HasName for Instruction {
    fn name(&self) -> &str {
        self.path.to_str().unwrap_or("a memory file")
    }
}

impl WatchedSources for InstructionSources {
    type Item = Instruction;
    const WORD: &'static str = "memory";
    const CHECK: &'static str = "posse doctor --memory";

    fn load(&self) -> DefinitionSet<Instruction> {
        let Survey {
            found, directories, ..
        } = self.look();
        let mut set = DefinitionSet::default();
        set.directories.extend(directories);
        for file in found {
            set.remarks.extend(remark(&file, &self.places));
            let FoundFile {
                path, reason, used, ..
            } = file;
            set.known.extend(used.map(|definition| DefinitionEntry {
                definition,
                source: source(&reason),
                path: Some(path),
            }));
        }
        set
    }

    fn load_only(&self, paths: &[PathBuf]) -> DefinitionSet<Instruction> {
        let mut set = self.load();
        set.known
            .retain(|known| paths.contains(&known.definition.path));
        set
    }

    fn candidates(&self) -> Vec<PathBuf> {
        self.look().candidates()
    }

    fn cwd(&self) -> &Path {
        Self::cwd(self)
    }
}

/// Returns the warning about a file that is not used as it is; none about one that is.
fn remark(file: &FoundFile, places: &SearchPaths) -> Option<Remark> {
    let reason = match &file.fate {
        Fate::Information if !places.trust.is_trusted() => return None,
        Fate::Information => place::WAITS.to_owned(),
        Fate::Used | Fate::SameAs(_) | Fate::OnlyImports | Fate::Missing => return None,
        Fate::Cut(bytes) => format!("only its first {bytes} bytes are used"),
        Fate::LeftOut => "left out: all memory files together are too large".to_owned(),
        Fate::Refused(why) => match &file.reason {
            Reason::ImportOf(importer) => {
                format!("not read, though {} imports it: {why}", importer.display())
            }
            _ => format!("not read: {why}"),
        },
    };
    Some(Remark {
        weight: Severity::Warning,
        path: file.path.clone(),
        line: None,
        reason,
    })
}

fn source(reason: &Reason) -> DefinitionSource {
    match reason {
        Reason::Managed => DefinitionSource::Managed,
        Reason::User => DefinitionSource::User,
        _ => DefinitionSource::Project,
    }
}
