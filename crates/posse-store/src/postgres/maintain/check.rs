//! Integrity check of the data on a server.
//!
//! It looks at some realms at a time, each time in one snapshot. Nothing refers from one realm to
//! another, and a snapshot that is held for long would keep the server from vacuuming.

use deadpool_postgres::Transaction;
use posse_port::in_a_line;
use posse_port::model::Encoded;
use posse_port::store::{StoreError, checksum, with_loaded};
use posse_protocol::EntryKind;
use tokio_postgres::{IsolationLevel, Row};
use uuid::Uuid;

use super::rules::{COUNTED, OWNED, RULES};
use super::{PgFailure, at, column};
use crate::columns;
use crate::maintain::{EntryLink, HEAD, Health, LOADED, NAMED};

/// Number of realms per snapshot.
const REALMS: i64 = 64;

/// Number of rows with bytes that are in memory at a time.
const ROWS: i32 = 100;

/// Finds the last realm of a snapshot.
const SHARE: &str = "SELECT id FROM realm WHERE id > $1 ORDER BY id OFFSET $2 LIMIT 1";

/// Shared contents of a range of realms.
const CONTENTS: &str =
    "SELECT realm, hash, mark_at, packed, bytes FROM preamble WHERE realm > $1 AND realm <= $2";

/// Entries of a range of realms, in the order of their chains.
const ENTRIES: &str =
    "SELECT realm, agent, seq, kind, checksum, head, packed, bytes, loaded FROM entry
    WHERE realm > $1 AND realm <= $2 ORDER BY realm, agent, seq";

/// One shared content.
const SHARED: &str = "SELECT mark_at, packed, bytes FROM preamble WHERE realm = $1 AND hash = $2";

/// Verifies the checksums of every transcript and the rules between rows. `told` is called with
/// what is being checked. It blocks nobody.
pub fn check(url: &str, told: &mut dyn FnMut(&str)) -> Result<Health, StoreError> {
    at(url, async |link| {
        let mut client = link.client().await?;
        let mut look = SnapshotCheck {
            health: Health::default(),
            found: vec![0; rules().count()],
        };
        let mut after = Uuid::nil();
        loop {
            told(&format!(
                "transcripts: {} entries so far",
                look.health.entries
            ));
            let end = client.query_opt(SHARE, &[&after, &(REALMS - 1)]).await?;
            let last = end
                .as_ref()
                .map_or(Ok(Uuid::max()), |row| column::get(row, 0))?;
            let moment = client
                .build_transaction()
                // One snapshot for all queries: otherwise a step that commits in between would
                // look like a contradiction.
                .isolation_level(IsolationLevel::RepeatableRead);
            let moment = moment.read_only(true).start().await?;
            match look.share(&moment, after, last).await {
                Ok(()) => {}
                Err(failure) if look.health.faults.is_empty() => return Err(failure),
                // Where damage is known it is expected that not everything can be read.
                Err(failure) => {
                    let why = in_a_line(&failure.at(link.place()));
                    look.health
                        .faults
                        .push(format!("the rest cannot be checked: {why}"));
                    break;
                }
            }
            if last == Uuid::max() {
                break;
            }
            after = last;
        }
        Ok(look.whole())
    })
}

/// Returns the rules: a description of each fault, and a query for the rows that have it.
fn rules() -> impl Iterator<Item = (String, String)> {
    let owned = OWNED.iter().map(|table| {
        let what = format!("rows of {table} belong to no agent (`posse store gc` removes them)");
        let sql = format!(
            "SELECT DISTINCT it.agent FROM {table} it WHERE it.realm > $1 AND it.realm <= $2
                 AND NOT EXISTS (SELECT 1 FROM agent WHERE agent.realm = it.realm AND agent.id = it.agent)"
        );
        (what, sql)
    });
    RULES
        .iter()
        .map(|(what, sql)| ((*what).to_owned(), (*sql).to_owned()))
        .chain(owned)
}

/// The results so far.
struct SnapshotCheck {
    health: Health,
    /// Number of faults per rule.
    found: Vec<usize>,
}

impl SnapshotCheck {
    /// Checks the realms after `after` up to and including `last`.
    async fn share(
        &mut self,
        moment: &Transaction<'_>,
        after: Uuid,
        last: Uuid,
    ) -> Result<(), PgFailure> {
        let health = &mut self.health;
        let counted = moment.query_one(COUNTED, &[&after, &last]).await?;
        let into = [
            &mut health.agents,
            &mut health.teams,
            &mut health.tasks,
            &mut health.messages,
            &mut health.misplaced,
        ];
        for (at, sum) in into.into_iter().enumerate() {
            *sum += column::bits(&counted, at)?;
        }
        self.contents(moment, after, last).await?;
        self.transcripts(moment, after, last).await?;
        for (nth, (what, sql)) in rules().enumerate() {
            for row in moment
                .query(&moment.prepare_cached(&sql).await?, &[&after, &last])
                .await?
            {
                self.found[nth] += 1;
                if self.found[nth] <= NAMED {
                    self.health.faults.push(format!("{what}: {}", words(&row)?));
                }
            }
        }
        Ok(())
    }

    /// Verifies that every shared content matches its hash.
    async fn contents(
        &mut self,
        moment: &Transaction<'_>,
        after: Uuid,
        last: Uuid,
    ) -> Result<(), PgFailure> {
        let portal = moment
            .bind(&moment.prepare_cached(CONTENTS).await?, &[&after, &last])
            .await?;
        loop {
            let rows = moment.query_portal(&portal, ROWS).await?;
            for row in &rows {
                let encoded = column::encoded(row, 2).ok();
                let named = encoded.map(|encoded| {
                    Uuid::from_bytes(columns::content_name(&encoded.bytes, encoded.mark_at))
                });
                if named != Some(column::get(row, 1)?) {
                    let realm: Uuid = column::get(row, 0)?;
                    self.health.faults.push(format!(
                        "the shared content of the agents of session {realm} is damaged"
                    ));
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }

    /// Verifies the chain of checksums of every transcript.
    async fn transcripts(
        &mut self,
        moment: &Transaction<'_>,
        after: Uuid,
        last: Uuid,
    ) -> Result<(), PgFailure> {
        let portal = moment
            .bind(&moment.prepare_cached(ENTRIES).await?, &[&after, &last])
            .await?;
        let mut heads = PgCheckedHeads { moment, last: None };
        let (mut current, mut chain, mut next, mut broken) = (None, 0, 0, false);
        loop {
            let rows = moment.query_portal(&portal, ROWS).await?;
            for row in &rows {
                let agent: Uuid = column::get(row, 1)?;
                if current != Some(agent) {
                    (current, chain, next, broken) = (Some(agent), 0, 0, false);
                }
                self.health.entries += 1;
                // After the first broken link every further one of the chain would be reported as
                // well.
                if broken {
                    continue;
                }
                match heads.link(row, chain, next).await? {
                    EntryLink::Whole(checksum) => (chain, next) = (checksum, next + 1),
                    link => {
                        let why = match link {
                            EntryLink::Lacks(what) => format!(": {what} is missing"),
                            _ => String::new(),
                        };
                        let fault =
                            format!("the transcript of {agent} is damaged at entry {next}{why}");
                        self.health.faults.push(fault);
                        broken = true;
                    }
                }
            }
            if rows.is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns the result, with the number of faults that are not listed.
    fn whole(mut self) -> Health {
        for ((what, _), found) in rules().zip(self.found) {
            if found > NAMED {
                self.health
                    .faults
                    .push(format!("{what}: {} more", found - NAMED));
            }
        }
        self.health
    }
}

/// A cache of the content that entries begin with. Only the last one is kept: siblings that share
/// it usually follow each other.
struct PgCheckedHeads<'a> {
    moment: &'a Transaction<'a>,
    last: Option<(Uuid, Uuid, Encoded)>,
}

impl PgCheckedHeads<'_> {
    /// Compares an entry with the link of the chain that is expected next.
    async fn link(&mut self, row: &Row, chain: u64, next: u64) -> Result<EntryLink, PgFailure> {
        let mut shared = [None, None];
        for ((at, what), found) in [(5, HEAD), (8, LOADED)].into_iter().zip(&mut shared) {
            if let Some(hash) = column::get::<Option<Uuid>>(row, at)? {
                match self.find(column::get(row, 0)?, hash).await? {
                    None => return Ok(EntryLink::Lacks(what)),
                    Some(content) => *found = Some(content.clone()),
                }
            }
        }
        let [head, loaded] = &shared;
        let kinds = [
            EntryKind::Prompt,
            EntryKind::Reply,
            EntryKind::Results,
            EntryKind::Compaction,
            EntryKind::Model,
        ];
        // A value that cannot be interpreted or decompressed counts as damage, too.
        let kind = column::one_of(row, 3, kinds, columns::kind);
        let (Ok(kind), Ok(bytes)) = (kind, column::bytes(row, 6)) else {
            return Ok(EntryLink::Broken);
        };
        let (seq, stored) = (column::bits(row, 2)?, column::bits(row, 4)?);
        let head = head.as_ref().map(AsRef::as_ref);
        let expected = with_loaded(checksum(chain, seq, kind, head, &bytes), loaded.as_ref());
        Ok(if seq == next && expected == stored {
            EntryLink::Whole(stored)
        } else {
            EntryLink::Broken
        })
    }

    async fn find(&mut self, realm: Uuid, hash: Uuid) -> Result<Option<&Encoded>, PgFailure> {
        if self
            .last
            .as_ref()
            .is_none_or(|(of, named, _)| (*of, *named) != (realm, hash))
        {
            let statement = self.moment.prepare_cached(SHARED).await?;
            let found = self.moment.query_opt(&statement, &[&realm, &hash]).await?;
            let encoded = found.and_then(|row| column::encoded(&row, 0).ok());
            self.last = encoded.map(|encoded| (realm, hash, encoded));
        }
        Ok(self.last.as_ref().map(|(_, _, encoded)| encoded))
    }
}

/// Describes a row that breaks a rule by its columns and their names. Empty columns are left out,
/// such as the team of a session's own list.
fn words(row: &Row) -> Result<String, PgFailure> {
    let mut words = Vec::new();
    for (at, column) in row.columns().iter().enumerate() {
        let word = match *column.type_() {
            tokio_postgres::types::Type::UUID => {
                column::get::<Option<Uuid>>(row, at)?.map(|id| id.to_string())
            }
            tokio_postgres::types::Type::TEXT => {
                column::maybe_text(row, at)?.filter(|text| !text.is_empty())
            }
            tokio_postgres::types::Type::INT8 => {
                column::get::<Option<i64>>(row, at)?.map(|number| number.to_string())
            }
            tokio_postgres::types::Type::INT4 => {
                column::get::<Option<i32>>(row, at)?.map(|number| number.to_string())
            }
            tokio_postgres::types::Type::INT2 => {
                column::get::<Option<i16>>(row, at)?.map(|number| number.to_string())
            }
            _ => None,
        };
        words.extend(word.map(|word| format!("{} {word}", column.name())));
    }
    Ok(words.join(", "))
}
