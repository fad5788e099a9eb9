//! The program that users install, linked by zig for an old glibc.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Release, done};

/// What links for an older glibc than this machine's.
const TOOLS: [&str; 2] = ["ziglang==0.17.0", "cargo-zigbuild==0.24.0"];
/// The glibc of Debian 11.
const GLIBC: &str = "2.31";

/// Builds posse. Returns where it lies.
pub(super) fn posse(root: &Path, release: &Release) -> Result<PathBuf> {
    let tools = tools(root)?;
    let target = format!("{}-unknown-linux-gnu", release.machine);
    let build = root.join("target/dist-build");
    let path = std::env::var("PATH")?;
    let home = std::env::var("HOME").context("HOME is not set")?;
    let cargo_home = std::env::var("CARGO_HOME").unwrap_or(format!("{home}/.cargo"));
    // Where it is built must not be in its bytes.
    let folders = [
        (cargo_home.as_str(), "/cargo"),
        (root.to_str().context("a path in UTF-8")?, "/posse"),
    ];
    let rust = folders.map(|(from, to)| format!("--remap-path-prefix={from}={to}"));
    let c = folders.map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    let built = crate::cargo(root)
        .args([
            "zigbuild",
            "--locked",
            "--profile",
            "dist",
            "-p",
            "posse-cli",
        ])
        .args(["--target", &format!("{target}.{GLIBC}")])
        .env("PATH", format!("{}:{path}", tools.join("bin").display()))
        .env("CARGO_TARGET_DIR", &build)
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
        .env("CFLAGS", c.join(" "))
        .env("SOURCE_DATE_EPOCH", release.time.to_string())
        .status()?;
    ensure!(built.success(), "posse cannot be built");
    Ok(build.join(target).join("dist/posse"))
}

/// Installs what links. Returns its folder.
fn tools(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/dist-tools");
    let note = folder.join("installed");
    if std::fs::read_to_string(&note).is_ok_and(|installed| installed == TOOLS.join(" ")) {
        return Ok(folder);
    }
    done(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    )?;
    done(
        Command::new(folder.join("bin/pip"))
            .args(["install", "-q"])
            .args(TOOLS),
    )?;
    std::fs::write(&note, TOOLS.join(" "))?;
    Ok(folder)
}

/// Returns the oldest glibc that has all symbols that it wants.
pub(super) fn oldest_glibc(posse: &Path) -> Result<String> {
    let symbols = done(Command::new("objdump").arg("-T").arg(posse))?;
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit())?;
        let parts = rest[..end].split('.').map(str::parse::<u32>);
        parts.collect::<Result<Vec<_>, _>>().ok()
    });
    let newest = versions.max().context("it is linked with no glibc")?;
    Ok(newest
        .iter()
        .map(u32::to_string)
        .collect::<Vec<_>>()
        .join("."))
}

/// Returns the libraries that it is linked with.
pub(super) fn libraries(posse: &Path) -> Result<Vec<String>> {
    let header = done(Command::new("objdump").arg("-p").arg(posse))?;
    let needed = header
        .lines()
        .filter_map(|line| line.trim().strip_prefix("NEEDED"));
    Ok(needed.map(|library| library.trim().to_owned()).collect())
}
