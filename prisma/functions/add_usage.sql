-- Adds a finished model call to its agent's sums, and to the usage of the hour in which it finished. Null ids: it has no
-- session, agent, user or key. A null p_cost_usd: its price is unknown.

CREATE OR REPLACE FUNCTION add_usage(
  p_organization_id uuid, p_session_id uuid, p_agent_id uuid, p_user_id uuid, p_api_key_id uuid, p_model text, p_at timestamptz,
  p_input_tokens bigint, p_output_tokens bigint, p_cache_read_tokens bigint, p_cache_creation_tokens bigint, p_cost_usd numeric
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_nobody CONSTANT uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
  IF p_agent_id IS NOT NULL THEN
    UPDATE agents SET
      input_tokens = input_tokens + p_input_tokens,
      output_tokens = output_tokens + p_output_tokens,
      cache_read_tokens = cache_read_tokens + p_cache_read_tokens,
      cache_creation_tokens = cache_creation_tokens + p_cache_creation_tokens,
      cost_usd = cost_usd + p_cost_usd
    WHERE organization_id = p_organization_id AND id = p_agent_id;
  END IF;
  INSERT INTO usage_hours (
    organization_id, hour, session_id, agent_id, user_id, api_key_id, model, calls, unpriced_calls, input_tokens,
    output_tokens, cache_read_tokens, cache_creation_tokens, cost_usd
  )
  VALUES (
    p_organization_id, date_trunc('hour', p_at, 'UTC'), coalesce(p_session_id, v_nobody), coalesce(p_agent_id, v_nobody),
    coalesce(p_user_id, v_nobody), coalesce(p_api_key_id, v_nobody), coalesce(p_model, ''), 1, (p_cost_usd IS NULL)::integer,
    p_input_tokens, p_output_tokens, p_cache_read_tokens, p_cache_creation_tokens, coalesce(p_cost_usd, 0)
  )
  ON CONFLICT (organization_id, hour, session_id, agent_id, user_id, api_key_id, model) DO UPDATE SET
    calls = usage_hours.calls + 1,
    unpriced_calls = usage_hours.unpriced_calls + excluded.unpriced_calls,
    input_tokens = usage_hours.input_tokens + excluded.input_tokens,
    output_tokens = usage_hours.output_tokens + excluded.output_tokens,
    cache_read_tokens = usage_hours.cache_read_tokens + excluded.cache_read_tokens,
    cache_creation_tokens = usage_hours.cache_creation_tokens + excluded.cache_creation_tokens,
    cost_usd = usage_hours.cost_usd + excluded.cost_usd;
END $$;
