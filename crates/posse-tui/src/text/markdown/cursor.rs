//! Walks over the parts of a Markdown text and renders those that are final.
//!
//! [`Cursor`] is all that is remembered between two walks. Walking over a text in pieces gives the
//! same lines as walking over it at once, because every decision is made from the start of a part
//! and a bounded window after it.

use ratatui_core::text::Line;

use super::block;
use super::fence::Fence;
use super::units::{UnitKind, Units, ends_with_blank_line, is_blank};

/// How large an open part may become.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of one part, after which it is cut at the end of a line.
    pub(super) part: usize,
    /// Lines of an open list, after which its finished items are final.
    pub(super) list: usize,
    /// Bytes of an open part that are parsed again for every new line.
    pub(super) parsed: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            part: 64 * 1024,
            list: 200,
            parsed: 1024,
        }
    }
}

/// How much of a text is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// More may follow: the last part is open.
    Growing,
    /// Nothing follows.
    Whole,
}

/// Where a walk stopped.
#[derive(Clone, Debug, Default)]
pub(super) struct Cursor {
    /// True if a blank line goes before the next lines.
    gap: bool,
    inside: Inside,
    limits: Limits,
}

#[derive(Clone, Debug, Default)]
enum Inside {
    #[default]
    Nothing,
    /// A list whose next item has this number.
    List(Option<u64>),
    Fence {
        fence: Fence,
        is_shown: bool,
    },
}

impl Cursor {
    /// Returns the beginning of a text.
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Returns how large an open part may become.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns true if the walk stopped in a code fence, where each line is final.
    pub(super) fn is_in_fence(&self) -> bool {
        matches!(self.inside, Inside::Fence { .. })
    }

    /// Returns true if the walk stopped between lines of one block.
    pub(super) fn is_within_block(&self) -> bool {
        !matches!(self.inside, Inside::Nothing)
    }

    /// Renders what is final in the text and returns the bytes that it took.
    pub(super) fn walk(
        &mut self,
        source: &str,
        extent: Extent,
        width: u16,
        lines: &mut Vec<Line<'static>>,
    ) -> usize {
        let mut at = 0;
        while at < source.len() {
            let taken = if self.is_in_fence() {
                self.walk_fence(&source[at..], lines)
            } else {
                self.walk_window(&source[at..], extent, width, lines)
            };
            if taken == 0 {
                break;
            }
            at += taken;
        }
        at
    }

    /// Renders lines of code up to the end of the fence or of the text.
    fn walk_fence(&mut self, source: &str, lines: &mut Vec<Line<'static>>) -> usize {
        let Inside::Fence { fence, is_shown } = &mut self.inside else {
            return 0;
        };
        let mut at = 0;
        for line in source.split_inclusive('\n') {
            at += line.len();
            if fence.is_closed_by(line) {
                self.gap |= *is_shown;
                self.inside = Inside::Nothing;
                break;
            }
            if std::mem::take(&mut self.gap) {
                lines.push(Line::default());
            }
            lines.push(fence.line(line));
            *is_shown = true;
        }
        at
    }

    /// Renders the final parts of a window and returns the bytes that they took.
    fn walk_window(
        &mut self,
        source: &str,
        extent: Extent,
        width: u16,
        lines: &mut Vec<Line<'static>>,
    ) -> usize {
        let blank = blank_lines(source);
        if blank > 0 {
            return blank;
        }
        // Most parts are short. A small window keeps it cheap to begin again after each.
        if let Some(end) = line_end(source, self.limits.part / 16) {
            let window = Window {
                source,
                end,
                is_whole: false,
                is_cut: false,
            };
            let taken = self.walk_units(window, width, lines);
            if taken > 0 {
                return taken;
            }
        }
        let limit = line_end(source, self.limits.part);
        let end = limit.unwrap_or(source.len());
        let is_whole = extent == Extent::Whole && end == source.len();
        let is_cut = limit.is_some();
        self.walk_units(
            Window {
                source,
                end,
                is_whole,
                is_cut,
            },
            width,
            lines,
        )
    }

    /// Renders the final parts of a window and returns the bytes that they took.
    fn walk_units(
        &mut self,
        window: Window<'_>,
        width: u16,
        lines: &mut Vec<Line<'static>>,
    ) -> usize {
        let Window {
            source,
            end,
            is_cut,
            ..
        } = window;
        let text = &source[..end];
        let found = Units::of(text);
        let closed = found.closed(text);
        let is_whole = window.is_whole && !found.is_partial;
        let units = found.units;
        for (index, unit) in units.iter().enumerate() {
            let next = units.get(index + 1).map(|next| next.start);
            let part = Part {
                source: text,
                start: unit.start,
                end: next.unwrap_or(end),
            };
            if unit.kind == UnitKind::Fence {
                let after = unit.start + self.enter_fence(&source[unit.start..], lines);
                let rest = next.and_then(|next| source.get(after..next));
                if rest.is_some_and(|rest| rest.trim().is_empty()) {
                    continue;
                }
                return after;
            }
            if index < closed || is_whole {
                self.part(&unit.kind, part, width, lines);
            } else if let UnitKind::List { number, items } = &unit.kind
                && items.len() > 1
                && (is_cut || part.text().lines().nth(self.limits.list).is_some())
            {
                return self.items(part, items, *number, Extent::Growing, width, lines);
            } else if is_cut && index == 0 {
                self.part(&unit.kind, part, width, lines);
                self.gap = next.is_some() || ends_with_blank_line(text);
            } else {
                return unit.start;
            }
        }
        let is_final = is_whole || is_cut || closed == units.len() && closed > 0;
        if is_final { end } else { 0 }
    }

    /// Renders the code after the opening line of a fence and returns the bytes that both took.
    fn enter_fence(&mut self, source: &str, lines: &mut Vec<Line<'static>>) -> usize {
        let opening = source.split_inclusive('\n').next().unwrap_or(source);
        let fence = Fence::open(opening);
        self.inside = Inside::Fence {
            fence,
            is_shown: false,
        };
        opening.len() + self.walk_fence(&source[opening.len()..], lines)
    }

    /// Renders one part that is no fence.
    fn part(
        &mut self,
        kind: &UnitKind,
        part: Part<'_>,
        width: u16,
        lines: &mut Vec<Line<'static>>,
    ) {
        match kind {
            UnitKind::List { number, items } => {
                self.items(part, items, *number, Extent::Whole, width, lines);
            }
            UnitKind::Definitions => self.show(block::literal(part.text(), width), lines),
            _ => self.show(block::render(part.text(), None, width), lines),
        }
        self.inside = Inside::Nothing;
    }

    /// Renders the items of a list, all or all but the last, and returns where the rest begins.
    ///
    /// Each item is rendered by itself, so that it does not matter where a long list was cut.
    fn items(
        &mut self,
        part: Part<'_>,
        items: &[usize],
        first: Option<u64>,
        extent: Extent,
        width: u16,
        lines: &mut Vec<Line<'static>>,
    ) -> usize {
        let mut number = match std::mem::take(&mut self.inside) {
            Inside::List(number) => number,
            _ => first,
        };
        let ends = items.iter().skip(1).copied().chain([part.end]);
        let count = items.len() - usize::from(extent == Extent::Growing);
        let mut rest = part.start;
        for (start, end) in items.iter().copied().zip(ends).take(count) {
            let item = &part.source[start..end];
            self.show(block::render(item, number, width), lines);
            self.gap = ends_with_blank_line(item);
            number = number.map(|number| number.saturating_add(1));
            rest = end;
        }
        match extent {
            Extent::Growing => self.inside = Inside::List(number),
            Extent::Whole => self.gap = true,
        }
        rest
    }

    /// Adds lines after a blank one, if there is anything before them.
    fn show(&mut self, shown: Vec<Line<'static>>, lines: &mut Vec<Line<'static>>) {
        if shown.is_empty() {
            return;
        }
        if self.gap {
            lines.push(Line::default());
        }
        lines.extend(shown);
        self.gap = true;
    }
}

/// The beginning of a source, up to a byte.
#[derive(Clone, Copy)]
struct Window<'a> {
    source: &'a str,
    end: usize,
    /// True if nothing follows the window.
    is_whole: bool,
    /// True if a part that fills the window ends with it.
    is_cut: bool,
}

/// A part in its source.
#[derive(Clone, Copy)]
struct Part<'a> {
    source: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Part<'a> {
    fn text(self) -> &'a str {
        &self.source[self.start..self.end]
    }
}

/// Returns the bytes of the blank lines at the beginning of a text.
fn blank_lines(text: &str) -> usize {
    let lines = text.split_inclusive('\n');
    let blank = lines.take_while(|line| is_blank(line));
    blank.map(str::len).sum()
}

/// Returns the end of the line that a byte is in, if the text reaches so far.
fn line_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes().get(at..)?;
    let newline = rest.iter().position(|byte| *byte == b'\n')?;
    Some(at + newline + 1)
}
