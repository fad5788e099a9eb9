-- An empty file as all versions together make it. A test compares the two. The words are explained by the versions.

PRAGMA application_id = 1886352243;
CREATE TABLE preamble (
    realm BLOB NOT NULL, hash BLOB NOT NULL, mark_at INTEGER, bytes BLOB NOT NULL,
    PRIMARY KEY (realm, hash)
) WITHOUT ROWID;
CREATE TABLE agent (
    realm BLOB NOT NULL, id BLOB NOT NULL, epoch INTEGER NOT NULL, own INTEGER NOT NULL,
    state INTEGER NOT NULL, used_ms INTEGER NOT NULL, mode TEXT NOT NULL,
    inherited INTEGER NOT NULL, prompt_agent BLOB, prompt_seq INTEGER, host BLOB,
    parent BLOB, path TEXT NOT NULL, model TEXT NOT NULL, dialect TEXT NOT NULL, cwd BLOB NOT NULL,
    preamble BLOB NOT NULL, created_ms INTEGER NOT NULL, step BLOB, result TEXT, agent_type TEXT, name TEXT, description TEXT, call_seq INTEGER, call_ordinal INTEGER, call_id TEXT, starter BLOB, ended TEXT, terms TEXT, types INTEGER, since INTEGER,
    PRIMARY KEY (realm, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX agent_id ON agent (id);
CREATE INDEX root_used ON agent (used_ms, id) WHERE parent IS NULL;
CREATE INDEX root_cwd ON agent (cwd, used_ms, id) WHERE parent IS NULL;
CREATE TABLE segment (
    realm BLOB NOT NULL, agent BLOB NOT NULL, ordinal INTEGER NOT NULL,
    source BLOB NOT NULL, first INTEGER NOT NULL, beyond INTEGER NOT NULL,
    PRIMARY KEY (realm, agent, ordinal)
) WITHOUT ROWID;
CREATE TABLE entry (
    realm BLOB NOT NULL, agent BLOB NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL,
    at_ms INTEGER NOT NULL, checksum INTEGER NOT NULL, mark_at INTEGER, reply TEXT, bytes BLOB NOT NULL, head BLOB, loaded BLOB,
    PRIMARY KEY (realm, agent, seq)
) WITHOUT ROWID;
CREATE TABLE call (
    realm BLOB NOT NULL, agent BLOB NOT NULL, seq INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    id TEXT NOT NULL, tool TEXT NOT NULL, begun INTEGER NOT NULL, is_error INTEGER, content TEXT, operated TEXT, tier TEXT,
    PRIMARY KEY (realm, agent, seq, ordinal)
) WITHOUT ROWID;
CREATE TABLE charge (
    realm BLOB NOT NULL, agent BLOB NOT NULL, model TEXT NOT NULL, nth INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    input INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write_5m INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL, output INTEGER NOT NULL, thinking INTEGER NOT NULL, cost INTEGER, purpose INTEGER NOT NULL DEFAULT 0, missed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (realm, agent, model, nth)
) WITHOUT ROWID;
CREATE TABLE seen (
    realm BLOB NOT NULL, agent BLOB NOT NULL, path BLOB NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (realm, agent, path)
) WITHOUT ROWID;
CREATE INDEX agent_host ON agent (host) WHERE host IS NOT NULL;
CREATE INDEX agent_path ON agent (realm, path);
CREATE TABLE host (id BLOB NOT NULL PRIMARY KEY, version INTEGER) WITHOUT ROWID;
CREATE TABLE inbox (
    realm BLOB NOT NULL, agent BLOB NOT NULL, last INTEGER NOT NULL, waiting INTEGER NOT NULL,
    bytes INTEGER NOT NULL, host BLOB,
    PRIMARY KEY (realm, agent)
) WITHOUT ROWID;
CREATE INDEX inbox_news ON inbox (host) WHERE waiting > 0 AND host IS NOT NULL;
CREATE TABLE mail (
    realm BLOB NOT NULL, recipient BLOB NOT NULL, number INTEGER NOT NULL, id BLOB NOT NULL,
    sender BLOB, sender_name TEXT NOT NULL, kind TEXT NOT NULL, sent_ms INTEGER NOT NULL, entry INTEGER,
    summary TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (realm, recipient, number)
) WITHOUT ROWID;
CREATE INDEX mail_waiting ON mail (realm, recipient, number) WHERE entry IS NULL;
CREATE TABLE team (
    realm BLOB NOT NULL, name TEXT NOT NULL, lead BLOB NOT NULL, created_ms INTEGER NOT NULL,
    here_ms INTEGER NOT NULL, description TEXT NOT NULL, settings TEXT NOT NULL,
    PRIMARY KEY (realm, name)
) WITHOUT ROWID;
CREATE INDEX team_created ON team (created_ms);
CREATE TABLE member (
    realm BLOB NOT NULL, team TEXT NOT NULL, name TEXT NOT NULL, nth INTEGER NOT NULL,
    agent BLOB NOT NULL, agent_type TEXT NOT NULL, model TEXT NOT NULL, prompt TEXT NOT NULL,
    color TEXT NOT NULL, backend TEXT NOT NULL, cwd BLOB NOT NULL, joined_ms INTEGER NOT NULL, role TEXT, takes TEXT,
    PRIMARY KEY (realm, team, name)
) WITHOUT ROWID;
CREATE INDEX member_agent ON member (realm, agent, team);
CREATE TABLE note (
    realm BLOB NOT NULL, team TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL,
    author TEXT NOT NULL, written_ms INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (realm, team, name)
) WITHOUT ROWID;
CREATE TABLE list (
    realm BLOB NOT NULL, team TEXT NOT NULL, last INTEGER NOT NULL, changed INTEGER NOT NULL,
    PRIMARY KEY (realm, team)
) WITHOUT ROWID;
CREATE INDEX list_changed ON list (changed);
CREATE TABLE changes (last INTEGER NOT NULL);
CREATE TABLE task (
    realm BLOB NOT NULL, team TEXT NOT NULL, id INTEGER NOT NULL, status INTEGER NOT NULL,
    waits INTEGER NOT NULL, owner TEXT, owner_agent BLOB, lost_by TEXT, version INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, subject TEXT NOT NULL, active_form TEXT,
    metadata TEXT NOT NULL, description TEXT NOT NULL, role TEXT, check_command TEXT,
    PRIMARY KEY (realm, team, id)
) WITHOUT ROWID;
CREATE INDEX task_ready ON task (realm, team, id) WHERE status = 0 AND owner IS NULL AND waits = 0;
CREATE INDEX task_owner ON task (realm, owner_agent) WHERE status = 1 AND owner_agent IS NOT NULL;
CREATE TABLE dependency (
    realm BLOB NOT NULL, team TEXT NOT NULL, task INTEGER NOT NULL, needs INTEGER NOT NULL,
    PRIMARY KEY (realm, team, task, needs)
) WITHOUT ROWID;
CREATE INDEX dependency_needs ON dependency (realm, team, needs, task);
CREATE TABLE run (
    realm BLOB NOT NULL, agent BLOB NOT NULL, id BLOB NOT NULL, kind TEXT NOT NULL, state INTEGER NOT NULL,
    began_ms INTEGER NOT NULL, description TEXT NOT NULL, output BLOB NOT NULL, call_seq INTEGER, call_ordinal INTEGER,
    PRIMARY KEY (realm, agent, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX agent_name ON agent (realm, name) WHERE name IS NOT NULL;
CREATE INDEX agent_parent ON agent (realm, parent, id) WHERE parent IS NOT NULL;
CREATE INDEX agent_open ON agent (realm, id) WHERE parent IS NOT NULL AND state IN (1, 3, 4);
CREATE INDEX inbox_waiting ON inbox (realm, agent) WHERE waiting > 0;
CREATE INDEX run_open ON run (realm, agent) WHERE state = 0;
CREATE TABLE "total" (
    realm BLOB NOT NULL, agent BLOB NOT NULL, model TEXT NOT NULL, purpose INTEGER NOT NULL,
    calls INTEGER NOT NULL, input INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, output INTEGER NOT NULL,
    thinking INTEGER NOT NULL, cost INTEGER, missed INTEGER NOT NULL,
    PRIMARY KEY (realm, agent, model, purpose)
) WITHOUT ROWID;
CREATE TABLE request (
    realm BLOB NOT NULL, id BLOB NOT NULL, team TEXT NOT NULL, kind TEXT NOT NULL, asker BLOB,
    asker_name TEXT NOT NULL, asked BLOB NOT NULL, number INTEGER NOT NULL, asked_ms INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (realm, id)
) WITHOUT ROWID;
CREATE INDEX request_asked ON request (realm, asked);
CREATE INDEX request_asker ON request (realm, asker) WHERE asker IS NOT NULL;
CREATE TABLE used_name (
    realm BLOB NOT NULL, team TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (realm, team, name)
) WITHOUT ROWID;
CREATE INDEX used_name_number ON used_name (realm, team, rtrim(name, '0123456789'), length(name), name);
CREATE INDEX used_name_anywhere ON used_name (realm, name);
CREATE INDEX task_role ON task (realm, team, role, id) WHERE status = 0 AND owner IS NULL AND waits = 0;
CREATE INDEX task_own ON task (realm, team, owner_agent, id)
    WHERE status = 0 AND owner IS NOT NULL AND waits = 0;
CREATE INDEX task_assigned ON task (realm, team, id)
    WHERE status = 0 AND owner_agent IS NOT NULL AND waits = 0;
CREATE INDEX task_ahead ON task (realm, owner_agent) WHERE status = 0 AND owner_agent IS NOT NULL;
CREATE INDEX task_lost ON task (realm, team, lost_by, id) WHERE status = 0 AND lost_by IS NOT NULL;
CREATE TABLE feed_head (realm BLOB NOT NULL PRIMARY KEY, head INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE feed (
    realm BLOB NOT NULL, number INTEGER NOT NULL, agent BLOB, at_ms INTEGER NOT NULL, what INTEGER NOT NULL,
    seq INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (realm, number)
) WITHOUT ROWID;
CREATE INDEX feed_age ON feed (at_ms) WHERE number % 64 = 0;
CREATE TABLE question (
    realm BLOB NOT NULL, id BLOB NOT NULL, agent BLOB NOT NULL, call_seq INTEGER NOT NULL, call_ordinal INTEGER NOT NULL,
    state INTEGER NOT NULL, asked_ms INTEGER NOT NULL, answered_ms INTEGER, question TEXT NOT NULL, answer TEXT,
    PRIMARY KEY (realm, id)
) WITHOUT ROWID;
CREATE INDEX question_id ON question (id);
CREATE INDEX question_asked ON question (realm, asked_ms, id);
CREATE INDEX question_open ON question (asked_ms, id) WHERE state = 0;
CREATE INDEX question_open_in ON question (realm, asked_ms, id) WHERE state = 0;
CREATE INDEX question_agent ON question (realm, agent, asked_ms, id) WHERE state < 2;
CREATE INDEX question_answered ON question (realm, agent) WHERE state = 1;
CREATE TRIGGER host_version BEFORE INSERT ON host WHEN coalesce(NEW.version, 0) < 8 BEGIN
    SELECT RAISE(ABORT, 'a newer posse has changed this store: start this one again');
END;
INSERT INTO changes VALUES (0);
