-- Teams at work: requests, roles and checks of tasks, names that are not given again. Words as in 1.sql.

-- Nobody ever asked a person through it.
DROP TABLE ask;

-- Requests for a yes or no that are open. kind: shutdown, plan. asker: null for the user. asked: who is to
-- answer. number: of its mail in the inbox of the one who is asked. text: why, or the plan.
CREATE TABLE request (
    realm BLOB NOT NULL, id BLOB NOT NULL, team TEXT NOT NULL, kind TEXT NOT NULL, asker BLOB,
    asker_name TEXT NOT NULL, asked BLOB NOT NULL, number INTEGER NOT NULL, asked_ms INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (realm, id)
) WITHOUT ROWID;
CREATE INDEX request_asked ON request (realm, asked);
CREATE INDEX request_asker ON request (realm, asker) WHERE asker IS NOT NULL;

-- role: what the member was declared as. takes: which tasks it takes by itself, as JSON; null for all.
ALTER TABLE member ADD COLUMN role TEXT;
ALTER TABLE member ADD COLUMN takes TEXT;

-- Names that members of a team have or had, but for those that are reserved: none is given again.
CREATE TABLE used_name (
    realm BLOB NOT NULL, team TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (realm, team, name)
) WITHOUT ROWID;
INSERT INTO used_name SELECT realm, team, name FROM member WHERE name <> 'team-lead';
-- By what stands before their numbers, the highest number last.
CREATE INDEX used_name_number ON used_name (realm, team, rtrim(name, '0123456789'), length(name), name);
CREATE INDEX used_name_anywhere ON used_name (realm, name);

-- role: who takes the task by themselves; null for anybody. check_command: what must pass before an agent
-- can complete it.
ALTER TABLE task ADD COLUMN role TEXT;
ALTER TABLE task ADD COLUMN check_command TEXT;
-- Ready ones by who may have them. Those that somebody is to do: owner_agent is null for a person's.
CREATE INDEX task_role ON task (realm, team, role, id) WHERE status = 0 AND owner IS NULL AND waits = 0;
CREATE INDEX task_own ON task (realm, team, owner_agent, id)
    WHERE status = 0 AND owner IS NOT NULL AND waits = 0;
-- Those that some agent is to do; those of one agent, also if they wait; those that somebody has lost.
CREATE INDEX task_assigned ON task (realm, team, id)
    WHERE status = 0 AND owner_agent IS NOT NULL AND waits = 0;
CREATE INDEX task_ahead ON task (realm, owner_agent) WHERE status = 0 AND owner_agent IS NOT NULL;
CREATE INDEX task_lost ON task (realm, team, lost_by, id) WHERE status = 0 AND lost_by IS NOT NULL;
