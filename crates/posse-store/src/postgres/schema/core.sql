-- Writing: one call of `write` is one transaction and one round trip. It locks the realms that it writes in, in their
-- order, so that all in a realm happens one after another, whichever hosts it comes from: what SQLite has from its one
-- writer. Parameters and variables begin with an underscore. `_jobs` is what postgres/encode.rs makes.

-- Refuses a job. All of the transaction is undone; the caller does its other jobs again without this one.
CREATE OR REPLACE FUNCTION refuse(_error jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'posse refuses a job' USING ERRCODE = 'PO001', DETAIL = _error::text;
END $$;

CREATE OR REPLACE FUNCTION bad_step(_why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM refuse(jsonb_build_object('bad_step', _why));
END $$;

-- What hosts should know when this is durable: kept with the transaction, given by `write` at its end. Once is enough.
CREATE OR REPLACE FUNCTION tell(_news text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF strpos(current_setting('posse.news'), _news) = 0 THEN
        PERFORM set_config('posse.news', current_setting('posse.news') || _news || ',', true);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION tell_mail(_host uuid, _agent uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell(format('{"mail":["%s","%s"]}', _host, _agent));
END $$;

-- Notes that a task of a list has become claimable, and tells the hosts of the realm.
CREATE OR REPLACE FUNCTION claimable(_realm uuid, _team text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE list SET changed = pg_current_xact_id()::text::bigint WHERE realm = _realm AND team = _team;
    PERFORM tell(jsonb_build_object('list', jsonb_build_array(_realm, _team,
        (SELECT coalesce(jsonb_agg(host), '[]') FROM presence WHERE realm = _realm)))::text);
END $$;

-- Whether a host was taken for dead, or its lease has run out. While the server was away nobody could renew: the
-- leases begin anew when it is back.
CREATE OR REPLACE FUNCTION gone(_host uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT 1 FROM host WHERE id = _host AND lost_at IS NULL AND
        greatest(lease_until, pg_postmaster_start_time() + current_setting('posse.lease')::interval) >= clock_timestamp());
END $$;

-- An agent's tasks that it was doing, pending again with a note of who had them: of one list, or of all.
CREATE OR REPLACE FUNCTION free_tasks(_realm uuid, _agent uuid, _team text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _list text;
BEGIN
    FOR _list IN
        WITH freed AS (UPDATE task SET status = 0, lost_by = owner, owner = NULL, owner_agent = NULL, version = version + 1
            WHERE realm = _realm AND owner_agent = _agent AND status = 1 AND (_team IS NULL OR team = _team) RETURNING team)
        SELECT DISTINCT team FROM freed
    LOOP
        PERFORM claimable(_realm, _list);
    END LOOP;
END $$;

-- Those that it was to do, anybody's again.
CREATE OR REPLACE FUNCTION free_ahead(_realm uuid, _agent uuid, _team text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _list text;
BEGIN
    FOR _list IN
        WITH freed AS (UPDATE task SET owner = NULL, owner_agent = NULL, version = version + 1
            WHERE realm = _realm AND owner_agent = _agent AND status = 0 AND (_team IS NULL OR team = _team)
            RETURNING team, waits)
        SELECT DISTINCT team FROM freed WHERE waits = 0
    LOOP
        PERFORM claimable(_realm, _list);
    END LOOP;
END $$;

-- Sets free what a host held in a realm whose lock is held, and takes the host for dead: it can write nothing any
-- more. What it held in other realms is free for whoever wants it there.
CREATE OR REPLACE FUNCTION free_host(_realm uuid, _host uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _agent uuid;
BEGIN
    UPDATE host SET lost_at = clock_timestamp() WHERE id = _host AND lost_at IS NULL;
    FOR _agent IN UPDATE pulse SET epoch = epoch + 1, host = NULL WHERE realm = _realm AND host = _host RETURNING agent LOOP
        PERFORM feed_holder(_realm, _agent);
        UPDATE inbox SET host = NULL WHERE realm = _realm AND agent = _agent;
        PERFORM free_tasks(_realm, _agent, NULL);
    END LOOP;
    DELETE FROM presence WHERE realm = _realm AND host = _host;
    PERFORM tell(format('{"freed":"%s"}', _host));
END $$;

-- This host holds something in a realm from now on; or perhaps nothing any more.
CREATE OR REPLACE FUNCTION hold(_realm uuid, _host uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO presence (realm, host) VALUES (_realm, _host) ON CONFLICT DO NOTHING;
END $$;
CREATE OR REPLACE FUNCTION let_go(_realm uuid, _host uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM presence WHERE realm = _realm AND host = _host
        AND NOT EXISTS (SELECT 1 FROM pulse WHERE realm = _realm AND host = _host);
END $$;

-- Makes `_me` the agent's holder, unless another host is that is not gone. A second try of the same take finds the
-- first.
CREATE OR REPLACE FUNCTION take(_me uuid, _realm uuid, _agent uuid, _token uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _held pulse; _epoch bigint; _waiting bigint;
BEGIN
    SELECT * INTO _held FROM pulse WHERE realm = _realm AND agent = _agent;
    IF NOT FOUND THEN PERFORM refuse(jsonb_build_object('not_found', _agent)); END IF;
    IF _held.taking = _token THEN
        -- What was given up since is not taken by a try that comes late.
        IF _held.host IS DISTINCT FROM _me THEN PERFORM refuse(jsonb_build_object('fenced', _agent)); END IF;
        RETURN json_build_object('epoch', _held.epoch, 'step', _held.step);
    END IF;
    IF _held.host <> _me THEN
        IF NOT gone(_held.host) THEN
            PERFORM refuse(jsonb_build_object('held', _agent, 'pid', pid, 'node', node)) FROM host WHERE id = _held.host;
        END IF;
        PERFORM free_host(_realm, _held.host);
    END IF;
    UPDATE pulse SET epoch = epoch + 1, host = _me, taking = _token WHERE realm = _realm AND agent = _agent
        RETURNING epoch INTO _epoch;
    PERFORM feed_holder(_realm, _agent);
    PERFORM hold(_realm, _me);
    UPDATE inbox SET host = _me WHERE realm = _realm AND agent = _agent RETURNING waiting INTO _waiting;
    IF _waiting > 0 THEN PERFORM tell_mail(_me, _agent); END IF;
    RETURN json_build_object('epoch', _epoch, 'step', _held.step);
END $$;

-- Gives an agent up, if the epoch is still its own.
CREATE OR REPLACE FUNCTION release(_realm uuid, _agent uuid, _epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _holder uuid;
BEGIN
    SELECT host INTO _holder FROM pulse WHERE realm = _realm AND agent = _agent AND epoch = _epoch;
    IF NOT FOUND THEN RETURN; END IF;
    UPDATE pulse SET epoch = epoch + 1, host = NULL WHERE realm = _realm AND agent = _agent;
    PERFORM feed_holder(_realm, _agent);
    UPDATE inbox SET host = NULL WHERE realm = _realm AND agent = _agent;
    PERFORM free_tasks(_realm, _agent, NULL);
    PERFORM let_go(_realm, _holder);
END $$;

-- What a person asks for; the answer is kept for whoever loses it.
CREATE OR REPLACE FUNCTION ordered(_job jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _realm uuid := (_job->>'realm')::uuid; _result text; _results text[] := '{}'; _op jsonb;
BEGIN
    SELECT result INTO _result FROM receipt WHERE realm = _realm AND id = (_job->>'id')::uuid;
    IF NOT FOUND THEN
        PERFORM add_to_feed(_realm, NULL, (_job->>'what')::int, 0, 0);
        FOR _op IN SELECT * FROM jsonb_array_elements(_job->'ops') LOOP
            _results := _results || act(_realm, NULL, NULL, (_job->>'at')::bigint, _op)::text;
        END LOOP;
        _result := format('{"results":[%s],"mail_waits":false}', array_to_string(_results, ','));
        INSERT INTO receipt (realm, id, result) VALUES (_realm, (_job->>'id')::uuid, _result);
    END IF;
    RETURN _result::json;
END $$;

-- Does jobs in one transaction. `_me` is this host, with `settled` if it has a row already; or null if no job needs
-- one. Gives what came of each job, and what hosts should know. Every query in it is a step down an index, whatever the
-- values are and however few rows there were when it was planned: planned once, and never as a look through a table.
CREATE OR REPLACE FUNCTION write(_me jsonb, _jobs jsonb, _blobs bytea[]) RETURNS json LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    _host uuid := (_me->>'id')::uuid; _lost boolean := false; _of uuid[] := '{}'; _realms uuid[] := '{}'; _found int;
    _job jsonb; _do text; _realm uuid; _done text[] := '{}'; _one json; _news text := set_config('posse.news', '', true);
    _watched uuid[];
BEGIN
    -- An older one does not say which version it is, or says it of what it does.
    IF _host IS NOT NULL AND coalesce((_me->>'version')::int, 0) < 3
        OR _jobs @? '$[*] ? ((@.do == "commit" || @.do == "operate") && !exists(@.what))' THEN
        RAISE EXCEPTION 'this posse is older than the tables of the server: install the version that the others have';
    END IF;
    FOR _i IN 0..jsonb_array_length(_jobs) - 1 LOOP
        _realm := (_jobs->_i->>'realm')::uuid;
        IF _realm IS NULL THEN SELECT realm INTO _realm FROM agent WHERE id = (_jobs->_i->>'agent')::uuid; END IF;
        _of := array_append(_of, _realm);
        IF _realm IS NOT NULL AND _realm <> ALL (_realms) THEN _realms := array_append(_realms, _realm); END IF;
    END LOOP;
    SELECT count(*), array_agg(id) FILTER (WHERE watched_until > clock_timestamp()) INTO _found, _watched
        FROM (SELECT id, watched_until FROM realm WHERE id = ANY (_realms) ORDER BY id FOR NO KEY UPDATE) locked;
    IF _found < cardinality(_realms) THEN
        INSERT INTO realm (id) SELECT id FROM unnest(_realms) id ORDER BY id ON CONFLICT DO NOTHING;
        PERFORM 1 FROM realm WHERE id = ANY (_realms) ORDER BY id FOR NO KEY UPDATE;
    END IF;
    IF _host IS NOT NULL THEN
        IF NOT (_me->>'settled')::boolean THEN
            -- It may be there, from a try whose answer was lost.
            INSERT INTO host (id, lease_until, pid, node) VALUES (_host,
                clock_timestamp() + current_setting('posse.lease')::interval, (_me->>'pid')::int, _me->>'node')
            ON CONFLICT DO NOTHING;
        END IF;
        _lost := NOT EXISTS (SELECT 1 FROM host WHERE id = _host AND lost_at IS NULL);
    END IF;
    IF _jobs @> '[{"plain":true}]' AND NOT _lost THEN PERFORM plain_steps(_jobs, _blobs); END IF;
    FOR _i IN 0..jsonb_array_length(_jobs) - 1 LOOP
        _job := _jobs->_i; _realm := _of[_i + 1];
        -- Born by a job before it; but nothing is done in a realm whose lock is not held.
        IF _realm IS NULL THEN
            SELECT realm INTO _realm FROM agent WHERE id = (_job->>'agent')::uuid AND realm = ANY (_realms);
        END IF;
        IF _lost AND _job->>'do' IN ('commit', 'take') THEN
            PERFORM refuse(jsonb_build_object('fenced', _job->>'agent', 'lost', true));
        END IF;
        _one := NULL;
        _do := CASE WHEN _job ? 'plain' THEN 'plain' ELSE _job->>'do' END;
        CASE _do
            WHEN 'plain' THEN _one := '{"results":[],"mail_waits":false}';
            WHEN 'commit' THEN
                -- Of several jobs each has its own part of the bytes.
                _one := step(_host, _job, CASE WHEN _job ? 'base'
                    THEN _blobs[(_job->>'base')::int + 1 : (_job->>'base')::int + (_job->>'count')::int] ELSE _blobs END);
            WHEN 'operate' THEN _one := ordered(_job);
            WHEN 'take' THEN _one := take(_host, _realm, (_job->>'agent')::uuid, (_job->>'id')::uuid);
            WHEN 'release' THEN PERFORM release(_realm, (_job->>'agent')::uuid, (_job->>'epoch')::bigint);
            WHEN 'import' THEN PERFORM import(_job);
        END CASE;
        _done := _done || coalesce(_one, 'null')::text;
    END LOOP;
    IF _watched IS NOT NULL THEN
        PERFORM tell(format('{"feed":["%s",%s]}', id, head)) FROM realm WHERE id = ANY (_watched);
    END IF;
    RETURN format('{"done":[%s],"news":[%s]}', array_to_string(_done, ','), rtrim(current_setting('posse.news'), ','))::json;
END $$;
