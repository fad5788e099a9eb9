//! The SendMessage tool: writes to another agent of the session.

use std::borrow::Cow;

use posse_protocol::{AgentId, MailId, MailKind, Name};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::Caller;
use super::watch::tell;
use crate::port::store::{Address, AgentFilter, Done, Op, OpResult, Session};
use crate::spawn::route::MAIN;
use crate::spawn::words::{self, Delivery};
use crate::tool::{Intent, Subject, Then, ToolContext, ToolError, ToolOutput, TypedTool, Workspace};

/// Among so many agents, names are looked for that could have been meant.
const NAMED: usize = 1000;

/// Writes to agents.
pub(super) struct SendMessage(pub(super) Caller);

/// What SendMessage is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessageInput {
    /// Who gets it: an agent's name or id; `main` is the main agent; `name@team` a member of a team, `*`
    /// all others of your team.
    to: String,
    /// What it is about, in a few words for people who look on; the first line if absent.
    summary: Option<String>,
    /// The text.
    #[schemars(with = "String")]
    message: Value,
}

impl TypedTool for SendMessage {
    type Input = SendMessageInput;

    const NAME: &'static str = "SendMessage";

    fn description(&self) -> Cow<'static, str> {
        "Writes to another agent of this session. One that is at work reads it after the tools it is using; one \
         that has ended goes on with it in the background, and you are notified when it ends again. Nobody \
         reads what you write anywhere else."
            .into()
    }

    fn intent(&self, input: &SendMessageInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent {
            read_only: true,
            // What one sends keeps its order.
            beside_others: false,
            subject: Subject::Nothing,
            waits: false,
            title: format!("write to {}", words::summary(&input.to)),
        })
    }

    async fn run(&self, input: SendMessageInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let Value::String(body) = input.message else {
            return Err(tell(
                "message: control messages are for teammates, and there are none yet; write text",
            ));
        };
        if body.trim().is_empty() {
            return Err(tell("message is empty"));
        }
        let to = self.address(&input.to).await?;
        let summary = input.summary.filter(|summary| !summary.trim().is_empty());
        let summary = words::summary(summary.as_deref().unwrap_or(&body));
        let id = MailId::from(Uuid::now_v7());
        let op = Op::Send { id, to, kind: MailKind::Text, summary, body };
        Ok(ToolOutput { then: Then::Operate(vec![op]), ..ToolOutput::text("") })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        let mut told = Vec::new();
        for result in results {
            match result {
                Ok(Done::Sent(receipts)) => {
                    told.extend(receipts.iter().map(|to| self.told(to.to, &to.name)));
                }
                Ok(_) => {}
                Err(refusal) => return Err(tell(format!("Nothing was sent: {refusal}."))),
            }
        }
        Ok(ToolOutput::text(told.join("\n")))
    }
}

impl SendMessage {
    fn told(&self, to: AgentId, name: &str) -> String {
        let house = &self.0.house;
        let Some(here) = house.resident(self.0.agent) else { return words::sent(name, to, Delivery::Waits) };
        let (root, output) = (here.tree.root, here.tree.output(to));
        let delivery = match house.resident(to) {
            Some(_) => Delivery::Running,
            None if to == root => Delivery::Waits,
            None => Delivery::Revived { output_file: &output },
        };
        words::sent(name, to, delivery)
    }

    async fn address(&self, to: &str) -> Result<Address, ToolError> {
        let caller = &self.0;
        let here = caller.house.resident(caller.agent).ok_or_else(|| tell("the caller has ended"))?;
        if let Some((name, team)) = to.split_once('@') {
            let (name, team) = (name.parse::<Name>(), team.parse::<Name>());
            let (Ok(name), Ok(team)) = (name, team) else { return Err(tell(words::nobody(to, &[]))) };
            return Ok(Address::Member { team, name });
        }
        if to == MAIN && here.parent.is_some() {
            return Ok(Address::Agent(here.tree.root));
        }
        if to == "*" {
            return self.others(here.tree.realm).await;
        }
        let Some(found) = caller.stored(here.tree.realm, to).await? else {
            return match self.teammate(here.tree.realm, to).await? {
                Some(address) => Ok(address),
                None if to.parse::<AgentId>().is_ok() => Err(tell(words::without_transcript(to))),
                None => Err(tell(words::nobody(to, &self.names(here.tree.realm).await?))),
            };
        };
        if found.agent == caller.agent {
            return Err(tell("Nothing was sent: that is you."));
        }
        if found.ended.as_ref().is_some_and(|ended| ended.by_person)
            && caller.house.resident(found.agent).is_none()
        {
            return Err(tell(words::stopped_by_user(to)));
        }
        Ok(Address::Agent(found.agent))
    }

    /// The names that can be written to: whoever was given one, at work or not.
    async fn names(&self, realm: posse_protocol::RealmId) -> Result<Vec<String>, ToolError> {
        let filter = AgentFilter { realm: Some(realm), ..AgentFilter::default() };
        let found = self.0.house.ports.store.agents(filter, NAMED).await;
        let found = found.map_err(|error| tell(error.to_string()))?;
        let name = |session: &Session| session.origin.as_ref()?.name.as_ref().map(ToString::to_string);
        let mut names: Vec<String> = found.iter().filter_map(name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The teams that the caller belongs to, with their members.
    async fn teams(&self, realm: posse_protocol::RealmId) -> Result<Vec<posse_protocol::Team>, ToolError> {
        let teams = self.0.house.ports.store.teams(Some(realm), 1000).await;
        let mut teams = teams.map_err(|error| tell(error.to_string()))?;
        teams.retain(|team| team.members.iter().any(|member| member.agent == self.0.agent));
        Ok(teams)
    }

    async fn others(&self, realm: posse_protocol::RealmId) -> Result<Address, ToolError> {
        match self.teams(realm).await?.as_slice() {
            [team] => Ok(Address::Others { team: team.name.clone() }),
            [] => Err(tell("Nothing was sent: * means all others of your team, and you are in none.")),
            _ => Err(tell("Nothing was sent: you are in several teams; write to name@team.")),
        }
    }

    async fn teammate(&self, realm: posse_protocol::RealmId, to: &str) -> Result<Option<Address>, ToolError> {
        let Ok(name) = to.parse::<Name>() else { return Ok(None) };
        let mut teams = self.teams(realm).await?;
        teams.retain(|team| team.members.iter().any(|member| member.name == name));
        Ok(teams.first().map(|team| Address::Member { team: team.name.clone(), name }))
    }
}
