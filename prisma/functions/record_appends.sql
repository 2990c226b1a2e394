-- Records appends of several sessions, one of each, in one transaction. It never waits for a session's lock.
--
-- p_appends: [{session_id, turn_id, step, fence, process, is_delta, events}], the parameters of record_events, which
-- says what they mean. `is_delta`: the append is one piece of a text, by an attempt that has claimed its step. A streaming
-- session makes ten of those a second, so all of them are checked, inserted and numbered together.
--
-- Returns (place from 1, result of record_events) of each append that has been recorded or refused. Others have to be
-- recorded by themselves: the session is locked or gone, or an append of a piece is not the regular one, which
-- record_events decides about.

CREATE OR REPLACE FUNCTION record_appends(p_appends jsonb)
RETURNS TABLE (place integer, result jsonb) LANGUAGE plpgsql AS $$
DECLARE
  v_locked uuid[];
  v_ts timestamptz(3);
BEGIN
  v_locked := ARRAY(
    SELECT id FROM sessions
    WHERE id IN (SELECT (a.append ->> 'session_id')::uuid FROM jsonb_array_elements(p_appends) AS a (append))
    FOR NO KEY UPDATE SKIP LOCKED
  );
  -- Taken under the locks, so that times are in the order of the sequences.
  v_ts := clock_timestamp();

  -- A statement of its own: it sees what the previous holders of the locks have recorded.
  RETURN QUERY WITH piece AS MATERIALIZED (
    SELECT a.place, session.id AS session_id, session.last_sequence + 1 AS sequence, turn.id AS turn_id, step.claims,
      a.append -> 'events' -> 0 AS event
    FROM jsonb_array_elements(p_appends) WITH ORDINALITY AS a (append, place)
    JOIN sessions AS session ON session.id = (a.append ->> 'session_id')::uuid AND session.id = ANY (v_locked)
    JOIN turns AS turn ON turn.id = (a.append ->> 'turn_id')::uuid AND turn.session_id = session.id
      AND turn.status = 'active'
    JOIN turn_steps AS step ON step.turn_id = turn.id AND step.step = a.append ->> 'step'
      AND step.fence = (a.append ->> 'fence')::bigint
    WHERE (a.append -> 'is_delta')::boolean
  ), inserted AS (
    INSERT INTO events (session_id, sequence, type, ts, turn_id, step, exec_id, data)
    SELECT piece.session_id, piece.sequence, piece.event ->> 'type', v_ts, piece.turn_id, piece.event ->> 'step',
      (piece.event ->> 'exec_id')::uuid, piece.event -> 'data'
    FROM piece
  ), numbered AS (
    UPDATE sessions SET last_sequence = piece.sequence, updated_at = v_ts FROM piece WHERE id = piece.session_id
  )
  SELECT piece.place::integer, jsonb_build_object(
    'outcome', 'appended',
    'events', jsonb_build_array(jsonb_build_array(1, piece.sequence)),
    'ts', v_ts,
    'claims', piece.claims
  )
  FROM piece;

  RETURN QUERY
  SELECT a.place::integer, record_events(
    (a.append ->> 'session_id')::uuid, (a.append ->> 'turn_id')::uuid, a.append ->> 'step',
    (a.append ->> 'fence')::bigint, a.append -> 'events', (a.append ->> 'process')::bigint
  )
  FROM jsonb_array_elements(p_appends) WITH ORDINALITY AS a (append, place)
  WHERE NOT (a.append -> 'is_delta')::boolean AND (a.append ->> 'session_id')::uuid = ANY (v_locked)
  ORDER BY a.place;
END $$;
