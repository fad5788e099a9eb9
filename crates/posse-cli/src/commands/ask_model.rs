//! `posse ask-model`.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use anyhow::Context;
use posse_model::RetryPolicy;
use posse_model::price::PriceList;
use posse_protocol::{ContentBlock, Cost, Message, StopReason, Usage};
use posse_runtime::port::model::{
    Attribution, Call, Failure, ModelEvent, Preamble, Reply, Request, Thinking,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::hint::Advised;
use crate::output::{in_words, print, say, say_to_person, tame};
use crate::provider::{self, Chosen, ProviderArgs};

/// Ask a model one thing and see the reply as it is written.
///
/// No tools, no history, no agent: the shortest way from a question to a model. Without TEXT, or
/// with `-`, the question is read from standard input.
#[derive(clap::Args)]
pub(crate) struct AskModel {
    /// The question
    text: Option<String>,
    #[command(flatten)]
    provider: ProviderArgs,
    /// A system prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The longest reply, in tokens
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    /// Print one JSON object at the end, whatever happens
    #[arg(long)]
    json: bool,
}

/// How the reply is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it comes, on a terminal.
    Live,
    /// In one piece: a program that reads a pipe must not get what a failed attempt had said.
    Whole,
    /// One object, whatever happens.
    Json,
}

impl AskModel {
    fn form(&self) -> Form {
        match (self.json, std::io::stdout().is_terminal()) {
            (true, _) => Form::Json,
            (false, true) => Form::Live,
            (false, false) => Form::Whole,
        }
    }

    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // A person waits: better a quick answer that it does not work than a minute of hope.
        let chosen = self.provider.choose(RetryPolicy { retries: 2, ..RetryPolicy::default() })?;
        // Before the call: a reply that is paid for must not be lost to a typo in a price list.
        let prices = provider::prices()?;
        let question = self.question()?;
        let mut shown =
            Shown { live: self.form() == Form::Live, anything: false, at_line_start: true, unread: None };
        let result = super::runtime()?.block_on(self.ask(&chosen, question, &mut shown));
        if let Some(error) = shown.unread {
            return Err(error.into());
        }
        match result {
            Ok(reply) => self.finish(&chosen, &prices, &reply),
            Err(failure) => {
                let model = &chosen.name;
                let cost: Option<Cost> = failure.spent.iter().map(|usage| prices.cost(model, usage)).sum();
                if !failure.spent.is_empty() {
                    let cost = in_words(cost);
                    say_to_person(&format!("what came is void; it cost {cost} as far as the provider said"));
                }
                if self.form() == Form::Json {
                    let error = failure.error.to_string();
                    let line = json!({"error": error, "attempts": failure.attempts, "wasted": failure.spent, "cost_usd": cost.map(Cost::usd)});
                    print(format!("{line}\n").as_bytes())?;
                }
                Err(failure.error.into())
            }
        }
    }

    fn question(&self) -> anyhow::Result<String> {
        let text = match self.text.as_deref() {
            Some(text) if text != "-" => text.to_owned(),
            _ => {
                if std::io::stdin().is_terminal() {
                    say_to_person("reading the question from the terminal; end with Ctrl-D");
                }
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read standard input as text")?;
                text
            }
        };
        if text.trim().is_empty() {
            anyhow::bail!(Advised {
                what: "there is no question".into(),
                advice: "posse ask-model \"why is the sky blue?\"".into()
            });
        }
        Ok(text)
    }

    async fn ask(&self, chosen: &Chosen, question: String, shown: &mut Shown) -> Result<Reply, Failure> {
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
            entries: &entries,
            marks: &[],
            max_tokens: self.max_tokens,
            previous: None,
        });
        let (attribution, cancel) = (Attribution::default(), CancellationToken::new());
        let mut on = |event: ModelEvent<'_>| shown.event(event, &cancel);
        let call = Call { body, attribution: &attribution, cancel: &cancel, on: &mut on };
        let mut calling = chosen.model.call(call);
        let result = tokio::select! {
            result = &mut calling => result,
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                (&mut calling).await
            }
        };
        drop(calling);
        shown.end_line();
        result
    }

    fn finish(&self, chosen: &Chosen, prices: &PriceList, reply: &Reply) -> anyhow::Result<ExitCode> {
        let name = tame(if reply.model.is_empty() { &chosen.name } else { &reply.model });
        let calls = || reply.wasted.iter().chain([&reply.usage]);
        let spent = calls().fold(Usage::default(), |sum, usage| sum + *usage);
        let cost: Option<Cost> = calls().map(|usage| prices.cost(&name, usage)).sum();
        let texts = reply.content.iter().filter_map(|block| match block {
            ContentBlock::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text: String = texts.collect();
        match self.form() {
            Form::Live => {}
            Form::Whole => print(format!("{}\n", tame(text.trim_end_matches('\n'))).as_bytes())?,
            Form::Json => {
                let line = json!({
                    "text": text, "content": reply.content, "model": name, "stop_reason": reply.stop,
                    "usage": reply.usage, "wasted": reply.wasted, "attempts": reply.attempts,
                    "cost_usd": cost.map(Cost::usd),
                });
                print(format!("{line}\n").as_bytes())?;
            }
        }
        match &reply.stop {
            StopReason::EndTurn | StopReason::StopSequence => {}
            StopReason::MaxTokens => say("the reply was cut at its limit; --max-tokens raises it"),
            StopReason::Refusal => say("the model declined to answer"),
            StopReason::ToolUse => say("the model asked for a tool; ask-model has none"),
            StopReason::PauseTurn => say("the provider paused the reply"),
            StopReason::ContextFull => say("the context window is full"),
            StopReason::Other(word) => say(&format!("the model stopped: {}", tame(word))),
        }
        let (input, Usage { output, .. }) = (spent.prompt(), spent);
        say_to_person(&format!("{name} · {input} tokens in, {output} out · {}", in_words(cost)));
        Ok(ExitCode::SUCCESS)
    }
}

/// What has been shown of the reply.
struct Shown {
    live: bool,
    /// Whether this attempt has shown any text.
    anything: bool,
    at_line_start: bool,
    /// Why the reply could not be written out.
    unread: Option<std::io::Error>,
}

impl Shown {
    fn event(&mut self, event: ModelEvent<'_>, cancel: &CancellationToken) {
        match event {
            ModelEvent::Text(text) if self.live && !text.is_empty() => {
                self.anything = true;
                self.at_line_start = text.ends_with('\n');
                if let Err(error) = print(tame(text).as_bytes()) {
                    // Nobody reads any more, so nothing more need be paid for.
                    self.unread = Some(error);
                    cancel.cancel();
                }
            }
            ModelEvent::Retry { attempt, wait, error } => {
                self.end_line();
                let void =
                    if std::mem::take(&mut self.anything) { ", and what it had said is void" } else { "" };
                say(&format!(
                    "attempt {attempt} failed{void}: {}; next in {:.1} s",
                    tame(&error.to_string()),
                    wait.as_secs_f64()
                ));
            }
            _ => {}
        }
    }

    fn end_line(&mut self) {
        if self.live && !self.at_line_start {
            self.at_line_start = true;
            // The reply is complete either way; a closed pipe has been noticed before.
            let _ = print(b"\n");
        }
    }
}
