-- Mail, tasks, teams, questions, background runs; hosts that hold agents. Words as in 1.sql.

-- "poss": by this a file is known as posse's.
PRAGMA application_id = 0x706f7373;

-- step: the id of the last step. result: what came of it, as JSON; null if it came to nothing special.
ALTER TABLE agent ADD COLUMN step BLOB;
ALTER TABLE agent ADD COLUMN result TEXT;
CREATE INDEX agent_host ON agent (host) WHERE host IS NOT NULL;
CREATE INDEX agent_path ON agent (realm, path);

-- operated: what came of the call's operations, as JSON.
ALTER TABLE call ADD COLUMN operated TEXT;

-- Hosts that may hold agents. The one table without a realm: a host is no part of any.
CREATE TABLE host (id BLOB NOT NULL PRIMARY KEY) WITHOUT ROWID;
INSERT INTO host (id) SELECT DISTINCT host FROM agent WHERE host IS NOT NULL;

-- last: the number of the newest message. waiting, bytes: those that were not taken. host: as of the
-- agent. It is a row of its own, so that those who send and the one who takes do not meet elsewhere.
CREATE TABLE inbox (
    realm BLOB NOT NULL, agent BLOB NOT NULL, last INTEGER NOT NULL, waiting INTEGER NOT NULL,
    bytes INTEGER NOT NULL, host BLOB,
    PRIMARY KEY (realm, agent)
) WITHOUT ROWID;
CREATE INDEX inbox_news ON inbox (host) WHERE waiting > 0 AND host IS NOT NULL;

-- sender: null for the user. entry: the recipient's entry that shows it; null while it waits.
CREATE TABLE mail (
    realm BLOB NOT NULL, recipient BLOB NOT NULL, number INTEGER NOT NULL, id BLOB NOT NULL,
    sender BLOB, sender_name TEXT NOT NULL, kind TEXT NOT NULL, sent_ms INTEGER NOT NULL, entry INTEGER,
    summary TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (realm, recipient, number)
) WITHOUT ROWID;
CREATE INDEX mail_waiting ON mail (realm, recipient, number) WHERE entry IS NULL;

-- here_ms: when it came into this store, which is later than it was made if it was imported. settings: as
-- JSON.
CREATE TABLE team (
    realm BLOB NOT NULL, name TEXT NOT NULL, lead BLOB NOT NULL, created_ms INTEGER NOT NULL,
    here_ms INTEGER NOT NULL, description TEXT NOT NULL, settings TEXT NOT NULL,
    PRIMARY KEY (realm, name)
) WITHOUT ROWID;
CREATE INDEX team_created ON team (created_ms);

-- nth: in the order of joining.
CREATE TABLE member (
    realm BLOB NOT NULL, team TEXT NOT NULL, name TEXT NOT NULL, nth INTEGER NOT NULL,
    agent BLOB NOT NULL, agent_type TEXT NOT NULL, model TEXT NOT NULL, prompt TEXT NOT NULL,
    color TEXT NOT NULL, backend TEXT NOT NULL, cwd BLOB NOT NULL, joined_ms INTEGER NOT NULL,
    PRIMARY KEY (realm, team, name)
) WITHOUT ROWID;
CREATE INDEX member_agent ON member (realm, agent, team);

CREATE TABLE note (
    realm BLOB NOT NULL, team TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,
    author TEXT NOT NULL, written_ms INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (realm, team, name)
) WITHOUT ROWID;

-- Lists of tasks; team: empty for the session's own. last: the highest number ever given; it outlives a
-- deleted team. changed: the change by which a task of it became claimable last.
CREATE TABLE list (
    realm BLOB NOT NULL, team TEXT NOT NULL, last INTEGER NOT NULL, changed INTEGER NOT NULL,
    PRIMARY KEY (realm, team)
) WITHOUT ROWID;
CREATE INDEX list_changed ON list (changed);

-- One row. last: counts all changes by which a task became claimable; it never goes back.
CREATE TABLE changes (last INTEGER NOT NULL);
INSERT INTO changes (last) VALUES (0);

-- status: 0 pending, 1 in progress, 2 completed, 3 deleted. waits: its dependencies that are neither
-- completed nor deleted. metadata: as JSON.
CREATE TABLE task (
    realm BLOB NOT NULL, team TEXT NOT NULL, id INTEGER NOT NULL, status INTEGER NOT NULL,
    waits INTEGER NOT NULL, owner TEXT, owner_agent BLOB, lost_by TEXT, version INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, subject TEXT NOT NULL, active_form TEXT,
    metadata TEXT NOT NULL, description TEXT NOT NULL,
    PRIMARY KEY (realm, team, id)
) WITHOUT ROWID;
CREATE INDEX task_ready ON task (realm, team, id) WHERE status = 0 AND owner IS NULL AND waits = 0;
CREATE INDEX task_owner ON task (realm, owner_agent) WHERE status = 1 AND owner_agent IS NOT NULL;

-- `task` waits for `needs`.
CREATE TABLE dependency (
    realm BLOB NOT NULL, team TEXT NOT NULL, task INTEGER NOT NULL, needs INTEGER NOT NULL,
    PRIMARY KEY (realm, team, task, needs)
) WITHOUT ROWID;
CREATE INDEX dependency_needs ON dependency (realm, team, needs, task);

-- Questions to a person that are open. kind: 1 permission, 2 plan, 3 shutdown. about: as JSON.
CREATE TABLE ask (
    realm BLOB NOT NULL, agent BLOB NOT NULL, id BLOB NOT NULL, kind INTEGER NOT NULL,
    asked_ms INTEGER NOT NULL, about TEXT NOT NULL,
    PRIMARY KEY (realm, agent, id)
) WITHOUT ROWID;

-- state: 0 running, 1 completed, 2 partial, 3 failed, 4 killed. told: the entry that told the model.
CREATE TABLE run (
    realm BLOB NOT NULL, agent BLOB NOT NULL, id BLOB NOT NULL, kind TEXT NOT NULL, state INTEGER NOT NULL,
    began_ms INTEGER NOT NULL, told INTEGER, description TEXT NOT NULL, output BLOB NOT NULL,
    PRIMARY KEY (realm, agent, id)
) WITHOUT ROWID;
CREATE INDEX run_open ON run (realm, agent) WHERE told IS NULL;
