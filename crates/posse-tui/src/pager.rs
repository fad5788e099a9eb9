//! A whole transcript with search, on a screen of its own.
//!
//! Only a part of the transcript is read, and only what is on the screen is rendered: a transcript of
//! a hundred thousand lines opens as fast as a short one. [`update`] changes the state by what happens
//! and says what is to be done; [`view`] says what is on the screen. Both are pure.

mod document;
mod entry;
mod keys;
mod scroll;
mod view;

use crossterm::event::{KeyEvent, MouseEvent};
use posse_protocol::Entry;

use self::document::Document;
use self::scroll::LinePlace;
pub use self::view::{PagerFrame, view};
use crate::conversation::Size;
use crate::edit::EditBuffer;
use crate::text::one_line;

/// Number of entries that are read at once.
const READ: u64 = 200;
/// Number of entries before the end of what was read at which more is read.
const AHEAD: u64 = 40;

/// What happens to a pager.
#[derive(Clone, Debug)]
pub enum PagerInput {
    /// A key is pressed.
    Key(KeyEvent),
    /// The mouse is used.
    Mouse(MouseEvent),
    /// Text is pasted.
    Paste(String),
    /// The terminal has this size.
    Size(Size),
    /// Entries that were asked for with [`PagerEffect::Read`].
    Entries {
        /// The number that was asked for.
        from: u64,
        /// All entries from there on, of which there may be fewer than were asked for.
        entries: Vec<Entry>,
    },
    /// The transcript has this many entries now.
    Total(u64),
    /// The answer to [`PagerEffect::Search`].
    Found {
        /// The nearest entry that has the text; none if there is none.
        entry: Option<u64>,
    },
    /// A line for the person about something that the loop did.
    Notice(String),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PagerEffect {
    /// Entries are wanted, as [`PagerInput::Entries`].
    Read {
        /// The number of the first.
        from: u64,
        /// How many.
        count: u64,
    },
    /// The nearest entry with a text is wanted, as [`PagerInput::Found`]. Capitals do not matter.
    Search {
        /// The text.
        text: String,
        /// The number of the first entry that is searched.
        from: u64,
        /// True if entries before it are searched, from the last to the first.
        backwards: bool,
    },
    /// A text is copied.
    Copy(String),
    /// The terminal is left to the shell for a while.
    Suspend,
    /// The pager is left.
    Leave,
}

/// What is known when a pager opens.
pub struct PagerBeginning {
    /// The size of the terminal.
    pub size: Size,
    /// Whose transcript it is.
    pub title: String,
    /// Number of its entries.
    pub total: u64,
}

/// The state of a pager.
pub struct Pager {
    size: Size,
    title: String,
    document: Document,
    /// The first line on the screen.
    top: LinePlace,
    /// True while the end is shown: then what comes is shown, too.
    follows: bool,
    /// What is being read: the number of the first entry, and how many.
    reading: Option<(u64, u64)>,
    search: Search,
    /// A line that stays until the next key.
    notice: Option<String>,
}

/// What is searched for.
#[derive(Default)]
struct Search {
    /// The line that is written.
    line: Option<EditBuffer>,
    /// The text; empty if there is none.
    text: String,
    backwards: bool,
    stage: SearchStage,
}

/// How far a search is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum SearchStage {
    /// Nothing is awaited.
    #[default]
    Over,
    /// An answer is awaited.
    Onward,
    /// An answer is awaited, about everything from the other end on.
    Around,
    /// The line with the text is shown, once its entry is there.
    Aims,
}

impl Search {
    fn is_running(&self) -> bool {
        matches!(self.stage, SearchStage::Onward | SearchStage::Around)
    }
}

impl Pager {
    /// Opens a transcript at its end, and returns what is to be done for it.
    pub fn open(beginning: PagerBeginning) -> (Self, Vec<PagerEffect>) {
        let total = beginning.total;
        let mut pager = Self {
            size: beginning.size,
            title: one_line(&beginning.title),
            document: Document::new(total, beginning.size.columns),
            top: LinePlace {
                entry: total.saturating_sub(1),
                line: 0,
            },
            follows: true,
            reading: None,
            search: Search::default(),
            notice: None,
        };
        let effects = read_more(&mut pager).into_iter().collect();
        (pager, effects)
    }

    /// Returns the number of rows of the transcript.
    fn height(&self) -> usize {
        usize::from(self.size.rows).saturating_sub(2).max(1)
    }
}

/// Changes a pager by what happens, and returns what is to be done.
pub fn update(pager: &mut Pager, input: PagerInput) -> Vec<PagerEffect> {
    let mut effects = match input {
        PagerInput::Key(key) => keys::pressed(pager, key),
        PagerInput::Mouse(event) => {
            keys::wheel(pager, event);
            Vec::new()
        }
        PagerInput::Paste(text) => {
            if let Some(line) = &mut pager.search.line {
                line.insert(&one_line(&text));
            }
            Vec::new()
        }
        PagerInput::Size(size) => {
            pager.size = size;
            pager.document.set_width(size.columns);
            Vec::new()
        }
        PagerInput::Entries { from, entries } => {
            let count = match pager.reading.take() {
                Some((asked, count)) if asked == from => count,
                reading => {
                    pager.reading = reading;
                    0
                }
            };
            pager.document.add(from, count, entries, pager.top.entry);
            Vec::new()
        }
        PagerInput::Total(total) => {
            pager.document.grow(total);
            Vec::new()
        }
        PagerInput::Found { entry } => found(pager, entry),
        PagerInput::Notice(text) => {
            pager.notice = Some(one_line(&text));
            Vec::new()
        }
    };
    settle(pager);
    effects.extend(read_more(pager));
    effects
}

/// The store has searched.
fn found(pager: &mut Pager, entry: Option<u64>) -> Vec<PagerEffect> {
    if !pager.search.is_running() {
        return Vec::new();
    }
    let is_around = std::mem::take(&mut pager.search.stage) == SearchStage::Around;
    match entry {
        Some(entry) => {
            if is_around {
                pager.notice = Some("searched on from the other end".to_owned());
            }
            pager.top = LinePlace { entry, line: 0 };
            pager.follows = false;
            pager.search.stage = SearchStage::Aims;
        }
        // Then everything, from the other end.
        None if !is_around => {
            pager.search.stage = SearchStage::Around;
            let backwards = pager.search.backwards;
            return vec![PagerEffect::Search {
                text: pager.search.text.clone(),
                from: pager.document.far_end(backwards),
                backwards,
            }];
        }
        None => pager.notice = Some(format!("{} is not found", one_line(&pager.search.text))),
    }
    Vec::new()
}

/// Brings the first line on the screen to one that is there.
fn settle(pager: &mut Pager) {
    let height = pager.height();
    let document = &mut pager.document;
    if pager.search.stage == SearchStage::Aims && document.is_known(pager.top.entry) {
        pager.search.stage = SearchStage::Over;
        let search = &pager.search;
        pager.top.line = document
            .unfolded_match(pager.top.entry, &search.text, search.backwards)
            .unwrap_or_default();
    }
    if !document.has_end() {
        pager.top = scroll::settled(document, pager.top, height);
        return;
    }
    let end = scroll::end(document, height);
    if pager.follows {
        pager.top = end;
    }
    pager.top = scroll::settled(document, pager.top, height);
    pager.follows = pager.top >= end;
}

/// Returns what is to be read next, if something is missing on the screen or will be soon.
fn read_more(pager: &mut Pager) -> Option<PagerEffect> {
    if pager.reading.is_some() {
        return None;
    }
    let missing = match pager.follows && !pager.document.has_end() {
        true => pager.document.missing_end(),
        false => {
            let height = pager.height();
            let places = scroll::screen(&mut pager.document, pager.top, height);
            let last = places.get(height - 1).map(|place| place.entry);
            pager.document.missing(pager.top.entry, last)
        }
    };
    let (from, count) = missing?;
    pager.reading = Some((from, count));
    Some(PagerEffect::Read { from, count })
}

#[cfg(test)]
mod tests;
