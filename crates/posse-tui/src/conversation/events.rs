//! What agents do, as the person sees it.

use posse_protocol::{
    AgentId, Command, Delta, Display, Entry, EntryKind, Event, EventKind, HookUpdate, Limit,
    ListKind, Listing, ModelUpdate, Outcome, PromptChange, QueuedPrompt, RunEnd,
};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::agents::Sign;
use super::view::elapsed;
use super::{Conversation, Effect, RunningHook, drafts, transcript};
use crate::text::{grouped, one_line, wrap};
use crate::theme::ColorRole;

/// Handles an event of any agent of the session.
pub(super) fn happened(it: &mut Conversation, event: Event, now_ms: u64) -> Vec<Effect> {
    let is_shown = event.agent == it.shown.agent;
    match event.kind {
        EventKind::ApprovalRequested(question) => {
            if let Some(Display::Diff(change)) = question.shown.as_ref().filter(|_| is_shown) {
                let calls = &mut it.shown.calls;
                calls.previewed(&question.call, &question.tool, change);
            }
            if it.questions.ask(event.agent, *question, now_ms) {
                it.alerts.question();
            }
        }
        EventKind::ApprovalWithdrawn { question } => {
            if let Some(words) = it.questions.withdraw(question, now_ms) {
                it.notice = Some("a question needs no answer any more".to_owned());
                if !words.trim().is_empty() {
                    it.say(&format!("not sent, since the question is gone: {words}"));
                }
            }
        }
        EventKind::Run(update) => {
            it.terms.run(&update);
            if let Some((sign, line)) = it.others.run(&update) {
                mark(it, sign, &line);
            }
        }
        EventKind::Member(update) => {
            it.terms.member(event.agent, &update);
            it.others.member(event.agent, &update);
        }
        EventKind::Mode(mode) => it.terms.mode(event.agent, mode),
        EventKind::Model(update) => {
            it.terms.model(event.agent, &update);
            if is_shown {
                say_model(it, &update);
            }
        }
        EventKind::State(activity) if !is_shown => it.others.state(event.agent, activity),
        EventKind::CallStarted { title, .. } if !is_shown => it.others.calls(event.agent, &title),
        EventKind::Listed(listing) => listed(it, &listing),
        EventKind::Warning(text) => mark(it, Sign::Failed, &text),
        EventKind::Hook(hook) => {
            if is_shown {
                note_hook(it, &hook, now_ms);
            }
            hook_ran(it, &hook);
        }
        EventKind::Noted { file, line } => it.say(&format!("noted in {file}: {line}")),
        EventKind::Aside(aside) => {
            let answer = aside.answer.or(aside.error).unwrap_or_default();
            it.say(&format!("{}\n{answer}", aside.question));
        }
        kind if is_shown => return shown(it, kind, now_ms),
        _ => {}
    }
    Vec::new()
}

/// Notes that a hook runs, or that it has ended.
fn note_hook(it: &mut Conversation, hook: &HookUpdate, now_ms: u64) {
    let hooks = &mut it.shown.hooks;
    match hook.end {
        Some(_) => hooks.retain(|known| known.id != hook.id),
        None => hooks.push(RunningHook {
            id: hook.id,
            title: hook.title.clone(),
            since_ms: now_ms,
        }),
    }
}

/// Shows a hook that has something against what happens. What fails is warned of in any case.
fn hook_ran(it: &mut Conversation, hook: &HookUpdate) {
    let Some(end) = hook.end.as_ref().filter(|end| end.code == Some(2)) else {
        return;
    };
    let about = match hook.about.as_str() {
        "" => String::new(),
        about => format!(" of {about}"),
    };
    let why = end.errors.trim();
    mark(
        it,
        Sign::Failed,
        &format!("{} hook{about}: {why}", hook.event),
    );
}

/// Handles an event of the agent that is shown.
fn shown(it: &mut Conversation, kind: EventKind, now_ms: u64) -> Vec<Effect> {
    let width = it.width();
    match kind {
        EventKind::Delta(delta) => {
            it.shown.retry = None;
            if !matches!(delta, Delta::Thinking(_)) {
                thought(it, now_ms);
            }
            if let Delta::Thinking(text) = &delta
                && it.shown.reply.takes_thinking()
            {
                it.shown.thinking.add(text, now_ms);
            }
            let lines = it.shown.reply.delta(&delta, width);
            it.printed.extend(lines);
        }
        EventKind::Entry(new) => {
            thought(it, now_ms);
            if new.seq + 1 >= it.shown.next {
                it.shown.reply.catch_up();
            }
            entry(it, &new);
        }
        EventKind::Retry(retry) => {
            it.shown.reply.cut_off();
            it.shown.thinking.cut_off();
            let wait = retry.wait_ms.div_ceil(1000);
            let what = one_line(&retry.fault.message);
            it.shown.retry = Some(format!("again in {wait} s: {what}"));
        }
        EventKind::CallStarted { call, tool, title } => {
            it.shown.calls.started(&call, &tool, &title, now_ms);
        }
        EventKind::Output { call, text, .. } => it.shown.calls.printed(&call, &text),
        EventKind::CallDone { call, .. } => it.shown.calls.done(&call),
        EventKind::Denied(denial) => {
            mark(
                it,
                Sign::Failed,
                &format!("{} was denied: {}", denial.tool, denial.why),
            );
        }
        EventKind::Compacting { tokens, .. } => {
            it.say(&format!(
                "summarising {} tokens of conversation …",
                grouped(tokens)
            ));
        }
        EventKind::State(activity) => {
            let was_working = it.is_working();
            it.shown.activity = activity;
            if it.is_working() != was_working {
                let took_ms = now_ms.saturating_sub(it.shown.since_ms);
                if was_working {
                    it.alerts.run_over(took_ms);
                }
                it.shown.since_ms = now_ms;
            }
        }
        EventKind::Spending(update) => it.shown.spending = *update,
        EventKind::Queue(queue) => return queued(it, queue),
        EventKind::Ended(end) => {
            thought(it, now_ms);
            ended(it, &end);
        }
        _ => {}
    }
    Vec::new()
}

/// An entry is in the transcript: prints it, unless it is printed.
pub(super) fn entry(it: &mut Conversation, entry: &Entry) {
    if entry.seq >= it.shown.next {
        it.shown.next = entry.seq + 1;
        print(it, entry);
    }
}

/// Prints an entry.
pub(super) fn print(it: &mut Conversation, entry: &Entry) {
    let width = it.width();
    let calls = &mut it.shown.calls;
    let lines = match entry.kind {
        EntryKind::Reply => {
            transcript::note_calls(entry, calls);
            it.shown.thinking.replied(entry);
            let texts = transcript::reply_texts(entry);
            it.shown.reply.finish(&texts, width)
        }
        _ => transcript::other(entry, calls, width),
    };
    it.printed.extend(lines);
}

/// Says what another model costs.
fn say_model(it: &mut Conversation, update: &ModelUpdate) {
    let cost = update.cost.map(|cost| format!(", {cost}"));
    it.say(&format!(
        "{} from the next request on; it reads {} tokens anew{}",
        update.model,
        grouped(update.reread_tokens),
        cost.unwrap_or_default()
    ));
}

/// Says for how long the model has thought, if it does something else now.
fn thought(it: &mut Conversation, now_ms: u64) {
    if let Some(ms) = it.shown.thinking.end(now_ms) {
        let line = match ms {
            0..1000 => "∴ thought".to_owned(),
            ms => format!("∴ thought for {}", elapsed(ms)),
        };
        it.printed.push(Line::default());
        it.say(&line);
    }
}

/// Shows another agent from now on.
pub(super) fn show(it: &mut Conversation, agent: AgentId, now_ms: u64) {
    let rest = it.shown.reply.end(it.width());
    it.printed.extend(rest);
    let name = match it.others.find(agent) {
        _ if agent == it.main => super::MAIN.to_owned(),
        Some(other) => other.name.clone(),
        None => agent.to_string(),
    };
    it.printed.push(Line::default());
    it.say(&format!("── {name} ──"));
    drafts::switch(it, agent);
    it.shown = super::ShownAgent::new(agent, name, now_ms);
}

/// Prompts wait: those that were meant to join the run are told so.
fn queued(it: &mut Conversation, queue: Vec<QueuedPrompt>) -> Vec<Effect> {
    let known: Vec<u64> = it.shown.queue.iter().map(|prompt| prompt.id).collect();
    let new = queue.iter().filter(|prompt| !known.contains(&prompt.id));
    let joining: Vec<u64> = new
        .filter(|prompt| !prompt.joins)
        .map(|prompt| prompt.id)
        .take(it.shown.joining)
        .collect();
    it.shown.joining -= joining.len();
    it.shown.queue = queue;
    joining
        .into_iter()
        .map(|prompt| {
            it.to_shown(Command::ChangePrompt {
                prompt,
                change: PromptChange::Join(true),
            })
        })
        .collect()
}

/// Says how a run ended, if that is not as expected.
fn ended(it: &mut Conversation, end: &RunEnd) {
    it.shown.calls.clear();
    it.shown.retry = None;
    it.shown.joining = 0;
    let rest = it.shown.reply.end(it.width());
    it.printed.extend(rest);
    let line = match &end.outcome {
        Outcome::Completed => return,
        Outcome::Interrupted => "interrupted".to_owned(),
        Outcome::Refused => "the model declined".to_owned(),
        Outcome::Partial(limit) => format!("stopped: {}", limit_words(*limit)),
        Outcome::Paused(fault) => format!(
            "paused: {}; /continue goes on with it",
            one_line(&fault.message)
        ),
        Outcome::Failed(fault) => format!("failed: {}", one_line(&fault.message)),
    };
    mark(it, Sign::Failed, &line);
}

fn limit_words(limit: Limit) -> &'static str {
    match limit {
        Limit::Turns => "the limit of turns is reached",
        Limit::Budget => "the budget is used up",
        Limit::Output => "the reply is as long as it may be",
        Limit::Context => "the conversation is as long as it may be; /compact shortens it",
        Limit::Repetition => "it repeats what fails",
        Limit::Tasks => "the team has tasks that are not done",
        Limit::Hook => "a hook has ended it",
    }
}

/// Prints a line with a sign.
pub(super) fn mark(it: &mut Conversation, sign: Sign, text: &str) {
    let role = match sign {
        Sign::Failed => ColorRole::Bad,
        Sign::Asks => ColorRole::Warning,
        _ => ColorRole::Good,
    };
    let line = Line::from(vec![
        Span::styled(format!("{} ", sign.mark()), role.style()),
        Span::styled(one_line(text), Style::new().dim()),
    ]);
    let width = it.width();
    it.printed.extend(wrap(&line, width, 2));
}

/// Names have come that a menu or a list waits for.
fn listed(it: &mut Conversation, listing: &Listing) {
    let names = listing.names.iter();
    let pairs: Vec<(String, String)> = names
        .map(|name| (one_line(&name.name), one_line(&name.about)))
        .collect();
    if listing.what == ListKind::Commands && listing.part.is_empty() {
        it.offered.commands = pairs.clone();
    }
    if let Some(menu) = &mut it.menu {
        menu.listed(listing.what, &listing.part, pairs);
    }
}
