-- Claims: of any number of claimers one gets a task, because a realm has one writer at a time.

-- Makes a task the claimer's, and shows it.
CREATE OR REPLACE FUNCTION grant_task(_realm uuid, _actor uuid, _at bigint, _team text, _id bigint, _me text) RETURNS json
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE task SET status = 1, owner = _me, owner_agent = _actor, lost_by = NULL, version = version + 1,
        updated_ms = _at
    WHERE realm = _realm AND team = _team AND id = _id;
    RETURN done('Claimed', task_json(_realm, _team, _id));
END $$;

-- Claims one task.
CREATE OR REPLACE FUNCTION act_claim(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    _team text := _op->>'team'; _id bigint := signed((_op->>'id')::numeric); _me text; _task task; _mine boolean;
    _doer uuid;
BEGIN
    IF _team <> '' AND NOT exists_team(_realm, _team) THEN RETURN no_team(_team); END IF;
    _me := me(_realm, _actor, _team);
    SELECT * INTO _task FROM task WHERE realm = _realm AND team = _team AND id = _id AND status <> 3;
    IF NOT FOUND THEN RETURN no_task((_op->>'id')::numeric); END IF;
    IF _task.status = 2 THEN RETURN refused('AlreadyCompleted', json_build_object('id', _id)); END IF;
    -- An agent by its id, a person by its name.
    _mine := _task.owner_agent IS NOT DISTINCT FROM _actor AND (_actor IS NOT NULL OR _task.owner = _me);
    IF _task.status = 1 AND NOT _mine THEN
        _doer := host_of(_realm, _task.owner_agent);
        IF _doer IS NOT NULL AND gone_for(_host, _doer) THEN
            PERFORM free_host(_realm, _doer);
            SELECT * INTO _task FROM task WHERE realm = _realm AND team = _team AND id = _id;
        END IF;
    END IF;
    IF _task.owner IS NOT NULL THEN
        IF NOT _mine THEN RETURN refused('AlreadyClaimed', json_build_object('id', _id, 'by', _task.owner)); END IF;
        IF _task.status = 1 THEN RETURN done('Claimed', task_json(_realm, _team, _id)); END IF;
    END IF;
    IF _task.waits > 0 THEN
        RETURN refused('Blocked', json_build_object('id', _id, 'by', waits_for(_realm, _team, _id)));
    END IF;
    RETURN grant_task(_realm, _actor, _at, _team, _id, _me);
END $$;

-- The lowest number that somebody could claim now: of its own, and of unowned ones that it takes; none if there is none.
-- Each look is a step down an index: what the indexes are of is spelt as they spell it, and the order begins with what
-- is null in them.
CREATE OR REPLACE FUNCTION ready(_realm uuid, _actor uuid, _team text, _takes jsonb) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE _least bigint; _id bigint; _role text;
BEGIN
    IF _actor IS NULL THEN
        SELECT id INTO _least FROM task WHERE realm = _realm AND team = _team AND owner_agent IS NULL AND owner = 'user'
            AND status = 0 AND owner IS NOT NULL AND waits = 0 ORDER BY owner_agent, id LIMIT 1;
    ELSE
        SELECT id INTO _least FROM task WHERE realm = _realm AND team = _team AND owner_agent = _actor
            AND status = 0 AND owner IS NOT NULL AND waits = 0 ORDER BY id LIMIT 1;
    END IF;
    IF jsonb_typeof(_takes) = 'null' THEN
        SELECT id INTO _id FROM task WHERE realm = _realm AND team = _team
            AND status = 0 AND owner IS NULL AND waits = 0 ORDER BY id LIMIT 1;
        RETURN least(_least, _id);
    END IF;
    IF (_takes->>'unmarked')::boolean THEN
        SELECT id INTO _id FROM task WHERE realm = _realm AND team = _team AND role IS NULL
            AND status = 0 AND owner IS NULL AND waits = 0 ORDER BY role, id LIMIT 1;
        _least := least(_least, _id);
    END IF;
    FOR _role IN SELECT * FROM jsonb_array_elements_text(_takes->'roles') LOOP
        SELECT id INTO _id FROM task WHERE realm = _realm AND team = _team AND role = _role
            AND status = 0 AND owner IS NULL AND waits = 0 ORDER BY id LIMIT 1;
        _least := least(_least, _id);
    END LOOP;
    RETURN _least;
END $$;

-- Sets free what hosts that are gone had of a list; says whether there was any. Hosts are few, and those that are gone
-- are rare.
CREATE OR REPLACE FUNCTION free_doers(_realm uuid, _host uuid, _team text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE _other uuid; _any boolean := false;
BEGIN
    FOR _other IN SELECT host FROM presence WHERE realm = _realm AND host IS DISTINCT FROM _host ORDER BY host LOOP
        IF gone(_other) AND EXISTS (SELECT 1 FROM pulse p JOIN task t ON t.realm = _realm AND t.owner_agent = p.agent
                WHERE p.host = _other AND p.realm = _realm AND t.status = 1 AND t.owner_agent IS NOT NULL
                AND t.team = _team) THEN
            PERFORM free_host(_realm, _other);
            _any := true;
        END IF;
    END LOOP;
    RETURN _any;
END $$;

-- Claims the next task that the claimer takes.
CREATE OR REPLACE FUNCTION act_claim_next(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE _team text := _op->>'team'; _id bigint;
BEGIN
    IF _team <> '' AND NOT exists_team(_realm, _team) THEN RETURN no_team(_team); END IF;
    _id := ready(_realm, _actor, _team, _op->'takes');
    IF _id IS NULL THEN
        IF free_doers(_realm, _host, _team) THEN _id := ready(_realm, _actor, _team, _op->'takes'); END IF;
        IF _id IS NULL THEN RETURN refused('NothingToClaim'); END IF;
    END IF;
    RETURN grant_task(_realm, _actor, _at, _team, _id, me(_realm, _actor, _team));
END $$;
