-- Returns the ids of the budgets that a turn counts towards. A child turn also counts towards the budgets of the turns above
-- it, and of their sessions and agents.

CREATE OR REPLACE FUNCTION budgets_counting(p_turn turns) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
  SELECT b.id FROM (VALUES
    ('organization'::budget_scope, p_turn.organization_id), ('agent', p_turn.agent_id), ('session', p_turn.session_id),
    ('user', p_turn.user_id), ('api_key', p_turn.api_key_id), ('turn', p_turn.id)
  ) AS place (scope, id)
  JOIN budgets b ON b.organization_id = p_turn.organization_id AND b.scope = place.scope AND b.scope_id = place.id
  UNION ALL
  SELECT b.id FROM turns above
  CROSS JOIN LATERAL (VALUES ('agent'::budget_scope, above.agent_id), ('session', above.session_id), ('turn', above.id)) AS place (scope, id)
  JOIN budgets b ON b.organization_id = p_turn.organization_id AND b.scope = place.scope AND b.scope_id = place.id
  WHERE above.id = ANY (p_turn.ancestors) AND above.organization_id = p_turn.organization_id
$$;
