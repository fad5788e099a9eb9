//! `posse requests answer`.

use std::process::ExitCode;

use clap::ValueEnum;
use posse_port::store::{AgentFilter, Done, Op, OpenRequest, Page, QuestionRecord, Store};
use posse_protocol::{AgentId, Answer, Answerer, GivenAnswer, RawJson, RealmId};
use serde_json::json;
use uuid::Uuid;

use super::meant::{self, Request};
use crate::error::Advised;
use crate::output::{json_line, print};
use crate::select::tasks::operate;

/// Answer a request: the first answer counts.
///
/// The agent continues with it, in whichever process it runs; one that nobody runs continues when
/// its session is resumed.
#[derive(clap::Args)]
pub(super) struct AnswerRequest {
    /// Request; a unique prefix of its ID is enough
    #[arg(value_name = "REQUEST")]
    id: String,
    /// Answer
    #[arg(value_enum)]
    answer: Word,
    /// With deny: what the agent is told; for a plan: what to change
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// With allow: run with this input instead of the agent's, as JSON
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// With deny: stop the agent's run, too
    #[arg(long)]
    interrupt: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Word {
    Allow,
    Deny,
}

impl AnswerRequest {
    pub(super) async fn run(self, store: &dyn Store) -> anyhow::Result<ExitCode> {
        let (id, allow) = (self.id.clone(), self.answer == Word::Allow);
        let request = meant::meant(store, &id).await?;
        let (from, full) = (request.from(), request.id());
        let held = match request {
            Request::Question(record) => self.question(store, &record).await?,
            Request::Plan(realm, plan) => self.plan(store, realm, &plan).await?,
        };
        let word = if allow { "allowed" } else { "denied" };
        let line = match (self.json, &held) {
            (true, held) => json_line(&json!({
                "request_id": full, "answer": word, "from": from, "running": held.is_none(),
            })),
            (false, None) => format!("{word}: {from} continues\n"),
            (false, Some(session)) => format!(
                "{word}: {from} is not running; it continues with: posse -p --resume {session}\n"
            ),
        };
        print(line.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }

    /// Answers a question. Returns the session to resume if nobody runs the agent.
    async fn question(
        &self,
        store: &dyn Store,
        record: &QuestionRecord,
    ) -> anyhow::Result<Option<AgentId>> {
        let answer = match self.answer {
            Word::Allow => Answer::Allow {
                input: self.input.as_deref().map(object).transpose()?,
            },
            Word::Deny => Answer::Deny {
                message: self
                    .message
                    .clone()
                    .unwrap_or_else(|| "the user said no".into()),
                interrupt: self.interrupt,
            },
        };
        let by = Answerer::Person;
        let op = Op::Answer {
            question: record.question.id,
            answer: Box::new(GivenAnswer { answer, by }),
        };
        let Done::Answered { agent, held } = operate(store, record.realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        if held {
            return Ok(None);
        }
        let filter = AgentFilter {
            id: Some(agent),
            ..AgentFilter::default()
        };
        let found = store.agents(filter, Page::first(1)).await?;
        let root = found.first().is_some_and(|record| record.origin.is_none());
        Ok(Some(match root {
            true => agent,
            false => record.realm.uuid().into(),
        }))
    }

    /// Answers a plan.
    async fn plan(
        &self,
        store: &dyn Store,
        realm: RealmId,
        plan: &OpenRequest,
    ) -> anyhow::Result<Option<AgentId>> {
        let op = Op::Respond {
            id: Uuid::now_v7().into(),
            request: plan.id,
            kind: plan.kind,
            approve: self.answer == Word::Allow,
            text: self.message.clone().unwrap_or_default(),
        };
        let Done::Responded(receipt) = operate(store, realm, op).await? else {
            anyhow::bail!("the store did something else");
        };
        Ok((!receipt.held).then(|| realm.uuid().into()))
    }
}

/// Returns an input that a person gives.
fn object(text: &str) -> anyhow::Result<RawJson> {
    let parsed = RawJson::parse(text).ok().filter(|json| {
        let value: Result<serde_json::Value, _> = serde_json::from_str(json.get());
        value.is_ok_and(|value| value.is_object())
    });
    parsed.ok_or_else(|| {
        let what = "--input must be a JSON object".into();
        let advice = r#"posse requests answer ID allow --input '{"command":"ls"}'"#.into();
        Advised { what, advice }.into()
    })
}
