-- What siblings have in common, compactions, and what calls were made for. Words as in 1.sql.

-- head: how the entry begins, if others begin the same way: a row of preamble. kind: 4 compaction.
ALTER TABLE entry ADD COLUMN head BLOB;

-- since: its last own compaction; nothing older is read to go on from.
ALTER TABLE agent ADD COLUMN since INTEGER;

-- purpose: 0 work, 1 compaction, 2 question, 3 progress, 4 memory.
-- missed: tokens of its prompt that had been in the provider's cache and were not found there.
ALTER TABLE charge ADD COLUMN purpose INTEGER NOT NULL DEFAULT 0;
ALTER TABLE charge ADD COLUMN missed INTEGER NOT NULL DEFAULT 0;

CREATE TABLE total_by_purpose (
    realm BLOB NOT NULL, agent BLOB NOT NULL, model TEXT NOT NULL, purpose INTEGER NOT NULL,
    calls INTEGER NOT NULL, input INTEGER NOT NULL, cache_read INTEGER NOT NULL,
    cache_write_5m INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL, output INTEGER NOT NULL,
    thinking INTEGER NOT NULL, cost INTEGER, missed INTEGER NOT NULL,
    PRIMARY KEY (realm, agent, model, purpose)
) WITHOUT ROWID;
INSERT INTO total_by_purpose SELECT realm, agent, model, 0, calls, input, cache_read, cache_write_5m,
    cache_write_1h, output, thinking, cost, 0 FROM total;
DROP TABLE total;
ALTER TABLE total_by_purpose RENAME TO total;
