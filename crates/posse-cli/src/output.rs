//! What people and programs see: results on stdout, everything else on stderr.

use std::io::{self, IsTerminal, Write};

/// Writes to stdout, at once.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// A line for people, on stderr. If nobody can read it there, nothing is lost.
pub(crate) fn say(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

/// A line about progress: only where a person looks on.
pub(crate) fn say_to_person(line: &str) {
    if io::stderr().is_terminal() {
        say(&format!("\x1b[2m{line}\x1b[0m"));
    }
}

/// Text from outside, safe to show: what could move the cursor or turn the text around is spelt out.
pub(crate) fn tame(text: &str) -> String {
    let dangerous = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    let mut tame = String::with_capacity(text.len());
    for c in text.chars() {
        if dangerous(c) { tame.extend(c.escape_unicode()) } else { tame.push(c) }
    }
    tame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_moves_the_cursor() {
        assert_eq!(tame("a\n\tb é 漢"), "a\n\tb é 漢");
        assert_eq!(tame("\x1b]52;c;x\x07\r\u{202e}"), "\\u{1b}]52;c;x\\u{7}\\u{d}\\u{202e}");
    }
}
