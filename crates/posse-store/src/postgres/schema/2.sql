-- The feed: what was committed in each realm, in the order of commits. The realm's lock makes its numbers dense.

-- head: the last number given in the realm; numbers begin with 1. watched_until: until then somebody may wait for more.
ALTER TABLE realm ADD COLUMN head bigint NOT NULL DEFAULT 0, ADD COLUMN watched_until timestamptz;
ALTER TABLE realm SET (fillfactor = 60);

-- agent: null if it is about the realm. at_ms: by this server's clock. what: a set of topics as bits. seq, count: new
-- entries, or the message.
CREATE TABLE feed (
    realm uuid NOT NULL, number bigint NOT NULL, agent uuid, at_ms bigint NOT NULL, what int NOT NULL,
    seq bigint NOT NULL, count bigint NOT NULL, tenant text COLLATE "C" NOT NULL DEFAULT CURRENT_USER,
    PRIMARY KEY (realm, number)
);
-- One row of 64: they are removed in blocks.
CREATE INDEX feed_age ON feed (at_ms) WHERE number % 64 = 0;
ALTER TABLE feed ENABLE ROW LEVEL SECURITY;
ALTER TABLE feed FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON feed USING (tenant = CURRENT_USER) WITH CHECK (tenant = CURRENT_USER);
GRANT SELECT, INSERT, UPDATE, DELETE ON feed TO PUBLIC;

-- Sessions are found by the minute of their use: with each step the row changes, but none of its indexes.
ALTER TABLE root ADD COLUMN minute bigint NOT NULL GENERATED ALWAYS AS (used_ms / 60000) STORED;
DROP INDEX root_used, root_cwd;
CREATE INDEX root_used ON root (minute);
CREATE INDEX root_cwd ON root (cwd, minute);

-- It has got a parameter.
DROP FUNCTION IF EXISTS tidy_up();
