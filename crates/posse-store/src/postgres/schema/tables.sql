-- Tables. Ids are UUIDs, paths the bytes of the system, times milliseconds of Unix time where they are the caller's.
-- Checksums, versions, tokens and pico-dollars are 64 bits without a sign, kept as the same bits with one. Words are
-- those of SQLite's schema. Every key begins with the realm.
--
-- A tenant is a role of the server: `tenant` is the one who wrote the row, and nobody else sees it (policies.sql).
-- Texts are compared byte by byte.

-- Which version the tables have, and which one a posse must know at least to use them.
CREATE TABLE version (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), number int NOT NULL, oldest int NOT NULL);

-- One row for each realm: whoever writes in it holds this row's lock.
CREATE TABLE realm (id uuid PRIMARY KEY);

-- Hosts that may hold agents. lease_until: by this server's clock. lost_at: when it was taken for dead; it never
-- comes back. holder, node: a process for people, and its machine.
CREATE TABLE host (
    id uuid PRIMARY KEY, lease_until timestamptz NOT NULL, lost_at timestamptz,
    pid int NOT NULL, node text COLLATE "C" NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX host_lease ON host (lease_until);

-- Which hosts hold agents of which realms.
CREATE TABLE presence (realm uuid NOT NULL, host uuid NOT NULL, PRIMARY KEY (realm, host));
CREATE INDEX presence_host ON presence (host);

-- What stays the same for an agent's life, or begins its entries, by content. packed: with zstd.
CREATE TABLE preamble (
    realm uuid NOT NULL, hash uuid NOT NULL, mark_at bigint, packed boolean NOT NULL, bytes bytea NOT NULL,
    PRIMARY KEY (realm, hash)
);
ALTER TABLE preamble ALTER bytes SET STORAGE EXTERNAL;

-- Agents as they were born.
CREATE TABLE agent (
    realm uuid NOT NULL, id uuid NOT NULL, parent uuid, path text COLLATE "C" NOT NULL, model text NOT NULL,
    dialect text NOT NULL, cwd bytea NOT NULL, preamble uuid NOT NULL, created_ms bigint NOT NULL,
    inherited bigint NOT NULL, name text COLLATE "C", agent_type text, description text,
    call_seq bigint, call_ordinal int, call_id text, terms text,
    PRIMARY KEY (realm, id)
);
CREATE UNIQUE INDEX agent_id ON agent (id);
CREATE INDEX agent_path ON agent (realm, path, id);
CREATE UNIQUE INDEX agent_name ON agent (realm, name) WHERE name IS NOT NULL;
CREATE INDEX agent_parent ON agent (realm, parent, id) WHERE parent IS NOT NULL;

-- Agents as they are now: what each step changes, in a row that is small and that no index moves with. own: its
-- own entries so far. step, result: the last step, and what came of it as JSON. taking: the take that made its
-- holder hold it. is_open: a sub-agent whose run is open.
CREATE TABLE pulse (
    realm uuid NOT NULL, agent uuid NOT NULL, epoch bigint NOT NULL, own bigint NOT NULL, state smallint NOT NULL,
    used_ms bigint NOT NULL, mode text NOT NULL, prompt_agent uuid, prompt_seq bigint, host uuid, taking uuid,
    step uuid, result text, starter uuid, ended text, types bigint, since bigint, is_open boolean NOT NULL,
    PRIMARY KEY (realm, agent)
) WITH (fillfactor = 60);
CREATE INDEX pulse_host ON pulse (host, realm) WHERE host IS NOT NULL;
CREATE INDEX pulse_open ON pulse (realm, agent) WHERE is_open;

-- Sessions in the order of their use.
CREATE TABLE root (
    realm uuid NOT NULL, agent uuid NOT NULL, cwd bytea NOT NULL, used_ms bigint NOT NULL,
    PRIMARY KEY (realm, agent)
) WITH (fillfactor = 60);
CREATE INDEX root_used ON root (used_ms, agent);
CREATE INDEX root_cwd ON root (cwd, used_ms, agent);

CREATE TABLE segment (
    realm uuid NOT NULL, agent uuid NOT NULL, ordinal int NOT NULL, source uuid NOT NULL,
    first bigint NOT NULL, beyond bigint NOT NULL,
    PRIMARY KEY (realm, agent, ordinal)
);

CREATE TABLE entry (
    realm uuid NOT NULL, agent uuid NOT NULL, seq bigint NOT NULL, kind smallint NOT NULL, at_ms bigint NOT NULL,
    checksum bigint NOT NULL, mark_at bigint, reply text, head uuid, packed boolean NOT NULL, bytes bytea NOT NULL,
    PRIMARY KEY (realm, agent, seq)
);
ALTER TABLE entry ALTER bytes SET STORAGE EXTERNAL;

-- content: the outcome's blocks as JSON, packed or not.
CREATE TABLE call (
    realm uuid NOT NULL, agent uuid NOT NULL, seq bigint NOT NULL, ordinal int NOT NULL, id text NOT NULL,
    tool text NOT NULL, begun boolean NOT NULL, is_error boolean, packed boolean, content bytea, operated text,
    PRIMARY KEY (realm, agent, seq, ordinal)
) WITH (fillfactor = 70);
ALTER TABLE call ALTER content SET STORAGE EXTERNAL;

CREATE TABLE charge (
    realm uuid NOT NULL, agent uuid NOT NULL, model text COLLATE "C" NOT NULL, nth bigint NOT NULL,
    at_ms bigint NOT NULL, purpose smallint NOT NULL, input bigint NOT NULL, cache_read bigint NOT NULL,
    cache_write_5m bigint NOT NULL, cache_write_1h bigint NOT NULL, output bigint NOT NULL,
    thinking bigint NOT NULL, cost bigint, missed bigint NOT NULL,
    PRIMARY KEY (realm, agent, model, nth)
);

CREATE TABLE total (
    realm uuid NOT NULL, agent uuid NOT NULL, model text COLLATE "C" NOT NULL, purpose smallint NOT NULL,
    calls bigint NOT NULL, input bigint NOT NULL, cache_read bigint NOT NULL, cache_write_5m bigint NOT NULL,
    cache_write_1h bigint NOT NULL, output bigint NOT NULL, thinking bigint NOT NULL, cost bigint,
    missed bigint NOT NULL,
    PRIMARY KEY (realm, agent, model, purpose)
) WITH (fillfactor = 60);

CREATE TABLE seen (
    realm uuid NOT NULL, agent uuid NOT NULL, path bytea NOT NULL, version bigint NOT NULL,
    PRIMARY KEY (realm, agent, path)
);

-- has_mail: for indexes, with which the row moves only when that changes, and not with every message.
CREATE TABLE inbox (
    realm uuid NOT NULL, agent uuid NOT NULL, last bigint NOT NULL, waiting bigint NOT NULL,
    bytes bigint NOT NULL, host uuid, has_mail boolean NOT NULL GENERATED ALWAYS AS (waiting > 0) STORED,
    PRIMARY KEY (realm, agent)
) WITH (fillfactor = 60);
CREATE INDEX inbox_news ON inbox (host) WHERE has_mail AND host IS NOT NULL;
CREATE INDEX inbox_waiting ON inbox (realm, agent) WHERE has_mail;

CREATE TABLE mail (
    realm uuid NOT NULL, recipient uuid NOT NULL, number bigint NOT NULL, id uuid NOT NULL, sender uuid,
    sender_name text NOT NULL, kind text NOT NULL, sent_ms bigint NOT NULL, entry bigint,
    summary text NOT NULL, body text NOT NULL, size int NOT NULL,
    PRIMARY KEY (realm, recipient, number)
);
CREATE INDEX mail_waiting ON mail (realm, recipient, number) WHERE entry IS NULL;

CREATE TABLE team (
    realm uuid NOT NULL, name text COLLATE "C" NOT NULL, lead uuid NOT NULL, created_ms bigint NOT NULL,
    here_ms bigint NOT NULL, description text NOT NULL, settings text NOT NULL,
    PRIMARY KEY (realm, name)
);
CREATE INDEX team_created ON team (created_ms);

CREATE TABLE member (
    realm uuid NOT NULL, team text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, nth bigint NOT NULL,
    agent uuid NOT NULL, agent_type text NOT NULL, model text NOT NULL, prompt text NOT NULL, color text NOT NULL,
    backend text NOT NULL, cwd bytea NOT NULL, joined_ms bigint NOT NULL, role text, takes text,
    PRIMARY KEY (realm, team, name)
);
CREATE INDEX member_agent ON member (realm, agent, team, nth);
CREATE INDEX member_nth ON member (realm, team, nth);

CREATE TABLE used_name (
    realm uuid NOT NULL, team text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL,
    PRIMARY KEY (realm, team, name)
);
CREATE INDEX used_name_number ON used_name (realm, team, rtrim(name, '0123456789'), length(name), name);
CREATE INDEX used_name_anywhere ON used_name (realm, name);

CREATE TABLE request (
    realm uuid NOT NULL, id uuid NOT NULL, team text COLLATE "C" NOT NULL, kind text NOT NULL, asker uuid,
    asker_name text NOT NULL, asked uuid NOT NULL, number bigint NOT NULL, asked_ms bigint NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (realm, id)
);
CREATE INDEX request_asked ON request (realm, asked);
CREATE INDEX request_asker ON request (realm, asker) WHERE asker IS NOT NULL;

CREATE TABLE note (
    realm uuid NOT NULL, team text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, version bigint NOT NULL,
    author text NOT NULL, written_ms bigint NOT NULL, text text NOT NULL,
    PRIMARY KEY (realm, team, name)
);

-- changed: the transaction by which a task of it became claimable last.
CREATE TABLE list (
    realm uuid NOT NULL, team text COLLATE "C" NOT NULL, last bigint NOT NULL, changed bigint NOT NULL,
    PRIMARY KEY (realm, team)
) WITH (fillfactor = 60);
CREATE INDEX list_changed ON list (changed);

CREATE TABLE task (
    realm uuid NOT NULL, team text COLLATE "C" NOT NULL, id bigint NOT NULL, status smallint NOT NULL,
    waits bigint NOT NULL, owner text, owner_agent uuid, lost_by text COLLATE "C", version bigint NOT NULL,
    created_ms bigint NOT NULL, updated_ms bigint NOT NULL, subject text NOT NULL, active_form text,
    metadata text NOT NULL, description text NOT NULL, role text COLLATE "C", check_command text,
    PRIMARY KEY (realm, team, id)
) WITH (fillfactor = 60);
CREATE INDEX task_ready ON task (realm, team, id) WHERE status = 0 AND owner IS NULL AND waits = 0;
CREATE INDEX task_role ON task (realm, team, role, id) WHERE status = 0 AND owner IS NULL AND waits = 0;
CREATE INDEX task_owner ON task (realm, owner_agent) WHERE status = 1 AND owner_agent IS NOT NULL;
CREATE INDEX task_own ON task (realm, team, owner_agent, id) WHERE status = 0 AND owner IS NOT NULL AND waits = 0;
-- `id > 0` is true: only a query that says so is about this index, and one about an owner keeps to task_own.
CREATE INDEX task_assigned ON task (realm, team, id)
    WHERE status = 0 AND owner_agent IS NOT NULL AND waits = 0 AND id > 0;
CREATE INDEX task_ahead ON task (realm, owner_agent) WHERE status = 0 AND owner_agent IS NOT NULL;
CREATE INDEX task_lost ON task (realm, team, lost_by, id) WHERE status = 0 AND lost_by IS NOT NULL;

CREATE TABLE dependency (
    realm uuid NOT NULL, team text COLLATE "C" NOT NULL, task bigint NOT NULL, needs bigint NOT NULL,
    PRIMARY KEY (realm, team, task, needs)
);
-- The team comes late: of a table that it has not looked at yet, the planner takes one index for as good as another
-- when both begin with realm and team.
CREATE INDEX dependency_needs ON dependency (realm, needs, team, task);

CREATE TABLE run (
    realm uuid NOT NULL, agent uuid NOT NULL, id uuid NOT NULL, kind text NOT NULL, state smallint NOT NULL,
    began_ms bigint NOT NULL, description text NOT NULL, output bytea NOT NULL, call_seq bigint NOT NULL,
    call_ordinal int NOT NULL,
    PRIMARY KEY (realm, agent, id)
);
CREATE INDEX run_open ON run (realm, agent) WHERE state = 0;

-- What came of orders and imports, for a while: whoever has lost the answer asks again by the same id.
CREATE TABLE receipt (
    realm uuid NOT NULL, id uuid NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(), result text NOT NULL,
    PRIMARY KEY (realm, id)
);
CREATE INDEX receipt_at ON receipt (at);
