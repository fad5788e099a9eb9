-- Ids are UUIDs of 16 bytes, paths the bytes of the system, times milliseconds of Unix time. Checksums,
-- versions, tokens and pico-dollars are 64 bits without a sign, kept as the same bits with one.
-- Every key begins with the realm.

-- What stays the same for an agent's life, by content.
CREATE TABLE preamble (
    realm BLOB NOT NULL, hash BLOB NOT NULL, mark_at INTEGER, bytes BLOB NOT NULL,
    PRIMARY KEY (realm, hash)
) WITHOUT ROWID;

-- own: its own entries so far, the number of the next one. inherited: entries of its segments.
-- prompt_agent, prompt_seq: where its first prompt is. host: who holds it.
CREATE TABLE agent (
    realm BLOB NOT NULL, id BLOB NOT NULL, epoch INTEGER NOT NULL, own INTEGER NOT NULL,
    state INTEGER NOT NULL, used_ms INTEGER NOT NULL, mode TEXT NOT NULL,
    inherited INTEGER NOT NULL, prompt_agent BLOB, prompt_seq INTEGER, host BLOB,
    parent BLOB, path TEXT NOT NULL, model TEXT NOT NULL, dialect TEXT NOT NULL, cwd BLOB NOT NULL,
    preamble BLOB NOT NULL, created_ms INTEGER NOT NULL,
    PRIMARY KEY (realm, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX agent_id ON agent (id);
CREATE INDEX root_used ON agent (used_ms, id) WHERE parent IS NULL;
CREATE INDEX root_cwd ON agent (cwd, used_ms, id) WHERE parent IS NULL;

-- Entries of others that an agent's history begins with.
CREATE TABLE segment (
    realm BLOB NOT NULL, agent BLOB NOT NULL, ordinal INTEGER NOT NULL,
    source BLOB NOT NULL, first INTEGER NOT NULL, beyond INTEGER NOT NULL,
    PRIMARY KEY (realm, agent, ordinal)
) WITHOUT ROWID;

-- kind: 1 prompt, 2 reply, 3 results. reply: facts as JSON.
CREATE TABLE entry (
    realm BLOB NOT NULL, agent BLOB NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL,
    at_ms INTEGER NOT NULL, checksum INTEGER NOT NULL, mark_at INTEGER, reply TEXT, bytes BLOB NOT NULL,
    PRIMARY KEY (realm, agent, seq)
) WITHOUT ROWID;

-- Tool calls by the reply that asked for them. content: the outcome's blocks as JSON.
CREATE TABLE call (
    realm BLOB NOT NULL, agent BLOB NOT NULL, seq INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    id TEXT NOT NULL, tool TEXT NOT NULL, begun INTEGER NOT NULL, is_error INTEGER, content TEXT,
    PRIMARY KEY (realm, agent, seq, ordinal)
) WITHOUT ROWID;

-- Every model call that was paid for; nth: among the agent's with the same model.
CREATE TABLE charge (
    realm BLOB NOT NULL, agent BLOB NOT NULL, model TEXT NOT NULL, nth INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    input INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write_5m INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL, output INTEGER NOT NULL, thinking INTEGER NOT NULL, cost INTEGER,
    PRIMARY KEY (realm, agent, model, nth)
) WITHOUT ROWID;

-- The sum of an agent's charges, so that a list of sessions reads no history.
CREATE TABLE total (
    realm BLOB NOT NULL, agent BLOB NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL,
    input INTEGER NOT NULL, cache_read INTEGER NOT NULL, cache_write_5m INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL, output INTEGER NOT NULL, thinking INTEGER NOT NULL, cost INTEGER,
    PRIMARY KEY (realm, agent, model)
) WITHOUT ROWID;

-- Files whose content an agent knows.
CREATE TABLE seen (
    realm BLOB NOT NULL, agent BLOB NOT NULL, path BLOB NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (realm, agent, path)
) WITHOUT ROWID;
