//! Makes and removes teams, and who belongs to them.

use std::collections::BTreeSet;

use posse_protocol::{AgentId, Name};
use posse_runtime::port::store::{Done, Joining, Refusal};
use rusqlite::params;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Acting, Failure, Outcome, Stop, column};
use crate::sqlite::free;

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

    pub(super) fn join(&mut self, team: &Name, name: &Name, member: &Joining) -> Outcome {
        self.must_exist(team)?;
        if name.is_reserved() || self.member(team.as_str(), name.as_str())?.is_some() {
            return Err(Refusal::NameTaken { name: name.clone() }.into());
        }
        self.add(team, name, member)?;
        Ok(Done::Joined)
    }

    pub(super) fn leave(&mut self, team: &Name, name: &Name) -> Outcome {
        self.must_exist(team)?;
        let agent = self
            .member(team.as_str(), name.as_str())?
            .ok_or_else(|| Refusal::NoSuchRecipient { to: name.to_string() })?;
        if name.as_str() == Name::LEAD {
            return Err(Refusal::IsLead { name: name.clone() }.into());
        }
        let sql = "DELETE FROM member WHERE realm = ?1 AND team = ?2 AND name = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute(params![self.realm_key(), team.as_str(), name.as_str()])?;
        free::tasks(self.connection, self.realm, agent, Some(team.as_str()), self.news)?;
        Ok(Done::Left)
    }

    pub(super) fn delete_team(&mut self, team: &Name) -> Outcome {
        self.must_exist(team)?;
        let members = self.followers(team)?;
        let mut names = Vec::new();
        for (name, _, host) in &members {
            if let Some(host) = host
                && !self.gone(*host)?
            {
                names.push(name.clone());
            }
        }
        if !names.is_empty() {
            return Err(Refusal::MembersLive { names }.into());
        }
        for host in members.iter().filter_map(|(_, _, host)| *host).collect::<BTreeSet<_>>() {
            free::host(self.connection, host, self.news)?;
        }
        let realm = self.realm_key();
        for (_, agent, _) in members {
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
            "DELETE FROM note WHERE realm = ?1 AND team = ?2",
            "DELETE FROM task WHERE realm = ?1 AND team = ?2",
            "DELETE FROM dependency WHERE realm = ?1 AND team = ?2",
        ] {
            self.connection.prepare_cached(sql)?.execute(params![realm, team.as_str()])?;
        }
        Ok(Done::TeamDeleted)
    }

    /// Members other than the lead, with the hosts that hold them.
    fn followers(&self, team: &Name) -> Result<Vec<(String, AgentId, Option<Uuid>)>, Stop> {
        let sql = "SELECT m.name, m.agent, a.host FROM member m
                   LEFT JOIN agent a ON a.realm = m.realm AND a.id = m.agent
                   WHERE m.realm = ?1 AND m.team = ?2
                       AND m.agent <> (SELECT lead FROM team WHERE realm = ?1 AND name = ?2)
                   ORDER BY m.nth";
        let mut statement = self.connection.prepare_cached(sql)?;
        let rows = statement.query_map(params![self.realm_key(), team.as_str()], |row| {
            Ok((row.get(0)?, column::id(row, 1)?.into(), column::maybe_id(row, 2)?))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Adds a member as the last, and makes its inbox if it has none.
    fn add(&self, team: &Name, name: &Name, member: &Joining) -> Result<(), Failure> {
        let realm = self.realm_key();
        let sql = "SELECT coalesce(max(nth) + 1, 0) FROM member WHERE realm = ?1 AND team = ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let nth: i64 = statement.query_row(params![realm, team.as_str()], |row| row.get(0))?;
        let sql =
            "INSERT INTO member (realm, team, name, nth, agent, agent_type, model, prompt, color, backend,
                       cwd, joined_ms)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.connection.prepare_cached(sql)?.execute(params![
            realm,
            team.as_str(),
            name.as_str(),
            nth,
            member.agent.uuid().as_bytes(),
            member.agent_type,
            member.model,
            member.prompt,
            member.color,
            member.backend,
            column::path(&member.cwd),
            self.at_ms,
        ])?;
        let sql = "INSERT OR IGNORE INTO inbox (realm, agent, last, waiting, bytes, host)
                   VALUES (?1, ?2, 0, 0, 0, (SELECT host FROM agent WHERE realm = ?1 AND id = ?2))";
        self.connection.prepare_cached(sql)?.execute(params![realm, member.agent.uuid().as_bytes()])?;
        Ok(())
    }
}
