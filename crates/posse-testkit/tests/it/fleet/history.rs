//! Holds what hosts have written down against what is in the database.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::Path;

use posse_port::store::{Done, OpResult};
use posse_protocol::AgentId;
use posse_store::maintain::postgres::check as posse_check;
use posse_testkit::fleet::{Began, Deed, Record};
use posse_testkit::postgres::sql;
use uuid::Uuid;

/// What the database notes by itself of each step, each change of hands and each change of a task, in the order of commits
/// in a realm. `lost`: whether the agent's holder had been taken for dead, or was nobody.
const AUDIT: &str = "
CREATE SCHEMA audit;
CREATE SEQUENCE audit.n;
CREATE TABLE audit.step (n bigint DEFAULT nextval('audit.n'), agent uuid, step uuid, epoch bigint, lost boolean);
CREATE TABLE audit.hold (n bigint DEFAULT nextval('audit.n'), agent uuid, old_epoch bigint, epoch bigint, old_host uuid, host uuid);
CREATE TABLE audit.task (n bigint DEFAULT nextval('audit.n'), realm uuid, id bigint, version bigint, old_status smallint, status smallint,
    old_owner uuid, owner uuid);
CREATE FUNCTION audit.pulse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.step IS DISTINCT FROM OLD.step THEN
        INSERT INTO audit.step (agent, step, epoch, lost) VALUES (NEW.agent, NEW.step, NEW.epoch,
            NOT EXISTS (SELECT 1 FROM posse.host WHERE id = NEW.host AND lost_at IS NULL));
    END IF;
    IF NEW.host IS DISTINCT FROM OLD.host OR NEW.epoch <> OLD.epoch THEN
        INSERT INTO audit.hold (agent, old_epoch, epoch, old_host, host)
        VALUES (NEW.agent, OLD.epoch, NEW.epoch, OLD.host, NEW.host);
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION audit.task() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit.task (realm, id, version, old_status, status, old_owner, owner)
    VALUES (NEW.realm, NEW.id, NEW.version, OLD.status, NEW.status, OLD.owner_agent, NEW.owner_agent);
    RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER UPDATE ON posse.pulse FOR EACH ROW EXECUTE FUNCTION audit.pulse();
CREATE TRIGGER audit AFTER UPDATE ON posse.task FOR EACH ROW EXECUTE FUNCTION audit.task();";

/// What must find no row, whatever was done.
const WRONG: &[(&str, &str)] = &[
    ("transcripts are dense", "SELECT p.agent, p.own, count(e), max(e.seq) FROM posse.pulse p LEFT JOIN posse.entry e
        USING (realm, agent) GROUP BY p.agent, p.own HAVING count(e) <> p.own OR coalesce(max(e.seq), -1) <> p.own - 1"),
    ("entries say which step they are of", "SELECT agent, seq FROM
        (SELECT agent, seq, convert_from(bytes, 'UTF8')::json AS said FROM posse.entry) e
        WHERE (said->>'entry')::bigint <> seq OR NOT EXISTS
            (SELECT 1 FROM audit.step s WHERE s.agent = e.agent AND s.step = (said->>'step')::uuid)"),
    ("inboxes are dense", "SELECT i.agent, i.last, i.waiting, count(m), max(m.number) FROM posse.inbox i LEFT JOIN posse.mail m
        ON m.realm = i.realm AND m.recipient = i.agent GROUP BY i.agent, i.last, i.waiting, i.bytes
        HAVING count(m) <> i.last OR max(m.number) <> i.last OR count(m) FILTER (WHERE m.entry IS NULL) <> i.waiting
            OR coalesce(sum(m.size) FILTER (WHERE m.entry IS NULL), 0) <> i.bytes"),
    ("tasks are dense", "SELECT l.realm, l.last, count(t) FROM posse.list l LEFT JOIN posse.task t USING (realm, team)
        GROUP BY l.realm, l.last HAVING count(t) <> l.last OR coalesce(max(t.id), 0) <> l.last"),
    ("sums are right", "SELECT t.agent FROM posse.total t JOIN posse.charge c USING (realm, agent, model, purpose)
        GROUP BY t.agent, t.calls, t.cache_read HAVING count(*) <> t.calls OR sum(c.cache_read) <> t.cache_read"),
    ("a task has one owner at a time", "SELECT id, version, old_owner, owner FROM audit.task
        WHERE old_status = 1 AND status = 1 AND old_owner <> owner"),
    ("only its owner completes a task", "SELECT id, version, old_status, old_owner, owner FROM audit.task
        WHERE status = 2 AND (old_status <> 1 OR old_owner <> owner)"),
    ("a task is completed once", "SELECT realm, id, count(*) FROM audit.task WHERE status = 2 GROUP BY realm, id HAVING count(*) > 1"),
    ("an agent that changes hands has a new epoch", "SELECT agent, old_epoch, epoch, old_host, host FROM audit.hold
        WHERE epoch <= old_epoch"),
    ("nobody writes to an agent that has changed hands", "SELECT s.agent, s.step, s.epoch, h.epoch FROM audit.step s
        JOIN audit.hold h ON h.agent = s.agent AND h.n < s.n AND h.epoch > s.epoch"),
    ("no step is done twice", "SELECT agent, step, count(*) FROM audit.step GROUP BY agent, step HAVING count(*) > 1"),
    ("nobody writes who was taken for dead", "SELECT agent, step, epoch FROM audit.step WHERE lost"),
];

/// Has the database note what happens.
pub(super) fn audit(url: &str) {
    sql(url, AUDIT).unwrap();
}

/// What became of something, in the eyes of whoever began it.
#[derive(Clone, Debug)]
enum Fate {
    Acknowledged(Vec<OpResult>),
    Refused,
    Unknown,
}

/// How much there was to see.
#[derive(Default)]
pub(super) struct Verdict {
    acknowledged: u64,
    pub(super) refused: u64,
    /// Of the refused ones, those that had been done before the agent changed hands: an answer was lost.
    pub(super) before: u64,
    unknown: u64,
    /// Of the unknown ones, those that are there.
    found: u64,
    takes: u64,
    pub(super) fenced: u64,
    mails: usize,
    tasks: usize,
    completed: String,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            acknowledged,
            refused,
            before,
            unknown,
            found,
            takes,
            fenced,
            mails,
            tasks,
            completed,
        } = self;
        write!(
            f,
            "{acknowledged} acknowledged, {refused} refused ({before} done before), {unknown} unknown ({found} are there), {takes} takes, \
             hosts fenced {fenced} times, {mails} mails, {tasks} tasks ({completed} completed): 0 lost, 0 doubled, \
             0 with two owners, 0 stale"
        )
    }
}

/// All that hosts have written down.
struct History {
    began: HashMap<Uuid, (Began, Fate)>,
    takes: HashMap<(AgentId, u64), String>,
    fenced: u64,
}

impl History {
    fn read(directory: &Path) -> Self {
        let mut history = Self {
            began: HashMap::new(),
            takes: HashMap::new(),
            fenced: 0,
        };
        for file in std::fs::read_dir(directory)
            .unwrap()
            .map(|file| file.unwrap().path())
        {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            for line in std::fs::read_to_string(&file).unwrap().lines() {
                history.add(&name, serde_json::from_str(line).unwrap());
            }
        }
        history
    }

    fn add(&mut self, file: &str, record: Record) {
        let mut came = |id: Uuid, fate| self.began.get_mut(&id).unwrap().1 = fate;
        match record {
            Record::Began(began) => drop(self.began.insert(began.id, (began, Fate::Unknown))),
            Record::Acknowledged { id, results } => came(id, Fate::Acknowledged(results)),
            Record::Refused { id } => came(id, Fate::Refused),
            Record::Unknown { .. } => {}
            Record::Took { agent, epoch } => {
                let other = self.takes.insert((agent, epoch), file.to_owned());
                assert!(
                    other.is_none(),
                    "epoch {epoch} of {agent} was given to {file} and to {other:?}"
                );
            }
            Record::Fenced => self.fenced += 1,
            Record::Trouble(what) => panic!("{file}: {what}"),
        }
    }
}

/// What is in the database.
struct Found {
    /// The epoch of each step.
    steps: HashMap<Uuid, u64>,
    entries: HashMap<(AgentId, u64), u64>,
    /// By id and recipient: its number, and the entry that shows it.
    mail: HashMap<(Uuid, AgentId), (u64, Option<u64>)>,
    /// By recipient and number: the entry that shows it.
    shown: HashMap<(AgentId, u64), Option<u64>>,
    /// By subject.
    tasks: HashMap<Uuid, u64>,
    charges: HashSet<u64>,
    /// Of tasks: the status and owner that each version had.
    versions: HashMap<(Uuid, u64, u64), (u8, Option<AgentId>)>,
}

fn rows(url: &str, statement: &str) -> Vec<Vec<String>> {
    let text = sql(url, statement).unwrap();
    text.lines()
        .map(|line| line.split('|').map(str::to_owned).collect())
        .collect()
}

/// A map whose keys must be there once.
fn once<K: std::hash::Hash + Eq + fmt::Debug, V>(
    rows: Vec<Vec<String>>,
    read: impl Fn(&[String]) -> (K, V),
) -> HashMap<K, V> {
    let mut map = HashMap::new();
    for row in rows {
        let (key, value) = read(&row);
        assert!(!map.contains_key(&key), "{key:?} is there twice");
        map.insert(key, value);
    }
    map
}

fn id<T: std::str::FromStr<Err: fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

impl Found {
    fn look(url: &str) -> Self {
        let all = |statement| rows(url, statement);
        let maybe = |text: &str| (!text.is_empty()).then(|| id::<u64>(text));
        let mail = all("SELECT id, recipient, number, entry FROM posse.mail");
        Self {
            steps: once(all("SELECT step, epoch FROM audit.step"), |row| {
                (id(&row[0]), id(&row[1]))
            }),
            entries: once(all("SELECT agent, seq, checksum FROM posse.entry"), |row| {
                (
                    (id(&row[0]), id(&row[1])),
                    id::<i64>(&row[2]).cast_unsigned(),
                )
            }),
            shown: once(mail.clone(), |row| {
                ((id(&row[1]), id(&row[2])), maybe(&row[3]))
            }),
            mail: once(mail, |row| {
                ((id(&row[0]), id(&row[1])), (id(&row[2]), maybe(&row[3])))
            }),
            tasks: once(all("SELECT subject, id FROM posse.task"), |row| {
                (id(&row[0]), id(&row[1]))
            }),
            charges: once(all("SELECT cache_read FROM posse.charge"), |row| {
                (id(&row[0]), ())
            })
            .into_keys()
            .collect(),
            versions: once(
                all("SELECT realm, id, version, status, owner FROM audit.task"),
                |row| {
                    let owner = (!row[4].is_empty()).then(|| id(&row[4]));
                    (
                        (id(&row[0]), id(&row[1]), id(&row[2])),
                        (id(&row[3]), owner),
                    )
                },
            ),
        }
    }

    /// Which traces of something are there, and which are not, of those that it leaves without fail.
    fn traces(&self, began: &Began) -> Vec<bool> {
        let mut traces = Vec::new();
        if let Some((agent, _)) = began.by {
            traces.push(self.steps.contains_key(&began.id));
            traces.extend(
                began
                    .entries
                    .iter()
                    .map(|(seq, sum)| self.entries.get(&(agent, *seq)) == Some(sum)),
            );
        }
        traces.extend(began.charge.map(|number| self.charges.contains(&number)));
        traces.extend(began.deeds.iter().filter_map(|deed| match deed {
            Deed::Send { id, to } => Some(self.mail.contains_key(&(id.uuid(), *to))),
            Deed::Create(subject) => Some(self.tasks.contains_key(subject)),
            Deed::Charge { number, .. } => Some(self.charges.contains(number)),
            Deed::Claim | Deed::Complete(_) => None,
        }));
        traces
    }

    /// What was told of an operation is what is there.
    fn holds(&self, began: &Began, deed: &Deed, result: &OpResult) -> bool {
        let version = |id: u64, version: u64| {
            self.versions
                .get(&(began.realm.uuid(), id, version))
                .copied()
        };
        let agent = began.by.map(|(agent, _)| agent);
        match (deed, result) {
            (Deed::Send { id, to }, Ok(Done::Sent(receipts))) => self
                .mail
                .get(&(id.uuid(), *to))
                .is_some_and(|(number, _)| *number == receipts[0].number),
            (Deed::Create(subject), Ok(Done::TaskCreated(id))) => {
                self.tasks.get(subject) == Some(&id.0)
            }
            (Deed::Claim, Ok(Done::Claimed(task))) => {
                version(task.id.0, task.version) == Some((1, agent))
            }
            (Deed::Complete(id), Ok(Done::TaskUpdated { version: now, .. })) => {
                version(*id, *now) == Some((2, agent))
            }
            (Deed::Charge { number, .. }, Ok(Done::Charged)) => self.charges.contains(number),
            (Deed::Claim | Deed::Complete(_), Err(_)) => true,
            _ => false,
        }
    }
}

/// Holds the histories of a directory against a database.
pub(super) fn check(url: &str, directory: &Path) -> Verdict {
    for (promise, wrong) in WRONG {
        assert_eq!(sql(url, wrong).unwrap(), "", "{promise}");
    }
    // It has a runtime of its own.
    let whole = std::thread::scope(|scope| {
        scope
            .spawn(|| posse_check(url, &mut |_| {}))
            .join()
            .unwrap()
    });
    assert_eq!(whole.unwrap().faults, [""; 0], "posse's own check");
    let (history, found) = (History::read(directory), Found::look(url));
    let mut verdict = Verdict {
        takes: history.takes.len() as u64,
        fenced: history.fenced,
        mails: found.mail.len(),
        tasks: found.tasks.len(),
        completed: sql(url, "SELECT count(*) FROM posse.task WHERE status = 2").unwrap(),
        ..Verdict::default()
    };
    let (mut taken, mut began_there) = (BTreeMap::new(), Vec::new());
    for (began, fate) in history.began.values() {
        let traces = found.traces(began);
        let there = traces.iter().any(|it| *it);
        assert!(
            traces.iter().all(|it| *it == there),
            "half of it is there: {began:?} {fate:?} {traces:?}"
        );
        match fate {
            Fate::Acknowledged(results) => {
                assert!(there, "lost: {began:?}");
                assert_eq!(results.len(), began.deeds.len(), "{began:?}");
                for (deed, result) in began.deeds.iter().zip(results) {
                    assert!(
                        found.holds(began, deed, result),
                        "{deed:?} is not {result:?}: {began:?}"
                    );
                }
                verdict.acknowledged += 1;
            }
            Fate::Refused => {
                // A second try may be refused whose first one was done when the agent was still its own.
                verdict.refused += 1;
                verdict.before += u64::from(there);
            }
            Fate::Unknown => {
                verdict.unknown += 1;
                verdict.found += u64::from(there);
            }
        }
        if !there {
            continue;
        }
        if let Some((agent, epoch)) = began.by {
            assert_eq!(
                found.steps.get(&began.id),
                Some(&epoch),
                "of another epoch: {began:?}"
            );
            assert!(
                history.takes.contains_key(&(agent, epoch)),
                "an epoch that nobody had: {began:?}"
            );
            for (number, entry) in &began.mail {
                assert_eq!(
                    found.shown.get(&(agent, *number)),
                    Some(&Some(*entry)),
                    "{began:?}"
                );
                let other = taken.insert((agent, *number), began.id);
                assert_eq!(other, None, "mail {number} of {agent} was shown twice");
            }
        }
        began_there.push(began);
    }
    nothing_else(&found, &began_there, taken.len());
    verdict
}

/// Nothing is there that nobody began.
fn nothing_else(found: &Found, began: &[&Began], shown: usize) {
    let deeds = || began.iter().flat_map(|began| &began.deeds);
    let entries: usize = began.iter().map(|began| began.entries.len()).sum();
    let steps = began.iter().filter(|began| began.by.is_some()).count();
    let charges = began.iter().filter(|began| began.charge.is_some()).count()
        + deeds()
            .filter(|deed| matches!(deed, Deed::Charge { .. }))
            .count();
    let is_shown = found.shown.values().filter(|entry| entry.is_some()).count();
    assert_eq!((found.steps.len(), found.entries.len()), (steps, entries));
    assert_eq!((found.charges.len(), is_shown), (charges, shown));
    assert_eq!(
        found.mail.len(),
        deeds()
            .filter(|deed| matches!(deed, Deed::Send { .. }))
            .count()
    );
    assert_eq!(
        found.tasks.len(),
        deeds()
            .filter(|deed| matches!(deed, Deed::Create(_)))
            .count()
    );
}
