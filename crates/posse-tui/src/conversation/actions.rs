//! What both a key and a command can do.

use posse_protocol::{Answer, Command, PromptChange, RuleScope};
use ratatui_core::text::Line;

use super::{AgentProcess, Conversation, Effect, KeyedAction, Request, images, view};

/// Time within which leaving twice leaves those who still work.
const LEAVE_MS: u64 = 5000;

/// Tells the question that is shown something, and carries out its answer.
pub(super) fn answer(it: &mut Conversation, words: &str, now_ms: u64) -> Vec<Effect> {
    let Some(answered) = it.questions.tell(words, now_ms) else {
        print_prompt(it);
        return Vec::new();
    };
    let mut effects = Vec::new();
    if let Answer::Allow {
        always: Some(rules),
        ..
    } = &answered.answer
        && rules.scope != RuleScope::Session
    {
        effects.push(Effect::KeepRules(rules.clone()));
    }
    effects.push(Effect::Send(Command::Answer {
        agent: answered.agent,
        question: answered.question,
        answer: answered.answer,
    }));
    effects
}

/// Opens the question that is shown. What the live region has no room for is printed.
pub(super) fn open(it: &mut Conversation, now_ms: u64) -> bool {
    let is_open = it.questions.open(now_ms);
    print_long(it);
    is_open
}

/// Prints what the question is about, if the live region has no room for it.
pub(super) fn print_long(it: &mut Conversation) {
    if it.questions.is_first_opening() {
        let lines = view::question::too_long(it, it.width());
        if !lines.is_empty() {
            it.printed.push(Line::default());
        }
        it.printed.extend(lines);
    }
    print_prompt(it);
}

/// Prints what may be typed to the open question, if the live region has no room for it.
fn print_prompt(it: &mut Conversation) {
    if it.questions.is_first_asking() {
        let lines = view::question::unfit_prompt(it, it.width());
        it.printed.extend(lines);
    }
}

/// Returns what tells the agent that is shown a person's words, with the images in them.
pub(super) fn say(it: &mut Conversation, words: &str) -> Effect {
    let images = images::of_draft(it);
    match images.is_empty() {
        true => Effect::Say(it.shown.agent, words.to_owned()),
        false => Effect::SayImages(it.shown.agent, words.to_owned(), images),
    }
}

/// Shows the next question in place of the one that is shown.
pub(super) fn skip(it: &mut Conversation, now_ms: u64) {
    it.questions.skip(now_ms);
    print_long(it);
}

/// Interrupts the run of the agent that is shown.
pub(super) fn interrupt(it: &Conversation) -> Vec<Effect> {
    vec![it.to_shown(Command::Interrupt)]
}

/// Takes back the last prompt that waits: it is the draft again.
pub(super) fn take_back(it: &mut Conversation) -> Vec<Effect> {
    let Some(last) = it.shown.queue.pop() else {
        it.notice = Some("no prompt waits".to_owned());
        return Vec::new();
    };
    it.draft.set(&last.text);
    it.menu = None;
    vec![it.to_shown(Command::ChangePrompt {
        prompt: last.id,
        change: PromptChange::TakeBack,
    })]
}

/// Waits no longer for the sub-agents of the agent that is shown.
pub(super) fn detach(it: &mut Conversation) -> Vec<Effect> {
    if it.is_working() {
        return vec![it.to_shown(Command::Detach)];
    }
    it.notice = Some("the agent waits for nobody".to_owned());
    Vec::new()
}

/// Stops everything in the background, after the person has seen what that is.
pub(super) fn stop_all_if_meant(it: &mut Conversation, now_ms: u64) -> Vec<Effect> {
    if is_within(it.presses.stop_ms.take(), now_ms, LEAVE_MS) {
        return stop_all(it);
    }
    let names = it.others.stoppable();
    if names.is_empty() {
        return stop_all(it);
    }
    it.presses.stop_ms = Some(now_ms);
    let key = it.keys.0.first(KeyedAction::StopAll).unwrap_or_default();
    it.notice = Some(format!("{key} again stops {}", names.join(", ")));
    Vec::new()
}

/// Stops everything in the background, and says what that is.
pub(super) fn stop_all(it: &mut Conversation) -> Vec<Effect> {
    let names = it.others.stoppable();
    if names.is_empty() {
        it.notice = Some("nothing is in the background".to_owned());
        return Vec::new();
    }
    it.say(&format!(
        "stopping {} and everything they have started",
        names.join(", ")
    ));
    vec![Effect::Send(Command::StopRuns)]
}

/// Leaves. If others still work, they are named first, and the second time counts.
pub(super) fn leave(it: &mut Conversation, now_ms: u64) -> Vec<Effect> {
    let is_meant = is_within(it.presses.leave_ms, now_ms, LEAVE_MS);
    let working = it.others.working();
    if working.is_empty() || is_meant || it.process == AgentProcess::Another {
        return vec![Effect::Leave];
    }
    it.presses.leave_ms = Some(now_ms);
    it.notice = Some(format!(
        "again to leave; this stops {} until the session is continued",
        working.join(", ")
    ));
    Vec::new()
}

/// Asks for the person's prompts, to return to one of them. The main agent is
/// shown then, and has no run.
pub(super) fn rewind(it: &mut Conversation, number: Option<usize>) -> Vec<Effect> {
    if it.shown.agent != it.main {
        let main = it.keys.0.first(KeyedAction::Agent(0));
        let main = main.unwrap_or_else(|| "/agent main".to_owned());
        it.notice = Some(format!("this is about the main agent: {main} shows it"));
        return Vec::new();
    }
    if it.is_working() {
        it.notice = Some("the agent works: interrupt it with Esc first".to_owned());
        return Vec::new();
    }
    let request = number.map_or(Request::Prompts, Request::Rewind);
    vec![Effect::Ask(request)]
}

/// Returns true if something happened at most so long ago.
pub(super) fn is_within(before_ms: Option<u64>, now_ms: u64, most_ms: u64) -> bool {
    before_ms.is_some_and(|before| now_ms.saturating_sub(before) < most_ms)
}
