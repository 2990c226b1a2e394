-- Numbers the events of organizations that have no sequence yet, up to 10,000 of each. Returns the highest
-- sequence of each organization, and whether it has more.
--
-- Positions are given before a commit, so an event with a lower one may appear after an event with a higher one was read.
-- Sequences are given to committed events only, by one caller at a time, under the lock of the organization's row, so a
-- reader who sees a sequence sees all lower ones. An organization whose row is locked is left out, so that nobody waits here: another
-- caller is numbering its events, or the next call will.

CREATE OR REPLACE FUNCTION number_organization_events(p_organizations uuid[])
RETURNS TABLE (organization_id uuid, last_event bigint, has_more boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  v_organization uuid;
BEGIN
  FOR v_organization IN
    SELECT id FROM organizations o
    WHERE id = ANY (p_organizations)
      AND EXISTS (SELECT FROM organization_events e WHERE e.organization_id = o.id AND e.sequence IS NULL)
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    -- A statement of its own, which sees what was committed before the lock was taken.
    WITH given AS (
      SELECT e.position, o.last_event + row_number() OVER (ORDER BY e.position) AS number
      FROM organizations o CROSS JOIN LATERAL (
        SELECT position FROM organization_events
        WHERE organization_id = o.id AND sequence IS NULL ORDER BY position LIMIT 10000
      ) AS e
      WHERE o.id = v_organization
    ), numbered AS (
      UPDATE organization_events e SET sequence = given.number FROM given WHERE e.position = given.position
    )
    UPDATE organizations o SET last_event = coalesce((SELECT max(number) FROM given), o.last_event)
    WHERE o.id = v_organization;
  END LOOP;
  RETURN QUERY
    SELECT id, o.last_event,
      EXISTS (SELECT FROM organization_events e WHERE e.organization_id = o.id AND e.sequence IS NULL)
    FROM organizations o WHERE id = ANY (p_organizations);
END $$;
