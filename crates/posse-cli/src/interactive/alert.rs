//! How a person is called back who looks elsewhere: by the bell, or by a notification where the
//! terminal is known to show one.

use posse_tui::conversation::Alert;

use crate::config::environment::variable;

/// Terminals that show the text of OSC 9, by what they call themselves.
const KNOWN: [&str; 3] = ["iTerm.app", "WezTerm", "ghostty"];

/// Returns the bytes that call a person back. The words are posse's own: nothing from outside is in
/// them.
pub(super) fn bytes(alert: Alert) -> Vec<u8> {
    let program = variable("TERM_PROGRAM");
    in_terminal(alert, program.as_deref())
}

fn in_terminal(alert: Alert, program: Option<&str>) -> Vec<u8> {
    let words = match alert {
        Alert::Question => "posse: a question waits for you",
        Alert::RunOver => "posse: the agent has finished",
    };
    match program.is_some_and(|program| KNOWN.contains(&program)) {
        true => format!("\x1b]9;{words}\x07").into_bytes(),
        false => b"\x07".to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_rings_where_nothing_else_is_known() {
        assert_eq!(in_terminal(Alert::Question, None), b"\x07");
        assert_eq!(in_terminal(Alert::Question, Some("tmux")), b"\x07");
        let shown = in_terminal(Alert::RunOver, Some("WezTerm"));
        assert_eq!(shown, b"\x1b]9;posse: the agent has finished\x07");
    }
}
