//! What a server asks while it works on a call: hooks answer it, or a person does by a durable question.

use posse_port::BoxFuture;
use posse_port::servers::ServerAsker;
use posse_port::store::{CallKey, NewQuestion, question_id};
use posse_port::tool::ToolContext;
use posse_protocol::{
    Answer, Elicitation, ElicitationReply, ElicitationWish, Question, QuestionKind,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::hook_host::HookHost;
use crate::agent::person;
use crate::agent::step::HookRequest;
use crate::definition::output_schema::OutputSchema;
use crate::hook::{HookEvent, Merged};
use crate::live::registry::LiveAgent;
use crate::toolset::Caller;

/// How often a person is asked about a form that their answers do not fit.
const MOST_ROUNDS: u32 = 5;

/// Asks for a server that works on a call.
#[derive(Clone)]
pub(super) struct CallAsker {
    caller: Caller,
    /// The tool that was called.
    tool: String,
    key: CallKey,
    call: String,
    cancel: CancellationToken,
}

impl CallAsker {
    /// Returns what asks about a call of a tool.
    pub(super) fn new(caller: &Caller, tool: &str, context: &ToolContext) -> Self {
        Self {
            caller: caller.clone(),
            tool: tool.to_owned(),
            key: context.key,
            call: context.call.clone(),
            cancel: context.cancel.clone(),
        }
    }

    /// Asks hooks, and then a person if they do not answer. Hooks see a person's answer before the
    /// server does.
    async fn answer(self, asked: Elicitation) -> ElicitationReply {
        let Ok(who) = self.caller.here() else {
            return ElicitationReply::Cancel;
        };
        let (event, own) = (HookEvent::Elicitation, asked.to_programs().into());
        let said = self.hooks(&who, event, &asked.server, own).await;
        if let Some(reply) = decided(&said) {
            return reply;
        }
        let mut reply = self.person(&who, &asked).await;
        let (event, own) = (HookEvent::ElicitationResult, response(&asked, &reply));
        let said = self.hooks(&who, event, &asked.server, own).await;
        if let Some(other) = decided(&said) {
            reply = other;
        }
        let message = format!(
            "Elicitation response for server \"{}\": {}",
            asked.server,
            reply.action()
        );
        let own = json!({ "message": message, "notification_type": RESPONSE });
        self.hooks(&who, HookEvent::Notification, RESPONSE, own)
            .await;
        reply
    }

    /// Asks a person, until the answer fits the form.
    async fn person(&self, who: &LiveAgent, asked: &Elicitation) -> ElicitationReply {
        let form = match &asked.wish {
            ElicitationWish::Form { schema } => OutputSchema::new(schema).ok(),
            ElicitationWish::Url { .. } => None,
        };
        let mut why = format!("the MCP server {} asks you", asked.server);
        for _ in 0..MOST_ROUNDS {
            let id = question_id(self.caller.agent, &Uuid::now_v7().to_string());
            let question = Question {
                id,
                kind: QuestionKind::Form,
                call: self.call.clone(),
                tool: self.tool.clone(),
                input: asked.to_input(),
                why,
                from: person::asks_as(who),
                until_ms: None,
                suggestions: Vec::new(),
                shown: None,
                refused: None,
            };
            let call = self.key;
            let new = NewQuestion { call, question };
            let answer = person::ask(&self.caller.factory.registry, self.caller.agent, new);
            let answer = self.cancel.run_until_cancelled(answer).await;
            let input = match answer.flatten() {
                Some(Answer::Allow { input, .. }) => input,
                Some(Answer::Deny {
                    interrupt: true, ..
                })
                | None => return ElicitationReply::Cancel,
                Some(Answer::Deny { .. } | Answer::Approve { .. }) => {
                    return ElicitationReply::Decline;
                }
            };
            let reply = asked.reply(input.as_ref());
            let wrong = match reply {
                Ok(reply) => match misfit(form.as_ref(), &reply) {
                    None => return reply,
                    Some(wrong) => wrong,
                },
                Err(wrong) => wrong.to_string(),
            };
            why = format!("the answer does not fit: {wrong}");
        }
        ElicitationReply::Decline
    }

    /// Runs the hooks of an event, and returns what they say.
    async fn hooks(&self, who: &LiveAgent, event: HookEvent, about: &str, own: Value) -> Merged {
        let hooks = who.session.setup.spawning.hooks.now();
        let hooks = hooks.matching(event, about).hooks;
        if hooks.is_empty() {
            return Merged::default();
        }
        let factory = &self.caller.factory;
        let agent = self.caller.agent;
        let posse = json!({ "agent": agent, "path": who.path, "depth": who.depth });
        let host = HookHost::new(&factory.ports, &who.session, &who.rights, posse);
        let request = HookRequest::of_event(event, hooks, about, own);
        let said = host.run(request, self.cancel.clone()).await;
        host.let_go(&factory.supervisor, said.beside);
        said.merged
    }
}

/// The kind of notification that tells of an answer.
const RESPONSE: &str = "elicitation_response";

impl ServerAsker for CallAsker {
    fn ask(&self, asked: Elicitation) -> BoxFuture<'static, ElicitationReply> {
        Box::pin(self.clone().answer(asked))
    }
}

/// Returns what hooks read of the answer.
fn response(asked: &Elicitation, reply: &ElicitationReply) -> Value {
    let mut own = asked.to_programs();
    // What was asked they know.
    for known in ["message", "url", "requested_schema"] {
        own.shift_remove(known);
    }
    // An address without an ID.
    own.retain(|_, value| !value.is_null());
    own.insert("action".into(), json!(reply.action()));
    if let ElicitationReply::Accept(Some(content)) = reply {
        own.insert("content".into(), content.clone());
    }
    Value::Object(own)
}

/// Returns the answer that hooks give; none if they leave it to others.
fn decided(said: &Merged) -> Option<ElicitationReply> {
    if said.denied().is_some() || said.ends_run.is_some() {
        return Some(ElicitationReply::Decline);
    }
    said.more.elicited.as_deref().cloned()
}

/// Returns what is wrong with a person's values for a form.
fn misfit(form: Option<&OutputSchema>, reply: &ElicitationReply) -> Option<String> {
    let ElicitationReply::Accept(content) = reply else {
        return None;
    };
    let values = content.clone().unwrap_or_else(|| json!({}));
    form?.check(&values.to_string()).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_says_nothing_of_an_id_that_the_server_did_not_give() {
        let asked = |id: Option<&str>| Elicitation {
            server: "files".into(),
            message: "Sign in".into(),
            wish: ElicitationWish::Url {
                url: "https://example.org".into(),
                id: id.map(str::to_owned),
            },
        };
        let said = |id| response(&asked(id), &ElicitationReply::Decline);
        let bare = json!({"mcp_server_name": "files", "mode": "url", "action": "decline"});
        assert_eq!(said(None), bare);
        assert_eq!(said(Some("7"))["elicitation_id"], "7");
    }
}
