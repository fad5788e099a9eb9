-- Hosts: that they live, what is new for them, and their end.

-- One look of a host, every second: renews its lease, and says what it should know. `_cursor` is where the look before
-- ended, 0 for the first one; all that was committed since is found, whatever the order of commits, because the next cursor is the oldest
-- transaction that was still open before this look.
CREATE OR REPLACE FUNCTION look(_host uuid, _cursor bigint) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _next bigint := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
BEGIN
    UPDATE host SET lease_until = clock_timestamp() + current_setting('posse.lease')::interval
        WHERE id = _host AND lost_at IS NULL;
    IF NOT FOUND THEN RETURN json_build_object('fenced', true); END IF;
    RETURN json_build_object(
        'cursor', _next,
        'mail', (SELECT coalesce(json_agg(agent), '[]') FROM (
            SELECT agent FROM inbox WHERE host = _host AND has_mail
            UNION SELECT q.agent FROM question q CROSS JOIN LATERAL (
                SELECT host FROM pulse WHERE realm = q.realm AND agent = q.agent LIMIT 1) p
            WHERE q.state = 1 AND p.host = _host) news),
        'lists', CASE WHEN _cursor = 0
            THEN (SELECT coalesce(json_agg(json_build_array(l.realm, l.team, l.changed)), '[]')
                FROM presence p JOIN list l ON l.realm = p.realm WHERE p.host = _host)
            ELSE (SELECT coalesce(json_agg(json_build_array(l.realm, l.team, l.changed)), '[]') FROM list l
                WHERE l.changed >= _cursor
                    AND EXISTS (SELECT 1 FROM presence p WHERE p.realm = l.realm AND p.host = _host)) END,
        -- Whoever has not looked for so long finds out when it wants something.
        'gone', (SELECT coalesce(json_agg(id), '[]') FROM host WHERE id <> _host
            AND lease_until > clock_timestamp() - interval '10 minutes' AND (lost_at IS NOT NULL
            OR greatest(lease_until, pg_postmaster_start_time() + current_setting('posse.lease')::interval)
                < clock_timestamp())));
END $$;

-- Sets free what a host that leaves holds, in some realms at a time, and says whether there may be more.
CREATE OR REPLACE FUNCTION leave(_host uuid) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _realms uuid[]; _realm uuid;
BEGIN
    PERFORM set_config('posse.news', '', true);
    _realms := ARRAY(SELECT realm FROM presence WHERE host = _host ORDER BY realm LIMIT 200);
    PERFORM 1 FROM realm WHERE id = ANY (_realms) ORDER BY id FOR NO KEY UPDATE;
    FOREACH _realm IN ARRAY _realms LOOP
        PERFORM free_host(_realm, _host);
    END LOOP;
    -- Its row stays a while, for those who look.
    UPDATE host SET lost_at = clock_timestamp() WHERE id = _host AND lost_at IS NULL;
    RETURN format('{"more":%s,"news":[%s]}', to_json(cardinality(_realms) > 0), rtrim(current_setting('posse.news'), ','))::json;
END $$;

-- Removes what is of no use any more: old rows of feeds, receipts of an hour ago, hosts that hold nothing and were seen last before that,
-- and what hosts hold that have been gone for a day and that nobody wanted.
CREATE OR REPLACE FUNCTION tidy_up(_feed_age interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _realms uuid[]; _realm uuid; _host uuid;
BEGIN
    PERFORM set_config('posse.news', '', true);
    PERFORM trim_feeds(_feed_age);
    DELETE FROM receipt WHERE (realm, id) IN
        (SELECT realm, id FROM receipt WHERE at < clock_timestamp() - interval '1 hour' LIMIT 1000);
    _realms := ARRAY(SELECT DISTINCT p.realm FROM host h JOIN presence p ON p.host = h.id
        WHERE h.lease_until < clock_timestamp() - interval '1 day' ORDER BY p.realm LIMIT 50);
    PERFORM 1 FROM realm WHERE id = ANY (_realms) ORDER BY id FOR NO KEY UPDATE;
    FOR _realm, _host IN SELECT p.realm, p.host FROM host h JOIN presence p ON p.host = h.id
        WHERE h.lease_until < clock_timestamp() - interval '1 day' AND p.realm = ANY (_realms)
    LOOP
        PERFORM free_host(_realm, _host);
    END LOOP;
    DELETE FROM host h WHERE lease_until < clock_timestamp() - interval '1 hour'
        AND NOT EXISTS (SELECT 1 FROM presence p WHERE p.host = h.id);
END $$;
