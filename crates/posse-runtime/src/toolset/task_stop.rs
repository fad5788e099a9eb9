//! The TaskStop tool: stops a run with everything it has started.

use std::borrow::Cow;
use std::time::{Duration, UNIX_EPOCH};

use crate::live::stop;
use posse_protocol::{MailId, MailKind, Member, RequestKind, RunStatus, Team};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::live::registry::By;
use crate::prompt;
use crate::toolset::Caller;
use crate::toolset::watch::{Found, tell};
use posse_port::store::{Address, Done, Op, OpResult, Page};
use posse_port::text;
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The TaskStop tool.
pub(super) struct TaskStop(pub(super) Caller);

/// Input of TaskStop.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskStopInput {
    /// The id of the sub-agent or background command, or the name of the sub-agent or teammate.
    #[serde(alias = "shell_id", alias = "name")]
    task_id: String,
}

impl TypedTool for TaskStop {
    type Input = TaskStopInput;

    const NAME: &'static str = "TaskStop";

    fn description(&self) -> Cow<'static, str> {
        "Stops a background command, or a sub-agent with every agent and command it has started. \
         Returns when they are gone; they send no notification. A teammate is interrupted and \
         becomes idle; if it has not answered your shutdown request in time, it is ended."
            .into()
    }

    fn intent(&self, input: &TaskStopInput, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent {
            read_only: true,
            beside_others: true,
            subject: Subject::Nothing,
            waits: true,
            title: format!("stop {}", text::summary(&input.task_id)),
        })
    }

    async fn run(
        &self,
        input: TaskStopInput,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        if let Some((team, teammate)) = self.0.teammate(&input.task_id).await? {
            return self.halt(&team, teammate, &context).await;
        }
        let run = match self.0.find(&input.task_id).await? {
            Found::Live(run) => run,
            Found::Stored {
                facts,
                status: RunStatus::Running,
            } => {
                let what = format!(
                    "{} runs in another process and can only be stopped there",
                    facts.task
                );
                return Err(tell(what));
            }
            Found::Stored { facts, status } => {
                return Err(tell(prompt::not_running(&facts, status)));
            }
        };
        let (factory, me) = (&self.0.factory, self.0.agent);
        if !factory.registry.may_stop(me, &run) {
            return Err(tell(format!(
                "{} is not yours: you can stop only what you started",
                run.facts.task
            )));
        }
        // Counted before the stop: afterwards they are gone.
        let below = factory.registry.below(run.facts.task);
        match stop::stop(&factory.registry, run.facts.task, By::Agent(me)).await {
            Some(end) if end.status == RunStatus::Killed => {
                Ok(ToolOutput::text(prompt::stopped(&run.facts, below)))
            }
            // It ended by itself before it could be stopped.
            Some(end) => Err(tell(prompt::not_running(&run.facts, end.status))),
            None => Err(tell(prompt::not_running(&run.facts, RunStatus::Completed))),
        }
    }

    fn operated(&self, results: &[OpResult]) -> Result<ToolOutput, ToolError> {
        halted(results)
    }
}

impl TaskStop {
    /// Interrupts a teammate, or ends one that has not answered a shutdown request in time.
    async fn halt(
        &self,
        team: &Team,
        teammate: Member,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let caller = &self.0;
        if team.lead != caller.agent {
            let what = format!("you may not stop {}: write to team-lead", teammate.name);
            return Err(tell(what));
        }
        let requests = caller
            .factory
            .ports
            .store
            .requests(team.realm, Some(teammate.agent), Page::all())
            .await;
        let requests = requests.map_err(|error| tell(error.to_string()))?;
        let asked = requests
            .iter()
            .filter(|it| it.kind == RequestKind::Shutdown && it.to == teammate.agent);
        let deadline = caller.here()?.session.setup.spawning.teams.deadline;
        let now = context
            .clock
            .wall()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let late = asked.map(|it| it.asked_ms).min().is_some_and(|asked| {
            let asked = Duration::from_millis(u64::try_from(asked).unwrap_or_default());
            now.saturating_sub(asked) >= deadline
        });
        let (kind, summary) = match late {
            true => (MailKind::Dismissal, "end at once"),
            false => (MailKind::Interruption, "stop what you are doing"),
        };
        // By mail, because the teammate may live in another process.
        let op = Op::Send {
            id: MailId::from(Uuid::now_v7()),
            to: Address::Member {
                team: team.name.clone(),
                name: teammate.name,
            },
            kind,
            summary: summary.to_owned(),
            body: String::new(),
        };
        Ok(ToolOutput {
            then: FollowUp::Operations(vec![op]),
            ..ToolOutput::text("")
        })
    }
}

/// Returns what the caller is told after a teammate was sent a signal.
fn halted(results: &[OpResult]) -> Result<ToolOutput, ToolError> {
    if let Some(refusal) = results.iter().find_map(|result| result.as_ref().err()) {
        return Err(tell(format!("Nothing was stopped: {refusal}.")));
    }
    let mut receipts = results.iter().filter_map(|result| match result {
        Ok(Done::Sent(receipts)) => receipts.first(),
        _ => None,
    });
    Ok(ToolOutput::text(
        match receipts.next().map(|receipt| receipt.kind) {
            Some(MailKind::Dismissal) => {
                "It did not answer your shutdown request in time, and is ended now. Its work may \
             be half done; its tasks can be claimed again."
            }
            _ => {
                "Interrupted: it stops its work and becomes idle, but stays in the team. To end \
             it, ask it with SendMessage, message {\"type\": \"shutdown_request\"}; if it does not \
             answer in time, stop it again."
            }
        },
    ))
}

#[cfg(test)]
mod tests {
    use posse_protocol::ToolContent;

    use super::*;
    use posse_port::store::{Receipt, Refusal};

    fn told(result: OpResult) -> String {
        match halted(&[result]).map(|output| output.content) {
            Ok(content) => match &content[..] {
                [ToolContent::Text { text }] => text.clone(),
                other => panic!("{other:?}"),
            },
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_told_is_what_was_sent() {
        let sent = |kind| {
            let (to, name) = (Uuid::nil().into(), "scout".into());
            Ok(Done::Sent(vec![Receipt {
                to,
                name,
                kind,
                number: 1,
                held: true,
            }]))
        };
        assert!(told(sent(MailKind::Dismissal)).contains("is ended now"));
        assert!(told(sent(MailKind::Interruption)).starts_with("Interrupted: "));
        let refused = told(Err(Refusal::NotYours {
            name: "scout".into(),
        }));
        assert!(refused.starts_with("Nothing was stopped: "), "{refused}");
    }
}
