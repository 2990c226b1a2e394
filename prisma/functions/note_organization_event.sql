-- Notes something that an organization is told of, by its event stream and its webhooks, in the transaction in which it
-- happens. Its types are in contract/organization-events.ts.

CREATE OR REPLACE FUNCTION note_organization_event(
  p_organization_id uuid, p_type text, p_agent_id uuid, p_session_id uuid, p_turn_id uuid, p_data jsonb
)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO organization_events (organization_id, type, agent_id, session_id, turn_id, data, created_at)
  VALUES (p_organization_id, p_type, p_agent_id, p_session_id, p_turn_id, p_data, clock_timestamp())
$$;
