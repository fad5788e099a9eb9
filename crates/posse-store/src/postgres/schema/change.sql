-- Changes a task: what it becomes is decided first, then written with all that follows from it.

-- Who is called so in a list: the person, a member of the team, or an agent by its path (of several the youngest). No
-- name if there is nobody.
CREATE OR REPLACE FUNCTION owner_called(_realm uuid, _team text, _called text, OUT _name text, OUT _agent uuid)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF _called = 'user' THEN _name := _called; RETURN; END IF;
    IF _team = '' THEN
        SELECT id INTO _agent FROM agent WHERE realm = _realm AND path = _called ORDER BY id DESC LIMIT 1;
    ELSE
        _agent := member_of(_realm, _team, _called);
    END IF;
    IF _agent IS NULL THEN RETURN; END IF;
    _name := _called;
    -- Whoever leads has a name of its own as well.
    IF _called = 'team-lead' THEN _name := coalesce(name_in(_realm, _team, _agent), _called); END IF;
END $$;

-- Whether an agent may change a task's check: who leads the team, or is the session's first, or adds one to a task that
-- nobody has begun.
CREATE OR REPLACE FUNCTION may_check(_realm uuid, _actor uuid, _task task) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF _task.check_command IS NULL AND _task.status = 0 THEN RETURN true; END IF;
    IF _task.team = '' THEN
        RETURN EXISTS (SELECT 1 FROM agent WHERE realm = _realm AND id = _actor AND parent IS NULL);
    END IF;
    RETURN lead_of(_realm, _task.team) IS NOT DISTINCT FROM _actor;
END $$;

-- Metadata after a change: what is null is removed, what was there keeps its place, what is new comes last. Values stay
-- as they are spelt.
CREATE OR REPLACE FUNCTION merged(_old text, _new text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (SELECT format('{%s}', string_agg(to_json(coalesce(o.key, n.key))::text || ':' || coalesce(n.value, o.value)::text,
            ',' ORDER BY o.nth, n.nth))
        FROM json_each(_old::json) WITH ORDINALITY o(key, value, nth)
        FULL JOIN json_each(_new::json) WITH ORDINALITY n(key, value, nth) ON n.key = o.key
        WHERE n.key IS NULL OR json_typeof(n.value) <> 'null');
END $$;

-- JSON with the keys of its objects in order, so that equal values have equal texts.
CREATE OR REPLACE FUNCTION in_order(_json json) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    CASE json_typeof(_json)
        WHEN 'object' THEN RETURN (SELECT format('{%s}', string_agg(to_json(key)::text || ':' || in_order(value), ','
            ORDER BY key COLLATE "C")) FROM json_each(_json));
        WHEN 'array' THEN RETURN (SELECT format('[%s]', string_agg(in_order(value), ',' ORDER BY n))
            FROM json_array_elements(_json) WITH ORDINALITY x(value, n));
        ELSE RETURN _json::text;
    END CASE;
END $$;

-- The circle that a task would close by waiting for `_on`, beginning with the task; none if there is none. From what
-- leads back to the task the way is by the lowest number that also does.
CREATE OR REPLACE FUNCTION circle(_realm uuid, _team text, _id bigint, _on bigint[]) RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
DECLARE _at bigint; _next jsonb; _through bigint[] := ARRAY[_id];
BEGIN
    WITH RECURSIVE back AS (SELECT _id AS id UNION
        SELECT d.task FROM back JOIN dependency d ON d.realm = _realm AND d.team = _team AND d.needs = back.id)
    SELECT o.id INTO _at FROM unnest(_on) WITH ORDINALITY o(id, n) JOIN back ON back.id = o.id ORDER BY o.n LIMIT 1;
    IF NOT FOUND THEN RETURN NULL; END IF;
    WITH RECURSIVE back AS (SELECT _id AS id UNION
        SELECT d.task FROM back JOIN dependency d ON d.realm = _realm AND d.team = _team AND d.needs = back.id)
    SELECT jsonb_object_agg(task, needs) INTO _next FROM (SELECT d.task, min(d.needs) AS needs FROM dependency d
        JOIN back a ON a.id = d.task JOIN back b ON b.id = d.needs WHERE d.realm = _realm AND d.team = _team
        GROUP BY d.task) nearest;
    WHILE _at <> _id LOOP
        _through := array_append(_through, _at);
        _at := (_next->>_at::text)::bigint;
    END LOOP;
    RETURN _through;
END $$;

-- What a task is to wait for after a change, all of it and what is open. What is named on both sides is not waited for.
CREATE OR REPLACE FUNCTION depend(_realm uuid, _team text, _id bigint, _change jsonb, OUT _needs bigint[], OUT _open bigint[], OUT _no json)
LANGUAGE plpgsql STABLE AS $$
DECLARE _one numeric; _status smallint; _on bigint[] := '{}'; _off bigint[]; _through bigint[];
BEGIN
    _needs := ARRAY(SELECT needs FROM dependency WHERE realm = _realm AND team = _team AND task = _id);
    _open := waits_for(_realm, _team, _id);
    FOR _one IN SELECT id::numeric FROM jsonb_array_elements_text(_change->'block_on') id LOOP
        SELECT status INTO _status FROM task WHERE realm = _realm AND team = _team AND id = signed(_one);
        IF NOT FOUND THEN _no := no_task(_one); RETURN; END IF;
        _on := _on || _one::bigint;
        IF NOT _one = ANY (_needs) THEN
            _needs := _needs || _one::bigint;
            IF _status < 2 THEN _open := _open || _one::bigint; END IF;
        END IF;
    END LOOP;
    _through := circle(_realm, _team, _id, _on);
    IF _through IS NOT NULL THEN _no := refused('Cycle', json_build_object('through', _through)); RETURN; END IF;
    _off := ARRAY(SELECT signed(id::numeric) FROM jsonb_array_elements_text(_change->'unblock_from') id);
    _needs := ARRAY(SELECT id FROM unnest(_needs) id WHERE id <> ALL (_off) ORDER BY id);
    _open := ARRAY(SELECT id FROM unnest(_open) id WHERE id <> ALL (_off) ORDER BY id);
END $$;

-- The task as it is to be, but for its version and time, with what it waits for if that is looked at; or why not.
CREATE OR REPLACE FUNCTION changed(_realm uuid, _actor uuid, _host uuid, _before task, _change jsonb, OUT _after task,
    OUT _needs bigint[], OUT _no json)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    _team text := _before.team; _id bigint := _before.id; _status smallint := (_change->>'status')::smallint;
    _open bigint[]; _check text := _change->>'check'; _doer uuid;
BEGIN
    IF _before.status = 1 AND (_change ? 'owner' OR _status <> 1) AND _actor IS NOT NULL AND _before.owner IS NOT NULL
            AND _before.owner_agent IS DISTINCT FROM _actor AND lead_of(_realm, _team) IS DISTINCT FROM _actor THEN
        _no := refused('AlreadyClaimed', json_build_object('id', _id, 'by', _before.owner));
        RETURN;
    END IF;
    IF _actor IS NOT NULL AND _check <> coalesce(_before.check_command, '') AND NOT may_check(_realm, _actor, _before) THEN
        _no := refused('CheckStands', json_build_object('id', _id));
        RETURN;
    END IF;
    _after := _before;
    IF _change ? 'owner' THEN
        _after.owner := NULL; _after.owner_agent := NULL;
        IF _change->>'owner' IS NOT NULL THEN
            SELECT _name, _agent INTO _after.owner, _after.owner_agent FROM owner_called(_realm, _team, _change->>'owner');
            IF _after.owner IS NULL THEN
                _no := refused('NoSuchRecipient', json_build_object('to', _change->>'owner'));
                RETURN;
            END IF;
        END IF;
    END IF;
    IF _after.owner IS NOT NULL
            AND (_after.owner, _after.owner_agent) IS DISTINCT FROM (_before.owner, _before.owner_agent) THEN
        _after.lost_by := NULL;
    END IF;
    IF _status IS NOT NULL THEN _after.status := _status;
    ELSIF _after.owner IS NULL AND _before.status = 1 THEN _after.status := 0;
    END IF;
    IF _after.status = 1 AND _after.owner IS NULL THEN
        _after.owner := me(_realm, _actor, _team); _after.owner_agent := _actor;
    END IF;
    IF _after.status <> 0 AND _before.status = 0 THEN _after.lost_by := NULL; END IF;
    IF jsonb_array_length(_change->'block_on') > 0 OR jsonb_array_length(_change->'unblock_from') > 0 THEN
        SELECT d._needs, d._open, d._no INTO _needs, _open, _no FROM depend(_realm, _team, _id, _change) d;
        IF _no IS NOT NULL THEN RETURN; END IF;
        _after.waits := cardinality(_open);
    END IF;
    IF _after.status = 1 AND (_before.status <> 1
            OR (_after.owner, _after.owner_agent) IS DISTINCT FROM (_before.owner, _before.owner_agent)) THEN
        -- Nobody begins what waits, or does anything without being at work.
        IF _after.waits > 0 THEN
            _no := refused('Blocked', json_build_object('id', _id, 'by', coalesce(_open, waits_for(_realm, _team, _id))));
            RETURN;
        END IF;
        _doer := host_of(_realm, _after.owner_agent);
        IF _after.owner_agent IS NOT NULL AND (_doer IS NULL OR gone_for(_host, _doer)) THEN
            _no := refused('NotRunning', json_build_object('name', _after.owner));
            RETURN;
        END IF;
    END IF;
    _after.subject := coalesce(_change->>'subject', _after.subject);
    _after.description := coalesce(_change->>'description', _after.description);
    IF _change->>'active_form' IS NOT NULL THEN _after.active_form := nullif(_change->>'active_form', ''); END IF;
    IF _change->>'role' IS NOT NULL THEN _after.role := nullif(_change->>'role', ''); END IF;
    IF _check IS NOT NULL THEN _after.check_command := nullif(_check, ''); END IF;
    IF _change->>'metadata' <> '{}' THEN _after.metadata := merged(_before.metadata, _change->>'metadata'); END IF;
    IF _actor IS NOT NULL AND _after.status = 2 AND _before.status <> 2 THEN
        -- Its check must have passed, and the one that is put in its place.
        SELECT refused('Unchecked', json_build_object('id', _id, 'check', c)) INTO _no
            FROM (VALUES (1, _before.check_command), (2, _after.check_command)) x(n, c)
            WHERE c IS NOT NULL AND c IS DISTINCT FROM _change->>'passed' ORDER BY n LIMIT 1;
        IF FOUND THEN RETURN; END IF;
    END IF;
    _no := unfit(_after, (_change->>'deep')::boolean);
END $$;

-- Counts for those that wait for a task whether they still do; gives those that have become claimable, and whether
-- somebody can begin one now.
CREATE OR REPLACE FUNCTION dependants(_realm uuid, _team text, _id bigint, _more int, OUT _freed bigint[], OUT _ready boolean)
LANGUAGE plpgsql AS $$
BEGIN
    WITH waiting AS (UPDATE task t SET waits = t.waits + _more FROM dependency d
        WHERE d.realm = _realm AND d.team = _team AND d.needs = _id AND t.realm = _realm AND t.team = _team AND t.id = d.task
        RETURNING t.id, t.owner, t.status = 0 AND t.waits = 0 AND _more < 0 AS ready)
    SELECT coalesce(array_agg(id) FILTER (WHERE owner IS NULL), '{}'), count(*) > 0 INTO _freed, _ready
        FROM waiting WHERE ready;
END $$;

-- Changes a task.
CREATE OR REPLACE FUNCTION act_update_task(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    _team text := _op->>'team'; _id bigint := signed((_op->>'id')::numeric); _before task; _after task; _same task;
    _needs bigint[]; _old bigint[]; _decided record; _freed bigint[] := '{}'; _told boolean := false; _ready boolean;
BEGIN
    IF _team <> '' AND NOT exists_team(_realm, _team) THEN RETURN no_team(_team); END IF;
    SELECT * INTO _before FROM task WHERE realm = _realm AND team = _team AND id = _id AND status <> 3;
    IF NOT FOUND THEN RETURN no_task((_op->>'id')::numeric); END IF;
    IF (_op->>'expect')::bigint <> _before.version THEN
        RETURN refused('Changed', json_build_object('version', _before.version));
    END IF;
    _decided := changed(_realm, _actor, _host, _before, _op->'change');
    IF _decided._no IS NOT NULL THEN RETURN _decided._no; END IF;
    _after := _decided._after; _needs := _decided._needs;
    _old := ARRAY(SELECT needs FROM dependency WHERE realm = _realm AND team = _team AND task = _id ORDER BY needs);
    _same := _after;
    IF _same.metadata <> _before.metadata AND in_order(_same.metadata::json) = in_order(_before.metadata::json) THEN
        _same.metadata := _before.metadata;
    END IF;
    IF _same IS NOT DISTINCT FROM _before AND (_needs IS NULL OR _needs = _old) THEN
        RETURN done('TaskUpdated', json_build_object('version', _before.version, 'freed', '{}'::bigint[]));
    END IF;
    UPDATE task SET status = _after.status, waits = _after.waits, owner = _after.owner, owner_agent = _after.owner_agent,
        lost_by = _after.lost_by, version = version + 1, updated_ms = _at, subject = _after.subject,
        active_form = _after.active_form, metadata = _after.metadata, description = _after.description,
        role = _after.role, check_command = _after.check_command
    WHERE realm = _realm AND team = _team AND id = _id;
    IF _needs IS NOT NULL THEN
        DELETE FROM dependency WHERE realm = _realm AND team = _team AND task = _id AND needs <> ALL (_needs);
        INSERT INTO dependency (realm, team, task, needs)
            SELECT _realm, _team, _id, it FROM unnest(_needs) it WHERE it <> ALL (_old);
    END IF;
    IF (_before.status < 2) <> (_after.status < 2) THEN
        SELECT d._freed, d._ready INTO _freed, _told
            FROM dependants(_realm, _team, _id, CASE WHEN _after.status < 2 THEN 1 ELSE -1 END) d;
    END IF;
    _ready := _after.status = 0 AND _after.waits = 0;
    IF _ready AND _after.owner IS NULL AND NOT (_before.status = 0 AND _before.waits = 0 AND _before.owner IS NULL) THEN
        _freed := _freed || _id;
    END IF;
    -- For others: it has another owner, or another role.
    IF _told OR (_ready AND (NOT (_before.status = 0 AND _before.waits = 0)
            OR (_before.owner, _before.owner_agent, _before.role) IS DISTINCT FROM
                (_after.owner, _after.owner_agent, _after.role))) THEN
        PERFORM claimable(_realm, _team);
    END IF;
    RETURN done('TaskUpdated', json_build_object('version', _before.version + 1,
        'freed', ARRAY(SELECT DISTINCT it FROM unnest(_freed) it ORDER BY it)));
END $$;
