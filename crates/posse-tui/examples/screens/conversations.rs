//! A conversation: one in which work goes on, and one with a question.

use posse_protocol::{
    Activity, AgentId, ContentBlock, Delta, DiffLine, Display, EntryKind, Event, EventKind,
    FileDiff, Hunk, LineChange, PermissionMode, Question, QuestionKind, RawJson, RunChange,
    RunFacts, RunKind, RunUpdate, SpendingUpdate, Spent, Suggestion, Usage, WaitReason,
};
use posse_tui::conversation::{
    AgentProcess, Beginning, Conversation, ConversationKeys, Input, SETTLE_MS, update, view,
};
use posse_tui::terminal::InlineTerminal;
use posse_tui::theme::Theme;
use serde_json::json;

use crate::words::{MODEL, agent, call, cents, entry, keys, result};
use crate::{Failed, SIZE};

/// What the person asks for.
const GOAL: &str = "mend the lexer, and tell me when the tests pass";

/// A conversation and the time.
struct Scene {
    conversation: Conversation,
    now_ms: u64,
}

/// Returns the bytes of a conversation whose agents work.
pub(crate) fn working() -> Result<Vec<u8>, Failed> {
    let mut scene = Scene::new();
    scene.begins();
    scene.event(EventKind::CallStarted {
        call: "3".into(),
        tool: "Bash".into(),
        title: "cargo clippy".into(),
    });
    scene.event(EventKind::Output {
        call: "3".into(),
        text: "Checking lexer v0.1.0\nChecking parser v0.1.0\n".into(),
        skipped: 0,
    });
    scene.now_ms += 4_000;
    scene.types("and then the changelog");
    Ok(scene.bytes())
}

/// Returns the bytes of a conversation with a question.
pub(crate) fn asking() -> Result<Vec<u8>, Failed> {
    let mut scene = Scene::new();
    scene.begins();
    let waits = EventKind::State(Activity::Waiting(WaitReason::Person));
    scene.event_of(agent(3), waits);
    scene.event(EventKind::ApprovalRequested(Box::new(change())));
    scene.now_ms += SETTLE_MS;
    scene.types("and then the changelog");
    Ok(scene.bytes())
}

impl Scene {
    fn new() -> Self {
        let beginning = Beginning {
            main: agent(1),
            size: SIZE,
            model: MODEL.into(),
            mode: PermissionMode::Default,
            may_bypass: false,
            process: AgentProcess::This,
            directory: "~/parser".into(),
            history: Vec::new(),
            models: Vec::new(),
            keys: ConversationKeys::default(),
        };
        let now_ms = 10_000;
        Self {
            conversation: Conversation::new(beginning, now_ms),
            now_ms,
        }
    }

    /// Something was said and done, and others work.
    fn begins(&mut self) {
        self.event(EventKind::State(Activity::Working));
        let edit = json!({
            "file_path": "src/lexer.rs", "old_string": "let n = a - b;", "new_string": "let n = a + b;",
        });
        let calls = vec![
            ContentBlock::text("A sum is taken for a difference:"),
            call("1", "Edit", &edit),
            call("2", "Bash", &json!({"command": "cargo test"})),
        ];
        let results = vec![result("1", "ok"), result("2", "test result: ok. 12 passed")];
        let prompt = vec![ContentBlock::text(GOAL)];
        for entry in [
            entry(0, EntryKind::Prompt, prompt),
            entry(1, EntryKind::Reply, calls),
            entry(2, EntryKind::Results, results),
        ] {
            self.event(EventKind::Entry(Box::new(entry)));
        }
        self.event(EventKind::Delta(Delta::Text(
            "The tests pass now.\n\n**Numbers** with a sign had no test: I add one".into(),
        )));
        for (number, name, work) in [
            (2, "docs", "Look at the docs"),
            (3, "reviewer", "Review the lexer"),
        ] {
            self.event(started(number, name, work));
        }
        self.event(spending());
    }

    fn input(&mut self, input: Input) {
        // Nobody carries out what it wants.
        let _ = update(&mut self.conversation, input, self.now_ms);
    }

    fn event(&mut self, kind: EventKind) {
        self.event_of(agent(1), kind);
    }

    fn event_of(&mut self, agent: AgentId, kind: EventKind) {
        self.input(Input::Event(Event { agent, kind }));
    }

    fn types(&mut self, text: &str) {
        keys(text).for_each(|key| self.input(Input::Key(key)));
    }

    fn bytes(&mut self) -> Vec<u8> {
        let frame = view(&mut self.conversation, self.now_ms);
        InlineTerminal::new(Theme::ansi()).draw(frame, self.now_ms)
    }
}

/// Returns the event that a sub-agent has started.
fn started(number: u128, name: &str, work: &str) -> EventKind {
    let run = RunFacts {
        task: agent(number).uuid(),
        kind: RunKind::Agent,
        agent_type: "general-purpose".into(),
        name: name.parse().ok(),
        description: work.into(),
        call: String::new(),
        starter: agent(1),
        depth: 1,
        output_file: "/tmp/output".into(),
        place: None,
    };
    let what = RunChange::Started {
        prompt: String::new(),
        background: true,
    };
    EventKind::Run(Box::new(RunUpdate { run, what }))
}

fn spending() -> EventKind {
    let spent = vec![Spent {
        model: MODEL.into(),
        usage: Usage::default(),
        cost: Some(cents(42)),
    }];
    EventKind::Spending(Box::new(SpendingUpdate {
        own: spent.clone(),
        subtree: spent,
        left: Some(cents(958)),
        context_tokens: 68_000,
        context_window: Some(200_000),
    }))
}

/// Returns a question about a change of a file.
fn change() -> Question {
    use LineChange::{Added, Kept, Removed};
    let line = |(change, text): (LineChange, &str)| DiffLine {
        change,
        text: text.into(),
        is_open: false,
    };
    let lines = [
        (Kept, "#[test]"),
        (Removed, "fn numbers() {"),
        (Added, "fn numbers_with_signs() {"),
        (Added, "    assert_eq!(value(\"-2 + 3\"), Ok(1));"),
    ];
    Question {
        id: uuid::Uuid::from_u128(7).into(),
        kind: QuestionKind::Permission,
        call: "4".into(),
        tool: "Edit".into(),
        input: RawJson::from(&json!({"file_path": "tests/lexer.rs"})),
        why: "no rule allows it".into(),
        from: Some("reviewer".into()),
        until_ms: None,
        suggestions: vec![Suggestion {
            rules: vec!["Edit(tests/**)".into()],
        }],
        shown: Some(Display::Diff(FileDiff {
            path: "tests/lexer.rs".into(),
            is_new: false,
            added: 2,
            removed: 1,
            hunks: vec![Hunk {
                old_start: 40,
                new_start: 40,
                lines: lines.into_iter().map(line).collect(),
            }],
            left_out: 0,
        })),
        refused: None,
    }
}
