-- Keeps what a row of a session's data was before it changes. A trigger function, called only in transactions in which
-- claim_session_write has set agent_sessions.stamp, because the session keeps snapshots. See session_snapshots.

CREATE OR REPLACE FUNCTION keep_snapshot() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_kind snapshot_kind := CASE TG_TABLE_NAME
    WHEN 'session_files' THEN 'file' WHEN 'session_values' THEN 'value' WHEN 'session_databases' THEN 'database' ELSE 'page'
  END;
  v_old jsonb := CASE WHEN TG_OP <> 'INSERT' THEN to_jsonb(OLD) - 'bytes' END;
  v_new jsonb := CASE WHEN TG_OP <> 'DELETE' THEN to_jsonb(NEW) - 'bytes' END;
  v_bytes bytea;
  v_old_name text;
  v_new_name text;
BEGIN
  IF v_kind = 'page' AND TG_OP <> 'INSERT' THEN
    v_bytes := OLD.bytes;
  END IF;
  v_old_name := CASE v_kind
    WHEN 'file' THEN v_old ->> 'path' WHEN 'value' THEN v_old ->> 'key' WHEN 'database' THEN v_old ->> 'name'
    ELSE (v_old ->> 'database_id') || '/' || (v_old ->> 'number')
  END;
  v_new_name := CASE v_kind
    WHEN 'file' THEN v_new ->> 'path' WHEN 'value' THEN v_new ->> 'key' WHEN 'database' THEN v_new ->> 'name'
    ELSE (v_new ->> 'database_id') || '/' || (v_new ->> 'number')
  END;
  INSERT INTO session_snapshots (session_id, kind, name, stamp, before, bytes)
  SELECT (coalesce(v_old, v_new) ->> 'session_id')::uuid, v_kind, was.name, current_setting('agent_sessions.stamp')::bigint,
    was.before, was.bytes
  FROM (VALUES (v_old_name, v_old, v_bytes), (CASE WHEN v_new_name IS DISTINCT FROM v_old_name THEN v_new_name END, NULL, NULL))
    AS was (name, before, bytes)
  WHERE was.name IS NOT NULL
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER session_files_kept AFTER INSERT OR UPDATE OR DELETE ON session_files
FOR EACH ROW WHEN (current_setting('agent_sessions.stamp', true) <> '') EXECUTE FUNCTION keep_snapshot();
CREATE OR REPLACE TRIGGER session_values_kept AFTER INSERT OR UPDATE OR DELETE ON session_values
FOR EACH ROW WHEN (current_setting('agent_sessions.stamp', true) <> '') EXECUTE FUNCTION keep_snapshot();
CREATE OR REPLACE TRIGGER session_databases_kept AFTER INSERT OR UPDATE OR DELETE ON session_databases
FOR EACH ROW WHEN (current_setting('agent_sessions.stamp', true) <> '') EXECUTE FUNCTION keep_snapshot();
CREATE OR REPLACE TRIGGER session_database_pages_kept AFTER INSERT OR UPDATE OR DELETE ON session_database_pages
FOR EACH ROW WHEN (current_setting('agent_sessions.stamp', true) <> '') EXECUTE FUNCTION keep_snapshot();
