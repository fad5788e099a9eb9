//! The pictures of docs/screens: posse's screens, drawn by the same code from fixed inputs.
//!
//! `cargo xtask screens` runs it with the directory to write to. A test says when a picture is
//! stale.

mod boards;
mod conversations;
mod pagers;
mod svg;
mod words;

use std::error::Error;
use std::num::NonZeroU16;
use std::path::PathBuf;

use posse_tui::conversation::Size;

type Failed = Box<dyn Error>;

/// The size of the terminal.
const SIZE: Size = Size {
    columns: 112,
    rows: 28,
};

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(directory), None) = (arguments.next(), arguments.next()) else {
        return Err("usage: screens DIRECTORY".into());
    };
    let directory = PathBuf::from(directory);
    std::fs::create_dir_all(&directory)?;
    for (name, svg) in pictures()? {
        std::fs::write(directory.join(name), svg)?;
    }
    Ok(())
}

/// Returns the names of all pictures, and what is in each.
fn pictures() -> Result<Vec<(&'static str, String)>, Failed> {
    let scenes = [
        ("conversation.svg", conversations::working()?),
        ("question.svg", conversations::asking()?),
        ("board.svg", boards::busy()?),
        ("pager.svg", pagers::searched()?),
    ];
    let picture = |(name, bytes): (_, Vec<u8>)| Ok((name, svg::picture(&shown(&bytes)?)));
    scenes.into_iter().map(picture).collect()
}

/// Returns what a terminal shows that was written to.
fn shown(bytes: &[u8]) -> Result<vt100::Screen, Failed> {
    let length = |length| NonZeroU16::new(length).ok_or("a terminal has cells");
    let mut terminal = vt100::Parser::new(length(SIZE.rows)?, length(SIZE.columns)?, 0);
    terminal.process(bytes);
    Ok(terminal.screen().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pictures_are_those_of_the_screens() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/screens");
        let mut names: Vec<&str> = Vec::new();
        for (name, svg) in pictures().unwrap() {
            let drawn = std::fs::read_to_string(format!("{docs}/{name}")).unwrap_or_default();
            assert!(drawn == svg, "{name} is stale: cargo xtask screens");
            names.push(name);
        }
        for file in std::fs::read_dir(docs).unwrap() {
            let file = file.unwrap().file_name();
            assert!(
                names.iter().any(|name| file == *name),
                "no screen: {file:?}"
            );
        }
    }
}
