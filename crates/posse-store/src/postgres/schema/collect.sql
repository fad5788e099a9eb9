-- Removing realms that nobody has used for long: whole ones, in small transactions under the realm's lock.

-- When something happened in a realm last; null if nothing in it has a time. Receipts are there for whoever asks again.
CREATE OR REPLACE FUNCTION used_ms(_realm uuid) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN greatest(
        (SELECT max(used_ms) FROM pulse WHERE realm = _realm),
        (SELECT max(greatest(created_ms, here_ms)) FROM team WHERE realm = _realm),
        (SELECT max(joined_ms) FROM member WHERE realm = _realm),
        (SELECT max(updated_ms) FROM task WHERE realm = _realm),
        (SELECT max(written_ms) FROM note WHERE realm = _realm),
        (SELECT max(sent_ms) FROM mail WHERE realm = _realm),
        (SELECT max(extract(epoch FROM at) * 1000)::bigint FROM receipt WHERE realm = _realm));
END $$;

-- Whether nothing has happened in a realm since, and no host holds an agent of it that is not gone.
CREATE OR REPLACE FUNCTION unused(_realm uuid, _before bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(used_ms(_realm) < _before, true)
        AND NOT EXISTS (SELECT 1 FROM presence WHERE realm = _realm AND NOT gone(host))
        AND NOT EXISTS (SELECT 1 FROM (SELECT DISTINCT host FROM pulse WHERE realm = _realm AND host IS NOT NULL) h
            WHERE NOT gone(host));
END $$;

-- Removes the rows by which a realm is found, if it is unused: from then on nobody sees, takes or joins anything of it.
-- If the rest is not removed now, it is the next time.
CREATE OR REPLACE FUNCTION behead(_realm uuid, _before bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM realm WHERE id = _realm FOR NO KEY UPDATE;
    IF NOT FOUND OR NOT unused(_realm, _before) THEN RETURN false; END IF;
    DELETE FROM agent WHERE realm = _realm;
    DELETE FROM root WHERE realm = _realm;
    DELETE FROM team WHERE realm = _realm;
    RETURN true;
END $$;

-- Removes so many of its other rows, and at the end the realm itself, unless somebody makes it anew meanwhile. Gives how
-- many bytes of transcripts were among them, and whether there may be more.
CREATE OR REPLACE FUNCTION empty_realm(_realm uuid, _most bigint, OUT _bytes bigint, OUT _more boolean) LANGUAGE plpgsql AS $$
DECLARE _table text; _removed bigint; _size bigint; _left bigint := _most;
BEGIN
    _bytes := 0; _more := false;
    PERFORM 1 FROM realm WHERE id = _realm FOR NO KEY UPDATE;
    IF NOT FOUND OR EXISTS (SELECT 1 FROM agent WHERE realm = _realm)
            OR EXISTS (SELECT 1 FROM team WHERE realm = _realm) THEN
        RETURN;
    END IF;
    FOREACH _table IN ARRAY ARRAY['member', 'inbox', 'presence', 'pulse', 'list', 'used_name', 'request', 'question', 'run', 'note', 'task',
            'dependency', 'mail', 'segment', 'call', 'charge', 'total', 'seen', 'entry', 'preamble', 'receipt', 'feed'] LOOP
        EXECUTE format('WITH gone AS (DELETE FROM %I WHERE ctid = ANY (ARRAY(SELECT ctid FROM %I WHERE realm = $1 LIMIT $2))
            RETURNING %s AS size) SELECT count(*), coalesce(sum(size), 0) FROM gone', _table, _table,
            CASE WHEN _table IN ('entry', 'preamble') THEN 'octet_length(bytes)'
                WHEN _table = 'call' THEN 'octet_length(content)' ELSE '0' END)
        INTO _removed, _size USING _realm, _left;
        _left := _left - _removed;
        _bytes := _bytes + _size;
        IF _left = 0 THEN
            _more := true;
            RETURN;
        END IF;
    END LOOP;
    DELETE FROM realm WHERE id = _realm;
END $$;
