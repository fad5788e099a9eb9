//! From rights and what is on the disk to an ordered list of mounts and rules. Pure; the launcher
//! does what a plan says, and all of it or nothing.

use std::path::{Path, PathBuf};

use posse_port::confinement::{Confinement, FileAccess, Limits, NetworkAccess, Tier};

use crate::codec::{Decoder, Encoder, MessageError};
use crate::surroundings::{PROGRAMS, RESOLVERS, Surroundings};
use crate::tier::KernelSupport;

/// What a message begins with. It changes with what a message means.
const VERSION: &[u8] = b"posse-sandbox plan 2\n";
/// Directories that are private to each command.
const TEMPORARY: &str = "/tmp";
const RUN: &str = "/run";
/// Directories of the kernel, never writable.
const OF_KERNEL: [&str; 2] = ["/proc", "/sys"];

/// Why there is no plan.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The kernel gives too little for what is to be kept.
    #[error("a sandbox of tier {tier} cannot {what}")]
    TooWeak {
        /// What the kernel gives.
        tier: Tier,
        /// What it cannot do.
        what: String,
    },
    /// A root does not exist.
    #[error("{} cannot be made writable: it does not exist", .0.display())]
    NoRoot(PathBuf),
    /// A root is a link, or lies behind one: what it leads to was not meant.
    #[error("{} cannot be made writable: it leads elsewhere", .0.display())]
    Link(PathBuf),
    /// A file that is hidden or kept has another name that was not found.
    #[error("{} has another name that was not found: it cannot be guarded", .0.display())]
    Twin(PathBuf),
}

/// What is done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountKind {
    /// It can be written.
    Write,
    /// It can be written, and is mounted only so that it cannot be renamed: something beneath it
    /// is kept or hidden.
    Pin,
    /// It can only be read, though what is around it can be written.
    Keep,
    /// It can be read, though what is around it is hidden.
    Show,
    /// It is covered by something that cannot be opened.
    Hide,
    /// It is covered by an empty directory.
    Empty,
    /// It can be written, and what is written is kept elsewhere.
    Copy,
}

/// One mount of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What is done.
    pub kind: MountKind,
    /// Where.
    pub path: PathBuf,
    /// What is mounted there, if it is not the same path. For a copy, where what is written is
    /// kept.
    pub source: Option<PathBuf>,
    /// Whether it is a directory.
    pub directory: bool,
}

/// How a command is confined: what the launcher is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the kernel must give.
    pub(crate) support: KernelSupport,
    /// In the order in which they are made: what lies above others comes first.
    pub(crate) mounts: Vec<Mount>,
    /// Whether all else is writable, too.
    pub(crate) all_writable: bool,
    /// Where writing is allowed, as paths outside.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) temporary: PathBuf,
    pub(crate) network: NetworkAccess,
    pub(crate) limits: Limits,
    pub(crate) cgroups: Vec<PathBuf>,
}

impl Plan {
    /// Makes a plan. Fails if the kernel gives too little for it.
    pub fn new(confinement: &Confinement, surroundings: &Surroundings) -> Result<Self, PlanError> {
        let tier = surroundings.support.tier();
        if let Some(twin) = surroundings.unfound_twins.first() {
            return Err(PlanError::Twin(twin.clone()));
        }
        let rights = rights(confinement, surroundings)?;
        let weak = |what: &str| {
            let what = what.to_owned();
            Err(PlanError::TooWeak { tier, what })
        };
        match tier {
            Tier::C => return weak("confine a command"),
            Tier::B if !rights.hide.is_empty() => return weak("hide files"),
            Tier::B if !rights.keep.is_empty() => {
                return weak("keep files beneath a writable directory");
            }
            Tier::B if confinement.network == NetworkAccess::All => {
                return weak("allow the network and keep sockets of other programs out of reach");
            }
            _ => {}
        }
        let mut plan = Self {
            support: surroundings.support,
            mounts: Vec::new(),
            all_writable: rights.write.iter().any(|root| root == Path::new("/")),
            roots: rights.write.clone(),
            temporary: surroundings.temporary.clone(),
            network: confinement.network,
            limits: confinement.limits,
            cgroups: surroundings.cgroups.clone(),
        };
        if tier.has_mounts() {
            plan.add_mounts(&rights, confinement, surroundings);
        }
        Ok(plan)
    }

    /// Returns the tier that it holds.
    pub fn tier(&self) -> Tier {
        self.support.tier()
    }

    /// Returns true if the command has the network of the machine.
    pub(crate) fn shares_network(&self) -> bool {
        self.network == NetworkAccess::All
    }

    /// Returns true if it reaches hosts through a proxy, which accepts what it connects to.
    pub fn has_proxy(&self) -> bool {
        self.network == NetworkAccess::Hosts && self.tier().has_mounts()
    }

    /// Returns its mounts, in their order.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    fn add_mounts(
        &mut self,
        rights: &Confinement,
        confinement: &Confinement,
        surroundings: &Surroundings,
    ) {
        let is_directory = |path: &Path| surroundings.present.get(path).copied().unwrap_or(true);
        let mut add = |kind, path: &Path| {
            self.mounts.push(Mount {
                kind,
                path: path.to_owned(),
                source: None,
                directory: is_directory(path),
            });
        };
        for root in rights.write.iter().filter(|root| *root != Path::new("/")) {
            add(MountKind::Write, root);
        }
        for (kind, paths) in [
            (MountKind::Keep, &rights.keep),
            (MountKind::Hide, &rights.hide),
            (MountKind::Show, &rights.show),
        ] {
            for path in paths {
                add(kind, path);
                // Up to the root, else a directory could be renamed with what is mounted in it.
                for above in path.ancestors().skip(1) {
                    if rights.access(above) != FileAccess::Write
                        || rights.write.iter().any(|root| root == above)
                    {
                        break;
                    }
                    add(MountKind::Pin, above);
                }
            }
        }
        add(MountKind::Empty, Path::new(RUN));
        if self.network == NetworkAccess::All {
            for settings in RESOLVERS {
                if surroundings.present.contains_key(Path::new(settings)) {
                    add(MountKind::Show, Path::new(settings));
                }
            }
        }
        // What is to be seen in spite of a private directory above it.
        for path in &confinement.show {
            let is_there = surroundings.present.contains_key(path);
            if is_there && is_private(path, &rights.write) && !self.all_writable {
                add(MountKind::Show, path);
            }
        }
        let programs = surroundings.links.get(Path::new(PROGRAMS));
        if let Some(programs) = programs.filter(|it| surroundings.present.contains_key(*it)) {
            self.mounts.push(Mount {
                kind: MountKind::Show,
                path: PROGRAMS.into(),
                source: Some(programs.clone()),
                directory: true,
            });
        }
        for (path, kept) in &surroundings.copies {
            if rights.access(path) == FileAccess::Read {
                self.mounts.push(Mount {
                    kind: MountKind::Copy,
                    path: path.clone(),
                    source: Some(kept.clone()),
                    directory: true,
                });
            }
        }
        // With everything writable, the temporary directory is everybody's.
        if !self.all_writable {
            self.mounts.push(Mount {
                kind: MountKind::Write,
                path: TEMPORARY.into(),
                source: Some(self.temporary.clone()),
                directory: true,
            });
        }
        self.mounts.sort_by(|one, two| one.path.cmp(&two.path));
        self.mounts.dedup_by(|one, two| one.path == two.path);
    }

    /// Returns how many processes the command may have at once.
    pub fn processes(&self) -> Option<u64> {
        self.limits.processes
    }

    /// Has the command enter a cgroup, through this file of it.
    pub fn enter(&mut self, door: PathBuf) {
        self.cgroups.push(door);
    }

    /// Returns what is kept that a path is, or lies beneath.
    pub fn kept_at(&self, path: &Path) -> Option<&Path> {
        let mut above = self.mounts.iter().rev();
        let mount = above.find(|mount| path.starts_with(&mount.path))?;
        (mount.kind == MountKind::Keep).then_some(&mount.path)
    }

    /// Returns true if what is mounted at this path is to be writable.
    pub(crate) fn is_writable(&self, path: &Path) -> bool {
        let mut above = self.mounts.iter().rev();
        match above.find(|mount| path.starts_with(&mount.path)) {
            Some(mount) => matches!(
                mount.kind,
                MountKind::Write | MountKind::Pin | MountKind::Copy
            ),
            None => self.all_writable && !OF_KERNEL.iter().any(|it| path.starts_with(it)),
        }
    }

    /// Returns it as a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        let flags = [
            self.support.namespaces,
            self.support.seccomp,
            self.all_writable,
        ];
        flags.into_iter().for_each(|flag| out.byte(flag.into()));
        out.byte(self.network as u8);
        out.byte(self.support.landlock);
        out.list(&self.mounts, |out, mount| {
            out.byte(mount.kind as u8);
            out.byte(mount.directory.into());
            out.text(&mount.path);
            out.text(mount.source.as_deref().unwrap_or(Path::new("")));
        });
        out.list(&self.roots, |out, path| out.text(path));
        out.text(&self.temporary);
        out.list(&self.cgroups, |out, path| out.text(path));
        let limits = &self.limits;
        for limit in [limits.processes, limits.memory, limits.file_size] {
            out.optional(limit);
        }
        [VERSION, &out.finish()].concat()
    }

    /// Returns the plan of a message. Refuses what it does not understand.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        let mut fields = Decoder::new(bytes.strip_prefix(VERSION).ok_or(MessageError)?);
        let mut flags = [false; 3];
        for flag in &mut flags {
            *flag = is_set(fields.byte()?)?;
        }
        let [namespaces, seccomp, all_writable] = flags;
        let network = one_of(
            fields.byte()?,
            [
                NetworkAccess::None,
                NetworkAccess::Hosts,
                NetworkAccess::All,
            ],
            |it| it as u8,
        )?;
        let support = KernelSupport {
            namespaces,
            landlock: fields.byte()?,
            seccomp,
        };
        let plan = Self {
            support,
            all_writable,
            network,
            mounts: fields.list(|fields| {
                let kind = kind(fields.byte()?)?;
                let directory = is_set(fields.byte()?)?;
                let path = fields.path()?;
                let source = Some(fields.path()?).filter(|path| !path.as_os_str().is_empty());
                Ok(Mount {
                    kind,
                    path,
                    source,
                    directory,
                })
            })?,
            roots: fields.list(Decoder::path)?,
            temporary: fields.path()?,
            cgroups: fields.list(Decoder::path)?,
            limits: Limits {
                processes: fields.optional()?,
                memory: fields.optional()?,
                file_size: fields.optional()?,
            },
        };
        fields.end()?;
        Ok(plan)
    }
}

fn is_set(byte: u8) -> Result<bool, MessageError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(MessageError),
    }
}

fn kind(byte: u8) -> Result<MountKind, MessageError> {
    let kinds = [
        MountKind::Write,
        MountKind::Pin,
        MountKind::Keep,
        MountKind::Show,
        MountKind::Hide,
        MountKind::Empty,
        MountKind::Copy,
    ];
    one_of(byte, kinds, |it| it as u8)
}

/// Returns the one of these that the byte stands for.
fn one_of<T: Copy, const N: usize>(
    byte: u8,
    known: [T; N],
    number: fn(T) -> u8,
) -> Result<T, MessageError> {
    let mut known = known.into_iter();
    known.find(|it| number(*it) == byte).ok_or(MessageError)
}

/// Returns the confinement with what git and the disk add to it, about what exists, without what
/// makes no difference.
fn rights(
    confinement: &Confinement,
    surroundings: &Surroundings,
) -> Result<Confinement, PlanError> {
    let real = |path: &PathBuf| -> Option<PathBuf> {
        let real = surroundings.links.get(path).unwrap_or(path);
        surroundings
            .present
            .contains_key(real)
            .then(|| real.clone())
    };
    let existing = |paths: &[PathBuf]| paths.iter().filter_map(real).collect::<Vec<_>>();
    let mut rights = confinement.clone();
    rights.write = Vec::new();
    let is_link = |path: &PathBuf| surroundings.links.contains_key(path);
    for root in &confinement.write {
        if is_link(root) {
            return Err(PlanError::Link(root.clone()));
        }
        let root = real(root).ok_or_else(|| PlanError::NoRoot(root.clone()))?;
        rights.write.push(root);
    }
    rights.keep = existing(&confinement.keep);
    rights.hide = existing(&confinement.hide);
    rights.show = existing(&confinement.show);
    for repository in &surroundings.repositories {
        // A checkout that cannot be written needs no commits either.
        if confinement.access(&repository.top) == FileAccess::Write {
            let plain = repository.write.iter().filter(|path| !is_link(path));
            rights.write.extend(plain.filter_map(real));
        }
        rights.keep.extend(existing(&repository.keep));
    }
    for (twin, path) in &surroundings.twins {
        match rights.access(path) {
            FileAccess::Hidden => rights.hide.push(twin.clone()),
            FileAccess::Read => rights.keep.push(twin.clone()),
            FileAccess::Write => {}
        }
    }
    // Without mounts no socket can be made at all.
    if surroundings.support.tier().has_mounts() {
        rights.hide.extend(existing(&surroundings.sockets));
    }
    rights
        .hide
        .retain(|path| !is_private(path, &confinement.write));
    Ok(rights.meet(&Confinement {
        write: vec!["/".into()],
        network: NetworkAccess::All,
        ..Confinement::default()
    }))
}

/// Returns true if a path is gone anyway, since its directory is private to the command.
fn is_private(path: &Path, roots: &[PathBuf]) -> bool {
    let beneath_root = roots.iter().any(|root| path.starts_with(root));
    let private = ["/dev", RUN, TEMPORARY];
    !beneath_root && private.iter().any(|private| path.starts_with(private))
}

#[cfg(test)]
mod tests;
