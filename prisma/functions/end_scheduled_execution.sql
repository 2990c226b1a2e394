-- Ends the execution of a schedule with its turn, which has the same id. A trigger function, called for each turn that
-- ends, in the transaction that records the end. The execution's workflow is then due a notice.

CREATE OR REPLACE FUNCTION end_scheduled_execution() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE schedule_executions SET
    status = CASE NEW.status WHEN 'completed' THEN 'completed' ELSE 'failed' END::schedule_execution_status,
    error = CASE NEW.status
      WHEN 'completed' THEN NULL
      WHEN 'cancelled' THEN 'The turn was cancelled.'
      ELSE coalesce(NEW.error, 'The turn failed.')
    END,
    completed_at = NEW.finished_at,
    notice_due_at = NEW.finished_at
  WHERE id = NEW.id AND status IN ('pending', 'running');
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER turns_ended AFTER UPDATE OF finished_at ON turns
FOR EACH ROW WHEN (OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL) EXECUTE FUNCTION end_scheduled_execution();
