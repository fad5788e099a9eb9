//! The tool `run`: an agent works for a client, in this process, as with `posse -p`.

use posse_protocol::{ContentBlock, Cost, Event, EventKind};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::allowance::Promise;
use super::answer::ToolAnswer;
use super::place;
use super::progress::CallProgress;
use super::rights::{NarrowerTerms, ServerRights};
use super::tools::RunRequest;
use crate::assemble::run_config::SessionChoice;
use crate::assemble::store::look_into_store;
use crate::config::settings::agents::dollars;
use crate::error::Advised;
use crate::headless::job::{self, FirstInput, JobCaller, RunJob};
use crate::headless::output_item::OutputItem;
use crate::headless::signals::Signals;
use crate::headless::writer::{HandedItems, OutputWriter};
use crate::output::{one_line, say};

/// Runs an agent until it is done, or stopped by a message of `stops`.
pub(super) async fn run(
    rights: &ServerRights,
    asked: RunRequest,
    progress: CallProgress,
    mut stops: mpsc::Receiver<()>,
) -> anyhow::Result<ToolAnswer> {
    if asked.prompt.trim().is_empty() {
        anyhow::bail!(Advised {
            what: "there is no prompt".into(),
            advice: "`prompt` says what to do".into(),
        });
    }
    let which = match &asked.session {
        Some(id) => {
            let store = look_into_store(&rights.store)?;
            let found = place::session(&*store, &rights.cwd, Some(id)).await?;
            Some(SessionChoice::Id(found.agent.to_string()))
        }
        None => None,
    };
    let cost = asked.budget_usd.map(dollars).transpose()?;
    let promise = tokio::select! {
        biased;
        Some(()) = stops.recv() => return Ok(ToolAnswer::error("cancelled before it began".into())),
        promise = rights.allowance.promise(cost) => promise?,
    };
    let terms = NarrowerTerms {
        which,
        cost: promise.0,
        turns: asked.max_turns,
        plan: asked.plan,
    };
    let end = work(rights, &terms, asked.prompt, (progress, stops)).await;
    settle(rights, promise, &end);
    end.map(|end| end.answer())
}

/// Gives back what the run has not spent.
fn settle(rights: &ServerRights, promise: Promise, end: &anyhow::Result<RunEnding>) {
    let spent = match end {
        // It has not begun.
        Err(_) => Some(Cost::ZERO),
        Ok(end) => end.spent(),
    };
    rights.allowance.settle(promise, spent);
}

/// How a run has ended.
struct RunEnding {
    /// The object that `posse -p --output-format json` prints; none if there is no result.
    result: Option<Value>,
    /// What is told besides: where work lies, and which questions wait.
    notes: Vec<String>,
}

async fn work(
    rights: &ServerRights,
    terms: &NarrowerTerms,
    prompt: String,
    (mut progress, stops): (CallProgress, mpsc::Receiver<()>),
) -> anyhow::Result<RunEnding> {
    let (options, config) = rights.of_run(terms)?;
    let job = RunJob {
        config,
        first: FirstInput::Words(Some(vec![ContentBlock::text(prompt)])),
        starting: None,
        board: None,
    };
    let (writer, items) = OutputWriter::to_caller();
    let caller = JobCaller {
        writer,
        signals: Signals::Caller(stops),
        watches: Box::new(move |event| {
            if let Some(message) = message_of(event) {
                progress.tell(&message);
            }
        }),
    };
    let (end, result) = tokio::join!(job::work(&options, job, Some(caller)), printed(items));
    let end = end?;
    if end.run.is_interrupted() {
        say(&format!("a run was stopped; continue with: {}", end.again));
    }
    Ok(RunEnding {
        result,
        notes: [end.kept, end.questions].concat(),
    })
}

/// Returns what the job prints at last; its notes go to stderr.
async fn printed(mut items: HandedItems) -> Option<Value> {
    let mut last = None;
    while let Some(item) = items.next().await {
        match item {
            OutputItem::Out(text) => last = serde_json::from_str(&text).ok(),
            OutputItem::Note(note) => say(&note),
            _ => {}
        }
    }
    last
}

/// Returns what a client is told of an event.
fn message_of(event: &Event) -> Option<String> {
    match &event.kind {
        EventKind::Started => Some(format!("agent {} works", event.agent)),
        EventKind::CallStarted { tool, title, .. } => Some(one_line(&format!("{tool}: {title}"))),
        EventKind::Denied(denial) => Some(one_line(&format!("denied: {}", denial.tool))),
        _ => None,
    }
}

impl RunEnding {
    /// Returns what it has spent at most; none if that is not known.
    fn spent(&self) -> Option<Cost> {
        let result = self.result.as_ref()?;
        let of = |key: &str| match &result[key] {
            Value::Number(usd) => dollars(usd.as_f64()?).ok(),
            _ => None,
        };
        let uncertain = match result.get("uncertain_cost_usd") {
            None => Cost::ZERO,
            Some(_) => of("uncertain_cost_usd")?,
        };
        Some(of("total_cost_usd")? + uncertain)
    }

    fn answer(self) -> ToolAnswer {
        let Some(result) = self.result else {
            return ToolAnswer::error(
                "the run has no result; `session` shows what there is".into(),
            );
        };
        let is_error = result["is_error"] == true;
        let errors = result["errors"].as_array().into_iter().flatten();
        let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
        let text = match result["result"].as_str() {
            Some(text) if !text.is_empty() => text.to_owned(),
            _ => errors.join("\n"),
        };
        let denied = result["permission_denials"]
            .as_array()
            .into_iter()
            .flatten();
        let denied: Vec<&Value> = denied.map(|it| &it["tool_name"]).collect();
        let facts = json!({
            "session_id": result["session_id"], "outcome": result["terminal_reason"],
            "result": text, "cost_usd": result["total_cost_usd"], "turns": result["num_turns"],
            "denied": denied, "structured_output": result["structured_output"], "notes": self.notes,
        });
        let mut line = format!(
            "session {}: {}",
            result["session_id"].as_str().unwrap_or_default(),
            result["terminal_reason"].as_str().unwrap_or_default(),
        );
        if let Some(cost) = result["total_cost_usd"].as_f64() {
            line.push_str(&format!(", ${cost:.4}"));
        }
        if !denied.is_empty() {
            let names: Vec<&str> = denied.iter().filter_map(|it| it.as_str()).collect();
            line.push_str(&format!(
                "; denied, since nobody is asked: {}",
                names.join(", ")
            ));
        }
        let texts = [vec![text, line], self.notes].concat();
        let texts = texts.into_iter().filter(|text| !text.is_empty()).collect();
        ToolAnswer::told(texts, facts, is_error)
    }
}
