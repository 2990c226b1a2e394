-- Locks the budgets that a turn counts towards, in the order of their ids, and begins their current periods. Times are UTC.
-- Returns their ids, and an empty list without a lock if there are none.

CREATE OR REPLACE FUNCTION lock_budgets(p_turn turns) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  v_ids uuid[];
  v_now timestamp := clock_timestamp() AT TIME ZONE 'UTC';
BEGIN
  v_ids := ARRAY(SELECT budgets_counting(p_turn));
  IF cardinality(v_ids) = 0 THEN
    RETURN v_ids;
  END IF;
  PERFORM 1 FROM budgets WHERE id = ANY (v_ids) ORDER BY id FOR NO KEY UPDATE;
  UPDATE budgets SET period_start = begun.at, spent = 0, raised = 0, told = 0
  FROM (VALUES ('day'::budget_period, date_trunc('day', v_now) AT TIME ZONE 'UTC'),
    ('month', date_trunc('month', v_now) AT TIME ZONE 'UTC')) AS begun (period, at)
  WHERE id = ANY (v_ids) AND budgets.period = begun.period AND period_start < begun.at;
  RETURN v_ids;
END $$;
