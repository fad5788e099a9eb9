//! Commands that a person runs in an agent's directory: with the person's rights, so that no rule is
//! asked, and as guarded as an agent's own, so that nothing of them outlives posse.

use posse_port::tool::{Subject, ToolContext, ToolError};
use posse_protocol::RawJson;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::actor::work::{RanByPerson, Work};
use crate::agent::actor::{Actor, skills};
use crate::agent::skill::{SHELL, texts};
use crate::agent::step::Input;
use crate::prompt;

/// Starts a command. Returns false if the agent has no shell.
pub(super) fn start(actor: &Actor, command: String, work: &mut Work) -> bool {
    let Some(tool) = actor.setup.tools.get(SHELL) else {
        return false;
    };
    let input = RawJson::from(&json!({ "command": command }));
    let context = skills::without_call(actor, CancellationToken::new());
    let subject = match tool.intent(&input, &context.workspace) {
        Ok(intent) => intent.subject,
        Err(_) => Subject::runs(command.clone()),
    };
    let context = ToolContext { subject, ..context };
    work.person_shells
        .start(Uuid::now_v7(), move |cancel| async move {
            let result = tool.run(input, ToolContext { cancel, ..context }).await;
            RanByPerson { command, result }
        });
    true
}

/// Returns the input for a command that has ended; none if posse lost track of it.
pub(super) fn on_done(ran: Option<RanByPerson>) -> Option<Input> {
    let RanByPerson { command, result } = ran?;
    let output = match result {
        Ok(output) => texts(&output.content),
        Err(ToolError::Tell(what) | ToolError::Stop(what)) => what,
    };
    Some(Input::Shown(prompt::run_by_person(&command, &output)))
}
