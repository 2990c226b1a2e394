-- Changes one value or one secret of a session. Nothing else writes session_values and session_secrets,
-- apart from the deletion of a session and from `npm run reencrypt`, which keeps the length of secrets.
--
-- Parameters
--   p_organization_id, p_session_id  the session, and the organization that it must belong to
--   p_turn_id, p_step, p_fence       the attempt of a tool call that writes (see turn_steps); null for other writers
--   p_do                             set_value, delete_value, set_secret or delete_secret
--   p_name                           the key of the value, or the name of the secret
--   p_value, p_secret                what set_value and set_secret store
--   p_max_count                      limit on the session's values, and on its secrets
--   p_max_bytes                      limit on the bytes of both together, as they are stored
--
-- Returns {outcome, …}. `outcome` is
--   changed    with `existed`, whether there was such a value or secret before. A repeated call has it in `effect`.
--   refused    nothing changed, because of the `problem`: too_many or too_large. What takes no more than before is
--              never refused.
--   otherwise as in claim_session_write
--
-- Waits at most a second for a lock, then fails with lock_not_available (55P03).

CREATE OR REPLACE FUNCTION change_session_storage(
  p_organization_id uuid, p_session_id uuid, p_turn_id uuid, p_step text, p_fence bigint,
  p_do text, p_name text, p_value text, p_secret bytea, p_max_count integer, p_max_bytes bigint
) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  -- Distinguishes these advisory locks from others; any number will do.
  c_lock CONSTANT integer := 1927;
  v_of_secrets boolean := p_do IN ('set_secret', 'delete_secret');
  v_now timestamptz(3);
  v_size bigint := coalesce(octet_length(p_value), octet_length(p_secret));
  v_refusal jsonb;
  v_kept record;
  v_answer jsonb;
BEGIN
  v_refusal := claim_session_write(p_organization_id, p_session_id, p_turn_id, p_step, p_fence);
  IF v_refusal IS NOT NULL THEN
    RETURN v_refusal;
  END IF;
  PERFORM pg_advisory_xact_lock(c_lock, hashtext(p_session_id::text));
  -- Taken under the lock, so that times are in the order of the changes.
  v_now := clock_timestamp();
  IF is_call_completed(p_turn_id, p_step) THEN
    RETURN jsonb_build_object('outcome', 'fenced');
  END IF;

  -- The lengths are known without reading the values, which are stored apart.
  SELECT coalesce(sum(size), 0) AS bytes, count(*) FILTER (WHERE is_secret = v_of_secrets) AS count,
    max(size) FILTER (WHERE is_secret = v_of_secrets AND name = p_name) AS old_size
  INTO v_kept
  FROM (
    SELECT false AS is_secret, key AS name, octet_length(value)::bigint AS size
    FROM session_values WHERE session_id = p_session_id
    UNION ALL
    SELECT true, name, octet_length(value) FROM session_secrets WHERE session_id = p_session_id
  ) AS kept;
  IF v_size IS NOT NULL AND v_kept.old_size IS NULL AND v_kept.count >= p_max_count THEN
    RETURN jsonb_build_object('outcome', 'refused', 'problem', 'too_many');
  END IF;
  IF v_size > coalesce(v_kept.old_size, 0) AND v_kept.bytes - coalesce(v_kept.old_size, 0) + v_size > p_max_bytes THEN
    RETURN jsonb_build_object('outcome', 'refused', 'problem', 'too_large');
  END IF;

  CASE p_do
    WHEN 'set_value' THEN
      INSERT INTO session_values (session_id, key, value, created_at, updated_at)
      VALUES (p_session_id, p_name, p_value, v_now, v_now)
      ON CONFLICT (session_id, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at;
    WHEN 'set_secret' THEN
      INSERT INTO session_secrets (session_id, name, value, created_at, updated_at)
      VALUES (p_session_id, p_name, p_secret, v_now, v_now)
      ON CONFLICT (session_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at;
    WHEN 'delete_value' THEN
      DELETE FROM session_values WHERE session_id = p_session_id AND key = p_name;
    WHEN 'delete_secret' THEN
      DELETE FROM session_secrets WHERE session_id = p_session_id AND name = p_name;
  END CASE;
  v_answer := jsonb_build_object('existed', v_kept.old_size IS NOT NULL);
  UPDATE turn_steps SET effect = v_answer WHERE turn_id = p_turn_id AND step = p_step;
  RETURN v_answer || jsonb_build_object('outcome', 'changed');
END $$;
