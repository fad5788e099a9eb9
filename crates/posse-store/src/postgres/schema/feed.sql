-- The feed of a realm whose lock is held.

CREATE OR REPLACE FUNCTION now_ms() RETURNS bigint LANGUAGE sql AS
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint';

-- Adds a row.
CREATE OR REPLACE FUNCTION add_to_feed(_realm uuid, _agent uuid, _what int, _seq bigint, _count bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH next AS (UPDATE realm SET head = head + 1 WHERE id = _realm RETURNING head)
    INSERT INTO feed (realm, number, agent, at_ms, what, seq, count)
    SELECT _realm, head, _agent, now_ms(), _what, _seq, _count FROM next;
END $$;

-- Adds the row that says that an agent has another holder, or none.
CREATE OR REPLACE FUNCTION feed_holder(_realm uuid, _agent uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM add_to_feed(_realm, _agent, 128, 0, 0);
END $$;

-- Notes that somebody waits for more of some realms, and gives their last numbers. It waits for those who write there:
-- whoever writes after it tells.
CREATE OR REPLACE FUNCTION watch_feeds(_realms uuid[]) RETURNS TABLE (_realm uuid, _head bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM realm r WHERE r.id = ANY (_realms) ORDER BY r.id FOR NO KEY UPDATE;
    UPDATE realm r SET watched_until = clock_timestamp() + interval '1 minute' WHERE r.id = ANY (_realms);
    RETURN QUERY SELECT r.id, r.head FROM realm r WHERE r.id = ANY (_realms);
END $$;

-- Removes old blocks of feeds, some at a time.
CREATE OR REPLACE FUNCTION trim_feeds(_age interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _realm uuid; _number bigint;
BEGIN
    FOR _realm, _number IN SELECT realm, number FROM feed WHERE number % 64 = 0
        AND at_ms < now_ms() - (extract(epoch FROM _age) * 1000)::bigint ORDER BY at_ms LIMIT 100
    LOOP
        DELETE FROM feed WHERE realm = _realm AND number <= _number;
    END LOOP;
END $$;
