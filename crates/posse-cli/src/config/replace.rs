//! Replaces files as a whole: after a crash a file is the old or the new one.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Who may read and write the new file.
pub(crate) enum FileMode {
    /// Its owner only.
    Private,
    /// As the user's mask says.
    Usual,
    /// The same as another file.
    Like(Permissions),
}

/// How sure it is that the new content is there after a loss of power.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Once it is replaced.
    Synced,
    /// At some time, as the system writes it.
    Unsynced,
}

/// Replaces a file, or makes it. A symbolic link is replaced and not followed.
pub(crate) fn replace(
    path: &Path,
    text: &str,
    mode: FileMode,
    durability: Durability,
) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    // A dead process of the same number may have left it, with another mode.
    let _ = fs::remove_file(&new);
    let written = write(&new, text, mode, durability).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // It may not be there.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write(new: &Path, text: &str, mode: FileMode, durability: Durability) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = match mode {
        FileMode::Private => options.mode(0o600).open(new)?,
        FileMode::Usual => options.open(new)?,
        FileMode::Like(permissions) => {
            let file = options.open(new)?;
            file.set_permissions(permissions)?;
            file
        }
    };
    file.write_all(text.as_bytes())?;
    match durability {
        Durability::Synced => file.sync_all(),
        Durability::Unsynced => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::config::settings::tests::Disk;

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it() {
        let disk = Disk::new();
        let (file, link) = (disk.path("home/a.json"), disk.path("home/link"));
        for (mode, expected) in [
            (FileMode::Private, 0o600),
            (FileMode::Like(Permissions::from_mode(0o640)), 0o640),
        ] {
            replace(&file, "text", mode, Durability::Synced).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "text");
            assert_eq!(mode_of(&file), expected);
        }
        let left = format!("home/a.json.{}.new", std::process::id());
        fs::write(disk.path(&left), "of a dead process").unwrap();
        fs::set_permissions(disk.path(&left), Permissions::from_mode(0o444)).unwrap();
        replace(&file, "other", FileMode::Private, Durability::Unsynced).unwrap();
        assert_eq!(
            (fs::read_to_string(&file).unwrap(), mode_of(&file)),
            ("other".into(), 0o600)
        );
        symlink(&file, &link).unwrap();
        replace(&link, "new", FileMode::Usual, Durability::Unsynced).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(fs::read_to_string(&file).unwrap(), "other");
        let directory = disk.path("home/directory");
        fs::create_dir(&directory).unwrap();
        replace(&directory, "x", FileMode::Usual, Durability::Unsynced).unwrap_err();
        let names = fs::read_dir(disk.path("home")).unwrap();
        let mut names: Vec<_> = names.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a.json", "directory", "link"]);
    }
}
