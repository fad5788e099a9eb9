-- Operations on mail, tasks and teams. One looks first, and writes when nothing can refuse it any more: what is refused
-- has changed nothing. `_actor` is the agent that acts, null for a person; `_host` is the one that writes for it.
--
-- Look-ups are in PL/pgSQL, whose plans last as long as the connection.

-- Does one thing, or says why not.
CREATE OR REPLACE FUNCTION act(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
    CASE _op->>'op'
        WHEN 'send' THEN RETURN act_send(_realm, _actor, _host, _at, _op);
        WHEN 'charge' THEN RETURN act_charge(_realm, _actor, _host, _at, _op);
        WHEN 'answer' THEN RETURN act_answer(_realm, _actor, _host, _at, _op);
        WHEN 'create_team' THEN RETURN act_create_team(_realm, _actor, _host, _at, _op);
        WHEN 'delete_team' THEN RETURN act_delete_team(_realm, _actor, _host, _at, _op);
        WHEN 'join' THEN RETURN act_join(_realm, _actor, _host, _at, _op);
        WHEN 'hand_over' THEN RETURN act_hand_over(_realm, _actor, _host, _at, _op);
        WHEN 'leave' THEN RETURN act_leave(_realm, _actor, _host, _at, _op);
        WHEN 'request' THEN RETURN act_request(_realm, _actor, _host, _at, _op);
        WHEN 'respond' THEN RETURN act_respond(_realm, _actor, _host, _at, _op);
        WHEN 'write_note' THEN RETURN act_write_note(_realm, _actor, _host, _at, _op);
        WHEN 'create_task' THEN RETURN act_create_task(_realm, _actor, _host, _at, _op);
        WHEN 'update_task' THEN RETURN act_update_task(_realm, _actor, _host, _at, _op);
        WHEN 'claim' THEN RETURN act_claim(_realm, _actor, _host, _at, _op);
        WHEN 'claim_next' THEN RETURN act_claim_next(_realm, _actor, _host, _at, _op);
    END CASE;
END $$;

-- What was done: `done('Left')`, `done('Noted', json_build_object('version', 1))`.
CREATE OR REPLACE FUNCTION done(_what text, _of_it json DEFAULT NULL) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF _of_it IS NULL THEN RETURN json_build_object('Ok', _what); END IF;
    RETURN json_build_object('Ok', json_build_object(_what, _of_it));
END $$;

-- Why not: `refused('NothingToClaim')`, `refused('NoSuchTask', json_build_object('id', 7))`.
CREATE OR REPLACE FUNCTION refused(_why text, _of_it json DEFAULT NULL) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF _of_it IS NULL THEN RETURN json_build_object('Err', _why); END IF;
    RETURN json_build_object('Err', json_build_object(_why, _of_it));
END $$;

CREATE OR REPLACE FUNCTION no_team(_team text) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN refused('NoSuchTeam', json_build_object('team', _team));
END $$;

-- The refusal of a text of so many bytes that is longer than what is kept of messages, tasks and notes; null if it
-- is not.
CREATE OR REPLACE FUNCTION too_long(_bytes bigint) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF _bytes <= 262144 THEN RETURN NULL; END IF;
    RETURN refused('TooLong', json_build_object('bytes', _bytes, 'most', 262144));
END $$;

CREATE OR REPLACE FUNCTION exists_team(_realm uuid, _team text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM team WHERE realm = _realm AND name = _team);
END $$;

-- The agent that leads a team, if that is there.
CREATE OR REPLACE FUNCTION lead_of(_realm uuid, _team text) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT lead FROM team WHERE realm = _realm AND name = _team);
END $$;

-- The agent that has a name in a team; `team-lead` is whoever leads it.
CREATE OR REPLACE FUNCTION member_of(_realm uuid, _team text, _name text) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF _name = 'team-lead' THEN RETURN lead_of(_realm, _team); END IF;
    RETURN (SELECT agent FROM member WHERE realm = _realm AND team = _team AND name = _name);
END $$;

-- What an agent is called in a team, if it belongs to it.
CREATE OR REPLACE FUNCTION name_in(_realm uuid, _team text, _agent uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT name FROM member WHERE realm = _realm AND agent = _agent AND team = _team ORDER BY nth LIMIT 1);
END $$;

-- What an agent is called in the first team that it belongs to, if there is one.
CREATE OR REPLACE FUNCTION name_in_any(_realm uuid, _agent uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT name FROM member WHERE realm = _realm AND agent = _agent ORDER BY team, nth LIMIT 1);
END $$;

-- The first team that an agent belongs to.
CREATE OR REPLACE FUNCTION first_team(_realm uuid, _agent uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT team FROM member WHERE realm = _realm AND agent = _agent ORDER BY team LIMIT 1);
END $$;

-- The member that has been there longest: the one who led first, if it still is there.
CREATE OR REPLACE FUNCTION first_member(_realm uuid, _team text, OUT _agent uuid, OUT _name text) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT agent, name INTO _agent, _name FROM member WHERE realm = _realm AND team = _team ORDER BY nth LIMIT 1;
END $$;

-- What an agent is called outside teams, if it is in the store: what it is registered under, else its path.
CREATE OR REPLACE FUNCTION registered(_realm uuid, _agent uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT coalesce(name, path) FROM agent WHERE realm = _realm AND id = _agent);
END $$;

-- What an agent is called outside any one team.
CREATE OR REPLACE FUNCTION known_as(_realm uuid, _agent uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(name_in_any(_realm, _agent), registered(_realm, _agent), _agent::text);
END $$;

-- An agent's path, if it is in the store.
CREATE OR REPLACE FUNCTION path_of(_realm uuid, _agent uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT path FROM agent WHERE realm = _realm AND id = _agent);
END $$;

-- The host that holds an agent.
CREATE OR REPLACE FUNCTION host_of(_realm uuid, _agent uuid) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT host FROM pulse WHERE realm = _realm AND agent = _agent);
END $$;

-- Whether one has made another.
CREATE OR REPLACE FUNCTION made(_realm uuid, _parent uuid, _agent uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM agent WHERE realm = _realm AND id = _agent AND parent = _parent);
END $$;

-- Whether a host is dead or stalled. `_mine`, the actor's own, goes on, whatever it has missed.
CREATE OR REPLACE FUNCTION gone_for(_mine uuid, _host uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN _mine IS DISTINCT FROM _host AND gone(_host);
END $$;

-- What the actor is called as one who does tasks of a list and writes notes.
CREATE OR REPLACE FUNCTION me(_realm uuid, _actor uuid, _team text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF _actor IS NULL THEN RETURN 'user'; END IF;
    RETURN coalesce(name_in(_realm, _team, _actor), path_of(_realm, _actor), _actor::text);
END $$;

-- Books what a call took that was made about an agent. It is no sign that somebody uses the agent.
CREATE OR REPLACE FUNCTION act_charge(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _agent uuid := (_op->>'agent')::uuid;
BEGIN
    IF path_of(_realm, _agent) IS NULL THEN
        RETURN refused('NoSuchAgent', json_build_object('agent', _agent));
    END IF;
    PERFORM book(_realm, _agent, _op->'charge', _at);
    RETURN done('Charged');
END $$;

-- Writes a note of a team, or of the session.
CREATE OR REPLACE FUNCTION act_write_note(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE _team text := _op->>'team'; _name text := _op->>'name'; _version bigint; _no json;
BEGIN
    IF _team <> '' AND NOT exists_team(_realm, _team) THEN RETURN no_team(_team); END IF;
    SELECT version INTO _version FROM note WHERE realm = _realm AND team = _team AND name = _name;
    _version := coalesce(_version, 0);
    IF (_op->>'expect')::bigint <> _version THEN
        RETURN refused('Changed', json_build_object('version', unsigned(_version)));
    END IF;
    _no := too_long((_op->>'bytes')::bigint);
    IF _no IS NOT NULL THEN RETURN _no; END IF;
    _version := plus(_version, 1);
    INSERT INTO note (realm, team, name, version, author, written_ms, text)
    VALUES (_realm, _team, _name, _version, me(_realm, _actor, _team), _at, _op->>'text')
    ON CONFLICT (realm, team, name) DO UPDATE SET version = excluded.version, author = excluded.author,
        written_ms = excluded.written_ms, text = excluded.text;
    RETURN done('Noted', json_build_object('version', unsigned(_version)));
END $$;
