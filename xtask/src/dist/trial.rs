//! Trials of a release: it is installed as users do it, and used on a machine that has next to nothing.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use super::{Release, done};

/// The release of Debian with the oldest glibc that posse promises to run with.
const DEBIAN: &str = "bullseye";

/// Installs a release from its folder and from a server, and one that was changed, which must install nothing.
pub(super) fn installs(made: &Path, release: &Release, scratch: &Path) -> Result<()> {
    let script = made.join("install.sh");
    let install = |from: &str, prefix: &Path| {
        let mut sh = Command::new("sh");
        sh.arg(&script).arg("--to").arg(prefix).arg(from);
        sh
    };
    let server = Served::at(made)?;
    let folder = made.to_str().context("a path in UTF-8")?;
    for (from, prefix) in [
        (folder, "by-folder"),
        (server.address.as_str(), "by-server"),
    ] {
        // A prefix may have a space.
        let prefix = scratch.join("prefix of").join(prefix);
        done(&mut install(from, &prefix))?;
        let version = done(Command::new(prefix.join("bin/posse")).arg("--version"))?;
        ensure!(
            version.starts_with(&format!("posse {}", release.version)),
            "another posse was installed: {version}"
        );
        for file in ["man/man1/posse.1", "bash-completion/completions/posse"] {
            let file = prefix.join("share").join(file);
            ensure!(file.exists(), "{} was not installed", file.display());
        }
    }
    let changed = scratch.join("changed");
    fs::create_dir_all(&changed)?;
    done(
        Command::new("cp")
            .arg("-R")
            .arg(made.join("."))
            .arg(&changed),
    )?;
    let tarball = changed.join(format!("{}.tar.gz", release.name()));
    let mut bytes = fs::read(&tarball)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&tarball, bytes)?;
    let prefix = scratch.join("prefix of a changed one");
    let refused = install(changed.to_str().context("a path in UTF-8")?, &prefix).output()?;
    ensure!(
        !refused.status.success() && !prefix.exists(),
        "a changed tarball was installed"
    );
    Ok(())
}

/// A server of files on this machine, which ends with this.
struct Served {
    server: Child,
    address: String,
}

impl Served {
    fn at(folder: &Path) -> Result<Self> {
        let mut server = Command::new("python3")
            .args([
                "-u",
                "-m",
                "http.server",
                "--bind",
                "127.0.0.1",
                "0",
                "--directory",
            ])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut says = String::new();
        let output = server.stdout.take().context("its output is piped")?;
        BufReader::new(output).read_line(&mut says)?;
        let port = says.split(' ').skip_while(|word| *word != "port").nth(1);
        let address = port.map(|port| format!("http://127.0.0.1:{port}"));
        let address = address.with_context(|| format!("the server of files says: {says}"));
        match address {
            Ok(address) => Ok(Self { server, address }),
            Err(error) => {
                server.kill()?;
                Err(error)
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Installs what `cargo xtask dist` has made on a bare Debian 11, and runs README's tour there. Prints what the shell
/// says.
pub(crate) fn on_bare_root(root: &Path) -> Result<ExitCode> {
    let made = root.join("target/dist");
    ensure!(
        made.join("SHA256SUMS").exists(),
        "there is no release: run cargo xtask dist"
    );
    let bare = bare_root(root)?;
    let readme = fs::read_to_string(root.join("README.md"))?;
    let tour = crate::tour::blocks(&readme).context("README.md has no tour")?;
    let script = format!(
        "cat /etc/debian_version; ldd --version | head -n 1\n\
         sh /release/install.sh\n\
         ldd \"$(command -v posse)\"\n\
         time for _ in $(seq 100); do posse --version; done | tail -n 1\n\
         posse doctor || true\n\
         cd /tmp\n{tour}"
    );
    let status = Command::new("bwrap")
        .arg("--bind")
        .args([&bare, Path::new("/")])
        .arg("--ro-bind")
        .args([&made, Path::new("/release")])
        .args([
            "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/root",
        ])
        .args(["--unshare-pid", "--die-with-parent", "--clearenv"])
        .args([
            "--setenv",
            "PATH",
            "/root/.local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ])
        .args(["--setenv", "HOME", "/root", "--chdir", "/root"])
        .args(["bash", "-euc", &script])
        .status()
        .context("bubblewrap cannot be started: run .ci/setup")?;
    ensure!(status.success(), "the tour broke off: {status}");
    Ok(ExitCode::SUCCESS)
}

/// Returns a folder with a Debian that has nothing but git, made if it is not there.
fn bare_root(root: &Path) -> Result<PathBuf> {
    let bare = root.join("target/bare-root");
    let note = bare.join("etc/debian_version");
    if note.exists() {
        return Ok(bare);
    }
    println!("debootstrap makes a bare {DEBIAN} in {}", bare.display());
    done(
        Command::new("debootstrap")
            .args(["--variant=minbase", "--include=git,ca-certificates", DEBIAN])
            .arg(&bare)
            .arg(mirror()?),
    )?;
    Ok(bare)
}

/// Returns where this machine has its packages from.
fn mirror() -> Result<String> {
    let mut lists = vec![PathBuf::from("/etc/apt/sources.list")];
    for entry in fs::read_dir("/etc/apt/sources.list.d")? {
        lists.push(entry?.path());
    }
    let texts = lists
        .iter()
        .filter_map(|list| fs::read_to_string(list).ok());
    let words: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.starts_with("URIs:") || line.starts_with("deb "))
        .flat_map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let mirror = words.into_iter().find(|word| word.starts_with("http"));
    mirror.context("the sources of apt name no mirror for debootstrap")
}
