//! Queries for teams, their notes, and everything of one team.

use std::collections::HashMap;

use posse_port::store::{AgentState, Archive, Membership, Page, TeamKey};
use posse_protocol::{AgentId, ListId, Mail, Member, MemberState, Name, Note, RealmId, Team};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{PgFailure, PgReader, QueryValues, column, mail, task};
use crate::columns;

/// A member's columns, in the order of [`member`].
const MEMBER: &str =
    "m.name, m.agent, m.agent_type, m.model, m.prompt, m.color, m.backend, m.cwd, m.joined_ms, m.role,
        m.takes, p.state, coalesce(i.waiting, 0), h.id IS NOT NULL";

/// Joins for a member's state, mail and host.
const STANDING: &str = "LEFT JOIN LATERAL (SELECT state, host FROM pulse WHERE realm = m.realm AND agent = m.agent LIMIT 1) p ON true
    LEFT JOIN LATERAL (SELECT waiting FROM inbox WHERE realm = m.realm AND agent = m.agent LIMIT 1) i ON true
    LEFT JOIN LATERAL (SELECT id FROM host WHERE id = p.host AND NOT gone(id) LIMIT 1) h ON true";

const NOTES: &str =
    "SELECT name, version, author, text, written_ms FROM note WHERE realm = $1 AND team = $2";

const LAST: &str = "SELECT last FROM list WHERE realm = $1 AND team = $2";

/// Queries for some teams: the teams, their members, and the names of former members.
struct TeamQueries {
    teams: String,
    members: String,
    former: String,
}

impl TeamQueries {
    /// Returns the queries for the teams that a condition and an order select.
    fn chosen(which: &str) -> Self {
        let chosen = format!("(SELECT * FROM team WHERE {which}) t");
        Self {
            teams: format!(
                "SELECT t.realm, t.name, t.description, t.lead, t.created_ms, t.settings FROM {chosen}
                 ORDER BY t.created_ms DESC, t.realm DESC, t.name DESC"
            ),
            members: format!(
                "SELECT {MEMBER}, t.realm, t.name FROM {chosen}
                 CROSS JOIN LATERAL (SELECT * FROM member WHERE realm = t.realm AND team = t.name OFFSET 0) m
                 {STANDING} ORDER BY m.nth"
            ),
            former: format!(
                "SELECT u.name, t.realm, t.name FROM {chosen}
                 CROSS JOIN LATERAL (SELECT name FROM used_name WHERE realm = t.realm AND team = t.name OFFSET 0) u
                 WHERE NOT EXISTS (SELECT 1 FROM member m WHERE m.realm = t.realm AND m.team = t.name AND m.name = u.name)
                 ORDER BY u.name"
            ),
        }
    }

    fn one() -> Self {
        Self::chosen("realm = $1 AND name = $2")
    }

    async fn prepare(&self, reader: &PgReader<'_>) -> Result<(), PgFailure> {
        reader
            .prepare(&[&self.teams, &self.members, &self.former])
            .await
    }

    async fn read(
        &self,
        reader: &PgReader<'_>,
        about: &QueryValues<'_>,
    ) -> Result<Vec<Team>, PgFailure> {
        let (teams, members, former) = tokio::join!(
            biased;
            reader.rows(&self.teams, about),
            reader.rows(&self.members, about),
            reader.rows(&self.former, about),
        );
        let mut teams: Vec<Team> = teams?.iter().map(team).collect::<Result<_, _>>()?;
        let places: HashMap<_, _> = teams
            .iter()
            .enumerate()
            .map(|(at, team)| ((team.realm, team.name.clone()), at))
            .collect();
        let place = |row: &Row, at: usize| {
            let key = (
                column::get::<Uuid>(row, at)?.into(),
                column::name(row, at + 1)?,
            );
            places
                .get(&key)
                .copied()
                .ok_or_else(|| column::senseless(at))
        };
        for row in &members? {
            teams[place(row, 14)?].members.push(member(row)?);
        }
        for row in &former? {
            teams[place(row, 1)?].former.push(column::name(row, 0)?);
        }
        Ok(teams)
    }
}

impl PgReader<'_> {
    /// Returns teams, newest first.
    pub(in super::super) async fn teams(
        &self,
        realm: Option<RealmId>,
        page: &Page<TeamKey>,
    ) -> Result<Vec<Team>, PgFailure> {
        // The casts tell the server the types of parameters that are not used.
        let which = if realm.is_some() {
            "realm = $1"
        } else {
            "$1::uuid IS NULL"
        };
        let (than, way) = columns::falling(page);
        let beyond = match page.from {
            Some(_) => format!("(created_ms, realm, name) {than} ($3, $4, $5)"),
            None => "$3::bigint IS NULL AND $4::uuid IS NULL AND $5::text IS NULL".into(),
        };
        let teams = TeamQueries::chosen(&format!(
            "{which} AND {beyond}
             ORDER BY created_ms {way}, realm {way}, name {way} LIMIT $2"
        ));
        teams.prepare(self).await?;
        let (realm, limit) = (realm.map(RealmId::uuid), column::most(page.limit));
        let from = page.from.as_ref();
        let (created_ms, of, name) = (
            from.map(|from| from.created_ms),
            from.map(|from| from.realm.uuid()),
            from.map(|from| from.name.as_str()),
        );
        let about: &QueryValues<'_> = &[&realm, &limit, &created_ms, &of, &name];
        let (begun, read, ended) =
            tokio::join!(biased; self.begin(), teams.read(self, about), self.end());
        begun?;
        let read = read?;
        ended?;
        Ok(read)
    }

    /// Returns an agent's memberships.
    pub(in super::super) async fn membership(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> Result<Vec<Membership>, PgFailure> {
        let sql = format!(
            "SELECT {MEMBER}, m.team, t.lead
             FROM (SELECT * FROM member WHERE realm = $1 AND agent = $2 OFFSET 0) m
             CROSS JOIN LATERAL (SELECT lead FROM team WHERE realm = m.realm AND name = m.team LIMIT 1) t
             {STANDING} ORDER BY m.team, m.nth"
        );
        let rows = self.rows(&sql, &[&realm.uuid(), &agent.uuid()]).await?;
        let one = |row: &Row| {
            let (team, lead) = (column::name(row, 14)?, column::get::<Uuid>(row, 15)?.into());
            Ok(Membership {
                team,
                lead,
                member: member(row)?,
            })
        };
        rows.iter().map(one).collect()
    }

    /// Returns the notes of a team or a session, by name.
    pub(in super::super) async fn notes(
        &self,
        list: &ListId,
        page: &Page<Name>,
    ) -> Result<Vec<Note>, PgFailure> {
        let (than, way) = columns::rising(page);
        let beyond = match page.from {
            Some(_) => format!("name {than} $3"),
            None => "true".into(),
        };
        let sql = format!("{NOTES} AND {beyond} ORDER BY name {way} LIMIT $4");
        let types = [Type::UUID, Type::TEXT, Type::TEXT, Type::INT8];
        let from = page.from.as_ref().map(Name::as_str);
        let team = list.team.as_ref().map_or("", Name::as_str);
        let (realm, limit) = (list.realm.uuid(), column::most(page.limit));
        let values: &QueryValues<'_> = &[&realm, &team, &from, &limit];
        let rows = self.typed_rows(&sql, &types, values).await?;
        let notes: Result<_, PgFailure> = rows.iter().map(note).collect();
        Ok(page.in_order(notes?))
    }

    /// Returns everything of a team.
    pub(in super::super) async fn export(
        &self,
        realm: RealmId,
        name: &Name,
    ) -> Result<Option<Archive>, PgFailure> {
        let teams = TeamQueries::one();
        // DISTINCT: an agent that is a member under several names has one inbox.
        let mails = format!(
            "{} JOIN (SELECT DISTINCT realm, agent FROM member WHERE realm = $1 AND team = $2) a
             ON m.realm = a.realm AND m.recipient = a.agent ORDER BY m.recipient, m.number",
            mail::MAIL
        );
        teams.prepare(self).await?;
        let notes = format!("{NOTES} ORDER BY name");
        self.prepare(&[&notes, task::ALL, LAST, &mails]).await?;
        let (realm, name) = (realm.uuid(), name.as_str());
        let about: &QueryValues<'_> = &[&realm, &name];
        let (begun, team, notes, tasks, last, mails, ended) = tokio::join!(
            biased;
            self.begin(),
            teams.read(self, about),
            self.rows(&notes, about),
            self.rows(task::ALL, about),
            self.rows(LAST, about),
            self.rows(&mails, about),
            self.end(),
        );
        begun?;
        let (team, notes, tasks, last, mails) = (team?, notes?, tasks?, last?, mails?);
        ended?;
        let Some(mut team) = team.into_iter().next() else {
            return Ok(None);
        };
        for member in &mut team.members {
            // These describe the moment, not the team: an archive must not change because a
            // member works.
            (member.state, member.waiting, member.held) = (MemberState::default(), 0, false);
        }
        let mut inboxes: HashMap<AgentId, Vec<Mail>> = HashMap::new();
        for row in &mails {
            let message = mail::message(row)?;
            inboxes.entry(message.to).or_default().push(message);
        }
        let inbox = |member: &Member| inboxes.get(&member.agent).cloned().unwrap_or_default();
        Ok(Some(Archive {
            mail: team.members.iter().map(inbox).collect(),
            team,
            notes: notes.iter().map(note).collect::<Result<_, _>>()?,
            tasks: tasks
                .iter()
                .map(task::row_to_task)
                .collect::<Result<_, _>>()?,
            last_task: last.first().map_or(Ok(0), |row| column::bits(row, 0))?,
        }))
    }
}

/// Returns a team without its members.
fn team(row: &Row) -> Result<Team, PgFailure> {
    Ok(Team {
        realm: column::get::<Uuid>(row, 0)?.into(),
        name: column::name(row, 1)?,
        description: column::text(row, 2)?,
        lead: column::get::<Uuid>(row, 3)?.into(),
        created_ms: column::get(row, 4)?,
        settings: column::maybe_json(row, 5)?.unwrap_or_default(),
        members: Vec::new(),
        former: Vec::new(),
    })
}

fn member(row: &Row) -> Result<Member, PgFailure> {
    // A member of an imported team has no agent, and is idle.
    let state = match column::get::<Option<i16>>(row, 11)? {
        None => MemberState::Idle,
        Some(_) => column::one_of(row, 11, AgentState::ALL, columns::state)?.of_member(),
    };
    Ok(Member {
        name: column::name(row, 0)?,
        agent: column::get::<Uuid>(row, 1)?.into(),
        agent_type: column::text(row, 2)?,
        model: column::text(row, 3)?,
        prompt: column::text(row, 4)?,
        color: column::text(row, 5)?,
        backend: column::text(row, 6)?,
        cwd: column::path(row, 7)?,
        joined_ms: column::get(row, 8)?,
        role: column::maybe_text(row, 9)?,
        takes: column::maybe_json(row, 10)?.unwrap_or_default(),
        state,
        waiting: column::bits(row, 12)?,
        held: column::get(row, 13)?,
    })
}

fn note(row: &Row) -> Result<Note, PgFailure> {
    Ok(Note {
        name: column::name(row, 0)?,
        version: column::bits(row, 1)?,
        author: column::text(row, 2)?,
        text: column::text(row, 3)?,
        written_ms: column::get(row, 4)?,
    })
}
