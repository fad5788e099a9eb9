-- Sends messages: one statement finds the inbox, its room and its host.

-- The one who gets a message, and what it is called; or why nobody does.
CREATE OR REPLACE FUNCTION recipient(_realm uuid, _to jsonb, OUT _agent uuid, OUT _name text, OUT _no json)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF _to ? 'agent' THEN
        _agent := (_to->>'agent')::uuid;
        _name := known_as(_realm, _agent);
    ELSIF _to ? 'others' THEN
        _no := refused('NotForAll');
    ELSE
        _name := _to->>'name';
        _agent := member_of(_realm, _to->>'team', _name);
        IF _agent IS NULL THEN
            _no := CASE WHEN exists_team(_realm, _to->>'team') THEN no_recipient(_name) ELSE no_team(_to->>'team') END;
        END IF;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION no_recipient(_name text) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN refused('NoSuchRecipient', json_build_object('to', _name));
END $$;

CREATE OR REPLACE FUNCTION not_yours(_name text) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN refused('NotYours', json_build_object('name', _name));
END $$;

-- Refuses one that has no inbox and could get none. Plain words need not ask: `deliver` finds out.
CREATE OR REPLACE FUNCTION not_there(_realm uuid, _agent uuid, _name text) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM inbox WHERE realm = _realm AND agent = _agent) OR path_of(_realm, _agent) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    RETURN no_recipient(_name);
END $$;

-- Refuses an agent that neither leads a team of another nor made it.
CREATE OR REPLACE FUNCTION not_above(_realm uuid, _actor uuid, _agent uuid, _name text) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF _actor IS NULL OR made(_realm, _actor, _agent) OR EXISTS (
            SELECT 1 FROM member m JOIN team t ON t.realm = m.realm AND t.name = m.team
            WHERE m.realm = _realm AND m.agent = _agent AND t.lead = _actor) THEN
        RETURN NULL;
    END IF;
    RETURN not_yours(_name);
END $$;

-- Refuses one who cannot get a message of so many bytes, after some others of the same length.
CREATE OR REPLACE FUNCTION no_room(_realm uuid, _agent uuid, _name text, _before bigint, _bytes bigint) RETURNS json
LANGUAGE plpgsql STABLE AS $$
DECLARE _waiting bigint; _used bigint;
BEGIN
    SELECT waiting, bytes INTO _waiting, _used FROM inbox WHERE realm = _realm AND agent = _agent;
    IF NOT FOUND THEN
        IF path_of(_realm, _agent) IS NULL THEN RETURN no_recipient(_name); END IF;
    ELSIF _waiting + _before >= 10000 OR _used + (_before + 1) * _bytes > 67108864 THEN
        RETURN refused('InboxFull', json_build_object('name', _name, 'waiting', _waiting));
    END IF;
    RETURN NULL;
END $$;

-- What the sender is called by those who read it. Who leads the team is called so.
CREATE OR REPLACE FUNCTION sender_name(_realm uuid, _actor uuid, _team text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE _within text := _team; _name text;
BEGIN
    IF _actor IS NULL THEN RETURN 'user'; END IF;
    _name := name_in(_realm, _team, _actor);
    IF _name IS NULL THEN
        _within := first_team(_realm, _actor);
        IF _within IS NULL THEN RETURN known_as(_realm, _actor); END IF;
        _name := name_in(_realm, _within, _actor);
    END IF;
    RETURN CASE WHEN lead_of(_realm, _within) = _actor THEN 'team-lead' ELSE _name END;
END $$;

-- Puts a message into one inbox, and has its host told. An agent's inbox is made with the first one. `_always`: it has
-- room in any inbox. Gives the receipt; null if it was not put there, for the reason that `no_room` gives.
CREATE OR REPLACE FUNCTION deliver(_realm uuid, _at bigint, _to uuid, _to_name text, _from uuid, _from_name text, _id uuid,
    _kind text, _summary text, _body text, _bytes int, _always boolean) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _number bigint; _holder uuid;
BEGIN
    UPDATE inbox SET last = last + 1, waiting = waiting + 1, bytes = bytes + _bytes
        WHERE realm = _realm AND agent = _to AND (_always OR waiting < 10000 AND bytes + _bytes <= 67108864)
        RETURNING last, host INTO _number, _holder;
    IF NOT FOUND THEN
        INSERT INTO inbox (realm, agent, last, waiting, bytes, host)
        SELECT realm, agent, 1, 1, _bytes, host FROM pulse WHERE realm = _realm AND agent = _to
        ON CONFLICT DO NOTHING RETURNING last, host INTO _number, _holder;
        IF NOT FOUND THEN RETURN NULL; END IF;
    END IF;
    INSERT INTO mail (realm, recipient, number, id, sender, sender_name, kind, sent_ms, summary, body, size)
    VALUES (_realm, _to, _number, _id, _from, _from_name, _kind, _at, _summary, _body, _bytes);
    PERFORM add_to_feed(_realm, _to, 32, _number, 1);
    IF _holder IS NOT NULL THEN PERFORM tell_mail(_holder, _to); END IF;
    RETURN json_build_object('to', _to, 'name', _to_name, 'kind', _kind, 'number', _number, 'held', _holder IS NOT NULL);
END $$;

-- To one: words, or a signal of one who is above it.
CREATE OR REPLACE FUNCTION send_one(_realm uuid, _actor uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    _kind text := _op->>'kind'; _bytes int := (_op->>'bytes')::int; _agent uuid; _name text; _no json; _receipt json;
BEGIN
    SELECT r._agent, r._name, r._no INTO _agent, _name, _no FROM recipient(_realm, _op->'to') r;
    IF _no IS NULL AND _kind NOT IN ('text', 'idle', 'notification') THEN
        _no := not_there(_realm, _agent, _name);
        IF _no IS NULL THEN
            _no := CASE WHEN _kind IN ('interruption', 'dismissal') THEN not_above(_realm, _actor, _agent, _name)
                -- Requests and answers are sent in other ways.
                ELSE not_yours(_name) END;
        END IF;
    END IF;
    IF _no IS NOT NULL THEN RETURN _no; END IF;
    -- There are no more notifications and idle reports than runs that were started, and who must stop or end cannot
    -- be saved from it by its peers' mail.
    _receipt := deliver(_realm, _at, _agent, _name, _actor, sender_name(_realm, _actor, _op->'to'->>'team'),
        (_op->>'id')::uuid, _kind, _op->>'summary', _op->>'body', _bytes, _kind <> 'text');
    IF _receipt IS NULL THEN RETURN no_room(_realm, _agent, _name, 0, _bytes); END IF;
    RETURN done('Sent', json_build_array(_receipt));
END $$;

-- To all members of a team but the sender: all of them get it, or none.
CREATE OR REPLACE FUNCTION send_others(_realm uuid, _actor uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    _team text := _op->'to'->>'others'; _bytes int := (_op->>'bytes')::int; _from_name text; _no json;
    _agent uuid; _name text; _before bigint; _receipt json; _receipts json[] := '{}';
BEGIN
    IF _op->>'kind' <> 'text' THEN RETURN refused('NotForAll'); END IF;
    IF NOT exists_team(_realm, _team) THEN RETURN no_team(_team); END IF;
    -- An agent may have several names in a team.
    FOR _agent, _name, _before IN
        SELECT agent, name, row_number() OVER (PARTITION BY agent ORDER BY name) - 1 FROM member
        WHERE realm = _realm AND team = _team AND agent IS DISTINCT FROM _actor ORDER BY name
    LOOP
        _no := no_room(_realm, _agent, _name, _before, _bytes);
        IF _no IS NOT NULL THEN RETURN _no; END IF;
    END LOOP;
    _from_name := sender_name(_realm, _actor, _team);
    FOR _agent, _name IN
        SELECT agent, name FROM member WHERE realm = _realm AND team = _team AND agent IS DISTINCT FROM _actor ORDER BY name
    LOOP
        _receipt := deliver(_realm, _at, _agent, _name, _actor, _from_name, (_op->>'id')::uuid, 'text',
            _op->>'summary', _op->>'body', _bytes, false);
        _receipts := _receipts || _receipt;
    END LOOP;
    RETURN done('Sent', array_to_json(_receipts));
END $$;

CREATE OR REPLACE FUNCTION act_send(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _no json := too_long((_op->>'bytes')::bigint);
BEGIN
    IF _no IS NOT NULL THEN RETURN _no; END IF;
    IF _op->'to' ? 'others' THEN RETURN send_others(_realm, _actor, _at, _op); END IF;
    RETURN send_one(_realm, _actor, _at, _op);
END $$;
