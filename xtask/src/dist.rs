//! Releases: a tarball, a Debian package, the script that installs them, checksums and a bill of materials. The same
//! commit gives the same bytes.

mod bill;
mod build;
mod contents;
mod crates;
mod pack;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use contents::Contents;

pub(crate) use trial::on_bare_root;

/// The size that posse may have.
const MOST_MEGABYTES: f64 = 30.0;

/// What a release is made from.
struct Release {
    /// Its number.
    version: String,
    /// Seconds since 1970 at which its commit was made: the time of every file in it.
    time: u64,
    /// The processor it is for, as `uname -m` says it.
    machine: &'static str,
}

/// Makes a release in `target/dist`, and prints what is in it.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let changed = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
    ensure!(
        changed.is_empty(),
        "a release is made from a commit, and these files differ from it:\n{changed}"
    );
    let release = Release::of(root)?;
    let posse = build::posse(root, &release)?;
    let said = done(Command::new(&posse).arg("--version"))?;
    let commit = git(root, &["log", "-1", "--format=%H %cs"])?;
    let (hash, date) = commit.split_once(' ').context("git names a commit")?;
    let version = format!("posse {} ({} {date})", release.version, &hash[..9]);
    ensure!(said.trim() == version, "it says {said}, and is {version}");
    let megabytes = size(&posse)? / 1e6;
    ensure!(
        megabytes <= MOST_MEGABYTES,
        "posse has {megabytes:.1} MB, and may have {MOST_MEGABYTES}"
    );
    let made = make(root, &release, &posse, &root.join("target/dist"))?;
    println!(
        "{version}: {megabytes:.1} MB, for glibc {} or later; it needs {}",
        build::oldest_glibc(&posse)?,
        build::libraries(&posse)?.join(", "),
    );
    print(&made)?;
    Ok(ExitCode::SUCCESS)
}

/// Packs the posse of the tests twice, which must give the same bytes, and installs it from a directory and from a
/// server. What it packs is not for users.
pub(crate) fn quick(root: &Path) -> Result<ExitCode> {
    let release = Release::of(root)?;
    let built = super::cargo(root)
        .args(["build", "-q", "--profile", "ci", "-p", "posse-cli"])
        .status()?;
    ensure!(built.success(), "posse cannot be built");
    let scratch = root.join("target/dist-quick");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    let posse = scratch.join("posse");
    fs::copy(root.join("target/ci/posse"), &posse)?;
    done(Command::new("strip").arg(&posse))?;
    let made = make(root, &release, &posse, &scratch.join("one"))?;
    let again = make(root, &release, &posse, &scratch.join("two"))?;
    for (one, two) in made.iter().zip(&again) {
        ensure!(
            fs::read(one)? == fs::read(two)?,
            "{} differs when it is packed again",
            one.display()
        );
    }
    trial::installs(&scratch.join("one"), &release, &scratch)?;
    print(&made)?;
    println!("packed twice with the same bytes; installed from a directory and from a server");
    Ok(ExitCode::SUCCESS)
}

impl Release {
    fn of(root: &Path) -> Result<Self> {
        let manifest: toml::Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
        let version = manifest["workspace"]["package"]["version"].as_str();
        let time = git(root, &["log", "-1", "--format=%ct"])?;
        let machine = match std::env::consts::ARCH {
            "x86_64" => "x86_64",
            "aarch64" => "aarch64",
            other => bail!("releases are made on x86_64 and aarch64, not on {other}"),
        };
        Ok(Self {
            version: version.context("the workspace has no version")?.to_owned(),
            time: time.parse()?,
            machine,
        })
    }

    /// Returns the name of the tarball and of the folder in it.
    fn name(&self) -> String {
        format!("posse-{}-{}-linux", self.version, self.machine)
    }
}

/// Makes all files of a release in a folder of their own.
fn make(root: &Path, release: &Release, posse: &Path, to: &Path) -> Result<Vec<PathBuf>> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    let crates = crates::of_posse(root)?;
    let bill = bill::of(release, &crates);
    let contents = Contents::gather(root, posse, &crates, &bill, &to.join("contents"))?;
    let mut made = vec![
        pack::tarball(release, &contents, to)?,
        pack::debian(release, &contents, to)?,
        to.join("posse.cdx.json"),
        to.join("install.sh"),
    ];
    fs::write(&made[2], &bill)?;
    fs::copy(root.join("packaging/install.sh"), &made[3])?;
    made.push(pack::checksums(&made, to)?);
    contents.remove()?;
    Ok(made)
}

fn print(made: &[PathBuf]) -> Result<()> {
    for file in made {
        println!("{:>12} {}", size(file)? as u64, file.display());
    }
    let sums = made.last().context("a release has checksums")?;
    print!("{}", fs::read_to_string(sums)?);
    Ok(())
}

fn size(file: &Path) -> Result<f64> {
    let facts = fs::metadata(file).with_context(|| format!("{} is not there", file.display()))?;
    Ok(facts.len() as f64)
}

/// Runs a program to its end. Returns what it prints.
fn done(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("{command:?} cannot be started"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} failed ({}):\n{}{errors}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
    );
    Ok(String::from_utf8(output.stdout)?)
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    let said = done(Command::new("git").current_dir(root).args(words))?;
    Ok(said.trim().to_owned())
}
