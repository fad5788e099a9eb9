-- Makes a team of an archive that does not contradict itself, as encode.rs has it. A second try finds the first.
CREATE OR REPLACE FUNCTION import(_job jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _realm uuid := (_job->>'realm')::uuid; _archive jsonb := _job->'archive'; _team text := _job->'archive'->>'name';
    _member jsonb; _nth bigint;
BEGIN
    IF EXISTS (SELECT 1 FROM receipt WHERE realm = _realm AND id = (_job->>'id')::uuid) THEN RETURN; END IF;
    PERFORM add_to_feed(_realm, NULL, (_job->>'what')::int, 0, 0);
    -- here_ms: for whoever removes what is old here, by the clock of this machine.
    INSERT INTO team (realm, name, lead, created_ms, here_ms, description, settings)
    VALUES (_realm, _team, (_archive->>'lead')::uuid, (_archive->>'created_ms')::bigint,
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint, _archive->>'description', _archive->>'settings')
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN PERFORM bad_step(format('there is a team %s already', _team)); END IF;
    -- An earlier team of this name may have given higher numbers.
    INSERT INTO list (realm, team, last, changed) VALUES (_realm, _team, (_archive->>'last_task')::bigint, 0)
    ON CONFLICT (realm, team) DO UPDATE SET last = greatest(list.last, excluded.last);
    FOR _member, _nth IN SELECT m, n - 1 FROM jsonb_array_elements(_archive->'members') WITH ORDINALITY x(m, n) LOOP
        INSERT INTO member (realm, team, name, nth, agent, agent_type, model, prompt, color, backend, cwd, joined_ms, role,
            takes)
        VALUES (_realm, _team, _member->>'name', _nth, (_member->>'agent')::uuid, _member->>'agent_type',
            _member->>'model', _member->>'prompt', _member->>'color', _member->>'backend',
            decode(_member->>'cwd', 'hex'), (_member->>'joined_ms')::bigint, _member->>'role', _member->>'takes');
        PERFORM use_up(_realm, _team, _member->>'name');
        PERFORM import_mail(_realm, (_member->>'agent')::uuid, _member->'mail');
    END LOOP;
    PERFORM use_up(_realm, _team, name) FROM jsonb_array_elements_text(_archive->'former') name;
    INSERT INTO note (realm, team, name, version, author, written_ms, text)
    SELECT _realm, _team, n.name, n.version, n.author, n.written_ms, n.text
        FROM jsonb_populate_recordset(NULL::note, _archive->'notes') n;
    INSERT INTO task (realm, team, id, status, waits, owner, owner_agent, lost_by, version, created_ms, updated_ms, subject,
        active_form, metadata, description, role, check_command)
    SELECT _realm, _team, t.id, t.status, t.waits, t.owner, t.owner_agent, t.lost_by, t.version, t.created_ms, t.updated_ms,
        t.subject, t.active_form, t.metadata, t.description, t.role, t.check_command
        FROM jsonb_populate_recordset(NULL::task, _archive->'tasks') t;
    INSERT INTO dependency (realm, team, task, needs)
    SELECT _realm, _team, (t->>'id')::bigint, needs::bigint
        FROM jsonb_array_elements(_archive->'tasks') t, jsonb_array_elements_text(t->'blocked_by') needs;
    PERFORM claimable(_realm, _team);
    INSERT INTO receipt (realm, id, result) VALUES (_realm, (_job->>'id')::uuid, 'null');
EXCEPTION
    WHEN unique_violation THEN PERFORM bad_step(SQLERRM);
END $$;

-- Makes an inbox. One that is there already keeps what it has, and gets only what it never had.
CREATE OR REPLACE FUNCTION import_mail(_realm uuid, _agent uuid, _mail jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE _last bigint; _waiting bigint; _count bigint; _bytes bigint; _holder uuid;
BEGIN
    PERFORM make_inbox(_realm, _agent);
    SELECT last INTO _last FROM inbox WHERE realm = _realm AND agent = _agent;
    WITH put AS (
        INSERT INTO mail (realm, recipient, number, id, sender, sender_name, kind, sent_ms, entry, summary, body, size)
        SELECT _realm, _agent, _last + row_number() OVER (ORDER BY n), (m->>'id')::uuid, (m->>'sender')::uuid,
            m->>'sender_name', m->>'kind', (m->>'sent_ms')::bigint, (m->>'entry')::bigint, m->>'summary', m->>'body',
            (m->>'size')::int
        FROM jsonb_array_elements(_mail) WITH ORDINALITY x(m, n)
        WHERE (m->>'id')::uuid NOT IN (SELECT id FROM mail WHERE realm = _realm AND recipient = _agent)
        RETURNING entry, size)
    SELECT count(*), count(*) FILTER (WHERE entry IS NULL), coalesce(sum(size) FILTER (WHERE entry IS NULL), 0)
        INTO _count, _waiting, _bytes FROM put;
    UPDATE inbox SET last = last + _count, waiting = waiting + _waiting, bytes = bytes + _bytes
        WHERE realm = _realm AND agent = _agent RETURNING host INTO _holder;
    IF _holder IS NOT NULL AND _waiting > 0 THEN PERFORM tell_mail(_holder, _agent); END IF;
END $$;
