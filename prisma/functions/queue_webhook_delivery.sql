-- Queues one delivery of a webhook at the end of a lane, which a sweep starts if it is new.

CREATE OR REPLACE FUNCTION queue_webhook_delivery(
  p_webhook_id uuid, p_lane_id uuid, p_id uuid, p_type text, p_event jsonb
)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO webhook_lanes AS known (webhook_id, id) VALUES (p_webhook_id, p_lane_id)
  ON CONFLICT (webhook_id, id) DO UPDATE SET due_at = known.due_at;
  INSERT INTO webhook_deliveries (id, webhook_id, lane_id, type, event)
  VALUES (p_id, p_webhook_id, p_lane_id, p_type, p_event);
END $$;
