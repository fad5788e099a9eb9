//! What a person does at a board: each act reaches the agent in whichever process it runs.

use posse_port::store::{Address, AgentFilter, Done, NewTask, Op, Page, TaskChange};
use posse_protocol::wire::ClientMessage;
use posse_protocol::{
    AcceptedRules, AgentId, Answer, Answerer, Command, ContentBlock, GivenAnswer, ListId, MailKind,
    QuestionId, TaskId, TaskStatus,
};
use uuid::Uuid;

use super::reader::BoardReader;
use crate::assemble::store::OpenStore;
use crate::config::kept_rules::NewRules;
use crate::config::search_paths::SearchPaths;
use crate::headless::rule_keeper;
use crate::headless::view_socket::client::LiveAgent;
use crate::output::transcript::shortened;
use crate::select::tasks::operate;

/// Number of characters of a message's summary.
const SUMMARY: usize = 80;

/// Acts for a person.
pub(super) struct BoardActions {
    pub(super) open: OpenStore,
}

impl BoardActions {
    pub(super) fn new(open: OpenStore) -> Self {
        Self { open }
    }

    /// Finds the process of this machine that runs an agent.
    pub(super) async fn process_of(&self, agent: AgentId) -> anyhow::Result<LiveAgent> {
        let filter = AgentFilter {
            id: Some(agent),
            ..AgentFilter::default()
        };
        let found = self.open.store.agents(filter, Page::first(1)).await?;
        let record = found.first();
        let record = record.ok_or_else(|| anyhow::anyhow!("there is no such agent any more"))?;
        Ok(LiveAgent::find(self.open.sockets.as_deref(), record).await?)
    }

    /// Tells an agent something, and returns what came of it.
    async fn tell(&self, agent: AgentId, command: Command) -> anyhow::Result<()> {
        let mut process = self.process_of(agent).await?;
        let message = ClientMessage::Command {
            id: Some("board".into()),
            command: Command::To {
                agent,
                command: Box::new(command),
            },
        };
        process.send(message)?;
        process.answer("board").await
    }

    /// Interrupts an agent's run.
    pub(super) async fn interrupt(&self, agent: AgentId, name: &str) -> anyhow::Result<String> {
        self.tell(agent, Command::Interrupt).await?;
        Ok(format!("interrupted {name}"))
    }

    /// Stops an agent and all below it. A main agent stays, with nothing to do.
    pub(super) async fn stop(
        &self,
        agent: AgentId,
        main: AgentId,
        name: &str,
    ) -> anyhow::Result<String> {
        match agent == main {
            true => {
                self.tell(main, Command::Interrupt).await?;
                self.tell(main, Command::StopRuns).await?;
            }
            false => self.tell(main, Command::StopRun(agent.uuid())).await?,
        }
        Ok(format!("stopping {name}"))
    }

    /// Tells an agent a person's words: at once if a process of this machine runs it, else they
    /// wait in its inbox.
    pub(super) async fn message(
        &self,
        reader: &BoardReader,
        agent: AgentId,
        name: &str,
        words: String,
    ) -> anyhow::Result<String> {
        let prompt = Command::Prompt(vec![ContentBlock::text(words.clone())]);
        let Err(why) = self.tell(agent, prompt).await else {
            return Ok(format!("told {name}"));
        };
        let Some((realm, _)) = reader.realm_of(agent) else {
            return Err(why);
        };
        let op = Op::Send {
            id: Uuid::now_v7().into(),
            to: Address::Agent(agent),
            kind: MailKind::Text,
            summary: shortened(words.lines().next().unwrap_or_default(), SUMMARY),
            body: words,
        };
        operate(&*self.open.store, realm, op).await?;
        Ok(format!("{why}; the message waits in the inbox of {name}"))
    }

    /// Answers a question.
    pub(super) async fn answer(
        &self,
        reader: &BoardReader,
        agent: AgentId,
        question: QuestionId,
        answer: Answer,
    ) -> anyhow::Result<String> {
        let (realm, of) = reader
            .realm_of(agent)
            .ok_or_else(|| anyhow::anyhow!("there is no such agent any more"))?;
        let op = Op::Answer {
            question,
            answer: Box::new(GivenAnswer {
                answer,
                by: Answerer::Person,
            }),
        };
        let done = operate(&*self.open.store, realm, op).await?;
        let name = of.name(agent);
        Ok(match done {
            Done::Answered { held: false, .. } => {
                format!("answered; {name} continues when its session is resumed")
            }
            _ => format!("answered; {name} continues"),
        })
    }

    /// Keeps rules for later sessions in the directory of an agent.
    pub(super) fn keep_rules(
        &self,
        reader: &BoardReader,
        agent: AgentId,
        accepted: &AcceptedRules,
    ) -> Option<String> {
        let new = NewRules::of_answer(accepted)?;
        let (_, realm) = reader.realm_of(agent)?;
        let directory = realm.directory(realm.root_of(agent))?;
        Some(rule_keeper::kept(&SearchPaths::at(directory), &new))
    }

    /// Adds a task to a list.
    pub(super) async fn add_task(&self, list: ListId, subject: String) -> anyhow::Result<String> {
        let task = NewTask {
            subject,
            ..NewTask::default()
        };
        let op = Op::CreateTask {
            team: list.team,
            task: Box::new(task),
        };
        match operate(&*self.open.store, list.realm, op).await? {
            Done::TaskCreated(id) => Ok(format!("added task {id}")),
            _ => anyhow::bail!("the store did something else"),
        }
    }

    /// Deletes a task.
    pub(super) async fn delete_task(&self, list: ListId, task: TaskId) -> anyhow::Result<String> {
        let change = TaskChange {
            status: Some(TaskStatus::Deleted),
            ..TaskChange::default()
        };
        let op = Op::UpdateTask {
            team: list.team,
            id: task,
            expect: None,
            change: Box::new(change),
        };
        operate(&*self.open.store, list.realm, op).await?;
        Ok(format!("deleted task {task}"))
    }
}
