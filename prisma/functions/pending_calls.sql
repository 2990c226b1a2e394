-- Lists the tool calls that a turn's client was asked for and has not decided yet, each with its step and its content.
--
-- The request is the event tool.call_requested, whose step is act:<iteration>. A call has the step
-- tool:<iteration>:<call id> (domain/events/log/steps.ts). Its tool.started means that the client has approved it; its
-- tool.completed holds the client's result or refusal. With either, the call is decided.

CREATE OR REPLACE FUNCTION pending_calls(p_turn_id uuid) RETURNS TABLE (step text, call jsonb) LANGUAGE sql STABLE AS $$
  SELECT asked.step, asked.call FROM (
    SELECT 'tool:' || split_part(e.step, ':', 2) || ':' || (c ->> 'id') AS step, c AS call
    FROM events e CROSS JOIN jsonb_array_elements(e.data -> 'tool_calls') AS c
    WHERE e.turn_id = p_turn_id AND e.type = 'tool.call_requested'
  ) AS asked
  WHERE NOT EXISTS (
    SELECT FROM events d
    WHERE d.turn_id = p_turn_id AND d.type IN ('tool.started', 'tool.completed') AND d.step = asked.step
  )
$$;
