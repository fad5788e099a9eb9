//! Every key that does something has a command that does the same.

use posse_protocol::Question;

use super::screens::run;
use super::*;
use crate::conversation::help::{self, COMMANDS};
use crate::fixtures::question;

/// A key, what is to be pressed for it to act, and the line that does the same.
const NAMES: &[(&str, &str, &str)] = &[
    ("Alt-Q", "Alt-q", "/later words"),
    ("Up", "Up", "/unqueue"),
    ("Ctrl-R", "Ctrl-r", "/history"),
    ("Esc", "Esc", "/interrupt"),
    ("Esc", "Esc Esc", "/rewind"),
    ("Ctrl-C", "Ctrl-c", "/interrupt"),
    ("Ctrl-C", "Ctrl-c Ctrl-c", "/quit"),
    ("Ctrl-D", "Ctrl-d", "/quit"),
    ("Shift-Tab", "Shift-Tab", "/mode acceptEdits"),
    ("Alt-Y Alt-N Alt-A", "Alt-y", "/answer y"),
    ("Alt-Y Alt-N Alt-A", "Alt-n", "/answer n"),
    ("Alt-Y Alt-N Alt-A", "Alt-a", "/answer a"),
    ("Tab", "Tab", "/answer"),
    ("Alt-0 … Alt-9", "Alt-0", "/agent main"),
    ("Alt-0 … Alt-9", "Alt-1", "/agent 1"),
    ("Ctrl-\\", "Ctrl-\\", "/board"),
    ("Ctrl-O", "Ctrl-o", "/transcript"),
    ("Ctrl-B", "Ctrl-b", "/bg"),
    ("Alt-X", "Alt-x Alt-x", "/stop all"),
    ("Ctrl-V", "Ctrl-v", "/image"),
    ("Ctrl-G", "Ctrl-g", "/editor"),
    ("Ctrl-G", "Ctrl-g", "/editor words"),
    ("Ctrl-Z", "Ctrl-z", "/suspend"),
    ("?", "?", "/help"),
];

/// States in which keys mean different things.
const STATES: [&str; 6] = ["alone", "idle", "works", "asked", "queued", "away"];

fn talk(state: &str) -> Talk {
    let mut talk = Talk::new(80, 24);
    if state != "alone" {
        talk.event(run(9, "scout", "look at the tests"));
    }
    match state {
        "works" => talk.works(),
        "asked" => {
            talk.works();
            talk.asks(question("one"));
        }
        "queued" => {
            talk.works();
            talk.event(EventKind::Queue(vec![queued(7, "later")]));
        }
        "away" => drop(talk.input(Input::Show(agent(9)))),
        _ => {}
    }
    talk.frame();
    talk.printed.clear();
    talk
}

/// What a person notices of an action: what is to be done, and what is on the screen but for the
/// prompt and hints.
#[derive(Debug, PartialEq)]
struct Outcome {
    effects: Vec<Effect>,
    screen: Vec<String>,
    printed: Vec<String>,
}

impl Talk {
    fn outcome(&mut self, mut effects: Vec<Effect>) -> Outcome {
        effects.retain(|effect| !matches!(effect, Effect::KeepPrompt(_)));
        self.state.notice = None;
        let printed = self.printed();
        let live = self.live();
        let rows = live.lines();
        let rows = rows.filter(|row| !row.starts_with('›') && !row.trim().is_empty());
        Outcome {
            effects,
            screen: rows.map(str::to_owned).collect(),
            printed,
        }
    }
}

/// All keys but letters, which are the draft's, and Enter, which sends it.
fn keys() -> Vec<KeyEvent> {
    use KeyCode::*;
    let letters = || {
        ('a'..='z')
            .chain('0'..='9')
            .chain(['_', '/', '.', ' ', '\\'])
    };
    let with = |modifiers: KeyModifiers| {
        letters().map(move |letter| KeyEvent::new(Char(letter), modifiers))
    };
    let named = [
        Esc, Tab, BackTab, Up, Down, Left, Right, Home, End, PageUp, PageDown, Insert, Delete,
        Backspace,
    ];
    let named = named.into_iter().chain((1..=12).map(F));
    let named = named.flat_map(|code| {
        let modifiers = [KeyModifiers::NONE, KeyModifiers::ALT, KeyModifiers::CONTROL];
        modifiers.map(|modifiers| KeyEvent::new(code, modifiers))
    });
    let mut all: Vec<KeyEvent> = named.collect();
    all.extend(with(KeyModifiers::CONTROL));
    all.extend(with(KeyModifiers::ALT));
    all.push(key(Char('?')));
    all.push(KeyEvent::new(Enter, KeyModifiers::ALT));
    all
}

/// Returns what the lines of the table do in a state, typed once and twice.
fn by_name(state: &str) -> Vec<Outcome> {
    let lines = NAMES.iter().map(|(_, _, line)| *line);
    let outcome = |(line, times): (&str, usize)| {
        let mut talk = talk(state);
        let mut effects = Vec::new();
        for _ in 0..times {
            effects = talk.input(Input::Line(line.to_owned()));
        }
        talk.outcome(effects)
    };
    let all = lines.flat_map(|line| [(line, 1), (line, 2)]);
    all.map(outcome).collect()
}

// proves UI-14
#[test]
fn every_action_has_a_name_that_can_be_typed() {
    for state in STATES {
        let named = by_name(state);
        let idle = talk(state).outcome(Vec::new());
        for key in keys() {
            for (draft, times) in [("", 1), ("", 2), ("words", 1)] {
                let mut talk = talk(state);
                talk.types(draft);
                let mut effects = Vec::new();
                for _ in 0..times {
                    effects = talk.input(Input::Key(key));
                }
                let outcome = talk.outcome(effects);
                // Only the draft has changed, or a hint says what another press does.
                if outcome == idle || is_help(&outcome) {
                    continue;
                }
                let has_name = named.contains(&outcome);
                assert!(
                    has_name,
                    "{state}, “{draft}”: {key:?} {times} ×: {outcome:#?}"
                );
            }
        }
    }
}

/// Returns true if the keys are shown, which `/help` prints.
fn is_help(outcome: &Outcome) -> bool {
    outcome.effects.is_empty()
        && outcome
            .screen
            .iter()
            .any(|row| row.contains("/help prints all"))
}

#[test]
fn each_key_of_the_help_does_what_its_name_does() {
    for (title, pressed, line) in NAMES {
        let same = STATES.iter().any(|state| {
            let (mut first, mut second) = (talk(state), talk(state));
            let before = first.outcome(Vec::new());
            if line.ends_with(" words") {
                first.types("words");
            }
            let mut effects = Vec::new();
            for key in pressed.split(' ') {
                effects = first.press(key);
            }
            let by_key = first.outcome(effects);
            let effects = second.input(Input::Line((*line).to_owned()));
            let by_name = second.outcome(effects);
            by_key != before && (by_key == by_name || is_help(&by_key))
        });
        assert!(same, "{title}: {pressed} is not {line}");
        let name = line[1..].split(' ').next().unwrap();
        assert!(COMMANDS.iter().any(|(known, _)| *known == name), "{name}");
    }
    // Typing and sending are not actions that a name could be typed for.
    let typing = ["Enter", "Alt-Enter, Ctrl-J", "! # / @"];
    for (title, _) in help::keys(&ConversationKeys::default()) {
        let has_name = NAMES.iter().any(|(key, ..)| *key == title);
        assert!(has_name || typing.contains(&title.as_str()), "{title}");
    }
}

#[test]
fn a_question_that_is_open_is_answered_by_names_too() {
    let asked = || -> Talk {
        let mut talk = Talk::new(80, 24);
        for name in ["one", "two"] {
            talk.asks(Question {
                from: Some(name.into()),
                ..question(name)
            });
        }
        talk
    };
    let (mut by_key, mut by_name) = (asked(), asked());
    by_key.press("Tab Tab Esc");
    by_name.input(Input::Line("/skip".into()));
    assert!(by_name.live().contains("two"), "{}", by_name.live());
    assert_eq!(by_key.live(), by_name.live());
}
