//! What calls a person back who looks elsewhere: a question, and the end of a long run.

/// Time after which the end of a run is worth an alert.
const LONG_MS: u64 = 10_000;

/// What a person is called back for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// A question waits.
    Question,
    /// A long run is over.
    RunOver,
}

/// Alerts, which are only for those who look elsewhere.
#[derive(Default)]
pub(super) struct Alerts {
    /// True after the terminal has said that it lost the focus. One that says nothing has it.
    is_away: bool,
    next: Option<Alert>,
}

impl Alerts {
    /// The terminal has the focus, or has lost it.
    pub(super) fn focus(&mut self, has_focus: bool) {
        self.is_away = !has_focus;
        if has_focus {
            self.next = None;
        }
    }

    /// A question has come.
    pub(super) fn question(&mut self) {
        if self.is_away {
            self.next = Some(Alert::Question);
        }
    }

    /// A run is over that took this long.
    pub(super) fn run_over(&mut self, took_ms: u64) {
        if self.is_away && took_ms > LONG_MS {
            self.next.get_or_insert(Alert::RunOver);
        }
    }

    /// Returns what the person is called back for, once.
    pub(super) fn take(&mut self) -> Option<Alert> {
        self.next.take()
    }
}
