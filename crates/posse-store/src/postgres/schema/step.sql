-- One step of one agent.

-- Keeps bytes that many have in common, and gives their name. A caller that knows them to be there sends none.
CREATE OR REPLACE FUNCTION keep(_realm uuid, _piece jsonb, _blobs bytea[]) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE _hash uuid := (_piece->>'hash')::uuid;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM preamble WHERE realm = _realm AND hash = _hash) THEN
        IF _piece->>'blob' IS NULL THEN
            RAISE EXCEPTION 'posse does not have that content' USING ERRCODE = 'PO002';
        END IF;
        INSERT INTO preamble (realm, hash, mark_at, packed, bytes) VALUES (_realm, _hash, (_piece->>'mark')::bigint,
            (_piece->>'packed')::boolean, _blobs[(_piece->>'blob')::int]);
    END IF;
    RETURN _hash;
END $$;

-- Books a model call, with the sum of all. One without a price makes a total without one.
CREATE OR REPLACE FUNCTION book(_realm uuid, _agent uuid, _charge jsonb, _at bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _nth bigint; _c total := jsonb_populate_record(NULL::total, _charge);
BEGIN
    SELECT coalesce(sum(calls), 0) INTO _nth FROM total WHERE realm = _realm AND agent = _agent AND model = _c.model;
    INSERT INTO charge (realm, agent, model, nth, at_ms, purpose, input, cache_read, cache_write_5m, cache_write_1h,
        output, thinking, cost, missed)
    VALUES (_realm, _agent, _c.model, _nth, _at, _c.purpose, _c.input, _c.cache_read, _c.cache_write_5m,
        _c.cache_write_1h, _c.output, _c.thinking, _c.cost, _c.missed);
    -- Sums that are far from the highest number need no more than this.
    UPDATE total SET calls = calls + 1, input = input + _c.input, cache_read = cache_read + _c.cache_read,
        cache_write_5m = cache_write_5m + _c.cache_write_5m, cache_write_1h = cache_write_1h + _c.cache_write_1h,
        output = output + _c.output, thinking = thinking + _c.thinking, cost = cost + _c.cost, missed = missed + _c.missed
    WHERE realm = _realm AND agent = _agent AND model = _c.model AND purpose = _c.purpose
        AND least(input, _c.input, cache_read, _c.cache_read, cache_write_5m, _c.cache_write_5m, cache_write_1h,
            _c.cache_write_1h, output, _c.output, thinking, _c.thinking, cost, _c.cost, missed, _c.missed) >= 0
        AND greatest(input, _c.input, cache_read, _c.cache_read, cache_write_5m, _c.cache_write_5m, cache_write_1h,
            _c.cache_write_1h, output, _c.output, thinking, _c.thinking, cost, _c.cost, missed, _c.missed)
            < 4611686018427387904;
    IF FOUND THEN RETURN; END IF;
    INSERT INTO total AS t (realm, agent, model, purpose, calls, input, cache_read, cache_write_5m, cache_write_1h,
        output, thinking, cost, missed)
    VALUES (_realm, _agent, _c.model, _c.purpose, 1, _c.input, _c.cache_read, _c.cache_write_5m,
        _c.cache_write_1h, _c.output, _c.thinking, _c.cost, _c.missed)
    ON CONFLICT (realm, agent, model, purpose) DO UPDATE SET calls = t.calls + 1,
        input = plus(t.input, excluded.input), cache_read = plus(t.cache_read, excluded.cache_read),
        cache_write_5m = plus(t.cache_write_5m, excluded.cache_write_5m),
        cache_write_1h = plus(t.cache_write_1h, excluded.cache_write_1h), output = plus(t.output, excluded.output),
        thinking = plus(t.thinking, excluded.thinking), cost = plus(t.cost, excluded.cost),
        missed = plus(t.missed, excluded.missed);
END $$;

-- The sum of two numbers of 64 bits without a sign; at most the highest of these.
CREATE OR REPLACE FUNCTION plus(_a bigint, _b bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN signed(least(unsigned(_a) + unsigned(_b), 18446744073709551615));
END $$;
CREATE OR REPLACE FUNCTION unsigned(_a bigint) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _a < 0 THEN _a + 18446744073709551616 ELSE _a END::numeric
$$;
CREATE OR REPLACE FUNCTION signed(_a numeric) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN _a >= 9223372036854775808 THEN _a - 18446744073709551616 ELSE _a END::bigint
$$;

-- Where the first prompt is of what a segment stands for; none if there is none.
CREATE OR REPLACE FUNCTION first_prompt(_realm uuid, _source uuid, _from bigint, _to bigint, OUT _agent uuid, OUT _seq bigint)
LANGUAGE plpgsql AS $$
BEGIN
    IF _from > 0 THEN
        SELECT prompt_agent, prompt_seq INTO _agent, _seq FROM pulse WHERE realm = _realm AND agent = _source
            AND (prompt_agent <> agent OR prompt_seq < _to);
    ELSE
        SELECT agent, seq INTO _agent, _seq FROM entry WHERE realm = _realm AND agent = _source AND seq < _to AND kind = 1
            ORDER BY seq LIMIT 1;
    END IF;
END $$;

-- Makes the agent, without entries of its own, held by `_host`.
CREATE OR REPLACE FUNCTION birth(_host uuid, _realm uuid, _agent uuid, _at bigint, _birth jsonb, _blobs bytea[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    _origin jsonb := nullif(_birth->'origin', 'null'); _name text := _birth->'origin'->>'name'; _by uuid;
    _segment jsonb; _ordinal int := 0; _inherited bigint := 0; _prompt_agent uuid; _prompt_seq bigint;
    _source uuid; _from bigint; _to bigint; _waiting bigint; _parent uuid := (_birth->'origin'->>'parent')::uuid;
BEGIN
    IF _origin IS NOT NULL THEN
        IF NOT EXISTS (SELECT 1 FROM agent WHERE realm = _realm AND id = _parent) THEN
            PERFORM bad_step(format('there is no agent %s to be its parent', _parent));
        END IF;
        IF _name IS NOT NULL THEN
            SELECT id INTO _by FROM agent WHERE realm = _realm AND name = _name;
            IF NOT FOUND THEN
                SELECT m.agent INTO _by FROM used_name u LEFT JOIN member m
                    ON m.realm = u.realm AND m.team = u.team AND m.name = u.name
                    WHERE u.realm = _realm AND u.name = _name LIMIT 1;
            END IF;
            IF FOUND THEN PERFORM refuse(jsonb_build_object('name_taken', _name, 'by', _by)); END IF;
        END IF;
    END IF;
    FOR _segment IN SELECT * FROM jsonb_array_elements(_birth->'segments') LOOP
        _source := (_segment->>0)::uuid; _from := (_segment->>1)::bigint; _to := (_segment->>2)::bigint;
        IF _from > _to OR NOT EXISTS (SELECT 1 FROM pulse WHERE realm = _realm AND agent = _source AND own >= _to) THEN
            PERFORM bad_step(format('agent %s has no entries %s..%s', _source, _from, _to));
        END IF;
        IF _from > 0 AND NOT EXISTS (SELECT 1 FROM entry WHERE realm = _realm AND agent = _source AND seq = _from
                AND kind = 4) THEN
            PERFORM bad_step(format('entry %s of agent %s stands for none before it', _from, _source));
        END IF;
        INSERT INTO segment (realm, agent, ordinal, source, first, beyond)
        VALUES (_realm, _agent, _ordinal, _source, _from, _to);
        _ordinal := _ordinal + 1;
        _inherited := _inherited + _to - _from;
        IF _prompt_agent IS NULL THEN
            SELECT p._agent, p._seq INTO _prompt_agent, _prompt_seq FROM first_prompt(_realm, _source, _from, _to) p;
        END IF;
    END LOOP;
    INSERT INTO agent (realm, id, parent, path, model, dialect, cwd, preamble, created_ms, inherited, name, agent_type,
        description, call_seq, call_ordinal, call_id, terms)
    VALUES (_realm, _agent, _parent, _birth->>'path', _birth->>'model', _birth->>'dialect',
        decode(_birth->>'cwd', 'hex'), keep(_realm, _birth->'preamble', _blobs), _at, _inherited, _name,
        _origin->>'agent_type', _origin->>'description', (_origin->>'call_seq')::bigint,
        (_origin->>'call_ordinal')::int, _origin->>'call_id', _origin->>'terms');
    INSERT INTO pulse (realm, agent, epoch, own, state, used_ms, mode, prompt_agent, prompt_seq, host, is_open)
    VALUES (_realm, _agent, 1, 0, 0, _at, _birth->>'mode', _prompt_agent, _prompt_seq, _host, false);
    IF _parent IS NULL THEN
        INSERT INTO root (realm, agent, cwd, used_ms) VALUES (_realm, _agent, decode(_birth->>'cwd', 'hex'), _at);
    END IF;
    PERFORM hold(_realm, _host);
    -- One who joined a team before it was born has an inbox already.
    UPDATE inbox SET host = _host WHERE realm = _realm AND agent = _agent RETURNING waiting INTO _waiting;
    IF _waiting > 0 THEN PERFORM tell_mail(_host, _agent); END IF;
END $$;

-- Tool calls that were asked for, begun or answered.
CREATE OR REPLACE FUNCTION call_changes(_realm uuid, _agent uuid, _calls jsonb, _blobs bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _call jsonb; _seq bigint; _ordinal int;
BEGIN
    FOR _i IN 0..jsonb_array_length(_calls) - 1 LOOP
        _call := _calls->_i;
        _seq := (_call->>'seq')::bigint; _ordinal := (_call->>'ordinal')::int;
        IF _call ? 'asked' THEN
            INSERT INTO call (realm, agent, seq, ordinal, id, tool, begun, tier)
            VALUES (_realm, _agent, _seq, _ordinal, _call->'asked'->>0, _call->'asked'->>1, false, _call->>'tier')
            ON CONFLICT DO NOTHING;
        ELSIF _call ? 'done' THEN
            UPDATE call SET is_error = (_call->>'is_error')::boolean, packed = (_call->>'packed')::boolean,
                content = _blobs[(_call->>'done')::int]
            WHERE realm = _realm AND agent = _agent AND seq = _seq AND ordinal = _ordinal AND content IS NULL;
        ELSE
            UPDATE call SET begun = true, tier = coalesce(_call->>'tier', tier)
            WHERE realm = _realm AND agent = _agent AND seq = _seq AND ordinal = _ordinal;
        END IF;
        IF NOT FOUND THEN
            PERFORM bad_step(format('call %s of entry %s was not asked for, or has its outcome', _ordinal, _seq));
        END IF;
    END LOOP;
END $$;

-- Mail that the step's entries show.
CREATE OR REPLACE FUNCTION take_mail(_realm uuid, _agent uuid, _step jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _taken jsonb; _bytes bigint := 0; _size bigint;
BEGIN
    FOR _taken IN SELECT * FROM jsonb_array_elements(_step->'mail') LOOP
        IF NOT EXISTS (SELECT 1 FROM jsonb_array_elements(_step->'entries') e WHERE e->'seq' = _taken->1) THEN
            PERFORM bad_step(format('mail %s is shown by entry %s of another step', _taken->0, _taken->1));
        END IF;
        UPDATE mail SET entry = (_taken->>1)::bigint WHERE realm = _realm AND recipient = _agent
            AND number = (_taken->>0)::bigint AND entry IS NULL RETURNING size INTO _size;
        IF NOT FOUND THEN PERFORM bad_step(format('mail %s does not wait', _taken->0)); END IF;
        _bytes := _bytes + _size;
    END LOOP;
    UPDATE inbox SET waiting = waiting - jsonb_array_length(_step->'mail'), bytes = bytes - _bytes
        WHERE realm = _realm AND agent = _agent;
END $$;

-- Background commands: each begins and ends, once and in this order.
CREATE OR REPLACE FUNCTION run_changes(_realm uuid, _agent uuid, _runs jsonb, _at bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _run jsonb; _id uuid;
BEGIN
    FOR _run IN SELECT * FROM jsonb_array_elements(_runs) LOOP
        _id := (_run->>'id')::uuid;
        IF _run ? 'began' THEN
            INSERT INTO run (realm, agent, id, kind, state, began_ms, description, output, call_seq, call_ordinal)
            VALUES (_realm, _agent, _id, _run->'began'->>'kind', 0, _at, _run->'began'->>'description',
                decode(_run->'began'->>'output', 'hex'), (_run->'began'->>'seq')::bigint,
                (_run->'began'->>'ordinal')::int) ON CONFLICT DO NOTHING;
        ELSE
            -- What can go on has not ended.
            UPDATE run SET state = (_run->>'ended')::smallint WHERE realm = _realm AND agent = _agent AND id = _id
                AND state = 0 AND (_run->>'ended')::smallint NOT IN (0, 5);
        END IF;
        IF NOT FOUND THEN PERFORM bad_step(format('run %s cannot become that', _id)); END IF;
    END LOOP;
END $$;

-- What came of a step that was committed already; or why the agent is not what the step goes on from.
CREATE OR REPLACE FUNCTION repeated(_realm uuid, _step jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _pulse pulse; _agent uuid := (_step->>'agent')::uuid;
BEGIN
    SELECT * INTO _pulse FROM pulse WHERE realm = _realm AND agent = _agent;
    IF NOT FOUND THEN PERFORM refuse(jsonb_build_object('not_found', _agent)); END IF;
    IF _pulse.epoch <> (_step->>'epoch')::bigint THEN PERFORM refuse(jsonb_build_object('fenced', _agent)); END IF;
    IF _pulse.step IS DISTINCT FROM (_step->>'id')::uuid THEN
        IF (_step->'entries'->0->>'seq')::bigint <> _pulse.own THEN
            PERFORM bad_step(format('its first entry is %s, the next one is %s', _step->'entries'->0->>'seq', _pulse.own));
        END IF;
        -- Whoever hears this asks again without saying what it goes on from; a try that comes late is heard by nobody.
        RAISE EXCEPTION 'others were committed after the one that the step goes on from' USING ERRCODE = 'PO003';
    END IF;
    RETURN coalesce(_pulse.result, '{"results":[],"mail_waits":false}')::json;
END $$;

-- Does a step's operations, and keeps what came of them with their calls.
CREATE OR REPLACE FUNCTION operate(_holder uuid, _realm uuid, _agent uuid, _at bigint, _ops jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE _op jsonb; _results text[] := '{}'; _result text; _calls jsonb := '{}'; _key text; _of_call text;
BEGIN
    FOR _op IN SELECT * FROM jsonb_array_elements(_ops) LOOP
        _result := act(_realm, _agent, _holder, _at, _op->'op')::text;
        _results := _results || _result;
        IF jsonb_typeof(_op->'call') = 'array' THEN
            _key := format('%s %s', _op->'call'->>0, _op->'call'->>1);
            _calls := jsonb_set(_calls, ARRAY[_key], to_jsonb(coalesce(_calls->>_key || ',', '') || _result));
        END IF;
    END LOOP;
    FOR _key, _of_call IN SELECT * FROM jsonb_each_text(_calls) LOOP
        UPDATE call SET operated = format('[%s]', _of_call) WHERE realm = _realm AND agent = _agent
            AND seq = split_part(_key, ' ', 1)::bigint AND ordinal = split_part(_key, ' ', 2)::int
            AND content IS NULL AND operated IS NULL;
        IF NOT FOUND THEN
            PERFORM bad_step(format('call %s of entry %s was not asked for, or has its outcome or operations',
                split_part(_key, ' ', 2), split_part(_key, ' ', 1)));
        END IF;
    END LOOP;
    RETURN format('{"results":[%s],"mail_waits":false}', array_to_string(_results, ','));
END $$;

-- Commits a step. The first statement that writes both checks it against the agent's row and moves that on. `after` is
-- the step before it, if its host knows: a second try that comes later than the steps after it is none that goes on.
CREATE OR REPLACE FUNCTION step(_host uuid, _step jsonb, _blobs bytea[]) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    _realm uuid := (_step->>'realm')::uuid; _agent uuid := (_step->>'agent')::uuid; _at bigint := (_step->>'at')::bigint;
    _id uuid := (_step->>'id')::uuid; _state smallint := (_step->>'state')::smallint; _mail_waits boolean := false;
    _old pulse; _result text; _count bigint := 0; _first bigint; _prompt bigint; _since bigint;
    _entries jsonb; _entry jsonb; _head uuid; _loaded uuid; _after uuid := (_step->>'after')::uuid;
BEGIN
    IF _step ? 'birth' THEN
        IF (_step->>'epoch')::bigint <> 1 THEN PERFORM bad_step(format('a birth with epoch %s', _step->>'epoch')); END IF;
        SELECT p.* INTO _old FROM agent a JOIN pulse p ON p.realm = a.realm AND p.agent = a.id WHERE a.id = _agent;
        IF FOUND THEN
            IF _old.step IS DISTINCT FROM _id THEN PERFORM bad_step(format('agent %s is born twice', _agent)); END IF;
            IF _old.epoch <> 1 THEN PERFORM refuse(jsonb_build_object('fenced', _agent)); END IF;
            RETURN coalesce(_old.result, '{"results":[],"mail_waits":false}')::json;
        END IF;
        PERFORM birth(_host, _realm, _agent, _at, _step->'birth', _blobs);
    END IF;
    IF (_step->>'unless')::boolean THEN
        SELECT waiting > coalesce(jsonb_array_length(_step->'mail'), 0) INTO _mail_waits FROM inbox
            WHERE realm = _realm AND agent = _agent;
        _mail_waits := coalesce(_mail_waits, false);
        IF _mail_waits THEN
            _state := NULL;
            _result := '{"results":[],"mail_waits":true}';
        END IF;
    END IF;
    IF _step ? 'entries' THEN
        _entries := _step->'entries'; _count := jsonb_array_length(_entries); _first := (_entries->0->>'seq')::bigint;
        FOR _i IN 0.._count - 1 LOOP
            _entry := _entries->_i;
            IF _entry->>'kind' = '1' THEN _prompt := coalesce(_prompt, (_entry->>'seq')::bigint);
            ELSIF _entry->>'kind' = '4' THEN _since := (_entry->>'seq')::bigint;
            END IF;
        END LOOP;
    END IF;
    IF _step ?| '{unless,state,mode,starter,types}' OR _prompt IS NOT NULL OR _since IS NOT NULL THEN
        UPDATE pulse SET used_ms = _at, own = own + _count, state = coalesce(_state, state),
            mode = coalesce(_step->>'mode', mode),
            prompt_agent = CASE WHEN prompt_seq IS NULL AND _prompt IS NOT NULL THEN agent ELSE prompt_agent END,
            prompt_seq = coalesce(prompt_seq, _prompt), step = _id, result = _result,
            starter = coalesce((_step->>'starter')::uuid, starter),
            ended = CASE WHEN _state IS NULL THEN ended ELSE _step->>'ended' END,
            types = coalesce((_step->>'types')::bigint, types), since = coalesce(_since, since),
            is_open = CASE WHEN _state IS NULL THEN is_open ELSE (_step->>'open')::boolean
                AND EXISTS (SELECT 1 FROM agent WHERE realm = _realm AND id = _agent AND parent IS NOT NULL) END
        WHERE realm = _realm AND agent = _agent AND epoch = (_step->>'epoch')::bigint AND own = coalesce(_first, own)
            AND step IS DISTINCT FROM _id AND coalesce(step = _after, true);
    ELSE
        UPDATE pulse SET used_ms = _at, own = own + _count, step = _id, result = NULL
        WHERE realm = _realm AND agent = _agent AND epoch = (_step->>'epoch')::bigint AND own = coalesce(_first, own)
            AND step IS DISTINCT FROM _id AND coalesce(step = _after, true);
    END IF;
    IF NOT FOUND THEN RETURN repeated(_realm, _step); END IF;
    PERFORM add_to_feed(_realm, _agent, (_step->>'what')::int, coalesce(_first, 0), _count);
    UPDATE root SET used_ms = _at WHERE realm = _realm AND agent = _agent;
    IF _step ? 'ops' THEN
        IF _step->'ops' @> '[{"op":{"op":"charge"}}]' THEN
            PERFORM bad_step('what an agent spends is among its step''s charges');
        END IF;
        IF _step->'ops' @> '[{"op":{"op":"answer"}}]' THEN
            PERFORM bad_step('no agent answers a question to a person');
        END IF;
    END IF;
    IF _step ? 'ended' AND (_step->>'state' IS NULL OR (_step->>'open')::boolean) THEN
        PERFORM bad_step('a run came to something without having ended');
    END IF;
    IF _step ? 'starter' THEN
        IF NOT EXISTS (SELECT 1 FROM agent WHERE realm = _realm AND id = (_step->>'starter')::uuid) THEN
            PERFORM bad_step(format('there is no agent %s to be told of its end', _step->>'starter'));
        END IF;
    END IF;
    FOR _i IN 0.._count - 1 LOOP
        _entry := _entries->_i;
        IF (_entry->>'seq')::bigint <> _first + _i THEN
            PERFORM bad_step(format('entry %s stands where another belongs', _entry->>'seq'));
        END IF;
        IF _entry ? 'head' THEN _head := keep(_realm, _entry->'head', _blobs); ELSE _head := NULL; END IF;
        IF _entry ? 'loaded' THEN _loaded := keep(_realm, _entry->'loaded', _blobs); ELSE _loaded := NULL; END IF;
        INSERT INTO entry (realm, agent, seq, kind, at_ms, checksum, mark_at, reply, head, loaded, packed, bytes)
        VALUES (_realm, _agent, _first + _i, (_entry->>'kind')::smallint, _at, (_entry->>'checksum')::bigint,
            (_entry->>'mark')::bigint, _entry->>'reply', _head, _loaded, (_entry->>'packed')::boolean,
            _blobs[(_entry->>'blob')::int]);
        IF _entry->>'kind' = '5' THEN
            UPDATE agent SET model = coalesce((_entry->>'reply')::jsonb->>'model', model) WHERE realm = _realm AND id = _agent;
        END IF;
    END LOOP;
    IF _step ? 'calls' THEN PERFORM call_changes(_realm, _agent, _step->'calls', _blobs); END IF;
    IF _step ? 'charges' THEN
        FOR _i IN 0..jsonb_array_length(_step->'charges') - 1 LOOP
            PERFORM book(_realm, _agent, _step->'charges'->_i, _at);
        END LOOP;
    END IF;
    IF _step ? 'seen' THEN
        INSERT INTO seen (realm, agent, path, version)
        SELECT DISTINCT ON (s->>0) _realm, _agent, decode(s->>0, 'hex'), (s->>1)::bigint
            FROM jsonb_array_elements(_step->'seen') WITH ORDINALITY x(s, n) ORDER BY s->>0, n DESC
        ON CONFLICT (realm, agent, path) DO UPDATE SET version = excluded.version;
    END IF;
    IF _step ? 'mail' THEN PERFORM take_mail(_realm, _agent, _step); END IF;
    IF _step ? 'questions' THEN PERFORM question_changes(_realm, _agent, _step->'questions', _at); END IF;
    IF _step ? 'ops' AND NOT _mail_waits THEN
        -- What others hold may be gone; its own holder goes on, whatever it has missed.
        _result := operate(host_of(_realm, _agent), _realm, _agent, _at, _step->'ops');
        UPDATE pulse SET result = _result WHERE realm = _realm AND agent = _agent;
    END IF;
    IF _state IS NOT NULL AND (_step->>'shut')::boolean THEN
        DELETE FROM request WHERE realm = _realm AND (asked = _agent OR asker = _agent)
            AND kind = CASE WHEN asked = _agent THEN 'shutdown' ELSE 'plan' END;
        UPDATE question SET state = 3 WHERE realm = _realm AND agent = _agent AND state < 2;
        PERFORM stop_leading(_realm, _agent, _at);
        PERFORM free_tasks(_realm, _agent, NULL);
        PERFORM free_ahead(_realm, _agent, NULL);
    END IF;
    IF _step ? 'runs' THEN PERFORM run_changes(_realm, _agent, _step->'runs', _at); END IF;
    RETURN coalesce(_result, '{"results":[],"mail_waits":false}')::json;
END $$;
