//! What a command that an agent runs may write, read and reach: plain data, and the only way to
//! combine two of them. What enforces it lives in posse-sandbox.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How strong a sandbox is, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// There is none.
    C,
    /// Landlock and seccomp: no writes outside the roots, no network, no signals to others. It can
    /// neither hide nor keep anything.
    B,
    /// Namespaces and seccomp without Landlock: everything, with one line of defence.
    AMinus,
    /// Namespaces, Landlock and seccomp: everything.
    A,
}

impl Tier {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::C, Self::B, Self::AMinus, Self::A];

    /// Returns true if it can hide files, and keep some beneath a root from being written.
    pub fn has_mounts(self) -> bool {
        matches!(self, Self::A | Self::AMinus)
    }

    /// Returns true if it has Landlock.
    pub fn has_fence(self) -> bool {
        matches!(self, Self::A | Self::B)
    }

    /// Returns its name, under which it is stored, too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::AMinus => "A-",
            Self::B => "B",
            Self::C => "C",
        }
    }

    /// Returns the tier of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tier| tier.as_str() == name)
    }

    /// Returns what of it holds a command that runs there.
    pub fn held_in(self, place: &Where) -> Self {
        match place {
            Where::Outside => Self::C,
            // It cannot let a command have the network and keep it from sockets of other programs.
            Where::Within { bounds, .. }
                if self == Self::B && bounds.network == NetworkAccess::All =>
            {
                Self::C
            }
            Where::Within { .. } => self,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Where a command runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// In a sandbox that holds it to this.
    Within {
        /// What it may touch.
        bounds: Arc<Confinement>,
        /// True if no person has agreed to all of it: what rules ask about stays closed.
        unasked: bool,
        /// What a person has opened to it of what is kept or hidden otherwise.
        opened: Vec<PathBuf>,
    },
    /// Outside, like a command of the person's own.
    Outside,
}

/// What a command may touch. Paths are absolute, without `.`, `..` or links.
///
/// The deepest path of `write`, `show` and `hide` that a file lies beneath decides about it; of
/// equal ones the strictest counts. What lies beneath none of them can be read. A path in `keep`
/// takes the right to write from what lies beneath it, down to a deeper path in `write`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Roots of what can be written. `/` means everything.
    pub write: Vec<PathBuf>,
    /// Paths beneath the roots that can only be read.
    pub keep: Vec<PathBuf>,
    /// Paths that can be neither read nor listed.
    pub hide: Vec<PathBuf>,
    /// Paths beneath hidden ones that can be read all the same.
    pub show: Vec<PathBuf>,
    /// Which hosts can be reached.
    pub network: NetworkAccess,
    /// What it may use of the machine.
    pub limits: Limits,
}

/// The hosts that a command can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkAccess {
    /// None at all, not even services of this machine.
    #[default]
    None,
    /// Those that rules or a person allow: a proxy is asked for each.
    Hosts,
    /// All of them, and services of this machine.
    All,
}

/// Limits of what a command uses; none means as much as the user may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many processes exist at once.
    pub processes: Option<u64>,
    /// How many bytes of memory each process can write to.
    pub memory: Option<u64>,
    /// How many bytes a file that it writes can have.
    pub file_size: Option<u64>,
}

/// What a command can do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileAccess {
    /// Nothing.
    Hidden,
    /// Read it.
    Read,
    /// Read and change it.
    Write,
}

impl Confinement {
    /// Returns what a command can do with the file of this path.
    pub fn access(&self, path: &Path) -> FileAccess {
        let hidden = deepest(&self.hide, path);
        let shown = deepest(&self.show, path);
        let written = deepest(&self.write, path);
        let kept = deepest(&self.keep, path);
        if hidden.is_some() && hidden >= shown.max(written) {
            FileAccess::Hidden
        } else if written.is_some() && written > shown.max(kept) {
            FileAccess::Write
        } else {
            FileAccess::Read
        }
    }

    /// Returns what both allow.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        if self == other {
            return self.clone();
        }
        let mut met = Self {
            network: self.network.min(other.network),
            limits: self.limits.meet(&other.limits),
            ..Self::default()
        };
        // Neither has a path between one of these and the next deeper one, so that what holds for
        // it holds for everything down to there. A path sorts after those that it lies beneath.
        for path in self.paths().union(&other.paths()) {
            let access = self.access(path).min(other.access(path));
            let inherited = met.access(path);
            if access == inherited {
                continue;
            }
            let list = match access {
                FileAccess::Hidden => &mut met.hide,
                FileAccess::Write => &mut met.write,
                FileAccess::Read if inherited == FileAccess::Hidden => &mut met.show,
                FileAccess::Read => &mut met.keep,
            };
            list.push((*path).to_owned());
        }
        met
    }

    /// Returns true if it allows nothing that `other` does not allow.
    pub fn is_within(&self, other: &Self) -> bool {
        let paths = self.paths();
        let others = other.paths();
        let mut all = paths.union(&others);
        all.all(|path| self.access(path) <= other.access(path))
            && self.network <= other.network
            && self.limits.is_within(&other.limits)
    }

    /// Returns every path that it says something about.
    fn paths(&self) -> BTreeSet<&Path> {
        let lists = [&self.write, &self.keep, &self.hide, &self.show];
        lists
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .chain([Path::new("/")])
            .collect()
    }
}

/// Returns how deep the deepest root lies that the path is or lies beneath: the length of its name,
/// since all those roots lie above each other.
fn deepest(roots: &[PathBuf], path: &Path) -> Option<usize> {
    let path = path.as_os_str().as_encoded_bytes();
    let lengths = roots.iter().filter_map(|root| {
        let root = root.as_os_str().as_encoded_bytes();
        let rest = path.strip_prefix(root)?;
        let above = rest.is_empty() || root.ends_with(b"/") || rest.starts_with(b"/");
        above.then_some(root.len())
    });
    lengths.max()
}

impl Limits {
    /// Returns the smaller of each.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        Self {
            processes: smaller(self.processes, other.processes),
            memory: smaller(self.memory, other.memory),
            file_size: smaller(self.file_size, other.file_size),
        }
    }

    /// Returns true if none is above that of `other`.
    pub fn is_within(&self, other: &Self) -> bool {
        self.meet(other) == *self
    }
}

fn smaller(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    one.into_iter().chain(two).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confinement(write: &[&str], keep: &[&str], hide: &[&str], show: &[&str]) -> Confinement {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        Confinement {
            write: paths(write),
            keep: paths(keep),
            hide: paths(hide),
            show: paths(show),
            ..Confinement::default()
        }
    }

    #[test]
    fn the_deepest_path_decides() {
        let confinement = confinement(
            &["/w", "/h/.posse/worktrees/a"],
            &["/w/.git/hooks", "/h/.posse/worktrees/a/.git", "/s/.envrc"],
            &["/h/.posse", "/w/secrets", "/s"],
            &["/h/.posse/spill"],
        );
        for (path, access) in [
            ("/", FileAccess::Read),
            ("/w-evil/a", FileAccess::Read),
            ("/w", FileAccess::Write),
            ("/w/src/a.rs", FileAccess::Write),
            ("/w/.git/hooks/post-commit", FileAccess::Read),
            ("/w/secrets/key", FileAccess::Hidden),
            ("/h/.posse/store.db", FileAccess::Hidden),
            ("/h/.posse/spill/1", FileAccess::Read),
            ("/h/.posse/worktrees/a/src", FileAccess::Write),
            ("/h/.posse/worktrees/a/.git", FileAccess::Read),
            // What is kept is not shown by that.
            ("/s/.envrc", FileAccess::Hidden),
        ] {
            assert_eq!(confinement.access(Path::new(path)), access, "{path}");
        }
    }

    #[test]
    fn everything_can_be_writable() {
        let all = confinement(&["/"], &["/w/.git/config"], &["/h/.ssh"], &[]);
        assert_eq!(all.access(Path::new("/etc/hosts")), FileAccess::Write);
        assert_eq!(all.access(Path::new("/w/.git/config")), FileAccess::Read);
        assert_eq!(all.access(Path::new("/h/.ssh/id")), FileAccess::Hidden);
        let met = all.meet(&confinement(&["/w"], &[], &[], &[]));
        assert_eq!(
            met,
            confinement(&["/w"], &["/w/.git/config"], &["/h/.ssh"], &[])
        );
    }

    /// Small numbers that look random and are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }

        fn path(&mut self) -> PathBuf {
            let depth = self.below(4);
            let parts: Vec<&str> = (0..depth)
                .map(|_| ["a", "b", "ab"][self.below(3) as usize])
                .collect();
            PathBuf::from(format!("/{}", parts.join("/")))
        }

        fn paths(&mut self) -> Vec<PathBuf> {
            (0..self.below(4)).map(|_| self.path()).collect()
        }

        fn limit(&mut self) -> Option<u64> {
            self.below(4).checked_sub(1)
        }

        fn confinement(&mut self) -> Confinement {
            let network = match self.below(3) {
                0 => NetworkAccess::None,
                1 => NetworkAccess::Hosts,
                _ => NetworkAccess::All,
            };
            Confinement {
                write: self.paths(),
                keep: self.paths(),
                hide: self.paths(),
                show: self.paths(),
                network,
                limits: Limits {
                    processes: self.limit(),
                    memory: self.limit(),
                    file_size: self.limit(),
                },
            }
        }
    }

    #[test]
    fn a_child_is_within_its_parents_in_random_trees() {
        let mut numbers = Numbers(0x5eed);
        for _ in 0..100_000 {
            let lead = numbers.confinement();
            let own = numbers.confinement();
            let child = lead.meet(&own);
            assert!(child.is_within(&lead), "{lead:?} {own:?}");
            assert!(child.is_within(&own), "{lead:?} {own:?}");
            let grandchild = child.meet(&numbers.confinement());
            assert!(grandchild.is_within(&child) && grandchild.is_within(&lead));
            let path = numbers.path();
            // Not more than both allow, and not less.
            let both = lead.access(&path).min(own.access(&path));
            assert_eq!(child.access(&path), both, "{path:?} {lead:?} {own:?}");
            // What is within another meets it in itself.
            assert_eq!(own.is_within(&lead), own.is_within(&child));
        }
    }
}
