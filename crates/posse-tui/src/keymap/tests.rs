//! Chords as people write them, and tables that a file changes.

use crossterm::event::{KeyCode, KeyModifiers};

use super::*;

fn chord(text: &str) -> Chord {
    text.parse().unwrap()
}

fn pressed(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
    KeyEvent::new(code, modifiers)
}

#[test]
fn chords_are_read_and_shown() {
    for (text, shown) in [
        ("ctrl-\\", "Ctrl-\\"),
        ("Ctrl-4", "Ctrl-\\"),
        ("alt-x", "Alt-X"),
        ("ALT-X", "Alt-X"),
        ("x", "x"),
        ("X", "X"),
        ("shift-x", "X"),
        ("ctrl-alt-x", "Ctrl-Alt-X"),
        ("shift-tab", "Shift-Tab"),
        ("f5", "F5"),
        ("F12", "F12"),
        ("alt-shift-f2", "Alt-Shift-F2"),
        ("space", "Space"),
        ("ctrl-space", "Ctrl-Space"),
        ("pageup", "PageUp"),
        ("-", "-"),
        ("ctrl--", "Ctrl--"),
        ("?", "?"),
        ("é", "é"),
    ] {
        assert_eq!(chord(text).to_string(), shown, "{text}");
    }
    for word in Chord::words().iter().skip(3) {
        assert_eq!(
            chord(word).to_string().to_ascii_lowercase(),
            *word,
            "{word}"
        );
    }
}

#[test]
fn what_is_not_a_chord_says_why() {
    let wrong = |text: &str| text.parse::<Chord>().unwrap_err();
    let key = |word: &str| WrongChord::UnknownKey(word.into());
    assert_eq!(wrong(""), key(""));
    assert_eq!(wrong(" "), key(" "));
    assert_eq!(wrong("f13"), key("f13"));
    assert_eq!(wrong("f0"), key("f0"));
    assert_eq!(wrong("ctrl-entr"), key("entr"));
    assert_eq!(wrong("ctrl-"), key("ctrl-"));
    assert_eq!(wrong("\u{7}"), key("\u{7}"));
    let modifier = WrongChord::UnknownModifier("ctlr".into());
    assert_eq!(wrong("ctlr-x"), modifier);
    assert_eq!(wrong("ctrl-i"), WrongChord::SentAs(chord("tab")));
    assert_eq!(wrong("ctrl-m"), WrongChord::SentAs(chord("enter")));
    assert_eq!(wrong("ctrl-["), WrongChord::SentAs(chord("esc")));
    assert_eq!(wrong("ctrl-8"), WrongChord::SentAs(chord("backspace")));
    assert_eq!(wrong("ctrl-?"), WrongChord::SentAs(chord("backspace")));
}

#[test]
fn keys_are_the_chords_that_are_meant() {
    let (control, alt) = (KeyModifiers::CONTROL, KeyModifiers::ALT);
    let (shift, none) = (KeyModifiers::SHIFT, KeyModifiers::empty());
    for (code, modifiers, text) in [
        (KeyCode::Char('Y'), alt | shift, "alt-y"),
        (KeyCode::Char('4'), control, "ctrl-\\"),
        (KeyCode::Char('7'), control, "ctrl-_"),
        (KeyCode::Char('7'), control, "ctrl-/"),
        (KeyCode::Char(' '), control, "ctrl-2"),
        (KeyCode::Char(' '), control, "ctrl-@"),
        (KeyCode::Char('G'), shift, "G"),
        (KeyCode::Char('?'), shift, "?"),
        (KeyCode::BackTab, shift, "shift-tab"),
        (KeyCode::BackTab, none, "shift-tab"),
        (KeyCode::Enter, alt, "alt-enter"),
        (KeyCode::F(1), none, "f1"),
    ] {
        assert_eq!(Chord::of(pressed(code, modifiers)), chord(text), "{text}");
    }
}

/// Actions of a small table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Here,
    Open,
    Stop,
    Leave,
}

impl KeyAction for Deed {
    const ALL: &'static [(Self, &'static str, &'static [&'static str])] = &[
        (Self::Here, "here", &["a"]),
        (Self::Open, "open", &["enter"]),
        (Self::Stop, "stop", &["x", "ctrl-x"]),
        (Self::Leave, "leave", &["q", "esc"]),
    ];

    fn refusal(self, chord: Chord) -> Option<&'static str> {
        (self == Self::Stop && !chord.is_held() && chord != "x".parse().unwrap())
            .then_some("too easy")
    }

    fn may_share_chord_with(self, other: Self) -> bool {
        self == Self::Here || other == Self::Here
    }
}

fn table() -> KeyTable<Deed> {
    KeyTable::default()
}

/// Returns all chords, each action's after its name.
fn all(table: &KeyTable<Deed>) -> String {
    let row = |row: &KeyRow<Deed>| format!("{} {}", row.name, table.listed(row.action));
    table.rows.iter().map(row).collect::<Vec<_>>().join(" | ")
}

fn bind(table: &mut KeyTable<Deed>, name: &str, chords: &[&str]) -> Vec<KeyProblem> {
    let chords: Vec<String> = chords.iter().map(|chord| (*chord).to_owned()).collect();
    table.bind(name, &chords)
}

#[test]
fn a_file_gives_actions_other_chords() {
    let mut table = table();
    let first = "here a | open Enter | stop x, Ctrl-X | leave q, Esc";
    assert_eq!(all(&table), first);
    assert_eq!(bind(&mut table, "leave", &["ctrl-q", "Q", "ctrl-q"]), []);
    assert_eq!(bind(&mut table, "open", &["enter", "l"]), []);
    assert_eq!(bind(&mut table, "stop", &[]), []);
    let then = "here a | open l, Enter | stop  | leave Ctrl-Q, Q, Esc";
    assert_eq!(all(&table), then);
    assert_eq!(table.first(Deed::Stop), None);
}

#[test]
fn a_chord_that_a_file_gives_is_taken_from_who_had_it() {
    let mut table = table();
    assert_eq!(bind(&mut table, "leave", &["ctrl-x"]), []);
    assert_eq!(
        all(&table),
        "here a | open Enter | stop x | leave Ctrl-X, Esc"
    );
    // They are never meant at the same time.
    assert_eq!(bind(&mut table, "here", &["ctrl-x"]), []);
    assert_eq!(
        all(&table),
        "here Ctrl-X | open Enter | stop x | leave Ctrl-X, Esc"
    );
    let key = pressed(KeyCode::Char('x'), KeyModifiers::CONTROL);
    assert_eq!(table.action(key, |_| true), Some(Deed::Here));
    let possible = |deed| deed != Deed::Here;
    assert_eq!(table.action(key, possible), Some(Deed::Leave));
}

#[test]
fn what_does_not_hold_is_told_and_the_rest_holds() {
    let mut table = table();
    let unknown = KeyProblem::UnknownAction("stopp".into());
    assert_eq!(bind(&mut table, "stopp", &["x"]), [unknown]);
    let refused = |text, why| KeyProblem::Refused {
        chord: chord(text),
        why,
    };
    assert_eq!(bind(&mut table, "stop", &["y"]), [refused("y", "too easy")]);
    let wrong = KeyProblem::Wrong {
        chord: "ctlr-y".into(),
        why: WrongChord::UnknownModifier("ctlr".into()),
    };
    let problems = bind(&mut table, "stop", &["ctlr-y", "alt-y"]);
    assert_eq!(problems, [wrong]);
    let taken = KeyProblem::Taken {
        chord: chord("alt-y"),
        by: "stop",
    };
    assert_eq!(bind(&mut table, "leave", &["alt-y"]), [taken]);
    assert_eq!(
        all(&table),
        "here a | open Enter | stop Alt-Y | leave q, Esc"
    );
    for reserved in ["enter", "esc", "ctrl-c", "shift-enter", "ctrl-esc"] {
        let why = "nothing can take Enter, Esc or Ctrl-C away";
        let problems = bind(&mut table, "stop", &[reserved]);
        assert_eq!(problems, [refused(reserved, why)], "{reserved}");
    }
}

#[test]
fn shift_does_not_change_what_an_arrow_does() {
    let mut table = table();
    bind(&mut table, "here", &["up", "tab"]);
    let action = |code| table.action(pressed(code, KeyModifiers::SHIFT), |_| true);
    assert_eq!(action(KeyCode::Up), Some(Deed::Here));
    assert_eq!(action(KeyCode::BackTab), None);
}
