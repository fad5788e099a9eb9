//! Teams, their notes and tasks, and all of one at once.

use std::collections::HashMap;

use posse_port::store::{Archive, MailFilter, Membership, Page, TaskFilter, TeamKey};
use posse_protocol::{
    AgentId, ListId, Member, MemberState, Name, Note, RealmId, Task, TaskId, Team,
};
use rusqlite::{OptionalExtension, Row, params};

use super::{SqliteFailure, SqliteReader, column};
use crate::columns;
use crate::sqlite::list::ListReader;

/// A team's columns, in the order of [`team`].
const TEAM: &str = "SELECT realm, name, description, lead, created_ms, settings FROM team";

/// A team's members, in the order of [`member`]; the last column is the host.
const MEMBERS: &str =
    "SELECT m.name, m.agent, m.agent_type, m.model, m.prompt, m.color, m.backend, m.cwd,
        m.joined_ms, m.role, m.takes, a.state, coalesce(i.waiting, 0), a.host
    FROM member m
    LEFT JOIN agent a ON a.realm = m.realm AND a.id = m.agent
    LEFT JOIN inbox i ON i.realm = m.realm AND i.agent = m.agent
    WHERE m.realm = ?1 AND m.team = ?2 ORDER BY m.nth";

/// What one agent is in its teams: as above, then the team and who leads it.
pub(in super::super) const MEMBERSHIP: &str = "SELECT m.name, m.agent, m.agent_type, m.model, m.prompt, m.color,
        m.backend, m.cwd, m.joined_ms, m.role, m.takes, a.state, coalesce(i.waiting, 0), a.host, m.team, t.lead
    FROM member m INDEXED BY member_agent CROSS JOIN team t ON t.realm = m.realm AND t.name = m.team
    LEFT JOIN agent a ON a.realm = m.realm AND a.id = m.agent
    LEFT JOIN inbox i ON i.realm = m.realm AND i.agent = m.agent
    WHERE m.realm = ?1 AND m.agent = ?2 ORDER BY m.team, m.nth";

/// Names of those who have left.
const FORMER: &str = "SELECT name FROM used_name used WHERE realm = ?1 AND team = ?2 AND NOT EXISTS
        (SELECT 1 FROM member WHERE member.realm = used.realm AND member.team = used.team
            AND member.name = used.name)
    ORDER BY name";

/// A page of a team's notes.
pub(in super::super) fn notes(page: &Page<Name>) -> String {
    let (than, way) = columns::rising(page);
    let beyond = match page.from {
        Some(_) => format!("name {than} ?3"),
        None => "?3 IS NULL".into(),
    };
    format!(
        "SELECT name, version, author, text, written_ms FROM note
         WHERE realm = ?1 AND team = ?2 AND {beyond} ORDER BY name {way} LIMIT ?4"
    )
}

/// Returns which teams a page has: of the realm 1, if one is given, at most 2, beyond the time 3,
/// the realm 4 and the name 5.
pub(in super::super) fn newest(realm: Option<RealmId>, page: &Page<TeamKey>) -> String {
    // The plus keeps the index of times out of it: a realm has few of all teams.
    let (which, key) = match realm {
        Some(_) => ("realm = ?1", "(+created_ms, realm, name)"),
        None => ("?1 IS NULL", "(created_ms, realm, name)"),
    };
    let (than, way) = columns::falling(page);
    let beyond = match page.from {
        Some(_) => format!("{key} {than} (?3, ?4, ?5)"),
        None => "?3 IS NULL AND ?4 IS NULL AND ?5 IS NULL".into(),
    };
    format!(
        "WHERE {which} AND {beyond}
         ORDER BY created_ms {way}, realm {way}, name {way} LIMIT ?2"
    )
}

impl SqliteReader<'_> {
    /// Teams, the newest first.
    pub(in super::super) fn teams(
        &self,
        realm: Option<RealmId>,
        page: &Page<TeamKey>,
    ) -> Result<Vec<Team>, SqliteFailure> {
        let sql = format!("{TEAM} {}", newest(realm, page));
        let mut statement = self.snapshot.prepare_cached(&sql)?;
        let from = page.from.as_ref();
        let values = params![
            realm.map(|realm| realm.uuid().into_bytes()),
            column::most(page.limit),
            from.map(|from| from.created_ms),
            from.map(|from| from.realm.uuid().into_bytes()),
            from.map(|from| from.name.as_str()),
        ];
        let teams = statement.query_map(values, team)?;
        let teams: Result<_, SqliteFailure> = teams.map(|team| self.with_members(team?)).collect();
        Ok(page.in_order(teams?))
    }

    fn team(&self, realm: RealmId, name: &Name) -> Result<Option<Team>, SqliteFailure> {
        let sql = format!("{TEAM} WHERE realm = ?1 AND name = ?2");
        let mut statement = self.snapshot.prepare_cached(&sql)?;
        let found = statement
            .query_row(params![realm.uuid().into_bytes(), name.as_str()], team)
            .optional()?;
        found.map(|team| self.with_members(team)).transpose()
    }

    fn with_members(&self, mut team: Team) -> Result<Team, SqliteFailure> {
        let mut statement = self.snapshot.prepare_cached(MEMBERS)?;
        let key = params![team.realm.uuid().into_bytes(), team.name.as_str()];
        let rows =
            statement.query_map(key, |row| Ok((member(row)?, column::maybe_id(row, 13)?)))?;
        let mut alive = HashMap::new();
        for row in rows {
            let (mut member, host) = row?;
            member.held = self.holder(host, &mut alive).is_some();
            team.members.push(member);
        }
        let mut statement = self.snapshot.prepare_cached(FORMER)?;
        team.former = statement
            .query_map(key, |row| column::name(row, 0))?
            .collect::<Result<_, _>>()?;
        Ok(team)
    }

    /// Returns what an agent is in its teams.
    pub(in super::super) fn membership(
        &self,
        realm: RealmId,
        agent: AgentId,
    ) -> Result<Vec<Membership>, SqliteFailure> {
        let mut statement = self.snapshot.prepare_cached(MEMBERSHIP)?;
        let rows =
            statement.query_map([realm.uuid().as_bytes(), agent.uuid().as_bytes()], |row| {
                let (team, lead) = (column::name(row, 14)?, column::id(row, 15)?.into());
                Ok((
                    Membership {
                        team,
                        lead,
                        member: member(row)?,
                    },
                    column::maybe_id(row, 13)?,
                ))
            })?;
        let (mut alive, mut found) = (HashMap::new(), Vec::new());
        for row in rows {
            let (mut one, host) = row?;
            one.member.held = self.holder(host, &mut alive).is_some();
            found.push(one);
        }
        Ok(found)
    }

    /// Returns the notes of a team or a session, by name.
    pub(in super::super) fn notes(
        &self,
        list: &ListId,
        page: &Page<Name>,
    ) -> Result<Vec<Note>, SqliteFailure> {
        let mut statement = self.snapshot.prepare_cached(&notes(page))?;
        let values = params![
            list.realm.uuid().into_bytes(),
            list.team.as_ref().map_or("", Name::as_str),
            page.from.as_ref().map(Name::as_str),
            column::most(page.limit),
        ];
        let rows = statement.query_map(values, |row| {
            Ok(Note {
                name: column::name(row, 0)?,
                version: column::from_bits(row.get(1)?),
                author: row.get(2)?,
                text: row.get(3)?,
                written_ms: row.get(4)?,
            })
        })?;
        Ok(page.in_order(rows.collect::<Result<_, _>>()?))
    }

    /// Returns a task, also a deleted one.
    pub(in super::super) fn task(
        &self,
        list: &ListId,
        id: TaskId,
    ) -> Result<Option<Task>, SqliteFailure> {
        ListReader::new(&self.snapshot, list.realm, list.team.as_ref()).task(id)
    }

    /// Returns tasks by their numbers.
    pub(in super::super) fn tasks(
        &self,
        list: &ListId,
        filter: &TaskFilter,
        page: &Page<TaskId>,
    ) -> Result<Vec<Task>, SqliteFailure> {
        ListReader::new(&self.snapshot, list.realm, list.team.as_ref()).tasks(filter, page)
    }

    /// Returns all of a team.
    pub(in super::super) fn export(
        &self,
        realm: RealmId,
        name: &Name,
    ) -> Result<Option<Archive>, SqliteFailure> {
        let Some(mut team) = self.team(realm, name)? else {
            return Ok(None);
        };
        for member in &mut team.members {
            (member.state, member.waiting, member.held) = (MemberState::default(), 0, false);
        }
        let list = ListId {
            realm,
            team: Some(name.clone()),
        };
        let notes = self.notes(&list, &Page::all())?;
        let tasks = ListReader::new(&self.snapshot, realm, Some(name)).all()?;
        let sql = "SELECT last FROM list WHERE realm = ?1 AND team = ?2";
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let last = statement
            .query_row(params![realm.uuid().into_bytes(), name.as_str()], |row| {
                row.get(0)
            })
            .optional()?;
        let everything =
            |member: &Member| self.mail(realm, member.agent, MailFilter::default(), &Page::all());
        let mail = team
            .members
            .iter()
            .map(everything)
            .collect::<Result<_, _>>()?;
        Ok(Some(Archive {
            team,
            notes,
            tasks,
            last_task: last.map_or(0, column::from_bits),
            mail,
        }))
    }
}

/// Returns a team without its members.
fn team(row: &Row<'_>) -> rusqlite::Result<Team> {
    Ok(Team {
        realm: column::id(row, 0)?.into(),
        name: column::name(row, 1)?,
        description: row.get(2)?,
        lead: column::id(row, 3)?.into(),
        created_ms: row.get(4)?,
        settings: column::maybe_json(row, 5)?.unwrap_or_default(),
        members: Vec::new(),
        former: Vec::new(),
    })
}

fn member(row: &Row<'_>) -> rusqlite::Result<Member> {
    Ok(Member {
        name: column::name(row, 0)?,
        agent: column::id(row, 1)?.into(),
        agent_type: row.get(2)?,
        model: row.get(3)?,
        prompt: row.get(4)?,
        color: row.get(5)?,
        backend: row.get(6)?,
        cwd: column::path_from(row.get_ref(7)?.as_blob()?),
        joined_ms: row.get(8)?,
        role: row.get(9)?,
        takes: column::maybe_json(row, 10)?.unwrap_or_default(),
        state: state(row, 11)?,
        waiting: column::from_bits(row.get(12)?),
        held: false,
    })
}

/// Returns how a member stands whose agent's state is in column `at`; one without an agent has
/// nothing to do.
fn state(row: &Row<'_>, at: usize) -> rusqlite::Result<MemberState> {
    let Some(number) = row.get(at)? else {
        return Ok(MemberState::Idle);
    };
    let state = column::state_from(number).ok_or_else(|| column::senseless(at))?;
    Ok(state.of_member())
}
