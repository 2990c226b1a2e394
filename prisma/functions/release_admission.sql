-- Takes the place of a turn (see admit_turns) that ends or waits for its client, in the transaction that records it. A turn
-- that waits for its client is in line again as soon as it goes on. A trigger function.

CREATE OR REPLACE FUNCTION release_admission() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.admission := CASE WHEN NEW.finished_at IS NULL THEN 'waits' END::turn_admission;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER turns_admission_released BEFORE UPDATE OF status ON turns
FOR EACH ROW WHEN (OLD.admission IS NOT NULL AND (NEW.finished_at IS NOT NULL OR NEW.status = 'waiting'))
EXECUTE FUNCTION release_admission();
