//! Rules in a worktree: a path there is treated like the same path in the checkout it was made
//! from. All questions about a rule's paths go through here. Never reads the disk.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::path::overlap;
use posse_port::tool::Workspace;

/// How rules see the paths of a workspace.
pub(super) trait RulePaths {
    /// Returns what an allow rule is compared with: the exact path, here and in the originals.
    fn twins<'p>(&self, path: &'p Path) -> impl Iterator<Item = Cow<'p, Path>>;

    /// Returns what a deny or ask rule is compared with: also what the path could be if case is
    /// ignored or it contains wildcards, and for paths in an original what that is a copy of.
    fn lookalikes<'p>(&self, path: &'p Path) -> impl Iterator<Item = Cow<'p, Path>>;

    /// Returns a path of a rule, and the same path in the worktree.
    fn copies(&self, path: &Path) -> Vec<PathBuf>;

    /// Returns the path that a rule should name, since a worktree does not last.
    fn lasting<'p>(&self, path: &'p Path) -> Cow<'p, Path>;

    /// Returns true if the path is inside a root or the notes.
    fn holds(&self, path: &Path) -> bool;

    /// Returns true if the path is inside the agent's notes.
    fn notes_hold(&self, path: &Path) -> bool;

    /// Returns true if the path is in a checkout that this worktree was made from. Rules about
    /// that are meant for those who work there.
    fn is_original(&self, path: &Path) -> bool;

    /// Returns directories whose own names say nothing about their content.
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

    fn copies(&self, path: &Path) -> Vec<PathBuf> {
        let mirror = self.mirror.iter();
        let copies = mirror.flat_map(|mirror| mirror.reflected(&[path.to_owned()]));
        let here = std::iter::once(path.to_owned());
        here.chain(copies.filter(|copy| copy != path)).collect()
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

/// Returns the rest of the path if it could begin with `top`.
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
