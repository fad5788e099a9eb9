//! Commands of the pages: each is run by a test, or says why not.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::read;

/// Maximum number of blocks that no test runs.
const MOST_NOT_RUN: usize = 10;
/// Marks of blocks that a test runs: by name, or as part of the tour or a story.
const RUN: [&str; 3] = [
    "<!-- run: ",
    "<!-- tour: begin -->",
    "<!-- story: begin -->",
];
const NOT_RUN: &str = "<!-- not run: ";

/// A block of commands that no test runs.
struct NotRun {
    place: String,
    reason: String,
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

/// Returns the blocks that are not run, and faults of those without a mark.
fn blocks(root: &Path) -> Result<(Vec<NotRun>, Vec<String>)> {
    let (mut not_run, mut faults) = (Vec::new(), Vec::new());
    for path in pages(root)? {
        let text = read(&path)?;
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        // Within the tour all blocks are run together.
        let (mut in_tour, mut in_block, mut before) = (false, false, "");
        for (line, number) in text.lines().zip(1..) {
            match line {
                "<!-- tour: begin -->" => in_tour = true,
                "<!-- tour: end -->" => in_tour = false,
                _ => {}
            }
            let opens = ["```sh", "```bash", "```console"].contains(&line);
            if opens && !in_block && !in_tour {
                let place = format!("{name}:{number}");
                if let Some(reason) = before.strip_prefix(NOT_RUN) {
                    let reason = reason.trim_end_matches(" -->").to_owned();
                    not_run.push(NotRun { place, reason });
                } else if !RUN.iter().any(|mark| before.starts_with(mark)) {
                    faults.push(format!(
                        "{place}: a block of commands without `<!-- run: NAME -->` or `{NOT_RUN}… -->` before it"
                    ));
                }
            }
            if line.starts_with("```") {
                in_block = !in_block;
            }
            if !line.trim().is_empty() {
                before = line;
            }
        }
    }
    Ok((not_run, faults))
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
