//! Runs the commands in a skill's instructions. Each needs the same permission as a call of Bash;
//! it is replaced by its output, or by why it did not run.

use std::sync::Arc;

use posse_port::store::{NewQuestion, question_id};
use posse_protocol::{AgentId, Answer, Denial, Question, QuestionKind, RawJson, ToolContent};
use serde_json::json;

use crate::agent::host_gate::{CallHosts, HostsOf};
use crate::agent::person;
use crate::definition::skill::{Fork, Skill, TemplatePart};
use crate::definition::tool_name::AGENT;
use crate::live::registry::{LiveAgent, Registry};
use crate::live::setup::Approver;
use crate::prompt;
use posse_permission::{Consent, Policy, Rights, Verdict};
use posse_port::confinement::Where;
use posse_port::text::neutral;
use posse_port::tool::{Intent, Subject, Tool, ToolContext, ToolError, Workspace};

/// Tool that runs the commands.
pub(crate) const SHELL: &str = "Bash";

/// Checks and runs the commands of one skill.
pub(crate) struct Gate {
    pub(crate) registry: Arc<Registry>,
    pub(crate) agent: AgentId,
    /// The shell; none if the agent has none.
    pub(crate) shell: Option<Arc<dyn Tool>>,
    /// Context of the commands; each gets a marker of its own.
    pub(crate) context: ToolContext,
}

/// A person stopped the skill, with this message.
pub(crate) struct Stopped(pub(crate) String);

/// What a person is asked about, or told of if it is denied.
struct Asking {
    tool: &'static str,
    /// ID of the question.
    call: String,
    input: RawJson,
}

/// A command that may run.
struct Cleared {
    input: RawJson,
    intent: Intent,
    place: Where,
}

/// Why a command or an agent was not started.
pub(crate) enum Held {
    /// The reason takes its place in the instructions.
    Said(String),
    /// The skill is stopped.
    Stopped(String),
}

impl Gate {
    /// Returns the instructions with all commands replaced. `rules` apply to these commands only.
    pub(crate) async fn fill(
        &self,
        parts: Vec<TemplatePart>,
        rules: Option<&Arc<Policy>>,
    ) -> Result<String, Stopped> {
        let mut text = String::new();
        let mut number = 0;
        for part in parts {
            match part {
                TemplatePart::Text(part) => text.push_str(&neutral(&part)),
                TemplatePart::Command(command) => {
                    let told = self.run(number, &command, rules).await?;
                    text.push_str(&prompt::skill::printed(&command, &told));
                    number += 1;
                }
            }
        }
        Ok(text)
    }

    /// Runs one command, and returns its output or why it did not run.
    async fn run(
        &self,
        number: usize,
        command: &str,
        rules: Option<&Arc<Policy>>,
    ) -> Result<String, Stopped> {
        let Some(shell) = &self.shell else {
            return Ok("(not run: there is no tool Bash)".into());
        };
        let cleared = match self.clear(shell, number, command, rules).await {
            Ok(cleared) => cleared,
            Err(Held::Said(why)) => return Ok(format!("(not run: {why})")),
            Err(Held::Stopped(why)) => return Err(Stopped(why)),
        };
        let marker = format!("{}.{number}", self.context.marker);
        let hosts = CallHosts::new(
            &self.registry,
            &self.context.clock,
            &HostsOf {
                agent: self.agent,
                key: self.context.key,
                marker: &marker,
                subject: &cleared.intent.subject,
            },
        );
        let context = ToolContext {
            marker,
            hosts: Arc::new(hosts),
            place: cleared.place,
            subject: cleared.intent.subject,
            ..self.context.clone()
        };
        Ok(match shell.run(cleared.input, context).await {
            Ok(output) => texts(&output.content),
            Err(ToolError::Tell(what) | ToolError::Stop(what)) => what,
        })
    }

    /// Checks that the agent may start the one that follows a skill, as if it called the Agent
    /// tool.
    pub(crate) async fn start(&self, skill: &Skill, fork: &Fork) -> Result<(), Held> {
        let who = self
            .registry
            .live_agent(self.agent)
            .ok_or_else(|| Held::Said("the agent has ended".into()))?;
        let agent = fork.agent_type();
        let (title, description) = (
            format!("{agent}: /{}", skill.name),
            format!("/{}", skill.name),
        );
        let input = RawJson::from(&json!({"description": description, "subagent_type": agent}));
        let subject = Subject::Starts {
            agent: agent.to_owned(),
        };
        let intent = Intent {
            read_only: true,
            beside_others: true,
            waits: !fork.background,
            title,
            subject,
        };
        let call = Asking {
            tool: AGENT,
            call: format!("{}.agent", self.context.marker),
            input,
        };
        match who.rights.verdict(AGENT, &intent) {
            Verdict::Allow => Ok(()),
            Verdict::Deny(why) => Err(self.denied(&who, call, why).await),
            Verdict::Ask(why) if who.session.approver() == Approver::Nobody => {
                let why = format!("approval is required and no one is available to give it: {why}");
                Err(self.denied(&who, call, why).await)
            }
            Verdict::Ask(why) => match self.ask(&who, &call, why).await {
                // Changed input is ignored: the prompt is the skill's, and nobody can replace it.
                Some(Answer::Allow { .. }) => Ok(()),
                answer => Err(refused(answer)),
            },
        }
    }

    /// Checks that a command may run, as if the agent called the shell with it.
    async fn clear(
        &self,
        shell: &Arc<dyn Tool>,
        number: usize,
        command: &str,
        rules: Option<&Arc<Policy>>,
    ) -> Result<Cleared, Held> {
        let who = self
            .registry
            .live_agent(self.agent)
            .ok_or_else(|| Held::Said("the agent has ended".into()))?;
        let judge = judge(&who.rights, rules);
        let look = |input: &RawJson| {
            shell
                .intent(input, &self.context.workspace)
                .map_err(|error| Held::Said(error.to_string()))
        };
        let input = RawJson::from(&json!({"command": command}));
        let intent = look(&input)?;
        let cleared = |input, intent: Intent, consent| Cleared {
            place: judge.place(&intent.subject, &consent),
            input,
            intent,
        };
        let call = |input| Asking {
            tool: SHELL,
            call: format!("{}.{number}", self.context.marker),
            input,
        };
        match judge.verdict(SHELL, &intent) {
            Verdict::Allow => Ok(cleared(input, intent, Consent::Rules)),
            Verdict::Deny(why) => Err(self.denied(&who, call(input), why).await),
            Verdict::Ask(why) if who.session.approver() == Approver::Nobody => {
                let why = format!("approval is required and no one is available to give it: {why}");
                Err(self.denied(&who, call(input), why).await)
            }
            Verdict::Ask(why) => match self.ask(&who, &call(input.clone()), why).await {
                Some(Answer::Allow { input: None, .. }) => {
                    Ok(cleared(input, intent, Consent::Person))
                }
                Some(Answer::Allow {
                    input: Some(input), ..
                }) => {
                    // A person may allow what a rule asks about, never what a rule denies.
                    let intent = look(&input)?;
                    match judge.verdict(SHELL, &intent) {
                        Verdict::Deny(why) => Err(self.denied(&who, call(input), why).await),
                        Verdict::Allow | Verdict::Ask(_) => {
                            Ok(cleared(input, intent, Consent::Person))
                        }
                    }
                }
                answer => Err(refused(answer)),
            },
        }
    }

    /// Asks a person for approval.
    async fn ask(&self, who: &LiveAgent, about: &Asking, why: String) -> Option<Answer> {
        let (call, tool, input) = (
            about.call.clone(),
            about.tool.to_owned(),
            about.input.clone(),
        );
        let question = Question {
            id: question_id(self.agent, &call),
            kind: QuestionKind::Permission,
            call,
            tool,
            input,
            why,
            from: person::asks_as(who),
            until_ms: None,
            suggestions: Vec::new(),
            shown: None,
            refused: None,
        };
        let asked = NewQuestion {
            call: self.context.key,
            question,
        };
        let answer = person::ask(&self.registry, self.agent, asked);
        self.context.cancel.run_until_cancelled(answer).await?
    }

    /// Reports a denial to people.
    async fn denied(&self, who: &LiveAgent, about: Asking, why: String) -> Held {
        let Asking { tool, call, input } = about;
        let denial = Denial {
            tool: tool.to_owned(),
            call,
            input,
            why: why.clone(),
        };
        // A front end that does not read must not keep what is cancelled from ending.
        let told = person::tell_denied(who, self.agent, denial);
        self.context.cancel.run_until_cancelled(told).await;
        Held::Said(format!("denied, {why}"))
    }
}

/// Returns what follows from an answer that does not allow it.
fn refused(answer: Option<Answer>) -> Held {
    match answer {
        Some(Answer::Deny {
            message,
            interrupt: true,
        }) => Held::Stopped(message),
        Some(Answer::Deny { message, .. }) => Held::Said(message),
        Some(Answer::Allow { .. } | Answer::Approve { .. }) | None => {
            Held::Said("no one is available any longer to give approval".into())
        }
    }
}

/// Returns the agent's rights with additional rules.
fn judge(rights: &Rights, rules: Option<&Arc<Policy>>) -> Rights {
    let Some(rules) = rules else {
        return rights.clone();
    };
    // A child of the rights, so that the rules do not outlive these commands.
    match rights.child(None, Workspace::clone(rights.workspace())) {
        Ok(judge) => {
            judge.grant(Arc::clone(rules));
            judge
        }
        // Cannot happen: the workspace is the same.
        Err(_) => rights.clone(),
    }
}

/// Returns the text of an output.
pub(crate) fn texts(content: &[ToolContent]) -> String {
    let texts = content.iter().map(|part| match part {
        ToolContent::Text { text } => text.as_str(),
        _ => "(no text)",
    });
    texts.collect::<Vec<_>>().join("\n")
}
