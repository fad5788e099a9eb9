//! Instructions for agents: AGENTS.md and CLAUDE.md, of the user and from the project's root down
//! to where the agent works.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::config::search_paths::SearchPaths;

/// Maximum size of all instructions together.
const MOST_BYTES: usize = 32 * 1024;

/// Marks where they were cut.
const CUT: &str = "[cut here: all instructions together are at most 32 KiB]";

/// One file's instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Returns the instructions for agents in `cwd` as one block.
pub(crate) fn at(cwd: &Path) -> Option<String> {
    render(&gather(&SearchPaths::at(cwd)))
}

/// Finds all instructions, most general first. Files that cannot be read are skipped.
pub(crate) fn gather(places: &SearchPaths) -> Vec<Instruction> {
    let mut directories: Vec<&Path> = places
        .cwd
        .ancestors()
        .take_while(|directory| directory.starts_with(places.project()))
        .collect();
    directories.reverse();
    let own = places.posse_home.as_deref().and_then(|directory| {
        // The user's own file may be a link to anywhere.
        read(&directory.join("AGENTS.md"), Path::new("/"))
    });
    let mut found = Vec::from_iter(own);
    for directory in directories {
        let common = read(&directory.join("AGENTS.md"), places.project());
        let other = read(&directory.join("CLAUDE.md"), places.project());
        // Often one is a link to the other, or only refers to it.
        let repeats = |common: &Instruction, other: &Instruction| {
            common.text.trim() == other.text.trim() || other.text.trim() == "@AGENTS.md"
        };
        let other =
            other.filter(|other| !common.as_ref().is_some_and(|common| repeats(common, other)));
        found.extend(common.into_iter().chain(other));
    }
    shortened(found)
}

/// Returns one block for the system prompt; `None` if there are no instructions.
pub(crate) fn render(instructions: &[Instruction]) -> Option<String> {
    if instructions.is_empty() {
        return None;
    }
    let mut block = String::from(
        "Instructions that people wrote for agents working here. Where they disagree, the later \
         one applies.\n",
    );
    for Instruction { path, text } in instructions {
        let path = path.display();
        let _ = write!(
            block,
            "\n--- {path} ---\n{}\n--- end of {path} ---\n",
            text.trim_end()
        );
    }
    Some(block)
}

/// Reads a file, which must really be inside `bounds`: a repository could link to private files.
fn read(path: &Path, bounds: &Path) -> Option<Instruction> {
    let real = path.canonicalize().ok()?;
    // Reading a pipe or a device could block forever.
    if !real.starts_with(bounds.canonicalize().ok()?) || !std::fs::metadata(&real).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(&real)
        .ok()?
        .take(2 * MOST_BYTES as u64)
        .read_to_end(&mut bytes)
        .ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then(|| Instruction {
        path: path.to_owned(),
        text,
    })
}

/// Cuts where the limit is reached, with a note; files after that are only named.
fn shortened(found: Vec<Instruction>) -> Vec<Instruction> {
    let mut left = MOST_BYTES;
    found
        .into_iter()
        .map(|Instruction { path, text }| {
            if text.len() <= left {
                left -= text.len();
                return Instruction { path, text };
            }
            let kept = text
                .get(..text.floor_char_boundary(left))
                .unwrap_or_default();
            left = 0;
            let text = if kept.is_empty() {
                CUT.to_owned()
            } else {
                format!("{kept}\n{CUT}")
            };
            Instruction { path, text }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::tests::Disk;

    fn names(disk: &Disk) -> Vec<(String, String)> {
        let root = disk.path("");
        let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
        gather(&disk.places)
            .into_iter()
            .map(|found| (name(&found.path), found.text))
            .collect()
    }

    #[test]
    fn from_the_root_down_to_where_one_works() {
        let disk = Disk::new();
        let files = [
            ("AGENTS.md", "above the project"),
            ("posse/AGENTS.md", "user"),
            ("repo/AGENTS.md", "root"),
            ("repo/CLAUDE.md", "root\n"),
            ("repo/sub/CLAUDE.md", "sub"),
            ("repo/sub/deep/AGENTS.md", "beneath"),
        ];
        for (name, text) in files {
            disk.write(name, text);
        }
        let expected = [
            ("posse/AGENTS.md", "user"),
            ("repo/AGENTS.md", "root"),
            ("repo/sub/CLAUDE.md", "sub"),
        ];
        assert_eq!(
            names(&disk),
            expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
        );
        disk.write("repo/CLAUDE.md", "something else");
        assert_eq!(
            names(&disk)[2],
            ("repo/CLAUDE.md".into(), "something else".into())
        );
    }

    #[test]
    fn a_repository_shows_only_what_is_its_own() {
        let disk = Disk::new();
        disk.write("home/secret", "secret");
        disk.write("repo/notes", "notes");
        std::os::unix::fs::symlink(disk.path("home/secret"), disk.path("repo/AGENTS.md")).unwrap();
        std::os::unix::fs::symlink(disk.path("repo/notes"), disk.path("repo/sub/AGENTS.md"))
            .unwrap();
        assert_eq!(
            names(&disk),
            [("repo/sub/AGENTS.md".to_owned(), "notes".to_owned())]
        );
    }

    #[test]
    fn a_block_names_its_files() {
        let found = [Instruction {
            path: "/w/AGENTS.md".into(),
            text: "Use tabs.\n".into(),
        }];
        let block = render(&found).unwrap();
        assert!(
            block.ends_with("\n--- /w/AGENTS.md ---\nUse tabs.\n--- end of /w/AGENTS.md ---\n"),
            "{block}"
        );
        assert_eq!(render(&[]), None);
    }

    #[test]
    fn too_much_is_cut_with_a_note() {
        let disk = Disk::new();
        disk.write("repo/AGENTS.md", &"ä".repeat(MOST_BYTES / 2 - 1));
        disk.write("repo/sub/AGENTS.md", "äöü and more");
        let found = gather(&disk.places);
        assert_eq!(found[1].text, format!("ä\n{CUT}"));
        disk.write("repo/AGENTS.md", &"x".repeat(9 * MOST_BYTES));
        let found = gather(&disk.places);
        assert_eq!(
            (found[0].text.len(), found[1].text.as_str()),
            (MOST_BYTES + 1 + CUT.len(), CUT)
        );
    }
}
