//! What is on the disk where a command is to run: everything that a plan depends on beside rights.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use posse_port::confinement::Confinement;

use crate::layout::Repository;
use crate::tier::KernelSupport;

/// How many entries are looked at to find other names of a file that has several.
const MOST_LOOKED_AT: usize = 200_000;

/// Where resolvers of names keep their settings.
pub(crate) const RESOLVERS: [&str; 2] = ["/run/systemd/resolve", "/run/resolvconf"];

/// Where some systems have all their programs.
pub(crate) const PROGRAMS: &str = "/run/current-system";

/// What a plan depends on beside the confinement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// What the kernel gives.
    pub support: KernelSupport,
    /// A directory of the agent's own, which becomes `/tmp`.
    pub temporary: PathBuf,
    /// Files through which a process enters a cgroup, for limits that need one.
    pub cgroups: Vec<PathBuf>,
    /// Checkouts beneath the roots, the roots among them.
    pub repositories: Vec<Repository>,
    /// Directories that a command may write to as if they were its own, each with the directory
    /// where what it writes is kept.
    pub copies: Vec<(PathBuf, PathBuf)>,
    /// Sockets that processes outside listen on.
    pub sockets: Vec<PathBuf>,
    /// What exists of the confinement's and the repositories' paths, without links: true for a
    /// directory.
    pub present: BTreeMap<PathBuf, bool>,
    /// Links among them, and what they lead to.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Other names of files among them, each with the path that it is another name of.
    pub twins: Vec<(PathBuf, PathBuf)>,
    /// Files among them that have further names which were not found.
    pub unfound_twins: Vec<PathBuf>,
}

impl Surroundings {
    /// Looks at what is there. `nested` are the top directories of checkouts beneath the roots.
    pub fn look(
        confinement: &Confinement,
        support: KernelSupport,
        temporary: &Path,
        nested: &[PathBuf],
    ) -> Self {
        let roots = confinement.write.iter().filter(|it| *it != Path::new("/"));
        let mut found = Self {
            support,
            temporary: temporary.to_owned(),
            repositories: roots
                .chain(nested)
                .filter_map(|top| Repository::at(top))
                .collect(),
            sockets: listening_sockets(),
            ..Self::default()
        };
        found.look_at_paths(confinement);
        found
    }

    fn look_at_paths(&mut self, confinement: &Confinement) {
        let mut several = Vec::new();
        let of_git = self
            .repositories
            .iter()
            .flat_map(|it| it.write.iter().chain(&it.keep));
        let lists = [
            &confinement.write,
            &confinement.keep,
            &confinement.hide,
            &confinement.show,
        ];
        let paths: BTreeSet<PathBuf> = lists
            .into_iter()
            .flatten()
            .chain(of_git)
            .chain(&self.sockets)
            .cloned()
            .chain(RESOLVERS.map(PathBuf::from))
            .chain([PathBuf::from(PROGRAMS)])
            .collect();
        for path in paths {
            let Ok(mut metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            let mut real = path.clone();
            // A link may also be above it.
            let is_link = fs::canonicalize(&path).map_or(metadata.is_symlink(), |it| it != path);
            if is_link {
                let Some((target, of_target)) = followed(&path) else {
                    continue;
                };
                self.links.insert(path, target.clone());
                (real, metadata) = (target, of_target);
            }
            if metadata.is_file() && metadata.nlink() > 1 {
                several.push((real.clone(), metadata.clone()));
            }
            self.present.insert(real, metadata.is_dir());
        }
        self.find_twins(confinement, several);
    }

    /// Looks for the other names of files beneath the roots and beside the files: what is kept or
    /// hidden by one name must not be open by another.
    fn find_twins(&mut self, confinement: &Confinement, several: Vec<(PathBuf, Metadata)>) {
        let guarded = |path: &Path| {
            let kept = self.repositories.iter().flat_map(|it| &it.keep);
            let mut lists = confinement.keep.iter().chain(&confinement.hide).chain(kept);
            lists.any(|it| it == path || self.links.get(it).is_some_and(|target| target == path))
        };
        let several: Vec<_> = several
            .into_iter()
            .filter(|(path, _)| guarded(path))
            .collect();
        if several.is_empty() {
            return;
        }
        let mut names: BTreeMap<(u64, u64), Vec<PathBuf>> = BTreeMap::new();
        let mut looked_at = 0;
        let mut waiting: Vec<PathBuf> = confinement.write.clone();
        for beside in several.iter().filter_map(|(path, _)| path.parent()) {
            if !waiting.iter().any(|top| beside.starts_with(top)) {
                // What can be written is looked at first.
                waiting.insert(0, beside.to_owned());
            }
        }
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                looked_at += 1;
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if metadata.is_dir() && looked_at < MOST_LOOKED_AT {
                    waiting.push(entry.path());
                } else if metadata.is_file() && metadata.nlink() > 1 {
                    let file = (metadata.dev(), metadata.ino());
                    names.entry(file).or_default().push(entry.path());
                }
            }
        }
        for (path, metadata) in several {
            let names = names.get(&(metadata.dev(), metadata.ino()));
            let mut others: BTreeSet<&PathBuf> = names.into_iter().flatten().collect();
            others.remove(&path);
            if (others.len() as u64) + 1 < metadata.nlink() {
                self.unfound_twins.push(path.clone());
            }
            for other in others {
                self.present.insert(other.clone(), false);
                self.twins.push((other.clone(), path.clone()));
            }
        }
    }
}

fn followed(link: &Path) -> Option<(PathBuf, Metadata)> {
    let target = fs::canonicalize(link).ok()?;
    let metadata = fs::symlink_metadata(&target).ok()?;
    Some((target, metadata))
}

/// Returns the sockets in the file system that someone listens on, or receives datagrams at.
fn listening_sockets() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let paths = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(" /").map(|(_, path)| format!("/{path}")));
    let paths: BTreeSet<PathBuf> = paths.map(PathBuf::from).collect();
    paths.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_of_a_file_are_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::create_dir(root.join("elsewhere")).unwrap();
        fs::write(root.join("sub/.env"), "secret").unwrap();
        fs::hard_link(root.join("sub/.env"), root.join("sub/hard")).unwrap();
        let confinement = Confinement {
            write: vec![root.join("sub")],
            hide: vec![root.join("sub/.env")],
            ..Confinement::default()
        };
        let look = || {
            Surroundings::look(
                &confinement,
                KernelSupport::default(),
                Path::new("/tmp"),
                &[],
            )
        };
        let twin = (root.join("sub/hard"), root.join("sub/.env"));
        let found = look();
        assert_eq!(found.twins, std::slice::from_ref(&twin));
        assert_eq!(found.unfound_twins, Vec::<PathBuf>::new());
        fs::hard_link(root.join("sub/.env"), root.join("elsewhere/hard")).unwrap();
        let found = look();
        assert_eq!(found.twins, [twin]);
        assert_eq!(found.unfound_twins, [root.join("sub/.env")]);
    }

    #[test]
    fn other_names_beside_a_file_that_cannot_be_written_are_found() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("main/deep")).unwrap();
        fs::create_dir(root.join("worktree")).unwrap();
        fs::write(root.join("main/.env"), "secret").unwrap();
        fs::hard_link(root.join("main/.env"), root.join("main/deep/hard")).unwrap();
        for write in [vec![root.join("worktree")], Vec::new()] {
            let confinement = Confinement {
                write,
                hide: vec![root.join("main/.env")],
                ..Confinement::default()
            };
            let support = KernelSupport::default();
            let found = Surroundings::look(&confinement, support, Path::new("/tmp"), &[]);
            let twin = (root.join("main/deep/hard"), root.join("main/.env"));
            assert_eq!(found.twins, [twin]);
            assert_eq!(found.unfound_twins, Vec::<PathBuf>::new());
        }
    }

    #[test]
    fn a_socket_that_is_listened_on_is_found() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap().join("sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(listening_sockets().contains(&path));
    }
}
