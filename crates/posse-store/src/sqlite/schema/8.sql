-- Questions to people. Words as in 1.sql.

-- call_seq, call_ordinal: the call that it is about. question, answer: as JSON. state: 0 open, 1 answered, 2 its answer
-- was carried out, 3 withdrawn.
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

-- A posse that does not know questions would lose them: one that began before this version cannot hold agents.
DROP TRIGGER host_version;
CREATE TRIGGER host_version BEFORE INSERT ON host WHEN coalesce(NEW.version, 0) < 8 BEGIN
    SELECT RAISE(ABORT, 'a newer posse has changed this store: start this one again');
END;
