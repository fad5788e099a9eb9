//! Queries for agents without their history, as lists show them.

use std::os::unix::ffi::OsStrExt;

use bytes::Bytes;
use posse_port::store::{
    AgentFilter, AgentKey, AgentRecord, AgentState, CallKey, Charge, Origin, Page, SessionFilter,
    SessionKey, SubtreeSpending,
};
use posse_protocol::{AgentId, Cost, Name, Purpose, RealmId, Usage};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{PgFailure, PgReader, QueryValues, column, nul};
use crate::columns;

/// An agent's row.
pub(super) struct PgAgentRow {
    pub(super) session: AgentRecord,
    pub(super) dialect: String,
    /// Number of its own entries.
    pub(super) own: u64,
    /// Its last compaction.
    pub(super) since: Option<u64>,
}

/// The agents `chosen`, with columns in the order of [`agent`]. The limits force the planner to
/// look up one agent after another, whatever its statistics say.
const AGENTS: &str = "SELECT a.realm, a.id, a.parent, a.path, a.model, p.mode, a.cwd, p.state, a.created_ms, p.used_ms,
        p.own, a.inherited, a.dialect, p.since, p.types, p.starter, p.ended, a.call_seq, a.call_ordinal, a.call_id,
        a.agent_type, a.name, a.description, a.terms, h.pid, h.node, e.packed, e.bytes, e.head_packed, e.head,
        (SELECT json_agg(json_build_array(model, purpose, input, cache_read, cache_write_5m, cache_write_1h, output,
                thinking, cost, missed) ORDER BY model, purpose)::text
            FROM total WHERE realm = a.realm AND agent = a.id),
        (SELECT reply FROM entry WHERE p.state = 1 AND realm = c.realm AND agent = c.id AND seq = p.own - 1)
    FROM chosen c
    CROSS JOIN LATERAL (SELECT * FROM agent WHERE realm = c.realm AND id = c.id LIMIT 1) a
    CROSS JOIN LATERAL (SELECT * FROM pulse WHERE realm = c.realm AND agent = c.id LIMIT 1) p
    LEFT JOIN LATERAL (SELECT pid, node FROM host WHERE id = p.host AND NOT gone(id) LIMIT 1) h ON true
    LEFT JOIN LATERAL (SELECT entry.packed, entry.bytes, preamble.packed AS head_packed, preamble.bytes AS head
        FROM entry LEFT JOIN preamble ON preamble.realm = entry.realm AND hash = entry.head
        WHERE entry.realm = c.realm AND entry.agent = p.prompt_agent AND seq = p.prompt_seq LIMIT 1) e ON true";

/// The totals of the agents `$1` and of all agents below each, one row at least for each. The limits
/// force the planner to look up one agent after another, whatever its statistics say.
const SUBTREES: &str = "WITH RECURSIVE subtree (nth, realm, id) AS (
        SELECT top.nth, a.realm, a.id FROM unnest($1::uuid[]) WITH ORDINALITY top (id, nth)
            CROSS JOIN LATERAL (SELECT realm, id FROM agent WHERE id = top.id LIMIT 1) a
        UNION ALL SELECT s.nth, s.realm, a.id FROM subtree s
            CROSS JOIN LATERAL (SELECT id FROM agent WHERE realm = s.realm AND parent = s.id OFFSET 0) a)
    SELECT s.nth, t.charges, (SELECT e.reply FROM pulse p CROSS JOIN LATERAL (
            SELECT reply FROM entry WHERE realm = s.realm AND agent = s.id AND seq = p.own - 1 LIMIT 1) e
        WHERE p.realm = s.realm AND p.agent = s.id AND p.state = 1)
    FROM subtree s CROSS JOIN LATERAL (
        SELECT json_agg(json_build_array(model, purpose, input, cache_read, cache_write_5m, cache_write_1h, output,
                thinking, cost, missed))::text AS charges
        FROM total WHERE realm = s.realm AND agent = s.id) t";

/// One agent by its id.
pub(super) fn one() -> String {
    format!("WITH chosen AS (SELECT realm, id FROM agent WHERE id = $1) {AGENTS}")
}

/// Query for root agents: of directory 1, with ids from 2 to 3, at most 4.
fn roots(filter: &SessionFilter, page: &Page<SessionKey>) -> String {
    let cwd = if filter.cwd.is_some() {
        "r.cwd = $1"
    } else {
        "true"
    };
    // Few ids have a given prefix, so that they are looked up first. Without a prefix every id
    // matches, and following the index in the order of use finds the first ones at once.
    let (than, way) = columns::falling(page);
    let beyond = |minute: &str, used_ms: &str, id: &str| match page.from {
        Some(_) => format!("({minute}, {used_ms}, {id}) {than} ($5 / 60000, $5, $6)"),
        None => "true".into(),
    };
    let chosen = match filter.id_prefix {
        Some(_) => format!(
            "SELECT a.realm, a.id, r.used_ms FROM agent a CROSS JOIN LATERAL
                 (SELECT cwd, minute, used_ms FROM root WHERE realm = a.realm AND agent = a.id LIMIT 1) r
             WHERE a.id BETWEEN $2 AND $3 AND {cwd} AND {}
             ORDER BY r.used_ms {way}, a.id {way} LIMIT $4",
            beyond("r.minute", "r.used_ms", "a.id")
        ),
        None => format!(
            "SELECT realm, agent AS id, used_ms FROM root r WHERE {cwd} AND {}
             ORDER BY minute {way}, used_ms {way}, agent {way} LIMIT $4",
            beyond("minute", "used_ms", "agent")
        ),
    };
    format!("WITH chosen AS MATERIALIZED ({chosen}) {AGENTS} ORDER BY c.used_ms DESC, c.id DESC")
}

/// Returns the query for the agents a filter selects, in order. Parameters: realm 1, parent 2,
/// name 3, limit 4, first id 5, last id 6; realm, path and id of the row before the page 7 to 9.
/// The narrowest condition is looked up first. `select` reads from `chosen c`.
pub(super) fn chosen(filter: &AgentFilter, page: &Page<AgentKey>, select: &str) -> String {
    let given = |given: bool, yes: &'static str, no: &'static str| if given { yes } else { no };
    let realm = match filter {
        AgentFilter { realm: Some(_), .. } => "a.realm = $1",
        AgentFilter {
            parent: Some(_), ..
        } => "a.realm = (SELECT realm FROM agent WHERE id = $2)",
        _ => "true",
    };
    let parent = given(filter.parent.is_some(), "a.parent = $2", "true");
    let name = given(filter.name.is_some(), "a.name = $3", "true");
    let of_id = filter.id.is_some() || filter.id_prefix.is_some();
    let id = given(of_id, "a.id BETWEEN $5 AND $6", "true");
    let of_realm = given(filter.realm.is_some(), "realm = $1", "true");
    let mut sources = vec!["agent a".to_owned()];
    if filter.held {
        sources.push(format!(
            "JOIN (SELECT p.realm, p.agent FROM host h JOIN pulse p ON p.host = h.id
                 WHERE NOT gone(h.id) AND {of_realm}) held ON held.realm = a.realm AND held.agent = a.id"
        ));
    }
    if filter.unfinished {
        sources.push(format!(
            "JOIN (SELECT realm, agent FROM pulse WHERE is_open AND {of_realm}
                 UNION SELECT realm, agent FROM inbox WHERE has_mail AND {of_realm}) due
             ON due.realm = a.realm AND due.agent = a.id AND a.parent IS NOT NULL"
        ));
    }
    // As few columns as order the list: only so does the planner see a range of the index.
    let columns: &[&str] = match filter {
        AgentFilter {
            parent: Some(_), ..
        } => &["id"],
        AgentFilter { realm: Some(_), .. } => &["path", "id"],
        _ => &["realm", "path", "id"],
    };
    let list = |prefix: &str, suffix: &str| {
        let each = columns.iter().map(|it| format!("{prefix}{it}{suffix}"));
        each.collect::<Vec<_>>().join(", ")
    };
    let (than, way) = columns::rising(page);
    let beyond = match page.from {
        Some(_) => {
            let of = &["$7", "$8", "$9"][3 - columns.len()..];
            format!("({}) {than} ({})", list("a.", ""), of.join(", "))
        }
        None => "true".into(),
    };
    format!(
        "WITH chosen AS MATERIALIZED (SELECT a.realm, a.id, a.path FROM {}
             WHERE {id} AND {realm} AND {parent} AND {name} AND {beyond} ORDER BY {} LIMIT $4)
         {select} ORDER BY {}",
        sources.join(" "),
        list("a.", &format!(" {way}")),
        list("c.", ""),
    )
}

impl PgReader<'_> {
    /// Returns root agents, most recently used first.
    pub(in super::super) async fn sessions(
        &self,
        filter: &SessionFilter,
        page: &Page<SessionKey>,
    ) -> Result<Vec<AgentRecord>, PgFailure> {
        let prefix = filter.id_prefix.as_deref().unwrap_or_default();
        let Some((first, last)) = columns::ids_with(prefix) else {
            return Ok(Vec::new());
        };
        let (cwd, limit) = (
            filter.cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes()),
            column::most(page.limit),
        );
        let types = [
            Type::BYTEA,
            Type::UUID,
            Type::UUID,
            Type::INT8,
            Type::INT8,
            Type::UUID,
        ];
        let used_ms = page.from.map(|from| from.used_ms);
        let from = page.from.map(|from| from.agent.uuid());
        let values: &QueryValues<'_> = &[&cwd, &first, &last, &limit, &used_ms, &from];
        let rows = self
            .typed_rows(&roots(filter, page), &types, values)
            .await?;
        self.listed(&rows)
    }

    /// Returns agents by path and then by age; the children of one parent by age.
    pub(in super::super) async fn agents(
        &self,
        filter: &AgentFilter,
        page: &Page<AgentKey>,
    ) -> Result<Vec<AgentRecord>, PgFailure> {
        let (realm, parent) = (
            filter.realm.map(RealmId::uuid),
            filter.parent.map(AgentId::uuid),
        );
        let name = filter.name.as_ref().map(Name::as_str);
        let Some(ids) = columns::ids_of(filter) else {
            return Ok(Vec::new());
        };
        let (first, last) = ids.unzip();
        let types = [
            Type::UUID,
            Type::UUID,
            Type::TEXT,
            Type::INT8,
            Type::UUID,
            Type::UUID,
            Type::UUID,
            Type::TEXT,
            Type::UUID,
        ];
        let limit = column::most(page.limit);
        let from = page.from.as_ref();
        let (from_realm, from_agent) = (
            from.map(|from| from.realm.uuid()),
            from.map(|from| from.agent.uuid()),
        );
        let path = from.map(|from| nul::hide_text(&from.path));
        let about: &QueryValues<'_> = &[
            &realm,
            &parent,
            &name,
            &limit,
            &first,
            &last,
            &from_realm,
            &path,
            &from_agent,
        ];
        let rows = self
            .typed_rows(&chosen(filter, page, AGENTS), &types, about)
            .await?;
        self.listed(&rows)
    }

    /// Returns what each agent and all below it were charged.
    pub(in super::super) async fn spending(
        &self,
        agents: &[AgentId],
    ) -> Result<Vec<SubtreeSpending>, PgFailure> {
        let ids: Vec<Uuid> = agents.iter().map(|agent| agent.uuid()).collect();
        let mut found = vec![SubtreeSpending::default(); agents.len()];
        for row in self.rows(SUBTREES, &[&ids]).await? {
            let nth = usize::try_from(column::get::<i64>(&row, 0)? - 1);
            let subtree = nth.ok().and_then(|nth| found.get_mut(nth));
            let subtree = subtree.ok_or_else(|| column::senseless(0))?;
            subtree.agents += 1;
            for charge in charges(column::get(&row, 1)?)? {
                subtree.add(charge);
            }
            let reserved = reserved(&row, 2)?;
            reserved.into_iter().for_each(|call| subtree.add(*call));
        }
        Ok(found)
    }

    fn listed(&self, rows: &[Row]) -> Result<Vec<AgentRecord>, PgFailure> {
        rows.iter()
            .map(|row| Ok(agent(row, self.node)?.session))
            .collect()
    }
}

/// Returns an agent as seen from the machine `node`.
pub(super) fn agent(row: &Row, node: &str) -> Result<PgAgentRow, PgFailure> {
    let (own, inherited) = (column::bits(row, 10)?, column::bits(row, 11)?);
    let (pid, on) = (
        column::get::<Option<i32>>(row, 24)?,
        column::get::<Option<&str>>(row, 25)?,
    );
    let session = AgentRecord {
        realm: column::get::<Uuid>(row, 0)?.into(),
        agent: column::get::<Uuid>(row, 1)?.into(),
        origin: origin(row)?,
        starter: column::get::<Option<Uuid>>(row, 15)?.map(AgentId::from),
        path: column::text(row, 3)?,
        model: column::text(row, 4)?,
        mode: column::get::<&str>(row, 5)?
            .parse()
            .map_err(|_| column::senseless(5))?,
        cwd: column::path(row, 6)?,
        state: column::one_of(row, 7, AgentState::ALL, columns::state)?,
        ended: column::maybe_json(row, 16)?,
        holder: pid.zip(on).map(|(pid, on)| holder(pid, on, node)),
        created_ms: column::get(row, 8)?,
        used_ms: column::get(row, 9)?,
        first_prompt: first_prompt(row)?,
        entries: own + inherited,
        charges: charges(column::get(row, 30)?)?,
        reserved: reserved(row, 31)?,
        types: column::maybe_bits(row, 14)?,
    };
    Ok(PgAgentRow {
        session,
        dialect: column::text(row, 12)?,
        own,
        since: column::maybe_bits(row, 13)?,
    })
}

/// Returns a process for people at the machine `here`.
pub(in super::super) fn holder(pid: i32, node: &str, here: &str) -> String {
    if node == here {
        format!("pid {pid}")
    } else {
        format!("pid {pid} on {node}")
    }
}

fn origin(row: &Row) -> Result<Option<Box<Origin>>, PgFailure> {
    let Some(parent) = column::get::<Option<Uuid>>(row, 2)? else {
        return Ok(None);
    };
    Ok(Some(Box::new(Origin {
        parent: parent.into(),
        call: CallKey {
            seq: column::bits(row, 17)?,
            ordinal: column::ordinal(row, 18)?,
        },
        call_id: column::text(row, 19)?,
        agent_type: column::text(row, 20)?,
        name: column::maybe_name(row, 21)?,
        description: column::text(row, 22)?,
        terms: column::text(row, 23)?,
    })))
}

/// Returns the bytes of the first prompt, as sent.
fn first_prompt(row: &Row) -> Result<Option<Bytes>, PgFailure> {
    if column::get::<Option<bool>>(row, 26)?.is_none() {
        return Ok(None);
    }
    let prompt = column::bytes(row, 26)?;
    if column::get::<Option<bool>>(row, 28)?.is_none() {
        return Ok(Some(prompt));
    }
    Ok(Some(
        [&column::bytes(row, 28)?[..], &prompt].join(&b',').into(),
    ))
}

/// Returns what is reserved for a call in flight, from what is stored beside the last entry.
fn reserved(row: &Row, at: usize) -> Result<Option<Box<Charge>>, PgFailure> {
    let facts = column::get::<Option<&str>>(row, at)?;
    Ok(facts.and_then(|facts| columns::reserved_in(&nul::show(facts))))
}

/// Returns the charges from the JSON array that the query builds.
fn charges(json: Option<&str>) -> Result<Vec<Charge>, PgFailure> {
    type Total = (String, i64, i64, i64, i64, i64, i64, i64, Option<i64>, i64);
    let Some(json) = json else {
        return Ok(Vec::new());
    };
    let totals: Vec<Total> =
        serde_json::from_str(&nul::show(json)).map_err(PgFailure::senseless)?;
    let charge = |(
        model,
        purpose,
        input,
        cache_read,
        write_5m,
        write_1h,
        output,
        thinking,
        cost,
        missed,
    ): Total| {
        let purpose = Purpose::ALL
            .into_iter()
            .find(|it| columns::purpose(*it) == purpose);
        Ok(Charge {
            model,
            usage: Usage {
                input: input.cast_unsigned(),
                cache_read: cache_read.cast_unsigned(),
                cache_write_5m: write_5m.cast_unsigned(),
                cache_write_1h: write_1h.cast_unsigned(),
                output: output.cast_unsigned(),
                thinking: thinking.cast_unsigned(),
            },
            cost: cost.map(|pico| Cost::from_pico_usd(pico.cast_unsigned())),
            purpose: purpose
                .ok_or_else(|| PgFailure::senseless("a charge for a purpose that is unknown"))?,
            missed: missed.cast_unsigned(),
        })
    };
    totals.into_iter().map(charge).collect()
}
