//! Where sockets are: in a directory of the store, named by their process.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use uuid::Uuid;

/// How the names of sockets end.
const SUFFIX: &str = ".sock";

/// Listens at a new socket of this process, which only this user can reach.
pub(super) fn bind(directory: &Path) -> io::Result<(PathBuf, UnixListener)> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    sweep(directory);
    let name = format!("{}-{}{SUFFIX}", std::process::id(), Uuid::now_v7().simple());
    let (new, path) = (format!("{name}.new"), directory.join(&name));
    let handle = File::open(directory)?;
    let listener = UnixListener::bind(near(&handle, &new))?;
    fs::set_permissions(directory.join(&new), Permissions::from_mode(0o600))?;
    // Named only now: who finds it can connect, and if nobody listens its process is dead.
    fs::rename(directory.join(&new), &path)?;
    Ok((path, listener))
}

/// Connects to the sockets of a process, one after another.
pub(crate) async fn connect(directory: &Path, pid: u32) -> Vec<UnixStream> {
    let mut streams = Vec::new();
    let Ok(handle) = File::open(directory) else {
        return streams;
    };
    for name in names(directory).filter(|name| owner(name) == Some(pid)) {
        if let Ok(stream) = UnixStream::connect(near(&handle, &name)).await {
            streams.push(stream);
        }
    }
    streams
}

/// Removes sockets whose processes are dead.
fn sweep(directory: &Path) {
    let is_gone = |pid: u32| !Path::new(&format!("/proc/{pid}")).exists();
    for name in names(directory).filter(|name| owner(name).is_some_and(is_gone)) {
        let path = directory.join(&name);
        // A process of a container may have another number there than here.
        let Ok(handle) = File::open(directory) else {
            return;
        };
        let tried = std::os::unix::net::UnixStream::connect(near(&handle, &name));
        if tried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = fs::remove_file(path);
        }
    }
}

fn names(directory: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(SUFFIX))
}

fn owner(name: &str) -> Option<u32> {
    name.split_once('-')?.0.parse().ok()
}

/// Returns a short path of a file in an open directory: paths of sockets have at most 108 bytes.
fn near(directory: &File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))
}
