//! Hooks that ask a model whether what happened is as a person wants it. The agent pays for them.

use std::sync::Arc;
use std::time::Duration;

use posse_permission::Rights;
use posse_port::Ports;
use posse_port::hooks::{HookFailure, HookReturn};
use posse_port::model::{Attribution, CallPriority, Encoded, Preamble, Standing, Thinking, Ttl};
use posse_port::store::Charge;
use posse_port::tool::{KnownFiles, Toolbox};
use tokio_util::sync::CancellationToken;

use crate::agent::side_query::{SideQuery, SideReply, SideTools};
use crate::definition::model_choice::{ModelPreference, SMALL, resolve};
use crate::govern::Account;
use crate::history::History;
use crate::history::request_size::RequestSize;
use crate::hook::{Hook, HookAction, HookEvent};
use crate::prompt::side_query::{HOOK_SYSTEM, SideInstruction};

/// Maximum length of an answer, in tokens.
const ANSWER_TOKENS: u32 = 4096;
/// Maximum number of replies of a model that may look at things first.
const LOOKS: usize = 50;
/// Tools that such a model may use, as far as the agent may without asking.
const LOOKING: [&str; 4] = ["Read", "Grep", "Glob", "Bash"];

/// Asks models for the hooks of an agent.
#[derive(Clone)]
pub(crate) struct HookJudge {
    pub(crate) ports: Ports,
    /// Attribution of the agent.
    pub(crate) attribution: Arc<Attribution>,
    /// Whose turn it is when the agent itself calls.
    pub(crate) standing: Standing,
    /// The account that pays.
    pub(crate) account: Account,
    /// The agent's model.
    pub(crate) model: String,
    /// The agent's rights.
    pub(crate) rights: Rights,
    /// The agent's tools.
    pub(crate) tools: Toolbox,
    /// What the agent's own requests begin with.
    pub(crate) own: OwnPrefix,
}

/// The conversation of an agent, for questions about all of it.
#[derive(Clone)]
pub(crate) struct OwnPrefix {
    pub(crate) preamble: Encoded,
    pub(crate) history: History,
    /// The provider's ID of the last reply.
    pub(crate) previous: Option<String>,
    pub(crate) last_request: RequestSize,
}

/// What a model has said to a hook's question, and what that has cost.
pub(crate) struct Judged {
    pub(crate) returned: HookReturn,
    pub(crate) charges: Vec<Charge>,
}

impl HookJudge {
    /// Returns true if a hook asks a model.
    pub(crate) fn is_for(hook: &Hook) -> bool {
        matches!(
            hook.action,
            HookAction::Prompt { .. } | HookAction::Agent { .. }
        )
    }

    /// Asks the question of a hook, about this input.
    pub(crate) async fn ask(&self, hook: &Hook, input: &str, cancel: &CancellationToken) -> Judged {
        let (prompt, model, looks) = match &hook.action {
            HookAction::Prompt { prompt, model, .. } => (prompt, model, false),
            HookAction::Agent { prompt, model } => (prompt, model, true),
            _ => return Judged::not_asked(),
        };
        let cancel = cancel.child_token();
        let query = self.query(hook.event, model.as_deref(), looks, &cancel);
        let instruction = SideInstruction::Hook {
            question: filled(prompt, input),
        };
        let tools = match looks {
            true => self.looking(),
            false => SideTools::Refused,
        };
        let limit = hook.limit();
        let clock = Arc::clone(&self.ports.clock);
        let began = clock.now();
        let asking = query.ask(&instruction, tools);
        tokio::pin!(asking);
        // A late one is cancelled instead of dropped: what it has cost until then is known.
        let (reply, late) = tokio::select! {
            reply = &mut asking => (reply, false),
            () = clock.sleep(limit) => {
                cancel.cancel();
                (asking.await, true)
            }
        };
        Judged::of(
            reply,
            late.then_some(limit),
            clock.now().saturating_sub(began),
        )
    }

    /// Returns the request for a question. At the end of a turn it is about all that the agent has
    /// done: unless a model is named, the agent's own conversation is continued, which is cached.
    fn query(
        &self,
        event: HookEvent,
        model: Option<&str>,
        looks: bool,
        cancel: &CancellationToken,
    ) -> SideQuery {
        let own = event.is_end_of_turn() && !looks && model.is_none();
        let (model, prefix) = match own {
            true => (self.model.clone(), self.own.clone()),
            false => self.fresh(model.unwrap_or(SMALL), looks),
        };
        SideQuery {
            ports: self.ports.clone(),
            preamble: prefix.preamble,
            history: prefix.history,
            open: Vec::new(),
            attribution: Arc::clone(&self.attribution),
            standing: Standing {
                // What the agent has cached is of use for its own conversation only.
                cached: if own { self.standing.cached } else { 0 },
                prompt: self.standing.prompt.filter(|_| own),
                // A call that it guards waits for it, and goes on without it when it is late.
                priority: CallPriority::Person,
                ..self.standing.clone()
            },
            model,
            previous: prefix.previous,
            account: self.account.clone(),
            last_request: prefix.last_request,
            max_tokens: ANSWER_TOKENS,
            ttl: Ttl::FiveMinutes,
            cancel: cancel.clone(),
            hear: None,
        }
    }

    /// Returns a conversation that has not begun, with the model of this name.
    fn fresh(&self, wanted: &str, looks: bool) -> (String, OwnPrefix) {
        let preference = ModelPreference {
            call: Some(wanted),
            ..ModelPreference::default()
        };
        let model = resolve(
            &preference,
            &self.model,
            self.rights.mode(),
            &*self.ports.model,
        );
        let tools = match looks {
            true => self.looking_tools().specs(),
            false => Vec::new(),
        };
        let preamble = self.ports.model.preamble(&Preamble {
            model: model.clone(),
            tools,
            system: vec![HOOK_SYSTEM.trim_end().to_owned()],
            thinking: Thinking::Default,
            effort: None,
        });
        let prefix = OwnPrefix {
            preamble,
            history: History::default(),
            previous: None,
            last_request: RequestSize::default(),
        };
        (model, prefix)
    }

    fn looking_tools(&self) -> Toolbox {
        let mut tools = self.tools.clone();
        tools.retain(|name| LOOKING.contains(&name));
        tools
    }

    fn looking(&self) -> SideTools {
        SideTools::Allowed {
            tools: self.looking_tools(),
            rights: self.rights.clone(),
            seen: KnownFiles::default(),
            turns: LOOKS,
        }
    }
}

impl Judged {
    fn not_asked() -> Self {
        Self {
            returned: HookReturn {
                failure: Some(HookFailure::NotRun("it asks no model".into())),
                ..HookReturn::default()
            },
            charges: Vec::new(),
        }
    }

    /// `late` is the time that it had, if that is over.
    fn of(reply: SideReply, late: Option<Duration>, took: Duration) -> Self {
        let SideReply { charges, text, .. } = reply;
        let (output, failure) = match (text, late) {
            (Ok(text), _) => (text, None),
            (Err(_), Some(limit)) => (String::new(), Some(HookFailure::TimedOut(limit))),
            (Err(error), None) => (String::new(), Some(HookFailure::NotRun(error.to_string()))),
        };
        Self {
            returned: HookReturn {
                code: failure.is_none().then_some(0),
                output,
                failure,
                took,
                ..HookReturn::default()
            },
            charges,
        }
    }
}

/// Returns a question with what happened in it.
fn filled(prompt: &str, input: &str) -> String {
    const PLACE: &str = "$ARGUMENTS";
    match prompt.contains(PLACE) {
        true => prompt.replace(PLACE, input),
        false => format!("{prompt}\n\n{input}"),
    }
}
