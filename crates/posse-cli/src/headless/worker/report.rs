//! Messages of a worker: lines for people on stderr, or objects for programs on stdout.

use std::collections::HashMap;

use posse_protocol::{AgentId, Event, EventKind, MemberChange, MemberUpdate};
use serde_json::{Value, json};

use super::WorkerConfig;
use crate::config::store::StoreLocation;
use crate::headless::render::denials::Denials;
use crate::output::count;
use crate::output::one_line;
use crate::output::paint::painted;
use crate::output::{json_line, print, say};
use crate::present::question;
use crate::present::sessions::short;

/// Prints messages, and remembers the names of members.
pub(super) struct WorkerReport {
    json: bool,
    names: HashMap<AgentId, String>,
    denials: Denials,
}

impl WorkerReport {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            names: HashMap::new(),
            denials: Denials::default(),
        }
    }

    /// Reports that the worker is ready.
    pub(super) fn ready(
        &self,
        place: &StoreLocation,
        serving: &WorkerConfig,
    ) -> anyhow::Result<()> {
        let (store, teams) = (place.shown(), &serving.teams);
        let names: Vec<&str> = teams.iter().map(|team| team.as_str()).collect();
        let whose = if names.is_empty() {
            "any team".into()
        } else {
            names.join(", ")
        };
        let line = format!("waiting for members of {whose} ({})", one_line(&store));
        self.tell(
            &line,
            json!({"event": "ready", "store": store, "teams": names, "max": serving.most}),
        )
    }

    /// Reports something that is not about a member.
    pub(super) fn note(&self, what: &str) -> anyhow::Result<()> {
        self.tell(&one_line(what), json!({"event": "note", "text": what}))
    }

    /// Reports that a session is left to other workers.
    pub(super) fn left(&self, session: AgentId, why: &str) -> anyhow::Result<()> {
        let line = format!(
            "left session {} to other workers: {}",
            short(session),
            one_line(why)
        );
        self.tell(
            &line,
            json!({"event": "left_out", "session_id": session, "why": why}),
        )
    }

    /// Reports the end.
    pub(super) fn ended(&self, given_back: usize) -> anyhow::Result<()> {
        let line = format!("ended; {} released", count(given_back, "member"));
        self.tell(&line, json!({"event": "ended", "given_back": given_back}))
    }

    /// Reports an event of a hosted agent.
    pub(super) fn event(&mut self, session: AgentId, event: &Event) -> anyhow::Result<()> {
        let agent = event.agent;
        let name = |it: &Self| {
            it.names
                .get(&agent)
                .cloned()
                .unwrap_or_else(|| agent.to_string())
        };
        match &event.kind {
            EventKind::Member(news) => self.member(session, agent, news),
            EventKind::ApprovalRequested(asked) => {
                let value = json!({
                    "event": "asked", "session_id": session, "agent_id": agent, "member": name(self),
                    "request_id": asked.id, "tool": asked.tool,
                });
                self.tell(&question::note(asked), value)
            }
            EventKind::Denied(denial) => {
                let member = name(self);
                let value = json!({
                    "event": "denied", "session_id": session, "agent_id": agent, "member": member,
                    "tool": denial.tool, "why": denial.why,
                });
                match self.denials.add(denial, Some(&member)) {
                    Some(line) => self.tell(&line, value),
                    // A program counts itself.
                    None if self.json => self.tell("", value),
                    None => Ok(()),
                }
            }
            EventKind::Warning(what) => {
                let value = json!({"event": "note", "session_id": session, "agent_id": agent, "text": what});
                self.tell(&format!("{}: {}", name(self), one_line(what)), value)
            }
            _ => Ok(()),
        }
    }

    fn member(
        &mut self,
        session: AgentId,
        agent: AgentId,
        news: &MemberUpdate,
    ) -> anyhow::Result<()> {
        let name = format!("{}@{}", news.name, news.team);
        self.names.insert(agent, name.clone());
        let (what, words) = match &news.what {
            MemberChange::TakenOver | MemberChange::Joined { .. } => ("hosted", "is hosted here"),
            MemberChange::Running => ("running", "works"),
            MemberChange::Idle(_) => ("idle", "is idle"),
            MemberChange::Left => ("left", "has left"),
        };
        if news.what == MemberChange::Left {
            self.names.remove(&agent);
        }
        let value = json!({
            "event": what, "session_id": session, "agent_id": agent, "team": news.team, "member": news.name,
        });
        self.tell(&format!("● {} {words}", painted(&name, &news.color)), value)
    }

    fn tell(&self, line: &str, value: Value) -> anyhow::Result<()> {
        if self.json {
            print(json_line(&value).as_bytes())?;
        } else {
            say(line);
        }
        Ok(())
    }
}
