//! What the store has of a team's work, and what must be true of it.

use std::collections::{BTreeMap, HashMap};

use posse_port::store::{
    AgentFilter, AgentRecord, MailFilter, Page, Store, TaskFilter, Transcript,
};
use posse_protocol::{AgentId, EntryKind, ListId, Mail, MailKind, RealmId, Task, TaskStatus};
use serde_json::Value;

pub(super) struct Found {
    agents: Vec<(AgentRecord, Transcript)>,
    mail: HashMap<AgentId, Vec<Mail>>,
    tasks: Vec<Task>,
}

/// A call and what came of it.
struct Called {
    tool: String,
    input: Value,
    answer: String,
    failed: bool,
}

impl Found {
    pub(super) async fn look(store: &dyn Store, realm: RealmId, list: &ListId) -> Self {
        let filter = AgentFilter {
            realm: Some(realm),
            ..AgentFilter::default()
        };
        let (mut agents, mut mail) = (Vec::new(), HashMap::new());
        for session in store.agents(filter, Page::all()).await.unwrap() {
            let agent = session.agent;
            mail.insert(
                agent,
                store
                    .mail(realm, agent, MailFilter::default(), Page::all())
                    .await
                    .unwrap(),
            );
            agents.push((session, store.read(agent).await.unwrap()));
        }
        let tasks = store
            .tasks(list.clone(), TaskFilter::default(), Page::all())
            .await
            .unwrap();
        Self {
            agents,
            mail,
            tasks,
        }
    }

    pub(super) fn mails(&self) -> impl Iterator<Item = &Mail> {
        self.mail.values().flatten()
    }

    pub(super) fn check(&self, tasks: u64, what: &str) {
        self.check_tasks(tasks, what);
        self.check_order(what);
        self.check_letters(what);
    }

    /// Each task was completed once, and whoever completed it was told so, once.
    fn check_tasks(&self, tasks: u64, what: &str) {
        assert_eq!(self.tasks.len() as u64, tasks, "{what}");
        let mut completed: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for (session, transcript) in &self.agents {
            let calls = calls(transcript);
            let completes =
                |call: &&Called| call.tool == "TaskUpdate" && call.input["status"] == "completed";
            for call in calls.iter().filter(completes).filter(|call| !call.failed) {
                assert!(
                    call.answer.starts_with("Updated, to version"),
                    "{what}: {}",
                    call.answer
                );
                let id = call.input["taskId"].as_str().unwrap().parse().unwrap();
                completed.entry(id).or_default().push(&session.path);
            }
        }
        for task in &self.tasks {
            assert_eq!(task.status, TaskStatus::Completed, "{what}: {task:?}");
            let by = completed.remove(&task.id.0).unwrap_or_default();
            assert_eq!(
                by.len(),
                1,
                "{what}: task {} was completed by {by:?}",
                task.id
            );
        }
        assert!(completed.is_empty(), "{what}: {completed:?}");
    }

    /// Nobody has begun a task before those that it waits for were completed.
    fn check_order(&self, what: &str) {
        let mut begun: BTreeMap<u64, i64> = BTreeMap::new();
        for (_, transcript) in &self.agents {
            for stored in transcript
                .entries
                .iter()
                .filter(|stored| stored.entry.kind != EntryKind::Reply)
            {
                let text = String::from_utf8(stored.entry.sent().to_vec()).unwrap();
                for (at, _) in text.match_indices(" is yours now") {
                    let number = text[..at].rsplit(' ').next().unwrap().parse().unwrap();
                    let first = begun.entry(number).or_insert(stored.at_ms);
                    *first = stored.at_ms.min(*first);
                }
            }
        }
        let ended: BTreeMap<u64, i64> = self
            .tasks
            .iter()
            .map(|task| (task.id.0, task.updated_ms))
            .collect();
        let mut looked = 0;
        for task in &self.tasks {
            for before in &task.blocked_by {
                let (done, first) = (ended[&before.0], begun[&task.id.0]);
                assert!(
                    done <= first,
                    "{what}: task {} was begun at {first}, {before} done at {done}",
                    task.id
                );
                looked += 1;
            }
        }
        assert!(
            looked > self.tasks.len() / 2,
            "{what}: tasks wait for others"
        );
    }

    /// Every letter is of one who knows that it was sent, and is shown to its recipient in one entry.
    fn check_letters(&self, what: &str) {
        let (mut letters, mut sent) = (BTreeMap::new(), 0);
        for (session, transcript) in &self.agents {
            let who = format!("{what}: {}", session.path);
            assert!(transcript.open_calls.is_empty(), "{who}");
            sent += calls(transcript)
                .iter()
                .filter(|it| it.tool == "SendMessage" && !it.failed)
                .count();
            for mail in &self.mail[&session.agent] {
                assert!(mail.shown_in.is_some(), "{who}: never shown: {mail:?}");
            }
            let text: Vec<String> = transcript
                .entries
                .iter()
                .map(|stored| String::from_utf8(stored.entry.sent().to_vec()).unwrap())
                .collect();
            for mail in self.mail[&session.agent]
                .iter()
                .filter(|mail| mail.kind == MailKind::Text)
            {
                let shown = format!("\\n{}\\n</mail>", mail.body);
                let shows: usize = text.iter().map(|text| text.matches(&shown).count()).sum();
                assert_eq!(shows, 1, "{who}: {}", mail.body);
                if mail.body != "Be there." {
                    *letters.entry(mail.body.as_str()).or_insert(0) += 1;
                }
            }
        }
        let twice: Vec<_> = letters.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "{what}: sent twice: {twice:?}");
        assert_eq!(
            letters.len(),
            sent,
            "{what}: whoever has sent something knows it"
        );
    }
}

/// All calls of an agent that were answered.
fn calls(transcript: &Transcript) -> Vec<Called> {
    let mut made: HashMap<String, (String, Value)> = HashMap::new();
    let mut calls = Vec::new();
    for stored in &transcript.entries {
        let messages = [b"[", &stored.entry.sent()[..], b"]"].concat();
        let messages: Vec<Value> = serde_json::from_slice(&messages).unwrap();
        let blocks = messages
            .iter()
            .filter_map(|message| message["content"].as_array())
            .flatten();
        for block in blocks {
            let id = |key: &str| block[key].as_str().unwrap().to_owned();
            match block["type"].as_str() {
                Some("tool_use") => {
                    made.insert(id("id"), (id("name"), block["input"].clone()));
                }
                Some("tool_result") => {
                    let (tool, input) = made.remove(&id("tool_use_id")).unwrap();
                    let answer = match &block["content"] {
                        Value::String(text) => text.clone(),
                        content => content[0]["text"].as_str().unwrap_or_default().to_owned(),
                    };
                    calls.push(Called {
                        tool,
                        input,
                        answer,
                        failed: block["is_error"] == true,
                    });
                }
                _ => {}
            }
        }
    }
    calls
}
