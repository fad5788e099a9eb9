-- Teams: who belongs to them, what they are called and who leads.

CREATE OR REPLACE FUNCTION is_reserved(_name text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN _name IN ('team-lead', 'user', 'task-list');
END $$;

-- A name with a number behind it, shortened if that is too long.
CREATE OR REPLACE FUNCTION numbered(_name text, _number int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN left(_name, 63 - length(_number::text)) || '-' || _number;
END $$;

-- Whether nobody of the team has or had a name, nor an agent of the realm is registered under it.
CREATE OR REPLACE FUNCTION is_free(_realm uuid, _team text, _name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT is_reserved(_name)
        AND NOT EXISTS (SELECT 1 FROM used_name WHERE realm = _realm AND team = _team AND name = _name)
        AND NOT EXISTS (SELECT 1 FROM agent WHERE realm = _realm AND name = _name);
END $$;

-- The highest number that a name has in the team; 1 if it has none.
CREATE OR REPLACE FUNCTION highest(_realm uuid, _team text, _wished text) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE _highest int := 1; _stem text; _before text; _found text; _number int;
BEGIN
    -- A long name is shortened for its number, by as much as that has digits: at most nine.
    FOR _digits IN 1..9 LOOP
        _before := _stem;
        _stem := left(_wished, 63 - _digits) || '-';
        CONTINUE WHEN _stem = _before;
        SELECT name INTO _found FROM used_name
        WHERE realm = _realm AND team = _team AND rtrim(name, '0123456789') = _stem
            AND length(name) > length(_stem) AND length(name) <= length(_stem) + 9
            AND substr(name, length(_stem) + 1, 1) <> '0'
        ORDER BY length(name) DESC, name DESC LIMIT 1;
        CONTINUE WHEN NOT FOUND;
        _number := substr(_found, length(_stem) + 1)::int;
        IF numbered(_wished, _number) = _found THEN _highest := greatest(_highest, _number); END IF;
    END LOOP;
    RETURN _highest;
END $$;

-- A name as it was wished, or with the number after the highest that it has in the team, or the first after that
-- which makes it free.
CREATE OR REPLACE FUNCTION free_name(_realm uuid, _team text, _wished text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE _name text := _wished; _number int;
BEGIN
    WHILE NOT is_free(_realm, _team, _name) LOOP
        _number := coalesce(_number, highest(_realm, _team, _wished)) + 1;
        _name := numbered(_wished, _number);
    END LOOP;
    RETURN _name;
END $$;

-- Notes that a name is not to be given again.
CREATE OR REPLACE FUNCTION use_up(_realm uuid, _team text, _name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT is_reserved(_name) THEN
        INSERT INTO used_name (realm, team, name) VALUES (_realm, _team, _name) ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- The colour of the `_nth` member: what `posse_protocol::team::color` gives, to the last bit.
CREATE OR REPLACE FUNCTION color(_nth int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE _turns float8; _hue float8; _along float8; _at float8; _color text := '#';
BEGIN
    IF _nth < 8 THEN
        RETURN ('{blue,green,yellow,purple,orange,pink,cyan,red}'::text[])[_nth + 1];
    END IF;
    -- There is no remainder of floats; what is taken away here is exact.
    _turns := _nth::float8 * 137.507764::float8;
    _hue := _turns - 360::float8 * floor(_turns / 360::float8);
    IF _hue < 0 THEN _hue := _hue + 360; END IF;
    FOREACH _at IN ARRAY '{0,8,4}'::float8[] LOOP
        _along := _at + _hue / 30::float8;
        IF _along >= 12 THEN _along := _along - 12; END IF;
        _color := _color || lpad(to_hex(trunc((0.6::float8 - 0.35::float8
            * greatest(-1::float8, least(1::float8, _along - 3::float8, 9::float8 - _along))) * 255::float8)::int), 2, '0');
    END LOOP;
    RETURN _color;
END $$;

-- The colour that was wished, or the first that no member has.
CREATE OR REPLACE FUNCTION free_color(_realm uuid, _team text, _wished text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE _taken jsonb; _most int; _color text;
BEGIN
    SELECT coalesce(jsonb_object_agg(m.color, 0), '{}'), 8 * count(DISTINCT m.color COLLATE "C") + 64
        INTO _taken, _most FROM member m WHERE realm = _realm AND team = _team;
    IF _wished <> '' AND NOT _taken ? _wished THEN RETURN _wished; END IF;
    -- In a crowd that has all of them, the last one looked at.
    FOR _nth IN 0.._most LOOP
        _color := color(_nth);
        EXIT WHEN NOT _taken ? _color;
    END LOOP;
    RETURN _color;
END $$;

-- Adds a member as the last, and makes its inbox if it has none; gives its colour.
CREATE OR REPLACE FUNCTION add_member(_realm uuid, _team text, _name text, _at bigint, _member jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE _agent uuid := (_member->>'agent')::uuid; _color text := free_color(_realm, _team, _member->>'color');
BEGIN
    PERFORM use_up(_realm, _team, _name);
    INSERT INTO member (realm, team, name, nth, agent, agent_type, model, prompt, color, backend, cwd, joined_ms, role,
        takes)
    VALUES (_realm, _team, _name,
        (SELECT coalesce(max(nth) + 1, 0) FROM member WHERE realm = _realm AND team = _team), _agent,
        _member->>'agent_type', _member->>'model', _member->>'prompt', _color, _member->>'backend',
        decode(_member->>'cwd', 'hex'), _at, _member->>'role', _member->>'takes');
    PERFORM make_inbox(_realm, _agent);
    RETURN _color;
END $$;

-- An inbox for one who has none.
CREATE OR REPLACE FUNCTION make_inbox(_realm uuid, _agent uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO inbox (realm, agent, last, waiting, bytes, host)
    VALUES (_realm, _agent, 0, 0, 0, host_of(_realm, _agent)) ON CONFLICT DO NOTHING;
END $$;

CREATE OR REPLACE FUNCTION act_create_team(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE _team text := _op->>'team';
BEGIN
    IF exists_team(_realm, _team) THEN RETURN refused('TeamExists', json_build_object('team', _team)); END IF;
    INSERT INTO team (realm, name, lead, created_ms, here_ms, description, settings)
    VALUES (_realm, _team, (_op->'lead'->>'agent')::uuid, _at, _at, _op->>'description', _op->>'settings');
    PERFORM add_member(_realm, _team, 'team-lead', _at, _op->'lead');
    RETURN done('TeamCreated');
END $$;

CREATE OR REPLACE FUNCTION act_join(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    _team text := _op->>'team'; _agent uuid := (_op->'member'->>'agent')::uuid; _name text; _color text; _no json;
    _greeting jsonb := nullif(_op->'greeting', 'null'); _bytes int := (_op->'greeting'->>'bytes')::int;
BEGIN
    IF NOT exists_team(_realm, _team) THEN RETURN no_team(_team); END IF;
    _name := free_name(_realm, _team, _op->>'name');
    IF _greeting IS NOT NULL THEN
        _no := too_long(_bytes);
        -- Who has no inbox yet gets one.
        IF _no IS NULL AND EXISTS (SELECT 1 FROM inbox WHERE realm = _realm AND agent = _agent) THEN
            _no := no_room(_realm, _agent, _name, 0, _bytes);
        END IF;
        IF _no IS NOT NULL THEN RETURN _no; END IF;
    END IF;
    _color := add_member(_realm, _team, _name, _at, _op->'member');
    IF _greeting IS NOT NULL THEN
        PERFORM deliver(_realm, _at, _agent, _name, lead_of(_realm, _team), 'team-lead', (_greeting->>'id')::uuid, 'text',
            _greeting->>'summary', _op->'member'->>'prompt', _bytes, false);
    END IF;
    RETURN done('Joined', json_build_object('name', _name, 'color', _color));
END $$;

-- Whether one that is in the store has ended.
CREATE OR REPLACE FUNCTION has_ended(_realm uuid, _agent uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM pulse WHERE realm = _realm AND agent = _agent AND state BETWEEN 5 AND 8);
END $$;

CREATE OR REPLACE FUNCTION act_hand_over(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE _team text := _op->>'team'; _to text := _op->>'to'; _lead uuid; _next uuid;
BEGIN
    _lead := lead_of(_realm, _team);
    IF _lead IS NULL THEN RETURN no_team(_team); END IF;
    IF _actor <> _lead THEN RETURN refused('NotLead', json_build_object('team', _team)); END IF;
    _next := member_of(_realm, _team, _to);
    IF _next IS NULL THEN RETURN no_recipient(_to); END IF;
    IF _next = _lead THEN RETURN refused('IsLead', json_build_object('name', _to)); END IF;
    IF has_ended(_realm, _next) THEN RETURN refused('NotRunning', json_build_object('name', _to)); END IF;
    PERFORM make_lead(_realm, _at, _team, _lead, _next, _to);
    RETURN done('HandedOver');
END $$;

-- Makes another, of this name, the lead of a team that one has led.
CREATE OR REPLACE FUNCTION make_lead(_realm uuid, _at bigint, _team text, _from uuid, _to uuid, _name text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE team SET lead = _to WHERE realm = _realm AND name = _team;
    PERFORM rename_lead(_realm, _team);
    -- Who leads cannot be asked to end.
    DELETE FROM request WHERE realm = _realm AND asked = _to AND team = _team AND kind = 'shutdown';
    PERFORM pass_on(_realm, _at, _team, _from, _to, _name);
END $$;

-- Has the first member lead a team that one has led; says whether that is another.
CREATE OR REPLACE FUNCTION fall_back(_realm uuid, _at bigint, _team text, _from uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE _first record;
BEGIN
    SELECT * INTO _first FROM first_member(_realm, _team);
    IF _first._agent IS NULL OR _first._agent = _from THEN RETURN false; END IF;
    PERFORM make_lead(_realm, _at, _team, _from, _first._agent, _first._name);
    RETURN true;
END $$;

-- Has the first members lead the teams that one led who has ended.
CREATE OR REPLACE FUNCTION stop_leading(_realm uuid, _agent uuid, _at bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _team text;
BEGIN
    FOR _team IN SELECT name FROM team WHERE realm = _realm AND lead = _agent ORDER BY name LOOP
        PERFORM fall_back(_realm, _at, _team, _agent);
    END LOOP;
END $$;

-- Gives the member that is called after what it was a name of its own, in the tasks that it has as well.
CREATE OR REPLACE FUNCTION rename_lead(_realm uuid, _team text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _name text := free_name(_realm, _team, 'main'); _agent uuid;
BEGIN
    UPDATE member SET name = _name WHERE realm = _realm AND team = _team AND name = 'team-lead' RETURNING agent INTO _agent;
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM use_up(_realm, _team, _name);
    UPDATE task SET owner = _name WHERE realm = _realm AND team = _team AND owner_agent = _agent AND owner = 'team-lead';
END $$;

CREATE OR REPLACE FUNCTION act_leave(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE _team text := _op->>'team'; _name text := _op->>'name'; _lead uuid; _agent uuid;
BEGIN
    _lead := lead_of(_realm, _team);
    IF _lead IS NULL THEN RETURN no_team(_team); END IF;
    _agent := member_of(_realm, _team, _name);
    -- Whoever leads need not be among the members of an archive.
    IF _agent IS NULL OR name_in(_realm, _team, _agent) IS NULL THEN
        RETURN no_recipient(_name);
    END IF;
    IF _actor <> _agent AND _actor <> _lead AND NOT made(_realm, _actor, _agent) THEN
        RETURN not_yours(_name);
    END IF;
    IF _lead = _agent AND NOT fall_back(_realm, _at, _team, _agent) THEN
        RETURN refused('IsLead', json_build_object('name', _name));
    END IF;
    -- Who led is called so no more.
    IF _name = 'team-lead' THEN _name := name_in(_realm, _team, _agent); END IF;
    DELETE FROM member WHERE realm = _realm AND team = _team AND name = _name;
    PERFORM free_tasks(_realm, _agent, _team);
    PERFORM free_ahead(_realm, _agent, _team);
    DELETE FROM request WHERE realm = _realm AND (asked = _agent OR asker = _agent) AND team = _team;
    RETURN done('Left');
END $$;

-- Members other than the lead, with the hosts that hold them.
CREATE OR REPLACE FUNCTION followers(_realm uuid, _team text)
RETURNS TABLE (_nth bigint, _name text, _agent uuid, _holder uuid, _ended boolean) LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY SELECT m.nth, m.name, m.agent, p.host, coalesce(p.state BETWEEN 5 AND 8, false)
        FROM member m LEFT JOIN pulse p ON p.realm = m.realm AND p.agent = m.agent
        WHERE m.realm = _realm AND m.team = _team AND m.agent <> (SELECT lead FROM team WHERE realm = _realm AND name = _team);
END $$;

CREATE OR REPLACE FUNCTION act_delete_team(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE _team text := _op->>'team'; _names text[]; _alone uuid[]; _held uuid;
BEGIN
    IF NOT exists_team(_realm, _team) THEN RETURN no_team(_team); END IF;
    SELECT array_agg(_name ORDER BY _nth) INTO _names FROM followers(_realm, _team)
        WHERE NOT _ended AND _holder IS NOT NULL AND NOT gone_for(_host, _holder);
    IF _names IS NOT NULL THEN RETURN refused('MembersLive', json_build_object('names', _names)); END IF;
    -- Who has ended may be held by one that lives.
    FOR _held IN SELECT DISTINCT _holder FROM followers(_realm, _team)
        WHERE _holder IS NOT NULL AND gone_for(_host, _holder) ORDER BY 1
    LOOP
        PERFORM free_host(_realm, _held);
    END LOOP;
    _alone := ARRAY(SELECT _agent FROM followers(_realm, _team) WHERE NOT EXISTS (
        SELECT 1 FROM member WHERE realm = _realm AND agent = _agent AND team <> _team));
    DELETE FROM mail WHERE realm = _realm AND recipient = ANY (_alone);
    DELETE FROM inbox WHERE realm = _realm AND agent = ANY (_alone);
    -- The list stays: a team of the same name goes on with its numbers.
    DELETE FROM team WHERE realm = _realm AND name = _team;
    DELETE FROM member WHERE realm = _realm AND team = _team;
    DELETE FROM used_name WHERE realm = _realm AND team = _team;
    DELETE FROM request WHERE realm = _realm AND team = _team;
    DELETE FROM note WHERE realm = _realm AND team = _team;
    DELETE FROM task WHERE realm = _realm AND team = _team;
    DELETE FROM dependency WHERE realm = _realm AND team = _team;
    RETURN done('TeamDeleted');
END $$;
