-- Sub-agents: who made them, what for, and what their runs came to. Words as in 1.sql.

-- agent_type, description; call_seq, call_ordinal, call_id (the call of its parent that made it): of a
-- sub-agent only, and null where an older posse made it. name: what it is registered under. starter: who is
-- told when its run ends. ended: what its last run came to, as JSON; null while one is open.
-- state: 0 idle, 1 running, 2 paused, 3 created, 4 waiting, 5 completed, 6 partial, 7 failed, 8 killed.
ALTER TABLE agent ADD COLUMN agent_type TEXT;
ALTER TABLE agent ADD COLUMN name TEXT;
ALTER TABLE agent ADD COLUMN description TEXT;
ALTER TABLE agent ADD COLUMN call_seq INTEGER;
ALTER TABLE agent ADD COLUMN call_ordinal INTEGER;
ALTER TABLE agent ADD COLUMN call_id TEXT;
ALTER TABLE agent ADD COLUMN starter BLOB;
ALTER TABLE agent ADD COLUMN ended TEXT;
CREATE UNIQUE INDEX agent_name ON agent (realm, name) WHERE name IS NOT NULL;
CREATE INDEX agent_parent ON agent (realm, parent, id) WHERE parent IS NOT NULL;
CREATE INDEX agent_open ON agent (realm, id) WHERE parent IS NOT NULL AND state IN (1, 3, 4);

CREATE INDEX inbox_waiting ON inbox (realm, agent) WHERE waiting > 0;

-- Background commands. That one has ended is told by mail; whether the model knows is said by that alone.
-- call_seq, call_ordinal: the call that began it; null where an older posse did. kind: agent, shell.
-- state: 5 paused, the others as in 2.sql.
DROP INDEX run_open;
ALTER TABLE run DROP COLUMN told;
ALTER TABLE run ADD COLUMN call_seq INTEGER;
ALTER TABLE run ADD COLUMN call_ordinal INTEGER;
UPDATE run SET kind = 'shell' WHERE kind <> 'agent';
CREATE INDEX run_open ON run (realm, agent) WHERE state = 0;
