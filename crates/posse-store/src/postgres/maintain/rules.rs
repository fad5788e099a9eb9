//! The rules between rows: a description of each fault, and a query for the rows that have it.
//!
//! Each query covers the realms after parameter 1 up to parameter 2. The names of its columns
//! appear in the report.

/// Counts agents, teams, tasks, messages, and agents whose ids do not end like those of their
/// realms: the last 12 bits.
pub(super) const COUNTED: &str = "SELECT
    (SELECT count(*) FROM agent WHERE realm > $1 AND realm <= $2),
    (SELECT count(*) FROM team WHERE realm > $1 AND realm <= $2),
    (SELECT count(*) FROM task WHERE realm > $1 AND realm <= $2),
    (SELECT count(*) FROM mail WHERE realm > $1 AND realm <= $2),
    (SELECT count(*) FROM agent WHERE realm > $1 AND realm <= $2
         AND right(id::text, 3) <> right(realm::text, 3))";

/// Tables whose rows belong to an agent.
pub(super) const OWNED: [&str; 9] = [
    "pulse", "root", "segment", "entry", "call", "charge", "total", "seen", "run",
];

/// The faults that are looked for.
pub(super) const RULES: [(&str, &str); 34] = [
    (
        "an agent is missing from some tables",
        "SELECT a.id AS agent FROM agent a WHERE a.realm > $1 AND a.realm <= $2
             AND (NOT EXISTS (SELECT 1 FROM pulse WHERE realm = a.realm AND agent = a.id)
                 OR (a.parent IS NULL) <> EXISTS (SELECT 1 FROM root WHERE realm = a.realm AND agent = a.id))",
    ),
    (
        "a session is listed wrongly",
        "SELECT a.id AS agent FROM agent a JOIN pulse p ON p.realm = a.realm AND p.agent = a.id
             JOIN root r ON r.realm = a.realm AND r.agent = a.id
         WHERE a.realm > $1 AND a.realm <= $2 AND (r.cwd <> a.cwd OR r.used_ms <> p.used_ms)",
    ),
    (
        "an agent's number of entries is wrong",
        "SELECT agent, own AS counted FROM pulse p WHERE realm > $1 AND realm <= $2 AND own <>
             (SELECT count(*) FROM entry WHERE realm = p.realm AND agent = p.agent)",
    ),
    (
        "an agent's preamble is missing",
        "SELECT id AS agent FROM agent a WHERE realm > $1 AND realm <= $2 AND NOT EXISTS
             (SELECT 1 FROM preamble WHERE realm = a.realm AND hash = a.preamble)",
    ),
    (
        "an agent's inherited entries do not match its segments",
        "SELECT id AS agent, inherited AS counted FROM agent a WHERE realm > $1 AND realm <= $2 AND inherited <>
             (SELECT coalesce(sum(beyond - first), 0) FROM segment WHERE realm = a.realm AND agent = a.id)",
    ),
    (
        "a segment names entries that do not exist",
        "SELECT agent, ordinal AS segment FROM segment s WHERE realm > $1 AND realm <= $2 AND (first > beyond OR beyond >
             (SELECT coalesce(max(seq) + 1, 0) FROM entry WHERE realm = s.realm AND agent = s.source)
             OR NOT EXISTS (SELECT 1 FROM agent WHERE realm = s.realm AND id = s.source))",
    ),
    (
        "a segment begins with an entry that does not stand for those before it",
        "SELECT agent, ordinal AS segment FROM segment s WHERE realm > $1 AND realm <= $2 AND first > 0 AND NOT EXISTS
             (SELECT 1 FROM entry WHERE realm = s.realm AND agent = s.source AND seq = s.first AND kind = 4)",
    ),
    (
        "an agent's last compaction is wrong",
        "SELECT agent, since AS entry FROM pulse p WHERE realm > $1 AND realm <= $2 AND since IS DISTINCT FROM
             (SELECT max(seq) FROM entry WHERE realm = p.realm AND agent = p.agent AND kind = 4)",
    ),
    (
        "a call names an entry that is not a reply",
        "SELECT agent, seq AS entry FROM call c WHERE realm > $1 AND realm <= $2 AND NOT EXISTS
             (SELECT 1 FROM entry WHERE realm = c.realm AND agent = c.agent AND seq = c.seq AND kind = 2)",
    ),
    (
        "a sub-agent's parent does not exist",
        "SELECT id AS agent FROM agent a WHERE realm > $1 AND realm <= $2 AND parent IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM agent WHERE realm = a.realm AND id = a.parent)",
    ),
    (
        "a sub-agent was made by a call that its parent did not make",
        "SELECT id AS agent, call_seq AS entry FROM agent a WHERE realm > $1 AND realm <= $2 AND call_id <> ''
             AND NOT EXISTS (SELECT 1 FROM call WHERE realm = a.realm AND agent = a.parent AND seq = a.call_seq
                 AND ordinal = a.call_ordinal AND id = a.call_id)",
    ),
    (
        "the agent to notify of an agent's end does not exist",
        "SELECT agent FROM pulse p WHERE realm > $1 AND realm <= $2 AND starter IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM agent WHERE realm = p.realm AND id = p.starter)",
    ),
    (
        "an agent's state is invalid, or does not match its last run",
        "SELECT agent, state FROM pulse WHERE realm > $1 AND realm <= $2
             AND (state NOT BETWEEN 0 AND 8 OR (ended IS NOT NULL AND state IN (1, 3, 4)))",
    ),
    (
        "a sub-agent's run is open and not found, or found and not open",
        "SELECT p.agent, p.state FROM pulse p JOIN agent a ON a.realm = p.realm AND a.id = p.agent
         WHERE p.realm > $1 AND p.realm <= $2
             AND p.is_open <> (a.parent IS NOT NULL AND p.state IN (1, 3, 4))",
    ),
    (
        "a root is registered under a name",
        "SELECT id AS agent, name FROM agent
         WHERE realm > $1 AND realm <= $2 AND name IS NOT NULL AND parent IS NULL",
    ),
    (
        "an agent is held by a host that is not registered as holding any",
        "SELECT agent, host FROM pulse p WHERE realm > $1 AND realm <= $2 AND host IS NOT NULL AND NOT EXISTS
             (SELECT 1 FROM presence WHERE realm = p.realm AND host = p.host)",
    ),
    (
        "a command was begun by a call that its agent did not make",
        "SELECT agent, call_seq AS entry FROM run r WHERE realm > $1 AND realm <= $2 AND NOT EXISTS
             (SELECT 1 FROM call WHERE realm = r.realm AND agent = r.agent AND seq = r.call_seq
              AND ordinal = r.call_ordinal)",
    ),
    (
        "a total does not match its charges",
        "SELECT agent, model FROM total t WHERE realm > $1 AND realm <= $2 AND calls <>
             (SELECT count(*) FROM charge WHERE realm = t.realm AND agent = t.agent AND model = t.model
              AND purpose = t.purpose)
         UNION SELECT agent, model FROM charge c WHERE realm > $1 AND realm <= $2 AND NOT EXISTS
             (SELECT 1 FROM total WHERE realm = c.realm AND agent = c.agent AND model = c.model
              AND purpose = c.purpose)",
    ),
    (
        "an inbox has a wrong message count",
        "SELECT agent, waiting AS counted FROM inbox i WHERE realm > $1 AND realm <= $2 AND waiting <>
             (SELECT count(*) FROM mail WHERE realm = i.realm AND recipient = i.agent AND entry IS NULL)",
    ),
    (
        "an inbox has a wrong size",
        "SELECT agent, bytes AS counted FROM inbox i WHERE realm > $1 AND realm <= $2 AND bytes <>
             (SELECT coalesce(sum(size), 0) FROM mail WHERE realm = i.realm AND recipient = i.agent
              AND entry IS NULL)",
    ),
    (
        "a message has a wrong size",
        "SELECT recipient AS agent, number AS message, size AS counted FROM mail
         WHERE realm > $1 AND realm <= $2 AND size <> text_bytes(summary) + text_bytes(body)",
    ),
    (
        "an inbox holds a message with a number that it has not given",
        "SELECT agent, last AS \"last given\" FROM inbox i WHERE realm > $1 AND realm <= $2 AND last <
             (SELECT coalesce(max(number), 0) FROM mail WHERE realm = i.realm AND recipient = i.agent)",
    ),
    (
        "mail lies in no inbox (`posse store gc` removes it if its session is gone)",
        "SELECT DISTINCT recipient AS agent FROM mail m WHERE realm > $1 AND realm <= $2 AND NOT EXISTS
             (SELECT 1 FROM inbox WHERE realm = m.realm AND agent = m.recipient)",
    ),
    (
        "an inbox is held by something other than its agent",
        "SELECT i.agent FROM inbox i JOIN pulse p ON p.realm = i.realm AND p.agent = i.agent
         WHERE i.realm > $1 AND i.realm <= $2 AND i.host IS DISTINCT FROM p.host",
    ),
    (
        "a list has a task with a number that it has not given",
        "SELECT realm AS session, team, last AS \"last given\" FROM list l WHERE realm > $1 AND realm <= $2 AND last <
             (SELECT coalesce(max(id), 0) FROM task WHERE realm = l.realm AND team = l.team)",
    ),
    (
        "a task is in no list (`posse store gc` removes what it left)",
        "SELECT realm AS session, team, id AS task FROM task t WHERE realm > $1 AND realm <= $2 AND NOT EXISTS
             (SELECT 1 FROM list WHERE realm = t.realm AND team = t.team)",
    ),
    (
        "a task has a wrong count of the tasks it waits for",
        "SELECT realm AS session, team, id AS task FROM task t WHERE realm > $1 AND realm <= $2 AND waits <>
             (SELECT count(*) FROM dependency d JOIN task needed ON needed.realm = d.realm
                  AND needed.team = d.team AND needed.id = d.needs AND needed.status < 2
              WHERE d.realm = t.realm AND d.team = t.team AND d.task = t.id)",
    ),
    (
        "a task waits for one that is not there, or is not there itself",
        "SELECT realm AS session, team, task, needs AS \"which waits for\" FROM dependency d
         WHERE realm > $1 AND realm <= $2
             AND (NOT EXISTS (SELECT 1 FROM task WHERE realm = d.realm AND team = d.team AND id = d.task)
                 OR NOT EXISTS (SELECT 1 FROM task WHERE realm = d.realm AND team = d.team AND id = d.needs))",
    ),
    (
        "a task is in progress, but no process hosts its agent",
        "SELECT t.realm AS session, t.team, t.id AS task, t.owner FROM task t
             JOIN pulse p ON p.realm = t.realm AND p.agent = t.owner_agent
         WHERE t.realm > $1 AND t.realm <= $2 AND t.status = 1 AND p.host IS NULL",
    ),
    (
        "a team's lead is not a member of it",
        "SELECT realm AS session, name AS team FROM team t WHERE realm > $1 AND realm <= $2 AND NOT EXISTS
             (SELECT 1 FROM member WHERE realm = t.realm AND team = t.name AND agent = t.lead)",
    ),
    (
        "a member has no team, or no inbox",
        "SELECT realm AS session, team, name AS member FROM member m WHERE realm > $1 AND realm <= $2
             AND (NOT EXISTS (SELECT 1 FROM team WHERE realm = m.realm AND name = m.team)
                 OR NOT EXISTS (SELECT 1 FROM inbox WHERE realm = m.realm AND agent = m.agent))",
    ),
    (
        "a member's name could be given again",
        "SELECT realm AS session, team, name AS member FROM member m
         WHERE realm > $1 AND realm <= $2 AND name <> 'team-lead' AND NOT EXISTS
             (SELECT 1 FROM used_name WHERE realm = m.realm AND team = m.team AND name = m.name)",
    ),
    (
        "an open request cannot be answered by any member of its team",
        "SELECT realm AS session, team, id AS request FROM request r WHERE realm > $1 AND realm <= $2 AND NOT EXISTS
             (SELECT 1 FROM member WHERE realm = r.realm AND team = r.team AND agent = r.asked)",
    ),
    (
        "a session's feed has a gap",
        "SELECT f.realm AS session FROM feed f LEFT JOIN realm r ON r.id = f.realm
         WHERE f.realm > $1 AND f.realm <= $2 GROUP BY f.realm, r.head
         HAVING max(f.number) IS DISTINCT FROM r.head OR count(*) <> max(f.number) - min(f.number) + 1",
    ),
];
