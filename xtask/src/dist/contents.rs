//! What a release has, in a folder as it is unpacked: `bin/` and `share/`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::crates::{self, Crate};
use super::done;

/// Completions: what the shell is called, and where its script belongs.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "bash-completion/completions/posse"),
    ("zsh", "zsh/site-functions/_posse"),
    ("fish", "fish/vendor_completions.d/posse.fish"),
];
/// Pages that every user should have. The others are in `posse help`.
const PAGES: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// A folder with what a release has.
pub(super) struct Contents {
    pub(super) folder: PathBuf,
}

impl Contents {
    /// Puts everything into a new folder. Manual pages and completions are made by posse itself.
    pub(super) fn gather(
        root: &Path,
        posse: &Path,
        crates: &[Crate],
        bill: &str,
        folder: &Path,
    ) -> Result<Self> {
        let share = folder.join("share");
        let place = |path: &str, content: &[u8]| -> Result<()> {
            let path = share.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&share))?;
            Ok(fs::write(path, content)?)
        };
        fs::create_dir_all(folder.join("bin"))?;
        let program = folder.join("bin/posse");
        fs::copy(posse, &program)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        for (shell, path) in SHELLS {
            let script = done(Command::new(&program).args(["completions", shell]))?;
            place(path, script.as_bytes())?;
        }
        let manual = share.join("man/man1");
        fs::create_dir_all(&manual)?;
        done(Command::new(&program).arg("man").arg(&manual))?;
        for page in PAGES {
            place(&format!("doc/posse/{page}"), &fs::read(root.join(page))?)?;
        }
        let licences = crates::licences(crates)?;
        place("doc/posse/LICENSES-OF-CRATES", licences.as_bytes())?;
        place("doc/posse/posse.cdx.json", bill.as_bytes())?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Removes the folder.
    pub(super) fn remove(self) -> Result<()> {
        Ok(fs::remove_dir_all(self.folder)?)
    }
}
