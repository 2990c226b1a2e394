-- Each statement by itself: the table may be large, and turns go on while its index is built.

DROP INDEX CONCURRENTLY IF EXISTS "turns_admission";

-- Turns that have or wait for a place, in the order of their messages.
CREATE INDEX CONCURRENTLY "turns_admission" ON turns (organization_id, created_at, id) WHERE admission IS NOT NULL;
