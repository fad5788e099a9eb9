-- The feed: what was committed in each realm, in the order of commits. Words as in 1.sql.

-- head: the last number given in a realm whose rows were all removed. Otherwise the last row of the feed has it.
CREATE TABLE feed_head (realm BLOB NOT NULL PRIMARY KEY, head INTEGER NOT NULL) WITHOUT ROWID;

-- agent: null if it is about the realm. at_ms: by the clock of the host that wrote it. what: a set of topics as bits.
-- seq, count: new entries, or the message.
CREATE TABLE feed (
    realm BLOB NOT NULL, number INTEGER NOT NULL, agent BLOB, at_ms INTEGER NOT NULL, what INTEGER NOT NULL,
    seq INTEGER NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (realm, number)
) WITHOUT ROWID;
-- One row of 64: they are removed in blocks.
CREATE INDEX feed_age ON feed (at_ms) WHERE number % 64 = 0;

-- A posse that does not know the feed would write without it: one that began before this version cannot hold agents.
ALTER TABLE host ADD COLUMN version INTEGER;
CREATE TRIGGER host_version BEFORE INSERT ON host WHEN NEW.version IS NULL BEGIN
    SELECT RAISE(ABORT, 'a newer posse has changed this store: start this one again');
END;
