//! What actions do, whether a key was pressed or a name was typed.

mod confirm;
mod worktrees;

use posse_protocol::{AgentId, Answer, RuleScope};

pub(super) use self::confirm::{Confirm, check_confirm, confirmed};
pub(super) use self::worktrees::{ask_discard, asked_about_worktrees, keep_comments, show_review};

use super::action::Action;
use super::agents::AgentLine;
use super::cursor::ListCursor;
use super::layout::list_height;
use super::line::{FootLine, LineUse};
use super::tasks::TaskLine;
use super::{Board, BoardEffect, BoardScreen, Scope, Section};
use crate::conversation::SETTLE_MS;
use crate::question::Typing;
use crate::text::one_line;

/// Does what an action stands for. `argument` is what was typed after its name.
pub(super) fn run(it: &mut Board, action: Action, argument: &str, now_ms: i64) -> Vec<BoardEffect> {
    match action {
        Action::Open => return open(it, now_ms),
        Action::Pager => return to_agent(it, now_ms, |agent| vec![BoardEffect::Pager(agent)]),
        Action::Interrupt => {
            if only_on_agents(it) {
                return to_agent(it, now_ms, |agent| vec![BoardEffect::Interrupt(agent)]);
            }
        }
        Action::Message => return message(it, argument, now_ms),
        Action::Stop => confirm::stop(it, now_ms),
        Action::Peek => peek(it),
        Action::Answer if !argument.is_empty() => return answer(it, argument, now_ms),
        Action::Answer => go_to_question(it, now_ms),
        Action::Yes | Action::No | Action::Always => return by_chord(it, action, now_ms),
        Action::NextAsking => next_asking(it),
        Action::Filter => filter(it, argument),
        Action::Scope => return scope(it, argument),
        Action::Fold => fold(it),
        Action::AddTask => return add_task(it, argument),
        Action::DeleteTask => confirm::delete_task(it),
        Action::Worktree(action) => return worktrees::run(it, action, argument),
        Action::Show(screen) => show(it, screen, now_ms),
        Action::NextScreen => show(it, beside(it.screen, 1), now_ms),
        Action::PreviousScreen => {
            show(it, beside(it.screen, BoardScreen::ALL.len() - 1), now_ms);
        }
        Action::Up | Action::Down | Action::PageUp | Action::PageDown => step(it, action, now_ms),
        Action::Top => go(it, 0, now_ms),
        Action::Bottom => go(it, usize::MAX, now_ms),
        Action::Palette => it.line = Some(FootLine::new(LineUse::Palette, "")),
        Action::Help => it.help = Some(0),
        Action::Suspend => return vec![BoardEffect::Suspend],
        Action::Leave => return vec![BoardEffect::Leave],
    }
    Vec::new()
}

/// Returns the agent that the highlighted line is about.
pub(super) fn target(it: &Board) -> Option<AgentId> {
    match it.screen {
        BoardScreen::Agents => it.agents.highlighted(),
        BoardScreen::Tasks => {
            let task = it.tasks.highlighted().and_then(TaskLine::task);
            task.and_then(|task| task.owner.as_ref()?.agent)
        }
        BoardScreen::Mail => it.mail.highlighted().map(|mail| match &mail.from {
            posse_protocol::Sender::Agent { id, .. } => *id,
            posse_protocol::Sender::User => mail.to,
        }),
        BoardScreen::Cost => it.costs.highlighted().map(|row| row.agent),
        BoardScreen::Questions => it.questions.highlighted().map(|it| it.dialog.agent),
        BoardScreen::Worktrees => it.worktrees.target(),
    }
}

/// Returns what an agent is called, safe to show.
pub(super) fn name(it: &Board, agent: AgentId) -> String {
    if let Some(row) = it.agents.tree.get(agent) {
        return row.facts.name.clone();
    }
    let mail = it.mail.rows().iter().find_map(|mail| match &mail.from {
        posse_protocol::Sender::Agent { id, name } if *id == agent => Some(name),
        _ => (mail.to == agent).then_some(&mail.to_name),
    });
    mail.map_or_else(|| agent.to_string(), |name| one_line(name))
}

/// Does something with the agent that the highlighted line is about.
fn to_agent(
    it: &mut Board,
    now_ms: i64,
    act: impl FnOnce(AgentId) -> Vec<BoardEffect>,
) -> Vec<BoardEffect> {
    if was_lost(it, now_ms) {
        return Vec::new();
    }
    match target(it) {
        Some(agent) => act(agent),
        None => {
            it.notice = Some("no agent is highlighted".to_owned());
            Vec::new()
        }
    }
}

/// Returns true, and says so, if the highlighted agent has only just vanished: the key was meant for
/// that one.
fn was_lost(it: &mut Board, now_ms: i64) -> bool {
    let lost = it
        .agents
        .lost()
        .filter(|_| it.screen == BoardScreen::Agents);
    let lost = lost.filter(|(_, at)| now_ms.saturating_sub(*at) < SETTLE_MS as i64);
    let notice = lost.map(|(name, _)| format!("{name} has just gone from the board"));
    let was_lost = notice.is_some();
    it.notice = notice.or(it.notice.take());
    was_lost
}

fn only_on_agents(it: &mut Board) -> bool {
    let is_there = it.screen == BoardScreen::Agents;
    if !is_there {
        it.notice = Some("choose an agent on screen 1 first".to_owned());
    }
    is_there
}

fn open(it: &mut Board, now_ms: i64) -> Vec<BoardEffect> {
    match it.screen {
        BoardScreen::Agents if it.agents.highlighted().is_none() => fold(it),
        BoardScreen::Agents | BoardScreen::Cost => {
            return to_agent(it, now_ms, |agent| vec![BoardEffect::Open(agent)]);
        }
        BoardScreen::Tasks | BoardScreen::Mail => it.reads = !it.reads,
        BoardScreen::Questions => {
            if !it.questions.open(now_ms) && it.questions.count() > 0 {
                it.notice = Some(TOO_SOON.to_owned());
            }
        }
        BoardScreen::Worktrees => return worktrees::open(it),
    }
    Vec::new()
}

/// What is said if a question has only just come under the cursor.
const TOO_SOON: &str = "the question has only just come: look at it first";

fn message(it: &mut Board, words: &str, now_ms: i64) -> Vec<BoardEffect> {
    let words = words.to_owned();
    let effects = to_agent(it, now_ms, |agent| vec![BoardEffect::Message(agent, words)]);
    match effects.first() {
        Some(BoardEffect::Message(agent, words)) if words.is_empty() => {
            let purpose = LineUse::Message(*agent, name(it, *agent));
            let begun = it.drafts.remove(agent).unwrap_or_default();
            it.line = Some(FootLine::new(purpose, &begun));
            Vec::new()
        }
        _ => effects,
    }
}

fn peek(it: &mut Board) {
    if only_on_agents(it) {
        it.peek.is_open = !it.peek.is_open;
    }
}

/// Shows the question of the highlighted agent.
fn go_to_question(it: &mut Board, now_ms: i64) {
    if it.screen == BoardScreen::Questions {
        open(it, now_ms);
        return;
    }
    let asked = target(it).and_then(|agent| it.questions.of(agent));
    match asked {
        Some(number) => {
            show(it, BoardScreen::Questions, now_ms);
            it.questions.go(number, list_height(it), now_ms);
        }
        None => it.notice = Some("no question of this agent waits".to_owned()),
    }
}

/// Answers the highlighted question with a word.
pub(super) fn by_chord(it: &mut Board, action: Action, now_ms: i64) -> Vec<BoardEffect> {
    let highlighted = it.questions.highlighted();
    if highlighted.is_some_and(|question| question.dialog.typing() != Typing::Key) {
        // Its options must be seen to be chosen.
        return open(it, now_ms);
    }
    let word = action.answer().map(String::from).unwrap_or_default();
    answer(it, &word, now_ms)
}

/// Tells the highlighted question something, and carries out its answer.
pub(super) fn answer(it: &mut Board, words: &str, now_ms: i64) -> Vec<BoardEffect> {
    if it.screen != BoardScreen::Questions {
        it.notice = Some("choose a question on screen 5 first".to_owned());
        return Vec::new();
    }
    if it.questions.count() == 0 {
        it.notice = Some("no question waits".to_owned());
        return Vec::new();
    }
    if !it.questions.is_settled(now_ms) {
        it.notice = Some(TOO_SOON.to_owned());
        return Vec::new();
    }
    let Some((agent, question, answer)) = it.questions.tell(words, now_ms) else {
        // More is asked: it must be seen.
        it.questions.open(now_ms);
        return Vec::new();
    };
    let mut effects = Vec::new();
    if let Answer::Allow {
        always: Some(rules),
        ..
    } = &answer
        && rules.scope != RuleScope::Session
    {
        effects.push(BoardEffect::KeepRules(agent, rules.clone()));
    }
    effects.push(BoardEffect::Answer {
        agent,
        question,
        answer,
    });
    effects
}

/// A question that the person had opened is gone. What was written to it becomes a message.
pub(super) fn withdrawn(it: &mut Board, agent: AgentId, words: String, now_ms: i64) {
    it.notice = Some("the question needs no answer any more".to_owned());
    if !words.trim().is_empty() && it.line.is_none() {
        let purpose = LineUse::Message(agent, name(it, agent));
        let mut line = FootLine::new(purpose, &words);
        line.appeared_ms = Some(now_ms);
        it.line = Some(line);
    }
}

/// Highlights the next agent that needs the person.
fn next_asking(it: &mut Board) {
    if !only_on_agents(it) {
        return;
    }
    let rows = it.agents.tree.rows(Section::NeedsYou).shown();
    let ids: Vec<AgentId> = rows.iter().filter_map(super::section::agent_of).collect();
    let highlighted = it.agents.highlighted();
    let at = ids.iter().position(|id| Some(*id) == highlighted);
    let next = at.map_or(0, |at| at + 1) % ids.len().max(1);
    match ids.get(next) {
        Some(agent) => {
            let height = list_height(it);
            it.agents.highlight(Some(AgentLine::Agent(*agent)), height);
        }
        None => it.notice = Some("nobody needs you".to_owned()),
    }
}

fn filter(it: &mut Board, words: &str) {
    if !only_on_agents(it) {
        return;
    }
    if words.is_empty() {
        let before = it.agents.tree.filter().to_owned();
        it.line = Some(FootLine::new(LineUse::Filter, &before));
    } else {
        it.agents.set_filter(words);
    }
}

fn scope(it: &mut Board, word: &str) -> Vec<BoardEffect> {
    let named = Scope::ALL.into_iter().find(|scope| scope.as_str() == word);
    let scope = match (named, word) {
        (Some(scope), _) => scope,
        (None, "") => it.scope.next(),
        (None, _) => {
            it.notice = Some("a scope is session, directory or store".to_owned());
            return Vec::new();
        }
    };
    it.scope = scope;
    vec![BoardEffect::ChangeScope(scope)]
}

fn fold(it: &mut Board) {
    if !only_on_agents(it) {
        return;
    }
    if !it.agents.tree.filter().is_empty() {
        it.notice = Some("nothing is folded while a filter is set".to_owned());
        return;
    }
    if let Some(section) = it.agents.highlighted_section() {
        let height = list_height(it);
        it.agents.fold(section, height);
    }
}

fn add_task(it: &mut Board, subject: &str) -> Vec<BoardEffect> {
    let line = it.tasks.highlighted();
    let Some(list) = line.map(|line| line.list().clone()) else {
        it.notice = Some("there is no list of tasks".to_owned());
        return Vec::new();
    };
    if subject.is_empty() {
        it.line = Some(FootLine::new(LineUse::NewTask(list), ""));
        return Vec::new();
    }
    let subject = subject.to_owned();
    vec![BoardEffect::AddTask { list, subject }]
}

/// Shows another screen.
pub(super) fn show(it: &mut Board, screen: BoardScreen, now_ms: i64) {
    if it.screen != screen {
        it.reads = false;
        it.screen = screen;
        it.questions.look(now_ms);
    }
}

fn beside(screen: BoardScreen, steps: usize) -> BoardScreen {
    let all = BoardScreen::ALL;
    let at = all.iter().position(|other| *other == screen);
    let next = (at.unwrap_or_default() + steps) % all.len();
    all.get(next).copied().unwrap_or(screen)
}

/// Returns the numbers of the highlighted line and of the first one on the screen.
fn place(it: &Board) -> (usize, usize) {
    fn of<K: Clone + PartialEq>(cursor: &ListCursor<K>) -> (usize, usize) {
        (cursor.at(), cursor.offset())
    }
    match it.screen {
        BoardScreen::Agents => of(it.agents.cursor()),
        BoardScreen::Tasks => of(it.tasks.cursor()),
        BoardScreen::Mail => of(it.mail.cursor()),
        BoardScreen::Cost => of(it.costs.cursor()),
        BoardScreen::Questions => of(it.questions.cursor()),
        BoardScreen::Worktrees => it.worktrees.place(),
    }
}

/// Goes up or down by some lines.
pub(super) fn scroll(it: &mut Board, lines: usize, down: bool, now_ms: i64) {
    let (at, _) = place(it);
    let to = match down {
        true => at.saturating_add(lines),
        false => at.saturating_sub(lines),
    };
    go(it, to, now_ms);
}

/// Returns the number of the line on a row of the list, if there is one.
pub(super) fn line_at(it: &Board, row: usize) -> Option<usize> {
    let count = match it.screen {
        BoardScreen::Agents => it.agents.lines(),
        BoardScreen::Tasks => it.tasks.rows().len(),
        BoardScreen::Mail => it.mail.rows().len(),
        BoardScreen::Cost => it.costs.rows().len(),
        BoardScreen::Questions => it.questions.count(),
        BoardScreen::Worktrees => it.worktrees.lines(),
    };
    let (_, first) = place(it);
    Some(first + row).filter(|number| *number < count)
}

/// Goes up or down by a line or a screen.
fn step(it: &mut Board, action: Action, now_ms: i64) {
    let (at, _) = place(it);
    let page = list_height(it).saturating_sub(1).max(1);
    let to = match action {
        Action::Up => at.saturating_sub(1),
        Action::PageUp => at.saturating_sub(page),
        Action::PageDown => at.saturating_add(page),
        _ => at.saturating_add(1),
    };
    go(it, to, now_ms);
}

/// Highlights a line by its number, or the last one.
pub(super) fn go(it: &mut Board, number: usize, now_ms: i64) {
    let height = list_height(it);
    match it.screen {
        BoardScreen::Agents => it.agents.go(number, height),
        BoardScreen::Tasks => it.tasks.go(number, height),
        BoardScreen::Mail => it.mail.go(number, height),
        BoardScreen::Cost => it.costs.go(number, height),
        BoardScreen::Questions => it.questions.go(number, height, now_ms),
        BoardScreen::Worktrees => it.worktrees.go(number, height),
    }
}
