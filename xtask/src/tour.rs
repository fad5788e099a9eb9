//! A recording of README's tour: pasted into a real terminal, from the first to the last line.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// The widths at which it is recorded, in columns.
const WIDTHS: [u32; 2] = [120, 60];
/// Time that the tour may take.
const MOST: Duration = Duration::from_secs(120);

/// Pastes the tour into a shell in tmux at each width, and prints what the screen showed.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let built = super::cargo(root)
        .args(["build", "-q", "--profile", "ci", "-p", "posse-cli"])
        .status()?;
    ensure!(built.success(), "posse cannot be built");
    let readme = fs::read_to_string(root.join("README.md"))?;
    let tour = blocks(&readme).context("README.md has no tour")?;
    for width in WIDTHS {
        let place = std::env::temp_dir().join(format!("posse-tour-{}-{width}", std::process::id()));
        fs::create_dir_all(&place)?;
        let screen = record(root, &place, &tour, width);
        fs::remove_dir_all(&place)?;
        println!("== {width} columns\n{}", screen?.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the blocks between the marks of the tour.
pub(crate) fn blocks(readme: &str) -> Option<String> {
    let (_, after) = readme.split_once("<!-- tour: begin -->")?;
    let (tour, _) = after.split_once("<!-- tour: end -->")?;
    let blocks = tour.split("```sh\n").skip(1);
    blocks
        .map(|block| Some(block.split_once("```")?.0))
        .collect()
}

/// Returns everything that the terminal showed.
fn record(root: &Path, place: &Path, tour: &str, width: u32) -> Result<String> {
    let paste = place.join("paste");
    // Split, so that the line that is typed is not taken for what it prints.
    let end = "echo \"exit code $?; running: $(jobs -pr)\"; echo tour-''ended\n";
    fs::write(&paste, format!("{tour}{end}"))?;
    let tmux = |words: &[&str]| -> Result<String> {
        let output = Command::new("tmux")
            .args(["-L", &format!("posse-tour-{}", std::process::id())])
            .args(["-f", "/dev/null"])
            .args(words)
            .env("HOME", place)
            .env("POSSE_HOME", place.join("home"))
            .env("PS1", "$ ")
            // Written when the shell ends, while its home is being removed.
            .env("HISTFILE", "/dev/null")
            .env(
                "PATH",
                format!(
                    "{}:/usr/local/bin:/usr/bin:/bin",
                    root.join("target/ci").display()
                ),
            )
            .current_dir(place)
            .output()
            .context("tmux cannot be run")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let columns = width.to_string();
    tmux(&[
        "set-option",
        "-g",
        "history-limit",
        "50000",
        ";",
        "new-session",
        "-d",
        "-x",
        &columns,
        "-y",
        "50",
        "bash --norc --noprofile",
    ])?;
    let paste = paste.display().to_string();
    tmux(&["load-buffer", &paste, ";", "paste-buffer"])?;
    let begun = Instant::now();
    loop {
        let screen = tmux(&["capture-pane", "-p", "-J", "-S", "-"])?;
        if screen.lines().any(|line| line.trim() == "tour-ended") {
            tmux(&["kill-server"])?;
            return Ok(screen);
        }
        if begun.elapsed() > MOST {
            tmux(&["kill-server"])?;
            bail!("the tour did not end:\n{screen}");
        }
        sleep(Duration::from_millis(200));
    }
}
