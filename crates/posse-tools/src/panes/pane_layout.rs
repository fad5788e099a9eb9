//! Decides where a new pane goes, from what tmux has reported.

/// The format of a line about each pane of tmux.
pub(super) const FORMAT: &str = "#{pane_id} #{window_id} #{session_id} #{pane_width} #{pane_height} \
                                 #{pane_dead} #{window_zoomed_flag} #{@posse} #{@posse-window}";

/// Minimum width of a usable pane.
const NARROWEST: u32 = 40;
/// Minimum height of a usable pane.
const LOWEST: u32 = 6;

/// A pane of the user's tmux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TmuxPane {
    pub(super) id: String,
    pub(super) window: String,
    pub(super) session: String,
    width: u32,
    height: u32,
    pub(super) dead: bool,
    zoomed: bool,
    pub(super) marks: PosseMarks,
}

/// Whether this posse session opened a pane and its window. They are marked separately, because
/// the user may split posse's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PosseMarks {
    pub(super) pane: bool,
    window: bool,
}

/// Where to open the next pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PanePosition {
    /// By splitting this pane.
    Split {
        pane: String,
        /// Beside what is there, not below it.
        beside: bool,
        /// A pane fills the whole window, and must continue to.
        zoomed: bool,
        /// The window is posse's own, so that all its panes get the same size.
        tiled: bool,
    },
    /// In a new window of this tmux session.
    Window { session: String },
}

/// Parses a line of [`FORMAT`]. Returns `None` if it is not as expected.
pub(super) fn read(line: &str, marked: &str) -> Option<TmuxPane> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    let (id, window, session) = (next()?.to_owned(), next()?.to_owned(), next()?.to_owned());
    let (width, height) = (next()?.parse().ok()?, next()?.parse().ok()?);
    let (dead, zoomed) = (next()? == "1", next()? == "1");
    let marks = PosseMarks {
        pane: next()? == marked,
        window: next()? == marked,
    };
    Some(TmuxPane {
        id,
        window,
        session,
        width,
        height,
        dead,
        zoomed,
        marks,
    })
}

/// Returns where the next pane goes: into the window of `lead` while there is space, else into a
/// window of posse's own. `None` if the lead's pane is gone.
pub(super) fn next(panes: &[TmuxPane], lead: &str, own_window: bool) -> Option<PanePosition> {
    let lead = panes.iter().find(|pane| pane.id == lead)?;
    let live = || panes.iter().filter(|pane| !pane.dead);
    let split = |pane: &TmuxPane, beside, tiled| PanePosition::Split {
        pane: pane.id.clone(),
        beside,
        zoomed: pane.zoomed,
        tiled,
    };
    if !own_window {
        let column = live()
            .filter(|pane| pane.marks.pane && pane.window == lead.window)
            .max_by_key(|pane| pane.height);
        match column {
            Some(pane) if pane.height > 2 * LOWEST => return Some(split(pane, false, false)),
            None if lead.width > 2 * NARROWEST => return Some(split(lead, true, false)),
            None if lead.height > 2 * LOWEST => return Some(split(lead, false, false)),
            _ => {}
        }
    }
    let own = live().filter(|pane| pane.marks.window && pane.session == lead.session);
    let largest = own.max_by_key(|pane| u64::from(pane.width) * u64::from(pane.height));
    Some(match largest {
        Some(pane) if pane.height > 2 * LOWEST => split(pane, false, true),
        Some(pane) if pane.width > 2 * NARROWEST => split(pane, true, true),
        _ => PanePosition::Window {
            session: lead.session.clone(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panes(lines: &[&str]) -> Vec<TmuxPane> {
        lines.iter().map(|line| read(line, "s").unwrap()).collect()
    }

    fn split(pane: &str, beside: bool, tiled: bool) -> Option<PanePosition> {
        Some(PanePosition::Split {
            pane: pane.into(),
            beside,
            zoomed: false,
            tiled,
        })
    }

    #[test]
    fn teammates_stand_in_a_column_beside_the_lead() {
        let lead = "%0 @0 $0 200 50 0 0  ";
        assert_eq!(next(&panes(&[lead]), "%0", false), split("%0", true, false));
        let column = panes(&[
            "%0 @0 $0 100 50 0 0  ",
            "%1 @0 $0 99 24 0 0 s ",
            "%2 @0 $0 99 25 0 0 s ",
        ]);
        assert_eq!(next(&column, "%0", false), split("%2", false, false));
        assert_eq!(
            next(&panes(&["%0 @0 $0 60 50 0 0  "]), "%0", false),
            split("%0", false, false)
        );
        assert_eq!(next(&panes(&[lead]), "%7", false), None);
    }

    #[test]
    fn panes_of_others_are_not_divided() {
        let others = panes(&[
            "%0 @0 $0 100 50 0 0  ",
            "%1 @0 $0 99 50 0 0 other ",
            "%2 @1 $0 200 50 0 0 s ",
        ]);
        assert_eq!(next(&others, "%0", false), split("%0", true, false));
        let dead = panes(&["%0 @0 $0 100 50 0 0  ", "%1 @0 $0 99 50 1 0 s "]);
        assert_eq!(next(&dead, "%0", false), split("%0", true, false));
    }

    #[test]
    fn where_there_is_no_room_a_window_is_opened_and_filled() {
        let window = Some(PanePosition::Window {
            session: "$3".into(),
        });
        assert_eq!(next(&panes(&["%0 @0 $3 70 10 0 0  "]), "%0", false), window);
        let full = ["%0 @0 $3 100 50 0 0  ", "%1 @0 $3 99 12 0 0 s "];
        assert_eq!(next(&panes(&full), "%0", false), window);
        assert_eq!(next(&panes(&["%0 @0 $3 200 50 0 0  "]), "%0", true), window);
        let filled = [
            "%0 @0 $3 200 50 0 0  ",
            "%1 @1 $3 80 24 0 0 s s",
            "%2 @1 $3 80 25 0 0 s s",
        ];
        assert_eq!(next(&panes(&filled), "%0", true), split("%2", false, true));
        let low = ["%0 @0 $3 200 50 0 0  ", "%1 @1 $3 200 12 0 0 s s"];
        assert_eq!(next(&panes(&low), "%0", true), split("%1", true, true));
    }
}
