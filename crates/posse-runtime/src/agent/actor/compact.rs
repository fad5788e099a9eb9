//! Compaction: replaces the history by a summary, and restates beside it what must not be lost.

use std::sync::Arc;

use posse_port::model::{Failure, ModelError};
use posse_port::store::{Page, StoreError};
use posse_protocol::{ContentBlock, EventKind, Name, PermissionMode, StopReason};
use tokio_util::sync::CancellationToken;

use crate::agent::actor::work::{Compacted, ModelWork, Work};
use crate::agent::actor::{Actor, hooks, offer, standing, tasks, wall_ms};
use crate::agent::side_query::{SideQuery, SideQueryError, SideReply, SideTools};
use crate::agent::step::{CompactionRequest, Input};
use crate::history::request_size;
use crate::history::request_size::RequestSize;
use crate::live::roster;
use crate::prompt;
use crate::prompt::advertised::Offer;
use crate::prompt::side_query::SideInstruction;

/// Maximum length of a summary, in tokens.
const SUMMARY_TOKENS: u32 = 16_000;
/// Percentage of the model's window at which a history is compacted.
const FULL: u64 = 85;
/// Approximate number of bytes per token, for text that the provider has not counted.
const TOKEN_BYTES: usize = 3;
/// Minimum length of a cut summary that is still useful, in bytes.
const LEAST_SUMMARY: usize = 2_000;

/// Returns true if a summary can replace the history: one that broke off after a few words cannot.
fn is_whole(summary: &str, stop: Option<&StopReason>) -> bool {
    match stop {
        Some(StopReason::MaxTokens) => summary.len() >= LEAST_SUMMARY,
        Some(StopReason::Refusal | StopReason::ContextFull) => false,
        _ => true,
    }
}

/// Returns true if the next request would come too close to the model's limit.
pub(super) fn is_crowded(actor: &Actor) -> bool {
    let window = || {
        actor
            .ports
            .model
            .window_of(&actor.spending.model)
            .map(|window| window / 100 * FULL)
    };
    let Some(most) = actor.setup.limits.compact_at.or_else(window) else {
        return false;
    };
    let size = request_size::of_history(&actor.prefix.preamble, &actor.prefix.history);
    let grown = (size.saturating_sub(actor.prefix.last_request.bytes) / TOKEN_BYTES) as u64;
    // Images have many bytes and few tokens, so what the provider has not counted yet adds at most
    // a tenth of the limit. If it is more after all, the provider refuses and the history is
    // compacted.
    let tokens = actor
        .prefix
        .last_request
        .tokens
        .saturating_add(grown.min(most / 10));
    // Another summary does not make a long summary shorter: there must be something new.
    let is_new = actor.prefix.history.summary().is_none_or(|summary| {
        let base = (actor.prefix.preamble.bytes.len() + summary) / TOKEN_BYTES;
        tokens.saturating_sub(base as u64) >= most / 4
    });
    actor.prefix.history.has_replied()
        && !actor.prefix.compaction_failed
        && is_new
        && tokens >= most
}

/// Asks for a summary as a continuation of the history that it replaces, which is cached.
pub(super) async fn start(
    actor: &mut Actor,
    compaction_request: CompactionRequest,
    work: &mut Work,
) {
    let tokens = actor.prefix.last_request.tokens;
    actor
        .sink
        .emit(EventKind::Compacting {
            auto: compaction_request.auto,
            tokens,
        })
        .await;
    work.cancel_model = CancellationToken::new();
    let history = if compaction_request.overfull {
        // The whole history does not fit any more, so the last exchange is left out and quoted
        // later.
        actor.prefix.history.before_last_reply()
    } else {
        actor.prefix.history.clone()
    };
    if history.encoded_entries().is_empty() {
        let (why, charges) = (
            "the request is larger than the model's context".to_owned(),
            Vec::new(),
        );
        return work.inputs.push_back(Input::NotCompacted { why, charges });
    }
    let query = SideQuery {
        ports: actor.ports.clone(),
        preamble: actor.prefix.preamble.clone(),
        history,
        open: Vec::new(),
        attribution: Arc::clone(&actor.prefix.attribution),
        standing: standing::of(actor, false),
        model: actor.spending.model.clone(),
        previous: actor.prefix.previous_reply.clone(),
        account: actor.spending.account.clone(),
        last_request: actor.prefix.last_request,
        max_tokens: actor.setup.limits.max_tokens.min(SUMMARY_TOKENS),
        ttl: actor.prefix.cache_ttl.ttl(wall_ms(&*actor.ports.clock)),
        cancel: work.cancel_model.clone(),
        hear: None,
    };
    let instruction = SideInstruction::Compaction {
        keep: compaction_request.keep.clone(),
    };
    let guard = hooks::before_compaction(actor, &compaction_request, work);
    let after = hooks::after_compaction(actor, work);
    work.model = ModelWork::Compacting(Box::pin(async move {
        let refused = match guard {
            Some(guard) => guard.await,
            None => None,
        };
        let answer = match refused {
            Some(why) => SideReply {
                charges: Vec::new(),
                facts: None,
                text: Err(SideQueryError::Hook(why)),
            },
            None => query.ask(&instruction, SideTools::Refused).await,
        };
        let told = match after.filter(|_| answer.text.is_ok()) {
            Some(after) => after.await,
            None => Vec::new(),
        };
        Compacted {
            answer,
            compaction_request,
            told,
        }
    }));
}

/// Returns the input for a finished compaction.
pub(super) async fn on_compacted(
    actor: &mut Actor,
    compacted: Compacted,
) -> Result<Input, StoreError> {
    let Compacted {
        answer: SideReply {
            charges,
            facts,
            text,
        },
        compaction_request,
        told,
    } = compacted;
    let failed = |error| {
        Box::new(Failure {
            error,
            finished: Vec::new(),
            spent: Vec::new(),
            attempts: 0,
        })
    };
    let stop = facts.as_ref().and_then(|facts| facts.stop.clone());
    Ok(match text {
        Ok(summary) if !is_whole(&summary, stop.as_ref()) => {
            actor.prefix.compaction_failed = true;
            Input::NotCompacted {
                why: "the model did not finish the summary".into(),
                charges,
            }
        }
        Ok(mut summary) => {
            if stop == Some(StopReason::MaxTokens) {
                summary.push_str("\n[The summary was too long, and ends here.]");
            }
            let cut = compaction_request
                .overfull
                .then(|| actor.prefix.history.after_last_request());
            let known = restated(actor).await?;
            let mut content = prompt::compacted(&summary, cut.as_deref(), &known);
            if actor
                .terms
                .as_ref()
                .is_some_and(|terms| terms.fork.is_some())
            {
                // The rules stood in the history that is gone.
                content.insert(0, prompt::fork_rules());
            }
            // The next request is a new prompt: nothing is known of its size or its place in the
            // cache.
            (actor.prefix.previous_reply, actor.prefix.last_request) = (
                None,
                RequestSize {
                    begun: true,
                    ..RequestSize::default()
                },
            );
            let content = content.into_iter().chain(told);
            let content = content.map(ContentBlock::text).collect();
            Input::Compacted {
                content,
                facts,
                charges,
            }
        }
        Err(SideQueryError::Model(error)) => Input::Failed {
            failure: failed(error),
            charges,
        },
        Err(SideQueryError::Cancelled) => Input::Failed {
            failure: failed(ModelError::Cancelled),
            charges,
        },
        Err(SideQueryError::Refused(why)) => Input::Refused { why, charges },
        Err(error @ (SideQueryError::Tools | SideQueryError::Silent | SideQueryError::Hook(_))) => {
            actor.prefix.compaction_failed = true;
            Input::NotCompacted {
                why: error.to_string(),
                charges,
            }
        }
    })
}

/// Returns what the agent must still know, as it is now.
pub(super) async fn restated(actor: &Actor) -> Result<prompt::Restated, StoreError> {
    let (realm, agent) = (actor.identity.realm, actor.identity.agent);
    let runs = actor
        .registry
        .live_runs(agent)
        .iter()
        .map(|run| run.facts.clone())
        .collect();
    let Offer {
        types,
        skills,
        servers,
    } = offer::offer(actor);
    let loaded = actor.prefix.history.loaded().tools().iter();
    Ok(prompt::Restated {
        files: actor.known_files.paths(),
        runs,
        types,
        skills,
        loaded: loaded.map(|tool| tool.name.clone()).collect(),
        servers: servers.map(|servers| servers.into_iter().map(|(_, entry)| entry).collect()),
        agent: Some(agent),
        lists: roster::lists(&*actor.ports.store, realm, agent).await?,
        requests: actor
            .ports
            .store
            .requests(realm, Some(agent), Page::all())
            .await?,
        plans: actor.role.is_main() && actor.session.rights.mode() == PermissionMode::Plan,
        plan: match actor.role.is_main() {
            true => approved_plan(actor).await?,
            false => None,
        },
    })
}

/// Returns the plan of the session that was approved last.
async fn approved_plan(actor: &Actor) -> Result<Option<String>, StoreError> {
    let list = tasks::list(actor, None);
    let notes = actor.ports.store.notes(list, Page::all()).await?;
    let plan = notes.into_iter().find(|note| note.name == Name::plan());
    Ok(plan.map(|note| note.text))
}
