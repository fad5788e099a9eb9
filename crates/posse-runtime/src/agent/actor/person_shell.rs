//! Commands that a person runs in an agent's directory: with the person's rights, so that no rule is
//! asked, and as guarded as an agent's own, so that nothing of them outlives posse.

use std::sync::Arc;

use posse_port::tool::{LiveOutput, Subject, ToolContext, ToolError};
use posse_protocol::{RawJson, ToolContent};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::agent::actor::work::{RanByPerson, Work};
use crate::agent::actor::{Actor, skills};
use crate::agent::step::Input;
use crate::prompt;

/// Name of the tool that runs commands.
const SHELL: &str = "Bash";

/// Starts a command. Returns false if the agent has no shell.
pub(super) fn start(actor: &Actor, command: String, work: &mut Work) -> bool {
    let Some(tool) = actor.setup.tools.get(SHELL).cloned() else {
        return false;
    };
    let id = Uuid::now_v7();
    let context = ToolContext {
        key: skills::next_key(actor),
        call: String::new(),
        // There is no call whose key could mark it, and the marker must be unique.
        marker: format!("{}.{id}", actor.identity.agent),
        subject: Subject::Runs(command.clone()),
        workspace: Arc::clone(&actor.setup.workspace),
        seen: actor.known_files.clone(),
        reads: actor.machine.policy(),
        clock: Arc::clone(&actor.ports.clock),
        output: LiveOutput::default(),
        first: None,
        cancel: CancellationToken::new(),
    };
    let input = RawJson::from(&json!({ "command": command }));
    work.person_shells.start(id, move |cancel| async move {
        let result = tool.run(input, ToolContext { cancel, ..context }).await;
        RanByPerson { command, result }
    });
    true
}

/// Returns the input for a command that has ended; none if posse lost track of it.
pub(super) fn on_done(ran: Option<RanByPerson>) -> Option<Input> {
    let RanByPerson { command, result } = ran?;
    let output = match result {
        Ok(output) => text(&output.content),
        Err(ToolError::Tell(what) | ToolError::Stop(what)) => what,
    };
    Some(Input::Shown(prompt::run_by_person(&command, &output)))
}

/// Returns the text of an output.
fn text(content: &[ToolContent]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        ToolContent::Text { text } => Some(text.as_str()),
        ToolContent::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
