-- Reserves, for a model call, the most that it can cost in every budget that its turn counts towards, in one step under
-- the budgets' locks. Budgets therefore hold however many turns run at once. An earlier reservation of the same step is
-- settled first: its attempt has died, or failed.
--
-- p_fence                          orders the attempts of the step; see record_events
-- p_input_tokens, p_output_tokens  the call's input, and the most that its answer may have
-- p_input_usd, p_output_usd        the input's price, and the price of a token of output; null: unknown
-- p_least_tokens                   the least output that is worth a call
-- p_may_be_unpriced                whether calls with an unknown price pass budgets in USD
--
-- The call gets all the output that it asks for, if there is room. Of a budget that other sessions' calls use, too, it gets
-- at most a quarter of what is left, so that the calls under way share that; but never less than p_least_tokens.
--
-- Returns {outcome, output_tokens, budget}. `outcome` is
--   ended     the turn is over, or waits
--   fenced    another attempt has the step
--   reserved  the call may be made, with at most `output_tokens`
--   busy      other calls have reserved what is left of the budget `budget`; some of it may come back
--   reached   the budget with the id `budget` is used up
--   unpriced  the budget `budget` is in USD, and the price is unknown

CREATE OR REPLACE FUNCTION reserve_budgets(
  p_turn_id uuid, p_step text, p_fence bigint, p_input_tokens bigint, p_output_tokens bigint, p_input_usd numeric, p_output_usd numeric,
  p_least_tokens bigint, p_may_be_unpriced boolean
)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  v_turn turns;
  v_ids uuid[];
  v_room record;
  v_least bigint := least(p_least_tokens, p_output_tokens);
  v_granted bigint;
BEGIN
  -- Held until the reservation is committed, so that the turn's end finds it.
  SELECT * INTO v_turn FROM turns WHERE id = p_turn_id AND finished_at IS NULL AND status <> 'waiting' FOR SHARE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'ended');
  END IF;
  IF EXISTS (
    SELECT FROM turn_steps
    WHERE turn_id = p_turn_id AND step = p_step AND (fence > p_fence OR (fence <> p_fence AND p_fence < 0))
  ) THEN
    RETURN jsonb_build_object('outcome', 'fenced');
  END IF;
  v_ids := lock_budgets(v_turn);
  IF EXISTS (SELECT FROM budget_reservations WHERE turn_id = p_turn_id AND step = p_step) THEN
    PERFORM settle_budgets(v_turn, p_step, NULL, NULL);
  END IF;
  IF p_input_usd IS NULL AND NOT p_may_be_unpriced THEN
    SELECT id INTO v_room FROM budgets WHERE id = ANY (v_ids) AND is_in_usd LIMIT 1;
    IF FOUND THEN
      RETURN jsonb_build_object('outcome', 'unpriced', 'budget', v_room.id);
    END IF;
  END IF;

  -- How many tokens of output each budget has room for: now, and if no other call were under way.
  SELECT id, room, room_alone, share INTO v_room FROM (
    SELECT b.id, b.created_at,
      CASE WHEN price.output > 0 THEN floor((held.rest - held.reserved) / price.output)
        WHEN held.rest - held.reserved >= 0 THEN p_output_tokens * 4 ELSE -1 END AS room,
      CASE WHEN price.output > 0 THEN floor(held.rest / price.output)
        WHEN held.rest >= 0 THEN p_output_tokens * 4 ELSE -1 END AS room_alone,
      CASE WHEN b.scope_id IN (v_turn.id, v_turn.session_id) THEN 1 ELSE 4 END AS share
    FROM budgets b
    CROSS JOIN LATERAL (SELECT
      CASE WHEN b.is_in_usd THEN p_input_usd ELSE p_input_tokens END AS input,
      CASE WHEN b.is_in_usd THEN p_output_usd ELSE 1 END AS output
    ) AS price
    CROSS JOIN LATERAL (SELECT
      b."limit" + b.raised - b.spent - price.input AS rest,
      (SELECT coalesce(sum(amount), 0) FROM budget_reservations WHERE budget_id = b.id) AS reserved
    ) AS held
    WHERE b.id = ANY (v_ids) AND (p_input_usd IS NOT NULL OR NOT b.is_in_usd)
  ) AS rooms ORDER BY room_alone >= v_least, room >= v_least, floor(room / share), created_at, id LIMIT 1;
  IF v_room.room < v_least THEN
    IF v_room.room_alone >= v_least THEN
      RETURN jsonb_build_object('outcome', 'busy', 'budget', v_room.id);
    END IF;
    PERFORM spend_budgets(v_turn, jsonb_build_array(
      jsonb_build_object('budget_id', v_room.id, 'amount', 0, 'is_reached', true)
    ));
    RETURN jsonb_build_object('outcome', 'reached', 'budget', v_room.id);
  END IF;

  v_granted := greatest(v_least, least(p_output_tokens, coalesce(floor(v_room.room / v_room.share), p_output_tokens)));
  INSERT INTO budget_reservations (turn_id, step, budget_id, amount, input, output_tokens)
  SELECT p_turn_id, p_step, id, price.input + price.output * v_granted, price.input, v_granted
  FROM budgets CROSS JOIN LATERAL (SELECT
    CASE WHEN is_in_usd THEN p_input_usd ELSE p_input_tokens END AS input,
    CASE WHEN is_in_usd THEN p_output_usd ELSE 1 END AS output
  ) AS price
  WHERE id = ANY (v_ids) AND (p_input_usd IS NOT NULL OR NOT is_in_usd);
  RETURN jsonb_build_object('outcome', 'reserved', 'output_tokens', v_granted);
END $$;
