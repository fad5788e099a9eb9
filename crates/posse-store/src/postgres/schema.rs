//! The tables and functions on a server: creation, migration, and version check.
//!
//! A new version comes in two halves, so that hosts of the old and the new posse work side by
//! side while a fleet is upgraded. *Expand* adds what the new version needs and removes nothing
//! of the old; *contract* removes what only the old one needed, when nobody runs it any more.
//! `version.oldest` is the version that a posse must know at least.

use posse_port::store::StoreError;

use super::connection::ServerConnection;
use super::error::PgFailure;

/// A version of the tables.
struct Version {
    expand: &'static [&'static str],
    /// Empty if nothing has to be removed.
    contract: &'static [&'static str],
    /// The version that a posse must know at least once this one is there.
    oldest: u32,
}

/// Every version, oldest first.
const VERSIONS: &[Version] = &[
    Version {
        expand: &[
            include_str!("schema/tables.sql"),
            include_str!("schema/policies.sql"),
        ],
        contract: &[],
        oldest: 1,
    },
    Version {
        expand: &[include_str!("schema/2.sql")],
        contract: &[],
        // An older posse would not say what its steps are about.
        oldest: 2,
    },
    Version {
        expand: &[include_str!("schema/3.sql")],
        contract: &[],
        // An older posse would lose the questions of the agents that it takes.
        oldest: 3,
    },
    // Only functions: a session has notes of its own.
    Version {
        expand: &[],
        contract: &[],
        oldest: 3,
    },
    // Only functions: an agent can get another model.
    Version {
        expand: &[],
        contract: &[],
        // An older posse cannot read the entry that says so.
        oldest: 5,
    },
    Version {
        expand: &[include_str!("schema/6.sql")],
        contract: &[],
        oldest: 5,
    },
    Version {
        expand: &[include_str!("schema/7.sql")],
        contract: &[],
        // An older posse takes an entry that brings definitions for a damaged one.
        oldest: 7,
    },
];

/// The newest version.
pub(super) const KNOWN: u32 = VERSIONS.len() as u32;

/// The functions of the newest version. They replace those of the one before.
const FUNCTIONS: &[&str] = &[
    include_str!("schema/core.sql"),
    include_str!("schema/feed.sql"),
    include_str!("schema/step.sql"),
    include_str!("schema/plain.sql"),
    include_str!("schema/host.sql"),
    include_str!("schema/act.sql"),
    include_str!("schema/mail.sql"),
    include_str!("schema/request.sql"),
    include_str!("schema/question.sql"),
    include_str!("schema/change.sql"),
    include_str!("schema/claim.sql"),
    include_str!("schema/task.sql"),
    include_str!("schema/team.sql"),
    include_str!("schema/import.sql"),
    include_str!("schema/collect.sql"),
];

/// The result of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The version before; `None` if there was no schema.
    pub from: Option<u32>,
    /// The version now.
    pub to: u32,
    /// The oldest version that a posse must know to use the server now.
    pub oldest: u32,
}

/// Returns the version of the tables, and the oldest one that must be known.
async fn found(
    client: &impl deadpool_postgres::GenericClient,
) -> Result<Option<(u32, u32)>, PgFailure> {
    let there = client
        .query_one("SELECT to_regclass('posse.version') IS NOT NULL", &[])
        .await?;
    if !there.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client
        .query_opt("SELECT number, oldest FROM posse.version", &[])
        .await?;
    let Some(row) = row else { return Ok(None) };
    let (number, oldest): (i32, i32) = (row.try_get(0)?, row.try_get(1)?);
    Ok(Some((number.cast_unsigned(), oldest.cast_unsigned())))
}

/// Ensures that the tables can be used. An empty database gets them.
pub(super) async fn ready(link: &ServerConnection) -> Result<(), PgFailure> {
    let known = KNOWN;
    let client = link.client().await?;
    let found = found(&client).await?;
    drop(client);
    match found {
        None => change(link, VERSIONS, false).await.map(drop),
        Some((_, oldest)) if oldest > known => {
            let place = link.place().to_owned();
            Err(PgFailure::Refused(StoreError::TooNew {
                place,
                found: oldest,
                known,
            }))
        }
        // Refused, not migrated: a person decides when a fleet's tables change.
        Some((number, _)) if number < known => {
            let source = format!(
                "its schema has version {number}, but this posse needs {known}: run `posse store \
                 migrate`"
            );
            Err(PgFailure::Refused(StoreError::Engine {
                place: link.place().to_owned(),
                source: source.into(),
            }))
        }
        Some(_) => Ok(()),
    }
}

/// Brings the tables up to date; with `contract` also removes what only older versions needed.
pub(super) async fn migrate(
    link: &ServerConnection,
    contract: bool,
) -> Result<Migrated, PgFailure> {
    change(link, VERSIONS, contract).await
}

/// Migrates to the last of `versions`, in one transaction.
async fn change(
    link: &ServerConnection,
    versions: &[Version],
    contract: bool,
) -> Result<Migrated, PgFailure> {
    let mut client = link.client().await?;
    let transaction = client.transaction().await?;
    transaction
        // One process migrates; the others wait here and find it done.
        .batch_execute("SELECT pg_advisory_xact_lock(hashtext('posse schema'))")
        .await?;
    let before = found(&transaction).await?;
    let known = versions.len() as u32;
    let (number, mut oldest) = before.unwrap_or((0, 0));
    if oldest > known {
        let place = link.place().to_owned();
        return Err(PgFailure::Refused(StoreError::TooNew {
            place,
            found: oldest,
            known,
        }));
    }
    if before.is_none() {
        transaction
            .batch_execute("CREATE SCHEMA IF NOT EXISTS posse")
            .await?;
        oldest = 1;
    }
    transaction
        // Functions call each other across files, before all of them exist.
        .batch_execute("SET LOCAL check_function_bodies = off")
        .await?;
    for sql in versions
        .iter()
        .skip(number as usize)
        .flat_map(|version| version.expand)
    {
        transaction.batch_execute(sql).await?;
    }
    for version in versions.iter().skip(number as usize) {
        oldest = oldest.max(version.oldest);
    }
    if number < known {
        for sql in FUNCTIONS {
            transaction.batch_execute(sql).await?;
        }
    }
    let to = number.max(known);
    if contract {
        for version in versions.iter().skip(oldest as usize) {
            for sql in version.contract {
                transaction.batch_execute(sql).await?;
            }
        }
        oldest = to;
    }
    let sql = "INSERT INTO posse.version (number, oldest) VALUES ($1, $2)
               ON CONFLICT (only_row) DO UPDATE SET number = excluded.number, oldest = excluded.oldest";
    transaction
        .execute(sql, &[&to.cast_signed(), &oldest.cast_signed()])
        .await?;
    transaction.commit().await?;
    Ok(Migrated {
        from: before.map(|(number, _)| number),
        to,
        oldest,
    })
}
