//! Agents without their history: what a list shows.

use std::collections::HashMap;

use bytes::Bytes;
use posse_port::store::{
    AgentFilter, AgentKey, AgentRecord, AgentState, CallKey, Charge, Origin, Page, SessionFilter,
    SessionKey, SubtreeSpending,
};
use posse_protocol::{AgentId, Name, RealmId};
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params};
use uuid::Uuid;

use super::{Hash, SqliteFailure, SqliteReader, column};
use crate::columns::{self, ids_of, ids_with, reserved_in};

/// An agent's row.
pub(super) struct SqliteAgentRow {
    pub(super) session: AgentRecord,
    pub(super) dialect: String,
    pub(super) preamble: Hash,
    /// How many entries are its own.
    pub(super) own: u64,
    /// The last compaction among them.
    pub(super) since: Option<u64>,
    host: Option<Uuid>,
    prompt: Option<(Uuid, i64)>,
}

/// An agent's columns, in the order of [`agent`].
const AGENT: &str = "SELECT realm, id, parent, path, model, mode, cwd, state, created_ms, used_ms,
    own, inherited, dialect, preamble, host, prompt_agent, prompt_seq,
    coalesce(call_seq, 0), coalesce(call_ordinal, 0), coalesce(call_id, ''), coalesce(agent_type, ''), name,
    coalesce(description, ''), starter, ended, coalesce(terms, ''), types, since FROM agent";

/// The totals of an agent and of all agents below it, one row at least for each.
pub(in super::super) const SUBTREE: &str = "WITH RECURSIVE subtree (realm, id, state, last) AS (
        SELECT realm, id, state, own - 1 FROM agent WHERE id = ?1
        UNION ALL SELECT agent.realm, agent.id, agent.state, agent.own - 1 FROM subtree CROSS JOIN agent INDEXED BY agent_parent
            ON agent.realm = subtree.realm AND agent.parent = subtree.id)
    SELECT model, purpose, input, cache_read, cache_write_5m, cache_write_1h, output, thinking, cost, missed, id,
        (SELECT reply FROM entry WHERE state = 1 AND entry.realm = subtree.realm AND entry.agent = id AND seq = last)
    FROM subtree LEFT JOIN total ON total.realm = subtree.realm AND agent = id";

/// Returns which agents a filter means, and in which order: the realm is parameter 1, the parent 2,
/// the name 3, the limit 4, the first id 5 and the last 6; realm, path and id of the row before the
/// page are 7 to 9. The first that is asked for of what is narrow names the index.
pub(in super::super) fn chosen(filter: &AgentFilter, page: &Page<AgentKey>) -> String {
    let index = match filter {
        AgentFilter { id: Some(_), .. }
        | AgentFilter {
            id_prefix: Some(_), ..
        } => "INDEXED BY agent_id",
        AgentFilter {
            unfinished: true, ..
        } => "",
        AgentFilter {
            name: Some(_),
            realm: Some(_),
            ..
        } => "INDEXED BY agent_name",
        AgentFilter {
            parent: Some(_), ..
        } => "INDEXED BY agent_parent",
        AgentFilter { held: true, .. } => "INDEXED BY agent_host",
        _ => "INDEXED BY agent_path",
    };
    let given = |given: bool, yes: &'static str, no: &'static str| if given { yes } else { no };
    let realm = given(filter.realm.is_some(), "realm = ?1", "?1 IS NULL");
    let parent = given(filter.parent.is_some(), "parent = ?2", "?2 IS NULL");
    let name = given(filter.name.is_some(), "name = ?3", "?3 IS NULL");
    let of_id = filter.id.is_some() || filter.id_prefix.is_some();
    let id = given(of_id, "id BETWEEN ?5 AND ?6", "?5 IS NULL AND ?6 IS NULL");
    let held = given(filter.held, "host IS NOT NULL", "true");
    let unfinished = match filter.unfinished {
        true => format!(
            "parent IS NOT NULL AND id IN (
                 SELECT id FROM agent INDEXED BY agent_open
                 WHERE {realm} AND parent IS NOT NULL AND state IN (1, 3, 4)
                 UNION SELECT agent FROM inbox INDEXED BY inbox_waiting WHERE {realm} AND waiting > 0)"
        ),
        false => "true".into(),
    };
    // As few columns as order the list: only so does SQLite see a range of the index.
    let columns: &[&str] = match filter {
        AgentFilter {
            parent: Some(_), ..
        } => &["id"],
        // The plus keeps the index of paths out of it: few are unfinished, and are looked up.
        AgentFilter {
            unfinished: true, ..
        } => &["+realm", "+path", "id"],
        AgentFilter { realm: Some(_), .. } => &["path", "id"],
        _ => &["realm", "path", "id"],
    };
    let (than, way) = columns::rising(page);
    let beyond = match page.from {
        Some(_) => {
            let of = &["?7", "?8", "?9"][3 - columns.len()..];
            format!("({}) {than} ({})", columns.join(", "), of.join(", "))
        }
        None => "?7 IS NULL AND ?8 IS NULL AND ?9 IS NULL".into(),
    };
    let order: Vec<_> = columns.iter().map(|it| format!("{it} {way}")).collect();
    format!(
        "{index} WHERE {id} AND {realm} AND {parent} AND {name} AND {held} AND {unfinished}
             AND {beyond}
         ORDER BY {} LIMIT ?4",
        order.join(", ")
    )
}

/// Returns which root agents a filter means, and in which order: the directory is parameter 1, the
/// first id 2 and the last 3, the limit 4, the time and the id of the row before the page 5 and 6.
pub(in super::super) fn roots(filter: &SessionFilter, page: &Page<SessionKey>) -> String {
    let given = |given: bool, yes: &'static str, no: &'static str| if given { yes } else { no };
    let cwd = given(filter.cwd.is_some(), "cwd = ?1", "?1 IS NULL");
    // The plus keeps the index of ids out of it: every id would do, and the order is another.
    let id = given(filter.id_prefix.is_some(), "id", "+id");
    let (than, way) = columns::falling(page);
    let beyond = match page.from {
        Some(_) => format!("(used_ms, id) {than} (?5, ?6)"),
        None => "?5 IS NULL AND ?6 IS NULL".into(),
    };
    format!(
        "WHERE parent IS NULL AND {cwd} AND {id} BETWEEN ?2 AND ?3 AND {beyond}
         ORDER BY used_ms {way}, id {way} LIMIT ?4"
    )
}

impl SqliteReader<'_> {
    /// Returns an agent, if there is one.
    pub(super) fn agent(&self, id: AgentId) -> Result<Option<SqliteAgentRow>, SqliteFailure> {
        let mut statement = self
            .snapshot
            .prepare_cached(&format!("{AGENT} WHERE id = ?1"))?;
        let found = statement
            .query_row([id.uuid().as_bytes()], agent)
            .optional()?;
        found
            .map(|found| self.complete(found, &mut HashMap::new()))
            .transpose()
    }

    /// Root agents, the one used last first.
    pub(in super::super) fn sessions(
        &self,
        filter: &SessionFilter,
        page: &Page<SessionKey>,
    ) -> Result<Vec<AgentRecord>, SqliteFailure> {
        let Some((first, last)) = ids_with(filter.id_prefix.as_deref().unwrap_or_default()) else {
            return Ok(Vec::new());
        };
        let mut statement = self
            .snapshot
            .prepare_cached(&format!("{AGENT} {}", roots(filter, page)))?;
        let cwd = filter.cwd.as_deref().map(column::path);
        let limit = column::most(page.limit);
        let used_ms = page.from.map(|from| from.used_ms);
        let from = page.from.map(|from| from.agent.uuid().into_bytes());
        let values = params![cwd, first.as_bytes(), last.as_bytes(), limit, used_ms, from];
        let rows = statement.query_map(values, agent)?;
        let mut alive = HashMap::new();
        let found = rows
            .map(|row| Ok(self.complete(row?, &mut alive)?.session))
            .collect::<Result<Vec<_>, SqliteFailure>>()?;
        Ok(page.in_order(found))
    }

    /// Agents, by path and then by age; those of a parent by age. Whether a host lives is not in
    /// the tables, so that the limit is kept while looking.
    pub(in super::super) fn agents(
        &self,
        filter: &AgentFilter,
        page: &Page<AgentKey>,
    ) -> Result<Vec<AgentRecord>, SqliteFailure> {
        let mut filter = filter.clone();
        if let (None, Some(parent)) = (filter.realm, filter.parent) {
            let Some(parent) = self.agent(parent)? else {
                return Ok(Vec::new());
            };
            filter.realm = Some(parent.session.realm);
        }
        let mut statement = self
            .snapshot
            .prepare_cached(&format!("{AGENT} {}", chosen(&filter, page)))?;
        let most = if filter.held {
            -1
        } else {
            column::most(page.limit)
        };
        let (realm, parent) = (
            filter.realm.map(RealmId::uuid),
            filter.parent.map(AgentId::uuid),
        );
        let (realm, parent) = (realm.map(Uuid::into_bytes), parent.map(Uuid::into_bytes));
        let Some(ids) = ids_of(&filter) else {
            return Ok(Vec::new());
        };
        let ids = ids.map(|(first, last)| (first.into_bytes(), last.into_bytes()));
        let (first, last) = ids.unzip();
        let from = page.from.as_ref();
        let rows = statement.query_map(
            params![
                realm,
                parent,
                filter.name.as_ref().map(Name::as_str),
                most,
                first,
                last,
                from.map(|from| from.realm.uuid().into_bytes()),
                from.map(|from| from.path.as_str()),
                from.map(|from| from.agent.uuid().into_bytes()),
            ],
            agent,
        )?;
        let (mut alive, mut found) = (HashMap::new(), Vec::new());
        for row in rows {
            if found.len() >= page.limit {
                break;
            }
            let agent = row?;
            if !filter.held || self.holder(agent.host, &mut alive).is_some() {
                found.push(self.complete(agent, &mut alive)?.session);
            }
        }
        Ok(page.in_order(found))
    }

    /// Returns what an agent and all below it were charged.
    pub(in super::super) fn spending(
        &self,
        agent: AgentId,
    ) -> Result<SubtreeSpending, SqliteFailure> {
        let mut statement = self.snapshot.prepare_cached(SUBTREE)?;
        let mut rows = statement.query([agent.uuid().as_bytes()])?;
        let (mut spending, mut last) = (SubtreeSpending::default(), None);
        while let Some(row) = rows.next()? {
            // The rows of an agent follow each other.
            let agent = Some(column::id(row, 10)?);
            if agent != last {
                spending.agents += 1;
                let facts: Option<String> = row.get(11)?;
                let reserved = facts.as_deref().and_then(reserved_in);
                reserved.into_iter().for_each(|call| spending.add(*call));
            }
            last = agent;
            if row.get_ref(0)? != ValueRef::Null {
                spending.add(charge(row)?);
            }
        }
        Ok(spending)
    }

    /// Returns the process that holds an agent, if it lives.
    pub(super) fn holder(
        &self,
        host: Option<Uuid>,
        alive: &mut HashMap<Uuid, Option<String>>,
    ) -> Option<String> {
        let host = host?;
        // A host that cannot be looked at is no reason not to show the agent.
        let look = || {
            self.place
                .hosts()
                .alive(host)
                .unwrap_or_else(|_| Some("pid unknown".into()))
        };
        alive.entry(host).or_insert_with(look).clone()
    }

    /// Adds what is in other tables, and whether the agent's host lives.
    fn complete(
        &self,
        mut agent: SqliteAgentRow,
        alive: &mut HashMap<Uuid, Option<String>>,
    ) -> Result<SqliteAgentRow, SqliteFailure> {
        agent.session.holder = self.holder(agent.host, alive);
        let realm = agent.session.realm;
        agent.session.first_prompt = match agent.prompt {
            Some((of, seq)) => self.bytes(realm, of, seq)?,
            None => None,
        };
        agent.session.charges = self.charges(realm, agent.session.agent)?;
        if agent.session.state == AgentState::Running {
            agent.session.reserved = self.reserved(realm, agent.session.agent, agent.own)?;
        }
        Ok(agent)
    }

    /// Returns what the step of the last of `own` entries reserved.
    fn reserved(
        &self,
        realm: RealmId,
        agent: AgentId,
        own: u64,
    ) -> Result<Option<Box<Charge>>, SqliteFailure> {
        let sql = "SELECT reply FROM entry WHERE realm = ?1 AND agent = ?2 AND seq = ?3 - 1";
        let (realm, agent) = (realm.uuid(), agent.uuid());
        let key = params![realm.as_bytes(), agent.as_bytes(), column::bits(own)];
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let facts: Option<Option<String>> =
            statement.query_row(key, |row| row.get(0)).optional()?;
        Ok(facts.flatten().as_deref().and_then(reserved_in))
    }

    fn bytes(&self, realm: RealmId, agent: Uuid, seq: i64) -> Result<Option<Bytes>, SqliteFailure> {
        let sql = "SELECT entry.bytes, preamble.bytes FROM entry
                   LEFT JOIN preamble ON preamble.realm = entry.realm AND hash = head
                   WHERE entry.realm = ?1 AND agent = ?2 AND seq = ?3";
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let realm = realm.uuid();
        let key = params![realm.as_bytes(), agent.as_bytes(), seq];
        let sent = |row: &Row<'_>| {
            let (encoded, head): (Vec<u8>, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?);
            Ok(head
                .into_iter()
                .chain([encoded])
                .collect::<Vec<_>>()
                .join(&b','))
        };
        Ok(statement.query_row(key, sent).optional()?.map(Bytes::from))
    }

    fn charges(&self, realm: RealmId, agent: AgentId) -> Result<Vec<Charge>, SqliteFailure> {
        let sql =
            "SELECT model, purpose, input, cache_read, cache_write_5m, cache_write_1h, output, thinking,
                       cost, missed
                   FROM total WHERE realm = ?1 AND agent = ?2 ORDER BY model, purpose";
        let mut statement = self.snapshot.prepare_cached(sql)?;
        let rows =
            statement.query_map([realm.uuid().as_bytes(), agent.uuid().as_bytes()], charge)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Returns a total: model, purpose, the columns of [`column::spent`], missed tokens.
fn charge(row: &Row<'_>) -> rusqlite::Result<Charge> {
    let (usage, cost) = column::spent(row, 2)?;
    let (purpose, missed) = (
        column::purpose_from(row, 1)?,
        column::from_bits(row.get(9)?),
    );
    Ok(Charge {
        model: row.get(0)?,
        usage,
        cost,
        purpose,
        missed,
    })
}

fn agent(row: &Row<'_>) -> rusqlite::Result<SqliteAgentRow> {
    let mode: String = row.get(5)?;
    let (own, inherited) = (
        column::from_bits(row.get(10)?),
        column::from_bits(row.get(11)?),
    );
    let session = AgentRecord {
        realm: column::id(row, 0)?.into(),
        agent: column::id(row, 1)?.into(),
        origin: origin(row)?,
        starter: column::maybe_id(row, 23)?.map(AgentId::from),
        path: row.get(3)?,
        model: row.get(4)?,
        mode: mode.parse().map_err(|_| column::senseless(5))?,
        cwd: column::path_from(row.get_ref(6)?.as_blob()?),
        state: column::state_from(row.get(7)?).ok_or_else(|| column::senseless(7))?,
        ended: column::maybe_json(row, 24)?,
        holder: None,
        created_ms: row.get(8)?,
        used_ms: row.get(9)?,
        first_prompt: None,
        entries: own + inherited,
        charges: Vec::new(),
        reserved: None,
        types: row.get::<_, Option<i64>>(26)?.map(column::from_bits),
    };
    let prompt = column::maybe_id(row, 15)?.zip(row.get(16)?);
    let (dialect, preamble, host) = (row.get(12)?, row.get(13)?, column::maybe_id(row, 14)?);
    let since = row.get::<_, Option<i64>>(27)?.map(column::from_bits);
    Ok(SqliteAgentRow {
        session,
        dialect,
        preamble,
        own,
        since,
        host,
        prompt,
    })
}

fn origin(row: &Row<'_>) -> rusqlite::Result<Option<Box<Origin>>> {
    let Some(parent) = column::maybe_id(row, 2)? else {
        return Ok(None);
    };
    Ok(Some(Box::new(Origin {
        parent: parent.into(),
        call: CallKey {
            seq: column::from_bits(row.get(17)?),
            ordinal: row.get(18)?,
        },
        call_id: row.get(19)?,
        agent_type: row.get(20)?,
        name: column::maybe_name(row, 21)?,
        description: row.get(22)?,
        terms: row.get(25)?,
    })))
}
