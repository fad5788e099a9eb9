//! `posse ask`.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_port::hooks::NoHooks;
use posse_port::in_a_line;
use posse_port::model::{ModelError, ModelEvent};
use posse_port::servers::NoServers;
use posse_port::store::AgentRecord;
use posse_protocol::{Cost, Purpose, Usage};
use posse_runtime::agent::SideQueryError;
use posse_runtime::runtime::Runtime;
use posse_runtime::session::side_query::{NoteTools, SideAnswer, SideQueryOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::assemble::open::RuntimeParts;
use crate::assemble::provider::{self, ModelFallback, ProviderArgs};
use crate::assemble::{directories, store, tools};
use crate::config::search_paths::{SearchPaths, SettingSources};
use crate::config::settings::account::AccountSettings;
use crate::config::settings::{FlagSettings, Settings};
use crate::config::store::StoreArgs;
use crate::config::{caller, environment};
use crate::error::{self, Advised};
use crate::headless::answer::{self, AnswerForm, AnswerWriter};
use crate::headless::signals::Signals;
use crate::output::{grouped, in_words, json_line, print, say, say_to_person, tame};
use crate::select::sessions;

/// Maximum length of a reply, in tokens.
const MAX_TOKENS: u32 = 32_000;

/// Ask an agent something on the side, without disturbing its work.
///
/// The agent answers from what it knows, whether it is working or not: it uses no tools, and
/// nothing is added to its conversation. What it has already read comes from the prompt cache.
/// Without QUESTION, or with `-`, the question is read from standard input. (To ask a model without
/// any context, use `posse ask-model`.)
#[derive(clap::Args)]
pub(crate) struct AskCommand {
    /// Session, or one of its sub-agents; a unique prefix of the ID is enough
    session: String,
    /// Question
    #[arg(conflicts_with_all = ["progress", "remember"])]
    question: Option<String>,
    /// Ask how far its work is, in a line or two
    #[arg(long, conflicts_with = "remember")]
    progress: bool,
    /// Ask what is worth remembering; an agent that keeps notes updates them
    #[arg(long)]
    remember: bool,
    #[command(flatten)]
    provider: ProviderArgs,
    /// Print one JSON object at the end, whatever happens
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// The kind of question.
enum AskKind {
    Question(String),
    Progress,
    Memory(Box<NoteTools>),
}

impl AskKind {
    fn purpose(&self) -> Purpose {
        match self {
            Self::Question(_) => Purpose::Question,
            Self::Progress => Purpose::Progress,
            Self::Memory(_) => Purpose::Memory,
        }
    }
}

impl AskCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        crate::config::runtime()?.block_on(async {
            let store = store::look_into_store(&self.store)?;
            let session = sessions::agent_by_prefix(store.as_ref(), &self.session).await?;
            let here = SearchPaths::at(&environment::working_directory()?);
            let account = AccountSettings::of_owner(here, SettingSources::default(), None)?;
            let chosen = self.provider.choose_or(
                provider::impatient(),
                &account,
                ModelFallback::AgentRecord(session.model.clone()),
            )?;
            let asked = self.asked(&session)?;
            let purpose = asked.purpose();
            let shown = Arc::new(Mutex::new(AnswerWriter::new(AnswerForm::of(self.json))));
            let asking = ask(
                RuntimeParts::new(chosen, store, Arc::new(NoHooks), Arc::new(NoServers), false)?
                    .runtime,
                &session,
                asked,
                &shown,
            );
            let side_answer = asking.await?;
            let mut shown = held(&shown);
            shown.end_line();
            if let Some(error) = shown.unread.take() {
                return Err(error.into());
            }
            self.finish(&session, purpose, side_answer)
        })
    }

    /// Returns the question that the flags ask for.
    fn asked(&self, session: &AgentRecord) -> anyhow::Result<AskKind> {
        if self.progress {
            return Ok(AskKind::Progress);
        }
        if self.remember {
            caller::only_a_person_can("have an agent change its notes")?;
            let settings = Settings::at(&session.cwd, FlagSettings::default())?;
            return Ok(AskKind::Memory(Box::new(NoteTools {
                // They only edit notes.
                tools: tools::tools(&settings, None, false),
                policy: Arc::new(settings.policy),
                spill: directories::spill()?,
                home: environment::home().map(|home| home.canonicalize().unwrap_or(home)),
            })));
        }
        let example = "posse ask SESSION \"what is left to do?\"";
        Ok(AskKind::Question(answer::question(
            self.question.as_deref(),
            example,
        )?))
    }

    /// Prints the answer or the error, and the cost.
    fn finish(
        &self,
        session: &AgentRecord,
        purpose: Purpose,
        side_answer: SideAnswer,
    ) -> anyhow::Result<ExitCode> {
        let SideAnswer {
            answer,
            facts,
            charges,
            unbooked,
        } = side_answer;
        let answer = answer.map_err(told);
        let usage = charges
            .iter()
            .fold(Usage::default(), |sum, charge| sum + charge.usage);
        let cost: Option<Cost> = charges.iter().map(|charge| charge.cost).sum();
        let model = facts
            .as_ref()
            .map(|facts| facts.model.clone())
            .filter(|model| !model.is_empty());
        let model = model.unwrap_or_else(|| session.model.clone());
        let stop = facts.as_ref().and_then(|facts| facts.stop.as_ref());
        match (AnswerForm::of(self.json), &answer) {
            (AnswerForm::Json, answer) => {
                let mut object = match answer {
                    Ok(text) => json!({"text": text}),
                    Err(error) => {
                        error::object(&in_a_line(error.as_ref()), error::hint(error).as_deref())
                    }
                };
                let about = json!({
                    "agent_id": session.agent, "purpose": purpose, "model": model, "stop_reason": stop,
                    "usage": crate::present::usage::usage(&usage), "cost_usd": cost.map(Cost::usd),
                });
                if let (Some(object), Value::Object(about)) = (object.as_object_mut(), about) {
                    object.extend(about);
                }
                print(json_line(&object).as_bytes())?;
            }
            (AnswerForm::Whole, Ok(text)) => {
                print(format!("{}\n", tame(text.trim_end_matches('\n'))).as_bytes())?
            }
            (AnswerForm::Live, _) | (AnswerForm::Whole, Err(_)) => {}
        }
        stop.into_iter().for_each(answer::say_stop);
        if !charges.is_empty() {
            let cost = in_words(cost);
            let figures = format!(
                "{} tokens in ({} from the cache), {} out",
                grouped(usage.prompt()),
                grouped(usage.cache_read),
                grouped(usage.output)
            );
            say_to_person(&format!("{} · {figures} · {cost}", tame(&model)));
        }
        if let Some(why) = unbooked {
            say(&format!(
                "warning: its cost is not recorded in the session: {}",
                tame(&why)
            ));
        }
        match answer {
            Ok(_) => Ok(ExitCode::SUCCESS),
            // A program has already got it as JSON.
            Err(error) if self.json && !error.is::<ModelError>() => {
                error::tell(&error.to_string(), error::hint(&error).as_deref());
                Ok(ExitCode::from(error::FAILED))
            }
            Err(error) => Err(error),
        }
    }
}

/// Converts the error of a question without an answer.
fn told(error: SideQueryError) -> anyhow::Error {
    let what = error.to_string();
    match error {
        SideQueryError::Model(error) => error.into(),
        SideQueryError::Cancelled => ModelError::Cancelled.into(),
        SideQueryError::Refused(_)
        | SideQueryError::Hook(_)
        | SideQueryError::Tools
        | SideQueryError::Silent => Advised {
            what,
            advice: "ask again, or rephrase the question".into(),
        }
        .into(),
    }
}

/// Asks until there is an answer or a signal cancels the question.
async fn ask(
    runtime: Runtime,
    session: &AgentRecord,
    asked: AskKind,
    // Shared with the listener, which the runtime owns while it asks; the caller needs it
    // afterwards.
    shown: &Arc<Mutex<AnswerWriter>>,
) -> anyhow::Result<SideAnswer> {
    let (cancel, shows) = (CancellationToken::new(), Arc::clone(shown));
    let token = cancel.clone();
    let hear = Box::new(move |event: ModelEvent<'_>| held(&shows).event(event, &token));
    let options = SideQueryOptions {
        max_tokens: MAX_TOKENS,
        cancel: cancel.clone(),
        hear: Some(hear),
    };
    let asking = async {
        match asked {
            AskKind::Question(question) => runtime.ask(session.agent, &question, options).await,
            AskKind::Progress => runtime.progress(session.agent, options).await,
            AskKind::Memory(note_tools) => {
                runtime.remember(session.agent, *note_tools, options).await
            }
        }
    };
    tokio::pin!(asking);
    let mut signals = Signals::new()?;
    let side_answer = tokio::select! {
        side_answer = &mut asking => side_answer,
        () = signals.next() => {
            cancel.cancel();
            tokio::select! {
                side_answer = &mut asking => side_answer,
                // A second signal leaves without waiting for the cancellation.
                () = signals.next() => return Err(ModelError::Cancelled.into()),
            }
        }
    };
    Ok(side_answer?)
}

fn held(shown: &Mutex<AnswerWriter>) -> MutexGuard<'_, AnswerWriter> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}
