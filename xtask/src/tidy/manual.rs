//! Commands of the pages: each is run by a test, or says why not.

mod fence;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use self::fence::{Block, blocks_of};
use super::read;

/// Maximum number of blocks that no test runs.
const MOST_NOT_RUN: usize = 10;
/// Languages of commands.
const SHELLS: [&str; 9] = [
    "sh",
    "bash",
    "zsh",
    "fish",
    "shell",
    "console",
    "shell-session",
    "shellsession",
    "terminal",
];
/// Openings of blocks that tests can read.
const READABLE: [&str; 3] = ["```sh", "```bash", "```console"];
const RUN: &str = "<!-- run: ";
const NOT_RUN: &str = "<!-- not run: ";
/// Parts of a page that a test runs as a whole: the page, the part, and the opening of its blocks.
const PARTS: [(&str, &str, &str); 2] = [
    ("README.md", "tour", "```sh"),
    ("docs/teams.md", "story", "```console"),
];

/// A block of commands that no test runs.
#[derive(Debug, PartialEq, Eq)]
struct NotRun {
    place: String,
    reason: String,
}

/// What became of a block of commands.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Run,
    NotRun(String),
    /// What is wrong with it.
    Fault(String),
}

/// Returns how many blocks no test runs, and which.
pub(super) fn notes(root: &Path) -> Result<Vec<String>> {
    let (not_run, _) = blocks(root)?;
    let count = format!(
        "blocks of commands not run: {} of at most {MOST_NOT_RUN}",
        not_run.len()
    );
    let each = not_run
        .iter()
        .map(|block| format!("  {}: {}", block.place, block.reason));
    Ok([count].into_iter().chain(each).collect())
}

/// Returns blocks without a mark, and too many that are not run.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let (not_run, mut faults) = blocks(root)?;
    if not_run.len() > MOST_NOT_RUN {
        let count = not_run.len();
        faults.push(format!(
            "{count} blocks of commands are not run by a test, at most {MOST_NOT_RUN}"
        ));
    }
    Ok(faults)
}

/// Returns the blocks that are not run, and what is wrong with others.
fn blocks(root: &Path) -> Result<(Vec<NotRun>, Vec<String>)> {
    let (mut not_run, mut faults) = (Vec::new(), Vec::new());
    for path in pages(root)? {
        let name = path.strip_prefix(root).unwrap_or(&path);
        let name = name.display().to_string();
        for (line, fate) in fates(&name, &read(&path)?) {
            let place = format!("{name}:{line}");
            match fate {
                Fate::Run => {}
                Fate::NotRun(reason) => not_run.push(NotRun { place, reason }),
                Fate::Fault(why) => faults.push(format!("{place}: {why}")),
            }
        }
    }
    Ok((not_run, faults))
}

/// Returns what becomes of each block of commands of a page, with its line.
fn fates(page: &str, text: &str) -> Vec<(usize, Fate)> {
    let part = PARTS.iter().find(|(of, ..)| *of == page);
    let within = |block: &Block<'_>| {
        part.filter(|(_, name, _)| {
            let begin = text.find(&format!("<!-- {name}: begin -->"));
            let end = text.find(&format!("<!-- {name}: end -->"));
            begin.is_some_and(|begin| begin < block.at) && end.is_some_and(|end| block.at < end)
        })
    };
    let commands = blocks_of(text).into_iter();
    let commands = commands.filter(|block| SHELLS.contains(&block.language.as_str()));
    commands
        .map(|block| {
            let fate = match within(&block) {
                Some((_, _, opening)) if block.opening == *opening => Fate::Run,
                Some((_, name, opening)) => Fate::Fault(format!(
                    "the {name} is run from blocks that begin with {opening}"
                )),
                None => marked(&block),
            };
            (block.line, fate)
        })
        .collect()
}

/// Returns what becomes of a block by the mark before it.
fn marked(block: &Block<'_>) -> Fate {
    let inside = |mark: &str| block.before.strip_prefix(mark)?.strip_suffix(" -->");
    if let Some(reason) = inside(NOT_RUN) {
        return Fate::NotRun(reason.to_owned());
    }
    match inside(RUN) {
        Some(_) if READABLE.contains(&block.opening) => Fate::Run,
        Some(_) => Fate::Fault(format!("a test reads only {}", READABLE.join(", "))),
        None => Fate::Fault(format!(
            "a block of commands without `{RUN}NAME -->` or `{NOT_RUN}… -->` on the line before it"
        )),
    }
}

/// Returns the pages for users and contributors.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for entry in fs::read_dir(root.join("docs"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(page: &str, text: &str) -> Fate {
        let mut fates = fates(page, text);
        assert_eq!(fates.len(), 1, "{text}");
        fates.remove(0).1
    }

    #[test]
    fn a_block_of_commands_in_any_form_needs_a_mark() {
        for opening in [
            "```sh",
            "```shell",
            "``` bash",
            "````sh",
            "~~~sh",
            "  ```console",
            "> ```zsh",
            "```{.sh}",
            "```Bash title=x",
        ] {
            let closing = opening.trim_start_matches(['>', ' ']);
            let closing: String = closing.chars().take_while(|c| "`~".contains(*c)).collect();
            let text = format!("{opening}\nposse\n{closing}\n");
            let fate = only("docs/x.md", &text);
            assert!(matches!(fate, Fate::Fault(_)), "{text}: {fate:?}");
            let fate = only("docs/x.md", &format!("<!-- not run: why -->\n{text}"));
            assert_eq!(fate, Fate::NotRun("why".into()), "{text}");
            let fate = only("README.md", &format!("<!-- run: x -->\n{text}"));
            assert_eq!(fate == Fate::Run, opening == "```sh", "{text}: {fate:?}");
        }
        let others = "```json\n{}\n```\n````markdown\n```sh\nls\n```\n````\n`sh`\n";
        assert_eq!(fates("docs/x.md", others), []);
    }

    #[test]
    fn a_mark_is_on_the_line_before_and_a_part_is_of_its_page() {
        let block = "```sh\nposse\n```\n";
        let apart = format!("<!-- run: x -->\n\n{block}");
        assert!(matches!(only("docs/x.md", &apart), Fate::Fault(_)));
        let tour = format!("<!-- tour: begin -->\n{block}<!-- tour: end -->\n");
        assert_eq!(only("README.md", &tour), Fate::Run);
        assert!(matches!(only("CONTRIBUTING.md", &tour), Fate::Fault(_)));
        let bash = tour.replace("```sh", "```bash");
        assert!(matches!(only("README.md", &bash), Fate::Fault(_)));
    }
}
