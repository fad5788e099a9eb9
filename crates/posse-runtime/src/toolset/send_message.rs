//! The SendMessage tool: writes to another agent of the session.

mod control;

use std::borrow::Cow;

use posse_protocol::{
    Fault, FaultClass, MailId, MailKind, Name, Outcome, RealmId, RequestKind, Team,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::definition::agent_type::MAIN;
use crate::live::stop;
use crate::prompt;
use crate::prompt::Delivery;
use crate::toolset::Caller;
use crate::toolset::send_message::control::{Control, OutgoingMessage, read};
use crate::toolset::team::teammate;
use crate::toolset::watch::tell;
use posse_port::store::{
    Address, AgentFilter, AgentRecord, Done, Membership, Op, OpResult, Page, Receipt,
};
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// Maximum number of agents among which similar names are looked for.
const NAMED: usize = 1000;

/// Writes to agents.
pub(super) struct SendMessage(pub(super) Caller);

/// Input of SendMessage.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessageInput {
    /// The recipient: an agent's name or id; `main` is the main agent, `team-lead` the lead of your
    /// team, `name@team` a member of a team, `*` everyone else in your team.
    to: String,
    /// The subject in a few words, for people who watch; the first line if absent.
    summary: Option<String>,
    /// The text; or between members of a team an object: {"type": "shutdown_request"} asks a
    /// teammate to stop; shutdown_response and plan_approval_response answer a request by its
    /// request_id, with approve, and a reason or feedback if that is false.
    #[schemars(schema_with = "control::schema")]
    message: Value,
}

impl TypedTool for SendMessage {
    type Input = SendMessageInput;

    const NAME: &'static str = "SendMessage";

    fn description(&self) -> Cow<'static, str> {
        "Writes to another agent of this session. A working agent reads it after its current tool \
         calls; an idle teammate wakes up; a sub-agent that has ended continues with it in the \
         background, and you are notified when it ends again. Other agents read nothing else you \
         write."
            .into()
    }

    fn intent(&self, input: &SendMessageInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent {
            read_only: true,
            // Messages of one agent keep their order.
            beside_others: false,
            subject: Subject::Nothing,
            waits: false,
            title: format!("write to {}", text::summary(&input.to)),
        })
    }

    async fn run(&self, input: SendMessageInput, _: ToolContext) -> Result<ToolOutput, ToolError> {
        let message = read(input.message).map_err(tell)?;
        let id = MailId::from(Uuid::now_v7());
        let op = match message {
            OutgoingMessage::Text(body) => {
                let to = self.address(&input.to).await?;
                let summary = input.summary.filter(|summary| !summary.trim().is_empty());
                let summary = text::summary(summary.as_deref().unwrap_or(&body));
                Op::Send {
                    id,
                    to,
                    kind: MailKind::Text,
                    summary,
                    body,
                }
            }
            OutgoingMessage::Control(_) if input.to == "*" => {
                return Err(tell(
                    "Nothing was sent: a control message goes to one agent; only text can go to *.",
                ));
            }
            OutgoingMessage::Control(Control::Shutdown { reason }) => {
                let to = self.led(&input.to).await?;
                Op::Request {
                    id,
                    to,
                    kind: RequestKind::Shutdown,
                    text: reason,
                }
            }
            OutgoingMessage::Control(Control::Answer {
                request,
                kind,
                approve,
                text,
            }) => Op::Respond {
                id,
                request,
                kind,
                approve,
                text,
            },
        };
        Ok(ToolOutput {
            then: FollowUp::Operations(vec![op]),
            ..ToolOutput::text("")
        })
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        let mut told = Vec::new();
        for result in results {
            match result {
                Ok(Done::Sent(receipts)) => {
                    told.extend(receipts.iter().map(|to| self.told(to)));
                    told.extend(self.noticed(receipts));
                }
                Ok(Done::Requested { request, receipt }) => told.push(format!(
                    "Asked {} to shut down (request_id {request}). The answer comes as mail; if \
                     none comes for a long time, end it with TaskStop.",
                    text::line(&receipt.name)
                )),
                Ok(Done::Responded(receipt)) => told.push(format!(
                    "Answered {}; the request is closed. If you approved your own shutdown, end \
                     your turn now.",
                    text::line(&receipt.name)
                )),
                Ok(_) => {}
                Err(refusal) => return Err(tell(format!("Nothing was sent: {refusal}."))),
            }
        }
        Ok(ToolOutput::text(told.join("\n")))
    }
}

impl SendMessage {
    /// Returns what the sender is told of a delivery.
    fn told(&self, receipt: &Receipt) -> String {
        let factory = &self.0.factory;
        let Receipt { to, name, .. } = receipt;
        let Some(here) = factory.registry.live_agent(self.0.agent) else {
            return prompt::sent(name, *to, Delivery::Waits);
        };
        let (root, output) = (here.session.root, here.session.output(*to));
        let delivery = match factory.registry.live_agent(*to) {
            Some(_) => Delivery::Here,
            None if *to == root => Delivery::Waits,
            None => Delivery::Revived {
                output_file: &output,
            },
        };
        prompt::sent(name, *to, delivery)
    }

    /// Counts a message between teammates. Returns a notice if they do nothing but write, and halts
    /// the session if they go on. What a lead writes and is told is how a team works.
    fn noticed(&self, receipts: &[Receipt]) -> Option<String> {
        let registry = &self.0.factory.registry;
        let here = registry.live_agent(self.0.agent)?;
        here.teammate.as_ref()?;
        let is_teammate = |receipt: &Receipt| match registry.live_agent(receipt.to) {
            Some(agent) => agent.teammate.is_some(),
            // Only teammates and their lead can be alive in another process.
            None => receipt.held && receipt.to != here.session.root,
        };
        if !receipts.iter().any(is_teammate) {
            return None;
        }
        let limits = &here.session.setup.spawning.teams;
        let count = here.session.message_row.count()?;
        if count >= limits.message_limit {
            let message = format!(
                "its members wrote each other {count} messages in a row and did nothing else"
            );
            let fault = Fault {
                class: FaultClass::Repetition,
                status: None,
                message,
            };
            stop::halt(registry, &here.session, Outcome::Paused(fault));
        }
        (count == limits.message_notice).then(|| prompt::talking(count))
    }

    /// Finds the recipient that a name or an ID means.
    async fn address(&self, to: &str) -> Result<Address, ToolError> {
        let caller = &self.0;
        let here = caller.here()?;
        if to == MAIN && here.parent.is_some() {
            return Ok(Address::Agent(here.session.root));
        }
        let mine = caller.memberships().await?;
        match (to, &mine[..]) {
            ("*", mine) => return others(mine),
            // In its only team a member knows who leads, without looking at the roster.
            (Name::LEAD, [only]) if only.lead != caller.agent => {
                return Ok(Address::Member {
                    team: only.team.clone(),
                    name: Name::lead(),
                });
            }
            _ => {}
        }
        let teams = caller.teams().await?;
        let unsent = |why: String| tell(format!("Nothing was sent: {why}."));
        let teammate = teammate(&teams, to, caller.agent).map_err(unsent)?;
        if to.contains('@') || (to == Name::LEAD && teammate.is_some()) {
            return member(to, teammate.map(|(team, _)| team));
        }
        let found = caller.stored(here.session.realm, to).await?;
        match (found, teammate) {
            (Some(found), Some((team, member))) if found.agent != member.agent => {
                Err(unsent(format!(
                    "{to} is both a member of team {} and another agent; write {to}@{} or the id \
                     {}",
                    team.name, team.name, found.agent
                )))
            }
            (_, Some((team, teammate))) => Ok(Address::Member {
                team: team.name.clone(),
                name: teammate.name.clone(),
            }),
            (Some(found), None) => self.agent(to, &found),
            (None, None) if to.parse::<posse_protocol::AgentId>().is_ok() => {
                Err(tell(prompt::without_transcript(to)))
            }
            (None, None) => Err(tell(prompt::nobody(
                to,
                &self.names(here.session.realm, &teams).await?,
            ))),
        }
    }

    /// Returns the address of a sub-agent, if it may be written to.
    fn agent(&self, to: &str, found: &AgentRecord) -> Result<Address, ToolError> {
        if found.agent == self.0.agent {
            return Err(tell("Nothing was sent: that is you."));
        }
        if found.ended.as_ref().is_some_and(|ended| ended.by_person)
            && self.0.factory.registry.live_agent(found.agent).is_none()
        {
            return Err(tell(prompt::stopped_by_user(to)));
        }
        Ok(Address::Agent(found.agent))
    }

    /// Returns the address of a teammate that the caller leads.
    async fn led(&self, to: &str) -> Result<Address, ToolError> {
        match self.0.teammate(to).await? {
            Some((team, teammate)) if team.lead == self.0.agent => Ok(Address::Member {
                team: team.name,
                name: teammate.name,
            }),
            Some((team, _)) => Err(tell(format!(
                "Nothing was sent: only the lead of team {} may ask its members to shut down. \
                 Write to team-lead.",
                team.name
            ))),
            None => Err(tell(format!(
                "Nothing was sent: {} is not a teammate of yours. TaskStop stops a sub-agent.",
                text::line(to)
            ))),
        }
    }

    /// Returns the names that can be written to: named agents, at work or not, and members of the
    /// caller's teams.
    async fn names(&self, realm: RealmId, teams: &[Team]) -> Result<Vec<String>, ToolError> {
        let filter = AgentFilter {
            realm: Some(realm),
            ..AgentFilter::default()
        };
        let found = self
            .0
            .factory
            .ports
            .store
            .agents(filter, Page::first(NAMED))
            .await;
        let found = found.map_err(|error| tell(error.to_string()))?;
        let name = |record: &AgentRecord| {
            record
                .origin
                .as_ref()?
                .name
                .as_ref()
                .map(ToString::to_string)
        };
        let mut names: Vec<String> = found.iter().filter_map(name).collect();
        for team in teams {
            let others = team
                .members
                .iter()
                .filter(|member| member.agent != self.0.agent);
            names.extend(others.map(|member| format!("{}@{}", member.name, team.name)));
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Returns the address of all others in the caller's team.
fn others(mine: &[Membership]) -> Result<Address, ToolError> {
    match mine {
        [only] => Ok(Address::Others {
            team: only.team.clone(),
        }),
        [] => Err(tell(
            "Nothing was sent: * means everyone else in your team, and you are not in a team.",
        )),
        _ => Err(tell(
            "Nothing was sent: you are in several teams; write to name@team.",
        )),
    }
}

/// Returns the address of a member of a team: the caller's, or another of the session.
fn member(to: &str, team: Option<&Team>) -> Result<Address, ToolError> {
    let (name, of) = to.split_once('@').unwrap_or((to, ""));
    let of = team.map_or_else(|| of.parse::<Name>(), |team| Ok(team.name.clone()));
    match (name.parse::<Name>(), of) {
        (Ok(name), Ok(team)) => Ok(Address::Member { team, name }),
        _ => Err(tell(prompt::nobody(to, &[]))),
    }
}
