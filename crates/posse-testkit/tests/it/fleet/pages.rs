//! What a page of a list costs on a server: the rows that it has, wherever it is in however long a
//! list.

use std::time::{Duration, Instant};

use posse_port::store::{
    Address, AgentFilter, AgentKey, MailFilter, Op, Page, Ready, RowFilter, SessionFilter,
    SessionKey, Store, TaskFilter, TeamKey,
};
use posse_protocol::{AgentId, Takes, TaskId};
use posse_store::Postgres;
use posse_testkit::postgres::Database;
use posse_testkit::store_contract::{
    agent, birth, child, create, create_team, list, name, order, realm, send,
};

/// Rows in each list.
const ROWS: u64 = 5000;

/// Makes a list of each kind as long as [`ROWS`], from one row that the store wrote.
const MULTIPLY: &str = "SET search_path = posse;
    INSERT INTO agent SELECT (jsonb_populate_record(a, jsonb_build_object(
            'id', '02990000-0000-7000-8000-' || lpad(to_hex(n * 4096 + 160), 12, '0'), 'path', '/main/' || n))).*
        FROM agent a, generate_series(3, ROWS) n WHERE a.path = '/main/2';
    INSERT INTO pulse SELECT (jsonb_populate_record(p, jsonb_build_object('agent', b.id))).*
        FROM agent a JOIN pulse p ON p.agent = a.id, agent b
        WHERE a.path = '/main/2' AND b.parent IS NOT NULL AND b.id <> a.id;
    INSERT INTO root (realm, agent, cwd, used_ms)
        SELECT realm, id, '/x', 60000 * row_number() OVER (ORDER BY id) FROM agent WHERE parent IS NOT NULL;
    INSERT INTO mail SELECT (jsonb_populate_record(m, jsonb_build_object('number', n))).*
        FROM mail m, generate_series(2, ROWS) n;
    INSERT INTO task SELECT (jsonb_populate_record(t, jsonb_build_object('id', n))).*
        FROM task t, generate_series(2, ROWS) n;
    INSERT INTO team SELECT (jsonb_populate_record(t, jsonb_build_object('name', 'web-' || n, 'created_ms', n))).*
        FROM team t, generate_series(1, ROWS) n;
    INSERT INTO note SELECT (jsonb_populate_record(t, jsonb_build_object('name', 'note-' || n))).*
        FROM note t, generate_series(2, ROWS) n;";

/// Returns how many rows of each table were read so far, once all that read are gone.
fn reads(database: &Database) -> Vec<(String, u64)> {
    let gone = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'posse'";
    let began = Instant::now();
    while database.sql(gone).unwrap().trim() != "0" {
        assert!(began.elapsed() < Duration::from_secs(20));
    }
    let sql = "SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
        FROM pg_stat_user_tables ORDER BY relname";
    let told = database.sql(sql).unwrap();
    let row = |line: &str| {
        let (table, rows) = line.split_once('|').unwrap();
        (table.to_owned(), rows.parse().unwrap())
    };
    told.lines().map(row).collect()
}

/// Fills a database, and returns it.
async fn full() -> Database {
    let database = Database::new().unwrap();
    let store = Postgres::open(database.url()).unwrap();
    store.commit(birth(1)).await.unwrap();
    store.commit(child(2, 1, "")).await.unwrap();
    let note = Op::WriteNote {
        team: Some(name("web")),
        name: name("note-1"),
        text: "words".into(),
        expect: None,
    };
    let ops = vec![
        create_team("web", 1),
        note,
        create("", "work", &[]),
        send(Address::Agent(agent(2)), "a word"),
    ];
    for done in order(&store, ops).await {
        done.unwrap();
    }
    drop(store);
    let sql = MULTIPLY.replace("ROWS", &ROWS.to_string());
    database.sql(&sql).unwrap();
    database
}

/// Two rows after a row, or before it.
fn two<K>(row: K, backwards: bool) -> Page<K> {
    Page {
        backwards,
        ..Page::after(row, 2)
    }
}

fn key_of(middle: AgentId) -> AgentKey {
    AgentKey {
        realm: realm(),
        path: "/main/2500".into(),
        agent: middle,
    }
}

/// Reads a page from the middle of each list.
async fn look(store: &Postgres, backwards: bool) {
    let middle = agent(2).to_string().replace("0000000000a0", "0000009c40a0");
    let middle: AgentId = middle.parse().unwrap();
    let here = AgentFilter {
        realm: Some(realm()),
        ..AgentFilter::default()
    };
    let children = AgentFilter {
        parent: Some(agent(1)),
        ..AgentFilter::default()
    };
    for filter in [AgentFilter::default(), here, children] {
        let page = two(key_of(middle), backwards);
        let found = store.agents(filter, page).await.unwrap();
        assert_eq!(found.len(), 2);
    }
    for cwd in [None, Some("/x".into())] {
        let filter = SessionFilter {
            cwd,
            ..SessionFilter::default()
        };
        let key = SessionKey {
            used_ms: 60_000 * 2500,
            agent: middle,
        };
        let found = store.sessions(filter, two(key, backwards)).await.unwrap();
        assert_eq!(found.len(), 2);
    }
    for waiting in [false, true] {
        let (filter, page) = (MailFilter { waiting }, two(2500, backwards));
        let found = store.mail(realm(), agent(2), filter, page).await.unwrap();
        assert_eq!(found.len(), 2);
    }
    let ready = TaskFilter {
        ready: Some(Ready {
            agent: Some(agent(1)),
            takes: Takes::Any,
        }),
        ..TaskFilter::default()
    };
    for filter in [TaskFilter::default(), ready] {
        let page = two(TaskId(2500), backwards);
        let found = store.tasks(list(""), filter, page).await.unwrap();
        assert_eq!(found.len(), 2);
    }
    let page = RowFilter::Page(two(key_of(middle), backwards));
    for filter in [page, RowFilter::Agents(vec![agent(1), middle])] {
        let found = store.rows(realm(), filter).await.unwrap();
        assert_eq!(found.rows.len(), 2);
    }
    let key = TeamKey {
        created_ms: 2500,
        realm: realm(),
        name: name("web-2500"),
    };
    let teams = store.teams(None, two(key, backwards)).await.unwrap();
    let page = two(name("note-2500"), backwards);
    let notes = store.notes(list("web"), page).await.unwrap();
    assert_eq!((teams.len(), notes.len()), (2, 2));
}

// proves FD-05 (part: PostgreSQL)
#[tokio::test]
async fn a_page_reads_its_rows_only() {
    let database = full().await;
    for backwards in [false, true] {
        let before = reads(&database);
        let store = Postgres::open(database.url()).unwrap();
        look(&store, backwards).await;
        drop(store);
        for ((table, before), (_, after)) in before.into_iter().zip(reads(&database)) {
            let rows = after - before;
            assert!(
                rows <= 100,
                "{rows} rows of {table} (backwards: {backwards})"
            );
        }
    }
}
