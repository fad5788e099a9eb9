//! Makes the mounts of a plan, in a mount namespace of this process's own.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount,
    mount_bind, mount_change, mount_remount, move_mount, open_tree,
};

use crate::error::{LaunchError, Step as _};
use crate::plan::{Mount, MountKind, Plan};

/// Devices that a command has.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links in `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
    ("pts/ptmx", "/dev/ptmx"),
];
/// Where covers are made.
const COVERS: &str = "/dev/.covers";
/// Directories of `/proc` through which the kernel is told what to do.
const READ_ONLY: [&str; 4] = ["/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"];
/// Files of `/proc` that do more harm than good.
const COVERED: [&str; 7] = [
    "/proc/sysrq-trigger",
    "/proc/kcore",
    "/proc/keys",
    "/proc/key-users",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/proc/latency_stats",
];
/// Directories of the kernel's that tell about the machine.
const FIRMWARE: &str = "/sys/firmware";

/// Makes everything but `/proc`. Afterwards only what the plan says is writable.
pub(crate) fn make(plan: &Plan) -> Result<(), LaunchError> {
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).step("make mounts private")?;
    // Taken before anything covers them.
    let mut handles = BTreeMap::new();
    for mount in &plan.mounts {
        if let Some(handle) = handle_of(mount)? {
            handles.insert(mount.path.as_path(), handle);
        }
    }
    let devices: Vec<_> = DEVICES
        .into_iter()
        .filter_map(|name| Some((name, clone(&Path::new("/dev").join(name)).ok()?)))
        .collect();
    make_devices(devices).step("make /dev")?;
    for (index, mount) in plan.mounts.iter().enumerate() {
        place(plan, index, handles.remove(mount.path.as_path())).step_at("mount", &mount.path)?;
    }
    if Path::new(FIRMWARE).exists() {
        let cover = make_cover(FIRMWARE_COVER, 0o555, true).step("cover /sys/firmware")?;
        attach(&cover, Path::new(FIRMWARE)).step("cover /sys/firmware")?;
    }
    seal(plan)
}

/// The name of the cover of `/sys/firmware`.
const FIRMWARE_COVER: &str = "firmware";

/// Returns what is to be mounted, for those that show something. None if it is gone.
fn handle_of(mount: &Mount) -> Result<Option<OwnedFd>, LaunchError> {
    match mount.kind {
        MountKind::Hide | MountKind::Empty => return Ok(None),
        // Not every file system can be copied so; then it can only be read.
        MountKind::Copy => return Ok(copy_of(mount).ok()),
        MountKind::Write | MountKind::Pin | MountKind::Keep | MountKind::Show => {}
    }
    let source = mount.source.as_deref().unwrap_or(&mount.path);
    match clone_plain(source) {
        Ok(handle) => Ok(Some(handle)),
        // Nothing is left that could be written or seen.
        Err(Errno::NOENT) if mount.kind != MountKind::Write => Ok(None),
        Err(error) => Err(error).step_at("take", source),
    }
}

/// The directories of a copy: what was written, and what the kernel needs beside it.
const WRITTEN: &str = "upper";
const NEEDED: &str = "work";

/// Returns a directory in which what is written goes elsewhere.
fn copy_of(mount: &Mount) -> std::io::Result<OwnedFd> {
    let kept = mount.source.as_deref().ok_or(Errno::INVAL)?;
    // A colon would begin a further directory, so it is written behind a backslash.
    let lower = mount.path.as_os_str().as_encoded_bytes();
    let lower = lower.iter().flat_map(|byte| match byte {
        b':' | b'\\' => vec![b'\\', *byte],
        byte => vec![*byte],
    });
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, "lowerdir", lower.collect::<Vec<u8>>())?;
    for (option, name) in [("upperdir", WRITTEN), ("workdir", NEEDED)] {
        let directory = kept.join(name);
        fs::create_dir_all(&directory)?;
        fsconfig_set_string(&context, option, directory)?;
    }
    fsconfig_set_flag(&context, "userxattr")?;
    fsconfig_create(&context)?;
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    Ok(fsmount(&context, flags, attributes)?)
}

/// Like [`clone`], and fails if there is a link on the way: plans have none, so that one has
/// appeared since.
fn clone_plain(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(opened, "", flags)
}

fn clone(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    open_tree(CWD, path, flags)
}

fn attach(handle: &OwnedFd, path: &Path) -> rustix::io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(handle, "", CWD, path, flags)
}

/// Replaces `/dev` by one with a few devices, terminals and memory of its own.
fn make_devices(devices: Vec<(&str, OwnedFd)>) -> std::io::Result<()> {
    let quiet = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("tmpfs", "/dev", "tmpfs", quiet, c"mode=755,size=256k")?;
    for (name, handle) in devices {
        let path = Path::new("/dev").join(name);
        fs::File::create(&path)?;
        attach(&handle, &path)?;
    }
    for (target, link) in LINKS {
        symlink(target, link)?;
    }
    fs::create_dir("/dev/pts")?;
    fs::create_dir("/dev/shm")?;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    mount("devpts", "/dev/pts", "devpts", quiet, options)?;
    let memory = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", "/dev/shm", "tmpfs", memory, c"mode=1777,size=1g")?;
    fs::DirBuilder::new().mode(0o700).create(COVERS)
}

/// Returns a new cover.
fn make_cover(name: &str, mode: u32, directory: bool) -> std::io::Result<OwnedFd> {
    let path = Path::new(COVERS).join(name);
    if !path.exists() {
        if directory {
            fs::create_dir(&path)?;
        } else {
            fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    }
    Ok(clone(&path)?)
}

/// Makes one mount.
fn place(plan: &Plan, index: usize, handle: Option<OwnedFd>) -> std::io::Result<()> {
    let mount = &plan.mounts[index];
    let covers = match mount.kind {
        MountKind::Hide | MountKind::Empty => true,
        MountKind::Write | MountKind::Pin | MountKind::Keep | MountKind::Show | MountKind::Copy => {
            false
        }
    };
    let handle = match handle {
        Some(handle) => handle,
        None if covers => cover_of(plan, index)?,
        None => return Ok(()),
    };
    match attach(&handle, &mount.path) {
        // It has been removed, or the user has no way to it.
        Err(Errno::NOENT | Errno::ACCESS) if covers => Ok(()),
        placed => Ok(placed?),
    }
}

/// Returns the cover of what is hidden, with places for what is shown beneath it.
fn cover_of(plan: &Plan, index: usize) -> std::io::Result<OwnedFd> {
    let mount = &plan.mounts[index];
    let beneath: Vec<_> = plan.mounts[index + 1..]
        .iter()
        .take_while(|it| it.path.starts_with(&mount.path))
        .collect();
    if beneath.is_empty() && mount.kind == MountKind::Hide {
        return match mount.directory {
            true => make_cover("directory", 0, true),
            false => make_cover("file", 0, false),
        };
    }
    let name = index.to_string();
    let cover = make_cover(&name, 0o555, true)?;
    for shown in beneath {
        let Ok(inner) = shown.path.strip_prefix(&mount.path) else {
            continue;
        };
        let path = Path::new(COVERS).join(&name).join(inner);
        make_place(&path, shown.directory)?;
    }
    Ok(cover)
}

/// Makes something to mount on.
fn make_place(path: &Path, directory: bool) -> std::io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if directory {
        return fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::File::create(path).map(drop)
}

/// Makes places in the temporary directory for what lies beneath the one that it replaces.
pub(crate) fn prepare_temporary(plan: &Plan) -> Result<(), LaunchError> {
    let is_replaced = |mount: &&Mount| mount.kind == MountKind::Write && mount.source.is_some();
    let replaced = plan.mounts.iter().find(is_replaced);
    let Some((replaced, source)) = replaced.and_then(|it| Some((it, it.source.as_ref()?))) else {
        return Ok(());
    };
    for mount in &plan.mounts {
        let Ok(inner) = mount.path.strip_prefix(&replaced.path) else {
            continue;
        };
        let first = plan.mounts.iter().filter(|it| it.path != replaced.path);
        let mut above = first.filter(|it| mount.path != it.path);
        // What lies beneath another mount is there already.
        if inner.as_os_str().is_empty() || above.any(|it| mount.path.starts_with(&it.path)) {
            continue;
        }
        make_place(&source.join(inner), mount.directory).step_at("make", &mount.path)?;
    }
    Ok(())
}

/// Makes everything read-only that the plan does not say is writable, and takes the effect of
/// set-uid files away everywhere.
fn seal(plan: &Plan) -> Result<(), LaunchError> {
    let table = fs::read_to_string(MOUNTS).step("list mounts")?;
    for line in table.lines() {
        let Some(mounted) = Mounted::parse(line) else {
            return Err(LaunchError::new("list mounts", line));
        };
        if !mounted.is_visible() {
            continue;
        }
        let own = ["/dev/pts", "/dev/shm"]
            .iter()
            .any(|it| mounted.path == Path::new(it));
        let mut flags = mounted.flags | MountFlags::BIND | MountFlags::NOSUID;
        if !own && !plan.is_writable(&mounted.path) {
            flags |= MountFlags::RDONLY;
        }
        if flags != mounted.flags | MountFlags::BIND {
            let sealed = mount_remount(&mounted.path, flags, c"");
            // A mount goes with the file that it is on, when somebody outside removes that.
            if sealed.is_ok() || mounted.is_there().step("list mounts")? {
                sealed.step_at("seal", &mounted.path)?;
            }
        }
    }
    Ok(())
}

/// The table of mounts.
const MOUNTS: &str = "/proc/self/mountinfo";

/// A line of the table of mounts.
struct Mounted {
    id: u64,
    path: PathBuf,
    flags: MountFlags,
}

impl Mounted {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let id = fields.next()?.parse().ok()?;
        let path = unescaped(fields.nth(3)?);
        let mut flags = MountFlags::empty();
        let mut has_access_time = false;
        for option in fields.next()?.split(',') {
            let flag = match option {
                "ro" => MountFlags::RDONLY,
                "nosuid" => MountFlags::NOSUID,
                "nodev" => MountFlags::NODEV,
                "noexec" => MountFlags::NOEXEC,
                "noatime" => MountFlags::NOATIME,
                "relatime" => MountFlags::RELATIME,
                "nodiratime" => MountFlags::NODIRATIME,
                "nosymfollow" => MountFlags::NOSYMFOLLOW,
                _ => continue,
            };
            has_access_time |= matches!(option, "noatime" | "relatime");
            flags |= flag;
        }
        if !has_access_time {
            flags |= MountFlags::STRICTATIME;
        }
        Some(Self { id, path, flags })
    }

    /// Returns true if it is still there, whatever its path is now.
    fn is_there(&self) -> std::io::Result<bool> {
        let table = fs::read_to_string(MOUNTS)?;
        let mut mounts = table.lines().filter_map(Self::parse);
        Ok(mounts.any(|it| it.id == self.id))
    }

    /// Returns true if its path leads to it and not to another that covers it.
    fn is_visible(&self) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = statx(CWD, &self.path, flags, StatxFlags::MNT_ID);
        // What cannot be looked at is taken for visible, so that sealing it must succeed; but not
        // what is gone.
        match found {
            Ok(found) => found.stx_mnt_id == self.id,
            Err(error) => !matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS),
        }
    }
}

/// Returns a path of the table of mounts, in which some characters are written as `\040`.
fn unescaped(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    let text = text.as_bytes();
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, others)) = rest.split_first() {
        let octal = others.get(..3).filter(|_| *first == b'\\');
        let code = octal
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                plain.push(code);
                rest = &others[3..];
            }
            None => {
                plain.push(*first);
                rest = others;
            }
        }
    }
    std::ffi::OsString::from_vec(plain).into()
}

/// Mounts a new `/proc`, through which nothing can be changed.
pub(crate) fn make_proc() -> Result<(), LaunchError> {
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", quiet, c"").step("mount /proc")?;
    for path in READ_ONLY
        .into_iter()
        .filter(|path| Path::new(path).exists())
    {
        mount_bind(path, path).step_at("keep", Path::new(path))?;
        let flags = quiet | MountFlags::BIND | MountFlags::RDONLY | MountFlags::RELATIME;
        mount_remount(path, flags, c"").step_at("keep", Path::new(path))?;
    }
    for path in COVERED.into_iter().filter(|path| Path::new(path).exists()) {
        mount_bind("/dev/null", path).step_at("cover", Path::new(path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mounts_is_read() {
        let line =
            r"42 27 254:0 /a /run/my\040dir\134x ro,nosuid,relatime shared:1 - ext4 /dev/vda rw";
        let mounted = Mounted::parse(line).unwrap();
        assert_eq!(mounted.id, 42);
        assert_eq!(mounted.path, Path::new(r"/run/my dir\x"));
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::RELATIME;
        assert_eq!(mounted.flags, flags);
        let line = "22 27 0:21 / /proc rw - proc proc rw";
        let mounted = Mounted::parse(line).unwrap();
        assert_eq!(mounted.flags, MountFlags::STRICTATIME);
        assert!(Mounted::parse("nonsense").is_none());
    }
}
