//! Decides which hosts an agent's commands connect to: by its rights at that moment, or by wanted a
//! person while the connection waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use posse_permission::Verdict;
use posse_port::BoxFuture;
use posse_port::clock::Clock;
use posse_port::store::{CallKey, NewQuestion, question_id};
use posse_port::text::summary;
use posse_port::tool::{HostGate, HostRefused, Intent, Subject};
use posse_protocol::{AgentId, Answer, Denial, Question, QuestionKind, RawJson, authority};
use serde_json::json;
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::agent::person;
use crate::live::registry::{LiveAgent, Registry};
use crate::live::setup::Approver;

/// What rules and questions call it.
const CONNECT: &str = "Connect";
/// How long a connection waits for a person.
const PATIENCE: Duration = Duration::from_secs(60);

/// The hosts of one call's commands.
pub(crate) struct CallHosts {
    registry: Arc<Registry>,
    agent: AgentId,
    key: CallKey,
    /// Unique to the call.
    marker: String,
    /// The command, for people.
    command: String,
    clock: Arc<dyn Clock>,
    /// What was said about hosts that rules leave open. It holds for the call, also if its command
    /// runs again.
    /// Locked while a person is asked, so that they are asked one thing at a time.
    said: Mutex<HashMap<(String, u16), Result<(), HostRefused>>>,
}

/// The call that hosts are asked for.
pub(crate) struct HostsOf<'a> {
    pub(crate) agent: AgentId,
    pub(crate) key: CallKey,
    pub(crate) marker: &'a str,
    pub(crate) subject: &'a Subject,
}

impl CallHosts {
    /// Returns the hosts of a call.
    pub(crate) fn new(registry: &Arc<Registry>, clock: &Arc<dyn Clock>, of: &HostsOf<'_>) -> Self {
        let command = match of.subject {
            Subject::Runs { command, .. } => command.as_str(),
            _ => "",
        };
        Self {
            registry: Arc::clone(registry),
            agent: of.agent,
            key: of.key,
            marker: of.marker.to_owned(),
            command: summary(command),
            clock: Arc::clone(clock),
            said: Mutex::default(),
        }
    }

    /// Decides about a host that rules leave open.
    async fn ask(
        &self,
        who: &LiveAgent,
        wanted: &AskedHost<'_>,
        why: String,
    ) -> Result<(), HostRefused> {
        let mut said = self.said.lock().await;
        let about = (wanted.host.to_owned(), wanted.port);
        if let Some(said) = said.get(&about) {
            return said.clone();
        }
        // The call may have asked in an earlier process, too.
        let call = format!("{}.connect.{}", self.marker, Uuid::now_v7());
        let answer = match who.session.approver() {
            Approver::Nobody => {
                self.tell_denied(who, wanted, call, &why).await;
                refused(format!("nobody is there to allow it: {why}"))
            }
            _ => self.ask_person(who, wanted, call).await,
        };
        said.insert(about, answer.clone());
        answer
    }

    async fn ask_person(
        &self,
        who: &LiveAgent,
        wanted: &AskedHost<'_>,
        call: String,
    ) -> Result<(), HostRefused> {
        let question = Question {
            id: question_id(self.agent, &call),
            kind: QuestionKind::Permission,
            call,
            tool: CONNECT.to_owned(),
            input: self.input(wanted),
            why: format!("a command wants to connect to {}", wanted.target()),
            from: person::asks_as(who),
            until_ms: None,
            suggestions: who.rights.suggestions(CONNECT, &wanted.intent()),
            shown: None,
            refused: None,
        };
        let asked = NewQuestion {
            call: self.key,
            question,
        };
        // The end of the command ends this as a whole.
        let answer = tokio::select! {
            answer = person::ask(&self.registry, self.agent, asked) => answer,
            () = self.clock.sleep(PATIENCE) => return refused("nobody answered in 60 s"),
        };
        match answer {
            Some(Answer::Allow { .. } | Answer::Approve { .. }) => Ok(()),
            Some(Answer::Deny { message, .. }) => refused(message),
            None => refused("nobody is there any longer to allow it"),
        }
    }

    async fn tell_denied(&self, who: &LiveAgent, wanted: &AskedHost<'_>, call: String, why: &str) {
        let denial = Denial {
            tool: CONNECT.to_owned(),
            call,
            input: self.input(wanted),
            why: why.to_owned(),
        };
        person::tell_denied(who, self.agent, denial).await;
    }

    fn input(&self, wanted: &AskedHost<'_>) -> RawJson {
        let AskedHost { host, port } = wanted;
        RawJson::from(&json!({"host": host, "port": port, "command": self.command}))
    }

    /// Returns what the agent's rights say of a host; none if the agent has ended.
    fn verdict(&self, wanted: &AskedHost<'_>) -> Option<(Arc<LiveAgent>, Verdict)> {
        let who = self.registry.live_agent(self.agent)?;
        let verdict = who.rights.verdict(CONNECT, &wanted.intent());
        Some((who, verdict))
    }
}

/// A host that is asked for.
struct AskedHost<'a> {
    host: &'a str,
    port: u16,
}

impl AskedHost<'_> {
    fn target(&self) -> String {
        authority(self.host, self.port)
    }

    fn intent(&self) -> Intent {
        Intent {
            read_only: true,
            beside_others: true,
            subject: Subject::Connects {
                host: self.host.to_owned(),
                port: self.port,
            },
            waits: false,
            title: format!("{CONNECT} {}", self.target()),
        }
    }
}

impl HostGate for CallHosts {
    fn admit<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<(), HostRefused>> {
        Box::pin(async move {
            let wanted = AskedHost { host, port };
            match self.verdict(&wanted) {
                Some((_, Verdict::Allow)) => Ok(()),
                Some((_, Verdict::Deny(why))) => refused(why),
                Some((who, Verdict::Ask(why))) => self.ask(&who, &wanted, why).await,
                None => refused("the agent has ended"),
            }
        })
    }

    fn allows(&self, host: &str, port: u16) -> bool {
        let verdict = self.verdict(&AskedHost { host, port });
        verdict.is_some_and(|(_, verdict)| verdict == Verdict::Allow)
    }
}

fn refused(why: impl Into<String>) -> Result<(), HostRefused> {
    Err(HostRefused { why: why.into() })
}
