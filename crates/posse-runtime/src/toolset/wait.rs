//! The Wait tool: waits until runs have ended, within one turn.

use std::borrow::Cow;
use std::sync::Arc;

use posse_protocol::{Notification, RunFacts, RunStatus};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::live::run::Run;
use crate::prompt::Waited;
use crate::toolset::Caller;
use crate::toolset::task_output::patience;
use crate::toolset::watch::{Found, tell};
use posse_port::tool::{
    FollowUp, Intent, Subject, ToolContext, ToolError, ToolOutput, TypedTool, Workspace,
};

/// The Wait tool.
pub(super) struct Wait(pub(super) Caller);

/// Input of Wait.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitInput {
    /// The ids of sub-agents and background commands, or the sub-agents' names; if absent, all you
    /// have started that have not ended.
    ids: Option<Vec<String>>,
    /// `any`: until one has ended; `all`: until all have. `all` if absent.
    #[serde(default)]
    until: Until,
    /// How long to wait, in milliseconds: at most 600000; 30000 if absent.
    timeout: Option<u64>,
}

/// How many must have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Until {
    /// One.
    Any,
    /// All.
    #[default]
    All,
}

impl TypedTool for Wait {
    type Input = WaitInput;

    const NAME: &'static str = "Wait";

    fn description(&self) -> Cow<'static, str> {
        "Sleeps until one or all of your sub-agents and background commands have ended, and \
         returns their results. Use it when you can do nothing useful meanwhile."
            .into()
    }

    fn intent(&self, input: &WaitInput, _: &Workspace) -> Result<Intent, ToolError> {
        patience(input.timeout)?;
        Ok(Intent {
            read_only: true,
            beside_others: true,
            subject: Subject::Nothing,
            waits: true,
            title: "wait".into(),
        })
    }

    async fn run(&self, input: WaitInput, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let timeout = patience(input.timeout)?;
        let (mut live, mut known): (Vec<Arc<Run>>, Vec<RunFacts>) = (Vec::new(), Vec::new());
        let mut elsewhere: Vec<RunFacts> = Vec::new();
        let (mut ended, mut took): (Vec<Notification>, Vec<u64>) = (Vec::new(), Vec::new());
        match input.ids {
            Some(ids) => {
                for id in ids {
                    match self.0.find(&id).await? {
                        Found::Live(run) => live.push(run),
                        // Another process runs it, so its end cannot be waited for here.
                        Found::Stored {
                            facts,
                            status: RunStatus::Running,
                        } => elsewhere.push(facts),
                        Found::Stored { facts, .. } => match self.0.unseen_end(facts.task).await? {
                            Some((end, number)) => {
                                ended.push(end);
                                took.push(number);
                            }
                            None => known.push(facts),
                        },
                    }
                }
            }
            None => live = self.0.factory.registry.live_runs(self.0.agent),
        }
        let enough = !(known.is_empty() && ended.is_empty()) && input.until == Until::Any;
        let mut timed_out = false;
        if !enough {
            tokio::select! {
                // The ends first: if they are there, they are reported even if the time is over.
                biased;
                () = are_over(&live, input.until) => {}
                () = context.cancel.cancelled() => return Err(tell("interrupted while waiting")),
                () = context.clock.sleep(timeout) => timed_out = true,
            }
        }
        let ends: Vec<Arc<Notification>> = live.iter().filter_map(|run| run.outcome()).collect();
        let open = live.iter().filter(|run| run.outcome().is_none());
        let running: Vec<RunFacts> = open.map(|run| run.facts.clone()).chain(elsewhere).collect();
        took.extend(self.0.notices(&ends).await?);
        ended.extend(ends.iter().map(|end| end.as_ref().clone()));
        let told = Waited {
            ended: &ended,
            known: &known,
            running: &running,
            timed_out,
        }
        .told();
        Ok(ToolOutput {
            then: FollowUp::MailShown(took),
            ..ToolOutput::text(told)
        })
    }
}

/// Waits until one or all of the runs have ended.
async fn are_over(runs: &[Arc<Run>], until: Until) {
    match until {
        Until::All => {
            for run in runs {
                run.ended().await;
            }
        }
        Until::Any if runs.is_empty() => {}
        Until::Any => {
            let mut waiting: Vec<_> = runs.iter().map(|run| Box::pin(run.ended())).collect();
            std::future::poll_fn(|context| {
                let mut over = false;
                for run in &mut waiting {
                    // All are polled, so that each wakes this task.
                    over |= run.as_mut().poll(context).is_ready();
                }
                if over {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            })
            .await;
        }
    }
}
