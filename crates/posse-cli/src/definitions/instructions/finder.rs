//! Finds memory files about a file that an agent reads or edits: rules with globs, and files in
//! directories below the one where the agent works.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use posse_port::tool::Workspace;
use posse_runtime::definition::catalogue::Catalogue;
use posse_runtime::definition::instructions::{Instruction, InstructionFinder};

use super::InstructionSources;
use super::survey::Survey;

/// Maximum number of directories on the way to a file.
const MOST_DIRECTORIES: usize = 64;

/// Finds memory files in the project of a session.
#[derive(Debug)]
pub(crate) struct ProjectFinder {
    pub(crate) sources: InstructionSources,
    /// The session's files as they are now.
    pub(crate) files: Arc<Catalogue<Instruction>>,
}

impl InstructionFinder for ProjectFinder {
    fn about(&self, path: &Path, workspace: &Workspace) -> Vec<Instruction> {
        let Some(top) = self.top(path, workspace) else {
            return Vec::new();
        };
        let within = path.strip_prefix(top).unwrap_or(path);
        let is_about = |file: &&Instruction| {
            let globs = file.globs.as_ref();
            globs.is_some_and(|globs| globs.matches(within))
        };
        let files = self.files.now();
        let rules = files.iter().map(|file| &**file).filter(is_about).cloned();
        let mut found: Vec<Instruction> = rules.collect();
        let mut survey = Survey::new(&self.sources, top, workspace);
        let directories = self.below(path, top, workspace);
        let directories: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
        survey.add_directories(&directories);
        let nested = survey.found.into_iter().filter_map(|file| file.used);
        found.extend(nested.filter(|file| file.globs.is_none() || is_about(&file)));
        found
    }
}

impl ProjectFinder {
    /// Returns the top of the project or of the worktree that a file is in; none if it is
    /// elsewhere.
    fn top<'a>(&'a self, path: &Path, workspace: &'a Workspace) -> Option<&'a Path> {
        let worktree = workspace
            .mirror
            .as_ref()
            .map(|mirror| mirror.here.as_path());
        let top = worktree.unwrap_or_else(|| self.sources.places.project());
        path.starts_with(top).then_some(top)
    }

    /// Returns the directories on the way to a file. Files of those that the session works in or
    /// below are known from the start; in a worktree they may differ.
    fn below(&self, path: &Path, top: &Path, workspace: &Workspace) -> Vec<PathBuf> {
        let is_new = |directory: &&Path| {
            workspace.mirror.is_some() || !self.sources.cwd().starts_with(directory)
        };
        let last = if path.is_dir() {
            Some(path)
        } else {
            path.parent()
        };
        let mut directories: Vec<PathBuf> = last
            .into_iter()
            .flat_map(Path::ancestors)
            .take_while(|directory| directory.starts_with(top))
            .filter(is_new)
            .take(MOST_DIRECTORIES)
            .map(Path::to_owned)
            .collect();
        directories.reverse();
        directories
    }
}
