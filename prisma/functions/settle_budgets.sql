-- Ends the reservations of a turn's model calls and adds what they used to the turn's budgets.
--
-- p_turn           the turn; for a call outside of all turns, a row without an id that has those who pay for it
-- p_step           the call's step; null: all calls of the turn
-- p_usd, p_tokens  what the call used. A null p_usd is an unknown price, which a budget in USD cannot count. A null
--                  p_tokens: the call's end is unknown, because it was cancelled or its process died. Then its input
--                  counts, and the output that was streamed, three bytes a token

CREATE OR REPLACE FUNCTION settle_budgets(p_turn turns, p_step text, p_usd numeric, p_tokens bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_ids uuid[];
  v_spent jsonb;
BEGIN
  IF p_tokens IS NULL AND NOT EXISTS (
    SELECT FROM budget_reservations WHERE turn_id = p_turn.id AND step = coalesce(p_step, step)
  ) THEN
    RETURN;
  END IF;
  v_ids := lock_budgets(p_turn);
  IF p_tokens IS NOT NULL THEN
    SELECT jsonb_agg(jsonb_build_object(
      'budget_id', id, 'amount', CASE WHEN is_in_usd THEN coalesce(p_usd, 0) ELSE p_tokens END
    )) INTO v_spent FROM budgets WHERE id = ANY (v_ids);
  ELSE
    SELECT jsonb_agg(jsonb_build_object('budget_id', budget_id, 'amount', amount)) INTO v_spent FROM (
      SELECT r.budget_id,
        sum(r.input + (r.amount - r.input) * least(1, streamed.tokens / greatest(1, r.output_tokens))) AS amount
      FROM budget_reservations r CROSS JOIN LATERAL (
        SELECT coalesce(sum(ceil(octet_length(e.data ->> 'delta') / 3.0)), 0) AS tokens FROM events e
        WHERE e.turn_id = r.turn_id AND e.step = r.step AND e.type IN ('output.message.delta', 'reason.thinking.delta')
          AND e.session_id = p_turn.session_id
          AND e.sequence > (
            SELECT max(sequence) FROM events s
            WHERE s.turn_id = r.turn_id AND s.step = r.step AND s.type = 'output.message.started'
              AND s.session_id = e.session_id AND s.sequence > p_turn.input_sequence
          )
      ) AS streamed
      WHERE r.turn_id = p_turn.id AND r.step = coalesce(p_step, r.step)
      GROUP BY r.budget_id
    ) AS lost;
  END IF;
  DELETE FROM budget_reservations WHERE turn_id = p_turn.id AND step = coalesce(p_step, step);
  IF v_spent IS NOT NULL THEN
    PERFORM spend_budgets(p_turn, v_spent);
  END IF;
END $$;
