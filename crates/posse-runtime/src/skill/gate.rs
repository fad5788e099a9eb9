//! Commands in a skill's instructions: each passes the gate that a call of Bash passes, and in its place comes
//! what it printed, or why it did not run.

use std::sync::Arc;

use posse_protocol::{AgentId, Answer, Denial, Event, EventKind, Question, RawJson, ToolContent};
use serde_json::json;

use super::{Part, words};
use crate::agent::Asker;
use crate::permission::{Policy, Standing, Verdict};
use crate::spawn::house::{House, Resident};
use crate::spawn::words::neutral;
use crate::tool::{Intent, Tool, ToolContext, ToolError, Workspace};

/// The tool that commands are run with.
pub(crate) const SHELL: &str = "Bash";

/// Whose commands they are, and what they run with.
pub(crate) struct Gate {
    pub(crate) house: Arc<House>,
    pub(crate) agent: AgentId,
    /// None if the agent has no shell.
    pub(crate) shell: Option<Arc<dyn Tool>>,
    /// What the commands are given; its marker is made theirs.
    pub(crate) context: ToolContext,
}

/// A person wants nothing more to be done; what they said.
pub(crate) struct Stopped(pub(crate) String);

/// A command that may run.
struct Cleared {
    input: RawJson,
    intent: Intent,
}

/// Why a command does not run.
enum Held {
    /// In its place it says so.
    Said(String),
    /// Nothing goes on.
    Stopped(String),
}

impl Gate {
    /// The text that comes of all parts. `rules` hold besides, for these commands only.
    pub(crate) async fn fill(
        &self,
        parts: Vec<Part>,
        rules: Option<&Arc<Policy>>,
    ) -> Result<String, Stopped> {
        let mut text = String::new();
        let mut number = 0;
        for part in parts {
            match part {
                Part::Text(part) => text.push_str(&neutral(&part)),
                Part::Command(command) => {
                    let told = self.run(number, &command, rules).await?;
                    text.push_str(&words::printed(&command, &told));
                    number += 1;
                }
            }
        }
        Ok(text)
    }

    async fn run(
        &self,
        number: usize,
        command: &str,
        rules: Option<&Arc<Policy>>,
    ) -> Result<String, Stopped> {
        let Some(shell) = &self.shell else { return Ok("(not run: there is no tool Bash)".into()) };
        let cleared = match self.clear(shell, number, command, rules).await {
            Ok(cleared) => cleared,
            Err(Held::Said(why)) => return Ok(format!("(not run: {why})")),
            Err(Held::Stopped(why)) => return Err(Stopped(why)),
        };
        let marker = format!("{}.{number}", self.context.marker);
        let context = ToolContext { marker, subject: cleared.intent.subject, ..self.context.clone() };
        Ok(match shell.run(cleared.input, context).await {
            Ok(output) => texts(&output.content),
            Err(ToolError::Tell(what) | ToolError::Stop(what)) => what,
        })
    }

    /// Whether a command may run, as if the agent had called the shell with it.
    async fn clear(
        &self,
        shell: &Arc<dyn Tool>,
        number: usize,
        command: &str,
        rules: Option<&Arc<Policy>>,
    ) -> Result<Cleared, Held> {
        let who = self.house.resident(self.agent).ok_or_else(|| Held::Said("the agent has ended".into()))?;
        let judge = judge(&who.standing, rules);
        let look = |input: &RawJson| {
            shell.intent(input, &self.context.workspace).map_err(|error| Held::Said(error.to_string()))
        };
        let input = RawJson::from(&json!({"command": command}));
        let intent = look(&input)?;
        match judge.verdict(SHELL, &intent) {
            Verdict::Allow => Ok(Cleared { input, intent }),
            Verdict::Deny(why) => Err(self.denied(&who, number, input, why).await),
            Verdict::Ask(why) if who.tree.asker() == Asker::Nobody => {
                let why = format!("nobody is there to be asked: {why}");
                Err(self.denied(&who, number, input, why).await)
            }
            Verdict::Ask(why) => match self.ask(&who, number, &input, why).await {
                Some(Answer::Allow { input: None }) => Ok(Cleared { input, intent }),
                Some(Answer::Allow { input: Some(input) }) => {
                    // A person may allow what a rule asks about, never what one denies.
                    let intent = look(&input)?;
                    match judge.verdict(SHELL, &intent) {
                        Verdict::Deny(why) => Err(self.denied(&who, number, input, why).await),
                        Verdict::Allow | Verdict::Ask(_) => Ok(Cleared { input, intent }),
                    }
                }
                Some(Answer::Deny { message, interrupt: true }) => Err(Held::Stopped(message)),
                Some(Answer::Deny { message, .. }) => Err(Held::Said(message)),
                None => Err(Held::Said("nobody is there any more to be asked".into())),
            },
        }
    }

    async fn ask(&self, who: &Resident, number: usize, input: &RawJson, why: String) -> Option<Answer> {
        let from = who.run.as_ref().map(|run| {
            let name = run.facts.name.as_ref();
            name.map_or_else(|| who.path.clone(), ToString::to_string)
        });
        let (call, tool, input) = (self.call(number), SHELL.to_owned(), input.clone());
        let question = Question { call, tool, input, why, from };
        self.house.ask(self.agent, &who.tree, question, &self.context.cancel).await
    }

    async fn denied(&self, who: &Resident, number: usize, input: RawJson, why: String) -> Held {
        let denial = Denial { tool: SHELL.to_owned(), call: self.call(number), input, why: why.clone() };
        let event = Event { agent: self.agent, kind: EventKind::Denied(denial) };
        tokio::select! {
            _ = who.tree.events.send(event) => {}
            () = self.context.cancel.cancelled() => {}
        }
        Held::Said(format!("denied, {why}"))
    }

    /// What a command is called where it is asked about.
    fn call(&self, number: usize) -> String {
        format!("{}.{number}", self.context.marker)
    }
}

/// The agent's rights, with rules that hold besides.
fn judge(standing: &Standing, rules: Option<&Arc<Policy>>) -> Standing {
    let Some(rules) = rules else { return standing.clone() };
    match standing.child(None, Workspace::clone(standing.workspace())) {
        Ok(judge) => {
            judge.grant(Arc::clone(rules));
            judge
        }
        // It lies in its own directories, so this does not happen.
        Err(_) => standing.clone(),
    }
}

fn texts(content: &[ToolContent]) -> String {
    let texts = content.iter().map(|part| match part {
        ToolContent::Text { text } => text.as_str(),
        _ => "(no text)",
    });
    texts.collect::<Vec<_>>().join("\n")
}
