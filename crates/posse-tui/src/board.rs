//! A board of everybody at work, from one agent to ten thousand: agents, tasks, messages, costs,
//! questions and worktrees, each on a screen of its own.
//!
//! [`update`] changes the state by what happens and says what is to be done; [`view`] says what is on
//! the screen. Both are pure: time comes with each input, and what is shown is read by somebody else.

mod act;
mod action;
mod agents;
mod cursor;
mod facts;
mod key_actions;
mod keys;
mod layout;
mod line;
mod mouse;
mod peek;
mod questions;
mod review;
mod rows;
mod section;
mod tasks;
mod tree;
mod view;
mod worktrees;

use std::collections::HashMap;

use crossterm::event::{KeyEvent, MouseEvent};
use posse_protocol::{AcceptedRules, AgentId, Answer, Cost, Entry, ListId, QuestionId, TaskId};

use self::act::Confirm;
use self::agents::AgentList;
pub use self::facts::{
    BoardAgent, BoardMail, BoardQuestion, BoardReview, BoardTaskList, BoardWorktree, CostRow,
    ReviewFile, Scope, WorktreeChanges,
};
pub use self::key_actions::BoardKeys;
use self::line::FootLine;
use self::peek::PeekPane;
use self::questions::QuestionList;
use self::rows::RowList;
pub use self::section::Section;
use self::tasks::TaskLine;
pub use self::view::{BoardFrame, view};
use self::worktrees::WorktreeList;
use crate::conversation::Size;
use crate::text::one_line;

/// What happens to a board.
#[derive(Clone, Debug)]
pub enum BoardInput {
    /// A key is pressed.
    Key(KeyEvent),
    /// The mouse is used.
    Mouse(MouseEvent),
    /// Text is pasted.
    Paste(String),
    /// The terminal has this size.
    Size(Size),
    /// Agents have changed, come or gone. All others are as before.
    Agents {
        /// Those that have changed or come.
        changed: Vec<BoardAgent>,
        /// Those that are not on the board any more.
        gone: Vec<AgentId>,
    },
    /// What agents have cost, each with all below it; none if a price is not known.
    Spent(Vec<(AgentId, Option<Cost>)>),
    /// What everything on the board has cost.
    Total {
        /// The sum; none if a price is not known.
        cost: Option<Cost>,
        /// What is left of a budget, in words.
        budget: Option<String>,
    },
    /// All lists of tasks.
    Tasks(Vec<BoardTaskList>),
    /// The newest messages, newest first.
    Mail(Vec<BoardMail>),
    /// All questions that wait, oldest first.
    Questions(Vec<BoardQuestion>),
    /// What was spent, by agent, model and purpose.
    Costs(Vec<CostRow>),
    /// All worktrees.
    Worktrees(Vec<BoardWorktree>),
    /// How much differs in some of them.
    WorktreeChanges(Vec<(AgentId, WorktreeChanges)>),
    /// All that differs in the worktree of which [`BoardEffect::ReadReview`] was wanted.
    Review(Box<BoardReview>),
    /// The comments of the review have reached this agent.
    ReviewSent(AgentId),
    /// What would be lost with the worktree of an agent; none if nothing would.
    Loss {
        /// The agent.
        agent: AgentId,
        /// What would be lost, in a line.
        loss: Option<String>,
    },
    /// What an agent has said last, and says now.
    Peek {
        /// The agent.
        agent: AgentId,
        /// Its last entries.
        entries: Vec<Entry>,
        /// The part of its reply that has arrived since.
        arriving: String,
    },
    /// What the board is called now: a directory or a session.
    Title(String),
    /// A line for the person about something that the loop did.
    Notice(String),
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BoardEffect {
    /// The conversation with an agent is opened.
    Open(AgentId),
    /// What this agent says is wanted, as [`BoardInput::Peek`], and again whenever it says more.
    Peek(Option<AgentId>),
    /// The whole transcript of an agent is shown.
    Pager(AgentId),
    /// An agent's run is interrupted.
    Interrupt(AgentId),
    /// An agent and all below it are stopped.
    Stop(AgentId),
    /// An agent is told a person's words.
    Message(AgentId, String),
    /// A question is answered.
    Answer {
        /// Who asked.
        agent: AgentId,
        /// The question.
        question: QuestionId,
        /// The answer.
        answer: Answer,
    },
    /// Rules are kept for later sessions in the directory of this agent, or everywhere.
    KeepRules(AgentId, AcceptedRules),
    /// A task is added to a list.
    AddTask {
        /// The list.
        list: ListId,
        /// What is to be done.
        subject: String,
    },
    /// A task is deleted.
    DeleteTask {
        /// Its list.
        list: ListId,
        /// Its number.
        task: TaskId,
    },
    /// What differs in worktrees is wanted again.
    ReadWorktrees,
    /// All that differs in the worktree of this agent is wanted, as [`BoardInput::Review`].
    ReadReview(AgentId),
    /// An agent is told the comments of a review; [`BoardInput::ReviewSent`] if that is done.
    SendReview(AgentId, String),
    /// What would be lost with the worktree of this agent is wanted, as [`BoardInput::Loss`].
    ReadLoss(AgentId),
    /// A worktree is deleted.
    Discard {
        /// Whose it is.
        agent: AgentId,
        /// What the person was told would be lost.
        loss: Option<String>,
    },
    /// A file of a worktree is opened in the person's editor, or all of it.
    Edit {
        /// Whose it is.
        agent: AgentId,
        /// The file, from the top of the worktree.
        file: Option<String>,
    },
    /// Agents of other sessions are shown, too, or no longer.
    ChangeScope(Scope),
    /// The terminal is left to the shell for a while.
    Suspend,
    /// The board is left.
    Leave,
}

/// The screens of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardScreen {
    /// Agents.
    Agents,
    /// Tasks.
    Tasks,
    /// Messages.
    Mail,
    /// What was spent.
    Cost,
    /// Questions that wait.
    Questions,
    /// Worktrees of agents.
    Worktrees,
}

impl BoardScreen {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::Agents,
        Self::Tasks,
        Self::Mail,
        Self::Cost,
        Self::Questions,
        Self::Worktrees,
    ];

    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Tasks => "tasks",
            Self::Mail => "mail",
            Self::Cost => "cost",
            Self::Questions => "questions",
            Self::Worktrees => "worktrees",
        }
    }
}

/// What is known when a board begins.
pub struct BoardBeginning {
    /// The size of the terminal.
    pub size: Size,
    /// What the board is called: a directory or a session.
    pub title: String,
    /// Which agents are shown.
    pub scope: Scope,
    /// The screen that is shown first.
    pub screen: BoardScreen,
    /// Which keys do what.
    pub keys: BoardKeys,
}

/// The state of a board.
pub struct Board {
    size: Size,
    title: String,
    scope: Scope,
    screen: BoardScreen,
    agents: AgentList,
    tasks: RowList<TaskLine>,
    mail: RowList<BoardMail>,
    costs: RowList<CostRow>,
    questions: QuestionList,
    worktrees: WorktreeList,
    /// What everything has cost, and what is left.
    total: (Option<Cost>, Option<String>),
    /// The line at the foot that the person writes.
    line: Option<FootLine>,
    /// Messages that were begun and not sent.
    drafts: HashMap<AgentId, String>,
    /// Something that waits for a yes.
    confirm: Option<Confirm>,
    peek: PeekPane,
    /// True if the highlighted message or task has most of the screen.
    reads: bool,
    /// While all keys are shown, the number of the first.
    help: Option<usize>,
    /// A line that stays until the next key.
    notice: Option<String>,
    keys: BoardKeys,
}

impl Board {
    /// Begins a board without anybody.
    pub fn new(beginning: BoardBeginning) -> Self {
        Self {
            size: beginning.size,
            title: one_line(&beginning.title),
            scope: beginning.scope,
            screen: beginning.screen,
            agents: AgentList::new(),
            tasks: RowList::default(),
            mail: RowList::default(),
            costs: RowList::default(),
            questions: QuestionList::default(),
            worktrees: WorktreeList::default(),
            total: (None, None),
            line: None,
            drafts: HashMap::new(),
            confirm: None,
            peek: PeekPane::default(),
            reads: false,
            help: None,
            notice: None,
            keys: beginning.keys,
        }
    }

    /// Returns the screen that is shown: what others show need not be read.
    pub fn screen(&self) -> BoardScreen {
        self.screen
    }

    /// Returns which agents are shown.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Returns the agents that are on the screen: their costs are worth reading.
    pub fn visible_agents(&self) -> Vec<AgentId> {
        match self.screen {
            BoardScreen::Agents => layout::visible_agents(self),
            _ => Vec::new(),
        }
    }

    /// Returns the agents whose worktrees are on the screen: what differs there is worth reading.
    pub fn visible_worktrees(&self) -> Vec<AgentId> {
        match self.screen {
            BoardScreen::Worktrees => self.worktrees.visible(layout::list_height(self)),
            _ => Vec::new(),
        }
    }

    /// Returns true while something on the screen changes by time alone.
    pub fn is_moving(&self) -> bool {
        match self.screen {
            BoardScreen::Agents => {
                let visible = layout::visible_agents(self).into_iter();
                let rows = visible.filter_map(|agent| self.agents.tree.get(agent));
                rows.into_iter().any(|row| section::has_age(row.facts.sign))
            }
            BoardScreen::Questions => self.questions.count() > 0,
            _ => false,
        }
    }
}

/// Changes a board by what happens, and returns what is to be done.
pub fn update(board: &mut Board, input: BoardInput, now_ms: i64) -> Vec<BoardEffect> {
    let mut effects = match input {
        BoardInput::Key(key) => keys::pressed(board, key, now_ms),
        BoardInput::Mouse(event) => {
            mouse::moved(board, event, now_ms);
            Vec::new()
        }
        BoardInput::Paste(text) => keys::pasted(board, &text),
        input => {
            told(board, input, now_ms);
            Vec::new()
        }
    };
    effects = act::keep_comments(board, effects);
    layout::fit(board);
    let is_shown = board.screen == BoardScreen::Agents;
    let highlighted = board.agents.highlighted().filter(|_| is_shown);
    if let Some(wanted) = board.peek.turn_to(highlighted) {
        effects.push(BoardEffect::Peek(wanted));
    }
    effects
}

/// Notes what others say.
fn told(board: &mut Board, input: BoardInput, now_ms: i64) {
    match input {
        BoardInput::Key(_) | BoardInput::Mouse(_) | BoardInput::Paste(_) | BoardInput::Tick => {}
        BoardInput::Size(size) => board.size = size,
        BoardInput::Agents { changed, gone } => {
            board.agents.update(changed, &gone, now_ms);
            act::check_confirm(board, now_ms);
        }
        BoardInput::Spent(spent) => board.agents.tree.spent(spent),
        BoardInput::Total { cost, budget } => {
            board.total = (cost, budget.map(|budget| one_line(&budget)));
        }
        BoardInput::Tasks(lists) => board.tasks.set(tasks::lines(lists)),
        BoardInput::Mail(mail) => board.mail.set(mail),
        BoardInput::Questions(questions) => {
            if let Some((agent, words)) = board.questions.set(questions, now_ms) {
                act::withdrawn(board, agent, words, now_ms);
            }
        }
        BoardInput::Costs(costs) => board.costs.set(costs),
        BoardInput::Worktrees(worktrees) => board.worktrees.set(worktrees),
        BoardInput::WorktreeChanges(changes) => board.worktrees.set_changes(changes),
        BoardInput::Review(review) => act::show_review(board, *review),
        BoardInput::ReviewSent(agent) => board.worktrees.sent(agent),
        BoardInput::Loss { agent, loss } => act::ask_discard(board, agent, loss, now_ms),
        BoardInput::Peek {
            agent,
            entries,
            arriving,
        } => board.peek.set(agent, entries, arriving),
        BoardInput::Title(title) => board.title = one_line(&title),
        BoardInput::Notice(text) => board.notice = Some(one_line(&text)),
    }
}

#[cfg(test)]
mod tests;
