//! `posse ask-model`.

use std::process::ExitCode;

use posse_port::model::{
    Attribution, Call, CallPriority, Failure, ModelEvent, Preamble, Reply, Request, Standing,
    Thinking,
};
use posse_port::price::Prices;
use posse_protocol::{ContentBlock, Cost, Message, StopReason, Usage};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::assemble::provider::{self, ChosenModel, ProviderArgs};
use crate::headless::answer::{self, AnswerForm, AnswerWriter};
use crate::output::{grouped, in_words, print, say, say_to_person, tame};
use crate::present::usage::{list, usage};

/// Ask a model one question and stream the reply.
///
/// No tools, no history, no agent: the shortest way from a question to a model. Without TEXT, or
/// with `-`, the question is read from standard input.
#[derive(clap::Args)]
pub(crate) struct AskModelCommand {
    /// Question
    text: Option<String>,
    #[command(flatten)]
    provider: ProviderArgs,
    /// System prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Maximum length of the reply, in tokens
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// Print one JSON object at the end, whatever happens
    #[arg(long)]
    json: bool,
}

impl AskModelCommand {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let chosen = self.provider.choose(provider::impatient())?;
        // Before the call: a reply that is paid for must not be lost to an error in a price list.
        let prices = provider::prices()?;
        let question = answer::question(
            self.text.as_deref(),
            "posse ask-model \"why is the sky blue?\"",
        )?;
        let mut shown = AnswerWriter::new(AnswerForm::of(self.json));
        let result = crate::config::runtime()?.block_on(self.ask(&chosen, question, &mut shown));
        if let Some(error) = shown.unread {
            return Err(error.into());
        }
        match result {
            Ok(reply) => self.finish(&chosen, &prices, &reply),
            Err(failure) => {
                let model = &chosen.name;
                let cost: Option<Cost> = failure
                    .spent
                    .iter()
                    .map(|usage| prices.cost(model, usage))
                    .sum();
                if !failure.spent.is_empty() {
                    let cost = in_words(cost);
                    say_to_person(&format!(
                        "the partial reply is discarded; it cost {cost} as far as the provider \
                         reported"
                    ));
                }
                if AnswerForm::of(self.json) == AnswerForm::Json {
                    let error = failure.error.to_string();
                    let line = json!({"error": error, "attempts": failure.attempts, "wasted": list(&failure.spent), "cost_usd": cost.map(Cost::usd)});
                    print(format!("{line}\n").as_bytes())?;
                }
                Err(failure.error.into())
            }
        }
    }

    /// Sends the question and streams the reply.
    async fn ask(
        &self,
        chosen: &ChosenModel,
        question: String,
        shown: &mut AnswerWriter,
    ) -> Result<Reply, Failure> {
        let preamble = chosen.model.preamble(&Preamble {
            model: chosen.name.clone(),
            tools: Vec::new(),
            system: self.system.iter().cloned().collect(),
            thinking: Thinking::Default,
            effort: None,
        });
        let entries = [chosen.model.entry(&Message::user(question))];
        let body = chosen.model.body(&Request {
            preamble: &preamble,
            loaded: &[],
            entries: &entries,
            marks: &[],
            max_tokens: self.max_tokens,
            previous: None,
        });
        let (attribution, cancel) = (Attribution::default(), CancellationToken::new());
        let standing = Standing {
            priority: CallPriority::Person,
            ..Standing::default()
        };
        let mut on = |event: ModelEvent<'_>| shown.event(event, &cancel);
        let call = Call {
            body,
            model: &chosen.name,
            standing: &standing,
            attribution: &attribution,
            cancel: &cancel,
            on: &mut on,
        };
        let mut calling = chosen.model.call(call);
        let result = tokio::select! {
            result = &mut calling => result,
            _ = tokio::signal::ctrl_c() => {
                // Waits for the call to end, which then reports what it has cost so far.
                cancel.cancel();
                (&mut calling).await
            }
        };
        // The call borrows `shown` through its listener until it is dropped.
        drop(calling);
        shown.end_line();
        result
    }

    /// Prints the reply and its cost.
    fn finish(
        &self,
        chosen: &ChosenModel,
        prices: &dyn Prices,
        reply: &Reply,
    ) -> anyhow::Result<ExitCode> {
        let name = tame(if reply.model.is_empty() {
            &chosen.name
        } else {
            &reply.model
        });
        let calls = || reply.wasted.iter().chain([&reply.usage]);
        let spent = calls().fold(Usage::default(), |sum, usage| sum + *usage);
        let cost: Option<Cost> = calls().map(|usage| prices.cost(&name, usage)).sum();
        let texts = reply.content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text: String = texts.collect();
        match AnswerForm::of(self.json) {
            AnswerForm::Live => {}
            AnswerForm::Whole => {
                print(format!("{}\n", tame(text.trim_end_matches('\n'))).as_bytes())?
            }
            AnswerForm::Json => {
                let line = json!({
                    "text": text, "content": reply.content, "model": name, "stop_reason": reply.stop,
                    "usage": usage(&reply.usage), "wasted": list(&reply.wasted), "attempts": reply.attempts,
                    "cost_usd": cost.map(Cost::usd),
                });
                print(format!("{line}\n").as_bytes())?;
            }
        }
        match &reply.stop {
            StopReason::MaxTokens => say("the reply was cut at its limit; --max-tokens raises it"),
            StopReason::ToolUse => say("the model asked for a tool; ask-model has none"),
            stop => answer::say_stop(stop),
        }
        let (input, Usage { output, .. }) = (spent.prompt(), spent);
        say_to_person(&format!(
            "{name} · {} tokens in, {} out · {}",
            grouped(input),
            grouped(output),
            in_words(cost)
        ));
        Ok(ExitCode::SUCCESS)
    }
}
