//! The files that users download. Packed twice, they have the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::contents::Contents;
use super::{Release, done};

/// Packs a tarball. Its only folder is called as it is.
pub(super) fn tarball(release: &Release, contents: &Contents, to: &Path) -> Result<PathBuf> {
    let name = release.name();
    let tarball = to.join(format!("{name}.tar.gz"));
    done(
        Command::new("tar")
            .args([
                "--create",
                "--use-compress-program=gzip -9n",
                "--format=gnu",
            ])
            .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .arg("--mode=u=rwX,go=rX")
            .arg(format!("--mtime=@{}", release.time))
            .arg(format!("--transform=s,^\\.,{name},"))
            .arg("--file")
            .arg(&tarball)
            .arg("--directory")
            .arg(&contents.folder)
            .arg("."),
    )?;
    Ok(tarball)
}

/// Packs a Debian package.
pub(super) fn debian(release: &Release, contents: &Contents, to: &Path) -> Result<PathBuf> {
    let architecture = match release.machine {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let tree = to.join("debian");
    fs::create_dir_all(tree.join("DEBIAN"))?;
    done(
        Command::new("cp")
            .arg("-R")
            .arg(&contents.folder)
            .arg(tree.join("usr")),
    )?;
    let share = tree.join("usr/share");
    // Debian's zsh looks there, and its readers of manuals expect them packed.
    fs::rename(
        share.join("zsh/site-functions"),
        share.join("zsh/vendor-completions"),
    )?;
    for page in fs::read_dir(share.join("man/man1"))? {
        done(Command::new("gzip").args(["-9n"]).arg(page?.path()))?;
    }
    fs::rename(
        share.join("doc/posse/LICENSES-OF-CRATES"),
        share.join("doc/posse/copyright"),
    )?;
    let licences = fs::read_to_string(share.join("doc/posse/copyright"))?;
    let own = "posse is licensed under MIT or Apache-2.0, at your option: see LICENSE-MIT and LICENSE-APACHE.\n\n";
    fs::write(
        share.join("doc/posse/copyright"),
        format!("{own}{licences}"),
    )?;
    let used = done(
        Command::new("du")
            .args(["-sk", "--apparent-size"])
            .arg(tree.join("usr")),
    )?;
    let used = used.split_whitespace().next().context("du prints a size")?;
    fs::write(
        tree.join("DEBIAN/control"),
        format!(
            "Package: posse\n\
             Version: {}\n\
             Architecture: {architecture}\n\
             Maintainer: The posse authors <posse@localhost>\n\
             Section: devel\n\
             Priority: optional\n\
             Installed-Size: {used}\n\
             Depends: libc6 (>= 2.31), ca-certificates\n\
             Recommends: git\n\
             Suggests: tmux\n\
             Description: teams of coding agents\n \
             Give it a goal: its main agent works on it with tools, starts other agents, and forms teams that share a\n \
             task list. Messages, work and money are not lost: kill every process at any moment, and the next command\n \
             continues where they were.\n",
            release.version
        ),
    )?;
    let package = to.join(format!("posse_{}_{architecture}.deb", release.version));
    done(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"])
            .env("SOURCE_DATE_EPOCH", release.time.to_string())
            .arg(&tree)
            .arg(&package),
    )?;
    fs::remove_dir_all(tree)?;
    Ok(package)
}

/// Writes the checksums of files beside them.
pub(super) fn checksums(files: &[PathBuf], to: &Path) -> Result<PathBuf> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = done(Command::new("sha256sum").args(names).current_dir(to))?;
    let path = to.join("SHA256SUMS");
    fs::write(&path, sums)?;
    Ok(path)
}
