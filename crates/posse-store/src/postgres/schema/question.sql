-- Questions to people.

-- Questions that a step asks or closes: each is asked once, and closed once.
CREATE OR REPLACE FUNCTION question_changes(_realm uuid, _agent uuid, _questions jsonb, _at bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE _change jsonb; _id uuid;
BEGIN
    FOR _change IN SELECT * FROM jsonb_array_elements(_questions) LOOP
        _id := (_change->>'id')::uuid;
        IF _change ? 'asked' THEN
            INSERT INTO question (realm, id, agent, call_seq, call_ordinal, state, asked_ms, question)
            VALUES (_realm, _id, _agent, (_change->>'seq')::bigint, (_change->>'ordinal')::int, 0, _at, _change->>'asked')
            ON CONFLICT DO NOTHING;
        ELSIF (_change->>'done')::boolean THEN
            UPDATE question SET state = 2 WHERE realm = _realm AND id = _id AND agent = _agent AND state = 1;
        ELSE
            UPDATE question SET state = 3 WHERE realm = _realm AND id = _id AND agent = _agent AND state < 2;
        END IF;
        IF NOT FOUND THEN PERFORM bad_step(format('question %s cannot become that', _id)); END IF;
    END LOOP;
END $$;

-- Answers a question, if it is open.
CREATE OR REPLACE FUNCTION act_answer(_realm uuid, _actor uuid, _host uuid, _at bigint, _op jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE _id uuid := (_op->>'question')::uuid; _asked question; _holder uuid;
BEGIN
    SELECT * INTO _asked FROM question WHERE realm = _realm AND id = _id;
    IF NOT FOUND THEN RETURN refused('NoSuchQuestion', json_build_object('question', _id)); END IF;
    IF _asked.state <> 0 THEN
        RETURN refused('QuestionClosed', json_build_object('question', _id,
            'state', (ARRAY['open', 'answered', 'done', 'withdrawn'])[_asked.state + 1]));
    END IF;
    UPDATE question SET state = 1, answer = _op->>'answer', answered_ms = _at WHERE realm = _realm AND id = _id;
    _holder := host_of(_realm, _asked.agent);
    IF _holder IS NOT NULL THEN PERFORM tell_mail(_holder, _asked.agent); END IF;
    RETURN done('Answered', json_build_object('agent', _asked.agent, 'held', _holder IS NOT NULL));
END $$;
