//! Gives the agent another model: judges a wish, and switches once the entry about it is stored.

use posse_port::model::{Effort, Encoded, ModelChoice, Ttl};
use posse_port::store::StoreError;
use posse_protocol::{EventKind, ModelUpdate, Usage};

use crate::agent::actor::{Actor, wall_ms};
use crate::agent::step::{Input, NewModel, model};
use crate::definition::model_choice;
use crate::history::request_size::RequestSize;
use crate::history::restore::restore;

/// The word for what the agent began with.
const DEFAULT: &str = "default";

/// A model that the agent gets with the next entry about it.
pub(crate) struct ModelSwitch {
    /// What requests to it begin with.
    pub(crate) preamble: Encoded,
    /// The model and the effort.
    pub(crate) choice: ModelChoice,
}

/// Why an agent keeps its model.
#[derive(Debug, thiserror::Error)]
pub(super) enum ModelRefusal {
    #[error("the model name is empty")]
    Empty,
    #[error("this provider has no model `{0}`")]
    Unknown(String),
    #[error("there is no effort `{word}`; there are {known}")]
    UnknownEffort { word: String, known: String },
    #[error("{model} does not take an effort, and {} was asked for", effort.as_str())]
    Effort { model: String, effort: Effort },
    #[error(
        "the price of {0} is unknown, so the budget cannot be enforced: add it to prices.toml in \
         posse's home (`posse help models`)"
    )]
    Price(String),
    #[error("the conversation has {tokens} tokens, and {model} takes {window}: compact it first")]
    Window {
        model: String,
        tokens: u64,
        window: u64,
    },
    #[error("the requests of this agent cannot be made for another model")]
    Unreadable,
}

/// Handles the wish for another model or effort. Returns the input for the machine; none if the agent
/// has them already.
pub(super) fn set_model(
    actor: &mut Actor,
    model: Option<&str>,
    effort: Option<&str>,
) -> Result<Option<Input>, ModelRefusal> {
    let choice = choose(actor, model, effort)?;
    let rewritten = (actor.ports.model).with_choice(&actor.prefix.preamble, &choice);
    let preamble = rewritten.ok_or(ModelRefusal::Unreadable)?;
    if preamble == actor.prefix.preamble {
        // Also takes back a change that waits.
        actor.prefix.switch = None;
        model::forget(&mut actor.machine);
        tell(actor, update(&choice, 0, actor));
        return Ok(None);
    }
    let is_first = preamble == actor.prefix.born;
    let input = Input::SetModel(new_model(&choice, is_first));
    actor.prefix.switch = Some(Box::new(ModelSwitch { preamble, choice }));
    Ok(Some(input))
}

/// Returns a model as the entry about it tells it.
pub(crate) fn new_model(choice: &ModelChoice, is_first: bool) -> NewModel {
    let effort = choice.effort.map(Effort::as_str);
    let effort = effort.map(|effort| format!(", effort {effort}"));
    NewModel {
        model: choice.model.clone(),
        text: format!("Model: {}{}", choice.model, effort.unwrap_or_default()),
        is_first,
    }
}

/// Returns the model and the effort that are asked for, if the agent can have them.
fn choose(
    actor: &Actor,
    model: Option<&str>,
    effort: Option<&str>,
) -> Result<ModelChoice, ModelRefusal> {
    let names = &actor.ports.model;
    let read = |preamble| names.choice(preamble).ok_or(ModelRefusal::Unreadable);
    let (first, now) = (read(&actor.prefix.born)?, read(&actor.prefix.preamble)?);
    let mode = actor.session.rights.mode();
    let model = match model.map(str::trim) {
        None => now.model,
        Some("") => return Err(ModelRefusal::Empty),
        Some(DEFAULT) => first.model,
        Some(word) => model_choice::named(word, mode, &**names)
            .ok_or_else(|| ModelRefusal::Unknown(word.to_owned()))?,
    };
    let effort = match effort.map(str::trim) {
        Some(DEFAULT) => first.effort,
        Some(word) => Some(level(word)?),
        // The model's own, if it does not take that of the one before.
        None => now
            .effort
            .filter(|effort| names.takes_effort(&model, *effort)),
    };
    if let Some(effort) = effort.filter(|effort| !names.takes_effort(&model, *effort)) {
        return Err(ModelRefusal::Effort { model, effort });
    }
    let has_price = actor.ports.prices.cost(&model, &Usage::default()).is_some();
    if !has_price && actor.spending.account.left().is_some() {
        return Err(ModelRefusal::Price(model));
    }
    let tokens = actor.prefix.last_request.tokens;
    if let Some(window) = names.window_of(&model).filter(|window| *window < tokens) {
        return Err(ModelRefusal::Window {
            model,
            tokens,
            window,
        });
    }
    Ok(ModelChoice { model, effort })
}

/// Parses a level of effort.
fn level(word: &str) -> Result<Effort, ModelRefusal> {
    Effort::named(word).ok_or_else(|| ModelRefusal::UnknownEffort {
        word: word.to_owned(),
        known: Effort::ALL.map(Effort::as_str).join(", "),
    })
}

/// Switches to the model that an entry has brought. The entry is durable by now.
pub(super) async fn on_stored(actor: &mut Actor) -> Result<(), StoreError> {
    // A compaction has only brought the entry again.
    let Some(switch) = actor.prefix.switch.take() else {
        return Ok(());
    };
    let ModelSwitch { preamble, choice } = *switch;
    let reread = actor.prefix.last_request.tokens;
    if choice.model != actor.spending.model {
        // Read as it will be after a crash: without the thinking of another model.
        let transcript = actor.ports.store.read(actor.identity.agent).await?;
        actor.prefix.history = restore(&transcript, &*actor.ports.model)?;
    }
    let told = update(&choice, reread, actor);
    let prefix = &mut actor.prefix;
    prefix.preamble = preamble;
    prefix.previous_reply = None;
    prefix.cache_ttl.forget();
    // The other model counts in tokens of its own.
    prefix.last_request = RequestSize {
        begun: prefix.last_request.begun,
        ..RequestSize::default()
    };
    prefix.compaction_failed = false;
    actor.spending.warmup = None;
    actor.spending.model.clone_from(&choice.model);
    (actor.registry).set_model(actor.identity.agent, choice.model, choice.effort);
    actor.sink.emit(EventKind::Model(Box::new(told))).await;
    Ok(())
}

/// Returns what front ends are told: the tokens that no cache has for the model, and their price.
fn update(choice: &ModelChoice, reread_tokens: u64, actor: &Actor) -> ModelUpdate {
    let mut usage = Usage::default();
    match actor.prefix.cache_ttl.ttl(wall_ms(&*actor.ports.clock)) {
        Ttl::FiveMinutes => usage.cache_write_5m = reread_tokens,
        Ttl::OneHour => usage.cache_write_1h = reread_tokens,
    }
    ModelUpdate {
        model: choice.model.clone(),
        effort: choice.effort.map(|effort| effort.as_str().to_owned()),
        reread_tokens,
        cost: actor.ports.prices.cost(&choice.model, &usage),
    }
}

/// Tells the front ends without a step.
fn tell(actor: &Actor, update: ModelUpdate) {
    let sink = actor.sink.clone();
    let event = EventKind::Model(Box::new(update));
    actor
        .supervisor
        .start_errand(async move { sink.emit(event).await });
}
