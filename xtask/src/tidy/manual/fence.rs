//! Fenced blocks of a page, in every form that Markdown has.

/// A fenced block.
pub(super) struct Block<'a> {
    /// Number of the line that opens it.
    pub(super) line: usize,
    /// Position of that line in the text.
    pub(super) at: usize,
    pub(super) opening: &'a str,
    /// Its language in lower case.
    pub(super) language: String,
    /// The line before it.
    pub(super) before: &'a str,
}

/// A fence: its character and how many there are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

/// Returns the blocks of a text.
pub(super) fn blocks_of(text: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut open, mut before, mut at) = (Vec::new(), None::<Fence>, "", 0);
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let start = at;
        at += line.len();
        let line = line.trim_end();
        match (open, fence(line)) {
            (None, Some((fence, info))) => {
                open = Some(fence);
                blocks.push(Block {
                    line: number,
                    at: start,
                    opening: line,
                    language: language(info),
                    before,
                });
            }
            (Some(opened), Some((fence, ""))) => {
                let closes = fence.mark == opened.mark && fence.length >= opened.length;
                open = (!closes).then_some(opened);
            }
            _ => {}
        }
        before = line;
    }
    blocks
}

/// Returns the fence of a line and what follows it. It may be in a list or a quotation.
fn fence(line: &str) -> Option<(Fence, &str)> {
    let inner = line.trim_start_matches([' ', '\t', '>']);
    let mark = inner.chars().next().filter(|c| "`~".contains(*c))?;
    let info = inner.trim_start_matches(mark);
    let length = inner.len() - info.len();
    // Three backticks can also begin code within a line.
    let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
    is_fence.then_some((Fence { mark, length }, info.trim()))
}

/// Returns the language that the words after a fence name: `sh`, `{.sh}`, `bash title=x`.
fn language(info: &str) -> String {
    let info = info.trim_start_matches(['{', '.', ' ']);
    let end = info.find([' ', ',', '}', '{', '\t']).unwrap_or(info.len());
    info[..end].to_lowercase()
}
