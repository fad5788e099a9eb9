//! Commands of the terminal itself. Every action of a key has a name here, too.

use posse_protocol::{Command, MemoryScope, PermissionMode};

use super::help::{self, COMMANDS};
use super::{Conversation, Effect, KeyedAction, Report, Request, actions, chooser, thinking};
use crate::text::grouped;

/// Runs a command of the terminal. Returns none if it is not one.
pub(super) fn run(
    it: &mut Conversation,
    name: &str,
    arguments: &str,
    now_ms: u64,
) -> Option<Vec<Effect>> {
    let arguments = arguments.trim();
    let words = (!arguments.is_empty()).then(|| arguments.to_owned());
    let effects = match (name, words) {
        ("help", _) => say_help(it),
        ("model", None) => say_model(it),
        ("model", Some(model)) => set_model(it, Some(model), None),
        ("effort", effort) => set_model(it, None, effort.or(Some("default".to_owned()))),
        ("mode", words) => mode(it, words.as_deref()),
        ("clear", _) => vec![Effect::Ask(Request::Clear)],
        ("compact", keep) => vec![it.to_shown(Command::Compact { keep })],
        ("interrupt", _) => actions::interrupt(it),
        ("later", Some(words)) => vec![actions::say(it, &words)],
        ("unqueue", _) => actions::take_back(it),
        ("continue", _) => vec![it.to_shown(Command::Continue)],
        ("cost", _) => vec![Effect::Ask(Request::Cost)],
        ("context", _) => context(it),
        ("resume", id) => vec![Effect::Ask(Request::Resume(id.unwrap_or_default()))],
        ("image", None) => vec![Effect::Ask(Request::ClipboardImage)],
        ("image", Some(path)) => {
            let pasted = String::new();
            vec![Effect::Ask(Request::ImageFile { path, pasted })]
        }
        ("thinking", _) => {
            thinking::print(it);
            Vec::new()
        }
        ("history", part) => {
            chooser::history(it, part.as_deref().unwrap_or_default());
            Vec::new()
        }
        ("rewind", None) => actions::rewind(it, None),
        ("rewind", Some(number)) => rewind(it, &number),
        ("agents", _) => agents(it),
        ("agent", Some(name)) => show(it, &name),
        ("tasks", _) => vec![Effect::Ask(Request::Tasks)],
        ("board", _) => vec![Effect::Ask(Request::Board)],
        ("transcript", _) => vec![Effect::Ask(Request::Transcript)],
        ("stop", Some(name)) if name == "all" => actions::stop_all(it),
        ("stop", Some(name)) => stop(it, &name),
        ("answer", words) => answer(it, words.as_deref(), now_ms),
        ("skip", _) => {
            actions::skip(it, now_ms);
            Vec::new()
        }
        ("memory", Some(text)) => vec![note(it, text)],
        ("memory", None) => vec![Effect::Ask(Request::Report(Report::Memory))],
        ("permissions", _) => vec![Effect::Ask(Request::Report(Report::Permissions))],
        ("config", _) => vec![Effect::Ask(Request::Report(Report::Config))],
        ("doctor", _) => vec![Effect::Ask(Request::Report(Report::Doctor))],
        ("mcp", _) => vec![Effect::Ask(Request::Report(Report::Servers))],
        ("init", word) => vec![Effect::Ask(Request::Init(
            word.as_deref() == Some("improve"),
        ))],
        ("shell", Some(command)) => vec![it.to_shown(Command::Shell(command))],
        ("bg", _) => actions::detach(it),
        ("suspend", _) => vec![Effect::Suspend],
        ("btw", Some(question)) => vec![it.to_shown(Command::Aside { question })],
        ("editor", words) => vec![Effect::OpenEditor(words.unwrap_or_default())],
        ("export", Some(file)) => vec![Effect::Ask(Request::Export(file))],
        ("quit" | "exit", _) => actions::leave(it, now_ms),
        (name, None) if COMMANDS.iter().any(|(known, _)| *known == name) => {
            let usage = COMMANDS.iter().find(|(known, _)| *known == name);
            it.notice = usage.map(|(name, about)| format!("/{name}: {about}"));
            Vec::new()
        }
        _ => return None,
    };
    Some(effects)
}

/// Answers the question that is shown, or opens it at what it asks next.
fn answer(it: &mut Conversation, words: Option<&str>, now_ms: u64) -> Vec<Effect> {
    let answered = words.map(|words| actions::answer(it, words, now_ms));
    let effects = answered.unwrap_or_default();
    if effects.is_empty() && !actions::open(it, now_ms) {
        it.notice = Some("no question has waited long enough to be answered".to_owned());
    }
    effects
}

/// Returns to before a prompt by its number.
fn rewind(it: &mut Conversation, number: &str) -> Vec<Effect> {
    match number.parse() {
        Ok(number) if number > 0 => actions::rewind(it, Some(number)),
        _ => {
            it.notice = Some("/rewind lists your prompts; /rewind 1 is the newest".to_owned());
            Vec::new()
        }
    }
}

/// Returns the command that keeps a note.
pub(super) fn note(it: &Conversation, text: String) -> Effect {
    it.to_shown(Command::Note {
        text,
        scope: MemoryScope::Project,
    })
}

/// Says which model is used, and which others can be chosen.
fn say_model(it: &mut Conversation) -> Vec<Effect> {
    let own = it.shown_terms().model.unwrap_or_default();
    let others = it.offered.models.iter().filter(|model| **model != own);
    let others: Vec<&str> = others.map(String::as_str).collect();
    let line = match others.is_empty() {
        true => own,
        false => format!("{own}; others: {}", others.join(", ")),
    };
    it.say(&line);
    Vec::new()
}

fn set_model(it: &Conversation, model: Option<String>, effort: Option<String>) -> Vec<Effect> {
    vec![it.to_shown(Command::SetModel { model, effort })]
}

fn say_help(it: &mut Conversation) -> Vec<Effect> {
    let commands = COMMANDS.iter();
    let commands = commands.map(|(name, about)| (format!("/{name}"), *about));
    let mut all = help::keys(&it.keys);
    all.extend(commands);
    let widest = all.iter().map(|(name, _)| name.chars().count()).max();
    let widest = widest.unwrap_or_default();
    let lines = all
        .iter()
        .map(|(name, about)| format!("  {name:<widest$}  {about}"));
    let text = lines.collect::<Vec<_>>().join("\n");
    it.say(&text);
    Vec::new()
}

fn mode(it: &mut Conversation, word: Option<&str>) -> Vec<Effect> {
    let Some(word) = word else {
        let key = it.keys.0.first(KeyedAction::Mode);
        let key = key.unwrap_or_else(|| "/mode NAME".to_owned());
        it.say(&format!("{}; {key} chooses another", it.mode()));
        return Vec::new();
    };
    match word.parse::<PermissionMode>() {
        Ok(PermissionMode::BypassPermissions) if !it.offered.may_bypass => {
            it.notice = Some(
                "start posse with --allow-dangerously-skip-permissions for that mode".to_owned(),
            );
            Vec::new()
        }
        Ok(mode) => vec![it.to_shown(Command::SetMode(mode))],
        Err(_) => {
            it.notice = Some("modes: default, acceptEdits, plan, dontAsk".to_owned());
            Vec::new()
        }
    }
}

fn context(it: &mut Conversation) -> Vec<Effect> {
    let spending = &it.shown.spending;
    let line = match spending.context_window {
        Some(window) if window > 0 => format!(
            "{} of {} tokens, {} %",
            grouped(spending.context_tokens),
            grouped(window),
            spending.context_tokens.saturating_mul(100) / window
        ),
        _ => format!("{} tokens", grouped(spending.context_tokens)),
    };
    it.say(&line);
    Vec::new()
}

fn agents(it: &mut Conversation) -> Vec<Effect> {
    let others = it.others.all();
    let lines = (1..).zip(others).map(|(number, other)| {
        let (mark, word) = (other.sign.mark(), other.sign.word());
        let facts = [other.name.clone(), word.to_owned(), other.doing.clone()];
        let facts = facts.into_iter().chain([other.progress()]);
        let facts: Vec<String> = facts.filter(|fact| !fact.is_empty()).collect();
        format!("{number:>3} {mark} {}", facts.join(" · "))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    match text.as_str() {
        "" => it.say("only the main agent is here"),
        text => it.say(text),
    }
    Vec::new()
}

/// Shows an agent by its name or number.
fn show(it: &mut Conversation, name: &str) -> Vec<Effect> {
    if name == "main" {
        return vec![Effect::Show(it.main)];
    }
    match find(it, name).filter(|other| other.is_agent) {
        Some(other) => vec![Effect::Show(other.id.into())],
        None => {
            it.notice = Some(format!(
                "no agent here is called {name}; /agents lists them"
            ));
            Vec::new()
        }
    }
}

/// Stops somebody, and says what that is.
fn stop(it: &mut Conversation, name: &str) -> Vec<Effect> {
    let Some(other) = find(it, name).cloned() else {
        it.notice = Some(format!(
            "nothing here is called {name}; /agents lists what is"
        ));
        return Vec::new();
    };
    it.say(&format!(
        "stopping {} ({}) and everything it has started",
        other.name, other.doing
    ));
    vec![Effect::Send(Command::StopRun(other.id))]
}

fn find<'a>(it: &'a Conversation, name: &str) -> Option<&'a super::Other> {
    let number = name.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
    let others = it.others.all();
    let by_number = number.and_then(|number| others.get(number));
    by_number.or_else(|| others.iter().find(|other| other.name == name))
}
