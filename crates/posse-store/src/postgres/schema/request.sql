-- Requests for a yes or no: asked by mail, open until they are answered by mail.

-- The team that a request is about: a member of it is asked to end, or its lead for approval; or why it is about none.
CREATE OR REPLACE FUNCTION about(_realm uuid, _to jsonb, _agent uuid, _name text, _kind text, OUT _team text, OUT _no json)
LANGUAGE plpgsql STABLE AS $$
DECLARE _leads boolean;
BEGIN
    IF _to ? 'team' THEN
        _team := _to->>'team';
        _leads := lead_of(_realm, _team) IS NOT DISTINCT FROM _agent;
        IF _leads AND _kind = 'shutdown' THEN
            _no := refused('IsLead', json_build_object('name', _name));
        ELSIF NOT _leads AND _kind = 'plan' THEN
            _no := refused('NotLead', json_build_object('team', _team));
        END IF;
        RETURN;
    END IF;
    SELECT team INTO _team FROM member WHERE realm = _realm AND agent = _agent
        AND (lead_of(_realm, team) IS NOT DISTINCT FROM _agent) = (_kind = 'plan') ORDER BY team LIMIT 1;
    IF NOT FOUND THEN _no := not_yours(_name); END IF;
END $$;

CREATE OR REPLACE FUNCTION act_request(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    _id uuid := (_op->>'id')::uuid; _kind text := _op->>'kind'; _bytes int := (_op->>'bytes')::int;
    _agent uuid; _name text; _team text; _no json := too_long(_bytes); _first record; _asked uuid; _number bigint;
    _from_name text; _receipt json;
BEGIN
    IF _no IS NOT NULL THEN RETURN _no; END IF;
    SELECT r._agent, r._name, r._no INTO _agent, _name, _no FROM recipient(_realm, _op->'to') r;
    IF _no IS NULL THEN _no := not_there(_realm, _agent, _name); END IF;
    IF _no IS NOT NULL THEN RETURN _no; END IF;
    SELECT a._team, a._no INTO _team, _no FROM about(_realm, _op->'to', _agent, _name, _kind) a;
    IF _no IS NOT NULL THEN RETURN _no; END IF;
    IF _kind = 'plan' AND _actor = _agent THEN
        -- Who leads is asked by nobody what it would do but by who led first.
        SELECT * INTO _first FROM first_member(_realm, _team);
        IF _first._agent IS NOT NULL THEN _agent := _first._agent; _name := _first._name; END IF;
    END IF;
    -- A person has no plans to be approved.
    IF _actor = _agent OR _actor IS NULL AND _kind = 'plan' THEN RETURN not_yours(_name); END IF;
    IF _kind = 'shutdown' THEN
        _no := not_above(_realm, _actor, _agent, _name);
        IF _no IS NOT NULL THEN RETURN _no; END IF;
        SELECT id, number INTO _asked, _number FROM request
            WHERE realm = _realm AND asked = _agent AND kind = 'shutdown' LIMIT 1;
        IF FOUND THEN
            -- It is asked to end already.
            RETURN done('Requested', json_build_object('request', _asked, 'receipt', json_build_object('to', _agent,
                'name', _name, 'kind', _op->>'mail', 'number', _number, 'held', host_of(_realm, _agent) IS NOT NULL)));
        END IF;
    END IF;
    _from_name := sender_name(_realm, _actor, _team);
    _receipt := deliver(_realm, _at, _agent, _name, _actor, _from_name, _id, _op->>'mail', _op->>'summary',
        _op->>'body', _bytes, false);
    IF _receipt IS NULL THEN RETURN no_room(_realm, _agent, _name, 0, _bytes); END IF;
    INSERT INTO request (realm, id, team, kind, asker, asker_name, asked, number, asked_ms, text)
    VALUES (_realm, _id, _team, _kind, _actor, _from_name, _agent, (_receipt->>'number')::bigint, _at, _op->>'text')
    ON CONFLICT (realm, id) DO UPDATE SET team = excluded.team, kind = excluded.kind, asker = excluded.asker,
        asker_name = excluded.asker_name, asked = excluded.asked, number = excluded.number,
        asked_ms = excluded.asked_ms, text = excluded.text;
    RETURN done('Requested', json_build_object('request', _id, 'receipt', _receipt));
END $$;

CREATE OR REPLACE FUNCTION act_respond(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    _kind text := _op->>'kind'; _bytes int := (_op->>'bytes')::int; _no json := too_long(_bytes); _open request;
    _agent uuid; _name text; _receipt json; _left json;
BEGIN
    IF _no IS NOT NULL THEN RETURN _no; END IF;
    SELECT * INTO _open FROM request WHERE realm = _realm AND id = (_op->>'request')::uuid AND kind = _kind;
    -- A person may answer in place of a lead, but whether a teammate is ready to end only that one knows.
    IF FOUND AND (_actor IS NULL AND _kind = 'plan' OR _actor = _open.asked AND _actor IS DISTINCT FROM _open.asker) THEN
        -- A person has no inbox; who leads must know as well.
        _agent := coalesce(_open.asker, lead_of(_realm, _open.team));
    END IF;
    IF _agent IS NULL THEN RETURN refused('NotOpen', json_build_object('request', _op->>'request')); END IF;
    _name := coalesce(name_in(_realm, _open.team, _agent), known_as(_realm, _agent));
    _receipt := deliver(_realm, _at, _agent, _name, _actor, sender_name(_realm, _actor, _open.team),
        (_op->>'id')::uuid, _op->>'mail', _op->>'summary', _op->>'body', _bytes, false);
    IF _receipt IS NULL THEN RETURN no_room(_realm, _agent, _name, 0, _bytes); END IF;
    DELETE FROM request WHERE realm = _realm AND id = _open.id;
    _name := name_in(_realm, _open.team, _open.asked);
    IF _kind = 'shutdown' AND (_op->>'approve')::boolean AND _name IS NOT NULL THEN
        -- One that agreed to end belongs to the team no more.
        _left := act_leave(_realm, _actor, _host, _at, jsonb_build_object('team', _open.team, 'name', _name));
        IF _left->'Err' IS NOT NULL THEN RETURN _left; END IF;
    END IF;
    RETURN done('Responded', _receipt);
END $$;

-- Has plans that wait for the approval of one wait for that of another, but for the other's own. The other is a member:
-- it has an inbox, and such mail always fits.
CREATE OR REPLACE FUNCTION pass_on(_realm uuid, _at bigint, _team text, _from uuid, _to uuid, _to_name text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE _plan request; _body text; _receipt json;
BEGIN
    FOR _plan IN SELECT * FROM request WHERE realm = _realm AND asked = _from AND team = _team AND kind = 'plan'
        AND asker IS DISTINCT FROM _to ORDER BY asked_ms, id
    LOOP
        -- As encode.rs spells it: what hides a NUL in text is an escape inside of JSON (nul.rs).
        _body := format('{"request_id":"%s","text":%s}', _plan.id,
            replace(to_json(_plan.text)::text, U&'\F8FF0', '\u0000'));
        _receipt := deliver(_realm, _at, _to, _to_name, _plan.asker, _plan.asker_name, _plan.id, 'plan_approval_request',
            'a plan to be approved', _body, octet_length('a plan to be approved' || _body), true);
        UPDATE request SET asked = _to, number = (_receipt->>'number')::bigint WHERE realm = _realm AND id = _plan.id;
    END LOOP;
END $$;
