//! Output: results on stdout, everything else on stderr.

pub(crate) mod paint;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod transcript;

use std::io::{self, IsTerminal, Write};

use posse_protocol::Cost;
// Output may go to a file, where a tab is a tab.
use posse_tui::text::is_spelt;
pub(crate) use posse_tui::text::{escaped as tame, grouped, one_line};
use serde::Serialize;

use self::transcript::wrapped;

/// Writes to stdout and flushes.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(unwritten)
}

/// Writes exact bytes to stdout; on a terminal they are made safe.
pub(crate) fn print_exactly(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        return print(tame(text).as_bytes());
    }
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(unwritten)
}

/// Adds to an error that it was about stdout.
fn unwritten(error: io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("cannot write to standard output: {error}"),
    )
}

/// Writes a line for people to stderr, broken at words on a terminal. Errors are ignored: there is
/// no other place to report them.
pub(crate) fn say(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", broken_for_stderr(line));
}

/// Returns a line, broken at words if stderr is a terminal.
pub(crate) fn broken_for_stderr(line: &str) -> String {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    match size.map(|size| usize::from(size.ws_col)) {
        None | Some(0) => line.to_owned(),
        Some(widest) => wrapped(line, widest),
    }
}

/// Returns a line, broken at words if stdout is a terminal.
pub(crate) fn broken_for_stdout(line: &str) -> String {
    width().map_or_else(|| line.to_owned(), |widest| wrapped(line, widest))
}

/// Writes a line about progress, only if stderr is a terminal.
pub(crate) fn say_to_person(line: &str) {
    if io::stderr().is_terminal() {
        say(&format!("\x1b[2m{line}\x1b[0m"));
    }
}

/// Returns the width of the terminal on stdout; `None` if it is not a terminal.
pub(crate) fn width() -> Option<usize> {
    let out = io::stdout();
    let size = if out.is_terminal() {
        rustix::termios::tcgetwinsize(out).ok()
    } else {
        None
    };
    size.map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
}

/// Returns the width of the terminal on stdout, and a usual one if it is not known.
pub(crate) fn columns() -> u16 {
    let columns = width().and_then(|columns| u16::try_from(columns).ok());
    columns.unwrap_or(80)
}

/// Returns an amount of money, or that it is unknown.
pub(crate) fn in_words(cost: Option<Cost>) -> String {
    cost.map_or_else(|| "price unknown".to_owned(), |cost| cost.to_string())
}

/// Returns a value as a line of JSON. Characters that a terminal would act on are escaped, which
/// JSON allows anywhere in a text, so that nothing is lost.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    // Serializing fails only for keys that are not strings, which none of these values has.
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut line = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if is_spelt(c) {
            line.push_str(&format!("\\u{:04x}", u32::from(c)))
        } else {
            line.push(c)
        }
    }
    line.push('\n');
    line
}

/// Returns a number with its noun: `1 task`, `2 tasks`.
pub(crate) fn count(number: usize, one: &str) -> String {
    let many = if number == 1 { "" } else { "s" };
    format!("{} {one}{many}", grouped(number as u64))
}

/// Returns a size for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (mut amount, mut unit) = (bytes as f64 / 1000.0, 0);
    while amount >= 1000.0 && unit + 1 < UNITS.len() {
        (amount, unit) = (amount / 1000.0, unit + 1);
    }
    format!("{amount:.1} {}", UNITS[unit])
}

/// Returns the name and version of this program, for others.
pub(crate) fn program() -> String {
    concat!("posse ", env!("CARGO_PKG_VERSION")).to_owned()
}

/// Returns a path for a column: its last two parts.
pub(crate) fn short_path(path: &std::path::Path) -> String {
    let parts: Vec<_> = path.components().collect();
    match parts.len() {
        0..=3 => path.display().to_string(),
        count => {
            let last: std::path::PathBuf = parts[count - 2..].iter().collect();
            format!("…/{}", last.display())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_loses_nothing_and_moves_no_cursor() {
        let odd = serde_json::json!({"a": "\u{9b}2J\u{7f}\u{202e}é\n"});
        let line = json_line(&odd);
        assert_eq!(line, "{\"a\":\"\\u009b2J\\u007f\\u202eé\\n\"}\n");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&line).unwrap(),
            odd
        );
    }

    #[test]
    fn a_size_has_its_unit() {
        let shown = [0, 999, 1000, 123_456, 999_999_999, 5_000_000_000_000_000].map(size);
        let expected = [
            "0 B",
            "999 B",
            "1.0 kB",
            "123.5 kB",
            "1000.0 MB",
            "5000.0 TB",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn nothing_from_outside_moves_the_cursor() {
        assert_eq!(tame("a\n\tb é 漢"), "a\n\tb é 漢");
        assert_eq!(
            tame("\x1b]52;c;x\x07\r\u{202e}"),
            "\\u{1b}]52;c;x\\u{7}\\u{d}\\u{202e}"
        );
    }
}
