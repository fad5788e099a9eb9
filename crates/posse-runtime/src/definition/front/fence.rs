//! Finds the beginning and the end of front matter.

use crate::definition::front::Problem;

/// Parts of a file.
pub(super) struct Fence<'a> {
    /// Line of the first `---`, from 1. Added to a line of `yaml`, it gives the line in the file.
    pub opening: usize,
    /// Text between the two.
    pub yaml: &'a str,
    /// Line of the second.
    pub closing: usize,
    /// Text below it.
    pub body: &'a str,
}

impl<'a> Fence<'a> {
    /// Splits `text`; none if it does not begin with front matter.
    pub(super) fn of(text: &'a str) -> Result<Option<Self>, Problem> {
        let mut lines = text
            .split_inclusive('\n')
            .enumerate()
            .skip_while(|(_, line)| line.trim().is_empty());
        let Some((first, _)) = lines.next().filter(|(_, line)| is_fence(line)) else {
            return Ok(None);
        };
        let opening = first + 1;
        let begin: usize = text.split_inclusive('\n').take(opening).map(str::len).sum();
        let mut end = begin;
        for (at, line) in lines {
            if is_fence(line) {
                let (yaml, body) = (&text[begin..end], &text[end + line.len()..]);
                return Ok(Some(Self {
                    opening,
                    yaml,
                    closing: at + 1,
                    body,
                }));
            }
            end += line.len();
        }
        Err(Problem::new(
            opening,
            "the front matter that begins here has no end: a line `---` is missing",
        ))
    }
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}
