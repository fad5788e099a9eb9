//! How much of memory files a model reads.

/// Maximum size of one file in bytes.
pub const PER_FILE: usize = 40 * 1024;
/// Maximum size of all files together in bytes.
const ALL: usize = 200 * 1024;

/// The room that is left for memory files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryRoom(usize);

impl Default for MemoryRoom {
    fn default() -> Self {
        Self(ALL)
    }
}

/// The part of a file that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// All of it.
    Whole(String),
    /// Its beginning, with a note.
    Start {
        /// The text with the note.
        text: String,
        /// Size of the beginning in bytes.
        bytes: usize,
    },
    /// Nothing: there is no room left.
    Nothing,
}

impl MemoryRoom {
    /// Returns the room that is left beside these texts.
    pub fn beside<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        Self(ALL.saturating_sub(texts.map(str::len).sum()))
    }

    /// Takes room for a file of `size` bytes, of which `text` is at least the first
    /// [`PER_FILE`].
    pub fn take(&mut self, text: &str, size: u64) -> Kept {
        let text = text.trim_end();
        let most = PER_FILE.min(self.0);
        if text.len() <= most {
            self.0 -= text.len();
            return Kept::Whole(text.to_owned());
        }
        if most == 0 {
            return Kept::Nothing;
        }
        let start = &text[..text.floor_char_boundary(most)];
        let why = if most == PER_FILE {
            format!("a file is read up to {} KB", PER_FILE / 1024)
        } else {
            format!("all files together are read up to {} KB", ALL / 1024)
        };
        // A file that was cut for lack of room used it up, even if a character did not fit.
        self.0 -= most;
        Kept::Start {
            text: format!("{start}\n[cut here: {why}; the file has {size} bytes]"),
            bytes: start.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // proves FC-09 (part: limits)
    #[test]
    fn a_file_is_cut_at_40_kb_and_all_at_200_kb() {
        let mut room = MemoryRoom::default();
        let long = "ä".repeat(PER_FILE);
        let kept = room.take(&long, 81_920);
        let note = "[cut here: a file is read up to 40 KB; the file has 81920 bytes]";
        let text = format!("{}\n{note}", "ä".repeat(PER_FILE / 2));
        let bytes = PER_FILE;
        assert_eq!(kept, Kept::Start { text, bytes });
        assert_eq!(room.take("short\n", 6), Kept::Whole("short".into()));
        for _ in 0..3 {
            assert!(matches!(room.take(&long, 81_920), Kept::Start { .. }));
        }
        let Kept::Start { text, bytes } = room.take(&long, 81_920) else {
            panic!("it does not fit");
        };
        let note = "[cut here: all files together are read up to 200 KB; the file has \
                    81920 bytes]";
        assert!(text.ends_with(note) && bytes == PER_FILE - 6, "{bytes}");
        assert_eq!(room.take("one more", 8), Kept::Nothing);
        assert_eq!(room.take("", 0), Kept::Whole(String::new()));
    }
}
