//! What rules say in a worktree: of a path there the same as of that path in the checkout it was made from.
//! Every question of a rule's paths comes through here. Never looks at the disk.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::path::overlap;
use posse_port::tool::Workspace;

/// How a workspace's paths look to rules.
pub(super) trait RulePaths {
    /// What a rule that allows is asked about: the path just as it is, here and in the originals.
    fn twins<'p>(&self, path: &'p Path) -> impl Iterator<Item = Cow<'p, Path>>;

    /// What a rule that denies or asks is asked about: also what the path could be if case does not count or
    /// it has a shell's wildcards, and for paths of an original what that is a copy of.
    fn lookalikes<'p>(&self, path: &'p Path) -> impl Iterator<Item = Cow<'p, Path>>;

    /// The path as a rule would best name it: a worktree does not last.
    fn lasting<'p>(&self, path: &'p Path) -> Cow<'p, Path>;

    /// Whether the path lies beneath a root or in the notes.
    fn holds(&self, path: &Path) -> bool;

    /// Whether the path lies in the agent's notes.
    fn notes_hold(&self, path: &Path) -> bool;

    /// Whether the path lies in a checkout that this worktree was made from. Rules about that one are meant
    /// for those who work there.
    fn is_original(&self, path: &Path) -> bool;

    /// Directories whose own names say nothing about what lies in them.
    fn tops(&self) -> impl Iterator<Item = &Path>;
}

impl RulePaths for Workspace {
    fn twins<'p>(&self, path: &'p Path) -> impl Iterator<Item = Cow<'p, Path>> {
        let originals = self
            .mirror
            .iter()
            .flat_map(move |mirror| mirror.originals(path));
        std::iter::once(Cow::Borrowed(path)).chain(originals.map(Cow::Owned))
    }

    fn lookalikes<'p>(&self, path: &'p Path) -> impl Iterator<Item = Cow<'p, Path>> {
        let tops: Vec<&PathBuf> = self
            .mirror
            .iter()
            .flat_map(|mirror| std::iter::once(&mirror.here).chain(&mirror.of))
            .collect();
        let mut found = Vec::new();
        for (at, top) in tops.iter().enumerate() {
            let Some(inside) = perhaps_inside(path, top) else {
                continue;
            };
            let older = tops.iter().skip(at + 1);
            found.extend(older.map(|top| Cow::Owned(top.join(&inside))));
        }
        std::iter::once(Cow::Borrowed(path)).chain(found)
    }

    fn lasting<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        self.twins(path).last().unwrap_or(Cow::Borrowed(path))
    }

    fn holds(&self, path: &Path) -> bool {
        self.reach().any(|root| path.starts_with(root))
    }

    fn notes_hold(&self, path: &Path) -> bool {
        self.notes
            .as_ref()
            .is_some_and(|notes| path.starts_with(&notes.directory))
    }

    fn is_original(&self, path: &Path) -> bool {
        let original = self.mirror.as_ref().is_some_and(|mirror| {
            !path.starts_with(&mirror.here) && mirror.of.iter().any(|top| path.starts_with(top))
        });
        original && !self.holds(path) && !path.starts_with(&self.spill)
    }

    fn tops(&self) -> impl Iterator<Item = &Path> {
        self.reach()
            .chain(self.mirror.iter().map(|mirror| mirror.here.as_path()))
    }
}

/// What is left of the path if its beginning could be `top`.
fn perhaps_inside(path: &Path, top: &Path) -> Option<PathBuf> {
    if let Ok(inside) = path.strip_prefix(top) {
        return Some(inside.to_owned());
    }
    let mut parts = path.components();
    for name in top.components() {
        let part = parts.next()?;
        if part != name {
            let [part, name] =
                [part, name].map(|part| part.as_os_str().to_string_lossy().to_lowercase());
            if !overlap(&part, &name) {
                return None;
            }
        }
    }
    Some(parts.as_path().to_owned())
}
