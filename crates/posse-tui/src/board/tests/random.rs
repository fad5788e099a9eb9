//! Random keys, news, sizes and times: what holds after each of them.

mod comments;

use std::collections::HashMap;

use posse_protocol::{Answer, Question, QuestionId, QuestionKind, Suggestion};
use proptest::prelude::*;
use proptest::sample::select;

use self::comments::WrittenComments;
use super::*;
use crate::fixtures;

/// Number of inputs of a board.
const STEPS: usize = 300;

/// A board, another one that is told the same, and what a stranger knows about both.
struct Twins {
    desk: Desk,
    twin: Desk,
    /// The questions that were told last, each with who asks.
    asked: HashMap<QuestionId, AgentId>,
    /// The question under the cursor while it is on the screen, and since when.
    seen: Option<(Question, i64)>,
    /// True if the agent that is asked about may have changed under a yes.
    confirmed: Option<(AgentId, (usize, usize), i64)>,
    /// The last message that the comments of a review became.
    sent: String,
}

impl Twins {
    fn new() -> Self {
        Self {
            desk: Desk::new(80, 24),
            twin: Desk::new(80, 24),
            asked: HashMap::new(),
            seen: None,
            confirmed: None,
            sent: String::new(),
        }
    }

    fn step(&mut self, after_ms: i64, input: &BoardInput, is_drawn: bool) {
        self.desk.wait(after_ms);
        self.twin.wait(after_ms);
        if let BoardInput::Questions(questions) = input {
            let asked = questions.iter().map(|it| (it.question.id, it.agent));
            self.asked = asked.collect();
        }
        let was_open = self.desk.board.questions.is_open();
        let written = WrittenComments::of(&self.desk.board);
        let typed = self
            .desk
            .board
            .line
            .as_ref()
            .map(|line| line.text.expanded());
        let effects = self.desk.input(input.clone());
        assert_eq!(effects, self.twin.input(input.clone()), "{input:?}");
        for effect in &effects {
            self.check_effect(input, effect, was_open, typed.as_deref());
        }
        written.check(input, &self.sent, &self.desk.board);
        self.note();
        self.check_cursor();
        if is_drawn {
            self.check_frame();
        }
    }

    /// Notes what is on the screen now.
    fn note(&mut self) {
        let board = &self.desk.board;
        let is_shown = board.screen == BoardScreen::Questions;
        let question = board.questions.highlighted().filter(|_| is_shown);
        let question = question.map(|it| it.dialog.question().clone());
        let since = self.seen.take();
        self.seen = question.map(|question| match since {
            Some((known, at)) if known == question => (question, at),
            _ => (question, self.desk.now_ms),
        });
        let confirm = match &board.confirm {
            Some(Confirm::Stop { agent, below, .. }) => Some((*agent, *below)),
            _ => None,
        };
        let since = self.confirmed.take();
        self.confirmed = confirm.map(|(agent, below)| match since {
            Some((old, known, at)) if (old, known) == (agent, below) => (agent, below, at),
            Some((old, ..)) if old == agent => (agent, below, self.desk.now_ms),
            _ => (agent, below, i64::MIN),
        });
    }

    fn check_effect(
        &mut self,
        input: &BoardInput,
        effect: &BoardEffect,
        was_open: bool,
        typed: Option<&str>,
    ) {
        let now_ms = self.desk.now_ms;
        let key = match input {
            BoardInput::Key(key) => Some(*key),
            _ => None,
        };
        match effect {
            BoardEffect::Answer {
                agent,
                question,
                answer,
            } => {
                let (seen, since_ms) = self.seen.take().unwrap();
                assert_eq!(seen.id, *question, "it is the one on the screen");
                assert_eq!(self.asked.remove(question), Some(*agent), "once");
                assert!(now_ms - since_ms >= SETTLE_MS as i64, "it was seen");
                let key = key.expect("a key answers");
                let is_chord = key.modifiers.contains(KeyModifiers::ALT);
                let is_typed = typed.is_some_and(|words| words.trim().contains(' '));
                assert!(was_open || is_chord || is_typed, "{key:?}");
                let is_permission = seen.kind == QuestionKind::Permission;
                let is_allowed = matches!(answer, Answer::Allow { .. });
                if is_permission && is_allowed && !is_typed {
                    assert_ne!(key.code, KeyCode::Enter, "Enter allows nothing");
                }
            }
            BoardEffect::Stop(agent) => {
                let (asked, _, since_ms) = self.confirmed.take().unwrap();
                assert_eq!(asked, *agent, "it was named");
                assert!(now_ms.saturating_sub(since_ms) >= SETTLE_MS as i64);
                assert_eq!(key, Some(named("y")));
            }
            BoardEffect::Interrupt(agent) => {
                assert_eq!(self.desk.board.agents.highlighted(), Some(*agent));
            }
            BoardEffect::Peek(Some(agent)) => {
                assert_eq!(self.desk.board.agents.highlighted(), Some(*agent));
            }
            BoardEffect::Peek(None) => {}
            BoardEffect::SendReview(_, message) => {
                assert!(key.is_some(), "sent by {input:?}");
                self.sent = message.clone();
            }
            _ => assert!(key.is_some(), "{effect:?} by {input:?}"),
        }
    }

    fn check_cursor(&self) {
        let board = &self.desk.board;
        let cursor = board.agents.cursor();
        assert_eq!(cursor.key().copied(), board.agents.line(cursor.at()));
        let is_there = |key: bool, count: usize| assert_eq!(key, count > 0);
        is_there(
            board.tasks.cursor().key().is_some(),
            board.tasks.rows().len(),
        );
        is_there(board.mail.cursor().key().is_some(), board.mail.rows().len());
        let worktrees = &board.worktrees.list;
        is_there(worktrees.cursor().key().is_some(), worktrees.rows().len());
        if let Some(review) = &board.worktrees.review {
            let row = review.rows().get(review.cursor().at());
            assert_eq!(review.cursor().key(), row);
        }
        is_there(
            board.questions.cursor().key().is_some(),
            board.questions.count(),
        );
        assert!(board.questions.highlighted().is_some() || board.questions.count() == 0);
        assert!(!board.questions.is_open() || board.screen == BoardScreen::Questions);
    }

    fn check_frame(&mut self) {
        let frame = self.desk.frame();
        let area = frame.cells.area;
        assert_eq!(area.height, self.desk.board.size.rows.max(1));
        if let Some(caret) = frame.caret {
            assert!(caret.x < area.width && caret.y < area.height, "{caret}");
        }
        let text: String = frame.cells.content.iter().map(Cell::symbol).collect();
        assert!(!text.contains(char::is_control), "{text:?}");
        let twin = self.twin.frame();
        assert!(frame.cells == twin.cells && frame.caret == twin.caret);
        // An open question is seen before it can be answered.
        if self.desk.board.questions.is_open() && area.height >= 5 && area.width >= 20 {
            let asker = self
                .desk
                .board
                .questions
                .highlighted()
                .unwrap()
                .dialog
                .agent;
            let name = act::name(&self.desk.board, asker);
            let part: String = name.chars().take(5).collect();
            assert!(text.contains(&part), "{text}");
        }
    }
}

fn worktree_news() -> impl Strategy<Value = BoardInput> {
    let agents = || (1..4u128).prop_map(agent);
    let listed = prop::collection::vec(agents(), 0..4).prop_map(|mut agents| {
        agents.dedup();
        let worktree = |agent| BoardWorktree {
            agent,
            branch: "posse/x".into(),
            base: "3f2a".into(),
            is_live: true,
        };
        BoardInput::Worktrees(agents.into_iter().map(worktree).collect())
    });
    let review = (agents(), 0..4usize).prop_map(|(agent, files)| {
        let mut review = worktrees::review();
        review.agent = agent;
        review.files.truncate(files);
        BoardInput::Review(Box::new(review))
    });
    let loss = agents().prop_map(|agent| BoardInput::Loss { agent, loss: None });
    prop_oneof![
        4 => listed,
        8 => review,
        1 => loss,
        1 => agents().prop_map(BoardInput::ReviewSent),
    ]
}

fn input(keys: u32) -> impl Strategy<Value = BoardInput> {
    let size = prop_oneof![(1..200u16, 1..60u16), (1..9u16, 1..9u16), Just((80, 24))];
    let size = size.prop_map(|(columns, rows)| BoardInput::Size(Size { columns, rows }));
    let gone = prop::collection::vec((1..20u128).prop_map(agent), 0..3);
    let agents = (prop::collection::vec(facts(), 0..6), gone)
        .prop_map(|(changed, gone)| BoardInput::Agents { changed, gone });
    let peek = ((1..20u128).prop_map(agent), text()).prop_map(|(agent, arriving)| {
        let entries = Vec::new();
        BoardInput::Peek {
            agent,
            entries,
            arriving,
        }
    });
    prop_oneof![
        keys => keys_of_all_kinds().prop_map(BoardInput::Key),
        6 => agents,
        4 => prop::collection::vec(asked(), 0..4).prop_map(BoardInput::Questions),
        1 => size,
        1 => peek,
        1 => tasks(),
        6 => worktree_news(),
        1 => text().prop_map(BoardInput::Paste),
        1 => text().prop_map(BoardInput::Notice),
        1 => text().prop_map(BoardInput::Title),
        1 => Just(BoardInput::Tick),
    ]
}

fn keys_of_all_kinds() -> impl Strategy<Value = KeyEvent> {
    const NAMES: &str = "Enter Enter Tab Esc Ctrl-c Up Down Down PageUp PageDown Home End Backspace \
        Alt-y Alt-y Alt-n Alt-a 5 5 5 6 6 c c N 1 2 3 4 y y n a x x i m / : p s o q Space ? r 1 d e b g G Ctrl-o";
    let name = select(
        NAMES
            .split(' ')
            .filter(|name| !name.is_empty())
            .collect::<Vec<_>>(),
    );
    let other = any::<char>().prop_map(|letter| key(KeyCode::Char(letter)));
    prop_oneof![12 => name.prop_map(named), 1 => other]
}

fn text() -> impl Strategy<Value = String> {
    let parts = vec![
        "word ",
        "answer y",
        "stop",
        "\n",
        "漢字",
        "\u{1b}[2J",
        "\u{202e}",
        "e\u{301}",
        "\t",
        "scope store",
    ];
    prop::collection::vec(select(parts), 0..4).prop_map(|parts| parts.concat())
}

fn facts() -> impl Strategy<Value = BoardAgent> {
    let signs = vec![
        Sign::Working,
        Sign::Asks,
        Sign::Idle,
        Sign::Done,
        Sign::Failed,
    ];
    (1..20u128, 0..20u128, select(signs), text()).prop_map(|(number, parent, sign, words)| {
        let mut facts = at_work(number, &format!("agent-{number}"), sign);
        facts.parent = (parent > 0).then(|| agent(parent));
        facts.doing = words;
        facts
    })
}

fn asked() -> impl Strategy<Value = BoardQuestion> {
    let kinds = vec![
        QuestionKind::Permission,
        QuestionKind::Permission,
        QuestionKind::Plan,
        QuestionKind::Choice,
    ];
    (1..6u128, select(kinds), any::<bool>()).prop_map(|(number, kind, has_rules)| {
        let option = |label: &str| serde_json::json!({"label": label, "description": "d"});
        let input = serde_json::json!({"command": "ls", "plan": "a plan", "questions": [
            {"question": "Which?", "header": "Kind", "options": [option("Red"), option("Blue")]},
        ]});
        let suggestion = Suggestion {
            rules: vec!["Bash(ls *)".into()],
        };
        BoardQuestion {
            agent: agent(number),
            session: agent(1),
            question: Question {
                kind,
                input: posse_protocol::RawJson::from(&input),
                suggestions: has_rules.then_some(suggestion).into_iter().collect(),
                ..fixtures::question(&format!("{number}"))
            },
            asked_ms: 0,
        }
    })
}

fn tasks() -> impl Strategy<Value = BoardInput> {
    (0..3u64, 0..5u64).prop_map(|(lists, tasks)| {
        let list = |number| BoardTaskList {
            list: ListId {
                realm: uuid::Uuid::from_u128(u128::from(number)).into(),
                team: None,
            },
            label: "list".into(),
            tasks: (0..tasks).map(task).collect(),
        };
        BoardInput::Tasks((0..lists).map(list).collect())
    })
}

fn task(number: u64) -> posse_protocol::Task {
    posse_protocol::Task {
        id: TaskId(number),
        subject: "work".into(),
        description: String::new(),
        active_form: None,
        status: posse_protocol::TaskStatus::Pending,
        owner: None,
        lost_by: None,
        blocked_by: vec![TaskId((number + 1) % 4)],
        waits_for: Vec::new(),
        blocks: Vec::new(),
        created_ms: 0,
        updated_ms: 0,
        role: None,
        check: None,
        metadata: Default::default(),
        version: 1,
    }
}

fn holds(steps: &[(i64, BoardInput, u8)]) {
    let mut twins = Twins::new();
    for (after_ms, input, drawn) in steps {
        // Drawing takes most of the time.
        twins.step(*after_ms, input, *drawn == 0);
    }
}

fn steps(keys: u32) -> impl Strategy<Value = Vec<(i64, BoardInput, u8)>> {
    prop::collection::vec((0..700i64, input(keys), 0..12u8), STEPS)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    // proves UI-04 (part: any keys)
    #[test]
    fn everything_holds_after_any_keys(steps in steps(40)) {
        holds(&steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    #[ignore = "takes an hour"]
    fn everything_holds_for_long(steps in steps(30)) {
        holds(&steps);
    }
}
