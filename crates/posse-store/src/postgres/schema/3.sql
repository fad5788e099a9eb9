-- Questions to people. Words as in SQLite's schema.
CREATE TABLE question (
    realm uuid NOT NULL, id uuid NOT NULL, agent uuid NOT NULL, call_seq bigint NOT NULL, call_ordinal int NOT NULL,
    state smallint NOT NULL, asked_ms bigint NOT NULL, answered_ms bigint, question text NOT NULL, answer text,
    tenant text COLLATE "C" NOT NULL DEFAULT CURRENT_USER,
    PRIMARY KEY (realm, id)
);
CREATE INDEX question_id ON question (id);
CREATE INDEX question_asked ON question (realm, asked_ms, id);
CREATE INDEX question_open ON question (asked_ms, id) WHERE state = 0;
CREATE INDEX question_open_in ON question (realm, asked_ms, id) WHERE state = 0;
CREATE INDEX question_agent ON question (realm, agent, asked_ms, id) WHERE state < 2;
CREATE INDEX question_answered ON question (realm, agent) WHERE state = 1;
ALTER TABLE question ENABLE ROW LEVEL SECURITY;
ALTER TABLE question FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON question USING (tenant = CURRENT_USER) WITH CHECK (tenant = CURRENT_USER);
GRANT SELECT, INSERT, UPDATE, DELETE ON question TO PUBLIC;
