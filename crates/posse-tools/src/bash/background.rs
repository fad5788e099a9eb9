//! Commands that continue after their call.

use std::sync::Arc;
use std::time::Duration;

use posse_port::clock::Clock;
use posse_port::tool::{FollowUp, NewRun, RunReport, ToolContext, ToolError, ToolOutput};
use posse_protocol::{RunStatus, ToolContent};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Bash, BashInput, TITLE, ending};
use crate::answer::{cannot, headline};
use crate::capture::Log;
use crate::live_sink::LiveSink;
use crate::output_file::OutputFile;
use crate::sandbox::AfterCommand;
use crate::shell::{Bounds, How, RunningShell};

impl Bash {
    /// Starts a command that continues in the background.
    pub(super) async fn go_on(
        &self,
        input: BashInput,
        limit: Option<Duration>,
        context: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let id = Uuid::now_v7();
        let output = context.workspace.spill.join(format!("{id}.output"));
        // Created first, so that the file exists when the model is told of it.
        let file = OutputFile::create(&output)
            .await
            .map_err(|error| cannot("make", &output, error))?;
        let (shell, after) = self.start(&input.command, &context).await?;
        let told = format!(
            "It runs in the background; its id is {id}. Its output goes to {} while it runs. You \
             are notified when it ends.",
            output.display()
        );
        let clock = Arc::clone(&context.clock);
        let sink = LiveSink::new(Log::new(file), &context);
        let run = NewRun {
            id,
            description: headline(
                input.description.as_deref().unwrap_or(&input.command),
                TITLE,
            ),
            output,
            work: Box::new(move |cancel| {
                Box::pin(follow(shell, after, sink, limit, clock, cancel))
            }),
        };
        Ok(ToolOutput {
            content: vec![ToolContent::text(told)],
            answer: None,
            then: FollowUp::Runs(Box::new(run)),
        })
    }
}

/// Waits until the command has ended and none of its processes is left.
async fn follow(
    shell: RunningShell,
    after: AfterCommand,
    mut sink: LiveSink<Log>,
    limit: Option<Duration>,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
) -> RunReport {
    let bounds = Bounds {
        limit,
        cancel: &cancel,
        clock: &*clock,
    };
    let ending = shell.follow(bounds, &mut sink).await;
    let result = sink.finish().told().await;
    let ending = match ending {
        Ok(ending) => ending,
        Err(error) => {
            let summary = format!("the shell was lost: {error}");
            return RunReport {
                status: RunStatus::Failed,
                summary,
                result,
            };
        }
    };
    let fault = ending::fault(&ending, limit);
    let status = match (&ending.how, &fault) {
        (How::Interrupted, _) => RunStatus::Killed,
        (_, Some(_)) => RunStatus::Failed,
        (_, None) => RunStatus::Completed,
    };
    let mut summary = fault.unwrap_or_else(|| "exit code 0".into());
    for line in ending::left(&ending).into_iter().chain(after.check()) {
        summary.push(' ');
        summary.push_str(&line);
    }
    RunReport {
        status,
        summary,
        result,
    }
}
