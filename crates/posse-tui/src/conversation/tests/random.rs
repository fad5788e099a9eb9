//! Random keys, events, sizes and times: what holds after each of them.

mod inputs;

use std::collections::HashMap;

use posse_protocol::{Command, QuestionId};
use proptest::prelude::*;

use self::inputs::{Step, step, text};
use super::*;
use crate::conversation::SETTLE_MS;
use crate::question::Typing;

/// Number of inputs of a conversation.
const STEPS: usize = 400;

/// A conversation, another one that is told the same, and what a stranger knows about both.
struct Pair {
    talk: Talk,
    twin: Talk,
    size: Size,
    /// Questions that were asked and neither answered nor withdrawn, each with who asks.
    asked: HashMap<QuestionId, AgentId>,
    /// The question that is shown, and since when.
    shown: Option<(QuestionId, u64)>,
}

/// What was on the screen before an input.
struct Before {
    question: Option<QuestionId>,
    is_open: bool,
    draft: String,
    agent: AgentId,
    /// All drafts, if no earlier prompt is looked at.
    drafts: Option<Vec<(Option<AgentId>, String)>>,
}

impl Pair {
    fn new() -> Self {
        Self {
            talk: Talk::new(80, 24),
            twin: Talk::new(80, 24),
            size: Size {
                columns: 80,
                rows: 24,
            },
            asked: HashMap::new(),
            shown: None,
        }
    }

    /// Does what the loop does with an input: what it asks for follows at once.
    fn step(&mut self, step: &Step) {
        self.talk.wait(step.after_ms);
        self.twin.wait(step.after_ms);
        for effect in self.input(&step.input) {
            match effect {
                Effect::Show(agent) => {
                    self.input(&Input::Show(agent));
                    let (entries, next) = (Vec::new(), step.after_ms);
                    self.input(&Input::Entries { entries, next });
                }
                Effect::Say(_, words) if step.is_refused => {
                    self.input(&Input::Draft(words));
                    self.input(&Input::Notice("no".into()));
                }
                _ => {}
            }
        }
        if step.is_drawn {
            self.check_frame();
        }
    }

    fn input(&mut self, input: &Input) -> Vec<Effect> {
        let before = self.before();
        match input {
            Input::Event(event) => self.heard(event),
            Input::Size(size) => self.size = *size,
            _ => {}
        }
        let effects = self.talk.input(input.clone());
        assert_eq!(effects, self.twin.input(input.clone()), "{input:?}");
        for effect in &effects {
            self.check_effect(input, &before, effect);
        }
        self.check_draft(input, &before, &effects);
        self.check_focus(input, &before);
        effects
    }

    fn before(&self) -> Before {
        let state = &self.talk.state;
        Before {
            question: state.questions.first().map(|open| open.dialog.id()),
            is_open: state.questions.is_open,
            draft: state.draft(),
            agent: state.shown_agent(),
            drafts: (state.history.draft_before().is_none()).then(|| state.drafts()),
        }
    }

    fn heard(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ApprovalRequested(question) => {
                self.asked.entry(question.id).or_insert(event.agent);
            }
            EventKind::ApprovalWithdrawn { question } => {
                self.asked.remove(question);
            }
            _ => {}
        }
    }

    fn check_effect(&mut self, input: &Input, before: &Before, effect: &Effect) {
        match effect {
            Effect::Send(Command::Answer {
                agent, question, ..
            }) => {
                let asker = self.asked.remove(question);
                assert_eq!(asker, Some(*agent), "it is answered once");
                let (shown, since_ms) = self.shown.unwrap();
                assert_eq!(shown, *question, "it is the one on the screen");
                assert!(self.talk.now_ms - since_ms >= SETTLE_MS, "it was seen");
                assert!(
                    before.is_open && matches!(input, Input::Key(_))
                        || is_for_question(input, &before.draft) && !is_tab(input),
                    "{input:?}"
                );
            }
            Effect::Show(agent) => {
                let mut others = self.talk.state.others.all().iter();
                let is_there = others.any(|other| other.is_agent && other.id == agent.uuid());
                assert!(is_there || *agent == session());
            }
            _ => {}
        }
    }

    /// The draft changes by its owner's keys alone, and what is sent or cleared is kept.
    fn check_draft(&self, input: &Input, before: &Before, effects: &[Effect]) {
        let draft = self.talk.state.draft();
        let is_edit = match input {
            Input::Key(key) => !before.is_open && may_edit(*key),
            Input::Paste(_) => !before.is_open,
            Input::Draft(_) => true,
            // Each agent has its own.
            Input::Show(_) => {
                let drafts = self.talk.state.drafts();
                assert!(before.drafts.iter().all(|before| *before == drafts));
                true
            }
            _ => false,
        };
        assert!(draft == before.draft || is_edit, "{input:?}");
        let Input::Key(pressed) = input else {
            return;
        };
        if draft == before.draft || before.draft.trim().is_empty() {
            return;
        }
        if *pressed == named("Ctrl-c") {
            let kept = self.talk.state.history.entries().next_back();
            assert_eq!(kept, Some(before.draft.as_str()));
        }
        let is_sent = matches!(pressed.code, KeyCode::Enter) && draft.is_empty();
        let kept = Effect::KeepPrompt(before.draft.clone());
        assert!(!is_sent || effects.contains(&kept), "{}", before.draft);
    }

    /// A question is opened by its keys alone, and an agent is shown by the loop.
    fn check_focus(&mut self, input: &Input, before: &Before) {
        let after = self.before();
        if after.is_open && !before.is_open {
            assert!(
                is_for_question(input, &before.draft),
                "{input:?} {:?}",
                before.draft
            );
        }
        assert!(after.question.is_some() || !after.is_open);
        assert!(after.agent == before.agent || matches!(input, Input::Show(_)));
        if after.question != before.question {
            self.shown = after.question.map(|question| (question, self.talk.now_ms));
        }
        let is_asked = |question: &QuestionId| self.asked.contains_key(question);
        assert!(after.question.iter().all(is_asked));
        assert_eq!(self.talk.state.questions.count(), self.asked.len());
    }

    /// A question that can be answered is seen.
    fn check_question(&self, live: &Buffer) {
        let sign = match self.talk.state.questions.typing() {
            // The lowest screens have room for the words alone.
            Some(Typing::Line) if self.size.rows < 5 => "»",
            _ => "◐",
        };
        let mut heads = (0..live.area.height).filter_map(|row| live.cell((0, row)));
        let is_seen = heads.any(|head| head.symbol() == sign);
        assert!(is_seen, "{:?} {:#?}", self.size, rows(live));
    }

    fn check_frame(&mut self) {
        let frame = self.talk.frame();
        let (area, caret) = (frame.live.area, frame.caret);
        assert!(caret.x < area.width && caret.y < area.height, "{caret}");
        let rows_of_screen = self.size.rows;
        let part = match self.shown {
            Some(_) => (rows_of_screen / 2).max(rows_of_screen.saturating_sub(1)),
            None => rows_of_screen / 2,
        };
        assert!(area.height <= part.clamp(3, 16), "{}", area.height);
        let mut text: String = frame.live.content.iter().map(Cell::symbol).collect();
        let printed = frame.printed.iter().flat_map(|line| &line.spans);
        text.extend(printed.map(|span| span.content.as_ref()));
        assert!(!text.contains(char::is_control), "{text:?}");
        if self.shown.is_some() {
            self.check_question(&frame.live);
        }
        let twin = self.twin.frame();
        assert!(frame.printed == twin.printed && frame.live == twin.live && caret == twin.caret);
        self.talk.printed.clear();
        self.twin.printed.clear();
    }
}

/// Returns false for keys that have another meaning.
fn may_edit(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Esc | KeyCode::BackTab | KeyCode::Left | KeyCode::Home => false,
        KeyCode::Char('y' | 'n' | 'a' | '0'..='9') => !key.modifiers.contains(KeyModifiers::ALT),
        KeyCode::Char('z' | 'g') => !key.modifiers.contains(KeyModifiers::CONTROL),
        _ => true,
    }
}

fn is_tab(input: &Input) -> bool {
    matches!(input, Input::Key(key) if key.code == KeyCode::Tab)
}

/// Returns true for what is meant for a question that is not open: a chord, Tab or `/answer`.
fn is_for_question(input: &Input, draft: &str) -> bool {
    let Input::Key(key) = input else {
        return false;
    };
    match key.code {
        KeyCode::Tab => true,
        KeyCode::Char('y' | 'n' | 'a') => key.modifiers.contains(KeyModifiers::ALT),
        KeyCode::Enter | KeyCode::Char('q') => draft.split_whitespace().next() == Some("/answer"),
        _ => false,
    }
}

fn holds(steps: &[Step]) {
    let mut pair = Pair::new();
    for step in steps {
        pair.step(step);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    // proves UI-04 (part: any keys)
    #[test]
    fn everything_holds_after_any_keys(steps in prop::collection::vec(step(18, 6), STEPS)) {
        holds(&steps);
    }

    // proves UI-05 (part: any events)
    #[test]
    fn everything_holds_after_any_events(steps in prop::collection::vec(step(6, 18), STEPS)) {
        holds(&steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    #[ignore = "takes an hour"]
    fn everything_holds_for_long(steps in prop::collection::vec(step(12, 12), STEPS)) {
        holds(&steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_reply_is_printed_as_its_entry_after_any_attempts(
        parts in prop::collection::vec(text(), 0..8),
        cuts in prop::collection::vec(0..200usize, 0..4),
        size in 1..9usize,
    ) {
        let said = parts.concat();
        let mut whole = Talk::new(40, 24);
        whole.event(reply(0, &said));
        whole.frame();
        let mut talk = Talk::new(40, 24);
        let characters: Vec<char> = said.chars().collect();
        for cut in &cuts {
            for piece in characters[..characters.len().min(*cut)].chunks(size) {
                talk.text(&piece.iter().collect::<String>());
            }
            talk.event(retry());
        }
        for piece in characters.chunks(size) {
            talk.text(&piece.iter().collect::<String>());
        }
        talk.event(reply(0, &said));
        talk.frame();
        prop_assert_eq!(talk.printed, whole.printed);
    }
}
