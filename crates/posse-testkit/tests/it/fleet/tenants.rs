//! Tenants: what a role has written no other role reads or changes, through whatever statement or function.

use std::sync::Arc;
use std::time::Duration;

use posse_port::store::{
    Address, AgentFilter, CallChangeKind, CallKey, Charge, Epoch, Joining, Op, OpResult, Operation,
    Order, Page, RunChange, RunChangeKind, SeenFile, Segment, Step, Store,
};
use posse_protocol::{AgentId, EntryKind, MailKind, Purpose, RealmId, RequestKind, RunKind, Usage};
use posse_store::{Postgres, Timing};
use posse_testkit::postgres::{Options, Server, Sync, sql};
use posse_testkit::store_contract::{
    self as contract, Open, asking, birth, call, create, entry, joining, name,
};
use uuid::Uuid;

/// A server whose tables belong to `keeper`, with the tenants `a` and `b`.
struct Tenants {
    server: Server,
}

impl Tenants {
    fn new() -> Self {
        let server = Server::start(Options {
            sync: Sync::Off,
            ..Options::default()
        })
        .unwrap();
        server
            .sql("CREATE ROLE keeper LOGIN; CREATE ROLE a LOGIN; CREATE ROLE b LOGIN")
            .unwrap();
        server.sql("CREATE DATABASE shared OWNER keeper").unwrap();
        let tenants = Self { server };
        drop(Postgres::open(&tenants.url("keeper")).unwrap());
        tenants
    }

    fn url(&self, role: &str) -> String {
        self.url_in(role, "shared")
    }

    fn url_in(&self, role: &str, database: &str) -> String {
        format!(
            "postgres://{role}@127.0.0.1:{}/{database}",
            self.server.port()
        )
    }

    /// Does something as a role; what the server says if it refuses.
    fn sql(&self, role: &str, statement: &str) -> Result<String, String> {
        sql(&self.url(role), statement).map_err(|error| error.to_string())
    }

    /// All tables but the one that says which version they have.
    fn tables(&self) -> Vec<String> {
        let sql = "SELECT tablename FROM pg_tables WHERE schemaname = 'posse' AND tablename <> 'version' ORDER BY 1";
        let found = self.sql("postgres", sql).unwrap();
        found.lines().map(str::to_owned).collect()
    }

    /// The tables in which a role counts so many rows.
    fn counts(&self, role: &str, which: &str, many: &str) -> String {
        let one = |table: &String| {
            format!(
                "SELECT '{table}', count(*) FROM posse.{table} WHERE {which} HAVING count(*) {many}"
            )
        };
        let all = self
            .tables()
            .iter()
            .map(one)
            .collect::<Vec<_>>()
            .join(" UNION ALL ");
        self.sql(role, &all).unwrap()
    }

    /// All that a tenant has, but how long its hosts may live.
    fn all_of(&self, tenant: &str) -> Vec<String> {
        let all = |table: &String| {
            format!(
                "SELECT '{table} ' || (to_jsonb(t) - 'lease_until')::text FROM posse.{table} t
                 WHERE tenant = '{tenant}'"
            )
        };
        let all = self
            .tables()
            .iter()
            .map(all)
            .collect::<Vec<_>>()
            .join(" UNION ALL ");
        let found = self.sql("postgres", &format!("{all} ORDER BY 1")).unwrap();
        found.lines().map(str::to_owned).collect()
    }
}

/// A tenant at work: it has something in each table.
struct Work {
    store: Arc<dyn Store>,
    realm: RealmId,
    agents: [AgentId; 3],
}

impl Work {
    async fn new(url: &str, number: u128) -> Self {
        let timing = Timing {
            sweep: Duration::from_secs(3600),
            ..Timing::default()
        };
        let store: Arc<dyn Store> = Arc::new(Postgres::open_with(url, timing).unwrap());
        let id = |nth: u128| Uuid::from_u128(number << 64 | nth << 12);
        let work = Self {
            store,
            realm: id(0).into(),
            agents: [1, 2, 3].map(|nth| id(nth).into()),
        };
        work.lives().await;
        work
    }

    fn step(&self, nth: usize) -> Step {
        Step::new(self.realm, self.agents[nth], Epoch(1), 10)
    }

    async fn acts(&self, nth: usize, op: Op) -> OpResult {
        let operations = vec![Operation { call: None, op }];
        let step = Step {
            operations,
            ..self.step(nth)
        };
        self.store.commit(step).await.unwrap().results.remove(0)
    }

    async fn lives(&self) {
        for nth in 0..3 {
            let mut born = Step {
                birth: birth(nth as u64).birth,
                ..self.step(nth)
            };
            if nth == 2 {
                let segment = Segment {
                    agent: self.agents[0],
                    from: 0,
                    to: 1,
                };
                born.birth.as_mut().unwrap().segments = vec![segment];
            } else {
                born.entries = vec![
                    entry(0, EntryKind::Prompt, "hello"),
                    entry(1, EntryKind::Reply, "calls"),
                ];
                let asked = CallChangeKind::Asked {
                    id: "toolu_1".into(),
                    tool: "Bash".into(),
                    tier: None,
                };
                born.calls = vec![call(1, 0, asked)];
                born.seen = vec![SeenFile {
                    path: "/a".into(),
                    version: 7,
                }];
                born.charges = vec![charge()];
                born.questions = vec![asking(nth as u64 + 1)];
            }
            self.store.commit(born).await.unwrap();
        }
        let lead = Op::CreateTeam {
            team: name("crew"),
            description: "It works.".into(),
            settings: serde_json::Map::new(),
            lead: Box::new(Joining {
                agent: self.agents[0],
                ..*joining(1)
            }),
        };
        self.acts(0, lead).await.unwrap();
        let member = Box::new(Joining {
            agent: self.agents[1],
            ..*joining(2)
        });
        let join = Op::Join {
            team: name("crew"),
            name: name("two"),
            member,
            greeting: None,
        };
        self.acts(0, join).await.unwrap();
        let text = "a plan".to_owned();
        let to = Address::Member {
            team: name("crew"),
            name: name("team-lead"),
        };
        let request = Op::Request {
            id: Uuid::now_v7().into(),
            to,
            kind: RequestKind::Plan,
            text,
        };
        self.acts(1, request).await.unwrap();
        let note = Op::WriteNote {
            team: Some(name("crew")),
            name: name("n"),
            text: "secret".into(),
            expect: None,
        };
        self.acts(0, note).await.unwrap();
        self.acts(0, create("crew", "first", &[])).await.unwrap();
        self.acts(0, create("crew", "second", &[1])).await.unwrap();
        let run = RunChangeKind::Began {
            call: CallKey { seq: 1, ordinal: 0 },
            kind: RunKind::Shell,
            description: "it runs".into(),
            output: "/out".into(),
        };
        let runs = vec![RunChange {
            id: Uuid::now_v7(),
            change: run,
        }];
        self.store
            .commit(Step {
                runs,
                ..self.step(0)
            })
            .await
            .unwrap();
        for done in self
            .store
            .operate(Order {
                realm: self.realm,
                ops: vec![self.word()],
                at_ms: 10,
            })
            .await
            .unwrap()
        {
            done.unwrap();
        }
    }

    /// A message to the first agent.
    fn word(&self) -> Op {
        Op::Send {
            id: Uuid::now_v7().into(),
            to: Address::Agent(self.agents[0]),
            kind: MailKind::Text,
            summary: "a word".into(),
            body: "secret".into(),
        }
    }
}

fn charge() -> Charge {
    let usage = Usage {
        input: 1,
        ..Usage::default()
    };
    Charge {
        model: "a-model".into(),
        usage,
        cost: None,
        purpose: Purpose::Work,
        missed: 0,
    }
}

#[tokio::test]
async fn a_tenant_reads_and_writes_nothing_of_another() {
    let tenants = Tenants::new();
    let (a, b) = (
        Work::new(&tenants.url("a"), 0xa).await,
        Work::new(&tenants.url("b"), 0xb).await,
    );
    let before = tenants.all_of("a");
    for role in ["a", "b"] {
        assert_eq!(
            tenants.counts(role, "tenant = CURRENT_USER", "= 0"),
            "",
            "{role} must have what can be stolen"
        );
        assert_eq!(
            tenants.counts(role, "tenant <> CURRENT_USER", "> 0"),
            "",
            "{role} sees what is another's"
        );
    }
    assert_eq!(
        tenants.counts("keeper", "true", "> 0"),
        "",
        "who owns the tables owns no row"
    );
    for table in tenants.tables() {
        for role in ["b", "keeper"] {
            let changed = format!(
                "WITH changed AS (UPDATE posse.{table} SET tenant = tenant WHERE tenant = 'a' RETURNING 1),
                      deleted AS (DELETE FROM posse.{table} WHERE tenant = 'a' RETURNING 1)
                 SELECT count(*) FROM (TABLE changed UNION ALL TABLE deleted) c"
            );
            assert_eq!(tenants.sql(role, &changed).unwrap(), "0", "{role}: {table}");
        }
    }
    forge(&tenants);
    call_everything(&tenants, &a).await;
    // What a store can be asked about another's ids.
    for agent in a.agents {
        assert_eq!(contract::fate(&b.store.take(agent).await), "not found");
        assert_eq!(contract::fate(&b.store.read(agent).await), "not found");
        b.store.release(agent, Epoch(1)).await.unwrap();
        assert_ne!(
            contract::fate(
                &b.store
                    .commit(Step::new(a.realm, agent, Epoch(1), 10))
                    .await
            ),
            "ok"
        );
    }
    let order = Order {
        realm: a.realm,
        ops: vec![a.word()],
        at_ms: 10,
    };
    assert!(!matches!(
        b.store.operate(order).await.as_deref(),
        Ok([Ok(_)])
    ));
    assert_eq!(b.store.teams(None, Page::first(9)).await.unwrap().len(), 1);
    let filter = AgentFilter {
        realm: Some(a.realm),
        ..AgentFilter::default()
    };
    assert!(
        b.store
            .agents(filter, Page::first(9))
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(tenants.all_of("a"), before);
    a.acts(0, a.word()).await.unwrap();
}

/// Has `b` write rows of `a`, give it rows of its own, and empty tables.
fn forge(tenants: &Tenants) {
    let columns = "SELECT table_name, string_agg(quote_ident(column_name), ',') FROM information_schema.columns
        WHERE table_schema = 'posse' AND table_name <> 'version' AND is_generated = 'NEVER' GROUP BY table_name";
    let columns = tenants.sql("postgres", columns).unwrap();
    let mut forgeries = String::new();
    for (table, columns) in columns.lines().map(|line| line.split_once('|').unwrap()) {
        let row = format!(
            "SELECT quote_literal(to_jsonb(t)) FROM posse.{table} t WHERE tenant = 'a' LIMIT 1"
        );
        let row = tenants.sql("postgres", &row).unwrap();
        for forgery in [
            format!(
                "INSERT INTO posse.{table} ({columns})
                 SELECT {columns} FROM jsonb_populate_record(NULL::posse.{table}, {row})"
            ),
            format!("UPDATE posse.{table} SET tenant = 'a'"),
            format!("TRUNCATE posse.{table}"),
        ] {
            forgeries.push_str(&format!(
                "DO $do$ BEGIN {forgery}; RAISE 'it was let do that: {table}';
                 EXCEPTION WHEN insufficient_privilege THEN NULL; END $do$;\n"
            ));
        }
    }
    assert_eq!(
        forgeries
            .lines()
            .filter(|line| line.starts_with("DO"))
            .count(),
        3 * tenants.tables().len()
    );
    tenants.sql("b", &forgeries).unwrap();
}

/// Has `b` call each function of the schema about what is `a`'s.
async fn call_everything(tenants: &Tenants, a: &Work) {
    let host = tenants.sql("a", "SELECT id FROM posse.host").unwrap();
    let functions = "SELECT p.proname, string_agg(format('%s %s', a.name, format_type(a.type, NULL)), ',' ORDER BY a.n)
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        LEFT JOIN LATERAL unnest(p.proargtypes, p.proargnames[1:p.pronargs]) WITH ORDINALITY a(type, name, n) ON true
        WHERE n.nspname = 'posse' GROUP BY p.oid, p.proname ORDER BY 1";
    let functions = tenants.sql("postgres", functions).unwrap();
    let mut calls = String::new();
    for function in functions.lines() {
        let (name, arguments) = function.split_once('|').unwrap();
        let argument = |argument: &str| {
            let (name, kind) = argument.split_once(' ').unwrap();
            let value = match (name, kind) {
                ("_realm", _) => a.realm.to_string(),
                ("_host" | "_me" | "_holder", "uuid") => host.clone(),
                (_, "uuid") => a.agents[0].to_string(),
                ("_team", "text") => "crew".into(),
                (_, "boolean") => "true".into(),
                (_, "bigint" | "integer" | "smallint") => "1".into(),
                (_, "json" | "jsonb") => "{}".into(),
                (_, kind) if kind.ends_with("[]") => "{}".into(),
                _ => "two".into(),
            };
            format!("'{value}'::{kind}")
        };
        let arguments: Vec<String> = arguments
            .split(',')
            .filter(|it| !it.trim().is_empty())
            .map(argument)
            .collect();
        calls.push_str(&format!(
            "DO $do$ BEGIN PERFORM {name}({}); EXCEPTION WHEN OTHERS THEN NULL; END $do$;\n",
            arguments.join(", ")
        ));
    }
    assert!(calls.lines().count() > 50, "{functions}");
    let settings = "SET search_path = posse; SET posse.lease = '1ms'; SET posse.news = ''";
    // Most of it makes no sense; what matters is what is there afterwards.
    tenants.sql("b", &format!("{settings}; {calls}")).unwrap();
    let me = format!(r#"{{"id":"{host}","settled":true,"pid":1,"node":"x"}}"#);
    for (job, allowed) in [
        (
            format!(
                r#"{{"do":"take","agent":"{}","id":"{}"}}"#,
                a.agents[0],
                Uuid::now_v7()
            ),
            false,
        ),
        (
            format!(r#"{{"do":"release","agent":"{}","epoch":1}}"#, a.agents[0]),
            true,
        ),
        (
            format!(
                r#"{{"do":"commit","realm":"{}","agent":"{}","id":"{}","epoch":1,"at":1}}"#,
                a.realm,
                a.agents[0],
                Uuid::now_v7()
            ),
            false,
        ),
    ] {
        let settings = "SET search_path = posse; SET posse.lease = '1ms'";
        let done = tenants.sql(
            "b",
            &format!("{settings}; SELECT write('{me}', '[{job}]', '{{}}')"),
        );
        assert!(allowed || done.is_err(), "{job}: {done:?}");
    }
}

#[tokio::test]
async fn a_login_works_as_the_tenant_that_it_belongs_to() {
    let tenants = Tenants::new();
    let a = Work::new(&tenants.url("a"), 0xa).await;
    tenants
        .server
        .sql("CREATE ROLE ann LOGIN IN ROLE a; CREATE ROLE ben LOGIN IN ROLE a")
        .unwrap();
    tenants.server.sql("ALTER ROLE ben SET role = 'a'").unwrap();
    let count = "SELECT count(*) FROM posse.agent";
    assert_eq!(
        tenants.sql("ann", count).unwrap(),
        "0",
        "a member is not the tenant"
    );
    assert_eq!(
        tenants.sql("ann", &format!("SET ROLE a; {count}")).unwrap(),
        "3"
    );
    let as_tenant = format!("{}?options=-c%20role%3Da", tenants.url("ann"));
    for url in [as_tenant, tenants.url("ben")] {
        let other = Postgres::open(&url).unwrap();
        assert_eq!(
            other.teams(None, Page::first(9)).await.unwrap().len(),
            1,
            "{url}"
        );
        assert_eq!(
            contract::fate(&other.take(a.agents[0]).await),
            "held",
            "{url}"
        );
        let order = Order {
            realm: a.realm,
            ops: vec![a.word()],
            at_ms: 10,
        };
        other.operate(order).await.unwrap().remove(0).unwrap();
    }
    assert_eq!(
        tenants
            .sql(
                "a",
                "SELECT count(*) FROM posse.mail WHERE tenant = 'a' AND body = 'secret'"
            )
            .unwrap(),
        "3"
    );
}

#[tokio::test]
async fn a_plain_tenant_can_do_all_that_a_store_does() {
    let tenants = Tenants::new();
    let mut number = 0;
    let mut anew = || {
        number += 1;
        let database = format!("contract_{number}");
        tenants
            .server
            .sql(&format!("CREATE DATABASE {database} TEMPLATE shared"))
            .unwrap();
        tenants.url_in("a", &database)
    };
    macro_rules! hold {
        ($($contract:ident),*) => {$({
            let url = anew();
            let open: Open<'_> = &|| Arc::new(Postgres::open(&url).unwrap());
            contract::$contract(open).await;
        })*};
    }
    hold!(
        a_step_is_committed_once,
        operations_commit_with_their_call,
        entries_come_back_as_they_went_in,
        charges_add_up,
        mail_is_taken_once,
        a_claim_is_granted_to_one,
        what_waits_is_freed,
        teams_have_members,
        a_request_is_answered_once,
        a_question_is_answered_once,
        a_team_goes_out_and_comes_in,
        heads_come_back_and_are_shared,
        definitions_come_back_with_their_entries,
        a_held_agent_is_refused_to_others
    );
}
