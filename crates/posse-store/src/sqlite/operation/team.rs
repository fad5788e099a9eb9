//! Makes and removes teams, and who belongs to them.

use std::collections::BTreeSet;

use posse_protocol::{AgentId, MailId, MailKind, MemberState, Name, RequestKind};
use posse_runtime::port::store::{AgentState, Done, Joining, Refusal};
use posse_runtime::spawn::words;
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::send::{From, Letter, Recipient};
use super::{Acting, Failure, Outcome, Stop, column};
use crate::sqlite::free;

/// A member that does not lead.
struct Follower {
    name: String,
    agent: AgentId,
    host: Option<Uuid>,
    ended: bool,
}

impl Acting<'_> {
    pub(super) fn create_team(
        &mut self,
        team: &Name,
        description: &str,
        settings: &Map<String, Value>,
        lead: &Joining,
    ) -> Outcome {
        if self.exists(team)? {
            return Err(Refusal::TeamExists { team: team.clone() }.into());
        }
        let sql = "INSERT INTO team (realm, name, lead, created_ms, here_ms, description, settings)
                   VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)";
        self.connection.prepare_cached(sql)?.execute(params![
            self.realm_key(),
            team.as_str(),
            lead.agent.uuid().as_bytes(),
            self.at_ms,
            description,
            column::json(settings)?,
        ])?;
        self.add(team, &Name::lead(), lead)?;
        Ok(Done::TeamCreated)
    }

    pub(super) fn join(
        &mut self,
        team: &Name,
        name: &Name,
        member: &Joining,
        greeting: Option<MailId>,
    ) -> Outcome {
        self.must_exist(team)?;
        let name = self.free_name(team, name)?;
        let (kind, body, summary) = (MailKind::Text, &*member.prompt, words::summary(&member.prompt));
        let to = Recipient { agent: member.agent, name: name.to_string() };
        let letter = greeting.map(|id| Letter { id, kind, summary: &summary, body, always: false });
        if let Some(letter) = &letter {
            letter.must_fit()?;
            self.may_be_greeted(&to, letter)?;
        }
        let color = self.add(team, &name, member)?;
        if let (Some(letter), Some(lead)) = (&letter, self.lead(team.as_str())?) {
            self.deliver(to, From { agent: Some(lead), name: Name::LEAD }, letter)?;
        }
        Ok(Done::Joined { name, color })
    }

    /// Refuses to greet one whose inbox has no room. Who has none yet gets one.
    fn may_be_greeted(&self, to: &Recipient, letter: &Letter<'_>) -> Result<(), Stop> {
        match self.must_have_room(to, 0, letter.bytes() as u64) {
            Err(Stop::Refused(Refusal::NoSuchRecipient { .. })) => Ok(()),
            room => room,
        }
    }

    /// A name as it was wished, or with the lowest number that makes it free.
    fn free_name(&self, team: &Name, wished: &Name) -> Result<Name, Failure> {
        let sql = "SELECT 1 FROM used_name WHERE realm = ?1 AND team = ?2 AND name = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let (realm, mut name) = (self.realm_key(), wished.clone());
        for number in 2_u32.. {
            if !name.is_reserved() && !statement.exists(params![realm, team.as_str(), name.as_str()])? {
                break;
            }
            name = wished.numbered(number);
        }
        Ok(name)
    }

    pub(super) fn hand_over(&mut self, team: &Name, to: &Name) -> Outcome {
        self.must_exist(team)?;
        let lead = self.lead(team.as_str())?;
        if self.actor.is_some() && self.actor != lead {
            return Err(Refusal::NotLead { team: team.clone() }.into());
        }
        let next = self.member(team.as_str(), to.as_str())?;
        let (Some(lead), Some(next)) = (lead, next) else {
            return Err(Refusal::NoSuchRecipient { to: to.to_string() }.into());
        };
        if lead == next {
            return Ok(Done::HandedOver);
        }
        let realm = self.realm_key();
        let sql = "UPDATE team SET lead = ?3 WHERE realm = ?1 AND name = ?2";
        self.connection.prepare_cached(sql)?.execute(params![
            realm,
            team.as_str(),
            next.uuid().as_bytes()
        ])?;
        self.rename_lead(team)?;
        // Who leads cannot be asked to end.
        let sql = "DELETE FROM request WHERE realm = ?1 AND asked = ?2 AND team = ?3 AND kind = ?4";
        let key = params![realm, next.uuid().into_bytes(), team.as_str(), RequestKind::Shutdown.as_str()];
        self.connection.prepare_cached(sql)?.execute(key)?;
        self.pass_on(team, lead, &Recipient { agent: next, name: to.to_string() })?;
        Ok(Done::HandedOver)
    }

    /// Gives the member that is called after what it was a name of its own, in the tasks that it has as well.
    fn rename_lead(&self, team: &Name) -> Result<(), Failure> {
        let realm = self.realm_key();
        let name = self.free_name(team, &Name::main())?;
        let sql = "UPDATE member SET name = ?3 WHERE realm = ?1 AND team = ?2 AND name = ?4 RETURNING agent";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![realm, team.as_str(), name.as_str(), Name::LEAD];
        let Some(agent) = statement.query_row(key, |row| column::id(row, 0)).optional()? else {
            return Ok(());
        };
        self.use_up(team, &name)?;
        let sql =
            "UPDATE task SET owner = ?3 WHERE realm = ?1 AND team = ?2 AND owner_agent = ?4 AND owner = ?5";
        let key = params![realm, team.as_str(), name.as_str(), agent.as_bytes(), Name::LEAD];
        self.connection.prepare_cached(sql)?.execute(key)?;
        Ok(())
    }

    /// Notes that a name is not to be given again.
    fn use_up(&self, team: &Name, name: &Name) -> Result<(), Failure> {
        let sql = "INSERT OR IGNORE INTO used_name (realm, team, name) VALUES (?1, ?2, ?3)";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![self.realm_key(), team.as_str(), name.as_str()])?;
        Ok(())
    }

    pub(super) fn leave(&mut self, team: &Name, name: &Name) -> Outcome {
        self.must_exist(team)?;
        let agent = self
            .member(team.as_str(), name.as_str())?
            .ok_or_else(|| Refusal::NoSuchRecipient { to: name.to_string() })?;
        if name.as_str() == Name::LEAD || self.lead(team.as_str())? == Some(agent) {
            return Err(Refusal::IsLead { name: name.clone() }.into());
        }
        let sql = "DELETE FROM member WHERE realm = ?1 AND team = ?2 AND name = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![self.realm_key(), team.as_str(), name.as_str()])?;
        free::tasks(self.connection, self.realm, agent, Some(team.as_str()), self.news)?;
        self.unassign(team, agent)?;
        let sql = "DELETE FROM request WHERE realm = ?1 AND (asked = ?2 OR asker = ?2) AND team = ?3";
        let key = params![self.realm_key(), agent.uuid().into_bytes(), team.as_str()];
        self.connection.prepare_cached(sql)?.execute(key)?;
        Ok(Done::Left)
    }

    /// Makes the tasks unowned that one was to do: nobody else could begin them.
    fn unassign(&mut self, team: &Name, agent: AgentId) -> Result<(), Failure> {
        let sql = "UPDATE task SET owner = NULL, owner_agent = NULL, version = version + 1
                   WHERE realm = ?1 AND team = ?2 AND status = 0 AND owner_agent = ?3 RETURNING waits = 0";
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = params![self.realm_key(), team.as_str(), agent.uuid().into_bytes()];
        let ready: Vec<bool> = statement.query_map(key, |row| row.get(0))?.collect::<Result<_, _>>()?;
        match ready.contains(&true) {
            true => free::claimable(self.connection, self.realm, Some(team.clone()), self.news),
            false => Ok(()),
        }
    }

    pub(super) fn delete_team(&mut self, team: &Name) -> Outcome {
        self.must_exist(team)?;
        let members = self.followers(team)?;
        let mut names = Vec::new();
        for Follower { name, host, ended, .. } in &members {
            if let Some(host) = host.filter(|_| !ended)
                && !self.gone(host)?
            {
                names.push(name.clone());
            }
        }
        if !names.is_empty() {
            return Err(Refusal::MembersLive { names }.into());
        }
        let hosts: BTreeSet<Uuid> = members.iter().filter_map(|member| member.host).collect();
        for host in hosts {
            // Who has ended may be held by one that lives.
            if self.gone(host)? {
                free::host(self.connection, host, self.news)?;
            }
        }
        let realm = self.realm_key();
        for Follower { agent, .. } in members {
            let sql = "SELECT 1 FROM member WHERE realm = ?1 AND agent = ?2 AND team <> ?3";
            let key = params![realm, agent.uuid().into_bytes(), team.as_str()];
            if self.connection.prepare_cached(sql)?.exists(key)? {
                continue;
            }
            for sql in [
                "DELETE FROM mail WHERE realm = ?1 AND recipient = ?2",
                "DELETE FROM inbox WHERE realm = ?1 AND agent = ?2",
            ] {
                self.connection.prepare_cached(sql)?.execute(params![realm, agent.uuid().as_bytes()])?;
            }
        }
        // The list stays: a team of the same name goes on with its numbers.
        for sql in [
            "DELETE FROM team WHERE realm = ?1 AND name = ?2",
            "DELETE FROM member WHERE realm = ?1 AND team = ?2",
            "DELETE FROM used_name WHERE realm = ?1 AND team = ?2",
            "DELETE FROM request WHERE realm = ?1 AND team = ?2",
            "DELETE FROM note WHERE realm = ?1 AND team = ?2",
            "DELETE FROM task WHERE realm = ?1 AND team = ?2",
            "DELETE FROM dependency WHERE realm = ?1 AND team = ?2",
        ] {
            self.connection.prepare_cached(sql)?.execute(params![realm, team.as_str()])?;
        }
        Ok(Done::TeamDeleted)
    }

    /// Members other than the lead, with the hosts that hold them.
    fn followers(&self, team: &Name) -> Result<Vec<Follower>, Stop> {
        let sql = "SELECT m.name, m.agent, a.host, a.state FROM member m
                   LEFT JOIN agent a ON a.realm = m.realm AND a.id = m.agent
                   WHERE m.realm = ?1 AND m.team = ?2
                       AND m.agent <> (SELECT lead FROM team WHERE realm = ?1 AND name = ?2)
                   ORDER BY m.nth";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![self.realm_key(), team.as_str()], |row| {
            let state: Option<i64> = row.get(3)?;
            let ended = state.and_then(column::state_from).map(AgentState::of_member);
            Ok(Follower {
                name: row.get(0)?,
                agent: column::id(row, 1)?.into(),
                host: column::maybe_id(row, 2)?,
                ended: ended == Some(MemberState::ShutDown),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The colour that was wished, or the first that no member has.
    fn free_color(&self, team: &Name, wished: Option<&str>) -> Result<String, Failure> {
        let sql = "SELECT color FROM member WHERE realm = ?1 AND team = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![self.realm_key(), team.as_str()], |row| row.get(0))?;
        let taken: BTreeSet<String> = rows.collect::<Result<_, _>>()?;
        let wished = wished.filter(|color| !color.is_empty() && !taken.contains(*color));
        Ok(wished.map_or_else(|| posse_protocol::team::free_color(&taken), str::to_owned))
    }

    /// Adds a member as the last, and makes its inbox if it has none; gives its colour.
    fn add(&self, team: &Name, name: &Name, member: &Joining) -> Result<String, Failure> {
        let realm = self.realm_key();
        let color = self.free_color(team, member.color.as_deref())?;
        if !name.is_reserved() {
            self.use_up(team, name)?;
        }
        let sql = "SELECT coalesce(max(nth) + 1, 0) FROM member WHERE realm = ?1 AND team = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let nth: i64 = statement.query_row(params![realm, team.as_str()], |row| row.get(0))?;
        let sql =
            "INSERT INTO member (realm, team, name, nth, agent, agent_type, model, prompt, color, backend,
                       cwd, joined_ms, role, takes)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        self.connection.prepare_cached(sql)?.execute(params![
            realm,
            team.as_str(),
            name.as_str(),
            nth,
            member.agent.uuid().as_bytes(),
            member.agent_type,
            member.model,
            member.prompt,
            color,
            member.backend,
            column::path(&member.cwd),
            self.at_ms,
            member.role,
            column::takes(&member.takes)?,
        ])?;
        let sql = "INSERT OR IGNORE INTO inbox (realm, agent, last, waiting, bytes, host)
                   VALUES (?1, ?2, 0, 0, 0, (SELECT host FROM agent WHERE realm = ?1 AND id = ?2))";
        self.connection.prepare_cached(sql)?.execute(params![realm, member.agent.uuid().as_bytes()])?;
        Ok(color)
    }
}
