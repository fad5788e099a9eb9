//! A model that makes calls, and the tool that it calls.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use posse_port::BoxFuture;
use posse_port::model::{
    Body, Call, Encoded, Failure, Model, ModelChoice, Names, Preamble, RateLimits, Reply, Request,
};
use posse_port::tool::{Intent, Subject, Tool, ToolContext, ToolError, ToolOutput, Workspace};
use posse_protocol::{ContentBlock, Message, RawJson, StopReason, ToolSpec, Usage};

/// The tool's name.
pub(crate) const TOOL: &str = "Nothing";

/// A tool that does nothing, and is recorded as if it did.
pub(crate) struct Nothing;

impl Tool for Nothing {
    fn name(&self) -> &str {
        TOOL
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: TOOL.into(),
            description: "Does nothing.".into(),
            input_schema: RawJson::empty_object(),
        }
    }

    fn intent(&self, _: &RawJson, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent {
            read_only: false,
            beside_others: false,
            subject: Subject::Nothing,
            waits: false,
            title: TOOL.into(),
        })
    }

    fn run(&self, _: RawJson, _: ToolContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(std::future::ready(Ok(ToolOutput::text("done"))))
    }
}

/// A model that encodes like another, and makes so many calls one after another in each run.
pub(crate) struct Calls<M> {
    inner: M,
    /// The tool that it calls.
    tool: String,
    calls: u32,
    made: Mutex<HashMap<String, u32>>,
}

impl<M> Calls<M> {
    pub(crate) fn new(inner: M, tool: &str, calls: u32) -> Self {
        Self {
            inner,
            tool: tool.into(),
            calls,
            made: Mutex::default(),
        }
    }

    /// Returns what it says next.
    fn next(&self, agent: &str) -> (Vec<ContentBlock>, StopReason) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let made = made.entry(agent.to_owned()).or_default();
        *made += 1;
        if made.is_multiple_of(self.calls + 1) {
            return (vec![ContentBlock::text("Done.")], StopReason::EndTurn);
        }
        let call = ContentBlock::ToolUse {
            id: format!("call_{agent}_{made}"),
            name: self.tool.clone(),
            input: RawJson::empty_object(),
        };
        (vec![call], StopReason::ToolUse)
    }
}

impl<M> Names for Calls<M> {}

impl<M: Model> Model for Calls<M> {
    fn dialect(&self) -> &'static str {
        self.inner.dialect()
    }

    fn preamble(&self, preamble: &Preamble) -> Encoded {
        self.inner.preamble(preamble)
    }

    fn choice(&self, preamble: &Encoded) -> Option<ModelChoice> {
        self.inner.choice(preamble)
    }

    fn with_choice(&self, preamble: &Encoded, choice: &ModelChoice) -> Option<Encoded> {
        self.inner.with_choice(preamble, choice)
    }

    fn without_thinking(&self, reply: &Encoded) -> Encoded {
        self.inner.without_thinking(reply)
    }

    fn with_definitions_as_text(&self, entry: &Encoded, tools: &[ToolSpec]) -> Encoded {
        self.inner.with_definitions_as_text(entry, tools)
    }

    fn entry(&self, message: &Message) -> Encoded {
        self.inner.entry(message)
    }

    fn encode_head(&self, content: &[ContentBlock]) -> Encoded {
        self.inner.encode_head(content)
    }

    fn encode_tail(&self, content: &[ContentBlock]) -> Encoded {
        self.inner.encode_tail(content)
    }

    fn body(&self, request: &Request<'_>) -> Body {
        self.inner.body(request)
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Reply, Failure>> {
        let (content, stop) = self.next(&call.attribution.agent);
        Box::pin(std::future::ready(Ok(Reply {
            id: "msg".into(),
            model: "claude-opus-5".into(),
            content,
            stop,
            usage: Usage {
                input: 10,
                output: 10,
                ..Usage::default()
            },
            wasted: Vec::new(),
            cache_miss: None,
            limits: RateLimits::default(),
            attempts: 1,
        })))
    }
}
