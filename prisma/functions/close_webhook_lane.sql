-- Removes a lane whose deliveries have all ended. Returns true if one is pending. A delivery that another transaction is
-- adding is waited for: the second statement sees what was committed before the lock was given.

CREATE OR REPLACE FUNCTION close_webhook_lane(p_webhook_id uuid, p_lane_id uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM webhook_lanes WHERE webhook_id = p_webhook_id AND id = p_lane_id FOR UPDATE;
  IF EXISTS (
    SELECT FROM webhook_deliveries WHERE webhook_id = p_webhook_id AND lane_id = p_lane_id AND status = 'pending'
  ) THEN
    RETURN true;
  END IF;
  DELETE FROM webhook_lanes WHERE webhook_id = p_webhook_id AND id = p_lane_id;
  RETURN false;
END $$;
