-- Tasks: how one is shown, and how it is made. Its metadata are JSON as text, spelt without spaces, and hidden twice as
-- they came (nul.rs): once as themselves, and once as a text of the job.

-- A task as the protocol has it, also a deleted one; null if there is none.
CREATE OR REPLACE FUNCTION task_json(_realm uuid, _team text, _id bigint) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT json_build_object('id', t.id, 'subject', t.subject, 'description', t.description,
        'active_form', t.active_form,
        'status', CASE t.status WHEN 0 THEN 'pending' WHEN 1 THEN 'in_progress' WHEN 2 THEN 'completed' ELSE 'deleted' END,
        'owner', CASE WHEN t.owner IS NOT NULL THEN json_build_object('agent', t.owner_agent, 'name', t.owner) END,
        'lost_by', t.lost_by,
        'blocked_by', ARRAY(SELECT needs FROM dependency WHERE realm = _realm AND team = _team AND task = _id
            ORDER BY needs),
        'waits_for', CASE WHEN t.waits = 0 THEN '{}' ELSE waits_for(_realm, _team, _id) END,
        'blocks', ARRAY(SELECT task FROM dependency WHERE realm = _realm AND team = _team AND needs = _id ORDER BY task),
        'created_ms', t.created_ms, 'updated_ms', t.updated_ms, 'role', t.role, 'check', t.check_command,
        'metadata', replace(t.metadata, E'\uF8FF1', E'\uF8FF')::json, 'version', t.version)
    FROM task t WHERE t.realm = _realm AND t.team = _team AND t.id = _id);
END $$;

-- What a task waits for, in order.
CREATE OR REPLACE FUNCTION waits_for(_realm uuid, _team text, _id bigint) RETURNS bigint[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(SELECT d.needs FROM dependency d JOIN task n ON n.realm = _realm AND n.team = _team AND n.id = d.needs
        WHERE d.realm = _realm AND d.team = _team AND d.task = _id AND n.status < 2 ORDER BY d.needs);
END $$;

-- The refusal of a number that no task has; it may be higher than any that is counted.
CREATE OR REPLACE FUNCTION no_task(_id numeric) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN refused('NoSuchTask', json_build_object('id', _id));
END $$;

-- How many bytes a text has that was not hidden; or one of JSON, in which NUL has its escape.
CREATE OR REPLACE FUNCTION text_bytes(_text text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN octet_length(replace(replace(_text, E'\uF8FF1', '...'), E'\uF8FF0', '.'));
END $$;
CREATE OR REPLACE FUNCTION json_bytes(_json text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN octet_length(replace(replace(replace(_json, E'\uF8FF1', E'\uF8FF'), E'\uF8FF1', '...'), E'\uF8FF0', '\u0000'));
END $$;

-- The refusal of a task whose text is too long, or whose metadata nest too deep; null if there is none.
CREATE OR REPLACE FUNCTION unfit(_task task, _deep boolean) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE _no json := too_long(text_bytes(_task.subject) + text_bytes(_task.description)
    + coalesce(text_bytes(_task.active_form), 0) + coalesce(text_bytes(_task.role), 0)
    + coalesce(text_bytes(_task.check_command), 0)
    + CASE _task.metadata WHEN '{}' THEN 0 ELSE json_bytes(_task.metadata) END);
BEGIN
    IF _no IS NULL AND _deep THEN RETURN refused('TooDeep', json_build_object('most', 32)); END IF;
    RETURN _no;
END $$;

-- Makes a task.
CREATE OR REPLACE FUNCTION act_create_task(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    _team text := _op->>'team'; _new jsonb := _op->'task'; _task task; _needs bigint[] := '{}'; _id numeric;
    _status smallint; _no json;
BEGIN
    IF _team <> '' AND NOT exists_team(_realm, _team) THEN RETURN no_team(_team); END IF;
    _task.subject := _new->>'subject'; _task.description := _new->>'description';
    _task.active_form := _new->>'active_form'; _task.metadata := _new->>'metadata';
    _task.role := nullif(_new->>'role', ''); _task.check_command := nullif(_new->>'check', '');
    _no := unfit(_task, (_new->>'deep')::boolean);
    IF _no IS NOT NULL THEN RETURN _no; END IF;
    _task.waits := 0;
    IF jsonb_array_length(_new->'blocked_by') > 0 THEN
        FOR _id IN SELECT DISTINCT id::numeric FROM jsonb_array_elements_text(_new->'blocked_by') id ORDER BY 1 LOOP
            SELECT status INTO _status FROM task WHERE realm = _realm AND team = _team AND id = signed(_id);
            IF NOT FOUND THEN RETURN no_task(_id); END IF;
            IF _status < 2 THEN _task.waits := _task.waits + 1; END IF;
            _needs := _needs || _id::bigint;
        END LOOP;
    END IF;
    INSERT INTO list AS l (realm, team, last, changed) VALUES (_realm, _team, 1, 0)
        ON CONFLICT (realm, team) DO UPDATE SET last = l.last + 1 RETURNING last INTO _task.id;
    INSERT INTO task (realm, team, id, status, waits, version, created_ms, updated_ms, subject, active_form, metadata,
        description, role, check_command)
    VALUES (_realm, _team, _task.id, 0, _task.waits, 1, _at, _at, _task.subject, _task.active_form, _task.metadata,
        _task.description, _task.role, _task.check_command);
    IF cardinality(_needs) > 0 THEN
        INSERT INTO dependency (realm, team, task, needs) SELECT _realm, _team, _task.id, unnest(_needs);
    END IF;
    IF _task.waits = 0 THEN PERFORM claimable(_realm, _team); END IF;
    RETURN done('TaskCreated', to_json(_task.id));
END $$;
