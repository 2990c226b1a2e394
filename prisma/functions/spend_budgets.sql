-- Adds what was used to budgets that lock_budgets has locked, and tells the organization of 80 and 100 percent, once for
-- each limit and period.
--
-- p_spent: [{budget_id, amount}] in the unit of each budget, or budgets that are to be told of only, with amount 0.

CREATE OR REPLACE FUNCTION spend_budgets(p_turn turns, p_spent jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_budget record;
  v_told smallint;
BEGIN
  FOR v_budget IN
    UPDATE budgets SET spent = spent + (s ->> 'amount')::numeric
    FROM jsonb_array_elements(p_spent) AS s WHERE id = (s ->> 'budget_id')::uuid
    RETURNING budgets.*, coalesce((s ->> 'is_reached')::boolean, false) AS is_reached
  LOOP
    v_told := CASE
      WHEN v_budget.is_reached OR v_budget.spent >= v_budget."limit" + v_budget.raised THEN 100
      WHEN v_budget.spent >= 0.8 * (v_budget."limit" + v_budget.raised) THEN 80
      ELSE 0
    END;
    CONTINUE WHEN v_told <= v_budget.told;
    UPDATE budgets SET told = v_told WHERE id = v_budget.id;
    PERFORM note_organization_event(
      v_budget.organization_id, 'budget.reached', p_turn.agent_id, NULL, NULL, jsonb_strip_nulls(jsonb_build_object(
        'budget_id', 'budget_' || replace(v_budget.id::text, '-', ''),
        'scope', v_budget.scope,
        'percent', v_told,
        'unit', CASE WHEN v_budget.is_in_usd THEN 'usd' ELSE 'tokens' END,
        'limit', trim_scale(v_budget."limit" + v_budget.raised)::text,
        'spent', trim_scale(v_budget.spent)::text,
        'period', v_budget.period,
        'on_reached', v_budget.on_reached,
        'turn_id', 'turn_' || replace(p_turn.id::text, '-', '')
      ))
    );
  END LOOP;
END $$;
