-- Many plain steps at once. A plain one only adds: replies and results, calls that are asked for, at most one charge. Most
-- steps are; and of a batch of them each table is written once, not once for each. Whatever is not as it should be
-- refuses the batch: its halves are tried then, and in the end each step alone, by `step`, which says what is wrong.
CREATE OR REPLACE FUNCTION plain_steps(_jobs jsonb, _blobs bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _what int[]; _realm uuid[]; _agent uuid[]; _id uuid[]; _after uuid[]; _epoch bigint[]; _at bigint[]; _first bigint[]; _count bigint[];
    _moved bigint; _wrong boolean;
BEGIN
    SELECT array_agg(j.realm), array_agg(j.agent), array_agg(j.id), array_agg(j.after), array_agg(j.epoch), array_agg(j.at),
        array_agg((j.entries->0->>'seq')::bigint), array_agg(coalesce(jsonb_array_length(j.entries), 0)), array_agg(j.what)
    INTO _realm, _agent, _id, _after, _epoch, _at, _first, _count, _what
    FROM jsonb_to_recordset(_jobs) AS j(realm uuid, agent uuid, id uuid, after uuid, epoch bigint, at bigint, entries jsonb,
        what int, plain boolean) WHERE j.plain;
    UPDATE pulse p SET used_ms = x.at, own = p.own + x.count, step = x.id, result = NULL
    FROM unnest(_realm, _agent, _id, _after, _epoch, _at, _first, _count)
        AS x(realm, agent, id, after, epoch, at, first, count)
    WHERE p.realm = x.realm AND p.agent = x.agent AND p.epoch = x.epoch AND p.own = coalesce(x.first, p.own)
        AND p.step IS DISTINCT FROM x.id AND coalesce(p.step = x.after, true);
    GET DIAGNOSTICS _moved = ROW_COUNT;
    IF _moved <> cardinality(_agent) THEN PERFORM bad_step('one of several steps is not its agent''s next'); END IF;
    WITH counted AS (SELECT of.realm, count(*) AS rows FROM unnest(_realm) AS of(realm) GROUP BY of.realm),
    moved AS (UPDATE realm r SET head = r.head + c.rows FROM counted c WHERE r.id = c.realm
        RETURNING r.id, r.head - c.rows AS before)
    INSERT INTO feed (realm, number, agent, at_ms, what, seq, count)
    SELECT x.realm, m.before + row_number() OVER (PARTITION BY x.realm ORDER BY x.nth), x.agent, now_ms(), x.what,
        coalesce(x.first, 0), x.count
    FROM unnest(_realm, _agent, _what, _first, _count) WITH ORDINALITY AS x(realm, agent, what, first, count, nth)
    JOIN moved m ON m.id = x.realm;
    UPDATE root r SET used_ms = x.at FROM unnest(_realm, _agent, _at) AS x(realm, agent, at)
    WHERE r.realm = x.realm AND r.agent = x.agent;
    WITH added AS (
        INSERT INTO entry (realm, agent, seq, kind, at_ms, checksum, mark_at, reply, packed, bytes)
        SELECT j.realm, j.agent, e.seq, e.kind, j.at, e.checksum, e.mark, e.reply, e.packed, _blobs[j.base + e.blob]
        FROM jsonb_to_recordset(_jobs) AS j(realm uuid, agent uuid, at bigint, base int, entries jsonb, plain boolean)
        CROSS JOIN LATERAL jsonb_to_recordset(j.entries)
            AS e(seq bigint, kind smallint, checksum bigint, mark bigint, reply text, packed boolean, blob int)
        WHERE j.plain RETURNING agent, seq)
    SELECT bool_or(a.seq < x.first OR a.seq >= x.first + x.count) INTO _wrong
    FROM added a JOIN unnest(_agent, _first, _count) AS x(agent, first, count) ON x.agent = a.agent;
    IF _wrong THEN PERFORM bad_step('an entry stands where another belongs'); END IF;
    INSERT INTO call (realm, agent, seq, ordinal, id, tool, begun, tier)
    SELECT j.realm, j.agent, c.seq, c.ordinal, c.asked->>0, c.asked->>1, false, c.tier
    FROM jsonb_to_recordset(_jobs) AS j(realm uuid, agent uuid, calls jsonb, plain boolean)
    CROSS JOIN LATERAL jsonb_to_recordset(j.calls) AS c(seq bigint, ordinal int, asked jsonb, tier text)
    WHERE j.plain;
    IF _jobs @> '[{"plain":true,"charges":[{}]}]' THEN PERFORM book_all(_jobs); END IF;
END $$;

-- Books the charges of plain steps, one of each at most.
CREATE OR REPLACE FUNCTION book_all(_jobs jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _booked bigint;
BEGIN
    WITH charged AS (
        SELECT j.realm, j.agent, j.at, c.*, (SELECT coalesce(sum(t.calls), 0) FROM total t
            WHERE t.realm = j.realm AND t.agent = j.agent AND t.model = c.model) AS nth
        FROM jsonb_to_recordset(_jobs) AS j(realm uuid, agent uuid, at bigint, charges jsonb, plain boolean)
        CROSS JOIN LATERAL jsonb_to_recordset(j.charges) AS c(model text, purpose smallint, input bigint, cache_read bigint,
            cache_write_5m bigint, cache_write_1h bigint, output bigint, thinking bigint, cost bigint, missed bigint)
        WHERE j.plain),
    booked AS (
        INSERT INTO charge (realm, agent, model, nth, at_ms, purpose, input, cache_read, cache_write_5m, cache_write_1h,
            output, thinking, cost, missed)
        SELECT realm, agent, model, nth, at, purpose, input, cache_read, cache_write_5m, cache_write_1h, output, thinking,
            cost, missed FROM charged)
    INSERT INTO total AS t (realm, agent, model, purpose, calls, input, cache_read, cache_write_5m, cache_write_1h,
        output, thinking, cost, missed)
    SELECT realm, agent, model, purpose, 1, input, cache_read, cache_write_5m, cache_write_1h, output, thinking, cost, missed
    FROM charged
    ON CONFLICT (realm, agent, model, purpose) DO UPDATE SET calls = t.calls + 1, input = t.input + excluded.input,
        cache_read = t.cache_read + excluded.cache_read, cache_write_5m = t.cache_write_5m + excluded.cache_write_5m,
        cache_write_1h = t.cache_write_1h + excluded.cache_write_1h, output = t.output + excluded.output,
        thinking = t.thinking + excluded.thinking, cost = t.cost + excluded.cost, missed = t.missed + excluded.missed
    WHERE least(t.input, t.cache_read, t.cache_write_5m, t.cache_write_1h, t.output, t.thinking, t.cost, t.missed) >= 0;
    GET DIAGNOSTICS _booked = ROW_COUNT;
    IF _booked <> (SELECT count(*) FROM jsonb_array_elements(_jobs) j WHERE j ? 'plain' AND j ? 'charges') THEN
        PERFORM bad_step('a sum is too high for plain numbers');
    END IF;
END $$;
