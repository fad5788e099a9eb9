//! The transcripts in the manual: a script is run as a new user would, and what it says is written into its page.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use regex::Regex;

const BEGIN: &str = "<!-- story: begin -->\n";
const END: &str = "<!-- story: end -->";

/// Runs `docs/stories/teams.sh` in an empty directory, and writes what it says into `docs/teams.md`.
pub(crate) fn run(root: &Path) -> Result<ExitCode> {
    let built = super::cargo(root)
        .args(["build", "-q", "--profile", "ci", "-p", "posse-cli"])
        .status()?;
    ensure!(built.success(), "posse cannot be built");
    let place = std::env::temp_dir().join(format!("posse-story-{}", std::process::id()));
    fs::create_dir_all(place.join("sums"))?;
    let told = tell(root, &place);
    fs::remove_dir_all(&place)?;
    let page = root.join("docs/teams.md");
    let text = fs::read_to_string(&page)?;
    fs::write(&page, placed(&text, &steady(&told?)?)?)?;
    println!("docs/teams.md has the story as it went now");
    Ok(ExitCode::SUCCESS)
}

/// What the script says.
fn tell(root: &Path, place: &Path) -> Result<String> {
    let stories = root.join("docs/stories");
    let output = Command::new("bash")
        .args(["-u".as_ref(), stories.join("teams.sh").as_os_str()])
        .env_clear()
        .env(
            "PATH",
            format!(
                "{}:/usr/local/bin:/usr/bin:/bin",
                root.join("target/ci").display()
            ),
        )
        .env("HOME", place)
        .env("POSSE_HOME", place.join("home"))
        .env("STORY", stories.join("teams.toml"))
        .current_dir(place.join("sums"))
        .output()
        .context("bash cannot be run")?;
    let said = String::from_utf8(output.stdout)?;
    ensure!(
        output.status.success(),
        "the story broke off:\n{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(said)
}

/// What differs from run to run is always the same here, and as wide as it was: columns stay in line.
fn steady(said: &str) -> Result<String> {
    const ID: &str = "01a1e0c4-7f3e-7b21-9d05-3c6f1e8a2b47";
    let mut said = said.to_owned();
    for (pattern, with) in [
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
            ID,
        ),
        (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}", &ID[..18]),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-11-16T09:00:00Z"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d", "2026-11-16 09:00"),
        (r"\$0\.\d{4}", "$$0.0100"),
    ] {
        said = Regex::new(pattern)?.replace_all(&said, with).into_owned();
    }
    let number = Regex::new(r"(pid |kill -9 )(\d+)")?;
    let same = |found: &regex::Captures<'_>| {
        let digits = "4711471147"
            .get(..found[2].len())
            .unwrap_or("4711")
            .to_owned();
        format!("{}{digits}", &found[1])
    };
    let said = number.replace_all(&said, same);
    Ok(said
        .trim()
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect())
}

/// The page with the story between its marks.
fn placed(page: &str, story: &str) -> Result<String> {
    let (before, rest) = page
        .split_once(BEGIN)
        .context("the page does not say where the story begins")?;
    let (_, after) = rest
        .split_once(END)
        .context("the page does not say where the story ends")?;
    Ok(format!(
        "{before}{BEGIN}```console\n{story}```\n{END}{after}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_the_same_and_as_wide() {
        let said =
            "\n$ kill -9 18165  \nsession 01a1e127-27bc-7597-88e7-93e3cf677292\n$0.0391 pid 7 –\n";
        let story =
            "$ kill -9 47114\nsession 01a1e0c4-7f3e-7b21-9d05-3c6f1e8a2b47\n$0.0100 pid 4 –\n";
        assert_eq!(steady(said).unwrap(), story);
        assert_eq!(steady(story).unwrap(), story);
    }

    #[test]
    fn a_story_takes_the_place_of_the_one_before() {
        let page = format!("a\n{BEGIN}old\n{END}\nb");
        let new = format!("a\n{BEGIN}```console\n$ x\n```\n{END}\nb");
        assert_eq!(placed(&page, "$ x\n").unwrap(), new);
        assert_eq!(placed(&new, "$ x\n").unwrap(), new);
        assert!(placed("a", "b").is_err());
    }
}
