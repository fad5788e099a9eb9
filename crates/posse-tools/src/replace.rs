//! Putting new content in a file's place: whole or not at all, and only over what the agent knows.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use posse_port::tool::{KnownFiles, ToolContext, ToolError};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::answer::{cannot, go_on, tell};
use crate::rooted_fs::{RootedPath, open_beneath, refused, regular};

/// The largest file that is read, edited or overwritten; its version is that of all its content.
pub(crate) const MOST_BYTES: u64 = 64 << 20;

/// How much of a file is looked at before the rest is read.
const START_BYTES: u64 = 8 << 10;

/// A file's place, held open for a change.
pub(crate) struct Replacement<'a> {
    place: &'a RootedPath,
    directory: OwnedFd,
    name: &'a OsStr,
    /// What is there now.
    pub(crate) old: Option<Old>,
}

/// What a place holds before the change.
pub(crate) struct Old {
    /// The whole content.
    pub(crate) content: Vec<u8>,
    stat: Stat,
}

impl<'a> Replacement<'a> {
    /// Opens the place and refuses to touch what the agent does not know as it is now.
    pub(crate) fn begin(place: &'a RootedPath, context: &ToolContext) -> Result<Self, ToolError> {
        let (directory, name) = place.parent()?;
        let old = match open_beneath(
            &directory,
            Path::new(name),
            OFlags::RDONLY | OFlags::NONBLOCK,
        ) {
            Ok(file) => Some(Old::read(place, file, &context.cancel)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(refused("write", &place.named, error)),
        };
        if let Some(old) = &old {
            known(place, &old.content, &context.seen)?;
        }
        Ok(Self {
            place,
            directory,
            name,
            old,
        })
    }

    /// Puts `content` there, durably, and remembers that the agent knows it.
    pub(crate) fn finish(self, content: &[u8], context: &ToolContext) -> Result<(), ToolError> {
        go_on(&context.cancel)?;
        let failed = |error: io::Error| refused("write", &self.place.named, error);
        let draft = DraftFile::create(&self.directory).map_err(failed)?;
        draft
            .fill(content, self.old.as_ref().map(|old| &old.stat))
            .map_err(failed)?;
        self.unchanged()?;
        let replaced = match &self.old {
            Some(_) => draft.rename(self.name),
            None => draft.rename_to_new(self.name),
        };
        replaced.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => changed(self.place),
            _ => failed(error),
        })?;
        context.seen.learn(&self.place.resolved, content);
        rustix::fs::fsync(&self.directory).map_err(|error| failed(error.into()))
    }

    /// Looks once more, right before the change, so that little time is left for another's.
    fn unchanged(&self) -> Result<(), ToolError> {
        let now = rustix::fs::statat(&self.directory, self.name, AtFlags::SYMLINK_NOFOLLOW);
        let same = match (&self.old, now) {
            (Some(old), Ok(now)) => fingerprint(&old.stat) == fingerprint(&now),
            (None, Err(Errno::NOENT)) => true,
            _ => false,
        };
        if same {
            Ok(())
        } else {
            Err(changed(self.place))
        }
    }
}

impl Old {
    fn read(
        place: &RootedPath,
        file: OwnedFd,
        cancel: &CancellationToken,
    ) -> Result<Self, ToolError> {
        let stat = rustix::fs::fstat(&file).map_err(|error| cannot("read", &place.named, error))?;
        regular(&place.named, &stat)?;
        if stat.st_nlink > 1 {
            let why = "it has other hard links, which would be separated from it or change with it";
            return Err(cannot("write", &place.named, why));
        }
        let content = read_whole(
            &place.named,
            File::from(file),
            MOST_BYTES,
            cancel,
            |_, _| Ok(()),
        )?;
        Ok(Self { content, stat })
    }
}

/// Reads all of a file, if that is at most `most` bytes. `look` is shown its start before the rest is read.
pub(crate) fn read_whole(
    path: &Path,
    mut file: File,
    most: u64,
    cancel: &CancellationToken,
    look: impl FnOnce(&[u8], u64) -> Result<(), ToolError>,
) -> Result<Vec<u8>, ToolError> {
    let failed = |error: io::Error| cannot("read", path, error);
    let too_large = || {
        cannot(
            "read",
            path,
            format!("it is larger than {} MiB", most >> 20),
        )
    };
    let size = file.metadata().map_err(failed)?.len();
    if size > most {
        return Err(too_large());
    }
    let mut content = Vec::new();
    (&mut file)
        .take(START_BYTES)
        .read_to_end(&mut content)
        .map_err(failed)?;
    look(&content, size)?;
    // It may grow meanwhile, and some files do not say how large they are.
    loop {
        go_on(cancel)?;
        let read = (&mut file)
            .take(1 << 20)
            .read_to_end(&mut content)
            .map_err(failed)?;
        if content.len() as u64 > most {
            return Err(too_large());
        }
        if read == 0 {
            return Ok(content);
        }
    }
}

fn known(place: &RootedPath, content: &[u8], seen: &KnownFiles) -> Result<(), ToolError> {
    match seen.version(&place.resolved) {
        None => Err(tell(format!(
            "{} exists but was not read yet: read it first",
            place.named.display()
        ))),
        Some(version) if version != KnownFiles::version_of(content) => Err(changed(place)),
        Some(_) => Ok(()),
    }
}

fn changed(place: &RootedPath) -> ToolError {
    tell(format!(
        "{} has changed since it was read: read it again",
        place.named.display()
    ))
}

fn fingerprint(stat: &Stat) -> impl PartialEq + use<> {
    (
        stat.st_dev,
        stat.st_ino,
        stat.st_size,
        stat.st_mtime,
        stat.st_mtime_nsec,
        stat.st_ctime,
        stat.st_ctime_nsec,
    )
}

/// New content beside its place; gone unless it is renamed.
struct DraftFile<'a> {
    directory: &'a OwnedFd,
    name: String,
    file: OwnedFd,
}

impl<'a> DraftFile<'a> {
    fn create(directory: &'a OwnedFd) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        loop {
            let name = format!(
                ".posse-{}-{}",
                std::process::id(),
                NEXT.fetch_add(1, Ordering::Relaxed)
            );
            match rustix::fs::openat(directory, &name, flags, Mode::from_raw_mode(0o666)) {
                Ok(file) => {
                    return Ok(Self {
                        directory,
                        name,
                        file,
                    });
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn fill(&self, content: &[u8], like: Option<&Stat>) -> io::Result<()> {
        if let Some(like) = like {
            // Nobody may read the new content who could not read the old; only root can give files away.
            let _ = rustix::fs::fchown(
                &self.file,
                Some(rustix::fs::Uid::from_raw(like.st_uid)),
                Some(rustix::fs::Gid::from_raw(like.st_gid)),
            );
            rustix::fs::fchmod(&self.file, Mode::from_raw_mode(like.st_mode & 0o7777))?;
        }
        let mut file = File::from(self.file.try_clone()?);
        file.write_all(content)?;
        file.sync_all()
    }

    fn rename(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(
            self.directory,
            &self.name,
            self.directory,
            name,
        )?)
    }

    fn rename_to_new(&self, name: &OsStr) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(self.directory, &self.name, self.directory, name, flags) {
            // Some file systems cannot; there the look just before must do.
            Err(Errno::INVAL | Errno::NOSYS) => self.rename(name),
            renamed => Ok(renamed?),
        }
    }
}

impl Drop for DraftFile<'_> {
    fn drop(&mut self) {
        // After the rename there is nothing of this name any more.
        let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}
