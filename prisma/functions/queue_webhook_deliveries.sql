-- Queues an event for the webhooks that want it, in the transaction that notes it. A trigger function, called for each
-- event. An organization without webhooks pays for one look into an index.
--
-- The lane's row stays locked until the transaction ends, so close_webhook_lane either sees the new delivery or removes
-- the lane before. Webhooks are taken in one order, so two transactions cannot deadlock.

CREATE OR REPLACE FUNCTION queue_webhook_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM queue_webhook_delivery(id, coalesce(NEW.session_id, id), gen_random_uuid(), NEW.type, jsonb_build_object(
    'agent_id', NEW.agent_id, 'session_id', NEW.session_id, 'turn_id', NEW.turn_id, 'data', NEW.data,
    'created_at', NEW.created_at
  ))
  FROM (
    SELECT id FROM webhooks
    WHERE organization_id = NEW.organization_id AND enabled AND NEW.type = ANY (events)
      AND (agent_id IS NULL OR agent_id = NEW.agent_id)
    ORDER BY id
  ) AS wanting;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER organization_events_noted AFTER INSERT ON organization_events
FOR EACH ROW EXECUTE FUNCTION queue_webhook_deliveries();
