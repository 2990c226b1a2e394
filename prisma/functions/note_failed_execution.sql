-- Notes that an execution of a schedule has failed, for its organization (note_organization_event). A trigger function,
-- called for each execution that fails, in the transaction that records it.

CREATE OR REPLACE FUNCTION note_failed_execution() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_session record;
BEGIN
  SELECT t.session_id, s.agent_id INTO v_session FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id = NEW.id;
  PERFORM note_organization_event(
    NEW.organization_id, 'execution.failed', v_session.agent_id, v_session.session_id, NULL,
    jsonb_build_object('execution', jsonb_build_object(
      'id', NEW.id, 'schedule_id', NEW.schedule_id, 'error', left(NEW.error, 2000), 'http_status', NEW.http_status,
      'scheduled_at', to_char(NEW.scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      'completed_at', to_char(NEW.completed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    ))
  );
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER schedule_executions_failed AFTER UPDATE OF status ON schedule_executions
FOR EACH ROW WHEN (OLD.status <> 'failed' AND NEW.status = 'failed') EXECUTE FUNCTION note_failed_execution();
